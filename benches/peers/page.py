"""The report of a run of compare.py, as Markdown: a function of its JSON file alone, so that a page is of one run.

A ratio that the judge refuses is printed as no verdict, and tables of fewer rounds than it asks for are put into no
page. Rows of a result that was measured by rules which have changed since are left out, and a sentence says so.
"""

import re
import statistics

import judge

# Of the benchmark: torch's workers make batches in shared memory, so that none is copied to be sent. A result of
# before says none.
RULES = 3
# What is said beside results by the rules before these, in which all else was the same.
COPIED = "In this run torch's workers copied each batch once more than they need, which favours wellread"
WITHDRAWN_RULES = (
    "Withdrawn until it is measured again: the rules of this benchmark have changed since the run (`rules` in its "
    "file)."
)
# Peers that keep decoded images too. Kept images stand beside no other.
KEEPING = ("ram-cache-0", "ram-cache-2", "float-cache-0", "gather", "tensorstore-kept", "tensorstore-array-kept",
           "tensorstore-batches-kept")  # fmt: skip
# Peers that read image by image, and the better way for small images: one read for each batch.
BY_BATCH = {"tensorstore-array": "tensorstore-batches", "tensorstore-array-kept": "tensorstore-batches-kept"}
# Peers whose file has pixels in nested lists: of 64-bit numbers as upstream writes them, or of the images' own type.
NESTED, TYPED = ("pylance", "vortex-data", "duckdb"), ("20k",)
# Peers whose whole batches torch's workers copied by the rules of before. Single images torch collates in shared
# memory by itself.
WHOLE = ("tifffile", "tifffile-mapped", "zarr-python", "zarr-array")
# Sets of small images.
SMALL = ("20k", "1k")
# Bytes of a decoded image, by set, and of decoded pages that wellread keeps by itself.
IMAGE, IMAGE_OF_SMALL = 2 * 1080**2, 100**2
KEPT_PAGES = 64 << 20
# Loaders of ours that keep decoded pages by themselves.
PAGES = ("wellread:images.parquet", "wellread:tuned.parquet", "wellread:typed.parquet", "wellread:images.vortex")
WITHDRAWN = (
    "Withdrawn until they are measured again: rows that set images which wellread keeps beside a peer without a "
    "cache of its own."
)
WITHDRAWN_BY_IMAGE = (
    "Withdrawn until it is measured again: tensorstore on one array of small images. This run asked it for each "
    "image by itself, which takes longer than one read for each batch."
)
# Names in result files that say "the same" of another row, and how pages call these loaders.
RENAMED = {
    "duckdb, the same on bare pixels as BLOBs, not compressed":
        "duckdb, `WHERE row_id IN (…)`, bare pixels as BLOBs, not compressed",
    "duckdb, the same on bare pixels as BLOBs": "duckdb, `WHERE row_id IN (…)`, bare pixels as BLOBs",
    "the same cache, its images made `float32` when opened, 0 workers":
        "upstream's cache, its images made `float32` when opened, 0 workers",
}  # fmt: skip
# SPDL made a tensor of each image and stacked these. DuckDB read compressed BLOBs from the beginning of their column.
SLOW_WAYS = ("SPDL, threads, tifffile", "duckdb, `WHERE row_id IN (…)`, bare pixels as BLOBs")
WITHDRAWN_SLOW = (
    "Withdrawn until they are measured again: SPDL, and DuckDB on bare pixels. This run stacked single tensors "
    "behind SPDL. It let DuckDB compress the pixels: each image was decompressed from the beginning of its column."
)
WITHDRAWN_WRITING = (
    "Withdrawn until it is measured again: both sides did unequal work. In OME-Zarr ome-zarr-py wrote five levels "
    "and wellread one. The libraries wrote 8 images of 1080 x 1080 and wellread 24. In Parquet the libraries used "
    "Zstandard level 1 and wellread level 3."
)
NOISE_OF_WRITING = "The noise floor of a row is wellread's noise only: no other library wrote twice in a round."

PHASES = {
    "first": ("First epoch, from opening on", lambda run: run["epochs_s"][0]),
    "later": ("later epochs", lambda run: statistics.median(run["epochs_s"][1:])),
}


def by_rules(result, rules):
    """Whether a result was measured by these rules; one that says none is of the first."""
    return result["facts"].get("rules", 1) == rules


def copied(result, rules):
    """Whether a result is by the rules before these: torch's workers copied batches that were whole."""
    return by_rules(result, rules - 1)


def shown(result, rules):
    """Whether figures of a result may be shown; beside those of before stands `COPIED`."""
    return by_rules(result, rules) or copied(result, rules)


