"""Columns of times in joins and splits: their values count, whatever the unit, from Python."""

import datetime
import importlib
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tifffile
import wellread as wr
from wellread import _options

START = 1_577_836_800_000
IMAGES = 24


@pytest.fixture
def images(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(IMAGES):
        tifffile.imwrite(folder / f"im_{number:02}.tif", np.full((4, 4), number, np.uint8))
    return wr.Dataset(folder)


def at(unit, scale):
    """A second between two images, from 2020 on; `scale` are ticks in a millisecond."""
    ticks = [int((START + 1000 * row) * scale) for row in range(IMAGES)]
    return pa.array(ticks, pa.timestamp(unit))


UNITS = [("s", 0.001), ("ms", 1), ("us", 1000), ("ns", 1_000_000)]


@pytest.mark.parametrize(("unit", "scale"), UNITS)
def test_joins_compare_the_values_of_times(images, unit, scale):
    of_images = images.with_columns(pa.table({"at": at("ms", 1)}))
    dose = list(range(IMAGES))
    table = pa.table({"at": at(unit, scale)[::-1], "dose": dose[::-1]})
    assert of_images.with_columns(table, on="at").column("dose").tolist() == dose


def test_a_table_of_cells_is_matched_by_times_in_other_units(images, tmp_path):
    of_images = images.with_columns(pa.table({"at": at("ms", 1)}))
    table = pa.table({"at": at("us", 1000)[3:5], "X": [2.0, 2.0], "Y": [2.0, 2.0]})
    pq.write_table(table, tmp_path / "cells.parquet")
    cells = of_images.cells(tmp_path / "cells.parquet", size=2, by="at", x="X", y="Y")
    assert [int(cells[row].max()) for row in range(2)] == [3, 4]
    numbers = table.set_column(0, "at", pa.array([START, START + 1000]))
    pq.write_table(numbers, tmp_path / "numbers.parquet")
    with pytest.raises(wr.ChoiceError, match="times and numbers are never equal"):
        of_images.cells(tmp_path / "numbers.parquet", size=2, by="at", x="X", y="Y")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (pa.timestamp("ms"), pa.int64()),
        (pa.int64(), pa.timestamp("us")),
        (pa.duration("s"), pa.int64()),
        (pa.duration("s"), pa.timestamp("s")),
        (pa.time32("s"), pa.int32()),
    ],
)
def test_times_are_not_joined_with_numbers(images, ours, theirs):
    values = list(range(IMAGES))
    of_images = images.with_columns(pa.table({"key": pa.array(values, ours)}))
    table = pa.table({"key": pa.array(values, theirs), "dose": values})
    with pytest.raises(wr.ChoiceError, match='"key" has Arrow.s type .* the images. column "key" has .*cast one'):
        of_images.with_columns(table, on="key", unmatched="null")


@pytest.mark.parametrize(
    ("coarse", "fine", "scale"),
    [
        (pa.duration("s"), pa.duration("ms"), 1000),
        (pa.time32("s"), pa.time32("ms"), 1000),
        (pa.time64("us"), pa.time64("ns"), 1000),
    ],
)
def test_durations_and_times_of_day_pair_by_their_value(images, coarse, fine, scale):
    values = list(range(IMAGES))
    of_images = images.with_columns(pa.table({"key": pa.array(values, coarse)}))
    raw = pa.table({"key": pa.array([1000 + value for value in values], fine), "dose": values})
    # Equal numbers of another unit: 1 s is 1000 ms, the first row here.
    found = of_images.with_columns(raw, on="key", unmatched="null").column("dose")
    assert found[1] == 0 and np.isnan(np.delete(found, 1)).all()
    same = pa.table({"key": pa.array([value * scale for value in values], fine), "dose": values})
    assert of_images.with_columns(same, on="key").column("dose").tolist() == values


