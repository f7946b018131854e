"""The loader with JAX's arrays.

On a CPU they show the loader's own memory, without a copy. JAX moves each batch to another device, or several (a
``Sharding``), while the program computes with the batch before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from . import loader as _loader
from ._iteration import B_co
from ._signature import showing
from ._types import ArrayChoices, DictChoices, LabelledChoices, LoaderChoices, Paths
from .dataset import Dataset

if TYPE_CHECKING:
    import jax
    from typing_extensions import Unpack

__all__ = ["DataLoader"]


class DataLoader(_loader.DataLoader[B_co]):
    """:class:`wellread.DataLoader` with ``as_="jax"``. ``device`` may also be a ``jax.sharding.Sharding``, which must
    divide every batch into equal parts: ``drop_last=True`` leaves out a last batch that is not full."""

    @overload
    def __init__(
        self: DataLoader[jax.Array],
        dataset: Dataset | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["jax"] = "jax",
        **choices: Unpack[ArrayChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[tuple[jax.Array, Any]],
        dataset: Dataset | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["jax"] = "jax",
        **choices: Unpack[LabelledChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[dict[str, Any]],
        dataset: Dataset | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["jax"] = "jax",
        **choices: Unpack[DictChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[Any],
        dataset: Dataset | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["jax"] = "jax",
        **choices: Unpack[LoaderChoices],
    ) -> None: ...
    @showing(LoaderChoices, of=_loader.DataLoader.__init__)
    def __init__(
        self,
        dataset: Dataset | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["jax"] = "jax",
        **choices: Unpack[LoaderChoices],
    ) -> None:
        if as_ != "jax":
            raise ValueError(f'as_ must be "jax" here, not {as_!r}')
        super().__init__(dataset, batch_size, shuffle, as_=as_, **choices)
