"""Signatures that name what is handed on, for :func:`help` and editors that ask a running Python. Errors of arguments
that a call does not have, and warnings at the line of the caller."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from . import _check
from ._types import LoaderChoices, OpenOptions

F = TypeVar("F", bound=Callable[..., Any])

# Arguments of other loaders about what images become, and which argument of a loader serves in their place. {0} says
# whose it is where that is another call's.
_OF_IMAGES = {
    "crop_size": "crop={0} is the size that is cut out of the middle",
    "image_size": "resize={0} is the size of whole images, and crop= that of a part",
    "img_size": "resize={0} is the size of whole images, and crop= that of a part",
    "interpolation": "resize_filter={0} is the filter of resize=",
    "mean": "normalize={0} is (mean, std)",
    "num_threads": "num_workers={0} are the threads that read ahead",
    "patch_size": "crop={0} is the size that is cut out of the middle, and random_crop= of a random part",
    "roi_size": "crop={0} is the size that is cut out of the middle, and random_crop= of a random part",
    "size": "resize={0} is the size of whole images, and crop= that of a part",
    "spatial_size": "resize={0} is the size of whole images, and crop= that of a part",
    "std": "normalize={0} is (mean, std)",
}

# The same about sets, with the argument of a set.
_PLACE = ("path", "the path is the first argument, without a name")
_FORMAT = ("format", "format={0} is the storage format")
_CACHE = ("cache", 'cache={0} keeps the images that were read, as "memory" does')
_OF_SETS = {
    "cache_num": _CACHE,
    "cache_rate": _CACHE,
    "data_dir": _PLACE,
    "data_path": _PLACE,
    "file_format": _FORMAT,
    "format_type": _FORMAT,
    "image_dir": _PLACE,
    "in_memory": _CACHE,
    "root": _PLACE,
}

#: Arguments of torch's loader, of upstream and of other loaders, and what serves in their place.
OTHERS = {
    **{name: advice.format("") for name, advice in _OF_IMAGES.items()},
    "access_pattern": 'shuffle=True, order="sequential" or order="block" says the order',
    "batch_sampler": "batch_size= makes the batches, of rows= or sampler=",
    "collate_fn": "batches are arrays already, and batch_transform= takes each of them",
    "generator": "seed= seeds the order and all random draws",
    "in_order": "batches come in order: leave it out",
    "mask": "targets= are masks beside the images",
    "masks": "targets= are masks beside the images",
    "multiprocessing_context": "num_workers= are threads, and no processes: leave it out",
    "persistent_workers": "num_workers= are threads, and no processes: leave it out",
    "pin_memory_device": "device= is where batches go",
    "prefetch_factor": "prefetch= is how many batches are read ahead",
    "random_seed": "seed= seeds the order and all random draws",
    "return_index": "indices=True delivers the row of each image",
    "target_transform": "transform= takes each (image, target) where targets= are given",
    "timeout": "num_workers= are threads, and no processes: leave it out",
    "worker": "num_workers= are the threads that read ahead",
    "worker_init_fn": "num_workers= are threads, and no processes: leave it out",
}

#: What a loader says of arguments that it does not have.
ELSEWHERE = {
    **OTHERS,
    **{
        name: f"wellread.Dataset() takes it: give Dataset(path, {name}=...) in place of a path"
        for name in OpenOptions.__annotations__
    },
    **{
        name: advice
        if own == "path"
        else f"{advice.format(' of wellread.Dataset()')}: give Dataset(path, {own}=...) in place of a path"
        for name, (own, advice) in _OF_SETS.items()
    },
}

#: What a call of a set says of arguments of a loader.
OF_LOADERS = {
    **dict.fromkeys(
        ("batch_size", "shuffle", "as_", *LoaderChoices.__annotations__), "wellread.DataLoader() takes it"
    ),
    **{name: advice.format(" of wellread.DataLoader()") for name, advice in _OF_IMAGES.items()},
}

#: What a call of a set says of arguments of other sets.
OF_SETS = {name: advice.format("") for name, (_, advice) in _OF_SETS.items()}

# Packages whose functions are no caller's.
_BETWEEN = (__package__, "lightning", "pytorch_lightning")


def nearest(name: str, known: Iterable[str], written: str) -> str:
    """The question whether the nearest of the known names is meant, as it is `written`; empty where none is near."""
    import difflib

    near = difflib.get_close_matches(name, known, 1, 0.75)
    return f": is it {written.format(near[0])}?" if near else ""


def unexpected(of: str, name: str, known: Iterable[str], elsewhere: Mapping[str, str]) -> TypeError:
    """The error of an argument that a call does not have. It says what serves in its place (`elsewhere`, by name), or
    which one may be meant."""
    advice = f": {elsewhere[name]}" if name in elsewhere else nearest(name, known, "{}=")
    return TypeError(f"{of}() got an unexpected keyword argument {name!r}{advice}")


def _unnamed(of: str, by_position: Sequence[str], value: Any, known: Iterable[str]) -> TypeError:
    """The error of an argument behind those that a call takes by their position."""
    *others, last = [name for name in by_position if name != "self"]
    taken = f"{', '.join(others)} and {last}" if others else f"{last} alone"
    # A word behind a path is a format to many other loaders.
    advice = f", as in format={value!r}" if isinstance(value, str) and "format" in known else ""
    return TypeError(
        f"{of}() takes {taken} by position, and {_check.kind(value)} is one more: give it by its name{advice}"
    )


def telling(of: str, elsewhere: Mapping[str, str], more: Iterable[str] = ()) -> Callable[[F], F]:
    """Has a call say of an argument that it lacks what serves in its place (`elsewhere`, by name), or which one is
    meant. `more` are those that it hands on."""

    def mark(call: F) -> F:
        variable = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        parameters = inspect.signature(call).parameters.items()
        own = [name for name, one in parameters if one.kind not in variable]
        known = [name for name in (*own, *more) if name != "self"]
        by_position = [name for name, one in parameters if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]

        @functools.wraps(call)
        def told(*given: Any, **choices: Any) -> Any:
            if len(given) > len(by_position):
                raise _unnamed(of, by_position, given[len(by_position)], known)
            for name in choices:
                if name not in known:
                    raise unexpected(of, name, known, elsewhere)
            return call(*given, **choices)

        return told  # type: ignore[return-value]

    return mark


def showing(choices: type, of: Callable[..., Any]) -> Callable[[F], F]:
    """Shows a call's ``**choices`` as the arguments that they are: those of a typed dictionary (`choices`), with the
    defaults that `of` has for them."""
    theirs = inspect.signature(of).parameters

    def mark(call: F) -> F:
        signature = inspect.signature(call)
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        more = [theirs[name] for name in choices.__annotations__ if name not in signature.parameters]
        call.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        return call

    return mark


def warn(text: str) -> None:
    """Warns by the line of the caller of this package. Constructors of :mod:`wellread.torch` and others may stand
    between, and Lightning's trainer."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)
