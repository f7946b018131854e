"""Worker processes open a set again. If other images are there by then, they say so and deliver none of them."""

import multiprocessing
import os
import pickle
import shutil

import numpy as np
import pytest
import wellread as wr

torch = pytest.importorskip("torch")
tifffile = pytest.importorskip("tifffile")

import wellread.torch  # noqa: E402
from own_process import HANGS  # noqa: E402
from wellread import _refused  # noqa: E402

METHODS = ["fork", "forkserver", "spawn"]
# What is done to the folder, and what is said of it.
CHANGES = {
    "remove": "it had 8 images and has 7, and row 3 is now 04",
    "add": "it had 8 images and has 9, and row 4 is now 03b",
    "rename": "it still has 8 images, and row 3 is now 04",
}


def change(folder, how):
    match how:
        case "remove":
            (folder / "03.tif").unlink()
        case "add":
            shutil.copy(folder / "00.tif", folder / "03b.tif")
        case "rename":
            (folder / "03.tif").rename(folder / "08.tif")


def is_starting_unmarked():
    """Whether a process is seen to start without the mark that Python sets in it, as in a Python that sets none."""
    here = multiprocessing.current_process()
    mark = here.__dict__.pop("_inheriting", None)
    try:
        return _refused.is_starting()
    finally:
        if mark is not None:
            here._inheriting = mark


class AskedWhileStarting:
    """Unpickled, it is the answer of the process that unpickles it."""

    def __reduce__(self):
        return is_starting_unmarked, ()


def hand_back(found, queue):
    """In a process of its own, what was found while it started, and what is found now."""
    queue.put((found, _refused.is_starting()))


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_process_that_starts_is_seen_without_a_private_name_of_python(method):
    context = multiprocessing.get_context(method)
    queue = context.SimpleQueue()
    process = context.Process(target=hand_back, args=(AskedWhileStarting(), queue))
    process.start()
    process.join(HANGS)
    process.kill()
    process.join()
    assert process.exitcode == 0, "what it says stands in stderr"
    assert queue.get() == (True, False)
    assert not is_starting_unmarked()


@pytest.fixture
def folder(tmp_path):
    """Eight images, of 0, 1, 2 …"""
    folder = tmp_path / "images"
    folder.mkdir()
    for row in range(8):
        tifffile.imwrite(folder / f"{row:02}.tif", np.full((8, 8), row, np.uint8))
    return folder


def opened(folder):
    return wr.Dataset(folder, layout="files")


def loader_of(dataset, method, **options):
    # The deadline is for workers that hang: importing torch takes a busy machine a minute.
    return torch.utils.data.DataLoader(dataset, num_workers=2, multiprocessing_context=method, timeout=600, **options)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("how", "labels"), [("remove", "array"), ("add", "column"), ("rename", "column")])
def test_torchs_workers_deliver_no_other_images(folder, method, how, labels):
    dataset = opened(folder)
    if labels == "array":
        items = wellread.torch.Dataset(dataset, labels=np.arange(8))
    else:
        pytest.importorskip("pyarrow")
        table = {"f": [dataset.name(row) for row in range(8)], "y": list(range(8))}
        items = wellread.torch.Dataset(dataset.with_columns(table, on="f"), labels="y")
    loader = loader_of(torch.utils.data.Subset(items, range(6)), method, batch_size=2)
    assert [(int(x[0, 0, 0]), int(y)) for xs, ys in loader for x, y in zip(xs, ys, strict=True)] == [
        (row, row) for row in range(6)
    ]
    change(folder, how)
    with pytest.raises(wr.Error, match=CHANGES[how]) as told:
        list(loader)
    assert "has changed since it was opened" in str(told.value) and "open the dataset anew" in str(told.value)
    # This process has the set as it was opened.
    assert int(items[6][1]) == 6 and int(items[6][0][0, 0, 0]) == 6


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_loader_in_workers_delivers_no_other_images(folder, method):
    items = wellread.torch.IterableDataset(opened(folder), batch_size=2, scale=None)
    loader = loader_of(items, method, batch_size=None)
    assert sorted(int(x[0, 0, 0]) for xs in loader for x in xs) == list(range(8))
    change(folder, "rename")
    with pytest.raises(wr.Error, match=CHANGES["rename"]):
        list(loader)


