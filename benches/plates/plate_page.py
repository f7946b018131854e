"""What a run of `benches/plates.py` comes to, as Markdown: a function of its JSON file alone.

Ratios and their intervals are those of `benches/peers/judge.py`, and so is what has no verdict and no ratio. Beside
each stands the goal, and whether the whole interval is on its side of it by more than the noise floor ("reached"), on
the other one ("missed"), or neither ("open").
"""

import statistics

import judge
import page

# Of the benchmark: loaders run in random order, another of each side twice in every round, the host of a virtual
# machine has found memory before the clock starts, and torch's workers make batches in shared memory.
RULES = 3
BEFORE = (
    "This run is of rules of before. Its variants took turns in one order, and the same loader of wellread ran twice "
    "in each round. The clock of first epochs has what a virtual machine's host takes to find memory. "
    "Epochs of sites had 24 images with LZW, and 48 without compression."
)
PHASES = {
    "first": ("first epoch, from opening on", lambda run: run["epochs_s"][0]),
    "later": ("later epochs", lambda run: statistics.median(run["epochs_s"][1:])),
}
TITLES = {
    "a": "Sites of 5 channels, a file for each",
    "b": "Crops of 5 x 96 x 96, fully random order",
    "c": "Crops in block order, and stored",
    "d": "Two views of one",
}
# Sites that the goals of crops in random order were set for.
GOAL_SITES = 1000
# Seconds that opening may take.
OPENING = {"forgotten": ("nothing of it in memory", None), "first": ("first time", 3.0), "after": ("after that", 0.5)}


def verdict(estimate, low, high, goal, at_most, noise):
    """Whether a goal is reached, as far as the interval tells: it must lie beyond the goal by the noise floor, a
    share. Without a floor, None, nothing is known."""
    if goal is None:
        return ""
    if low is None:
        return f"{'met' if (estimate <= goal) == at_most else 'not met'}, without interval"
    if noise is None:
        return "open"
    above, below = low > goal * (1 + noise), high < goal / (1 + noise)
    good, bad = (below, above) if at_most else (above, below)
    return "reached" if good else "missed" if bad else "open"


def spread(estimate, low, high, unit=""):
    ends = "" if low is None else f" ({page.number(low)}–{page.number(high)})"
    return f"{page.number(estimate)}{ends}{unit}"


def floor(part, seconds):
    """The noise floor: how far variants that ran twice in a round lay from themselves, those of wellread and the
    peers apart. `seconds` is a function of a run; None of one that lacks the epoch."""
    lists = {}
    for twin in part["twins"]:
        first = next((run for run in part["runs"][twin["of"]] if run.get("round") == twin["round"]), None)
        if first and "error" not in twin and "error" not in first and seconds(twin) is not None:
            lists.setdefault(twin.get("side"), []).append(seconds(twin) / seconds(first))
    return judge.noise_floor(*lists.values())


def rules_of(result):
    """The rules of a run. One that says none has the second where its second runs tell their side, else the first."""
    rules = result["facts"].get("rules")
    twins = [twin for part in result["parts"].values() for twin in part.get("twins", ())]
    return rules if rules is not None else 1 + all("side" in twin for twin in twins)


def shown(result):
    """Whether ratios of a run may be shown on other pages."""
    return rules_of(result) in (RULES, RULES - 1)


def copied(result):
    """Whether torch's workers copied batches that were whole."""
    return rules_of(result) == RULES - 1


def alike(*sides):
    """The runs of all sides, with as many epochs as the one that ran fewest: what a loader keeps grows with them."""
    fewest = min((len(run["epochs_s"]) for side in sides for run in side), default=0)
    return [[{**run, "epochs_s": run["epochs_s"][:fewest]} for run in side] for side in sides]


def equal(part):
    """The part with as many epochs of each loader as the one had that ran fewest. Second runs are cut alike: noise is
    of the same epochs."""
    runs = {name: series for name, series in part["runs"].items() if not page.failure(series)}
    twins = [twin for twin in part["twins"] if "error" not in twin and twin["of"] in runs]
    *cut, twins = alike(*runs.values(), twins)
    return {**part, "runs": {**part["runs"], **dict(zip(runs, cut, strict=True))}, "twins": twins}


