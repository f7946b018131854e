"""Answers of tasks that a later run takes. Tasks run in this process: Ray is a stand-in."""

import json
import os
import pickle
import shutil
import time
from types import SimpleNamespace

import pytest
import ray_cluster
import wellread as wr
from wellread import ray as wray
from wellread.ray import _cluster, _kept, _sets, _whole
from wellread.ray._job import Job


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    """Tasks that were done, and after how many of them the program is killed."""
    found = SimpleNamespace(did=[], jobs=[], ends_after=None)

    def run(ray, work, jobs, *, summary, done=None, keep=None, num_cpus=1, shared=()):
        for number, job in enumerate(jobs):
            if len(found.did) == found.ends_after:
                raise KeyboardInterrupt
            result, images = work((*shared, *job))
            found.jobs.append(job)
            found.did.append((work.__name__, images))
            if done is not None:
                done(images)
            if keep is not None:
                keep(number, images, result)
            yield result

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(_cluster, "connected", lambda address: None)
    monkeypatch.setattr(_cluster, "alive", lambda ray: set())
    monkeypatch.setattr(_cluster, "processors", lambda ray: 1)
    monkeypatch.setattr(_cluster, "run", run)
    return found


def kept():
    """Files of answers."""
    return os.listdir(_kept.folder()) if os.path.isdir(_kept.folder()) else []


def interrupted(cluster, tasks, call):
    """A call that ends after so many tasks."""
    cluster.did, cluster.ends_after = [], tasks
    with pytest.raises(KeyboardInterrupt):
        call()
    cluster.did, cluster.ends_after = [], None


def test_answers_of_an_interrupted_run_are_taken(cluster, wellread, parquet, cells, labelled, tmp_path):
    interrupted(cluster, 2, lambda: wray.checksum(parquet, resume=True))
    assert len(kept()) == 1
    assert wray.checksum(parquet, resume=True) == wellread("checksum", parquet)
    # Sixteen rows are read together.
    assert cluster.did == [("checksum_task", 8)] and kept() == []

    interrupted(cluster, 5, lambda: wray.stats(labelled, by="well", resume=True))
    out = tmp_path / "stats.json"
    found = wray.stats(labelled, by="well", out=out, resume=True)
    assert found.pop("cluster")["images_resumed"] > 0
    assert found == wellread("stats", labelled, "--by", "well") == json.loads(out.read_text()) and kept() == []
    # Names of channels of four wells and pixels of one had been looked at.
    assert cluster.did == [("stats_task", 10)] * 3

    # The other set is read first.
    interrupted(cluster, 4, lambda: wray.verify(cells["tiff"], parquet, resume=True))
    assert len(kept()) == 2
    found = wray.verify(cells["tiff"], parquet, resume=True)
    assert found["passed"] and found["cluster"]["images_resumed"] == 56 and kept() == []
    assert cluster.did == [("checksum_task", 16), ("checksum_task", 8)]


def test_nothing_is_kept_unless_it_is_asked_for(cluster, parquet):
    interrupted(cluster, 1, lambda: wray.checksum(parquet))
    assert kept() == []
    interrupted(cluster, 1, lambda: wray.checksum(parquet, resume=True))
    wray.checksum(parquet)
    assert sum(images for _, images in cluster.did) == 40 and len(kept()) == 1


def test_a_set_that_changed_is_read_anew(cluster, cells, tmp_path):
    folder = tmp_path / "images"
    shutil.copytree(cells["tiff"], folder)
    interrupted(cluster, 2, lambda: wray.checksum(folder, resume=True))
    file = sorted(folder.glob("*.tif*"))[3]
    file.write_bytes(file.read_bytes() + b"more")
    assert len(wray.checksum(folder, resume=True)) == 40
    assert sum(images for _, images in cluster.did) == 40


def test_one_of_several_sets_that_changed_is_read_anew(cluster, parquet, tmp_path):
    """The folder that they have in common does not change with a file in it that is written once more."""
    (tmp_path / "sets").mkdir()
    paths = [tmp_path / "sets" / name for name in ("a.parquet", "b.parquet")]
    for path in paths:
        shutil.copyfile(parquet, path)
    interrupted(cluster, 1, lambda: wray.checksum(paths, resume=True))
    os.utime(paths[0], (1, 1))
    assert len(wray.checksum(paths, resume=True)) == 80
    assert sum(images for _, images in cluster.did) == 80


def test_a_set_of_cells_is_another_where_its_table_is(labelled, tmp_path):
    table = ray_cluster.cells_table(tmp_path, labelled)
    whole = wr.Dataset(labelled).cells(table, size=16)

    def stamps():
        return [_sets.recipe(one).stamp for one in (whole, whole.select([2, 1]), whole.select([0]) + whole)]

    before = stamps()
    assert stamps() == before
    os.utime(table, (1, 1))
    assert not set(stamps()) & set(before)


