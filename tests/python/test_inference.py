"""`wellread infer`: four frameworks on the same weights and images, and what happens when one of them fails."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("torchvision")
pytest.importorskip("jax")
pytest.importorskip("onnxruntime")

# fmt: off
UPSTREAM = [
    "framework", "model", "device", "device_type", "batch_size", "input_shape", "dtype", "latency_p50_ms",
    "latency_p95_ms", "latency_p99_ms", "latency_mean_ms", "latency_std_ms", "latency_min_ms", "latency_max_ms",
    "throughput_ips", "memory_mb", "compilation_time_ms", "timestamp", "git_commit",
]
# fmt: on
SMALL = ["--input-shape", "3,64,64", "--device-prefer", "cpu", "--model", "resnet50"]

# Put before the real torchvision, whose model then does what a batch of some size tells it to.
TRAPPED = """
import importlib, os, signal, sys, time

here = os.path.dirname(__file__)
sys.path.remove(here)
del sys.modules["torchvision"]
real = importlib.import_module("torchvision")
sys.modules["torchvision"] = real
make = real.models.get_model

def trap(_, args):
    if len(args[0]) == 2:
        time.sleep(600)
    if len(args[0]) == 3:
        os.kill(os.getpid(), signal.SIGKILL)

def get_model(*args, **kwargs):
    module = make(*args, **kwargs)
    module.register_forward_pre_hook(trap)
    return module

real.models.get_model = get_model
"""

CHANGED = """
def get_changed(*args, **kwargs):
    module = make(*args, **kwargs)
    module.register_forward_hook(lambda _, __, output: output + 0.01 * output.abs().max())
    return module

