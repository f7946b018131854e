"""`wellread infer` and `wellread embed` on a GPU: each framework, type and way, and what does not fit."""

import os
import sys

import numpy as np
import pytest
import torch
from bench_worker import REAL_TORCHVISION

IMAGES = ["--input-shape", "3,64,64", "--device-prefer", "cuda"]
FEW = ["--iterations", 3, "--warmup", 1, "--turn-limit", 900]
# Largest difference of outputs between frameworks, as a share of the largest output.
BOUNDS = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}


def provider():
    """Whether the Python's ONNX Runtime computes with CUDA."""
    try:
        import onnxruntime
    except ImportError:
        return False
    return "CUDAExecutionProvider" in onnxruntime.get_available_providers()


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("model", ["resnet50", "vit_b_16"])
def test_frameworks_agree_on_the_gpu(infer, jax_gpu, model, dtype):
    shape = ["--device-prefer", "cuda"] if model == "vit_b_16" else IMAGES
    # One framework alone is compared with none.
    frameworks, check = ("pytorch,jax", ["--check"]) if jax_gpu else ("pytorch", [])
    rows, _, said = infer(
        "--framework", frameworks, "--model", model, *shape, "--dtype", dtype, "--batch-sizes", 1, 4, *FEW, *check
    )
    assert [row["reason"] for row in rows if row["status"] != "ok"] == []
    assert len(rows) == 2 * len(frameworks.split(","))
    assert not check or 0 <= said["max_difference"] < BOUNDS[dtype]
    for row in rows:
        assert row["device_type"] == "cuda" and row["dtype"] == dtype and row["device"].startswith("cuda:")
        # At least the weights of torch's module: 98 MiB and 330 MiB in float32.
        least = (90 if model == "resnet50" else 300) / (1 if dtype == "float32" else 2)
        assert float(row["memory_mb"]) > least
        assert float(row["throughput_ips"]) > 0


WAYS = ["eager", "compile", "channels-last", "cuda-graphs", "tf32", "compile+channels-last"]


def test_every_way_of_pytorch_runs_on_the_gpu(infer):
    rows, _, said = infer(
        "--framework", "pytorch", "--model", "resnet50", *IMAGES, "--torch", ",".join(WAYS), "--batch-sizes", 2, *FEW
    )
    ways = {row["variant"]: row for row in rows}
    assert set(ways) == set(WAYS)
    assert {way: row["reason"] for way, row in ways.items() if row["status"] != "ok"} == {}
    for way, row in ways.items():
        # What is made before the first pass is measured apart, and only where something is made.
        is_made = way.startswith("compile") or way == "cuda-graphs"
        assert (row["compilation_time_ms"] != "") == is_made, way
    assert ways["channels-last"]["layout"] == "NHWC"


def test_half_types_by_autocast_and_by_graphs_agree_with_half_weights(infer):
    rows, _, _ = infer(
        "--framework", "pytorch", "--model", "resnet50", *IMAGES, "--dtype", "float16",
        "--torch", "eager,autocast,autocast+channels-last,cuda-graphs,autocast+cuda-graphs", "--batch-sizes", 2, *FEW,
    )  # fmt: skip
    assert {row["variant"]: row["reason"] for row in rows if row["status"] != "ok"} == {}
    assert len(rows) == 5


def test_a_graph_that_is_replayed_computes_with_the_images_of_its_turn(monkeypatch):
    """The graph reads the place that the images are copied to: other images, other outputs."""
    from _wellread_bench.inference import pytorch

    def tiny(*_):
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 5))

    monkeypatch.setattr(pytorch, "torchvision_model", tiny)
    request = {
        "framework": "pytorch", "model": "tiny", "weights": None, "variant": ["cuda-graphs"], "device": "cuda",
        "dtype": "float32", "threads": 1,
    }  # fmt: skip
    session = pytorch.PyTorch(request)
    images = np.random.default_rng(3).random((2, 2, 3, 2, 2), np.float32)
    outputs = []
    with session.guard():
        for batch in images:
            session.fetch(batch)
            if session.graph is None:
                assert session.prepare() >= 0
            session.run()
            session.wait()
            outputs.append(session.logits())
    module = tiny()
    for batch, output in zip(images, outputs, strict=True):
        want = module(torch.from_numpy(batch)).detach().numpy()
        np.testing.assert_allclose(output, want, rtol=1e-5, atol=1e-6)
    assert session.device_peak() > 0
    session.forget()