def test_sets_together_are_converted_into_the_folder_that_they_lie_in(cluster, cells, tmp_path):
    for name in "ab":
        shutil.copytree(cells["tiff"], tmp_path / name)
    both = wr.Dataset(tmp_path / "a") + wr.Dataset(tmp_path / "b")
    how = {"rows_per_part": 40, "resume": True}
    interrupted(cluster, 1, lambda: wray.convert(both, tmp_path / "out.parquet", **how))
    # What was begun beside the sets is no change of them.
    found = wray.convert(both, tmp_path / "out.parquet", **how)
    assert (found["images"], found["images_resumed"]) == (80, 40)
    assert len(wr.Dataset(tmp_path / "out.parquet")) == 80
    with pytest.raises(wr.ChoiceError, match="lies in the source"):
        wray.convert(both, tmp_path / "b" / "out.parquet")


@pytest.mark.parametrize("wrong", [{"memory": 0}, {"rows_per_part": 0}, {"mixed": 1}, {"overwrite": "no"}])
def test_wrong_choices_of_a_conversion_are_told_before_images_are_read(cluster, parquet, tmp_path, wrong):
    with pytest.raises((TypeError, ValueError), match=next(iter(wrong))):
        wray.convert(parquet, tmp_path / "out.parquet", on_error="skip", **wrong)
    assert cluster.did == [] and not (tmp_path / "out.parquet").exists()


def test_a_file_that_is_no_list_of_checksums_is_told_before_images_are_read(cluster, parquet, tmp_path):
    for text in ('[{"row": 0}]', "{}", "no JSON"):
        (tmp_path / "expected.json").write_text(text)
        with pytest.raises(wr.Error, match=r"expected\.json: is no list of expected checksums") as raised:
            wray.verify(parquet, tmp_path / "expected.json")
        assert "wellread checksum --json" in raised.value.hint and cluster.did == []
    (tmp_path / "expected.json").write_text(json.dumps({"images": wray.checksum(parquet)}))
    assert wray.verify(parquet, tmp_path / "expected.json")["passed"]


def test_images_that_could_not_be_read_are_read_again(cluster, wellread, cells, tmp_path):
    folder = tmp_path / "images"
    shutil.copytree(cells["tiff"], folder)
    file = sorted(folder.glob("*.tif*"))[20]
    whole = file.read_bytes()
    file.write_bytes(b"II*\0" + bytes(len(whole) - 4))
    with pytest.raises(wr.Error, match=file.name):
        wray.checksum(folder, resume=True)
    file.write_bytes(whole)
    cluster.did = []
    assert wray.checksum(folder, resume=True) == wellread("checksum", cells["tiff"])
    assert cluster.did == [("checksum_task", 16)]


@pytest.mark.parametrize("passes", [True, False])
def test_a_server_that_fails_leaves_no_image_out(parquet, passes):
    rows = json.loads(_whole._native.checksums(wr.Dataset(parquet)._native, 0, 2, 1))
    cause = "cannot read: GET b/c.tif: the server answered 503 SlowDown"
    rows.append({"path": "s3://b/c.tif", "row": 2, "cause": cause, "hint": None, "may_pass": passes})
    if passes:
        with pytest.raises(wr.Error, match="503 SlowDown") as raised:
            _whole.failed_rows(json.dumps(rows), wr.Dataset(parquet))
        assert raised.value.row == 2
    else:
        assert _whole.failed_rows(json.dumps(rows), wr.Dataset(parquet)) == [(2, rows[2])]


def test_a_line_that_was_cut_off_does_no_harm(tmp_path):
    path = str(tmp_path / "folder" / "journal")
    journal = _kept.Journal(path)
    journal.keep("a", 3, ["one", "two\n"])
    journal.keep("b", 4, "[]")
    # As of an image that cannot be read.
    journal.keep("c", 5, '[{"path":"x","row":0,"cause":"is cut off","hint":null}]')
    journal.keep("d", 6, json.dumps([{"name": '"cause":'}]))
    journal.close()
    with open(path, "ab") as file:
        file.write(b'e 7 "cut o')
    again = _kept.Journal(path)
    assert [again.images(key) for key in "abcde"] == [3, 4, None, 6, None]
    again.keep("e", 7, "whole")
    again.close()
    third = _kept.Journal(path)
    assert [third.answer(key) for key in "ae"] == [["one", "two\n"], "whole"]
    third.close()


def test_answers_that_nobody_goes_on_with_are_removed(cluster, parquet):
    interrupted(cluster, 1, lambda: wray.checksum(parquet, resume=True))
    [name] = kept()
    path = os.path.join(_kept.folder(), name)
    _kept.Kept()
    assert kept() == [name]
    old = time.time() - _kept.KEPT_SECONDS - 60
    os.utime(path, (old, old))
    _kept.Kept()
    assert kept() == []


