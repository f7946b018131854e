"""The package's DataLoader: what it delivers, in which order, how it resumes and ends.

Long because one class is tested, and each of its choices has a test.
"""

import copy
import functools
import gc
import itertools
import json
import pickle
import threading
import time
import weakref

import numpy as np
import pytest
import wellread as wr
from own_process import loader_threads
from wellread import _options

U16 = np.float32(1 / 65535)


def all_rows(loader):
    return np.concatenate(list(loader))


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_the_images_scaled(cells, workers):
    for name, path in cells.items():
        ds = wr.Dataset(path)
        loader = wr.DataLoader(ds, 16, num_workers=workers)
        batches = list(loader)
        assert [b.shape for b in batches] == [(16, 2, 48, 56)] * 2 + [(8, 2, 48, 56)] and len(loader) == 3
        assert batches[0].dtype == np.float32
        assert np.array_equal(np.concatenate(batches), ds[:].astype(np.float32) * U16), name


def test_the_order_is_that_of_the_seed_whatever_the_threads(parquet):
    ds = wr.Dataset(parquet)
    every = ds[:].astype(np.float32) * U16
    loaders = [
        wr.DataLoader(ds, 7, shuffle=True, seed=3, num_workers=n, prefetch=p) for n, p in ((0, None), (1, 1), (4, 9))
    ]
    for epoch in range(3):
        rows = loaders[0].rows(epoch)
        assert sorted(rows) == list(range(40)) and rows != sorted(rows)
        for loader in loaders:
            assert loader.epoch == epoch
            assert np.array_equal(all_rows(loader), every[rows])
    loaders[0].set_epoch(1)
    assert np.array_equal(all_rows(loaders[0]), every[loaders[0].rows(1)])


def test_traffic_says_how_much_is_read_for_what_is_used(parquet):
    loader = wr.DataLoader(wr.Dataset(parquet), 8, random_crop=(16, 16))
    assert loader.traffic == {"read": 0, "used": 0, "amplification": None}
    list(loader)
    traffic = loader.traffic
    assert traffic["used"] == 40 * 2 * 16 * 16 * 2 and traffic["read"] > 0
    assert traffic["amplification"] == traffic["read"] / traffic["used"]
    stats = loader.stats()
    assert (stats["read"], stats["used"]) == (traffic["read"], traffic["used"])
    assert stats["bytes_read_per_used"] == traffic["amplification"]
    assert stats["requests"] is stats["bytes_received"] is stats["link_wait_s"] is None, "nothing went over a link"


def test_stats_are_traffic_and_what_caches_have_done(parquet):
    loader = wr.DataLoader(wr.Dataset(parquet, cache="memory"), 8)
    for _ in range(2):
        list(loader)
    stats = loader.stats()
    assert {key: stats[key] for key in ("read", "used")} == {key: loader.traffic[key] for key in ("read", "used")}
    assert [stats[f"cache_{key}"] for key in ("images", "hits", "misses")] == [40, 40, 40]
    assert stats["cache_bytes"] == 40 * loader.dataset[0].nbytes
    assert not [key for key in stats if "disk" in key], "a set on this machine has none"