def paired(peer, ours):
    """Runs of the same rounds, in order."""
    rounds = {run["round"]: run for run in ours if "error" not in run}
    both = [(run, rounds[run["round"]]) for run in peer if "error" not in run and run["round"] in rounds]
    return [a for a, _ in both], [b for _, b in both]


def failure(*runs):
    """The error of the first run that failed."""
    return next((run["error"] for series in runs for run in series if "error" in run), None)


def floor(measured, phase):
    """The noise floor of a set: how far what ran twice in a round, a wellread and a peer, lay from itself."""
    seconds, lists = PHASES[phase][1], {}
    for twin in measured["twins"]:
        original = next(run for run in measured["runs"][twin["of"]] if run["round"] == twin["round"])
        if "error" not in twin and "error" not in original:
            side = "wellread" if twin["of"].startswith("wellread:") else "peer"
            lists.setdefault(side, []).append(seconds(twin) / seconds(original))
    return judge.noise_floor(*lists.values())


def unequal(row):
    """Whether images that wellread keeps stand beside a peer that keeps none."""
    return row["ours"].endswith(",kept") and row["peer"] not in KEEPING


def by_image(row, measured):
    """Whether small images were read one by one by a peer whose better way was not measured."""
    better = BY_BATCH.get(row["peer"])
    return better is not None and measured["name"] in SMALL and better not in measured["runs"]


def slow_way(row):
    """Whether a peer was set up in a way that costs it more than it has to."""
    return RENAMED.get(row["about"], row["about"]) in SLOW_WAYS


def named(row, measured):
    """A row with the name of its peer as pages have it. That of a peer that has to unpack pixels says how they lie in
    its file."""
    row = {**row, "about": RENAMED.get(row["about"], row["about"])}
    if row["peer"] not in NESTED:
        return row
    pixels = "the images' type" if measured["name"] in TYPED else "int64"
    return {**row, "about": f"{row['about']}, pixels in nested lists of {pixels}"}


def judged(measured, phase):
    """The rows of a set: what stands in each, the judgement, and rates; those that come closest first."""
    seconds, noise, found = PHASES[phase][1], floor(measured, phase), []
    for row in measured["rows"]:
        if unequal(row) or by_image(row, measured) or slow_way(row):
            continue
        row = named(row, measured)
        peer, ours = measured["runs"][row["peer"]], measured["runs"][row["ours"]]
        wrong = failure(peer, ours)
        if wrong:
            found.append({**row, "error": wrong})
            continue
        peer, ours = paired(peer, ours)
        theirs, own = [[seconds(run) for run in side] for side in (peer, ours)]
        one = {
            **row,
            "judgement": judge.judge(theirs, own, noise),
            "peer_rate": statistics.median(measured["images"] / value for value in theirs),
            "ours_rate": statistics.median(measured["images"] / value for value in own),
        }
        for side, runs in (("peer", peer), ("ours", ours)):
            for figure in ("first_batch_s", "memory_mb"):
                one[f"{side}_{figure}"] = statistics.median(run[figure] for run in runs)
        found.append(one)
    return sorted(found, key=lambda row: row["judgement"].estimate if "judgement" in row else float("inf"))


def rounds(measured):
    """How many rounds those of a set have that were measured."""
    return min((len(series) for series in measured["runs"].values() if not failure(series)), default=0)


