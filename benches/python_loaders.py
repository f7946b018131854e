"""wellread in PyTorch beside the Rust loader: speed. Beside torch's DataLoader with the usual datasets: memory.

python benches/python_loaders.py --wellread PATH --python PYTHON --out results/python-loaders

Speed is a run of `wellread bench dataloader --framework rust,pytorch` for each set and format, in interleaved rounds,
pixels checked. Figures are medians with their range. `benches/peers` measures the speed of peers.
Memory is of fresh processes, one for each loader, with the processes they start. It is the peak of what they take
together, pages that several share counted once (PSS), over three shuffled epochs.
PYTHON needs wellread, torch and the peers.
"""

import argparse
import csv
import select
import statistics
import subprocess
import sys
from pathlib import Path

# What the program carries and the package may lack: last, as modules there are named like torch and jax.
sys.path.append(str(Path(__file__).resolve().parents[1] / "python" / "wellread"))

FORMATS = "parquet,lance,vortex,duckdb,tiff,ome-zarr,ome-arrow-dataset"
# Title, arguments that make the set.
SETS = {
    "100 x 100 uint8 noise": ["--images", "1000", "--size", "100x100", "--kind", "noise", "--dtype", "uint8"],
    "1080 x 1080 uint16 cells": ["--images", "64", "--size", "1080x1080", "--kind", "cells", "--dtype", "uint16"],
}
RATE, FIRST = "samples_per_sec", "first_epoch_images_per_s"
# Loader, format it reads.
CONTENDERS = {
    "import torch": None,
    "wellread, NumPy": "parquet",
    "wellread, torch": "parquet",
    "torch DataLoader + upstream's cache": "parquet",
    "torch DataLoader + as_py": "parquet",
    "wellread, torch, of TIFF": "tiff",
    "torch DataLoader + tifffile": "tiff",
    "wellread, torch, of OME-Zarr": "ome-zarr",
    "torch DataLoader + zarr-python": "ome-zarr",
}


def rates(a, title, kind):
    """Images per second of each framework in later epochs and in first ones, in one run of a format."""
    # A run for each format: kept loaders of all of them would take many GB.
    out = a.out / "alone" / title.split()[0] / kind
    command = [a.wellread, "--quiet", "bench", "dataloader", "--framework", "rust,pytorch", "--python", a.python,
               "--formats", kind, "--batch-sizes", "16", "--keep-open", "--no-cold", "--compression", "none",
               "--repeats", a.repeats, "--time-budget", a.seconds, "--out", out, *SETS[title],
               "--workers", "2", "--loaders", "wellread"]  # fmt: skip
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
    found = {}
    with (out / "dataloader.csv").open() as file:
        for row in csv.DictReader(file):
            for rate in (rate for rate in (RATE, FIRST) if row[rate]):
                found.setdefault((row["framework"], rate), []).append(float(row[rate]))
    return found


def times(ours, other):
    return statistics.median(ours) / statistics.median(other)


def alone(a):
    """wellread in Rust and in PyTorch, nothing else in either process."""
    lines = []
    for title in SETS:
        lines += [f"**{title}**, batches of 16, 2 workers, no peers", "",
                  "| format | Rust, images/s | PyTorch, images/s | of Rust | Rust, first epoch | PyTorch, first |",
                  "|---|---|---|---|---|---|"]  # fmt: skip
        for kind in a.formats.split(","):
            found = rates(a, title, kind)
            ours, rust = (found[framework, RATE] for framework in ("pytorch", "rust"))
            # A loader that stays open has one first epoch in a run.
            first = (of(sorted(set(found[framework, FIRST]))) for framework in ("rust", "pytorch"))
            cells = (kind, of(rust), of(ours), f"{times(ours, rust):.2f}", *first)
            lines.append(f"| {' | '.join(cells)} |")
            print(lines[-1], flush=True)
        lines.append("")
    return lines


