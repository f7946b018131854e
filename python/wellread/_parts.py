"""The parts beside the pixels of a batch, and how a batch is put together.

labels ── classes ──┐
columns, features ──┼── rows of the batch ──▶ labels, columns, features, indices ──┐
indices ────────────┘                                                              │
                                                               pixels, targets ────┴──▶ tuple, or dict by keys
"""

from __future__ import annotations

import datetime
import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _arrays, _check, _native, _tables
from ._signature import warn

if TYPE_CHECKING:
    from .dataset import Dataset

#: Parts of a batch, in their order; a batch has the first and those that were asked for.
PARTS = ("pixels", "targets", "labels", "columns", "features", "indices")


def names_of(parts: Sequence[str], as_dict: Any, keys: Any) -> list[str] | None:
    """Names of the parts of a batch in a dictionary; None if a batch is a tuple of them.

    Raises TypeError or ValueError for names that make no sense.
    """
    if keys is None:
        return list(parts) if _check.truth("as_dict", as_dict) else None
    _check.truth("as_dict", as_dict)
    there = ", ".join(parts)
    if isinstance(keys, Mapping):
        unknown = [key for key in keys if key not in parts]
        if unknown:
            raise ValueError(f"keys names {unknown[0]!r}, and the parts of a batch are {there}")
        names = [_check.text(f"keys[{part!r}]", keys.get(part, part)) for part in parts]
    else:
        given = _check.several("keys", keys, "a dict of names by part, or a list of one name per part")
        names = [_check.text(f"keys[{i}]", name) for i, name in enumerate(given)]
        if len(names) != len(parts):
            name, part = _check.counted(len(names), "name"), _check.counted(len(parts), "part")
            raise ValueError(f"keys has {name}, and a batch has {part}: {there}")
    if len(set(names)) != len(names):
        raise ValueError(f"keys calls two parts by one name: {', '.join(names)}")
    return names


def composer(names: list[str] | None) -> Callable[[Any, Sequence[Any]], Any]:
    """The function from pixels and the parts that come beside them to the batch."""
    if names is not None:
        return lambda pixels, beside: dict(zip(names, (pixels, *beside), strict=True))
    return lambda pixels, beside: (pixels, *beside) if beside else pixels


def first(batch: Any) -> Any:
    """The sample of a batch of one: a list of parts as a tuple of them. It leaves alone what a batch_transform has
    added that holds no images."""
    return [_first_of(part) for part in batch] if isinstance(batch, list) else _first_of(batch)


def _first_of(part: Any) -> Any:
    """The first item of a part of a batch, in which a list has one value per image."""
    if isinstance(part, dict):
        return {name: _first_of(inner) for name, inner in part.items()}
    if isinstance(part, tuple):
        return tuple(map(_first_of, part))
    if isinstance(part, (str, bytes)) or not hasattr(part, "__getitem__") or getattr(part, "ndim", 1) == 0:
        return part
    return part if hasattr(part, "__len__") and len(part) == 0 else part[0]


class Classes:
    """Labels as numbers of classes.

    ``column`` is the column that they are of, ``advice`` how to take other rows.

    Raises ValueError where a row that is used has a label that is no class, or none at all.
    """

    def __init__(
        self,
        values: Any,
        classes: Any,
        rows: Sequence[int],
        *,
        column: str | None = None,
        advice: str = "give the rows that have one (rows=)",
    ):
        import numpy

        if values.ndim != 1:
            raise ValueError(f"classes needs one label per row, and labels are of shape {values.shape}")
        labels = _arrays.listed(values)
        given: list[Any] | None = None
        if not isinstance(classes, (bool, numpy.bool_)):
            given = _arrays.items(classes, "classes", "True, or the list of classes")
        try:
            if given is not None:
                names = [_plain(name) for name in given]
            elif values.dtype.kind in "mM":
                # Python's dates and NumPy's, of which labels may be both, have no order among them.
                names = _arrays.listed(numpy.unique(values[~numpy.isnat(values)]))
            else:
                names = sorted({label for label in labels if not _is_missing(label)})
            self.index = {name: number for number, name in enumerate(names)}
            stored: dict[Any, int] = {}
            for number, name in enumerate(names):
                if stored.setdefault(_as_stored(name), number) != number:
                    raise ValueError(f"classes has {name!r} twice")
            numbers_of = stored | self.index
            numbers = [-1 if _is_missing(label) else numbers_of.get(label, -1) for label in labels]
        except TypeError as error:
            raise TypeError(f"classes: labels of these kinds cannot be told apart or sorted ({error})") from None
        self.names = names
        self.numbers = numpy.array(numbers, "int64")
        used = numpy.asarray(rows, "int64")
        unknown = used[self.numbers[used] < 0]
        if len(unknown):
            row = int(unknown[0])
            if _is_missing(labels[row]):
                of = "" if column is None else f" in column {column!r}"
                raise ValueError(f"row {row} has no label{of} ({labels[row]}), so it is of no class: {advice}")
            shown = ", ".join(map(repr, names[:8])) + (" …" if len(names) > 8 else "")
            raise ValueError(
                f"row {row} has the label {labels[row]!r}, which is none of the {len(names)} classes ({shown}): add "
                f"it, or {advice}"
            )


