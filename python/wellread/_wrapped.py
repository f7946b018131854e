"""Objects of torch that hold a set of wellread, given where a set is expected: what serves in their place."""

from __future__ import annotations

import os
from typing import Any

from .dataset import Dataset

# Objects that hold others, such as a Subset of a Subset, are looked into so deep.
_DEEP = 4


def check_is_path(name: str, given: Any, *, takes_rows: bool = False) -> None:
    """Refuses what is no path and no list of paths, in the place of a set.

    Raises:
        TypeError: what to give in place of an object that holds a set. `takes_rows` says that the call has the
            argument ``rows=``.
    """
    if isinstance(given, (str, os.PathLike, list, tuple)):
        return
    kind = type(given)
    of = f"{kind.__module__}.{kind.__name__}".removeprefix("builtins.")
    raise TypeError(
        f"{name} must be a wellread.Dataset, a path or a list of paths, not {of}{_advice(name, given, takes_rows)}"
    )


def _advice(name: str, given: Any, takes_rows: bool) -> str:
    held = _set_in(name, given)
    if held is None:
        return ""
    images, rows = held
    if rows is None:
        return f": give it {images}"
    if takes_rows:
        return f": give it {images}, with rows={rows}"
    return f": give it {images}.select({rows})"


def _set_in(name: str, given: Any, depth: int = 0) -> tuple[str, str | None] | None:
    """How to get the set in an object called `name`, and its rows where the object has some; None without a set."""
    if isinstance(getattr(given, "images", None), Dataset):
        return f"{name}.images", None
    inner = getattr(given, "dataset", None)
    if inner is None or depth == _DEEP:
        return None
    inside = f"{name}.dataset"
    held = (inside, None) if isinstance(inner, Dataset) else _set_in(inside, inner, depth + 1)
    if held is None or not hasattr(given, "indices"):
        return held
    images, rows = held
    own = f"{name}.indices"
    return images, own if rows is None else f"[{rows}[i] for i in {own}]"
