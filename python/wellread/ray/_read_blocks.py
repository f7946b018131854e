"""The read tasks of :func:`wellread.ray.read`: a range of rows as blocks, which a loader makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from ..dataset import Dataset
from ..loader import DataLoader
from . import _arrow, _sets


@dataclass(frozen=True)
class Plan:
    """The input of every read task."""

    how: _sets.Recipe
    choices: dict[str, Any]
    columns: list[str]
    rows_per_block: int
    # The row whose shape and type all images have, whichever task reads them.
    reference: int = 0

    @property
    def skips(self) -> bool:
        """Whether images that cannot be read are left out, so that nobody knows how many there will be."""
        return self.choices.get("on_error") == "skip"


def loader(dataset: Dataset, plan: Plan, rows: Sequence[int] | None) -> Any:
    """A loader of some rows, or of all."""
    return DataLoader(
        dataset,
        batch_size=plan.rows_per_block,
        rows=None if rows is None else list(rows),
        shard=False,
        prefetch=1,
        indices=True,
        **plan.choices,
    )


def _loader_of_task(dataset: Dataset, plan: Plan, rows: range) -> Any:
    """A loader of some rows, whose images must be like those of all other tasks. It would take the first of its own
    rows for what they must be like: the reference stands before them, and is not read."""
    if plan.reference in rows:
        return loader(dataset, plan, rows)
    behind = loader(dataset, plan, [plan.reference, *rows])
    behind.load_state_dict({**behind.state_dict(), "position": 1})
    return behind


def columns(dataset: Dataset, names: Sequence[str], rows: range) -> dict[str, Any]:
    """Columns of some rows, in Arrow."""
    if not names:
        return {}
    native = dataset._native.select(list(rows))
    return {name: _arrow.column(values) for name, values in zip(names, native.columns(list(names)), strict=True)}


def blocks(plan: Plan, start: int, end: int) -> Iterator[Any]:
    """The blocks of a range of rows, in order."""
    dataset = _sets.opened(plan.how)
    beside = columns(dataset, plan.columns, range(start, end))
    with _loader_of_task(dataset, plan, range(start, end)) as rows_of_task:
        for pixels, rows in rows_of_task:
            rows = numpy.asarray(rows)
            names = [dataset.name(int(row)) for row in rows]
            own = {name: _arrow.taken(column, rows - start) for name, column in beside.items()}
            # The tensors are over the loader's memory, which goes back with the last view of it.
            yield _arrow.block(numpy.asarray(pixels), names, rows, own)
