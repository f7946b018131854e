"""The datasink of :func:`wellread.ray.write`. Imports Ray Data, which the package itself does not."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from ray.data.datasource import Datasink

from . import _write_blocks


class WellreadDatasink(Datasink):
    """A set of images, of which every task writes parts. It is pickled to the tasks: what is open stays with the
    driver, by its token."""

    # Where parts are written, what their names end with, and what tasks are told of the driver's environment.
    folder: str
    ending: str
    environment: dict[str, str]
    # Whether the format keeps columns beside files of images, in one file of all, which the driver writes.
    keeps_columns: bool
    # Whether images and columns are in tables.
    is_table: bool

    def __init__(
        self,
        target: str,
        format: str,
        choices: dict[str, Any],
        *,
        image: str,
        name: str | None,
        channels: list[str],
        verify: bool,
    ) -> None:
        super().__init__()
        self.target, self.format, self.options = target, format, choices
        self.image, self.name, self.channels, self.verify = image, name, channels, verify
        self.token = uuid.uuid4().hex

    def get_name(self) -> str:
        """The name of the write tasks in Ray."""
        return "Wellread"

    def place(self, part: str) -> str:
        """Where a part is written."""
        return self.folder.rstrip("/") + "/" + part

    def on_write_start(self, *_: Any, **__: Any) -> None:
        """Nothing is left to do: the target is claimed before any task can run, wherever a release of Ray calls
        this."""

    def write(self, blocks: Iterable[Any], ctx: Any) -> list[dict[str, Any]]:
        """Writes a part for each block, in a task: what the driver is told of them."""
        task = int(getattr(ctx, "task_idx", 0))
        parts = (_write_blocks.block_part(self, block, task, number) for number, block in enumerate(blocks))
        return [part for part in parts if part is not None]

    def on_write_complete(self, write_result: Any) -> None:
        """Makes one set of the parts that tasks have told of."""
        returns = getattr(write_result, "write_returns", write_result)
        _write_blocks.commit(self, [part for of_task in returns for part in of_task or []])

    def on_write_failed(self, error: BaseException) -> None:
        """Removes what tasks have written."""
        _write_blocks.discard(self)
