"""The package's types: choices that are handed on are those of the loader, and mypy, where it is, finds mistakes."""

import importlib.util
import inspect
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
wellread.DataLoader(ds, shard=(0, 2), rows=[1])
wellread.torch.IterableDataset(ds, shard=False)
wellread.torch.DataLoader("a", 4, True, crop=(3, 4), seed=5, labels="well", order="block", as_="numpy")
wellread.torch.IterableDataset(ds, shuffle=True, on_error="skip", cache="none")  # call-arg
wellread.lightning.WellreadDataModule("a", crop=3, train_choices={"flip": True, "weights": [1.0]})
several: np.ndarray = ds[1:3]  # assignment
wellread.Datset("a")  # attr-defined
wellread.torch.Datset("a")  # attr-defined
wellread.DataLoader(ds, as_="tensorflow")  # arg-type
wellread.DataLoader(ds, dtype="float8")  # arg-type
wellread.DataLoader(ds, turns="halves")  # arg-type
wellread.DataLoader(ds, order="shuffel")  # arg-type
wellread.DataLoader(ds, uneven="keep")  # arg-type
wellread.DataLoader(ds, shard="all")  # arg-type
wellread.DataLoader(ds, shard=True)  # arg-type
wellread.torch.DataLoader(ds, crpo=3)  # call-arg
wellread.torch.DataLoader(ds, on_error="ignore")  # arg-type
wellread.jax.DataLoader(ds, as_="torch")  # arg-type
wellread.torch.Dataset("a", cash="memory")  # call-arg
wellread.lightning.WellreadDataModule("a", weights=[1.0])  # call-arg
wellread.lightning.WellreadDataModule("a", train_choices={"flop": True})  # arg-type
wellread.Dataset.from_arrow(3)  # arg-type
"""


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
            [mypy-torch.*,jax.*,lightning.*,pytorch_lightning.*,ml_dtypes.*]
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
