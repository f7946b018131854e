"""The table of a run of `benches/front.py`, and the lines of README.md around the picture: a function of its JSON
file alone.

    results/front.json ─ bars() ─▶ rates, ratios ─▶ section(): docs/peers-loaders.md
                                         │        ─▶ front_picture.py: docs/images/loaders.svg
                                         └────────▶ readme(): alternative text and caption
"""

import statistics

import judge
import page
import plate_page

# Of the benchmark: torch's workers make batches in shared memory. A result of before says 1, or none.
RULES = 2
GROUPS = {
    "tiff": "TIFF, a file for each channel",
    "zarr": "OME-Zarr 0.4, a chunk for each channel",
    "lance": "Lance",
    "litdata": "LitData's shards",
}
# A set that only one loader reads stands with those of its format.
OF_GROUP = {"pylance": "lance"}
PICTURE = "docs/images/loaders.svg"
LATER = "later epochs"
MEANING = "the speed of wellread divided by that of the loader, on files of the same kind"


def rate(front, name, phase):
    """Images a second of a loader and the 95 % interval: medians over rounds."""
    seconds = plate_page.PHASES[phase][1]
    rates = [run["rows"] / seconds(run) for run in front["runs"][name]]
    return (statistics.median(rates), *(judge.interval(rates) or (None, None)))


def bars(result):
    """The loaders of each kind of files, each in the way of its use that is faster, by phases. A loader has its name,
    and for each phase a rate, a judgement and that way, or an error.

    The judgement is beside wellread on files of that kind; it is None where wellread has no such row.
    """
    groups = {}
    for files, ways in all_ways(result).items():
        found = groups.setdefault(files, [])
        for about in dict.fromkeys(one["about"] for one in ways):
            same = [one for one in ways if one["about"] == about]
            good = [one for one in same if "error" not in one]
            fastest = {
                phase: max((one[phase] for one in good), key=lambda known: known[0][0])
                for phase in (plate_page.PHASES if good else ())
            }
            found.append({**good[0], **fastest} if good else {**same[0], "way": None})
    return groups


def ways_of(one):
    """How a loader is used that has several ways, in words: once, or of the first epoch and of later ones where these
    differ; nothing of others."""
    if "error" in one:
        return [one["way"]] if one.get("way") else []
    first, later = (one[phase][2] for phase in plate_page.PHASES)
    if first is None:
        return []
    return [first] if first == later else [f"first epoch: {first}", f"later: {later}"]


def way_of(one):
    """The same as one text."""
    return "; ".join(ways_of(one))


def name_of(one):
    """A loader as texts call it, with the way of its use."""
    way = way_of(one)
    return f"{one['about']} ({way})" if way else one["about"]


def all_ways(result):
    """The loaders of each kind of files, each way of their use by itself."""
    front, groups = plate_page.equal(result["front"]), {}
    for row in front["rows"]:
        name, one = row["name"], {"about": row["about"], "ours": row["name"].startswith("wellread ")}
        wrong = page.failure(front["runs"][name])
        if wrong:
            one |= {"error": wrong, "way": row.get("way")}
        for phase in () if wrong else plate_page.PHASES:
            beside = None
            if row["beside"] in front["runs"]:
                sides = {"what": "", "top": name, "bottom": row["beside"], "goal": None, "at_most": False}
                beside = plate_page.judged(front, sides, phase).get("judgement")
            one[phase] = (rate(front, name, phase), beside, row.get("way"))
        one["memory"] = None if wrong else statistics.median(run["memory_mb"] for run in front["runs"][name])
        groups.setdefault(OF_GROUP.get(row["files"], row["files"]), []).append(one)
    return {GROUPS[files]: loaders for files, loaders in groups.items()}


def section(result):
    """The generated part of docs/peers-loaders.md."""
    if not page.shown(result, RULES):
        return f"{page.of_run(result['facts'])}.\n\n{page.WITHDRAWN_RULES}"
    f, front = result["facts"], result["front"]
    run = f"{page.of_run(f)}, {f['rounds']} rounds. {page.threads(f)} {conditions(f)}. {said_of_copies(result)}"
    found = ["\n\n".join([run.rstrip(), *page.versions(f)]), ""]
    table = [["files", "loader", "first epoch, images/s", f"{later_epochs(front)}, images/s", "ratio, first",
              "ratio, later", "memory, MB"]]  # fmt: skip
    for files, loaders in all_ways(result).items():
        for one in loaders:
            about = name_of(one)
            if "error" in one:
                table.append([files, about, f"not measured: {one['error']}", "", "", "", ""])
                continue
            rates = [plate_page.spread(*one[phase][0]) for phase in plate_page.PHASES]
            judged = [ratio(one[phase][1]) for phase in plate_page.PHASES]
            table.append([files, about, *rates, *judged, page.number(one["memory"])])
    found += [*plate_page.lines(table), "", f"The ratio is {MEANING}.", ""]
    chosen = [name_of(one) for loaders in bars(result).values() for one in loaders
              if "error" not in one and way_of(one)]  # fmt: skip
    if chosen:
        found += ["\n\n".join(page.listed("The picture has the faster way of use:", chosen)), ""]
    for epochs, phase in zip(("First epochs", "Later epochs"), plate_page.PHASES, strict=True):
        noise = plate_page.floor_of(front, phase)
        if noise is not None:
            found += [f"{epochs}: {page.said_of(noise)}", ""]
    copies = [one["gb_per_s"] for one in front["copy"] if "error" not in one]
    if copies:
        found += [
            f"In the same rounds one thread copied memory at {page.number(statistics.median(copies))} GB/s.",
            "",
        ]
    sizes = ", ".join(f"{name} {size / 1e9:.2f} GB" for name, size in front["bytes"].items())
    return "\n".join([*found, f"On disk: {sizes}."])


