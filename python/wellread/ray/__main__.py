"""``python -m wellread.ray``: what ``wellread … --on ray`` starts, which asks by JSON on stdin and reads JSON lines.

{"command": "checksum", "path": …, "options": {…}, "address": …, …}
──▶ {"total": images} … {"done": images} … {"result": …, "cluster": {…}} or {"error": …, "usage": …}

For embed, stdin answers {"told": {"opened": …}} with the parts that are left. A command that is interrupted
sends SIGINT, and stdin ends when one is killed. Either way tasks are given up, and what they wrote goes.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import os
import queue
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any, NoReturn, TextIO

from ..dataset import Dataset
from ..errors import Error
from . import _cluster, _commands, _convert, _embed, _sets, _whole, _write
from ._job import Job
from ._kept import has_failed

Say = Callable[..., None]
# What is no mistake of this program.
EXPECTED = (Error, ImportError, OSError, TypeError, ValueError, KeyError, RuntimeError)
# The exit code of a process that was interrupted.
INTERRUPTED = 130


class Questions:
    """Lines on stdin. A thread waits for them: as soon as the command is gone, this process is interrupted."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, name="wellread-stdin", daemon=True).start()

    def _read(self) -> None:
        begun = b""
        # Not from sys.stdin: Python cannot end while a thread has its lock.
        with contextlib.suppress(OSError):
            while piece := os.read(self._descriptor, 1 << 16):
                *whole, begun = (begun + piece).split(b"\n")
                for line in whole:
                    self._lines.put(line)
        _thread.interrupt_main()
        # Whoever waits for a line wakes up, and is interrupted.
        self._lines.put(b"")

    def readline(self) -> str:
        """The next line; an empty one where there is none."""
        return self._lines.get().decode()


def _interrupt_once(number: int, frame: object) -> NoReturn:
    """Handles SIGINT. A second request must not interrupt the removal of what was written."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def embedded(request: dict[str, Any], job: Job, say: Say, questions: Questions) -> int:
    """Has the parts computed that the command says are left."""

    def ask(told: dict[str, Any]) -> dict[str, Any]:
        say(told=told)
        line = questions.readline()
        if not line:
            raise Error("the command that asked for this is gone")
        answered: dict[str, Any] = json.loads(line)
        return answered

    def tell(number: int, images: int) -> None:
        say(told={"part": number}, done=images)

    def total(images: int) -> None:
        say(total=images)

    return _embed.run(job.ray, request, ask, tell, total, job.nodes)


def asked_for(request: dict[str, Any]) -> Dataset:
    """The set that is asked for: opened, its cells cut out, profiles joined to it. Every node knows its paths."""
    dataset = Dataset(_cluster.absolute(request["path"]), **request["options"])
    cells, join, skipped = request.get("cells"), request.get("join"), request.get("skipped")
    if cells is not None:
        masks = cells["masks"]
        whole = {
            "table": _cluster.absolute(cells["table"]),
            "masks": None if masks is None else _cluster.absolute(masks),
        }
        dataset = dataset.cells(**{**cells, **whole})
    if join is not None:
        dataset = _sets.with_profiles(dataset, _cluster.absolute(join["profiles"]), join["on"], join["columns"])
    return _sets.without(dataset, skipped) if skipped else dataset


def result_of(request: dict[str, Any], job: Job, say: Say, questions: Questions) -> Any:
    """The answer to the command."""
    if request["command"] == "embed":
        return embedded(request, job, say, questions)
    if request["command"] == "run":
        if job.total is not None:
            job.total(len(request["commands"]))
        return _commands.run(job.ray, request["commands"], request["folder"], job.done)
    command = request["command"]
    if command == "checksum":
        # As text, which the command reads as what it finds itself.
        return _whole.sums_of_each(job, map(asked_for, request["sets"]))
    dataset = asked_for(request)
    if command == "stats":
        asked = (request["by"], request["percentiles"], request["on_error"] == "skip")
        text, skipped = _whole.stats_of_readable(job, dataset, *asked)
        return {"text": text, "skipped": skipped}
    if command == "convert":
        how = request["how"]
        choices = _write.options(**request["write"])
        target = _cluster.absolute(request["target"])
        return _convert.converted(job, dataset, target, request["format"], choices, **how)
    raise ValueError(f"unknown command {command!r}")


def _is_of_ray(error: Exception) -> bool:
    return any(kind.__module__.partition(".")[0] == "ray" for kind in type(error).__mro__)


def answer(request: dict[str, Any], out: TextIO, questions: Questions) -> int:
    """Does what is asked, and says how far it is; the exit code."""

    def say(**line: Any) -> None:
        try:
            out.write(json.dumps(line) + "\n")
            out.flush()
        except OSError:
            # Nobody reads it: the command is gone.
            _thread.interrupt_main()

    try:
        job = Job(
            request["address"],
            done=lambda images: say(done=images),
            total=lambda images: say(total=images),
            resume=request["resume"],
        )
        result = result_of(request, job, say, questions)
    except Exception as error:
        if _is_of_ray(error):
            # Some of them are also a ValueError or the like, with a traceback for a text.
            say(error=f"the Ray cluster failed: {_cluster.words(error)}", usage=False)
        elif isinstance(error, EXPECTED):
            said = error.args[0] if isinstance(error, KeyError) and error.args else error
            say(error=str(said) or type(error).__name__, usage=isinstance(error, ValueError))
        else:
            raise
        return 1
    say(result=result, cluster=job.summary())
    # An image that fails the command may be repaired by the next time, and the others are not read again then.
    if request.get("on_error") != "raise" or not any(map(has_failed, result)):
        job.finish()
    return 0


def main() -> int:
    """Answers the request on stdin."""
    if sys.stdin.isatty():
        commands = "convert|verify|stats|checksum|embed|infer|tasks"
        sys.exit(f"python -m wellread.ray is started by `wellread {commands} --on ray`")
    # The command has opened the set as well, and said what is to be said of it.
    warnings.simplefilter("ignore")
    # Whatever libraries print to stdout goes to stderr.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # Ray prints pages about each node that is lost; the summary says that one was.
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        signal.signal(signal.SIGINT, _interrupt_once)
        questions = Questions(0)
        return answer(json.loads(questions.readline()), out, questions)
    except KeyboardInterrupt:
        # What could not be said has nobody who reads it.
        os.dup2(sys.stdout.fileno(), out.fileno())
        return INTERRUPTED
    finally:
        # Ray has an end of its own.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
