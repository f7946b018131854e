#!/usr/bin/env python3
"""figures.py [--write | --take RESULT …]: tables of README.md, docs/peers*.md and docs/speed.md, and README's first
picture, from docs/results/*.json alone. Those of docs/results/*.md and of three more pages
are of runs by hand.

    make bench-peers ─▶ results/peers/peers.json ─ --take ─▶ docs/results/peers.json ─ --write ─▶ README, peers.md
                                                             docs/results/peers-small.json             peers-small.md
                                                             machine, date, command, every run
    make bench-plates                                                                                  peers-plates.md
    make bench-remote                                                                                  peers-remote.md
    make bench-front                                                                                   loaders.svg,
                                                                                                    peers-loaders.md
    make bench-speed                                                                                   speed.md

Without an option it prints each page that has another figure than the result files, and ends with 1 when there is
one. The ratios in the text of README.md are looked for in the result files too. It needs nothing but Python 3.10.
"""

import argparse
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"
sys.path[:0] = [str(ROOT / "benches" / name) for name in ("peers", "plates", "remote", "front", "speed")]
import front_page  # noqa: E402
import front_picture  # noqa: E402
import page as peers_page  # noqa: E402
import plate_page  # noqa: E402
import remote_page  # noqa: E402
import speed_page  # noqa: E402

# What is kept of the shown runs, by what a result file has. Parts of bench-remote are runs of their own.
KINDS = {
    "sets": "peers", "writing": "writing", "parts": "plates", "links": "remote", "front": "front", "speed": "speed",
}  # fmt: skip
SCRIPTS = ("compare.py", "plates.py", "remote.py", "front.py", "speed.py")
REMOTE = ("remote-a", "remote-b")
NAMES = ("peers", "peers-small", "writing", "plates", *REMOTE, "front", "speed")
# Runs by hand, of which the printed tables alone were kept: a result and its page below docs.
BY_HAND = {name: f"results/{name}.md" for name in (
    "cyto-dl", "hyperfine", "inference-cpu", "native-segmentation", "python-loaders",
)} | {name: f"{name}.md" for name in ("trace", "transforms")} | {"same-thing-twice": "method.md"}  # fmt: skip
MOST_BYTES = 200_000
# The rules by which a result is to be measured, by its kind.
RULES = {
    **dict.fromkeys(("peers", "peers-small", "writing"), peers_page.RULES), "plates": plate_page.RULES,
    "remote": remote_page.RULES, "front": front_page.RULES, "speed": speed_page.RULES,
}  # fmt: skip
# The rows of README's table, in the set of large fields: the ways to use a library, what to know of each, and the
# loader of ours beside them. A way that a result lacks is none of its ways.
SET = "1080"
SAME = "both read the same files"
RAW = f"{SAME}, not compressed"
OWN = "a file of its own: pixels without the rest of OME-Arrow"
ARRAY = "a file of its own: all images in one array"
# Filled in by the size of the set.
KEPT = "{kept}, the peer none"
ALONE = "the peer reads in the process that iterates"
LISTS = "the peer unpacks lists"
ROWS = (
    ({"pyarrow-binary": f"{OWN}; {KEPT}"}, "wellread:typed.parquet"),
    ({"vortex-bare": f"{OWN}; {KEPT}", "vortex-data": f"{SAME}; {LISTS}; {KEPT}"}, "wellread:images.vortex"),
    ({"tensorstore": SAME, "tensorstore-array": ARRAY, "tensorstore-batches": ARRAY}, "wellread:ome-zarr"),
    (
        {"tifffile-mapped": RAW, "tifffile-mapped-0": f"{RAW}; {ALONE}", "tifffile-mapped-threads": RAW},
        "wellread:tiff",
    ),
    (
        {
            "zarr-python": SAME, "zarr-python-0": f"{SAME}; {ALONE}", "zarr-threads": SAME,
            "zarr-array": ARRAY, "zarr-array-0": f"{ARRAY}; {ALONE}", "zarr-batches": ARRAY, "zarr-images": ARRAY,
        },
        "wellread:ome-zarr",
    ),
    (
        {
            "tifffile": RAW, "tifffile-0": f"{RAW}; {ALONE}", "tifffile-threads": RAW, "tifffile-kept": RAW,
            "spdl": RAW,
        },
        "wellread:tiff",
    ),
    ({"pylance": f"{SAME}; {LISTS}", "pylance-bare": OWN}, "wellread:images.lance"),
    ({"duckdb": f"{SAME}; {LISTS}", "duckdb-bare": OWN}, "wellread:keyed.duckdb"),
)  # fmt: skip
HEAD = (
    "| {} images of one channel, 1080 x 1080 `uint16`: speed of wellread over that of the peer | first epoch "
    "| later epochs | what to know |"
)
UNCLEAR = "no verdict: the interval reaches into this noise floor, or holds 1"
# A peer that small images suit: its row says in how many rounds it was faster there.
SMALL = ("pyarrow-binary", "wellread:tuned.parquet")
# Another row: ours in the sites of several channels, of the result of plates by today's rules.
SITES = "wellread lzw"
BEGIN, END = "<!-- figures:begin -->", "<!-- figures:end -->"
# A median and its interval: 1.69 (1.61–1.83).
FIGURE = re.compile(r"(?<![\w.,–])(\d[\d,.]*) \((\d[\d,.]*–\d[\d,.]*)\)")


