"""The checked choices of a loader, as the native loader takes them.

::

    arguments of DataLoader ── checked() ──▶ Checked: native choices, and what is done in Python: device, ranks, views
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from . import _check, _nodes, _options, _ranks, _recipes, _rows, _targets

if TYPE_CHECKING:
    from .dataset import Dataset


@dataclass(frozen=True)
class Checked:
    """Choices that make sense together."""

    library: str
    """The library whose arrays batches are."""
    native: dict[str, Any]
    """The choices that the native loader takes."""
    named: _ranks.Ranks | None
    """Rank and number of ranks, where they are given."""
    by_node: _nodes.Named | None
    """The statement about nodes, if each has a part of the set."""
    scales_later: bool
    """Whether pixels are scaled where they are moved to."""
    pins: bool
    device: Any
    rows: str
    """The name of the choice of rows."""
    views: _recipes.Views | None


# Choices that may be lists of the caller, and are not kept elsewhere.
_LISTS = (
    *("scale", "percentiles", "normalize", "channels", "illumination", "flip", "block"),
    *("crop", "random_crop", "random_resized_crop", "resize", "target_channels", "target_scale"),
)


def copied(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a loader, with lists of their own: a caller may change theirs before the loader is pickled."""
    views = arguments["views"]
    recipes = {"views": list(views)} if isinstance(views, Iterator) else {}
    return arguments | {name: _own(arguments[name]) for name in _LISTS} | recipes


def _own(value: Any) -> Any:
    """A copy of lists, arrays and dictionaries, and of what they hold. Everything else stays."""
    if isinstance(value, Mapping):
        return {key: _own(inner) for key, inner in value.items()}
    if isinstance(value, (str, bytes, set, frozenset, os.PathLike)) or not isinstance(value, Iterable):
        return value
    if getattr(value, "shape", None) == ():
        return value
    if isinstance(value, tuple):
        return tuple(map(_own, value))
    return value.tolist() if hasattr(value, "tolist") else list(map(_own, value))


