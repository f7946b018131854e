"""Writing: the Python libraries from named arrays in memory, as upstream does, and `wellread bench storage`."""

import subprocess
import tempfile
import time
from pathlib import Path

FORMATS = {
    "parquet": "ome-arrow + pyarrow",
    "lance": "ome-arrow + pylance",
    "vortex": "ome-arrow + vortex-data",
    "duckdb": "ome-arrow + duckdb",
    "ome-arrow-dataset": "ome-arrow",
    "ome-zarr": "ome-zarr-py",
    "tiff": "tifffile",
}
# wellread's option, and what both sides write, as the table says it (`sets.py` has the libraries' part).
CODECS = {
    "parquet": ("zstd:1", "Zstandard 1"),
    "ome-arrow-dataset": ("zstd:1", "Zstandard 1"),
    "ome-zarr": ("zstd:1", "0.5, one level, one chunk, Zstandard 1"),
    "tiff": ("none", "none"),
}
OWN = ("default", "each one's own encoding")


def by_library(fmt, folder, into):
    """Seconds for an image. All are written once before the clock starts, as by wellread."""
    import sets
    import tifffile

    paths = sorted((Path(folder) / "tiff").glob("*.tiff"))
    images = [(path.stem, tifffile.imread(path)) for path in paths]
    images = [(name, array.reshape(1, 1, 1, *array.shape[-2:])) for name, array in images]
    sets.write_with_library(fmt, Path(tempfile.mkdtemp(dir=into)), images)
    out = Path(tempfile.mkdtemp(dir=into))
    start = time.perf_counter()
    sets.write_with_library(fmt, out, images)
    return {"seconds": (time.perf_counter() - start) / len(images), "images": len(images)}


def by_wellread(binary, folder, into, formats):
    """Seconds for an image by format, from the same decoded images in memory: of one run after that of warm-up."""
    import pyarrow.parquet as pq

    found = {}
    for option in dict.fromkeys(CODECS.get(fmt, OWN)[0] for fmt in formats):
        chosen = [fmt for fmt in formats if CODECS.get(fmt, OWN)[0] == option]
        out = Path(tempfile.mkdtemp(dir=into))
        done = subprocess.run(
            [binary, "--json", "bench", "storage", "--input", Path(folder) / "images.parquet", "--formats",
             ",".join(chosen), "--compression", option, "--repeats", "1", "--no-cold", "--out", out],
            capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        rows = pq.read_table(out / "storage.parquet").to_pylist()
        found |= {row["format"]: 1 / row["images_per_s"] for row in rows if row["operation"] == "write"}
    return found


def compare(folders, into, rounds, formats, in_process, binary, rng):
    """Rows of all sets: in each round every library once, and wellread twice (the noise), in random order."""
    rows = []
    for title, folder in folders:
        theirs, ours, twin = ({fmt: [] for fmt in formats} for _ in range(3))
        for _ in range(rounds):
            jobs = [*formats, "ours", "twin"]
            rng.shuffle(jobs)
            with tempfile.TemporaryDirectory(dir=into) as out:
                for job in jobs:
                    if job in formats:
                        theirs[job].append(in_process(by_library, job, str(folder), out))
                        continue
                    for fmt, seconds in by_wellread(binary, folder, out, formats).items():
                        (ours if job == "ours" else twin)[fmt].append(seconds)
        for fmt in formats:
            row = {"set": title, "format": fmt, "library": FORMATS[fmt], "codec": CODECS.get(fmt, OWN)[1]}
            wrong = next((run["error"] for run in theirs[fmt] if "error" in run), None)
            if wrong:
                row["error"] = wrong
            else:
                row |= {"peer_s": [run["seconds"] for run in theirs[fmt]], "ours_s": ours[fmt]}
                row["images"] = theirs[fmt][0]["images"]
                row["twin"] = [a / b for a, b in zip(twin[fmt], ours[fmt], strict=True)]
            rows.append(row)
    return {"rounds": rounds, "warmed_alike": True, "rows": rows}
