"""wellread on a Ray cluster beside Ray Data's own readers, and commands on it beside one process (`make bench-ray`).

    python benches/on_ray.py --out results/on-ray.json [--rounds 6] [--only read,commands] [--kinds small,large]
                             [--images 100000] [--small 10000] [--large 256] [--cpus 2]

 read      images/s per core of `wellread.ray.read`, `ray.data.read_images`, `ray.data.read_parquet` with decoding in
           `map_batches`, and Ray Data over tifffile and zarr-python: all of a set, by the driver in batches of 16;
           10,000 images of 100 x 100, uint8; 256 images of 1080 x 1080, uint16
 commands  `convert --on ray` and `stats --on ray` beside the same command in one process, on the same cores:
           100,000 images of 100 x 100 (--images)

One cluster of two processors serves all. A round is each variant once, in an order that is turned by one from round
to round. Each run is a process of its own, which reads the set twice: at first Ray starts its workers, later they are
there. Before the rounds each variant runs once unmeasured, and the checksum of every image is compared; of a timed
read those of one batch are. Each result of a command is compared. A ratio is that of one round; the table has
medians, with 95 % intervals from six rounds on. The run before the rounds also tells how much memory a worker of Ray
holds by itself at most. `WELLREAD` names the program, `PYTHONPATH` has the package.

The script may not be called ray.py: it would be what `import ray` finds.
"""

import argparse
import contextlib
import dataclasses
import datetime
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "peers"), str(HERE / "on_ray")]

BATCH = 16
PASSES = 2
# What a process may take at most: one that takes longer is said to hang.
LONGEST_S = 3600
# Memory of Ray for blocks.
STORE = 2 << 30
# Time that a command on a cluster may take beyond one process.
OVERHEAD = 0.15
# Bytes that a worker of wellread may hold with these sets: three blocks of 64 MiB and 64 MiB of decoded pages, beside
# Python and its libraries.
WORKER_MOST = 512 << 20
TWIN = "wellread parquet"


def run_job(job):
    """One process: the set, read twice, from making the dataset on; raises where pixels are wrong."""
    import numpy as np
    import ray
    from ray_loaders import LOADERS
    from ray_sets import checksum, expected

    ray.init(address=job["address"], log_to_driver=False, logging_level="ERROR")
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    wanted = Counter(expected(job["folder"]))

    def sums(batch):
        images = np.asarray(batch["image"])
        stored = images.astype(job["dtype"])
        if not np.array_equal(stored, images):
            raise ValueError("pixels that are no stored values")
        return Counter(checksum(np.ascontiguousarray(np.squeeze(image))) for image in stored)

    passes = []
    for _ in range(PASSES):
        begin = time.perf_counter()
        count, kept, found = 0, None, Counter()
        dataset = LOADERS[job["loader"]](job)
        for batch in dataset.iter_batches(batch_size=BATCH, batch_format="numpy"):
            count += len(batch["image"])
            if job["checked"]:
                found += sums(batch)
            elif kept is None:
                kept = {"image": np.array(batch["image"])}
        passes.append(time.perf_counter() - begin)
        if kept is not None:
            found = sums(kept)
        if count != job["images"] or found - wanted or (job["checked"] and found != wanted):
            raise ValueError(
                f"{count} images of {job['images']}, {(found - wanted).total()} of them with other pixels"
            )
    ray.shutdown()
    return {"passes_s": passes, "images": job["images"]}


def rounds(a, variants, once):
    """Runs each variant unmeasured and then once a round, in turned orders; what each round said. The first also has
    the memory of the unmeasured run. A variant that fails is left out from then on."""
    import worker_memory

    held = {}
    runs, alive = {name: [] for name in variants}, list(variants)
    for round_ in range(a.rounds + 1):
        turn = round_ % max(1, len(alive))
        for name in alive[turn:] + alive[:turn]:
            with contextlib.nullcontext() if round_ else worker_memory.watched() as memory:
                done = {"round": round_, **once(name, round_)}
            said = done.get("error") or ", ".join(f"{s:.2f} s" for s in done["passes_s"])
            print(f"  round {round_}/{a.rounds} {name}: {said}", file=sys.stderr, flush=True)
            if "error" in done:
                runs[name] = [done]
                alive.remove(name)
            elif round_:
                runs[name].append(done | held.pop(name, {}))
            else:
                held[name] = {"worker_bytes": memory.most}
    return runs


def readers(a, address, kind, folder):
    """All rounds of reading a set."""
    import job_process
    from ray_loaders import LOADERS

    job = {"address": address, "folder": str(folder), "images": kind.images, "height": kind.height,
           "width": kind.width, "dtype": kind.dtype, "image_bytes": kind.image_bytes}  # fmt: skip
    # The same loader twice in a round tells the noise.
    variants = {name: name for name in LOADERS} | {f"{TWIN}, again": TWIN}

    def once(name, round_):
        return job_process.run(__file__, {**job, "loader": variants[name], "checked": round_ == 0}, LONGEST_S)

    return rounds(a, variants, once)


