"""Sets in a bucket beside their peers: true random order over a link of known latency and bandwidth (docs/peers.md).

    python benches/remote.py --out results/remote.json [--rounds 6] [--latency 1,20,80] [--mbit 1000] [--only a,b]
                             [--formats parquet,tiff] [--peers zarr-obstore,pylance]

 a  1,000 images of 100 x 100, uint8
 b  256 images of 1080 x 1080, uint16, Zstandard
 c  crops of single cells, 5 x 96 x 96, of a set of 100,000 (--crops); an epoch has 4,000 of them

The server is ours (crates/wellread-remote/examples/loopback): a folder as S3 shows it, each request late by the
latency, all bytes through one bandwidth.

A round is each variant once, in an order that is turned by one from round to round, each in a process of its own.
Before the rounds each runs once unmeasured, with every pixel compared; of a timed epoch one batch is. Beside
wellread's rate stands its share of what the link gives at best: bare requests of the same ranges by the same client,
as `wellread bench dataloader` measures them. `WELLREAD` names the program, `PYTHONPATH` has the package.
"""

import argparse
import contextlib
import datetime
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "peers"), str(HERE / "remote"), str(HERE.parent / "tests" / "python")]

BATCH = 16
# What a process may take at most: a peer that takes longer is said to hang.
LONGEST_S = 1800
# How many times as fast wellread is to be.
GOALS = {"zarr-obstore": 5, "zarr-s3fs": 5, "pylance": 5, "tifffile-fsspec": 5, "litdata": 1,
         "mosaicml-streaming": 1, "webdataset": 1}  # fmt: skip
SHARE_OF_LINK = 0.9


def run_job(job):
    """One process: epochs of a loader, their seconds from opening on; raises where pixels are wrong."""
    import numpy as np
    from remote_loaders import LOADERS
    from remote_sets import checksum

    sums = np.load(job["sums"])

    def compare(rows, pixels):
        for row, image in zip(rows, pixels, strict=True):
            if checksum(image) != sums[row]:
                raise ValueError(f"row {row} has other pixels than were written")

    begin = time.perf_counter()
    source = LOADERS[job["loader"]][0](job)
    epochs, first_batch_s, seen = [], None, 0
    for e in range(job["epochs"]):
        count, kept = 0, None
        for rows, pixels in source.epoch(e):
            if first_batch_s is None:
                first_batch_s = time.perf_counter() - begin
            count += len(rows)
            if job["checked"]:
                compare(rows, pixels)
                seen += len(rows)
            kept = kept or (rows, pixels)
        epochs.append({"s": time.perf_counter() - begin, "images": count})
        compare(*kept)
        begin = time.perf_counter()
    if job["checked"] and seen < job["epochs"] * min(job["rows"], job["images"]):
        raise ValueError(f"{seen} images were delivered")
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    stats = source.stats() if hasattr(source, "stats") else {}
    return {
        "first_batch_s": first_batch_s, "epochs": epochs, "cpu_s": sum(u.ru_utime + u.ru_stime for u in used),
        "memory_mb": used[0].ru_maxrss / 1024, **{f"loader_{name}": value for name, value in stats.items()},
    }  # fmt: skip


def in_process(job, environment):
    command = [sys.executable, __file__, "--job", json.dumps(job)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, env=environment)
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {LONGEST_S} s"}
    answer = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not answer:
        return {"error": (done.stderr.strip() or "no answer").splitlines()[-1][:300]}
    return json.loads(answer[-1])


def limit_of_link(a, job, environment):
    """Images per second of bare requests of the ranges that wellread asks for, and what binds it."""
    import pyarrow.parquet as pq
    from remote_sets import BUCKET, FORMATS

    with tempfile.TemporaryDirectory() as out:
        path = f"s3://{BUCKET}/{job['set']}/{FORMATS[job['format']]}"
        command = [a.wellread, "bench", "dataloader", "--input", path, "--in-place", "--repeats", "1", "--workers",
                   str(a.threads), "--batch-sizes", str(BATCH), "--framework", "rust", "--no-cold",
                   "--out", out]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, env=environment)
        if done.returncode:
            return {"error": (done.stderr.strip() or "no answer").splitlines()[-1][:300]}
        row = pq.read_table(Path(out) / "dataloader.parquet").to_pylist()[0]
        return {name: row.get(name) for name in ("limit_link_per_s", "bound_by", "samples_per_sec", "requests")}


