"""Labels, classes, rows, numbers, states and tables as people give them, and errors about those that cannot be."""

import decimal
import pickle
import warnings

import numpy as np
import pyarrow as pa
import pytest
import wellread as wr
import wellread.torch

torch = pytest.importorskip("torch")


def test_labels_of_mixed_kinds_are_refused(parquet):
    for label, other in ((("a", 1), "int"), (["a", 1.5], "float"), (("a", True), "bool"), ((1, ("a", "b")), "int")):
        for make in (wr.DataLoader, lambda *args, **more: wellread.torch.Dataset(*args, classes=True, **more)):
            with pytest.raises(ValueError, match=r"labels") as error:
                make(parquet, labels=[label] * 40)
            # Nested ones of several lengths are no array at all.
            if not isinstance(label[1], tuple):
                assert f"labels mix str and {other} (rows 0 and 0)" in str(error.value)
                assert "make a column of each (dataset.with_columns), and give their names to columns=" in str(
                    error.value
                )
    with pytest.raises(ValueError, match=r"labels mix str and int \(rows 3 and 0\)"):
        wr.DataLoader(parquet, labels=[(1, 2)] * 3 + [("a", "b")] * 37)
    texts = [(f"A{row}", "x") for row in range(40)]
    assert next(iter(wr.DataLoader(parquet, 4, labels=texts)))[1] == [list(pair) for pair in texts[:4]]
    # torch's own datasets keep tuples, and torch makes a part of each kind.
    assert wellread.torch.Dataset(parquet, labels=[("a", 1)] * 40)[3][1] == ("a", 1)


def test_labels_come_from_generators_and_views_of_dictionaries(parquet):
    wanted = [row % 3 for row in range(40)]
    named = dict(enumerate(wanted))
    for make in (lambda: (label for label in wanted), named.values, lambda: map(int, wanted), lambda: iter(wanted)):
        loader = wr.DataLoader(parquet, 40, labels=make())
        assert [next(iter(loader))[1].tolist() for _ in range(2)] == [wanted] * 2
        assert wr.DataLoader(parquet, 40, labels=make(), classes=True).classes == [0, 1, 2]
        assert [label for _, label in wellread.torch.Dataset(parquet, labels=make())] == wanted
        assert wellread.torch.Dataset(parquet, labels=make(), classes=[2, 1, 0])[1][1] == 1
    for labels in (np.array(5), torch.tensor(5), 5):
        for make in (wr.DataLoader, wellread.torch.Dataset):
            with pytest.raises((TypeError, ValueError), match="^labels must be"):
                make(parquet, labels=labels)


def test_classes_may_be_of_any_library(parquet):
    jnp = pytest.importorskip("jax.numpy")
    numbers, texts = [row % 3 for row in range(40)], [f"A{row % 3}" for row in range(40)]
    for classes in (torch.tensor([2, 0, 1]), np.array([2, 0, 1]), jnp.array([2, 0, 1]), pa.array([2, 0, 1])):
        loader = wr.DataLoader(parquet, 3, labels=numbers, classes=classes)
        assert loader.classes == [2, 0, 1] and next(iter(loader))[1].tolist() == [1, 2, 0]
        assert [type(name) for name in loader.classes] == [int] * 3
    for classes in (
        pa.array(["A2", "A0", "A1"]),
        pa.chunked_array([["A2"], ["A0", "A1"]]),
        np.array(["A2", "A0", "A1"]),
    ):
        assert wr.DataLoader(parquet, 3, labels=texts, classes=classes).class_to_idx == {"A2": 0, "A0": 1, "A1": 2}
    for classes in (np.array(2), torch.tensor(2)):
        with pytest.raises(TypeError, match="classes must be True, or the list of classes"):
            wr.DataLoader(parquet, labels=numbers, classes=classes)


