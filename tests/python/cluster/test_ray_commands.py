"""Commands with `--on ray`, on a real cluster of three nodes."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import ray_cluster
import wellread as wr

ray = pytest.importorskip("ray")


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
    assert ray_cluster.files(tmp_path / "images") == ray_cluster.files(tmp_path / "one")
    parted = wellread("convert", labelled, tmp_path / "parts.parquet", "--rows-per-part", 7, "--on", on)
    assert (done["parts"], parted["parts"]) == (3, 6)
    said = wellread("convert", labelled, tmp_path / "images", "--format", "tiff", "--on", on, code=1)
    assert "already exists" in said


def test_cells_are_those_of_one_machine(cluster, wellread, labelled, monkeypatch, tmp_path):
    on = ["--on", on_ray(monkeypatch, cluster)]
    words = ["--cells", ray_cluster.cells_table(tmp_path, labelled), "--cells-size", "16x16"]
    here = wellread("checksum", labelled, *words)
    assert len(here) == 30 and here[0]["name"].endswith("/cell-0") and here[0]["shape_tczyx"][-2:] == [16, 16]
    assert wellread("checksum", labelled, *words, *on) == here
    for name, place in [("here", []), ("there", on)]:
        wellread("stats", labelled, *words, "--out", tmp_path / f"{name}.json", *place)
        wellread("convert", labelled, tmp_path / name, "--format", "tiff", *words, *place)
    assert (tmp_path / "here.json").read_bytes() == (tmp_path / "there.json").read_bytes()
    assert ray_cluster.files(tmp_path / "here") == ray_cluster.files(tmp_path / "there")
    # The images of one side are cells already, and those of the other are cut out.
    compare = ["verify", tmp_path / "there", "--against", labelled, *words]
    found = wellread(*compare, *on)
    assert found["passed"] and found["images"] == 30 and found == wellread(*compare)


def test_profiles_are_joined_as_by_one_machine(cluster, wellread, labelled, monkeypatch, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    on = on_ray(monkeypatch, cluster)
    source = wr.Dataset(labelled)
    # In another order, without some images, and with a column that the images have with other values.
    rows = [row for row in reversed(range(40)) if row % 9]
    table = {
        "image": [source.name(row) for row in rows],
        "well": [f"other-{row}" for row in rows],
        "dose": pa.array([row / 4 for row in rows], pa.float32()),
        "batch": rows,
    }
    profiles = tmp_path / "profiles.parquet"
    pq.write_table(pa.table(table), profiles)
    words = ["--join", profiles, "--on", "image", "--columns", "well,dose"]
    here = wellread("convert", labelled, tmp_path / "here.parquet", *words)
    there = wellread("convert", labelled, tmp_path / "there.parquet", *words, "--on", on)
    told = ("feature_columns", "images_with_profile", "columns_left_out", "columns_renamed")
    assert {name: there[name] for name in told} == {name: here[name] for name in told}
    assert there["images_with_profile"] == len(rows)
    one, other = wr.Dataset(tmp_path / "here.parquet"), wr.Dataset(tmp_path / "there.parquet")
    assert list(one.columns) == list(other.columns) and "dose" in one.columns and "batch" not in one.columns
    for name in one.columns:
        np.testing.assert_array_equal(one.column(name), other.column(name), err_msg=name)
    assert ray_cluster.images_of(one) == ray_cluster.images_of(other)


def test_options_of_opening_are_of_the_set_that_takes_them(cluster, wellread, cells, monkeypatch):
    compare = ["verify", cells["tiff"], "--against", cells["parquet"], "--layout", "files"]
    found = wellread(*compare, "--on", on_ray(monkeypatch, cluster))
    assert found["passed"] and found == wellread(*compare)


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


def test_experiments_are_measured_on_nodes_of_a_cluster(cluster, wellread, monkeypatch, tmp_path):
    on = on_ray(monkeypatch, cluster)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    repository = tmp_path / "repository"
    experiments = repository / "configs" / "experiment"
    experiments.mkdir(parents=True)
    phase = json.dumps({"samples": "batch_step", "seconds": [0.1, 0.1]})
    for name in ("e", "f"):
        (experiments / f"{name}.sh").write_text(f"echo '{phase}' >> \"$WELLREAD_PHASES\"\n")
    author = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    for words in (["init", "--quiet", "--initial-branch=main"], ["add", "--all"], ["commit", "--quiet", "-m", "e"]):
        subprocess.run(["git", "-C", str(repository), *author, *words], check=True)
    table, out = tmp_path / "tasks.csv", tmp_path / "out.json"
    table.write_text("branch,experiment\nmain,e\nmain,f\n")
    wellread("tasks", "train", "--config", table, "--output", out, "--repo", repository, "--on", on)
    entries = json.loads(out.read_text())
    assert [(entry["experiment"], entry["success"]) for entry in entries] == [("e", True), ("f", True)]
    host = socket.gethostname()
    assert all(entry["node"]["host"] == host and entry["node"]["cores"] >= 1 for entry in entries)


def test_the_command_refuses_what_nodes_cannot_do(wellread, parquet, tmp_path):
    said = wellread("checksum", parquet, "--on", "slurm", code=2)
    assert "neither ray nor ray:ADDRESS" in said
    said = wellread("convert", parquet, tmp_path / "x.parquet", "--on", "slurm", code=2)
    assert "neither ray nor ray:ADDRESS" in said and "--join" in said
    join = ["--join", parquet, "--on", "ray:10.0.0.1:6379"]
    said = wellread("convert", parquet, tmp_path / "x.parquet", *join, code=2)
    assert "the columns of the profiles are missing" in said and "--on COLUMN --on ray" in said


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
    assert done.stdout.splitlines() == ["wellread.ray needs Ray: pip install '.[ray]' in a clone of wellread"] * 6
    # A Python that has nothing.
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\necho no\n")
    python.chmod(0o755)
    monkeypatch.setenv("WELLREAD_PYTHON", str(python))
    said = wellread("checksum", parquet, "--on", "ray", code=1)
    assert "has no ray" in said and "pip install '.[ray]' in a clone of wellread" in said


def test_commands_that_measure_are_alone_on_their_nodes(cluster, tmp_path):
    from wellread.ray import _commands

    # An earlier test may have killed one.
    ray_cluster.wait_for(3)
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


def test_images_that_cannot_be_read_are_left_out_as_by_one_machine(cluster, wellread, cells, monkeypatch, tmp_path):
    from wellread import ray as wray

    on = on_ray(monkeypatch, cluster)
    folder = tmp_path / "tiff"
    wellread("convert", cells["parquet"], folder, "--format", "tiff")
    damaged = sorted(folder.glob("*.tiff"))[7]
    damaged.write_bytes(damaged.read_bytes()[:200])
    words = ["--format", "tiff", "--on-error", "skip"]
    here = wellread("convert", folder, tmp_path / "here", *words)
    there = wellread("convert", folder, tmp_path / "there", *words, "--on", on)
    assert (there["images"], there["images_skipped"]) == (39, 1) == (here["images"], here["images_skipped"])
    assert there["skipped"] == here["skipped"] and there["skipped"][0]["row"] == 7
    assert ray_cluster.files(tmp_path / "here") == ray_cluster.files(tmp_path / "there")
    with pytest.raises(wr.Error, match=damaged.name):
        wray.convert(folder, tmp_path / "python", format="tiff")
    done = wray.convert(folder, tmp_path / "python", format="tiff", on_error="skip")
    assert done["images_skipped"] == 1 and done["skipped"][0]["row"] == 7
    assert ray_cluster.files(tmp_path / "python") == ray_cluster.files(tmp_path / "here")


def test_what_nodes_have_read_is_not_read_again_by_the_next_run(cluster, wellread, cells, monkeypatch, tmp_path):
    on = on_ray(monkeypatch, cluster)
    folder, cache = tmp_path / "tiff", tmp_path / "cache"
    wellread("convert", cells["parquet"], folder, "--format", "tiff")
    here, stats = wellread("checksum", folder), wellread("stats", folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")

    def run(*words):
        command = [binary, "--json", *map(str, words), "--on", on, "--resume"]
        return subprocess.run(command, capture_output=True, text=True, timeout=600)

    def kept():
        return sorted(path.name for path in cache.glob("wellread/resume/*"))

    victim = sorted(folder.glob("*.tiff"))[37]
    whole = victim.read_bytes()
    for words, document in (("checksum", folder), here), (("stats", folder), stats):
        # As long as before: a set of another size is read anew.
        victim.write_bytes(b"II*\0" + bytes(len(whole) - 4))
        failed = run(*words)
        assert failed.returncode == 1 and victim.name in failed.stderr, failed.stderr
        assert len(kept()) == 1
        victim.write_bytes(whole)
        done = run(*words)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == document
        # A task of statistics that fails ends the others.
        again = "an interrupted run had read 32 images; these were not read again" in done.stderr
        assert (again or words[0] == "stats") and kept() == []
    # One job reads both sets, and says so once.
    done = run("verify", folder, "--against", cells["parquet"])
    assert json.loads(done.stdout)["passed"] and done.stderr.count("on ray: ") == 1 and kept() == []
    nodes = [line for line in done.stderr.splitlines() if line.startswith("node ")]
    assert nodes and all(re.search(r" [\d.]+ images/s, [\d.]+ images/s a task", line) for line in nodes), nodes
    # Forty images of each set, and one of several nodes was slow.
    assert sum(int(re.search(r": (\d+) images? in ", line)[1]) for line in nodes) == 80
    assert sum(line.endswith(", the slowest") for line in nodes) == (len(nodes) > 1)


def test_images_that_are_done_are_told_as_tasks_end(cluster, cells):
    request = {
        "command": "checksum", "sets": [{"path": cells["tiff"], "options": {}}], "address": cluster.address,
        "resume": False,
    }  # fmt: skip
    command, pipe = [sys.executable, "-m", "wellread.ray"], subprocess.PIPE
    # It ends when its stdin does, which stays open until it has answered.
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        said = [json.loads(line) for line in process.stdout]
    *progress, last = said
    assert process.returncode == 0 and len(json.loads(last["result"][0])) == 40
    assert progress[0] == {"total": 40}
    done = [line["done"] for line in progress[1:]]
    # Each of several tasks says so by itself.
    assert sum(done) == 40 and len(done) > 1


def test_checksums_and_statistics_leave_out_what_cannot_be_read(cluster, wellread, cells, monkeypatch, tmp_path):
    from wellread import ray as wray

    on = on_ray(monkeypatch, cluster)
    folder = tmp_path / "tiff"
    wellread("convert", cells["parquet"], folder, "--format", "tiff")
    damaged = sorted(folder.glob("*.tiff"))[7]
    damaged.write_bytes(damaged.read_bytes()[:200])
    skip = ["--on-error", "skip"]
    for command in ("checksum", "stats"):
        assert wellread(command, folder, *skip, "--on", on) == wellread(command, folder, *skip)
        assert damaged.name in wellread(command, folder, "--on", on, code=1)
    with pytest.warns(UserWarning, match="images are left out: row 7: "):
        assert wray.checksum(folder, on_error="skip") == wellread("checksum", folder, *skip)
    found, here = wray.stats(folder, on_error="skip"), wellread("stats", folder, *skip)
    assert [one["row"] for one in found.pop("skipped")] == [7] == [one["row"] for one in here.pop("skipped")]
    assert found.pop("cluster")["images_per_s"] > 0
    assert found == here and found["images"] == 39
