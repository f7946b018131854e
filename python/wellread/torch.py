"""Datasets for ``torch.utils.data.DataLoader``, unchanged, and the loader with torch's tensors.

Each worker process opens the set for itself, so fork, forkserver and spawn all work, also when the parent has read
before. :class:`wellread.DataLoader` needs no worker processes and is faster; these are for programs that are built
around torch's loader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch
import torch.utils.data
from torch.utils.dlpack import from_dlpack

from . import _check, _rows, _user
from . import loader as _loader
from ._signature import showing
from ._types import As, LoaderChoices, OpenOptions, OrderChoices, Path, TensorDtype, Transform
from .dataset import Dataset as _Images

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["DataLoader", "Dataset", "IterableDataset", "collate"]

_DTYPES = get_args(TensorDtype)


# Choices that say which rows come when, and what follows from them for one process of several.
_ORDER = {"shuffle", *OrderChoices.__annotations__}


class DataLoader(_loader.DataLoader):
    """:class:`wellread.DataLoader` with ``as_="torch"`` unless told otherwise."""

    @showing(LoaderChoices, of=_loader.DataLoader.__init__)
    def __init__(
        self,
        dataset: _Images | Path,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_: As = "torch",
        **choices: Unpack[LoaderChoices],
    ):
        super().__init__(dataset, batch_size, shuffle, as_=as_, **choices)


class Rows(list):
    """Images of one request, one by one, and all of them as one tensor: ``whole``. :func:`collate` takes that."""

    def __init__(self, items: list, whole: Any):
        super().__init__(items)
        self.whole = whole

    def __reduce__(self):
        return list, (list(self),)


def collate(items: list) -> Any:
    """``collate_fn`` that does not copy what was read in one request; otherwise torch's default."""
    if isinstance(items, Rows):
        return items.whole
    return torch.utils.data.default_collate(items)


class Dataset(torch.utils.data.Dataset):
    """A set of images as a map-style dataset.

    Args:
        dataset: a :class:`wellread.Dataset`, or the path of one.
        transform: a callable for each image, a tensor (C, Y, X), or (T, C, Z, Y, X) where there is more than one time
            point or depth.
        labels: a column of the dataset, or an array of one value per row: items are (image, label).
        dtype: "stored" (uint16 stays torch.uint16), or the type that images are converted to before the transform:
            "float32", "float16", "bfloat16", "int32", "int64", "uint8", "uint16". Values are not scaled, and never
            wrap: a conversion to a type that cannot hold the stored one is a ValueError.
        options: those of :class:`wellread.Dataset`, where a path is given.

    ``__getitems__`` reads the rows of a batch in one request. Items are tensors of their own memory, so
    ``DataLoader(..., collate_fn=wellread.torch.collate)`` makes the batch without a copy; torch's default copies
    once.
    """

    @showing(OpenOptions, of=_Images.__init__)
    def __init__(
        self,
        dataset: _Images | Path,
        *,
        transform: Transform | None = None,
        labels: Any = None,
        dtype: TensorDtype | torch.dtype = "stored",
        **options: Unpack[OpenOptions],
    ):
        self._images = _opened(dataset, options)
        if transform is not None and not callable(transform):
            raise TypeError(f"transform must be callable, not {type(transform).__name__}")
        self._transform = transform
        self._dtype = _conversion(dtype, self._images)
        self._labels = None
        if isinstance(labels, str):
            self._labels = _items(self._images.column(labels))
        elif labels is not None:
            self._labels = _items(labels)
            if len(self._labels) != len(self._images):
                raise ValueError(f"labels must be one per row: {len(self._labels)} for {len(self._images)} images")

    @property
    def images(self) -> _Images:
        """The set of images."""
        return self._images

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int) -> Any:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list:
        """Items of several rows, read in one request where they are alike in shape and type."""
        native = self._images._native
        rows = [_rows.one(index, len(self._images)) for index in _check.several("indices", indices)]
        if rows and native.alike(rows):
            whole = self._converted(native.read(rows))
            images = whole.unbind()
        else:
            whole = None
            images = [self._converted(native.read([row]))[0] for row in rows]
        if self._transform is not None:
            whole, images = None, [_user.call("transform", self._transform, image) for image in images]
        if self._labels is None:
            return Rows(images, whole) if whole is not None else list(images)
        labels = [self._labels[row] for row in rows]
        items = list(zip(images, labels, strict=True))
        return Rows(items, [whole, torch.utils.data.default_collate(labels)]) if whole is not None else items

    def _converted(self, batch: Any) -> torch.Tensor:
        tensor = from_dlpack(batch.__dlpack__(max_version=(1, 0)))
        return tensor if self._dtype is None else tensor.to(self._dtype)

    def __repr__(self) -> str:
        return f"wellread.torch.Dataset({self._images!r})"


