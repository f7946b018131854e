"""Datasets for ``torch.utils.data.DataLoader``, unchanged, and the loader with torch's tensors.

Each worker process opens the set for itself, so fork, forkserver and spawn all work, also when the parent has read
before. :class:`wellread.DataLoader` needs no worker processes. The classes here are for programs that are built
around torch's loader.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import torch
import torch.utils.data
from torch.utils.dlpack import from_dlpack

from . import _arrays, _check, _collated, _epochs, _native, _parts, _rows, _tensors, _user, _wrapped
from . import loader as _loader
from ._collated import Rows
from ._iteration import B_co
from ._iteration import Iterator as _Iterator
from ._signature import OF_LOADERS, OF_SETS, showing, telling, warn
from ._types import (
    ArrayChoices,
    As,
    DictChoices,
    LabelledChoices,
    LoaderChoices,
    OpenOptions,
    Paths,
    TensorDtype,
    Transform,
)
from .dataset import Dataset as _Images
from .errors import ChoiceError

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["DataLoader", "Dataset", "IterableDataset", "collate"]

_OF_LOADERS = {name: f"{advice} (here transform= changes images)" for name, advice in OF_LOADERS.items()} | OF_SETS


class DataLoader(_loader.DataLoader[B_co]):
    """:class:`wellread.DataLoader` with the default ``as_="torch"``."""

    @overload
    def __init__(
        self: DataLoader[torch.Tensor],
        dataset: _Images | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["torch"] = "torch",
        **choices: Unpack[ArrayChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[tuple[torch.Tensor, Any]],
        dataset: _Images | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: Literal["torch"] = "torch",
        **choices: Unpack[LabelledChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[dict[str, Any]],
        dataset: _Images | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: As = "torch",
        **choices: Unpack[DictChoices],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[Any],
        dataset: _Images | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: As = "torch",
        **choices: Unpack[LoaderChoices],
    ) -> None: ...
    @showing(LoaderChoices, of=_loader.DataLoader.__init__)
    def __init__(
        self,
        dataset: _Images | Paths,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: As = "torch",
        **choices: Unpack[LoaderChoices],
    ) -> None:
        super().__init__(dataset, batch_size, shuffle, as_=as_, **choices)


def collate(items: list[Any]) -> Any:
    """``collate_fn`` that does not copy images of one request; for others torch's default. Labels that torch makes no
    tensor of are a list: dates, times, durations, and those some of which are missing. So are complex numbers,
    decimals and whole numbers that int64 does not hold.

    Raises:
        wellread.ChoiceError: images of unlike sizes; the message says which rows and which sizes.
    """
    if isinstance(items, Rows) and items.are_whole():
        return items.whole
    pairs = all(isinstance(item, tuple) and len(item) == 2 for item in items)
    _collated.check_sizes(items, [item[0] for item in items] if pairs else items)
    known = items.listed if isinstance(items, Rows) else None
    listed = pairs and (any(_tensors.makes_none(item[1]) for item in items) if known is None else known)
    if not listed:
        return torch.utils.data.default_collate(items)
    images, labels = zip(*items, strict=True)
    return [torch.utils.data.default_collate(list(images)), list(labels)]


class Dataset(_parts.WithClasses, torch.utils.data.Dataset[Any]):
    """A set of images as a map-style dataset.

    Args:
        dataset: a :class:`wellread.Dataset`, or the path of one, or a list of paths.
        transform: a callable for each image, a tensor (C, Y, X). It is (T, C, Z, Y, X) where there is more than one
            time point or depth.
        labels: a column of the dataset, or an array of one value per row: items are (image, label). A label
            from an array (rows, k) of numbers is a tensor of k numbers. A batch of dates, times or durations needs
            :func:`collate`. So do texts and truth values some of which are missing
            (None, NaN, pandas' NA, masked). Complex numbers, decimals and whole numbers that int64 does not hold need
            it too. Torch's default takes none of them.
        classes: True, or a list: labels are the numbers of classes, as those of :class:`wellread.DataLoader`.
        dtype: the type that images are converted to before the transform: "float32", with which torch computes,
            "float16", "bfloat16", "int32", "int64", "uint8" or "uint16". "stored" converts nothing: uint16 stays
            torch.uint16, which torch can neither add nor compare. Values are not scaled, and never wrap: a conversion
            to a type that cannot hold the stored one is a ValueError. So is a float that would become infinite.
        options: those of :class:`wellread.Dataset`, for a path.

    ``__getitems__`` reads the rows of a batch in one request. Items are tensors of their own memory, so
    ``DataLoader(..., collate_fn=wellread.torch.collate)`` makes the batch without a copy; torch's default copies
    once.
    """

    @telling("wellread.torch.Dataset", _OF_LOADERS)
    @showing(OpenOptions, of=_Images.__init__)
    def __init__(
        self,
        dataset: _Images | Paths,
        *,
        transform: Transform | None = None,
        labels: Any = None,
        classes: bool | Sequence[Any] | None = None,
        dtype: TensorDtype | torch.dtype = "float32",
        **options: Unpack[OpenOptions],
    ) -> None:
        self._images = _opened(dataset, options)
        if transform is not None and not callable(transform):
            raise TypeError(f"transform must be callable, not {type(transform).__name__}")
        self._transform = transform
        self._dtype = _tensors.conversion(dtype, self._images)
        self._labels: list[Any] | torch.Tensor | None = None
        self._classes = None
        one = isinstance(labels, str)
        numbered = classes is not None and classes is not False
        if one:
            values = _parts.exact_column(self._images, labels) if numbered else self._images.column(labels)
        else:
            _check.no_table("labels", labels, "a column or one value per row")
            _parts.tell_other_order(self._images, labels)
            labels = _arrays.gone_through(labels)
            values = _arrays.with_missing(_arrays.of_pandas(labels))
        if values is not None:
            self._labels = _tensors.kept(values)
            if len(self._labels) != len(self._images):
                raise ValueError(f"labels must be one per row: {len(self._labels)} for {self._images._images()}")
            if isinstance(values, (list, tuple)) and any(isinstance(label, (str, bytes)) for label in values):
                # Of texts and others a loader makes no labels, and says which rows have them.
                _parts.given_labels(self._images, values)
        if numbered:
            if labels is None:
                raise ValueError("classes are those of labels, which are not given")
            values = values if one else _parts.given_labels(self._images, labels, exact=True)
            column, advice = labels if one else None, "take the rows that have one (dataset.select)"
            self._classes = _parts.Classes(values, classes, range(len(self._images)), column=column, advice=advice)
            self._labels, values = self._classes.numbers.tolist(), self._classes.numbers
        # Decided once: of truth values, one batch may have a missing one and the next none.
        given = self._labels
        self._listed = (
            isinstance(given, list)
            and not _tensors.is_of_numbers(values)
            and (any(map(_tensors.makes_none, given)) or _arrays.lack_some(values, given))
        )

    @property
    def images(self) -> _Images:
        """The set of images."""
        return self._images

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int) -> Any:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Items of several rows, read in one request where they are alike in shape and type."""
        native = self._images._native
        rows = [_rows.one(index, len(self._images)) for index in _check.several("indices", indices)]
        if rows and native.alike(rows):
            whole = self._converted(native.read(rows), rows)
            images = whole.unbind()
        else:
            whole = None
            images = [self._converted(native.read([row]), [row])[0] for row in rows]
        if self._transform is not None:
            whole, images = None, [_user.call("transform", self._transform, image) for image in images]
        if self._labels is None:
            return Rows(list(images), whole, None if whole is None else False, rows)
        given = self._labels
        labels = list(given[rows]) if isinstance(given, torch.Tensor) else [given[row] for row in rows]
        items = list(zip(images, labels, strict=True))
        if whole is None:
            return Rows(items, None, self._listed, rows)
        return Rows(items, [whole, labels if self._listed else torch.utils.data.default_collate(labels)], rows=rows)

    def _converted(self, batch: Any, rows: list[int]) -> torch.Tensor:
        tensor = from_dlpack(batch.__dlpack__())
        return tensor if self._dtype is None else _tensors.converted(tensor, self._dtype, rows)

    def __repr__(self) -> str:
        return f"wellread.torch.Dataset({self._images!r})"


class IterableDataset(torch.utils.data.IterableDataset[Any]):
    """A set of images as an iterable dataset. Each rank delivers its share (``shard`` among its choices), and its
    worker processes take turns. With ``batch_size=N`` here and ``batch_size=None`` in torch's loader, that returns
    the batches of one process, in the same order.

    Args:
        dataset: a :class:`wellread.Dataset`, or the path of one, or a list of paths.
        batch_size: images per item, tensors (N, C, Y, X): use ``DataLoader(..., batch_size=None)``. None delivers
            single images, for a loader that batches. With several workers, torch's loader makes each batch of the
            images of one of them. So its batches are others than those of one process, and several may be short.
            A warning says so once; with order="balanced" it is a ChoiceError.
        choices: those of :class:`wellread.DataLoader`. ``num_workers`` are the threads in each process; the default
            is 1.

    Each iteration runs the next epoch, also in worker processes that are made anew for it. :meth:`set_epoch` chooses
    another; on Windows, call it before each epoch if there are workers. torchdata's StatefulDataLoader calls
    :meth:`state_dict` and :meth:`load_state_dict` in each worker.
    """

    @showing(LoaderChoices, of=_loader.DataLoader.__init__)
    def __init__(
        self,
        dataset: _Images | Paths,
        *,
        batch_size: int | None = None,
        shuffle: bool = False,
        as_: Literal["torch"] = "torch",
        **choices: Unpack[LoaderChoices],
    ) -> None:
        self._images = _opened(dataset, {})
        self._single = batch_size is None
        choices.setdefault("num_workers", 1)
        if as_ != "torch":
            raise ValueError(f'as_ must be "torch" here, not {as_!r}')
        # Wrong choices are told here and not in the worker processes.
        images = 1 if batch_size is None else batch_size
        self._whole: _loader.DataLoader[Any] = _loader.DataLoader(self._images, images, shuffle, as_=as_, **choices)
        # What the next iteration begins with, and where the latest one is.
        self._epochs = _epochs.Epochs(self._whole.epoch)
        self._place: tuple[int, int] | None = None
        self._since: str | None = None

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch that the next iteration runs."""
        self._epochs.set(_check.whole("epoch", epoch, 0, 2**64 - 2))
        self._place = self._since = None

    def state_dict(self) -> dict[str, Any]:
        """The position of the latest iteration, after its last delivered item: a small dictionary. In a worker
        process it is that worker's.

        torch's loader does not say which items of worker processes were delivered. With workers this is therefore the
        start of the iteration, in the process that has started them. It becomes the start of the next epoch once they
        have read all of theirs, ``prefetch_factor`` ahead of the delivered ones. To continue within an epoch, take
        torchdata's StatefulDataLoader, which keeps the state of each worker.
        """
        running = self._epochs.of_workers()
        if running is not None:
            epoch, resumed = running
            return self._state(epoch, 0) if resumed is None else dict(resumed)
        epoch, resumed = self._epochs.next()
        return dict(resumed) if resumed is not None else self._state(*(self._place or (epoch, 0)), self._since)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Makes the next iteration continue from :meth:`state_dict`, without reading the images before it. With
        worker processes each has a state of its own, which torchdata's StatefulDataLoader keeps. Their number must be
        the same.

        Raises:
            TypeError: no dictionary.
            ValueError: no state. The iteration refuses a state of other images, another order or seed.
        """
        if not isinstance(state_dict, dict):
            raise TypeError(f"state_dict must be a dict, not {type(state_dict).__name__}")
        try:
            if set(state_dict) != set(self._state(0, 0)):
                raise ValueError
            for name in ("epoch", "position"):
                _check.whole(name, state_dict[name], 0, 2**64 - 1)
            state = json.loads(json.dumps(state_dict, default=_check.in_json))
        except (TypeError, ValueError, RecursionError):
            raise ValueError("state_dict must be what state_dict() returned") from None
        self._epochs.set(state["epoch"], state)

    def _state(self, epoch: int, position: int, since: str | None = None) -> dict[str, Any]:
        return json.loads(self._whole._built.state(epoch, position, since))

    def _begin(self) -> dict[str, Any]:
        """The state that an iteration begins with."""
        epoch, resumed = self._epochs.begin()
        state = resumed or self._state(epoch, 0)
        self._place = (state["epoch"], state["position"])
        # To whom an epoch was dealt, it is still dealt after an interruption.
        self._since = json.dumps(state) if "deals" in state else None
        return state

    def __len__(self) -> int:
        return len(self._whole)

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        if info is None:
            # Begun with its first item: after the end of an epoch, torchdata's loader makes an iterator, and then the
            # one that it uses.
            return self._items(None, None)
        if self._single and info.num_workers > 1:
            self._tell_of_single_images(info.num_workers, _epochs.makes_batches(sys._getframe(1)))
        return self._items(self._begin(), (info.id, info.num_workers))

    def _tell_of_single_images(self, workers: int, makes_batches: bool | None) -> None:
        """Says, in one of several worker processes, what torch's loader makes of single images."""
        if makes_batches is False:
            return
        advice = "give batch_size=N to wellread.torch.IterableDataset, and batch_size=None to torch's DataLoader"
        if makes_batches and self._whole._choices["order"]["kind"] == "balanced":
            raise ChoiceError(
                'order="balanced" holds for batches of one process, and torch\'s DataLoader makes each batch of the '
                f"images of one of {workers} workers: {advice}"
            )
        if self._epochs.tells():
            warn(
                f"torch's DataLoader makes each batch of the single images of one of {workers} workers. Batches "
                f"are others than those of one process, and several may be short. For the same batches, {advice}"
            )

    def _items(self, state: dict[str, Any] | None, turn: tuple[int, int] | None) -> Iterator[Any]:
        state = self._begin() if state is None else state
        if turn is None or turn[0] == 0:
            self._whole._tell(self._whole._found())
        iterator = _Iterator(self._whole, json.dumps(state), turn or (0, 1))
        for batch in iterator:
            self._place = iterator.core.progress()
            if not self._single:
                yield batch
            else:
                yield _parts.first(batch)
        if turn is None:
            # A worker that is done waits for the others, and has nothing more to deliver when it is asked again.
            self._place = (self._epochs.next()[0], 0)
        else:
            self._epochs.end()


def _opened(dataset: Any, options: OpenOptions) -> _Images:
    if not isinstance(dataset, _Images):
        _wrapped.check_is_path("dataset", dataset)
        dataset = _Images(dataset, **options)
    elif options:
        raise TypeError(f"{', '.join(options)}: only where a path is given")
    _native.remember(dataset._native)
    return dataset
