"""Rows as they are asked for: a number, a slice, a list, an array of truth values."""

from __future__ import annotations

import operator
from typing import Any

from . import _check


def is_several(index: Any) -> bool:
    """Whether an index is one of several rows."""
    if isinstance(index, slice):
        return True
    # NumPy's single numbers have a shape and no length.
    return hasattr(index, "__len__") and not isinstance(index, (str, bytes)) and getattr(index, "shape", None) != ()


def one(index: Any, length: int) -> int:
    """A row from an index, counted from the end where it is negative.

    Raises TypeError for what is no whole number and IndexError for what is out of range.
    """
    try:
        # Most rows are Python's own numbers, which need no more looking at.
        if type(index) is not int and (_check.is_truth(index) or _check.has_truths(index)):
            raise TypeError
        row = operator.index(index)
    except TypeError:
        raise TypeError(f"rows are whole numbers, not {type(index).__name__}") from None
    if not -length <= row < length:
        many = f"rows go from 0 to {length - 1}" if length else "there are no images"
        raise IndexError(f"row {row} is out of range: {many}")
    return row + length if row < 0 else row


def many(index: Any, length: int) -> list[int]:
    """Rows from a slice, a list of indices, or one truth value per row: an array, a tensor or a list."""
    if isinstance(index, slice):
        return list(range(*index.indices(length)))
    if getattr(getattr(index, "dtype", None), "kind", None) == "b" and getattr(index, "shape", None) != (length,):
        raise IndexError(f"truth values of shape {index.shape} were given for {length} rows")
    if hasattr(index, "tolist"):
        index = index.tolist()
    rows = _check.several("rows", index, "a slice or a list of rows", ordered=False)
    if rows and all(map(_check.is_truth, rows)):
        if len(rows) != length:
            raise IndexError(f"{len(rows)} truth values were given for {length} rows")
        return [row for row, wanted in enumerate(rows) if wanted]
    return [one(row, length) for row in rows]


def of_ranges(ranges: list[tuple[int, int]]) -> range | list[int]:
    """The rows of ranges, each given by its first row and the one after its last: a range where it is one."""
    if len(ranges) > 1:
        return [row for first, end in ranges for row in range(first, end)]
    first, end = ranges[0] if ranges else (0, 0)
    return range(first, end)


def listed(name: str, given: Any) -> list[Any]:
    """Rows as a loader is given them, for :func:`chosen`: looked at once, before the set is open."""
    values = given.tolist() if getattr(given, "ndim", 0) == 1 and hasattr(given, "tolist") else given
    return _check.several(name, values, "a list of rows, or one truth value per row", ordered=False)


def chosen(name: str, given: Any, length: int) -> list[int]:
    """Rows as a loader is given them: numbers, which count from the end where they are negative, or one truth value
    per row."""
    values = listed(name, given)
    if values and all(map(_check.is_truth, values)):
        return many(values, length)
    if all(type(value) is int and value >= 0 for value in values):
        return _check.wholes(name, values) if values and max(values) > _check.MAX_INT64 else values
    numbers = [_check.whole(f"{name}[{i}]", value, -length) for i, value in enumerate(values)]
    return [number + length if number < 0 else number for number in numbers]
