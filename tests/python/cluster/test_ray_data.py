"""`wellread.ray.read`: sets into Ray Data, on a real cluster of nodes."""

import dataclasses
import os
import sys

import numpy as np
import pytest
import tifffile
import wellread as wr
from own_process import run_alone
from wellread import ray as wray

ray = pytest.importorskip("ray")

ROWS = list(range(40))


@pytest.mark.parametrize("format", ["parquet", "tiff", "ome-zarr"])
def test_blocks_are_what_a_loader_delivers_in_order(in_order, cells, format):
    read = wray.read(cells[format], override_num_blocks=3, rows_per_block=5)
    rows = read.take_all()
    assert [row["row"] for row in rows] == ROWS
    dataset = wr.Dataset(cells[format])
    assert [row["name"] for row in rows] == [dataset.name(row) for row in ROWS]
    [expected] = list(wr.DataLoader(dataset, batch_size=40, shard=False))
    np.testing.assert_array_equal(np.stack([row["image"] for row in rows]), expected)


def test_what_a_loader_makes_of_images_is_chosen_as_of_a_loader(in_order, labelled):
    choices = {"dtype": "stored", "channels": [1], "crop": (32, 24)}
    read = wray.read(labelled, columns=["class", "well", "score", "day"], override_num_blocks=2, **choices)
    rows = read.take_all()
    [expected] = list(wr.DataLoader(labelled, batch_size=40, shard=False, **choices))
    found = np.stack([row["image"] for row in rows])
    assert found.dtype == np.uint16 and found.shape == (40, 1, 32, 24)
    np.testing.assert_array_equal(found, expected)
    assert [row["class"] for row in rows] == [i % 3 for i in ROWS]
    assert [row["well"] for row in rows] == [f"A{i // 10:02}" for i in ROWS]
    assert [row["score"] for row in rows] == [None if i == 5 else i / 8 for i in ROWS]
    assert str(rows[3]["day"])[:10] == "2026-01-04"


def test_sizes_are_what_blocks_take(in_order, parquet):
    from wellread.ray import _read, _read_blocks, _sets
    from wellread.ray._datasource import WellreadDatasource

    dataset = wr.Dataset(parquet)
    plan = _read_blocks.Plan(_sets.recipe(dataset), {"dtype": "stored", "num_workers": 1}, [], 40)
    image_bytes, row_bytes, schema = _read._first(plan, dataset)
    assert image_bytes == 2 * 48 * 56 * 2
    source = WellreadDatasource(plan, dataset.path, 40, 16, row_bytes, schema)
    tasks = source.get_read_tasks(3)
    blocks = [block for task in tasks for block in task()]
    # Sixteen rows lie together, and one task reads them.
    assert [task.metadata.num_rows for task in tasks] == [16, 16, 8]
    assert [len(source.get_read_tasks(asked)) for asked in (1, 2, 3, 5, 6, 40)] == [1, 2, 3, 3, 6, 40]
    assert sum(task.metadata.num_rows for task in tasks) == sum(len(block) for block in blocks) == 40
    told, taken = source.estimate_inmemory_data_size(), sum(block.nbytes for block in blocks)
    assert 0.9 < told / taken < 1.1
    assert all(block.schema == schema for block in blocks)


def thumb(image):
    """An image of a part of the pixels."""
    return image[:, ::4, ::4]


@pytest.mark.parametrize(
    ("choices", "columns"), [({}, ["note", "number"]), ({"transform": thumb}, []), ({"transform": thumb}, ["note"])]
)
def test_sizes_are_of_columns_and_of_what_a_transform_makes(parquet, choices, columns):
    pa = pytest.importorskip("pyarrow")
    from wellread.ray import _read, _read_blocks, _sets
    from wellread.ray._datasource import WellreadDatasource

    beside = pa.table({"note": ["a note " * 1000] * 40, "number": list(range(40))})
    dataset = wr.Dataset(parquet).with_columns(beside)
    plan = _read_blocks.Plan(_sets.recipe(dataset), {"dtype": "stored", "num_workers": 1, **choices}, columns, 40)
    image_bytes, row_bytes, schema = _read._first(plan, dataset)
    assert image_bytes == 2 * 48 * 56 * 2 // (16 if choices else 1) and (schema is None) == bool(choices)
    source = WellreadDatasource(plan, dataset.path, 40, 16, row_bytes, schema)
    taken = sum(block.nbytes for task in source.get_read_tasks(1) for block in task())
    assert 0.9 < source.estimate_inmemory_data_size() / taken < 1.1


