"""wellread beside its peers: the same epochs, the same order of rows, the same clock and checks, in turns.

    python compare.py --out results/peers [--rounds 6] [--sets 1080,20k,1k] [--only tensorstore,zarr-array]
    python compare.py --out results/peers --sets 20k --add         # a run in parts: each set by a call of its own
    python compare.py --only write --out results/peers-writing
    python compare.py --write docs/peers.md results/peers/peers.json      # 100 x 100: docs/peers-small.md

In each round every loader runs once, in random order, each in a process of its own that does the same number of
epochs. One of wellread's and one of the peers, in turn, run twice, which gives the noise floor. Before
the rounds each runs once unmeasured, with every pixel of every epoch compared. Needs `wellread` for Python on the
path (`make bench-peers`).
"""

import argparse
import datetime
import functools
import importlib.metadata
import json
import multiprocessing
import os
import platform
import random
import resource
import shlex
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
# A Python >= 3.12 with annbatch and torch; without it annbatch is left out.
ANNBATCH_PYTHON = os.environ.get("ANNBATCH_PYTHON")
PRELOADED = ("numpy", "torch", "torch.utils.data", "pandas", "pyarrow.parquet")
# Seconds after which a run is ended, which is a failure.
TIME_LIMIT = 900

PARQUET, ZARR = "upstream's Parquet, untouched", "OME-Zarr folder"
CACHES = ("ram-cache-0", "ram-cache-2", "float-cache-0")
MAPPED = ("tifffile-mapped", "tifffile-mapped-0", "tifffile-mapped-threads")
TIFF = ("tifffile", "tifffile-0", "tifffile-threads", "tifffile-kept", *MAPPED)
OF_ZARR = ("zarr-python", "zarr-python-0", "zarr-threads", "zarr-array", "zarr-array-0", "zarr-batches",
           "zarr-images", "tensorstore", "tensorstore-array", "tensorstore-batches")  # fmt: skip
OF_ZARR_KEPT = ("tensorstore-kept", "tensorstore-array-kept", "tensorstore-batches-kept")
TUNED = ("pyarrow-row-groups", "pyarrow-binary", "annbatch-1", "annbatch-16")

# What wellread reads, as tables say it, and the peers beside it.
ROWS = {
    "wellread:images.parquet": (f"{PARQUET}, no preload", CACHES),
    "wellread:images.parquet,kept": (f"{PARQUET}, kept", CACHES),
    "wellread:tiff": ("TIFF folder", (*TIFF, "spdl")),
    "wellread:ome-zarr": (ZARR, OF_ZARR),
    # Kept images stand beside peers that keep them too.
    "wellread:ome-zarr,kept": (f"{ZARR}, kept", OF_ZARR_KEPT),
    "wellread:images.ome-arrow-dataset": ("ome-arrow dataset folder", ("ome-arrow",)),
    "wellread:images.lance": ("Lance", ("pylance", "pylance-bare")),
    "wellread:images.vortex": ("Vortex", ("vortex-data", "vortex-bare")),
    "wellread:keyed.duckdb": ("DuckDB, primary key", ("duckdb", "duckdb-bare")),
    "wellread:tuned.parquet": ("typed Parquet, an image per row group", TUNED),
    "wellread:typed.parquet": ("Parquet that wellread wrote, not compressed", ("pyarrow-binary",)),
    "wellread:tuned.parquet,kept": ("typed Parquet, kept", ("gather",)),
}


@dataclass
class Kind:
    """A set: what it is made of and what is run on it."""

    title: str
    images: int
    batch: int
    later: int
    """Epochs after the first, for all alike."""
    large: bool = False
    without: tuple = ()
    """Loaders that are left out, unless `--only` names them."""
    written: int | None = None
    """Images of the comparison of writing, where they are fewer."""


