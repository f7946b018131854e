"""`wellread.ray` and `--on ray`: on a real cluster of three nodes on this machine, each with one processor."""

import dataclasses
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import ray_cluster
import wellread as wr
from wellread import ray as wray

ray = pytest.importorskip("ray")

ROWS = list(range(40))


@pytest.fixture(scope="module")
def cluster():
    """A head and two nodes, to which this process is connected."""
    with ray_cluster.connected() as cluster:
        yield cluster


@pytest.fixture
def in_order(cluster):
    """Ray Data hands out blocks in order, and shows no progress."""
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    return cluster


def images_of(dataset):
    """Names and pixels of a set, with the digest of each image."""
    pixels = [dataset[row] for row in range(len(dataset))]
    return [(dataset.name(row), image.dtype, image.shape, image.tobytes()) for row, image in enumerate(pixels)]


def files(folder):
    """All files below a folder, by what is in them."""
    found = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def hidden(folder):
    """What is left of output that is not finished."""
    return [path.name for path in Path(folder).iterdir() if path.name.startswith(".")]


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
    from wellread.ray import _read, _sets
    from wellread.ray._datasource import WellreadDatasource

    dataset = wr.Dataset(parquet)
    plan = _read.Plan(_sets.recipe(dataset), {"dtype": "stored", "num_workers": 1}, [], 40)
    image_bytes, schema = _read._first(plan, dataset)
    assert image_bytes == 2 * 48 * 56 * 2
    source = WellreadDatasource(plan, dataset.path, 40, 16, image_bytes + _read.BESIDE_BYTES, schema)
    tasks = source.get_read_tasks(3)
    blocks = [block for task in tasks for block in task()]
    assert [task.metadata.num_rows for task in tasks] == [14, 14, 12]
    assert sum(task.metadata.num_rows for task in tasks) == sum(len(block) for block in blocks) == 40
    told, taken = source.estimate_inmemory_data_size(), sum(block.nbytes for block in blocks)
    assert 0.9 < told / taken < 1.1
    assert all(block.schema == schema for block in blocks)


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
    with pytest.raises(wr.Error, match="has 39 images on .*, and 40 where the job began"):
        _sets.opened(how)


def test_choices_without_sense_are_refused(in_order, parquet):
    with pytest.raises(TypeError, match="shuffle is no choice"):
        wray.read(parquet, shuffle=True)
    with pytest.raises(KeyError, match="no column 'well' stands beside the images"):
        wray.read(parquet, columns="well")
    with pytest.raises(ValueError, match="'row', which every block has"):
        wray.read(parquet, columns=["row"])
    with pytest.raises(ValueError, match="no tensors of bfloat16"):
        wray.read(parquet, dtype="bfloat16")


