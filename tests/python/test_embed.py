"""`wellread embed`: ONNX files and models in Python to tables; what is refused, left out and gone on with."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pd = pytest.importorskip("pandas")

MODELS = '''
import os
import time

import numpy as np


calls = 0


def means(batch):
    """A model: any function of a batch. It may be told to wait behind some batches until its program is gone."""
    global calls
    calls += 1
    assert type(batch) is np.ndarray and batch.dtype == np.float32
    if "EMBED_ASKED" in os.environ:
        open(os.environ["EMBED_ASKED"], "w").close()
    program = os.getppid()
    while calls > int(os.environ.get("EMBED_BATCHES", "1000")) and os.getppid() == program:
        time.sleep(0.05)
    return batch.mean((2, 3), dtype=np.float64)


class Doubled:
    """A class is made once, then called."""

    def __init__(self, in_channels):
        self.weights = np.full(in_channels, 2, np.float32)

    def __call__(self, batch):
        return means(batch) * self.weights


class Gaps:
    """Features that are no numbers, of the third image of all."""

    def __init__(self):
        self.seen = 0

    def __call__(self, batch):
        found = means(batch)
        if self.seen <= 2 < self.seen + len(batch):
            found[2 - self.seen, 1] = np.nan
        self.seen += len(batch)
        return found


def one_row(batch):
    return means(batch)[:1]


def words(batch):
    return "no array"


def fails(batch):
    raise ValueError("nothing to see")
'''

TORCH = '''
import torch


class Encoder(torch.nn.Module):
    def __init__(self, in_channels):
        super().__init__()
        self.linear = torch.nn.Linear(in_channels, 3)
        torch.nn.init.constant_(self.linear.weight, 0.5)
        torch.nn.init.constant_(self.linear.bias, 1.0)
        self.drop = torch.nn.Dropout(0.9)

    def forward(self, x):
        assert not self.training and not torch.is_grad_enabled()
        return self.drop(self.linear(x.mean((2, 3)))), x


def maps():
    """A function without parameters makes the model."""
    return torch.nn.AvgPool2d(2)
'''


@pytest.fixture(scope="module")
def images(cells):
    """A folder of TIFF files, their names in order and their pixels."""
    import tifffile

    files = sorted(Path(cells["tiff"]).glob("*.tif*"))
    names = [file.name.split(".")[0] for file in files]
    return cells["tiff"], names, np.stack([tifffile.imread(file) for file in files])


@pytest.fixture(scope="module")
def wanted(images):
    """The mean of each channel of each image, scaled to [0, 1]."""
    return images[2].mean((2, 3), dtype=np.float64) / 65535


@pytest.fixture
def embed(wellread, images, tmp_path):
    """Run `wellread embed` on the images; the table, and what was said."""

    def run(model, *args, code=0, out="profiles.parquet"):
        out = tmp_path / out
        base = ["embed", images[0], "--model", model, "--out", out, "--python", sys.executable, "--threads", 1]
        said = wellread(*base, *args, code=code)
        return said if code else (pd.read_parquet(out), said)

    return run


@pytest.fixture
def models(tmp_path, monkeypatch):
    """Modules of models where Python finds them."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "own_models.py").write_text(MODELS)
    (folder / "own_torch.py").write_text(TORCH)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


def onnx_file(path, nodes, shape, outputs=(("features", 2),)):
    """An ONNX model of these nodes; `None` and names are open axes."""
    tensor, kind = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(*node[:3], **(node[3] if len(node) > 3 else {})) for node in nodes],
        "model",
        [tensor("images", kind, shape)],
        [tensor(name, kind, [None] * axes) for name, axes in outputs],
    )
    # A version that the libraries of the last years read.
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return path


def means_file(path, shape=("n", "c", "h", "w")):
    nodes = [("GlobalAveragePool", ["images"], ["maps"]), ("Flatten", ["maps"], ["features"])]
    return onnx_file(path, nodes, list(shape))


def features(table):
    return table.filter(regex="^embedding_").to_numpy()


def test_an_onnx_file_gives_its_features_beside_the_columns(embed, images, wanted, tmp_path):
    model = means_file(tmp_path / "means.onnx")
    table, said = embed(model)
    assert list(table.columns)[-2:] == ["embedding_0000", "embedding_0001"]
    assert all(name.startswith("Metadata_") for name in table.columns[:-2])
    assert table["embedding_0000"].dtype == np.float32
    assert [name.split(".")[0] for name in table["Metadata_name"]] == images[1]
    np.testing.assert_allclose(features(table), wanted, atol=1e-5)
    assert (said["images"], said["features"], said["images_skipped"]) == (40, 2, 0)
    words = {key.decode(): value.decode() for key, value in pq.read_metadata(said["out"]).metadata.items()}
    assert words["wellread.model"] == str(model) and len(words["wellread.model.sha256"]) == 64
    # The same whatever the batches, the threads and the parts.
    other, _ = embed(model, "--batch-size", 7, "--workers", 0, "--part-rows", 10, out="other.parquet")
    pd.testing.assert_frame_equal(table, other)
    # By name, and another way round; of values as they are.
    raw, _ = embed(model, "--channels", "1,0", "--scale", "none", "--crop", "20x30", out="raw.parquet")
    inside = images[2][:, ::-1, 14:34, 13:43].mean((2, 3), dtype=np.float64)
    np.testing.assert_allclose(features(raw), inside, rtol=1e-5)
    lists, _ = embed(model, "--features", "list", out="lists.parquet")
    np.testing.assert_array_equal(np.stack(lists["embedding"]), features(table))