def test_choices_of_the_transform(parquet):
    ds = wr.Dataset(parquet)
    every = ds[:].astype(np.float32)
    assert np.array_equal(all_rows(wr.DataLoader(ds, 8, scale=None)), every)
    assert np.array_equal(all_rows(wr.DataLoader(ds, 8, scale=0.5)), every * np.float32(0.5))
    assert np.array_equal(all_rows(wr.DataLoader(ds, 8, dtype="stored")), ds[:])
    assert np.array_equal(
        all_rows(wr.DataLoader(ds, 8, dtype="stored", channels=[1], crop=(20, 16)))[:, 0], ds[:][:, 1, 14:34, 20:36]
    )
    names = [channel["name"] for channel in ds.metadata(0)["channels"]]
    by_name = wr.DataLoader(ds, 8, dtype="stored", channels=names[::-1])
    assert np.array_equal(all_rows(by_name), ds[:][:, ::-1])
    normal = all_rows(wr.DataLoader(ds, 8, normalize=(0.25, 0.5)))
    assert np.allclose(normal, (every * U16 - 0.25) / 0.5, atol=1e-6)
    own = all_rows(wr.DataLoader(ds, 8, normalize="image"))
    assert np.allclose(own.mean((2, 3)), 0, atol=1e-4) and np.allclose(own.std((2, 3)), 1, atol=1e-3)
    with pytest.raises(ValueError, match=r"'imagenet' is neither \"image\".* nor a file. Give \(mean, std\)"):
        wr.DataLoader(ds, 8, normalize="imagenet")
    with pytest.raises(wr.MissingError, match=r"statistics\.json"):
        wr.DataLoader(ds, 8, normalize="statistics.json")
    ranged = all_rows(wr.DataLoader(ds, 8, scale=(0, 1000)))
    assert np.allclose(ranged, np.clip(every / 1000, 0, 1), atol=1e-6)
    ranges = ([0, 100], [1000, 2000])
    turned = all_rows(wr.DataLoader(ds, 8, channels=[1, 0], scale=ranges))
    # They are of the channels that are selected.
    assert np.allclose(turned[:, 0], np.clip(every[:, 1] / 1000, 0, 1), atol=1e-6)
    assert np.allclose(turned[:, 1], np.clip((every[:, 0] - 100) / 1900, 0, 1), atol=1e-6)
    both = all_rows(wr.DataLoader(ds, 8, channels=[1, 0], scale=ranges, normalize=([0.1, 0.2], [2, 4])))
    assert np.allclose(both, (turned - np.array([[[0.1]], [[0.2]]])) / np.array([[[2]], [[4]]]), atol=1e-6)
    for choices in ({"scale": ranges}, {"normalize": ([0.1, 0.2], [2, 4])}):
        with pytest.raises(wr.ChoiceError, match="given for 2 channels, but there is 1 channel"):
            wr.DataLoader(ds, 8, channels=[1], **choices)
    with pytest.raises(wr.ChoiceError, match=r"by are 0\.01 and 0\.99, .* give 1 and 99 for that"):
        wr.DataLoader(ds, 8, percentiles=(0.01, 0.99))
    stretched = all_rows(wr.DataLoader(ds, 8, percentiles=(0, 100)))
    assert stretched.min() == 0 and np.allclose(stretched.max((2, 3)), 1, atol=1e-6)
    augmented = wr.DataLoader(ds, 8, random_crop=32, flip=True, turns="quarter", rotate=10, seed=5)
    assert augmented.image_shape == (2, 32, 32) and next(iter(augmented)).shape == (8, 2, 32, 32)
    assert next(iter(wr.DataLoader(ds, 8, random_resized_crop=24))).shape == (8, 2, 24, 24)
    assert next(iter(wr.DataLoader(ds, 8, resize=(10, 12), resize_filter="bilinear"))).shape == (8, 2, 10, 12)
    crops = wr.DataLoader(ds, 8, random_crop=16, crops_per_image=4, dtype="stored")
    assert len(crops) == 20 and crops.images == 160 and crops.rows_per_batch == 2


def test_percentiles_leave_out_infinite_pixels(tmp_path):
    import tifffile

    image = np.arange(100, dtype=np.float32).reshape(10, 10)
    image[0, :3] = -np.inf
    tifffile.imwrite(tmp_path / "a.tif", image)
    (batch,) = wr.DataLoader(tmp_path / "a.tif", 1, percentiles=(1, 99))
    finite = image[np.isfinite(image)]
    low, high = np.percentile(finite, [1, 99])
    want = np.clip((image - low) / (high - low), 0, 1)
    assert np.allclose(batch[0, 0], want, atol=1e-5) and (batch[0, 0, 0, :3] == 0).all()


def test_choices_of_what_is_not_chosen_are_refused(parquet):
    cases = [
        ({"block": (4, 2)}, 'block belongs to order="block"'),
        ({"block": (4, 2), "shuffle": True}, 'block belongs to order="block"'),
        ({"resize_filter": "bilinear"}, "resize_filter belongs to resize"),
        ({"resize_filter": "bilinear", "random_resized_crop": 24}, "resize_filter belongs to resize"),
        ({"per_channel": True}, "per_channel belongs to brightness, contrast and gamma"),
        ({"per_channel": True, "photon_noise": 0.1}, "per_channel belongs to brightness, contrast and gamma"),
    ]
    for choices, message in cases:
        with pytest.raises(ValueError, match=message):
            wr.DataLoader(parquet, 8, **choices)
    for choices in ({"gamma": 0.2}, {"brightness": 0.1}, {"contrast": 0.1}):
        wr.DataLoader(parquet, 8, per_channel=True, **choices)
    assert next(iter(wr.DataLoader(parquet, 8, resize=(10, 12)))).shape == (8, 2, 10, 12)


