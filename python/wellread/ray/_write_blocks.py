"""The parts that write tasks of :func:`wellread.ray.write` make of blocks, and the set made of them."""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from typing import Any

import numpy

from .. import _check, _native
from .._signature import warn
from ..errors import ChoiceError, Error
from . import _environment

MEMORY = 1 << 30
# What the crates say of a column whose values are all missing. Another part may have some.
ONLY_NULLS = "nothing but nulls"

# Sets that this process writes, by their tokens: what Ray copies of a datasink has the token alone.
_writing: dict[str, _native.Parts] = {}


def shape_of(shape: Sequence[int]) -> list[int]:
    """Size along T, C, Z, Y, X of an image of (Y, X), (C, Y, X) or all axes."""
    if len(shape) == 5:
        return list(shape)
    if len(shape) in (2, 3):
        return [1, *([1] if len(shape) == 2 else [shape[0]]), 1, *shape[-2:]]
    raise ValueError(f"an image must be (Y, X), (C, Y, X) or (T, C, Z, Y, X), not of shape {tuple(shape)}")


def given(name: str, image: Any) -> tuple[str, list[int], str, bytes]:
    """An image for the native module."""
    array = numpy.asarray(image)
    if array.dtype.name not in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64"):
        raise TypeError(f"images of {array.dtype} cannot be stored: take .astype of uint8, uint16, float32 … first")
    array = numpy.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return str(name), shape_of(array.shape), array.dtype.name, array.tobytes()


def _has_places(table: Any) -> bool:
    """Whether its column ``row`` is that of :func:`read`: places in a set. One of other values is the user's own,
    such as the rows of a plate."""
    import pyarrow

    if "row" not in table.column_names:
        return False
    kind = table.schema.field("row").type
    types = pyarrow.types
    return any(is_one(kind) for is_one in (types.is_integer, types.is_floating, types.is_null))


def _with_columns(native: Any, columns: Any) -> tuple[Any, list[tuple[str, str]]]:
    """Images with columns beside them, and the columns that cannot stand there, which may be all."""
    try:
        beside, left_out, _ = native.with_columns(columns.__arrow_c_stream__(), [], False)
    except ChoiceError:
        import pyarrow

        # Beside a column that can, each of the others is left out, or the fault is another one.
        plain = columns.append_column("wellread.plain", pyarrow.array(numpy.zeros(columns.num_rows)))
        _, left_out, _ = native.with_columns(plain.__arrow_c_stream__(), [], False)
        if len(left_out) < columns.num_columns:
            raise
        return native, left_out
    return beside, left_out


def block_part(sink: Any, block: Any, task: int, number: int) -> dict[str, Any] | None:
    """Writes a block as a part; what the driver is told of it, None of an empty one."""
    from ray.data.block import BlockAccessor

    _environment.take(sink.environment)
    table = BlockAccessor.for_block(block).to_arrow()
    if not table.num_rows:
        return None
    for name in (sink.image, *([sink.name] if sink.name is not None else [])):
        if name not in table.column_names:
            raise KeyError(f"the dataset has no column {name!r}; it has {', '.join(table.column_names)}")
    images = BlockAccessor.for_block(table.select([sink.image])).to_numpy(sink.image)
    has_places = _has_places(table)
    rows = table.column("row").to_pylist() if has_places else None
    order: list[int] | None = None
    # Where a library has made floats of them, one that is missing is NaN.
    if rows is not None and all(row is not None and math.isfinite(row) for row in rows):
        order = [int(row) for row in rows]
    if sink.name is not None:
        named = table.column(sink.name).to_pylist()
        if any(name is None for name in named):
            raise ValueError(
                f"{sink.name!r} has no name for some images; fill it, or call images by their rows with name=None"
            )
        names = [str(name) for name in named]
    elif order is not None:
        names = [f"image-{row:06}" for row in order]
    else:
        names = [f"image-{task:05}-{number:03}-{i:06}" for i in range(table.num_rows)]
    pixels = [given(name, image) for name, image in zip(names, images, strict=True)]
    for name, shape, _, _ in pixels:
        if sink.channels and shape[1] != len(sink.channels):
            raise ValueError(f"channels has {len(sink.channels)} names, and {name} has {shape[1]} channels")
    native = _native.from_images(pixels, sink.channels)
    apart = {sink.image, sink.name, "row"} if has_places else {sink.image, sink.name}
    beside = [name for name in table.column_names if name not in apart]
    left_out: list[tuple[str, str]] = []
    columns = None
    if beside:
        columns = table.select(beside).combine_chunks()
        native, left_out = _with_columns(native, columns)
    # A task that is tried again writes other parts: which of them count is said by what Ray keeps of it.
    part = f"attempt-{uuid.uuid4().hex}{sink.ending}"
    _native.write_part(native, sink.place(part), sink.format, sink.options, MEMORY, sink.verify)
    return {
        "part": part,
        "images": table.num_rows,
        "first": None if order is None else order[0],
        "task": task,
        "number": number,
        "names": names if sink.keeps_columns else None,
        "columns": columns if sink.keeps_columns else None,
        "beside": beside,
        "left_out": left_out,
    }


