"""Sets in a bucket beside their peers: true random order over a link of known latency and bandwidth (docs/peers.md).

    python benches/remote.py --out results/remote.json [--rounds 6] [--latency 1,20,80] [--mbit 1000] [--only a,b]
                             [--formats parquet,tiff] [--peers zarr-obstore,pylance] [--local parquet]

 a  1,000 images of 100 x 100, uint8
 b  256 images of 1080 x 1080, uint16, Zstandard
 c  crops of single cells, 5 x 96 x 96, of a set of 100,000 (--crops); an epoch has 4,000 of them

The server is ours (crates/wellread-remote/examples/loopback): a folder as S3 shows it, each request late by the
latency, all bytes through one bandwidth.

A round is each variant once, in random order, each in a process of its own. Batches are `float32` in [0, 1], tensors
of torch. Before the rounds each runs once unmeasured, with every pixel compared; of a timed epoch one batch is. The
first epoch counts from opening on; libraries are imported before. wellread has a second one, whose share of the
link's limit stands beside it: bare requests of the same ranges by the same client, which `wellread bench dataloader`
measures in each round. One of wellread's variants and one of the peers, in turn, run twice: how far they
lie from themselves is the noise. `remote/remote_page.py` makes the table. `WELLREAD` names the program, `PYTHONPATH`
has the package.
"""

import argparse
import datetime
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / name) for name in ("peers", "plates", "remote", "../tests/python")]

BATCH = 16
# What a process may take at most: a peer that takes longer is said to hang.
LONGEST_S = 1800
# Libraries whose versions a result has.
COMPARED = ("torch", "numpy", "zarr", "obstore", "s3fs", "pylance", "tifffile", "fsspec", "litdata",
            "mosaicml-streaming", "webdataset")  # fmt: skip
SELF, CHILDREN = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN


def cpu_seconds():
    """The CPU of this process and of workers that have ended."""
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, (SELF, CHILDREN)))


def run_job(job):
    """One process: epochs of a loader, their seconds from opening on; raises where pixels are wrong."""
    import checks
    import numpy as np
    from remote_loaders import LOADERS, SEQUENTIAL, prepare
    from runs import find_memory, memory

    sums = np.load(job["sums"])
    own_order = job["loader"] in SEQUENTIAL

    def compare(rows, batch):
        found = checks.of_batch(batch.numpy(), job["dtype"])
        for row, one in zip(rows, found, strict=True):
            if one != sums[row]:
                raise ValueError(f"row {row} has other pixels than were written")

    prepare(job)
    asked = np.load(job["orders"])
    find_memory()
    before = memory()
    begin, cpu = time.perf_counter(), cpu_seconds()
    source = LOADERS[job["loader"]][0](job)
    epochs, first_batch_s, seen = [], None, 0
    for e in range(job["epochs"]):
        count, kept, end, order = 0, None, begin, []
        for rows, batch in source.epoch(e):
            if first_batch_s is None:
                first_batch_s = time.perf_counter() - begin
            count += len(rows)
            order.append(rows)
            if job["checked"]:
                compare(rows, batch)
                seen += len(rows)
            kept, end = kept or (rows, batch), time.perf_counter()
            # Readers of shards would go on to the end of the set.
            if count >= job["rows"]:
                break
        epochs.append({"s": end - begin, "images": count, "cpu_s": cpu_seconds() - cpu})
        compare(*kept)
        if not own_order and np.concatenate(order).tolist() != asked[e].tolist():
            raise ValueError(f"epoch {e + 1} has another order of rows than was asked for")
        begin, cpu = time.perf_counter(), cpu_seconds()
    if job["checked"] and seen < job["epochs"] * min(job["rows"], job["images"]):
        raise ValueError(f"{seen} images were delivered")
    more = max(after - at_first for after, at_first in zip(memory(peak=True), before, strict=True))
    stats = source.stats() if hasattr(source, "stats") else {}
    return {
        "first_batch_s": first_batch_s, "epochs": epochs, "memory_mb": more,
        **{f"loader_{name}": stats[name] for name in ("requests", "bytes_fetched", "bytes_read_per_used")
           if stats.get(name) is not None},
    }  # fmt: skip


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
    """The runs of a part: wellread in each format over the link, and the peers."""
    job = {
        "set": part, "images": kind.images, "rows": min(kind.rows, kind.images), "channels": kind.channels,
        "height": kind.height, "width": kind.width, "dtype": kind.dtype, "batch": BATCH, "threads": a.threads,
        "url": server.url, "folder": str(folder), "sums": str(folder / part / "checksums.npy"), "cache": None,
        "orders": None, "local": False, "format": None, "epochs": 1, "seed": 1, "checked": False,
    }  # fmt: skip
    ours = {**job, "loader": "wellread", "epochs": 2}
    found = {f"wellread {form}": {**ours, "format": form} for form in a.formats}
    for form in a.local:
        found[f"wellread {form}, folder"] = {**ours, "format": form, "local": True}
        found[f"wellread {form}, disk cache"] = {**ours, "format": form, "cache": "new"}
    found.update({peer: {**job, "loader": peer} for peer in a.peers})
    return found


