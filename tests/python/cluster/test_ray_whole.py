"""Whole sets on a real cluster of three nodes: converted, checked and measured as by one machine."""

import json
import os
from types import SimpleNamespace

import numpy as np
import pytest
import ray_cluster
import wellread as wr
from wellread import ray as wray

ray = pytest.importorskip("ray")

ROWS = list(range(40))


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
        assert sum(node["images"] for node in found.pop("cluster")["nodes"].values()) == len(wr.Dataset(path))
        assert all_nodes.read_bytes() == one.read_bytes()
        assert found == json.loads(one.read_text())


def local_job(run=lambda work, jobs: (work(job)[0] for job in jobs)):
    """A job without a cluster."""
    return SimpleNamespace(total=None, kept=None, rows_per_task=lambda dataset: (8, 16), run=run, summary=dict)


def test_names_that_the_first_image_lacks_count_as_on_one_machine(wellread, tmp_path):
    import tifffile
    from wellread.ray import _sets, _whole

    for name, stains in (("0", None), ("a", ["DNA", "ER"]), ("b", ["ER", "DNA"])):
        about = {"axes": "CYX"} | ({"Channel": {"Name": stains}} if stains else {})
        image = np.zeros((2, 8, 8), np.uint16)
        tifffile.imwrite(tmp_path / f"{name}.ome.tif", image, photometric="minisblack", metadata=about)
    one = wellread("stats", tmp_path)
    assert (one["reordered"], one["other_names"]) == (0, 2)
    assert json.loads(_whole.stats_text(local_job(), _sets.of(tmp_path), None, _whole.PERCENTILES)) == one
    info = wellread("info", tmp_path)
    assert (info["channels_reordered"], info["channels_unlike"]) == (0, 2)


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


def test_tasks_have_ended_before_what_they_wrote_goes(parquet, tmp_path):
    from wellread.ray import _convert, _sets, _write

    left = []

    def run(work, jobs):
        try:
            for _ in jobs:
                yield "no number", False
        finally:
            left.append(ray_cluster.hidden(tmp_path))

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
    assert ray_cluster.files(tmp_path / "all") == ray_cluster.files(tmp_path / "one")
    assert ray_cluster.hidden(tmp_path) == []


def test_tables_are_converted_into_parts_of_one_set(cluster, wellread, labelled, cells, tmp_path):
    target = tmp_path / "set.parquet"
    wray.convert(labelled, target, rows_per_part=7)
    assert wellread("verify", target, "--against", labelled)["passed"]
    assert list(wr.Dataset(target).column("well")) == list(wr.Dataset(labelled).column("well"))
    # A part is the table that one machine writes of those rows.
    part = wr.Dataset(target / "part-00001.parquet")
    assert [part.name(row) for row in range(7)] == [wr.Dataset(labelled).name(row) for row in range(7, 14)]


def test_fragments_of_lance_are_committed_once(labelled, tmp_path):
    from wellread.ray import _convert, _sets, _write

    if "lance" not in wr.formats():
        pytest.skip("this build has no Lance")
    target = tmp_path / "set.lance"
    how = {"overwrite": False, "resume": False, "verify": True, "mixed": False, "memory": 1 << 20, "rows_per_part": 7}
    done = _convert.converted(local_job(), _sets.of(labelled), str(target), "lance", _write.options(), **how)
    assert (done["images"], done["parts"]) == (40, 6)
    # A data file of each part, numbers of rows for all but the first, and one version of all.
    assert len(list((target / "data").iterdir())) == 11 and len(list((target / "_versions").glob("*.manifest"))) == 1
    assert wr.Dataset(target).columns == wr.Dataset(labelled).columns
    assert ray_cluster.images_of(wr.Dataset(target)) == ray_cluster.images_of(wr.Dataset(labelled))
    assert list(wr.Dataset(target).column("well")) == list(wr.Dataset(labelled).column("well"))
    assert ray_cluster.hidden(tmp_path) == []


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
    assert ray_cluster.files(tmp_path / "all") == ray_cluster.files(tmp_path / "one")


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
    assert ray_cluster.hidden(tmp_path) == [".wellread-resume-set.parquet"]
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
    assert not target.exists() and ray_cluster.hidden(tmp_path) == [".wellread-resume-set.parquet"]
    done = run(True)
    assert done["images_resumed"] >= 15
    assert wellread("verify", target, "--against", parquet)["passed"]
    assert ray_cluster.hidden(tmp_path) == []
    target2 = tmp_path / "other.parquet"
    target, ended[:] = target2, []
    with pytest.raises(KeyboardInterrupt):
        run(False, interrupt)
    assert not target2.exists() and ray_cluster.hidden(tmp_path) == []


def test_an_image_that_cannot_be_read_is_an_error_with_its_row(cluster, wellread, cells, tmp_path):
    folder = tmp_path / "images"
    wellread("convert", cells["parquet"], folder, "--format", "tiff")
    damaged = sorted(folder.glob("*.tiff"))[21]
    damaged.write_bytes(damaged.read_bytes()[:200])
    with pytest.raises(wr.Error, match=damaged.name):
        wray.convert(folder, tmp_path / "set.parquet", mixed=True, rows_per_part=10)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images"]


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