def begin(sink: Any, overwrite: bool) -> None:
    """Claims the target, and notes where parts are written."""
    parts = _native.Parts(sink.target, sink.format, overwrite, None)
    sink.ending, sink.folder, sink.environment = parts.ending, parts.part(""), _environment.told()
    sink.keeps_columns, sink.is_table = parts.keeps_columns, _native.is_table_format(sink.format)
    _writing[sink.token] = parts


def is_begun(sink: Any) -> bool:
    """Whether this process writes it, and has neither finished nor given up."""
    return sink.token in _writing


def commit(sink: Any, written: list[dict[str, Any]]) -> None:
    """Makes one set of the parts, in the order of their rows."""
    if any(part["first"] is None for part in written):
        written = sorted(written, key=lambda part: (part["task"], part["number"]))
    else:
        written = sorted(written, key=lambda part: (part["first"], part["task"], part["number"]))
    _tell_left_out(sink, written)
    source = None
    if sink.keeps_columns and any(part["columns"] is not None for part in written):
        import pyarrow

        # Of the images their names alone are looked at.
        names = [name for part in written for name in part["names"]]
        source = _native.from_images([(name, [1, 1, 1, 1, 1], "uint8", b"\0") for name in names], [])
        tables = [part["columns"] for part in written if part["columns"] is not None]
        table = pyarrow.concat_tables(tables, promote_options="permissive").combine_chunks()
        source, _ = _with_columns(source, table)
    parts = _writing.pop(sink.token, None)
    if parts is None:
        raise Error(f"{sink.target}: was written, or given up, before", path=sink.target)
    parts.commit([part["part"] for part in written], sink.options, source)


def _tell_left_out(sink: Any, written: list[dict[str, Any]]) -> None:
    """Warns of columns that the set does not have."""
    if not sink.is_table and not sink.keeps_columns:
        names = list(dict.fromkeys(name for part in written for name in part["beside"]))
        if names:
            warn(
                f"{sink.target}: {sink.format} keeps no columns beside images, and {_check.some(names)} are left out"
            )
        return
    all_left_out = {column for part in written for column in part["left_out"]}
    of_part = [{name for name, _ in part["left_out"]} for part in written]
    kept = {
        name for part, lacks in zip(written, of_part, strict=True) for name in part["beside"] if name not in lacks
    }
    # Where a part has values, the missing ones of another are missing values of the set.
    left_out = sorted((name, why) for name, why in all_left_out if why != ONLY_NULLS or name not in kept)
    if left_out:
        warn(
            f"{sink.target}: of the columns {_check.some([name for name, _ in left_out])} cannot stand beside images "
            f"and are left out: {_check.kinds(left_out)}"
        )


def discard(sink: Any) -> None:
    """Removes what tasks have written."""
    parts = _writing.pop(sink.token, None)
    if parts is not None:
        parts.discard()
