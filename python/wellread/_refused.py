"""Stands in for a set or loader that a worker process could not unpickle, and raises the error when it is used.

An error while a process unpickles what it is to do ends it, and its parent is not told why.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, NoReturn


def is_starting() -> bool:
    """Whether this is a process of the start methods "spawn" and "forkserver" that unpickles what it is to do."""
    from multiprocessing import process

    # Python marks the process meanwhile, by a name of its own that it may drop.
    if getattr(process.current_process(), "_inheriting", False):
        return True
    # Its main function is running then, and has not yet begun what the process is to do.
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if module in ("multiprocessing.process", "multiprocessing.spawn"):
            return module == "multiprocessing.spawn"
        frame = frame.f_back
    return False


class Refused:
    """In the place of a loader."""

    def __init__(self, error: Exception):
        self._error = error

    def __getattr__(self, _: str) -> NoReturn:
        raise self._error

    def __iter__(self) -> Any:
        raise self._error

    def __len__(self) -> int:
        raise self._error
