"""A user's own model: `python:package.module:Class`."""

import importlib
import inspect

from .errors import ModelError


def load(name):
    """The class (or function that makes a model) that a name stands for."""
    parts = name.split(":")
    if len(parts) != 3 or parts[0] != "python" or not all(parts):
        raise ModelError(f"--model {name} is no model; write python:package.module:Class")
    _, module_name, class_name = parts
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise ModelError(
                f"--model {name}: there is no module {error.name} (run in the folder of it, or set PYTHONPATH)"
            ) from error
        raise ModelError(f"--model {name}: {module_name} needs {error.name}, which is not installed") from error
    # A module may raise anything, and may call sys.exit().
    except BaseException as error:
        raise ModelError(f"--model {name}: importing {module_name} raised {type(error).__name__}: {error}") from error
    made = getattr(module, class_name, None)
    if callable(made):
        return made
    classes = [key for key, value in vars(module).items() if inspect.isclass(value) and not key.startswith("_")]
    there = f"; it has {', '.join(classes)}" if classes else ""
    raise ModelError(f"--model {name}: {module_name} has no class {class_name}{there}")


def create(name, made, **offered):
    """Call `made` with those of the offered arguments that it takes."""
    try:
        # A metaclass, such as that of Flax's nnx, may hide what a class takes.
        takes = inspect.signature(made.__init__ if inspect.isclass(made) else made).parameters
        return made(**{key: value for key, value in offered.items() if key in takes})
    except Exception as error:
        raise ModelError(
            f"--model {name}: making it raised {type(error).__name__}: {error} (it is called with those of the "
            f"arguments {', '.join(offered)} that it takes, and no others)"
        ) from error


def check_output(name, found, batch):
    """`found` must have a row per image."""
    shape = getattr(found, "shape", None)
    if shape is None:
        raise ModelError(f"--model {name} returned a {type(found).__name__}; return one tensor with a row per image")
    if len(shape) < 1 or shape[0] != batch:
        raise ModelError(
            f"--model {name} returned shape {tuple(shape)} for a batch of {batch}; the first axis must be {batch}"
        )
