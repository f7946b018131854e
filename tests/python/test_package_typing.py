"""The package's types: choices handed on are the loader's; mypy and pyright, where they are, find mistakes."""

import importlib.util
import inspect
import json
import os
import pydoc
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import wellread as wr
import wellread.jax
import wellread.lightning
import wellread.torch
from wellread import _types


def parameters(call):
    return inspect.signature(call).parameters


def test_choices_are_the_loaders():
    own = {"dataset", "batch_size", "shuffle", "as_"}
    assert {*_types.LoaderChoices.__annotations__} == {*parameters(wr.DataLoader)} - own
    assert {*_types.TrainChoices.__annotations__} == {*parameters(wr.DataLoader)} - own | {"shuffle"}
    assert {*_types.OpenOptions.__annotations__} == {*parameters(wr.Dataset)} - {"path"}
    for name, parameter in parameters(wr.DataLoader).items():
        if name not in own:
            # The same words and types in both places.
            assert parameter.annotation == _types.LoaderChoices.__annotations__[name].__forward_arg__, name


@pytest.mark.parametrize(
    ("shown", "choices"),
    [
        (wellread.torch.DataLoader, _types.LoaderChoices),
        (wellread.jax.DataLoader, _types.LoaderChoices),
        (wellread.torch.IterableDataset, _types.LoaderChoices),
        (wellread.torch.Dataset, _types.OpenOptions),
        (wellread.lightning.WellreadDataModule, _types.ImageChoices),
    ],
)
def test_help_shows_the_choices(shown, choices):
    found = parameters(shown)
    of = wr.Dataset if choices is _types.OpenOptions else wr.DataLoader
    for name in choices.__annotations__:
        assert found[name].default == parameters(of)[name].default, name
    assert not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in found.values())
    text = pydoc.render_doc(shown, renderer=pydoc.plaintext)
    assert all(re.search(rf"\b{name}: ", text) for name in choices.__annotations__)


SAMPLE = """
import numpy as np
import wellread
import wellread.jax
import wellread.lightning
import wellread.torch

ds = wellread.Dataset("a", cache="memory:1GiB", level=1)
one: np.ndarray = ds[0]
one = ds[np.int64(0)]
one = ds.read(0, slice(0, 3))
for image in ds:
    one = image
for batch in wellread.DataLoader(ds, 4, as_="torch", crop=64, scale=(0, 4095), flip=(0.5, 0), rows=np.arange(4)):
    batch.anything
for array in wellread.DataLoader(ds, 4, crop=64):
    one = array
    array.anything  # attr-defined
for memory in wellread.DataLoader(ds, 4, as_="batch"):
    one = memory  # assignment
for pixels, labels in wellread.DataLoader(ds, 4, labels="well", classes=True):
    one = pixels
    number: int = pixels  # assignment
for part in wellread.DataLoader(ds, 4, as_="jax", labels=[1], as_dict=True, keys={"pixels": "image"}).__iter__():
    one = part["image"]
    one = part  # assignment
for of_any in wellread.DataLoader(ds, 4, columns=["well"], features="Cells_*", indices=True):
    of_any.anything
with wellread.Dataset("a") as opened, wellread.DataLoader(opened) as loader:
    several_axes: tuple[int, ...] = opened.shape
    one = next(iter(loader))
wellread.DataLoader(ds, classes="well", labels="well")
ds.with_columns(3)  # arg-type
ds.with_columns(ds, on="well", unmatched="skip")  # arg-type
wellread.DataLoader(ds, shard=(0, 2), rows=[1])
wellread.torch.IterableDataset(ds, shard=False)
wellread.torch.DataLoader("a", 4, True, crop=(3, 4), seed=5, labels="well", order="block", as_="numpy")
wellread.torch.IterableDataset(ds, shuffle=True, on_error="skip", cache="none")  # call-arg
wellread.lightning.WellreadDataModule("a", crop=3, train_choices={"flip": True, "weights": [1.0]})
several: np.ndarray = ds[1:3]  # assignment
wellread.Datset("a")  # attr-defined
wellread.torch.Datset("a")  # attr-defined
wellread.DataLoader(ds, as_="tensorflow")  # call-overload
wellread.DataLoader(ds, dtype="float8")  # call-overload
wellread.DataLoader(ds, turns="halves")  # call-overload
wellread.DataLoader(ds, order="shuffel")  # call-overload
wellread.DataLoader(ds, uneven="keep")  # call-overload
wellread.DataLoader(ds, shard="all")  # call-overload
wellread.DataLoader(ds, shard=True)  # call-overload
wellread.torch.DataLoader(ds, crpo=3)  # call-overload
wellread.torch.DataLoader(ds, on_error="ignore")  # call-overload
wellread.jax.DataLoader(ds, as_="torch")  # call-overload
wellread.torch.Dataset("a", cash="memory")  # call-arg
wellread.lightning.WellreadDataModule("a", weights=[1.0])  # call-arg
wellread.lightning.WellreadDataModule("a", train_choices={"flop": True})  # arg-type
wellread.Dataset.from_arrow(3)  # arg-type
"""


