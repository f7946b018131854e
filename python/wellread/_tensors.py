"""Types of tensors: to which one torch's items are converted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import torch

from . import _check
from ._types import TensorDtype

if TYPE_CHECKING:
    from .dataset import Dataset

__all__ = ["conversion"]

DTYPES = get_args(TensorDtype)


def conversion(dtype: Any, images: Dataset) -> torch.dtype | None:
    """The type to convert to, if not the stored one."""
    name = str(dtype).removeprefix("torch.") if isinstance(dtype, torch.dtype) else dtype
    name = _check.word("dtype", name, DTYPES)
    if name == "stored":
        return None
    stored = images._native.info(0)[1] if len(images) else name
    wanted, from_ = getattr(torch, name), getattr(torch, stored)
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
    return wanted
