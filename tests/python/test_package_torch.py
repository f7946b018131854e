"""The package under torch: its own DataLoader in every start method, tensors, workers, pinned memory's mechanism."""

import datetime
import decimal
import gc
import pickle
import sys
import time
import warnings
import weakref

import numpy as np
import pyarrow as pa
import pytest
import torch
import wellread as wr
import wellread.torch
from wellread import _device


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "stored"])
def test_tensors_are_the_loaders_memory(parquet, dtype):
    images = wr.Dataset(parquet)[:8]
    batch = next(iter(wr.DataLoader(parquet, 8, as_="batch", dtype=dtype)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tensor = torch.from_dlpack(batch)
        loaded = next(iter(wr.DataLoader(parquet, 8, as_="torch", dtype=dtype)))
        assert tensor.data_ptr() == batch.address and loaded.data_ptr() % 64 == 0
        assert torch.equal(loaded.float(), tensor.float()) and loaded.is_contiguous()
        if dtype == "stored":
            assert loaded.dtype == torch.uint16
            assert np.array_equal(loaded.numpy(), images)
        else:
            assert loaded.dtype == getattr(torch, dtype)
            want = torch.from_numpy(images.astype(np.float32) * np.float32(1 / 65535))
            assert torch.allclose(loaded.float(), want, atol=4e-3)
            loaded.mul_(2).add_(1)
            assert torch.allclose(loaded.float(), want * 2 + 1, atol=2e-2)


@pytest.mark.parametrize("workers", [0, 2])
def test_tensors_alone_come_as_those_with_labels(parquet, workers):
    """Tensors alone are made by the native iteration, those with labels by the package."""
    choices = {"shuffle": True, "seed": 3, "num_workers": workers, "as_": "torch"}
    alone = wr.DataLoader(parquet, 7, **choices)
    beside = wr.DataLoader(parquet, 7, labels=range(40), **choices)
    iterators = iter(alone), iter(beside)
    for tensor, (pixels, _labels) in zip(*iterators, strict=True):
        assert torch.equal(tensor, pixels) and tensor.shape == pixels.shape
        assert alone.state_dict() == beside.state_dict()
    for iterator in iterators * 2:
        with pytest.raises(StopIteration):
            next(iterator)
    assert alone.state_dict()["epoch"] == beside.state_dict()["epoch"] == 1
    kept, wanted = list(alone), [pixels.clone() for pixels, _labels in beside]
    del alone, beside, iterators
    assert all(torch.equal(a, b) for a, b in zip(kept, wanted, strict=True))
    assert len({tensor.data_ptr() for tensor in kept}) == len(kept)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_damaged_image_raises_in_its_place_among_tensors(cells, tmp_path, workers):
    import shutil

    folder = tmp_path / "tiff"
    shutil.copytree(cells["tiff"], folder)
    damaged = sorted(folder.iterdir())[7]
    damaged.write_bytes(damaged.read_bytes()[:-500])
    iterator = iter(wr.DataLoader(folder, 4, num_workers=workers, as_="torch"))
    assert len(next(iterator)) == 4
    with pytest.raises(wr.CorruptImageError, match="row 7"):
        next(iterator)
    assert [len(batch) for batch in iterator] == [4] * 8


def test_bright_uint16_is_never_negative(tmp_path):
    import tifffile

    bright = np.array([[0, 1, 32767, 32768, 65535]], np.uint16)
    tifffile.imwrite(tmp_path / "a.tif", bright)
    default = wellread.torch.Dataset(tmp_path)[0]
    assert default.dtype == torch.float32 and default.tolist() == [bright.tolist()]
    for dtype in ("stored", "int32", "int64", "float32"):
        assert wellread.torch.Dataset(tmp_path, dtype=dtype)[0].tolist() == [bright.tolist()]
    assert next(iter(wr.DataLoader(tmp_path, as_="torch", dtype="stored"))).tolist() == [[bright.tolist()]]
    assert next(iter(wr.DataLoader(tmp_path, as_="torch", scale=None))).tolist() == [[bright.tolist()]]
    with pytest.raises(ValueError, match="cannot hold every value of uint16"):
        wellread.torch.Dataset(tmp_path, dtype="uint8")


def test_scaling_after_the_transfer_is_scaling_before(parquet):
    before = list(wr.DataLoader(parquet, 16, as_="torch"))
    after = list(wr.DataLoader(parquet, 16, as_="torch", scale="device", device="cpu"))
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


# One format of each kind. Processes that import torch take seconds to start: those that are not forked read all.
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_torchs_own_loader_works_unchanged(cells, method):
    datasets, wanted, busy = [], [], []
    for path in cells.values():
        dataset = wellread.torch.Dataset(path, labels=list(range(40)))
        # The parent has read, in this thread and in those of a loader that is under way.
        busy.append(iter(wr.DataLoader(path, 4, num_workers=2)))
        next(busy[-1])
        assert dataset[3][0].dtype == torch.float32
        assert wellread.torch.Dataset(path, dtype="stored")[3].dtype == torch.uint16
        datasets.append(dataset)
        wanted.append(wr.Dataset(path)[:].astype(np.float32))
    if method == "fork":
        sets = list(zip(cells, datasets, wanted, strict=True))
        ways = [(0, None), (2, None), (2, wellread.torch.collate)]
    else:
        sets = [("all", torch.utils.data.ConcatDataset(datasets), np.concatenate(wanted))]
        ways = [(2, None)]
    for name, dataset, want in sets:
        for workers, collate in ways:
            loader = torch.utils.data.DataLoader(
                dataset,
                batch_size=8,
                num_workers=workers,
                multiprocessing_context=method if workers else None,
                collate_fn=collate,
                # For workers that hang: importing torch takes a busy machine a minute.
                timeout=600 if workers else 0,
            )
            batches = list(loader)
            assert np.array_equal(torch.cat([pixels for pixels, _ in batches]).numpy(), want), name
            assert torch.cat([labels for _, labels in batches]).tolist() == [*range(40)] * (len(want) // 40), name


def test_workers_drop_the_loaders_of_their_parent(cells):
    """Their threads have ended in the parent; the workers ended by a segmentation fault when they dropped them."""
    for name, path in cells.items():
        for cache in ["none", "preload"]:
            loaders = [wr.DataLoader(wr.Dataset(path, cache=cache), 4, num_workers=2) for _ in range(12)]
            for loader in loaders:
                assert sum(len(batch) for batch in loader) == 40
            # Longer than a thread waits for work; what a slow machine still has is dropped all the same.
            time.sleep(0.3)
            workers = torch.utils.data.DataLoader(
                wellread.torch.Dataset(path),
                batch_size=4,
                num_workers=3,
                multiprocessing_context="fork",
                collate_fn=wellread.torch.collate,
                worker_init_fn=lambda _worker, loaders=loaders: (loaders.clear(), gc.collect()),
                timeout=600,
            )
            assert sum(len(batch) for batch in workers) == 40, name
            assert len(loaders) == 12


def test_items_of_one_request_are_one_tensor(parquet):
    dataset = wellread.torch.Dataset(parquet)
    items = dataset.__getitems__([4, 2, 2])
    whole = wellread.torch.collate(items)
    assert whole.shape == (3, 2, 48, 56) and whole.data_ptr() == items[0].data_ptr()
    assert torch.equal(whole, torch.utils.data.default_collate(list(items)))
    plain = wellread.torch.collate([torch.zeros(2), torch.ones(2)])
    assert plain.shape == (2, 2)
    labelled = wellread.torch.Dataset(
        parquet, labels=np.arange(40) * 2, dtype=torch.float32, transform=lambda t: t[0]
    )
    pixels, label = labelled[-1]
    assert pixels.shape == (48, 56) and pixels.dtype == torch.float32 and label == 78
    with pytest.raises(IndexError):
        dataset[40]


@pytest.mark.parametrize("labels", [None, range(40), ["a", "b"] * 20])
def test_items_that_a_subclass_changes_are_those_of_the_batch(parquet, labels):
    class Changed(wellread.torch.Dataset):
        def __getitems__(self, indices):
            items = super().__getitems__(indices)
            for i, item in enumerate(items):
                items[i] = item * 0 - 1 if labels is None else (item[0] * 0 - 1, item[1])
            items.reverse()
            return items

    class Fewer(wellread.torch.Dataset):
        def __getitems__(self, indices):
            items = super().__getitems__(indices)
            del items[1:]
            return items

    choices = {"batch_size": 8, "collate_fn": wellread.torch.collate}
    for batch in torch.utils.data.DataLoader(Changed(parquet, labels=labels), **choices):
        pixels = batch if labels is None else batch[0]
        assert pixels.shape == (8, 2, 48, 56) and bool((pixels == -1).all())
    if labels is not None:
        assert list(batch[1]) == list(labels)[:31:-1]
    for batch in torch.utils.data.DataLoader(Fewer(parquet, labels=labels), **choices):
        assert len(batch if labels is None else batch[0]) == 1


def test_labels_that_torch_has_no_type_for_are_lists(parquet):
    start, day = datetime.datetime(2020, 1, 1, 12), datetime.timedelta(days=1)
    times = [None if i == 1 else start + i * day for i in range(40)]
    columns = {
        "when": pa.array(times, pa.timestamp("us")),
        "exact": pa.array(times, pa.timestamp("ns")),
        "day": pa.array([time and time.date() for time in times], pa.date32()),
        "took": pa.array([i * day for i in range(40)], pa.duration("us")),
        "live": pa.array([None if i == 1 else i % 2 == 0 for i in range(40)]),
        "well": pa.array([None if i == 0 else f"A{i}" for i in range(40)]),
    }
    ds = wr.Dataset(parquet).with_columns(pa.table(columns))
    for name, column in columns.items():
        wanted = times if name == "exact" else column.to_pylist()
        alike = wellread.torch.Dataset(ds, labels=name)
        image, label = alike[3]
        assert image.shape == (2, 48, 56) and label == wanted[3] and type(label) is type(wanted[3])
        # Also images that were not read as one tensor.
        each = wellread.torch.Dataset(ds, labels=name, transform=lambda image: image)
        for dataset in (alike, each, torch.utils.data.ConcatDataset([alike])):
            loader = torch.utils.data.DataLoader(dataset, batch_size=20, collate_fn=wellread.torch.collate)
            (pixels, first), (_, second) = loader
            assert pixels.shape == (20, 2, 48, 56) and first == wanted[:20] and list(second) == wanted[20:]
            # A batch without a missing value is of the same kind, where the dataset makes it.
            assert dataset not in (alike, each) or type(second) is list
    given = np.array([f"2020-01-{1 + i % 28:02}" for i in range(40)], "M8[ns]")
    assert wellread.torch.Dataset(ds, labels=given)[2][1] == datetime.datetime(2020, 1, 3)
    # Of classes, labels are numbers; numbers are tensors as before.
    classes = wellread.torch.Dataset(ds.filter(when=times[4:8]), labels="when", classes=True)
    assert wellread.torch.collate(classes.__getitems__([3, 0]))[1].tolist() == [3, 0]
    assert wellread.torch.collate([(torch.zeros(2), 4), (torch.ones(2), 5)])[1].tolist() == [4, 5]


def test_labels_some_of_which_are_missing_are_those_of_a_loader(parquet):
    pd = pytest.importorskip("pandas")
    whole = [row % 3 for row in range(40)]
    texts = [f"A{row}" for row in range(40)]

    def without(values, missing, row):
        return [missing if i == row else value for i, value in enumerate(values)]

    for labels in (
        pd.Series(without(whole, None, 0), dtype="Int64"),
        pd.Series(without(whole, None, 0), dtype="Float64"),
        pd.Series([None, *[True, False] * 19, True], dtype="boolean"),
        pd.Series(without(texts, None, 0), dtype="string"),
        pd.Series(without(texts, np.nan, 0), dtype=object),
        pd.Series(without(texts, np.nan, 25), dtype=object),
        pd.Series(without(texts, None, 0)).astype("category"),
        without(texts, None, 0),
        without(texts, pd.NA, 25),
        without(whole, None, 25),
        without(whole, pd.NA, 0),
    ):
        dataset = wellread.torch.Dataset(parquet, labels=labels)
        loader = torch.utils.data.DataLoader(dataset, batch_size=20, collate_fn=wellread.torch.collate)
        for (pixels, found), (_, wanted) in zip(loader, wr.torch.DataLoader(parquet, 20, labels=labels), strict=True):
            assert pixels.shape == (20, 2, 48, 56) and type(found) is type(wanted)
            # A missing value is unlike itself, so texts are compared.
            assert list(map(str, found)) == list(map(str, wanted))
    # Numbers with NaN are a tensor, and texts with NaN in a list are refused, as a loader does.
    numbers = wellread.torch.Dataset(parquet, labels=without(list(map(float, whole)), np.nan, 0))
    assert wellread.torch.collate(numbers.__getitems__([0, 1]))[1].isnan().tolist() == [True, False]
    for make in (wellread.torch.Dataset, wr.torch.DataLoader):
        with pytest.raises(ValueError, match=r"labels mix str and float \(rows 0 and 25\)"):
            make(parquet, labels=without(texts, np.nan, 25))


def test_labels_of_arrow_in_chunks_are_those_of_one_array(parquet):
    for values in (list(range(40)), [f"A{row}" for row in range(40)], [None, *range(39)]):
        labels = pa.chunked_array([values[:7], values[7:]])
        dataset = wellread.torch.Dataset(parquet, labels=labels)
        assert [dataset[row][1] for row in (0, 6, 7, 39)] == [values[row] for row in (0, 6, 7, 39)]
        loader = torch.utils.data.DataLoader(dataset, batch_size=20, collate_fn=wellread.torch.collate)
        alike = wellread.torch.Dataset(parquet, labels=labels.combine_chunks())
        for (_, found), at in zip(loader, (0, 20), strict=True):
            wanted = wellread.torch.collate(alike.__getitems__(range(at, at + 20)))[1]
            assert type(found) is type(wanted) and list(found) == list(wanted) == values[at : at + 20]


@pytest.mark.parametrize("transform", [None, lambda image: image], ids=["whole", "each"])
def test_numbers_that_torch_makes_no_tensor_of_are_lists(parquet, transform):
    ds = wr.Dataset(parquet).select(range(4))
    column = ds.with_columns(pa.table({"id": pa.array([1, 2**63, 2**64 - 1, 0], pa.uint64())}))
    beyond = [1, 2**63, 2**64 - 1, 0]
    for images, labels, wanted in (
        (column, "id", beyond),
        (ds, np.array(beyond, "uint64"), beyond),
        (ds, [1, 2**64, -(2**63) - 1, 0], [1, 2**64, -(2**63) - 1, 0]),
        (ds, np.array([[1, 2], [3, 2**63], [1, 1], [0, 0]], "uint64"), [[1, 2], [3, 2**63], [1, 1], [0, 0]]),
        (ds, np.array([1j, 2, 3, 4]), [1j, 2, 3, 4]),
        (ds, torch.tensor([1j, 2, 3, 4]), [1j, 2, 3, 4]),
        (ds, list(map(decimal.Decimal, "1234")), list(map(decimal.Decimal, "1234"))),
        (ds, pa.array(list(map(decimal.Decimal, "1234"))), list(map(decimal.Decimal, "1234"))),
    ):
        dataset = wellread.torch.Dataset(images, labels=labels, transform=transform)
        assert [label for _, label in dataset] == wanted
        loader = torch.utils.data.DataLoader(dataset, batch_size=2, collate_fn=wellread.torch.collate)
        # A list also where a batch has small numbers alone.
        batches = [found for _, found in loader]
        assert batches == [wanted[:2], wanted[2:]] and type(batches[0]) is list
    small = wellread.torch.Dataset(ds, labels=np.array([1, 2, 3, 2**63 - 1], "uint64"), transform=transform)
    labels = wellread.torch.collate(small.__getitems__([0, 3]))[1]
    assert labels.dtype == torch.int64 and labels.tolist() == [1, 2**63 - 1]
    # By themselves, without the dataset that they are of.
    pairs = [(torch.zeros(2), 2**63), (torch.ones(2), 5)]
    assert wellread.torch.collate(pairs)[1] == [2**63, 5]


def test_labels_of_many_numbers_are_not_looked_at_one_by_one(parquet, monkeypatch):
    looked_at = []
    monkeypatch.setattr(wellread.torch._tensors, "makes_none", looked_at.append)
    for dtype in ("float32", "int64", "uint8", "bool"):
        values = (np.arange(80).reshape(40, 2) % 3).astype(dtype)
        for labels in (values, torch.from_numpy(values)):
            dataset = wellread.torch.Dataset(parquet, labels=labels)
            assert torch.equal(dataset[5][1], torch.from_numpy(values[5]))
            pixels, of_batch = dataset.__getitems__([5, 3]).whole
            assert pixels.shape == (2, 2, 48, 56) and torch.equal(of_batch, torch.from_numpy(values[[5, 3]]))
    # Of classes, the numbers count, whatever labels are.
    days = [datetime.date(2020, 1, 1 + i % 2) for i in range(40)]
    classes = wellread.torch.Dataset(parquet, labels=days, classes=True)
    assert wellread.torch.collate(classes.__getitems__([3, 0]))[1].tolist() == [1, 0]
    assert looked_at == []
    wellread.torch.Dataset(parquet, labels=days)
    assert looked_at == days


@pytest.mark.parametrize("transform", [None, lambda image: image], ids=["whole", "each"])
@pytest.mark.parametrize("collate", [wellread.torch.collate, None], ids=["collate", "torch's own"])
def test_labels_of_several_numbers_are_one_tensor_of_their_type(parquet, transform, collate):
    for dtype in ("float32", "float64", "int64", "uint8", ">f4", "bool"):
        values = (np.arange(120).reshape(40, 3) % 2).astype(dtype)
        dataset = wellread.torch.Dataset(parquet, labels=values, transform=transform)
        wanted = torch.from_numpy(values.astype(values.dtype.newbyteorder("=")))
        values[:] = 9
        _, label = dataset[7]
        assert label.dtype == wanted.dtype and torch.equal(label, wanted[7])
        # An item is the caller's own.
        label.zero_()
        batches = list(torch.utils.data.DataLoader(dataset, batch_size=16, collate_fn=collate))
        assert [tuple(found.shape) for _, found in batches] == [(16, 3), (16, 3), (8, 3)]
        assert torch.equal(torch.cat([found for _, found in batches]), wanted)
    # One number per row keeps its type too.
    values = np.arange(40, dtype="float32") / 3
    dataset = wellread.torch.Dataset(parquet, labels=values, transform=transform)
    (_, first), *_ = torch.utils.data.DataLoader(dataset, batch_size=16, collate_fn=collate)
    assert first.dtype == torch.float32 and first.tolist() == values[:16].tolist()
    assert dataset[4][1] == values[4]


@pytest.mark.parametrize("batch_size", [None, 6])
def test_iterable_shares_deliver_everything_once(parquet, batch_size):
    dataset = wellread.torch.IterableDataset(parquet, batch_size=batch_size, shuffle=True, seed=4, flip=True)
    alone = [item.clone() for item in torch.utils.data.DataLoader(dataset, batch_size=None)]
    assert sum(1 if batch_size is None else len(item) for item in alone) == 40
    dataset.set_epoch(0)
    workers = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=3, multiprocessing_context="fork")
    shared = list(workers)
    # To the bit, and in the same order.
    assert len(shared) == len(alone) and all(torch.equal(a, b) for a, b in zip(shared, alone, strict=True))


@pytest.mark.parametrize(
    "choices",
    [
        {"weights": [1.0] * 40, "images_per_epoch": 80},
        {"order": "balanced", "by": [i % 3 for i in range(40)]},
        {"rows": [3, 3, 3, 5] * 7},
        {"shuffle": True, "rank": 2, "world_size": 3, "uneven": "pad"},
        {"shuffle": True, "crops_per_image": 2, "random_crop": 30},
    ],
    ids=["weighted", "balanced", "repeated", "padded", "crops"],
)
def test_workers_take_turns_with_the_batches_of_one(parquet, choices):
    """To the bit: rows that come more than once have draws of their own each time."""
    dataset = wellread.torch.IterableDataset(parquet, batch_size=6, seed=4, flip=True, labels=range(40), **choices)
    for epoch in range(2):
        dataset.set_epoch(epoch)
        alone = [[part.clone() for part in batch] for batch in torch.utils.data.DataLoader(dataset, batch_size=None)]
        assert len(alone) == len(dataset)
        for workers in (3, 16):
            dataset.set_epoch(epoch)
            loader = torch.utils.data.DataLoader(
                dataset, batch_size=None, num_workers=workers, multiprocessing_context="fork"
            )
            for (pixels, labels), (others, theirs) in zip(alone, loader, strict=True):
                assert torch.equal(pixels, others) and torch.equal(labels, theirs)


def tell_in_stderr(worker):
    """In a worker process: a forked one would keep its warnings for pytest."""
    warnings.simplefilter("always")
    warnings.showwarning = lambda message, *_: print(message, file=sys.stderr, flush=True)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_single_images_of_several_workers_are_warned_of_once(parquet, method, capfd):
    """torch's loader makes each batch of the images of one worker, which is not told how many."""
    warning = "makes each batch of the single images of one of 2 workers"
    loaded = torch.utils.data.DataLoader
    # In two epochs.
    cases = [(2, 4, True, 1)]
    if method == "fork":
        cases += [(2, None, True, 0), (2, None, False, 0), (1, 4, True, 0), (0, 4, True, 0)]
    for workers, batch_size, single, told in cases:
        dataset = wellread.torch.IterableDataset(parquet, batch_size=None if single else 4, indices=True)
        context = method if workers else None
        choices = {"multiprocessing_context": context, "worker_init_fn": tell_in_stderr if workers else None}
        loader = loaded(dataset, batch_size=batch_size, num_workers=workers, **choices)
        rows = [[int(row) for row in torch.as_tensor(batch[1]).flatten()] for _ in range(2) for batch in loader]
        said = capfd.readouterr().err
        assert said.count(warning) == told and ("batch_size=None to torch's DataLoader" in said) == bool(told)
        if told:
            assert rows[:2] == [[0, 2, 4, 6], [1, 3, 5, 7]]
        else:
            assert sum(rows, []) == [*range(40)] * 2


def test_single_images_of_several_workers_keep_no_shares(parquet):
    classes = [i % 2 for i in range(40)]
    dataset = wellread.torch.IterableDataset(parquet, labels=classes, order="balanced", by=classes)
    message = 'order="balanced" holds for batches of one process.* one of 2 workers: give batch_size=N to '
    with pytest.raises(wr.ChoiceError, match=message):
        list(torch.utils.data.DataLoader(dataset, batch_size=4, num_workers=2, multiprocessing_context="fork"))
    # One by one, and of one worker, they come as they are.
    for workers, batch_size in ((2, None), (1, 4), (0, 4)):
        dataset.set_epoch(0)
        loader = torch.utils.data.DataLoader(dataset, batch_size=batch_size, num_workers=workers)
        labels = torch.cat([torch.as_tensor(labels).flatten() for _, labels in loader]).tolist()
        dataset.set_epoch(0)
        assert labels == [int(label) for _, label in dataset]


class HandedOn(torch.utils.data.IterableDataset):
    """A dataset of somebody else around one, whose callers know nothing of it."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __iter__(self):
        yield from self.dataset


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("order", ["weighted", "balanced"])
def test_single_images_whose_batches_may_keep_shares_are_warned_of(parquet, order, wrapped, capfd):
    """Each position of a weighted order is drawn by itself; and another caller may make no batches."""
    by = {"by": [i % 2 for i in range(40)]} if order == "balanced" else {"weights": [0.0, 1.0, 3.0, 0.0] * 10}
    dataset = wellread.torch.IterableDataset(parquet, indices=True, seed=4, order=order, **by)
    rows = [int(row) for _, row in dataset]
    dataset.set_epoch(0)
    loader = torch.utils.data.DataLoader(
        HandedOn(dataset) if wrapped else dataset,
        batch_size=4,
        num_workers=2,
        multiprocessing_context="fork",
        worker_init_fn=tell_in_stderr,
    )
    if order == "balanced" and not wrapped:
        with pytest.raises(wr.ChoiceError, match='order="balanced" holds for batches of one process'):
            list(loader)
        return
    batches = [batch.tolist() for _, batch in loader]
    # Those of one worker and of the other in turn: the first has every second image of the order.
    assert batches == [rows[8 * (i // 2) + i % 2 :][:8:2] for i in range(10)]
    assert capfd.readouterr().err.count("makes each batch of the single images of one of 2 workers") == 1


def test_single_images_keep_the_parts_of_a_list(parquet):
    """A list of parts is as good as a tuple of them. In a part, a list has one value per image."""
    choices = {"labels": [f"A{i}" for i in range(40)], "indices": True}
    wanted = [batch[0] for batch, *_ in wr.DataLoader(parquet, as_="torch", **choices)]

    def add(batch):
        return [batch[0] * 2, *batch[1:], b"raw", [], np.zeros((0, 3)), {"of": (batch[2], [7])}]

    items = list(wellread.torch.IterableDataset(parquet, batch_transform=add, **choices))
    assert len(items) == 40
    for row, (image, label, index, raw, empty, nothing, inner) in enumerate(items):
        assert torch.equal(image, wanted[row] * 2) and (label, int(index)) == (f"A{row}", row)
        assert (raw, empty, nothing.shape) == (b"raw", [], (0, 3))
        assert int(inner["of"][0]) == row and inner["of"][1] == 7
    assert type(items[0]) is list
    for alone in ("text", b"raw"):
        assert next(iter(wellread.torch.IterableDataset(parquet, batch_transform=lambda _, a=alone: a))) == alone


def test_single_images_keep_what_a_batch_transform_adds(parquet):
    def add(batch):
        return {"image": batch, "share": 0.25, "text": "beta", "seed": torch.tensor(7)}

    item = next(iter(wellread.torch.IterableDataset(parquet, batch_transform=add)))
    assert item["image"].shape == (2, 48, 56)
    assert (item["share"], item["text"], int(item["seed"])) == (0.25, "beta", 7)


def rows_of(dataset, **choices):
    """The rows of an epoch of torch's loader, in their order."""
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, **choices)
    return torch.cat([rows for _, rows in loader]).tolist()


def stream(path, **choices):
    return wellread.torch.IterableDataset(path, batch_size=6, shuffle=True, seed=4, indices=True, **choices)


@pytest.mark.parametrize(
    ("workers", "method"), [(0, None), (1, "fork"), (2, "fork"), (2, "spawn"), (1, "forkserver")]
)
def test_each_iteration_of_torchs_loader_runs_the_next_epoch(parquet, workers, method):
    """Also where its workers are made anew each time, as copies of a dataset that has seen no epoch."""
    want = [rows_of(stream(parquet, epoch=epoch)) for epoch in range(4)]
    assert len({tuple(rows) for rows in want}) == 4
    choices = {"num_workers": workers, "multiprocessing_context": method, "timeout": 600 if workers else 0}
    dataset = stream(parquet)
    assert [rows_of(dataset, **choices) for _ in range(2)] == want[:2]
    assert (dataset.state_dict()["epoch"], dataset.state_dict()["position"]) == (2, 0)
    # Another start, and where that was left.
    dataset.set_epoch(0)
    assert rows_of(dataset, **choices) == want[0]
    halfway = stream(parquet)
    halfway.set_epoch(2)
    next(iter(halfway))
    if workers < 2:
        dataset.load_state_dict(halfway.state_dict())
        assert [rows_of(dataset, **choices) for _ in range(2)] == [want[2][6:], want[3]]
    if not workers:
        return
    # Workers that persist, also where the parent says which epoch is next.
    loader = torch.utils.data.DataLoader(stream(parquet), batch_size=None, persistent_workers=True, **choices)
    epochs = [torch.cat([rows for _, rows in loader]).tolist() for _ in range(2)]
    loader.dataset.set_epoch(3)
    assert [*epochs, torch.cat([rows for _, rows in loader]).tolist()] == [*want[:2], want[3]]


def test_epochs_are_counted_by_each_iteration_that_was_begun(parquet):
    want = [rows_of(stream(parquet, epoch=epoch)) for epoch in range(4)]
    dataset = stream(parquet)
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork")
    # The same seed each time: torch gives its workers the same one.
    torch.manual_seed(1)
    assert next(iter(loader))[1].tolist() == want[0][:6]
    torch.manual_seed(1)
    # Two at once: each is one epoch.
    both = list(zip(loader, loader, strict=True))
    found = [torch.cat([pair[side][1] for pair in both]).tolist() for side in (0, 1)]
    assert sorted(found) == sorted(want[1:3])
    # A copy counts on its own.
    copied = pickle.loads(pickle.dumps(dataset))
    assert rows_of(copied) == want[3] and rows_of(dataset) == want[3]


@pytest.mark.parametrize("persist", [False, True])
def test_a_state_taken_while_workers_deliver_is_of_their_epoch(parquet, persist):
    """It was that of the next one: what was left of the epoch was skipped."""
    want = [rows_of(stream(parquet, epoch=epoch)) for epoch in range(3)]
    choices = {"num_workers": 2, "multiprocessing_context": "fork", "prefetch_factor": 1}
    dataset = stream(parquet)
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, persistent_workers=persist, **choices)
    for epoch in range(2):
        iterator = iter(loader)
        rows = next(iterator)[1].tolist()
        # Of seven batches the workers are asked for three by now.
        state = dataset.state_dict()
        assert (state["epoch"], state["position"]) == (epoch, 0)
        resumed = stream(parquet)
        resumed.load_state_dict(state)
        assert rows_of(resumed) == want[epoch]
        for _, more in iterator:
            rows += more.tolist()
        assert rows == want[epoch]
        state = dataset.state_dict()
        assert (state["epoch"], state["position"]) == (epoch + 1, 0)
    # What is said to it, and what it iterates itself, count from then on.
    dataset.set_epoch(1)
    assert dataset.state_dict()["epoch"] == 1
    assert next(iter(dataset))[1].tolist() == want[1][:6]
    assert (dataset.state_dict()["epoch"], dataset.state_dict()["position"]) == (1, 6)