def ratio(judgement):
    return "" if judgement is None else page.times(judgement)


def conditions(f):
    """Size, pixel type, codec, batch: what a reader has to know beside the figures."""
    return (
        f"{f['sites']} generated images of 5 channels, {f['size']} x {f['size']} uint16, "
        f"Zstandard level {f['level']}, batches of {f['batch']}, files in the page cache"
    )


def alternative(result):
    """The picture in words."""
    said = [f"Bar chart of images/s into PyTorch by loader, first epoch and later epochs, with 95 % intervals. "
            f"{conditions(result['facts'])}."]  # fmt: skip
    for files, loaders in bars(result).items():
        texts = []
        for one in loaders:
            if "error" in one:
                texts.append(f"{one['about']} not measured")
                continue
            first, later = (plate_page.spread(*one[phase][0]) for phase in plate_page.PHASES)
            texts.append(f"{name_of(one)} {first} in the first epoch, {later} in later ones")
        # A sentence for each loader.
        said.append(f"{files}: {'. '.join(texts)}.")
    return " ".join(said)


def later_epochs(front):
    """What later epochs are: the second one, where that is all that is compared."""
    runs = [run for series in plate_page.equal(front)["runs"].values() for run in series if "error" not in run]
    return f"{LATER}: the second one" if all(len(run["epochs_s"]) == 2 for run in runs) else LATER


def said_of_copies(result):
    """That torch's workers copied whole batches, in runs by the rules of before."""
    if not page.copied(result, RULES):
        return ""
    return f"{page.COPIED} beside tifffile, zarr-python and LitData."


def unjudged(result):
    """The loaders beside which an epoch has no verdict, in words. The table has the way of their use."""
    found = [
        one["about"].split(",")[0]
        for loaders in bars(result).values()
        for one in loaders
        if "error" not in one and not all(one[phase][1] is None or one[phase][1].clear for phase in plate_page.PHASES)
    ]
    return f"The run has no verdict on an epoch, or on both, beside {listed(found, 'and')}. " if found else ""


def listed(names, word):
    """Names in a sentence: a, b and c."""
    *others, last = dict.fromkeys(names)
    return f"{', '.join(others)} {word} {last}" if others else last


def ways(result):
    """The ways in which loaders are used that have several, in words; nothing where none has."""
    found = [row["way"].removeprefix("torch DataLoader, ") for row in result["front"]["rows"] if row.get("way")]
    return listed(found, "or") if len(set(found)) > 1 else ""


def faster_way(result):
    """What the picture says where a loader is used in several ways."""
    known = ways(result)
    return f" ({known}: for each loader and epoch the fastest)" if known else ""


def readme(result):
    """The lines of README.md: the picture, and what it is of."""
    f = result["facts"]
    if not page.shown(result, RULES):
        return page.WITHDRAWN_RULES
    copies = said_of_copies(result)
    second = "" if later_epochs(result["front"]) == LATER else "Later epochs are the second one. "
    several = f"A bar has the fastest of these ways: {ways(result)}. " if ways(result) else ""
    return (
        f"![{alternative(result)}]({PICTURE})\n\n"
        f"Images/s into PyTorch by loader. {conditions(f).replace('uint16', '`uint16`')}. One run of {f['rounds']} "
        f"rounds on {f['machine']}, {f['date']}. {page.threads(f)} {several}"
        f"Bars are medians, whiskers 95 % intervals. {second}{copies + ' ' if copies else ''}LitData shuffles shards "
        f"and the rows within a shard, which is less work than the random order of the others. {unjudged(result)}"
        "[The table has each ratio](docs/peers-loaders.md)."
    )


def refused(result):
    """Why a result may not be shown; None where it may."""
    front = result["front"]
    short = [name for name, runs in front["runs"].items() if len(runs) < judge.MIN_ROUNDS or page.failure(runs)]
    if short:
        return f"{', '.join(short)}: not measured in the {judge.MIN_ROUNDS} rounds that a page needs"
    return None


def put(text, result, tables=section):
    """A page with what stands between its markers replaced."""
    return plate_page.put(text, result, "front", tables)
