"""Safetensors files, read with NumPy alone: eight bytes of length, a JSON header, the arrays.

Arrays are views of the mapped file; nothing is read before it is used.
"""

import json
import os

import numpy as np

from ..errors import Unusable

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1"}
MOST_HEADER = 100 << 20


def load(path):
    """The arrays of a file by name."""
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(MOST_HEADER, size - 8):
                raise ValueError("its header is not that of a safetensors file")
            header = json.loads(file.read(length))
        data = np.memmap(path, np.uint8, "r", offset=8 + length) if size > 8 + length else np.empty(0, np.uint8)
        return {name: _array(data, name, entry) for name, entry in header.items() if name != "__metadata__"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unusable(f"the weights {path} cannot be read: {error}; remove the file and it is made again") from error


def _array(data, name, entry):
    if entry["dtype"] not in TYPES:
        raise ValueError(f"{name} is {entry['dtype']}; there are {', '.join(TYPES)}")
    begin, end = entry["data_offsets"]
    dtype, shape = np.dtype(TYPES[entry["dtype"]]), entry["shape"]
    count = 1
    for axis in shape:
        count *= axis
    if not 0 <= begin <= end <= len(data) or end - begin != count * dtype.itemsize:
        raise ValueError(f"{name} lies at {begin}..{end} of {len(data)} bytes, which is not its shape {shape}")
    return data[begin:end].view(dtype).reshape(shape)
