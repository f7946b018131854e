"""Which epoch is next, for a dataset that torch's DataLoader iterates in worker processes.

    parent ─ set, of_workers ──┐
                               ├─▶ table: next epoch, that of each iteration begun lately, who is done with the latest
    worker 0 … n of iteration ─┘   (a file without a name, which workers inherit)

Workers that do not persist are made anew for each epoch, as copies of a dataset that nobody tells of the epochs
before. So they count in what they share: the first worker of an iteration takes the next epoch, the others the same.
"""

from __future__ import annotations

import json
import multiprocessing
import multiprocessing.context
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any

import torch.utils.data

if sys.platform != "win32":
    import fcntl
    import multiprocessing.reduction

__all__ = ["Epochs", "makes_batches"]

# Iterations that are remembered, of as many processes: more than run at once.
_MOST = 16


class Epochs:
    """The epoch, or the state, that the next iteration begins with."""

    def __init__(self, first: int) -> None:
        # What this process knew last, which processes that are forked from it begin with.
        self._entry = _entry(first, None)
        # What a worker process was told itself: it alone.
        self._own: list[Any] | None = None
        # Iterations begun in this worker process, and what the latest is called.
        self._begun = 0
        self._running: str | None = None
        self._table = _Table.made()

    def next(self) -> tuple[int, dict[str, Any] | None]:
        """The epoch of the next iteration, and the state that it goes on from."""
        epoch, resumed = self._own or self._change(lambda entry: [entry["next"], entry["resumed"]])
        return epoch, resumed

    def of_workers(self) -> tuple[int, dict[str, Any] | None] | None:
        """The start of the last iteration that worker processes began, or of the next if all of them are done with
        it. None in a worker process, and if there is no such iteration.
        """
        if torch.utils.data.get_worker_info() is not None:
            return None

        def look(entry: dict[str, Any]) -> list[Any] | None:
            latest = entry["latest"]
            if latest is None:
                return None
            return latest["start"] if len(latest["done"]) < latest["of"] else [entry["next"], entry["resumed"]]

        found = self._change(look)
        return None if found is None else (found[0], found[1])

    def set(self, epoch: int, resumed: dict[str, Any] | None = None) -> None:
        """Sets what the next iteration begins with: in a worker process its own, else also that of workers."""
        if torch.utils.data.get_worker_info() is not None:
            self._own = [epoch, resumed]
        else:
            self._change(lambda entry: entry.update(next=epoch, resumed=resumed, latest=None))

    def begin(self) -> tuple[int, dict[str, Any] | None]:
        """The start of an iteration that begins now: in worker processes the same for all of the iteration."""
        own, self._own = self._own, None
        iteration = self._running = self._iteration()
        info = torch.utils.data.get_worker_info()

        def change(entry: dict[str, Any]) -> list[Any]:
            begun = entry["begun"]
            if iteration in begun:
                return own or begun[iteration]
            found = own or [entry["next"], entry["resumed"]]
            entry.update(next=(found[0] + 1) % 2**64, resumed=None, latest=None)
            if iteration is not None and info is not None:
                begun[iteration] = [found[0], None] if own else found
                entry["latest"] = {"called": iteration, "start": begun[iteration], "of": info.num_workers, "done": []}
                while len(begun) > _MOST:
                    del begun[next(iter(begun))]
            return found

        epoch, resumed = self._change(change)
        return epoch, resumed

    def tells(self) -> bool:
        """Whether this is the first call, of this process and its workers together."""

        def change(entry: dict[str, Any]) -> bool:
            was_told, entry["told"] = entry["told"], True
            return not was_told

        return self._change(change)

    def end(self) -> None:
        """This worker process has no more of its iteration."""
        info, iteration = torch.utils.data.get_worker_info(), self._running

        def change(entry: dict[str, Any]) -> None:
            latest = entry["latest"]
            if info is not None and latest is not None and latest["called"] == iteration:
                latest["done"] = sorted({*latest["done"], info.id})

        self._change(change)

    def _iteration(self) -> str | None:
        """The name of an iteration of torch's loader, the same in all its workers and in no others; None without
        workers.
        """
        info = torch.utils.data.get_worker_info()
        if info is None:
            return None
        self._begun += 1
        # Processes are numbered by who starts them, and workers of a loader one after the other.
        number = (getattr(multiprocessing.current_process(), "_identity", ()) or (0,))[-1]
        return f"{number - info.id}:{info.seed - info.id}:{self._begun}"

    def _change(self, change: Callable[[dict[str, Any]], Any]) -> Any:
        """Changes the entry of this process; a worker's is that of who has started it."""
        parent = multiprocessing.parent_process()
        is_worker = torch.utils.data.get_worker_info() is not None
        owner = os.getpid() if not is_worker else os.getppid() if parent is None else parent.pid
        known = self._entry | {"begun": {}}
        if self._table is not None:
            try:
                self._entry, found = self._table.change(str(owner), known, change)
                return found
            except OSError:
                # Somebody has closed all files, say; it counts on its own from here.
                self._table = None
        return change(self._entry)

    def __getstate__(self) -> dict[str, Any]:
        epoch, resumed = self.next()
        is_started = multiprocessing.context.get_spawning_popen() is not None
        shared = self._table.handle() if self._table is not None and is_started else None
        return {"entry": _entry(epoch, resumed), "begun": self._begun, "shared": shared}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._entry, self._begun, self._own = state["entry"], state["begun"], None
        self._running = None
        self._table = _Table.made() if state["shared"] is None else _Table(state["shared"].detach())