class WithClasses:
    """The classes that it numbers labels by, as a function."""

    _classes: Classes | None

    @property
    def classes(self) -> list[Any] | None:
        """The classes whose numbers labels are, in their order; None where labels are as they were given."""
        return None if self._classes is None else list(self._classes.names)

    @property
    def class_to_idx(self) -> dict[Any, int] | None:
        """The number of each of :attr:`classes`."""
        return None if self._classes is None else dict(self._classes.index)


def _plain(name: Any) -> Any:
    """A value of NumPy as Python's, where Python has one."""
    import numpy

    return _arrays.listed(numpy.asarray(name)) if isinstance(name, numpy.generic) else name


def _as_stored(name: Any) -> Any:
    """A class as labels of a column have it: dates of pandas as Python's or NumPy's, of a time zone as UTC's."""
    for own in ("to_datetime64", "to_timedelta64"):
        if hasattr(name, own):
            return _plain(getattr(name, own)())
    if isinstance(name, datetime.datetime) and name.utcoffset() is not None:
        try:
            return name.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        except OverflowError:
            return name
    return name


def _is_missing(label: Any) -> bool:
    """None, NaN and their like."""
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):  # pandas' NA says neither.
        return True


def given_labels(dataset: Dataset, labels: Any, exact: bool = False) -> Any:
    """The values of labels that are no column's name, in an array of their own. With ``exact``, whole numbers are
    told apart as they are given."""
    import numpy

    is_iterator = isinstance(labels, Iterator)
    labels = _arrays.with_missing(_arrays.gone_through(labels), exact)
    try:
        # A copy: what the caller does with theirs afterwards changes no batch. In two steps, since torch's
        # tensors do not know the keyword by which NumPy asks for one.
        values = numpy.array(numpy.asarray(labels))
        if exact:
            values = _arrays.told_apart(values, labels)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"labels must be a column's name or {len(dataset)} values, one per row of the dataset, "
            f"not {_check.kind(labels)} ({error})"
        ) from None
    values = _arrays.as_libraries_take(values)
    if values.dtype.kind in "SU" and isinstance(labels, (list, tuple)):
        _check_kinds(labels)
    if values.shape[:1] != (len(dataset),):
        is_used_up = is_iterator and values.shape == (0,)
        found = "an iterator that was gone through before" if is_used_up else f"of shape {values.shape}"
        raise ValueError(
            f"labels must be a column's name or {len(dataset)} values, one per row of the dataset, not {found}"
        )
    return values


def tell_other_order(dataset: Dataset, labels: Any) -> None:
    """Warns of a Series of pandas whose index has the images in another order: labels are taken in the set's."""
    index = _tables.index_texts(labels)
    if index is None or len(index) != len(dataset) or not _native.are_in_other_order(dataset._native, index):
        return
    warn(
        f"{dataset._label()}: the index of labels has the images in another order than the set. The labels went to "
        "the images in the set's order. To give each its own, join them: "
        'dataset.with_columns(labels.rename("label").rename_axis("image_name"), on="image_name"). Then '
        'labels="label" takes them'
    )


def _check_kinds(labels: Sequence[Any]) -> None:
    """Raises ValueError for texts among labels of other kinds, or within one: NumPy would make texts of them all."""
    mixed: dict[bool, tuple[int, str]] = {}
    for row, label in enumerate(labels):
        for value in _values_of(label):
            mixed.setdefault(isinstance(value, (str, bytes)), (row, type(value).__name__))
    if len(mixed) < 2:
        return
    (of_text, text), (of_other, other) = mixed[True], mixed[False]
    nested = not isinstance(labels[of_text], (str, bytes))
    advice = (
        "for several labels of a row make a column of each (dataset.with_columns), and give their names to columns="
        if nested
        else "give values of one kind, and None for a text that is missing"
    )
    raise ValueError(
        f"labels mix {text} and {other} (rows {of_text} and {of_other}), of which NumPy makes texts: {advice}"
    )


def _values_of(label: Any) -> Iterator[Any]:
    """A label, or those in it where it is several."""
    if isinstance(label, (list, tuple)) or getattr(label, "ndim", 0) > 0:
        for inner in label:
            yield from _values_of(inner)
    else:
        yield label


