"""Samples as people use them: parts of a batch, classes, features, tables beside images, and what closes.

Long because each kind of labels and tables that people have is a case.
"""

import datetime
import gc
import os
import pickle
import types
import warnings

import numpy as np
import pyarrow as pa
import pytest
import tifffile
import torch
import wellread as wr
import wellread.torch


def rows_of(loader):
    return loader.rows(0)


# What a batch is made of.

LARGE = 2**53
"""From it on, float64 makes one number of two."""


def test_parts_come_together_in_their_order(labelled):
    ds = wr.Dataset(labelled)
    loader = wr.DataLoader(
        ds, 16, True, seed=3, labels="class", columns=["well", "score"], features=["count", "live"], indices=True
    )
    at = 0
    for pixels, labels, columns, features, indices in loader:
        rows = rows_of(loader)[at : at + len(pixels)]
        at += len(pixels)
        assert indices.tolist() == rows and indices.dtype == np.int64
        assert labels.tolist() == [row % 3 for row in rows]
        assert columns["well"] == [f"A{row // 10:02}" for row in rows]
        assert features.shape == (len(rows), 2) and features.dtype == np.float32
        for (count, live), row in zip(features, rows, strict=True):
            assert np.isnan(count) if row == 7 else count == row
            assert live == (row % 2 == 0)
    assert at == 40


def test_without_parts_a_batch_is_an_array_as_before(labelled):
    ds = wr.Dataset(labelled)
    assert next(iter(wr.DataLoader(ds, 4))).shape == (4, 2, 48, 56)
    pixels, labels = next(iter(wr.DataLoader(ds, 4, labels="well")))
    assert pixels.shape == (4, 2, 48, 56) and labels == ["A00"] * 4
    pixels, columns = next(iter(wr.DataLoader(ds, 4, columns=["class"])))
    assert columns["class"].tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize("as_", ["numpy", "torch", "jax", "batch"])
def test_dictionaries_have_the_parts_by_name(labelled, as_):
    pytest.importorskip(as_ if as_ != "batch" else "numpy")
    batch = next(iter(wr.DataLoader(labelled, 4, as_=as_, labels="class", indices=True, as_dict=True)))
    assert list(batch) == ["pixels", "labels", "indices"]
    assert tuple(batch["pixels"].shape) == (4, 2, 48, 56)
    assert batch["labels"].tolist() == [0, 1, 2, 0] and batch["indices"].tolist() == [0, 1, 2, 3]
    alone = next(iter(wr.DataLoader(labelled, 4, as_=as_, as_dict=True)))
    assert list(alone) == ["pixels"]


def test_keys_name_the_parts(labelled):
    names = {"pixels": "image", "labels": "label"}
    batch = next(iter(wr.DataLoader(labelled, 4, labels="class", indices=True, keys=names)))
    assert list(batch) == ["image", "label", "indices"]
    batch = next(iter(wr.DataLoader(labelled, 4, labels="class", keys=("image", "label"))))
    assert list(batch) == ["image", "label"]
    refused = {
        "keys names 'mask', and the parts of a batch are pixels, labels": {"mask": "m"},
        "keys has 1 name, and a batch has 2 parts: pixels, labels": ["image"],
        "keys calls two parts by one name: image, image": ["image", "image"],
    }
    for message, keys in refused.items():
        with pytest.raises(ValueError, match=message):
            wr.DataLoader(labelled, 4, labels="class", keys=keys)
    with pytest.raises(TypeError, match="keys must be"):
        wr.DataLoader(labelled, keys=3)
    with pytest.raises(TypeError, match="as_dict must be True or False"):
        wr.DataLoader(labelled, as_dict="yes")


def test_transforms_change_pixels_alone(labelled):
    choices = {"labels": "class", "indices": True, "transform": lambda image: image + 1}
    plain = next(iter(wr.DataLoader(labelled, 4)))
    pixels, labels, indices = next(iter(wr.DataLoader(labelled, 4, **choices)))
    assert np.array_equal(pixels, plain + 1) and len(labels) == len(indices) == 4


@pytest.mark.parametrize("as_", ["numpy", "torch", "jax"])
def test_batch_transforms_are_given_what_would_be_delivered(labelled, as_):
    """The whole batch, and their result is delivered as it is."""
    given = []

    def keep(batch):
        given.append(batch)
        return "made", len(given)

    for choices in (
        {},
        {"as_dict": True},
        {"labels": "class"},
        {"labels": "class", "columns": ["well"], "indices": True},
        {"labels": "class", "indices": True, "keys": ("image", "label", "row")},
        {"views": 2, "labels": "class"},
    ):
        plain = next(iter(wr.DataLoader(labelled, 4, as_=as_, **choices)))
        assert next(iter(wr.DataLoader(labelled, 4, as_=as_, batch_transform=keep, **choices))) == (
            "made",
            len(given),
        )
        assert same(given[-1], plain)


def same(a, b):
    """Whether two batches are the same in their parts, with the same names."""
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[name], b[name]) for name in a)
    if isinstance(a, tuple):
        return type(b) is tuple and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and np.array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("kind", ["MixUp", "CutMix"])
