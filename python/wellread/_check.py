"""Arguments: what they may be, and errors that name them."""

from __future__ import annotations

import math
import numbers
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

MAX_INT64 = 2**63 - 1


def whole(name: str, value: Any, least: int = 0, most: int = MAX_INT64) -> int:
    """A whole number; NumPy's integers are, truth values are not."""
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if type(value) is not int and has_truths(value):
        # Torch's would be the numbers 0 and 1.
        raise TypeError(f"{name} must be a whole number, not a truth value ({type(value).__name__})")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, not {kind(value)}") from None
    if not least <= number <= most:
        bound = f"at least {least}" if most == MAX_INT64 and number < least else f"from {least} to {most}"
        raise ValueError(f"{name} must be {bound}, not {number}")
    return number


def real(name: str, value: Any, least: float = -math.inf, most: float = math.inf) -> float:
    """A finite number."""
    if isinstance(value, bool) or not hasattr(value, "__float__") or getattr(value, "shape", ()) != ():
        raise TypeError(f"{name} must be a number, not {kind(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be a finite number, not {type(value).__name__} beyond all floats") from None
    if not math.isfinite(number) or not least <= number <= most:
        ends = "" if math.isinf(least) and math.isinf(most) else f" from {least:g} to {most:g}"
        raise ValueError(f"{name} must be a finite number{ends}, not {number}")
    return number


def truth(name: str, value: Any) -> bool:
    """True or False."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"{name} must be True or False, not {kind(value)}")
    return bool(value)


def is_truth(value: Any) -> bool:
    """Whether it is True or False of Python, NumPy, torch or JAX. Torch's are also indices to Python."""
    return isinstance(value, bool) or (has_truths(value) and getattr(value, "shape", None) == ())


def has_truths(value: Any) -> bool:
    """Whether it is an array or a value of NumPy, torch or JAX with truth values."""
    dtype = getattr(value, "dtype", None)
    return dtype is not None and str(dtype) in ("bool", "torch.bool")