def test_answers_that_cannot_be_kept_are_an_error(cluster, parquet, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(wr.Error, match="the answers of nodes cannot be kept: ") as raised:
        wray.checksum(parquet, resume=True)
    assert "XDG_CACHE_HOME" in raised.value.hint


def test_rows_that_follow_one_another_are_sent_as_a_range(cluster, parquet, labelled):
    def sent(**choices):
        cluster.jobs.clear()
        wray.stats(**choices)
        return [unit[0] if isinstance(unit, tuple) else unit for (units,) in cluster.jobs for unit in units]

    assert set(sent(path=parquet)) == {range(0, 16), range(16, 32), range(32, 40)}
    # Wells are runs of rows, and classes are not.
    assert set(sent(path=labelled, by="well")) == {range(start, start + 10) for start in (0, 10, 20, 30)}
    assert all(isinstance(rows, list) for rows in sent(path=labelled, by="class"))
    assert _whole._short([4, 5, 6]) == range(4, 7)
    assert [_whole._short(rows) for rows in ([4, 6], [6, 5])] == [[4, 6], [6, 5]]


def test_answers_about_a_range_are_not_those_about_its_ends(parquet):
    how = _sets.recipe(wr.Dataset(parquet))
    keys = [_kept.key_of(_whole.names_task, (how, [rows])) for rows in (range(0, 8), [0, 8], range(0, 7))]
    assert len(set(keys)) == 3


def test_a_set_without_some_rows_is_sent_with_these_alone(parquet):
    dataset = wr.Dataset(parquet)
    kept = _sets.without(dataset, [7, 3])
    again = pickle.loads(pickle.dumps(kept))
    assert len(kept) == len(again) == 38
    assert [again.name(row) for row in range(38)] == [dataset.name(row) for row in range(40) if row not in (3, 7)]
    assert kept._made[1][1] == [3, 7]
    assert _sets.of(kept)._made[1][1] == [3, 7]


def test_progress_tells_of_rows(cluster, parquet, cells, labelled, tmp_path):
    told = []

    def progress(done, total):
        told.append((done, total))

    def said():
        found = told.copy()
        told.clear()
        return found

    wray.checksum(parquet, progress=progress)
    assert said() == [(0, 40), (16, 40), (32, 40), (40, 40)]
    wray.stats(labelled, by="well", progress=progress)
    found = said()
    assert (found[0], found[-1]) == ((0, 40), (40, 40)) and found == sorted(set(found))
    wray.verify(cells["tiff"], parquet, progress=progress)
    found = said()
    assert found[0] == (0, 40) and (40, 80) in found and found[-1] == (80, 80)
    wray.convert(parquet, tmp_path / "set.parquet", progress=progress)
    assert said() == [(0, 40), (16, 40), (32, 40), (40, 40)]
    with pytest.raises(TypeError, match="progress must be a function of two numbers, not int 1"):
        wray.checksum(parquet, progress=1)


def test_results_have_the_work_of_the_nodes(cluster, wellread, parquet):
    sums = wray.checksum(parquet)
    assert sums == wellread("checksum", parquet) and {"nodes", "slowest_node"} <= sums.cluster.keys()
    assert {"nodes", "slowest_node"} <= wray.stats(parquet)["cluster"].keys()


def test_a_node_that_came_later_and_is_gone_is_lost(cluster, monkeypatch):
    monkeypatch.setattr(_cluster, "alive", lambda ray: {"a"})
    job = Job(None)
    for node in "ab":
        job.nodes.note(_cluster.Answer(None, None, node, f"host-{node}", 1, 1.0, 0.0))
    assert job.summary()["lost_nodes"] == ["b"]


def test_parts_begin_where_rows_that_are_read_together_do(parquet, monkeypatch):
    from wellread.ray import _convert

    dataset = wr.Dataset(parquet)
    # Of twenty images at most, where sixteen are read together.
    image_bytes = 2 * 48 * 56 * 2
    monkeypatch.setattr(_convert, "PART_BYTES", 20 * image_bytes)
    monkeypatch.setattr(_convert, "PARTS", 1)
    assert _convert.rows_of_a_part(dataset) == 16
    monkeypatch.setattr(_convert, "PART_BYTES", 10 * image_bytes)
    assert _convert.rows_of_a_part(dataset) == 10


def test_a_summary_has_the_speed_of_each_node():
    def task(node, images, began, seconds):
        return _cluster.Answer(None, None, node, f"host-{node}", images, seconds, began)

    summary = _cluster.Summary()
    # Two tasks at once on the first node, one after the other on the second, whose clock is another.
    for one in (task("a", 20, 100.0, 2.0), task("a", 20, 101.0, 1.0), task("b", 8, 7.0, 1.0), task("b", 8, 9.0, 1.0)):
        summary.note(one)
    # Names alone.
    summary.note(task("b", 0, 1.0, 1.0))
    found = summary.document(4.0)
    assert {name: node["images_per_s"] for name, node in found["nodes"].items()} == {"a": 20.0, "b": 16 / 3}
    assert {name: node["images_per_s_per_task"] for name, node in found["nodes"].items()} == {"a": 40 / 3, "b": 8.0}
    assert (found["images_per_s"], found["slowest_node"], found["nodes"]["b"]["tasks"]) == (14.0, "b", 3)
