"""Several sets as one, and some rows of a set, from Python.

Long because tests share the plates that a fixture of this file makes.
"""

import datetime
import decimal
import os
import pickle
import shutil
import warnings

import numpy as np
import pyarrow as pa
import pytest
import tifffile
import wellread as wr
from PIL import Image
from wellread import _check, _native
from wellread._tasks import task
from wellread.ray import _cluster


@pytest.fixture
def plates(tmp_path, wellread):
    """Three plates of 2, 3 and 4 images as Parquet, below folders that name them."""
    for number, images in enumerate((2, 3, 4)):
        folder = tmp_path / "screen" / f"plate=BR{number}"
        folder.mkdir(parents=True)
        size = ["--size", "8x8", "--images", images, "--seed", number]
        made = wellread("generate", tmp_path / f"made{number}", *size, "--formats", "parquet")
        shutil.move(made["written"][0]["path"], folder / "images.parquet")
    return tmp_path / "screen"


def images_of(plates):
    return [image for path in sorted(plates.glob("*/*.parquet")) for image in wr.Dataset(path)]


def test_paths_patterns_and_folders_are_one_set(plates):
    expected = images_of(plates)
    paths = sorted(plates.glob("*/*.parquet"))
    for path in (paths, plates, plates / "*" / "*.parquet", str(plates / "**" / "*.parquet"), [plates / "*=BR?"]):
        ds = wr.Dataset(path)
        assert len(ds) == 9 and ds.format == "parquet"
        assert list(ds.parts.values()) == [range(0, 2), range(2, 5), range(5, 9)]
        assert all(np.array_equal(ds[row], image) for row, image in enumerate(expected))
        assert len({ds.name(row) for row in range(9)}) == 9
        again = pickle.loads(pickle.dumps(ds))
        assert np.array_equal(again[8], expected[8]) and list(again.parts) == list(ds.parts)
    assert list(wr.Dataset(plates).column("plate")) == ["BR0"] * 2 + ["BR1"] * 3 + ["BR2"] * 4
    assert wr.Dataset(plates, cache="memory")[8].shape == expected[8].shape
    with pytest.raises(FileNotFoundError, match="fits the pattern .hint: .*screen holds plate=BR0, plate=BR1, "):
        wr.Dataset(plates / "none*.parquet")
    with pytest.raises(ValueError, match="empty list"):
        wr.Dataset([])
    with pytest.raises(TypeError, match=r"path\[1\]"):
        wr.Dataset([paths[0], 3])


def test_a_loader_takes_a_list_of_paths_as_a_dataset_does(plates):
    paths = sorted(plates.glob("*/*.parquet"))
    expected = np.stack(images_of(plates))
    loader = wr.DataLoader(paths, 4, dtype="stored", targets=paths, num_workers=0)
    pixels, targets = (np.concatenate(parts) for parts in zip(*loader, strict=True))
    assert np.array_equal(pixels, expected) and np.array_equal(targets, expected)
    # Opened here, and closed with the loader.
    loader.close()
    assert loader.dataset.closed and loader.targets.closed
    for wrong, named in (
        ((paths[0], 3), r"dataset\[1\]"),
        ([], "dataset must not be an empty list"),
        (3, "list of paths"),
    ):
        with pytest.raises((TypeError, ValueError), match=named):
            wr.DataLoader(wrong)


def test_sets_are_put_together(plates):
    a, b, c = (wr.Dataset(path) for path in sorted(plates.glob("*/*.parquet")))
    expected = images_of(plates)
    for whole in (wr.Dataset.concat([a, b, c]), a + b + c):
        assert len(whole) == 9 and len(whole.parts) == 3
        assert np.array_equal(whole[[8, 0, 4]], np.stack([expected[8], expected[0], expected[4]]))
        assert np.array_equal(pickle.loads(pickle.dumps(whole))[5], expected[5])
        batches = list(wr.DataLoader(whole, batch_size=4, dtype="stored", num_workers=2))
        assert np.array_equal(np.concatenate(batches), np.stack(expected))
    assert a.parts == {}
    for wrong in (3, [a, "b"]):
        with pytest.raises(TypeError, match="datasets"):
            wr.Dataset.concat(wrong)
    with pytest.raises(ValueError, match="empty"):
        wr.Dataset.concat([])
    with pytest.raises(TypeError):
        _ = a + [b]


