"""Iterations over an epoch: native batches become arrays, with what comes beside them, where they are to be."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast

from . import _arrays, _targets
from .errors import ChoiceError, Error

if TYPE_CHECKING:
    from collections.abc import Callable

    from . import _device
    from ._loader_base import LoaderBase

B_co = TypeVar("B_co", covariant=True)


class Core:
    """An iteration without its conversions: what :class:`DataLoader` keeps of it to tell where it is."""

    def __init__(self, loader: LoaderBase[Any], start: int | str, turn: tuple[int, int] | None):
        # That of the ranks of now: when they change, the loader takes another.
        native = loader._native
        self.loader: Any = native
        self.lending: _device.Lending | None = None if loader._lender is None else loader._lender.begin(native)
        # The state that it goes on from.
        self.since: str | None = start if isinstance(start, str) else None
        try:
            if isinstance(start, int):
                self.native: Any = _run(native, start)
            else:
                self.native = native.resume(start, *(turn or (0, 1)))
            # Its epoch, and that state.
            self.start: tuple[int, str | None] = self.native.progress()[0], self.since
        except BaseException:  # A state that is refused, say: nobody closes an iteration that has not begun.
            if self.lending is not None:
                self.lending.end()
            raise
        # One of several processes has its last batch before the epoch is over.
        self._ends_with_its_batches = turn is None
        # Told once it is closed, which one of the threads that share it does: whichever takes the token.
        self._last: tuple[int, int] | None = None
        self._left_out: list[tuple[int, str]] = []
        self._to_close = [None]
        # The place after the batch delivered last, while a later one is on its way or was lost on it. None where that
        # is the place after the batch taken last.
        self.delivered: tuple[int, int] | None = None
        # Where batches are moved ahead of their delivery: the place after the one that was moved.
        self.moved: tuple[int, int] | None = None

    def progress(self) -> tuple[int, int]:
        if self.delivered is not None:
            return self.delivered
        return self._last if self._last is not None else self.place()

    def place(self) -> tuple[int, int]:
        """Epoch and position after the batch taken last. They are the next epoch's beginning once all batches are
        taken: Lightning counts batches and never asks for the end."""
        is_over = self._ends_with_its_batches and not self.native.__length_hint__()
        place = self.native.progress()
        if place is None:  # Closed meanwhile, and told before that.
            return cast("tuple[int, int]", self._last)
        epoch, position = place
        return (epoch + 1, 0) if is_over else (epoch, position)

    def is_closed(self) -> bool:
        return not self._to_close

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
            now = self.native.progress()
            # None where an interrupted call has closed it: that call kept the place.
            if now is not None:
                self._left_out = self.native.skipped()[1]
                self._last = (now[0] + 1, 0) if ended else self.progress()
            self.native.close()
            if self.lending is not None:
                self.lending.end()
        except BaseException:  # Of another process, or interrupted.
            self._to_close.append(None)
            raise


def _run(native: Any, epoch: int) -> Any:
    """Runs an epoch. The native loader counts epochs as they are run, and several threads may have it run them."""
    while True:
        native.set_epoch(epoch)
        batches = native.run()
        if batches.progress()[0] == epoch:
            return batches
        batches.close()


class Iterator(Generic[B_co]):
    """An iteration over an epoch, or over the rest of it after a state. With `turn` (which one, of how many) it is
    that of one of several processes that take turns."""

    def __init__(self, loader: LoaderBase[B_co], start: int | str, turn: tuple[int, int] | None = None):
        # The loader whose next epoch it takes once its first batch is asked for.
        self.awaited_by: LoaderBase[B_co] | None = None
        self.prepare(loader, start, turn)
        loader._running.add(self)

    def prepare(self, loader: LoaderBase[B_co], start: int | str, turn: tuple[int, int] | None = None) -> None:
        """Begins to read ahead, in place of what it may have read so far."""
        core, before = Core(loader, start, turn), getattr(self, "core", None)
        self.core: Core = core
        if before is not None:
            before.close(ended=False)
        self._next = self.core.native.__next__
        self._beside, self._compose = loader._beside, loader._compose
        self._finish, self._on_batch = loader._finish, loader._on_batch
        # What is done with pixels on the host, before a sharding divides them.
        self._before: Callable[[Any, list[int]], Any] | None = None
        if loader._finishes_first:
            self._before, self._finish = loader._finish, lambda pixels, _: pixels
        # What is scaled on the device is float32 there, whatever was stored.
        dtype = "float32" if loader._scales_later else loader._dtype
        self._convert: Callable[[Any], Any] = _arrays.converter(loader._as, dtype)
        if self.core.lending is not None:
            self._convert = self.core.lending.tensor
        if loader._arrangement is not None:
            self._convert = loader._arrangement.converter(loader._as)
            if self.core.lending is not None:
                lending = self.core.lending
                self._convert = lambda batch: _targets.Arrays(lending.tensors(batch))
        self._mover: Callable[[Any], Any] | None = None
        if loader._device is not None:
            from . import _device

            self._mover = _device.mover(loader._as, loader._device, loader._found().ranks[1] > 1)
        # Where a batch is an array and nothing else, the native iteration makes it.
        self._take: Callable[[], Any] | None = None
        taker = _arrays.of_capsule(loader._as)
        steps = (self._beside, self._compose, self._finish, self._on_batch)
        others = (*steps, self._mover, self.core.lending)
        if taker and all(other is None for other in others):
            self._take = functools.partial(self.core.native.next_from, taker)

    def __iter__(self) -> Iterator[B_co]:
        return self

    def __next__(self) -> B_co:
        loader = self.awaited_by
        if loader is not None:
            loader._begin(self)
        core = self.core
        if core.delivered is None:
            # An error or Ctrl-C leaves it there: a batch counts once it is delivered.
            core.delivered = core.place()
        try:
            batch = self._deliver()
        except StopIteration:
            if core.is_closed():
                core.delivered = None
            raise
        core.delivered = core.moved
        return batch

    def _deliver(self) -> B_co:
        if self._take is not None:
            batch = self._take()
            if batch is None:
                self.core.close(ended=True)
                raise StopIteration
            return batch
        batch = self.fetch() if self._mover is None else self._mover(self)
        if self._compose is not None or self._finish is not None:
            pixels, *beside = batch if isinstance(batch, tuple) else (batch,)
            if self._finish is not None:
                pixels = self._finish(pixels, beside.pop())
            if self._compose is not None:
                batch = self._compose(pixels, beside)
            else:
                batch = (pixels, *beside) if beside else pixels
        return batch if self._on_batch is None else self._on_batch(batch)

    def fetch(self) -> Any:
        """The next batch as an array in memory of the host. A tuple holds the parts that come beside it, if there are
        any, and last its rows if a later step may fail.
        """
        try:
            batch: Any = self._next()
        except StopIteration:
            self.core.close(ended=True)
            raise
        if self._beside is None and self._finish is None:
            return self._convert(batch)
        rows = (batch[0] if isinstance(batch, list) else batch).rows if self.core.lending is None else batch[2]
        beside = () if self._beside is None else self._beside(rows)
        pixels = self._convert(batch)
        if self._before is not None:
            pixels = self._before(pixels, rows)
        return (pixels, *beside) if self._finish is None else (pixels, *beside, rows)

    def stop(self) -> None:
        """Ends it before its time, as closing its loader does: who asks for its next batch is told so."""
        if self.core.is_closed():
            return
        self._take = self._mover = self._refuse
        self.awaited_by = None
        # Of another process: there is nothing to stop.
        with contextlib.suppress(Error):
            self.core.close(ended=False)
        # What keeps the files open.
        self.core.loader = None

    def _refuse(self, _: Any = None) -> NoReturn:
        raise ChoiceError("the loader of this iteration was closed: make a new one")

    def __length_hint__(self) -> int:
        return self.core.native.__length_hint__()

    def __reduce__(self) -> NoReturn:
        # A copy would share the threads and the memory, and end both with itself.
        raise TypeError(
            "an iteration cannot be copied or pickled: take the loader's state_dict(), and load it with "
            "load_state_dict() into another loader of the same images"
        )

    def __del__(self) -> None:
        # Half made, or of another process: there is nothing to stop.
        with contextlib.suppress(AttributeError, Error):
            self.core.close(ended=False)