def floor_of(part, phase):
    """The noise floor of the epochs that are compared."""
    return floor(equal(part), PHASES[phase][1])


def judged(part, row, phase):
    """A row of a table: both rates, the judgement on the ratio of seconds, the verdict on its goal."""
    part = equal(part)
    top, bottom = part["runs"][row["top"]], part["runs"][row["bottom"]]
    wrong = page.failure(top, bottom)
    if wrong:
        return {**row, "error": wrong}
    top, bottom = page.paired(top, bottom)
    seconds = PHASES[phase][1]
    sides = [[seconds(run) for run in side] for side in (top, bottom)]
    noise = floor(part, seconds)
    one = judge.judge(*sides, noise)
    rates = [statistics.median(run["rows"] / seconds(run) for run in side) for side in (top, bottom)]
    return {**row, "rates": rates, "judgement": one, "epochs": len(top[0]["epochs_s"]),
            "memory": [statistics.median(run["memory_mb"] for run in side) for side in (top, bottom)],
            "verdict": verdict(one.estimate, one.low, one.high, row["goal"], row["at_most"], noise)}  # fmt: skip


def lines(cells):
    """A Markdown table."""
    head, *rest = cells
    rule = "|" + "---|" * len(head)
    rows = ["| " + " | ".join(page.cell(str(text)) for text in row) + " |" for row in cells]
    return [rows[0], rule, *rows[1:]] if rest else []


# What is to be known of rows of crops, in the order of their numbers.
WHOLE_IMAGE = "The peer reads and decodes the whole image of each channel, and wellread the part that a crop needs."
ENTRY_POINTS = (
    "wellread keeps the places in a strip at which decoding can begin, which the epochs before found; the peer "
    "decodes each strip from its beginning."
)
MARKS = (WHOLE_IMAGE, ENTRY_POINTS)


def marks_of(row, part, later):
    """What is to be known of a row of crops."""
    if "whole image" not in part["about"][row["top"]]:
        return []
    return [WHOLE_IMAGE, ENTRY_POINTS] if later and "LZW" in row["what"] else [WHOLE_IMAGE]


def whole(row):
    """Whether torch's workers send whole batches in a row."""
    return row["top"].split()[0] in page.WHOLE


def of_part(name, part, copies_made=False):
    """The tables of a part, one of the first epoch, one of later ones. `copies_made` tells that torch's workers
    copied whole batches."""
    found = []
    for phase, (text, _) in PHASES.items():
        rows = [judged(part, row, phase) for row in part["rows"]]
        later = phase == "later"
        memory = ["memory, A, MB", "B, MB"] if later else []
        table = [["set", "A", "B", "A, images/s", "B, images/s", "time of A / time of B", *memory, "goal", "verdict"]]
        marked = []
        for row in rows:
            marks = marks_of(row, part, later) if name == "b" else []
            marked += [mark for mark in marks if mark not in marked]
            what = row["what"] + "".join(f" {MARKS.index(mark) + 1})" for mark in marks)
            about = [what, part["about"][row["top"]], part["about"][row["bottom"]]]
            goal = f"{'at most' if row['at_most'] else 'at least'} {row['goal']:g}" if row["goal"] else "none"
            if "error" in row:
                table.append([*about, f"not measured: {row['error']}", "", "", *[""] * len(memory), goal, ""])
            else:
                rates = [page.number(rate) for rate in row["rates"]]
                # A goal has a verdict of its own: it may be missed where nobody is known to be faster.
                ratio = page.times(row["judgement"], "A faster")
                taken = [page.number(mb) for mb in row["memory"]] if later else []
                table.append([*about, *rates, ratio, *taken, goal, row["verdict"]])
        caption = f"**{TITLES[name]}**, {text}"
        if later and {row["epochs"] for row in rows if "error" not in row} == {2}:
            caption += ": the second one"
        if copies_made and any(whole(row) for row in rows):
            caption += f". {page.COPIED}. It concerns the rows of torch's DataLoader with 2 workers, except "
            caption += "`tifffile.imread`."
        found += [caption, "", *lines(table), ""]
        for number, mark in enumerate(MARKS, 1):
            found += [f"{number}) {mark}", ""] if mark in marked else []
        noise = floor_of(part, phase)
        if noise is not None:
            found += [page.said_of(noise), ""]
    copies = [one["gb_per_s"] for one in part["copy"] if "error" not in one]
    more = {
        about: f"{statistics.median(run['bytes_read_per_used'] for run in runs):.1f}"
        for about, runs in part["runs"].items()
        if runs and all(run.get("bytes_read_per_used") is not None for run in runs)
    }
    if copies:
        rate = page.number(statistics.median(copies))
        found += [f"In the same rounds one thread copied memory at {rate} GB/s.", ""]
    if more:
        found += [
            *lines([["wellread, all epochs", *more], ["bytes read for each byte delivered", *more.values()]]),
            "",
        ]
    return found