def load(folder=RESULTS):
    """The kept results by name."""
    return {name: json.loads((folder / f"{name}.json").read_text()) for name in NAMES}


def sites_row(plates):
    """The row of sites of several channels: its ratios are of the same kind, seconds of the peer over ours. Each
    phase has the way to use tifffile that comes closest."""
    part = plates["parts"]["a"]
    beside = [row for row in part["rows"] if row["bottom"] == SITES]
    nearest = {
        phase: nearest_of(plate_page.judged(part, row, phase) for row in beside) for phase in plate_page.PHASES
    }
    if None in nearest.values():
        return []
    (rows,) = {run["rows"] for run in part["runs"][SITES]}
    names = by_phase({phase: part["about"][one["top"]] for phase, one in nearest.items()})
    apart = ";" if names.startswith("first epoch: ") else ":"
    about = f"{rows} generated sites of 5 channels, TIFF with LZW{apart} {names}"
    noise = [percent(plate_page.floor_of(part, phase)) for phase in plate_page.PHASES]
    return [line(about, *(ratio(one) for one in nearest.values()), f"{SAME}; another run"),
            line("95 % noise floor of the row of sites", *noise, "of that run")]  # fmt: skip


def percent(noise):
    """A noise floor in a table."""
    return "unknown" if noise is None else f"{100 * noise:.0f} %"


def line(*cells):
    """A line of a table."""
    return f"| {' | '.join(peers_page.cell(text) for text in cells)} |"


def verdict(judgement):
    """A ratio with its interval; else how often the peer was faster."""
    return re.sub(r"^no verdict: [^;]*", "no verdict", peers_page.times(judgement))


def in_small_images(small):
    """How often the peer that small images suit was faster in first epochs of them."""
    judged = [
        one["judgement"]
        for measured in small["sets"]
        if measured["name"] != SET
        for one in peers_page.judged(measured, "first")
        if (one["peer"], one["ours"]) == SMALL
    ]
    lost, rounds = min((one.lost, one.rounds) for one in judged)
    return (
        "; at 100 x 100, from a row group for each image, the peer's first epoch was faster in "
        f"{lost} of {rounds} rounds"
    )


def ratio(row):
    """A judged ratio, or that there is no verdict, without the reason."""
    return peers_page.times(row["judgement"]).split(":")[0]


def nearest_of(rows):
    """The row that comes closest to wellread; None of rows without a figure."""
    judged = [one for one in rows if "judgement" in one]
    return min(judged, key=lambda one: one["judgement"].estimate, default=None)


def by_phase(texts):
    """A text of the first epoch and one of later ones, or both as one where they are the same."""
    first, later = texts["first"], texts["later"]
    return first if first == later else f"first epoch: {first}; later epochs: {later}"


def notes(first, later):
    """The notes on the ways that stand in a row. A note on one phase alone says so."""
    known = {"first epoch": first.split("; "), "later epochs": later.split("; ")}
    said = []
    for note in dict.fromkeys(note for of_phase in known.values() for note in of_phase):
        when = [phase for phase, of_phase in known.items() if note in of_phase]
        said.append(note if len(when) == len(known) else f"{note} ({when[0]})")
    return "; ".join(said)


def nearest_ways(measured):
    """A row for each library: in each phase the judged way of its use that comes closest, and what to know of these.
    The library that comes closest in later epochs stands first."""
    phases = {phase: peers_page.judged(measured, phase) for phase in peers_page.PHASES}
    found = []
    for ways, ours in ROWS:
        nearest = {
            phase: nearest_of(one for one in rows if one["peer"] in ways and one["ours"] == ours)
            for phase, rows in phases.items()
        }
        if None not in nearest.values():
            found.append((nearest, notes(*(ways[one["peer"]] for one in nearest.values()))))
    return sorted(found, key=lambda row: row[0]["later"]["judgement"].estimate)