def test_orders_rows_and_ranks(labelled):
    ds = wr.Dataset(labelled)
    assert wr.DataLoader(ds, 4, rows=[5, 1, 9]).rows(0) == [5, 1, 9]
    assert wr.DataLoader(ds, 4, sampler=range(7)).rows(0) == list(range(7))
    wells = np.array(ds.column("well"))
    grouped = wells[wr.DataLoader(ds, 4, order="grouped", by="well", seed=1).rows(0)]
    assert len({*zip(grouped[::10], grouped[9::10], strict=True)}) == 4
    balanced = wr.DataLoader(ds, 12, order="balanced", by="class", labels="class")
    _, classes = next(iter(balanced))
    assert np.bincount(classes).tolist() == [4, 4, 4]
    keyed = wr.DataLoader(ds, 12, order="balanced", by=[i % 2 for i in range(40)], images_per_epoch=24)
    assert sum(row % 2 for row in keyed.rows(0)) == 12
    weighted = wr.DataLoader(ds, 8, weights=[float(i == 3) for i in range(40)], images_per_epoch=16)
    assert weighted.rows(0) == [3] * 16
    # Rows of weight 0 do not shorten an epoch.
    assert wr.DataLoader(ds, 8, weights=[float(i == 3) for i in range(40)]).rows(0) == [3] * 40
    block = wr.DataLoader(ds, 8, order="block", block=(4, 2)).rows(0)
    assert sorted(block) == list(range(40)) and block != sorted(block)
    shares = [wr.DataLoader(ds, 4, True, rank=rank, world_size=3, uneven="drop").rows(0) for rank in range(3)]
    assert [len(share) for share in shares] == [13] * 3 and len({row for share in shares for row in share}) == 39
    assert len(wr.DataLoader(ds, 16, drop_last=True)) == 2


def test_labels_come_with_their_images(labelled):
    ds = wr.Dataset(labelled)
    loader = wr.DataLoader(ds, 16, shuffle=True, labels="class", dtype="stored")
    rows = loader.rows(0)
    for at, (pixels, classes) in enumerate(loader):
        mine = rows[16 * at : 16 * at + 16]
        assert np.array_equal(pixels, ds[mine]) and classes.tolist() == [row % 3 for row in mine]
    own = np.arange(80.0).reshape(40, 2)
    _, values = next(iter(wr.DataLoader(ds, 16, labels=own)))
    assert np.array_equal(values, own[:16])
    _, several = next(iter(wr.DataLoader(ds, 4, columns=["well", "score", "day"])))
    assert several["well"] == ["A00"] * 4 and several["score"].tolist() == [0, 0.125, 0.25, 0.375]
    assert several["day"].dtype.kind == "M"


def test_what_was_given_may_change_afterwards(parquet):
    labels, rows, weights = np.arange(40), list(range(40)), [1.0] * 40
    loader = wr.DataLoader(parquet, 40, labels=labels, rows=rows)
    weighted = wr.DataLoader(parquet, 8, weights=weights, images_per_epoch=8)
    order = weighted.rows(0)
    labels[:], rows[:], weights[:] = -1, [0] * 40, [0.0] * 39 + [1.0]
    for same in (loader, pickle.loads(pickle.dumps(loader))):
        assert next(iter(same))[1].tolist() == list(range(40)) and same.rows(0) == list(range(40))
    assert pickle.loads(pickle.dumps(weighted)).rows(0) == order
    # What can be gone through once is kept as a list.
    assert pickle.loads(pickle.dumps(wr.DataLoader(parquet, 4, sampler=iter([3, 1])))).rows(0) == [3, 1]


@pytest.mark.parametrize("as_", ["numpy", "torch", "jax"])
def test_a_transform_may_return_one_buffer_again_and_again(parquet, as_):
    """Its results were stacked after the last one: each image of a batch was the last."""
    if as_ != "numpy":
        pytest.importorskip(as_)
    plain = list(wr.DataLoader(parquet, 8))
    buffers = [np.empty((2, 48, 56), np.float32) for _ in range(3)]

    def into(buffer, image):
        buffer[:] = np.asarray(image)
        if as_ == "torch":
            import torch

            return torch.from_numpy(buffer)
        return buffer

    loader = wr.DataLoader(parquet, 8, as_=as_, transform=lambda image: into(buffers[0], image))
    for batch, want in zip(loader, plain, strict=True):
        assert np.array_equal(np.asarray(batch), want)
    # Also of a view each, and of targets, as a dictionary.
    views = wr.DataLoader(parquet, 8, as_=as_, views=2, transform=lambda both: tuple(map(into, buffers, both)))
    for both, want in zip(views, plain, strict=True):
        assert len(both) == 2 and all(np.array_equal(np.asarray(batch), want) for batch in both)

    def of_sample(sample):
        return {"image": into(buffers[0], sample["image"]), "target": into(buffers[1], sample["target"])}

    targets = {"targets": parquet, "target_kind": "image", "keys": ("image", "target")}
    pairs = wr.DataLoader(parquet, 8, as_=as_, transform=of_sample, **targets)
    for sample, want in zip(pairs, plain, strict=True):
        assert all(np.array_equal(np.asarray(sample[name]), want) for name in ("image", "target"))


