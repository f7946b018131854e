"""Inference benchmarks from Python: ResNet-50 and ViT-B/16 in PyTorch, JAX, ONNX Runtime and wellread's own kernels.

>>> from wellread.bench import BenchmarkConfig, run_inference_benchmark
>>> config = BenchmarkConfig(framework="pytorch", model_name="resnet50", batch_sizes=[1, 4])
>>> for row in run_inference_benchmark(config):
...     print(row["batch_size"], row["latency_p50_ms"], row["throughput_ips"])

Names and defaults are upstream's. ``wellread infer`` does the work and runs each framework in a process of its own.
It imports nothing into this one, and measures the same as on the command line.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _check
from ._command import program
from ._signature import OTHERS, telling, warn
from ._synthetic import Synthetic
from ._types import TrainChoices
from .errors import Error

if TYPE_CHECKING:
    import pandas

    from .dataset import Dataset

__all__ = [
    "BenchmarkConfig",
    "BenchmarkError",
    "BenchmarkLogger",
    "compare_models",
    "create_dataloader",
    "reset_memory_stats",
    "run_benchmark_suite",
    "run_inference_benchmark",
]

# Mean and deviation of ImageNet's channels, and the share of the shorter side that is kept: what both models expect.
MEAN, DEVIATION, KEPT = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), 224 / 256
# So many images are looked at for one that can be read.
_TRIED = 1000
# Line of the command's output behind which the results stand.
SAVED = "Results saved to: "


class BenchmarkError(RuntimeError):
    """Nothing could be measured; the text says why."""


@dataclass
class BenchmarkConfig:
    """The settings of a measurement: one framework and model at several batch sizes.

    Args:
        framework: "pytorch", "jax", "onnxruntime" or "candle".
        model_name: "resnet50", "vit_b_16" or the path of an ONNX file.
        device_prefer: "cuda", "mps", "tpu" or "cpu"; the default is the framework's best. A named device that is
            missing is a failure.
        batch_sizes: images per pass.
        warmup_iterations: fewest passes before the measured ones; more follow until latency is steady.
        measurement_iterations: measured passes.
        input_shape: (channels, height, width) of an image; the default is the model's own.
        dtype: "float32", "float16" or "bfloat16".
        data_source: "synthetic", or the path of a set of images in any format that wellread reads, such as an image
            folder laid out as ImageNet-100. A set adds end-to-end figures to the results.
        csv_output_dir: folder of the results.
        verbose: print progress.
        compile: run PyTorch with torch.compile.
        threads: threads of the framework; the default is one per processor.
        seed: of weights, synthetic images and the order of turns.
        options: more arguments of ``wellread infer``, such as ("--torch", "channels-last").
    """

    framework: str = "pytorch"
    model_name: str = "resnet50"
    device_prefer: str | None = None
    batch_sizes: Sequence[int] | None = (1, 8, 32, 128)
    warmup_iterations: int = 10
    measurement_iterations: int = 50
    input_shape: Sequence[int] | None = None
    dtype: str = "float32"
    data_source: str | os.PathLike[str] = "synthetic"
    csv_output_dir: str | os.PathLike[str] = "results/raw"
    verbose: bool = True
    compile: bool = False
    threads: int | None = None
    seed: int = 0
    options: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        if self.batch_sizes is None:
            self.batch_sizes = (1, 8, 32, 128)


# What functions hand on to it.
_CONFIGURED = BenchmarkConfig.__dataclass_fields__


def run_inference_benchmark(config: BenchmarkConfig) -> list[dict[str, Any]]:
    """Measures one framework and model.

    Returns:
        A dictionary per batch size with the columns of the CSV file: ``latency_p50_ms``, ``throughput_ips``,
        ``memory_mb`` and so on. ``status`` is "ok", "invalid" or "failed", and ``reason`` says why.

    Raises:
        BenchmarkError: nothing could be measured: an unknown name, a framework that is missing.
    """
    return _run(config, [config.framework], [config.model_name])


@telling("run_benchmark_suite", {}, _CONFIGURED)
def run_benchmark_suite(
    models: Sequence[str] | None = None,
    frameworks: Sequence[str] | None = None,
    batch_sizes: Sequence[int] | None = None,
    csv_output_dir: str | os.PathLike[str] = "results/raw",
    verbose: bool = True,
    **options: Any,
) -> list[dict[str, Any]]:
    """Measures all frameworks with all models: frameworks in turns, on the same weights and images.

    Args:
        models: names, as in :class:`BenchmarkConfig`; the default is both.
        frameworks: likewise; the default is PyTorch and JAX.
        batch_sizes: images per pass; the default is 1, 8, 32 and 128.
        csv_output_dir: folder of the results.
        verbose: print progress.
        options: other fields of :class:`BenchmarkConfig`.

    Returns:
        The rows of :func:`run_inference_benchmark`, for all models and frameworks. ``max_difference`` compares their
        outputs. A framework that is missing beside others is a warning.

    Raises:
        BenchmarkError: nothing could be measured.
    """
    models = ("resnet50", "vit_b_16") if models is None else models
    frameworks = ("pytorch", "jax") if frameworks is None else frameworks
    config = BenchmarkConfig(batch_sizes=batch_sizes, csv_output_dir=csv_output_dir, verbose=verbose, **options)
    return _run(config, _listed("frameworks", frameworks), _listed("models", models))


@telling("compare_models", {}, _CONFIGURED)
def compare_models(
    models: Sequence[str] = ("resnet50",),
    frameworks: Sequence[str] = ("pytorch", "jax"),
    batch_size: int = 1,
    **options: Any,
) -> dict[str, Any]:
    """Compares the outputs of frameworks for the same weights and images.

    Returns:
        ``agree``, ``max_difference``, relative to the largest output (None if fewer than two frameworks ran), and the
        rows in ``results``.

    Raises:
        BenchmarkError: nothing could be run.
    """
    options = {"warmup_iterations": 0, "measurement_iterations": 1, "verbose": False, **options}
    rows = run_benchmark_suite(models, frameworks, [batch_size], **options)
    found = [row["max_difference"] for row in rows if row["max_difference"] is not None]
    agree = bool(found) and all(row["status"] == "ok" for row in rows)
    return {"agree": agree, "max_difference": max(found, default=None), "results": rows}


class BenchmarkLogger:
    """Results in a CSV file of a folder.

    Args:
        output_dir: the folder.
        filename: the file; the default is a new one named by the time.
    """

    def __init__(self, output_dir: str | os.PathLike[str] = "results/raw", filename: str | None = None):
        name = filename or f"benchmark_results_{datetime.datetime.now():%Y%m%d_%H%M%S}.csv"
        self.path: Path = Path(output_dir) / name

    def log(self, result: Mapping[str, Any]) -> None:
        """Adds a result. It writes the file beside and renames it, so that the file is whole at any time.

        Raises:
            ValueError: columns other than the file's.
        """
        rows = self.rows() if self.path.exists() else []
        if rows and set(rows[0]) != set(result):
            odd = sorted(set(rows[0]) ^ set(result))
            raise ValueError(f"{self.path} has other columns than this result: {', '.join(odd)}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            with beside.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, list(rows[0]) if rows else list(result))
                writer.writeheader()
                writer.writerows([*rows, dict(result)])
            beside.replace(self.path)
        finally:
            beside.unlink(missing_ok=True)

    def rows(self) -> list[dict[str, str]]:
        """All results as texts, without pandas."""
        with self.path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def read_results(self) -> pandas.DataFrame:
        """All results as a pandas table.

        Raises:
            FileNotFoundError: there is no such file.
            ImportError: pandas is not installed; :meth:`rows` does without.
        """
        import pandas

        return pandas.read_csv(self.path)


@telling("create_dataloader", OTHERS, TrainChoices.__annotations__)
def create_dataloader(
    data_source: str | os.PathLike[str] = "synthetic",
    batch_size: int = 1,
    input_shape: Sequence[int] = (3, 224, 224),
    *,
    as_: str = "torch",
    seed: int = 0,
    batches: int | None = None,
    split: str | None = None,
    **options: Any,
) -> Iterable[Any]:
    """Batches as the models take them: float32 (N, C, H, W), normalised as ImageNet's images.

    Args:
        data_source: "synthetic", or the path of a set of images in any format that wellread reads.
        batch_size: images per batch.
        input_shape: (channels, height, width) of an image.
        as_: "numpy", "torch" or "jax".
        seed: of synthetic images; of a set, of its order and all random draws.
        batches: number of synthetic batches of an epoch; the default is 100.
        split: "train", "val" … of a folder laid out as ImageNet, also as ImageNet-100 is distributed. The default is
            all images.
        options: of a set: arguments of :class:`wellread.DataLoader`, such as ``shuffle=True``. Each process gets all
            images unless ``shard="auto"`` divides them among ranks.

    Returns:
        A :class:`wellread.DataLoader`: the centre square of 224/256 of the shorter side, resized with antialiasing,
        scaled, normalised. Images of one channel are repeated, and so are grey pictures among coloured ones. Or an
        iterable of random batches.

    Raises:
        ValueError: images that do not fit the shape: volumes, or two channels where three are asked for.
    """
    batch_size = _check.whole("batch_size", batch_size, 1)
    sizes = _check.several("input_shape", input_shape, "(channels, height, width)")
    if len(sizes) != 3:
        raise ValueError(f"input_shape must be (channels, height, width), not {len(sizes)} numbers")
    channels, height, width = (_check.whole(f"input_shape[{i}]", n, 1) for i, n in enumerate(sizes))
    seed = _check.whole("seed", seed, 0, 2**64 - 1)
    batches = None if batches is None else _check.whole("batches", batches)
    if os.fspath(data_source) == "synthetic":
        if options or split is not None:
            given = [*options, *(["split"] if split is not None else [])]
            raise TypeError(f"synthetic images take no {', '.join(sorted(given))}")
        return Synthetic(batch_size, (channels, height, width), as_, seed, 100 if batches is None else batches)
    if batches is not None:
        raise TypeError("batches is for synthetic images; of a set, all are delivered")
    from .dataset import Dataset
    from .loader import DataLoader

    dataset = Dataset(data_source, table=split)
    if len(dataset) == 0:
        raise ValueError(f"{dataset.path}: there are no images")
    if dataset.format == "image-folder" and channels <= len(MEAN) and "channels" not in options:
        # Among pictures, grey ones may lie among coloured ones.
        dataset = dataset._in_color()
    stored = _first_shape(dataset, options.get("on_error") == "skip")
    if len(stored) != 3:
        raise ValueError(f"{dataset.path}: the images are volumes or series (TCZYX {stored}), and models take planes")
    if stored[0] < channels and stored[0] != 1 and "channels" not in options:
        raise ValueError(
            f"{dataset.path}: {_check.counted(stored[0], 'channel')} where {channels} are asked for: "
            "choose with channels=[0, 1, 1]"
        )
    chosen = [0] * channels if stored[0] == 1 else list(range(channels))
    prepared: dict[str, Any] = {
        "as_": as_,
        "channels": chosen,
        "crop_square": KEPT,
        "resize": (height, width),
        "resize_filter": "antialias",
        "scale": "unit",
        "normalize": (MEAN, DEVIATION) if channels == len(MEAN) else None,
    }
    if options.get("resize", (height, width)) is None:
        # Nothing is resized, and a filter would be of nothing.
        del prepared["resize_filter"]
    if "rank" not in options:
        # A benchmark measures all images, whatever job it runs in.
        prepared["shard"] = False
    return DataLoader(dataset, batch_size=batch_size, seed=seed, **{**prepared, **options})


def _first_shape(dataset: Dataset, skips: bool) -> tuple[int, ...]:
    """The shape of the first image; with `skips`, of the first one that can be read."""
    tried = min(len(dataset), _TRIED if skips else 1)
    for row in range(tried - 1):
        with contextlib.suppress(Error):
            return dataset.image_shape(row)
    return dataset.image_shape(tried - 1)


def reset_memory_stats() -> None:
    """Resets the peaks of memory that torch keeps in this process, and frees unused memory.

    Benchmarks need no such call: each framework runs in a process of its own.
    """
    import gc

    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def _listed(name: str, values: Sequence[str]) -> list[str]:
    found = [values] if isinstance(values, str) else list(values)
    if not found:
        raise ValueError(f"{name} is empty")
    return found


def _arguments(config: BenchmarkConfig, frameworks: Sequence[str], models: Sequence[str]) -> list[str]:
    """The arguments of the command."""
    given: dict[str, Any] = {
        "--framework": ",".join(frameworks),
        "--model": ",".join(os.fspath(model) for model in models),
        "--batch-sizes": ",".join(str(n) for n in config.batch_sizes or ()),
        "--iterations": config.measurement_iterations,
        "--warmup": config.warmup_iterations,
        "--device-prefer": config.device_prefer,
        "--dtype": config.dtype,
        "--input-shape": None if config.input_shape is None else ",".join(str(n) for n in config.input_shape),
        "--data-source": os.fspath(config.data_source),
        "--output-dir": os.fspath(config.csv_output_dir),
        "--threads": config.threads,
        "--seed": config.seed,
        # The frameworks of this Python.
        "--python": sys.executable,
    }
    arguments = [f"{name}={value}" for name, value in given.items() if value is not None]
    return [*arguments, *(["--compile"] if config.compile else []), *config.options]


def _run(config: BenchmarkConfig, frameworks: Sequence[str], models: Sequence[str]) -> list[dict[str, Any]]:
    try:
        command = [program(), "infer", *_arguments(config, frameworks, models)]
    except FileNotFoundError as error:
        raise BenchmarkError(str(error)) from None
    saved: Path | None = None
    said: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace"
    ) as process:
        assert process.stdout is not None, "asked for as a pipe"
        try:
            for line in process.stdout:
                if config.verbose:
                    # By print, so that a notebook shows it.
                    print(line, end="", flush=True)
                said.append(line)
                if line.startswith(SAVED):
                    saved = Path(line.removeprefix(SAVED).strip())
        except BaseException:
            # Ctrl-C: the command ends its workers.
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            raise
    if saved is None:
        raise BenchmarkError("".join(said[-20:]).strip() or f"the command ended with code {process.returncode}")
    rows = [record["row"] for record in json.loads(saved.with_suffix(".json").read_text(encoding="utf-8"))["records"]]
    if all(row["status"] == "failed" for row in rows):
        reasons = dict.fromkeys(row["reason"] or "no reason is known" for row in rows)
        raise BenchmarkError(f"nothing was measured: {'; '.join(reasons)}")
    if process.returncode:
        errors = [line.strip() for line in said if line.startswith("error:")]
        why = errors[-1] if errors else "".join(said[-5:]).strip()
        warn(f"wellread infer ended with code {process.returncode}: {why}")
    return rows
