"""Tables of others as Arrow streams: pandas and AnnData as they are there, without importing either."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def check(name: str, table: Any) -> None:
    """Raises TypeError for what has no Arrow stream."""
    if not hasattr(table, "__arrow_c_stream__"):
        raise TypeError(
            f"{name} must have __arrow_c_stream__ (Arrow's PyCapsule interface), not {type(table).__name__}"
        )


def is_table(table: Any) -> bool:
    """Whether it has an Arrow stream, or an ``obs`` that may have one."""
    return hasattr(table, "__arrow_c_stream__") or hasattr(table, "obs")


def with_index(table: Any, on: Sequence[str]) -> Any:
    """A table with an Arrow stream: the ``obs`` of an object that has one. The index of a pandas frame becomes
    columns, where it has names or `on` asks for an "index".

    Raises TypeError for what is no table.
    """
    if not hasattr(table, "__arrow_c_stream__") and hasattr(table, "obs"):
        table = table.obs
    check("table", table)
    if not (hasattr(table, "rename_axis") and hasattr(table, "reset_index")):
        return table
    names, columns = list(table.index.names), list(table.columns)
    if names == [None] and "index" in on and "index" not in columns:
        table, names = table.rename_axis("index"), ["index"]
    # Of the caller's frame a copy, which a set may be pickled with.
    return table.reset_index(drop=any(name is None or name in columns for name in names))