def test_arrays_of_pyarrow_are_rows_keys_and_values(parquet):
    wanted = [row % 3 == 0 for row in range(40)]
    rows = [row for row in range(40) if row % 3 == 0]
    ds = wr.Dataset(parquet)
    for truths in (pa.array(wanted), pa.chunked_array([wanted[:7], wanted[7:]])):
        assert wr.DataLoader(ds, rows=truths).rows(0) == rows
        assert len(ds.select(truths)) == len(rows) and len(ds[truths]) == len(rows)
        assert len(ds.filter(truths)) == len(rows)
    assert wr.DataLoader(ds, rows=pa.array([3, 1])).rows(0) == [3, 1]
    with pytest.raises(TypeError, match=r"rows\[0\] must be a whole number, not NoneType"):
        wr.DataLoader(ds, rows=pa.array([None, 3]))
    # Keys are those of a list.
    for keys in ([True, None, False, True] * 10, [2.5, None, 3.0, 1e20] * 10, [None, *map(str, range(39))]):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*of 40 images none is in part")
            for seed in range(4):
                wanted_parts = ds.split([0.5, 0.5], by=keys, seed=seed)
                assert ds.split([0.5, 0.5], by=pa.array(keys), seed=seed) == wanted_parts
    weights = pa.chunked_array([[1.0] * 20, [0.0] * 20])
    assert set(wr.DataLoader(ds, order="weighted", weights=weights).rows(0)) <= set(range(20))
    for table in (pa.table({"a": wanted}), pa.record_batch({"a": pa.array(wanted)})):
        with pytest.raises(TypeError, match="by must be .*: give one of its columns"):
            ds.split([0.5, 0.5], by=table)
    wells = ds.with_columns(pa.table({"w": [f"A{row % 4}" for row in range(40)], "n": range(40)}))
    assert len(wells.filter(w=pa.array(["A1", "A2"]))) == 20
    assert len(wells.filter(w=pa.chunked_array([["A1"], ["A2"]]), n=pa.array([1, 2, 3, None]))) == 2
    assert len(wells.filter(w=pa.scalar("A1"))) == 10
    with pytest.raises(TypeError, match="column n has numbers"):
        wells.filter(n=pa.array(["A1"]))


