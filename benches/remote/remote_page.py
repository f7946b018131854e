"""The report of a run of `benches/remote.py`, as Markdown: a function of its JSON file alone.

Ratios and their intervals are those of `benches/peers/judge.py`: the unit is the process, and both sides of a ratio
ran in one round. Two loaders without a verdict have no ratio. Beside each stands the goal, and whether the whole
interval is on its side of it by more than the noise floor ("reached"), on the other one ("missed"), or neither
("open"). First epochs of results by other rules than
`RULES` are left out. Each peer stands beside wellread in the format that is nearest to its own.
Readers of shards in sequence stand beside wellread's Parquet in random order.
"""

import functools
import statistics

import judge
import page
import plate_page

SHARDS = "its own shards, in sequence"
# Of each peer: what it reads, the formats of wellread beside it, and how many times as fast wellread is to be.
BESIDE = {
    "zarr-obstore": ("zarr-python + obstore", "one Zarr array", ("ome-zarr-series", "ome-zarr"), 5),
    "zarr-s3fs": ("zarr-python + s3fs", "one Zarr array", ("ome-zarr-series", "ome-zarr"), 5),
    "pylance": ("pylance", "Lance, pixels as bytes", ("lance",), 5),
    "tifffile-fsspec": ("tifffile + fsspec, 8 workers", "wellread's TIFF", ("tiff",), 5),
    "litdata": ("LitData", SHARDS, ("parquet",), 1),
    "mosaicml-streaming": ("MosaicML Streaming", SHARDS, ("parquet",), 1),
    "webdataset": ("WebDataset", SHARDS, ("parquet",), 1),
}
FORMS = {"ome-zarr": "OME-Zarr, a group an image", "ome-zarr-series": "OME-Zarr, one series", "parquet": "Parquet",
         "lance": "Lance", "tiff": "TIFF"}  # fmt: skip
# Of the benchmark: libraries are imported before the clock starts, peers read ahead, batches are `float32`, and
# torch's workers make them in shared memory. A result of before says none.
RULES = 3
SHARE_OF_LINK, SHARE_OF_LOCAL, CPU_OF_LOCAL = 0.9, 0.8, 1.3
WITHDRAWN = (
    "Withdrawn until they are measured again: all figures of first epochs, and with them all peers. The clock had "
    "the imports of the libraries, seconds of some peers' epochs, and zarr-python and pylance did not read ahead. "
    "The rest is of wellread's later epochs, in batches of the stored type, with two worker threads beside the one "
    "that waits."
)
FIRST_OF_PEERS = (
    "Peers ran one epoch, from opening on: no later epoch of a peer was compared. The clock of LitData, MosaicML "
    "Streaming, WebDataset and tifffile + fsspec has the start of up to 8 worker processes in it."
)
ONE_READER = (
    "The loaders of sets in the bucket and in the disk cache had one thread here. The thread that waits for batches "
    "never waits for a network. Those of the folder had two, so that their rates are not compared."
)


def rate(run, epoch=0):
    """Images per second; the first epoch counts from opening on."""
    return run["epochs"][epoch]["images"] / run["epochs"][epoch]["s"]


def cpu(run, epoch=0):
    """Milliseconds of CPU for an image."""
    return 1000 * run["epochs"][epoch]["cpu_s"] / run["epochs"][epoch]["images"]


def median(runs, value):
    return page.number(statistics.median(map(value, runs)))


def share(runs, limits, value, limit):
    """The median of the rounds' shares of a limit and its interval, of runs of the same rounds."""
    shares = [value(run) / limit(known) for run, known in zip(*page.paired(runs, limits), strict=True)]
    return statistics.median(shares), *(judge.interval(shares) or (None, None))


def compared(top, bottom, value, floor):
    """The judgement on the ratio of a figure, top over bottom, in runs of the same rounds."""
    return judge.judge(*([value(run) for run in side] for side in page.paired(top, bottom)), floor)


def said(judgement, goal, at_most, floor, below):
    """The last cells of a row of two loaders: the ratio, the goal and its verdict."""
    ends = judgement.estimate, judgement.low, judgement.high
    return [page.times(judgement, below), f"at {'most' if at_most else 'least'} {goal}",
            plate_page.verdict(*ends, goal, at_most, floor)]  # fmt: skip


def noise(at, value, epoch):
    """The noise floor of a figure of an epoch, of what ran twice and has that epoch."""
    return plate_page.floor(at, lambda run: value(run, epoch) if len(run["epochs"]) > epoch else None)