def test_mixup_and_cutmix_of_torchvision_mix_pixels_and_labels(labelled, kind):
    import torch
    from torchvision.transforms import v2

    torch.manual_seed(3)
    mix = getattr(v2, kind)(num_classes=3)
    plain = wr.DataLoader(labelled, 8, as_="torch", labels="class")
    mixed = wr.DataLoader(labelled, 8, as_="torch", labels="class", batch_transform=lambda batch: mix(*batch))
    for (pixels, labels), (others, shares) in zip(plain, mixed, strict=True):
        assert shares.shape == (8, 3) and torch.allclose(shares.sum(1), torch.ones(8))
        rolled = torch.nn.functional.one_hot(labels.roll(1), 3)
        own = torch.nn.functional.one_hot(labels, 3)
        different = labels != labels.roll(1)
        share = shares[different][own[different].bool()][0]
        assert torch.allclose(shares, share * own + (1 - share) * rolled)
        if kind == "MixUp":
            assert torch.allclose(others, share * pixels + (1 - share) * pixels.roll(1, 0), atol=1e-6)
        else:
            assert bool(((others == pixels) | (others == pixels.roll(1, 0))).all())


def test_crops_of_an_image_share_what_comes_beside(labelled):
    loader = wr.DataLoader(labelled, 4, random_crop=8, crops_per_image=2, labels="class", indices=True)
    _, labels, indices = next(iter(loader))
    assert indices.tolist() == [0, 0, 1, 1] and labels.tolist() == [0, 0, 1, 1]


def test_pickled_loaders_deliver_the_same_parts(labelled):
    given = {"pixels": "x", "labels": "y"}
    labels = [f"c{row % 4}" for row in range(40)]
    loader = wr.DataLoader(labelled, 8, labels=labels, classes=True, features="c*", indices=True, keys=given)
    assert loader.feature_names == ["class", "count"]
    given.clear()
    labels.clear()
    other = pickle.loads(pickle.dumps(loader))
    assert other.classes == ["c0", "c1", "c2", "c3"]
    for one, two in zip(loader, other, strict=True):
        assert list(one) == list(two) == ["x", "y", "features", "indices"]
        for name in one:
            assert np.array_equal(one[name], two[name], equal_nan=name == "features")


def test_one_item_of_an_iterable_dataset_has_the_parts_of_a_batch(labelled):
    choices = {"labels": "class", "columns": ["well"], "indices": True}
    image, label, columns, index = next(iter(wellread.torch.IterableDataset(labelled, **choices)))
    assert image.shape == (2, 48, 56) and label == 0 and columns == {"well": "A00"} and index == 0
    item = next(iter(wellread.torch.IterableDataset(labelled, as_dict=True, **choices)))
    assert item["pixels"].shape == (2, 48, 56) and item["columns"] == {"well": "A00"}


# Classes.


def test_classes_are_the_sorted_values_of_the_whole_column(labelled):
    ds = wr.Dataset(labelled)
    loader = wr.DataLoader(ds, 10, labels="well", classes=True, rows=range(20, 40))
    assert loader.classes == ["A00", "A01", "A02", "A03"]
    assert loader.class_to_idx == {"A00": 0, "A01": 1, "A02": 2, "A03": 3}
    (_, first), (_, second) = loader
    assert first.dtype == np.int64 and first.tolist() == [2] * 10 and second.tolist() == [3] * 10
    of_torch = next(iter(wr.DataLoader(ds, 4, as_="torch", labels="well", classes=True)))[1]
    assert of_torch.dtype == torch.int64
    assert wr.DataLoader(ds, labels="well").classes is None and wr.DataLoader(ds).class_to_idx is None
    with pytest.raises(ValueError, match="classes are those of labels"):
        wr.DataLoader(ds, classes=True)


def with_times(parquet):
    """A set with columns of nanoseconds, as pandas makes them, and the days that most of them hold."""
    pd = pytest.importorskip("pandas")
    days = pd.date_range("2020-01-01", periods=40)
    gaps = pd.Series(days).astype("datetime64[ns]")
    gaps[1] = pd.NaT
    table = {
        "gaps": gaps,
        "when": pd.Series(days).astype("datetime64[ns]"),
        "halves": pd.to_datetime([500 * i for i in range(40)], unit="ns"),
        "took": pd.to_timedelta(range(40), unit="s").astype("timedelta64[ns]"),
        "zoned": pd.Series(days.tz_localize("CET")).astype("datetime64[ns, CET]"),
    }
    dataset = wr.Dataset(parquet).with_columns(pd.DataFrame(table))
    assert all(dataset.column(name).dtype.str.endswith("[ns]") for name in table)
    return dataset, days


@pytest.mark.parametrize("as_", ["torch", "jax"])
def test_times_of_nanoseconds_are_times_in_batches(parquet, as_):
    pytest.importorskip(as_)
    ds, _ = with_times(parquet)
    first, second = datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2)
    _, columns = next(iter(wr.DataLoader(ds, 2, columns=["gaps", "when", "halves", "took"], as_=as_)))
    assert columns["gaps"] == [first, None] and columns["when"] == [first, second]
    assert columns["took"] == [datetime.timedelta(0), datetime.timedelta(seconds=1)]
    # Python has no type for a part of a microsecond.
    assert columns["halves"] == [datetime.datetime(1970, 1, 1), np.datetime64(500, "ns")]
    assert [type(one) for one in columns["halves"]] == [datetime.datetime, np.datetime64]
    _, labels = next(iter(wr.DataLoader(ds, 2, labels="when", as_=as_)))
    assert labels == [first, second] and type(labels[0]) is datetime.datetime
    # Labels that are given, of any shape; years that Python does not have.
    given = np.array([["2020-01-01", "NaT"]] * 40, "M8[ns]")
    assert next(iter(wr.DataLoader(ds, 1, labels=given, as_=as_)))[1] == [[first, None]]
    far = np.array([2**40] * 40, "M8[s]")
    assert next(iter(wr.DataLoader(ds, 1, labels=far, as_=as_)))[1] == [far[0]]


