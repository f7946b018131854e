"""Numbers of things in words."""

from __future__ import annotations


def counted(count: int, thing: str) -> str:
    """So many things, one of them in the singular: `1 thread`, `2 threads`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
