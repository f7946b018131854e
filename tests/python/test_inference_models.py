"""torchvision, ONNX Runtime and the Rust-native session on the same seeded weights and images."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")
safetensors = pytest.importorskip("safetensors.torch")

REPOSITORY = Path(__file__).resolve().parents[2]
MODELS = ["resnet50", "vit_b_16"]
BATCH = 2
# The largest difference of float32 logits, relative to the largest logit: what `wellread infer --check` allows.
BOUND = 1e-4


@pytest.fixture(scope="session")
def example():
    """The example program of wellread-model with both backends, which `cargo test` builds beside the command."""
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    assert binary, "set WELLREAD to the binary under test"
    path = Path(binary).resolve().parent / "examples" / "infer"
    assert path.exists(), f"{path} is not built (cargo build --release --workspace --examples)"
    return path


def rust(example, model, folder, backend):
    """Runs the example, which makes the weights and, with images in the folder, leaves its logits there."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [example, model, str(BATCH), "2", "1", folder, backend],
        capture_output=True, text=True, env={**os.environ, "PATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session", params=MODELS)
def reference(request, example, tmp_path_factory):
    """Model, folder with weights and images, torchvision's logits."""
    model, folder = request.param, tmp_path_factory.mktemp(request.param)
    rust(example, model, folder, "candle")
    images = np.random.default_rng(0).standard_normal((BATCH, 3, 224, 224), "f4")
    images.tofile(folder / "images.f32")
    network = getattr(torchvision.models, model)(weights=None).eval()
    network.load_state_dict(safetensors.load_file(folder / f"{model}-seed0.safetensors"), strict=True)
    with torch.inference_mode():
        return model, folder, network(torch.from_numpy(images)).numpy()


@pytest.mark.parametrize("backend", ["candle", "onnxruntime"])
def test_logits_agree_with_torchvision(example, reference, backend):
    model, folder, expected = reference
    if backend == "onnxruntime":
        pytest.importorskip("onnxruntime")
    rust(example, model, folder, backend)
    logits = np.fromfile(folder / "logits.f32", "<f4").reshape(expected.shape)
    assert np.abs(logits - expected).max() < BOUND * np.abs(expected).max()
    # Not all alike: images and classes differ.
    assert expected.std(axis=1).min() > 100 * BOUND and np.abs(expected[0] - expected[1]).max() > 100 * BOUND


def test_activations_stay_within_float16(reference):
    model, folder, _ = reference
    network = getattr(torchvision.models, model)(weights=None).eval()
    network.load_state_dict(safetensors.load_file(folder / f"{model}-seed0.safetensors"))
    largest = []
    for layer in network.modules():
        layer.register_forward_hook(lambda *call: largest.append(_largest(call[2])))
    with torch.inference_mode():
        network(3 * torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(0)))
    assert 0 < max(largest) < torch.finfo(torch.float16).max / 10


def _largest(output):
    return (output[0] if isinstance(output, tuple) else output).abs().max().item()


def test_onnx_files_are_valid_and_python_runs_them(example, reference):
    onnx = pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    model, folder, expected = reference
    rust(example, model, folder, "onnxruntime")
    path = folder / f"{model}-seed0.onnx"
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (images,) = session.get_inputs()
    assert (images.name, images.shape[1:], images.type) == ("images", [3, 224, 224], "tensor(float)")
    pixels = np.fromfile(folder / "images.f32", "<f4").reshape(BATCH, 3, 224, 224)
    (logits,) = session.run(["logits"], {"images": pixels})
    assert np.abs(logits - expected).max() < BOUND * np.abs(expected).max()
