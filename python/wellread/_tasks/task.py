"""The input of a task's process, the imports from its branch, and how it ends.

WELLREAD_TASK ─▶ Task ─▶ Context ─▶ the adapter's run ─▶ exit code 0, or an error line and 1
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.machinery
import json
import os
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from .phases import Meter, Phases, Report, rank_of_process
from .settings import TaskError, nearest

# The beginning of an address, as `wellread_store::place::scheme` has it: the package may not be here.
_ADDRESS = re.compile(r"[A-Za-z0-9+.-]+://")
# Characters of a message of others that an error keeps.
_MOST = 1500
# What CUDA, torch's allocator for the processors, and the system say of memory that is not to be had.
_NO_MEMORY = ("out of memory", "can't allocate memory", "annot allocate memory")


@dataclasses.dataclass(frozen=True)
class Task:
    """The file that ``WELLREAD_TASK`` names."""

    mode: str
    experiment: str
    trainer: str
    worktree: Path
    output_dir: Path
    branch: str = ""
    max_epochs: int | None = None
    batch_size: int | None = None
    checkpoint_path: str | None = None
    data_path: str | None = None
    overrides: tuple[str, ...] = ()
    seed: int = 0

    @property
    def trains(self) -> bool:
        """Training, or inference."""
        return self.mode == "train"

    @staticmethod
    def read() -> Task:
        """From the environment.

        Raises:
            TaskError: there is none, it cannot be read, or it says what it may not say.
        """
        path = os.environ.get("WELLREAD_TASK")
        if not path:
            raise TaskError("WELLREAD_TASK names no file: this program is started by `wellread tasks`")
        try:
            told = json.loads(Path(path).read_text())
        except (OSError, ValueError) as error:
            raise TaskError(f"the task of WELLREAD_TASK cannot be read: {error}") from None
        known = {field.name for field in dataclasses.fields(Task)}
        try:
            task = Task(**{name: value for name, value in told.items() if name in known})
        except (AttributeError, TypeError) as error:
            raise TaskError(f"{path} is no task: {error}") from None
        task = dataclasses.replace(
            task,
            worktree=Path(task.worktree).resolve(),
            output_dir=Path(task.output_dir).resolve(),
            overrides=tuple(task.overrides or ()),
        )
        for name, choices in (("mode", ("train", "inference")), ("trainer", ("gpu", "cpu", "ddp"))):
            if getattr(task, name) not in choices:
                raise TaskError(f"{name} must be one of {', '.join(choices)}, not {getattr(task, name)!r}")
        return task

    def checkpoint(self, needed: bool) -> str | None:
        """The checkpoint's path.

        Raises:
            TaskError: it is needed and not named, or not there.
        """
        if self.checkpoint_path is None:
            if needed:
                raise TaskError("inference needs a checkpoint_path: a checkpoint that a training run has written")
            return None
        if not _ADDRESS.match(self.checkpoint_path) and not Path(self.checkpoint_path).exists():
            raise TaskError(f"the checkpoint {self.checkpoint_path} is not there: correct checkpoint_path")
        return self.checkpoint_path


class Context:
    """The context that an adapter works with."""

    def __init__(self, task: Task, report: Report):
        self.task, self.report = task, report
        self.phases = Phases(Meter(), report)
        self.phases.names = {"total": "total_training" if task.trains else "total_inference"}
        #: The callback, once there is one.
        self.timer: Any = None
        # Of the branch before all that is installed; what it starts shall see the same.
        self._roots = [str(folder) for folder in (task.worktree / "src", task.worktree) if folder.is_dir()]
        sys.path[:] = self._roots + [folder for folder in sys.path if folder not in (*self._roots, "")]
        # The folder that this package is imported from, for processes that import it again.
        own = str(Path(__file__).absolute().parents[__package__.count(".") + 1])
        inherited = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
        os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*self._roots, own, *inherited]))

    def in_branch(self, file: Path) -> Path | None:
        """The file's place in the branch; None for one of another place, such as an environment within the folder."""
        file = file.resolve()
        if self.task.worktree not in file.parents:
            return None
        place = file.relative_to(self.task.worktree)
        return None if {"site-packages", "dist-packages"}.intersection(place.parts) else place

    def load(self, name: str) -> ModuleType:
        """Imports a module; where the branch has it, it is the branch's.

        Raises:
            TaskError: it is not there, or it is another than the branch's.
        """
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not error.name or not (name == error.name or name.startswith(error.name + ".")):
                raise
            raise TaskError(
                f"there is no module {name!r}, neither in the branch nor in its environment"
                + (f" (nothing is called {error.name!r})" if error.name != name else "")
                + ": the path is package.module:Class, from the root of the branch or its src folder"
            ) from None
        except ValueError as error:
            raise TaskError(f"{name!r} is no module's name: {error}") from None
        top = name.partition(".")[0]
        for package in {top, name}:
            self._must_be_of_the_branch(sys.modules[package], top)
        return module

    def _must_be_of_the_branch(self, module: ModuleType, top: str) -> None:
        where = module.__file__ or next(iter(getattr(module, "__path__", [])), None)
        if where is None or self.in_branch(Path(where)) is not None:
            return
        if importlib.machinery.PathFinder.find_spec(top, self._roots) is not None:
            raise TaskError(
                f"the module {module.__name__} was imported from {where}, though the branch has it, too: "
                "remove it from the environment, or install what it needs only"
            )