class IterableDataset(torch.utils.data.IterableDataset):
    """A set of images as an iterable dataset: each rank and each worker process delivers its share, every epoch in a
    new order where shuffled, every image once.

    Args:
        dataset: a :class:`wellread.Dataset`, or the path of one.
        batch_size: images per item, tensors (N, C, Y, X): use ``DataLoader(..., batch_size=None)``. None delivers
            single images, for a loader that batches.
        choices: those of :class:`wellread.DataLoader`; threads in each process, ``num_workers``, are 1 unless given.

    Call :meth:`set_epoch` before each epoch where workers do not persist, as with torch's DistributedSampler.
    """

    @showing(LoaderChoices, of=_loader.DataLoader.__init__)
    def __init__(
        self,
        dataset: _Images | Path,
        *,
        batch_size: int | None = None,
        shuffle: bool = False,
        as_: Literal["torch"] = "torch",
        **choices: Unpack[LoaderChoices],
    ):
        self._images = _opened(dataset, {})
        self._single = batch_size is None
        choices.setdefault("num_workers", 1)
        if as_ != "torch":
            raise ValueError(f'as_ must be "torch" here, not {as_!r}')
        # Wrong choices are told here and not in the worker processes.
        images = 1 if batch_size is None else batch_size
        self._whole = _loader.DataLoader(self._images, images, shuffle, as_=as_, **choices)
        self._epoch = self._whole.epoch

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch that the next iteration runs."""
        self._epoch = _check.whole("epoch", epoch, 0, 2**64 - 2)

    def _share(self, worker: int, workers: int) -> _loader.DataLoader | None:
        """What one of several worker processes delivers: every so many-th batch, so that torch's loader, which takes
        turns, returns the batches that one process would. None where there is nothing left for it."""
        whole = self._whole
        rows, step = whole.rows(self._epoch), whole.rows_per_batch
        mine = [row for at in range(worker * step, len(rows), workers * step) for row in rows[at : at + step]]
        if not mine:
            return None
        choices = {name: value for name, value in whole._arguments.items() if name not in _ORDER}
        return _loader.DataLoader(self._images, **choices, rows=mine, rank=0, world_size=1, epoch=self._epoch)

    def __len__(self) -> int:
        return len(self._whole)

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        loader: _loader.DataLoader | None = self._whole
        if info is None:
            self._whole.set_epoch(self._epoch)
        else:
            loader = self._share(info.id, info.num_workers)
        self._epoch += 1
        for batch in loader if loader is not None else ():
            if not self._single:
                yield batch
            else:
                yield (batch[0][0], _first(batch[1])) if isinstance(batch, tuple) else batch[0]


def _first(labels: Any) -> Any:
    return {name: values[0] for name, values in labels.items()} if isinstance(labels, dict) else labels[0]


def _opened(dataset: Any, options: OpenOptions) -> _Images:
    if isinstance(dataset, _Images):
        if options:
            raise TypeError(f"{', '.join(options)}: only where a path is given")
        return dataset
    return _Images(dataset, **options)


def _items(values: Any) -> list:
    return values.tolist() if hasattr(values, "tolist") else _check.several("labels", values)


def _conversion(dtype: Any, images: _Images) -> torch.dtype | None:
    """The type to convert to, if not the stored one."""
    name = str(dtype).removeprefix("torch.") if isinstance(dtype, torch.dtype) else dtype
    name = _check.word("dtype", name, _DTYPES)
    if name == "stored":
        return None
    stored = images._native.info(0)[1] if len(images) else name
    wanted = getattr(torch, name)
    if not wanted.is_floating_point:
        from_, to = getattr(torch, stored), torch.iinfo(wanted)
        if from_.is_floating_point:
            raise ValueError(f'dtype="{name}" cannot hold {stored}: choose a floating-point type')
        held = torch.iinfo(from_)
        if held.min < to.min or held.max > to.max:
            raise ValueError(f'dtype="{name}" cannot hold every value of {stored}: choose "float32" or "int64"')
    return wanted
