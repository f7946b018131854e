"""A loader's arguments, checked and put into the dictionary that the native loader takes."""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from . import _check, _native, _signature, _types, errors

if TYPE_CHECKING:
    from ._open_set import OpenSet
    from .dataset import Dataset

AS = get_args(_types.As)
DTYPES = get_args(_types.Dtype)
ORDERS = get_args(_types.Order)
TURNS = get_args(_types.Turns)
FILTERS = get_args(_types.Filter)
UNEVEN = get_args(_types.Uneven)
EDGES = get_args(_types.Edge)
UNITS = get_args(_types.Unit)
MASKS = get_args(_types.Mask)
UNMATCHED = get_args(_types.Unmatched)
LONE = get_args(_types.Lone)
ON_ERROR = get_args(_types.OnError)
TARGET_KINDS = get_args(_types.TargetKind)
PAIRINGS = get_args(_types.Pairing)

# Images whose channels are looked at before a loader reads, beside the first of each set.
_IMAGES_LOOKED_AT = 64
# Rows that are looked at, at most, for the first one that can be read.
_ROWS_LOOKED_AT = 16

_BLOCK = (
    "(neighbouring rows of a block, blocks that are mixed), as (256, 8), or one number where by= says what a block is"
)

# What is wrong with one image alone, unless the link to it failed: each row would wait for the same server.
_OF_ONE_IMAGE = (errors.CorruptImageError, errors.UnsupportedImageError, errors.MissingError)

# What computes with values, which therefore cannot stay as they are stored, where it is asked for.
COMPUTING = (
    *("percentiles", "normalize", "illumination", "resize", "random_resized_crop", "rotate"),
    *("brightness", "contrast", "gamma", "photon_noise", "gaussian_noise"),
)


def check_is_left(choice: str, names: tuple[str, ...], given: Mapping[str, Any]) -> None:
    """Raises ValueError where one of some choices is made beside one that moves values as they are stored."""
    # What is off is None, or the number 0.
    made = [name for name in names if given[name] is not None and repr(given[name]) not in ("0", "0.0")]
    if made:
        raise ValueError(
            f"{choice} moves images as they are stored, so that {made[0]} cannot be done before: leave scale out, or "
            "do that on the device (batch_transform)"
        )


def threads(num_workers: Any) -> int:
    """Threads that read ahead: as asked for, else one per core of this process, eight at most."""
    if num_workers is not None:
        return _check.whole("num_workers", num_workers, most=1024)
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    return max(1, min(8, cores))


def grouping(name: str, by: Any) -> tuple[list[str] | None, list[str | None] | None]:
    """Columns, or one key per row, whose rows belong together; neither where nothing is said."""
    if by is None:
        return None, None
    if isinstance(by, str):
        return [by], None
    if isinstance(by, tuple):
        return [_check.text(f"{name}[{i}]", column) for i, column in enumerate(by)], None
    return None, [_key(key) for key in _check.several(name, by, "a column, a tuple of columns, or a list of keys")]


def check_grouping(name: str, columns: list[str] | None, keys: list[str | None] | None, dataset: OpenSet) -> None:
    """Refuses columns that are missing, and a list of columns' names: a list has one key per row."""
    if not columns and (not keys or len(keys) == len(dataset)):
        return
    there = dataset.columns
    for column in columns or ():
        if column not in there:
            raise KeyError(_native.missing_column(column, there))
    if keys and all(key in there for key in keys):
        several = tuple(keys) if len(keys) > 1 else keys[0]
        raise ValueError(f"{name} is a list, which has one key per row: name columns by {name}={several!r}")


def _key(value: Any) -> str | None:
    """The text of a key, written as that of a column: a time in whatever unit, a number of whatever type. None is a
    missing one."""
    kind = type(value).__name__
    if kind in ("Tensor", "ArrayImpl"):
        # A value of torch or JAX is printed with fewer digits than it has.
        return _key(value.item())
    text = str(value)
    if value is None or (text in ("NaT", "nan", "<NA>") and not isinstance(value, str)):
        return None
    if kind in ("bool", "bool_"):
        return text.lower()
    if kind in ("float", "float16", "float32", "float64"):
        # As those of 64 bits: of others two texts may be equally near, of which NumPy and Rust take different ones.
        return _float_key(repr(float(value)))
    if isinstance(value, datetime.datetime):
        # As a time of UTC where it has a zone: NumPy's times have none. The fraction of pandas has nanoseconds.
        zoned = value.utcoffset() is not None
        text = (value.astimezone(datetime.timezone.utc) if zoned else value).isoformat().removesuffix("+00:00")
    elif kind != "datetime64":
        return text
    return text.rstrip("0").rstrip(".") if "." in text else text


