"""Plates and cells beside their peers: sites of several files, crops of cells, views, opening (docs/peers-plates.md).

    python benches/plates.py --out results/plates.json [--rounds 6] [--sites 192] [--seconds 1] [--only a,b]
    python benches/plates.py --write docs/peers-plates.md results/plates.json

 a  sites of 5 channels, 1080 x 1080, a TIFF for each channel: torch DataLoader + tifffile
 b  crops of cells in fully random order: the same peer, which reads whole images; zarr-python and tensorstore
 c  crops in block order beside the same crops stored in Lance, and these beside any other images in Lance
 d  two views beside one
 e  opening a plate of 34,560 files

A round is each variant once, in random order, each in a process of its own; one of wellread's and one of the peers',
in turn, run a second time, which gives the noise floor. Before the rounds each runs once unmeasured,
with every pixel of two epochs compared. `WELLREAD` names the program, `PYTHONPATH` has the package.
"""

import argparse
import dataclasses
import datetime
import functools
import json
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "peers"), str(HERE / "plates")]

# Sites whose cells are stored, and read in block order; blocks that are mixed.
FEW, BLOCK = 24, 8
# As self-supervised training draws: a part of the image, resized, flipped, its intensities changed.
RECIPE = {"flip": True, "brightness": 0.2, "contrast": 0.2}
# Later epochs at most.
LATER = 12


@dataclasses.dataclass
class Variant:
    """A loader on a set."""

    about: str
    job: object
    rows: int | None = None
    """Rows of an epoch, drawn anew in each round; all unless given."""
    order_of: str | None = None
    """The variant, of wellread, whose order this one is given; its own, if none."""


@dataclasses.dataclass
class Row:
    """A ratio: seconds of `top` by seconds of `bottom`, and what is wanted of it."""

    what: str
    top: str
    bottom: str
    goal: float | None
    """None where nobody set one."""
    at_most: bool = False