def plan(names, rounds, rng):
    """The runs of each round in random order: a name, and whether it runs for the second time. One of wellread's
    variants and one of the peers, in turn, run twice."""
    import judge

    sides = [[name for name in names if name.startswith("wellread") == own] for own in (True, False)]
    turns = [judge.in_turn(side, rng) for side in sides if side]
    for _ in range(rounds):
        jobs = [(name, False) for name in names] + [(next(side), True) for side in turns]
        rng.shuffle(jobs)
        yield jobs


def measured(a, variants, environment, orders):
    """All rounds at one latency: runs by variant, what ran twice, and the link's limits by variant. `orders` makes
    the file of the rows of each epoch from a seed."""
    import job_process

    runs, limits, alive, twins = {name: [] for name in variants}, {}, list(variants), []

    def once(name, seed, **more):
        job = {**variants[name], **more, "seed": seed, "orders": str(orders(seed))}
        with tempfile.TemporaryDirectory() as cache:
            job["cache"] = cache if job["cache"] else None
            done = job_process.run(__file__, job, LONGEST_S, environment)
        said = done.get("error") or f"{done['epochs'][0]['images'] / done['epochs'][0]['s']:.0f} images/s"
        print(f"  round {job['seed']}/{a.rounds} {name}: {said}", file=sys.stderr, flush=True)
        return done

    if not a.unchecked:
        for name in variants:
            done = once(name, 0, checked=True)
            if "error" in done:
                runs[name] = [done]
                alive.remove(name)
    for round_, jobs in enumerate(plan(alive, a.rounds, random.Random(42)), 1):
        for name, again in jobs:
            done = {"round": round_, **once(name, round_)}
            if again:
                twins.append({"of": name, "side": "wellread" if name.startswith("wellread") else "peer", **done})
                continue
            runs[name].append(done)
            job = variants[name]
            if job["loader"] == "wellread" and "," not in name and not a.no_limit:
                limits.setdefault(name, []).append({"round": round_, **limit_of_link(a, job, environment)})
    return {"runs": runs, "twins": twins, "limits": limits}


def arguments(given=None):
    import job_process
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
    ap.add_argument("--local", default="", help="formats that wellread also reads from the folder and its disk cache")
    ap.add_argument("--no-limit", action="store_true", help="do not measure what the link gives at best")
    ap.add_argument("--unchecked", action="store_true", help="leave out the run that compares every pixel")
    ap.add_argument("--prepare", action="store_true", help="write the sets and end")
    ap.add_argument("--job", help=argparse.SUPPRESS)
    a = ap.parse_args(given)
    job_process.choose(ap, a, only=KINDS, formats=FORMATS, local=FORMATS, peers=peers)
    a.latency = [float(text) for text in a.latency.split(",")]
    return a


def main():
    import job_process

    a = arguments()
    if a.job:
        return job_process.answer(run_job, a.job)
    import dataclasses
    import functools

    import compare as peers_compare
    import numpy as np
    import remote_page
    import remote_sets
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
    formats = [*a.formats, *a.local, *(["tiff"] if "tifffile-fsspec" in a.peers else [])]
    for part, kind in kinds.items():
        write(a.wellread, data, part, kind, formats, {LOADERS[peer][1] for peer in a.peers})
    if a.prepare:
        return None
    facts = {"date": datetime.date.today().isoformat(), "machine": peers_compare.machine(), "rounds": a.rounds,
             "commit": peers_compare.commit(), "mbit": a.mbit, "threads": a.threads, "rules": remote_page.RULES,
             "readers": a.threads, "versions": peers_compare.versions(COMPARED),
             "command": peers_compare.command(sys.argv[1:], "remote.py")}  # fmt: skip
    result = {"facts": facts, "links": {}}
    with tempfile.TemporaryDirectory() as drawn, Loopback(program(data), "serve", data, mbit=a.mbit) as server:

        @functools.cache
        def orders(part, seed):
            path = Path(drawn) / f"{part}-{seed}.npy"
            np.save(path, remote_sets.orders(data / BUCKET / part, kinds[part], BATCH, 2, seed))
            return path

        environment = {**os.environ, **server.environment()}
        for part, kind in kinds.items():
            result["links"][part] = {"about": kind.about, "latencies": {}}
        for latency in a.latency:
            server.set(latency_ms=latency)
            for part, kind in kinds.items():
                print(f"{part}: {kind.about}, {latency:g} ms", file=sys.stderr, flush=True)
                variants = variants_of(a, part, kind, data / BUCKET, server)
                result["links"][part]["latencies"][f"{latency:g}"] = measured(
                    a, variants, environment, functools.partial(orders, part)
                )
                # What is finished is there, whatever comes.
                a.out.write_text(json.dumps(result, indent=1))
    return print(remote_page.section(result))


if __name__ == "__main__":
    main()