def test_times_of_nanoseconds_are_classes(parquet):
    ds, days = with_times(parquet)
    found = wr.DataLoader(ds, labels="when", classes=True).classes
    assert found == [day.to_pydatetime() for day in days] and type(found[0]) is datetime.datetime
    halves = [np.datetime64(500 * i, "ns") for i in range(40)]
    assert [np.datetime64(one) for one in wr.DataLoader(ds, labels="halves", classes=True).classes] == halves
    assert wr.DataLoader(ds, labels="gaps", classes=True, rows=[0, 2]).classes == [days[0], *days[2:]]
    took = [datetime.timedelta(seconds=i) for i in range(40)]
    zoned = list(days.tz_localize("CET"))
    for column, classes in (
        ("when", list(days)),
        ("when", days.to_numpy()),
        ("when", days.astype("datetime64[us]").to_numpy()),
        ("halves", halves),
        ("took", took),
        ("took", np.array(took)),
        ("zoned", zoned),
        ("zoned", [day.to_pydatetime() for day in zoned]),
    ):
        loader = wr.DataLoader(ds, 40, labels=column, classes=list(classes)[::-1])
        assert next(iter(loader))[1].tolist() == list(range(40))[::-1]
    loader = wr.DataLoader(ds, 40, labels=[day + pd_nanosecond(day) for day in days], classes=True)
    assert next(iter(loader))[1].tolist() == list(range(40))
    with pytest.raises(ValueError, match=r"classes has datetime.datetime\(2020, 1, 1, 0, 0\) twice"):
        wr.DataLoader(ds, labels="when", classes=[days[0], days[0].to_pydatetime()])


def pd_nanosecond(day):
    """A nanosecond, as pandas has it, after every second day."""
    import pandas as pd

    return pd.Timedelta(day.day % 2, unit="ns")


def test_given_classes_keep_their_order(labelled):
    ds = wr.Dataset(labelled)
    classes = ["A03", "A00", "A01", "A02", "never"]
    loader = wr.DataLoader(ds, 40, labels="well", classes=np.array(classes))
    _, labels = next(iter(loader))
    assert loader.classes == classes and all(type(name) is str for name in loader.classes)
    assert labels.tolist() == [classes.index(f"A{row // 10:02}") for row in range(40)]
    numbers = wr.DataLoader(ds, 40, labels="class", classes=[2, 1, 0])
    assert next(iter(numbers))[1].tolist() == [2 - row % 3 for row in range(40)]
    with pytest.raises(
        ValueError, match=r"row 10 has the label 'A01', which is none of the 2 classes \('A00', 'A02'\)"
    ):
        wr.DataLoader(ds, labels="well", classes=["A00", "A02"])
    # Of rows that are not used nobody asks.
    assert len(wr.DataLoader(ds, labels="well", classes=["A00"], rows=range(10))) == 10
    with pytest.raises(ValueError, match="'A00' twice"):
        wr.DataLoader(ds, labels="well", classes=["A00", "A01", "A00"])


def test_what_has_no_order_is_no_list(labelled):
    """Texts of a set come in another order in each process. Only keys of a dict would count."""
    ds = wr.Dataset(labelled)
    names = ["A00", "A01", "A02", "A03"]
    for choices in (
        {"labels": "well", "classes": {name: 3 - i for i, name in enumerate(names)}},
        {"labels": "well", "classes": set(names)},
        {"labels": "well", "classes": frozenset(names)},
        {"features": {"class", "count"}},
        {"channels": {0, 1}},
        {"order": "weighted", "weights": dict.fromkeys(range(40), 1.0)},
        {"order": "grouped", "by": dict.fromkeys(range(40), "a")},
    ):
        name = list(choices)[-1]
        with pytest.raises(TypeError, match=f"^{name} must be .*, not (dict|set|frozenset)"):
            wr.DataLoader(ds, **choices)
    for wrong in (dict.fromkeys(range(40), 1), set(range(40))):
        with pytest.raises(TypeError, match="labels must be a list, not (dict|set)"):
            wellread.torch.Dataset(ds, labels=wrong)
    # Where order is of no account, a set will do; views of a dict have the dict's order.
    columns = next(iter(wr.DataLoader(ds, 40, columns={"class", "well"})))[1]
    assert sorted(columns) == ["class", "well"] and columns["class"].tolist() == [row % 3 for row in range(40)]
    assert sorted(wr.DataLoader(ds, rows={3, 1, 2}).rows(0)) == [1, 2, 3]
    numbers = dict.fromkeys(reversed(names))
    assert wr.DataLoader(ds, labels="well", classes=numbers.keys()).classes == names[::-1]


def test_labels_that_are_missing_are_of_no_class(labelled):
    ds = wr.Dataset(labelled)
    with pytest.raises(ValueError, match=r"row 7 has no label in column 'count' \(nan\), so it is"):
        wr.DataLoader(ds, labels="count", classes=True)
    rows = [row for row in range(40) if row != 7]
    loader = wr.DataLoader(ds, 39, labels="count", classes=True, rows=rows)
    assert loader.classes == [float(row) for row in rows]
    texts = ["a", None] * 20
    with pytest.raises(ValueError, match=r"row 1 has no label \(None\)"):
        wr.DataLoader(ds, labels=np.array(texts, object), classes=True)
    with pytest.raises(TypeError, match="cannot be told apart or sorted"):
        wr.DataLoader(ds, labels=np.array(["a", 1] * 20, object), classes=True)
    with pytest.raises(ValueError, match="one label per row"):
        wr.DataLoader(ds, labels=np.zeros((40, 2)), classes=True)


