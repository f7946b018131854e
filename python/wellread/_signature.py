"""Signatures that name what is handed on, for :func:`help` and editors that ask a running Python. Errors of arguments
that a call does not have, and warnings at the line of the caller."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ._types import LoaderChoices, OpenOptions

F = TypeVar("F", bound=Callable[..., Any])

#: Arguments of torch's loader, of upstream and of other loaders, and what serves in their place.
OTHERS = {
    "access_pattern": 'shuffle=True, order="sequential" or order="block" says the order',
    "batch_sampler": "batch_size= makes the batches, of rows= or sampler=",
    "collate_fn": "batches are arrays already, and batch_transform= takes each of them",
    "crop_size": "crop= is the size that is cut out of the middle",
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
}

#: What a call of a set says of arguments of a loader.
OF_LOADERS = dict.fromkeys(
    ("batch_size", "shuffle", "as_", *LoaderChoices.__annotations__), "wellread.DataLoader() takes it"
)

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


def telling(of: str, elsewhere: Mapping[str, str], more: Iterable[str] = ()) -> Callable[[F], F]:
    """Has a call say of an argument that it lacks what serves in its place (`elsewhere`, by name), or which one is
    meant. `more` are those that it hands on."""

    def mark(call: F) -> F:
        variable = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        own = [name for name, one in inspect.signature(call).parameters.items() if one.kind not in variable]
        known = [name for name in (*own, *more) if name != "self"]

        @functools.wraps(call)
        def told(*given: Any, **choices: Any) -> Any:
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