def test_results_of_a_transform_that_differ_in_type_become_one(parquet):
    count = iter(range(1000))
    kinds = (np.uint8, np.float32, np.float64)
    loader = wr.DataLoader(
        parquet, 6, dtype="stored", transform=lambda image: (image % 200).astype(kinds[next(count) % 3])
    )
    for batch, want in zip(loader, wr.DataLoader(parquet, 6, dtype="stored"), strict=True):
        assert batch.dtype == np.float64 and np.array_equal(batch, want % 200)
    other = wr.DataLoader(parquet, 8, transform=lambda image: image.astype(">f4"))
    assert np.array_equal(next(iter(other)), next(iter(wr.DataLoader(parquet, 8))))


def test_a_list_of_one_number_is_not_for_several_channels(parquet):
    """Two channels: the list of one was taken for both."""
    for name, both in (("scale", (0, 1000)), ("normalize", (0.25, 2))):
        of_all = next(iter(wr.DataLoader(parquet, 8, **{name: both})))
        of_each = next(iter(wr.DataLoader(parquet, 8, **{name: [[end, end] for end in both]})))
        assert np.array_equal(of_all, of_each) and of_all.shape[1] == 2
        for wrong in ([[both[0]], [both[1]]], (both[0], [both[1]]), np.array([[both[0]], [both[1]]])):
            with pytest.raises(ValueError, match=f"^{name} has a list of one number, and batches have 2 channels"):
                wr.DataLoader(parquet, 8, **{name: wrong})
            of_one = next(iter(wr.DataLoader(parquet, 8, channels=[1], **{name: wrong})))
            assert np.array_equal(of_one[:, 0], of_all[:, 1])
    choices = {"targets": parquet, "target_kind": "image", "target_scale": ([0], [500])}
    with pytest.raises(ValueError, match="^target_scale has a list of one number"):
        wr.DataLoader(parquet, 8, **choices)
    _, targets = next(iter(wr.DataLoader(parquet, 8, target_channels=[0], **choices)))
    assert np.allclose(targets[:, 0], np.clip(wr.Dataset(parquet)[:8][:, 0] / 500, 0, 1))


def test_a_pickled_loader_has_the_choices_that_were_given(parquet):
    """Also where their lists are changed afterwards, as by a program that makes the next loader of them."""
    for given in (
        {
            "channels": [1, 0],
            "crop": [12, 16],
            "scale": [[0, 10], [900, 1000]],
            "normalize": [[0.1, 0.2], [0.5, 0.25]],
        },
        {"channels": np.array([1]), "random_crop": np.array([12, 16]), "percentiles": [1, 99], "flip": [0.5, 0.5]},
        {
            "random_resized_crop": [9, 9],
            "order": "block",
            "block": [4, 2],
            "target_channels": [0],
            "targets": parquet,
        },
    ):
        loader = wr.DataLoader(parquet, 8, **given)
        for value in given.values():
            if isinstance(value, (list, np.ndarray)):
                value[:] = [7] * len(value)
        want = list(loader)
        loader.set_epoch(0)
        again = list(pickle.loads(pickle.dumps(loader)))
        for one, same in zip(want, again, strict=True):
            for a, b in zip(*[part if isinstance(part, tuple) else (part,) for part in (one, same)], strict=True):
                assert a.shape == b.shape and np.array_equal(a, b)
    loader = wr.DataLoader(parquet, 8, channels=iter([1]))
    assert pickle.loads(pickle.dumps(loader)).image_shape == loader.image_shape == (1, 48, 56)


def test_a_pickled_loader_begins_at_the_start(parquet):
    loader = wr.DataLoader(parquet, 16, indices=True)
    next(iter(loader))
    state = loader.state_dict()
    for again in (pickle.loads(pickle.dumps(loader)), copy.copy(loader), loader):
        assert [rows[0] for _, rows in again] == [0, 16, 32]
    # What was loaded and not gone on with yet stays: it is what the loader does next.
    loader.load_state_dict(state)
    for again in (pickle.loads(pickle.dumps(loader)), loader):
        assert [rows[0] for _, rows in again] == [16, 32]


def test_wrong_labels_are_named(parquet):
    both = np.unique(np.arange(40) % 3, return_inverse=True)
    for wrong in (both, [1, 2], 3, [[1], [1, 2]] * 20):
        with pytest.raises(ValueError, match="labels must be a column's name or 40 values"):
            wr.DataLoader(parquet, 4, labels=wrong)
    assert next(iter(wr.DataLoader(parquet, 4, labels=both[1])))[1].tolist() == [0, 1, 2, 0]
    for mixed in ([1, "a"] * 20, ("a", 2.5) * 20, [*["a"] * 39, True]):
        with pytest.raises(ValueError, match="labels mix str and (int|float|bool)"):
            wr.DataLoader(parquet, 4, labels=mixed)
    assert next(iter(wr.DataLoader(parquet, 2, labels=["a", "b"] * 20)))[1] == ["a", "b"]


