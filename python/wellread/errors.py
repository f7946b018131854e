"""Exceptions. The package's own are :class:`Error`; choices that make no sense are also :class:`ValueError`."""

from __future__ import annotations

import os
import re
from typing import Any

__all__ = ["ChoiceError", "CorruptImageError", "Error", "MissingError", "UnsupportedImageError"]


# torch's DataLoader raises what a worker process raised by calling its class with the traceback's text, where the
# message of the store stands in a line of its own: "wellread.errors.NAME: PATH: row ROW: CAUSE (hint: HINT)".
_OF_A_WORKER = re.compile(
    r"^wellread\.errors\.\w+: (?P<path>.+?): row (?P<row>\d+): .*?(?: \(hint: (?P<hint>.*)\))?$", re.MULTILINE
)


class Error(Exception):
    """An operation on a set of images failed.

    Attributes:
        path: the file or folder at fault, as text; None if no single file is.
        row: the row (image, from 0) at fault; None if no single row is.
        hint: a remedy; None if there is none. The message has it too.
    """

    path: str | None
    row: int | None
    hint: str | None
    # Whether a link or a server failed, and not this image: other images fail alike.
    _is_of_link = False

    def __init__(
        self,
        message: str = "",
        *,
        path: str | os.PathLike[str] | None = None,
        row: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        if path is None and row is None and str(message).startswith("Caught "):
            told = _OF_A_WORKER.search(str(message))
            if told:
                path, row, hint = told["path"], int(told["row"]), told["hint"]
        self.path = None if path is None else str(path)
        self.row = row
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions of worker processes are pickled, and keep what they know.
        state = {"_is_of_link": self._is_of_link}
        return _rebuilt, (type(self), self.args, self.path, self.row, self.hint), state


class CorruptImageError(Error):
    """An image that cannot be read, or does not fit the others: ``path`` and ``row`` say which."""


class UnsupportedImageError(Error):
    """An image that may be fine, of a kind that wellread does not read, such as another compression. The message
    names it.
    """


class MissingError(Error, FileNotFoundError):
    """A file or folder that is not there."""

    def __str__(self) -> str:
        # OSError would print its number and file name instead.
        return str(self.args[0]) if self.args else ""


class ChoiceError(Error, ValueError):
    """Choices that make no sense, or do not fit the images."""


def _rebuilt(kind: type[Error], args: tuple[Any, ...], path: str | None, row: int | None, hint: str | None) -> Error:
    message = str(args[0]) if args else ""
    return kind(message, path=path, row=row, hint=hint)
