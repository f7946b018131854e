"""The first picture of README.md: images/s into PyTorch by loader (docs/images/loaders.svg, docs/peers-loaders.md).

    python benches/front.py --out results/front.json [--rounds 6] [--sites 192] [--seconds 1] [--only tifffile,…]

Sites of 5 channels, 1080 x 1080, in the files of each loader, all of Zstandard at one level. The rounds, the clock
and the comparison of pixels are those of `benches/plates.py`. LitData shuffles by itself; all others deliver the
rows in wellread's order. `WELLREAD` names the program, `PYTHONPATH` has the package.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / name) for name in ("peers", "plates", "front")]

BATCH = 16
# Each loader: its set, what it is called, wellread's loader that it stands beside, and how it is used, where there
# is more than one: the picture has the faster one. The others are given the order of the first one.
WORKERS, ALONE, THREADS = "torch DataLoader, 2 workers", "torch DataLoader, 0 workers", "batches by 2 threads"
LOADERS = {
    "wellread tiff": ("tiff", "wellread", None, None),
    "tifffile": ("tiff", "tifffile", "wellread tiff", WORKERS),
    "tifffile-0": ("tiff", "tifffile", "wellread tiff", ALONE),
    "tifffile-threads": ("tiff", "tifffile", "wellread tiff", THREADS),
    "wellread zarr": ("zarr", "wellread", None, None),
    "zarr-python": ("zarr", "zarr-python", "wellread zarr", WORKERS),
    "zarr-python-0": ("zarr", "zarr-python", "wellread zarr", ALONE),
    "zarr-python-threads": ("zarr", "zarr-python", "wellread zarr", THREADS),
    "tensorstore": ("zarr", "tensorstore", "wellread zarr", None),
    "wellread lance": ("lance", "wellread, OME-Arrow", None, None),
    "pylance": ("pylance", "pylance take, a column of bytes", "wellread lance", None),
    "litdata": ("litdata", "LitData StreamingDataLoader", None, "2 workers"),
    "litdata-0": ("litdata", "LitData StreamingDataLoader", None, "0 workers"),
}


def variants_of(a, sets):
    """The loaders as variants of `benches/plates.py`."""
    from plate_runs import Job
    from plates import Variant

    places = {
        "tiff": (sets.tiff.images, sets.tiff),
        "zarr": (sets.zarr.images, sets.zarr),
        "lance": (sets.lance, None),
        "pylance": (sets.pylance, sets.tiff),
        "litdata": (sets.litdata, sets.tiff),
    }
    found = {}
    for name in a.only:
        files, about, *_ = LOADERS[name]
        path, plate = places[files]
        job = Job(name.split()[0], str(path), a.batch, a.threads, a.seconds, plate, expected=str(sets.expected))
        # wellread's order is the same on all files, which a run compares.
        found[name] = Variant(about, job, order_of=None if name == a.only[0] else a.only[0])
    return found


def arguments(given=None):
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", type=Path, default=Path("results/front.json"))
    ap.add_argument("--data", type=Path, help="folder of the sets, which are used again; default: beside --out")
    ap.add_argument("--wellread", default=os.environ.get("WELLREAD") or "wellread", help="the program; writes sets")
    ap.add_argument("--rounds", type=int, default=6)
    ap.add_argument("--sites", type=int, default=192)
    ap.add_argument("--size", type=int, default=1080, help="height and width of a site")
    ap.add_argument("--batch", type=int, default=BATCH)
    ap.add_argument("--seconds", type=float, default=1, help="of the later epochs of a run; one epoch at least")
    ap.add_argument("--threads", type=int, default=2, help="of each loader, and processors they have")
    ap.add_argument("--only", default=",".join(LOADERS), help="loaders; the first is one of wellread's")
    ap.add_argument("--prepare", action="store_true", help="write the sets and end")
    a = ap.parse_args(given)
    a.only = a.only.split(",")
    if not set(LOADERS).issuperset(a.only) or not a.only[0].startswith("wellread "):
        ap.error(f"--only: of {', '.join(LOADERS)}; first one of wellread's")
    if a.size < 128 or a.sites < 2 or a.rounds < 1:
        ap.error("--size from 128, --sites from 2, --rounds from 1")
    return a


def main():
    a = arguments()
    import compare

    compare.bind(a.threads)
    import front_page
    import front_sets
    import plate_sets
    import plates

    a.out = a.out.resolve()
    a.data = (a.data or a.out.parent / "front-data").resolve()
    a.out.parent.mkdir(parents=True, exist_ok=True)
    in_process = compare.Processes()
    begin = time.perf_counter()
    sets = front_sets.write(a.wellread, a.data, a.sites, a.size)
    plates.say(f"sets: {time.perf_counter() - begin:.0f} s")
    if a.prepare:
        return
    plate_sets.warm(a.data)
    begin = time.perf_counter()
    front = {
        "rows": [{"name": name, **dict(zip(("files", "about", "beside", "way"), LOADERS[name], strict=True))}
                 for name in a.only],
        "bytes": sets.bytes(), **plates.compare(in_process, variants_of(a, sets), a.rounds),
    }  # fmt: skip
    front["took_s"] = time.perf_counter() - begin
    facts = plates.facts_of(a, "front.py", rules=front_page.RULES, batch=a.batch, level=plate_sets.LEVEL)
    a.out.write_text(json.dumps({"facts": facts, "front": front}, indent=1))
    print(front_page.section({"facts": facts, "front": front}))


if __name__ == "__main__":
    main()