def text(name: str, value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {kind(value)}")
    return value


def path(name: str, value: Any) -> str:
    """A path."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} must be a str or a path, not {type(value).__name__}")
    value = os.fspath(value)
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str or a path of str, not of bytes")
    if "\0" in value:
        raise ValueError(f"{name} must not hold a null character")
    return value


def paths(name: str, value: Any) -> str | list[str]:
    """A path, or a list of some."""
    if isinstance(value, (list, tuple)):
        if not value:
            raise ValueError(f"{name} must not be an empty list")
        return [path(f"{name}[{i}]", one) for i, one in enumerate(value)]
    return path(name, value)


def word(name: str, value: Any, known: Sequence[str]) -> str:
    """One of some words."""
    if not isinstance(value, str):
        # Such as torch.float16 or numpy.float16.
        called = getattr(value, "__name__", str(value).rpartition(".")[2])
        advice = f": write {called!r}" if called in known else ""
        raise TypeError(f"{name} must be one of {', '.join(map(repr, known))}, not {kind(value)}{advice}")
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, not {value!r}")
    return value


def several(name: str, value: Any, what: str = "a list", *, ordered: bool = True) -> list:
    """A list of things: any iterable but a text or a dict, of which only keys would count. Where their order matters
    (`ordered`), a set is refused: texts of one come in another order in each process."""
    no_table(name, value, what)
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise TypeError(f"{name} must be {what}, not {kind(value)}")
    if ordered and isinstance(value, (set, frozenset)):
        raise TypeError(f"{name} must be {what}, not {kind(value)}, which has no order: give sorted(…) of it")
    try:
        return list(listed(value))
    except TypeError:
        raise TypeError(f"{name} must be {what}, not {kind(value)}") from None


def listed(value: Any) -> Any:
    """An array of pyarrow as a list of Python's values; others as they are. Its own values are equal to none of
    Python's."""
    return value.to_pylist() if hasattr(value, "to_pylist") and not hasattr(value, "schema") else value


def single(value: Any) -> Any:
    """The value in an array or a tensor without axes; others as they are."""
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value


def in_json(value: Any) -> Any:
    """A number or an array of NumPy or torch as Python's, for ``json.dumps(…, default=in_json)``."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is none of JSON's values")


def no_table(name: str, value: Any, what: str) -> None:
    """Refuses a table of pandas, polars or pyarrow: to go through it gives its columns or their names."""
    if type(value).__name__ == "DataFrame" or (hasattr(value, "schema") and hasattr(value, "to_pylist")):
        raise TypeError(f"{name} must be {what}, not {kind(value)}: give one of its columns")


def wholes(name: str, value: Any, most: int = MAX_INT64) -> list[int]:
    """A list of whole numbers, none negative."""
    letter = getattr(getattr(value, "dtype", None), "kind", None)
    if letter in ("i", "u") and getattr(value, "ndim", 0) == 1 and hasattr(value, "tolist"):
        # NumPy's: checked as one.
        if len(value) and (value.min() < 0 or value.max() > most):
            raise ValueError(f"{name} must hold whole numbers from 0 to {most}")
        return value.tolist()
    return [
        whole(f"{name}[{i}]", v, most=most)
        for i, v in enumerate(several(name, value, "a list of whole numbers", ordered=False))
    ]


def channels(name: str, wanted: Iterable[Any], there: Callable[[], int]) -> list[int]:
    """Numbers of channels. The error of a negative one says how many `there` are in the first image."""
    for channel in wanted:
        if isinstance(channel, numbers.Integral) and channel < 0:
            count = there()
            raise ValueError(
                f"{name} has {channel}, and the first image has {counted(count, 'channel')}: channels are counted "
                f"from 0, and the last is {count - 1}"
            )
    return [whole(f"{name}[{i}]", channel, most=2**31) for i, channel in enumerate(wanted)]


def size(name: str, value: Any) -> tuple[int, int] | None:
    """Height and width: two numbers, or one for both."""
    if value is None:
        return None
    value = single(value)
    if isinstance(value, bool) or not (hasattr(value, "__index__") or isinstance(value, Iterable)):
        raise TypeError(f"{name} must be a size: one whole number or (height, width), not {kind(value)}")
    if isinstance(value, Iterable):
        both = several(name, value, "(height, width)")
        if len(both) != 2:
            raise ValueError(f"{name} must be (height, width), not {len(both)} numbers")
    else:
        both = [value, value]
    return whole(f"{name} height", both[0], 1), whole(f"{name} width", both[1], 1)


def pair(name: str, value: Any, least: float = -math.inf, most: float = math.inf) -> tuple[float, float]:
    """Two numbers."""
    both = several(name, value, "two numbers")
    if len(both) != 2:
        raise ValueError(f"{name} must be two numbers, not {len(both)}")
    return real(f"{name}[0]", both[0], least, most), real(f"{name}[1]", both[1], least, most)


def reals(name: str, value: Any) -> list[float]:
    """One number, or a list of one per channel."""
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) and getattr(value, "shape", (1,)) != ():
        return [real(f"{name}[{i}]", v) for i, v in enumerate(several(name, value))]
    return [real(name, value)]


def kind(value: Any) -> str:
    """A value in words."""
    return f"{type(value).__name__} {value!r}" if isinstance(value, (int, float, str)) else type(value).__name__


def some(names: Sequence[Any], most: int = 12) -> str:
    """The first of some names, and how many more there are."""
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def counted(count: int, thing: str) -> str:
    """So many things, one of them in the singular: `1 image`, `2 images`, `3 batches`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}{'es' if thing.endswith('ch') else 's'}"


def kinds(left_out: Sequence[tuple[str, str]]) -> str:
    """The values of columns that are left out, by (name, values), each kind once."""
    return ", ".join(dict.fromkeys(kind for _, kind in left_out))
