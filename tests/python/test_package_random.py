"""Random arguments at every public call: an exception of Python at worst, never the end of the interpreter."""

import os
import random

import numpy as np
import pytest
import wellread as wr

# What arguments may end in; KeyError is for the name of a column.
ALLOWED = (TypeError, ValueError, IndexError, KeyError, wr.Error)


class Hostile:
    """Says that it is everything, and is nothing."""

    def __index__(self):
        raise TypeError("no index")

    def __len__(self):
        return -1

    def __iter__(self):
        raise TypeError("no items")

    def __float__(self):
        raise TypeError("no number")


def values(draw: random.Random):
    simple = [
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        7,
        39,
        40,
        2**31,
        2**63,
        2**64,
        -(2**80),
        0.0,
        0.5,
        -1.5,
        float("nan"),
        float("inf"),
        1e308,
        "",
        "a",
        "unit",
        "class",
        "torch",
        "memory",
        "é\0",
        "x" * 5000,
        b"x",
        (),
        [],
        {},
        (1, 2),
        [3, 1],
        (0.5, 0.25),
        [None],
        slice(None),
        slice(5, 2),
        slice(0, 10, 3),
        range(5),
        np.arange(4),
        np.array([True] * 40),
        np.array(3),
        np.float32(0.5),
        np.zeros((2, 2)),
        object(),
        Hostile(),
        lambda x: x,
        {"version": 1},
        (slice(0, 4), slice(1, 5)),
        np.datetime64("NaT"),
        "\ud800",
        1j,
    ]
    return draw.choice(simple)


LOADER = [
    "seed",
    "num_workers",
    "as_",
    "dtype",
    "scale",
    "percentiles",
    "normalize",
    "channels",
    "crop",
    "crop_square",
    "random_crop",
    "random_resized_crop",
    "flip",
    "turns",
    "rotate",
    "resize",
    "resize_filter",
    "max_projection",
    "brightness",
    "contrast",
    "gamma",
    "per_channel",
    "photon_noise",
    "gaussian_noise",
    "channel_dropout",
    "illumination",
    "crops_per_image",
    "order",
    "by",
    "weights",
    "block",
    "images_per_epoch",
    "rows",
    "sampler",
    "shard",
    "rank",
    "world_size",
    "nodes",
    "node",
    "reshard_every",
    "uneven",
    "drop_last",
    "prefetch",
    "memory",
    "on_error",
    "labels",
    "classes",
    "columns",
    "features",
    "indices",
    "as_dict",
    "keys",
    "transform",
    "batch_transform",
    "pin_memory",
    "device",
    "epoch",
]


def attempt(call, *args, also=(), **keywords):
    try:
        return call(*args, **keywords)
    except (*ALLOWED, *also):
        return None


@pytest.mark.parametrize("seed", range(int(os.environ.get("WELLREAD_RANDOM_SEEDS", "4"))))
def test_random_calls_of_a_dataset(labelled, seed):
    draw = random.Random(seed)
    ds = wr.Dataset(labelled)
    batch = next(iter(wr.DataLoader(ds, 4, as_="batch")))
    for _ in range(400):
        value, other = values(draw), values(draw)
        attempt(lambda v=value: ds[v])
        attempt(ds.read, value, other)
        attempt(ds.read, draw.randrange(40), other)
        of_rows = (ds.image_shape, ds.with_columns, ds.name, ds.metadata)
        for call in (*of_rows, ds.split, ds.column, ds.__arrow_c_stream__, wr.Dataset.from_arrow):
            attempt(call, value)
        # DLPack asks for BufferError.
        asked = {"stream": value, "max_version": other, "dl_device": values(draw), "copy": values(draw)}
        attempt(batch.__dlpack__, also=(BufferError,), **asked)
        attempt(wr.Dataset, value)
        option = draw.choice(["format", "table", "column", "level", "cache"])
        attempt(wr.Dataset, labelled, **{option: value})
    assert ds[3].shape == (2, 48, 56)


@pytest.mark.parametrize("seed", range(int(os.environ.get("WELLREAD_RANDOM_SEEDS", "4"))))
def test_random_choices_of_a_loader(labelled, seed):
    draw = random.Random(1000 + seed)
    ds = wr.Dataset(labelled)
    made = 0
    for _ in range(3000):
        choices = {name: values(draw) for name in draw.sample(LOADER, draw.randrange(1, 3))}
        if isinstance(choices.get("num_workers"), int) and not isinstance(choices.get("num_workers"), bool):
            choices["num_workers"] = min(choices["num_workers"], 2)
        choices.setdefault("num_workers", draw.randrange(3))
        loader = attempt(
            wr.DataLoader, draw.choice([ds, values(draw)] + [ds] * 8), draw.choice([4, 16, values(draw)]), **choices
        )
        if loader is None:
            continue
        made += 1
        # The user's own callables may raise what they like; here they do not, but arrays may not stack.
        iterator = attempt(iter, loader)
        for _ in range(2):
            attempt(next, iterator, None) if iterator is not None else None
        attempt(loader.load_state_dict, values(draw))
        attempt(loader.set_epoch, values(draw))
        attempt(loader.rows, values(draw))
        assert isinstance(loader.state_dict(), dict) and repr(loader)
    assert made > 60, "random choices should often make sense"


def test_random_states_are_refused_or_resumed(labelled):
    draw = random.Random(7)
    loader = wr.DataLoader(labelled, 4, True)
    good = loader.state_dict()
    for _ in range(300):
        state = dict(good)
        state[draw.choice(list(state))] = values(draw)
        attempt(loader.load_state_dict, state)
        attempt(lambda: next(iter(loader), None))
    assert len(list(loader)) <= 10