def variants_of(a, part, kind, folder, server):
    """What is run of a part: wellread in each format over the link, and the peers."""
    job = {
        "set": part, "images": kind.images, "rows": min(kind.rows, kind.images), "channels": kind.channels,
        "height": kind.height, "width": kind.width, "dtype": kind.dtype, "batch": BATCH, "threads": a.threads,
        "url": server.url, "folder": str(folder), "sums": str(folder / part / "checksums.npy"), "cache": None,
        "local": False, "format": None, "epochs": 1, "seed": 1, "checked": False,
    }  # fmt: skip
    found = {f"wellread {form}": {**job, "loader": "wellread", "format": form} for form in a.formats}
    for form in a.formats if a.local else ():
        found[f"wellread {form}, folder"] = {**job, "loader": "wellread", "format": form, "local": True, "epochs": 2}
        found[f"wellread {form}, disk cache"] = {
            **job,
            "loader": "wellread",
            "format": form,
            "cache": "new",
            "epochs": 2,
        }
    found.update({peer: {**job, "loader": peer} for peer in a.peers})
    return found


def measured(a, variants, environment):
    """All rounds at one latency."""
    runs, alive = {name: [] for name in variants}, list(variants)

    def once(name, **more):
        job = {**variants[name], **more}
        with tempfile.TemporaryDirectory() as cache:
            job["cache"] = cache if job["cache"] else None
            done = in_process(job, environment)
        said = done.get("error") or f"{done['epochs'][0]['images'] / done['epochs'][0]['s']:.0f} images/s"
        print(f"  round {job['seed']}/{a.rounds} {name}: {said}", file=sys.stderr, flush=True)
        return done

    if not a.unchecked:
        for name in variants:
            done = once(name, checked=True, seed=0)
            if "error" in done:
                runs[name] = [done]
                alive.remove(name)
    for round_ in range(1, a.rounds + 1):
        turn = round_ % max(1, len(alive))
        for name in alive[turn:] + alive[:turn]:
            runs[name].append({"round": round_, **once(name, seed=round_)})
    return runs


def rate(run, epoch=0):
    return run["epochs"][epoch]["images"] / run["epochs"][epoch]["s"]


