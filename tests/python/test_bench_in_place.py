"""`wellread bench --in-place --framework`: readers in Python get the files of the rows, in the rows' order."""

import numpy as np
import pytest
import tifffile
from bench_worker import of

pytest.importorskip("torch")

IN_PLACE = (
    "--framework",
    "pytorch",
    "--in-place",
    "--loaders",
    "wellread,tifffile",
    "--batch-sizes",
    2,
    "--workers",
    0,
)


def images(folder, names):
    """A small image of noise for each name."""
    random = np.random.default_rng(7)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        tifffile.imwrite(folder / name, random.integers(0, 4096, (20, 24), dtype=np.uint16))
    return folder


def test_files_come_in_the_order_of_rows(bench, tmp_path):
    # Python sorts paths by their parts, and a/x before "a b/x"; wellread sorts the text.
    names = ["a/x.tif", "a-1/x.tif", "a b/x.tif", "B/y2.tif", "B/y10.tif", "._hidden.tif"]
    folder = images(tmp_path / "set", names[:5])
    (folder / names[5]).write_bytes(b"no TIFF")
    tables, _, _ = bench(["dataloader"], *IN_PLACE, "--input", folder)
    measured = of(tables["dataloader"], framework="pytorch", status="ok")
    assert {row["loader"] for row in measured} == {"wellread", "tifffile"}
    assert all(row["verified"] for row in measured)


def test_sites_of_several_files_are_not_put_together(bench, tmp_path):
    names = [f"r01c0{c}f0{f}p01-ch{ch}sk1fk1fl1.tiff" for c in (1, 2) for f in (1, 2) for ch in (1, 2)]
    folder = images(tmp_path / "plate", names)
    tables, _, _ = bench(["dataloader"], *IN_PLACE, "--input", folder)
    rows = {row["loader"]: row for row in of(tables["dataloader"], framework="pytorch")}
    assert rows["wellread"]["status"] == "ok" and rows["wellread"]["verified"]
    assert rows["tifffile"]["status"] == "unavailable" and "several files" in rows["tifffile"]["reason"]
