"""`wellread bench dataset --transform python:module:Class`: measured, verified, and told where it cannot be used."""

import json

import pytest
from bench_worker import of

pytest.importorskip("torch")
pytest.importorskip("jax")

TRANSFORMS = """
import numpy as np
class Half:
    def __call__(self, image):
        return image[..., ::2, ::2] / 2
class InPlace:
    def __call__(self, image):
        image *= 0
        return image
def to_numpy(image):
    return np.asarray(image)
class Wants:
    def __init__(self, size):
        pass
class Nothing:
    def __call__(self, image):
        return None
class NotCallable:
    pass
class Raises:
    def __call__(self, image):
        1 / 0
"""


def test_a_transform_of_the_users_own_is_measured_and_verified(bench, stub):
    stub("mytransforms", TRANSFORMS)
    own = "python:mytransforms:Half"
    tables, _, out = bench(
        ["dataset"], "--framework", "rust,pytorch,jax", "--formats", "tiff,parquet", "--loaders", "tifffile,pyarrow",
        "--access", "random", "--transform", f"none,{own}", "--cache", "none", "--samples", 4,
    )  # fmt: skip
    rows = tables["dataset"]
    for framework in ("pytorch", "jax"):
        for format in ("tiff", "parquet"):
            (row,) = of(rows, framework=framework, transform=own, format=format)
            assert row["status"] == "ok" and row["verified"] and row["num_samples"] == 4
            assert row["note"] == "gives float32 1x12x10"
            (plain,) = of(rows, framework=framework, transform="none", format=format)
            assert plain["verified"] and plain["note"] is None
    # Rust says that it cannot, once for each format, and in one line for all.
    missing = of(rows, framework="rust", transform=own)
    assert sorted(row["format"] for row in missing) == ["parquet", "tiff"]
    assert {row["reason"] for row in missing} == {
        f"{own} runs in Python only, and this program measures its own transforms"
    }
    assert "runs in Python only" in (out / "report.html").read_text()
    # Alone, and one that changes the image that it is given: what was given is compared before.
    tables, _, _ = bench(
        ["dataset"], "--framework", "pytorch", "--formats", "tiff", "--loaders", "tifffile", "--access", "random",
        "--transform", "python:mytransforms:InPlace,python:mytransforms:to_numpy", "--cache", "none", "--samples", 4,
    )  # fmt: skip
    assert [row["transform"] for row in tables["dataset"]] == [
        "python:mytransforms:InPlace", "python:mytransforms:to_numpy",
    ]  # fmt: skip
    assert all(row["verified"] and row["status"] == "ok" for row in tables["dataset"])


def test_transforms_that_cannot_be_used_say_why_and_for_which_row(bench, stub, wellread):
    stub("mytransforms", TRANSFORMS)

    def said(name, code=1):
        return bench(
            ["dataset"], "--framework", "pytorch", "--formats", "tiff", "--loaders", "tifffile", "--access", "random",
            "--transform", f"none,python:{name}", "--cache", "none", "--samples", 6, code=code,
        )  # fmt: skip

    assert "there is no module nowhere" in said("nowhere:A")
    assert "has no class Missing; it has Half, InPlace" in said("mytransforms:Missing")
    assert "making it raised TypeError" in said("mytransforms:Wants")
    assert "returned a NoneType; return one torch.Tensor or numpy.ndarray" in said("mytransforms:Nothing")
    assert "which cannot be called with an image" in said("mytransforms:NotCallable")
    refused = wellread("bench", "dataset", "--transform", "python:mytransforms:Half", code=2)
    assert "add --framework pytorch or jax" in refused
    assert "python:package.module:Class" in wellread("bench", "dataset", "--transform", "python:a", code=2)
    assert "none, normalize, augment" in wellread("bench", "dataset", "--transform", "blur", code=2)


def test_what_a_transform_gives_is_checked_row_by_row(stub, tmp_path, monkeypatch):
    import torch
    from _wellread_bench.errors import TransformError
    from _wellread_bench.frameworks.jax import Jax
    from _wellread_bench.frameworks.pytorch import PyTorch
    from _wellread_bench.transforms import UserTransform, check

    stub("mytransforms", TRANSFORMS)
    monkeypatch.syspath_prepend(tmp_path / "stubs")
    one = UserTransform("python:mytransforms:Half", PyTorch(1, 1))
    one.check("row 3", (1, 24, 20), torch.zeros(1, 12, 10))
    one.check("row 4", (1, 24, 20), torch.zeros(1, 12, 10))
    # An image of another shape may give another.
    one.check("row 5", (1, 30, 20), torch.zeros(1, 15, 10))
    with pytest.raises(TransformError) as caught:
        one.check("row 6", (1, 24, 20), torch.zeros(1, 12, 11))
    assert "row 6: " in str(caught.value)
    assert "returned float32 1x12x11, and float32 1x12x10 of row 3" in str(caught.value)
    with pytest.raises(TransformError, match=r"row 7: .* returned float64 1x12x10, and float32 1x12x10 of row 3"):
        one.check("row 7", (1, 24, 20), torch.zeros(1, 12, 10, dtype=torch.float64))
    with pytest.raises(TransformError, match=r"row 8: .* returned a list; return one jax.Array or numpy.ndarray"):
        UserTransform("python:mytransforms:Half", Jax(1, 1)).check("row 8", (1, 24, 20), [1])
    with pytest.raises(
        TransformError, match=r"row 9: --transform python:mytransforms:Raises raised ZeroDivisionError"
    ):
        UserTransform("python:mytransforms:Raises", PyTorch(1, 1)).apply("row 9", torch.ones(1, 24, 20))
    for framework in (PyTorch(1, 1), Jax(1, 1)):
        request = {"transform": "python:mytransforms:Half", "shape": [2, 8, 6]}
        assert check(framework, request) == {"note": "gives float32 2x4x3"}


DARK = """
class A:
    def __call__(self, image):
        assert float(image.mean()) > 0.45, "dark"
        return image
"""


def test_a_transform_that_fails_for_a_row_ends_the_run_with_its_number(bench, stub):
    # An image of random numbers is brighter than those of the set.
    stub("mytransforms", DARK)
    said = bench(
        ["dataset"], "--framework", "pytorch", "--formats", "tiff", "--loaders", "tifffile", "--access", "sequential",
        "--transform", "none,python:mytransforms:A", "--cache", "none", "--samples", 6, code=1,
    )  # fmt: skip
    assert "row 0: --transform python:mytransforms:A raised AssertionError: dark" in json.dumps(said)
