"""``read``: a set as a :class:`ray.data.Dataset`, whose blocks a loader of ours makes in each task.

driver: ranges of rows, sizes of blocks, the row that all agree with ──▶ read task: the set, opened once per process
                                               └─ DataLoader(rows) ──▶ blocks: tensors, names, columns
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from .. import _check, _native
from .._signature import ELSEWHERE, telling
from .._types import LoaderChoices, Path
from ..dataset import Dataset
from ..errors import Error
from . import _arrow, _cluster, _read_blocks, _sets
from ._read_blocks import Plan

if TYPE_CHECKING:
    import ray.data

# Bytes of pixels in a block, unless rows are asked for.
BLOCK_BYTES = 64 << 20
# Rows that a loader looks through for the first that can be read.
MOST_SKIPPED = 1000
# Choices of a loader that this has its own of, or that a block has no place for.
_REFUSED = (
    *("as_", "batch_size", "shuffle", "order", "by", "weights", "block", "images_per_epoch", "rows", "sampler"),
    *("shard", "rank", "world_size", "uneven", "drop_last", "prefetch", "labels", "classes", "features", "indices"),
    *("as_dict", "keys", "targets", "target_kind", "target_channels", "target_dtype", "target_scale", "pairing"),
    *("views", "crops_per_image", "batch_transform", "pin_memory", "device"),
)
# What is said of them and of others that this does not take.
_ELSEWHERE = ELSEWHERE | dict.fromkeys(_REFUSED, "Ray shuffles, joins and batches blocks")


def _reference(plan: Plan, dataset: Dataset) -> int:
    """The row that a loader of the whole set takes for what all images must be like."""
    if plan.skips:
        for row in range(min(len(dataset), MOST_SKIPPED)):
            try:
                _read_blocks.loader(dataset, plan, [row]).close()
            except (Error, OSError):
                continue
            return row
    return 0


def _delivered(plan: Plan, dataset: Dataset) -> Any:
    """The pixels of one image after the caller's transform, as an array of one; None where it cannot be made here."""
    # A task says what is wrong with it.
    with contextlib.suppress(Exception), _read_blocks.loader(dataset, plan, [_reference(plan, dataset)]) as loader:
        for pixels, _ in loader:
            return numpy.asarray(pixels)
    return None


def _first(plan: Plan, dataset: Dataset) -> tuple[int, int, Any]:
    """Bytes of an image as it is delivered, bytes of its row in a block, and the schema of blocks. It is None where
    only a callable of the caller knows."""
    if plan.choices.get("dtype") == "bfloat16":
        raise ValueError("dtype: Arrow has no tensors of bfloat16; choose float16, float32 or stored")
    with _read_blocks.loader(dataset, plan, None) as loader:
        shape, dtype = loader.image_shape, str(loader._built.dtype)
    has_transform = plan.choices.get("transform") is not None
    pixels = _delivered(plan, dataset) if has_transform else None
    if pixels is None:
        pixels = numpy.zeros((1, *shape), dtype)
    name = ""
    with contextlib.suppress(Error):
        name = dataset.name(0)
    columns = _read_blocks.columns(dataset, plan.columns, range(1))
    block = _arrow.block(pixels, [name], numpy.zeros(1, "int64"), columns)
    return pixels.nbytes, block.nbytes, None if has_transform else block.schema


@telling("wellread.ray.read", _ELSEWHERE, {*LoaderChoices.__annotations__} - {*_REFUSED})
def read(
    path: Path | Sequence[Path] | Dataset,
    *,
    columns: str | Sequence[str] = (),
    rows_per_block: int | None = None,
    override_num_blocks: int | None = None,
    concurrency: int | None = None,
    ray_remote_args: Mapping[str, Any] | None = None,
    num_workers: int | None = None,
    **choices: Any,
) -> ray.data.Dataset:
    """A set of images as a :class:`ray.data.Dataset`. Its columns are ``image`` (a tensor (C, Y, X), or (T, C, Z, Y,
    X)), ``name``, ``row``, and those asked for.

    Args:
        path: the set, which every node can open. Or a :class:`wellread.Dataset`, for options of opening, some rows of
            one, or its cells.
        columns: columns beside the images; they keep their types.
        rows_per_block: images in a block; the default is as many as 64 MiB hold.
        override_num_blocks, concurrency, ray_remote_args: as of :func:`ray.data.read_datasource`: the number of
            tasks, the number that run at once, and the needs of each.
        num_workers: threads of a task that decode; the default is the task's processors (``num_cpus`` in
            ``ray_remote_args``, or 1).
        **choices: choices of :class:`wellread.DataLoader` for images: ``dtype``, ``scale``, ``channels``, ``crop``,
            ``resize``, ``normalize``, ``transform``, ``on_error`` … As there, images are float32 from 0 to 1 unless
            ``dtype="stored"``. With ``on_error="skip"`` Ray knows how many images there are when it has read them.
            Nothing lists the images that are left out: no block has their ``row``, and :func:`verify` lists them with
            the reasons.

    Raises:
        ImportError: Ray Data is not installed.
        TypeError, ValueError: a choice that makes no sense here or does not fit the images.
        KeyError: there is no such column.
        wellread.Error: a set that cannot be opened.

    Rows of a task follow one another, so one task reads each piece of a file. Ray hands out blocks as they come,
    unless its ``DataContext`` has ``execution_options.preserve_order``; ``row`` is an image's place in the set.
    """
    data = _cluster.data()
    from ._datasource import WellreadDatasource

    names = [columns] if isinstance(columns, str) else [_check.text("columns", name) for name in columns]
    for name in names:
        if name in ("image", "name", "row"):
            raise ValueError(f"columns must not have {name!r}, which every block has")
    dataset = _sets.of(path)
    for name in names:
        if name not in dataset.columns:
            raise KeyError(_native.missing_column(name, dataset.columns))
    remote = dict(ray_remote_args or {})
    threads = max(1, int(remote.get("num_cpus", 1)))
    if num_workers is not None:
        threads = _check.whole("num_workers", num_workers)
    how = _sets.recipe(dataset)
    plan = Plan(how, {**choices, "num_workers": threads}, names, 1)
    if not len(dataset):
        raise ValueError(f"{dataset.path}: there are no images to read")
    image_bytes, row_bytes, schema = _first(plan, dataset)
    rows = rows_per_block
    rows = max(1, BLOCK_BYTES // max(1, image_bytes)) if rows is None else _check.whole("rows_per_block", rows, 1)
    plan = Plan(how, plan.choices, names, min(rows, len(dataset)), _reference(plan, dataset))
    group = _native.row_group(dataset._native)
    source = WellreadDatasource(plan, dataset.path, len(dataset), group, row_bytes, schema)
    given: dict[str, Any] = {"override_num_blocks": override_num_blocks, "concurrency": concurrency}
    given |= _cluster.named(data.read_datasource, remote)
    return data.read_datasource(source, **{name: value for name, value in given.items() if value is not None})
