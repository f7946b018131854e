"""`wellread.ray.write`: Ray Data into sets, on a real cluster of nodes."""

import os
from types import SimpleNamespace

import numpy as np
import pytest
import ray_cluster
import wellread as wr
from wellread import ray as wray

ray = pytest.importorskip("ray")


def sink_at(target, format="parquet"):
    """Where blocks go, without Ray Data. The target is claimed."""
    from wellread.ray import _write, _write_blocks
    from wellread.ray._datasink import WellreadDatasink

    how = {"image": "image", "name": "name", "channels": [], "verify": True}
    sink = WellreadDatasink(str(target), format, _write.options(), **how)
    _write_blocks.begin(sink, False)
    return sink


@pytest.mark.parametrize(
    ("format", "target"),
    [
        ("parquet", "set.parquet"),
        ("ome-arrow-dataset", "set-dataset"),
        ("vortex", "set.vortex"),
        ("lance", "set.lance"),
        ("duckdb", "set.duckdb"),
        ("tiff", "set"),
        ("ome-zarr", "set"),
    ],
)
def test_a_set_that_is_written_reads_back(in_order, labelled, tmp_path, format, target):
    source = wr.Dataset(labelled)
    read = wray.read(labelled, columns=["class", "well"], dtype="stored", override_num_blocks=3, rows_per_block=6)
    path = tmp_path / target
    wray.write(read, path, format=format)
    written = wr.Dataset(path)
    assert written.format == format
    assert ray_cluster.images_of(written) == ray_cluster.images_of(source)
    if format != "tiff":
        assert list(written.column("well")) == list(source.column("well"))
        assert list(written.column("class")) == list(source.column("class"))
    assert ray_cluster.hidden(tmp_path) == []
    with pytest.raises(wr.Error, match="already exists"):
        wray.write(read, path, format=format)
    assert ray_cluster.images_of(wr.Dataset(path)) == ray_cluster.images_of(source)
    wray.write(read.limit(7), path, format=format, overwrite=True)
    assert ray_cluster.images_of(wr.Dataset(path)) == ray_cluster.images_of(source)[:7]


@pytest.mark.parametrize(
    "format, target", [("parquet", "set.parquet"), ("ome-zarr", "set-zarr"), ("lance", "set.lance"), ("tiff", "set")]
)
def test_columns_that_are_left_out_are_named_and_no_others(tmp_path, format, target):
    """Without a cluster: a block may have nothing but missing values of a column that others have values of."""
    pa = pytest.importorskip("pyarrow")
    from wellread.ray import _arrow, _write_blocks

    def block(start, note):
        images = _arrow.tensors(np.full((2, 1, 8, 8), start, np.uint16))
        rows = [start, start + 1]
        return pa.table(
            {"image": images, "name": [f"n{row}" for row in rows], "row": rows, "note": note, "void": [None] * 2}
        )

    sink = sink_at(tmp_path / target, format)
    parts = [
        _write_blocks.block_part(sink, block(0, pa.array([None, None])), 0, 0),
        _write_blocks.block_part(sink, block(2, pa.array(["x", None])), 1, 0),
    ]
    with pytest.warns(UserWarning) as told:
        _write_blocks.commit(sink, parts)
    [said] = [str(one.message) for one in told if "left out" in str(one.message)]
    written = wr.Dataset(tmp_path / target)
    assert len(written) == 4
    if format == "tiff":
        assert "keeps no columns beside images, and note, void are left out" in said and not written.columns
        return
    assert "of the columns void cannot stand beside images" in said and said.endswith("nothing but nulls")
    assert list(written.column("note")) == [None, None, "x", None]


@pytest.mark.parametrize("format, target", [("parquet", "set.parquet"), ("ome-zarr", "set-zarr")])
def test_columns_none_of_which_can_stand_beside_images_are_left_out(tmp_path, format, target):
    pa = pytest.importorskip("pyarrow")
    from wellread.ray import _arrow, _write_blocks

    images = _arrow.tensors(np.ones((2, 1, 8, 8), np.uint16))
    block = pa.table({"image": images, "name": ["a", "b"], "boxes": [[1, 2], [3]]})
    sink = sink_at(tmp_path / target, format)
    with pytest.warns(UserWarning, match="of the columns boxes cannot stand beside images and are left out: nested"):
        _write_blocks.commit(sink, [_write_blocks.block_part(sink, block, 0, 0)])
    written = wr.Dataset(tmp_path / target)
    assert len(written) == 2 and not written.columns


