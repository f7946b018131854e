"""Views of each row, for self-supervision: how many, by which recipes, and how they come in a batch.

views=2, views=[recipe, recipe]              ──▶ (array, array)
views={"global": (2, recipe), "one": recipe} ──▶ {"global": (array, array), "one": array}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import _check, _options
from ._signature import nearest

_CROPS = ("crop", "crop_square", "random_crop", "random_resized_crop")
# What the native loader calls a crop otherwise.
_NATIVE = {"random_resized_crop": "random_resized"}
_JITTER = ("brightness", "contrast", "gamma", "per_channel")
_NOISE = ("photon_noise", "gaussian_noise")
#: What a recipe may say; whatever it does not is as the loader has it.
KEYS = (
    *_CROPS,
    "scale_range",
    "ratio_range",
    "flip",
    "turns",
    "rotate",
    "resize",
    "resize_filter",
    *_JITTER,
    *_NOISE,
    "channel_dropout",
)


class Views:
    """The recipes of ``views``; `base` is the loader's own transform, as the native loader takes it."""

    def __init__(self, given: Any, base: dict[str, Any]) -> None:
        #: Native transforms, one per view, where views are of recipes.
        self.recipes: list[dict[str, Any]] | None = None
        # Of each name, how many views; None for one that is by itself.
        self._named: dict[str, int | None] | None = None
        if isinstance(given, Mapping):
            self.recipes, self._named = [], {}
            for key, value in given.items():
                name = f"views[{key!r}]"
                _check.text("a name of views", key)
                count, recipe = (None, value) if isinstance(value, Mapping) else _two(name, value)
                self._named[key] = None if count is None else _check.whole(f"{name}[0]", count, 1, 64)
                self.recipes += [_transform(name, recipe, base)] * (self._named[key] or 1)
        elif isinstance(given, bool) or hasattr(given, "__index__"):
            self._same = _check.whole("views", given, 1)
        else:
            what = "a number, a list of recipes, or a dictionary of them"
            recipes = enumerate(_check.several("views", given, what))
            self.recipes = [_transform(f"views[{i}]", recipe, base) for i, recipe in recipes]
        if self.recipes is not None:
            if not self.recipes:
                raise ValueError("views must name one recipe at least")
            self._same = 1

    @property
    def same(self) -> int:
        """Views by the loader's own transform, where there are no recipes."""
        return self._same

    def group(self, arrays: Sequence[Any]) -> Any:
        """The views of a batch as they are delivered."""
        if self._named is None:
            return tuple(arrays)
        grouped: dict[str, Any] = {}
        at = 0
        for name, count in self._named.items():
            grouped[name] = arrays[at] if count is None else tuple(arrays[at : at + count])
            at += count or 1
        return grouped


def _two(name: str, value: Any) -> list[Any]:
    both = _check.several(name, value, "a recipe, or (how many, recipe)")
    if len(both) != 2:
        raise ValueError(f"{name} must be a recipe, or (how many, recipe), not {len(both)} things")
    return both


def _transform(name: str, recipe: Any, base: dict[str, Any]) -> dict[str, Any]:
    """A recipe as the native loader takes it: what it says in place of the loader's own."""
    if not isinstance(recipe, Mapping):
        raise TypeError(f"{name} must be a dictionary of choices, not {_check.kind(recipe)}")
    unknown = [key for key in recipe if key not in KEYS]
    if unknown:
        near = nearest(str(unknown[0]), KEYS, "{!r}")
        raise TypeError(f"{name} has {unknown[0]!r}, and a recipe may have {', '.join(KEYS)}{near}")
    # The field is the loader's, for all views.
    made = base | {"illumination": None}
    named = [crop for crop in _CROPS if crop in recipe]
    given = [crop for crop in named if recipe[crop] is not None]
    if len(given) > 1:
        raise ValueError(f"{name} has {' and '.join(given)}, of which only one can be given")
    # None in place of the loader's own crop takes it away.
    if given or any(made[_NATIVE.get(crop, crop)] is not None for crop in named):
        if made["random_resized"]:
            made |= {"resize": None, "resize_filter": "area"}
        made |= {"crop": None, "crop_square": None, "random_crop": None, "random_resized": None}
    of = f"{name}: "
    for crop in given:
        value = recipe[crop]
        if crop == "crop_square":
            made[crop] = _check.real(of + crop, value, 0, 1)
        elif crop == "random_resized_crop":
            if recipe.get("resize") is not None:
                raise ValueError(f"{name}: random_resized_crop is a resize already: leave resize out")
            made["random_resized"] = ([0.08, 1.0], [3 / 4, 4 / 3])
            made |= {"resize": _check.size(of + crop, value), "resize_filter": "antialias"}
        else:
            made[crop] = _check.size(of + crop, value)
    for i, key in enumerate(("scale_range", "ratio_range")):
        if recipe.get(key) is None:
            continue
        if not made["random_resized"]:
            raise ValueError(f"{name}: {key} belongs to random_resized_crop")
        both = list(_check.pair(of + key, recipe[key], 0, 1 if key == "scale_range" else 1e6))
        ranges = list(made["random_resized"])
        ranges[i] = both
        made["random_resized"] = tuple(ranges)
    if "flip" in recipe:
        made["flip"] = _options.flip(recipe["flip"])
    if "turns" in recipe:
        made["turns"] = _check.word(of + "turns", recipe["turns"], _options.TURNS)
    if "rotate" in recipe:
        made["rotate"] = _check.real(of + "rotate", recipe["rotate"], 0, 180)
    if "resize" in recipe and "random_resized_crop" not in given:
        made["resize"] = _check.size(of + "resize", recipe["resize"])
    if "resize_filter" in recipe:
        if made["resize"] is None:
            raise ValueError(f"{name}: resize_filter belongs to resize")
        made["resize_filter"] = _check.word(of + "resize_filter", recipe["resize_filter"], _options.FILTERS)
    jitter = list(base["jitter"])
    for i, key in enumerate(_JITTER):
        if key in recipe:
            most = {"brightness": 1.0, "contrast": 1.0}.get(key, float("inf"))
            is_truth = key == "per_channel"
            check = _check.truth(of + key, recipe[key]) if is_truth else _check.real(of + key, recipe[key], 0, most)
            jitter[i] = check
    if recipe.get("per_channel") and not any(jitter[:3]):
        raise ValueError(f"{name}: per_channel belongs to brightness, contrast and gamma: give one of them")
    noise = list(base["noise"])
    for i, key in enumerate(_NOISE):
        if key in recipe:
            noise[i] = _check.real(of + key, recipe[key], 0)
    made |= {"jitter": tuple(jitter), "noise": tuple(noise)}
    if "channel_dropout" in recipe:
        made["channel_dropout"] = _check.real(of + "channel_dropout", recipe["channel_dropout"], 0, 1)
    return made