@pytest.mark.parametrize(
    "kind", ["list", "NaN", "Arrow", "chunks", "dictionary", "Int64", "series", "category", "mask", "column"]
)
def test_large_labels_some_of_which_are_missing_are_classes_of_their_own(parquet, kind):
    pd = pytest.importorskip("pandas")
    values, rows = [LARGE + 1, LARGE, 7, None], [0, 1, 2]
    ds = wr.Dataset(parquet).select(range(4))
    if kind == "column":
        ds = ds.with_columns(pa.table({"id": pa.array(values, pa.int64())}))
    labels = {
        "list": lambda: values,
        "NaN": lambda: [*values[:3], float("nan")],
        "Arrow": lambda: pa.array(values),
        "chunks": lambda: pa.chunked_array([values[:1], values[1:]], pa.int64()),
        "dictionary": lambda: pa.array(values).dictionary_encode(),
        "Int64": lambda: pd.array(values, "Int64"),
        "series": lambda: pd.Series(values, dtype="Int64"),
        "category": lambda: pd.Categorical(values),
        "mask": lambda: np.ma.array([*values[:3], 1], mask=[0, 0, 0, 1]),
        "column": lambda: "id",
    }[kind]()
    for given in (True, [7, LARGE, LARGE + 1]):
        loader = wr.DataLoader(ds, 3, labels=labels, classes=given, rows=rows)
        for same in (loader, pickle.loads(pickle.dumps(loader))):
            assert same.classes == [7, LARGE, LARGE + 1]
            assert next(iter(same))[1].tolist() == [2, 1, 0]
    for make in (wr.DataLoader, wellread.torch.Dataset):
        with pytest.raises(ValueError, match="row 3 has no label"):
            make(ds, labels=labels, classes=True)


def test_large_labels_of_either_sign_are_classes_of_their_own(parquet):
    ds, labels = wr.Dataset(parquet).select(range(4)), [-1, 2**63, 2**63 + 1, 0]
    for same in (labels, [np.int64(-1), np.uint64(2**63), np.uint64(2**63 + 1), 0]):
        loader = wr.DataLoader(ds, 4, labels=same, classes=labels)
        assert loader.classes == labels and next(iter(loader))[1].tolist() == [0, 1, 2, 3]
        assert wr.DataLoader(ds, labels=same, classes=True).classes == [-1, 0, 2**63, 2**63 + 1]
        items = wellread.torch.Dataset(ds, labels=same, classes=labels)
        assert [label for _, label in items] == [0, 1, 2, 3]
    # What is given as floats stays floats.
    floats = wr.DataLoader(ds, 4, labels=[0.5, 1.0, 2.0**60, 0.5], classes=True)
    assert floats.classes == [0.5, 1.0, 2.0**60] and next(iter(floats))[1].tolist() == [0, 1, 2, 0]


def test_labels_from_2_63_on_are_whole_numbers_of_64_bits(parquet):
    """NumPy makes another type of them than uint64, which torch does not take: the first batch failed."""
    ds, large = wr.Dataset(parquet).select(range(4)), [2**63, 2**63 + 1, 2**64 - 1, 2**63]
    for labels in (large, tuple(large), np.array(large, np.ulonglong), np.array(large, np.uint64)):
        for as_ in ("torch", "numpy"):
            found = next(iter(wr.DataLoader(ds, 4, labels=labels, as_=as_, num_workers=0)))[1]
            assert (str(found.dtype).removeprefix("torch."), found.tolist()) == ("uint64", large)
    several = np.array([[1, 2], [3, 4], [5, 6], [7, 8]], np.ulonglong)
    found = next(iter(wr.DataLoader(ds, 4, labels=several, as_="torch", num_workers=0)))[1]
    assert found.dtype == torch.uint64 and found.tolist() == several.tolist()
    items = wellread.torch.Dataset(ds, labels=several)
    assert [label.tolist() for _, label in items] == several.tolist()


