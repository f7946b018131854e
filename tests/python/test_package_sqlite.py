"""Tables of cells in SQLite databases, in the forms of CellProfiler and of older versions of cytominer-database.

Python's ``sqlite3`` writes them. ``test_package_profiles.py`` has a database that cytominer-database itself wrote.
"""

import re
import sqlite3
from contextlib import closing

import numpy as np
import pytest
import tifffile
import wellread as wr

OBJECTS = "ImageNumber INTEGER, ObjectNumber INTEGER, Nuclei_Location_Center_X FLOAT, Nuclei_Location_Center_Y FLOAT"


def write(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for sql, *rows in statements:
            connection.execute(sql)
            if rows:
                table = sql.split()[2]
                values = ", ".join("?" * len(rows[0]))
                connection.executemany(f"INSERT INTO {table} VALUES ({values})", rows)


def sqlite_is_read(folder):
    """Whether this build reads SQLite: a light one says that it does not."""
    write(folder / "probe.sqlite", (f"CREATE TABLE Per_Object ({OBJECTS})", (1, 1, 2.0, 2.0)))
    tifffile.imwrite(folder / "probe.tif", np.zeros((8, 8), np.uint8))
    try:
        wr.Dataset(folder / "probe.tif").cells(folder / "probe.sqlite", size=4)
    except wr.UnsupportedImageError as error:
        assert "--features sqlite" in str(error)
        return False
    return True


@pytest.fixture(scope="module")
def plate(tmp_path_factory):
    """Three wells of noise in two channels, in the names of an ImageXpress."""
    folder = tmp_path_factory.mktemp("sqlite")
    if not sqlite_is_read(folder):
        pytest.skip("a build without sqlite")
    random = np.random.default_rng(5)
    images = random.integers(0, 4096, (3, 2, 40, 50), dtype=np.uint16)
    (folder / "images").mkdir()
    for well, image in zip(("A01", "A02", "B01"), images, strict=True):
        for channel, plane in enumerate(image, 1):
            tifffile.imwrite(folder / "images" / f"P1_{well}_s1_w{channel}.tif", plane)
    return folder, images


def test_objects_of_cellprofiler_are_cells(plate, tmp_path):
    folder, images = plate
    path = tmp_path / "experiment.sqlite"
    write(
        path,
        (
            "CREATE TABLE MyExpt_Per_Image (ImageNumber INTEGER PRIMARY KEY, Image_FileName_OrigDNA TEXT, "
            "Image_Metadata_Plate TEXT, Image_Metadata_Well TEXT, Image_Metadata_Site INTEGER)",
            (1, "a.tif", "P1", "A01", 1),
            (2, "b.tif", "P1", "A02", 1),
            (3, "c.tif", "P1", "B01", 1),
        ),
        (
            f"CREATE TABLE MyExpt_Per_Object ({OBJECTS}, Cells_Intensity FLOAT)",
            (3, 1, 20.0, 21.0, 0.5),
            (1, 1, 30.0, 12.0, None),
            (1, 2, 25.4, 30.0, 2.0),
        ),
    )
    before = path.read_bytes()
    cells = wr.Dataset(folder / "images").cells(path, size=(8, 8))
    assert len(cells) == 3
    for row, (image, y, x) in enumerate([(2, 21, 20), (0, 12, 30), (0, 30, 25)]):
        np.testing.assert_array_equal(cells[row], images[image, :, y - 4 : y + 4, x - 4 : x + 4])
    assert list(cells.column("Image_Metadata_Well")) == ["B01", "A01", "A01"]
    assert list(cells.column("Metadata_Well")) == ["B01", "A01", "A01"]
    assert list(cells.column("ObjectNumber")) == [1, 1, 2]
    intensity = cells.column("Cells_Intensity")
    assert intensity[0] == 0.5 and np.isnan(intensity[1])
    parts = cells.split([0.5, 0.5], by="Metadata_Well")
    assert sorted(sum(parts, [])) == [0, 1, 2]
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["experiment.sqlite"]


def test_tables_of_cytominer_database_are_joined(plate, tmp_path):
    folder, images = plate
    path = tmp_path / "backend.sqlite"
    key = "TableNumber TEXT, ImageNumber INTEGER"
    write(
        path,
        (
            f"CREATE TABLE Image ({key}, Image_Metadata_Well TEXT)",
            ("one", 1, "A02"),
            ("two", 1, "B01"),
        ),
        (
            f"CREATE TABLE Nuclei ({key}, ObjectNumber INTEGER, Nuclei_Location_Center_X FLOAT, "
            "Nuclei_Location_Center_Y FLOAT)",
            ("two", 1, 1, 20, 20),
            ("one", 1, 1, 22, 18),
        ),
        (f"CREATE TABLE Cells ({key}, ObjectNumber INTEGER, Cells_AreaShape_Area FLOAT)", ("one", 1, 1, 7.0)),
    )
    cells = wr.Dataset(folder / "images").cells(path, size=6)
    np.testing.assert_array_equal(cells[0], images[2, :, 17:23, 17:23])
    np.testing.assert_array_equal(cells[1], images[1, :, 15:21, 19:25])


def test_a_table_is_named_behind_a_colon(plate, tmp_path, wellread):
    folder, images = plate
    path = tmp_path / "experiment.sqlite"
    objects = ("Nuclei", "Cells", "Cytoplasm")
    columns = "ImageNumber INTEGER, {0}_Number_Object_Number INTEGER, {0}_Location_Center_X FLOAT, "
    columns += "{0}_Location_Center_Y FLOAT"
    places = {"Nuclei": (20, 10), "Cells": (22, 12), "Cytoplasm": (24, 14)}
    write(
        path,
        ("CREATE TABLE Per_Image (ImageNumber INTEGER, Image_Metadata_Well TEXT)", (1, "A01"), (2, "B01")),
        *[(f"CREATE TABLE Per_{name} ({columns.format(name)})", (2, 1, *places[name])) for name in objects],
    )
    ds = wr.Dataset(folder / "images")
    for name, (x, y) in places.items():
        choices = {"x": f"{name}_Location_Center_X", "y": f"{name}_Location_Center_Y", "size": 6}
        want = images[2, :, y - 3 : y + 3, x - 3 : x + 3]
        for table in (f"Per_{name}", name):
            cells = ds.cells(f"{path}:{table}", **choices)
            np.testing.assert_array_equal(cells[0], want)
            assert list(cells.column("Image_Metadata_Well")) == ["B01"]
            assert f"{name}_Location_Center_X" in cells.columns and len(cells) == 1
    # Without a name it is that of the nuclei, or that of the columns.
    assert "Nuclei_Location_Center_X" in ds.cells(path, size=6).columns
    assert "Cells_Location_Center_X" in ds.cells(path, size=6, x="Cells_Location_Center_X").columns
    said = wellread(
        "convert",
        folder / "images",
        tmp_path / "cells.parquet",
        "--cells",
        f"{path}:Per_Cells",
        "--cells-size",
        "6x6",
    )
    assert said["images"] == 1
    np.testing.assert_array_equal(wr.Dataset(tmp_path / "cells.parquet")[0], images[2, :, 9:15, 19:25])
    with pytest.raises(wr.ChoiceError, match="has no table .Per_Object.") as error:
        ds.cells(f"{path}:Per_Object", size=6)
    assert "Per_Cells, Per_Cytoplasm, Per_Image, Per_Nuclei" in str(error.value)
    table = tmp_path / "cells.csv"
    table.write_text("Metadata_Well,x,y\nA01,1,2\n")
    with pytest.raises(wr.ChoiceError, match="no SQLite database"):
        ds.cells(f"{table}:Per_Nuclei", size=6)


def test_what_is_wrong_is_said(plate, tmp_path):
    folder, _ = plate
    images = wr.Dataset(folder / "images")
    path = tmp_path / "x.sqlite"

    def refusal(*statements, kind=wr.Error):
        path.unlink(missing_ok=True)
        write(path, *statements)
        with pytest.raises(kind, match="x.sqlite") as error:
            images.cells(path, size=6)
        return str(error.value)

    assert "the table has no rows" in refusal((f"CREATE TABLE Per_Object ({OBJECTS})",))
    assert "without a table of objects (notes)" in refusal(
        ("CREATE TABLE notes (text)",), kind=wr.UnsupportedImageError
    )
    well = "CREATE TABLE Per_Image (ImageNumber INTEGER, Image_Metadata_Well TEXT)"
    said = refusal((f"CREATE TABLE Per_Object ({OBJECTS})", (1, 1, b"\0\1", 2.0)), (well, (1, "A01")))
    assert "row 0" in said and "holds bytes" in said
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(wr.Error, match="x.sqlite"):
        images.cells(path, size=6)


def test_a_damaged_page_is_named_by_its_row_and_nothing_is_written(plate, tmp_path, wellread):
    folder, _ = plate
    path, target = tmp_path / "x.sqlite", tmp_path / "cells.parquet"
    well = "CREATE TABLE Per_Image (ImageNumber INTEGER, Image_Metadata_Well TEXT)"
    write(
        path,
        (well, (1, "A01"), (2, "A02"), (3, "B01")),
        (f"CREATE TABLE Per_Object ({OBJECTS})", *[(1 + i % 3, 1 + i // 3, 20.5, 20.5) for i in range(3000)]),
    )
    whole = path.read_bytes()
    middle = len(whole) // 4096 // 2 * 4096
    path.write_bytes(whole[:middle] + bytes(4096) + whole[middle + 4096 :])
    command = ("convert", folder / "images", target, "--cells", path, "--cells-size", "6x6")
    said = " ".join(wellread(*command, code=1).split())
    assert re.search(r"x\.sqlite: row \d+: .* malformed; in table Per_Object \(hint: the file is damaged", said), said
    assert [one.name for one in tmp_path.iterdir()] == ["x.sqlite"]
    with pytest.raises(wr.Error, match="in table Per_Object") as error:
        wr.Dataset(folder / "images").cells(path, size=6)
    assert 0 < error.value.row < 3000
    path.write_bytes(whole)
    assert wellread(*command)["images"] == 3000
