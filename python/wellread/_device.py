"""Batches in page-locked memory, and on their way to a device (torch and JAX)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from . import _check, _native, _targets
from .errors import ChoiceError


def pinned(nbytes: int) -> Any:
    """So much page-locked memory of torch, which its own allocator hands out again only when no copy is under way."""
    import torch

    if not torch.cuda.is_available():
        raise _without_cuda("pin_memory=True", "leave pin_memory out")
    return torch.empty(nbytes, dtype=torch.uint8, pin_memory=True)


def _without_cuda(what: str, advice: str) -> ValueError:
    import torch

    return ValueError(
        f"{what} needs a CUDA device and a torch built for it: torch {torch.__version__} finds none; {advice}"
    )


def usable(as_: str, device: Any) -> Any:
    """A device or sharding of the library, asked for when a loader is made and not at its first batch.

    Raises ValueError where there is no such device here.
    """
    if as_ == "jax":
        import jax

        if not isinstance(device, (jax.Device, jax.sharding.Sharding)):
            advice = ""
            if isinstance(device, (jax.sharding.Mesh, jax.sharding.PartitionSpec)):
                advice = ": give jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(axis))"
            raise ValueError(
                "device must be a device or sharding of JAX, such as jax.devices()[0], not "
                f"{_check.kind(device)}{advice}"
            )
        return device
    import torch

    advice = 'choose "cuda", "cuda:0" … or "cpu", or leave device out'
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"device must be one of torch, not {_check.kind(device)} ({_line(error)}): {advice}"
        ) from None
    if found.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if not count:
            raise _without_cuda(f'device="{found}"', 'choose "cpu", or leave device out')
        if found.index is not None and found.index >= count:
            raise ValueError(
                f'device="{found}" is not there: torch finds {count} CUDA devices, counted from cuda:0; {advice}'
            )
        return found
    try:
        torch.empty(0, device=found)
    except Exception as error:
        # Each kind of device has its own way of not being there.
        raise ValueError(f'device="{found}" cannot be used here ({_line(error)}): {advice}') from error
    return found


def check_divides(device: Any, loader: _native.Loader, batch_size: int, drop_last: bool) -> None:
    """Checks that a sharding of JAX can divide the batches of a native loader.

    Raises ChoiceError for a batch, or for the last one of an epoch, that it cannot divide into equal parts.
    """
    for (t, c, z, y, x), _ in loader.arrays:
        shape = (batch_size, c, y, x) if t == z == 1 else (batch_size, t, c, z, y, x)
        parts = _parts(device, len(shape))
        of_each, *of_image = parts
        if batch_size % of_each:
            raise ChoiceError(
                f"device divides each batch into {of_each} equal parts, and batch_size={batch_size} is no "
                f"multiple of {of_each}: choose a batch_size that is one"
            )
        last = loader.images % batch_size
        if last % of_each and not drop_last:
            raise ChoiceError(
                f"device divides each batch into {of_each} equal parts, and the last batch of an epoch has {last} of "
                f"{loader.images} images with batch_size={batch_size}. Set drop_last=True to leave it out, or choose "
                f"another batch_size or other rows"
            )
        for name, size, cut in zip("CYX" if len(shape) == 4 else "TCZYX", shape[1:], of_image, strict=True):
            if size % cut:
                raise ChoiceError(
                    f"device divides the axis {name} of batches into {cut} equal parts, and it has {size}: choose "
                    "another sharding, or change images with crop or resize"
                )


def _parts(device: Any, axes: int) -> list[int]:
    """The number of parts into which a sharding of JAX divides each axis of this process's batches."""
    if not hasattr(device, "shard_shape"):
        return [1] * axes
    # A length that each number of parts divides.
    length = len(device.device_set)
    try:
        shard = device.shard_shape((length,) * axes)
        parts = [length // size for size in shard]
        if not device.is_fully_addressable:
            # The batch is one of several processes' parts.
            slices = device.addressable_devices_indices_map((length,) * axes).values()
            parts = [len({(part.start, part.stop) for part in places}) for places in zip(*slices, strict=True)]
    except (ValueError, LookupError, AssertionError) as error:
        raise ChoiceError(
            f"device cannot divide batches of {axes} axes ({_line(error)}): choose a sharding of as many"
        ) from error
    return parts


def _line(error: BaseException) -> str:
    """The first line of what a library says."""
    return next(iter(str(error).splitlines()), type(error).__name__)[:200]


class Lender:
    """Lends torch's memory to a loader, which decodes into it. The iterations of a loader share it. Those of other
    ranks may have batches of another size, and each takes memory of its own size."""

    def __init__(self, allocate: Callable[[int], Any] = pinned):
        # Asked at once, so that a machine that cannot says so here and not at the first batch.
        allocate(64)
        self._allocate = allocate
        self.native: _native.LentMemory = _native.LentMemory()
        # What is lent, by address.
        self._lent: dict[int, Any] = {}

    def begin(self, loader: Any) -> Lending:
        """Memory for an iteration: the batches ahead, one that is being taken and one more."""
        return Lending(self, loader, loader.prefetch + 2)

    def lend(self, nbytes: int) -> None:
        """Lends memory for one more batch."""
        memory = self._allocate(nbytes + 64)
        memory = memory[-memory.data_ptr() % 64 :][:nbytes]
        self._lent[memory.data_ptr()] = memory
        self.native.lend(memory.data_ptr(), nbytes)

    def back(self, address: int) -> Any:
        """The memory at an address, which is no longer lent."""
        return self._lent.pop(address)


class Lending:
    """The memory that an iteration has lent: always for so many batches, delivered ones replaced."""

    def __init__(self, lender: Lender, loader: Any, batches: int):
        import torch

        self._lender, self._nbytes, self._batches = lender, loader.batch_bytes, batches
        self._dtype = getattr(torch, loader.dtype)
        for _ in range(batches):
            lender.lend(self._nbytes)

    def tensor(self, delivered: tuple[int, list[int], list[int]]) -> Any:
        """The tensor of a batch that was decoded into memory of torch: from now on the caller's alone."""
        address, shape, _ = delivered
        memory = self._lender.back(address)
        self._lender.lend(self._nbytes)
        return memory[: math.prod(shape) * self._dtype.itemsize].view(self._dtype).view(shape)

    def tensors(self, delivered: tuple[int, list[Any], list[int]]) -> list[Any]:
        """As :meth:`tensor`, of a batch of several arrays: where each begins, its shape and type."""
        import torch

        address, arrays, _ = delivered
        if not arrays or not isinstance(arrays[0], tuple):
            return [self.tensor(delivered)]
        memory = self._lender.back(address)
        self._lender.lend(self._nbytes)
        tensors = []
        for start, shape, name in arrays:
            dtype = getattr(torch, name)
            nbytes = math.prod(shape) * dtype.itemsize
            tensors.append(memory[start : start + nbytes].view(dtype).view(shape))
        return tensors

    def end(self) -> None:
        """Takes back what was not delivered, once the iteration's threads have ended."""
        for address in self._lender.native.withdraw(self._batches, self._nbytes):
            self._lender.back(address)


def scaler(as_: str, factor: float, summand: float) -> Callable[[Any], Any]:
    """The function that takes a batch of a stored type to float32 and scales it, wherever the batch is."""
    if as_ == "torch":
        import torch

        def convert(batch):
            return batch.to(torch.float32)
    else:
        import jax.numpy

        def convert(batch):
            return batch.astype(jax.numpy.float32)

    if (factor, summand) == (1, 0):
        return convert
    if summand == 0:
        return lambda batch: convert(batch) * factor
    return lambda batch: convert(batch) * factor + summand


def mover(as_: str, device: Any, is_part: bool) -> Callable[[Any], Any]:
    """A function that returns an iterator's next batch on a device (:func:`usable`). Arrays of torch and JAX that
    come with the pixels are moved as well. `is_part` says that other processes have other images. It holds no
    iterator, so that one which is left ends with its last name, not when Python looks for circles.
    """
    if as_ == "jax":
        put = _targets.each(_divided(_put(device, is_part), device))
        put_beside = _beside(device, is_part)

        def move(iterator):
            batch = iterator.fetch()
            if isinstance(batch, tuple):
                return put(batch[0]), *map(put_beside, batch[1:])
            return put(batch)

        return move
    if device.type == "cuda":
        return _Ahead(device)

    put_tensors = _targets.each(lambda tensor: tensor.to(device))

    def move_tensors(iterator):
        batch = iterator.fetch()
        if isinstance(batch, tuple):
            return put_tensors(batch[0]), *(_to(part, device) for part in batch[1:])
        return put_tensors(batch)

    return move_tensors


def divides(as_: str, device: Any) -> bool:
    """Whether a device is a sharding of JAX, which divides batches."""
    return as_ == "jax" and hasattr(device, "shard_shape")


def returner(as_: str, device: Any) -> Callable[[Any], Any]:
    """The function that moves what a transform has made to the device that was asked for, if it is elsewhere."""
    if as_ == "jax":
        import jax

        return _targets.each(lambda array: jax.device_put(array, device))
    return _targets.each(lambda tensor: tensor.to(device))


def _put(device: Any, is_part: bool) -> Callable[[Any], Any]:
    """A function that moves a batch to a device or sharding of JAX. Over the devices of several processes, the parts
    of their ranks become one array.
    """
    import jax

    if is_part and not getattr(device, "is_fully_addressable", True):
        import numpy

        return lambda batch: jax.make_array_from_process_local_data(device, numpy.asarray(batch))
    return lambda batch: jax.device_put(batch, device)


def _beside(device: Any, is_part: bool) -> Callable[[Any], Any]:
    """A function that moves what comes beside pixels to their device or sharding of JAX. Arrays are divided among
    devices as images are, by their first axis. Texts, and other lists, stay.
    """
    import jax

    is_named = isinstance(device, jax.sharding.NamedSharding)
    if is_named:
        of_rows = jax.sharding.PartitionSpec(*tuple(device.spec)[:1])
        device = jax.sharding.NamedSharding(device.mesh, of_rows, memory_kind=device.memory_kind)
    put = _put(device, is_part)

    def is_divided(shape):
        """Other shardings may be of the axes of pixels alone: their values stay."""
        try:
            device.shard_shape(shape)
        except (ValueError, LookupError, AssertionError):
            return False
        return True

    def move(values):
        if isinstance(values, dict):
            return {name: move(inner) for name, inner in values.items()}
        if not isinstance(values, jax.Array):
            return values
        return put(values) if is_named or not hasattr(device, "shard_shape") or is_divided(values.shape) else values

    return move


def _divided(put: Callable[[Any], Any], device: Any) -> Callable[[Any], Any]:
    """A function that moves a batch (:func:`_put`), and raises ChoiceError for one that lost images and does not
    divide any more."""

    # Of batches with so many axes: it is the same for each.
    of_each = functools.cache(lambda axes: _parts(device, axes)[0])

    def checked(batch):
        parts = of_each(batch.ndim)
        if batch.shape[0] % parts:
            raise ChoiceError(
                f"device divides each batch into {parts} equal parts, and this one has {batch.shape[0]} images after "
                'on_error="skip": leave out images that cannot be read with rows='
            )
        return put(batch)

    return checked if hasattr(device, "shard_shape") else put


def _to(labels: Any, device: Any) -> Any:
    if isinstance(labels, _targets.Arrays):
        return _targets.Arrays(_to(array, device) for array in labels)
    if isinstance(labels, dict):
        return {name: _to(values, device) for name, values in labels.items()}
    return labels.to(device, non_blocking=True) if hasattr(labels, "to") else labels


class _Ahead:
    """Copies each batch on a stream of its own while the one before it is computed with."""

    def __init__(self, device: Any):
        import torch

        self._torch, self._device = torch, device
        self._stream = torch.cuda.Stream(device)
        self._next: tuple | BaseException | None = None

    def _begin(self, iterator: Any) -> tuple | BaseException:
        try:
            batch = iterator.fetch()
        except Exception as error:
            # Raised when its turn comes.
            return error
        pixels, *labels = batch if isinstance(batch, tuple) else (batch,)
        with self._torch.cuda.stream(self._stream):
            moved = _to(pixels, self._device)
            labels = [_to(values, self._device) for values in labels]
            event = self._torch.cuda.Event()
            event.record(self._stream)
        # The host's memory is kept until the copy is done.
        return moved, labels, event, batch, iterator.core.place()

    def __call__(self, iterator: Any) -> Any:
        current = self._next if self._next is not None else self._begin(iterator)
        self._next = None
        if isinstance(current, BaseException):
            raise current
        moved, labels, event, _, progress = current
        iterator.core.moved = progress
        self._next = self._begin(iterator)
        stream = self._torch.cuda.current_stream(self._device)
        stream.wait_event(event)
        for tensor in _tensors([moved, *labels]):
            tensor.record_stream(stream)
        return (moved, *labels) if labels else moved


def _tensors(labels: list) -> list:
    found: list[Any] = []
    for values in labels:
        if isinstance(values, _targets.Arrays):
            parts: Any = values
        else:
            parts = values.values() if isinstance(values, dict) else [values]
        found.extend(part for part in parts if hasattr(part, "record_stream") and part.is_cuda)
    return found
