"""Batches as arrays of NumPy, torch and JAX over the same memory."""

from __future__ import annotations

import numbers
from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from typing import Any

from . import _check
from ._signature import warn


def converter(as_: str, dtype: str) -> Callable[[Any], Any]:
    """The function from a native batch to the array of a library; imports the library."""
    from_dlpack = of_capsule(as_)
    if from_dlpack is not None:
        # The capsule itself: torch would ask the same of the object, in three more calls. An unversioned one, which
        # every torch takes; before 2.9 no other.
        return lambda batch: from_dlpack(batch.__dlpack__())
    if as_ == "jax":
        return _jax_batches(dtype)
    if as_ == "batch":
        return lambda batch: batch
    view = _numpy()
    if dtype != "bfloat16":
        return view
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        raise ValueError(
            'dtype="bfloat16" needs the package ml_dtypes for NumPy, which is not installed; '
            'choose dtype="float16", as_="torch" or as_="jax"'
        ) from None
    return lambda batch: view(batch.bits()).view(bfloat16)


def of_capsule(as_: str) -> Callable[[Any], Any] | None:
    """The function from a DLPack capsule to the array of a library that takes capsules; None for others."""
    if as_ != "torch":
        return None
    import torch

    # What `torch.from_dlpack` calls when it has found out that it was given a capsule.
    return getattr(torch._C, "_from_dlpack", torch.from_dlpack)


def _numpy() -> Callable[[Any], Any]:
    """The function from a native batch to an array of NumPy."""
    import numpy

    # A third of the time of `asarray`, or an eighth where that asks for a buffer first (CPython 3.12). Before
    # NumPy 2.1 its arrays cannot be written to.
    return numpy.from_dlpack if numpy.lib.NumpyVersion(numpy.__version__) >= "2.1.0" else numpy.asarray


def to_jax() -> Callable[[Any], Any]:
    """The function from a native batch to JAX's array over the same memory, or over a copy of read-only memory, which
    JAX does not take."""
    from jax.dlpack import from_dlpack

    return lambda batch: from_dlpack(_Copied(batch) if batch.readonly else batch)


class _Copied:
    """A batch whose capsules hold copies."""

    def __init__(self, batch: Any):
        self._batch = batch

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._batch.__dlpack_device__()

    def __dlpack__(self, **asked: Any) -> Any:
        return self._batch.__dlpack__(**asked | {"copy": True})


def stack(as_: str) -> Callable[[list], Any]:
    """The function that puts arrays of a library into one, along a new first axis."""
    if as_ == "torch":
        import torch

        return torch.stack
    if as_ == "jax":
        import jax.numpy

        return jax.numpy.stack
    import numpy

    return numpy.stack


def _tell_truncated(what: str, dtype: Any, made: Any) -> None:
    """Says that JAX has made less of 64 bits, as it says it itself where it is asked for them."""
    warn(
        f"{what} of dtype {dtype} are not available, and will be truncated to dtype {made}. To enable more dtypes, "
        "set the jax_enable_x64 configuration option or the JAX_ENABLE_X64 shell environment variable."
    )


def _jax_batches(dtype: str) -> Callable[[Any], Any]:
    """As :func:`to_jax`, for batches of a type: JAX makes float32 of float64 unless it is told to have 64 bits, which
    is said once."""
    convert = to_jax()
    if dtype != "float64":
        return convert
    told = False

    def checked(batch):
        nonlocal told
        made = convert(batch)
        if not told and made.dtype.itemsize < 8:
            told = True
            _tell_truncated("pixels", dtype, made.dtype)
        return made

    return checked


def check_holds(what: str, values: Any) -> None:
    """Raises ValueError for whole numbers of a column that JAX does not hold. It has 64 bits only where it is told
    so, and makes other numbers of them."""
    import jax.dtypes
    import numpy

    if values.dtype.kind not in "iu" or not values.size:
        return
    made = jax.dtypes.canonicalize_dtype(values.dtype)
    if made.itemsize >= values.dtype.itemsize:
        return
    kept, least, most = numpy.iinfo(made), int(values.min()), int(values.max())
    if least < kept.min or most > kept.max:
        raise ValueError(
            f"{what}: {most if most > kept.max else least} is beyond {made}, and JAX has no wider whole numbers "
            'unless it is told so: call jax.config.update("jax_enable_x64", True) first, or choose as_="numpy"'
        )


def _jax_column(what: str) -> Callable[[Any], Any]:
    """As :func:`of_column`, for JAX (:func:`check_holds`)."""
    import jax.numpy

    def convert(values):
        if values.dtype.kind not in "biuf":
            return listed(values)
        check_holds(what, values)
        return jax.numpy.asarray(values)

    return convert


def listed(values: Any) -> list[Any]:
    """The values of a NumPy array as Python's, with None for NaT.

    A date, time or duration that Python's types cannot hold stays NumPy's: one of a part of a microsecond, or out of
    their range. ``tolist`` makes a bare number of it, and of all values in nanoseconds.
    """
    import numpy

    kind = values.dtype.kind
    if kind not in "mM":
        return values.tolist()
    flat = values.ravel()
    given = flat
    if numpy.datetime_data(values.dtype)[0] in ("ns", "ps", "fs", "as"):
        given = flat.astype(f"{kind}8[us]")
    made = given.astype(object)
    bare = numpy.fromiter((isinstance(one, int) for one in made), bool, len(made))
    for place in numpy.flatnonzero((given.astype(flat.dtype) != flat) | bare):
        if made[place] is not None:
            made[place] = flat[place]
    return made.reshape(values.shape).tolist()