def number(value):
    """Three digits, or all that stand before the point."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def times(judgement, below="peer faster"):
    """A ratio with its interval, or why there is no verdict: then no ratio. `below` says what a ratio below 1 is."""
    if judgement.clear:
        return f"{number(judgement.estimate)} ({number(judgement.low)}–{number(judgement.high)})"
    said = f"no verdict: {judgement.refused}"
    if judgement.low is None:
        return said
    return f"{said}; {below} in {judgement.lost} of {judgement.rounds} rounds"


def duration(seconds):
    return f"{seconds:.2g} s" if seconds >= 1 else f"{seconds * 1e3:.2g} ms" if seconds < 0.1 else f"{seconds:.2f} s"


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def table(rows, phase):
    first = phase == "first"
    head = ["set as it lies there", "peer"]
    head += ["first batch, peer", "wellread, first batch"] if first else []
    head += ["peer, images/s", "wellread, images/s", "ratio"]
    head += [] if first else ["memory, peer, MB", "wellread, MB"]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        cells = [row["set"], row["about"]]
        if "error" in row:
            cells += [f"not measured: {row['error']}", *[""] * (len(head) - 3)]
        else:
            cells += [duration(row["peer_first_batch_s"]), duration(row["ours_first_batch_s"])] if first else []
            cells += [f"{row['peer_rate']:,.0f}", f"{row['ours_rate']:,.0f}", times(row["judgement"])]
            cells += [] if first else [f"{row['peer_memory_mb']:,.0f}", f"{row['ours_memory_mb']:,.0f}"]
        lines.append([cell(text) for text in cells])
    return ["| " + " | ".join(line) + " |" if line[0] != "---" else "|" + "---|" * len(line) for line in lines]


def kept_pages(measured):
    """What wellread keeps of a set by itself: words for a table and its footnotes."""
    size = measured["images"] * (IMAGE_OF_SMALL if measured["name"] in SMALL else IMAGE)
    said = f"the {size / (1 << 20):,.0f} MiB of this set"
    share = "all" if size <= KEPT_PAGES else f"at most {KEPT_PAGES / size:.0%}"
    return f"wellread keeps up to {KEPT_PAGES >> 20} MiB of decoded pages, {share} of {said}"


def later_epochs(measured):
    """What is behind the title of a set in the caption of later epochs."""
    return "later epochs: the second one" if measured["later"] == 1 else "later epochs"


def closest(rows, phase):
    """Who comes closest to wellread, and lists of those before it. The table has those without a verdict."""
    when = "the first epoch" if phase == "first" else "later epochs"
    known = [row for row in rows if "judgement" in row and row["judgement"].low is not None]
    clear = [row for row in known if row["judgement"].clear]
    open_ones = [row for row in known if not row["judgement"].clear]
    found = listed(
        f"Peers that are faster in {when}:",
        [f"{name_and_set(row)}: wellread has {times(row['judgement'])} of its speed"
         for row in clear if row["judgement"].estimate < 1],
    )  # fmt: skip
    # A noise floor, however high, hides no peer that was always faster.
    always = [row for row in open_ones if row["judgement"].lost == row["judgement"].rounds]
    head = f"Peers that were faster in every round of {when}, without a verdict:"
    found += listed(head, [name_and_set(row) for row in always])
    said = [f"Rows without a verdict in {when}: {len(open_ones)} of {len(known)}."] if open_ones else []
    behind = [row for row in clear if row["judgement"].estimate > 1]
    if behind:
        row = behind[0]
        said.append(f"{row['about']} is the closest slower peer in {when} ({row['set']}). wellread is "
                    f"{times(row['judgement'])} times as fast.")  # fmt: skip
    return "\n\n".join([*found, " ".join(said)]).strip()


def name_and_set(row):
    """A peer as a list names it."""
    return f"{row['about']} ({row['set']})"


def listed(head, items):
    """The paragraphs of a list: its head and its lines; none of a list without items."""
    return [head, "\n".join(f"* {item}" for item in items)] if items else []


def of_set(measured, copied=False):
    """The tables of a set. `copied` tells that torch's workers copied whole batches."""
    lines = []
    for phase in PHASES:
        rows, noise = judged(measured, phase), floor(measured, phase)
        what = measured["title"]
        # The caption of later epochs is the set's own: tests and other pages look for it.
        caption = f"**{PHASES[phase][0]}: {what}**" if phase == "first" else f"**{what}**, {later_epochs(measured)}"
        if copied and any(row["peer"] in WHOLE for row in rows):
            caption += f". {COPIED} in the rows `torch DataLoader, 2 workers`."
        lines += [caption, ""]
        lines += table(rows, phase) + [""]
        if noise is not None:
            lines += [said_of(noise), ""]
        if phase == "later" and any(row["ours"] in PAGES and "error" not in row for row in rows):
            lines += [f"For Parquet and Vortex, {kept_pages(measured)}. Later epochs may find these.", ""]
        text = closest(rows, phase)
        lines += [text, ""] if text else []
    return lines


def said_of(noise):
    """The noise floor as a sentence."""
    return f"95 % noise floor, of loaders that ran twice in a round: {noise:.1%}."


def facts(result):
    """The paragraphs on a run."""
    f = result["facts"]
    sets = ". ".join(f"{one['title']}: 1 + {one['later']} epochs, {rounds(one)} rounds" for one in result["sets"])
    files = ", ".join(f"`{one['name']}` (SHA-256 `{one['sha256']}`)" for one in f.get("files") or ())
    of_files = any(one["name"] not in SMALL for one in result["sets"])
    made = f" The files of JUMP: {files}." if files and of_files else ""
    return [f"{of_run(f)}. {threads(f)} {sets}.{made}", *versions(f)]


