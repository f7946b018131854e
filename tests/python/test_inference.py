"""`wellread infer`: four frameworks on the same weights and images, and what happens when one of them fails.

Long because models of users are written out here, each beside its test.
"""

import csv
import datetime
import os
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
from bench_worker import REAL_TORCHVISION

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

# A model of torchvision does what a batch of some size tells it to.
TRAPPED = (
    REAL_TORCHVISION
    + """
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
)

# A model of torchvision finds no memory in its first process.
LACKING = (
    REAL_TORCHVISION
    + """
def lack(*_):
    if not os.path.exists(os.path.join(here, "lacked")):
        open(os.path.join(here, "lacked"), "w").close()
        raise MemoryError("not now")

def get_lacking(*args, **kwargs):
    module = make(*args, **kwargs)
    module.register_forward_pre_hook(lack)
    return module

real.models.get_model = get_lacking
"""
)

CHANGED = """
def get_changed(*args, **kwargs):
    module = make(*args, **kwargs)
    module.register_forward_hook(lambda _, __, output: output + 0.01 * output.abs().max())
    return module

real.models.get_model = get_changed
"""


# Several batches are of small images: each is compiled, and takes minutes where images are large.
@pytest.mark.parametrize(("asked", "side", "batches"), [("both", 224, (1,)), ("resnet50", 64, (1, 4))])
def test_four_frameworks_compute_the_same(infer, asked, side, batches):
    models = ("resnet50", "vit_b_16") if asked == "both" else (asked,)
    # Rows have whole seconds.
    began = datetime.datetime.now().replace(microsecond=0)
    git = subprocess.run(["git", "-c", "safe.directory=*", "rev-parse", "HEAD"], capture_output=True, text=True)
    commit = "" if git.returncode else git.stdout.strip()
    size = ["--input-shape", f"3,{side},{side}"] if side != 224 else []
    rows, run, said = infer(
        "--framework", "all", "--model", asked, *size, "--batch-sizes", *batches, "--iterations", 2, "--warmup", 0,
        "--device-prefer", "cpu", "--check",
    )  # fmt: skip
    assert list(rows[0])[: len(UPSTREAM)] == UPSTREAM
    keys = {(row["framework"], row["model"], row["batch_size"]) for row in rows}
    frameworks = ("pytorch", "jax", "onnxruntime", "candle")
    assert keys == {(f, m, str(b)) for f in frameworks for m in models for b in batches}
    assert [row["reason"] for row in rows if row["status"] != "ok"] == []
    assert 0 < said["max_difference"] < 1e-4
    # Two rounds give no interval, so none is called the fastest, of this run neither.
    assert [(one["model"], one["batch_size"]) for one in said["fastest"]] == [(m, b) for m in models for b in batches]
    verdicts = {(one["verdict"], one["scope"], one["ratio"]) for one in said["fastest"]}
    assert verdicts == {("too_few_rounds", "within", None)}
    for row, record in zip(rows, run["records"], strict=True):
        assert 0 < record["opened"]["clock_overhead_ns"] < 1e5
        samples = np.concatenate([part["samples_ns"] for part in record["rounds"]]) / 1e6
        assert len(samples) == 2 == int(row["latency_samples"])
        for column, wanted in {
            "p50": np.median(samples), "p95": np.percentile(samples, 95), "p99": np.percentile(samples, 99),
            "mean": samples.mean(), "std": samples.std(ddof=1), "min": samples.min(), "max": samples.max(),
        }.items():  # fmt: skip
            assert float(row[f"latency_{column}_ms"]) == pytest.approx(wanted), column
        walls = [part["wall_ns"] / 1e9 for part in record["rounds"]]
        images = [len(part["samples_ns"]) * int(row["batch_size"]) for part in record["rounds"]]
        assert float(row["throughput_ips"]) == pytest.approx(np.median(np.divide(images, walls)))
        assert sum(walls) * 1e3 >= samples.sum()
        # At least the weights: 98 MiB and 330 MiB.
        assert float(row["memory_mb"]) > (90 if row["model"] == "resnet50" else 300)
        assert (row["compilation_time_ms"] != "") == (row["framework"] == "jax")
        assert row["input_shape"] == f"(3, {side}, {side})" and row["device_type"] == "cpu"
        assert (row["dtype"], row["device"].partition(":")[0]) == ("float32", "cpu"), row
        assert began <= datetime.datetime.fromisoformat(row["timestamp"]) <= datetime.datetime.now()
        assert row["git_commit"] == commit


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
    # ONNX Runtime needs no process of Python, and compiles nothing.
    rows, _, _ = infer(
        "--framework", "pytorch,onnxruntime,candle", *SMALL, "--batch-sizes", 1, "--iterations", 1, "--warmup", 1
    )
    found = {row["framework"]: row["status"] for row in rows}
    assert found == {"pytorch": "invalid", "onnxruntime": "ok", "candle": "ok"}


def test_pytorch_in_several_ways_agrees_with_itself(infer):
    rows, _, said = infer(
        "--framework", "pytorch", *SMALL, "--torch", "eager,channels-last,cuda-graphs", "--batch-sizes", 2,
        "--iterations", 2, "--warmup", 1, "--turn-limit", 600,
    )  # fmt: skip
    ways = {row["variant"]: row for row in rows}
    assert "CUDA device" in ways["cuda-graphs"]["reason"]
    for way in ("eager", "channels-last"):
        assert ways[way]["status"] == "ok", ways[way]["reason"]
    assert ways["channels-last"]["layout"] == "NHWC"
    assert 0 < said["max_difference"] < 1e-4


def test_pytorch_compiled_agrees_with_eager(infer, means):
    pytest.importorskip("onnx2torch")
    # Compiling all of a resnet50 takes an idle processor a minute.
    rows, _, said = infer(
        "--framework", "pytorch", "--model", means("means.onnx"), "--torch", "eager,compile", "--batch-sizes", 2,
        "--iterations", 2, "--warmup", 1, "--turn-limit", 1500,
    )  # fmt: skip
    ways = {row["variant"]: row for row in rows}
    for way in ("eager", "compile"):
        assert ways[way]["status"] == "ok", ways[way]["reason"]
    assert float(ways["compile"]["compilation_time_ms"]) > 0 and ways["eager"]["compilation_time_ms"] == ""
    assert said["max_difference"] < 1e-4


@pytest.mark.parametrize(("dtype", "least", "bound"), [("bfloat16", 1e-4, 5e-2), ("float16", 1e-5, 1e-2)])
def test_half_types_agree_within_their_bound_or_say_who_has_them(dtype, least, bound, infer):
    rows, _, _ = infer(
        "--framework", "all", *SMALL, "--dtype", dtype, "--batch-sizes", 1, "--iterations", 1, "--warmup", 1,
    )  # fmt: skip
    by = {row["framework"]: row for row in rows}
    assert by["pytorch"]["status"] == by["jax"]["status"] == "ok", [row["reason"] for row in rows]
    # Different from zero, and from what float32 would give: both do compute in the half type.
    differences = [float(by[name]["max_difference"]) for name in ("pytorch", "jax")]
    assert least < max(differences) < bound
    # One of the two is the reference, which has none.
    assert by["pytorch"]["allowed_difference"] + by["jax"]["allowed_difference"] == str(bound)
    for name in ("onnxruntime", "candle"):
        # Their kernels for processors are of float32.
        assert f"does not compute in {dtype}" in by[name]["reason"] and "float32" in by[name]["reason"], by[name]


def test_stored_images_are_measured_end_to_end(infer, wellread, tmp_path):
    wellread("generate", tmp_path / "set", "--images", 5, "--size", "90x80", "--formats", "tiff")
    rows, run, _ = infer(
        "--framework", "pytorch,candle", *SMALL, "--data-source", tmp_path / "set" / "tiff", "--batch-sizes", 2,
        "--iterations", 4, "--warmup", 1, "--check",
    )  # fmt: skip
    for row, record in zip(rows, run["records"], strict=True):
        steps = [step for part in record["rounds"] for step in part["steps"]]
        assert len(steps) == 4
        rates = [2e9 / np.mean([step["whole_ns"] for step in part["steps"]]) for part in record["rounds"]]
        assert float(row["end_to_end_ips"]) == pytest.approx(np.median(rates))
        assert all(s["wait_ns"] + s["fetch_ns"] + s["forward_ns"] <= s["whole_ns"] for s in steps)
        assert 0 <= float(row["data_wait_fraction"]) < 1


def test_a_framework_that_is_measured_alone_has_the_images_of_the_others(infer, stub, wellread, tmp_path):
    stub("torchvision", LACKING)
    # candle ends on the images 10 and 11, counted round and round: not the first ones again, as with 5 images.
    wellread("generate", tmp_path / "set", "--images", 7, "--size", "90x80", "--formats", "tiff")
    rows, _, said = infer(
        "--framework", "pytorch,candle", *SMALL, "--data-source", tmp_path / "set" / "tiff", "--batch-sizes", 2,
        "--iterations", 2, "--warmup", 1,
    )  # fmt: skip
    assert (tmp_path / "stubs" / "lacked").exists()
    by = {row["framework"]: row for row in rows}
    assert "measured alone" in by["pytorch"]["note"] and by["candle"]["note"] == ""
    assert [row["status"] for row in rows] == ["ok", "ok"], [row["reason"] for row in rows]
    assert said["max_difference"] < 1e-4


@pytest.fixture
def means(tmp_path):
    """An ONNX file: the mean of each channel of images of any size but 3 channels."""
    onnx = pytest.importorskip("onnx")

    def write(name, last="Flatten", kind="FLOAT", shape=("n", 3, 20, 30)):
        helper, types = onnx.helper, onnx.TensorProto
        nodes = [helper.make_node("GlobalAveragePool", ["pixels"], ["pooled"])]
        attributes = {"axis": 1} if last == "ArgMax" else {}
        nodes.append(helper.make_node(last, ["pooled"], ["means"], **attributes))
        graph = helper.make_graph(
            nodes,
            "means",
            [helper.make_tensor_value_info("pixels", types.FLOAT, list(shape))],
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


def test_axes_that_a_file_leaves_open_are_what_is_asked_for(infer, means):
    """Batch, rows and columns of an ONNX file may be open; one that is fixed is said to be."""
    path = means("open.onnx", shape=("n", 3, "h", "w"))
    args = ["--framework", "onnxruntime", "--batch-sizes", 1, 3, "--iterations", 1, "--warmup", 1, "--model", path]
    for shape in ("3,20,30", "3,8,64"):
        rows, _, _ = infer(*args, "--input-shape", shape)
        assert [(row["status"], row["batch_size"]) for row in rows] == [("ok", "1"), ("ok", "3")], rows
        assert {row["input_shape"] for row in rows} == {f"({shape.replace(',', ', ')})"}
    said = str(infer(*args, code=1))
    assert "images of any size" in said and "--input-shape C,H,W" in said
    fixed = means("fixed.onnx", shape=(2, 3, 20, 30))
    args = ["--framework", "onnxruntime", "--iterations", 1, "--warmup", 1, "--model", fixed]
    rows, _, _ = infer(*args, "--batch-sizes", 2, 4)
    assert [row["status"] for row in rows] == ["ok", "failed"]
    assert "it takes batches of 2, not 4" in rows[1]["reason"] and "--batch-sizes 2" in rows[1]["reason"]
    said = str(infer(*args, "--batch-sizes", 2, "--input-shape", "3,21,30", code=1))
    assert "axis H cannot be 21" in said


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
            [*map(str, command), *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        next(line for line in process.stdout if said in line)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=600)
        assert process.returncode == 130
        return folder, errors.splitlines()[-1]

    return run


def test_a_run_that_is_interrupted_before_the_first_row_leaves_nothing(interrupted):
    folder, said = interrupted("Available", "--batch-sizes", 1, "--iterations", 100_000)
    assert not folder.exists() and said == "interrupted"


def test_a_run_that_is_interrupted_keeps_its_rows(interrupted):
    # The second batch size takes seconds.
    folder, said = interrupted("Throughput", "--batch-sizes", 1, 64, "--iterations", 20, "--warmup", 5)
    assert sorted(path.suffix for path in folder.iterdir()) == [".csv", ".json"]
    (table,) = folder.glob("*.csv")
    assert said == f"interrupted; the results so far are in {table}"
    with open(table, newline="") as file:
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


def there_are(monkeypatch, *kinds):
    """Makes torch say that these devices are there, whatever this machine has."""
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: "cuda" in kinds)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: "mps" in kinds)


@pytest.mark.parametrize(
    ("there", "best"),
    [(("cuda", "mps"), "cuda:3"), (("cuda",), "cuda:3"), (("mps",), "mps"), ((), "cpu")],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else value,
)
def test_the_best_device_is_chosen_where_none_is_asked_for(there, best, monkeypatch):
    """CUDA before MPS before the CPU; one that is asked for by name is that one."""
    from _wellread_bench.errors import Unusable
    from _wellread_bench.inference.pytorch import choose

    there_are(monkeypatch, *there)
    assert str(choose(None)) == best
    assert str(choose("cpu")) == "cpu"
    for kind in ("cuda", "mps"):
        if kind in there:
            assert choose(kind).type == kind
        else:
            with pytest.raises(Unusable, match=f"finds no {kind} device here"):
                choose(kind)


def test_without_a_device_asked_for_the_rows_say_which_was_chosen(infer):
    """The program passes on that nothing was asked for; the rows have the best that torch and JAX find here."""
    import jax
    import torch

    small = [word for word in SMALL if word not in ("--device-prefer", "cpu")]
    rows, _, _ = infer("--framework", "pytorch,jax", *small, "--batch-sizes", 1, "--iterations", 1, "--warmup", 0)
    kinds = {row["framework"]: row["device_type"] for row in rows}
    best = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    ours = {"gpu": "cuda", "METAL": "mps"}.get(jax.devices()[0].platform, jax.devices()[0].platform)
    assert [row["status"] for row in rows] == ["ok", "ok"], [row["reason"] for row in rows]
    assert kinds == {"pytorch": best, "jax": ours}


def test_mixed_precision_computes_in_the_half_type_with_weights_of_float32(infer):
    """`--torch autocast`: outputs are near those of half weights, and not the same."""
    rows, _, _ = infer(
        "--framework", "pytorch", *SMALL, "--torch", "eager,autocast", "--dtype", "bfloat16", "--batch-sizes", 1,
        "--iterations", 2, "--warmup", 0, "--check",
    )  # fmt: skip
    ways = {row["variant"]: row for row in rows}
    assert set(ways) == {"eager", "autocast"}
    for row in rows:
        assert (row["status"], row["dtype"], row["latency_samples"]) == ("ok", "bfloat16", "2"), row["reason"]
    # One of the two is the reference; the other is not what it computes.
    (difference,) = [float(row["max_difference"]) for row in rows if row["allowed_difference"]]
    assert 1e-4 < difference < 5e-2
    # In float32 there is nothing to cast.
    said = infer("--framework", "pytorch", *SMALL, "--torch", "autocast", "--batch-sizes", 1, code=1)
    assert ["autocast computes in a half type" in row["reason"] for row in said["results"]] == [True]


def test_autocast_keeps_weights_of_float32(monkeypatch):
    """The parts of its session: weights and images of float32, and outputs in the half type."""
    import torch
    from _wellread_bench.inference import pytorch

    def tiny(*_):
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 5))

    monkeypatch.setattr(pytorch, "torchvision_model", tiny)
    kinds = {}
    for way in ("eager", "autocast"):
        request = {
            "framework": "pytorch", "model": "tiny", "weights": None, "variant": [way], "device": "cpu",
            "dtype": "bfloat16", "threads": torch.get_num_threads(),
        }  # fmt: skip
        session = pytorch.PyTorch(request)
        session.fetch(np.ones((2, 3, 2, 2), np.float32))
        with session.guard():
            session.prepare()
        kinds[way] = (session.module[1].weight.dtype, session.inputs.dtype, session.output.dtype)
    assert kinds["autocast"] == (torch.float32, torch.float32, torch.bfloat16)
    assert kinds["eager"] == (torch.bfloat16, torch.bfloat16, torch.bfloat16)


def test_memory_of_a_device_is_what_its_allocator_says(monkeypatch):
    """On CUDA the allocator's peak; Metal keeps none, so the most that it said. On the processor the program asks."""
    import torch
    from _wellread_bench.inference import pytorch

    session = pytorch.PyTorch.__new__(pytorch.PyTorch)
    session.module, session.most = None, 0
    asked, said = [], iter((5, 9, 7))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: asked.append(device) or 4321)
    monkeypatch.setattr(torch.mps, "driver_allocated_memory", lambda: next(said))
    session.device = torch.device("cuda", 1)
    assert session.device_peak() == 4321 and asked == [session.device]
    session.device = torch.device("mps")
    assert [session.device_peak() for _ in range(3)] == [5, 9, 9]
    session.device = torch.device("cpu")
    assert session.device_peak() is None