def test_a_state_that_workers_go_on_from_is_kept_while_they_do(parquet):
    halfway = stream(parquet)
    next(iter(halfway))
    state = halfway.state_dict()
    dataset = stream(parquet)
    dataset.load_state_dict(state)
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=None, num_workers=1, multiprocessing_context="fork", prefetch_factor=1
    )
    iterator = iter(loader)
    assert next(iterator)[1].tolist() == rows_of(stream(parquet))[6:12]
    assert dataset.state_dict() == state and state["position"] == 6
    del iterator


def test_an_iterable_dataset_goes_on_from_its_state(parquet):
    def dataset(**choices):
        return wellread.torch.IterableDataset(parquet, batch_size=6, shuffle=True, flip=True, **choices)

    whole = dataset()
    assert whole.state_dict()["position"] == 0
    first, second = list(whole), list(whole)
    stopped = dataset()
    iterator = iter(stopped)
    for done, want in enumerate(first, 1):
        assert torch.equal(next(iterator), want)
        state = stopped.state_dict()
        assert (state["epoch"], state["position"]) == (0, min(6 * done, 40))
        resumed = dataset()
        resumed.load_state_dict(state)
        assert resumed.state_dict() == state
        for epoch in (first[done:], second):
            assert all(torch.equal(a, b) for a, b in zip(epoch, resumed, strict=True))
    assert next(iterator, None) is None and stopped.state_dict()["epoch"] == 1
    resumed.load_state_dict(state)
    resumed.set_epoch(1)
    assert torch.equal(next(iter(resumed)), second[0])
    for wrong, kind in (([], TypeError), ({}, ValueError), (state | {"position": -1}, ValueError)):
        with pytest.raises(kind):
            resumed.load_state_dict(wrong)
    resumed = dataset(seed=9)
    resumed.load_state_dict(state)
    with pytest.raises(ValueError, match="saved with seed 0"):
        next(iter(resumed))


