"""``read``: a set as a :class:`ray.data.Dataset`, whose blocks a loader of ours makes in each task.

    Datasource (driver): ranges of rows, sizes of blocks ──▶ read task: the set, opened once per process
                                                              └─ DataLoader(rows of the range) ──▶ blocks: tensors, names, columns
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy

from .. import _check, _native
from .._types import Path
from ..dataset import Dataset
from ..loader import DataLoader
from . import _arrow, _cluster, _sets

if TYPE_CHECKING:
    import ray.data

# Bytes of pixels in a block, unless rows are asked for.
BLOCK_BYTES = 64 << 20
# About what a name and a row number take.
BESIDE_BYTES = 64
# Choices of a loader that this has its own of, or that a block has no place for.
REFUSED = (
    *("as_", "batch_size", "shuffle", "order", "by", "weights", "block", "images_per_epoch", "rows", "sampler"),
    *("shard", "rank", "world_size", "uneven", "drop_last", "prefetch", "labels", "classes", "features", "indices"),
    *("as_dict", "keys", "targets", "target_kind", "target_channels", "target_dtype", "target_scale", "pairing"),
    *("views", "crops_per_image", "batch_transform", "pin_memory", "device"),
)


@dataclass(frozen=True)
class Plan:
    """What every read task is given."""

    how: _sets.Recipe
    choices: dict[str, Any]
    columns: list[str]
    rows_per_block: int


def _loader(dataset: Dataset, plan: Plan, rows: range) -> Any:
    return DataLoader(
        dataset,
        batch_size=plan.rows_per_block,
        rows=rows,
        shard=False,
        prefetch=1,
        indices=True,
        **plan.choices,
    )


def _columns(dataset: Dataset, names: Sequence[str], rows: range) -> dict[str, Any]:
    """Columns of some rows, in Arrow."""
    if not names:
        return {}
    native = dataset._native.select(list(rows))
    return {name: _arrow.column(values) for name, values in zip(names, native.columns(list(names)), strict=True)}


def blocks(plan: Plan, start: int, end: int) -> Iterator[Any]:
    """The blocks of a range of rows, in order."""
    dataset = _sets.opened(plan.how)
    beside = _columns(dataset, plan.columns, range(start, end))
    with _loader(dataset, plan, range(start, end)) as loader:
        for pixels, rows in loader:
            rows = numpy.asarray(rows)
            names = [dataset.name(int(row)) for row in rows]
            columns = {name: column.take(rows - start) for name, column in beside.items()}
            # The column is over the loader's memory, which goes back with the last view of it.
            yield _arrow.block(numpy.asarray(pixels), names, rows, columns)


def _first(plan: Plan, dataset: Dataset) -> tuple[int, Any]:
    """Bytes of an image as it is delivered, and the schema of blocks; None where only a callable of the caller knows."""
    with _loader(dataset, plan, range(1)) as loader:
        shape, dtype = loader.image_shape, str(loader._native.dtype)
    if dtype not in _arrow.TENSORS:
        raise ValueError(f"dtype: Arrow has no tensors of {dtype}; choose one of {', '.join(_arrow.TENSORS)}")
    size = math.prod(shape) * numpy.dtype(dtype).itemsize
    if plan.choices.get("transform") is not None:
        return size, None
    pixels = numpy.zeros((1, *shape), dtype)
    columns = _columns(dataset, plan.columns, range(1))
    return size, _arrow.block(pixels, [""], numpy.zeros(1, "int64"), columns).schema


@functools.cache
def _datasource() -> Any:
    """The class, whose base is Ray's."""
    data = _cluster.data()
    from ray.data.block import BlockMetadata
    from ray.data.datasource import ReadTask

    class WellreadDatasource(data.Datasource):  # type: ignore[misc, name-defined]
        """A set of images, read by loaders."""

        def __init__(self, plan: Plan, path: str, images: int, group: int, image_bytes: int, schema: Any) -> None:
            self._plan, self._path, self._images, self._group = plan, path, images, group
            self._bytes, self._schema = image_bytes + BESIDE_BYTES, schema

        def get_name(self) -> str:
            return "Wellread"

        def estimate_inmemory_data_size(self) -> int:
            return self._images * self._bytes

        def get_read_tasks(self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None) -> Any:
            most = -(-self._images // max(1, parallelism))
            # Rows that lie together go to one task, where there are enough of them for all tasks.
            group = self._group if most >= 2 * self._group else 1
            tasks = []
            for start, end in _sets.ranges(self._images, most, group):
                if per_task_row_limit is not None:
                    end = min(end, start + per_task_row_limit)
                read = functools.partial(blocks, self._plan, start, end)
                metadata = _metadata(BlockMetadata, end - start, self._bytes, self._path, self._schema)
                tasks.append(_read_task(ReadTask, read, metadata, self._schema, per_task_row_limit))
            return tasks

    return WellreadDatasource


def _names_of(call: Any) -> Sequence[str]:
    import inspect

    return list(inspect.signature(call).parameters)


def _metadata(kind: Any, rows: int, row_bytes: int, path: str, schema: Any) -> Any:
    """Ray's metadata of a block; releases differ in the fields that it has."""
    known = {"num_rows": rows, "size_bytes": rows * row_bytes, "input_files": [path], "schema": schema}
    return kind(**{name: known.get(name) for name in _names_of(kind)})


def _read_task(kind: Any, read: Any, metadata: Any, schema: Any, limit: int | None) -> Any:
    """Ray's read task; releases differ in what it is given beside."""
    known = {"schema": schema, "per_task_row_limit": limit}
    names = _names_of(kind.__init__)
    return kind(read, metadata, **{name: value for name, value in known.items() if name in names})


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
    """A set of images as a :class:`ray.data.Dataset`: columns ``image`` (a tensor (C, Y, X), or (T, C, Z, Y, X)), ``name``, ``row``,
    and those asked for.

    Args:
        path: the set, which every node can open; or a :class:`wellread.Dataset`, where options say how, or some rows of
            one, or its cells.
        columns: columns beside the images; they keep their types.
        rows_per_block: images in a block; unless given, as many as 64 MiB hold.
        override_num_blocks, concurrency, ray_remote_args: as of :func:`ray.data.read_datasource`: into how many tasks the
            rows are cut, how many run at once, and what each needs.
        num_workers: threads of a task that decode; unless given, as many as it has processors (``num_cpus`` in
            ``ray_remote_args``, 1 unless given).
        **choices: what a :class:`wellread.DataLoader` makes of images: ``dtype``, ``scale``, ``channels``, ``crop``,
            ``resize``, ``normalize``, ``transform``, ``on_error`` … As there, images are float32 from 0 to 1 unless
            ``dtype="stored"``.

    Raises:
        ImportError: Ray Data is not installed.
        TypeError, ValueError: a choice that makes no sense here or does not fit the images.
        KeyError: there is no such column.
        wellread.Error: a set that cannot be opened.

    Rows of a task follow one another, so that each piece of a file is read by one. Ray hands out blocks as they come, unless its
    ``DataContext`` has ``execution_options.preserve_order``: ``row`` tells where an image stands.
    """
    data = _cluster.data()
    for name in choices:
        if name in REFUSED:
            raise TypeError(f"{name} is no choice of wellread.ray.read(): blocks are images in order, and Ray shuffles, joins and batches")
    names = [columns] if isinstance(columns, str) else [_check.text("columns", name) for name in columns]
    for name in names:
        if name in ("image", "name", "row"):
            raise ValueError(f"columns must not have {name!r}, which every block has")
    dataset = _sets.of(path)
    for name in names:
        if name not in dataset.columns:
            raise KeyError(f"no column {name!r} stands beside the images; there are: {', '.join(dataset.columns[:12])}")
    remote = dict(ray_remote_args or {})
    threads = max(1, int(remote.get("num_cpus", 1))) if num_workers is None else _check.whole("num_workers", num_workers)
    how = _sets.recipe(dataset)
    plan = Plan(how, {**choices, "num_workers": threads}, names, 1)
    if not len(dataset):
        raise ValueError(f"{dataset.path}: there are no images to read")
    image_bytes, schema = _first(plan, dataset)
    rows = rows_per_block
    rows = max(1, BLOCK_BYTES // max(1, image_bytes)) if rows is None else _check.whole("rows_per_block", rows, 1)
    plan = Plan(how, plan.choices, names, min(rows, len(dataset)))
    group = _native.row_group(dataset._native)
    source = _datasource()(plan, dataset.path, len(dataset), group, image_bytes, schema)
    given = {"override_num_blocks": override_num_blocks, "concurrency": concurrency, "ray_remote_args": remote or None}
    return data.read_datasource(source, **{name: value for name, value in given.items() if value is not None})
