"""Tables of single cells as CytoTable, pycytominer and cytominer-database themselves write them, and anndata's.

CellProfiler's own exports are written here in its format. CellProfiler itself is not installed: its core, 4.2.8.1,
pins h5py 3.7, of which anndata needs a newer one, and scikit-image 0.18.3, and it needs Java.
"""

import csv
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import tifffile
import wellread as wr
from test_package_sqlite import sqlite_is_read

WELLS = ("A01", "A02", "B01")
SHAPE = ("AreaShape_Center_X", "AreaShape_Center_Y", "AreaShape_Area")
PLACE = ("Location_Center_X", "Location_Center_Y")
# The columns of each compartment behind ImageNumber and ObjectNumber.
COLUMNS = {
    "Nuclei": ("Number_Object_Number", *PLACE, *SHAPE),
    "Cells": ("Number_Object_Number", *PLACE, *SHAPE),
    "Cytoplasm": ("Number_Object_Number", "Parent_Cells", "Parent_Nuclei", *SHAPE),
}


def objects():
    """The rows of each compartment: four cells of each of three images, their nuclei a bit beside their middles."""
    rows = {name: [] for name in COLUMNS}
    for image in (1, 2, 3):
        for number in (1, 2, 3, 4):
            x, y = 12.25 + 7 * number + image, 8 + 5.5 * number + image
            area = 100.0 * number + image
            rows["Nuclei"].append((image, number, number, x, y, x, y, area))
            rows["Cells"].append((image, number, number, x + 2, y + 1, x + 2, y + 1, 2 * area))
            rows["Cytoplasm"].append((image, number, number, number, number, x + 2, y + 1, area))
    return rows


def write_csv(folder, rows, of_images):
    folder.mkdir(parents=True)
    for name, columns in COLUMNS.items():
        with open(folder / f"{name}.csv", "w", newline="") as file:
            csv.writer(file).writerows([("ImageNumber", "ObjectNumber", *columns), *rows[name]])
    names = ("ImageNumber", "FileName_DNA", "FileName_ER", "Metadata_Plate", "Metadata_Well", "Metadata_Site")
    with open(folder / "Image.csv", "w", newline="") as file:
        csv.writer(file).writerows([names, *of_images])


def images():
    return [
        (i, f"P1_{well}_s1_w1.tif", f"P1_{well}_s1_w2.tif", "P1", well, 1) for i, well in enumerate(WELLS, start=1)
    ]


def write_runs(folder, rows):
    """The files of two runs of CellProfiler, each of which numbers its images from 1."""
    for run, numbers in {"one": (1, 2), "two": (3,)}.items():
        renumbered = {number: i for i, number in enumerate(numbers, start=1)}

        def of_run(some, renumbered=renumbered):
            return [(renumbered[row[0]], *row[1:]) for row in some if row[0] in renumbered]

        write_csv(folder / run, {name: of_run(of_it) for name, of_it in rows.items()}, of_run(images()))


def write_sqlite(path, rows, prefix, runs):
    """As CellProfiler writes it, or as cytominer-database makes of it, with the run of each row."""
    run, of_run = (["TableNumber TEXT"], ("one",)) if runs else ([], ())
    number = "ObjectNumber" if runs else "{}_ObjectNumber"
    with closing(sqlite3.connect(path)) as connection, connection:

        def table(name, columns, values):
            connection.execute(f"CREATE TABLE {prefix}{name} ({', '.join(run + columns)})")
            marks = ", ".join("?" * (len(run) + len(columns)))
            connection.executemany(
                f"INSERT INTO {prefix}{name} VALUES ({marks})", [(*of_run, *value) for value in values]
            )

        names = ("FileName_DNA", "FileName_ER", "Metadata_Plate", "Metadata_Well")
        columns = [f"Image_{name} TEXT" for name in names]
        table("Image", ["ImageNumber INTEGER", *columns, "Image_Metadata_Site INTEGER"], images())
        for name, own in COLUMNS.items():
            kind = {column: "INTEGER" if "Number" in column or "Parent" in column else "FLOAT" for column in own}
            columns = [f"{name}_{column} {kind[column]}" for column in own]
            table(name, ["ImageNumber INTEGER", f"{number.format(name)} INTEGER", *columns], rows[name])


@pytest.fixture(scope="module")
def python():
    """The Python that has these libraries."""
    named = os.environ.get("WELLREAD_PROFILES_PYTHON")
    if not named:
        pytest.skip("WELLREAD_PROFILES_PYTHON names no Python with CytoTable and pycytominer (make profiles-env)")
    return named


@pytest.fixture(scope="module")
def written(python, tmp_path_factory):
    """The folder of all tables, the stack of each well, and the rows of each compartment."""
    folder = tmp_path_factory.mktemp("profiles")
    rows = objects()
    write_csv(folder / "csv", rows, images())
    write_runs(folder / "runs", rows)
    write_sqlite(folder / "experiment.sqlite", rows, "Per_", runs=False)
    write_sqlite(folder / "backend.sqlite", rows, "", runs=True)
    # Where DuckDB has its extensions.
    home = folder / "home"
    home.mkdir()
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"HOME": str(home)}
    writer = Path(__file__).with_name("profiles_writer.py")
    command = [python, writer, folder]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    random = np.random.default_rng(31)
    (folder / "images").mkdir()
    stacks = random.integers(0, 4096, (len(WELLS), 2, 48, 60), dtype=np.uint16)
    for well, stack in zip(WELLS, stacks, strict=True):
        for channel, plane in enumerate(stack, start=1):
            tifffile.imwrite(folder / "images" / f"P1_{well}_s1_w{channel}.tif", plane)
    return folder, stacks, rows