def test_memory_that_torch_lends_is_decoded_into(parquet):
    """The mechanism behind pin_memory, with memory that is not page-locked."""
    made = set()

    def allocate(nbytes):
        memory = torch.full((nbytes,), 7, dtype=torch.uint8)
        made.add(memory.untyped_storage().data_ptr())
        return memory

    def check(got, want):
        assert torch.equal(got[0], want[0]) and torch.equal(got[1], want[1])
        assert got[0].untyped_storage().data_ptr() in made

    for workers, dtype in ((0, "float32"), (2, "stored"), (3, "bfloat16")):
        choices = {"as_": "torch", "dtype": dtype, "labels": list(range(40)), "num_workers": workers}
        want = list(wr.DataLoader(parquet, 6, **choices))
        loader = wr.DataLoader(parquet, 6, **choices)
        loader._lender = _device.Lender(allocate)
        native = wr._native.Loader(loader.dataset._native, loader._choices | {"lent": loader._lender.native})
        loader._made = {(0, 1): native}
        for _ in range(3):
            kept = list(loader)
            for got, wanted in zip(kept, want, strict=True):
                check(got, wanted)
            # Left early: what was lent and not delivered goes back.
            for got in loader:
                check(got, want[0])
                break
            # Two at once, which share what is lent.
            for pair in zip(loader, loader, strict=True):
                check(pair[0], pair[1])
            for got, wanted in zip(kept, want, strict=True):
                check(got, wanted)
        assert not loader._lender._lent


