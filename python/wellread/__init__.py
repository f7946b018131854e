"""Load microscopy images into PyTorch, JAX or NumPy.

>>> import wellread
>>> ds = wellread.Dataset("plate.parquet")
>>> ds[5]                                        # numpy.ndarray (C, Y, X), as stored
>>> loader = wellread.DataLoader(ds, batch_size=16, shuffle=True, seed=42, num_workers=2, as_="torch")
>>> for batch in loader: ...                     # torch.Tensor float32 (16, C, Y, X), no copy after decoding

Torch's own classes are in :mod:`wellread.torch`. Importing this package imports neither torch nor JAX nor NumPy.
"""

import sys as _sys
from typing import TYPE_CHECKING

from ._link import link
from ._native import Batch, __version__, formats
from .dataset import Dataset
from .errors import ChoiceError, CorruptImageError, Error, MissingError, UnsupportedImageError
from .loader import DataLoader
from .tracing import step, trace

if _sys.version_info >= (3, 12):

    def _buffer(batch: Batch, flags: int) -> memoryview:
        from ._buffer import exported

        return exported(batch, flags)

    # PEP 688: from here on memoryview(batch) works.
    Batch.__buffer__ = _buffer  # type: ignore[method-assign]


def _jax_array(batch: Batch):
    from ._arrays import to_jax

    return to_jax()(batch)


# What jax.numpy.asarray(batch) asks for: it cannot read the name of a type in `dtype`.
Batch.__jax_array__ = _jax_array  # type: ignore[method-assign, assignment]

__all__ = [
    "Batch",
    "ChoiceError",
    "CorruptImageError",
    "DataLoader",
    "Dataset",
    "Error",
    "MissingError",
    "UnsupportedImageError",
    "__version__",
    "formats",
    "link",
    "step",
    "trace",
]


if TYPE_CHECKING:
    # What a type checker finds; it would take any name for one that the function below knows.
    from . import bench as bench
    from . import compat as compat
    from . import jax as jax
    from . import lightning as lightning
    from . import ray as ray
    from . import torch as torch
else:

    def __getattr__(name: str):
        # `wellread.torch` without importing it first; torch, JAX, Lightning and Ray only when they are asked for.
        if name in ("bench", "compat", "torch", "jax", "lightning", "ray"):
            import importlib

            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
