"""Your own models for `wellread bench loop --model`: a torch.nn.Module, two kinds of Flax module, and an ONNX file.

Run by itself it writes the ONNX file, and says how fast this machine trains or runs each of them on the same images.
"""

import os
import subprocess
import sys
from pathlib import Path

import torch
from flax import linen, nnx
from torch import nn


class Torch(nn.Module):
    """Any module: it is given batches N x C x H x W, and the number of channels where it takes `in_channels`."""

    def __init__(self, in_channels: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(in_channels, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)
        )

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.layers(pixels)


class Linen(linen.Module):
    """Flax has channels last: batches are N x H x W x C."""

    @linen.compact
    def __call__(self, pixels):
        hidden = linen.relu(linen.Conv(8, (3, 3), strides=2)(pixels))
        return linen.Dense(4)(hidden.mean((1, 2)))


class Nnx(nnx.Module):
    """Flax's newer modules also take the random numbers that their weights begin with, `rngs`."""

    def __init__(self, in_channels: int, rngs: nnx.Rngs):
        self.conv = nnx.Conv(in_channels, 8, (3, 3), strides=2, rngs=rngs)
        self.out = nnx.Linear(8, 4, rngs=rngs)

    def __call__(self, pixels):
        return self.out(nnx.relu(self.conv(pixels)).mean((1, 2)))


def export(path: Path, in_channels: int) -> None:
    """Writes what `Torch` computes as an ONNX file, for batches of any size."""
    torch.onnx.export(
        Torch(in_channels).eval(), (torch.zeros(2, in_channels, 48, 48),), path, dynamo=False,
        input_names=["pixels"], dynamic_axes={"pixels": {0: "n", 2: "y", 3: "x"}},
    )  # fmt: skip


def main() -> None:
    import pyarrow.parquet as pq
    from _images import cells

    path = Path(cells(32, "48x48"))
    onnx, results = path.with_name("model.onnx"), path.with_name("results")
    export(onnx, in_channels=2)
    # The command imports the models by name, from this folder.
    here = Path(__file__).resolve().parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")])}
    for framework, model, mode in (
        ("pytorch", "python:custom_models:Torch", "train"),
        ("jax", "python:custom_models:Linen", "train"),
        ("jax", "python:custom_models:Nnx", "train"),
        ("pytorch", str(onnx), "inference"),
    ):
        subprocess.run(
            [sys.executable, "-m", "wellread", "--quiet", "bench", "loop", "--input", path, "--formats", "parquet",
             "--loaders", "wellread", "--framework", framework, "--python", sys.executable, "--model", model,
             "--mode", mode, "--steps", "2", "--batch-size", "8", "--repeats", "1", "--out", results],
            check=True, env=environment, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        for row in pq.read_table(results / "loop.parquet").to_pylist():
            said = f"{row['images_per_sec']:.0f} images/s" if row["status"] == "ok" else row["reason"]
            print(f"{Path(row['model']).name} in {row['framework']}, {row['mode']}: {said}")


if __name__ == "__main__":
    main()
