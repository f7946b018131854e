"""wellread beside its peers: ratios of medians over interleaved rounds, one machine, one run.

    python compare.py --out results/peers [--rounds 5] [--images 1000] [--fields 32]

Each round runs every peer and wellread once, each in a process of its own, in random order. A peer's figure is
its second epoch (workers are up, the page cache is warm); its first batch counts from opening the data.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import sets

HERE = Path(__file__).resolve().parent

# A Python >= 3.12 with annbatch, if this one is older (annbatch_peer.py).
ANNBATCH_PYTHON = os.environ.get("ANNBATCH_PYTHON", sys.executable)

# Decoded pixels kept from epoch to epoch, where a row says so: more than both sets have.
CACHE = ["--loader-cache", "512MiB"]

# wellread reads with two threads, a worker and the one that waits for batches, unless a row says one.
THREADS = 2
ONE = ["--workers", "0"]

# (name, peer, the peer's workers, what wellread reads, its further flags, the ratio that is to be shown)
PAIRS = [
    ("Parquet, untouched, beside upstream's RAM cache", "ram-cache", 0, "images.parquet", [], 3.0),
    ("Parquet, untouched, decoded once and kept, beside it", "ram-cache", 0, "images.parquet", CACHE, 3.0),
    ("Parquet, untouched, beside the same cache of float32", "float-cache", 0, "images.parquet", [], None),
    ("TIFF folder beside torch DataLoader + tifffile", "tifffile", 2, "tiff", [], 8.0),
    ("OME-Zarr beside torch DataLoader + zarr-python", "zarr-python", 2, "ome-zarr", [], 20.0),
    ("OME-Zarr, decoded once and kept, beside the same", "zarr-python", 2, "ome-zarr", CACHE, 20.0),
    ("ome-arrow dataset beside torch DataLoader + read_image", "ome-arrow", 2, "images.ome-arrow-dataset", [], 20.0),
    ("ome-arrow dataset, decoded once and kept, beside it", "ome-arrow", 2, "images.ome-arrow-dataset", CACHE, 20.0),
    ("TIFF folder beside SPDL threads + tifffile", "spdl", 2, "tiff", [], None),
    ("OME-Zarr beside tensorstore", "tensorstore", 2, "ome-zarr", [], None),
    ("Parquet, tuned, beside pyarrow row groups of it", "pyarrow-row-groups", 2, "tuned.parquet", [], None),
    ("Parquet, tuned, beside pyarrow on bare pixels", "pyarrow-binary", 2, "tuned.parquet", [], None),
    ("Parquet, tuned, beside annbatch, rows shuffled", "annbatch-1", 2, "tuned.parquet", [], None),
    ("Parquet, tuned, rows, beside annbatch's blocks", "annbatch-16", 2, "tuned.parquet", [], None),
    ("LZW TIFF beside torch DataLoader + tifffile", "tifffile-lzw", 2, "tiff-lzw", [], None),
    ("LZW TIFF, decoded once and kept, beside the same", "tifffile-lzw", 2, "tiff-lzw", CACHE, None),
    ("Lance beside pylance take, pixels only", "pylance", 0, "images.lance", [], 20.0),
    ("Lance, decoded once and kept, beside it", "pylance", 0, "images.lance", CACHE, 20.0),
    ("Vortex beside vortex-data scan by indices", "vortex-data", 0, "images.vortex", [], 10.0),
    ("Vortex, decoded once and kept, beside it", "vortex-data", 0, "images.vortex", CACHE, 10.0),
    ("Vortex beside vortex-data scan of the whole column", "vortex-data-column", 0, "images.vortex", [], 10.0),
    ("DuckDB beside WHERE row_id IN, whole column", "duckdb-column", 0, "images.duckdb", [], 50.0),
    ("DuckDB beside WHERE row_id IN", "duckdb", 0, "images.duckdb", [], 50.0),
    ("DuckDB, decoded once and kept, beside it", "duckdb", 0, "images.duckdb", CACHE, 50.0),
    ("Parquet, kept, one thread, beside NumPy's gather", "gather", 0, "tuned.parquet", [*CACHE, *ONE], 1.0),
    ("Parquet, kept, two threads, beside NumPy's gather", "gather", 0, "tuned.parquet", CACHE, 1.7),
]


# Formats whose writing is compared, by the ratio to be shown.
WRITES = ["parquet", "lance", "vortex", "duckdb", "ome-arrow-dataset", "ome-zarr", "tiff"]
WRITE_TARGET = 5.0


def wellread_write(binary, folder):
    """Writing speed of every format, from the decoded Parquet set, as `bench storage` measures it."""
    import pyarrow.parquet as pq

    out = Path(tempfile.mkdtemp(dir=os.environ["WRITTEN"]))
    done = subprocess.run(
        [binary, "--json", "bench", "storage", "--input", folder / "images.parquet",
         "--formats", ",".join(WRITES), "--repeats", "2", "--no-cold", "--out", out],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(out / "storage.parquet").to_pylist()
    return {r["format"]: r["images_per_s"] for r in rows if r["operation"] == "write"}


def compare_writes(binary, folder, into, rounds, rng):
    """Rows of writing into a folder: the Python libraries from named arrays as upstream does, and wellread."""
    theirs, ours = {}, {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(dir=into) as out:
            os.environ["WRITTEN"] = out
            for fmt in rng.sample(WRITES, len(WRITES)):
                theirs.setdefault(fmt, []).append(peer_run(f"write-{fmt}", folder, 16, 0, epochs=1))
            for fmt, speed in wellread_write(binary, folder).items():
                ours.setdefault(fmt, []).append(speed)
    rows = []
    for fmt in WRITES:
        row = {"what": f"write {fmt}", "peer": f"write-{fmt}", "peer_workers": 0, "target_ratio": WRITE_TARGET}
        row["wellread_samples_per_sec"] = statistics.median(ours[fmt])
        if "error" in theirs[fmt][0]:
            row["peer_error"] = theirs[fmt][0]["error"]
        else:
            speeds = [r["samples_per_sec"] for r in theirs[fmt]]
            row["peer_samples_per_sec"] = statistics.median(speeds)
            ratios = [a / b for a, b in zip(ours[fmt], speeds, strict=True)]
            row["ratio"] = statistics.median(ratios)
            row["ratio_low"], row["ratio_high"] = interval(ratios, rng)
        rows.append(row)
    return rows


def wellread_run(binary, path, batch, workers, seed, flags):
    """One process: like a peer, a later epoch of one open loader."""
    flags = flags if "--workers" in flags else [*flags, "--workers", str(workers)]
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run(
            [binary, "--json", "bench", "dataloader", "--input", path, "--in-place", "--batch-sizes", str(batch),
             "--repeats", "2", "--keep-open", *flags, "--seed", str(seed), "--out", out],
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        import pyarrow.parquet as pq

        row = pq.read_table(Path(out) / "dataloader.parquet").to_pylist()[-1]
        assert row["verified"], "wellread delivered other pixels"
    return row


def peer_run(name, folder, batch, workers, epochs=2):
    if name.startswith("annbatch-"):
        program = [ANNBATCH_PYTHON, HERE / "annbatch_peer.py", folder, "--chunk", name.removeprefix("annbatch-")]
    else:
        program = [sys.executable, HERE / "peers.py", name, folder, "--workers", str(workers)]
    done = subprocess.run(
        [*program, "--batch", str(batch), "--epochs", str(epochs)],
        capture_output=True, text=True, cwd=HERE,
    )  # fmt: skip
    if done.returncode != 0:
        return {"error": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "failed"}
    epochs = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        **epochs[-1],
        "first_batch_s": epochs[0]["first_batch_s"],
        "peak_rss_mb": epochs[-1]["peak_rss_mb"],
    }


def interval(values, rng):
    """Percentile bootstrap of the median, 95 %."""
    medians = sorted(statistics.median(rng.choices(values, k=len(values))) for _ in range(2000))
    return medians[50], medians[1949]


def compare(binary, folder, batch, rounds, rng):
    """All pairs on one set; returns rows."""
    runs = {}
    jobs = []
    for name, peer, workers, path, flags, _ in PAIRS:
        if ("peer", peer, workers, None, None) not in jobs:
            jobs.append(("peer", peer, workers, None, None))
        if path:
            jobs.append(("wellread", name, THREADS - 1, folder / path, flags))
    for round_ in range(rounds):
        rng.shuffle(jobs)
        for kind, who, workers, path, flags in jobs:
            if kind == "peer":
                run = peer_run(who, folder, batch, workers)
            else:
                run = wellread_run(binary, path, batch, workers, round_, flags)
            runs.setdefault((kind, who), []).append(run)
            print(f"  round {round_ + 1}/{rounds} {kind} {who}: "
                  f"{run.get('samples_per_sec', float('nan')):.0f}/s", file=sys.stderr)  # fmt: skip
    rows = []
    for name, peer, workers, path, _, target in PAIRS:
        theirs = runs[("peer", peer)]
        row = {"what": name, "peer": peer, "peer_workers": workers, "target_ratio": target}
        if any("error" in r for r in theirs):
            row["peer_error"] = theirs[0].get("error")
        else:
            row["peer_samples_per_sec"] = statistics.median(r["samples_per_sec"] for r in theirs)
            row["peer_peak_rss_mb"] = max(r["peak_rss_mb"] for r in theirs)
            first = [r["first_batch_s"] for r in theirs if r["first_batch_s"]]
            row["peer_first_batch_s"] = statistics.median(first) if first else None
        if path:
            ours = runs[("wellread", name)]
            row["wellread_samples_per_sec"] = statistics.median(r["samples_per_sec"] for r in ours)
            row["wellread_first_batch_s"] = statistics.median(r["first_batch_s"] for r in ours)
            row["wellread_peak_rss_mb"] = max(r["peak_rss_mb"] for r in ours)
            if "peer_error" not in row:
                ratios = [a["samples_per_sec"] / b["samples_per_sec"] for a, b in zip(ours, theirs, strict=True)]
                row["ratio"] = statistics.median(ratios)
                row["ratio_low"], row["ratio_high"] = interval(ratios, rng)
        rows.append(row)
    return rows


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", type=Path, default=Path("results/peers"))
    ap.add_argument("--wellread", default=os.environ.get("WELLREAD") or shutil.which("wellread"))
    ap.add_argument("--images", type=int, default=1000)
    ap.add_argument("--fields", type=int, default=64)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--real", help="folder of 1080 x 1080 uint16 TIFFs; cells are generated without it")
    ap.add_argument("--only", help="only the pairs of these peers, or write")
    # A disk's file system adds its own: ext4 makes files more slowly for minutes after others were removed.
    memory = Path("/dev/shm")
    ap.add_argument("--write-to", type=Path, default=memory if memory.is_dir() else None,
                    help="folder in which writing is timed; default: in memory, if there is one")  # fmt: skip
    ap.add_argument("--writes", default=",".join(WRITES), help="formats whose writing is compared")
    a = ap.parse_args()
    WRITES[:] = a.writes.split(",")
    if a.only:
        PAIRS[:] = [pair for pair in PAIRS if pair[1] in a.only.split(",")]
    if not a.wellread:
        ap.error("no wellread on the PATH: pass --wellread")
    a.out = a.out.resolve()  # peers run in another folder
    a.out.mkdir(parents=True, exist_ok=True)
    rng = random.Random(42)
    results = {}
    for name, batch, count, make in [
        ("noise-100x100-uint8", 16, a.images, lambda: sets.noise(a.images)),
        ("field-1080x1080-uint16", 16, a.fields, lambda: sets.fields(a.fields, a.wellread, a.out, a.real)),
    ]:
        folder = a.out / "data" / f"{name}-{count}"
        print(f"{name}: {count} images", file=sys.stderr)
        about = sets.write(folder, make())
        sets.write_tuned(folder, a.wellread)
        results[name] = {
            "about": about,
            "batch": batch,
            "rows": compare(a.wellread, folder, batch, a.rounds, rng),
        }
        if not a.only or "write" in a.only.split(","):
            results[name]["rows"] += compare_writes(a.wellread, folder, a.write_to, a.rounds, rng)
    (a.out / "peers.json").write_text(json.dumps(results, indent=1))
    for name, result in results.items():
        print(f"\n{name}, batches of {result['batch']}")
        for row in result["rows"]:
            line = f"  {row['what']:<52}"
            line += row.get("peer_error") or f"peer {row['peer_samples_per_sec']:>9,.0f}/s"
            if "wellread_samples_per_sec" in row:
                line += f"  wellread {row['wellread_samples_per_sec']:>9,.0f}/s"
            if "wellread_first_batch_s" in row:
                line += f"  first batch {row['wellread_first_batch_s'] * 1e3:.0f} ms"
                line += f"  peak {row['wellread_peak_rss_mb']:.0f} MB"
            if "ratio" in row:
                line += f"  ratio {row['ratio']:.2f} ({row['ratio_low']:.2f}-{row['ratio_high']:.2f})"
                if row["target_ratio"]:
                    line += f", to show {row['target_ratio']:g}"
            print(line)


if __name__ == "__main__":
    main()
