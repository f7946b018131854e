"""`wellread embed --on ray`: the table of one machine, by actors on a real cluster of three nodes on this machine."""

import json
import os
import sys
import textwrap
import threading

import pytest
import ray_cluster

ray = pytest.importorskip("ray")

PARTS = list(range(10))

# A program that answers as `wellread embed --part-worker` does, and fails as it is told to.
PROGRAM = """
    #!{python}
    import json, os, queue, signal, sys, threading, time
    from pathlib import Path

    words = sys.argv[1:]
    if "exits" in words:
        print("error: there is no plate", file=sys.stderr)
        sys.exit(1)
    if "refuses" in words:
        print(json.dumps({{"error": "the images do not fit", "usage": True}}))
        sys.exit(0)
    made_of = {{"set": "plate", "cuda": os.environ.get("CUDA_VISIBLE_DEVICES")}}
    if "unlike" in words:
        made_of["sha256"] = os.getpid()
    opened = {{"made_of": json.dumps(made_of), "images": 40, "part": 4}}
    opened |= {{"backend": "fake", "notes": [], "sha256": None}}
    print(json.dumps({{"opened": opened}}), flush=True)
    asked_for = queue.Queue()

    def listen():
        for line in sys.stdin:
            asked_for.put(line)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while line := asked_for.get():
        asked = json.loads(line)
        number, folder = asked["part"], Path(asked["folder"])
        while "unlike" in words:
            # Until another program has opened something else, and this one is ended.
            time.sleep(1)
        if "pair" in words and number < 2:
            # Until another program has the other part, at the same time.
            (folder / f"begun-{{number}}").touch()
            while not (folder / f"begun-{{1 - number}}").exists():
                time.sleep(0.01)
        once = folder / "once"
        if number == 3 and not once.exists():
            once.touch()
            if "dies" in words:
                os.kill(os.getpid(), signal.SIGKILL)
            if "actor" in words:
                os.kill(os.getppid(), signal.SIGKILL)
        if number == 3 and "always" in words:
            sys.exit(139)
        if number == 5 and "damaged" in words:
            print(json.dumps({{"error": "plate: row 21: damaged", "usage": False}}), flush=True)
            continue
        (folder / f"part-{{number}}").touch()
        print(json.dumps({{"images": 4}}), flush=True)
"""

MODELS = """
    import numpy as np

    def means(batch):
        return batch.mean((2, 3), dtype=np.float64)
"""


@pytest.fixture
def compute(cluster, tmp_path):
    """Has a program compute parts; which of them it did, and what was told of it."""
    program = tmp_path / "program"
    program.write_text(textwrap.dedent(PROGRAM).strip().format(python=sys.executable) + "\n")
    program.chmod(0o755)

    def run(*words, parts=PARTS, actors=None, cpus=1, gpus=0.0):
        from wellread.ray import _cluster, _embed

        folder = tmp_path / "parts"
        folder.mkdir(exist_ok=True)
        told, totals = [], []

        def ask(said):
            told.append(said["opened"])
            return {"parts": parts, "images": 4 * len(parts), "folder": str(folder)}

        request = {
            "line": [str(program), *words], "folder": str(tmp_path), "actors": actors, "cpus": cpus, "gpus": gpus,
            "most_parts": 10,
        }  # fmt: skip
        done, summary = [], _cluster.Summary()
        images = _embed.run(
            ray, request, ask, lambda number, images: done.append((number, images)), totals.append, summary
        )  # fmt: skip
        assert len(told) == 1 and totals == [4 * len(parts)]
        assert {path.name for path in folder.glob("part-*")} >= {f"part-{number}" for number in parts}
        return images, sorted(done), summary, told[0]

    return run


def test_each_part_is_computed_once(compute):
    images, done, summary, opened = compute()
    assert images == 40 and done == [(number, 4) for number in PARTS]
    assert sum(node.images for node in summary.nodes.values()) == 40
    # An actor without a GPU sees none.
    assert json.loads(opened["made_of"])["cuda"] == ""
    images, done, _, _ = compute(parts=[7, 2], actors=1)
    assert images == 8 and done == [(2, 4), (7, 4)]
    assert compute(parts=[])[0] == 0


def test_two_models_share_a_gpu(compute, cluster):
    """Ray counts GPUs that a node says it has; none is looked at here."""
    node = cluster.add_node(**ray_cluster.NODE, num_gpus=1)
    try:
        ray_cluster.wait_for(4)
        images, done, summary, opened = compute("pair", cpus=0.5, gpus=0.5)
    finally:
        cluster.remove_node(node)
        ray_cluster.wait_for(3)
    assert images == 40 and done == [(number, 4) for number in PARTS]
    assert len(summary.nodes) == 1 and json.loads(opened["made_of"])["cuda"] == "0"


@pytest.mark.parametrize("how", ["dies", "actor"])
def test_a_part_that_is_lost_is_computed_once_more(compute, how):
    images, done, _, _ = compute(how)
    assert images == 40 and done == [(number, 4) for number in PARTS]


