"""Signatures that name what is handed on, for :func:`help` and editors that ask a running Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


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
