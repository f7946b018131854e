"""Upstream's ``pytorch_benchmark.py``: its datasets over wellread's, and its tracks by ``wellread bench``.

Names, arguments, keys and units (seconds) are upstream's. Where its figures mislead, those here are measured as
``wellread bench`` does. Formats are read and not copied from one list, and a batch's time begins when it is asked
for. The constants may be changed before a function is called, as upstream's were edited:
``pytorch_benchmark.N_ROWS = 200``.

``python -m wellread.compat.pytorch_benchmark`` does what upstream's script does: :func:`main`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

import wellread
import wellread.torch
from wellread._command import environment, program
from wellread.bench import BenchmarkError

if TYPE_CHECKING:
    import pandas

N_ROWS = 1_000
OME_SHAPE = (100, 100)
SEED = 42
TRACK1_REPEATS = 3
TRACK1_WARMUP_SAMPLES = 10
TRACK1_BENCHMARK_SAMPLES = 100
TRACK2_REPEATS = 3
TRACK2_BATCH_SIZES = [1, 4, 16]
TRACK2_NUM_WORKERS_OPTIONS = [0, 2, 4]
TRACK3_REPEATS = 3
TRACK3_STEPS = 50
TRACK3_BATCH_SIZE = 16
LANCE_TABLE = DUCK_TABLE = "bench"
#: Folders of the images and results, and of the plots, in the working folder.
DATA_DIR = Path("data")
IMAGES_DIR = Path("images")

# Upstream's name of each format: wellread's, the label in tables, and what `wellread generate` writes.
_FORMATS = {
    "parquet": ("parquet", "Parquet", "images.parquet"),
    "parquet_duck": ("parquet-duckdb", "Parquet (DuckDB)", "images.parquet"),
    "lance": ("lance", "Lance", "images.lance"),
    "duckdb": ("duckdb", "DuckDB", "images.duckdb"),
    "vortex": ("vortex", "Vortex", "images.vortex"),
    "tiff": ("tiff", "TIFF", "tiff"),
    "ome_zarr": ("ome-zarr", "OME-Zarr", "ome-zarr"),
}


class OMEArrowDataset(wellread.torch.Dataset):
    """Images as torch.float32 (C, H, W) in [0, 1].

    Args:
        data_path: file or folder.
        format_type: "parquet", "parquet_duck", "lance", "vortex", "duckdb", "tiff" or "ome_zarr".
        transform: a callable for each tensor, after scaling and cropping.
        access_pattern: kept, and read by nothing, as in upstream.
        crop_size: (height, width) of the centre; images that are smaller stay whole.
        lance_table, duck_table: table of a database that has several.

    ``uint8`` is divided by 255 where the image's maximum exceeds 1, as in upstream. Other whole numbers, which
    upstream cut off at 8 bits, are divided by the greatest of their type; floats stay as they are. Nothing is read
    before it is asked for; :meth:`_preload_pixels` has all images read into memory.

    Raises:
        ValueError: no such format.
        wellread.Error: the set cannot be read, or this build lacks the format.
    """

    def __init__(
        self,
        data_path: str | os.PathLike[str],
        format_type: str = "parquet",
        transform: Any = None,
        access_pattern: str = "sequential",
        crop_size: tuple[int, int] | None = None,
        lance_table: str = LANCE_TABLE,
        duck_table: str = DUCK_TABLE,
    ):
        if format_type not in _FORMATS:
            raise ValueError(f"Unknown format: {format_type}")
        self.data_path: str | os.PathLike[str] = data_path
        self.format_type: str = format_type
        self.access_pattern: str = access_pattern
        self.transform: Any = transform
        self.crop_size: tuple[int, int] | None = crop_size
        self._table = {"lance": lance_table, "duckdb": duck_table}.get(format_type)
        images = self._opened("none")
        self._prepared = _Prepared(_range_of(images), crop_size, transform)
        super().__init__(images, transform=self._prepared)

    def _opened(self, cache: str) -> wellread.Dataset:
        name = _FORMATS[self.format_type][0]
        path = os.fspath(self.data_path)
        try:
            return wellread.Dataset(path, format=name, table=self._table, cache=cache)
        except ValueError:
            if self._table not in (LANCE_TABLE, DUCK_TABLE):
                raise
            # A table that has another name, and is the only one.
            return wellread.Dataset(path, format=name, cache=cache)

    def _preload_pixels(self) -> None:
        """Reads all images into memory."""
        self._images = self._opened("memory")
        for row in range(len(self)):
            self._images[row]


class OMEArrowDatasetNumpy(OMEArrowDataset):
    """The same images as NumPy's float32, without the transform."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self._prepared.after = None

    def __getitems__(self, indices: Any) -> list[Any]:
        return [item.numpy() for item in super().__getitems__(indices)]