def table(at):
    """The lines of one part and latency: each loader's rate, what wellread's best is of it, shares of the link."""
    import judge

    runs = {name: [run for run in all_ if "error" not in run] for name, all_ in at["runs"].items()}
    ours = {name: statistics.median(map(rate, of)) for name, of in runs.items() if name.startswith("wellread") and of
            and "," not in name}  # fmt: skip
    lines = ["| loader | images/s | first batch | wellread's best is | goal | of the link's limit | requests |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    best = max(ours, key=ours.get, default=None)
    for name, of in runs.items():
        if not of:
            lines.append(f"| {name} | {at['runs'][name][0]['error'] if at['runs'][name] else ''} | | | | | |")
            continue
        times, goal, share, requests = "", "", "", ""
        if name in GOALS and best:
            pairs = [(rate(one), rate(other)) for one in runs[best] for other in of if one["round"] == other["round"]]
            ratios = [one / other for one, other in pairs]
            ends = judge.interval(ratios)
            spread = f" ({ends[0]:.2f}–{ends[1]:.2f})" if ends else ""
            times, goal = f"{statistics.median(ratios):.2f} times{spread}", f"{GOALS[name]}"
        limit = at["limits"].get(name, {})
        if limit.get("limit_link_per_s"):
            share = f"{statistics.median(map(rate, of)) / limit['limit_link_per_s']:.2f} ({limit['bound_by']})"
            goal = f"{SHARE_OF_LINK} of the link"
        if of[0].get("loader_requests") is not None:
            requests = f"{statistics.median(run['loader_requests'] for run in of):.0f}"
        if len(of[0]["epochs"]) > 1:
            share = f"second epoch: {statistics.median(rate(run, 1) for run in of):.0f} images/s"
        first = statistics.median(run["first_batch_s"] for run in of)
        figure = statistics.median(map(rate, of))
        lines.append(f"| {name} | {figure:.0f} | {first:.2f} s | {times} | {goal} | {share} | {requests} |")
    return lines


def section(result):
    f = result["facts"]
    lines = [
        f"{f['rounds']} rounds on {f['date']}; {f['machine']}; commit {f['commit']}; link of {f['mbit']:g} Mbit/s."
    ]
    for part, found in result["parts"].items():
        for latency, at in found["latencies"].items():
            lines += ["", f"### {part}: {found['about']}; {latency} ms a request", "", *table(at)]
    return "\n".join(lines)


def arguments(given=None):
    from remote_loaders import LOADERS
    from remote_sets import FORMATS, KINDS

    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    peers = [name for name in LOADERS if name != "wellread"]
    ap.add_argument("--out", type=Path, default=Path("results/remote.json"))
    ap.add_argument("--data", type=Path, help="folder of the sets, which are used again; default: beside --out")
    ap.add_argument("--wellread", default=os.environ.get("WELLREAD") or "wellread", help="the program; writes sets")
    ap.add_argument("--rounds", type=int, default=6)
    ap.add_argument("--latency", default="1,20,80", help="milliseconds of a request")
    ap.add_argument("--mbit", type=float, default=1000, help="of the link; 0: what loopback gives")
    ap.add_argument("--only", default="a,b,c", help="parts")
    ap.add_argument("--formats", default=",".join(FORMATS), help="of wellread")
    ap.add_argument("--peers", default=",".join(peers), help="or none")
    ap.add_argument("--crops", type=int, default=KINDS["c"].images, help="images of the set of part c")
    ap.add_argument("--threads", type=int, default=2, help="of wellread's loader")
    ap.add_argument("--local", action="store_true", help="wellread from the folder and from the disk cache as well")
    ap.add_argument("--no-limit", action="store_true", help="do not measure what the link gives at best")
    ap.add_argument("--unchecked", action="store_true", help="leave out the run that compares every pixel")
    ap.add_argument("--prepare", action="store_true", help="write the sets and end")
    ap.add_argument("--job", help=argparse.SUPPRESS)
    a = ap.parse_args(given)
    for name, known in (("only", KINDS), ("formats", FORMATS), ("peers", peers)):
        chosen = [one for one in getattr(a, name).split(",") if one and one != "none"]
        if not set(known).issuperset(chosen):
            ap.error(f"--{name}: of {', '.join(known)}")
        setattr(a, name, chosen)
    a.latency = [float(text) for text in a.latency.split(",")]
    return a


def main():
    a = arguments()
    if a.job:
        # What peers say of themselves goes elsewhere.
        with contextlib.redirect_stdout(sys.stderr):
            done = run_job(json.loads(a.job))
        return print(json.dumps(done), flush=True)
    import dataclasses

    import compare as peers_compare
    from loopback import Loopback, program
    from remote_loaders import LOADERS
    from remote_sets import BUCKET, KINDS, write

    a.out = a.out.resolve()
    data = (a.data or a.out.parent / "remote-data").resolve()
    (data / BUCKET).mkdir(parents=True, exist_ok=True)
    a.out.parent.mkdir(parents=True, exist_ok=True)
    kinds = {part: KINDS[part] for part in a.only}
    if "c" in kinds:
        kinds["c"] = dataclasses.replace(kinds["c"], images=a.crops, about=f"{a.crops:,} {kinds['c'].about}")
    # A peer reads what it needs of a set, or wellread's TIFF.
    formats = [*a.formats, *(["tiff"] if "tifffile-fsspec" in a.peers else [])]
    for part, kind in kinds.items():
        write(a.wellread, data, part, kind, formats, {LOADERS[peer][1] for peer in a.peers})
    if a.prepare:
        return None
    facts = {"date": datetime.date.today().isoformat(), "machine": peers_compare.machine(), "rounds": a.rounds,
             "commit": peers_compare.commit(), "mbit": a.mbit, "threads": a.threads}  # fmt: skip
    result = {"facts": facts, "parts": {}}
    with Loopback(program(data), "serve", data, mbit=a.mbit) as server:
        environment = {**os.environ, **server.environment()}
        for part, kind in kinds.items():
            found = result["parts"][part] = {"about": kind.about, "latencies": {}}
            for latency in a.latency:
                server.set(latency_ms=latency)
                print(f"{part}: {kind.about}, {latency:g} ms", file=sys.stderr, flush=True)
                variants = variants_of(a, part, kind, data / BUCKET, server)
                of_link = {
                    name: job for name, job in variants.items() if name.startswith("wellread") and "," not in name
                }
                limits = {} if a.no_limit else {
                    name: limit_of_link(a, job, environment) for name, job in of_link.items()
                }  # fmt: skip
                runs = measured(a, variants, environment)
                found["latencies"][f"{latency:g}"] = {"limits": limits, "runs": runs}
                # What is finished is there, whatever comes.
                a.out.write_text(json.dumps(result, indent=1))
    return print(section(result))


if __name__ == "__main__":
    main()