@pytest.mark.parametrize(
    ("format", "target"),
    [
        ("parquet", "set.parquet"),
        ("vortex", "set.vortex"),
        ("lance", "set.lance"),
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
    assert images_of(written) == images_of(source)
    if format != "tiff":
        assert list(written.column("well")) == list(source.column("well"))
        assert list(written.column("class")) == list(source.column("class"))
    assert hidden(tmp_path) == []
    with pytest.raises(wr.Error, match="already exists"):
        wray.write(read, path, format=format)
    assert images_of(wr.Dataset(path)) == images_of(source)
    wray.write(read.limit(7), path, format=format, overwrite=True)
    assert images_of(wr.Dataset(path)) == images_of(source)[:7]


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
    assert images_of(wr.Dataset(tmp_path / "set.parquet")) == images_of(wr.Dataset(parquet))


def test_parts_of_attempts_that_failed_are_no_part_of_the_set(in_order, parquet, tmp_path):
    from wellread.ray import _write
    from wellread.ray._datasink import WellreadDatasink

    blocks = list(wray.read(parquet, dtype="stored", rows_per_block=10).iter_batches(
        batch_size=10, batch_format="pyarrow"
    ))  # fmt: skip
    target = tmp_path / "set.parquet"
    how = {"image": "image", "name": "name", "channels": [], "verify": True}
    sink = WellreadDatasink(str(target), "parquet", _write.options(), **how)
    _write.begin(sink, False)

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
    assert images_of(wr.Dataset(target)) == images_of(wr.Dataset(parquet))
    assert sorted(os.listdir(target)) == [*(f"part-0000{i}.parquet" for i in range(4)), "wellread-parts.json"]
    assert hidden(tmp_path) == []


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
    with pytest.raises(wr.Error, match="cannot tell the format"):
        wray.write(read, tmp_path / "set")


@pytest.fixture(scope="module")
def floats(parquet, wellread, tmp_path_factory):
    """Images of float32, whose statistics depend on the order in which they are summed."""
    folder = tmp_path_factory.mktemp("floats")
    wellread("generate", folder, "--images", 70, "--size", "24x32", "--dtype", "float32", "--formats", "parquet")
    [path] = [str(path) for path in folder.glob("*.parquet")]
    return path


def test_statistics_are_those_of_one_machine_to_the_byte(cluster, wellread, labelled, floats, tmp_path):
    for number, (path, by) in enumerate([(labelled, None), (labelled, "well"), (floats, None)]):
        one, all_nodes = tmp_path / f"one-{number}.json", tmp_path / f"all-{number}.json"
        wellread("stats", path, "--out", one, *(["--by", by] if by else []))
        found = wray.stats(path, by=by, out=all_nodes)
        assert all_nodes.read_bytes() == one.read_bytes()
        assert found == json.loads(one.read_text())


def local_job(run=lambda work, jobs: (work(job)[0] for job in jobs)):
    """A job without a cluster."""
    return SimpleNamespace(total=None, rows_per_task=lambda dataset: (8, 16), run=run, summary=dict)


def test_counts_of_a_group_go_when_all_of_it_is_counted(labelled, monkeypatch):
    from wellread.ray import _sets, _whole

    native, counted, most = _whole._native, set(), []

    class Sum:
        def __init__(self):
            self.native = native.StatsSum()

        def add(self, text):
            self.native.add(text)
            counted.add(self)
            most.append(len(counted))

        def finish(self, order, percents):
            self.native.finish(order, percents)
            counted.remove(self)

    def found():
        return _whole.stats_text(local_job(), _sets.of(labelled), ["well"], [1.0, 50.0])

    expected = found()
    assert len(json.loads(expected)["groups"]) == 4
    watched = {
        "StatsSum": Sum,
        "finish_stats": lambda by, groups: native.finish_stats(by, [(key, one.native) for key, one in groups]),
    }
    monkeypatch.setattr(_whole, "_native", SimpleNamespace(**(vars(native) | watched)))
    assert found() == expected
    assert (max(most), counted) == (1, set())


def test_a_task_is_told_the_order_of_the_channels_of_its_rows_alone():
    from wellread import _native
    from wellread.ray import _whole

    names = [["DNA", "ER"], ["ER", "DNA"]]
    text = json.dumps({"lists": names, "rows": [[row, row % 2] for row in range(6)]})
    order = json.loads(_native.channel_order(0, [text]))
    assert sorted(order["moved"]) == ["1", "3", "5"]
    told = json.loads(_whole._order_of(order, [2, 3, 4]))
    assert told == order | {"moved": {"3": [1, 0]}}


@pytest.mark.skipif(os.name == "nt", reason="modes are those of Unix")
def test_a_file_of_statistics_has_the_mode_of_any_new_file(tmp_path, monkeypatch):
    from wellread.ray import _whole

    plain, out, kept, link = (tmp_path / name for name in ("plain", "out.json", "kept.json", "link.json"))
    plain.write_text("")
    kept.write_text("old")
    kept.chmod(0o640)
    link.symlink_to(kept)
    # Other threads write files by it meanwhile.
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask of the process is changed"))
    _whole._write(str(out), "new\n")
    _whole._write(str(link), "new\n")
    assert out.stat().st_mode == plain.stat().st_mode
    assert (kept.read_text(), kept.stat().st_mode & 0o777, link.is_symlink()) == ("new\n", 0o640, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.json", "link.json", "out.json", "plain"]


def test_tasks_have_ended_before_what_they_wrote_goes(parquet, tmp_path):
    from wellread.ray import _convert, _sets, _write

    left = []

    def run(work, jobs):
        try:
            for _ in jobs:
                yield "no number", False
        finally:
            left.append(hidden(tmp_path))

    how = {"overwrite": False, "resume": False, "verify": True, "mixed": False, "memory": 1 << 20, "rows_per_part": 5}
    target = tmp_path / "set.parquet"
    # Whoever has the traceback has what it refers to, too.
    with pytest.raises(TypeError):
        _convert.converted(
            local_job(run), _sets.of(parquet), str(target), "parquet", _write.options(), **how
        )  # fmt: skip
    assert left == [[".wellread-resume-set.parquet"]]
    assert list(tmp_path.iterdir()) == []


def test_checksums_are_those_of_one_machine(cluster, wellread, cells):
    for format in ("parquet", "tiff"):
        assert wray.checksum(cells[format]) == wellread("checksum", cells[format])
    some = wr.Dataset(cells["parquet"]).select([3, 1])
    sums = {one["name"]: one["sha256"] for one in wray.checksum(cells["parquet"])}
    assert [one["sha256"] for one in wray.checksum(some)] == [sums[some.name(0)], sums[some.name(1)]]


def test_verification_finds_what_one_machine_finds(cluster, wellread, cells, tmp_path):
    same = wray.verify(cells["tiff"], cells["parquet"])
    assert same["passed"] and same["images"] == 40
    assert sum(node["images"] for node in same["cluster"]["nodes"].values()) == 80
    folder = tmp_path / "images"
    wellread("convert", cells["parquet"], folder, "--format", "tiff")
    damaged = sorted(folder.glob("*.tiff"))[7]
    damaged.write_bytes(damaged.read_bytes()[:200])
    found = wray.verify(folder, cells["parquet"])
    found.pop("cluster")
    assert found == wellread("verify", folder, "--against", cells["parquet"], code=1)
    [problem] = found["problems"]
    assert (problem["row"], problem["kind"]) == (7, "unreadable")
    with pytest.raises(wr.Error) as raised:
        wray.checksum(folder)
    assert raised.value.row == 7 and damaged.name in str(raised.value)


@pytest.mark.parametrize("format", ["tiff", "ome-zarr"])
def test_images_in_files_of_their_own_are_converted_as_by_one_machine_to_the_byte(
    cluster, wellread, parquet, tmp_path, format
):
    wellread("convert", parquet, tmp_path / "one", "--format", format)
    done = wray.convert(parquet, tmp_path / "all", format=format, rows_per_part=7)
    assert (done["images"], done["parts"], done["verified"]) == (40, 6, True)
    assert files(tmp_path / "all") == files(tmp_path / "one")
    assert hidden(tmp_path) == []


def test_tables_are_converted_into_parts_of_one_set(cluster, wellread, labelled, cells, tmp_path):
    target = tmp_path / "set.parquet"
    wray.convert(labelled, target, rows_per_part=7)
    assert wellread("verify", target, "--against", labelled)["passed"]
    assert list(wr.Dataset(target).column("well")) == list(wr.Dataset(labelled).column("well"))
    # A part is the table that one machine writes of those rows.
    part = wr.Dataset(target / "part-00001.parquet")
    assert [part.name(row) for row in range(7)] == [wr.Dataset(labelled).name(row) for row in range(7, 14)]


def test_a_node_that_dies_does_not_change_the_result(cluster, wellread, parquet, tmp_path):
    from wellread.ray import _convert, _sets, _whole, _write

    wellread("convert", parquet, tmp_path / "one", "--format", "tiff")
    node = cluster.add_node(**ray_cluster.NODE)
    cluster.wait_for_nodes()
    killed = []

    def kill(_images):
        if not killed:
            killed.append(node)
            cluster.remove_node(node, allow_graceful=False)

    how = {"overwrite": False, "resume": False, "verify": True, "mixed": False, "memory": 1 << 20, "rows_per_part": 2}
    job = _whole.Job(None, done=kill)
    done = _convert.converted(
        job, _sets.of(parquet), str(tmp_path / "all"), "tiff", _write.options(), **how
    )  # fmt: skip
    assert killed and done["images"] == 40
    assert files(tmp_path / "all") == files(tmp_path / "one")


def test_columns_that_changed_since_are_written_anew(labelled, tmp_path):
    import pyarrow
    from wellread.ray import _convert, _sets, _write

    target = tmp_path / "set.parquet"
    treatments = [[f"{kind}-{row}" for row in ROWS] for kind in ("a", "b")]
    first, second = (
        wr.Dataset(labelled).with_columns(pyarrow.table({"treatment": treatment})) for treatment in treatments
    )

    how = {"overwrite": False, "resume": True, "verify": True, "mixed": False, "memory": 1 << 20, "rows_per_part": 10}

    def lost(work, jobs):
        yield work(jobs[0])[0]
        raise wr.Error("lost")

    with pytest.raises(wr.Error, match="lost"):
        _convert.converted(
            local_job(lost), _sets.of(first), str(target), "parquet", _write.options(), **how
        )  # fmt: skip
    assert hidden(tmp_path) == [".wellread-resume-set.parquet"]
    done = _convert.converted(
        local_job(), _sets.of(second), str(target), "parquet", _write.options(), **how
    )  # fmt: skip
    assert (done["images"], done["images_resumed"]) == (40, 0)
    assert list(wr.Dataset(target).column("treatment")) == treatments[1]


def test_an_interrupted_conversion_is_gone_on_with(cluster, wellread, parquet, tmp_path):
    from wellread.ray import _convert, _sets, _whole, _write

    target = tmp_path / "set.parquet"
    how = {"overwrite": False, "verify": True, "mixed": False, "memory": 1 << 20, "rows_per_part": 5}

    def run(resume, done=None):
        job = _whole.Job(None, done=done)
        return _convert.converted(
            job, _sets.of(parquet), str(target), "parquet", _write.options(), resume=resume, **how
        )  # fmt: skip

    ended = []

    def interrupt(_images):
        ended.append(1)
        if len(ended) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(True, interrupt)
    assert not target.exists() and hidden(tmp_path) == [".wellread-resume-set.parquet"]
    done = run(True)
    assert done["images_resumed"] >= 15
    assert wellread("verify", target, "--against", parquet)["passed"]
    assert hidden(tmp_path) == []
    target2 = tmp_path / "other.parquet"
    target, ended[:] = target2, []
    with pytest.raises(KeyboardInterrupt):
        run(False, interrupt)
    assert not target2.exists() and hidden(tmp_path) == []


def test_an_image_that_cannot_be_read_is_an_error_with_its_row(cluster, wellread, cells, tmp_path):
    folder = tmp_path / "images"
    wellread("convert", cells["parquet"], folder, "--format", "tiff")
    damaged = sorted(folder.glob("*.tiff"))[21]
    damaged.write_bytes(damaged.read_bytes()[:200])
    with pytest.raises(wr.Error, match=damaged.name):
        wray.convert(folder, tmp_path / "set.parquet", mixed=True, rows_per_part=10)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images"]


def on_ray(monkeypatch, cluster):
    """The command finds this Python, and the cluster."""
    monkeypatch.setenv("WELLREAD_PYTHON", sys.executable)
    return f"ray:{cluster.address}"


def test_the_command_says_on_a_cluster_what_it_says_here(cluster, wellread, labelled, cells, monkeypatch, tmp_path):
    on = on_ray(monkeypatch, cluster)
    assert wellread("checksum", labelled, "--on", on) == wellread("checksum", labelled)
    assert wellread("verify", cells["tiff"], "--against", cells["parquet"], "--on", on) == wellread(
        "verify", cells["tiff"], "--against", cells["parquet"]
    )
    for name, place in [("here", []), ("there", ["--on", on])]:
        wellread("stats", labelled, "--by", "well", "--out", tmp_path / name, *place)
    assert (tmp_path / "here").read_bytes() == (tmp_path / "there").read_bytes()
    done = wellread("convert", labelled, tmp_path / "images", "--format", "tiff", "--on", on)
    wellread("convert", labelled, tmp_path / "one", "--format", "tiff")
    assert done["images"] == 40 and done["cluster"]["slowest_node"] in done["cluster"]["nodes"]
    assert files(tmp_path / "images") == files(tmp_path / "one")
    said = wellread("convert", labelled, tmp_path / "images", "--format", "tiff", "--on", on, code=1)
    assert "already exists" in said


def test_an_image_that_cannot_be_read_is_named_as_on_one_machine(cluster, cells, monkeypatch, tmp_path):
    on = on_ray(monkeypatch, cluster)
    shutil.copytree(cells["tiff"], tmp_path / "plate")
    damaged = sorted((tmp_path / "plate").glob("*.tif*"))[21]
    damaged.write_bytes(damaged.read_bytes()[:200])
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    for command in ("checksum", "verify"):
        said = [
            subprocess.run(
                [binary, "--quiet", command, "plate", *place],
                capture_output=True,
                text=True,
                cwd=tmp_path,
                timeout=600,
            )
            for place in ([], ["--on", on])
        ]
        assert [one.returncode for one in said] == [1, 1]
        assert said[0].stderr == said[1].stderr and damaged.name in said[0].stderr
        assert said[0].stdout == said[1].stdout


def test_an_address_at_which_nobody_answers_is_an_error_at_once(wellread, parquet, monkeypatch):
    monkeypatch.setenv("WELLREAD_PYTHON", sys.executable)
    with socket.socket() as taken:
        # Bound, and nobody listens.
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for on in (f"ray:{address}", f"ray://{address}"):
            said = wellread("checksum", parquet, "--on", on, code=1)
            assert f"no Ray cluster answers at {on.removeprefix('ray:') if '//' not in on else on}" in said
            assert "ray start --head" in said and "Traceback" not in said


def test_what_ray_raises_is_an_error_in_a_line(cluster):
    from wellread.ray import _cluster

    # In the test, since nodes do not find its module.
    def divided(job):
        return 1 / job, 1

    @ray.remote(max_retries=0)
    def fails():
        raise ValueError("no such thing")

    with pytest.raises(ray.exceptions.RayError) as raised:
        ray.get(fails.remote())
    # It is a ValueError as well, with a traceback for a text.
    assert isinstance(raised.value, ValueError) and "Traceback" not in _cluster.words(raised.value)
    assert _cluster.words(raised.value) == "ValueError: no such thing"
    with pytest.raises(wr.Error, match="^a task failed on the cluster: ZeroDivisionError: "):
        list(_cluster.run(ray, divided, [0], summary=_cluster.Summary()))


def test_models_are_measured_on_nodes_of_a_cluster(cluster, wellread, monkeypatch, tmp_path):
    on = on_ray(monkeypatch, cluster)
    broken = tmp_path / "broken.onnx"
    broken.write_text("no model")
    said = wellread(
        "infer", "--framework", "candle", "--model", f"resnet50,{broken}", "--input-shape", "3,32,32",
        "--batch-sizes", 1, "--iterations", 2, "--warmup", 0, "--threads", 1, "--output-dir", tmp_path / "raw",
        "--model-dir", tmp_path / "models", "--on", on,
    )  # fmt: skip
    rows = said["results"]
    assert [(row["model"], row["status"]) for row in rows] == [("resnet50", "ok"), (str(broken), "failed")]
    host = socket.gethostname()
    assert all(row["node"] == host and row["node_cores"] >= 1 and row["node_memory_mb"] > 64 for row in rows)
    assert not list((tmp_path / "raw").glob("*.nodes"))


def test_the_command_refuses_what_nodes_cannot_do(wellread, parquet, tmp_path):
    said = wellread("checksum", parquet, "--on", "slurm", code=2)
    assert "neither ray nor ray:ADDRESS" in said
    said = wellread("convert", parquet, tmp_path / "x.parquet", "--on", "slurm", code=2)
    assert "neither ray nor ray:ADDRESS" in said and "--join" in said
    said = wellread("checksum", parquet, "--cells", parquet, "--on", "ray", code=2)
    assert "--on ray reads whole images" in said


def test_without_ray_an_error_says_how_to_get_it(wellread, parquet, monkeypatch, tmp_path):
    code = """
        import sys
        sys.modules["ray"] = None
        import wellread.ray
        for call in (wellread.ray.read, wellread.ray.checksum, wellread.ray.verify, wellread.ray.stats):
            try:
                call(sys.argv[1])
            except ImportError as error:
                print(error)
        for call in (wellread.ray.convert, wellread.ray.write):
            try:
                call(sys.argv[1], "x.parquet")
            except ImportError as error:
                print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), parquet], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["wellread.ray needs Ray: pip install 'wellread[ray]'"] * 6
    # A Python that has nothing.
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\necho no\n")
    python.chmod(0o755)
    monkeypatch.setenv("WELLREAD_PYTHON", str(python))
    said = wellread("checksum", parquet, "--on", "ray", code=1)
    assert "has no ray" in said and "pip install 'wellread[ray]'" in said


def test_commands_that_measure_are_alone_on_their_nodes(cluster, tmp_path):
    from wellread.ray import _commands

    # Ray takes a while to know that a node which an earlier test killed is gone.
    deadline = time.monotonic() + 600
    while len(_commands.whole_nodes(ray)) != 3 and time.monotonic() < deadline:
        time.sleep(0.2)
    book = tmp_path / "book"
    script = "echo + >> {0}; sleep 0.2; echo - >> {0}; echo $WELLREAD_OF_TEST; pwd; exit {1}"
    commands = [
        {"line": ["sh", "-c", script.format(book, 3 if n == 4 else 0)], "log": str(tmp_path / f"{n}.log")}
        for n in range(7)
    ]
    commands.append({"line": [str(tmp_path / "nowhere")], "log": str(tmp_path / "7.log")})
    told = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WELLREAD_OF_TEST", "passed on")
        ends = _commands.run(ray, commands, str(tmp_path), told.append)
    assert ends[:4] == [None] * 4 and ends[4] == "exit code 3" and ends[5:7] == [None] * 2
    assert "nowhere" in ends[7] and told == [1] * 8
    assert (tmp_path / "2.log").read_text().splitlines() == ["passed on", str(tmp_path)]
    at_once = most = 0
    for line in book.read_text().split():
        at_once += 1 if line == "+" else -1
        most = max(most, at_once)
    assert at_once == 0 and most <= len(_commands.whole_nodes(ray)) == 3