def feature_names(dataset: Dataset, features: Any) -> list[str]:
    """The columns that are named, or that fit a pattern such as "Cells_*", each once."""
    one = isinstance(features, str)
    wanted = [features] if one else _check.several("features", features, "columns, or a pattern of their names")
    there = dataset.columns
    found: dict[str, None] = {}
    for i, name in enumerate(wanted):
        _check.text(f"features[{i}]", name)
        if name in there or not any(letter in name for letter in "*?["):
            found[name] = None
            continue
        fitting = [column for column in there if fnmatch.fnmatchcase(column, name)]
        if not fitting:
            raise ValueError(f"features has {name!r}, which fits none of the {len(there)} columns: {there[:12]}")
        found |= dict.fromkeys(fitting)
    if not found:
        raise ValueError("features must name one column at least")
    return list(found)


#: Bytes of columns that are read together, of values of eight bytes.
_TOGETHER = 1 << 28


def read_columns(dataset: Dataset, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Columns as NumPy arrays by their names, each name once. Many are read together: one read per column would open
    and scan a table once for each of thousands."""
    each = max(1, _TOGETHER // (8 * max(1, len(dataset))))
    for first in range(0, len(names), each):
        some = list(names[first : first + each])
        for name, values in zip(some, dataset._native.columns(some), strict=True):
            yield name, _arrays.of_values(values)


def exact_column(dataset: Dataset, name: str) -> Any:
    """A column as a NumPy array whose values are told apart as they are stored."""
    return _arrays.of_values(dataset._native.column(_check.text("name", name)), exact=True)


def matrix(dataset: Dataset, names: Sequence[str]) -> Any:
    """Columns of numbers and truth values as one array (rows, columns) of float32, with NaN for what is missing.

    Raises TypeError for a column of something else.
    """
    import numpy

    made = numpy.empty((len(dataset), len(names)), "float32")
    for i, (name, values) in enumerate(read_columns(dataset, names)):
        if values.dtype.kind == "O" and all(value is None or isinstance(value, bool) for value in values):
            values = numpy.array([numpy.nan if value is None else value for value in values], "float32")
        if values.dtype.kind not in "biuf":
            what = {"O": "texts", "M": "times", "m": "durations"}.get(values.dtype.kind, str(values.dtype))
            raise TypeError(f"features are numbers, and column {name!r} holds {what}: columns= takes those")
        with numpy.errstate(over="ignore"):
            made[:, i] = values
    return made


class Beside:
    """The parts beside pixels, by the rows of a batch: a tuple of the parts that were asked for, in their order."""

    def __init__(
        self,
        dataset: Dataset,
        as_: str,
        rows: Sequence[int] | None,
        *,
        labels: Any,
        classes: Any,
        columns: Any,
        features: Any,
        indices: Any,
    ):
        convert = _arrays.of_column(as_)

        def check(what: str, values: Any) -> None:
            if as_ == "jax":
                _arrays.check_holds(what, values if rows is None else values[rows])

        self.classes: Classes | None = None
        #: What was given, in lists and arrays that nobody else changes.
        self.given: dict[str, Any] = {}
        self._parts: dict[str, Callable[[list[int]], Any]] = {}
        has_classes = classes is not None and classes is not False
        if has_classes and labels is None:
            raise ValueError("classes are those of labels, which are not given")
        if labels is not None:
            if isinstance(labels, str):
                values = exact_column(dataset, labels) if has_classes else dataset.column(labels)
            else:
                tell_other_order(dataset, labels)
                values = self.given["labels"] = given_labels(dataset, labels, exact=has_classes)
            if has_classes:
                used = range(len(dataset)) if rows is None else rows
                column = labels if isinstance(labels, str) else None
                self.classes = Classes(values, classes, used, column=column)
                self.given["classes"] = self.classes.names
                values = self.classes.numbers
            check("labels", values)
            self._parts["labels"] = lambda rows: convert(values[rows])
        if columns is not None:
            asked = _check.several("columns", columns, ordered=False)
            names = [_check.text(f"columns[{i}]", name) for i, name in enumerate(asked)]
            self.given["columns"] = names
            several = dict(read_columns(dataset, list(dict.fromkeys(names))))
            each = {name: _arrays.of_column(as_, f"column {name}") for name in several}
            for name, values_of in several.items():
                check(f"column {name}", values_of)
            self._parts["columns"] = lambda rows: {n: each[n](values[rows]) for n, values in several.items()}
        if features is not None:
            names = self.given["features"] = feature_names(dataset, features)
            table = matrix(dataset, names)
            self._parts["features"] = lambda rows: convert(table[rows])
        if _check.truth("indices", indices):
            import numpy

            self._parts["indices"] = lambda rows: convert(numpy.asarray(rows, "int64"))

    @property
    def parts(self) -> list[str]:
        """Which parts there are."""
        return list(self._parts)

    def __call__(self, rows: list[int]) -> tuple[Any, ...]:
        return tuple(part(rows) for part in self._parts.values())