def test_parts_are_called_alike_however_their_paths_are_typed(plates, monkeypatch):
    paths = sorted(plates.glob("*/*.parquet"))
    wanted = list(wr.Dataset.concat([wr.Dataset(path) for path in paths]).parts)
    assert wanted == ["plate=BR0/images", "plate=BR1/images", "plate=BR2/images"]
    monkeypatch.chdir(plates)
    mixed = [paths[0], *(path.relative_to(plates) for path in paths[1:])]
    for whole in (wr.Dataset.concat([wr.Dataset(path) for path in mixed]), wr.Dataset(mixed)):
        assert list(whole.parts) == wanted and whole.path == str(plates)


def test_several_sets_say_how_many_they_are_and_where(plates):
    paths = [str(path) for path in sorted(plates.glob("*/*.parquet"))]
    two, three = wr.Dataset(paths[:2]), wr.Dataset(paths)
    assert repr(two) == f"wellread.Dataset(2 sets ({paths[0]!r}, {paths[1]!r}): 5 images, {two.format})"
    shown = f"3 sets ({paths[0]!r}, {paths[1]!r} and 1 more)"
    assert repr(three) == f"wellread.Dataset({shown}: 9 images, {three.format})"
    together = two + wr.Dataset(paths[2])
    assert repr(together) == repr(pickle.loads(pickle.dumps(together))) == repr(three)
    assert repr(three.select([8])) == f"wellread.Dataset({shown}: 1 image, {three.format})"
    assert f"3 sets ({paths[0]}, {paths[1]} and 1 more)<br>9 images" in three._repr_html_()
    assert repr(wr.Dataset(paths[:1])).startswith(f"wellread.Dataset({paths[0]!r}: 2 images")
    assert (two.path, wr.Dataset(plates).path) == (str(plates), str(plates))
    three.close()
    assert repr(three) == f"wellread.Dataset({shown}: closed)"


def test_parts_are_mixed_in_shares(plates):
    ds = wr.Dataset(plates)
    weights = ds.part_weights([1, 0, 2])
    assert weights == [0.5] * 2 + [0.0] * 3 + [0.5] * 4
    assert ds.part_weights(dict(zip(ds.parts, (1, 0, 2), strict=True))) == weights
    loader = wr.DataLoader(ds, batch_size=10, weights=weights, images_per_epoch=3000, seed=3, num_workers=0)
    rows = np.array(loader.rows(0))
    assert len(rows) == 3000 and not np.isin(rows, range(2, 5)).any()
    # Six standard deviations about a third.
    assert abs((rows < 2).mean() - 1 / 3) < 6 * np.sqrt(2 / 9 / 3000)
    for wrong in ([1, 1], [1, 1, -1], [0, 0, 0], {"x": 1}):
        with pytest.raises(ValueError):
            ds.part_weights(wrong)


def test_chosen_rows_stay_of_their_parts(plates):
    ds = wr.Dataset(plates)
    names = list(ds.parts)
    some = ds.select([8, 0, 7, 2, 1])
    assert some.parts == dict(zip(names, ([1, 4], range(3, 4), [0, 2]), strict=True))
    assert some.part_weights([1, 1, 2]) == [1, 0.5, 1, 1, 0.5]
    assert pickle.loads(pickle.dumps(some)).parts == some.parts
    part = some.select(some.parts[names[2]])
    assert np.array_equal(part[0], ds[8]) and np.array_equal(part[1], ds[7])
    without = ds.filter(plate=["BR0", "BR2"])
    assert [len(rows) for rows in without.parts.values()] == [2, 0, 4]
    assert without.part_weights({names[0]: 1, names[1]: 5, names[2]: 1}) == [0.5] * 2 + [0.25] * 4
    loader = wr.DataLoader(without, batch_size=10, weights=without.part_weights([1, 0, 0]), num_workers=0)
    assert set(loader.rows(0)) <= {0, 1}


