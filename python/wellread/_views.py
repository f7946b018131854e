"""Which rows of a set are wanted: truth values, and values of its columns. It also warns of splits."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _check, _native, _parts
from ._signature import warn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._open_set import OpenSet
    from .dataset import Dataset


class Columns(Mapping[str, Any]):
    """The columns beside the images of a set by their names, each read when it is asked for."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._names = dataset.columns

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise KeyError(_native.missing_column(name, self._names))
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
        if length == 0 and given.shape == (0,):
            # An empty list has no type of its own, and NumPy makes numbers of it.
            given = given.astype(bool)
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


#: What a column has: what one of its values is, and of which kinds those may be that it is compared with.
_KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "numbers": ("a number", ("numbers", "truth values")),
    "texts": ("a text", ("texts",)),
    "truth values": ("True or False", ("truth values", "numbers")),
    "dates": ("a date", ("dates and times",)),
    "dates and times": ("a date with its time", ("dates and times",)),
    "times or durations": ("a time or a timedelta", ("times or durations",)),
}


def _is_one_of(name: str, values: NDArray[Any], wanted: Any) -> NDArray[Any]:
    """Where a column has one of some values, of which None and NaN stand for none.

    Raises TypeError for what no value of such a column is, as a text where it has numbers: none would be equal.
    """
    import numpy

    if callable(wanted):
        raise TypeError(f"{name}= takes values: a condition goes first, without a name: filter(lambda columns: …)")
    wanted = _scalar(_check.listed(wanted))
    several = isinstance(wanted, Iterable) and not isinstance(wanted, (str, bytes, Mapping))
    found = numpy.zeros(len(values), bool)
    kind = _kind_of_column(values)
    for one in wanted if several else [wanted]:
        one = _scalar(one)
        if _is_none(one):
            found |= _is_missing(values)
            continue
        given = _kind_of_value(one)
        if given is None:
            raise TypeError(f"{name}= takes a value, a list of values or None, not {type(one).__name__}")
        if kind is None:
            continue
        like, fitting = _KINDS[kind]
        cannot = given not in fitting or (kind == "truth values" and one not in (0, 1))
        if not cannot and values.dtype.kind in "mM":
            held = _in_units_of(values, one)
            cannot = held is None and kind == "dates"
            if held is not None:
                found |= values == held
        elif not cannot:
            found |= numpy.asarray(values == one, bool)
        if cannot:
            raise TypeError(f"column {name} has {kind} ({values.dtype}), and {one!r} is none: give {like}")
    return found


def _scalar(value: Any) -> Any:
    """An array or a tensor without axes, or a value of pyarrow, as the value in it."""
    import numpy

    if hasattr(value, "as_py"):
        return value.as_py()
    if getattr(value, "ndim", None) != 0 or isinstance(value, numpy.generic):
        return value
    return value[()] if isinstance(value, numpy.ndarray) else value.item()


def _is_none(one: Any) -> bool:
    """Whether it stands for no value: None, NaN, NaT, and pandas' NA, which is equal to nothing."""
    import numpy

    if one is None or type(one).__name__ == "NAType":
        return True
    if isinstance(one, decimal.Decimal):
        return one.is_nan()
    return isinstance(one, (float, datetime.datetime, numpy.generic)) and bool(one != one)


def _kind_of_column(values: NDArray[Any]) -> str | None:
    """The kind of a column; None if it has no value."""
    kind = values.dtype.kind
    if kind == "O":
        first = next((value for value in values if value is not None), None)
        return None if first is None else _kind_of_value(first)
    if kind == "M":
        return "dates" if values.dtype.str.endswith("[D]") else "dates and times"
    return {"U": "texts", "T": "texts", "b": "truth values", "m": "times or durations"}.get(kind, "numbers")


def _kind_of_value(one: Any) -> str | None:
    """The kind of a value; None for one that no column has."""
    import numpy

    kinds = (
        ((str, numpy.str_), "texts"),
        ((bool, numpy.bool_), "truth values"),
        ((datetime.date, numpy.datetime64), "dates and times"),
        # NumPy's durations are numbers to it.
        ((datetime.time, datetime.timedelta, numpy.timedelta64), "times or durations"),
        ((int, float, decimal.Decimal, numpy.number), "numbers"),
    )
    return next((kind for types, kind in kinds if isinstance(one, types)), None)


def _in_units_of(values: NDArray[Any], one: Any) -> Any:
    """A date, a time or a duration as the column stores it: dates of a time zone as those of UTC. It is None
    where its units cannot hold it."""
    import numpy

    if isinstance(one, datetime.time):
        if one.tzinfo is not None:
            raise TypeError(f"columns have times without a time zone, and {one!r} is of one")
        one = datetime.datetime.combine(datetime.date.min, one) - datetime.datetime.min
    for own in ("to_datetime64", "to_timedelta64"):
        # Those of pandas have nanoseconds, and tell them so; of a time zone in UTC.
        if hasattr(one, own):
            one = getattr(one, own)()
    if isinstance(one, datetime.datetime) and one.tzinfo is not None:
        try:
            one = one.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        except OverflowError:
            return None
    given = numpy.datetime64(one) if values.dtype.kind == "M" else numpy.timedelta64(one)
    try:
        held = given.astype(values.dtype)
        return held if held.astype(given.dtype) == given else None
    except (OverflowError, TypeError):
        return None


def _is_missing(values: NDArray[Any]) -> NDArray[Any]:
    import numpy

    if values.dtype.kind == "O":
        return numpy.fromiter((value is None for value in values), bool, len(values))
    if values.dtype.kind == "f":
        return numpy.isnan(values)
    if values.dtype.kind in "mM":
        return numpy.isnat(values)
    return numpy.zeros(len(values), bool)


def tell_of_split(
    dataset: OpenSet, shares: Sequence[tuple[str, float]], parts: Sequence[list[int]], name: str, by: Any
) -> None:
    """Warns the caller of this package of names that put rows into other parts than in their set alone. It also warns
    of parts without rows, by the names and shares of all parts. ``name`` is what the argument ``by`` is called."""
    if not len(dataset):
        return
    if by is None and dataset._native.names_begin_with_parts():
        warn(
            f"{dataset._label()}: names of these sets begin with the set's name (as in {dataset.name(0)!r}). So a "
            f"row's part differs from that of the set alone: give {name}=... (a column such as Metadata_Well, or a "
            "list of keys), or split each set before you combine them"
        )
    empty = (of for of, rows in zip(shares, parts, strict=True) if not rows)
    shown = ", ".join(f"{of} (share {share:g})" for of, share in empty)
    if shown:
        alike = f"{name}= where images are alike in name"
        advice = alike if by is None else f"{name}= with more values: rows with equal values are in one part"
        warn(
            f"{dataset._label()}: of {dataset._images()} none is in part {shown} of the split: give it a greater "
            f"share or {advice}"
        )