def test_memory_that_is_lent_is_taken_for_batches_of_its_size_alone(parquet):
    """A larger batch in memory of a smaller one would be written behind its end."""
    lent = wr._native.Lent()
    for address, nbytes in ((64, 100), (128, 200), (192, 100)):
        lent.lend(address, nbytes)
    assert lent.withdraw(9, 300) == [] and lent.withdraw(9, 200) == [128]
    assert lent.withdraw(1, 100) == [192] and lent.withdraw(9, 100) == [64] and lent.withdraw(9, 100) == []

    lender = _device.Lender(lambda nbytes: torch.full((nbytes,), 7, dtype=torch.uint8))

    def lent_loader(size):
        loader = wr.DataLoader(parquet, size, as_="torch", num_workers=1)
        loader._lender = lender
        native = wr._native.Loader(loader.dataset._native, loader._choices | {"lent": lender.native})
        loader._made = {(0, 1): native}
        return loader

    small, large = lent_loader(2), lent_loader(8)
    assert small._built.batch_bytes < large._built.batch_bytes
    want = wr.DataLoader(parquet, 2, as_="torch"), wr.DataLoader(parquet, 8, as_="torch")
    for first, second, one, two in zip(small, large, *want, strict=False):
        assert torch.equal(first, one) and torch.equal(second, two)
    del first, second
    for loader in (small, large):
        for _ in loader:
            pass
    assert not lender._lent