def gone_through(labels: Any) -> Any:
    """Labels that can be looked at again: of a generator, and of the values of a dictionary, a list."""
    return list(labels) if isinstance(labels, (Iterator, KeysView, ValuesView, ItemsView)) else labels


def of_pandas(values: Any) -> Any:
    """Values of pandas' own types, which have missing values of their own, as NumPy's; others as they are."""
    import numpy

    dtype = type(getattr(values, "dtype", None))
    return numpy.asarray(values) if dtype.__module__.partition(".")[0] == "pandas" else values


def with_missing(values: Any, exact: bool = False) -> Any:
    """Values of which NumPy would lose what is missing, as an array or as Arrow's values that tell it; others as they
    are. In a masked array the masked ones are missing. NumPy would make the last category of what is missing in
    Arrow's categories in chunks.
    """
    import numpy

    if hasattr(values, "chunks") and hasattr(getattr(values, "type", None), "index_type"):
        return values.cast(values.type.value_type)
    if not isinstance(values, numpy.ma.MaskedArray):
        return values
    return _without(numpy.array(values.data), numpy.ma.getmaskarray(values), exact)


def told_apart(values: Any, given: Any) -> Any:
    """An array that NumPy made of given values. Where it made float64 of whole numbers from 2**53 on, they are
    objects as they were given: float64 makes several of them one."""
    import numpy

    if values.dtype != "float64" or values.ndim != 1 or isinstance(given, numpy.ndarray):
        return values
    if not (numpy.abs(values) >= 2**53).any():
        return values
    each = items(given)
    if not any(isinstance(one, numbers.Integral) for one in each):
        return values
    objects = numpy.empty(len(each), object)
    objects[:] = [int(one) if isinstance(one, numbers.Integral) else one for one in each]
    return objects


def as_libraries_take(values: Any) -> Any:
    """An array of NumPy in the machine's byte order, with whole numbers in the first type of their width.

    Torch and JAX take no other. NumPy has two types of 64 bits, and makes the second of Python's whole numbers from
    2**63 on."""
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    return values.view(f"{values.dtype.kind}{values.dtype.itemsize}") if values.dtype.kind in "iu" else values


def lack_some(values: Any, labels: list[Any]) -> bool:
    """Whether labels of texts and other objects lack some, as NaN: torch would make a tensor of those of some batches
    and not of others."""
    are_objects = getattr(getattr(values, "dtype", None), "kind", None) == "O"
    return are_objects and any(isinstance(label, float) and label != label for label in labels)


def items(values: Any, name: str = "labels", what: str = "a list") -> list[Any]:
    """Labels one by one, as Python's; or what else is called ``name`` and must be ``what``."""
    import numpy

    if getattr(getattr(values, "dtype", None), "kind", None) in ("m", "M"):
        return listed(numpy.asarray(values))
    for own in ("tolist", "to_pylist"):
        # Arrow's arrays in chunks have the second only. One value alone is no list.
        if hasattr(values, own) and getattr(values, "ndim", 1) != 0:
            return getattr(values, own)()
    return _check.several(name, values, what)


def of_column(as_: str, what: str = "labels") -> Callable[[Any], Any]:
    """The function from a column's values (NumPy) to labels, or ``what`` else errors call them: an array of the
    library, or a list of texts."""
    if as_ == "torch":
        import torch

        def convert(values):
            # Dates and texts have no type in torch.
            return torch.from_numpy(values) if values.dtype.kind in "biuf" else listed(values)

        return convert
    if as_ == "jax":
        return _jax_column(what)
    return lambda values: values if values.dtype.kind in "biufmM" else values.tolist()


def of_values(found: tuple[bytes, str, bytes | None] | list[str | None], exact: bool = False) -> Any:
    """The values of a column as a NumPy array: see :meth:`wellread.Dataset.column`.

    With ``exact``, whole numbers some of which are missing and some beyond 2**53 are objects (int or None).
    float64 would make several of them one.
    """
    import numpy

    if isinstance(found, list):
        texts = numpy.empty(len(found), object)
        texts[:] = found
        return texts
    data, kind, valid = found
    if kind == "date32":
        values = numpy.frombuffer(data, "int32").astype("datetime64[D]")
    else:
        values = numpy.frombuffer(data, kind).copy()
    if valid is None:
        return values
    return _without(values, ~numpy.frombuffer(valid, bool), exact)


def _without(values: Any, missing: Any, exact: bool) -> Any:
    """An array some of whose values are missing: NaN, NaT or None. It may change the array; ``exact`` is that of
    :func:`of_values`."""
    import numpy

    if not missing.any():
        return values
    if values.dtype.kind in "iu":
        present = values[~missing]
        if exact and len(present) and (int(present.max()) > 2**53 or int(present.min()) < -(2**53)):
            values = values.astype(object)
        else:
            values = values.astype("float64")
    elif values.dtype.kind not in "fcmM":
        values = values.astype(object)
    values[missing] = {"f": numpy.nan, "c": numpy.nan, "M": "NaT", "m": "NaT"}.get(values.dtype.kind)
    return values
