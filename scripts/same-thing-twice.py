#!/usr/bin/env python3
"""same-thing-twice.py WELLREAD OUT: how often `compare` gives a verdict where there is nothing to find.

   20 processes of one benchmark ─┬─▶ ten drawn at random, 200 times ─┐
                                  └─▶ each ten in a row ──────────────┴─▶ compare five -- five ─▶ tables, rows, widths

Ten in a row are what a user has who measures A before B. At most 5 % of tables should have a verdict. Prints the
counts, and writes them to OUT/same-thing-twice.json, as docs/results keeps them. A process that OUT has of an earlier
call is not measured again.
"""

import argparse
import datetime
import json
import random
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "benches" / "peers"))
from compare import commit, machine  # noqa: E402

FORMATS = "tiff,parquet,ome-zarr"
OPTIONS = {
    "dataloader": ("--batch-sizes", "16", "--workers", "2"),
    "dataset": ("--access", "random", "--transform", "none", "--cache", "none"),
}
SIDE = 5
HEAD = ("processes of `bench`", "how ten are chosen", "tables", "tables with a verdict", "rows",
        "rows with a verdict", "median interval, high / low")  # fmt: skip


def measured(wellread, out, benchmark, processes):
    """The folders of the processes, one after the other."""
    if not (out / "set").exists():
        size = ("--images", "256", "--size", "100x100", "--formats", FORMATS)
        subprocess.run([wellread, "--quiet", "generate", out / "set", *size], check=True, stdout=subprocess.DEVNULL)
    folders = [out / benchmark / str(k) for k in range(1, processes + 1)]
    for folder in (one for one in folders if not one.exists()):
        # What an interrupted process has left is no measurement.
        begun = folder.with_name(f"{folder.name}-begun")
        shutil.rmtree(begun, ignore_errors=True)
        where = ("--input", out / "set" / "tiff", "--data-dir", out / "data", "--out", begun)
        how = ("--formats", FORMATS, *OPTIONS[benchmark], "--repeats", "7")
        subprocess.run([wellread, "--quiet", "bench", benchmark, *where, *how], check=True, stdout=subprocess.DEVNULL)
        begun.rename(folder)
    return folders


def rows_of(wellread, ten):
    """The rows of a comparison of the first five folders with the others."""
    done = subprocess.run(
        [wellread, "--json", "compare", *ten[:SIDE], "--", *ten[SIDE:]], capture_output=True, text=True
    )
    if done.returncode not in (0, 3):
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)["rows"]


def counted(tables):
    """How many tables there are and have a verdict, the same of rows, and how wide intervals are."""
    found = [[row["verdict"] in ("slower", "faster") for row in table] for table in tables]
    rows = [row for table in tables for row in table]
    width = statistics.median(row["high"] / row["low"] for row in rows)
    return len(tables), sum(map(any, found)), len(rows), sum(map(sum, found)), f"{width:.2f}"


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("wellread")
    ap.add_argument("out", type=Path)
    ap.add_argument("--processes", type=int, default=20)
    ap.add_argument("--draws", type=int, default=200)
    ap.add_argument("--benchmarks", default=",".join(OPTIONS), help="of " + ", ".join(OPTIONS))
    a = ap.parse_args()
    rows = []
    for benchmark in a.benchmarks.split(","):
        folders = measured(a.wellread, a.out, benchmark, a.processes)
        drawn = [random.Random(seed).sample(folders, 2 * SIDE) for seed in range(a.draws)]
        in_a_row = [folders[at : at + 2 * SIDE] for at in range(a.processes - 2 * SIDE + 1)]
        for how, tens in (("drawn at random", drawn), ("one after the other", in_a_row)):
            counts = counted([rows_of(a.wellread, ten) for ten in tens])
            rows.append([f"{a.processes} of `{benchmark}`", how, *map(str, counts)])
            print(*rows[-1], sep=" | ", flush=True)
    facts = {"machine": machine(), "date": datetime.date.today().isoformat(), "commit": commit(),
             "command": f"scripts/same-thing-twice.py --processes {a.processes} --draws {a.draws} "
                        f"--benchmarks {a.benchmarks}"}  # fmt: skip
    result = {"facts": facts, "tables": {"same-thing-twice": {"head": HEAD, "rows": rows}}}
    (a.out / "same-thing-twice.json").write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
