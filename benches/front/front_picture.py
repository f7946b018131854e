"""docs/images/loaders.svg: a row for each loader, the first epoch light and later epochs dark. Drawn from a result of
`benches/front.py` alone, by no other library, so that the same result gives the same bytes.
"""

import math
from html import escape

import front_page
import page
import plate_page

WIDTH, LEFT, RIGHT = 960, 316, 780
TOP, BAR, ROW, GROUP = 82, 15, 42, 26
STYLE = """\
.paper{fill:#ffffff}.ink{fill:#1a1d21}.soft{fill:#565d66}.grid{stroke:#dde2e8}.axis{stroke:#8d97a4}.mark{stroke:#1a1d21;fill:none}.halo{stroke:#ffffff;stroke-width:3;fill:none}
.first{fill:#bcc5d0}.later{fill:#6b7684}.ours.first{fill:#a9c8f2}.ours.later{fill:#0b50af}
@media (prefers-color-scheme: dark){.paper{fill:#14171b}.ink{fill:#eef1f4}.soft{fill:#aeb7c2}.grid{stroke:#2b323b}\
.axis{stroke:#6b7684}.mark{stroke:#eef1f4}.halo{stroke:#14171b}.first{fill:#4b5663}.later{fill:#98a4b3}.ours.first{fill:#2f5488}\
.ours.later{fill:#5b9bf0}}"""


def step(most):
    """The step of an axis with at most six of them up to `most`: 1, 2 or 5 times a power of ten."""
    rough = most / 6
    power = 10 ** math.floor(math.log10(rough))
    return next(power * times for times in (1, 2, 5, 10) if power * times >= rough)


def text(x, y, said, kind="ink", size=13, more=""):
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" font-size="{size}"{more}>{escape(said)}</text>'


END, MIDDLE, BOLD = ' text-anchor="end"', ' text-anchor="middle"', ' font-weight="bold"'


def svg(result):
    """The picture."""
    groups, f = front_page.bars(result), result["facts"]
    rates = [one[phase][0] for loaders in groups.values() for one in loaders if "error" not in one
             for phase in plate_page.PHASES]  # fmt: skip
    most = max((high or rate for rate, _, high in rates), default=1)
    tick = step(most)
    # The longest whisker leaves room for the figure behind it.
    scale = (RIGHT - LEFT - 48) / most
    marks, y = [], TOP
    for files, loaders in groups.items():
        marks.append(text(16, y + 16, files, more=BOLD))
        y += GROUP
        for one in loaders:
            marks += row(one, y, scale)
            y += ROW
    bottom = y + 2
    grid = []
    for k in range(int((RIGHT - LEFT) / scale / tick) + 1):
        x = LEFT + k * tick * scale
        grid.append(f'<path class="{"grid" if k else "axis"}" d="M{x:.1f} {TOP}V{bottom}"/>')
        grid.append(text(round(x, 1), bottom + 16, f"{k * tick:,.10g}", "soft", 12, MIDDLE))
    grid.append(text(RIGHT + 8, bottom + 16, "images/s", "soft", 12))
    said = (f"{front_page.conditions(f)};",
            f"{f['threads']} threads or workers each{front_page.faster_way(result)}, {f['rounds']} rounds;",
            f"{f['machine']}, {f['date']}.", "LitData shuffles shards and rows within a shard.")  # fmt: skip
    foot = [text(16, bottom + 42 + 17 * i, line, "soft", 12) for i, line in enumerate(said)]
    height = bottom + 42 + 17 * (len(said) - 1) + 14
    alternative = escape(front_page.alternative(result))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" aria-labelledby="loaders-title loaders-desc" '
        'font-family="DejaVu Sans, Verdana, Arial, sans-serif">',
        '<title id="loaders-title">Images/s into PyTorch by loader</title>',
        f'<desc id="loaders-desc">{alternative}</desc>',
        f"<style>\n{STYLE}\n</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height}" rx="8"/>',
        *head(), *grid, *marks, *foot, "</svg>", "",
    ])  # fmt: skip


def head():
    """Title, legend and the meaning of the last column."""
    return [
        text(16, 30, "Images/s into PyTorch by loader", size=18, more=BOLD),
        *(f'<rect class="{kind}" x="{x}" y="50" width="16" height="14"/>'
          for kind, x in (("ours first", 16), ("first", 34), ("ours later", 266), ("later", 284))),
        text(56, 62, "first epoch, opening included", "soft", 12),
        text(306, 62, "later epochs", "soft", 12),
        '<path class="mark" d="M410 57H440M410 53V61M440 53V61"/>',
        text(448, 62, "95 % interval", "soft", 12),
        text(WIDTH - 16, 46, "speed of wellread divided by the loader's,", "soft", 12, END),
        text(WIDTH - 16, 62, "on files of the same kind", "soft", 12, END),
    ]  # fmt: skip


def row(one, y, scale):
    """A loader: its name and the way of its use, two bars with their whiskers and figures, two ratios."""
    ways = [] if "error" in one else front_page.ways_of(one)
    # The lines of a name and its ways have the middle of both bars in common.
    apart = 16 if len(ways) < 2 else 13
    lines = [y + BAR + 5 + apart * (i - len(ways) / 2) for i in range(1 + len(ways))]
    found = [text(LEFT - 10, lines[0], one["about"], more=END)]
    found += [text(LEFT - 10, line, way, "soft", 12, END) for line, way in zip(lines[1:], ways, strict=True)]
    if "error" in one:
        return [*found, text(LEFT + 6, y + BAR + 5, "not measured", "soft", 12)]
    for phase, top in (("first", y), ("later", y + BAR + 1)):
        (rate, low, high), beside, _ = one[phase]
        kind = f"ours {phase}" if one["ours"] else phase
        found.append(f'<rect class="{kind}" x="{LEFT}" y="{top}" width="{rate * scale:.1f}" height="{BAR}"/>')
        end, middle = LEFT + (high or rate) * scale, top + BAR / 2
        if low is not None:
            start = LEFT + low * scale
            ends = "".join(f"M{x:.1f} {middle - 4}v8" for x in (start, end))
            # Seen on dark bars too.
            found += [
                f'<path class="{kind}" d="M{start:.1f} {middle}H{end:.1f}{ends}"/>' for kind in ("halo", "mark")
            ]
        found.append(text(round(end + 6, 1), top + 12, page.number(rate), size=12))
        if beside is not None:
            # Why there is none, the table has.
            said = page.times(beside) if beside.clear else "no verdict"
            found.append(text(WIDTH - 16, top + 12, said, "ink" if beside.clear else "soft", 12, END))
    return found