def test_tensorrt_for_torch_runs_or_says_what_to_install(infer):
    try:
        import torch_tensorrt  # noqa: F401
    except ImportError:
        said = infer(
            "--framework", "pytorch", "--model", "resnet50", *IMAGES, "--torch", "tensorrt", "--batch-sizes", 1, *FEW,
            code=1,
        )  # fmt: skip
        assert ["pip install torch-tensorrt" in row["reason"] for row in said["results"]] == [True]
        return
    rows, _, said = infer(
        "--framework",
        "pytorch",
        "--model",
        "resnet50",
        *IMAGES,
        "--torch",
        "eager,tensorrt",
        "--batch-sizes",
        1,
        *FEW,
    )
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert said["max_difference"] < 1e-2


def test_a_batch_that_the_card_does_not_hold_is_told_and_the_next_is_measured(infer, stub):
    """A model that wants more than any card has at a batch of 3."""
    stub(
        "torchvision",
        REAL_TORCHVISION
        + """
import torch

def large(_, args):
    if len(args[0]) == 3:
        torch.empty(1 << 41, dtype=torch.uint8, device="cuda")

def get_model(*args, **kwargs):
    module = make(*args, **kwargs)
    module.register_forward_pre_hook(large)
    return module

real.models.get_model = get_model
""",
    )
    rows, _, _ = infer("--framework", "pytorch", "--model", "resnet50", *IMAGES, "--batch-sizes", 3, 2, *FEW)
    large, small = rows
    assert large["status"] == "failed" and "memory" in large["reason"], large
    assert small["status"] == "ok", small["reason"]


def test_onnx_runtime_computes_on_the_gpu_or_says_what_to_install(infer):
    args = ["--framework", "pytorch,onnxruntime", "--model", "resnet50", *IMAGES, "--batch-sizes", 1, 4, *FEW]
    if not provider():
        rows, _, _ = infer(*args)
        reasons = {row["framework"]: row["reason"] for row in rows}
        assert "onnxruntime-gpu" in reasons["onnxruntime"] and reasons["pytorch"] == ""
        return
    rows, _, said = infer(*args, "--provider", "cuda", "--check")
    assert [row["reason"] for row in rows if row["status"] != "ok"] == []
    assert {row["framework"]: row["device_type"] for row in rows} == {"pytorch": "cuda", "onnxruntime": "cuda"}
    assert said["max_difference"] < BOUNDS["float32"]
    rows, _, said = infer(*args, "--provider", "cuda", "--dtype", "float16", "--check")
    assert [row["reason"] for row in rows if row["status"] != "ok"] == []
    assert said["max_difference"] < BOUNDS["float16"]


def test_this_program_computes_on_the_gpu_or_names_the_build_that_does(infer, wellread):
    both = ["--framework", "pytorch,candle", "--model", "both", "--device-prefer", "cuda", "--batch-sizes", 1, 4]
    if "cuda" not in wellread("doctor")["candle_devices"]:
        rows, _, _ = infer(*both, *FEW)
        reasons = [row["reason"] for row in rows if row["framework"] == "candle"]
        assert len(reasons) == 4 and all("feature `cuda`" in reason for reason in reasons)
        return
    for dtype, bound in BOUNDS.items():
        rows, _, said = infer(*both, *FEW, "--dtype", dtype, "--check")
        assert [row["reason"] for row in rows if row["status"] != "ok"] == []
        assert {row["device_type"] for row in rows} == {"cuda"}
        assert said["max_difference"] < bound


ENCODER = """
import torch


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(2, 16, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()
        )

    def forward(self, x):
        assert self.layers[0].weight.device == x.device
        if x.is_cuda:
            open(__file__ + ".cuda", "w").write(str(x.device))
        return self.layers(x)
"""


def test_features_of_a_module_on_the_gpu_are_those_of_the_processor(wellread, parquet, tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    (tmp_path / "own_gpu.py").write_text(ENCODER)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    found = {}
    for device in ("cpu", "cuda"):
        out = tmp_path / f"{device}.parquet"
        said = wellread(
            "embed", parquet, "--model", "python:own_gpu:Encoder", "--out", out, "--device-prefer", device,
            "--batch-size", 16, "--python", sys.executable,
        )  # fmt: skip
        assert device in said["backend"], said
        table = pq.read_table(out)
        columns = [name for name in table.column_names if name.startswith("embedding_")]
        found[device] = np.stack([table[name].to_numpy() for name in columns], 1)
    assert (tmp_path / "own_gpu.py.cuda").read_text().startswith("cuda")
    assert found["cpu"].shape == (40, 16)
    # TF32 of cuDNN's convolutions keeps ten bits.
    np.testing.assert_allclose(found["cuda"], found["cpu"], rtol=5e-3, atol=1e-4)


def test_samples_name_the_card(infer):
    _, run, _ = infer("--framework", "pytorch", "--model", "resnet50", *IMAGES, "--batch-sizes", 1, *FEW)
    assert [record["opened"]["device_name"] for record in run["records"]] == [torch.cuda.get_device_name()]