def test_a_batch_that_does_not_fit_is_told_and_the_next_is_measured(infer):
    rows, _, _ = infer(
        "--framework", "candle", *SMALL, "--batch-sizes", 10_000_000, 1, "--iterations", 1, "--warmup", 1
    )
    large, small = rows
    assert large["status"] == "failed" and "does not fit in memory" in large["reason"]
    assert small["status"] == "ok"


def test_of_several_outputs_of_a_file_the_first_counts(monkeypatch):
    """As in ONNX Runtime, whatever onnx2torch makes of the file's outputs."""
    import torch
    from _wellread_bench.inference import pytorch

    class Both(torch.nn.Module):
        def forward(self, images):
            return [images.mean((2, 3)), images.sum((2, 3))]

    monkeypatch.setattr(pytorch, "converted", lambda _: Both())
    request = {
        "framework": "pytorch", "model": "both.onnx", "weights": None, "variant": [], "device": "cpu",
        "dtype": "float32", "threads": torch.get_num_threads(),
    }  # fmt: skip
    session = pytorch.PyTorch(request)
    session.fetch(np.full((2, 3, 4, 4), 0.5, np.float32))
    session.prepare()
    assert np.array_equal(session.logits(), np.full((2, 3), 0.5, np.float32))


def test_memory_that_ran_out_is_told_however_long_the_error_is():
    """Compilers wrap errors in pages of what they did."""
    from types import SimpleNamespace

    from _wellread_bench.errors import Unusable
    from _wellread_bench.inference import explained

    forgotten = []
    session = SimpleNamespace(forget=lambda: forgotten.append(True))
    with pytest.raises(Unusable, match="the batch of 4 does not fit in memory: "), explained(session, (4, 3, 2, 2)):
        raise RuntimeError("While compiling a graph: " + "node, " * 200 + "CUDA out of memory.")
    assert forgotten == [True]