def readme_table(peers, small, plates):
    """README's table: judged ratios, what to know of each, who comes closest, and which runs they are of. Results by
    rules whose figures may not be shown have no ratios."""
    if not peers_page.shown(peers, RULES["peers"]):
        return peers_page.WITHDRAWN_RULES
    (measured,) = [one for one in peers["sets"] if one["name"] == SET]
    lines = [HEAD.format(measured["title"].split()[0]), "|---|---|---|---|"]
    rows, used = nearest_ways(measured), set()
    for nearest, known in rows:
        names = {one["peer"] for one in nearest.values()}
        known = known.format(kept=peers_page.kept_pages(measured))
        known += in_small_images(small) if SMALL[0] in names else ""
        about = by_phase({phase: one["about"] for phase, one in nearest.items()})
        lines.append(line(about, *(verdict(one["judgement"]) for one in nearest.values()), known))
        used |= names
    noise = [percent(peers_page.floor(measured, phase)) for phase in peers_page.PHASES]
    lines.append(line(f"95 % noise floor of the rows above: {peers_page.taken(peers)}, run twice", *noise, UNCLEAR))
    runs = f"{peers_page.of_run(peers['facts'])}. {made_of(measured)}"
    if peers_page.copied(peers, RULES["peers"]) and used & set(peers_page.WHOLE):
        runs += f" {peers_page.COPIED} in the rows `torch DataLoader, 2 workers`."
    if plate_page.shown(plates):
        lines += sites_row(plates)
        runs += f" The row of sites: {plate_run(plates['facts'])}."
        if plate_page.copied(plates):
            runs += f" {peers_page.COPIED.replace('this run', 'the run of sites')}."
    later = "the second one, " if measured["later"] == 1 else ""
    lines += [
        line("all rows", "from opening the set, with the start of workers", f"{later}files in the page cache",
             f"batches of {measured['batch']}; two threads or workers, except `0 workers`; "
             f"{peers_page.rounds(measured)} rounds; 95 % intervals"),
    ]  # fmt: skip
    said = peers_page.closest([nearest["later"] for nearest, _ in rows], "later")
    return "\n".join([*lines, "", *([said, ""] if said else []), runs])


def made_of(measured):
    """The images of a set, as its title calls them."""
    return f"The images: {re.search(r'[(](.*)[)]', measured['title'])[1]}."


def plate_run(facts):
    """Which run the row of sites is of."""
    return f"`{facts['command']}`, commit {facts['commit']}, {facts['date']}, {facts['machine']}"


def pages(results):
    """Each page with the tables of the results."""
    book, plates, remote = (ROOT / "docs" / f"peers{name}.md" for name in ("", "-plates", "-remote"))
    readme, of_small = ROOT / "README.md", ROOT / "docs" / "peers-small.md"
    text, buckets = book.read_text(), remote.read_text()
    for name in ("peers", "writing"):
        text = peers_page.put(text, results[name])
    of_fields = readme_table(results["peers"], results["peers-small"], results["plates"])
    for name in REMOTE:
        buckets = remote_page.put(buckets, results[name], name)
    front = readme.read_text()
    if front.count(BEGIN) != 1 or front.count(END) != 1:
        raise ValueError(f"README.md has no {BEGIN} … {END}")
    before, after = front.split(BEGIN)[0], front.split(END)[1]
    found = {
        book: text,
        of_small: peers_page.put(of_small.read_text(), results["peers-small"]),
        plates: plate_page.put(plates.read_text(), results["plates"]),
        remote: buckets,
        readme: f"{before}{BEGIN}\n{of_fields}\n{END}{after}",
    }
    if "front" in results:
        loaders = ROOT / "docs" / "peers-loaders.md"
        found[loaders] = front_page.put(loaders.read_text(), results["front"])
        found[readme] = front_page.put(found[readme], results["front"], front_page.readme)
        found[ROOT / front_page.PICTURE] = front_picture.svg(results["front"])
    for name, path in BY_HAND.items():
        page = ROOT / "docs" / path
        found[page] = by_hand(page.read_text(), name, json.loads((RESULTS / f"{name}.json").read_text()))
    if "speed" in results:
        speed = ROOT / "docs" / "speed.md"
        found[speed] = speed_page.put(speed.read_text(), results["speed"])
    return found


