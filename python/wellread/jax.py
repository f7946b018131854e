"""The loader with JAX's arrays.

On a CPU they show the loader's own memory, without a copy; to another device, or several (a ``Sharding``), each batch
is moved by JAX while the one before it is computed with.
"""

from __future__ import annotations

from . import loader as _loader

__all__ = ["DataLoader"]


class DataLoader(_loader.DataLoader):
    """:class:`wellread.DataLoader` with ``as_="jax"``. ``device`` may also be a ``jax.sharding.Sharding``."""

    def __init__(self, dataset, batch_size: int = 1, shuffle: bool = False, **choices):
        if choices.setdefault("as_", "jax") != "jax":
            raise ValueError(f'as_ must be "jax" here, not {choices["as_"]!r}')
        super().__init__(dataset, batch_size, shuffle, **choices)