KINDS = {
    # Several times what loaders keep by themselves. The libraries write a few images a second, so fewer are written.
    "1080": Kind("1080 x 1080 uint16", 96, 4, 1, written=24),
    # Larger than what wellread keeps by itself (64 MiB of decoded pages, files held open). Left out: upstream's
    # tables and caches, whose images are Python objects when they are made, and 20,000 arrays of zarr-python, which
    # it opens one by one: it reads them as one array.
    "20k": Kind("100 x 100 uint8 noise", 20_000, 16, 1, True,
                (*CACHES, "spdl", "ome-arrow", "vortex-data", "vortex-bare", "duckdb", "zarr-python",
                 "zarr-python-0", "zarr-threads", "gather", *OF_ZARR_KEPT,
                 "wellread:ome-zarr,kept", "wellread:images.parquet", "wellread:images.parquet,kept",
                 "wellread:tuned.parquet,kept", "wellread:images.vortex", "wellread:images.ome-arrow-dataset")),
    "1k": Kind("100 x 100 uint8 noise", 1000, 16, 4, False,
               ("spdl", "ome-arrow", "wellread:images.ome-arrow-dataset")),
}  # fmt: skip
# What is not written of a large set.
NOT_LARGE = {*CACHES, "ome-arrow", "vortex-data", "vortex-bare", "wellread:images.parquet",
             "wellread:images.parquet,kept", "wellread:images.vortex",
             "wellread:images.ome-arrow-dataset"}  # fmt: skip


def rows_of(kind, only=None):
    """The rows of a set: wellread's loader, the peer, what tables call them."""
    import peers

    found = []
    for ours, (text, names) in ROWS.items():
        for name in names:
            if kind.large and (ours in NOT_LARGE or name in NOT_LARGE):
                continue
            if name.startswith("annbatch") and not ANNBATCH_PYTHON:
                continue
            if name not in only if only else (ours in kind.without or name in kind.without):
                continue
            found.append({"ours": ours, "peer": name, "set": text, "about": peers.LOADERS[name].about})
    return found


def loaders_of(rows):
    """Each loader once."""
    return list(dict.fromkeys(row[side] for row in rows for side in ("ours", "peer")))


class Processes:
    """Calls in processes of their own, forked from one that has imported torch, NumPy, pandas and pyarrow and done
    nothing else. Importing them takes longer than most of the runs."""

    def __init__(self):
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload([*PRELOADED, "runs"])

    def __call__(self, call, *arguments):
        import runs

        here, there = self.context.Pipe(duplex=False)
        process = self.context.Process(target=runs.serve, args=(there, call, *arguments))
        process.start()
        there.close()
        try:
            answer = here.recv() if here.poll(TIME_LIMIT) else {"error": f"took more than {TIME_LIMIT} s"}
        except EOFError:
            answer = {"error": "its process ended without an answer"}
        process.join(10)
        if process.is_alive():
            process.kill()
            process.join()
        return answer