@pytest.mark.parametrize("how", CHANGES)
def test_sets_made_of_others_are_compared(folder, how, tmp_path):
    pytest.importorskip("pyarrow")
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    dataset = opened(folder)
    names = [dataset.name(row) for row in range(8)]
    table = tmp_path / "cells.csv"
    table.write_text("Image_FileName_DNA,x,y,ObjectNumber\n06.tif,4,4,1\n07.tif,4,4,1\n")
    sets = {
        "itself": dataset,
        "cached": wr.Dataset(folder, layout="files", cache="memory"),
        "rows": dataset.select([7, 6]),
        "rows of rows": dataset.select([7, 6]).select([0]),
        "columns": dataset.with_columns({"f": names, "y": names}, on="f"),
        "cells": dataset.cells(table, size=(4, 4)),
        "concat": wr.Dataset.concat([opened(other), dataset]),
    }
    pickles = {name: pickle.dumps(one) for name, one in sets.items()}
    several = pickle.dumps(wr.Dataset([other, folder], layout="files"))
    assert all(len(pickle.loads(pickles[name])) == len(one) for name, one in sets.items())
    change(folder, how)
    for name, pickled in pickles.items():
        with pytest.raises(wr.Error, match=CHANGES[how]):
            pickle.loads(pickled)
        assert sets[name][0].max() in range(8), name
    said = (
        r"it still has 16 images, and row (3|11) is now"
        if how == "rename"
        else f"it had 16 images and has {15 if how == 'remove' else 17}"
    )
    with pytest.raises(wr.Error, match=said):
        pickle.loads(several)


def test_cells_of_another_table_are_others(folder, tmp_path):
    table = tmp_path / "cells.csv"
    head = "Image_FileName_DNA,x,y,ObjectNumber\n"
    table.write_text(head + "00.tif,4,4,1\n01.tif,4,4,1\n")
    cells = opened(folder).cells(table, size=(4, 4))
    pickled = pickle.dumps(cells)
    assert len(pickle.loads(pickled)) == 2
    table.write_text(head + "00.tif,4,4,1\n01.tif,3,4,1\n")
    with pytest.raises(wr.Error, match="it still has 2 cells, and they are others"):
        pickle.loads(pickled)
    table.write_text(head + "00.tif,4,4,1\n")
    with pytest.raises(wr.Error, match="it had 2 cells and has 1, and row 1 is gone"):
        pickle.loads(pickled)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_rows_of_a_table_in_another_order_are_others(parquet, method, tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / "set.parquet"
    shutil.copy(parquet, path)
    dataset = wr.Dataset(path)
    last = dataset.name(len(dataset) - 1)
    loader = loader_of(wellread.torch.Dataset(dataset), method, batch_size=20)
    assert sum(map(len, loader)) == len(dataset)
    rows = pq.read_table(path)
    pq.write_table(rows.take(list(range(len(rows)))[::-1]), tmp_path / "reversed.parquet")
    os.replace(tmp_path / "reversed.parquet", path)
    with pytest.raises(wr.Error, match=f"it still has {len(dataset)} images, and row 0 is now {last}"):
        list(loader)


def test_files_that_are_written_again_are_no_other_set(folder):
    dataset = opened(folder)
    pickled = pickle.dumps(dataset)
    loader = loader_of(wellread.torch.Dataset(dataset, labels=np.arange(8)), "fork", batch_size=4)
    for row in range(8):
        path = folder / f"{row:02}.tif"
        path.unlink()
        tifffile.imwrite(path, np.full((8, 8), row, np.uint8))
        os.utime(path, (10**9, 10**9))
    assert [int(image.max()) for image in pickle.loads(pickled)] == list(range(8))
    assert [int(x.max()) for xs, _ in loader for x in xs] == list(range(8))
