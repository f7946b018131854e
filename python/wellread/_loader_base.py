"""The work of a loader after it is made: epochs, resuming, ranks that change, closing.

::

    __iter__ ── ranks of now ──▶ native loader of these ranks ──▶ Iterator (:mod:`wellread._iteration`)
    first next of an Iterator ── the epoch begins: it counts, and a loaded state is used up
    state_dict, load_state_dict ── the iteration begun last, or one to be gone on with
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic

from . import _check, _native, _nodes, _parts, _ranks
from ._beginning import BEGINNING, EpochSampler
from ._iteration import B_co, Core, Iterator
from ._targets import Arrangement
from ._types import Transform
from .errors import ChoiceError, Error

if TYPE_CHECKING:
    from typing_extensions import Self

    from . import _device
    from .dataset import Dataset

_OfRanks = _native.Loader


class LoaderBase(_parts.WithClasses, Generic[B_co]):
    """A loader whose choices are made: see :class:`wellread.DataLoader`."""

    # The arguments, as far as they were given or checked.
    _arguments: dict[str, Any]
    _dataset: Dataset
    _targets: Dataset | None
    # Whether the sets were opened here, and are closed with the loader.
    _owns_dataset: bool
    _owns_targets: bool
    # Whose arrays batches are, where they are moved and what of.
    _as: str
    _device: Any
    _dtype: str
    _pins: bool
    _scales_later: bool
    _lender: _device.Lender | None
    # Ranks that were named, and those that a pickled loader had found; what was said of nodes, where each has a part.
    _named: _ranks.Ranks | None
    _by_node: _nodes.Named | None
    _inherited: _ranks.Inherited | None
    # What the native loader takes, and that loader by its rank and number of ranks.
    _choices: dict[str, Any]
    _made: dict[_ranks.Ranks, _OfRanks]
    # What stands beside pixels, and how a batch is put together.
    _beside: _parts.Beside | None
    _features: Any
    _compose: Callable[..., Any] | None
    _arrangement: Arrangement | None
    _finish: Callable[[Any, list[int]], Any] | None
    # Whether that is done before batches are moved.
    _finishes_first: bool
    _on_batch: Callable[[Any], Any] | None
    # The iterations that there are, which closing the loader ends.
    _running: weakref.WeakSet[Iterator[B_co]]
    # Where it was when it was closed, and what had been skipped.
    _ended: tuple[dict[str, Any], list[tuple[int, str]]] | None
    # The epoch that begins next, and the state that it goes on from if one was loaded.
    _start: tuple[int, str | None]
    # The iteration begun last, and one that reads ahead from the loaded state until it is asked for.
    _latest: Core | None
    _resumed: Iterator[B_co] | None

    @property
    def _native(self) -> _OfRanks:
        """The native loader of this process's ranks, which may have changed since it was used last: a process group
        was started, or ended."""
        return self._of(self._found().ranks)

    def _found(self) -> _ranks.Found:
        """This process's ranks at this moment."""
        return _ranks.now(self._named, self._inherited)

    def _tell(self, found: _ranks.Found) -> None:
        """Logs what the user should know of these ranks. A shuffled epoch leaves out other images than the last."""
        _ranks.tell(found)
        choices = self._choices
        if choices["uneven"] == "drop" and choices["order"]["kind"] == "sequential":
            rows = choices["rows"]
            _ranks.tell_left_out(len(self._dataset if rows is None else rows), found)

    @property
    def _built(self) -> _OfRanks:
        """The native loader used last, for what is the same for all ranks."""
        for loader in self._made.values():
            return loader
        raise ChoiceError("this loader was closed: make a new one")

    def _new(self, choices: dict[str, Any]) -> _OfRanks:
        targets = None if self._targets is None else self._targets._native
        return _OfRanks(self._dataset._native, choices, targets)

    def _of(self, ranks: _ranks.Ranks) -> _OfRanks:
        made = self._made
        nodes = None if self._by_node is None else _nodes.now(self._by_node, ranks)
        loader = made.get(ranks)
        if loader is None:
            _ = self._built
            fresh = self._new(self._choices | {"rank": ranks[0], "world_size": ranks[1], "nodes": nodes})
            self._check_device(fresh)
            # Of several threads that come here at once, all take the first one's.
            loader = made.setdefault(ranks, fresh)
            self._made = {ranks: loader}
        return loader

    def _check_device(self, loader: _OfRanks) -> None:
        """Checks that a sharding can divide each batch of the ranks of this native loader."""
        if self._as == "jax" and self._device is not None:
            from . import _device

            images = self.rows_per_batch * self._arguments["crops_per_image"]
            _device.check_divides(self._device, loader, images, self._arguments["drop_last"])

    def _keep(self, rows: str, choices: dict[str, Any], beside: dict[str, Any]) -> None:
        """Takes what was checked, and the caller cannot change, in place of lists and arrays that were given."""
        kept = {rows: choices["rows"], "weights": choices["order"]["weights"], "by": choices["order"]["keys"]}
        kept |= beside
        self._arguments |= {name: value for name, value in kept.items() if value is not None}

    def _finisher(self, transform: Transform | None) -> Callable[[Any, list[int]], Any] | None:
        """The steps on pixels and targets of these rows after they are arrays in their place; None for no step."""
        steps: list[Callable[[Any, list[int]], Any]] = []
        if self._scales_later:
            from . import _device

            scaled = _device.scaler(self._as, *self._built.unit_scale)
            several = self._arrangement
            steps.append((lambda batch, _: scaled(batch)) if several is None else several.of_images(scaled))
        if self._arrangement is not None:
            steps.append(self._arrangement.arrange)
        if transform is not None:
            from . import _user

            on_images = _user.on_images if self._arrangement is None else _user.on_samples
            steps.append(on_images(transform, self._as))
            if self._device is not None and not self._finishes_first:
                steps.append(self._returned())
        if not steps:
            return None

        def finish(batch: Any, rows: list[int]) -> Any:
            for step in steps:
                batch = step(batch, rows)
            return batch

        return finish

    def _returned(self) -> Callable[[Any, list[int]], Any]:
        """The step that moves what a transform has made to the loader's device."""
        from . import _device

        move = _device.returner(self._as, self._device)
        return lambda batch, _: move(batch)

    @property
    def dataset(self) -> Dataset:
        """The dataset of the loader."""
        return self._dataset

    @property
    def batch_size(self) -> int:
        """Images per batch."""
        return self._arguments["batch_size"]

    @property
    def rows_per_batch(self) -> int:
        """Rows of the dataset in a batch: fewer than its images if each row becomes several crops."""
        return self._arguments["batch_size"] // self._arguments["crops_per_image"]

    @property
    def num_workers(self) -> int:
        """Threads that read ahead."""
        return self._built.workers

    @property
    def readers(self) -> int:
        """Threads that read while the program waits for a batch: those of ``num_workers``, and the thread that waits.
        The latter does not read if memory, very large images or a network forbid it.
        """
        return self._built.readers

    @property
    def image_shape(self) -> tuple[int, ...]:
        """Shape of each image as delivered: (C, Y, X), or (T, C, Z, Y, X)."""
        t, c, z, y, x = self._built.image_shape
        return (c, y, x) if t == z == 1 else (t, c, z, y, x)

    @property
    def targets(self) -> Dataset | None:
        """The dataset of the targets; None without them."""
        return self._targets

    @property
    def pairing(self) -> str | None:
        """The way in which targets were found for the images: by their "names", or by "order", the first for the
        first image and so on. None without targets.
        """
        return self._built.pairing

    @property
    def feature_names(self) -> list[str] | None:
        """The columns of the features in batches; None without features."""
        return None if self._features is None else list(self._features)

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return not self._made

    def close(self) -> None:
        """Ends the loader's iterations and their threads, and closes the set if the loader has opened it. Batches
        stay; :meth:`state_dict` and :attr:`skipped` still work. Other calls of a closed loader or of its iterations
        are an error (:class:`wellread.ChoiceError`). Closing again does nothing.
        """
        if not self._made:
            return
        try:
            self._ended = self.state_dict(), self.skipped
        except Error:  # Its iteration is of another process.
            self._ended = json.loads(self._built.state(self._start[0], 0)), []
        for iterator in list(self._running):
            iterator.stop()
        self._latest = self._resumed = None
        self._made = {}
        if self._owns_dataset:
            self._dataset.close()
        if self._owns_targets and self._targets is not None:
            self._targets.close()

    def __enter__(self) -> Self:
        _ = self._built
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def images(self) -> int:
        """Images of an epoch for this rank, by the present ranks, as in :meth:`__len__` and :meth:`rows`."""
        return self._native.images

    @property
    def epoch(self) -> int:
        """The epoch that the next iteration runs."""
        _ = self._built
        return self._start[0]

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch that the next iteration runs. Iterations count up by themselves, with their first batch."""
        _ = self._built
        epoch = _check.whole("epoch", epoch, 0, 2**64 - 2)
        with BEGINNING:
            self._start = epoch, None
            self._latest = self._resumed = None

    @property
    def batch_sampler(self) -> Any:
        """For trainers: Lightning tells ``batch_sampler.sampler.set_epoch`` which epoch it begins. One after
        :attr:`epoch` is then the next. An earlier one changes nothing, nor does that of a loaded state.
        """
        return EpochSampler(self)

    def rows(self, epoch: int) -> list[int]:
        """The dataset's rows in the order in which an epoch delivers them to this rank."""
        return self._native.rows(_check.whole("epoch", epoch, 0, 2**64 - 2))

    @property
    def traffic(self) -> dict[str, int | float | None]:
        """Bytes read of files so far, "read", bytes of stored pixels that went into batches, "used", and their ratio,
        "amplification". The ratio is below 1 for compressed pixels, and None if nothing was counted.
        """
        read, used = self._built.traffic
        return {"read": read, "used": used, "amplification": read / used if read and used else None}

    def stats(self) -> dict[str, int | float | None]:
        """Bytes read so far: "read" and "used" as in `traffic`, and "bytes_read_per_used", their ratio.

        A set in a bucket or on a web server also has the traffic of the link since this loader was made. The keys are
        "requests", "bytes_received" and "link_wait_s". The last is the seconds that threads waited for answers. The
        ratio is then that of the bytes received. For sets on this machine they are None. They are counted for all
        loaders of a process together.

        The numbers of the dataset's ``cache_report`` are called "cache_bytes", "cache_images" and so on, those of
        a cache on disk as "cache_disk_hits" and so on.
        """
        cache = {f"cache_{key}": number for key, number in self._dataset.cache_report.items()}
        read, used, link = self._built.stats()
        requests, received, waited = link or (None, None, None)
        over = read if received is None else received
        ratio = over / used if over and used else None
        return {"read": read, "used": used, "bytes_read_per_used": ratio,
                "requests": requests, "bytes_received": received, "link_wait_s": waited, **cache}  # fmt: skip

    @property
    def skipped(self) -> list[tuple[int, str]]:
        """With on_error="skip", row and error of the images that the latest iteration left out: the first 1,000."""
        if self._ended is not None:
            return list(self._ended[1])
        return self._latest.skipped() if self._latest is not None else []

    def __len__(self) -> int:
        return len(self._native)

    def __iter__(self) -> Iterator[B_co]:
        found = self._found()
        self._tell(found)
        iterator, self._resumed = self._resumed, None
        if iterator is not None and iterator.core.loader is not self._of(found.ranks):
            # The state was loaded before the ranks were known.
            iterator.core.close(ended=False)
            iterator = None
        if iterator is None:
            epoch, loaded = self._start
            iterator = Iterator(self, epoch if loaded is None else loaded)
        iterator.awaited_by = self
        return iterator

    def _begin(self, iterator: Iterator[B_co]) -> None:
        """Takes the epoch of an iteration whose first batch is asked for. One that is dropped before takes none.

        It has read ahead since it was made. If another has taken that epoch meanwhile, or the next epoch was set, it
        begins anew.
        """
        with BEGINNING:
            if iterator.awaited_by is None:
                # Another thread that shares it has asked for a batch.
                return
            _ = self._built
            epoch, loaded = self._start
            if iterator.core.start != self._start:
                iterator.prepare(self, epoch if loaded is None else loaded)
            iterator.awaited_by = self._resumed = None
            self._start, self._latest = ((epoch + 1) % 2**64, None), iterator.core

    def state_dict(self) -> dict[str, Any]:
        """The position of the latest iteration, after its last delivered batch: a small dictionary that JSON and
        pickle can hold. Images that were read ahead do not count. An iteration counts once its first batch is asked
        for. Before the first iteration, and after the last batch of one, it is the start of the next.
        """
        if self._ended is not None:
            return dict(self._ended[0])
        with BEGINNING:
            (epoch, loaded), core = self._start, self._latest
        if loaded is not None:
            # As it was loaded, also where its rest has no image for this rank.
            return json.loads(loaded)
        native = self._built
        if core is None:
            return json.loads(native.state(epoch, 0))
        # That of the ranks that it was begun with, unless the loader is being closed.
        return json.loads((native if core.loader is None else core.loader).state(*core.progress(), core.since))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Makes the next iteration continue from :meth:`state_dict`, with exactly the images that were not yet
        delivered. The number of workers, the batch size, the transform and the number of ranks and nodes may differ.
        All ranks load the state of one rank; all ranks have delivered equally many batches.

        Raises:
            TypeError: no dictionary.
            ValueError: a state of other images, another order or seed, or none at all (a
                :class:`wellread.ChoiceError`).
        """
        if not isinstance(state_dict, dict):
            raise TypeError(f"state_dict must be a dict, not {type(state_dict).__name__}")
        try:
            text = json.dumps(state_dict, default=_check.in_json)
        except (TypeError, ValueError, RecursionError):
            raise ValueError("state_dict must be what state_dict() returned") from None
        resumed = Iterator(self, text)
        with BEGINNING:
            self._resumed, self._start = resumed, resumed.core.start

    def __repr__(self) -> str:
        if not self._made:
            return f"wellread.DataLoader({self._dataset!r}: closed)"
        shape = " x ".join(map(str, self.image_shape))
        try:
            batches = len(self)
        except Error:
            # What is wrong with the ranks is told where images are asked for.
            batches = len(self._built)
        what = f"{_check.counted(batches, 'batch')} of {self.batch_size}, {shape} {self._dtype}"
        return f"wellread.DataLoader({self._dataset!r}: {what})"