@pytest.mark.parametrize("format, target", [("parquet", "set.parquet"), ("ome-zarr", "set-zarr")])
def test_rows_of_a_plate_are_a_column_as_others_are(tmp_path, format, target):
    """`row` of texts is no place in a set."""
    pa = pytest.importorskip("pyarrow")
    from wellread.ray import _arrow, _write_blocks

    images = _arrow.tensors(np.ones((2, 1, 8, 8), np.uint16))
    block = pa.table({"image": images, "name": ["a", "b"], "row": ["C", "D"]})
    sink = sink_at(tmp_path / target, format)
    _write_blocks.commit(sink, [_write_blocks.block_part(sink, block, 0, 0)])
    written = wr.Dataset(tmp_path / target)
    assert [written.name(row) for row in range(2)] == ["a", "b"] and list(written.column("row")) == ["C", "D"]


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_block_whose_places_are_not_all_known_is_in_the_order_of_tasks(tmp_path, missing):
    pa = pytest.importorskip("pyarrow")
    from wellread.ray import _arrow, _write_blocks

    images = _arrow.tensors(np.ones((2, 1, 8, 8), np.uint16))
    block = pa.table({"image": images, "name": ["a", "b"], "row": [7.0, missing]})
    sink = sink_at(tmp_path / "set.parquet")
    part = _write_blocks.block_part(sink, block, 0, 0)
    assert part["first"] is None
    _write_blocks.commit(sink, [part])
    assert len(wr.Dataset(tmp_path / "set.parquet")) == 2


def test_a_task_that_dies_and_is_run_again_writes_each_image_once(in_order, parquet, tmp_path):
    died = tmp_path / "died"

    def die_once(table):
        if 17 in table.column("row").to_pylist() and not died.exists():
            died.touch()
            os._exit(1)
        return table

    read = wray.read(parquet, dtype="stored", override_num_blocks=3, rows_per_block=4)
    mapped = read.map_batches(die_once, batch_size=4, batch_format="pyarrow")
    wray.write(mapped, tmp_path / "set.parquet")
    assert died.exists()
    assert ray_cluster.images_of(wr.Dataset(tmp_path / "set.parquet")) == ray_cluster.images_of(wr.Dataset(parquet))


def test_parts_of_attempts_that_failed_are_no_part_of_the_set(in_order, parquet, tmp_path):
    blocks = list(wray.read(parquet, dtype="stored", rows_per_block=10).iter_batches(
        batch_size=10, batch_format="pyarrow"
    ))  # fmt: skip
    target = tmp_path / "set.parquet"
    sink = sink_at(target)

    def breaks_off():
        yield blocks[0]
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        sink.write(breaks_off(), SimpleNamespace(task_idx=0))
    again = sink.write(iter(blocks[:2]), SimpleNamespace(task_idx=0))
    others = sink.write(iter(blocks[2:]), SimpleNamespace(task_idx=1))
    assert not target.exists()
    # Tasks end in any order.
    sink.on_write_complete(SimpleNamespace(write_returns=[others, again]))
    assert ray_cluster.images_of(wr.Dataset(target)) == ray_cluster.images_of(wr.Dataset(parquet))
    assert sorted(os.listdir(target)) == [*(f"part-0000{i}.parquet" for i in range(4)), "wellread-parts.json"]
    assert ray_cluster.hidden(tmp_path) == []


def test_what_cannot_be_written_leaves_nothing(in_order, parquet, tmp_path):
    read = wray.read(parquet, dtype="float16", override_num_blocks=2)
    with pytest.raises(Exception, match="images of float16 cannot be stored"):
        wray.write(read, tmp_path / "set.parquet")
    assert list(tmp_path.iterdir()) == []

    def unnamed(table):
        at = table.column_names.index("name")
        return table.set_column(at, "name", [[None if row == 7 else "a" for row in table["row"].to_pylist()]])

    read = wray.read(parquet, dtype="stored").map_batches(unnamed, batch_format="pyarrow")
    with pytest.raises(Exception, match="'name' has no name for some images"):
        wray.write(read, tmp_path / "set.parquet")
    assert list(tmp_path.iterdir()) == []
    # Refused before the target is claimed.
    with pytest.raises(TypeError):
        wray.write(read, tmp_path / "set.parquet", ray_remote_args=5)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(wr.Error, match="cannot tell the format"):
        wray.write(read, tmp_path / "set")
