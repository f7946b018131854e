"""Shared parts of the tests of `wellread bench` in Python: a small run, and the worker's package by itself."""

import importlib.util
import sys
from pathlib import Path

# Under the name that the program gives it: `wellread` needs its native module.
FOLDER = Path(__file__).resolve().parents[2] / "python" / "wellread" / "_bench"
SPEC = importlib.util.spec_from_file_location(
    "_wellread_bench", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)]
)
sys.modules.setdefault("_wellread_bench", importlib.util.module_from_spec(SPEC))

SMALL = ["--images", 6, "--size", "24x20", "--repeats", 1]
DATASET = ["--access", "random", "--transform", "none", "--cache", "none"]

# The beginning of a module that stands before torchvision and becomes it: what follows changes `real`, whose models
# `make` makes.
REAL_TORCHVISION = """
import importlib, os, signal, sys, time

here = os.path.dirname(__file__)
sys.path.remove(here)
del sys.modules["torchvision"]
real = importlib.import_module("torchvision")
sys.modules["torchvision"] = real
make = real.models.get_model
"""


def of(rows, **wanted):
    """The rows that have these values."""
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]