def _float_key(text: str) -> str:
    """The text of a float as Rust writes it. A whole one is a whole number, which NumPy lacks if some are missing."""
    digits, _, exponent = text.partition("e")
    if exponent:
        return f"{digits}e{int(exponent)}"
    whole = text.removesuffix(".0")
    return "0" if whole == "-0" else whole


def order(
    given: Any, shuffle: bool, by: Any, weights: Any, block: Any, images: Any, of_cells: bool = False
) -> dict[str, Any]:
    """The order of rows, which are cells cut out of images or images themselves."""
    block = _check.single(block)
    kind = "shuffle" if shuffle else "sequential"
    if given is not None:
        kind = _check.word("order", given, ORDERS)
        if shuffle and kind != "shuffle":
            raise ValueError(f"shuffle=True and order={kind!r} contradict each other")
    elif weights is not None:
        if shuffle:
            raise ValueError("shuffle=True takes every row once, and weights draw rows anew: leave shuffle out")
        kind = "weighted"
    if (weights is not None) != (kind == "weighted"):
        raise ValueError('weights belong to order="weighted", which needs them')
    if (by is not None) and kind not in ("grouped", "balanced", "block"):
        raise ValueError('by belongs to order="grouped", order="balanced" and order="block"')
    if by is None and kind in ("grouped", "balanced"):
        raise ValueError(f'by must be given for order="{kind}": a column, columns, or a list of one key per row')
    if images is not None and kind not in ("weighted", "balanced"):
        raise ValueError('images_per_epoch belongs to order="weighted" and order="balanced"')
    if block is not None and kind != "block":
        raise ValueError('block belongs to order="block"')
    columns, keys = grouping("by", by)
    in_groups = kind == "block" and (by is not None or (of_cells and not hasattr(block, "__len__")))
    if in_groups:
        # Blocks are as large as their groups, or as the cells of an image are many.
        kind = "block-positions" if by is None else "block-groups"
        if hasattr(block, "__len__"):
            raise ValueError("block must be the number of groups that are mixed where by= says what a block is")
        block_rows, window = 256, 8 if block is None else block
    else:
        block_rows, window = (256, 8) if block is None else _two("block", block, _BLOCK)
    if weights is not None:
        if hasattr(weights, "tolist"):
            weights = weights.tolist()
        weights = [_check.real(f"weights[{i}]", w, 0) for i, w in enumerate(_check.several("weights", weights))]
    return {
        "kind": kind,
        "block_rows": _check.whole("block rows", block_rows, 1),
        "window": _check.whole("block window", window, 1),
        "prefix": None,
        "columns": columns,
        "keys": keys,
        "weights": weights,
        "images": None if images is None else _check.whole("images_per_epoch", images, 1),
    }


def memory(given: Any) -> int | None:
    """Bytes: a number, or a text such as "2GiB"."""
    if given is None or not isinstance(given, str):
        return None if given is None else _check.whole("memory", given, 1)
    try:
        return _native.parse_bytes(given)
    except ValueError as error:
        raise ValueError(f"memory: {error}") from None


def flip(given: Any) -> list[float]:
    """Probabilities of exchanging left and right, top and bottom."""
    given = _check.single(given)
    if type(given).__name__ in ("bool", "bool_"):
        return [0.5, 0.5] if given else [0.0, 0.0]
    if isinstance(given, str):
        return {"horizontal": [0.5, 0.0], "vertical": [0.0, 0.5], "both": [0.5, 0.5]}[
            _check.word("flip", given, ("horizontal", "vertical", "both"))
        ]
    if hasattr(given, "__len__"):
        return list(_check.pair("flip", given, 0, 1))
    return [_check.real("flip", given, 0, 1)] * 2


