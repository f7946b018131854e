"""Tables of others as Arrow streams: pandas and AnnData as they are there, without importing either."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import ChoiceError

# Columns of positions: CellProfiler's, scikit-image's and those that people write by hand.
_POSITION = re.compile(r".*(?:Location|AreaShape)_Center_[XY]|centroid(?:-[012]|_[xy])|[xy]")


def check(name: str, table: Any) -> None:
    """Raises TypeError for what has no Arrow stream, or one of values without a name."""
    if not hasattr(table, "__arrow_c_stream__"):
        advice = ""
        if isinstance(table, (str, os.PathLike)):
            advice = ": read the file first, as by pandas.read_csv or pyarrow.parquet.read_table"
        raise TypeError(
            f"{name} must have __arrow_c_stream__ (Arrow's PyCapsule interface), not {type(table).__name__}{advice}"
        )


def with_plain_positions(table: Any, names: Sequence[str]) -> Any:
    """A table of cells whose positions are float64 where they are float16 or decimals. `names` are the columns that
    were asked for; others are known by their names. A stream that can be read once stays as it is."""
    if type(table).__name__ not in ("DataFrame", "Table", "RecordBatch"):
        return table
    try:
        import pyarrow as pa
    except ImportError:
        return table
    there = getattr(table, "column_names", None)
    there = [name for name in (table.columns if there is None else there) if isinstance(name, str)]
    known = [name for name in there if name in names or _POSITION.fullmatch(name)]
    if not known:
        return table
    of_positions = pa.table(table.select(known) if hasattr(table, "select") else table[known])
    decimal = pa.types.is_decimal
    wrong = [field.name for field in of_positions.schema if pa.types.is_float16(field.type) or decimal(field.type)]
    if not wrong:
        return table
    made = table if isinstance(table, pa.Table) else pa.table(table)
    for name in wrong:
        column = of_positions.column(name).cast(pa.float64())
        made = made.set_column(made.column_names.index(name), name, column)
    return made


def _of_column(table: Any) -> Any:
    """A column of pandas or polars, and a dictionary of columns, as a table; others as they are.

    Raises TypeError for a column without a name, as one of pyarrow, and for a dictionary of something else.
    """
    if isinstance(table, Mapping):
        try:
            import pyarrow as pa

            return pa.table(dict(table))
        except ImportError:
            raise TypeError("table is a dict, which needs pyarrow: install it, or give a table") from None
        except (TypeError, ValueError, AttributeError) as error:
            raise TypeError(
                f"table is a dict, and must have columns of equal length by their names ({error})"
            ) from None
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
    known: set[str] = set()
    for name in map(str, table.columns):
        if name in known:
            raise ChoiceError(f"table has two columns {name!r}: rename one of them")
        known.add(name)


def is_table(table: Any) -> bool:
    """Whether it is meant as a table: it has an Arrow stream, or an ``obs`` that may have one, or is a dictionary."""
    known = ("__arrow_c_stream__", "obs", "to_pylist")
    return isinstance(table, Mapping) or any(hasattr(table, name) for name in known)


def with_index(table: Any, on: Sequence[str]) -> Any:
    """A table with an Arrow stream: the ``obs`` of an object that has one. The index of a pandas frame becomes
    columns, where it has names or `on` asks for an "index".

    Raises TypeError for what is no table.
    """
    return with_index_beside(table, on)[0]


def with_index_beside(table: Any, on: Sequence[str]) -> tuple[Any, list[str] | None]:
    """As :func:`with_index`, and the texts of an index that becomes no column."""
    if not hasattr(table, "__arrow_c_stream__") and hasattr(table, "obs"):
        table = table.obs
    table = _of_column(table)
    check("table", table)
    if not (hasattr(table, "rename_axis") and hasattr(table, "reset_index")):
        return table, None
    _check_names(table)
    names, columns = list(table.index.names), list(table.columns)
    if names == [None] and "index" in on and "index" not in columns:
        table, names = table.rename_axis("index"), ["index"]
    drops = any(name is None or name in columns for name in names)
    # Of the caller's frame a copy, which a set may be pickled with.
    return table.reset_index(drop=drops), index_texts(table) if drops else None


def index_texts(frame: Any) -> list[str] | None:
    """The index of a pandas frame or Series where all of it is text, and None of anything else."""
    if not (hasattr(frame, "rename_axis") and hasattr(frame, "reset_index")):
        return None
    index = frame.index
    if len(index) == 0 or not isinstance(index[0], str):
        return None
    texts = list(index)
    # A lone surrogate is no text of Arrow's, and no name of an image.
    fits = all(isinstance(text, str) and (text.isascii() or text.isprintable()) for text in texts)
    return texts if fits else None
