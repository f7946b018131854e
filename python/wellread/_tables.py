"""Tables of others as Arrow streams: pandas and AnnData as they are there, without importing either."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import ChoiceError


def check(name: str, table: Any) -> None:
    """Raises TypeError for what has no Arrow stream, or one of values without a name."""
    if not hasattr(table, "__arrow_c_stream__"):
        raise TypeError(
            f"{name} must have __arrow_c_stream__ (Arrow's PyCapsule interface), not {type(table).__name__}"
        )


def _of_column(table: Any) -> Any:
    """A column of pandas or polars as a table of it; others as they are.

    Raises TypeError for a column without a name, as one of pyarrow.
    """
    what = type(table).__name__
    if what == "Series" and hasattr(table, "to_frame"):
        if not isinstance(table.name, str) or not table.name:
            raise TypeError('table is a Series without a name: give table.to_frame("NAME")')
        return table.to_frame()
    is_struct = str(getattr(table, "type", "")).startswith("struct")
    if hasattr(table, "to_pylist") and not hasattr(table, "schema") and not is_struct:
        raise TypeError(f'table is one column without a name ({what}): give pyarrow.table({{"NAME": table}})')
    return table


def _check_names(table: Any) -> None:
    """Raises ChoiceError for two columns of one name, of which pandas and pyarrow make no stream."""
    names = [str(name) for name in table.columns]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise ChoiceError(f"table has two columns {twice!r}: rename one of them")


def is_table(table: Any) -> bool:
    """Whether it has an Arrow stream, or an ``obs`` that may have one."""
    return hasattr(table, "__arrow_c_stream__") or hasattr(table, "obs") or hasattr(table, "to_pylist")


def with_index(table: Any, on: Sequence[str]) -> Any:
    """A table with an Arrow stream: the ``obs`` of an object that has one. The index of a pandas frame becomes
    columns, where it has names or `on` asks for an "index".

    Raises TypeError for what is no table.
    """
    if not hasattr(table, "__arrow_c_stream__") and hasattr(table, "obs"):
        table = table.obs
    table = _of_column(table)
    check("table", table)
    if not (hasattr(table, "rename_axis") and hasattr(table, "reset_index")):
        return table
    _check_names(table)
    names, columns = list(table.index.names), list(table.columns)
    if names == [None] and "index" in on and "index" not in columns:
        table, names = table.rename_axis("index"), ["index"]
    # Of the caller's frame a copy, which a set may be pickled with.
    return table.reset_index(drop=any(name is None or name in columns for name in names))