def of_opening(part):
    """The table of opening: seconds, their interval, the goal."""
    table = [["opening", "seconds", "goal, s", "verdict"]]
    for name, (about, goal) in OPENING.items():
        runs = part["runs"][name]
        if not runs:
            table.append([about, "not measured: the system may not be told to forget files", "", ""])
            continue
        if page.failure(runs):
            table.append([about, f"not measured: {page.failure(runs)}", "", ""])
            continue
        values = [run["open_s"] for run in runs]
        one = statistics.median(values), *(judge.interval(values) or (None, None))
        table.append([about, spread(*one), f"under {goal:g}" if goal else "", verdict(*one, goal, True, 0.0)])
    good = [run for run in part["runs"]["after"] if "error" not in run]
    found = [f"**Opening a plate of {part['files']:,} files**, a process each", "", *lines(table), ""]
    if good:
        listing, again = (statistics.median(run[name] for run in good) for name in ("listing_s", "again_s"))
        kept = "keeps an index of it" if good[0]["index"] else "keeps nothing of it from process to process"
        found += [f"Listing its folder in Python takes {page.number(listing)} s; opening once more in one process "
                  f"{page.number(again)} s. wellread {kept}.", ""]  # fmt: skip
    return found


def of_goals(facts):
    """What the goals of crops are for, where a run has fewer sites than that."""
    if facts["sites"] >= GOAL_SITES:
        return ""
    visits = facts["crops"] // 8 / facts["sites"]
    return (
        f" The goals of random crops are for {GOAL_SITES:,} sites. With LZW each site is visited {visits:.1f} times "
        "an epoch: later epochs meet more strips again than they would there."
    )


def section(result):
    """The generated part of the page."""
    f = result["facts"]
    said = (f"{page.of_run(f)}, {f['rounds']} rounds. {page.threads(f)} "
            f"{f['sites']} generated sites of {f['size']} x {f['size']}. Epochs have {f['crops']} crops in random "
            f"order (an eighth with LZW), and all cells of {f['few']} sites in block order."
            f"{of_goals(f)}")  # fmt: skip
    found = ["\n\n".join([said, *page.versions(f)]), ""]
    found += [] if shown(result) else [BEFORE, ""]
    for name, part in result["parts"].items():
        found += of_opening(part) if name == "e" else of_part(name, part, copied(result))
    return "\n".join(found).rstrip()


def put(text, result, name="plates", tables=section):
    """A page with what stands between its markers replaced by the tables of this result."""
    if result["facts"]["rounds"] < judge.MIN_ROUNDS:
        raise ValueError(f"{result['facts']['rounds']} rounds: a page needs {judge.MIN_ROUNDS}")
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ValueError(f"the page has no {begin} … {end}")
    return f"{text[: text.index(begin)]}{begin}\n{tables(result)}\n{text[text.index(end) :]}"


def write(path, result):
    """Puts the tables of a result into the page at `path`."""
    try:
        text = put(path.read_text(), result)
    except ValueError as error:
        raise SystemExit(f"{path} is left as it is: {error}") from None
    path.write_text(text)