def test_channels_by_name_wait_for_a_dead_server_once():
    looked_at = []

    def look(row, good, dead):
        looked_at.append(row)
        if row == good:
            return "found"
        error = wr.CorruptImageError(f"s3://plate/{row}.tif: row {row}: cannot read", row=row)
        error._is_of_link = row == dead
        raise error

    def ask(good=None, dead=None):
        looked_at.clear()
        return _options.of_first_readable(lambda row: look(row, good, dead), 100)

    assert ask(good=3) == "found" and looked_at == [0, 1, 2, 3]
    with pytest.raises(wr.CorruptImageError) as error:
        ask()
    assert error.value.row == 0 and looked_at == list(range(16))
    for dead in (0, 2):
        with pytest.raises(wr.CorruptImageError) as error:
            ask(good=5, dead=dead)
        assert error.value.row == dead and looked_at == list(range(dead + 1))
    assert not wr.CorruptImageError("of an image")._is_of_link


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
def test_an_iteration_is_not_copied(parquet, how):
    iterator = iter(wr.DataLoader(parquet, 4, num_workers=1))
    next(iterator)
    with pytest.raises(TypeError, match=r"cannot be copied or pickled.*state_dict\(\)"):
        how(iterator)
    gc.collect()
    assert len(list(iterator)) == 9


def test_batches_may_be_kept_and_outlive_all(parquet):
    loader = wr.DataLoader(parquet, 4, num_workers=2)
    want = wr.Dataset(parquet)[:].astype(np.float32) * U16
    kept = list(loader)
    views = [batch[1:3, :, ::2] for batch in loader]
    del loader
    gc.collect()
    assert np.array_equal(np.concatenate(kept), want)
    kept[0] += 1
    del kept
    gc.collect()
    for at, view in enumerate(views):
        assert np.array_equal(view, want[4 * at + 1 : 4 * at + 3, :, ::2])


def test_memory_is_used_again_only_when_nobody_looks(parquet):
    loader = wr.DataLoader(parquet, 4, num_workers=1, prefetch=1)
    held = [batch[:1] for batch in loader]
    addresses = {batch.ctypes.data for batch in held}
    assert len(addresses) == 10
    sums = [float(batch.sum()) for batch in held]
    for _ in range(3):
        assert not {batch.ctypes.data for batch in loader} & addresses
    assert [float(batch.sum()) for batch in held] == sums
    del held
    gc.collect()
    for _ in range(3):
        seen = set()
        for batch in loader:
            seen.add(batch.ctypes.data)
            del batch
        assert len(seen) <= 4


def test_iterations_end_when_left(parquet):
    def become(*counts):
        """Waits: a thread has its name a little after it was begun, and is kept a little after its iteration."""
        end = time.monotonic() + 120
        while len(loader_threads() - before) not in counts and time.monotonic() < end:
            time.sleep(0.01)
        return len(loader_threads() - before) in counts

    loader = wr.DataLoader(parquet, 1, num_workers=3)
    gc.collect()
    before = loader_threads()
    for _ in range(20):
        for _batch in loader:
            break
    several = [iter(loader) for _ in range(3)]
    firsts = [next(iterator) for iterator in several]
    assert all(np.array_equal(first, firsts[0]) for first in firsts)
    # Workers beyond the processors begin when they are needed.
    assert become(*range(3, 10))
    del several
    gc.collect()
    assert become(0)
    iterator = iter(loader)
    reference = weakref.ref(iterator)
    del iterator
    assert reference() is None and become(0)
    # The iteration that was asked for no batch is no epoch.
    assert loader.epoch == 23


def test_an_ended_iteration_stays_ended(parquet):
    iterator = iter(wr.DataLoader(parquet, 40))
    assert len(list(iterator)) == 1
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(iterator)


