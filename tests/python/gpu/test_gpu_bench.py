"""`wellread bench` on a GPU: models on it, copies to it, and the limit that they are told beside."""

import math

import pytest
import torch
from bench_worker import DATASET, of

pytest.importorskip("jax")


def test_frameworks_compute_on_the_gpu_and_copies_to_it_are_a_limit(bench, jax_gpu):
    what = ["dataset", "dataloader", "loop", "conversion"]
    tables, summary, out = bench(
        what, "--framework", "rust,pytorch,jax", "--formats", "parquet,tiff", "--images", 48,
        "--loaders", "wellread,tifffile", *DATASET, "--samples", 4, "--batch-sizes", 8,
        "--workers", 2, "--steps", 4, "--batch-size", 8,
    )  # fmt: skip
    name = torch.cuda.get_device_name()
    with_gpu = {"pytorch", "jax"} if jax_gpu else {"pytorch"}
    for table in what:
        rows = of(tables[table], status="ok")
        assert all(row["verified"] for row in rows), table
        assert {"pytorch", "jax"} <= {row["framework"] for row in rows}
    assert name in of(tables["loop"], framework="pytorch", status="ok")[0]["backend"]
    for row in tables["dataloader"] + tables["dataset"]:
        if row["status"] != "ok":
            continue
        # Images that come from files: a copy of bytes that lie in memory is faster.
        assert 0 < row["share_of_device_copy"] < 1, row
    for row in of(tables["loop"], status="ok"):
        assert math.isfinite(row["loss"]) if row["mode"] == "train" else row["loss"] is None
        assert 0 <= row["data_wait_fraction"] <= 1
    for framework in with_gpu:
        for path in ("pinned", "device"):
            (row,) = of(tables["conversion"], framework=framework, path=path, format="tiff")
            assert row["status"] == "ok", row["reason"]
            assert row["copied"] == "always"
    # Losses of the same model and images, whatever computes them.
    losses = {}
    for row in of(tables["loop"], status="ok", mode="train", format="parquet"):
        losses.setdefault(row["framework"], row["loss"])
    assert losses["pytorch"] == pytest.approx(losses["rust"], rel=0.05)
    assert (out / "report.html").stat().st_size > 10_000