@pytest.mark.parametrize(
    "table", ["cytotable-csv.parquet", "cytotable-sqlite.parquet", "pycytominer.parquet", "pycytominer.csv"]
)
def test_cells_are_cut_out_by_tables_of_their_libraries(written, table):
    folder, stacks, rows = written
    cells = wr.Dataset(folder / "images").cells(folder / table, size=(8, 10))
    of = {compartment: {row[:2]: row for row in of_it} for compartment, of_it in rows.items()}
    image, number = cells.column("Metadata_ImageNumber"), cells.column("Nuclei_Number_Object_Number")
    keys = [(int(i), int(n)) for i, n in zip(image, number, strict=True)]
    assert sorted(keys) == sorted(of["Nuclei"])
    for row, key in enumerate(keys):
        # Unless others are named, those of the nuclei.
        x, y = of["Nuclei"][key][3:5]
        top, left = int(np.floor(y + 0.5)) - 4, int(np.floor(x + 0.5)) - 5
        np.testing.assert_array_equal(cells[row], stacks[key[0] - 1, :, top : top + 8, left : left + 10])
        assert cells.column("Cells_AreaShape_Area")[row] == of["Cells"][key][-1]
        assert cells.column("Metadata_Well")[row] == WELLS[key[0] - 1]
        assert cells.name(row) == f"P1_{WELLS[key[0] - 1]}_s1/cell-{key[1]}"
    places = {"x": "Cells_Location_Center_X", "y": "Cells_Location_Center_Y"}
    others = wr.Dataset(folder / "images").cells(folder / table, size=6, **places)
    x, y = of["Cells"][keys[5]][3:5]
    top, left = int(np.floor(y + 0.5)) - 3, int(np.floor(x + 0.5)) - 3
    np.testing.assert_array_equal(others[5], stacks[keys[5][0] - 1, :, top : top + 6, left : left + 6])


def test_cells_are_cut_out_by_a_database_of_cytominer_database(written):
    folder, stacks, rows = written
    if not sqlite_is_read(folder):
        pytest.skip("a build without sqlite")
    cells = wr.Dataset(folder / "images").cells(folder / "cytominer-database.sqlite", size=8)
    wells = cells.column("Metadata_Well").tolist()
    numbers = cells.column("ObjectNumber").tolist()
    # Both runs have an image 1: TableNumber tells them apart.
    assert set(cells.column("ImageNumber").tolist()) == {1, 2} and len(set(cells.column("TableNumber").tolist())) == 2
    places = {(WELLS[row[0] - 1], row[1]): row[3:5] for row in rows["Nuclei"]}
    assert sorted(zip(wells, numbers, strict=True)) == sorted(places)
    for row, key in enumerate(zip(wells, numbers, strict=True)):
        left, top = (int(np.floor(place + 0.5)) - 4 for place in places[key])
        wanted = stacks[WELLS.index(key[0]), :, top : top + 8, left : left + 8]
        np.testing.assert_array_equal(cells[row], wanted)
        assert cells.name(row) == f"P1_{key[0]}_s1/cell-{key[1]}"


# In the Python that has anndata, which needs an older pandas than the other tests have.
OBSERVED = """
import sys
import anndata, numpy, pandas
import wellread

images, file = sys.argv[1:]
ds = wellread.Dataset(images)
names = [ds.name(row) for row in range(len(ds))]
clusters = pandas.Categorical([f"k{i % 2}" for i in range(len(ds))])
frame = pandas.DataFrame({"leiden": clusters, "umap": numpy.arange(float(len(ds)))}, index=names)
anndata.AnnData(numpy.zeros((len(ds), 3), numpy.float32), obs=frame[::-1]).write_h5ad(file)
adata = anndata.read_h5ad(file)
assert type(adata) is anndata.AnnData and list(adata.obs.index) == names[::-1]
plate = ds.with_columns(adata, on="index")
assert plate.columns == [*ds.columns, "index", "leiden", "umap"], plate.columns
assert plate.column("umap").tolist() == list(range(len(ds)))
assert plate.column("leiden").tolist() == [f"k{i % 2}" for i in range(len(ds))]
# Without `on` the order counts.
assert ds.with_columns(adata).column("umap").tolist() == list(range(len(ds)))[::-1]
loader = wellread.DataLoader(plate, 3, labels="leiden", classes=True, shuffle=False)
print(loader.classes, next(iter(loader))[1].tolist())
"""


def test_observations_of_an_anndata_that_was_read(python, tmp_path):
    for i in range(3):
        tifffile.imwrite(tmp_path / f"image{i}.tif", np.full((4, 5), i, np.uint16))
    # Its packages, and of this Python the one under test alone.
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "wellread").symlink_to(Path(wr.__file__).parent)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "package")}
    command = [python, "-c", OBSERVED, tmp_path, tmp_path / "plate.h5ad"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[-2] == "['k0', 'k1'] [0, 1, 0]"