def test_an_epoch_is_resumed_after_the_batch_delivered_last(parquet):
    choices = {"shuffle": True, "seed": 9, "random_crop": 32, "flip": True}
    loader = wr.DataLoader(parquet, 4, num_workers=2, **choices)
    assert loader.state_dict()["position"] == 0
    list(loader)
    iterator = iter(loader)
    for _ in range(3):
        next(iterator)
    state = json.loads(json.dumps(loader.state_dict()))
    assert (state["epoch"], state["position"]) == (1, 12)
    rest = list(iterator)
    assert loader.state_dict()["epoch"] == 2 and loader.state_dict()["position"] == 0
    other = wr.DataLoader(parquet, 4, num_workers=0, **choices)
    other.load_state_dict(state)
    assert other.state_dict() == state
    assert all(np.array_equal(a, b) for a, b in zip(rest, other, strict=True)) and other.epoch == 2
    wider = wr.DataLoader(parquet, 14, num_workers=1, **choices)
    wider.load_state_dict(state)
    assert np.array_equal(np.concatenate(rest), all_rows(wider))
    broken = wr.DataLoader(parquet, 4, num_workers=2, **choices)
    broken.set_epoch(1)
    for at, _batch in enumerate(broken):
        if at == 2:
            break
    assert broken.state_dict() == state
    copy = pickle.loads(pickle.dumps(broken))
    copy.load_state_dict(broken.state_dict())
    assert all(np.array_equal(a, b) for a, b in zip(rest, copy, strict=True))
    with pytest.raises(ValueError, match="saved with seed 9"):
        wr.DataLoader(parquet, 4, True, seed=8).load_state_dict(state)
    for wrong, kind in (({}, ValueError), ({"version": object()}, ValueError), ([], TypeError), (None, TypeError)):
        with pytest.raises(kind):
            loader.load_state_dict(wrong)
    with pytest.raises(ValueError, match="it has no version .hint: give the dictionary that loader.state_dict"):
        loader.load_state_dict({})


@pytest.mark.parametrize(("before", "after"), [(3, 2), (2, 3), (1, 4), (4, 1)])
def test_an_epoch_is_resumed_by_another_number_of_ranks(parquet, before, after):
    """Every row once, but for fewer than there are ranks, which do not divide."""

    def loaders(ranks):
        each = [{"rank": rank, "world_size": ranks} for rank in range(ranks)]
        return [wr.DataLoader(parquet, 3, True, seed=6, labels=range(40), **rank) for rank in each]

    seen, states = [], []
    for loader in loaders(before):
        iterator = iter(loader)
        seen += [label for _ in range(2) for label in next(iterator)[1].tolist()]
        states.append(loader.state_dict())
    assert len(seen) == 6 * before and all(state == states[0] for state in states)
    counts = []
    for loader in loaders(after):
        loader.load_state_dict(states[0])
        rest = [label for _, labels in loader for label in labels.tolist()]
        counts.append(len(rest))
        seen += rest
    assert len(set(seen)) == len(seen) and 40 - len(seen) < after and len(set(counts)) == 1


def test_rows_that_cannot_be_read(tmp_path, cells):
    import shutil

    folder = tmp_path / "tiff"
    shutil.copytree(cells["tiff"], folder)
    damaged = sorted(folder.iterdir())[7]
    damaged.write_bytes(damaged.read_bytes()[:-500])
    iterator = iter(wr.DataLoader(folder, 4, num_workers=2))
    assert len(next(iterator)) == 4
    with pytest.raises(wr.CorruptImageError) as error:
        next(iterator)
    assert error.value.row == 7
    # The iteration goes on after it.
    assert len(list(iterator)) == 8
    loader = wr.DataLoader(folder, 4, num_workers=2, on_error="skip")
    assert [len(batch) for batch in loader] == [4, 3] + [4] * 8
    [(row, why)] = loader.skipped
    assert row == 7 and damaged.name in why


