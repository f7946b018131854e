"""The datasource of :func:`wellread.ray.read`. Imports Ray Data, which the package itself does not."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from . import _read_blocks, _sets


class WellreadDatasource(Datasource):
    """A set of images, whose blocks loaders make."""

    def __init__(
        self, plan: _read_blocks.Plan, path: str, images: int, group: int, row_bytes: int, schema: Any
    ) -> None:
        super().__init__()
        self._plan, self._path, self._images, self._group = plan, path, images, group
        self._row_bytes, self._schema = row_bytes, schema

    def get_name(self) -> str:
        """The name of the read tasks in Ray."""
        return "Wellread"

    def estimate_inmemory_data_size(self) -> int:
        """Bytes of all blocks."""
        return self._images * self._row_bytes

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        """A task for each range of rows: as many as are asked for, or fewer."""
        most = -(-self._images // max(1, parallelism))
        # Rows that lie together go to one task, unless tasks were less than half of those that are asked for.
        group = self._group if 2 * most >= self._group else 1
        most = -(-most // group) * group
        tasks = []
        for start, end in _sets.ranges(self._images, most, group):
            # Of rows that are left out, others make up for them: Ray cuts what the task gives.
            if per_task_row_limit is not None and not self._plan.skips:
                end = min(end, start + per_task_row_limit)
            read = functools.partial(_read_blocks.blocks, self._plan, start, end)
            metadata = _metadata(end - start, self._row_bytes, self._path, self._schema, self._plan.skips)
            tasks.append(_task(read, metadata, self._schema, per_task_row_limit))
        return tasks


def _metadata(rows: int, row_bytes: int, path: str, schema: Any, skips: bool) -> BlockMetadata:
    """Ray's metadata of a block; releases differ in the fields that it has. Ray takes the number of rows for the
    count of the dataset without reading it."""
    counted = None if skips else rows
    known = {"num_rows": counted, "size_bytes": rows * row_bytes, "input_files": [path], "schema": schema}
    names = list(inspect.signature(BlockMetadata).parameters)
    return BlockMetadata(**{name: known.get(name) for name in names})


def _task(read: Any, metadata: BlockMetadata, schema: Any, limit: int | None) -> ReadTask:
    """Ray's read task; releases differ in what it is given beside."""
    known = {"schema": schema, "per_task_row_limit": limit}
    names = list(inspect.signature(ReadTask.__init__).parameters)
    return ReadTask(read, metadata, **{name: value for name, value in known.items() if name in names})
