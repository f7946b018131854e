"""Which of Lightning's two packages is used: `lightning`, or the older `pytorch_lightning`."""

from __future__ import annotations

import importlib
import sys
from typing import Any

_NEW, _OLD = "lightning.pytorch", "pytorch_lightning"
_used: str | None = None


def use(package: str) -> None:
    """From now on uses this one: that of the classes to be run."""
    global _used
    _used = package


def choose() -> Any:
    """The package that :func:`use` named or the program has imported; where it has neither, the one installed."""
    if _used is not None:
        return importlib.import_module(_used)
    if _OLD in sys.modules and _NEW not in sys.modules:
        return importlib.import_module(_OLD)
    try:
        return importlib.import_module(_NEW)
    except ImportError:
        return importlib.import_module(_OLD)


def of(kind: type) -> str | None:
    """The package that a class derives from, by the modules of its ancestors."""
    for ancestor in kind.__mro__:
        for package in (_NEW, _OLD):
            if ancestor.__module__.startswith(package + "."):
                return package
    return None