def memory(a):
    folder = a.out / "sets"
    title = "100 x 100 uint8 noise"
    if not folder.exists():
        command = [a.wellread, "--quiet", "generate", folder, *SETS[title], "--formats", "parquet,tiff,ome-zarr"]
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
    lines = [f"**{title}**, 1,000 images, batches of 16, 2 workers, three epochs; medians of {a.repeats}", "",
             "| loader | at most, MB (range) | above `import torch`, MB |", "|---|---|---|"]  # fmt: skip
    # In turns, after one that is thrown away: the first process reads torch's files, which the others find in memory.
    memory_mb(a, folder, "import torch")
    found = {name: [] for name in CONTENDERS}
    for _ in range(int(a.repeats)):
        for name, pairs in found.items():
            pairs.append(memory_mb(a, folder, name))
    for name, pairs in found.items():
        peaks, added = [peak for peak, _ in pairs], [more for _, more in pairs]
        beyond = "" if name == "import torch" or "NumPy" in name else of(added)
        lines.append(f"| {name} | {of(peaks)} | {beyond} |")
        print(lines[-1], flush=True)
    return lines


def of(values):
    """Median and range."""
    return f"{statistics.median(values):,.0f} ({min(values):,.0f}–{max(values):,.0f})"


def memory_mb(a, folder, name):
    """The most that a fresh process of a loader and those it starts take together, and how much of it came after
    `import torch`: told in the same process, since what the import takes differs by more between processes."""
    from _tasks.memory import proportional_mb

    kind = CONTENDERS[name]
    path = next((p for p in sorted(folder.iterdir()) if kind and kind in p.name), folder)
    process = subprocess.Popen([a.python, __file__, "--child", name, "--path", path],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    # It stops after the import and when it has read all, its workers still there.
    assert process.stdout.readline(), name
    peak = before = proportional_mb(process.pid)
    process.stdin.write(b"go on\n")
    process.stdin.flush()
    while not select.select([process.stdout], [], [], 0.02)[0]:
        peak = max(peak, proportional_mb(process.pid) or 0)
    assert process.stdout.readline(), name
    peak = max(peak, proportional_mb(process.pid) or 0)
    process.communicate(b"go on\n")
    assert process.returncode == 0, name
    return peak, peak - before


def measured():
    """Waits until the memory of this process was looked at."""
    print("as far as that", flush=True)
    sys.stdin.readline()


def child(name, path):
    if name == "wellread, NumPy":
        measured()
        import wellread

        loader = wellread.DataLoader(path, 16, shuffle=True, num_workers=2)
    else:
        import torch

        torch.set_num_threads(2)
        measured()
        if name == "import torch":
            loader = []
        elif name.startswith("wellread"):
            import wellread

            loader = wellread.DataLoader(path, 16, shuffle=True, num_workers=2, as_="torch")
        else:
            from _bench.frameworks.base import ReaderDataset
            from _bench.images import Finish
            from _bench.peers import folders, tables

            reader = {"cache": tables.UpstreamCache, "as_py": tables.AsPy, "tifffile": folders.Tifffile,
                      "zarr-python": folders.ZarrPython}[name.split()[-1]]  # fmt: skip
            dataset = ReaderDataset(reader(path, Finish()), torch.as_tensor)
            loader = torch.utils.data.DataLoader(dataset, 16, shuffle=True, num_workers=2, persistent_workers=True)
    images = sum(len(batch) for _ in range(3) for batch in loader)
    assert images in (0, 3000), images
    measured()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--wellread", default="wellread")
    ap.add_argument("--python", default=sys.executable)
    ap.add_argument("--out", type=Path, default=Path("results/python-loaders"))
    ap.add_argument("--formats", default=FORMATS)
    ap.add_argument("--repeats", default="5")
    ap.add_argument("--seconds", default="20")
    ap.add_argument("--only", default="alone,memory")
    ap.add_argument("--child")
    ap.add_argument("--path", type=Path)
    a = ap.parse_args()
    if a.child:
        return child(a.child, a.path)
    a.out.mkdir(parents=True, exist_ok=True)
    text = []
    if "alone" in a.only:
        text += alone(a)
    if "memory" in a.only:
        text += memory(a)
    (a.out / "python-loaders.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
