"""The loader's speed beside the limits of the machine: the tables of docs/speed.md.

python benches/speed.py --wellread PATH --out results/speed

Runs `wellread bench dataloader` on sets of its own making, some hundred megabytes; nothing but Python's own library
is needed. Variants of one table are interleaved in random order by wellread itself; every epoch's pixels are checked.
"""

import argparse
import csv
import subprocess
from pathlib import Path

ENGINES = "parquet,parquet-default,ome-arrow-dataset,lance,vortex,duckdb,tiff,ome-zarr"
# Title, images, arguments that make the set.
SETS = {
    "100 x 100 uint8 noise, not compressed": [
        "--images", "1000", "--size", "100x100", "--kind", "noise", "--dtype", "uint8", "--compression", "none",
        "--batch-sizes", "16", "--formats", ENGINES],
    "1080 x 1080 uint16 cells, not compressed": [
        "--images", "96", "--size", "1080x1080", "--kind", "cells", "--dtype", "uint16", "--compression", "none",
        "--batch-sizes", "16", "--formats", ENGINES],
    "1080 x 1080 uint16 cells, compressed (Zstandard 3)": [
        "--images", "96", "--size", "1080x1080", "--kind", "cells", "--dtype", "uint16", "--compression", "zstd",
        "--batch-sizes", "16", "--formats", ENGINES.replace("duckdb,", "")],
    "1080 x 1080 uint16 cells, LZW": [
        "--images", "96", "--size", "1080x1080", "--kind", "cells", "--dtype", "uint16", "--compression", "lzw",
        "--batch-sizes", "16", "--formats", "tiff"],
}  # fmt: skip
RATE = "samples_per_sec"
FLAT = ["parquet", "lance", "vortex", "duckdb"]


def bench(wellread, out, *args):
    subprocess.run([wellread, "--quiet", "bench", "dataloader", "--no-cold", "--out", out, *args], check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    with (out / "dataloader.csv").open() as file:
        return list(csv.DictReader(file))


def median(rows, column):
    found = sorted(float(r[column]) for r in rows if r[column])
    middle = len(found) // 2
    return float("nan") if not found else (found[middle] + found[~middle]) / 2


def spread(rows, column):
    """Half of the range between the quartiles beside the median, in per cent."""
    found = sorted(float(r[column]) for r in rows if r[column])
    return 100 * (found[len(found) * 3 // 4] - found[len(found) // 4]) / 2 / median(rows, column)


def limits(rows, bytes_per_image):
    """One line per format and cache: one and two threads, and what binds. The second thread is a worker; the first is
    the one that waits for batches, and reads while it does."""
    columns = ["format", "kept", "1 thread, images/s", "2 threads, images/s", "ratio", "written, GB/s",
               "of widening and scaling", "bound by", "of that limit"]  # fmt: skip
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    keys = list(dict.fromkeys((r["format"], r["cache"]) for r in rows))
    for format, cache in keys:
        of = {
            w: [r for r in rows if (r["format"], r["cache"], r["workers"]) == (format, cache, w) and r[RATE]]
            for w in "01"
        }
        if not of["0"] or not of["1"]:
            continue
        one, two = (median(of[w], RATE) for w in "01")
        kernel, reading = (median(of["1"], f"limit_{name}_per_s") for name in ("kernel", "read"))
        named = {"widening and scaling": kernel}
        if cache == "none":  # What is kept is not read again.
            named["reading and decoding"] = reading
        bound = min(named, key=named.get)
        share = two / named[bound]
        cells = [
            format,
            "yes" if cache != "none" else "",
            *(f"{median(of[w], RATE):,.0f} ± {spread(of[w], RATE):.0f} %" for w in "01"),
            f"{two / one:.2f}",
            f"{two * bytes_per_image / 1e9:.1f}",
            f"{two / kernel:.2f}",
            bound if share <= 1 else "limit not valid",
            f"{share:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def flat(wellread, out, counts):
    """Cost of an image and time to the first batch by the number of rows."""
    lines = ["| format | images | µs per image | first batch, ms | peak memory added, MB |", "|---|---|---|---|---|"]
    for format in FLAT:
        for count in counts:
            folder = out / f"flat-{count}"
            path = folder / f"images.{format}"
            if not path.exists():
                subprocess.run(
                    [wellread, "--quiet", "generate", folder, "--images", str(count), "--size", "16x16",
                     "--kind", "noise", "--dtype", "uint8", "--formats", ",".join(FLAT)], check=True,
                )  # fmt: skip
            args = ["--input", path, "--in-place", "--batch-sizes", "16", "--workers", "1", "--repeats", "3"]
            rows = bench(wellread, out / "run", *args)
            lines.append(
                f"| {format} | {count:,} | {1e6 / median(rows, RATE):.2f} "
                f"| {1e3 * median(rows, 'first_batch_s'):.1f} | {median(rows, 'peak_rss_mb'):.0f} |"
            )
            print(lines[-1], flush=True)
    return lines


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--wellread", default="wellread")
    ap.add_argument("--out", type=Path, default=Path("results/speed"))
    ap.add_argument("--repeats", default="7")
    ap.add_argument("--counts", default="1000,10000,100000,1000000")
    ap.add_argument("--only", default="limits,flat")
    a = ap.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    text = []
    if "limits" in a.only:
        for title, args in SETS.items():
            rows = bench(a.wellread, a.out / "run", *args, "--workers", "0,1", "--keep-open", "--loader-cache",
                         "none,512MiB", "--repeats", a.repeats)  # fmt: skip
            side = 100 if title.startswith("100") else 1080
            text += [f"**{title}**, batches of 16", "", *limits(rows, 4 * side * side), ""]
            print("\n".join(text), flush=True)
    if "flat" in a.only:
        text += ["**16 x 16 uint8 noise**", "", *flat(a.wellread, a.out, [int(n) for n in a.counts.split(",")]), ""]
    (a.out / "speed.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
