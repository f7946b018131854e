"""The loader's speed beside the limits of the machine: the tables of docs/speed.md.

    python benches/speed.py --wellread PATH --out results/speed.json [--rounds 6] [--only limits,count]

It runs `wellread bench dataloader` on sets of its own making, which take some gigabytes. It needs nothing but
Python's own library. wellread interleaves the variants of one table in random order, and checks the pixels of every
epoch. Each round is a process of its own, and gives the median of its repeats. The tables are made by
`benches/speed/speed_page.py`.
"""

import argparse
import csv
import datetime
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / name) for name in ("peers", "plates", "speed")]

ENGINES = "parquet,parquet-default,ome-arrow-dataset,lance,vortex,duckdb,tiff,ome-zarr"
# Title, height and width, arguments that make the set.
SETS = {
    "100 x 100 uint8 noise, not compressed": (100, [
        "--images", "1000", "--kind", "noise", "--dtype", "uint8", "--compression", "none", "--formats", ENGINES]),
    "1080 x 1080 uint16 cells, not compressed": (1080, [
        "--images", "96", "--kind", "cells", "--dtype", "uint16", "--compression", "none", "--formats", ENGINES]),
    "1080 x 1080 uint16 cells, compressed (Zstandard 3)": (1080, [
        "--images", "96", "--kind", "cells", "--dtype", "uint16", "--compression", "zstd",
        "--formats", ENGINES.replace("duckdb,", "")]),
    "1080 x 1080 uint16 cells, LZW": (1080, [
        "--images", "96", "--kind", "cells", "--dtype", "uint16", "--compression", "lzw", "--formats", "tiff"]),
}  # fmt: skip
BATCH = "16"
# Formats and numbers of images of the second table.
COUNTED = ("parquet", "lance", "vortex", "duckdb")
COUNTS = (1_000, 1_000_000)


def say(text):
    print(text, file=sys.stderr, flush=True)


def bench(wellread, out, *args):
    """The rows of a run in a process of its own."""
    subprocess.run([wellread, "--quiet", "bench", "dataloader", "--no-cold", "--batch-sizes", BATCH, "--out", out,
                    *args], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    with (out / "dataloader.csv").open() as file:
        return list(csv.DictReader(file))


def median(rows, column):
    """The median of a column; None where it is empty."""
    found = [float(row[column]) for row in rows if row[column]]
    return statistics.median(found) if found else None


def limits(a, title):
    """A table of formats beside limits: for each format and cache the values of all rounds."""
    side, arguments = SETS[title]
    data = a.data / f"{title.replace(' ', '-')}"
    table = {}
    for i in range(a.rounds):
        begin = time.perf_counter()
        rows = bench(a.wellread, a.data / "run", *arguments, "--size", f"{side}x{side}", "--data-dir", data,
                     "--workers", "0,1", "--keep-open", "--loader-cache", "none,512MiB", "--repeats",
                     str(a.repeats), "--seed", str(42 + i))  # fmt: skip
        for key in dict.fromkeys((row["format"], row["cache"]) for row in rows):
            of = {w: [r for r in rows if (r["format"], r["cache"], r["workers"]) == (*key, w)] for w in "01"}
            one = table.setdefault(key, {"format": key[0], "kept": key[1] != "none"})
            for name, found, column in (
                ("one", of["0"], "samples_per_sec"), ("two", of["1"], "samples_per_sec"),
                ("first", of["1"], "first_epoch_images_per_s"),
                ("kernel", of["1"], "limit_kernel_per_s"), ("read", of["1"], "limit_read_per_s"),
            ):  # fmt: skip
                one.setdefault(name, []).append(median(found, column))
        say(f"{title}, round {i + 1} of {a.rounds}: {time.perf_counter() - begin:.0f} s")
    shutil.rmtree(data)
    images = int(arguments[arguments.index("--images") + 1])
    return {"title": title, "images": images, "side": side, "rows": list(table.values())}


def counted(a):
    """Cost of an image and time to the first batch by the number of rows. The set is opened in every epoch."""
    rows = []
    for count in COUNTS:
        folder = a.data / f"count-{count}"
        set_of = ["--images", str(count), "--size", "16x16", "--kind", "noise", "--dtype", "uint8"]
        made = [a.wellread, "--quiet", "generate", folder, *set_of, "--formats", ",".join(COUNTED)]
        subprocess.run(made, check=True)
        found = {form: {"format": form, "images": count, "rate": [], "first": [], "mb": []} for form in COUNTED}
        for i in range(a.rounds):
            # In turns, so that all formats have the same hour.
            for form in COUNTED:
                run = bench(a.wellread, a.data / "run", "--input", folder / f"images.{form}", "--in-place",
                            "--workers", "1", "--repeats", str(a.repeats), "--seed", str(42 + i))  # fmt: skip
                for name, column in (("rate", "samples_per_sec"), ("first", "first_batch_s"), ("mb", "peak_rss_mb")):
                    found[form][name].append(median(run, column))
            say(f"{count} images, round {i + 1} of {a.rounds}")
        rows += found.values()
        shutil.rmtree(folder)
    return rows


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--wellread", default=os.environ.get("WELLREAD") or "wellread", help="the program")
    ap.add_argument("--out", type=Path, default=Path("results/speed.json"))
    ap.add_argument("--rounds", type=int, default=6, help="processes of each table")
    ap.add_argument("--repeats", type=int, default=3, help="of each variant in a process")
    ap.add_argument("--only", default="limits,count")
    a = ap.parse_args()
    a.out = a.out.resolve()
    a.data = a.out.parent / "speed-data"
    a.data.mkdir(parents=True, exist_ok=True)
    import compare
    import speed_page

    facts = {
        "command": compare.command(sys.argv[1:], "speed.py"), "commit": compare.commit(),
        "date": datetime.date.today().isoformat(), "machine": compare.machine(), "rounds": a.rounds,
        "repeats": a.repeats, "batch": int(BATCH), "rules": speed_page.RULES,
    }  # fmt: skip
    result = {"facts": facts, "speed": {}}
    for name, measured in (("limits", lambda: [limits(a, title) for title in SETS]), ("count", lambda: counted(a))):
        if name in a.only.split(","):
            result["speed"][name] = measured()
            a.out.write_text(json.dumps(result, indent=1))
    shutil.rmtree(a.data)
    print(speed_page.section(result))


if __name__ == "__main__":
    main()