class _Prepared:
    """The steps on an image between reading and the user's transform; pickled for worker processes."""

    def __init__(self, greatest: float, crop: tuple[int, int] | None, after: Any):
        self.greatest, self.crop, self.after = greatest, crop, after

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        if self.greatest == 255:
            image = image / 255 if image.max() > 1 else image
        elif self.greatest != 1:
            image = image / self.greatest
        if self.crop is not None:
            height, width = self.crop
            if image.shape[-2] >= height and image.shape[-1] >= width:
                y, x = (image.shape[-2] - height) // 2, (image.shape[-1] - width) // 2
                image = image[..., y : y + height, x : x + width]
        return image if self.after is None else self.after(image)


def _range_of(images: wellread.Dataset) -> float:
    """The greatest number of the stored type; 1 for floats."""
    dtype = images.dtype if len(images) else np.dtype("float32")
    return float(np.iinfo(dtype).max) if dtype.kind in "iu" else 1.0


class SimpleEmbeddingModel(nn.Module):
    """A small convolutional network: (N, C, H, W) to (N, embedding_dim)."""

    def __init__(self, input_channels: int = 1, embedding_dim: int = 128):
        super().__init__()
        self.features: nn.Sequential = nn.Sequential(
            nn.Conv2d(input_channels, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )  # fmt: skip
        self.embed: nn.Linear = nn.Linear(64, embedding_dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.embed(self.features(x))


def generate_and_write_data() -> None:
    """Writes ``N_ROWS`` images of uniform noise in every format of this build, by ``wellread generate``. Images that
    are there already are replaced."""
    names = dict.fromkeys(name for name, _, _ in _FORMATS.values() if name in wellread.formats())
    names.pop("parquet-duckdb", None)
    _run("generate", _folder(), "--formats", ",".join(names), *_of_images(), "--overwrite")


def get_available_formats() -> list[dict[str, Any]]:
    """The formats that :func:`generate_and_write_data` has written and this build reads: ``name``, ``type`` and
    ``path`` of each."""
    readable = set(wellread.formats())
    return [
        {"name": label, "type": kind, "path": _folder() / file}
        for kind, (name, label, file) in _FORMATS.items()
        if name in readable and (_folder() / file).exists()
    ]


def percentile_stats(values: Any) -> dict[str, float]:
    """``mean``, ``std``, ``p50``, ``p95``, ``p99``, ``min`` and ``max`` of several times."""
    times = np.asarray(values, float)
    ranks = {f"p{percent}": float(np.percentile(times, percent)) for percent in (50, 95, 99)}
    ends = {"min": float(times.min()), "max": float(times.max())}
    return {"mean": float(times.mean()), "std": float(times.std())} | ranks | ends


def benchmark_numpy_vs_torch(
    format_config: dict[str, Any], num_samples: int = 100, warmup: int = 10
) -> dict[str, Any]:
    """Times images as arrays, their conversion by ``torch.from_numpy(…).float()``, and both together.

    Args:
        format_config: ``name``, ``type`` and ``path``, as of :func:`get_available_formats`.
        num_samples: images that are timed, in random order; as many as there are, at most.
        warmup: images that are read before.

    Returns:
        ``format``, ``num_samples``, ``numpy_samples_per_sec`` and ``torch_samples_per_sec``. ``numpy_``,
        ``conversion_`` and ``torch_`` have ``mean``, ``p50``, ``p95`` and ``p99`` in seconds.
        ``conversion_overhead_pct`` is the conversion as share of both. Each image is read and converted in one turn,
        so that both are of the same.

    Raises:
        ValueError: there are no images.
    """
    dataset = OMEArrowDatasetNumpy(format_config["path"], format_config["type"])
    if not len(dataset):
        raise ValueError(f"{format_config['path']}: there are no images")
    order = np.random.default_rng(SEED).permutation(len(dataset))
    for row in order[:warmup]:
        dataset[row]
    rows = order[:num_samples]
    times: dict[str, list[float]] = {"numpy": [], "conversion": [], "torch": []}
    for row in rows:
        begin = time.perf_counter()
        image = dataset[row]
        read = time.perf_counter()
        torch.from_numpy(image).float()
        end = time.perf_counter()
        for name, seconds in zip(times, (read - begin, end - read, end - begin), strict=True):
            times[name].append(seconds)
    stats = {name: percentile_stats(seconds) for name, seconds in times.items()}
    found: dict[str, Any] = {"format": format_config["name"], "num_samples": len(rows)}
    for name, of in stats.items():
        found |= {f"{name}_{which}": of[which] for which in ("mean", "p50", "p95", "p99")}
    found["conversion_overhead_pct"] = stats["conversion"]["mean"] / stats["torch"]["mean"] * 100
    for name in ("numpy", "torch"):
        found[f"{name}_samples_per_sec"] = 1 / stats[name]["mean"]
    return found


def run_track1() -> pandas.DataFrame:
    """Single images, by ``wellread bench dataset``: a row for each format, access pattern, transform and run."""
    arguments: list[Any] = ["--access", "sequential,random", "--transform", "none,normalize,augment"]
    arguments += ["--cache", "none", "--samples", TRACK1_BENCHMARK_SAMPLES, "--repeats", TRACK1_REPEATS]
    renamed = {"access": "access_pattern"} | {f"{name}_s": name for name in _STATISTICS}
    return _track(1, "dataset", arguments, renamed)


def run_track2() -> pandas.DataFrame:
    """Epochs in batches, by ``wellread bench dataloader``: a row for each format, batch size, workers and run."""
    arguments = ["--batch-sizes", _listed(TRACK2_BATCH_SIZES), "--workers", _listed(TRACK2_NUM_WORKERS_OPTIONS)]
    renamed = {"workers": "num_workers", "first_batch_s": "first_batch_time"}
    renamed |= {f"{name}_s": name for name in _STATISTICS}
    return _track(2, "dataloader", [*arguments, "--repeats", TRACK2_REPEATS], renamed)


def run_track3() -> pandas.DataFrame:
    """A small network fed by the loader, by ``wellread bench loop``: a row for each format and run."""
    arguments = ["--mode", "inference", "--steps", TRACK3_STEPS, "--batch-size", TRACK3_BATCH_SIZE]
    renamed = {f"step_{name}_s": f"step_time_{name}" for name in ("mean", "p50", "p95")}
    return _track(3, "loop", [*arguments, "--repeats", TRACK3_REPEATS], renamed, num_steps=TRACK3_STEPS)


def run_track4() -> pandas.DataFrame:
    """From an array to a tensor, by ``wellread bench conversion`` in torch with the format's usual reader: a row for
    each format, path and run."""
    arguments = ["--samples", TRACK1_BENCHMARK_SAMPLES, "--repeats", TRACK1_REPEATS, "--framework", "pytorch"]
    parts = [(part, name) for part in ("numpy", "conversion", "torch") for name in _STATISTICS]
    renamed = {f"{part}_{name}_s": f"{part}_{name}" for part, name in parts}
    return _track(4, "conversion", arguments, renamed, num_samples=min(TRACK1_BENCHMARK_SAMPLES, N_ROWS))


def plot_track1_results(df: pandas.DataFrame) -> None:
    """Puts the plot of the track that was run last to ``IMAGES_DIR``, as ``wellread bench`` has drawn it."""
    _plot(1, "dataset")


def plot_track2_results(df: pandas.DataFrame) -> None:
    """As :func:`plot_track1_results`."""
    _plot(2, "dataloader")


def plot_track3_results(df: pandas.DataFrame) -> None:
    """As :func:`plot_track1_results`."""
    _plot(3, "loop")


def plot_track4_results(df: pandas.DataFrame) -> None:
    """As :func:`plot_track1_results`."""
    _plot(4, "conversion")


def main() -> None:
    """Writes the images, runs all four tracks, and draws their plots."""
    generate_and_write_data()
    for run, plot in (
        (run_track1, plot_track1_results),
        (run_track2, plot_track2_results),
        (run_track3, plot_track3_results),
        (run_track4, plot_track4_results),
    ):
        plot(run())


_STATISTICS = ("mean", "std", "p50", "p95", "p99", "min", "max")


def _listed(values: Any) -> str:
    return ",".join(str(value) for value in values)


def _folder() -> Path:
    return Path(DATA_DIR) / "pytorch_bench"


def _of_images() -> list[Any]:
    """The images that upstream makes."""
    height, width = OME_SHAPE
    noise = ["--dtype", "uint8", "--kind", "noise", "--seed", SEED]
    return ["--images", N_ROWS, "--size", f"{height}x{width}", *noise]


def _run(*arguments: Any) -> None:
    """Runs the command in a process of its own; what it prints is seen."""
    try:
        done = subprocess.run([program(), *map(str, arguments)], env=environment())
    except FileNotFoundError as error:
        raise BenchmarkError(str(error)) from None
    if done.returncode:
        raise BenchmarkError(f"wellread {arguments[0]} ended with code {done.returncode}; its error stands above")


def _track(number: int, what: str, arguments: list[Any], renamed: dict[str, str], **more: int) -> pandas.DataFrame:
    """Runs a benchmark, and keeps its rows under upstream's names of columns, with columns of one value more, in
    upstream's file too."""
    import pandas

    labels = {name: label for name, label, _ in _FORMATS.values() if name in wellread.formats()}
    results = _results(what)
    _run(
        "bench", what, *_of_images(), *arguments, "--formats", ",".join(labels), "--out", results,
        "--data-dir", Path(DATA_DIR) / "pytorch_bench_sets",
    )  # fmt: skip
    table = pandas.read_csv(results / f"{what}.csv")
    table = table[table["status"] == "ok"].rename(columns=renamed)
    table["format"] = table["format"].map(lambda name: labels.get(name, name))
    # Without the rows that were not measured, columns have one type again.
    table = table.reset_index(drop=True).infer_objects().assign(**more)
    table.to_parquet(Path(DATA_DIR) / f"pytorch_benchmark_track{number}.parquet")
    _summarise(number, results / "summary.json")
    return table


def _summarise(number: int, of: Path) -> None:
    """Puts the aggregates and metadata of a track beside those of the others, into upstream's file."""
    path = Path(DATA_DIR) / "pytorch_benchmark_summary.json"
    summary = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    summary[f"track{number}"] = json.loads(of.read_text(encoding="utf-8"))
    path.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")


def _results(what: str) -> Path:
    return Path(DATA_DIR) / "pytorch_bench_results" / what


def _plot(number: int, what: str) -> None:
    drawn = _results(what) / f"{what}.png"
    if not drawn.exists():
        raise FileNotFoundError(f"{drawn}: run_track{number}() draws it")
    Path(IMAGES_DIR).mkdir(parents=True, exist_ok=True)
    shutil.copyfile(drawn, Path(IMAGES_DIR) / f"pytorch_benchmark_track{number}.png")


if __name__ == "__main__":
    main()
