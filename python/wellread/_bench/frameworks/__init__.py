"""The frameworks, one line each; imported when they are asked for.

A framework gives tensors of its own from readers (`image`, `batches`), waits for its device (`wait`) and makes models
(`model`). It names its type of arrays (`array`) and lists its ways from a host array to a tensor (`conversions`). See
`frameworks.base`.
"""

import importlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A framework's registration."""

    where: str
    """`module:Class` in this package."""
    package: str
    """The module that it imports."""
    hint: str
    """How to get it."""


OTHER = "or choose a Python that has it by --python or WELLREAD_PYTHON"
FRAMEWORKS = {
    "pytorch": Entry("pytorch:PyTorch", "torch", f"pip install torch, {OTHER}"),
    "jax": Entry("jax:Jax", "jax", f"pip install jax, {OTHER}"),
}


def create(name, threads, seed):
    """The framework of that name, imported and told how many threads to use."""
    module, class_name = FRAMEWORKS[name].where.split(":")
    return getattr(importlib.import_module(f".{module}", __name__), class_name)(threads, seed)
