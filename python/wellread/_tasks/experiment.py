"""An experiment of the Lightning adapter: classes of the branch, and what they are made with.

package.module:Model,package.module:Data   or   configs/experiment/NAME.yaml ─▶ Experiment.read
  ─▶ classes imported ─▶ the row of the table and its overrides applied, by names that the classes have ─▶ build
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .settings import TaskError, nearest, split_override
from .task import Context, Task, load_class

FOLDER = Path("configs", "experiment")
_ENDINGS = (".yaml", ".yml", ".json")
_PARTS = ("model", "data", "trainer")
# What parameters for the data's place are called, the likeliest first.
_PLACES = ("data_path", "data_dir", "path", "root", "data_root", "root_dir", "data", "dataset", "folder")


class Made:
    """A class and the arguments it is made with."""

    def __init__(self, what: str, path: str, arguments: dict[str, Any]):
        self.what, self.path, self.arguments = what, path, arguments
        self.kind: Any = None

    def parameters(self) -> tuple[list[str], bool]:
        """Names of what it takes, and whether it takes others too."""
        return parameters_of(self.kind)

    def set(self, key: str, value: Any, said: str) -> None:
        """Sets an argument, or with dots something within one.

        Raises:
            TaskError: the class has no such parameter; it names the nearest.
        """
        name, *inner = key.removeprefix("init_args.").split(".")
        known, others = self.parameters()
        if name not in known and not others:
            raise TaskError(f"{said}: {self.path} has no parameter {name!r}; {nearest(name, known)}")
        place, last = self.arguments, name
        for part in inner:
            within = place.setdefault(last, {})
            if not isinstance(within, dict):
                raise TaskError(f"{said}: {self.what}.{name} is {within!r}, which has nothing within it")
            place, last = within, part
        place[last] = value

    def check(self) -> None:
        """Raises:
        TaskError: an argument that the class does not take, or one that it needs and is not there.
        """
        known, others = self.parameters()
        for name in self.arguments:
            if name not in known and not others:
                raise TaskError(f"{self.what}: {self.path} has no parameter {name!r}; {nearest(name, known)}")
        for name, parameter in inspect.signature(self.kind).parameters.items():
            named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            if named and parameter.default is parameter.empty and name not in self.arguments:
                raise TaskError(
                    f"{self.path} needs {name}: give it under init_args in {FOLDER}/, or as the override "
                    f"{self.what}.{name}=…"
                )

    def build(self, context: Context) -> Any:
        """The object."""
        return self.kind(**{name: built(context, value) for name, value in self.arguments.items()})


class Experiment:
    """Model, data where the model does not bring its own, and the trainer's arguments."""

    def __init__(self, model: Made, data: Made | None, trainer: dict[str, Any]):
        self.model, self.data, self.trainer = model, data, trainer

    @staticmethod
    def read(task: Task) -> Experiment:
        """By the file of the branch that has the experiment's name, or by the import paths that it is.

        Raises:
            TaskError: it is neither, or the file does not say what it must.
        """
        name = task.experiment
        if ":" in name:
            model, *data = (part.strip() for part in name.split(","))
            if len(data) > 1 or not model or not all(data):
                raise TaskError(f"experiment {name!r} is not package.module:ModelClass,package.module:DataClass")
            return Experiment(Made("model", model, {}), Made("data", data[0], {}) if data else None, {})
        path = _file(task.worktree, name)
        content = _parse(path)
        where = path.relative_to(task.worktree)
        if not isinstance(content, dict) or not isinstance(content.get("model"), dict):
            raise TaskError(f"{where}: it must hold model: with class_path and init_args, as LightningCLI's files do")
        parts = {part: _made(part, content[part], where) for part in ("model", "data") if content.get(part)}
        trainer = content.get("trainer") or {}
        if not isinstance(trainer, dict):
            raise TaskError(f"{where}: trainer must be arguments of Lightning's Trainer by name")
        return Experiment(parts["model"], parts.get("data"), dict(trainer))

    def load(self, context: Context) -> None:
        """Imports the classes."""
        for part in (self.model, self.data):
            if part is not None:
                part.kind = load_class(context, part.path)

    def apply(self, task: Task, trainer_class: type) -> None:
        """The row of the table, then its overrides.

        Raises:
            TaskError: a setting that nothing here has a name for.
        """
        if task.max_epochs is not None:
            self.trainer["max_epochs"] = task.max_epochs
        holder = self.data or self.model
        if task.batch_size is not None:
            known, others = holder.parameters()
            names = [name for name in known if name == "batch_size"] or [
                name for name in known if name.endswith("batch_size")
            ]
            if not names and not others:
                raise TaskError(
                    f"batch_size {task.batch_size}: {holder.path} has no parameter batch_size; "
                    f"{nearest('batch_size', known)}. Leave the column empty, or use an override"
                )
            for name in names or ["batch_size"]:
                holder.set(name, task.batch_size, "batch_size")
        if task.data_path is not None:
            known, _ = holder.parameters()
            place = next((name for name in (*_PLACES, *holder.arguments) if name in known and name in _PLACES), None)
            if place is None:
                raise TaskError(
                    f"data_path: no parameter of {holder.path} is called {', '.join(_PLACES)}; "
                    f"{nearest('data_path', known)}. Leave the column empty, and use the override "
                    f"{holder.what}.NAME={task.data_path}"
                )
            holder.set(place, task.data_path, "data_path")
        for override in task.overrides:
            self._override(override, trainer_class)
        for part in (self.model, self.data):
            if part is not None:
                part.check()

    def _override(self, override: str, trainer_class: type) -> None:
        said = f"override {override!r}"
        prefix, key, value = split_override(override)
        part, _, name = key.partition(".")
        if prefix or not name or part not in _PARTS:
            parts = [p for p in _PARTS if p != "data" or self.data is not None]
            raise TaskError(f"{said}: it must begin with {', '.join(f'{p}.' for p in parts)}; {key!r} does not")
        if part == "trainer":
            known, _ = parameters_of(trainer_class)
            first = name.partition(".")[0]
            if first not in known:
                raise TaskError(f"{said}: the Trainer has no argument {first!r}; {nearest(first, known)}")
            made = Made("trainer", "the Trainer", self.trainer)
            made.kind = trainer_class
        else:
            chosen = self.model if part == "model" else self.data
            if chosen is None:
                raise TaskError(f"{said}: the experiment names no data; {self.model.path} brings its own")
            made = chosen
        made.set(name, parse_value(value or ""), said)