def test_cells_are_of_the_parts_of_their_images(plates):
    ds = wr.Dataset(plates)
    table = plates.parent / "cells.csv"
    lines = [f"{ds.name(row)},{x},3,{x}" for row in (0, 5, 8) for x in (4, 6)]
    table.write_text("\n".join(["Image,x,y,ObjectNumber", *lines]) + "\n")
    cells = ds.cells(table, x="x", y="y", by="Image", size=(2, 2))
    assert cells.parts == dict(zip(ds.parts, (range(0, 2), range(0, 0), range(2, 6)), strict=True))
    assert cells.part_weights([1, 0, 1]) == [0.5] * 2 + [0.25] * 4
    assert list(cells.select([5, 1]).parts.values()) == [range(1, 2), range(0, 0), range(0, 1)]


def told_of_names(split):
    """How often a call warns of names that begin with the name of their set."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        split()
    return sum("names of these sets begin with the set's name" in str(one.message) for one in told)


def test_a_split_by_names_of_combined_tables_is_told(plates):
    """A plate that was added moved rows of others from training to test, without a word."""
    paths = sorted(plates.glob("*/*.parquet"))
    one, other = map(wr.Dataset, paths[1:])
    for both in (wr.Dataset(paths[1:]), wr.Dataset(plates / "*" / "*.parquet"), one + other):
        with pytest.warns(UserWarning, match="give by=.*Metadata_Well.* or split each set before") as told:
            both.split((0.5, 0.5), seed=1)
        assert repr(both.name(0)) in str(told[0].message)
        assert both.name(0) != one.name(0)
        for same in (both, both.select([0, 4]), pickle.loads(pickle.dumps(both))):
            assert [told_of_names(lambda same=same: same.split((0.5, 0.5), seed=1)) for _ in range(2)] == [1, 1]
            assert told_of_names(lambda same=same: same.split((0.5, 0.5), by="plate")) == 0
            assert told_of_names(lambda same=same: same.split((0.5, 0.5), by=list(range(len(same))))) == 0
    assert told_of_names(lambda: one.split((0.5, 0.5))) == 0
    # One set in a list is called as it is alone.
    alone = wr.Dataset(paths[1:2])
    assert alone.name(0) == one.name(0) and told_of_names(lambda: alone.split((0.5, 0.5))) == 0


def test_a_split_by_names_of_combined_folders_is_told_where_names_repeat(tmp_path):
    for folder, names in (("A", "xy"), ("B", "yz"), ("C", "vw")):
        (tmp_path / folder).mkdir()
        for name in names:
            tifffile.imwrite(tmp_path / folder / f"{name}.tif", np.zeros((4, 5), np.uint8))
    repeated, apart = (wr.Dataset([tmp_path / "A", tmp_path / other]) for other in "BC")
    assert [repeated.name(row) for row in range(4)] == ["A/x", "A/y", "B/y", "B/z"]
    assert [apart.name(row) for row in range(4)] == ["x", "y", "v", "w"]
    assert told_of_names(lambda: repeated.split((0.5, 0.5))) == 1
    assert told_of_names(lambda: apart.split((0.5, 0.5))) == 0
    # As long as names stay, so do parts.
    parts = {seed: wr.Dataset(tmp_path / "A").split((0.5, 0.5), seed=seed) for seed in range(8)}
    for seed, of_one in parts.items():
        assert [[row for row in part if row < 2] for part in apart.split((0.5, 0.5), seed=seed)] == of_one


def test_a_split_by_names_of_cells_of_combined_sets_is_told(plates):
    paths = sorted(plates.glob("*/*.parquet"))
    for path, times in ((paths, 1), (paths[0], 0)):
        ds = wr.Dataset(path)
        lines = [f"{ds.name(row)},{x},3,{x}" for row in (0, 1) for x in (4, 6)]
        table = plates.parent / f"cells-{times}.csv"
        table.write_text("\n".join(["Image,x,y,ObjectNumber", *lines]) + "\n")
        cells = ds.cells(table, x="x", y="y", by="Image", size=(2, 2))
        assert told_of_names(lambda cells=cells: cells.split((0.5, 0.5))) == times
        assert told_of_names(lambda cells=cells: cells.split((0.5, 0.5), by=[0, 0, 1, 1])) == 0


def test_some_rows_are_a_set(plates):
    ds = wr.Dataset(plates)
    expected = images_of(plates)
    for wanted, rows in (
        (slice(1, 8, 3), [1, 4, 7]),
        ([8, -9, 0], [8, 0, 0]),
        (np.arange(9) > 6, [7, 8]),
        (ds.parts["plate=BR1/images"], [2, 3, 4]),
    ):
        view = ds.select(wanted)
        assert len(view) == len(rows)
        assert all(np.array_equal(view[i], expected[row]) for i, row in enumerate(rows))
        assert list(view.column("plate")) == [ds.column("plate")[row] for row in rows]
        assert np.array_equal(pickle.loads(pickle.dumps(view))[0], expected[rows[0]])
    assert np.array_equal(ds.select([5, 6]).select([1])[0], expected[6])
    both = ds.select([0]) + ds.select([8])
    assert np.array_equal(both[1], expected[8])
    with pytest.raises(IndexError, match="row 9"):
        ds.select([9])
    with pytest.raises(TypeError, match="rows must be"):
        ds.select(3)


def test_rows_are_filtered_by_columns(plates):
    ds = wr.Dataset(plates)
    names = [ds.name(row) for row in range(9)]

    def kept(view):
        return [names.index(view.name(row)) for row in range(len(view))]

    assert kept(ds.filter(plate="BR1")) == [2, 3, 4]
    assert kept(ds.filter(plate=["BR0", "BR2"])) == [0, 1, 5, 6, 7, 8]
    assert kept(ds.filter(lambda columns: columns["plate"] != "BR1", plate=["BR1", "BR2"])) == [5, 6, 7, 8]
    assert kept(ds.filter(np.arange(9) % 4 == 0)) == [0, 4, 8]
    assert len(ds.filter(plate=None)) == 0 and len(ds.filter(plate="none")) == 0
    with pytest.raises(KeyError, match='no column "x"'):
        ds.filter(x=1)
    with pytest.raises(KeyError, match='no column "x"'):
        ds.filter(lambda columns: columns["x"] > 1)
    with pytest.raises(TypeError, match="condition"):
        ds.filter()
    with pytest.raises(ValueError, match="one truth value"):
        ds.filter([1, 2])
    # Of no rows, an empty list has one truth value each.
    none = ds.filter(plate="none")
    for condition in ([], lambda columns: [plate > "BR" for plate in columns["plate"]], np.array([], bool)):
        assert len(none.filter(condition)) == 0
    for condition in ([True], [[]]):
        with pytest.raises(ValueError, match="each of 0 rows"):
            none.filter(condition)
    with pytest.raises(ValueError, match="each of 9 rows"):
        ds.filter([])


@pytest.mark.parametrize("wanted", [lambda value: value == "BR1", slice(0, 3), b"BR1", object(), {"BR1": 1}])
def test_what_no_value_is_filters_nothing(plates, wanted):
    """It would be equal to none, and the set empty."""
    ds = wr.Dataset(plates)
    said = "a condition goes first, without a name" if callable(wanted) else "takes a value, a list of values or None"
    with pytest.raises(TypeError, match=f"plate= .*{said}" if callable(wanted) else f"plate= {said}"):
        ds.filter(plate=wanted)
    if not callable(wanted) and not isinstance(wanted, dict):
        with pytest.raises(TypeError, match=said):
            ds.filter(plate=["BR1", wanted])


UTC = datetime.timezone.utc
CET = datetime.timezone(datetime.timedelta(hours=1))


@pytest.fixture
def typed(plates):
    """Three images with columns of many types, of which the second row has no value but in two of them."""
    times = [datetime.datetime(2020, 1, 2, 3, 4, 5), None, datetime.datetime(2021, 1, 1)]
    zoned = [time and time.replace(tzinfo=UTC) for time in times]
    columns = {
        "zoned": pa.array(zoned, pa.timestamp("us", "Europe/Berlin")),
        "stamp": pa.array(times, pa.timestamp("ns")),
        "time": pa.array([datetime.time(1, 2, 3, 4), None, datetime.time(5)], pa.time64("us")),
        "date": pa.array([datetime.date(2020, 1, 2), None, datetime.date(2021, 1, 1)], pa.date32()),
        "took": pa.array([datetime.timedelta(seconds=3), None, datetime.timedelta(1)], pa.duration("us")),
        "some": [True, None, False],
        "truth": [True, True, False],
        "part": [1.5, None, 2.0],
        "count": [1, 2, 3],
        "word": ["a", None, "b"],
    }
    return wr.Dataset(plates).select([0, 1, 2]).with_columns(pa.table(columns))


@pytest.mark.parametrize(
    ("column", "wanted", "rows"),
    [
        ("zoned", datetime.datetime(2020, 1, 2, 4, 4, 5, tzinfo=CET), [0]),
        ("zoned", datetime.datetime(2020, 1, 2, 3, 4, 5), [0]),
        ("stamp", [np.datetime64("2020-01-02T03:04:05"), np.datetime64("NaT")], [0, 1]),
        ("stamp", datetime.date(2021, 1, 1), [2]),
        ("stamp", datetime.datetime(9999, 1, 1), []),
        ("time", datetime.time(1, 2, 3, 4), [0]),
        ("time", [datetime.timedelta(hours=5), None], [1, 2]),
        ("date", datetime.datetime(2020, 1, 2), [0]),
        ("date", [datetime.date(2021, 1, 1), None], [1, 2]),
        ("took", np.timedelta64(3, "s"), [0]),
        ("some", [False, None], [1, 2]),
        ("truth", np.True_, [0, 1]),
        ("part", float("nan"), [1]),
        ("part", decimal.Decimal("1.5"), [0]),
        ("count", float("nan"), []),
        ("count", np.array(3), [2]),
        ("word", [None, "b"], [1, 2]),
    ],
)
def test_values_are_found_by_what_they_are(typed, column, wanted, rows):
    names = [typed.name(row) for row in range(3)]
    found = typed.filter(**{column: wanted})
    assert [names.index(found.name(row)) for row in range(len(found))] == rows


@pytest.mark.parametrize(
    ("column", "wanted", "said"),
    [
        ("stamp", 5, "has dates and times .* give a date with its time"),
        ("zoned", "2020-01-02", "has dates and times"),
        ("time", "01:02", "has times or durations"),
        ("time", 3, "give a time or a timedelta"),
        ("time", datetime.time(1, tzinfo=UTC), "without a time zone"),
        ("date", "2020-01-02", "has dates .* give a date"),
        ("date", datetime.datetime(2020, 1, 2, 5), "has dates .* give a date"),
        ("took", 3, "has times or durations"),
        ("some", "True", "has truth values .* give True or False"),
        ("truth", "x", "has truth values"),
        ("truth", 5, "has truth values"),
        ("part", np.timedelta64(3, "s"), "has numbers .* give a number"),
        ("word", np.True_, "has texts .* give a text"),
    ],
)
def test_what_a_column_cannot_have_filters_nothing(typed, column, wanted, said):
    with pytest.raises(TypeError, match=said):
        typed.filter(**{column: [None, wanted]})


def test_a_set_of_no_rows_is_of_its_set(plates):
    ds = wr.Dataset(plates)
    want = ds[[]]
    assert want.shape == (0, *ds.image_shape(0)) and want.dtype == ds.dtype
    nothing = ds.select([])
    sums = (nothing + nothing, nothing + nothing + nothing)
    for none in (nothing, ds.filter(plate="none"), ds.select([1, 2]).select([]), *sums):
        for view in (none, none.select([]), pickle.loads(pickle.dumps(none))):
            assert len(view) == 0 and view.shape == view[:].shape == want.shape
            assert view.dtype == view[:].dtype == want.dtype
            assert view.read([], (slice(0, 3), slice(1, 5))).shape[-2:] == (3, 4)
    # With rows of one of them it is a set as any other.
    assert (nothing + ds)[:1].tolist() == ds[:1].tolist()


def test_missing_columns_are_told_with_the_one_that_was_meant(plates):
    ds = wr.Dataset(plates)
    asked = (
        lambda: ds.split((0.5, 0.5), by="plat"),
        lambda: ds.filter(plat="BR1"),
        lambda: ds.filter(lambda columns: columns["plat"] == "BR1"),
        lambda: ds.column("plat"),
    )
    there = f"it has {_check.counted(len(ds.columns), 'column')}: {', '.join(ds.columns[:12])}"
    for ask in asked:
        with pytest.raises(KeyError) as error:
            ask()
        assert error.value.args[0] == f'no column "plat" stands beside the images; is it "plate"? {there}'
    assert _check.some([f"c{i}" for i in range(16)]).endswith("c11 and 4 more")
    assert _check.some(["a", "b"]) == "a, b"


def test_columns_of_several_sets(plates):
    a, b = (wr.Dataset(path) for path in sorted(plates.glob("*/*.parquet"))[:2])
    pa = pytest.importorskip("pyarrow")
    a = a.with_columns(pa.table({"dose": pa.array([1, 2], pa.int8()), "drug": ["x", "y"]}))
    b = b.with_columns(pa.table({"dose": [0.5, 1.5, 2.5]}))
    both = a + b
    assert both.column("dose").tolist() == [1, 2, 0.5, 1.5, 2.5]
    assert list(both.column("drug")) == ["x", "y", None, None, None]
    c = b.with_columns(pa.table({"drug": [1, 2, 3]}))
    with pytest.raises(wr.ChoiceError, match="drug"):
        (a + c).column("drug")


def test_tables_of_files(tmp_path):
    tifffile = pytest.importorskip("tifffile")
    lines = ["FileName_OrigDNA,PathName_OrigDNA,Metadata_Well"]
    for i, well in enumerate(("A01", "A02")):
        tifffile.imwrite(tmp_path / f"{well}.tif", np.full((4, 5), i, np.uint16))
        lines.append(f"{well}.tif,/elsewhere,{well}")
    table = tmp_path / "load_data.csv"
    table.write_text("\n".join(lines))
    ds = wr.Dataset.from_load_data(table, path_map={"/elsewhere": str(tmp_path)})
    assert len(ds) == 2 and list(ds.column("Metadata_Well")) == ["A01", "A02"]
    assert (ds[1] == 1).all()
    with pytest.raises(ValueError, match="load_data.csv"):
        wr.Dataset.from_load_data(tmp_path)


def test_pictures_are_found_by_relative_paths(tmp_path, monkeypatch):
    folder = tmp_path / "pictures"
    folder.mkdir()
    for value, name in enumerate("abc"):
        Image.fromarray(np.full((4, 5), value, "uint8")).save(folder / f"{name}.png")
    (tmp_path / "load_data.csv").write_text("FileName_OrigDNA,FileName_OrigER\npictures/b.png,pictures/c.png\n")
    monkeypatch.chdir(tmp_path)
    for given in ([f"pictures/{name}.png" for name in "abc"], "pictures/*.png"):
        ds = wr.Dataset(given)
        assert [ds.name(row) for row in range(3)] == ["a", "b", "c"]
        assert [ds[row].max() for row in range(3)] == [0, 1, 2]
    assert wr.Dataset("load_data.csv")[0].reshape(2, -1).max(axis=1).tolist() == [1, 2]
    monkeypatch.chdir(folder)
    assert wr.Dataset("*.png")[2].max() == 2


def test_channels_go_by_their_names_in_each_image(tmp_path, wellread):
    orders = {"one": ["DNA", "ER"], "two": ["ER", "DNA"], "three": ["ER", "AGP"]}
    images = {}
    for number, (plate, names) in enumerate(orders.items()):
        (tmp_path / plate).mkdir()
        image = np.random.default_rng(number).integers(0, 4096, (2, 16, 20), dtype=np.uint16)
        about = {"axes": "CYX", "Channel": {"Name": names}}
        tifffile.imwrite(tmp_path / plate / f"{plate}.ome.tif", image, photometric="minisblack", metadata=about)
        images[plate] = dict(zip(names, image, strict=True))
    both = wr.Dataset([tmp_path / "one", tmp_path / "two"])
    for names in (["DNA"], ["ER", "DNA"]):
        expected = [[images[plate][name] for name in names] for plate in ("one", "two")]
        for workers in (0, 2):
            loader = wr.DataLoader(both, 2, dtype="stored", channels=names, num_workers=workers)
            assert np.array_equal(np.concatenate(list(loader)), expected)
    targets = wr.DataLoader(both, 2, dtype="stored", targets=both, target_channels=["ER"], target_dtype="stored")
    [(_, found)] = list(targets)
    assert np.array_equal(found, [[images[plate]["ER"]] for plate in ("one", "two")])
    views = wr.DataLoader(both, 2, scale=None, channels=["ER"], views=2)
    [(first, _)] = list(views)
    assert np.array_equal(first, [[images[plate]["ER"]] for plate in ("one", "two")])
    lacking = wr.Dataset([tmp_path / "one", tmp_path / "three"])
    with pytest.raises(wr.ChoiceError, match=r"row 1.*no channel .DNA.*AGP"):
        list(wr.DataLoader(lacking, 1, channels=["DNA"]))
    (tmp_path / "all").mkdir()
    for plate in ("one", "two"):
        shutil.copy(tmp_path / plate / f"{plate}.ome.tif", tmp_path / "all")
    said = wellread("stats", tmp_path / "all", "--out", tmp_path / "stats.json")
    assert [channel.get("name") for channel in said["channels"]] == ["DNA", "ER"]
    for channel in said["channels"]:
        expected = np.mean([images[plate][channel["name"]] for plate in ("one", "two")])
        assert channel["mean"] == pytest.approx(expected, rel=1e-6)


def test_images_of_one_set_that_name_channels_in_two_orders_are_told(tmp_path, wellread):
    values = {"DNA": 1, "ER": 2}
    for name, stains in (("a", ("DNA", "ER")), ("b", ("ER", "DNA"))):
        image = np.stack([np.full((8, 8), values[stain], np.uint16) for stain in stains])
        about = {"axes": "CYX", "Channel": {"Name": list(stains)}}
        tifffile.imwrite(tmp_path / f"{name}.ome.tif", image, photometric="minisblack", metadata=about)
    ds = wr.Dataset(tmp_path)
    names = [ds.name(row) for row in range(2)]
    two = rf"\['DNA', 'ER'\] in {names[0]}, \['ER', 'DNA'\] in {names[1]}: batches mix them"
    with pytest.warns(UserWarning, match=two):
        [pixels] = wr.DataLoader(ds, 2, scale=None)
    assert pixels[:, :, 0, 0].tolist() == [[1, 2], [2, 1]]
    # Targets are taken by number as well.
    with pytest.warns(UserWarning, match=r"channels of targets go by number.*target_channels=\[names\]"):
        loader = wr.DataLoader(
            ds,
            2,
            channels=["DNA"],
            scale=None,
            targets=ds,
            target_kind="image",
            target_channels=[0],
            target_scale=None,
        )
    [(pixels, targets)] = loader
    assert (pixels[:, :, 0, 0].tolist(), targets[:, :, 0, 0].tolist()) == ([[1], [1]], [[1], [2]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(wr.DataLoader(ds, 1, rows=[1])) == 1
        assert len(wr.DataLoader(ds, 2, channels=["ER"])) == 1
    info = wellread("info", tmp_path)
    assert (info["channels_reordered"], info["channels_unlike"]) == (1, 0)
    assert info["channels_elsewhere"] == [{"image": names[1], "channels": ["ER", "DNA"]}]
    assert wellread("stats", tmp_path)["reordered"] == 1


def test_a_misspelt_field_of_a_pattern_is_told(tmp_path):
    for stain in ("DNA", "ER"):
        tifffile.imwrite(tmp_path / f"A01_{stain}.tif", np.zeros((8, 8), np.uint16))
    with pytest.warns(UserWarning, match=r"\{chanel\}, which is a column of its own; did you mean \{channel\}\?"):
        ds = wr.Dataset(tmp_path, pattern="{well}_{chanel}.tif")
    assert (len(ds), "chanel" in " ".join(ds.columns).lower()) == (2, True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(wr.Dataset(tmp_path, pattern="{well}_{channel}.tif")) == 1


def test_sets_of_other_channels_are_told_where_channels_go_by_number(tmp_path):
    values = {"DNA": 1, "ER": 2, "AGP": 3}
    for plate, stains in (("one", ("DNA", "ER")), ("two", ("AGP", "DNA"))):
        (tmp_path / plate).mkdir()
        for stain in stains:
            image = np.full((8, 8), values[stain], np.uint16)
            tifffile.imwrite(tmp_path / plate / f"A01_{stain}.tif", image)
    one, two = (wr.Dataset(tmp_path / plate, pattern="{well}_{channel}.tif") for plate in ("one", "two"))
    both = one + two

    def first_pixels(**choices):
        [pixels] = wr.DataLoader(both, 2, scale=None, **choices)
        return pixels[:, :, 0, 0].tolist()

    with pytest.warns(UserWarning, match=r"\['DNA', 'ER'\] in one, \['AGP', 'DNA'\] in two: batches mix them"):
        assert first_pixels() == [[1, 2], [3, 1]]
    with pytest.warns(UserWarning, match=r"\['ER'\] in one, \['DNA'\] in two"):
        assert first_pixels(channels=[1]) == [[2], [1]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert first_pixels(channels=["DNA"]) == [[1], [1]]
        # Of rows of one set, and of sets that are alike, nothing is mixed.
        assert len(wr.DataLoader(both, 1, rows=[1])) == 1
        assert len(wr.DataLoader(one + one.select([0]), 1)) == 2


def test_an_address_is_what_the_readers_take_for_one():
    for path in ("s3://bucket/a", "https://host/a", "other+x.1-y://a"):
        assert _native.is_address(path) and task._ADDRESS.match(path)
        assert _cluster.absolute(path) == path
    # A folder may have such a name.
    for path in ("a/b://c", "://a", "s 3://a", "s3:/a", "a"):
        assert not _native.is_address(path) and not task._ADDRESS.match(path)
        assert _cluster.absolute(path) == os.path.abspath(path)


def test_formats_say_what_becomes_of_parts(tmp_path):
    found = {}
    for format in wr.formats():
        parts = _native.Parts(str(tmp_path / format), format, False, None)
        found[format] = (parts.joins, parts.keeps_columns)
        parts.discard()
    assert {format for format, (joins, _) in found.items() if joins} <= {"lance"}
    assert {format for format, (_, keeps) in found.items() if keeps} == {"ome-zarr"}
    assert found.get("lance", (True, False)) == (True, False)