def test_masked_labels_are_missing(parquet):
    ds, mask = wr.Dataset(parquet).select(range(4)), [0, 1, 0, 0]
    numbers = np.ma.array([7, 8, 9, 6], mask=mask)
    for make in (wr.DataLoader, wellread.torch.Dataset):
        for labels in (numbers, numbers.astype("float32"), np.ma.array(list("abca"), mask=mask)):
            with pytest.raises(ValueError, match=r"row 1 has no label \((nan|None)\)"):
                make(ds, labels=labels, classes=True)
    others = wr.DataLoader(ds, 3, labels=numbers, classes=True, rows=[0, 2, 3])
    assert others.classes == [6, 7, 9] and next(iter(others))[1].tolist() == [1, 2, 0]
    for labels, wanted in (
        (numbers, [7.0, np.nan, 9.0, 6.0]),
        (numbers.astype("float32"), [7.0, np.nan, 9.0, 6.0]),
        (np.ma.array([[1, 2]] * 4, mask=[[0, 0], [0, 1], [0, 0], [0, 0]]), [[1, 2], [1, np.nan], [1, 2], [1, 2]]),
        (np.ma.array([7, 8, 9, 6]), [7, 8, 9, 6]),
    ):
        _, found = next(iter(wr.DataLoader(ds, 4, labels=labels)))
        assert np.array_equal(found, wanted, equal_nan=True)
        items = [label for _, label in wellread.torch.Dataset(ds, labels=labels)]
        assert np.array_equal(items, wanted, equal_nan=True)
    times = np.arange(4).astype("M8[D]")
    day = datetime.date(1970, 1, 1)
    for labels, wanted in (
        (np.ma.array([True, False, True, True], mask=mask), [True, None, True, True]),
        (np.ma.array(["a", "b", "c", "d"], mask=mask), ["a", None, "c", "d"]),
        (np.ma.array(times, mask=mask), [day, None, day.replace(day=3), day.replace(day=4)]),
    ):
        assert next(iter(wr.DataLoader(ds, 4, labels=labels, as_="torch")))[1] == wanted
        assert [label for _, label in wellread.torch.Dataset(ds, labels=labels)] == wanted
    assert numbers.mask.tolist() == [False, True, False, False] and numbers.data.tolist() == [7, 8, 9, 6]


def test_torch_datasets_name_the_row_without_a_label(labelled):
    said = r"row 7 has no label in column 'count' \(nan\), so it is of no class: take the rows .*dataset.select"
    with pytest.raises(ValueError, match=said):
        wellread.torch.Dataset(labelled, labels="count", classes=True)
    pd = pytest.importorskip("pandas")
    series = pd.Series([None if row == 3 else row % 2 for row in range(40)], dtype="Int64")
    with pytest.raises(ValueError, match=r"row 3 has no label \((nan|<NA>)\)"):
        wellread.torch.Dataset(labelled, labels=series, classes=True)


def test_torch_datasets_know_classes_too(labelled):
    items = wellread.torch.Dataset(labelled, labels="well", classes=True)
    assert items.classes == ["A00", "A01", "A02", "A03"] and items.class_to_idx["A02"] == 2
    assert items[25][1] == 2
    loader = torch.utils.data.DataLoader(items, 8, collate_fn=wellread.torch.collate)
    assert next(iter(loader))[1].dtype == torch.int64
    assert wellread.torch.Dataset(labelled).classes is None


# Columns as one matrix.


def test_features_are_one_array(labelled):
    ds = wr.Dataset(labelled)
    loader = wr.DataLoader(ds, 40, features=["score", "c*"])
    _, features = next(iter(loader))
    assert loader.feature_names == ["score", "class", "count"] and wr.DataLoader(ds).feature_names is None
    want = np.stack([ds.column(name).astype("float32") for name in loader.feature_names], 1)
    assert np.array_equal(features, want, equal_nan=True)
    assert np.isnan(features[5, 0]) and np.isnan(features[7, 2])
    of_torch = next(iter(wr.DataLoader(ds, 8, as_="torch", features="score")))[1]
    assert of_torch.shape == (8, 1) and of_torch.dtype == torch.float32


def test_columns_are_read_together(labelled, monkeypatch):
    ds = wr.Dataset(labelled)
    want = {name: ds.column(name) for name in ds.columns}
    monkeypatch.setattr(wr.Dataset, "column", lambda *_: pytest.fail("one column is read by itself"))
    loader = wr.DataLoader(ds, 40, features="c*", columns=["well", "score", "well"])
    _, columns, features = next(iter(loader))
    assert list(columns) == ["well", "score"] and columns["well"] == list(want["well"])
    assert np.array_equal(columns["score"], want["score"], equal_nan=True)
    for i, name in enumerate(loader.feature_names):
        assert np.array_equal(features[:, i], want[name].astype("float32"), equal_nan=True)
    monkeypatch.setattr(wellread._parts, "_TOGETHER", 1)
    assert np.array_equal(wellread._parts.matrix(ds, loader.feature_names), features, equal_nan=True)


def test_features_that_are_no_numbers_are_named(labelled):
    ds = wr.Dataset(labelled)
    with pytest.raises(TypeError, match="column 'well' holds texts"):
        wr.DataLoader(ds, features="*")
    with pytest.raises(TypeError, match="column 'day' holds times"):
        wr.DataLoader(ds, features=["score", "day"])
    with pytest.raises(KeyError, match="no column"):
        wr.DataLoader(ds, features=["nothing"])
    with pytest.raises(ValueError, match="'Cells_\\*', which fits none of the 6 columns"):
        wr.DataLoader(ds, features="Cells_*")
    with pytest.raises(ValueError, match="one column at least"):
        wr.DataLoader(ds, features=[])


# Tables beside images.


def plan(wells=("A00", "A01", "A02", "A03")):
    return pa.table({"well": list(wells), "dose": [10.0 * i for i in range(len(wells))], "drug": list("xyxy")})


