"""The buffer protocol of a batch, for :class:`memoryview` and all that takes one, without NumPy.

The stable ABI of CPython 3.10 cannot express it in the native module; since 3.12, Python can (PEP 688).
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

_FORMATS = {
    "uint8": "B",
    "int8": "b",
    "uint16": "H",
    "int16": "h",
    "uint32": "I",
    "int32": "i",
    "float32": "f",
    "float64": "d",
}


@functools.lru_cache(maxsize=64)
def _bytes_type(nbytes: int) -> Any:
    """The type of so many bytes, made once: a type is a cycle, kept with its objects until cycles are looked for."""
    # A type of its own and not `c_ubyte * nbytes`: its objects have a `__dict__`, in which the batch is kept.
    return type("Memory", (ctypes.Array,), {"_type_": ctypes.c_ubyte, "_length_": nbytes})


def view(batch, flags: int = 0) -> memoryview:
    """The pixels of a batch, in its shape; halves, which memoryview has no format for, as bytes."""
    memory = _bytes_type(batch.nbytes).from_address(batch.address)
    memory.batch = batch
    found = memoryview(memory).cast("B")
    kind: Any = _FORMATS.get(batch.dtype)
    if kind is not None:
        found = found.cast(kind, batch.shape)
    return found.toreadonly() if batch.readonly else found


def exported(batch, flags: int) -> memoryview:
    """The buffer for `memoryview(batch)` and others that take one."""
    if batch.dtype not in _FORMATS:
        # They would find bytes; NumPy goes on to `__array_interface__`.
        raise BufferError(f"memoryview has no format of {batch.dtype}: batch.memoryview() is its bytes")
    return view(batch, flags)