def test_zero_has_no_sign_in_joins(images):
    values = [float(value) for value in range(IMAGES)]
    of_images = images.with_columns(pa.table({"key": values}))
    below = pa.table({"key": [-value for value in values], "dose": values})
    found = of_images.with_columns(below, on="key", unmatched="null").column("dose")
    assert found[0] == 0 and np.isnan(found[1:]).all()
    whole = images.with_columns(pa.table({"key": [-value for value in range(IMAGES)]}))
    assert whole.with_columns(below, on="key").column("dose").tolist() == values


def test_a_split_by_times_is_the_same_in_each_unit_and_from_their_values(images):
    sets = [images.with_columns(pa.table({"at": at(unit, scale)})) for unit, scale in UNITS]
    parts = [ds.split((0.5, 0.5), by="at", seed=3) for ds in sets]
    assert all(len(part) > 0 for part in parts[0])
    assert parts[1:] == parts[:1] * 3
    for ds in sets:
        assert ds.split((0.5, 0.5), by=ds.column("at"), seed=3) == parts[0]
    utc = datetime.timezone.utc
    moments = [datetime.datetime.fromtimestamp(START // 1000 + row, utc) for row in range(IMAGES)]
    plain = [moment.replace(tzinfo=None) for moment in moments]
    for keys in (plain, [time.isoformat() for time in plain]):
        assert images.split((0.5, 0.5), by=keys, seed=3) == parts[0]
    zoned = [
        images.with_columns(pa.table({"at": at(unit, scale).cast(pa.timestamp(unit, zone))}))
        for (unit, scale), zone in zip(UNITS, ("UTC", "Europe/Berlin", "UTC", "Asia/Tokyo"), strict=True)
    ]
    parts = [ds.split((0.5, 0.5), by="at", seed=3) for ds in zoned]
    assert parts[1:] == parts[:1] * 3
    east = datetime.timezone(datetime.timedelta(hours=5))
    for keys in (moments, [moment.astimezone(east) for moment in moments]):
        assert images.split((0.5, 0.5), by=keys, seed=3) == parts[0]


FLOATS = [0.1, 1.0, -0.0, 1e-7, 2.5e20, None]
GROUPS = {
    "zoned": at("us", 1000).cast(pa.timestamp("us", "Europe/Berlin")),
    "truths": pa.array([row % 2 == 0 for row in range(IMAGES)]),
    "some truths": pa.array([[True, False, None][row % 3] for row in range(IMAGES)]),
    "halves": pa.array([np.float16(row / 10) for row in range(IMAGES)], pa.float16()),
    "singles": pa.array([FLOATS[row % 6] for row in range(IMAGES)], pa.float32()),
    "doubles": pa.array([FLOATS[row % 6] for row in range(IMAGES)], pa.float64()),
    "some counts": pa.array([[1, 20, None][row % 3] for row in range(IMAGES)], pa.int32()),
    "some texts": pa.array([["a", None][row % 2] for row in range(IMAGES)]),
    "days": pa.array([86_400_000 * row for row in range(IMAGES)], pa.date64()),
}


@pytest.mark.parametrize("kind", GROUPS)
def test_groups_by_a_column_are_those_by_its_values(images, kind):
    ds = images.with_columns(pa.table({"x": GROUPS[kind]}))
    fractions = [0.3, 0.3, 0.4]
    with warnings.catch_warnings():
        # Few groups may leave a part without rows.
        warnings.simplefilter("ignore")
        parts = [[ds.split(fractions, by=by, seed=s) for s in range(8)] for by in ("x", ds.column("x"))]
    assert parts[0] == parts[1]
    with_value = [row for row, value in enumerate(GROUPS[kind].to_pylist()) if value is not None]
    for order in ("grouped", "balanced"):
        rows = []
        for by in ("x", ds.column("x")):
            choices = {"order": order, "by": by, "seed": 3, "labels": list(range(IMAGES))}
            if order == "balanced" and len(with_value) < IMAGES:
                # What has no value is of no class.
                with pytest.raises(wr.ChoiceError, match=f"of {IMAGES} images, {IMAGES - len(with_value)} rows? ha"):
                    wr.DataLoader(ds, 4, **choices)
                choices["rows"] = with_value
            loader = wr.DataLoader(ds, 4, **choices)
            rows.append([int(label) for _, labels in loader for label in labels])
        assert rows[0] == rows[1] and len(rows[0]) > 0


def test_keys_of_values_are_written_as_those_of_columns():
    east = datetime.timezone(datetime.timedelta(hours=1))
    values = [
        *(True, np.False_, None, float("nan"), np.datetime64("NaT"), 1, 1.0, np.float32(0.1), np.float16(0.1)),
        *(-0.0, 1e-7, 2.5e20, "1.0", "nan", datetime.datetime(2020, 1, 1, 9, 30, tzinfo=east)),
        np.datetime64("2020-01-01T08:30:00.500"),
    ]
    halves = ["0.10000000149011612", "0.0999755859375"]
    keys = ["true", "false", None, None, None, "1", "1", *halves, "0", "1e-7", "2.5e20", "1.0", "nan"]
    assert _options.grouping("by", values)[1] == [*keys, "2020-01-01T08:30:00", "2020-01-01T08:30:00.5"]


def test_tensors_group_by_their_values_and_tables_are_refused(images):
    """torch prints four digits of a value, and a table gives the names of its columns."""
    torch, pandas = pytest.importorskip("torch"), pytest.importorskip("pandas")
    near = [1.00001, 1.00002] * (IMAGES // 2)
    whole = [row % 8 for row in range(IMAGES)]
    for values, dtype in ((near, torch.float64), (whole, torch.int32), ([v == 1 for v in whole], torch.bool)):
        tensor = torch.tensor(values, dtype=dtype)
        for given in (tensor, list(tensor)):
            assert _options.grouping("by", given) == _options.grouping("by", values)
            assert images.split((0.5, 0.5), by=given, seed=3) == images.split((0.5, 0.5), by=values, seed=3)
    assert len(set(_options.grouping("by", torch.tensor(near, dtype=torch.float64))[1])) == 2
    table = pandas.DataFrame({"a": [5] * IMAGES, "b": [7] * IMAGES})
    for refused in (
        lambda: images.split((0.5, 0.5), by=table),
        lambda: wr.DataLoader(images, order="grouped", by=table),
        lambda: importlib.import_module("wellread.torch").Dataset(images.select([0, 1]), labels=table[:2]),
    ):
        with pytest.raises(TypeError, match="not DataFrame: give one of its columns"):
            refused()


@pytest.mark.parametrize("format", ["parquet", "duckdb"])
def test_a_split_by_times_is_the_same_in_each_format(images, tmp_path, wellread, format):
    utc = pa.array([START + 1000 * row for row in range(IMAGES)], pa.timestamp("ms", "UTC"))
    names = [images.name(row) for row in range(IMAGES)]
    pq.write_table(pa.table({"name": names, "at": utc}), tmp_path / "times.parquet")
    out = tmp_path / f"set.{format}"
    wellread("convert", tmp_path / "images", out, "--join", tmp_path / "times.parquet", "--on", "name")
    ds = wr.Dataset(out)
    by_name = {name: row for row, name in enumerate(names)}
    zoned = at("ns", 1_000_000).cast(pa.timestamp("ns", "UTC"))
    wanted = images.with_columns(pa.table({"at": zoned})).split((0.5, 0.5), by="at", seed=3)
    found = ds.split((0.5, 0.5), by="at", seed=3)
    assert [sorted(by_name[ds.name(row)] for row in part) for part in found] == wanted


def test_a_column_that_images_have_is_not_taken_for_their_names(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(1, 5):
        tifffile.imwrite(folder / f"{number}.tif", np.full((4, 4), number, np.uint8))
    images = wr.Dataset(folder)
    plan = pa.table({"Site": [1, 2, 3, 4], "dose": [10, 20, 30, 40]})
    # The images have no such column: it holds their names.
    assert images.with_columns(plan, on="Site").column("dose").tolist() == [10, 20, 30, 40]
    others = images.with_columns(pa.table({"Site": [101, 102, 103, 104]}))
    with pytest.raises(wr.ChoiceError, match="no image has a row by Site"):
        others.with_columns(plan, on="Site")
