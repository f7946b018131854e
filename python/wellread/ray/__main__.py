"""``python -m wellread.ray``: what ``wellread … --on ray`` starts, which asks by JSON on stdin and reads JSON lines.

{"command": "checksum", "path": …, "options": {…}, "address": …, …}
──▶ {"total": images} … {"done": images} … {"result": …, "cluster": {…}} or {"error": …, "usage": …}
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Any, TextIO

from ..dataset import Dataset
from ..errors import Error
from . import _cluster, _commands, _convert, _sets, _whole, _write
from ._whole import Job


def result_of(request: dict[str, Any], job: Job) -> Any:
    """What the command is answered."""
    if request["command"] == "run":
        if job.total is not None:
            job.total(len(request["commands"]))
        return _commands.run(job.ray, request["commands"], request["folder"], job.done)
    dataset = _sets.of(Dataset(request["path"], **request["options"]))
    command = request["command"]
    if command == "checksum":
        # As text, which the command reads as what it finds itself.
        return _whole.sums_of(job, dataset)
    if command == "stats":
        return _whole.stats_text(job, dataset, request["by"], request["percentiles"])
    if command == "convert":
        how = request["how"]
        choices = _write.options(**request["write"])
        target = _cluster.absolute(request["target"])
        return _convert.converted(job, dataset, target, request["format"], choices, **how, rows_per_part=None)
    raise ValueError(f"unknown command {command!r}")


def answer(request: dict[str, Any], out: TextIO) -> int:
    """Does what is asked, and says how far it is; the exit code."""

    def say(**line: Any) -> None:
        out.write(json.dumps(line) + "\n")
        out.flush()

    try:
        job = Job(request["address"], done=lambda images: say(done=images), total=lambda images: say(total=images))
        result = result_of(request, job)
    except (Error, ImportError, OSError, TypeError, ValueError, KeyError, RuntimeError) as error:
        said = error.args[0] if isinstance(error, KeyError) and error.args else error
        say(error=str(said) or type(error).__name__, usage=isinstance(error, ValueError))
        return 1
    say(result=result, cluster=job.summary())
    return 0


def main() -> int:
    """Answers the request on stdin."""
    if sys.stdin.isatty():
        sys.exit("python -m wellread.ray is started by `wellread convert|verify|stats|checksum|infer|tasks --on ray`")
    # The command has opened the set as well, and said what is to be said of it.
    warnings.simplefilter("ignore")
    # Whatever libraries print to stdout goes to stderr.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        return answer(json.load(sys.stdin), out)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
