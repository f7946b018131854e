"""Read microscopy images into models at memory speed.

>>> import wellread
>>> ds = wellread.Dataset("plate.parquet")
>>> ds[5]                                        # numpy.ndarray (C, Y, X), as stored
>>> loader = wellread.DataLoader(ds, batch_size=16, shuffle=True, seed=42, num_workers=2, as_="torch")
>>> for batch in loader: ...                     # torch.Tensor float32 (16, C, Y, X), no copy after decoding

Torch's own classes are in :mod:`wellread.torch`. Importing this package imports neither torch nor JAX nor NumPy.
"""

import sys as _sys

from ._native import Batch, __version__, formats
from .dataset import Dataset
from .errors import ChoiceError, CorruptImageError, Error, MissingError
from .loader import DataLoader

if _sys.version_info >= (3, 12):

    def _buffer(batch: Batch, flags: int) -> memoryview:
        return batch.memoryview()

    # PEP 688: from here on memoryview(batch) works.
    Batch.__buffer__ = _buffer

__all__ = [
    "Batch",
    "ChoiceError",
    "CorruptImageError",
    "DataLoader",
    "Dataset",
    "Error",
    "MissingError",
    "__version__",
    "formats",
]


def __getattr__(name: str):
    # `wellread.torch` without importing it first; torch, JAX and Lightning only when they are asked for.
    if name in ("torch", "jax", "lightning"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
