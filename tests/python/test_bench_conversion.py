"""`wellread bench conversion` has NumPy and torch beside Rust where there are any, and says what its rows are."""

import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from bench_worker import DATASET, SMALL, of

pytest.importorskip("torch")


def test_conversion_has_numpy_and_torch_where_a_python_has_them(bench, wellread, monkeypatch, tmp_path, stub):
    import torch

    monkeypatch.setenv("WELLREAD_PYTHON", sys.executable)
    small = ["--formats", "tiff", "--samples", 4]
    tables, summary, _ = bench(["conversion", "dataset"], *small, *DATASET)
    rows = of(tables["conversion"], status="ok")
    assert {row["framework"] for row in rows} == {"candle", "pytorch"} and all(row["verified"] for row in rows)
    (note,) = [text for text in summary["report"]["warnings"] if text.startswith("conversion: rows of framework")]
    assert f"torch {torch.__version__}" in note and f"numpy {np.__version__}" in note and "in Rust" in note
    (ours,) = of(rows, framework="pytorch", path="float_of_float32")
    assert ours["copied_bytes"] == 0 and ours["loader"] in ("wellread", "tifffile")
    assert ours["torch_mean_s"] == pytest.approx(ours["numpy_mean_s"] + ours["conversion_mean_s"])
    (copy,) = of(rows, framework="pytorch", path="copy")
    assert copy["copied_bytes"] == 24 * 20 * 4
    # For the other tracks nothing else was asked for.
    assert all(row.get("framework") is None for row in tables["dataset"])

    def note_of(*more, name):
        out = tmp_path / name
        summary = wellread("bench", "conversion", *SMALL, *small, *more, "--out", out)
        rows = pq.read_table(out / "conversion.parquet").to_pylist()
        assert {row["framework"] for row in rows} == {"candle"} and all(row["status"] == "ok" for row in rows)
        (note,) = [text for text in summary["report"]["warnings"] if text.startswith("conversion: every row")]
        assert "this program's own, in Rust (framework candle)" in note and "\n" not in note
        return note

    assert "--framework rust" in note_of("--framework", "rust", name="rust")
    # No Python at all, or one without torch: a line, and nothing fails.
    monkeypatch.setenv("WELLREAD_PYTHON", "no-such-python")
    assert "no-such-python: not found" in note_of(name="none")
    bare = tmp_path / "bare-python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -I "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setenv("WELLREAD_PYTHON", str(bare))
    assert "bare-python has no torch" in note_of(name="bare")
    monkeypatch.setenv("WELLREAD_PYTHON", sys.executable)
    stub("torch", "raise ImportError('there is no torch here')")
    assert "there is no torch here" in note_of(name="broken")
    # Who names a Python wants it.
    said = wellread("bench", "conversion", *SMALL, *small, "--python", bare, "--out", tmp_path / "named", code=1)
    assert "has no torch" in said and "--framework rust" in said
