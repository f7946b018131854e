"""Targets beside the images, such as masks; and how a batch of several arrays is put together.

native arrays of a batch:  views of the images │ the same views of their targets
                                   ▼                        ▼
                              pixels (or views)          targets     ──▶ (pixels, targets), or a dict by keys
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import _arrays, _check, _options

if TYPE_CHECKING:
    from ._recipes import Views
    from .dataset import Dataset


def chosen(
    targets: Dataset | None,
    kind: Any,
    channels: Any,
    dtype: Any,
    scale: Any,
    pairing: Any,
    of_images: str,
    scales_later: bool,
) -> dict[str, Any] | None:
    """The choices about targets, as the native loader takes them; None where there are none. `of_images` is the dtype
    of the images, which targets that are images have unless told otherwise.

    Raises ValueError for choices about targets that are not given, and for a scale of labels.
    """
    if targets is None:
        about = {"target_kind": kind, "target_channels": channels, "target_dtype": dtype, "pairing": pairing}
        named = [name for name, value in about.items() if value is not None]
        if named or not _is_auto(scale):
            raise ValueError(f"{(named or ['target_scale'])[0]} is about targets, which are not given")
        return None
    if kind is None:
        # Whole numbers are classes or objects, unless told otherwise.
        info = _options.of_first_readable(targets._native.info, len(targets)) if len(targets) else None
        stored = "uint8" if info is None else info[1]
        kind = "image" if stored.startswith("float") else "labels"
    kind = _check.word("target_kind", kind, _options.TARGET_KINDS)
    if dtype is not None:
        dtype = _check.word("target_dtype", dtype, _options.DTYPES)
    elif kind == "image" and scales_later:
        # The images leave the host as stored; targets are scaled there.
        dtype = "float32"
    factor: Any = None
    if kind == "labels":
        if scale is not None and not _is_auto(scale):
            raise ValueError('target_scale is for target_kind="image": labels are not scaled')
    else:
        factor, later = _options.scale(scale, (dtype or of_images) == "stored")
        if later:
            raise ValueError('target_scale must be "unit", a number, (low, high) or None, not "device"')
    return {
        "kind": kind,
        **_options.named_channels(channels, targets, "target_channels"),
        "dtype": dtype,
        "scale": factor,
        "pairing": None if pairing is None else _check.word("pairing", pairing, _options.PAIRINGS),
    }


def _is_auto(scale: Any) -> bool:
    return isinstance(scale, str) and scale == "auto"


class Arrays(list[Any]):
    """The arrays of a batch: views of its images, then of their targets; until they are put together."""


def each(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function of an array, for all arrays of a batch that has several, also once they are put together."""

    def apply(pixels: Any) -> Any:
        if isinstance(pixels, Arrays):
            return Arrays(map(apply, pixels))
        if isinstance(pixels, tuple):
            return tuple(map(apply, pixels))
        return {name: apply(part) for name, part in pixels.items()} if isinstance(pixels, dict) else function(pixels)

    return apply


class Arrangement:
    """How the arrays of a batch are put together. It has their types (`dtypes`), which are views of images, and
    their names in a dictionary (`names`, None for tuples)."""

    def __init__(
        self, dtypes: Sequence[str], views: Views | None, has_targets: bool, names: Sequence[str] | None
    ) -> None:
        self._dtypes = list(dtypes)
        self._views = views
        self._has_targets = has_targets
        self._names = None if names is None else list(names[:2])
        self._of_images = len(self._dtypes) // (2 if has_targets else 1)

    def converter(self, as_: str) -> Callable[[Any], Arrays]:
        """The function from what the native iteration delivers to the arrays of a library."""
        makers = [_arrays.converter(as_, dtype) for dtype in self._dtypes]

        def convert(delivered: Any) -> Arrays:
            batches = delivered if isinstance(delivered, list) else [delivered]
            return Arrays(make(batch) for make, batch in zip(makers, batches, strict=True))

        return convert

    def of_images(self, function: Callable[[Any], Any]) -> Callable[[Any, list[int]], Arrays]:
        """A step that changes the images, and leaves targets alone."""

        def apply(arrays: Arrays, rows: list[int]) -> Arrays:
            images, targets = arrays[: self._of_images], arrays[self._of_images :]
            return Arrays([*map(function, images), *targets])

        return apply

    def arrange(self, arrays: Arrays, rows: list[int]) -> Any:
        """Views as they were asked for; with targets a pair of both, or a dictionary."""
        pixels = self._grouped(arrays[: self._of_images])
        if not self._has_targets:
            return pixels
        both = (pixels, self._grouped(arrays[self._of_images :]))
        return both if self._names is None else dict(zip(self._names, both, strict=True))

    def _grouped(self, arrays: list[Any]) -> Any:
        return arrays[0] if self._views is None else self._views.group(arrays)

    def composer(self, names: Sequence[str] | None) -> Callable[[Any, Sequence[Any]], Any] | None:
        """The function from what was arranged and the parts beside it to the batch; None without targets, where it
        needs none of its own."""
        if not self._has_targets:
            return None
        if names is None:
            return lambda both, beside: (*both, *beside)
        others = names[2:]
        return lambda both, beside: {**both, **dict(zip(others, beside, strict=True))}
