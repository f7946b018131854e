"""The user's own callables: they are called on each image or batch, and what they return is checked.

An image's result becomes part of a batch. So an error about a result that cannot be one is raised here, with the
callable's name and the row. The library that stacks would name neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import _arrays
from ._signature import warn

_EXPECTED = {"numpy": "an array of numbers", "torch": "a torch.Tensor", "jax": "a jax.Array"}


def call(name: str, function: Callable[[Any], Any], argument: Any) -> Any:
    """The function's result. A StopIteration that escapes it would end the epoch without a word, so it becomes a
    RuntimeError, as in generators (PEP 479)."""
    try:
        return function(argument)
    except StopIteration as error:
        raise RuntimeError(f"{name} raised StopIteration") from error


def _caller(transform: Callable[[Any], Any], as_: str) -> Callable[[Any, int], Any]:
    """The function from an image and its row to the transform's result.

    It warns once where a transform of torchvision returns what it was given: those of its second version take no
    notice of arrays.
    """
    if as_ == "torch" or not _is_torchvisions(transform):
        return lambda image, _: call("transform", transform, image)
    was_told = False

    def watched(image: Any, row: int) -> Any:
        nonlocal was_told
        made = call("transform", transform, image)
        if not was_told and _is_left(image, made):
            was_told = True
            warn(
                f"transform is {type(transform).__name__} of torchvision, which left the image of row {row} as it "
                f'was. It changes tensors, and was given an array ({as_}): as_="torch" makes tensors'
            )
        return made

    return watched


def _is_torchvisions(transform: Any) -> bool:
    """Whether a transform is of torchvision, and so are all that it calls. The user's own, in a Compose or a Lambda,
    may leave an image as it is, or change it in its place."""
    if not type(transform).__module__.startswith("torchvision.") or hasattr(transform, "lambd"):
        return False
    return all(map(_is_torchvisions, getattr(transform, "transforms", None) or ()))


def _is_left(given: Any, made: Any) -> bool:
    """Whether a transform returned the images that it was given."""
    if isinstance(given, dict):
        return isinstance(made, Mapping) and all(name in made and _is_left(given[name], made[name]) for name in given)
    if isinstance(given, tuple):
        return isinstance(made, (tuple, list)) and len(made) == len(given) and all(map(_is_left, given, made))
    return made is given


def on_images(transform: Callable[[Any], Any], as_: str) -> Callable[[Any, list[int]], Any]:
    """The function that takes a batch and its rows to the batch of the transformed images.

    It raises TypeError where a result is no array, and ValueError where results differ in shape.
    """
    array, collector, called = _result(as_), _collector(as_), _caller(transform, as_)

    def apply(batch: Any, rows: list[int]) -> Any:
        images = collector(len(rows))
        for image, row in zip(batch, rows, strict=True):
            images.add(array(called(image, row), row), row)
        return images.whole()

    return apply


def on_samples(transform: Callable[[Any], Any], as_: str) -> Callable[[Any, list[int]], Any]:
    """As :func:`on_images`, of batches that are tuples or dictionaries of arrays, such as (pixels, targets). The
    transform is given one image of each, and returns the same.

    It raises TypeError where a result is of another kind than what was given.
    """
    array, collector, called = _result(as_), _collector(as_), _caller(transform, as_)

    def collectors(like: Any, length: int) -> Any:
        if isinstance(like, dict):
            return {name: collectors(part, length) for name, part in like.items()}
        return tuple(collectors(part, length) for part in like) if isinstance(like, tuple) else collector(length)

    def add(result: Any, images: Any, row: int) -> None:
        if isinstance(images, dict):
            if not isinstance(result, Mapping) or any(name not in result for name in images):
                raise TypeError(
                    f"transform returned {type(result).__name__} for row {row}, and must return a dictionary "
                    f"with {', '.join(images)}, as it is given"
                )
            for name, part in images.items():
                add(result[name], part, row)
        elif isinstance(images, tuple):
            if not isinstance(result, (tuple, list)) or len(result) != len(images):
                raise TypeError(
                    f"transform returned {type(result).__name__} for row {row}, and must return "
                    f"{len(images)} images, as it is given"
                )
            for of_sample, part in zip(result, images, strict=True):
                add(of_sample, part, row)
        else:
            images.add(array(result, row), row)

    def whole(images: Any) -> Any:
        if isinstance(images, dict):
            return {name: whole(part) for name, part in images.items()}
        return tuple(map(whole, images)) if isinstance(images, tuple) else images.whole()

    def apply(batch: Any, rows: list[int]) -> Any:
        images = collectors(batch, len(rows))
        for i, row in enumerate(rows):
            add(called(_sample(batch, i), row), images, row)
        return whole(images)

    return apply


class _Images:
    """The results of a transform for the rows of a batch. Each is copied as it comes: the callable may use its memory
    again for the next one.

    ``is_plain`` says of which images the batch can be written at once. ``empty`` makes it by its length and the first
    of them, and ``copy`` copies other ones.
    """

    def __init__(
        self,
        length: int,
        is_plain: Callable[[Any], bool],
        empty: Callable[[int, Any], Any],
        copy: Callable[[Any], Any],
        stack: Callable[[list[Any]], Any],
    ):
        self._length, self._is_plain, self._empty, self._copy, self._stack = length, is_plain, empty, copy, stack
        self._first: tuple[tuple[int, ...], int] | None = None
        # The batch and how many images are in it, or the copies where they are not all alike.
        self._batch: Any = None
        self._count = 0
        self._copies: list[Any] | None = None

    def add(self, image: Any, row: int) -> None:
        shape = tuple(image.shape)
        if self._first is None:
            self._first = (shape, row)
            if self._is_plain(image):
                self._batch = self._empty(self._length, image)
        _check_shape(shape, row, *self._first)
        if self._copies is None:
            if self._batch is not None and self._is_plain(image) and _is_like(image, self._batch):
                self._batch[self._count] = image
                self._count += 1
                return
            self._copies = [] if self._batch is None else [self._batch[i] for i in range(self._count)]
        self._copies.append(self._copy(image))

    def whole(self) -> Any:
        if self._copies is None and self._batch is not None:
            return self._batch
        return self._stack(self._copies or [])


def _is_like(image: Any, batch: Any) -> bool:
    """Whether an image is of the type of a batch, and where it is."""
    return image.dtype == batch.dtype and getattr(image, "device", None) == getattr(batch, "device", None)


def _collector(as_: str) -> Callable[[int], _Images]:
    """The function from a number of images to what collects them."""
    stack = _arrays.stack(as_)
    if as_ == "torch":
        import torch

        def is_plain(image: Any) -> bool:
            # Others keep what they have beside their values: MONAI's, or a gradient.
            is_own = type(image) is torch.Tensor and image.layout == torch.strided
            return is_own and not image.requires_grad and not image.is_quantized

        def empty(length: int, image: Any) -> Any:
            return torch.empty((length, *image.shape), dtype=image.dtype, device=image.device)

        return lambda length: _Images(length, is_plain, empty, torch.clone, stack)
    import numpy

    def copy(image: Any) -> Any:
        # Those of JAX do not change.
        return image.copy() if isinstance(image, numpy.ndarray) else image

    def empty_array(length: int, image: Any) -> Any:
        return numpy.empty((length, *image.shape), image.dtype)

    # JAX stacks its own.
    native = as_ == "numpy"
    return lambda length: _Images(length, lambda image: native and image.dtype.isnative, empty_array, copy, stack)


def _sample(batch: Any, i: int) -> Any:
    """Image `i` of each array of a batch."""
    if isinstance(batch, dict):
        return {name: _sample(part, i) for name, part in batch.items()}
    return tuple(_sample(part, i) for part in batch) if isinstance(batch, tuple) else batch[i]


def _check_shape(own: tuple[int, ...], row: int, first: tuple[int, ...], first_row: int) -> None:
    if first != own:
        raise ValueError(
            f"transform returned the shape {own} for row {row} and {first} for row {first_row}: crop, pad or "
            "resize images of a batch to one shape"
        )


def on_batch(transform: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function that takes a batch as it would be delivered to what the user makes of it."""

    def apply(batch: Any) -> Any:
        made = call("batch_transform", transform, batch)
        if made is None:
            raise TypeError("batch_transform returned None, and must return the batch: is its return missing?")
        return made

    return apply