def test_batches_that_are_fixed_are_filled_up(embed, wanted, tmp_path):
    table, _ = embed(means_file(tmp_path / "fixed.onnx", (16, 2, 48, 56)))
    np.testing.assert_allclose(features(table), wanted, atol=1e-5)


def test_feature_maps_are_refused_or_pooled_and_outputs_chosen(embed, wanted, tmp_path):
    pool = ("AveragePool", ["images"], ["maps"], {"kernel_shape": [2, 2], "strides": [2, 2]})
    mean = ("GlobalAveragePool", ["maps"], ["squares"])
    flat = ("Flatten", ["squares"], ["features"])
    outputs = (("maps", 4), ("squares", 4), ("features", 2))
    model = onnx_file(tmp_path / "maps.onnx", [pool, mean, flat], ["n", "c", "h", "w"], outputs)
    refused = embed(model, code=1)
    assert "64 x 2 x 24 x 28" in refused or "40 x 2 x 24 x 28" in refused
    assert "--pool mean" in refused and "--model-output" in refused
    assert not list(tmp_path.glob(".wellread-*"))
    for args in [("--pool", "mean"), ("--model-output", "features"), ("--model-output", "squares")]:
        table, _ = embed(model, *args, "--overwrite")
        np.testing.assert_allclose(features(table), wanted, atol=1e-5)
    unknown = embed(model, "--model-output", "layer4", "--overwrite", code=1)
    assert "layer4" in unknown and "maps, squares, features" in unknown


def test_images_that_do_not_fit_and_files_that_are_no_models_are_told(embed, tmp_path):
    said = embed(means_file(tmp_path / "small.onnx", ("n", 3, 32, 32)), code=1)
    assert "3 x 32 x 32" in said and "2 x 48 x 56" in said and "--channels 0,1,0" in said and "--resize 32x32" in said
    fitting, _ = embed(tmp_path / "small.onnx", "--channels", "0,1,0", "--resize", "32x32")
    assert len(fitting) == 40 and (fitting["embedding_0000"] == fitting["embedding_0002"]).all()
    (tmp_path / "text.onnx").write_text("no model")
    said = embed(tmp_path / "text.onnx", code=1, out="text.parquet")
    assert "text.onnx" in said
    square = onnx_file(tmp_path / "square.onnx", [("Flatten", ["images"], ["features"])], ["n", "pixels"])
    assert "2 axes" in embed(square, code=1, out="square.parquet")
    assert not (tmp_path / "text.parquet").exists() and not (tmp_path / "square.parquet").exists()


def test_models_in_python_are_called_with_batches(embed, models, wanted):
    table, said = embed("python:own_models:means", "--batch-size", 16)
    np.testing.assert_allclose(features(table), wanted, atol=1e-6)
    # The file of its code is what it is known by.
    assert len(said["model_sha256"]) == 64
    table, _ = embed("python:own_models:Doubled", "--overwrite")
    np.testing.assert_allclose(features(table), 2 * wanted, atol=1e-6)
    for name, word in [
        ("own_models:one_row", "1 x 2 for 8 images"),
        ("own_models:words", "no array of numbers"),
        ("own_models:fails", "ValueError: nothing to see"),
        ("own_models:Nothing", "no class Nothing"),
        ("not_there:Nothing", "no module not_there"),
    ]:
        said = embed(f"python:{name}", "--batch-size", 8, "--overwrite", code=1)
        assert word in said, said


def test_modules_of_torch_are_evaluated(embed, models, wanted):
    pytest.importorskip("torch")
    table, said = embed("python:own_torch:Encoder", "--batch-size", 16, "--device-prefer", "cpu")
    np.testing.assert_allclose(features(table), 1 + 0.5 * wanted.sum(1, keepdims=True).repeat(3, 1), atol=1e-5)
    assert "torch" in said["backend"]
    table, _ = embed("python:own_torch:maps", "--pool", "mean", "--overwrite", "--device-prefer", "cpu")
    np.testing.assert_allclose(features(table), wanted, atol=1e-5)


def test_features_that_are_no_numbers_are_told_kept_or_left_out(embed, models, images, wanted):
    gaps = ("python:own_models:Gaps", "--batch-size", 8)
    said = embed(*gaps, code=1)
    assert "row 2" in said and images[1][2] in said and "feature 1" in said and "--allow-nan" in said
    table, _ = embed(*gaps, "--allow-nan")
    assert np.argwhere(np.isnan(features(table))).tolist() == [[2, 1]]
    table, said = embed(*gaps, "--on-error", "skip", "--overwrite")
    assert [one["row"] for one in said["skipped"]] == [2] and said["images_skipped"] == 1
    np.testing.assert_allclose(features(table), np.delete(wanted, 2, 0), atol=1e-6)
    left_out = json.loads(pq.read_metadata(said["out"]).metadata[b"wellread.left_out"])
    assert left_out == said["skipped"]


