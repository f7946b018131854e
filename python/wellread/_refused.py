"""Stands in for a set or loader that a worker process could not unpickle, and raises the error when it is used.

An error while a process unpickles what it is to do ends it, and its parent is not told why.
"""

from __future__ import annotations

from typing import Any, NoReturn


def is_starting() -> bool:
    """Whether this is a process of the start methods "spawn" and "forkserver" that unpickles what it is to do."""
    from multiprocessing import process

    return bool(getattr(process.current_process(), "_inheriting", False))


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