# What a batch is, of each library.
BATCHES = """
from typing import Any, assert_type

import jax
import torch
import wellread
import wellread.jax
import wellread.torch
from numpy.typing import NDArray

ds = wellread.Dataset("a")
assert_type(next(iter(wellread.DataLoader(ds, 4, crop=64))), NDArray[Any])
assert_type(next(iter(wellread.DataLoader(ds, 4, as_="batch"))), wellread.Batch)
assert_type(next(iter(wellread.DataLoader(ds, 4, as_="torch"))), torch.Tensor)
assert_type(next(iter(wellread.DataLoader(ds, 4, as_="jax"))), jax.Array)
assert_type(next(iter(wellread.DataLoader(ds, 4, labels="well", classes=True))), tuple[NDArray[Any], Any])
assert_type(next(iter(wellread.torch.DataLoader(ds, 4))), torch.Tensor)
assert_type(next(iter(wellread.torch.DataLoader(ds, 4, weights=torch.ones(5), rows=torch.arange(5)))), torch.Tensor)
assert_type(next(iter(wellread.torch.DataLoader(ds, 4, labels=[1]))), tuple[torch.Tensor, Any])
assert_type(next(iter(wellread.torch.DataLoader(ds, 4, as_dict=True, indices=True))), dict[str, Any])
assert_type(next(iter(wellread.jax.DataLoader(ds, 4, shuffle=True))), jax.Array)
assert_type(next(iter(wellread.DataLoader(ds, 4, columns=["well"]))), Any)
with wellread.DataLoader(ds) as loader:
    assert_type(loader, wellread.DataLoader[NDArray[Any]])
assert_type(ds.shape, tuple[int, ...])
assert_type(ds.with_columns(ds), wellread.Dataset)
assert_type(next(iter(wellread.jax.DataLoader(ds, 4))), torch.Tensor)  # error
wellread.DataLoader(ds, as_="tensorflow")  # error
wellread.torch.DataLoader(ds, crpo=3)  # error
"""


@pytest.fixture(scope="module")
def pyright(tmp_path_factory):
    """Runs pyright over this Python's packages and returns its JSON document."""
    if not importlib.util.find_spec("pyright"):
        pytest.skip("pyright is not installed")
    folder = tmp_path_factory.mktemp("pyright")
    package = str(Path(wr.__file__).parents[1])
    before = os.environ.get("PYTHONPATH", "")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [package, before]))}
    # It asks the python that it finds first where packages are, and runs in a Node, such as that of playwright.
    playwright = importlib.util.find_spec("playwright")
    node = [] if playwright is None else [str(Path(playwright.origin).parent / "driver")]
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], *node])
    environment |= {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    (folder / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [package]}))

    def run(*args):
        (folder / "batches.py").write_text(BATCHES)
        command = [sys.executable, "-m", "pyright", "--outputjson", *args]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
        if "{" not in done.stdout and re.search("node|npm", done.stderr):
            pytest.skip("pyright finds no Node here, and cannot fetch one")
        return json.loads(done.stdout)

    return run


def test_every_public_symbol_has_a_type(pyright):
    found = pyright("--verifytypes", "wellread", "--ignoreexternal")["typeCompleteness"]
    wrong = [
        f"{symbol['name']}: {line['message']}"
        for symbol in found["symbols"]
        if not symbol["isTypeKnown"] or symbol["isTypeAmbiguous"]
        for line in symbol["diagnostics"]
    ]
    assert wrong == [] and found["completenessScore"] == 1
    assert found["exportedSymbolCounts"]["withKnownType"] > 100


def test_batches_are_of_the_chosen_library(pyright):
    document = pyright("batches.py")
    found = {line["range"]["start"]["line"] + 1 for line in document["generalDiagnostics"]}
    wanted = {number for number, line in enumerate(BATCHES.split("\n"), 1) if line.endswith("  # error")}
    assert found == wanted, document["generalDiagnostics"]


def test_mypy_finds_mistakes_and_nothing_else(tmp_path):
    if importlib.util.find_spec("mypy"):
        mypy = [sys.executable, "-m", "mypy"]
    elif shutil.which("mypy"):
        mypy = ["mypy", "--python-executable", sys.executable]
    else:
        pytest.skip("mypy is not installed")
    (tmp_path / "sample.py").write_text(SAMPLE)
    # The libraries' own types take minutes to read and say nothing about this package's.
    (tmp_path / "mypy.ini").write_text(
        textwrap.dedent(
            f"""
            [mypy]
            mypy_path = {Path(wr.__file__).parents[1]}
            [mypy-wellread._bench.*,wellread._tasks.*,wellread.bench]
            follow_imports = skip
            [mypy-torch.*,jax.*,lightning.*,pytorch_lightning.*,ml_dtypes.*,ray.*,pyarrow.*]
            follow_imports = skip
            ignore_missing_imports = True
            """
        )
    )
    done = subprocess.run([*mypy, "--no-incremental", "sample.py"], cwd=tmp_path, capture_output=True, text=True)
    found = {(line, code) for line, code in re.findall(r"sample\.py:(\d+): error: .*\[([\w-]+)\]", done.stdout)}
    wanted = {
        (str(number), line.split("  # ")[1]) for number, line in enumerate(SAMPLE.split("\n"), 1) if "  # " in line
    }
    assert found == wanted, done.stdout + done.stderr
    assert "wellread/" not in done.stdout, done.stdout
