"""Which rows of a set are wanted: truth values, and values of its columns."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _check, _parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .dataset import Dataset


def no_column(name: str, names: Sequence[str]) -> str:
    """What is said of a column that is not there, with the first of those that are."""
    there = f"there are {_check.some(names)}" if names else "there is none"
    return f"no column {name!r} stands beside the images; {there}"


class Columns(Mapping[str, Any]):
    """The columns beside the images of a set by their names, each read when it is asked for."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._names = dataset.columns

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise KeyError(no_column(name, self._names))
        return self._dataset.column(name)

    def exact(self, name: str) -> NDArray[Any]:
        """A column whose values are told apart as they are stored."""
        if name not in self._names:
            return self[name]
        return _parts.exact_column(self._dataset, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def rows_where(dataset: Dataset, condition: Any, values: Mapping[str, Any]) -> list[int]:
    """The rows for which a condition holds and whose columns have one of these values.

    Raises KeyError for a column that there is not, TypeError and ValueError for a condition that is none.
    """
    import numpy

    if condition is None and not values:
        raise TypeError("filter needs a condition, or values of columns")
    length = len(dataset)
    columns = Columns(dataset)
    keep = numpy.ones(length, bool)
    if condition is not None:
        given = numpy.asarray(condition(columns) if callable(condition) else condition)
        if given.dtype != bool or given.shape != (length,):
            raise ValueError(
                f"condition must be one truth value for each of {length} rows, not {given.dtype} of shape "
                f"{given.shape}"
            )
        keep &= given
    for name, wanted in values.items():
        keep &= _is_one_of(name, columns.exact(name), wanted)
    rows: list[int] = numpy.flatnonzero(keep).tolist()
    return rows


def _is_one_of(name: str, values: NDArray[Any], wanted: Any) -> NDArray[Any]:
    """Where a column has one of some values, of which None stands for none.

    Raises TypeError for a text where the column has numbers, for a number where it has texts, and for what no value
    of a column is: none would be equal.
    """
    import numpy

    if callable(wanted):
        raise TypeError(f"{name}= takes values: a condition goes first, without a name: filter(lambda columns: …)")
    of_values = (str, int, float, datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, numpy.generic)
    several = isinstance(wanted, Iterable) and not isinstance(wanted, (str, bytes, Mapping))
    found = numpy.zeros(len(values), bool)
    first = next((value for value in values if value is not None), None) if values.dtype.kind == "O" else None
    has_numbers = values.dtype.kind in "iuf" or type(first) is int
    has_texts = values.dtype.kind in "UT" or isinstance(first, str)
    for one in wanted if several else [wanted]:
        if one is not None and (isinstance(one, numpy.bytes_) or not isinstance(one, of_values)):
            raise TypeError(f"{name}= takes a value, a list of values or None, not {type(one).__name__}")
        is_number = isinstance(one, (int, float, numpy.number))
        if has_numbers and isinstance(one, (str, bytes)) or has_texts and is_number:
            have, give = ("numbers", "a number") if has_numbers else ("texts", "a text")
            raise TypeError(f"column {name} has {have} ({values.dtype}), and {one!r} is none: give {give}")
        found |= _is_missing(values) if one is None else numpy.asarray(values == one, bool)
    return found


def _is_missing(values: NDArray[Any]) -> NDArray[Any]:
    import numpy

    if values.dtype.kind == "O":
        return numpy.fromiter((value is None for value in values), bool, len(values))
    if values.dtype.kind == "f":
        return numpy.isnan(values)
    if values.dtype.kind in "mM":
        return numpy.isnat(values)
    return numpy.zeros(len(values), bool)
