"""Processes of `wellread tasks`' Python adapters, as the program starts them: `python -m _wellread_tasks ADAPTER`.

Importing Lightning takes many seconds, so one process imports it, and each task is a fork of that.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "python" / "wellread" / "_tasks"

_FORKS = """
import json, os, runpy, signal, sys
sys.path.insert(0, sys.argv[1])
import lightning.pytorch
for line in sys.stdin:
    told = json.loads(line)
    child = os.fork()
    if child == 0:
        # For what hangs: two processes that import Lightning take a busy machine minutes.
        signal.alarm(1500)
        log = os.open(told["log"], os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ.update(told["env"])
        os.chdir(told["cwd"])
        sys.argv = ["-m", told["adapter"]]
        code = 70
        try:
            runpy.run_module("_wellread_tasks", run_name="__main__", alter_sys=True)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 71
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])), flush=True)
"""


class Ran:
    """The remains of a task's process."""

    def __init__(self, code, output, log):
        self.code, self.output, self.log = code, output, log
        path = output / "phases.jsonl"
        text = path.read_text() if path.exists() else ""
        # Strictly JSON: a NaN would be an error.
        self.lines = [json.loads(line, parse_constant=_no_constant) for line in text.splitlines()]
        self.phases = {line["phase"]: line for line in self.lines if "phase" in line}
        self.errors = [line["error"] for line in self.lines if "error" in line]
        self.info = {key: value for line in self.lines for key, value in line.get("info", {}).items()}
        self.metrics = next((line["final_metrics"] for line in self.lines if "final_metrics" in line), None)
        self.artifacts = {
            line["artifact"]["kind"]: line["artifact"]["path"] for line in self.lines if "artifact" in line
        }

    def samples(self, name):
        """All samples of a repeated phase, and how many of them are warm-up."""
        told = [line for line in self.lines if line.get("samples") == name]
        return sum((line["seconds"] for line in told), []), max((line["warm_up"] for line in told), default=0)

    def failed(self, *parts):
        """It ended with exit code 1 and one error, which holds all of these."""
        assert self.code == 1, self.log
        assert len(self.errors) == 1, self.errors
        assert all(part in self.errors[0] for part in parts), self.errors[0]
        return self.errors[0]


def _no_constant(text):
    raise ValueError(f"{text} is not JSON")


class Tasks:
    """Runs tasks of a repository, one after the other."""

    def __init__(self, folder):
        self._folder = folder
        self._count = 0
        (folder / "_wellread_tasks").symlink_to(SOURCES)
        self._forks = subprocess.Popen(
            [sys.executable, "-c", _FORKS, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""},
        )  # fmt: skip

    def run(self, adapter, worktree, experiment, **told):
        """Runs one to its end."""
        self._count += 1
        output = self._folder / f"out{self._count}"
        output.mkdir()
        task = {
            "mode": "train", "branch": "main", "commit": "0" * 40, "experiment": experiment, "trainer": "cpu",
            "max_epochs": None, "batch_size": None, "checkpoint_path": None, "data_path": None, "overrides": [],
            "seed": 7, "repeat": 0, "worktree": str(worktree), "output_dir": str(output), **told,
        }  # fmt: skip
        (output / "task.json").write_text(json.dumps(task))
        env = {
            "WELLREAD_TASK": str(output / "task.json"),
            "WELLREAD_PHASES": str(output / "phases.jsonl"),
            "PYTHONPATH": str(self._folder),
        }
        log = output / "log.txt"
        request = {"adapter": adapter, "cwd": str(worktree), "log": str(log), "env": env}
        self._forks.stdin.write(json.dumps(request) + "\n")
        self._forks.stdin.flush()
        code = json.loads(self._forks.stdout.readline())
        return Ran(code, output, log.read_text())

    def close(self):
        """Ends the process that forks."""
        self._forks.stdin.close()
        self._forks.wait(300)
