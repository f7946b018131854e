"""The package under torch: items and labels, as those of a batch, of types that torch has and has not."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
import torch
import wellread as wr
import wellread.torch


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