def test_pinned_memory_says_what_is_missing(parquet):
    if torch.cuda.is_available():
        batch = next(iter(wr.DataLoader(parquet, 8, as_="torch", pin_memory=True, device="cuda")))
        assert batch.is_cuda and np.allclose(batch.cpu().numpy(), wr.Dataset(parquet)[:8] / 65535, atol=1e-6)
        return
    with pytest.raises(ValueError, match="needs a CUDA device"):
        wr.DataLoader(parquet, 8, as_="torch", pin_memory=True)


def test_devices_are_asked_for_when_a_loader_is_made(parquet):
    for device in ("nonsense", "gpu", "", -1, 2**70, True, 1.5):
        with pytest.raises(ValueError, match='device must be one of torch.* choose "cuda".* or "cpu"'):
            wr.DataLoader(parquet, 8, as_="torch", device=device)
    missing = torch.cuda.device_count()
    said = "is not there: torch finds" if missing else "needs a CUDA device.* leave device out"
    for device in (f"cuda:{missing}", missing, torch.device("cuda", missing), *(["cuda"] if not missing else [])):
        with pytest.raises(ValueError, match=f'device="cuda.*{said}'):
            wr.DataLoader(parquet, 8, as_="torch", device=device)
    # A backend that this torch may name, and no machine of tests has.
    with pytest.raises(ValueError, match='device="vulkan" cannot be used here'):
        wr.DataLoader(parquet, 8, as_="torch", device="vulkan")
    loader = wr.DataLoader(parquet, 8, as_="torch", device="meta", transform=lambda image: image[:, :9])
    assert next(iter(loader)).device.type == "meta"