def test_what_fails_each_time_is_an_error(compute):
    import wellread as wr

    with pytest.raises(wr.Error, match="part 3 was lost 9 times on the cluster, the last time: .*exit code 139"):
        compute("always")
    with pytest.raises(wr.Error, match="^plate: row 21: damaged$"):
        compute("damaged")
    with pytest.raises(wr.Error, match="^there is no plate$"):
        compute("exits")
    with pytest.raises(wr.ChoiceError, match="^the images do not fit$"):
        compute("refuses")
    with pytest.raises(wr.Error, match="have not opened the same: sha256: [0-9]+ and [0-9]+"):
        compute("unlike")
    with pytest.raises(wr.Error, match="no node of the cluster has 9 processors for a model"):
        compute(cpus=9)
    with pytest.raises(wr.Error, match="1 processors and 0.5 GPUs"):
        compute(gpus=0.5)


@pytest.fixture
def embed(cluster, wellread, tmp_path, monkeypatch):
    """Runs `wellread embed` by a model in Python, here or on the cluster; what it says."""
    pytest.importorskip("onnxruntime")
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "own_models.py").write_text(textwrap.dedent(MODELS))
    monkeypatch.setenv("WELLREAD_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(modules), *filter(None, [os.environ.get("PYTHONPATH")])]))

    def run(path, out, *args, on=True, device="cpu", code=0):
        place = ["--on", f"ray:{cluster.address}"] if on else []
        return wellread(
            "embed", path, "--model", "python:own_models:means", "--out", tmp_path / out, "--batch-size", 2,
            "--part-rows", 4, "--threads", 1, "--workers", 1, "--device-prefer", device, *args, *place, code=code,
        )  # fmt: skip

    return run


def taken(table):
    """The bytes of a table, which goes: the next one of its name tells of the same command."""
    found = table.read_bytes()
    table.unlink()
    return found


def test_the_table_is_that_of_one_machine(embed, labelled, tmp_path):
    embed(labelled, "there.parquet", on=False)
    here = taken(tmp_path / "there.parquet")
    said = embed(labelled, "there.parquet", "--actors", 2)
    assert (said["images"], said["images_resumed"], said["complete_before"]) == (40, 0, False)
    assert sum(node["images"] for node in said["cluster"]["nodes"].values()) == 40
    assert (tmp_path / "there.parquet").read_bytes() == here
    assert not list(tmp_path.glob(".wellread-*"))
    said = embed(labelled, "there.parquet", "--resume")
    assert said["complete_before"] and said["images_resumed"] == 40
    assert "already exists" in embed(labelled, "there.parquet", code=1)
    assert "needs --gpus-per-actor" in embed(labelled, "other.parquet", device="cuda", code=2)
    assert "--gpus-per-actor" in embed(labelled, "other.parquet", "--gpus-per-actor", 1.5, code=2)


def test_images_that_cannot_be_read_are_as_on_one_machine_and_parts_are_gone_on_with(
    embed, cells, wellread, tmp_path
):
    folder = tmp_path / "images"
    wellread("convert", cells["parquet"], folder, "--format", "tiff")
    damaged = sorted(folder.glob("*.tiff"))[21]
    whole = damaged.read_bytes()
    damaged.write_bytes(bytes(len(whole)))
    here = embed(folder, "there.parquet", "--on-error", "skip", on=False)
    of_one = taken(tmp_path / "there.parquet")
    there = embed(folder, "there.parquet", "--on-error", "skip")
    assert [one["row"] for one in there["skipped"]] == [21] and there["skipped"] == here["skipped"]
    assert (tmp_path / "there.parquet").read_bytes() == of_one
    said = embed(folder, "raised.parquet", code=1)
    assert damaged.name in said and "--on-error skip" in said and "--resume" in said
    assert not (tmp_path / "raised.parquet").exists()
    parts = tmp_path / ".wellread-resume-raised.parquet"
    kept = {int(line) for line in (parts / ".wellread-journal").read_text().splitlines()[1:]}
    assert kept and 5 not in kept
    damaged.write_bytes(whole)
    said = embed(folder, "raised.parquet", "--resume")
    assert (said["images"], said["images_resumed"]) == (40, 4 * len(kept))
    mended = taken(tmp_path / "raised.parquet")
    embed(folder, "raised.parquet", on=False)
    assert (tmp_path / "raised.parquet").read_bytes() == mended


def test_a_node_that_is_killed_costs_its_part_alone(embed, cluster, labelled, tmp_path):
    node = cluster.add_node(**ray_cluster.NODE)
    cluster.wait_for_nodes()
    parts = tmp_path / ".wellread-resume-there.parquet"
    killed = threading.Event()

    def kill():
        while not list(parts.glob("part-*.parquet")):
            if killed.wait(0.01):
                return
        cluster.remove_node(node, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        said = embed(labelled, "there.parquet", "--actors", 4)
    finally:
        killed.set()
        killer.join()
    assert said["images"] == 40
    there = taken(tmp_path / "there.parquet")
    embed(labelled, "there.parquet", on=False)
    assert (tmp_path / "there.parquet").read_bytes() == there


def test_cells_are_embedded_as_on_one_machine(embed, labelled, tmp_path):
    words = ["--cells", ray_cluster.cells_table(tmp_path, labelled), "--cells-size", "16x16"]
    embed(labelled, "there.parquet", *words, on=False)
    here = taken(tmp_path / "there.parquet")
    said = embed(labelled, "there.parquet", *words)
    assert said["images"] == 30 and (tmp_path / "there.parquet").read_bytes() == here
