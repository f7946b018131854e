"""The user's own callables: they are called on each image or batch, and what they return is checked.

An image's result becomes part of a batch. So an error about a result that cannot be one is raised here, with the
callable's name and the row. The library that stacks would name neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import _arrays

_EXPECTED = {"numpy": "an array of numbers", "torch": "a torch.Tensor", "jax": "a jax.Array"}


def call(name: str, function: Callable[[Any], Any], argument: Any) -> Any:
    """The function's result. A StopIteration that escapes it would end the epoch without a word, so it becomes a
    RuntimeError, as in generators (PEP 479)."""
    try:
        return function(argument)
    except StopIteration as error:
        raise RuntimeError(f"{name} raised StopIteration") from error


def on_images(transform: Callable[[Any], Any], as_: str) -> Callable[[Any, list[int]], Any]:
    """The function that takes a batch and its rows to the batch of the transformed images.

    It raises TypeError where a result is no array, and ValueError where results differ in shape.
    """
    array, stack = _result(as_), _arrays.stack(as_)

    def apply(batch: Any, rows: list[int]) -> Any:
        images = []
        for image, row in zip(batch, rows, strict=True):
            images.append(array(call("transform", transform, image), row))
            _check_shape(images[-1], row, images[0], rows[0])
        return stack(images)

    return apply


def on_samples(transform: Callable[[Any], Any], as_: str) -> Callable[[Any, list[int]], Any]:
    """As :func:`on_images`, of batches that are tuples or dictionaries of arrays, such as (pixels, targets). The
    transform is given one image of each, and returns the same.

    It raises TypeError where a result is of another kind than what was given.
    """
    array, stack = _result(as_), _arrays.stack(as_)

    def together(results: list[Any], like: Any, rows: list[int]) -> Any:
        if isinstance(like, dict):
            for result, row in zip(results, rows, strict=True):
                if not isinstance(result, Mapping) or any(name not in result for name in like):
                    raise TypeError(
                        f"transform returned {type(result).__name__} for row {row}, and must return a dictionary "
                        f"with {', '.join(like)}, as it is given"
                    )
            return {name: together([r[name] for r in results], part, rows) for name, part in like.items()}
        if isinstance(like, tuple):
            for result, row in zip(results, rows, strict=True):
                if not isinstance(result, (tuple, list)) or len(result) != len(like):
                    raise TypeError(
                        f"transform returned {type(result).__name__} for row {row}, and must return "
                        f"{len(like)} images, as it is given"
                    )
            return tuple(together([r[i] for r in results], part, rows) for i, part in enumerate(like))
        images = [array(result, row) for result, row in zip(results, rows, strict=True)]
        for image, row in zip(images, rows, strict=True):
            _check_shape(image, row, images[0], rows[0])
        return stack(images)

    def apply(batch: Any, rows: list[int]) -> Any:
        samples = [call("transform", transform, _sample(batch, i)) for i in range(len(rows))]
        return together(samples, batch, rows)

    return apply


def _sample(batch: Any, i: int) -> Any:
    """Image `i` of each array of a batch."""
    if isinstance(batch, dict):
        return {name: _sample(part, i) for name, part in batch.items()}
    return tuple(_sample(part, i) for part in batch) if isinstance(batch, tuple) else batch[i]


def _check_shape(image: Any, row: int, first_image: Any, first_row: int) -> None:
    first, own = tuple(first_image.shape), tuple(image.shape)
    if first != own:
        raise ValueError(
            f"transform returned the shape {own} for row {row} and {first} for row {first_row}, and images of "
            "one batch must be equal in shape: crop, pad or resize them in it"
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
