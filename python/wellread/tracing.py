"""Timelines of the work of each thread, for Perfetto: ``with wellread.trace("trace.json"): ...``"""

from __future__ import annotations

import os
import sys
from types import TracebackType

from . import _native


class trace:  # noqa: N801 - used as a function is
    """Records the work of this process's threads while the block runs, and writes it to ``path``.

    >>> with wellread.trace("trace.json"):
    ...     for batch in loader:
    ...         with wellread.step("train"):
    ...             train(batch)

    The file is in Chrome's trace format and opens at https://ui.perfetto.dev. It shows opening, reading,
    decompressing, transforming and waiting of every thread of wellread's loaders, and the steps that :class:`step`
    names. It is written also if the block ends by an exception. One recording runs at a time; processes that are
    forked meanwhile record nothing. It replaces an earlier trace at ``path``; another file there raises
    :class:`wellread.Error`, as does a place that cannot be written.

    After the block, ``spans`` is the number of spans in the file. ``dropped`` is the number of spans beyond the limit
    of a million, which are not kept.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: str = os.fspath(path)
        self.spans: int = 0
        self.dropped: int = 0

    def __enter__(self) -> trace:
        _native.trace_start(self.path, " ".join(sys.argv))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        written = _native.trace_finish()
        if written is not None:
            self.spans, self.dropped = written


class step:  # noqa: N801 - used as a function is
    """Shows the block under this name in the running recording; does nothing without one."""

    __slots__ = ("_begun", "name")

    def __init__(self, name: str) -> None:
        self.name: str = name

    def __enter__(self) -> step:
        self._begun = _native.Step()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._begun.end(self.name)
