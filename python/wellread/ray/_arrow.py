"""Blocks of Ray Data as Arrow tables: tensors of images, names, rows, columns beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy


def tensors(pixels: numpy.ndarray[Any, Any]) -> Any:
    """Images (N, …) as a column of tensors."""
    from ray.data.extensions import ArrowTensorArray

    return ArrowTensorArray.from_numpy(pixels)


def column(values: Any) -> Any:
    """A column as the native module hands it over, with its own type."""
    import pyarrow

    if isinstance(values, list):
        return pyarrow.array(values, pyarrow.string())
    data, kind, valid = values
    missing = None if valid is None else ~numpy.frombuffer(valid, bool)
    if kind == "date32":
        return pyarrow.array(numpy.frombuffer(data, "int32"), mask=missing).cast(pyarrow.date32())
    return pyarrow.array(numpy.frombuffer(data, kind), mask=missing)


def taken(values: Any, rows: Any) -> Any:
    """Some values of a column."""
    import pyarrow

    return values.take(pyarrow.array(rows))


def block(
    pixels: numpy.ndarray[Any, Any], names: Sequence[str], rows: numpy.ndarray[Any, Any], columns: dict[str, Any]
) -> Any:
    """A block of images: image, name, row, and the columns beside them."""
    import pyarrow

    parts: dict[str, Any] = {
        "image": tensors(pixels),
        "name": pyarrow.array(names, pyarrow.string()),
        "row": pyarrow.array(rows, pyarrow.int64()),
        **columns,
    }
    return pyarrow.table(parts)