def parameters_of(kind: type) -> tuple[list[str], bool]:
    """Names of what a class takes, those included that it hands on by ``**``, and whether any name will do."""
    names: list[str] = []
    for ancestor in kind.__mro__:
        if ancestor is object or ancestor.__module__.startswith(("lightning.pytorch.core", "pytorch_lightning.core")):
            return names, False
        if "__init__" not in vars(ancestor):
            continue
        parameters = inspect.signature(vars(ancestor)["__init__"]).parameters.values()
        names += [
            p.name
            for p in parameters
            if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in ("self", *names)
        ]
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            return names, False
    return names, True


def parse_value(text: str) -> Any:
    """A value as YAML has it; 1e-3 is a number."""
    import yaml

    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise TaskError(f"{text!r} is no value of YAML: {' '.join(str(error).split())}") from None
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def built(context: Context, value: Any) -> Any:
    """The same, with an object for each mapping that has a class_path."""
    if isinstance(value, Mapping):
        if "class_path" in value:
            made = Made("object", str(value["class_path"]), dict(value.get("init_args") or {}))
            made.kind = load_class(context, made.path)
            return made.build(context)
        return {name: built(context, part) for name, part in value.items()}
    if isinstance(value, list):
        return [built(context, part) for part in value]
    return value


def _file(worktree: Path, name: str) -> Path:
    folder = (worktree / FOLDER).resolve()
    for ending in _ENDINGS:
        path = (folder / f"{name}{ending}").resolve()
        if folder in path.parents and path.is_file():
            return path
    known = sorted(
        path.relative_to(folder).with_suffix("").as_posix()
        for path in (folder.rglob("*") if folder.is_dir() else ())
        if path.suffix in _ENDINGS
    )
    raise TaskError(
        f"the branch has no experiment {name!r}: {nearest(name, known)} in {FOLDER}/*{{{','.join(_ENDINGS)}}}; or "
        "write the import paths, package.module:ModelClass,package.module:DataClass"
    )


def _parse(path: Path) -> Any:
    try:
        text = path.read_text()
        if path.suffix == ".json":
            return json.loads(text)
        import yaml

        return yaml.safe_load(text)
    except (OSError, ValueError) as error:
        raise TaskError(f"{path} cannot be read: {error}") from None
    except ImportError:
        raise TaskError(f"{path} needs PyYAML in the branch's environment: pip install pyyaml") from None
    except Exception as error:
        raise TaskError(f"{path} is no YAML: {' '.join(str(error).split())}") from None


def _made(what: str, content: Any, where: Path) -> Made:
    path = content.get("class_path") if isinstance(content, dict) else None
    if not isinstance(path, str):
        raise TaskError(f"{where}: {what} must hold class_path (package.module:Class) and, if need be, init_args")
    arguments = content.get("init_args") or {}
    unknown = [key for key in content if key not in ("class_path", "init_args")]
    if not isinstance(arguments, dict) or unknown:
        raise TaskError(f"{where}: {what} holds class_path and init_args, nothing else{_listed(unknown)}")
    return Made(what, path, dict(arguments))


def _listed(unknown: list[str]) -> str:
    return f"; it has {', '.join(map(str, unknown))}" if unknown else ""