def test_a_transform_that_fails_fails_in_a_task(parquet):
    from wellread.ray import _read, _read_blocks, _sets

    def fails(image):
        raise ValueError("no such thing")

    dataset = wr.Dataset(parquet)
    choices = {"dtype": "stored", "num_workers": 1, "transform": fails}
    plan = _read_blocks.Plan(_sets.recipe(dataset), choices, [], 40)
    assert _read._first(plan, dataset)[0] == 2 * 48 * 56 * 2


def odd(folder, damaged=(), larger=()):
    """A folder of ten images whose pixels are their rows; some have no directory, some are of another size."""
    folder.mkdir()
    for row in range(10):
        size = 16 if row in larger else 8
        path = folder / f"im{row:02}.tif"
        tifffile.imwrite(path, np.full((size, size), row, np.uint16))
        if row in damaged:
            path.write_bytes(path.read_bytes()[:8])
    return folder


def source_of(folder, **choices):
    """The datasource of a set, which no cluster is needed for."""
    from wellread.ray import _read, _read_blocks, _sets
    from wellread.ray._datasource import WellreadDatasource

    dataset = wr.Dataset(folder)
    plan = _read_blocks.Plan(_sets.recipe(dataset), {"dtype": "stored", "num_workers": 1, **choices}, [], 3)
    plan = dataclasses.replace(plan, reference=_read._reference(plan, dataset))
    _, row_bytes, schema = _read._first(plan, dataset)
    return WellreadDatasource(plan, dataset.path, len(dataset), 1, row_bytes, schema)


def delivered(tasks):
    """Rows and images of tasks, each image being as its row says."""
    rows = []
    for block in (block for task in tasks for block in task()):
        found = block.column("row").to_pylist()
        images = block.column("image").combine_chunks().to_numpy()
        assert images.shape[1:] == (1, 8, 8) and images[:, 0, 0, 0].tolist() == found
        rows += found
    return rows


@pytest.mark.parametrize("tasks", [1, 2, 3, 10])
def test_images_that_are_left_out_do_not_depend_on_tasks(tmp_path, tasks):
    folder = odd(tmp_path / "plate", damaged=(0, 7), larger=(5, 6))
    [whole] = list(wr.DataLoader(folder, batch_size=10, dtype="stored", on_error="skip", indices=True, shard=False))
    assert whole[1].tolist() == [1, 2, 3, 4, 8, 9]
    found = source_of(folder, on_error="skip").get_read_tasks(tasks)
    # A task of two begins with row 5, whose size is that of no image that a loader of all delivers.
    assert len(found) == tasks and delivered(found) == [1, 2, 3, 4, 8, 9]


def test_images_of_another_size_are_refused_in_any_task(tmp_path):
    folder = odd(tmp_path / "plate", larger=range(5, 10))
    first, second = source_of(folder).get_read_tasks(2)
    assert delivered([first]) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="row 5.* but row 0 "):
        delivered([second])


def test_nobody_counts_images_that_may_be_left_out(tmp_path):
    folder = odd(tmp_path / "plate", damaged=(2,))
    [task] = source_of(folder, on_error="skip").get_read_tasks(1)
    assert task.metadata.num_rows is None
    # Of nine images that can be read five are asked for.
    [task] = source_of(folder, on_error="skip").get_read_tasks(1, per_task_row_limit=5)
    assert delivered([task])[:5] == [0, 1, 3, 4, 5]
    whole = odd(tmp_path / "whole")
    assert [task.metadata.num_rows for task in source_of(whole).get_read_tasks(1, per_task_row_limit=5)] == [5]