real.models.get_model = get_changed
"""


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Weights and ONNX files, made once."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def infer(wellread, tmp_path, models):
    """Run a benchmark; return its rows, from the table and, with raw samples, from the JSON file."""

    def run(*args, code=0):
        common = ["--python", sys.executable, "--model-dir", models]
        if "--output-dir" not in args:
            common += ["--output-dir", tmp_path / "raw"]
        said = wellread("infer", *common, *args, code=code)
        if code:
            return said
        with open(said["csv"], newline="") as file:
            rows = list(csv.DictReader(file))
        return rows, json.loads(open(said["samples"]).read()), said

    return run


def test_four_frameworks_compute_the_same(infer):
    rows, run, said = infer(
        "--framework", "all", "--model", "both", "--batch-sizes", 1, 4, "--iterations", 2, "--warmup", 0,
        "--device-prefer", "cpu", "--check",
    )  # fmt: skip
    assert list(rows[0])[: len(UPSTREAM)] == UPSTREAM
    keys = {(row["framework"], row["model"], row["batch_size"]) for row in rows}
    frameworks = ("pytorch", "jax", "onnxruntime", "candle")
    assert keys == {(f, m, b) for f in frameworks for m in ("resnet50", "vit_b_16") for b in ("1", "4")}
    assert [row["reason"] for row in rows if row["status"] != "ok"] == []
    assert 0 < said["max_difference"] < 1e-4
    for row, record in zip(rows, run["records"], strict=True):
        assert 0 < record["opened"]["clock_overhead_ns"] < 1e5
        samples = np.concatenate([part["samples_ns"] for part in record["rounds"]]) / 1e6
        assert len(samples) == 2 == int(row["samples"])
        for column, wanted in {
            "p50": np.median(samples),
            "mean": samples.mean(), "std": samples.std(ddof=1), "min": samples.min(), "max": samples.max(),
        }.items():  # fmt: skip
            assert float(row[f"latency_{column}_ms"]) == pytest.approx(wanted), column
        # Two samples say nothing of the tail.
        assert row["latency_p95_ms"] == row["latency_p99_ms"] == ""
        wall = sum(part["wall_ns"] for part in record["rounds"]) / 1e9
        assert float(row["throughput_ips"]) == pytest.approx(2 * int(row["batch_size"]) / wall)
        assert wall * 1e3 >= samples.sum()
        # At least the weights: 98 MiB and 330 MiB.
        assert float(row["memory_mb"]) > (90 if row["model"] == "resnet50" else 300)
        assert (row["compilation_time_ms"] != "") == (row["framework"] == "jax")
        assert row["input_shape"] == "(3, 224, 224)" and row["device_type"] == "cpu"


def test_a_worker_that_hangs_or_is_killed_has_a_row_and_the_rest_goes_on(infer, stub):
    stub("torchvision", TRAPPED)
    rows, _, _ = infer(
        "--framework", "pytorch,candle", *SMALL, "--batch-sizes", 2, 3, 1, "--iterations", 2, "--warmup", 1,
        "--turn-limit", 20,
    )  # fmt: skip
    hung, _, killed, _, alive, _ = rows
    assert hung["status"] == "failed" and "no answer within 20 s" in hung["reason"]
    assert killed["status"] == "failed" and "SIGKILL" in killed["reason"] and "memory" in killed["reason"]
    assert alive["framework"] == "pytorch" and alive["status"] == "ok", alive["reason"]
    assert [row["status"] for row in rows if row["framework"] == "candle"] == ["ok"] * 3


def test_a_package_that_is_missing_has_a_row(infer, stub):
    stub("jax", "raise ImportError('no jax today')")
    stub("torchvision", "raise ImportError('no torchvision today')")
    rows, _, _ = infer("--framework", "all", *SMALL, "--batch-sizes", 1, "--iterations", 1, "--warmup", 1)
    reasons = {row["framework"]: row["reason"] for row in rows}
    assert "no torchvision today" in reasons["pytorch"] and "pip install torchvision" in reasons["pytorch"]
    assert "no jax today" in reasons["jax"] and "pip install jax" in reasons["jax"]
    assert reasons["onnxruntime"] == reasons["candle"] == ""


def test_outputs_that_differ_are_invalid(infer, stub):
    stub("torchvision", TRAPPED + CHANGED)
    said = infer(
        "--framework", "pytorch,jax,candle", *SMALL, "--batch-sizes", 1, "--iterations", 1, "--warmup", 1, "--check",
        code=1,
    )  # fmt: skip
    rows = {row["framework"]: row for row in said["results"]}
    assert rows["pytorch"]["status"] == "invalid" and rows["pytorch"]["max_difference"] == pytest.approx(
        0.01, rel=0.02
    )
    assert "differ from those of" in rows["pytorch"]["reason"]
    assert rows["jax"]["status"] == rows["candle"]["status"] == "ok"


def test_outputs_that_differ_are_told_without_being_asked_for(infer, stub):
    stub("torchvision", TRAPPED + CHANGED)
    rows, _, _ = infer(
        "--framework", "pytorch,jax,candle", *SMALL, "--batch-sizes", 1, "--iterations", 1, "--warmup", 1
    )
    assert {row["framework"]: row["status"] for row in rows}["pytorch"] == "invalid"


def test_pytorch_in_several_ways_agrees_with_itself(infer):
    # Compiling takes one idle processor a minute.
    rows, _, said = infer(
        "--framework", "pytorch", *SMALL, "--torch", "eager,channels-last,compile,cuda-graphs", "--batch-sizes", 2,
        "--iterations", 2, "--warmup", 1, "--turn-limit", 1500,
    )  # fmt: skip
    ways = {row["variant"]: row for row in rows}
    assert "CUDA device" in ways["cuda-graphs"]["reason"]
    for way in ("eager", "channels-last", "compile"):
        assert ways[way]["status"] == "ok", ways[way]["reason"]
    assert float(ways["compile"]["compilation_time_ms"]) > 0 and ways["eager"]["compilation_time_ms"] == ""
    assert ways["channels-last"]["layout"] == "NHWC"
    assert 0 < said["max_difference"] < 1e-4


def test_half_types_agree_within_their_bound_or_say_who_has_them(infer):
    rows, _, _ = infer(
        "--framework", "all", *SMALL, "--dtype", "bfloat16", "--batch-sizes", 1, "--iterations", 1, "--warmup", 1
    )
    by = {row["framework"]: row for row in rows}
    assert by["pytorch"]["status"] == by["jax"]["status"] == "ok", [row["reason"] for row in rows]
    # Different from zero, and from what float32 would give: both do compute in the half type.
    differences = [float(by[name]["max_difference"]) for name in ("pytorch", "jax")]
    assert 1e-4 < max(differences) < 5e-2
    # One of the two is the reference, which has none.
    assert by["pytorch"]["allowed_difference"] + by["jax"]["allowed_difference"] == "0.05"
    for row in rows:
        assert row["status"] == "ok" or "float32" in row["reason"], row


def test_stored_images_are_measured_end_to_end(infer, wellread, tmp_path):
    wellread("generate", tmp_path / "set", "--images", 5, "--size", "90x80", "--formats", "tiff")
    rows, run, _ = infer(
        "--framework", "pytorch,candle", *SMALL, "--data-source", tmp_path / "set" / "tiff", "--batch-sizes", 2,
        "--iterations", 4, "--warmup", 1, "--check",
    )  # fmt: skip
    for row, record in zip(rows, run["records"], strict=True):
        steps = [step for part in record["rounds"] for step in part["steps"]]
        whole = sum(step["whole_ns"] for step in steps)
        assert len(steps) == 4
        assert float(row["end_to_end_ips"]) == pytest.approx(8e9 / whole)
        assert all(s["wait_ns"] + s["fetch_ns"] + s["forward_ns"] <= s["whole_ns"] for s in steps)
        assert 0 <= float(row["data_wait_fraction"]) < 1


@pytest.fixture
def means(tmp_path):
    """An ONNX file: the mean of each channel of images of any size but 3 channels."""
    onnx = pytest.importorskip("onnx")

    def write(name, last="Flatten", kind="FLOAT"):
        helper, types = onnx.helper, onnx.TensorProto
        nodes = [helper.make_node("GlobalAveragePool", ["pixels"], ["pooled"])]
        attributes = {"axis": 1} if last == "ArgMax" else {}
        nodes.append(helper.make_node(last, ["pooled"], ["means"], **attributes))
        graph = helper.make_graph(
            nodes,
            "means",
            [helper.make_tensor_value_info("pixels", types.FLOAT, ["n", 3, 20, 30])],
            [helper.make_tensor_value_info("means", getattr(types, kind), None)],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        path = tmp_path / name
        onnx.save(model, path)
        return path

    return write


def test_a_file_of_the_users_own_runs_where_it_can(infer, means):
    pytest.importorskip("onnx2torch")
    args = ["--batch-sizes", 2, "--iterations", 1, "--warmup", 1, "--check"]
    rows, _, said = infer("--framework", "all", "--model", means("means.onnx"), *args)
    by = {row["framework"]: row for row in rows}
    for name in ("onnxruntime", "pytorch"):
        assert by[name]["status"] == "ok" and by[name]["input_shape"] == "(3, 20, 30)", by[name]
    assert said["max_difference"] < 1e-4
    for other in ("jax", "candle"):
        assert "ONNX" in by[other]["reason"] and "onnxruntime" in by[other]["reason"]


def test_a_file_that_cannot_be_run_has_rows_and_the_next_is_run(infer, means, tmp_path):
    broken, classes = tmp_path / "broken.onnx", means("classes.onnx", "ArgMax", "INT64")
    broken.write_bytes(means("whole.onnx").read_bytes()[:40])
    args = ["--framework", "onnxruntime", "--batch-sizes", 1, "--iterations", 1, "--warmup", 1]
    rows, _, _ = infer(*args, "--model", broken, classes, means("means.onnx"))
    assert [row["status"] for row in rows] == ["failed", "failed", "ok"]
    assert "broken.onnx" in rows[0]["reason"]
    assert "ArgMax" in rows[1]["reason"] and "float32" in rows[1]["reason"]


@pytest.fixture
def interrupted(models, tmp_path):
    """Interrupt a run when it has said something; return the folder of its results."""
    program = os.environ.get("WELLREAD") or shutil.which("wellread")

    def run(said, *args):
        folder = tmp_path / "raw"
        command = [program, "infer", "--framework", "candle", *SMALL, "--model-dir", models, "--output-dir", folder]
        process = subprocess.Popen(
            [*map(str, command), *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        next(line for line in process.stdout if said in line)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=600)
        assert process.returncode == 130
        return folder

    return run


def test_a_run_that_is_interrupted_before_the_first_row_leaves_nothing(interrupted):
    folder = interrupted("Available", "--batch-sizes", 1, "--iterations", 100_000)
    assert list(folder.iterdir()) == []


def test_a_run_that_is_interrupted_keeps_its_rows(interrupted):
    # The second batch size takes seconds.
    folder = interrupted("Throughput", "--batch-sizes", 1, 64, "--iterations", 20, "--warmup", 5)
    assert sorted(path.suffix for path in folder.iterdir()) == [".csv", ".json"]
    with open(next(folder.glob("*.csv")), newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["batch_size"] == "1" and row["status"] == "ok"


def test_what_makes_no_sense_is_told_before_anything_is_measured(infer, tmp_path):
    assert "candle" in infer("--framework", "tensorflow", code=2)
    assert "vit_b_16" in infer("--model", "resnet18", code=2)
    assert "bfloat16" in infer("--dtype", "int8", code=2)
    assert "no such file" in infer("--model", tmp_path / "none.onnx", code=1)
    assert "--input-shape for resnet50" in infer("--input-shape", "1,32,32", code=2)
    (tmp_path / "file").write_text("")
    said = infer("--output-dir", tmp_path / "file" / "raw", "--framework", "candle", code=1)
    assert "nothing was measured" in said and "--output-dir" in said
    assert "none.parquet" in infer("--data-source", tmp_path / "none.parquet", code=1)


def test_a_device_asked_for_by_name_is_not_replaced(infer):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    args = ["--model", "resnet50", "--input-shape", "3,64,64", "--batch-sizes", 1, "--device-prefer", "cuda"]
    said = infer("--framework", "all", *args, code=1)
    reasons = {row["framework"]: row["reason"] for row in said["results"]}
    assert "finds no cuda device" in reasons["pytorch"] and "finds no cuda device" in reasons["jax"]
    assert all(reasons.values()) and len(reasons) == 4


def test_a_batch_that_does_not_fit_is_told_and_the_next_is_measured(infer):
    rows, _, _ = infer(
        "--framework", "candle", *SMALL, "--batch-sizes", 10_000_000, 1, "--iterations", 1, "--warmup", 1
    )
    large, small = rows
    assert large["status"] == "failed" and "does not fit in memory" in large["reason"]
    assert small["status"] == "ok"