def annbatch(task):
    """annbatch's run in an interpreter of its own (Python >= 3.12)."""
    done = subprocess.run([ANNBATCH_PYTHON, HERE / "runs.py", "-"], input=json.dumps(asdict(task)),
                          capture_output=True, text=True, cwd=HERE, env=os.environ)  # fmt: skip
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["failed"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def measure(in_process, task):
    """A run of a task."""
    import runs

    return annbatch(task) if task.name.startswith("annbatch") else in_process(runs.measure, task)


def compare(in_process, folder, about, kind, rounds, threads, only, rng):
    """All rows of a set: the runs of each loader and of those that ran twice."""
    import judge
    from runs import Task, orders_of

    rows = rows_of(kind, only)
    loaders = loaders_of(rows)
    runs, twins = {name: [] for name in loaders}, []

    @functools.cache
    def orders(seed, later):
        found = in_process(orders_of, str(folder), about["whole"], kind.batch, 1 + later, seed)
        if isinstance(found, dict):
            raise SystemExit(f"wellread cannot tell its order: {found['error']}")
        return found

    def run(name, round_, later, checked=False):
        task = Task(name, str(folder), kind.batch, threads, later, round_, orders(round_, later), checked)
        begin = time.perf_counter()
        done = {"round": round_, **measure(in_process, task)}
        said = done.get("error") or f"{time.perf_counter() - begin:.1f} s"
        print(f"  round {round_}/{rounds} {name}: {said}", file=sys.stderr, flush=True)
        return done

    # The round of warm-up, in which all pixels are compared.
    broken = {}
    for name in rng.sample(loaders, len(loaders)):
        done = run(name, 0, 1, checked=True)
        if "error" in done:
            broken[name] = done
    alive = [name for name in loaders if name not in broken]
    sides = [[name for name in alive if name.startswith("wellread:") == own] for own in (True, False)]
    turns = [judge.in_turn(side, rng) for side in sides if side]
    for round_ in range(1, rounds + 1):
        jobs = [(name, False) for name in alive] + [(next(names), True) for names in turns]
        rng.shuffle(jobs)
        for name, again in jobs:
            done = run(name, round_, kind.later)
            if again:
                twins.append({"of": name, **done})
            else:
                runs[name].append(done)
    runs.update({name: [done] for name, done in broken.items()})
    return {"rows": rows, "runs": runs, "twins": twins}


def bind(threads):
    """So many threads in the pools of libraries that go by processors, and so many processors. Before anything that
    reads the variables starts threads."""
    for name in ("OMP_NUM", "LANCE_CPU", "LANCE_IO", "RAYON_NUM", "TOKIO_WORKER"):
        os.environ[f"{name}_THREADS"] = str(threads)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def machine():
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    guest = any(line.startswith("flags") and "hypervisor" in line.split() for line in lines)
    kind = "virtual processors of a shared host" if guest else "processors"
    return f"{os.cpu_count()} {kind} ({model}), {platform.system()} {platform.release()}"


COMPARED = ("torch", "numpy", "tifffile", "zarr", "tensorstore", "pyarrow", "duckdb", "pylance", "vortex-data",
            "ome-arrow", "spdl", "litdata", "imagecodecs")  # fmt: skip


def versions(names=COMPARED):
    """The versions of what is compared, as far as it is installed."""
    found = {"Python": platform.python_version()}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def add(found, begun):
    """The result so far with the sets of one more call; ValueError where that is of another commit or machine."""
    kept, facts = begun["facts"], found["facts"]
    other = [name for name in facts if name not in ("command", "date", "files") and kept.get(name) != facts[name]]
    if other:
        raise ValueError(f"its {', '.join(other)} differ from those of this call")
    facts = {**kept, "command": f"{kept['command']}; {facts['command']}", "date": later(kept["date"], facts["date"]),
             "files": kept["files"] or facts["files"]}  # fmt: skip
    names = [one["name"] for one in found["sets"]]
    sets = [one for one in begun["sets"] if one["name"] not in names] + found["sets"]
    order = list(KINDS)
    return {"facts": facts, "sets": sorted(sets, key=lambda one: order.index(one["name"]))}


def later(begun, ended):
    """The days of a run in parts."""
    first = begun.split(" to ")[0]
    return first if first == ended else f"{first} to {ended}"


def commit():
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def command(words, script="compare.py"):
    """How this was called, without the folders of this machine."""
    left_out, said = ("--out", "--wellread", "--write-to", "--data"), []
    for before, word in zip(["", *words], words, strict=False):
        if word not in left_out and before not in left_out and not word.startswith(tuple(f"{x}=" for x in left_out)):
            said.append(Path(word).name if os.path.isabs(word) else word)
    return shlex.join([script, *said])


def write(page, result):
    """Puts the tables of a result into a page."""
    import page as pages

    try:
        text = pages.put(Path(page).read_text(), json.loads(Path(result).read_text()))
    except ValueError as error:
        raise SystemExit(f"{page} is left as it is: {error}") from None
    Path(page).write_text(text)


def arguments(given=None):
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", type=Path, default=Path("results/peers"))
    ap.add_argument("--wellread", default=os.environ.get("WELLREAD") or "wellread", help="the program; writes sets")
    ap.add_argument("--rounds", type=int, default=6)
    ap.add_argument(
        "--threads", type=int, default=2, help="threads or workers of each loader, and processors they have"
    )
    ap.add_argument("--sets", default=",".join(KINDS), help="which sets, of " + ", ".join(KINDS))
    ap.add_argument("--images", action="append", default=[], metavar="SET=N", help="images of a set")
    ap.add_argument("--add", action="store_true", help="keep the other sets of the result in --out: a run in parts")
    ap.add_argument("--prepare", action="store_true", help="write the sets and end")
    ap.add_argument("--real", help="folder of 1080 x 1080 uint16 TIFFs; cells are generated without it")
    ap.add_argument("--only", help="only the rows of these peers, or write: the comparison of writing")
    # A disk's file system adds its own: ext4 makes files more slowly for minutes after others were removed.
    memory = Path("/dev/shm")
    ap.add_argument("--write-to", type=Path, default=memory if memory.is_dir() else None,
                    help="folder in which writing is timed; default: in memory, if there is one")  # fmt: skip
    ap.add_argument("--writes", help="formats whose writing is compared")
    ap.add_argument("--write", nargs=2, metavar=("PAGE", "RESULT"), help="put a result's tables into a page, and end")
    a = ap.parse_args(given)
    unknown = [name for name in a.sets.split(",") if name not in KINDS]
    if unknown:
        ap.error(f"no set {', '.join(unknown)}")
    known = {name for _, names in ROWS.values() for name in names} | {"write"}
    a.only = a.only.split(",") if a.only else None
    if a.only and not known.issuperset(a.only):
        ap.error(f"--only: of {', '.join(sorted(known))}")
    for one in a.images:
        name, _, count = one.partition("=")
        if name not in KINDS or not count.isdigit():
            ap.error(f"--images {one}: SET=N")
        KINDS[name].images, KINDS[name].written = int(count), None
    if a.only == ["write"]:
        for kind in KINDS.values():
            kind.images = kind.written or kind.images
        if a.add:
            ap.error("--add: a comparison of writing is one call")
    return a


def main():
    a = arguments()
    if a.write:
        return write(*a.write)
    bind(a.threads)
    in_process = Processes()
    import page
    import sets

    a.out = a.out.resolve()
    a.out.mkdir(parents=True, exist_ok=True)
    rng = random.Random(42)
    result = {
        "facts": {
            "command": command(sys.argv[1:]), "rules": page.RULES,
            "commit": commit(), "date": datetime.date.today().isoformat(), "machine": machine(),
            "threads": a.threads, "open_files": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
            "versions": versions(), "files": sets.real_files(a.real),
        }
    }  # fmt: skip
    there = a.out / "peers.json"
    begun = json.loads(there.read_text()) if a.add and there.exists() else None
    if begun:
        # Told before an hour is measured.
        try:
            add({**result, "sets": []}, begun)
        except ValueError as error:
            raise SystemExit(f"{there}: {error}: call without --add, or with another --out") from None
    folders = {}
    for name in a.sets.split(","):
        kind = KINDS[name]
        real = sets.about_fields(a.real, kind.images) if name == "1080" else ""
        title = f"{kind.images:,} images, {kind.title}{real}, batches of {kind.batch}"
        folder = a.out / "data" / f"{name}-{kind.images}"
        print(f"{title}", file=sys.stderr, flush=True)
        images = sets.fields(kind.images, a.wellread, a.out, a.real) if name == "1080" else sets.noise(kind.images)
        if kind.large:
            about = sets.write_large(folder, images, a.wellread)
        else:
            about = sets.write(folder, images, a.wellread, result["facts"]["files"] if name == "1080" else ())
        folders[name] = title, folder, about
    if a.prepare:
        return
    if a.only == ["write"]:
        import writes

        chosen = [
            (title.rpartition(",")[0], folder)
            for name, (title, folder, _) in folders.items()
            if not KINDS[name].large
        ]
        formats = a.writes.split(",") if a.writes else list(writes.FORMATS)
        result["writing"] = writes.compare(chosen, a.write_to, a.rounds, formats, in_process, a.wellread, rng)
    else:
        result["sets"] = []
        for name, (title, folder, about) in folders.items():
            kind = KINDS[name]
            sets.warm(folder)
            print(title, file=sys.stderr, flush=True)
            one = compare(in_process, folder, about, kind, a.rounds, a.threads, a.only, rng)
            known = {"name": name, "title": title, "images": kind.images, "batch": kind.batch, "later": kind.later}
            result["sets"].append({**known, **one})
            # What is finished is there, whatever comes.
            whole = add(result, begun) if begun else result
            there.write_text(json.dumps(whole, indent=1))
        result = whole
    there.write_text(json.dumps(result, indent=1))
    print("\n\n".join(page.sections(result).values()))


if __name__ == "__main__":
    main()