def test_wrong_choices_are_named(parquet):
    ds = wr.Dataset(parquet)
    for choices, error, said in (
        ({"batch_size": 0}, ValueError, "batch_size"),
        ({"batch_size": "4"}, TypeError, "batch_size"),
        ({"batch_size": True}, TypeError, "batch_size"),
        ({"shuffle": 1}, TypeError, "shuffle"),
        ({"seed": -1}, ValueError, "seed"),
        ({"num_workers": 5000}, ValueError, "num_workers"),
        ({"as_": "tensorflow"}, ValueError, "as_"),
        ({"dtype": "float8"}, ValueError, "dtype"),
        ({"scale": "half"}, ValueError, "scale"),
        ({"scale": "device"}, ValueError, "scale"),
        ({"scale": float("nan")}, ValueError, "scale"),
        ({"crop": (10, 20, 30)}, ValueError, "crop"),
        ({"crop": 4, "random_crop": 4}, ValueError, "random_crop"),
        ({"crop": 4000}, ValueError, "crop of 4000x4000"),
        ({"flip": 2.0}, ValueError, "flip"),
        ({"rotate": 400}, ValueError, "rotate"),
        ({"turns": "quarter"}, ValueError, "quarter turns"),
        ({"channels": [7]}, ValueError, "channel 7"),
        ({"channels": ["Nothing"]}, ValueError, "channels"),
        ({"channels": [-1]}, ValueError, "channels has -1, .* has 2 channels: .* counted from 0, and the last is 1"),
        ({"normalize": (0.5, 0)}, ValueError, "deviation"),
        ({"normalize": 3}, TypeError, "normalize"),
        ({"order": "random"}, ValueError, "order"),
        ({"order": "balanced"}, ValueError, "by"),
        ({"order": "grouped", "by": "nowhere"}, KeyError, "nowhere"),
        ({"weights": [1.0]}, ValueError, "weight was given"),
        ({"rows": [40]}, ValueError, "row 40"),
        ({"rows": [-41]}, ValueError, "rows.*at least -40"),
        ({"rows": [True] * 39}, IndexError, "39 truth values"),
        ({"batch_size": 2**70}, ValueError, "batch_size must be from 1 to"),
        ({"normalize": "Image"}, ValueError, 'give "image"'),
        ({"shard": "none"}, ValueError, '"auto", .* or False, not'),
        ({"scale": "device", "normalize": "image", "as_": "torch"}, ValueError, "normalize cannot be done before"),
        ({"rows": "all"}, TypeError, "rows"),
        ({"rank": 0}, ValueError, "world_size"),
        ({"rank": 2, "world_size": 2}, ValueError, "rank"),
        ({"memory": "much"}, ValueError, "memory"),
        ({"memory": "1KiB"}, ValueError, "memory|bytes"),
        ({"on_error": "ignore"}, ValueError, "on_error"),
        ({"labels": [1, 2]}, ValueError, r"labels .* not of shape \(2,\)"),
        ({"labels": iter([])}, ValueError, "labels .* not an iterator that was gone through before"),
        ({"weights": [1.0] * 40, "shuffle": True}, ValueError, "weights draw rows anew: leave shuffle out"),
        ({"shufle": True}, TypeError, r"DataLoader\(\) got an unexpected .* 'shufle': is it shuffle="),
        ({"qqqq": True}, TypeError, "unexpected keyword argument 'qqqq'$"),
        ({"collate_fn": list}, TypeError, "'collate_fn': .*batch_transform= takes each"),
        ({"prefetch_factor": 2}, TypeError, "'prefetch_factor': prefetch= is how many batches"),
        ({"crop_size": (96, 96)}, TypeError, "'crop_size': crop= is the size"),
        ({"access_pattern": "random"}, TypeError, "'access_pattern': shuffle=True, order="),
        ({"random_seed": 1}, TypeError, "'random_seed': seed= seeds"),
        ({"worker": 1}, TypeError, "'worker': num_workers= are the threads"),
        ({"mask": "a"}, TypeError, "'mask': targets= are masks"),
        ({"masks": "a"}, TypeError, "'masks': targets= are masks"),
        ({"return_index": True}, TypeError, "'return_index': indices=True delivers the row"),
        ({"target_transform": abs}, TypeError, "'target_transform': transform= takes each .image, target."),
        ({"cache": "none"}, TypeError, r"'cache': wellread.Dataset\(\) takes it: give Dataset\(path, cache=...\)"),
        ({"pattern": "{well}.tif"}, TypeError, r"'pattern': wellread.Dataset\(\) takes it"),
        ({"layout": "files"}, TypeError, r"'layout': wellread.Dataset\(\) takes it"),
        ({"labels": "nowhere"}, KeyError, "nowhere"),
        ({"columns": "well"}, TypeError, "columns"),
        ({"transform": 3}, TypeError, "transform"),
        ({"pin_memory": True}, ValueError, "pin_memory"),
        ({"dtype": "stored", "scale": "unit"}, ValueError, "scale"),
        ({"crops_per_image": 3, "batch_size": 4}, ValueError, "crops"),
        ({"prefetch": 0}, ValueError, "prefetch"),
    ):
        with pytest.raises(error, match=said):
            wr.DataLoader(ds, **choices)
    with pytest.raises(TypeError, match="dataset"):
        wr.DataLoader(3)
    with pytest.raises(FileNotFoundError):
        wr.DataLoader("/nowhere/at/all.parquet")


def test_rows_are_numbers_or_truth_values(parquet):
    ds = wr.Dataset(parquet)
    wanted = np.arange(40) % 9 == 4
    rows = np.flatnonzero(wanted).tolist()
    lists = [wanted.tolist(), list(wanted), rows, [row - 40 for row in rows]]
    for given in (wanted, np.array(rows), *lists, iter(wanted), iter(rows)):
        loader = wr.DataLoader(ds, 16, rows=given, indices=True)
        assert next(iter(loader))[1].tolist() == rows


def test_transforms_are_any_callable(parquet):
    def brighter(image):
        assert image.shape == (2, 48, 56)
        return image[:1] + 1

    loader = wr.DataLoader(parquet, 8, transform=brighter, batch_transform=lambda batch: batch * 2)
    want = wr.Dataset(parquet)[:8][:, :1].astype(np.float32) * U16
    assert np.allclose(next(iter(loader)), (want + 1) * 2)

    def broken(image):
        raise ZeroDivisionError("the user's own")

    with pytest.raises(ZeroDivisionError, match="own"):
        next(iter(wr.DataLoader(parquet, 8, transform=broken)))


