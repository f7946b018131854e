"""The answers of tasks, kept in files of this machine until the command is done: a later one goes on with them.

answers, as they come ──a line each──▶ ~/.cache/wellread/resume/SET ──by the rows of tasks──▶ answers of a later run
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from .. import __version__
from ..errors import Error
from ._sets import Recipe

# Files of sets that nobody has gone on with for so long are removed.
KEPT_SECONDS = 30 * 24 * 3600.0
# In the answer of a task for a row that could not be read. In a name a backslash would stand before the last mark.
FAILED = '"cause":'


def folder() -> str:
    """Where answers are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "wellread", "resume")


def has_failed(result: Any) -> bool:
    """Whether the answer of a task has a row that could not be read."""
    return isinstance(result, str) and FAILED in result


class Journal:
    """The answers of tasks over one set. Lines of other processes, and those that were cut off, do no harm."""

    def __init__(self, path: str) -> None:
        self.path = path
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._file = open(path, "a+b", buffering=0)  # noqa: SIM115
        # Where the answer of each task begins, and images of it.
        self._there: dict[str, tuple[int, int]] = {}
        at, is_whole = 0, True
        with open(path, "rb") as lines:
            for line in lines:
                is_whole = line.endswith(b"\n")
                with contextlib.suppress(ValueError):
                    key, images, text = line.split(b" ", 2)
                    json.loads(text)
                    self._there[key.decode()] = (at, int(images))
                at += len(line)
        if not is_whole:
            self._write(b"\n")

    def images(self, key: str) -> int | None:
        """Images of the task of this key; None where there is no answer."""
        found = self._there.get(key)
        return None if found is None else found[1]

    def answer(self, key: str) -> Any:
        """The answer of the task of this key."""
        at, _ = self._there[key]
        with open(self.path, "rb") as lines:
            lines.seek(at)
            return json.loads(lines.readline().split(b" ", 2)[2])

    def keep(self, key: str, images: int, result: Any) -> None:
        """Keeps an answer. If a row could not be read, the next run reads it again: it may be repaired by then."""
        if not has_failed(result):
            self._write(f"{key} {images} {json.dumps(result)}\n".encode())

    def _write(self, line: bytes) -> None:
        # At once, so that lines of two processes do not mix.
        if self._file.write(line) != len(line):
            raise OSError("it is not written to the end")

    def close(self) -> None:
        """Keeps nothing more."""
        self._file.close()


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Has an error of the file system in the block say what could not be kept.

    Raises:
        wellread.Error: that error.
    """
    try:
        yield
    except OSError as error:
        hint = "the variable XDG_CACHE_HOME names another folder, or leave resume out"
        cause = f"the answers of nodes cannot be kept: {error}"
        raise Error(f"{folder()}: {cause} (hint: {hint})", path=folder(), hint=hint) from error


class Kept:
    """The journals of a command."""

    def __init__(self) -> None:
        self._journals: dict[str, Journal] = {}
        remove_old(folder())

    def of(self, how: Recipe) -> Journal:
        """The journal of a set, by the way it is opened.

        Raises:
            wellread.Error: its file cannot be opened.
        """
        name = hashlib.sha256(how.pickled).hexdigest()
        if name not in self._journals:
            with writing():
                self._journals[name] = Journal(os.path.join(folder(), name))
        return self._journals[name]

    def forget(self) -> None:
        """Removes all that was kept: the command is done."""
        for journal in self._journals.values():
            journal.close()
            with contextlib.suppress(OSError):
                os.unlink(journal.path)
        self._journals.clear()


def key_of(work: Callable[..., Any], job: tuple[Any, ...]) -> str:
    """The key of a task's answer: what the task does, the set as it was, and the rows."""
    how: Recipe = job[0]
    asked = [work.__name__, __version__, how.stamp, job[1:]]
    # Ranges of rows as texts, which no list of rows is.
    return hashlib.sha256(json.dumps(asked, default=repr).encode()).hexdigest()


def remove_old(place: str) -> None:
    """Removes journals that nobody goes on with."""
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.is_file() and entry.stat().st_mtime < time.time() - KEPT_SECONDS:
                os.unlink(entry.path)
