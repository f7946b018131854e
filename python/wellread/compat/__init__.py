"""Upstream's modules by their names, over wellread's own loader and benchmarks: one line of a program is changed.

>>> from wellread.compat.bench.runner import BenchmarkConfig   # was: from bench.runner import BenchmarkConfig

A program whose imports are to stay as they are imports :mod:`wellread.compat.install` before them.

| upstream | here |
|---|---|
| ``bench.runner`` | :mod:`wellread.compat.bench.runner` |
| ``utils.logging`` | :mod:`wellread.compat.utils.logging` |
| ``utils.data`` | :mod:`wellread.compat.utils.data` |
| ``pytorch_benchmark`` | :mod:`wellread.compat.pytorch_benchmark` |
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import pytorch_benchmark as pytorch_benchmark
else:

    def __getattr__(name: str):
        # `wellread.compat.pytorch_benchmark` without importing it first; it imports torch.
        if name == "pytorch_benchmark":
            import importlib

            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
