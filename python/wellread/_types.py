"""Types of arguments, for type checkers: words, and choices that calls hand on to :class:`wellread.DataLoader`.

The words are the only list of them: what checks arguments takes them from here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import Required

    from .dataset import Dataset

As = Literal["numpy", "torch", "jax", "batch"]
Dtype = Literal["float32", "float16", "bfloat16", "stored"]
TensorDtype = Literal["stored", "float32", "float16", "bfloat16", "int32", "int64", "uint8", "uint16"]
Order = Literal["sequential", "shuffle", "block", "grouped", "weighted", "balanced"]
Turns = Literal["none", "half", "quarter", "fitting"]
Filter = Literal["area", "bilinear", "antialias"]
Uneven = Literal["drop", "pad"]
OnError = Literal["raise", "skip"]
Edge = Literal["shift", "pad", "drop"]
Unit = Literal["pixel", "um"]
Mask = Literal["none", "zero", "channel"]
Unmatched = Literal["error", "skip"]
Lone = Literal["error", "null"]
TargetKind = Literal["labels", "image"]
Pairing = Literal["order", "names"]
# With ":SIZE" behind it, a cache is any text.
Cache = Union[Literal["none", "memory", "lru", "compressed", "file", "preload"], str]  # noqa: UP007

Path = Union[str, "os.PathLike[str]"]  # noqa: UP007
# A path, or a list of some, which are one set.
Paths = Union[Path, Sequence[Path]]  # noqa: UP007
_Fields = Union[Path, "Sequence[Path | None]"]
Illumination = Union[_Fields, "Mapping[str, _Fields]"]
Size = Union[int, Sequence[int]]  # noqa: UP007
Flip = Union[bool, float, Literal["horizontal", "vertical", "both"], Sequence[float]]  # noqa: UP007
Scale = Union[Literal["auto", "unit", "device"], float, Sequence[Any], None]  # noqa: UP007
Normalize = Union[Literal["image"], Path, Sequence[Any], None]  # noqa: UP007
Transform = Callable[[Any], Any]


class ProcessGroup(Protocol):
    """A process group of torch.distributed, or what tells its ranks in the same way."""

    def rank(self) -> int: ...
    def size(self) -> int: ...


Shard = Union[Literal["auto", "local", False], tuple[int, int], ProcessGroup, None]  # noqa: UP007


class ArrowStream(Protocol):
    """Anything with an Arrow stream: a pyarrow table, a polars frame, a DuckDB result."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class Observed(Protocol):
    """Anything with a table of observations: an AnnData."""

    @property
    def obs(self) -> Any: ...


class Listed(Protocol):
    """An array or a tensor, which makes a list of itself."""

    def tolist(self) -> Any: ...


# Rows by number or truth value, and a weight for each.
Rows = Union[Iterable[int], Listed]  # noqa: UP007
Weights = Union[Iterable[float], Listed]  # noqa: UP007


class OpenOptions(TypedDict, total=False):
    """Options of :class:`wellread.Dataset`."""

    format: str | None
    table: str | None
    column: str | None
    level: int | None
    cache: Cache | None
    layout: str | None
    pattern: str | None
    missing: str | None
    unmatched: str | None
    path_map: Mapping[str, str] | None
    skip_null: bool


class Recipe(TypedDict, total=False):
    """Choices that a view has of its own; the others are those of :class:`wellread.DataLoader`. ``scale_range`` and
    ``ratio_range`` are the share of the area and the proportion of ``random_resized_crop``.
    """

    crop: Size | None
    crop_square: float | None
    random_crop: Size | None
    random_resized_crop: Size | None
    scale_range: Sequence[float] | None
    ratio_range: Sequence[float] | None
    flip: Flip
    turns: Turns
    rotate: float
    resize: Size | None
    resize_filter: Filter
    brightness: float
    contrast: float
    gamma: float
    per_channel: bool
    photon_noise: float
    gaussian_noise: float
    channel_dropout: float


Views = Union[int, Sequence[Recipe], Mapping[str, Union[Recipe, tuple[int, Recipe]]], None]  # noqa: UP007


class PixelChoices(TypedDict, total=False):
    """Choices of :class:`wellread.DataLoader` about what becomes of pixels, and by what means: those that change
    nothing of the type of a batch."""

    seed: int
    num_workers: int | None
    dtype: Dtype
    scale: Scale
    percentiles: Sequence[float] | None
    normalize: Normalize
    channels: Sequence[int] | Sequence[str] | None
    crop: Size | None
    crop_square: float | None
    random_crop: Size | None
    random_resized_crop: Size | None
    flip: Flip
    turns: Turns
    rotate: float
    resize: Size | None
    resize_filter: Filter | None
    max_projection: bool
    brightness: float
    contrast: float
    gamma: float
    per_channel: bool
    photon_noise: float
    gaussian_noise: float
    channel_dropout: float
    illumination: Illumination | None
    crops_per_image: int
    prefetch: int | None
    memory: int | str | None
    on_error: OnError
    transform: Transform | None
    pin_memory: bool
    device: Any


class PartChoices(TypedDict, total=False):
    """Choices of :class:`wellread.DataLoader` about what a batch is made of, but for ``labels``."""

    targets: Dataset | Paths | None
    target_kind: TargetKind | None
    target_channels: Sequence[int] | Sequence[str] | None
    target_dtype: Dtype | None
    target_scale: Scale
    pairing: Pairing | None
    views: Views
    classes: bool | Sequence[Any] | None
    columns: Sequence[str] | None
    features: str | Sequence[str] | None
    indices: bool
    as_dict: bool
    keys: Mapping[str, str] | Sequence[str] | None
    batch_transform: Transform | None


class ImageChoices(PixelChoices, PartChoices, total=False):
    """Choices of :class:`wellread.DataLoader` about images and what comes beside them."""


class OrderChoices(TypedDict, total=False):
    """Choices of :class:`wellread.DataLoader` that say which rows come when, but for ``shuffle``."""

    order: Order | None
    by: str | Sequence[Any] | None
    weights: Weights | None
    block: int | Sequence[int] | None
    images_per_epoch: int | None
    rows: Rows | None
    sampler: Rows | None
    shard: Shard
    rank: int | None
    world_size: int | None
    nodes: int | None
    node: int | None
    reshard_every: int
    uneven: Uneven
    drop_last: bool
    epoch: int


class PlainChoices(PixelChoices, OrderChoices, total=False):
    """Choices of :class:`wellread.DataLoader` that change nothing of the type of a batch."""


class ArrayChoices(PlainChoices, total=False):
    """Choices of :class:`wellread.DataLoader` with which a batch is an array."""

    labels: None


class LabelledChoices(PlainChoices, total=False):
    """Choices of :class:`wellread.DataLoader` with which a batch is an array and labels."""

    labels: Required[Any]
    classes: bool | Sequence[Any] | None


class DictChoices(PlainChoices, total=False):
    """Choices of :class:`wellread.DataLoader` with which a batch is a dictionary."""

    as_dict: Required[Literal[True]]
    labels: Any
    classes: bool | Sequence[Any] | None
    columns: Sequence[str] | None
    features: str | Sequence[str] | None
    indices: bool
    keys: Mapping[str, str] | Sequence[str] | None


class LoaderChoices(ImageChoices, OrderChoices, total=False):
    """Choices of :class:`wellread.DataLoader` that its kin hand on to it."""

    labels: Any


class TrainChoices(LoaderChoices, total=False):
    """The same with ``shuffle``: choices for training alone."""

    shuffle: bool