def checksums(wellread, path):
    """The images of a set, in text."""
    done = subprocess.run([wellread, "--json", "checksum", str(path)], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else done.stderr


def commands(a, address, source, folder):
    """All rounds of the commands, on the cluster and in one process on as many processors."""
    target, stats = folder / "target.parquet", folder / "stats.json"
    line = {
        "convert": ["convert", str(source), str(target)],
        "stats": ["stats", str(source), "--out", str(stats)],
    }
    places = {"one process": ["--jobs", str(a.cpus)], "ray": ["--on", f"ray:{address}"]}
    variants = {f"{command}, {place}": (command, place) for command in line for place in places}
    # A set that is converted holds what its source holds; statistics are those of the first run.
    known = {"convert": checksums(a.wellread, source)}

    def clear():
        shutil.rmtree(target, ignore_errors=True)
        if target.is_file():
            target.unlink()
        stats.unlink(missing_ok=True)

    def came(command):
        """The results of a command, by which runs are compared."""
        if command == "stats":
            return stats.read_text()
        return checksums(a.wellread, target)

    def once(name, _):
        command, place = variants[name]
        clear()
        begin = time.perf_counter()
        words = [a.wellread, "--quiet", *line[command], *places[place]]
        done = subprocess.run(words, capture_output=True, text=True)
        seconds = time.perf_counter() - begin
        if done.returncode:
            return {"error": (done.stderr.strip() or "it failed").splitlines()[-1][:300]}
        found = came(command)
        if known.setdefault(command, found) != found:
            return {"error": "what came of it is not what has to come of it"}
        return {"passes_s": [seconds]}

    found = rounds(a, variants, once)
    clear()
    return found


def seconds(runs, which):
    """Seconds of a pass, in the order of the rounds."""
    return [run["passes_s"][which] for run in runs if "error" not in run]


def paired(one, other, which):
    """Seconds of a pass of both sides, in the rounds that both have."""
    from page import paired

    return [seconds(runs, which) for runs in paired(one, other)]


def in_words(verdict, other):
    spread = f" ({verdict.low:.2f}–{verdict.high:.2f})" if verdict.low is not None else ""
    unclear = "" if verdict.clear else f"; no verdict: {verdict.refused}"
    return f"{verdict.estimate:.2f}{spread} times as fast ({other}){unclear}"


def in_megabytes(of, is_ours):
    """What a worker held at most, and its bound."""
    held = next((run["worker_bytes"] for run in of if "worker_bytes" in run), 0)
    if not held:
        return ""
    return f"{held / 1e6:.0f}" + (f" (at most {WORKER_MOST / 1e6:.0f})" if is_ours else "")


def read_table(found, cpus):
    """The lines of a kind."""
    import judge
    from ray_loaders import COMPARED

    runs, kind = found["runs"], found["kind"]
    lines = [
        "| reader | images/s per core, first | later | wellread is, of later ones | goal | a worker holds, MB |",
        "|---|---|---|---|---|---|",
    ]
    twins = paired(runs[TWIN], runs[f"{TWIN}, again"], 1)
    floor = judge.noise_floor([one / other for one, other in zip(*twins, strict=True)])
    for name, of in runs.items():
        if not of or "error" in of[0]:
            lines.append(f"| {name} | {of[0]['error'] if of else 'not run'} | | | | |")
            continue
        rates = [[kind["images"] / s / cpus for s in seconds(of, which)] for which in range(PASSES)]
        first, later = (f"{statistics.median(rate):.0f} ({min(rate):.0f}–{max(rate):.0f})" for rate in rates)
        times, goal = "", ""
        ours = runs.get(COMPARED.get(name), [])
        if seconds(ours, 1):
            peer, own = paired(of, ours, 1)
            times, goal = in_words(judge.judge(peer, own, floor), COMPARED[name]), kind["goal"]
        held = in_megabytes(of, name not in COMPARED)
        lines.append(f"| {name} | {first} | {later} | {times} | {goal} | {held} |")
    return lines


def command_table(runs):
    """The lines of the commands."""
    import judge

    lines = [
        "| command | one process, s | on ray, s | takes longer by | goal | a worker holds, MB |",
        "|---|---|---|---|---|---|",
    ]
    for command in ("convert", "stats"):
        sides = [runs[f"{command}, {place}"] for place in ("one process", "ray")]
        failed = [of[0]["error"] for of in sides if of and "error" in of[0]]
        if failed or not all(sides):
            lines.append(f"| {command} | {'; '.join(failed) or 'not run'} | | | | |")
            continue
        one, on_ray = paired(*sides, 0)
        ratios = [b / a for a, b in zip(one, on_ray, strict=True)]
        ends = judge.interval(ratios)
        spread = f" ({ends[0] - 1:.0%} to {ends[1] - 1:.0%})" if ends else ""
        medians = [f"{statistics.median(of):.2f} ({min(of):.2f}–{max(of):.2f})" for of in (one, on_ray)]
        more = statistics.median(ratios) - 1
        longer = f"{more:.0%}{spread} | at most {OVERHEAD:.0%}"
        held = in_megabytes(sides[1], True)
        lines.append(f"| {command} | {medians[0]} | {medians[1]} | {longer} | {held} |")
    return lines


def page(result):
    """The tables."""
    f = result["facts"]
    lines = [f"{f['rounds']} rounds on {f['date']}, {f['machine']}, {f['cpus']} of them used; commit {f['commit']}."]
    for found in result.get("read", {}).values():
        lines += ["", f"### {found['kind']['about']}", "", *read_table(found, f["cpus"])]
    if "commands" in result:
        lines += ["", f"### {result['commands']['about']}", "", *command_table(result["commands"]["runs"])]
    return "\n".join(lines)


@contextlib.contextmanager
def cluster(cpus):
    """The address of a cluster of one node, which this process is not connected to."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    there = Cluster(initialize_head=True, head_node_args={"num_cpus": cpus, "object_store_memory": STORE})
    try:
        yield there.address
    finally:
        there.shutdown()


def arguments(given=None):
    import job_process

    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", type=Path, default=Path("results/on-ray.json"))
    ap.add_argument("--data", type=Path, help="folder of the sets, which are used again; default: beside --out")
    ap.add_argument("--wellread", default=os.environ.get("WELLREAD") or "wellread", help="the program; writes sets")
    ap.add_argument("--rounds", type=int, default=6)
    ap.add_argument("--only", default="read,commands", help="parts")
    ap.add_argument("--kinds", default="small,large", help="of sets that are read")
    ap.add_argument("--images", type=int, default=100_000, help="of the set of the commands")
    ap.add_argument("--small", type=int, default=10_000, help="images of 100 x 100 that are read")
    ap.add_argument("--large", type=int, default=256, help="images of 1080 x 1080 that are read")
    ap.add_argument("--cpus", type=int, default=2, help="processors of the cluster, and of one process")
    ap.add_argument("--prepare", action="store_true", help="write the sets and end")
    ap.add_argument("--job", help=argparse.SUPPRESS)
    a = ap.parse_args(given)
    job_process.choose(ap, a, only=("read", "commands"), kinds=("small", "large"))
    return a


def main():
    import job_process

    a = arguments()
    if a.job:
        return job_process.answer(run_job, a.job)
    import compare as peers_compare
    import ray_sets

    a.out = a.out.resolve()
    data = (a.data or a.out.parent / "on-ray-data").resolve()
    data.mkdir(parents=True, exist_ok=True)
    counts = {"small": a.small, "large": a.large}
    kinds = {name: dataclasses.replace(ray_sets.KINDS[name], images=counts[name]) for name in a.kinds}
    many = dataclasses.replace(ray_sets.KINDS["small"], images=a.images)
    if "read" in a.only:
        for name, kind in kinds.items():
            ray_sets.write(a.wellread, data / f"{name}-{kind.images}", kind)
    if "commands" in a.only:
        source = ray_sets.write_source(a.wellread, data / f"many-{a.images}", many)
    if a.prepare:
        return None
    # All that is started from here on, the cluster too, has these processors alone.
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: a.cpus])
    os.environ["WELLREAD_PYTHON"] = sys.executable
    facts = {"date": datetime.date.today().isoformat(), "machine": peers_compare.machine(), "rounds": a.rounds,
             "commit": peers_compare.commit(), "cpus": a.cpus}  # fmt: skip
    result = {"facts": facts}
    with cluster(a.cpus) as address:
        for name, kind in kinds.items() if "read" in a.only else ():
            print(kind.about, file=sys.stderr, flush=True)
            runs = readers(a, address, kind, data / f"{name}-{kind.images}")
            about = {**dataclasses.asdict(kind), "about": kind.about}
            result.setdefault("read", {})[name] = {"kind": about, "runs": runs}
            # What is finished is there, whatever comes.
            a.out.write_text(json.dumps(result, indent=1))
        if "commands" in a.only:
            print(f"commands: {many.about}", file=sys.stderr, flush=True)
            runs = commands(a, address, source, data)
            result["commands"] = {"about": many.about, "runs": runs}
            a.out.write_text(json.dumps(result, indent=1))
    return print(page(result))


if __name__ == "__main__":
    main()