def _result(as_: str) -> Callable[[Any, int], Any]:
    """The function from a transform's result for a row to an array that can be stacked."""
    if as_ == "torch":
        import torch

        def tensor(result: Any, row: int) -> Any:
            if not isinstance(result, torch.Tensor):
                raise _wrong(as_, result, row)
            return result

        return tensor
    import numpy

    def array(result: Any, row: int) -> Any:
        try:
            found = numpy.asarray(result)
        except (TypeError, ValueError, RuntimeError) as error:
            raise _wrong(as_, result, row, str(error)) from error
        # Objects, texts, bytes and records; bfloat16 is a V without names.
        if found.dtype.kind in "OUS" or found.dtype.names:
            raise _wrong(as_, result, row)
        return found

    if as_ == "numpy":
        return array
    import jax

    # Its own arrays stay where they are.
    return lambda result, row: result if isinstance(result, jax.Array) else array(result, row)


def _wrong(as_: str, result: Any, row: int, why: str = "") -> TypeError:
    what, advice = type(result).__name__, why
    if hasattr(result, "dtype"):
        what += f" of dtype {result.dtype}"
    if result is None:
        what, advice = "None", "is its return missing?"
    elif as_ == "torch" and hasattr(result, "__array_interface__"):
        advice = 'take torch.from_numpy of it, or choose as_="numpy"'
    elif as_ == "torch":
        advice = "wellread.torch.Dataset in torch's own DataLoader takes any result that its collate_fn does"
    text = f"transform returned {what} for row {row}, and must return {_EXPECTED[as_]}"
    return TypeError(f"{text}: {advice}" if advice else text)
