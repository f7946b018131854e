"""Shared by the scripts of the gallery: options, images where none are given, ranges of channels, results."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import wellread

ROOT = Path(__file__).resolve().parents[2]
OUT = Path("results/gallery")
# Names of the stain of nuclei.
DNA = ("dna", "dapi", "hoechst")


def options(about: str, **defaults: int) -> argparse.ArgumentParser:
    """A parser of the options that each script has, and of whole numbers with these defaults."""
    parser = argparse.ArgumentParser(description=about.strip().splitlines()[0])
    parser.add_argument("--data", type=Path, help="your images; otherwise sample images, or generated ones")
    parser.add_argument("--out", type=Path, default=OUT, help=f"folder of the results (default: {OUT})")
    for name, default in {"seed": 0, **defaults}.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default, help=f"default: {default}")
    return parser


def sample(name: str) -> Path | None:
    """A folder of real images (`jump`, `nf1`), if there is one: below WELLREAD_SHARED, or beside the clone.

    An empty WELLREAD_SHARED asks for generated images.
    """
    root = os.environ.get("WELLREAD_SHARED", str(ROOT.parent / "shared" / "data"))
    folder = Path(root) / name
    return folder if root and folder.is_dir() else None


def generated(*options: str) -> Path:
    """A new folder that ``wellread generate`` fills."""
    sys.path.append(str(ROOT / "examples"))
    from _images import generated

    return generated(*options)


def plate(wells: str = "4x6", fields: int = 2, channels: int = 5, size: str = "256x256") -> Path:
    """A generated plate with images/, masks/ and cells.parquet; half of its wells were given a compound."""
    shape = ("--plate", wells, "--fields", str(fields), "--channels", str(channels), "--size", size)
    return generated(*shape, "--cells-table", "--masks")


def wellread_program(*arguments: object, codes: tuple[int, ...] = (0,), **variables: str) -> tuple[int, dict]:
    """Runs the command ``wellread``: its exit code, and the JSON document that it prints."""
    command = [sys.executable, "-m", "wellread", "--json", "--quiet", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **variables})
    if done.returncode not in codes:
        raise SystemExit(f"wellread {arguments[0]} ended with code {done.returncode}")
    return done.returncode, json.loads(done.stdout or "{}")


def channel_names(images: wellread.Dataset) -> list[str]:
    """The names of the channels, or their numbers."""
    known = images.metadata(0)["channels"]
    return [channel.get("name") or str(i) for i, channel in enumerate(known)]


def dna_channel(images: wellread.Dataset) -> int:
    """The channel of the nuclei by its name; the last one where no name tells it, as on JUMP's plates."""
    names = [name.lower() for name in channel_names(images)]
    return next((i for i, name in enumerate(names) if any(stain in name for stain in DNA)), len(names) - 1)


def ranges(images: wellread.Dataset, rows=None, channels=None, most: int = 16) -> tuple[list[float], list[float]]:
    """The range of each channel, or of `channels`, that becomes 0 … 1: percentiles 0.5 and 99.8 of some images."""
    rows = np.arange(len(images)) if rows is None else np.asarray(rows)
    some = rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(int)]
    kept = slice(None) if channels is None else channels
    pixels = np.stack([images[int(row)][kept, ..., ::2, ::2] for row in some])
    low, high = np.percentile(pixels, (0.5, 99.8), axis=(0, 2, 3))
    return low.tolist(), np.maximum(high, low + 1).tolist()


def held_out(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on, and the last fifth (one at least) to test with."""
    first = count - max(1, count // 5)
    return np.arange(first), np.arange(first, count)


def otsu(values: np.ndarray) -> float:
    """Otsu's threshold: the one that leaves the least variance in both classes."""
    counts, edges = np.histogram(values, 256)
    middle = (edges[1:] + edges[:-1]) / 2
    below, sums = counts.cumsum(), (counts * middle).cumsum()
    above = below[-1] - below
    with np.errstate(divide="ignore", invalid="ignore"):
        between = below * above * (sums / below - (sums[-1] - sums) / above) ** 2
    return float(edges[1:][np.nanargmax(between)])


def report(out: Path, name: str, result: dict) -> dict:
    """Prints a result, and writes it as NAME.json beside the picture."""
    for key, value in result.items():
        if not isinstance(value, list | dict):
            print(f"{key}: {value:.4g}" if isinstance(value, float) else f"{key}: {value}")
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    print(f"picture: {out / f'{name}.png'}")
    return result