def test_a_dataset_without_images_that_cannot_be_read_has_their_count(in_order, tmp_path):
    folder = odd(tmp_path / "plate", damaged=(2,))
    read = wray.read(folder, dtype="stored", on_error="skip", override_num_blocks=2)
    assert read.count() == 9


def hold_no_more_than_is_declared(folder):
    """Run in a process of its own: what a task reads, and what one writes, of 64 images of 2 MiB each."""
    from own_process import peak, resident
    from wellread.ray import _convert, _read_blocks, _sets, _write

    mebibyte = 1 << 20

    def grown(work):
        before = resident()
        # The peak begins anew.
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        work()
        return (peak() - before) / mebibyte

    # All modules are there by then.
    assert sum(len(block) for block in _read_blocks.blocks(plan_of(folder), 0, 8)) == 8
    read = grown(lambda: [len(block) for block in _read_blocks.blocks(plan_of(folder), 0, 64)])
    # Three blocks of four images.
    assert read < 3 * 8 + 24, read
    how = (_sets.recipe(wr.Dataset(folder)), 0, 64, f"{folder}-part", "tiff", _write.options(compression="none"))
    written = grown(lambda: _convert.part_task((*how, 8 * mebibyte, True, False)))
    assert written < 8 + 48, written


def plan_of(folder):
    from wellread.ray import _read_blocks, _sets

    return _read_blocks.Plan(_sets.recipe(wr.Dataset(folder)), {"dtype": "stored", "num_workers": 1}, [], 4)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is looked at as Linux tells it")
def test_a_worker_holds_no_more_than_is_declared(tmp_path):
    folder = tmp_path / "plate"
    folder.mkdir()
    for row in range(64):
        tifffile.imwrite(folder / f"im{row:02}.tif", np.full((1024, 1024), row, np.uint16))
    run_alone(hold_no_more_than_is_declared, str(folder))


def test_a_process_opens_a_set_once(parquet):
    from wellread.ray import _sets

    how = _sets.recipe(wr.Dataset(parquet))
    assert _sets.opened(how) is _sets.opened(how)
    assert _sets.opened(dataclasses.replace(how, stamp="another")) is not _sets.opened(how)


def test_a_later_job_sees_what_was_written_since(wellread, parquet, tmp_path):
    from wellread.ray import _sets

    folder = tmp_path / "images"
    wellread("convert", parquet, folder, "--format", "tiff")
    before = _sets.opened(_sets.recipe(wr.Dataset(folder)))
    first, second, *_ = sorted(folder.glob("*.tiff"))
    assert not np.array_equal(before[0], before[1])
    # In place: the folder, by which a set is told from others, does not change.
    stamp = os.stat(folder).st_mtime_ns
    first.write_bytes(second.read_bytes())
    assert os.stat(folder).st_mtime_ns == stamp
    since = _sets.opened(_sets.recipe(wr.Dataset(folder)))
    assert since is not before
    np.testing.assert_array_equal(since[0], since[1])
    # A node that sees fewer files, as those of another time: what it reads would be rows of other images.
    how = _sets.recipe(wr.Dataset(folder))
    second.unlink()
    other = dataclasses.replace(how, job="another", version="0.0.0")
    with pytest.raises(
        wr.Error, match="has wellread .*, and the job began with 0.0.0 .*the same version of wellread"
    ):
        _sets.opened(other)
    with pytest.raises(wr.Error, match="^on .*it had 40 images and has 39.*all nodes must see the same files"):
        _sets.opened(how)


def test_choices_without_sense_are_refused(in_order, parquet):
    with pytest.raises(TypeError, match="argument .shuffle.: Ray shuffles, joins and batches blocks"):
        wray.read(parquet, shuffle=True)
    with pytest.raises(KeyError, match='no column "well" stands beside the images'):
        wray.read(parquet, columns="well")
    with pytest.raises(ValueError, match="'row', which every block has"):
        wray.read(parquet, columns=["row"])
    with pytest.raises(ValueError, match="no tensors of bfloat16"):
        wray.read(parquet, dtype="bfloat16")