def scale(given: Any, stored: bool) -> tuple[Any, bool]:
    """The native scale, and whether it is left to the device."""
    given = _check.single(given)
    if isinstance(given, str) and given in ("auto", "unit", "device"):
        if given == "auto":
            return (None if stored else "unit"), False
        return (None, True) if given == "device" else ("unit", False)
    if isinstance(given, str):
        raise ValueError(f'scale must be "auto", "unit", "device", a number, (low, high) or None, not {given!r}')
    if given is None:
        return None, False
    if hasattr(given, "__len__"):
        low, high = _two("scale", given)
        return (_check.reals("scale low", low), _check.reals("scale high", high)), False
    return _check.real("scale", given), False


def normalize(given: Any) -> Any:
    """Means and deviations: given, each image's own, or those of a file of `wellread stats`."""
    if given is None or isinstance(given, (str, os.PathLike)):
        if given is not None and "\0" in os.fspath(given):
            raise ValueError("normalize must not hold a null character")
        missing = given if isinstance(given, str) and given != "image" and not os.path.exists(given) else None
        if missing is not None and missing.lower() in ("image", "images", "per-image"):
            raise ValueError(f'normalize must be (mean, std), "image" or a file, not {given!r}: give "image"')
        # A name such as "imagenet": files of statistics have an ending, or a folder.
        if missing is not None and not {"/", os.sep, "."} & {*missing}:
            raise ValueError(
                f'normalize={given!r} is neither "image", the one name that there is, nor a file. Give (mean, std), '
                "such as ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)) of ImageNet, or a file of wellread stats"
            )
        return given
    mean, std = _two("normalize", given)
    return _check.reals("normalize mean", mean), _check.reals("normalize std", std)


def check_lists(given: Mapping[str, Any], native: Any) -> None:
    """Raises ValueError for a list of one number where a native loader delivers several channels. A number is for
    all channels, and a list has one of each."""
    first, last = (native.arrays[place][0][1] for place in (0, -1))
    channels = first - native.has_mask
    for name, there in (("scale", channels), ("normalize", channels), ("target_scale", last)):
        both = given[name] if isinstance(given[name], (list, tuple)) else ()
        if there > 1 and any(isinstance(end, (list, tuple)) and len(end) == 1 for end in both):
            raise ValueError(
                f"{name} has a list of one number, and batches have {there} channels: give one number per channel, "
                "or a number without a list for all"
            )


def _two(name: str, given: Any, what: str = "two numbers, or two lists of one per channel") -> list:
    both = _check.several(name, given, what)
    if len(both) != 2:
        raise ValueError(f"{name} must be {what}, not {len(both)} things")
    return both


def channels(given: Any, dataset, what: str) -> list[int] | None:
    """Indices of channels; of names, those in the first image's metadata. `what` is the choice that gives them."""
    if given is None:
        return None
    wanted = _check.several(what, given, "a list of indices or names")
    if not any(isinstance(channel, str) for channel in wanted):
        return _check.channels(what, wanted, lambda: of_first_readable(dataset._native.info, len(dataset))[0][1])
    names = [channel["name"] for channel in of_first_readable(dataset.metadata, len(dataset))["channels"]]
    found = []
    for channel in wanted:
        if not isinstance(channel, str):
            raise TypeError(f"{what} must be all indices or all names")
        if names.count(channel) != 1:
            there = f"are {names}" if any(names) else "have no names: give their numbers"
            raise ValueError(f"{what} has {channel!r}, and channels of the first image of {dataset._label()} {there}")
        found.append(names.index(channel))
    return found


def of_first_readable(look: Callable[[int], Any], length: int) -> Any:
    """Calls `look` for the first of `length` rows that it can read. The loader reports the other rows.

    Raises the first error if none of the first 16 can be read. It goes on after an image that is damaged,
    unsupported or missing. Every other error ends it, as that of a server that does not answer.
    """
    first: errors.Error | None = None
    for row in range(max(1, min(length, _ROWS_LOOKED_AT))):
        try:
            return look(row)
        except _OF_ONE_IMAGE as error:
            if error._is_of_link:
                raise
            first = first or error
    assert first is not None
    raise first


def named_channels(given: Any, dataset, what: str = "channels") -> dict[str, Any]:
    """Channels as the native loader takes them: indices and, where they are asked for by name, the names, by which
    each image's own are taken."""
    if given is not None:
        # It may be an iterator.
        given = _check.several(what, given, "a list of indices or names")
    found = channels(given, dataset, what)
    has_names = bool(given) and isinstance(given[0], str)
    return {"channels": found, "channel_names": given if has_names else None}


