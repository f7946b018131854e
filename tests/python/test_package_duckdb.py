"""DuckDB's library: that of the Python package `duckdb`, whichever program reads."""

import json
import os
import subprocess
import sys

import pytest

BOTH = """
import duckdb, wellread, json, sys
theirs = duckdb.connect(sys.argv[1], read_only=True).sql("SELECT count(*) FROM images").fetchall()[0][0]
images = wellread.Dataset(sys.argv[1])
mapped = {line.split()[-1] for line in open("/proc/self/maps") if "duckdb" in line.rsplit("/", 1)[-1]}
print(json.dumps({"theirs": theirs, "ours": len(images), "sum": int(images[0].sum()), "mapped": sorted(mapped)}))
"""
MISSING = """
import wellread, sys
try:
    wellread.Dataset(sys.argv[1])
except wellread.Error as error:
    print(error)
"""


def without(*names):
    return {name: value for name, value in os.environ.items() if name not in names}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_a_python_has_one_library(generated):
    """Ours is the one that `import duckdb` has loaded: two would keep two ideas of who has a file open."""
    folder, expected, _ = generated
    ran = subprocess.run(
        [sys.executable, "-c", BOTH, folder / "images.duckdb"],
        env=without("WELLREAD_DUCKDB", "WELLREAD_PYTHON"),
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(ran.stdout)
    assert found["theirs"] == found["ours"] == len(expected)
    assert found["sum"] > 0
    assert len(found["mapped"]) == 1, found


def test_without_the_library_the_error_says_how_to_get_it(generated, tmp_path):
    folder, _, _ = generated
    ran = subprocess.run(
        [sys.executable, "-c", MISSING, folder / "images.duckdb"],
        env={**os.environ, "WELLREAD_DUCKDB": str(tmp_path / "libduckdb.so")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "libduckdb.so" in ran.stdout
    assert "WELLREAD_DUCKDB" in ran.stdout
    assert "package duckdb" in ran.stdout


@pytest.mark.parametrize("variable", ["WELLREAD_DUCKDB", "WELLREAD_PYTHON"])
def test_the_program_takes_the_library_of_a_python(wellread, generated, monkeypatch, variable):
    folder, expected, _ = generated
    for name in ("WELLREAD_DUCKDB", "WELLREAD_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, sys.executable)
    assert wellread("info", folder / "images.duckdb")["images"] == len(expected)


def test_nothing_in_the_current_folder_is_run(wellread, generated, monkeypatch, tmp_path):
    """`python -c` has that folder among the places of modules."""
    folder, expected, _ = generated
    (tmp_path / "sysconfig.py").write_text("raise SystemExit('run')\n")
    (tmp_path / "_duckdb.so").write_text("no library\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WELLREAD_DUCKDB", sys.executable)
    assert wellread("info", folder / "images.duckdb")["images"] == len(expected)