def checked(arguments: Mapping[str, Any], dataset: Dataset) -> Checked:
    """Checks the arguments of a loader of these images.

    Raises:
        TypeError, ValueError: one of a wrong type, or one that makes no sense; the message names it.
    """
    given = SimpleNamespace(**arguments)
    library = _check.word("as_", given.as_, _options.AS)
    kind = _check.word("dtype", given.dtype, _options.DTYPES)
    scale, scales_later = _options.scale(given.scale, kind == "stored")
    if scales_later:
        if library not in ("torch", "jax"):
            raise ValueError('scale="device" needs as_="torch" or as_="jax"')
        if kind not in ("float32", "stored"):
            raise ValueError('scale="device" delivers float32: leave dtype out')
        _options.check_is_left('scale="device"', _options.COMPUTING, arguments)
        kind = "stored"
    if given.percentiles is not None:
        if isinstance(scale, (tuple, float)):
            raise ValueError("percentiles and scale exclude each other")
        scale = ("percentiles", *_check.pair("percentiles", given.percentiles, 0, 100))
    if (
        sum(
            crop_ is not None
            for crop_ in (given.crop, given.crop_square, given.random_crop, given.random_resized_crop)
        )
        > 1
    ):
        raise ValueError("only one of crop, crop_square, random_crop and random_resized_crop can be given")
    resized = _check.size("random_resized_crop", given.random_resized_crop)
    if resized and given.resize is not None:
        raise ValueError("random_resized_crop is a resize already: leave resize out")
    if given.resize_filter is not None and given.resize is None:
        raise ValueError("resize_filter belongs to resize")
    if given.rows is not None and given.sampler is not None:
        raise ValueError("rows and sampler are the same: give one of them")
    named = _ranks.given(given.shard, given.rank, given.world_size, given.sampler)
    if named is not None:
        # What is known already contradicts it at once.
        _ranks.now(named)
    by_node = _nodes.given(given.shard, given.nodes, given.node, given.reshard_every)
    if library == "batch" and (given.transform is not None or given.batch_transform is not None):
        raise ValueError('transform and batch_transform need arrays: as_ must not be "batch"')
    for name, call in (("transform", given.transform), ("batch_transform", given.batch_transform)):
        if call is not None and not callable(call):
            raise TypeError(f"{name} must be callable, not {type(call).__name__}")
    name = "rows" if given.sampler is None else "sampler"
    chosen = given.rows if given.sampler is None else given.sampler
    order_choice = _options.order(
        given.order,
        _check.truth("shuffle", given.shuffle),
        given.by,
        given.weights,
        given.block,
        given.images_per_epoch,
        dataset._native.are_cut(),
    )
    if given.sampler is not None and order_choice["kind"] == "shuffle":
        raise ValueError(
            "sampler says the order, so that shuffle=True cannot be given, as with torch. Leave it out, or give "
            "rows= in place of sampler= to shuffle these rows in each epoch"
        )
    _options.check_grouping("by", order_choice["columns"], order_choice["keys"], dataset)
    pins = _check.truth("pin_memory", given.pin_memory)
    if (pins or given.device is not None) and library not in ("torch", "jax"):
        needs = 'pin_memory needs as_="torch"' if pins else 'device needs as_="torch" or as_="jax"'
        raise ValueError(f"{needs}, not {library!r}")
    if pins and library == "jax":
        raise ValueError('pin_memory needs as_="torch": JAX takes no page-locked memory of others')
    device = given.device
    if device is not None:
        from . import _device

        device = _device.usable(library, device)
    choices: dict[str, Any] = {
        "batch_size": _check.whole("batch_size", given.batch_size, 1),
        "workers": _options.threads(given.num_workers),
        "prefetch": None if given.prefetch is None else _check.whole("prefetch", given.prefetch, 1, 2**20),
        "memory": _options.memory(given.memory),
        "lent": None,
        "seed": _check.whole("seed", given.seed, 0, 2**64 - 1),
        "epoch": _check.whole("epoch", given.epoch, 0, 2**64 - 2),
        "drop_last": _check.truth("drop_last", given.drop_last),
        "rank": 0,
        "world_size": 1,
        "uneven": _check.word("uneven", given.uneven, _options.UNEVEN),
        "nodes": None,
        "reshard_every": _check.whole("reshard_every", given.reshard_every, 0, 2**64 - 1),
        "skip": _check.word("on_error", given.on_error, _options.ON_ERROR) == "skip",
        "rows": None if chosen is None else _rows.chosen(name, chosen, len(dataset)),
        "crops_per_image": _check.whole("crops_per_image", given.crops_per_image, 1),
        "dtype": kind,
        "order": order_choice,
        "transform": _transform(given, dataset, scale, resized),
    }
    *strengths, each = choices["transform"]["jitter"]
    if each and not any(strengths):
        raise ValueError("per_channel belongs to brightness, contrast and gamma: give one of them")
    wanted = None if given.views is None else _recipes.Views(given.views, choices["transform"])
    choices["views"], choices["recipes"] = (1, None) if wanted is None else (wanted.same, wanted.recipes)
    choices["targets"] = _targets.chosen(
        given.targets,
        given.target_kind,
        given.target_channels,
        given.target_dtype,
        given.target_scale,
        given.pairing,
        kind,
        scales_later,
    )
    return Checked(library, choices, named, by_node, scales_later, pins, device, name, wanted)


def _transform(
    given: SimpleNamespace, dataset: Dataset, scale: Any, resized: tuple[int, int] | None
) -> dict[str, Any]:
    """The choices for pixels."""
    return {
        "project": _check.truth("max_projection", given.max_projection),
        **_options.named_channels(given.channels, dataset),
        "crop": _check.size("crop", given.crop),
        "crop_square": None if given.crop_square is None else _check.real("crop_square", given.crop_square, 0, 1),
        "random_crop": _check.size("random_crop", given.random_crop),
        "random_resized": ([0.08, 1.0], [3 / 4, 4 / 3]) if resized else None,
        "illumination": _options.fields(given.illumination),
        "flip": _options.flip(given.flip),
        "turns": _check.word("turns", given.turns, _options.TURNS),
        "resize": resized or _check.size("resize", given.resize),
        "resize_filter": "antialias"
        if resized
        else "area"
        if given.resize_filter is None
        else _check.word("resize_filter", given.resize_filter, _options.FILTERS),
        "rotate": _check.real("rotate", given.rotate, 0, 180),
        "scale": scale,
        "jitter": (
            _check.real("brightness", given.brightness, 0, 1),
            _check.real("contrast", given.contrast, 0, 1),
            _check.real("gamma", given.gamma, 0),
            _check.truth("per_channel", given.per_channel),
        ),
        "noise": (
            _check.real("photon_noise", given.photon_noise, 0),
            _check.real("gaussian_noise", given.gaussian_noise, 0),
        ),
        "normalize": _options.normalize(given.normalize),
        "channel_dropout": _check.real("channel_dropout", given.channel_dropout, 0, 1),
    }
