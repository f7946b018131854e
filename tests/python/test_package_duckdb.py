"""DuckDB's library: that of the Python package `duckdb`, whichever program reads."""

import json
import os
import shutil
import subprocess
import sys

import numpy
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


EDITS = {
    "rename": "UPDATE images SET ome_image = struct_update(ome_image, name := 'renamed') WHERE row_id = 1",
    "reinsert": """CREATE TABLE k AS FROM images WHERE row_id = 1; DELETE FROM images WHERE row_id = 1;
        INSERT INTO images FROM k; DROP TABLE k""",
    "delete": "DELETE FROM images WHERE row_id = 1",
    "renumber": "UPDATE images SET row_id = row_id + 1000",
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_table_is_read_in_the_order_of_a_scan(wellread, generated, tmp_path, edit):
    """Pixels, names and labels of a row are those of one image, alone and converted."""
    import duckdb
    import wellread as package

    folder, _, _ = generated
    whole = package.Dataset(folder / "images.duckdb")
    pixels = {whole.name(row): whole[row] for row in range(len(whole))}
    pixels["renamed"] = whole[1]
    path = tmp_path / "edited.duckdb"
    shutil.copy(folder / "images.duckdb", path)
    with duckdb.connect(path) as connection:
        connection.execute("ALTER TABLE images ADD COLUMN name VARCHAR")
        connection.execute(EDITS[edit])
        connection.execute("UPDATE images SET name = ome_image.name")
        names = [name for (name,) in connection.sql("SELECT ome_image.name FROM images").fetchall()]
    edited = package.Dataset(path)
    assert [edited.name(row) for row in range(len(edited))] == names
    assert list(edited.column("name")) == names
    for row, name in enumerate(names):
        numpy.testing.assert_array_equal(edited[row], pixels[name])
    wellread("convert", path, tmp_path / "converted.parquet")
    converted = package.Dataset(tmp_path / "converted.parquet")
    assert [converted.name(row) for row in range(len(converted))] == names
    for row, name in enumerate(names):
        numpy.testing.assert_array_equal(converted[row], pixels[name])