def test_cells_have_features_of_their_own(embed, images, tmp_path):
    path, names, pixels = images
    places = [(12, 20), (30, 25)]
    rows = [f"{name},{x},{y},{n + 1}" for name in names for n, (x, y) in enumerate(places)]
    (tmp_path / "cells.csv").write_text("\n".join(["ImageName,x,y,ObjectNumber", *rows]) + "\n")
    model = means_file(tmp_path / "means.onnx")
    table, _ = embed(model, "--cells", tmp_path / "cells.csv", "--cells-size", "8x6")
    crops = [image[:, y - 4 : y + 4, x - 3 : x + 3] for image in pixels for x, y in places]
    np.testing.assert_allclose(features(table), np.mean(crops, (2, 3)) / 65535, atol=1e-5)
    assert table["Metadata_ObjectNumber"].tolist() == [1, 2] * 40
    assert all(name.startswith(("Metadata_", "embedding_")) for name in table.columns)


IN_PARTS = ["--batch-size", 4, "--part-rows", 8, "--workers", 1]


def begun(images, out, noted="\n0\n", stderr=subprocess.DEVNULL, **environment):
    """A run that waits in the middle of its second part, or once its journal ends as noted."""
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    command = [binary, "embed", images[0], "--model", "python:own_models:means", "--out", out]
    command += ["--python", sys.executable, "--threads", 1, *IN_PARTS]
    process = subprocess.Popen(
        [str(word) for word in command],
        env={**os.environ, "EMBED_BATCHES": "3", **environment},
        stdout=subprocess.DEVNULL,
        stderr=stderr,
    )
    journal, deadline = out.with_name(f".wellread-resume-{out.name}") / ".wellread-journal", time.monotonic() + 300
    while not (journal.exists() and journal.read_text().endswith(noted)):
        assert process.poll() is None and time.monotonic() < deadline, "it never wrote a part"
        time.sleep(0.01)
    return process


def test_an_interrupted_run_leaves_no_temporary_files(models, images, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    process = begun(images, tmp_path / "profiles.parquet", TMPDIR=str(temporary))
    assert list(temporary.glob("wellread-*")), "the sources of the worker are there"
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert not list(temporary.glob("wellread-*"))


def test_an_interrupted_run_without_a_part_leaves_nothing(models, images, tmp_path):
    """The folder stayed, and each later command there said that --resume continues from it."""
    folder = tmp_path / "out"
    folder.mkdir()
    asked, deadline = tmp_path / "asked", time.monotonic() + 300
    waits = {"EMBED_BATCHES": "0", "EMBED_ASKED": str(asked)}
    process = begun(images, folder / "profiles.parquet", "\n", subprocess.PIPE, **waits)
    while not asked.exists():
        assert process.poll() is None and time.monotonic() < deadline, "the model was never asked"
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1].decode()
    assert process.returncode == 130, said
    assert "before anything was complete: the same command begins anew; with a smaller --part-rows" in said
    assert list(folder.iterdir()) == []


def test_a_killed_run_is_gone_on_with(embed, models, images, tmp_path):
    out = tmp_path / "profiles.parquet"
    parts = tmp_path / ".wellread-resume-profiles.parquet"
    process = begun(images, out)
    assert (parts / "part-000000.parquet").exists()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not out.exists()
    whole, _ = embed("python:own_models:means", *IN_PARTS, out="whole.parquet")
    table, said = embed("python:own_models:means", *IN_PARTS, "--resume")
    assert (said["images_resumed"], said["images"]) == (8, 40)
    pd.testing.assert_frame_equal(table, whole)
    assert not parts.exists() and not list(tmp_path.glob(".wellread-partial*"))
    # A table that is there is done.
    _, said = embed("python:own_models:means", *IN_PARTS, "--resume")
    assert said["complete_before"] and said["images_resumed"] == 40


def test_pycytominer_takes_the_table(embed, wanted, tmp_path):
    python = os.environ.get("WELLREAD_PROFILES_PYTHON")
    if not python:
        pytest.skip("WELLREAD_PROFILES_PYTHON names no Python with CytoTable and pycytominer (make profiles-env)")
    _, said = embed(means_file(tmp_path / "means.onnx"))
    code = """
import sys
from pycytominer import normalize
from pycytominer.cyto_utils import load_profiles
profiles = load_profiles(sys.argv[1])
features = [name for name in profiles.columns if name.startswith("embedding_")]
done = normalize(profiles, features=features, samples="all", method="standardize")
print(features, "Metadata_name" in done, float(done[features].mean().abs().max()) < 1e-4, len(done))
"""
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run([python, "-c", code, said["out"]], env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[-2] == "['embedding_0000', 'embedding_0001'] True True 40"