def variants_of(a, sets):
    """The variants of each part, and the rows of its table."""
    from plate_runs import Job

    parts = {name: ({}, []) for name in "abcd"}

    def job(loader, made, batch, cells=None, **more):
        name = {None: "sites", "all": "cells", "few": "few"}[cells]
        table = str(made.table(cells == "few")) if cells else None
        return Job(loader, str(made.images), batch, a.threads, a.seconds, made, table, cells == "few",
                   **{"expected": str(made.folder / f"{name}.npy"), **more})  # fmt: skip

    def beside(part, name, made, batch, rows, cells, peers, goal):
        found, table = parts[part]
        ours = f"wellread {name}"
        found[ours] = Variant("wellread", job("wellread", made, batch, cells), rows)
        for peer, about in peers.items():
            found[f"{peer} {name}"] = Variant(about, job(peer, made, batch, cells), rows, ours)
            # The goals of crops are beside who reads whole images.
            wanted = None if part == "b" and peer.startswith("tifffile-mapped") else goal
            table.append(Row(NAMES[name], f"{peer} {name}", ours, wanted))

    page = {"tifffile": "tifffile, first page, torch DataLoader, 2 workers"}
    whole = {"tifffile": "tifffile, whole image, sliced, torch DataLoader, 2 workers"}
    plain = {"tifffile-imread": "tifffile.imread, torch's own collation, 2 workers"}
    mapped = {"tifffile-mapped": "tifffile.memmap, kept mapped, torch DataLoader, 2 workers"}
    # Reading is quick without a codec, and workers have to send what they read.
    alone = {"tifffile-0": "tifffile, first page, torch DataLoader, 0 workers",
             "tifffile-threads": "tifffile, first page, whole batches, threads",
             "tifffile-mapped-0": "tifffile.memmap, kept mapped, torch DataLoader, 0 workers",
             "tifffile-mapped-threads": "tifffile.memmap, kept mapped, whole batches, threads"}  # fmt: skip
    alone_whole = alone | {"tifffile-0": "tifffile, whole image, sliced, torch DataLoader, 0 workers",
                           "tifffile-threads": "tifffile, whole image, sliced, whole batches, threads"}  # fmt: skip
    zarrs = {"zarr-python": "zarr-python, arrays opened once, torch DataLoader, 2 workers",
             "zarr-python-0": "zarr-python, arrays opened once, torch DataLoader, 0 workers",
             "zarr-python-threads": "zarr-python, arrays opened once, whole batches, threads",
             "tensorstore": "tensorstore, arrays opened once"}  # fmt: skip
    few = min(FEW, a.sites)
    beside("a", "lzw", sets["lzw"], 4, None, None, page | plain, 8)
    beside("a", "none", sets["none"], 4, None, None, page | plain | mapped | alone, 8)
    beside("b", "lzw", sets["lzw"], 8, a.crops // 8, "all", whole, 20)
    beside("b", "none", sets["none"], 32, a.crops, "all", whole | mapped | alone_whole, 20)
    beside("b", "zarr", sets["zarr"], 32, a.crops, "all", zarrs, 5)

    found, table = parts["c"]
    # So many images as are mixed and half of them again: epochs decode anew.
    site = 2 * 5 * a.size**2
    kept = f"lru:{max(1, BLOCK * 3 * site // 2 >> 20)}MiB"
    store = a.data / "stored"
    crops = Job("wellread", str(store / "crops.lance"), 32, a.threads, a.seconds,
                expected=str(sets["none"].folder / "few.npy"))  # fmt: skip
    found["stored"] = Variant("crops stored in Lance, shuffled", crops)
    others = dataclasses.replace(crops, path=str(store / "usual" / "images.lance"), expected=None)
    found["usual"] = Variant("other images of that shape in Lance, shuffled", others)
    for name in ("lzw", "none", "zarr"):
        one = job("wellread", sets[name], 32, "few", block=min(BLOCK, few), cache=kept)
        found[f"block {name}"] = Variant("cut out, block order", one)
        table.append(Row(f"{NAMES[name]}: block order of crops stored", "stored", f"block {name}", 0.5))
    table.append(Row("crops stored of other images stored", "usual", "stored", 0.9))

    found, table = parts["d"]
    sources = {
        "sites": (job("wellread", sets["lzw"], 4), min(24, a.sites), min(224, a.size)),
        "cells": (job("wellread", sets["lzw"], 32, "few", block=min(BLOCK, few), cache=kept), None, 96),
        "stored": (crops, None, 96),
    }
    about = {"sites": f"sites, {NAMES['lzw']}", "cells": f"cells in block order, {NAMES['lzw']}",
             "stored": "crops stored in Lance"}  # fmt: skip
    for name, (one, rows, size) in sources.items():
        recipe = tuple({**RECIPE, "random_resized_crop": size}.items())
        one = dataclasses.replace(one, recipe=recipe, expected=None)
        found[f"one {name}"] = Variant("one view", one, rows)
        found[f"two {name}"] = Variant("two views", dataclasses.replace(one, views=2), rows, f"one {name}")
        table.append(Row(f"two views of one: {about[name]}", f"two {name}", f"one {name}", 1.6, at_most=True))
    return parts


NAMES = {"lzw": "TIFF, LZW in one strip (as JUMP's microscope writes)", "none": "TIFF, not compressed",
         "zarr": "OME-Zarr, chunks of 256 x 256, Zstandard"}  # fmt: skip


def compare(in_process, variants, rounds):
    """All rounds of a part: the runs of each variant, and of the one that ran twice."""
    import judge
    import numpy as np
    from plate_runs import copy, measure, orders_of

    names = list(variants)
    runs, twins, copies, broken = {name: [] for name in names}, [], [], {}

    @functools.cache
    def drawn(name, seed):
        """The rows of a round and their orders."""
        variant = variants[name]
        job, rows = dataclasses.replace(variant.job, seed=seed), None
        if variant.rows:
            among = len(np.load(job.expected)) if job.expected else len(job.plate.sites())
            rows = sorted(random.Random(seed).sample(range(among), min(variant.rows, among)))
            job = dataclasses.replace(job, rows=rows)
        found = in_process(orders_of, job, 1 + LATER)
        if isinstance(found, dict):
            raise SystemExit(f"{name}: wellread cannot tell its order: {found['error']}")
        return rows, found

    def run(name, round_, checked=False):
        rows, orders = drawn(variants[name].order_of or name, round_)
        more = {"rows": rows, "orders": orders[:2] if checked else orders, "seed": round_, "checked": checked}
        begin = time.perf_counter()
        done = {"round": round_, **in_process(measure, dataclasses.replace(variants[name].job, **more))}
        said = done.get("error") or f"{time.perf_counter() - begin:.1f} s"
        say(f"  round {round_}/{rounds} {name}: {said}")
        return done

    for name in names:
        done = run(name, 0, checked=True)
        if "error" in done:
            broken[name] = done
    alive = [name for name in names if name not in broken]
    rng = random.Random(42)
    sides = {"wellread": [], "peer": []}
    for name in alive:
        sides["wellread" if variants[name].job.loader == "wellread" else "peer"].append(name)
    turns = {side: judge.in_turn(of, rng) for side, of in sides.items() if of}
    for round_ in range(1, rounds + 1):
        copies.append(in_process(copy, 1))
        jobs = [(name, None) for name in alive] + [(next(of), side) for side, of in turns.items()]
        rng.shuffle(jobs)
        for name, side in jobs:
            done = run(name, round_)
            if side:
                twins.append({"of": name, "side": side, **done})
            else:
                runs[name].append(done)
    for name, done in broken.items():
        runs[name] = [done]
    return {"runs": runs, "twins": twins, "copy": copies}


def forget():
    """Has the system forget all files and folders; whether it may be told to."""
    try:
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
    except OSError:
        return False
    return True


def opening(in_process, a):
    """Opening a plate of many small files, in processes of their own: with nothing in memory, where this process may
    have the system forget it; with folders in memory; and with whatever wellread keeps of the plate as well."""
    import plate_sets as sets
    from plate_runs import opened

    folder = a.data / "opening"
    files = sets.opening(a.wellread, folder, a.wells)
    may_drop = not a.keep_caches and forget()
    found = {"forgotten": [], "first": [], "after": []}
    for round_ in range(a.rounds + 1):
        cache = tempfile.mkdtemp(prefix="wellread-plates-")
        for name in found:
            if name == "forgotten":
                if not may_drop:
                    continue
                forget()
            if name != "after":
                shutil.rmtree(cache, ignore_errors=True)
                os.makedirs(cache)
            done = in_process(opened, str(folder / "images"), cache, a.wells * 18)
            said = done.get("error") or f"{done['open_s']:.3f} s"
            say(f"  round {round_}/{a.rounds} opening, {name}: {said}")
            if round_ or "error" in done:
                found[name].append({"round": round_, **done})
        shutil.rmtree(cache, ignore_errors=True)
    return {"files": files, "runs": found, "dropped": may_drop}


def say(text):
    print(text, file=sys.stderr, flush=True)


def arguments(given=None):
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", type=Path, default=Path("results/plates.json"))
    ap.add_argument("--data", type=Path, help="folder of the sets, which are used again; default: beside --out")
    ap.add_argument("--wellread", default=os.environ.get("WELLREAD") or "wellread", help="the program; writes sets")
    ap.add_argument("--rounds", type=int, default=6)
    ap.add_argument("--sites", type=int, default=192, help="sites of the plate of parts a to d")
    ap.add_argument("--size", type=int, default=1080, help="their height and width")
    ap.add_argument("--crops", type=int, default=4096, help="crops of an epoch in part b; an eighth of it with LZW")
    ap.add_argument("--wells", type=int, default=384, help="wells of the plate of part e, of 90 files each")
    ap.add_argument("--seconds", type=float, default=1, help="of the later epochs of a run; one epoch at least")
    ap.add_argument("--threads", type=int, default=2, help="of each loader, and processors they have")
    ap.add_argument("--only", default="a,b,c,d,e", help="parts")
    ap.add_argument("--keep-caches", action="store_true", help="part e does not have the system forget files")
    ap.add_argument("--prepare", action="store_true", help="write the sets and end")
    ap.add_argument("--write", nargs=2, metavar=("PAGE", "RESULT"), help="put a result's tables into a page, and end")
    a = ap.parse_args(given)
    a.only = a.only.split(",")
    if not set("abcde").issuperset(a.only):
        ap.error("--only: of a,b,c,d,e")
    if a.size < 128 or a.sites < 2 or a.crops < 16 or a.rounds < 1:
        ap.error("--size from 128, --sites from 2, --crops from 16, --rounds from 1")
    return a


def facts_of(a, script, **more):
    """What a result says about its run."""
    import compare as peers_compare

    return {
        "command": peers_compare.command(sys.argv[1:], script), "commit": peers_compare.commit(),
        "date": datetime.date.today().isoformat(), "machine": peers_compare.machine(), "threads": a.threads,
        "versions": peers_compare.versions(), "rounds": a.rounds, "sites": a.sites, "size": a.size, **more,
    }  # fmt: skip


def write_sets(a):
    """All sets of the parts that are asked for."""
    import plate_sets as sets

    made = {}
    if set("abcd") & set(a.only):
        few = min(FEW, a.sites)
        for kind in ("none", "lzw", "zarr"):
            begin = time.perf_counter()
            made[kind] = sets.plate(a.wellread, a.data / kind, kind, a.sites, a.size)
            sets.few(made[kind], few)
            sets.checksums(made[kind], few)
            say(f"{kind}: {time.perf_counter() - begin:.0f} s")
        sets.stored(a.wellread, made["none"], a.data / "stored", few)
    if "e" in a.only:
        sets.opening(a.wellread, a.data / "opening", a.wells)
    return made


def main():
    a = arguments()
    if a.write:
        import plate_page

        page, result = map(Path, a.write)
        return plate_page.write(page, json.loads(result.read_text()))
    import compare as peers_compare

    peers_compare.bind(a.threads)
    import plate_page
    import plate_sets

    a.out = a.out.resolve()
    a.data = (a.data or a.out.parent / "plates-data").resolve()
    a.out.parent.mkdir(parents=True, exist_ok=True)
    in_process = peers_compare.Processes()
    sets = write_sets(a)
    if a.prepare:
        return
    facts = facts_of(a, "plates.py", rules=plate_page.RULES, crops=a.crops, few=min(FEW, a.sites))
    result = {"facts": facts, "parts": {}}
    parts = variants_of(a, sets) if sets else {}
    for part in a.only:
        begin = time.perf_counter()
        if part == "e":
            result["parts"][part] = opening(in_process, a)
        else:
            variants, rows = parts[part]
            for folder in {variant.job.path for variant in variants.values()}:
                plate_sets.warm(Path(folder))
            result["parts"][part] = {
                "rows": [dataclasses.asdict(row) for row in rows],
                "about": {name: variant.about for name, variant in variants.items()},
                **compare(in_process, variants, a.rounds),
            }
        result["parts"][part]["took_s"] = time.perf_counter() - begin
        # What is finished is there, whatever comes.
        a.out.write_text(json.dumps(result, indent=1))
    print(plate_page.section(result))


if __name__ == "__main__":
    main()