def makes_batches(caller: Any) -> bool | None:
    """Whether the caller of a dataset's ``iter``, a frame, makes batches of the items. torch's loader tells a dataset
    nothing of its batch_size; its fetcher has this name for it. None for another caller, which may hand items on to
    such a loader or not.
    """
    found = caller.f_locals.get("auto_collation")
    return found if isinstance(found, bool) else None


def _entry(epoch: int, resumed: dict[str, Any] | None) -> dict[str, Any]:
    return {"next": epoch, "resumed": resumed, "begun": {}, "latest": None, "told": False}


class _Table:
    """Entries by the process that they are of, in an open file that one process at a time changes."""

    def __init__(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            # Open as long as the dataset is there.
            self._file: Any = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        else:
            self._file = os.fdopen(descriptor, "r+b", buffering=0)
        self._is = self._identity()
        self._lock, self._process = threading.Lock(), os.getpid()

    def __del__(self) -> None:
        # A file that the collector closes is a ResourceWarning. There is none where it could not be made. At the end
        # of the process, modules are gone: contextlib, too.
        file = getattr(self, "_file", None)
        if file is not None:
            try:  # noqa: SIM105
                file.close()
            except OSError:
                # Somebody has closed all files.
                pass

    @staticmethod
    def made() -> _Table | None:
        """A new one; None where it cannot be had."""
        if sys.platform == "win32":
            return None
        try:
            return _Table()
        except OSError:
            return None

    def handle(self) -> Any:
        """The handle by which the process that is being started gets the file."""
        return multiprocessing.reduction.DupFd(self._file.fileno())

    def _of_threads(self) -> threading.Lock:
        """The lock of this process's threads, which that of the file does not keep apart. A process that was forked
        while a thread had it makes its own: nobody would give it back there."""
        if self._process != os.getpid():
            self._lock, self._process = threading.Lock(), os.getpid()
        return self._lock

    def _identity(self) -> tuple[int, int]:
        status = os.fstat(self._file.fileno())
        return status.st_dev, status.st_ino

    def change(
        self, owner: str, known: dict[str, Any], change: Callable[[dict[str, Any]], Any]
    ) -> tuple[dict[str, Any], Any]:
        """Changes the entry of a process, which is ``known`` where there is none, and returns it, and the result.

        Raises OSError where the file is not there any more.
        """
        descriptor = self._file.fileno()
        if self._identity() != self._is:
            raise OSError("the file was closed")
        with self._of_threads():
            fcntl.lockf(descriptor, fcntl.LOCK_EX)
            try:
                entries = self._read()
                entry = entries.pop(owner, known)
                found = change(entry)
                entries[owner] = entry
                while len(entries) > _MOST:
                    del entries[next(iter(entries))]
                text = json.dumps(entries).encode()
                os.pwrite(descriptor, text, 0)
                os.ftruncate(descriptor, len(text))
            finally:
                fcntl.lockf(descriptor, fcntl.LOCK_UN)
            return entry, found

    def _read(self) -> dict[str, Any]:
        descriptor = self._file.fileno()
        text = os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")
        try:
            return json.JSONDecoder().raw_decode(text)[0]
        except ValueError:
            # New, or of a worker that was killed while it wrote.
            return {}