def test_a_stop_of_a_transform_does_not_end_the_epoch(parquet):
    def stop(image):
        return next(iter([]))

    for name in ("transform", "batch_transform"):
        with pytest.raises(RuntimeError, match=f"^{name} raised StopIteration$") as raised:
            list(wr.DataLoader(parquet, 8, **{name: stop}))
        assert isinstance(raised.value.__cause__, StopIteration)


@pytest.mark.parametrize("as_", ["numpy", "torch", "jax"])
def test_what_a_transform_returns_is_checked(parquet, as_):
    loader = functools.partial(wr.DataLoader, parquet, 4, as_=as_, rows=[7, 3, 5, 1])
    expected = {"numpy": "an array of numbers", "torch": "a torch.Tensor", "jax": "a jax.Array"}[as_]
    for wrong, said in (
        (lambda image: None, "None"),
        (lambda image: {"image": image}, "dict"),
        (lambda image: (image, 1), "tuple"),
        (lambda image: "text", "str"),
        (lambda image: np.array([None]), "ndarray of dtype object"),
    ):
        with pytest.raises(TypeError, match=f"transform returned {said} for row 7, and must return {expected}"):
            next(iter(loader(transform=wrong)))
    heights = iter([5, 5, 6, 5])
    with pytest.raises(ValueError, match=r"transform .*\(2, 6, 56\) for row 5 and \(2, 5, 56\) for row 7.*crop"):
        next(iter(loader(transform=lambda image: image[:, : next(heights)])))
    with pytest.raises(TypeError, match="batch_transform returned None"):
        next(iter(loader(batch_transform=lambda batch: None)))
    # A number is an array too, and a batch may become anything.
    means = next(iter(loader(transform=lambda image: image.mean(), batch_transform=lambda batch: {"mean": batch})))
    assert means["mean"].shape == (4,)


def test_many_epochs_do_not_grow(parquet):
    def resident():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096

    loader = wr.DataLoader(parquet, 4, shuffle=True, num_workers=2, labels=list(range(40)))

    def epochs(n):
        for _ in range(n):
            for pixels, _labels in loader:
                pixels[0, 0, 0, 0] = 1

    epochs(10)
    grown = []
    for _ in range(5):
        before = resident()
        epochs(50)
        grown.append(resident() - before)
        # An epoch is 0.8 MB of pixels, so one that stayed would be 40 MB, each time. Other libraries of this process
        # may take memory too, but not each time.
        if grown[-1] < 8 << 20:
            break
    else:
        raise AssertionError(grown)


def test_threads_of_python_run_while_it_waits(parquet):
    loader = wr.DataLoader(parquet, 8, num_workers=1)
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    # On a busy machine a thread may have to wait long until it runs at all.
    end = time.monotonic() + 120
    for epoch in itertools.count():
        for _batch in loader:
            pass
        if epoch >= 20 and (counted[0] > 0 or time.monotonic() > end):
            break
    done.set()
    thread.join()
    assert counted[0] > 0


def test_two_threads_may_share_an_iteration(parquet):
    iterator = iter(wr.DataLoader(parquet, 1, num_workers=2, dtype="stored"))
    seen = []

    def take():
        for batch in iterator:
            seen.append(int(batch.sum()))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == sorted(int(image.sum()) for image in wr.Dataset(parquet)[:])


@pytest.mark.parametrize("name", ["duckdb", "lance", "parquet"])
def test_a_file_that_breaks_is_a_corrupt_image(cells, tmp_path, name):
    """Engines that read many rows at once do not say which they could not; the loader finds out."""
    import pathlib
    import shutil

    source = pathlib.Path(cells[name])
    copy = tmp_path / source.name
    shutil.copytree(source, copy) if source.is_dir() else shutil.copy(source, copy)
    files = [path for path in ([copy] if copy.is_file() else copy.rglob("*")) if path.is_file()]
    largest = max(files, key=lambda path: path.stat().st_size)
    with largest.open("r+b") as file:
        size = largest.stat().st_size
        file.seek(size // 4)
        file.write(b"\0" * (size // 4))
    try:
        ds = wr.Dataset(copy)
    except wr.Error:
        return
    errors = []
    for row in range(len(ds)):
        try:
            for _ in wr.DataLoader(ds, 1, rows=[row]):
                pass
        except wr.ChoiceError as error:
            raise AssertionError("a broken file is no wrong choice") from error
        except wr.CorruptImageError as error:
            errors.append(error)
            assert error.row == row
    assert errors
