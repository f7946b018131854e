"""Upstream's imports, unchanged: ``import wellread.compat.install`` before ``from bench.runner import …``.

Importing this puts the modules of :mod:`wellread.compat` under upstream's names, for this process. A program's own
``utils`` stays what it is, and gets ``utils.logging`` and ``utils.data`` beside its modules. A module of the same
name that is there already, such as upstream's own checkout in the working folder, is an ImportError. Otherwise the
order of imports would decide between the two.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# Packages, and what is in them.
_PACKAGES = ("bench", "utils")
_MODULES = ("bench.runner", "utils.logging", "utils.data")
# Imported when it is asked for, since it imports torch.
_LATER = "pytorch_benchmark"


class _Later:
    """Finds and loads the module that is imported later, where nothing else of its name is found."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, _Later, origin=__file__) if name == _LATER else None  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        return importlib.import_module(f"wellread.compat.{spec.name}")

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """It was imported already."""


def _there(name: str) -> str | None:
    """Where a module of this name lies that is not ours; None where there is none."""
    module = sys.modules.get(name)
    if module is not None:
        is_ours = module is sys.modules.get(f"wellread.compat.{name}")
        return None if is_ours else str(getattr(module, "__file__", None) or "this program")
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        # Its package is none, or not there.
        return None
    if found is None or found.loader is _Later:
        return None
    return str(found.origin or "a folder without __init__.py")


def _install() -> None:
    for name in (*_MODULES, _LATER):
        where = _there(name)
        if where is not None:
            raise ImportError(
                f"there is another {name} in {where}: import wellread.compat.{name} by that name, or take the other "
                "out of sys.path",
                name=name,
                path=where,
            )
    for name in _PACKAGES:
        # A package of the program's own keeps its name.
        if _there(name) is None:
            sys.modules[name] = importlib.import_module(f"wellread.compat.{name}")
    for name in _MODULES:
        package, _, leaf = name.partition(".")
        sys.modules[name] = importlib.import_module(f"wellread.compat.{name}")
        setattr(importlib.import_module(package), leaf, sys.modules[name])
    sys.meta_path.append(_Later)  # type: ignore[arg-type]


_install()