def load_class(context: Context, path: str) -> type:
    """The class at `package.module:Class` or `package.module.Class`.

    Raises:
        TaskError: it is not there.
    """
    module_name, _, name = path.rpartition(":") if ":" in path else path.rpartition(".")
    if not module_name or not name:
        raise TaskError(f"{path!r} is no import path: package.module:Class")
    module = context.load(module_name)
    found = getattr(module, name, None)
    if not isinstance(found, type):
        classes = [n for n, value in vars(module).items() if isinstance(value, type) and not n.startswith("_")]
        raise TaskError(f"module {module_name} has no class {name!r}; {nearest(name, classes)}")
    return found


def main(run: Callable[[Context], None]) -> int:
    """Reads the task and runs it; the exit code. Why it fails is reported as an error, and printed."""
    report = Report(rank_of_process())
    context = None
    try:
        task = Task.read()
        context = Context(task, report)
        context.phases.begin("total")
        run(context)
    except TaskError as error:
        return _fail(report, context, str(error))
    # A module of the branch may raise anything, and may call sys.exit().
    except BaseException as error:
        traceback.print_exc()
        return _fail(report, context, _sentence(error, context))
    _close(context)
    return 0


def _close(context: Context) -> None:
    # The copies of a callback that other processes have tell what comes in parts.
    if context.timer is None or not context.timer.copied:
        context.phases.tell()
    context.phases.end("total")


def _fail(report: Report, context: Context | None, sentence: str) -> int:
    if context is not None:
        _close(context)
    report.error(sentence)
    print(f"error: {sentence}", file=sys.stderr, flush=True)
    return 1


def _sentence(error: BaseException, context: Context | None) -> str:
    """The error, its phase, and its place in the branch."""
    kind, text = type(error).__name__, " ".join(str(error).split())
    chain = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    root = chain[-1]
    if root is not error and str(root) not in str(error):
        text += f", because of {type(root).__name__}: {' '.join(str(root).split())}"
    if isinstance(error, SystemExit):
        kind, text = "the program ended itself", f"exit code {error.code}"
    elif isinstance(error, KeyboardInterrupt):
        kind = "interrupted"
    told = f"{kind}: {text}" if text else kind
    if len(told) > _MOST:
        told = told[:_MOST] + " …"
    if isinstance(error, MemoryError) or "OutOfMemory" in kind or any(words in text for words in _NO_MEMORY):
        told += "; a smaller batch_size needs less memory"
    if context is None:
        return told
    phase = context.phases.failed_in(error)
    where = [f"in {phase}"] if phase and not phase.startswith("total") else []
    # The innermost place in the branch, of what the error follows from first.
    frames = [frame for one in reversed(chain) for frame in reversed(traceback.extract_tb(one.__traceback__))]
    for frame in frames:
        place = context.in_branch(Path(frame.filename))
        if place is not None:
            where.append(f"at {place} line {frame.lineno}")
            break
    return f"{told} ({', '.join(where)})" if where else told