@pytest.mark.parametrize("made", [np.array, torch.tensor], ids=["numpy", "torch"])
def test_arrays_without_axes_are_numbers(parquet, made):
    for name, value in (
        *(("scale", 2.0), ("flip", 0.5), ("flip", True), ("crop", 24), ("random_crop", 24), ("resize", 24)),
        *(("target_scale", 0.5), ("rotate", 3.0)),
    ):
        more = {"targets": parquet, "target_kind": "image"} if name == "target_scale" else {}
        wanted = next(iter(wr.DataLoader(parquet, 8, seed=3, **{name: value}, **more)))
        found = next(iter(wr.DataLoader(parquet, 8, seed=3, **{name: made(value)}, **more)))
        assert np.array_equal(np.asarray(found[-1]), np.asarray(wanted[-1]))
        assert np.array_equal(np.asarray(found[0]), np.asarray(wanted[0]))
    groups = {"order": "block", "by": [row // 5 for row in range(40)], "seed": 3}
    assert wr.DataLoader(parquet, block=made(2), **groups).rows(0) == wr.DataLoader(parquet, block=2, **groups).rows(
        0
    )
    for name, value in (("crop", 2.5), ("crop", True), ("scale", True)):
        with pytest.raises(TypeError, match=f"^{name} must be"):
            wr.DataLoader(parquet, **{name: made(value)})


@pytest.mark.parametrize("made", [np.int64, torch.tensor, np.array], ids=["numpy", "torch", "arrays"])
def test_states_may_hold_numbers_of_numpy_and_torch(parquet, made):
    loader = wr.DataLoader(parquet, 8)
    iterator = iter(loader)
    next(iterator)
    state = {name: made(value) if isinstance(value, int) else value for name, value in loader.state_dict().items()}
    other = wr.DataLoader(parquet, 8, as_="batch")
    other.load_state_dict(state)
    assert other.state_dict() == loader.state_dict()
    assert next(iter(other)).rows == list(range(8, 16))
    dataset = wellread.torch.IterableDataset(parquet, batch_size=8, indices=True)
    given = {name: made(v) if isinstance(v, int) else v for name, v in dataset.state_dict().items()}
    dataset.load_state_dict(given | {"position": made(8)})
    assert next(iter(dataset))[1].tolist() == list(range(8, 16))
    with pytest.raises(ValueError, match="state_dict must be what state_dict"):
        other.load_state_dict(state | {"epoch": object()})


def test_views_may_be_a_generator(parquet):
    recipes = [{"flip": True}, {"turns": "quarter"}]
    wanted = next(iter(wr.DataLoader(parquet, 4, crop=32, views=recipes)))
    loader = wr.DataLoader(parquet, 4, crop=32, views=(recipe for recipe in recipes))
    for made in (loader, pickle.loads(pickle.dumps(loader))):
        found = next(iter(made))
        assert len(found) == 2 and all(map(np.array_equal, found, wanted))


def test_a_column_with_a_name_is_a_table(parquet):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    ds = wr.Dataset(parquet)
    for series in (pd.Series(range(40), name="n"), pl.Series("n", range(40))):
        assert ds.with_columns(series).column("n").tolist() == list(range(40))
    for series in (pd.Series(range(40)), pl.Series(range(40))):
        with pytest.raises(TypeError, match=r'table is a Series without a name: give table.to_frame\("NAME"\)'):
            ds.with_columns(series)
    for column in (pa.array(range(40)), pa.chunked_array([range(40)])):
        with pytest.raises(
            TypeError, match=r"table is one column without a name \((Int64|Chunked)Array\): give pyarrow"
        ):
            ds.with_columns(column)
    by_index = pd.Series(range(40), name="n", index=pd.Index([ds.name(row) for row in range(40)][::-1], name="image"))
    assert ds.with_columns(by_index, on="image").column("n").tolist() == list(range(40))[::-1]


def test_two_columns_of_one_name_are_named(parquet):
    pd = pytest.importorskip("pandas")
    ds = wr.Dataset(parquet)
    values = [list(range(40))] * 3
    frame = pd.DataFrame(dict(enumerate(values)))
    frame.columns = ["a", "b", "a"]
    for table in (frame, pa.table(values, names=["a", "b", "a"])):
        with pytest.raises(wr.ChoiceError, match="has two columns ['\"]a['\"]"):
            ds.with_columns(table)


def test_dictionaries_are_tables(parquet):
    ds = wr.Dataset(parquet)
    assert ds.with_columns({"n": range(40)}).column("n").tolist() == list(range(40))
    names = [ds.name(row) for row in range(40)]
    joined = ds.with_columns({"image": names[::-1], "n": np.arange(40)}, on="image")
    assert joined.column("n").tolist() == list(range(40))[::-1]
    assert pickle.loads(pickle.dumps(joined)).column("n").tolist() == list(range(40))[::-1]
    for wrong in ({"a": 3}, {"a": [1], "b": [1, 2]}):
        with pytest.raises(TypeError, match="table is a dict, and must have columns of equal length by their names"):
            ds.with_columns(wrong)


def test_positions_of_cells_may_be_float16_or_decimals(parquet):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    ds = wr.Dataset(parquet)
    image = [ds.name(3), ds.name(0), ds.name(0)]
    numbers = {"x": [20.5, 30.0, 24.0], "y": [16.0, 20.25, 25.0]}
    wanted = ds.cells({"image": image, **numbers}, size=8)[:]
    halves = {name: np.array(values, "float16") for name, values in numbers.items()}
    exact = {name: [decimal.Decimal(str(value)) for value in values] for name, values in numbers.items()}
    known = {"Nuclei_Location_Center_X": "x", "Nuclei_Location_Center_Y": "y"}
    for positions in (halves, exact):
        table = {"image": image, "half": np.array([1, 2, 3], "float16"), **positions}
        made = [table, pa.table(table), pd.DataFrame(table)]
        if positions is exact:
            made.append(pl.DataFrame({"image": image, **exact}))
        for given in made:
            cells = ds.cells(given, size=8)
            assert np.array_equal(cells[:], wanted)
            assert cells.column("x").dtype == "float64" and cells.column("x").tolist() == numbers["x"]
            # Other columns stay.
            assert "half" not in cells.columns or cells.column("half").dtype == "float16"
            assert np.array_equal(pickle.loads(pickle.dumps(cells))[:], wanted)
        for names in (("cx", "cy"), tuple(known)):
            renamed = pd.DataFrame({"image": image, names[0]: positions["x"], names[1]: positions["y"]})
            choices = {"x": "cx", "y": "cy"} if names[0] == "cx" else {}
            assert np.array_equal(ds.cells(renamed, size=8, **choices)[:], wanted)
    # A position that is missing is told, as in other tables.
    lacks = pa.table({"image": image, "x": pa.array([None, *exact["x"][1:]]), "y": exact["y"]})
    with pytest.raises(wr.ChoiceError, match="1 of 3 cells cannot be cut out"):
        ds.cells(lacks, size=8)
    assert len(ds.cells(lacks, size=8, unmatched="skip")) == 2
