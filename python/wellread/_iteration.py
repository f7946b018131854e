"""Iterations over an epoch: native batches become arrays, with their labels, where they are to be."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, cast

from . import _arrays, _check
from .errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable

    from .dataset import Dataset
    from .loader import DataLoader


class Labels:
    """Columns beside the images, looked up for the rows of each batch."""

    def __init__(self, dataset: Dataset, labels: Any, columns: Any, as_: str):
        self._convert = _arrays.of_column(as_)
        self._one: Any = None
        self._many: dict[str, Any] | None = None
        if columns is not None:
            names = [_check.text(f"columns[{i}]", n) for i, n in enumerate(_check.several("columns", columns))]
            self._many = {name: dataset.column(name) for name in names}
        elif isinstance(labels, str):
            self._one = dataset.column(labels)
        else:
            import numpy

            try:
                # A copy: what the caller does with theirs afterwards changes no batch. In two steps, since torch's
                # tensors do not know the keyword by which NumPy asks for one.
                self._one = numpy.array(numpy.asarray(labels))
            except (TypeError, ValueError, RuntimeError) as error:
                raise ValueError(
                    f"labels must be a column's name or {len(dataset)} values, one per row of the dataset, "
                    f"not {_check.kind(labels)} ({error})"
                ) from None
            if not self._one.dtype.isnative:
                # Torch and JAX take the machine's byte order only.
                self._one = self._one.astype(self._one.dtype.newbyteorder("="))
            if self._one.dtype.kind in "SU" and isinstance(labels, (list, tuple)):
                mixed = {isinstance(value, (str, bytes)): type(value).__name__ for value in labels}
                if len(mixed) > 1:
                    raise ValueError(
                        f"labels mix {mixed[True]} and {mixed[False]}, of which NumPy makes texts: give values of "
                        "one kind"
                    )
            if self._one.shape[:1] != (len(dataset),):
                raise ValueError(
                    f"labels must be a column's name or {len(dataset)} values, one per row of the dataset, "
                    f"not of shape {self._one.shape}"
                )

    @property
    def given(self) -> Any:
        """The values that were given, where they were not a column's name."""
        return self._one

    def __call__(self, rows: list[int]) -> Any:
        if self._many is not None:
            return {name: self._convert(values[rows]) for name, values in self._many.items()}
        return self._convert(self._one[rows])


class Core:
    """An iteration without its conversions: what :class:`DataLoader` keeps of it to tell where it is."""

    def __init__(self, loader: DataLoader, state: str | None, turn: tuple[int, int] | None):
        # That of the ranks of now: when they change, the loader takes another.
        native = self.loader = loader._native
        self.lending = None if loader._lender is None else loader._lender.begin(native)
        self.native: Any = native.run() if state is None else native.resume(state, *(turn or (0, 1)))
        # One of several processes has its last batch before the epoch is over.
        self._ends_with_its_batches = turn is None
        # Told once it is closed, which one of the threads that share it does: whichever takes the token.
        self._last: tuple[int, int] | None = None
        self._left_out: list[tuple[int, str]] = []
        self._to_close = [None]
        # Where batches are moved ahead of their delivery: where the one delivered last was.
        self.delivered: tuple[int, int] | None = None

    def progress(self) -> tuple[int, int]:
        if self.delivered is not None:
            return self.delivered
        return self._last if self._last is not None else self.place()

    def place(self) -> tuple[int, int]:
        """Epoch and position after the batch taken last: the next epoch's beginning once all batches are taken, since
        who counts them, as Lightning does, never asks for the end."""
        is_over = self._ends_with_its_batches and not self.native.__length_hint__()
        place = self.native.progress()
        if place is None:  # Closed meanwhile, and told before that.
            return cast("tuple[int, int]", self._last)
        epoch, position = place
        return (epoch + 1, 0) if is_over else (epoch, position)

    def skipped(self) -> list[tuple[int, str]]:
        # That of the native one is empty once closed, which may be meanwhile: what was told is looked at after it.
        return self._left_out if self._last is not None else self.native.skipped()[1] or self._left_out

    def close(self, ended: bool) -> None:
        """Stops the threads; afterwards it tells where it was or, at its end, where the next epoch begins."""
        try:
            self._to_close.pop()
        except IndexError:
            return
        try:
            epoch, _ = self.native.progress()
            self._left_out = self.native.skipped()[1]
            self._last = (epoch + 1, 0) if ended else self.place()
            self.native.close()
            if self.lending is not None:
                self.lending.end()
        except BaseException:  # Of another process, or interrupted.
            self._to_close.append(None)
            raise


class Iterator:
    """An iteration over an epoch, or what is left of it after a state; with `turn` (which one, of how many) that of
    one of several processes that take turns."""

    def __init__(self, loader: DataLoader, state: str | None, turn: tuple[int, int] | None = None):
        self.core = Core(loader, state, turn)
        self._next = self.core.native.__next__
        self._labels = loader._labels
        self._finish = loader._finish
        # What is scaled on the device is float32 there, whatever was stored.
        dtype = "float32" if loader._scales_later else loader._dtype
        self._convert = _arrays.converter(loader._as, dtype)
        if self.core.lending is not None:
            self._convert = self.core.lending.tensor
        self._mover = None
        if loader._device is not None:
            from . import _device

            self._mover = _device.mover(loader._as, loader._device, self, loader._found().ranks[1] > 1)
        # Where a batch is an array and nothing else, the native iteration makes it.
        self._take: Callable[[], Any] | None = None
        taker = _arrays.of_capsule(loader._as)
        others = (self._labels, self._finish, self._mover, self.core.lending)
        if taker and all(other is None for other in others):
            self._take = functools.partial(self.core.native.next_from, taker)

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        if self._take is not None:
            batch = self._take()
            if batch is None:
                self.core.close(ended=True)
                raise StopIteration
            return batch
        batch = self.fetch() if self._mover is None else self._mover()
        if self._finish is None:
            return batch
        pixels, *labels, rows = batch
        pixels = self._finish(pixels, rows)
        return (pixels, *labels) if labels else pixels

    def fetch(self) -> Any:
        """The next batch as an array in memory of the host, with its labels if there are any, and with its rows if
        there is something to do to it that may fail."""
        try:
            batch: Any = self._next()
        except StopIteration:
            self.core.close(ended=True)
            raise
        if self._labels is None and self._finish is None:
            return self._convert(batch)
        rows = batch.rows if self.core.lending is None else batch[2]
        labels = () if self._labels is None else (self._labels(rows),)
        return (self._convert(batch), *labels) if self._finish is None else (self._convert(batch), *labels, rows)

    def __length_hint__(self) -> int:
        return self.core.native.__length_hint__()

    def __reduce__(self):
        # A copy would share the threads and the memory, and end both with itself.
        raise TypeError(
            "an iteration cannot be copied or pickled: take the loader's state_dict(), and load it with "
            "load_state_dict() into another loader of the same images"
        )

    def __del__(self):
        # Half made, or of another process: there is nothing to stop.
        with contextlib.suppress(AttributeError, Error):
            self.core.close(ended=False)
