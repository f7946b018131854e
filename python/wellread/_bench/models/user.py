"""A user's own model: `python:package.module:Class`, a class or a function that makes one."""

from ..user import Named
from .errors import ModelError

USER = Named("--model", "model", ModelError)


def check_output(name, found, batch):
    """`found` must have a row per image."""
    shape = getattr(found, "shape", None)
    if shape is None:
        raise ModelError(f"--model {name} returned a {type(found).__name__}; return one tensor with a row per image")
    if len(shape) < 1 or shape[0] != batch:
        raise ModelError(
            f"--model {name} returned shape {tuple(shape)} for a batch of {batch}; the first axis must be {batch}"
        )
