"""Every example runs as it stands, and says what it is to say."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

# What the output has to match, for what an example does not assert by itself.
SAYS = {
    "plate_to_cells.py": r"24 sites of \(5, 192, 192\)(?s:.*)epoch 5: loss [\d.]+\nwells that were not trained",
    "nf1_supervised.py": r"5 sites of \(3, 256, 320\): B7, D6, D7, F7, H12(?s:.*)epoch 59: loss [\d.]+",
    "torch_train.py": r"epoch 7: loss [\d.]+, \d+% right",
    "torch_map_dataset.py": r"256 images in 16 batches",
    "jax_train.py": r"epoch 5: loss [\d.]+",
    "lightning_train.py": r"first_batch_forward: [\d.]+ ms(?s:.*)validation accuracy: \d+%",
    "custom_transforms.py": r"own: \{\(16, 2, 64, 64\)\}\nbuilt in: \(16, 2, 48, 48\)\nby the batch: \(16, 1,",
    "custom_models.py": r"custom_models:Torch in pytorch, train: \d+ images/s(?s:.*):Nnx in jax, train: \d+ images/s"
    r"(?s:.*)model.onnx in pytorch, inference: \d+ images/s",
    "arrow_in_out.py": r"DuckDB: 6 images of a query",
    "resume.py": r"went on with 11 batches",
    "labels.py": r"A01: 9% of the set, 50% of a balanced epoch",
}


def test_all_examples_are_here():
    assert {path.name for path in EXAMPLES.glob("[!_]*.py")} == SAYS.keys()


# Those that train on something that can be learned: the last loss is lower than the first.
TRAIN = ("torch_train.py", "jax_train.py", "plate_to_cells.py", "nf1_supervised.py")


def losses(said):
    return [float(loss) for loss in re.findall(r"loss ([\d.]+)", said)]


def run(name, tmp_path, *arguments):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "JAX_PLATFORMS": "cpu"}
    # For what hangs: the longest imports its frameworks several times.
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments],
        capture_output=True,
        text=True,
        timeout=1800,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", SAYS)
def test_example(name, tmp_path):
    said = run(name, tmp_path)
    assert re.search(SAYS[name], said), said
    assert not list(tmp_path.glob("wellread-example-*"))
    if name in TRAIN:
        assert losses(said)[-1] < losses(said)[0], "it learned nothing"


def test_nf1_s_own_images_are_learned(shared, tmp_path):
    if not (shared / "nf1").is_dir():
        pytest.skip("no NF1 images in the shared folder")
    said = run("nf1_supervised.py", tmp_path, str(shared / "nf1"))
    assert "5 sites of (3, 904, 1224): B7, D6, D7, F7, H12" in said
    assert losses(said)[-1] < losses(said)[0] / 2, said
