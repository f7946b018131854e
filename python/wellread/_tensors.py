"""Types of tensors: to which one torch's items are converted, and which labels torch has one for."""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy
import torch

from . import _arrays, _check
from ._types import TensorDtype

if TYPE_CHECKING:
    from .dataset import Dataset

__all__ = ["check_holds", "conversion", "converted", "is_of_numbers", "kept", "makes_none"]

DTYPES = get_args(TensorDtype)

#: What torch has no type for; NumPy's are what Python has none for.
_TIMES = (datetime.date, datetime.time, datetime.timedelta, numpy.datetime64, numpy.timedelta64)
#: The types of pandas' missing values, which is not imported for them.
_MISSING = ("NAType", "NaTType")


def conversion(dtype: Any, images: Dataset) -> torch.dtype | None:
    """The type to convert to, if not the stored one."""
    name = str(dtype).removeprefix("torch.") if isinstance(dtype, torch.dtype) else dtype
    name = _check.word("dtype", name, DTYPES)
    if name == "stored":
        return None
    wanted = getattr(torch, name)
    if len(images):
        check_holds(wanted, getattr(torch, images._native.info(0)[1]))
    return wanted


def check_holds(wanted: torch.dtype, from_: torch.dtype, of: str = "") -> None:
    """Raises ValueError where a type cannot hold every value of another, which is that of images called `of`."""
    name, stored = (str(dtype).removeprefix("torch.") for dtype in (wanted, from_))
    stored += of
    if wanted.is_floating_point and not from_.is_floating_point:
        if torch.iinfo(from_).max > torch.finfo(wanted).max:
            raise ValueError(f'dtype="{name}" cannot hold every value of {stored}: choose "float32" or "bfloat16"')
    elif not wanted.is_floating_point:
        to = torch.iinfo(wanted)
        if from_.is_floating_point:
            raise ValueError(f'dtype="{name}" cannot hold {stored}: choose a floating-point type')
        held = torch.iinfo(from_)
        if held.min < to.min or held.max > to.max:
            raise ValueError(f'dtype="{name}" cannot hold every value of {stored}: choose "float32" or "int64"')


def converted(tensor: torch.Tensor, wanted: torch.dtype, rows: Sequence[int]) -> torch.Tensor:
    """The images of these rows in another type. Floats are looked at one by one: those of most images are small.

    Raises ValueError where the type cannot hold the stored one, or a finite float would become infinite.
    """
    # The first image alone was looked at before; others may be of another type.
    check_holds(wanted, tensor.dtype, f" (row {rows[0]})")
    made = tensor.to(wanted)
    if tensor.is_floating_point() and torch.finfo(wanted).max < torch.finfo(tensor.dtype).max:
        infinite = made.isinf()
        if infinite.any():
            lost = infinite & tensor.isfinite()
            for row, image, is_lost in zip(rows, tensor, lost, strict=True):
                if is_lost.any():
                    name = str(wanted).removeprefix("torch.")
                    raise ValueError(
                        f'dtype="{name}" cannot hold {float(image[is_lost][0]):g} (row {row}): choose "stored", or '
                        "a type that holds larger numbers"
                    )
    return made


def is_of_numbers(labels: Any) -> bool:
    """Whether it is an array of numbers or truth values, each of which torch makes a tensor of. Nested labels may be
    many."""
    dtype = getattr(labels, "dtype", None)
    if isinstance(dtype, numpy.dtype):
        # Python's whole numbers become int64 in torch.
        beyond = dtype == numpy.uint64 and labels.size > 0 and int(labels.max()) > _check.MAX_INT64
        return dtype.kind in "biuf" and not beyond
    return isinstance(dtype, torch.dtype) and not dtype.is_complex and str(dtype) != "torch.uint64"


def kept(values: Any) -> Any:
    """Labels one by one: a list, or one tensor of labels that are several numbers each. They keep their type, so that
    those of a batch do: torch makes float64 of Python's floats."""
    if is_of_numbers(values) and values.ndim > 0:
        if isinstance(values, torch.Tensor):
            return values.detach().cpu().clone() if values.ndim > 1 else values.tolist()
        array = _arrays.as_libraries_take(numpy.array(numpy.asarray(values)))
        if array.ndim > 1:
            return torch.from_numpy(array)
        if array.dtype in ("float16", "float32"):
            return list(array)
    return _arrays.items(values)


def makes_none(label: Any) -> bool:
    """Whether torch's default for labels of a batch neither makes a tensor of it nor leaves it as it is."""
    if isinstance(label, (list, tuple)):
        return any(map(makes_none, label))
    if isinstance(label, int):
        return not -(2**63) <= label <= _check.MAX_INT64
    if isinstance(label, numbers.Number) and not isinstance(label, (float, numpy.generic)):
        # Complex numbers, decimals and fractions.
        return True
    return label is None or isinstance(label, _TIMES) or type(label).__name__ in _MISSING