def test_a_plan_of_a_plate_is_joined_by_well(labelled):
    ds = wr.Dataset(labelled)
    both = ds.with_columns(plan(), on="well")
    assert both.columns == [*ds.columns, "dose", "drug"] and "dose" not in ds.columns
    assert both.column("dose").tolist() == [10.0 * (row // 10) for row in range(40)]
    assert np.array_equal(both[:], ds[:])
    loader = wr.DataLoader(both, 10, order="grouped", by="drug", labels="drug", classes=True, features="dose")
    pixels, labels, features = next(iter(loader))
    assert len(set(labels.tolist())) == 1 and set(features[:, 0].tolist()) <= {0.0, 10.0, 20.0, 30.0}
    parts = both.split((0.5, 0.5), by="drug", seed=1)
    assert {frozenset(both.column("drug")[part]) for part in parts if part} <= {frozenset("x"), frozenset("y")}
    # The same keys as if the column had always been there.
    again = wr.Dataset.from_arrow(pa.table(both))
    assert again.columns == both.columns and again.split((0.5, 0.5), by="drug", seed=1) == parts


def test_a_table_in_the_order_of_the_images(labelled):
    ds = wr.Dataset(labelled)
    both = ds.with_columns(pa.table({"class": [f"k{i}" for i in range(40)], "more": list(range(40))}))
    assert both.column("class").tolist() == [f"k{i}" for i in range(40)], "the table's column counts"
    assert both.columns == [*(name for name in ds.columns if name != "class"), "class", "more"]
    once_more = both.with_columns(plan(), on="well")
    assert once_more.column("more").tolist() == list(range(40)) and "dose" in once_more.columns
    with pytest.raises(wr.ChoiceError, match="has 4 rows for 40 images"):
        ds.with_columns(plan())


def test_rows_that_do_not_fit_are_said(labelled):
    ds = wr.Dataset(labelled)
    with pytest.raises(wr.ChoiceError, match="has no row for 10 of 40 images") as error:
        ds.with_columns(plan(("A00", "A01", "A03", "A09")), on="well")
    assert error.value.row == 20
    assert "row 20: the table has no row for 10 of 40 images" in str(error.value)
    some = ds.with_columns(plan(("A00", "A01", "A03", "A09")), on="well", unmatched="null")
    assert np.isnan(some.column("dose")[20:30]).all() and some.column("drug")[20] is None
    with pytest.raises(wr.ChoiceError, match="rows 0 and 1 are alike in well"):
        ds.with_columns(plan(("A00", "A00", "A02", "A03")), on="well")
    with pytest.raises(wr.ChoiceError, match="has no column"):
        ds.with_columns(plan(), on="nothing")
    with pytest.raises(TypeError, match="__arrow_c_stream__"):
        ds.with_columns(["A00"], on="well")
    with pytest.raises(TypeError, match="not str: read the file first, as by pandas.read_csv"):
        ds.with_columns("plan.csv", on="well")
    with pytest.raises(ValueError, match="unmatched must be one of"):
        ds.with_columns(plan(), on="well", unmatched="skip")


def test_names_of_files_tell_images(labelled):
    ds = wr.Dataset(labelled)
    files = [f"/plates/{ds.name(row)}.tiff" for row in range(40)]
    table = pa.table({"Image_FileName_DNA": files[::-1], "order": list(range(40))})
    assert ds.with_columns(table, on="Image_FileName_DNA").column("order").tolist() == list(range(39, -1, -1))
    others = pa.table({"Image_FileName_DNA": ["other.tiff"], "order": [1]})
    with pytest.raises(wr.ChoiceError, match="no image has a row by Image_FileName_DNA.*rows have other.tiff"):
        ds.with_columns(others, on="Image_FileName_DNA", unmatched="null")


def test_a_table_with_the_images_in_another_order_is_warned_of(labelled):
    ds = wr.Dataset(labelled)
    files = [f"{ds.name(row)}.tiff" for row in range(40)]
    table = pa.table({"file": files[::-1], "order": list(range(40))})
    told = "column 'file' has the images in another order than the set.*on='file' gives each its own"
    with pytest.warns(UserWarning, match=told):
        both = ds.with_columns(table)
    assert both.column("order").tolist() == list(range(40)), "without on= the order counts"
    # Wells of the images, each of which has one.
    plate = ds.select([0, 10, 20, 30])
    with pytest.warns(UserWarning, match="column 'well' has the images in another order"):
        plate.with_columns(plan(("A03", "A01", "A02", "A00")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickle.loads(pickle.dumps(both)).column("order").tolist() == list(range(40))
        assert ds.with_columns(table, on="file").column("order").tolist() == list(range(40))[::-1]
        assert ds.with_columns(pa.table({"file": files, "order": list(range(40))})).column("order")[39] == 39
        plate.with_columns(plan())


@pytest.mark.parametrize("name", ["img", "id", "path", "sample", "site", "key", "tile", "index"])
def test_any_column_of_names_in_another_order_is_warned_of(labelled, name):
    """Columns were looked at by their names: others gave wrong labels without a word."""
    ds = wr.Dataset(labelled)
    files = [f"{ds.name(row)}.tiff" for row in range(40)]
    with pytest.warns(UserWarning, match=f"column '{name}' has the images in another order.*on='{name}'") as told:
        ds.with_columns(pa.table({"order": list(range(40)), name: files[::-1]}))
    assert len(told) == 1 and told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds.with_columns(pa.table({name: files, "nearest": files[::-1]}))
        ds.with_columns(pa.table({name: [*files[:0:-1], "none.tiff"]}))


def test_an_index_in_another_order_is_warned_of(labelled):
    """An index without a name was never looked at, also of the obs of an AnnData."""
    pandas = pytest.importorskip("pandas")
    ds = wr.Dataset(labelled)
    names = [ds.name(row) for row in range(40)]
    frame = pandas.DataFrame({"order": range(40)}, index=names[::-1])
    told = 'the index of the frame has the images in another order than the set.*on="image_name" give each its own'
    for given in (frame, types.SimpleNamespace(obs=frame), frame["order"]):
        with pytest.warns(UserWarning, match=told) as warned:
            both = ds.with_columns(given)
        assert len(warned) == 1 and warned[0].filename == __file__
        assert both.column("order").tolist() == list(range(40)), "without on= the order counts"
    with pytest.warns(UserWarning, match="column 'file' has the images in another order"):
        ds.with_columns(frame.rename_axis("file"))
    labels = pandas.Series(range(40), index=names[::-1])
    told = 'the index of labels has the images in another order.*labels="label" takes them'
    for made in (wr.DataLoader, wellread.torch.Dataset):
        with pytest.warns(UserWarning, match=told) as warned:
            made(ds, labels=labels)
        assert len(warned) == 1 and warned[0].filename == __file__, made
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both = ds.with_columns(frame.rename_axis("image_name"), on="image_name")
        assert both.column("order").tolist() == list(range(40))[::-1]
        own = ds.with_columns(labels.rename("label").rename_axis("image_name"), on="image_name")
        assert own.column("label").tolist() == list(range(40))[::-1]
        assert pickle.loads(pickle.dumps(ds.with_columns(frame[::-1]))).column("order")[0] == 39
        ds.with_columns(frame.set_axis(range(40)))
        wr.DataLoader(ds, labels=labels[::-1])
        wr.DataLoader(ds, labels=labels.set_axis([f"cell{i}" for i in range(40)]))


def test_names_that_are_of_several_folders_are_refused_and_other_folders_told(tmp_path):
    for plate in ("P1", "P2"):
        (tmp_path / "screen" / plate).mkdir(parents=True)
        for site in (10, 11):
            image = np.full((4, 4), site, np.uint16)
            tifffile.imwrite(tmp_path / "screen" / plate / f"{site}.tif", image)
    ds = wr.Dataset(tmp_path / "screen")
    table = pa.table({"file": ["10.tif", "11.tif"], "dose": [1, 2]})
    for unmatched in ("error", "null"):
        with pytest.raises(wr.ChoiceError, match="could be either of two images, P1/10 and P2/10"):
            ds.with_columns(table, on="file", unmatched=unmatched)
    # Also where one of the images has a row of its own.
    mixed = pa.table({"file": ["P1/10.tif", "10.tif", "P1/11.tif", "P2/11.tif"], "dose": [1, 2, 3, 4]})
    with pytest.raises(wr.ChoiceError, match="could be either of two images, P1/10 and P2/10"):
        ds.with_columns(mixed, on="file")
    plate = wr.Dataset(tmp_path / "screen" / "P1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plate.with_columns(table, on="file").column("dose").tolist() == [1, 2]
        own = pa.table({"file": ["far/P1/10.tif", "far/P1/11.tif"], "dose": [1, 2]})
        assert plate.with_columns(own, on="file").column("dose").tolist() == [1, 2]
    other = pa.table({"file": ["other/place/10.tif", "other/place/11.tif"], "dose": [1, 2]})
    with pytest.warns(UserWarning, match="names folders that the images do not lie in, such as other/place/10"):
        both = plate.with_columns(other, on="file")
    assert both.column("dose").tolist() == [1, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickle.loads(pickle.dumps(both)).column("dose").tolist() == [1, 2]


def test_columns_that_cannot_stand_beside_images_are_warned_of(labelled):
    ds = wr.Dataset(labelled)
    table = pa.table({"none": pa.nulls(40), "good": [1] * 40, "nested": [[1]] * 40, "raw": [b"x"] * 40})
    told = "of the table none, nested, raw cannot stand beside images and are left out: "
    with pytest.warns(UserWarning, match=f"{told}nothing but nulls, nested values, binary values$"):
        both = ds.with_columns(table)
    assert both.columns == [*ds.columns, "good"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickle.loads(pickle.dumps(both)).columns == both.columns


def test_observations_of_what_has_an_obs(labelled):
    pandas = pytest.importorskip("pandas")
    ds = wr.Dataset(labelled)
    names = [ds.name(row) for row in range(40)]
    frame = pandas.DataFrame(
        {"cluster": pandas.Categorical([f"k{i % 2}" for i in range(40)]), "umap": np.arange(40.0)}, index=names
    )
    # Of anndata itself: test_package_profiles.py, in a Python that has it.
    adata = types.SimpleNamespace(obs=frame[::-1])
    both = ds.with_columns(adata, on="index")
    assert both.column("umap").tolist() == list(range(40)) and both.column("cluster")[3] == "k1"
    frame.index.name = "image"
    assert ds.with_columns(frame[::-1], on="image").column("umap").tolist() == list(range(40))
    # Without `on` the order counts, and an index without a name is no column.
    assert ds.with_columns(frame.reset_index(drop=True)).columns == [*ds.columns, "cluster", "umap"]
    assert list(frame.columns) == ["cluster", "umap"], "the caller's frame is as it was"
    copy = pickle.loads(pickle.dumps(both))
    assert copy.column("umap").tolist() == list(range(40)) and np.array_equal(copy[3], ds[3])


# What closes.


def held(path):
    """Whether this process has the file open or mapped."""
    gc.collect()
    with open("/proc/self/maps") as maps:
        if os.path.basename(path) in maps.read():
            return True
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{descriptor}").startswith(path):
                return True
        except OSError:
            continue
    return False


@pytest.fixture
def own(labelled, tmp_path):
    """A set that nobody else has open."""
    import shutil

    return shutil.copy(labelled, tmp_path / f"own-{os.getpid()}.parquet")


def test_a_closed_set_says_so(own):
    with wr.Dataset(own) as ds:
        image = ds[3]
        assert held(str(own)) and not ds.closed
    assert ds.closed and not held(str(own)) and image.shape == (2, 48, 56)
    assert repr(ds).endswith("closed)") and len(ds) == 40 and ds.path == str(own) and "closed" in ds._repr_html_()
    asked = [
        lambda: ds[3], lambda: ds.shape, lambda: ds.dtype, lambda: ds.columns, lambda: ds.metadata(0),
        lambda: ds.split(), lambda: wr.DataLoader(ds), lambda: next(iter(ds)), lambda: pickle.dumps(ds),
        lambda: ds.column("well"), lambda: ds.__arrow_c_stream__(), ds.__enter__,
    ]  # fmt: skip
    for ask in asked:
        with pytest.raises(wr.ChoiceError, match="this dataset was closed"):
            ask()
    ds.close()


def test_loaders_go_on_when_their_set_is_closed(own):
    ds = wr.Dataset(own)
    loader = wr.DataLoader(ds, 8, labels="class", num_workers=2)
    ds.close()
    assert sum(len(pixels) for pixels, _ in loader) == 40
    assert held(str(own))
    loader.close()
    assert not held(str(own))


@pytest.mark.parametrize("as_", ["numpy", "torch", "batch"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_closed_loader_stops_and_says_so(own, as_, workers):
    with wr.DataLoader(own, 8, as_=as_, num_workers=workers) as loader:
        begun = iter(loader)
        first = next(begun)
        whole = list(wr.DataLoader(own, 8, as_=as_))
    assert loader.closed and repr(loader).endswith("closed)")
    assert np.array_equal(np.asarray(first), np.asarray(whole[0])), "batches stay"
    for ask in (lambda: next(begun), lambda: iter(loader), lambda: len(loader), loader.__enter__):
        with pytest.raises(wr.ChoiceError, match="closed"):
            ask()
    with pytest.raises(wr.ChoiceError, match="closed"):
        pickle.dumps(loader)
    # Where it was is known, and another loader goes on from there.
    other = wr.DataLoader(own, 8, as_=as_)
    other.load_state_dict(loader.state_dict())
    assert len(list(other)) == 4 and loader.skipped == []
    del other, whole
    assert loader.dataset.closed and not held(str(own)), "it has opened the set itself"
    loader.close()


def test_closing_a_loader_leaves_a_set_that_was_given(own):
    ds = wr.Dataset(own)
    with wr.DataLoader(ds, 8) as loader:
        assert len(list(loader)) == 5
    assert not ds.closed and ds[0].shape == (2, 48, 56)
    assert loader.state_dict() == wr.DataLoader(ds, 8, epoch=1).state_dict()


def test_an_iteration_that_is_over_stays_over(own):
    loader = wr.DataLoader(own, 8)
    ended = iter(loader)
    assert len(list(ended)) == 5
    loader.close()
    assert next(ended, None) is None


# Shapes as arrays have them.


def test_shape_is_that_of_all_images(labelled, tmp_path):
    ds = wr.Dataset(labelled)
    assert ds.shape == ds[:].shape == (40, 2, 48, 56) and ds.ndim == 4 and ds.image_shape(3) == (2, 48, 56)
    import tifffile

    for name, size in (("a", (4, 5)), ("b", (4, 5)), ("c", (4, 6))):
        tifffile.imwrite(tmp_path / f"{name}.tif", np.zeros(size, "uint8"))
    mixed = wr.Dataset(tmp_path)
    with pytest.raises(
        ValueError, match="row 2 is 1 x 1 x 1 x 4 x 6 uint8 and row 0 1 x 1 x 1 x 4 x 5 uint8"
    ) as error:
        mixed.shape  # noqa: B018 - asked for
    assert error.value.row == 2
    with pytest.raises(ValueError):
        mixed.ndim  # noqa: B018 - asked for
    assert mixed.image_shape(2) == (1, 4, 6)


def test_shape_of_volumes_and_of_nothing(tmp_path, labelled):
    import tifffile

    tifffile.imwrite(
        tmp_path / "v.ome.tif", np.zeros((3, 2, 8, 9), "uint16"), metadata={"axes": "ZCYX"}, photometric="minisblack"
    )
    ds = wr.Dataset(tmp_path)
    assert ds.shape == ds[:].shape == (1, 1, 2, 3, 8, 9) and ds.ndim == 6
    import pyarrow.parquet as pq

    nothing = wr.Dataset.from_arrow(pq.read_table(labelled).slice(0, 0))
    assert nothing.shape == (0,) and nothing.ndim == 1


def test_categories_in_chunks_that_are_missing_are_of_no_class(parquet):
    ds = wr.Dataset(parquet).select(range(4))
    labels = pa.chunked_array([pa.array(["a", None]).dictionary_encode(), pa.array(["b", "a"]).dictionary_encode()])
    assert list(next(iter(wr.DataLoader(ds, 4, labels=labels)))[1]) == ["a", None, "b", "a"]
    for made in (
        lambda: wr.DataLoader(ds, labels=labels, classes=True),
        lambda: wr.torch.Dataset(ds, labels=labels, classes=["a", "b"]),
    ):
        with pytest.raises(ValueError, match="row 1 has no label"):
            made()