def threads(f):
    """How many threads or workers the loaders had, as a sentence."""
    return f"Each loader had {f['threads']} threads or workers."


def versions(f):
    """The paragraphs of the list of versions, ten in a line: a sentence has 25 words at most."""
    known = [f"{name} {version}" for name, version in f["versions"].items()]
    return listed("Versions:", [", ".join(known[at : at + 10]) for at in range(0, len(known), 10)])


def of_run(f):
    """Which run it is, in words. One in parts has several commands; one of before does not say how many files a
    process could have open."""
    files = f.get("open_files")
    known = "" if files is None else f", at most {files:,} open files" if files > 0 else ", no limit of open files"
    command = f["command"].replace("; ", "`, `")
    return f"One run (`{command}`, commit {f['commit']}, {f['date']}) on {f['machine']}{known}"


def taken(result):
    """How the loaders that run twice were chosen, in words: by the rules of before, by chance."""
    return f"one loader of each side a round, {'drawn at random' if copied(result, RULES) else 'in turn'}"


def warmed(writing):
    """What was written before the clock starts; results of before do not say that it was as much."""
    if writing.get("warmed_alike"):
        return "Before the clock starts, both write all images once."
    return "Before the clock starts, a library writes one image and wellread all of them twice, which suits wellread."


def of_writing(rows):
    head = "| set | format | library | codec, both | peer, images/s | wellread, images/s | ratio |"
    lines = [head, "|---|---|---|---|---|---|---|"]
    for row in rows:
        if "error" in row:
            cells = [f"not measured: {row['error']}", "", ""]
        else:
            one = judge.judge(row["peer_s"], row["ours_s"], judge.noise_floor(row["twin"]))
            rates = [1 / statistics.median(row[side]) for side in ("peer_s", "ours_s")]
            cells = [*(f"{rate:,.0f}" for rate in rates), times(one)]
        about = [row["set"], row["format"], row["library"], row["codec"]]
        lines.append("| " + " | ".join(cell(text) for text in (*about, *cells)) + " |")
    return lines


def of_sets(result):
    """The tables of the sets of a run."""
    if not shown(result, RULES):
        return f"{of_run(result['facts'])}.\n\n{WITHDRAWN_RULES}"
    lines, sets = ["\n\n".join(facts(result)), ""], result["sets"]
    if any(unequal(row) for measured in sets for row in measured["rows"]):
        lines += [WITHDRAWN, ""]
    if any(by_image(row, measured) for measured in sets for row in measured["rows"]):
        lines += [WITHDRAWN_BY_IMAGE, ""]
    if any(slow_way(row) for measured in sets for row in measured["rows"]):
        lines += [WITHDRAWN_SLOW, ""]
    for measured in sets:
        lines += of_set(measured, copied(result, RULES))
    return "\n".join(lines).rstrip()


def sections(result):
    """The generated parts of pages, by the name of their markers."""
    parts = {}
    # Small images have a page of their own.
    for name, small in (("peers", False), ("peers-small", True)):
        sets = [measured for measured in result.get("sets", []) if (measured["name"] in SMALL) == small]
        if sets:
            parts[name] = of_sets({**result, "sets": sets})
    if result.get("writing"):
        writing = result["writing"]
        head = f"{of_run(result['facts'])}; {writing['rounds']} rounds."
        # No worker of torch writes.
        known = shown(result, RULES)
        head += f" {warmed(writing)} {NOISE_OF_WRITING}" if known else ""
        parts["writing"] = "\n".join([head, "", *(of_writing(writing["rows"]) if known else [WITHDRAWN_WRITING])])
    return parts


def refused(result):
    """Why a result may not be put into a page; None where it may."""
    few = [
        f"{one['title']}: {rounds(one)} rounds" for one in result.get("sets", []) if rounds(one) < judge.MIN_ROUNDS
    ]
    writing = result.get("writing")
    if writing and writing["rounds"] < judge.MIN_ROUNDS:
        few.append(f"writing: {writing['rounds']} rounds")
    return f"{'; '.join(few)}: a page needs {judge.MIN_ROUNDS}" if few else None


def put(text, result):
    """A page with the tables of this result between its markers, those tables that it has places for."""
    why = refused(result)
    if why:
        raise ValueError(why)
    parts = sections(result)
    names = [name for name in parts if f"<!-- {name}:" in text] or list(parts)
    for name in names:
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
            raise ValueError(f"the page has no {begin} … {end}")
        text = re.sub(f"{begin}.*{end}", lambda _, b=begin, e=end, p=parts[name]: f"{b}\n{p}\n{e}", text, flags=re.S)
    return text