@pytest.mark.parametrize("as_", ["torch", "jax"])
def test_an_iteration_to_a_device_that_is_left_ends_with_its_last_name(parquet, as_):
    """Its threads and the memory of its batches: they do not wait until Python looks for circles."""
    device = "cpu" if as_ == "torch" else pytest.importorskip("jax").devices("cpu")[0]
    loader = wr.DataLoader(parquet, 4, as_=as_, device=device, num_workers=2)
    gc.disable()
    try:
        iterator = iter(loader)
        next(iterator)
        left = weakref.ref(iterator)
        del iterator
        assert left() is None
    finally:
        gc.enable()


def test_tensors_are_labels_without_a_warning(parquet):
    labels = torch.arange(40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader = wr.DataLoader(parquet, 8, labels=labels)
    labels[:] = -1
    assert next(iter(loader))[1].tolist() == list(range(8))


def test_labels_and_rows_go_with_batches_to_a_device(labelled):
    choices = {
        "columns": ["class", "well"],
        "transform": lambda image: image[:1],
        "batch_transform": lambda b: (b[0] + 1, b[1]),
    }
    here = next(iter(wr.DataLoader(labelled, 8, as_="torch", **choices)))
    there = next(iter(wr.DataLoader(labelled, 8, as_="torch", device="cpu", **choices)))
    assert len(there) == 2 and torch.equal(here[0], there[0]) and there[0].shape == (8, 1, 48, 56)
    assert torch.equal(here[1]["class"], there[1]["class"]) and here[1]["well"] == there[1]["well"]


def test_a_stop_of_a_transform_does_not_end_torchs_loader(parquet):
    def stop(image):
        raise StopIteration

    dataset = wellread.torch.Dataset(parquet, transform=stop)
    with pytest.raises(RuntimeError, match="transform raised StopIteration"):
        list(torch.utils.data.DataLoader(dataset, 4))


def test_centre_crops_of_torchvision_round_to_even(tmp_path):
    """The words of docs/migration.md about odd differences."""
    import tifffile
    from torchvision.transforms import v2

    tifffile.imwrite(tmp_path / "a.tif", np.arange(64 * 64, dtype=np.uint16).reshape(64, 64))
    image = wr.Dataset(tmp_path)[0]
    for side in range(50, 64):
        top = (64 - side) // 2
        ours = next(iter(wr.DataLoader(tmp_path, crop=side, dtype="stored")))[0]
        assert np.array_equal(ours, image[:, top : top + side, top : top + side])
        theirs = next(iter(wr.DataLoader(tmp_path, as_="torch", dtype="stored", transform=v2.CenterCrop(side))))[0]
        assert np.array_equal(ours, theirs.numpy()) == ((64 - side) % 4 != 3), side


def test_transforms_of_torchvision_and_monai(parquet):
    import monai.transforms
    from torchvision.transforms import v2

    for transform in (
        v2.Compose([v2.CenterCrop(32), v2.RandomHorizontalFlip(1.0)]),
        monai.transforms.Compose([monai.transforms.CenterSpatialCrop((32, 32)), monai.transforms.Flip(1)]),
    ):
        batch = next(iter(wr.DataLoader(parquet, 4, as_="torch", transform=transform)))
        want = wr.Dataset(parquet)[:4].astype(np.float32)[:, :, 8:40, 12:44] * np.float32(1 / 65535)
        assert np.allclose(
            np.asarray(batch)[..., ::-1] if "v2" in type(transform).__module__ else np.asarray(batch),
            want if "v2" in type(transform).__module__ else want[..., ::-1],
            atol=1e-6,
        )
        dataset = wellread.torch.Dataset(parquet, transform=transform)
        assert dataset[0].shape == (2, 32, 32)


def test_a_type_that_cannot_hold_the_pixels_is_refused(tmp_path):
    import tifffile

    for i in range(2):
        tifffile.imwrite(tmp_path / f"{i}.tif", np.full((4, 4), 65535, np.uint16))
    ds = wr.Dataset(tmp_path)
    with pytest.raises(ValueError, match="float16.*cannot hold every value of uint16"):
        wr.torch.Dataset(ds, dtype="float16")
    assert wr.torch.Dataset(ds, dtype="bfloat16")[0].isfinite().all()
    assert wr.torch.Dataset(ds)[0].max() == 65535


def test_floats_that_would_become_infinite_are_refused(tmp_path):
    """The dataset looks at the values of floats: those of most images are small."""
    import tifffile

    for i, value in enumerate((0.5, 65504, 70000, np.inf)):
        tifffile.imwrite(tmp_path / f"{i}.tif", np.full((4, 4), value, np.float32))
    tifffile.imwrite(tmp_path / "4.tif", np.full((4, 4), 1e300))
    halves = wellread.torch.Dataset(tmp_path, dtype="float16")
    assert [halves[row].max().item() for row in (0, 1, 3)] == [0.5, 65504, np.inf]
    assert [image.max().item() for image in halves.__getitems__([1, 0, 3])] == [65504, 0.5, np.inf]
    for rows in ([2], [0, 1, 2, 3]):
        with pytest.raises(ValueError, match=r'dtype="float16" cannot hold 70000 \(row 2\): choose "stored"'):
            halves.__getitems__(rows)
    with pytest.raises(ValueError, match=r'dtype="float32" cannot hold 1e\+300 \(row 4\): choose "stored"'):
        wellread.torch.Dataset(tmp_path)[4]
    assert wellread.torch.Dataset(tmp_path, dtype="stored")[4].max() == 1e300
    assert (
        wellread.torch.Dataset(tmp_path)[2].max() == wellread.torch.Dataset(tmp_path, dtype="float32")[2].max() == 7e4
    )


def test_a_type_that_cannot_hold_a_later_image_is_refused_at_it(tmp_path):
    """A set may have images of several types, of which the first is looked at when the dataset is made."""
    import tifffile

    for i, dtype in enumerate(("uint8", "uint16", "float32")):
        tifffile.imwrite(tmp_path / f"{i}.tif", np.full((4, 4), 255 if i == 0 else 300, dtype))
    ds = wr.Dataset(tmp_path)
    for dtype, said in (("uint8", 'choose "float32" or "int64"'), ("float16", 'choose "float32" or "bfloat16"')):
        items = wr.torch.Dataset(ds, dtype=dtype)
        assert (items[0] == 255).all()
        with pytest.raises(ValueError, match=rf'dtype="{dtype}" cannot hold every value of uint16 \(row 1\): {said}'):
            items[1]
        with pytest.raises(ValueError, match=r"uint16 \(row 1\)"):
            items.__getitems__([0, 1])
    with pytest.raises(ValueError, match=r'dtype="int32" cannot hold float32 \(row 2\)'):
        wr.torch.Dataset(ds, dtype="int32")[2]
    assert [image.max().item() for image in wr.torch.Dataset(ds)] == [255, 300, 300]


@pytest.mark.parametrize("kind", ["Dataset", "IterableDataset"])
def test_errors_of_workers_name_file_and_row(kind, tmp_path, cells):
    import shutil

    folder = tmp_path / "tiff"
    shutil.copytree(cells["tiff"], folder)
    damaged = sorted(folder.iterdir())[7]
    damaged.write_bytes(damaged.read_bytes()[:-500])
    options = {"batch_size": 4} if kind == "IterableDataset" else {}
    dataset = getattr(wr.torch, kind)(wr.Dataset(folder), **options)
    batch = None if kind == "IterableDataset" else 4
    with pytest.raises(wr.CorruptImageError) as error:
        list(torch.utils.data.DataLoader(dataset, batch_size=batch, num_workers=1))
    assert error.value.row == 7 and error.value.path.endswith(damaged.name), (error.value.row, error.value.path)
    assert "Caught CorruptImageError in DataLoader worker process" in str(error.value)