def tell_mixed(
    dataset: Dataset, rows: Sequence[int] | None, transform: Mapping[str, Any], what: str = "channels"
) -> None:
    """Warns where images, or sets that are put together, have other channels at the numbers that a loader takes: its
    batches mix them. The first image of each set and some all over the rows are looked at. By names of channels each
    image's own are taken; `what` is the choice of these names."""
    fields, normalize = transform.get("illumination"), transform.get("normalize")
    by_field = isinstance(fields, list) or any("{channel" in os.fspath(path) for path in fields or () if path)
    by_file = isinstance(normalize, (str, os.PathLike)) and normalize != "image"
    if transform["channel_names"] is not None or by_field or by_file:
        return
    numbers = transform["channels"]
    mixed = dataset._native.mixed_channels(None if rows is None else list(rows), numbers, _IMAGES_LOOKED_AT)
    if mixed is None:
        return
    (one, own), (other, there) = mixed
    of = "" if what == "channels" else " of targets"
    _signature.warn(
        f"channels{of} go by number, and are {own} in {one}, {there} in {other}: batches mix them; "
        f"{what}=[names] takes each image's own"
    )


def tell_drawn_once(what: str, given: Any, rows: list[int] | None, order: str) -> None:
    """Warns where `rows` are of a sampler of torch that may draw others in each epoch: a loader asks it once.

    One that draws all of its rows differs by their order alone. The loader draws that anew unless it is "sequential".
    A class of the user's draws anew where it gives other rows now, or can be told an epoch.
    """
    samplers = sys.modules.get("torch.utils.data")
    if samplers is None or not isinstance(given, samplers.Sampler):
        return
    # The one in order, and torch's DistributedSampler where it keeps the order.
    if isinstance(given, samplers.SequentialSampler) or getattr(given, "shuffle", None) is False:
        return
    takes_all = type(given) is samplers.SubsetRandomSampler or (
        type(given) is samplers.RandomSampler
        and not given.replacement
        and given.num_samples == len(given.data_source)
    )
    if takes_all and order != "sequential":
        return
    is_own = type(given).__module__.partition(".")[0] != "torch"
    if is_own and not hasattr(given, "set_epoch") and list(given) == rows:
        return
    _signature.warn(
        f"{what} is a {type(given).__name__}, which is asked for its rows once, when the loader is made: every epoch "
        f'has those. To draw anew in each epoch, give shuffle=True, weights= or order="balanced", with rows= for a '
        f"part of the rows. If one draw is meant, {what}=list({what}) says so"
    )


def tell_scaled_masks(dataset: Dataset, transform: Mapping[str, Any], scales_later: bool) -> None:
    """Warns where a channel that a loader takes is a mask by its name and is scaled or normalised like a stain."""
    if transform["scale"] is None and transform["normalize"] is None and not scales_later:
        return
    masks = dict(dataset._native.mask_channels())
    taken = transform["channels"]
    for number, name in masks.items():
        if taken is None or number in taken:
            left = range(dataset._native.info(0)[0][1]) if taken is None else taken
            left = [channel for channel in left if channel not in masks]
            out = f"channels={left} leaves it out, and " if left else ""
            _signature.warn(
                f"channel {number} is called {name!r} and holds whole numbers: it is scaled or normalised like a "
                f"stain; {out}targets=dataset, target_channels=[{name!r}] delivers it as it is stored"
            )
            return


def fields(given: Any) -> tuple[Any, Any] | list[tuple[str, tuple[Any, Any]]] | None:
    """Files of the flat and the dark field, or those of each channel by its name."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        return _fields("illumination", given)
    if not given:
        raise ValueError("illumination must not be an empty dictionary")
    for name in given:
        _check.text("a channel of illumination", name)
    return [(name, _fields(f"illumination[{name!r}]", paths)) for name, paths in given.items()]


def _fields(name: str, given: Any) -> tuple[Any, Any]:
    what = "a path, or (flat, dark)"
    both = [given, None] if isinstance(given, (str, os.PathLike)) else _two(name, given, what)
    for path in both:
        if path is not None and not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"{name} must be {what}, not {type(path).__name__}")
    if any(path is not None and "\0" in os.fspath(path) for path in both):
        raise ValueError(f"{name} must not hold a null character")
    return both[0], both[1]
