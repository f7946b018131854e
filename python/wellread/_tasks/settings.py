"""`key=value`, and the names that resemble one that is not there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any


class TaskError(Exception):
    """A fault of a task, in a sentence that says what to do."""


def nearest(name: str, known: Iterable[str], most: int = 6) -> str:
    """The names that resemble `name` most, for a message; all of them where they are few."""
    names = list(dict.fromkeys(known))
    if not names:
        return "there are none"
    last = name.rsplit(".", 1)[-1].lower()

    def likeness(other: str) -> float:
        whole = difflib.SequenceMatcher(None, name.lower(), other.lower()).ratio()
        part = difflib.SequenceMatcher(None, last, other.rsplit(".", 1)[-1].lower()).ratio()
        return max(whole, part) + 0.01 * whole

    if len(names) <= most:
        return "there are " + ", ".join(sorted(names)) if len(names) > 1 else f"there is only {names[0]}"
    return "nearest: " + ", ".join(sorted(names, key=likeness, reverse=True)[:most])


def split_override(text: str) -> tuple[str, str, str | None]:
    """A prefix (`+`, `++`, `~` or nothing), the key, and the value's text; None where there is no `=`.

    Raises:
        TaskError: neither.
    """
    key, equals, value = text.partition("=")
    name = key.strip().lstrip("+~")
    prefix = key.strip()[: len(key.strip()) - len(name)]
    if not name or prefix not in ("", "+", "++", "~") or (not equals and prefix != "~"):
        raise TaskError(f"override {text!r} is not key=value, such as trainer.max_epochs=2")
    return prefix, name, value.strip() if equals else None


def keys(tree: Any, prefix: str = "") -> list[str]:
    """All dotted keys of nested mappings and lists, inner ones after their outer one."""
    if isinstance(tree, Mapping):
        parts = [(str(name), part) for name, part in tree.items()]
    elif isinstance(tree, (list, tuple)):
        parts = [(str(at), part) for at, part in enumerate(tree)]
    else:
        return []
    found = []
    for name, part in parts:
        found.append(prefix + name)
        found.extend(keys(part, f"{prefix}{name}."))
    return found