def of_formats(at, first=True):
    """wellread over the link: a row for each format."""
    head = ["first batch, s", "first epoch, images/s"] if first else []
    table = [["wellread, random order", *head, "later epoch, images/s", "share of the link's limit, later epoch",
              "goal", "verdict", "requests, all epochs", "memory, MB"]]  # fmt: skip
    for name, runs in at["runs"].items():
        if not name.startswith("wellread") or "," in name:
            continue
        form, limits = name.split()[1], at["limits"].get(name, [])
        if page.failure(runs, limits):
            table.append([form, f"not measured: {page.failure(runs, limits)}", *[""] * (5 + len(head))])
            continue
        known = [one for one in limits if one.get("limit_link_per_s")]
        last = ["", "", ""]
        if len(known) >= judge.MIN_ROUNDS:
            one = share(runs, known, lambda run: rate(run, 1), lambda limit: limit["limit_link_per_s"])
            last = [plate_page.spread(*one), f"at least {SHARE_OF_LINK}",
                    plate_page.verdict(*one, SHARE_OF_LINK, False, noise(at, rate, 1))]  # fmt: skip
        requests = [run["loader_requests"] for run in runs if "loader_requests" in run]
        begin = [median(runs, lambda run: run["first_batch_s"]), median(runs, rate)] if first else []
        table.append([form, *begin, median(runs, lambda run: rate(run, 1)), *last,
                      f"{statistics.median(requests):,.0f}" if requests else "",
                      median(runs, lambda run: run["memory_mb"])])  # fmt: skip
    return plate_page.lines(table)


def of_peers(at):
    """Each peer beside wellread: first epochs, from opening on."""
    table = [["peer", "it reads", "wellread reads", "peer, first epoch, images/s", "wellread, first epoch, images/s",
              "ratio of first epochs", "goal", "verdict"]]  # fmt: skip
    beside = [(peer, *rest, form, goal) for peer, (*rest, forms, goal) in BESIDE.items() for form in forms]
    for peer, about, reads, form, goal in beside:
        theirs, ours = at["runs"].get(peer), at["runs"].get(f"wellread {form}")
        if not theirs or not ours:
            continue
        row, wanted = [about, reads, FORMS[form]], f"at least {goal}"
        if page.failure(theirs, ours):
            table.append([*row, f"not measured: {page.failure(theirs, ours)}", "", "", wanted, ""])
            continue
        floor = noise(at, rate, 0)
        table.append([*row, median(theirs, rate), median(ours, rate),
                      *said(compared(ours, theirs, rate, floor), goal, False, floor, "peer faster")])  # fmt: skip
    return plate_page.lines(table)


def of_places(at, first=True, alike=True):
    """The same format from the folder, from its disk cache and over the link. Rates are compared where all have the
    same number of threads that read."""
    table = [["format", "compared", "ratio", "goal", "verdict"]]
    for name, folder in at["runs"].items():
        if not name.endswith(", folder"):
            continue
        form = name.split()[1].rstrip(",")
        kept, far = at["runs"][f"wellread {form}, disk cache"], at["runs"].get(f"wellread {form}", [])
        about = "rate of the second epoch, disk cache / folder"
        pairs = [(about, kept, folder, rate, 1, SHARE_OF_LOCAL, False)] if alike else []
        if first:
            about = "CPU of an image in the first epoch, link / folder"
            pairs.append((about, far, folder, cpu, 0, CPU_OF_LOCAL, True))
        for about, top, bottom, value, epoch, goal, at_most in pairs:
            wanted = f"at {'most' if at_most else 'least'} {goal}"
            wrong = page.failure(top, bottom) or (None if top else "the link was not measured")
            if wrong:
                table.append([form, about, f"not measured: {wrong}", wanted, ""])
                continue
            floor = noise(at, value, epoch)
            one = compared(top, bottom, functools.partial(value, epoch=epoch), floor)
            table.append([form, about, *said(one, goal, at_most, floor, "below 1")])
    return plate_page.lines(table)


def section(result):
    """The generated part of the page."""
    f = result["facts"]
    link = f"a link of {f['mbit']:g} Mbit/s" if f["mbit"] else "loopback without a limit"
    said = f"{page.of_run(f)}, {f['rounds']} rounds; {f['threads']} threads, and {link}."
    found = ["\n\n".join([said, *page.versions(f)]), ""]
    first = page.shown(result, RULES)
    # Batches of before were read by two threads beside the one that waits.
    alike = not first or f.get("readers") == f["threads"]
    found += [] if first else [WITHDRAWN, ""]
    found += [] if alike else [ONE_READER, ""]
    for measured in result["links"].values():
        for latency, at in measured["latencies"].items():
            found += [f"**{measured['about'][0].upper()}{measured['about'][1:]}**, {latency} ms a request", ""]
            peers = of_peers(at) if first else []
            if len(peers) > 2 and page.copied(result, RULES):
                found += [f"{page.COPIED} beside tifffile, LitData, MosaicML Streaming and WebDataset.", ""]
            peers = [FIRST_OF_PEERS, "", *peers] if peers else []
            for table in (of_formats(at, first), peers, of_places(at, first, alike)):
                found += [*table, ""] if table else []
            floors = [(name, noise(at, rate, epoch)) for epoch, name in enumerate(("first", "later"))]
            known = [f"{name} epochs {one:.1%}" for name, one in floors[0 if first else 1 :] if one is not None]
            if known:
                found += [f"95 % noise floor, of loaders that ran twice in a round: {', '.join(known)}.", ""]
    return "\n".join(found).rstrip()


def put(text, result, name="remote-a"):
    """A page with what stands between the markers of this name replaced by the tables of this result."""
    return plate_page.put(text, result, name, section)
