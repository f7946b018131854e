"""Random images in batches, of which the same seed gives the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Synthetic:
    """Seeded normal numbers in batches; each epoch the same."""

    def __init__(self, batch_size: int, shape: tuple[int, int, int], as_: str, seed: int, batches: int):
        if as_ not in ("numpy", "torch", "jax"):
            raise ValueError(f'as_ must be "numpy", "torch" or "jax", not {as_!r}')
        self._shape, self._as, self._seed, self._batches = (batch_size, *shape), as_, seed, batches

    def __len__(self) -> int:
        return self._batches

    def __iter__(self) -> Iterator[Any]:
        import numpy

        random = numpy.random.default_rng(self._seed)
        for _ in range(self._batches):
            batch = random.standard_normal(self._shape, dtype=numpy.float32)
            if self._as == "torch":
                import torch

                yield torch.from_numpy(batch)
            elif self._as == "jax":
                import jax.numpy

                yield jax.numpy.asarray(batch)
            else:
                yield batch