def by_hand(text, name, result):
    """The page of a run by hand with the tables of its result, and a paragraph about the run."""
    facts = result["facts"]
    about = (
        f"Run of {facts['date']} on {facts['machine']}. Commit: {facts['commit']}. `docs/results/{name}.json` has "
        "the command and the tables as they were printed. Single runs were not kept."
    )
    parts = {f"{name}-facts": about}
    for key, table in result["tables"].items():
        lines = [line(*table["head"]), "|" + "---|" * len(table["head"]), *(line(*row) for row in table["rows"])]
        parts[key] = "\n".join(lines)
    for key, part in parts.items():
        begin, end = f"<!-- {key}:begin -->", f"<!-- {key}:end -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"docs/{BY_HAND[name]} has no {begin} … {end}")
        text = f"{text.split(begin)[0]}{begin}\n{part}\n{end}{text.split(end)[1]}"
    return text


def figures(text):
    """The figures with an interval in a text, spaces alike."""
    return {f"{value} ({interval})" for value, interval in FIGURE.findall(re.sub(r"[\s>]+", " ", text))}


def known(results):
    """All figures that the pages of the results have."""
    peers = [part for name in ("peers", "peers-small", "writing")
             for part in peers_page.sections(results[name]).values()]  # fmt: skip
    remote = [remote_page.section(results[name]) for name in REMOTE]
    front = [front_page.section(results["front"])] if "front" in results else []
    return figures("\n".join([*peers, plate_page.section(results["plates"]), *remote, *front]))


def wrong(results):
    """Differences from the result files, in words."""
    found = [
        f"{path.relative_to(ROOT)}: a {'picture' if path.suffix == '.svg' else 'table'} is not that of docs/results: "
        "python3 scripts/figures.py --write"
        for path, text in pages(results).items()
        if not path.exists() or path.read_text() != text
    ]
    said = figures((ROOT / "README.md").read_text())
    unknown = sorted(said - known(results))
    found += [f"README.md: {one} is in no file of docs/results" for one in unknown]
    return found


def small(result):
    """A result as text: one line for each series of runs, so that versions of it can be compared."""

    def plain(value):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def lines(value, depth):
        if not depth or not isinstance(value, (dict, list)) or not value:
            return plain(value)
        if isinstance(value, dict):
            return "{\n" + ",\n".join(f"{plain(key)}:{lines(one, depth - 1)}" for key, one in value.items()) + "\n}"
        return "[\n" + ",\n".join(lines(one, depth - 1) for one in value) + "\n]"

    return lines(result, 4) + "\n"


def take(path):
    """Keeps a result file in docs/results, if a page may show it."""
    result = json.loads(path.read_text())
    names = [name for part, name in KINDS.items() if result.get(part)]
    if len(names) != 1:
        raise SystemExit(f"{path}: not the result of one run of {', '.join(SCRIPTS)}")
    refused = {
        "plates": None, "remote": None, "front": front_page.refused, "speed": speed_page.refused,
    }.get(names[0], peers_page.refused)  # fmt: skip
    why = refused and refused(result)
    name = names[0]
    rules = plate_page.rules_of(result) if name == "plates" else result["facts"].get("rules", 1)
    if rules != RULES[name]:
        why = f"measured by rules {rules}; today's are {RULES[name]}"
    if name == "remote":
        name += f"-{'-'.join(result['links'])}"
        if name not in REMOTE:
            raise SystemExit(f"{path}: a run of one part is kept: --only a, or --only b")
    texts = {part: small(one) for part, one in by_page(name, result).items()}
    if why or any(len(text.encode()) > MOST_BYTES for text in texts.values()):
        raise SystemExit(f"{path}: {why or f'larger than {MOST_BYTES:,} bytes'}")
    RESULTS.mkdir(exist_ok=True)
    for part, text in texts.items():
        (RESULTS / f"{part}.json").write_text(text)


def by_page(name, result):
    """The parts of a result that have a page each. Small images and large fields may be measured by runs of their
    own."""
    if name != "peers":
        return {name: result}
    found = {}
    for measured in result["sets"]:
        part = "peers-small" if measured["name"] in peers_page.SMALL else "peers"
        found.setdefault(part, {**result, "sets": []})["sets"].append(measured)
    return found


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--take", nargs="+", type=Path, metavar="RESULT", default=[], help="keep these results first")
    ap.add_argument("--write", action="store_true", help="write the tables into the pages")
    a = ap.parse_args()
    for path in a.take:
        take(path)
    results = load()
    if a.write:
        for path, text in pages(results).items():
            path.write_text(text)
    found = wrong(results)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
