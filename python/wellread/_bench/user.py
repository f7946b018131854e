"""Names on the command line for a user's own code: `python:package.module:Class`."""

import importlib
import inspect
from dataclasses import dataclass


@dataclass(frozen=True)
class Named:
    """An option that takes such a name, and the error that says what is wrong with one."""

    option: str
    what: str
    error: type

    def load(self, name):
        """The object that a name stands for."""
        parts = name.split(":")
        said = f"{self.option} {name}"
        if len(parts) != 3 or parts[0] != "python" or not all(parts):
            raise self.error(f"{said} is no {self.what}; write python:package.module:Class")
        _, module_name, class_name = parts
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name and (module_name == error.name or module_name.startswith(error.name + ".")):
                raise self.error(
                    f"{said}: there is no module {error.name} (run in the folder of it, or set PYTHONPATH)"
                ) from error
            raise self.error(f"{said}: {module_name} needs {error.name}, which is not installed") from error
        # A module may raise anything, and may call sys.exit().
        except BaseException as error:
            raise self.error(f"{said}: importing {module_name} raised {type(error).__name__}: {error}") from error
        made = getattr(module, class_name, None)
        if callable(made):
            return made
        classes = [key for key, value in vars(module).items() if inspect.isclass(value) and not key.startswith("_")]
        there = f"; it has {', '.join(classes)}" if classes else ""
        raise self.error(f"{said}: {module_name} has no class {class_name}{there}")

    def create(self, name, made, **offered):
        """Call `made` with those of the offered arguments that it takes."""
        try:
            # A metaclass, such as that of Flax's nnx, may hide what a class takes.
            takes = inspect.signature(made.__init__ if inspect.isclass(made) else made).parameters
            return made(**{key: value for key, value in offered.items() if key in takes})
        except Exception as error:
            called = "no arguments"
            if offered:
                called = f"those of the arguments {', '.join(offered)} that it takes, and no others"
            raise self.error(
                f"{self.option} {name}: making it raised {type(error).__name__}: {error} (it is called with {called})"
            ) from error
