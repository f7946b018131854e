"""The package's Dataset: pixels, indexing, metadata, columns, pickling, processes, errors.

Long because one class is tested, which answers all that is asked of a set.
"""

import hashlib
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import wellread as wr
from wellread import _check, _rows


def digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def test_pixels_are_those_that_were_written(generated):
    folder, expected, written = generated
    for name, document in written.items():
        if document["error"]:
            continue
        ds = wr.Dataset(document["path"])
        assert len(ds) == 5, name
        for row in range(len(ds)):
            want = expected[ds.name(row)]
            t, c, z, y, x = want["shape_tczyx"]
            shape = (c, y, x) if t == z == 1 else (t, c, z, y, x)
            image = ds[row]
            assert (image.shape, str(image.dtype)) == (shape, want["dtype"]), name
            assert ds.image_shape(row) == shape
            assert digest(image) == want["sha256"], f"{name} row {row}"


def test_pixels_of_the_golden_sets(shared):
    checked = 0
    for expected in sorted((shared / "golden").rglob("expected.json")):
        document = json.loads(expected.read_text())
        images = {e["name"]: e for e in (document["images"] if isinstance(document, dict) else document)}
        for path in sorted(expected.parent.iterdir()):
            if path.suffix not in (".parquet", ".tif", ".tiff", ".zarr"):
                continue
            ds = wr.Dataset(path)
            for row in range(min(len(ds), 3)):
                if ds.name(row) in images:
                    assert digest(ds[row]) == images[ds.name(row)]["sha256"], (path, row)
                    checked += 1
    assert checked > 10


def test_rows_are_asked_for_as_in_numpy(parquet):
    ds = wr.Dataset(parquet)
    every = np.stack([ds[i] for i in range(len(ds))])
    assert every.shape == (40, 2, 48, 56) and every.dtype == ds.dtype == np.uint16
    for index in (
        slice(2, 9),
        slice(None, None, -7),
        [3, 1, 1],
        np.array([5, -1]),
        np.arange(40) % 3 == 0,
        slice(0, 40),
    ):
        assert np.array_equal(ds[index], every[index]), index
    assert np.array_equal(ds[-1], every[-1])
    assert np.array_equal(ds[np.int32(4)], every[4])
    assert np.array_equal(np.stack(list(ds)), every)
    for nothing in (ds[[]], ds[3:3], ds[np.zeros(40, bool)]):
        assert nothing.shape == (0, *every.shape[1:]) and nothing.dtype == every.dtype
    assert ds.read([], (slice(0, 3), slice(1, 5))).shape == (0, *every.shape[1:-2], 3, 4)
    for index in (40, -41, 2**70):
        with pytest.raises(IndexError, match="out of range"):
            ds[index]
    for index in (1.0, "1", None, True):
        with pytest.raises(TypeError, match="rows are whole numbers"):
            ds[index]
    with pytest.raises(IndexError, match="truth values of shape"):
        ds[np.array([True])]
    # To NumPy a tuple is of axes: rows 3 and 0 came in place of the first channel of row 3.
    for index in ((3, 0), (3,), (slice(2), 0), (3, ..., 0), ()):
        with pytest.raises(
            TypeError, match=r"rows, not axes of images: ds\[\[3, 0\]\] reads rows 3 and 0, ds\[3\]\[0\]"
        ):
            ds[index]
    assert np.array_equal(ds.read((3, 0)), every[[3, 0]]) and np.array_equal(ds.select((3, 0))[:], every[[3, 0]])


def test_regions_are_boxes_of_the_image(cells):
    for name, path in cells.items():
        ds = wr.Dataset(path)
        image = ds[3]
        assert np.array_equal(ds.read(3, (slice(5, 20), slice(8, 9))), image[:, 5:20, 8:9]), name
        assert np.array_equal(ds.read(3, (slice(1, 2), slice(None), slice(-4, None), slice(None))), image[1:, -4:])
        assert ds.read([1, 2], slice(0, 7)).shape == (2, 2, 48, 7)
        for region in (slice(0, 57), slice(9, 9), (slice(60, 70), slice(0, 1))):
            with pytest.raises(IndexError, match="outside axis"):
                ds.read(3, region)
    with pytest.raises(ValueError, match="step of 2"):
        ds.read(3, slice(0, 10, 2))
    with pytest.raises(ValueError, match="6 slices"):
        ds.read(3, [slice(0, 1)] * 6)
    with pytest.raises(TypeError, match="region must be slices"):
        ds.read(3, (1, 2))


def test_images_of_several_shapes_come_as_a_list(tmp_path):
    import tifffile

    shapes = [(20, 30), (20, 30), (25, 30)]
    for i, shape in enumerate(shapes):
        tifffile.imwrite(tmp_path / f"{i}.tif", np.full(shape, i, np.uint8))
    ds = wr.Dataset(tmp_path)
    assert ds[:2].shape == (2, 1, 20, 30)
    assert [image.shape for image in ds[:]] == [(1, *shape) for shape in shapes]


def test_metadata_and_columns(labelled):
    ds = wr.Dataset(labelled)
    known = ds.metadata(-1)
    assert known["name"] == ds.name(39) and known["shape_tczyx"] == [1, 2, 1, 48, 56] and known["dtype"] == "uint16"
    assert len(known["channels"]) == 2
    assert ds.columns == ["class", "well", "score", "count", "live", "day"]
    assert ds.column("class").dtype == np.int64 and ds.column("class").tolist() == [i % 3 for i in range(40)]
    assert ds.column("well")[10] == "A01"
    score = ds.column("score")
    assert score.dtype == np.float32 and np.isnan(score[5]) and score[8] == 1
    count = ds.column("count")
    assert count.dtype == np.float64 and np.isnan(count[7]) and count[8] == 8
    assert ds.column("live").dtype == bool and ds.column("day")[1] == np.datetime64("2026-01-02")
    said = 'no column "wel" .*; is it "well". it has 6 columns: class, well, score, count, live, day'
    with pytest.raises(KeyError, match=said):
        ds.column("wel")
    for choices in (
        {"labels": "wel"},
        {"order": "balanced", "by": "wel"},
        {"order": "grouped", "by": ("class", "wel")},
        {"order": "block", "by": "wel"},
    ):
        with pytest.raises(KeyError, match=said):
            wr.DataLoader(ds, 4, **choices)


def test_of_several_image_columns_the_first_is_taken(parquet, tmp_path):
    import pyarrow.parquet as pq

    table = pq.read_table(parquet)
    table = table.append_column("second", table["ome_image"].take(list(range(39, -1, -1))))
    pq.write_table(table, tmp_path / "two.parquet")
    images = wr.Dataset(parquet)
    for ds, second in (
        (wr.Dataset(tmp_path / "two.parquet"), wr.Dataset(tmp_path / "two.parquet", column="second")),
        (wr.Dataset.from_arrow(table), wr.Dataset.from_arrow(table, column="second")),
    ):
        assert np.array_equal(ds[:], images[:]) and np.array_equal(second[:], images[::-1])
        assert ds.columns == second.columns == images.columns


def test_a_cache_file_is_of_one_image_column(parquet, tmp_path, monkeypatch):
    """Both columns have the same names of images in the first row and the last, in the same file."""
    import pyarrow.parquet as pq

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    table = pq.read_table(parquet)
    rows = [0, *range(len(table) - 2, 0, -1), len(table) - 1]
    path = tmp_path / "two.parquet"
    pq.write_table(table.append_column("turned", table["ome_image"].take(rows)), path)
    images = wr.Dataset(parquet)[:]
    # Each is read from the set first, and then from its cache file.
    for misses in (len(rows), 0):
        for name, wanted in (("ome_image", images), ("turned", images[rows])):
            ds = wr.Dataset(path, column=name, cache="file")
            assert np.array_equal(ds[:], wanted)
            assert ds.cache_report["misses"] == misses


# Its own process: pytest has enabled faulthandler long before.
SHORTENED = """
import faulthandler, os, pathlib, sys, time
import wellread

images = wellread.Dataset(sys.argv[1], cache="file")
whole = images[:]
assert (images[:] == whole).all()
files = (path for path in pathlib.Path(os.environ["XDG_CACHE_HOME"]).rglob("*") if path.is_file())
file = max(files, key=lambda path: path.stat().st_size)
faulthandler.enable()
# The handler is looked for once a millisecond.
time.sleep(0.01)
os.truncate(file, whole.nbytes // 4)
try:
    images[:]
except wellread.Error as error:
    print(error)
"""


def test_a_shortened_cache_file_is_an_error_after_faulthandler_was_enabled(parquet, tmp_path):
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONFAULTHANDLER"}
    command = [sys.executable, "-c", SHORTENED, parquet]
    environment = {**variables, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "was shortened" in done.stdout and "leave cache files alone" in done.stdout, done.stdout


def test_it_says_what_it_is(parquet):
    ds = wr.Dataset(Path(parquet))
    assert "40 images, parquet" in repr(ds)
    assert "uint16" in ds._repr_html_()
    assert ds.format == "parquet" and ds.path == parquet


def test_arrays_are_the_callers(parquet):
    image = wr.Dataset(parquet)[0]
    assert image.flags.writeable and image.flags.c_contiguous and image.ctypes.data % 64 == 0
    image += 1
    assert not np.array_equal(image, wr.Dataset(parquet)[0])


def test_a_cache_serves_what_was_read(parquet):
    ds = wr.Dataset(parquet, cache="memory:1GiB")
    for _ in range(2):
        _ = ds[:]
    report = ds.cache_report
    assert report["images"] == 40 and report["hits"] >= 40
    with pytest.raises(ValueError, match="cache: .*is no cache"):
        wr.Dataset(parquet, cache="much")


def test_nothing_is_kept_unless_that_is_asked_for(parquet):
    """`cache="none"` is the default: what is read twice is read twice."""
    for ds in (wr.Dataset(parquet), wr.Dataset(parquet, cache="none")):
        for _ in range(2):
            _ = ds[:]
        assert [ds.cache_report[key] for key in ("bytes", "images", "hits")] == [0, 0, 0]
    kept = wr.Dataset(parquet, cache="memory")
    for _ in range(2):
        _ = kept[:]
    assert [kept.cache_report[key] for key in ("images", "hits")] == [40, 40]


def test_preloading_prints_nothing_and_its_attributes_tell(parquet, capfd):
    ds = wr.Dataset(parquet, cache="preload")
    size = ds[:].nbytes
    # For what hangs: it takes milliseconds.
    end = time.monotonic() + 600
    while ds.cache_report["images"] < 40:
        assert time.monotonic() < end, ds.cache_report
        time.sleep(0.01)
    assert ds.cache_report["bytes"] == size
    assert capfd.readouterr() == ("", "")


POLICIES = ("none", "memory", "lru:1MiB", "compressed", "compressed-lru:100KB", "file", "preload", "chunked:16")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("format", ["parquet", "tiff", "ome-zarr"])
def test_every_cache_gives_what_is_stored(wellread, tmp_path, policy, format):
    # 40 images of 40 kB: more than fit into the small caches.
    size = ["--size", "162x133", "--dtype", "uint16"]
    made = wellread("generate", tmp_path, "--images", 40, *size, "--formats", format)
    path = made["written"][0]["path"]
    want = wr.Dataset(path)[:]
    ds = wr.Dataset(path, cache=policy)
    order = np.random.default_rng(5).permutation(80) % 40
    for _ in range(2):
        for row in order:
            assert np.array_equal(ds[row], want[row])
        assert np.array_equal(ds[order], want[order])
    loader = wr.DataLoader(ds, 8, True, num_workers=2, random_crop=(64, 32), dtype="stored")
    alike = wr.DataLoader(path, 8, True, num_workers=1, random_crop=(64, 32), dtype="stored")
    for _ in range(2):
        for ours, theirs in zip(loader, alike, strict=True):
            assert np.array_equal(ours, theirs)
    report = ds.cache_report
    # What keeps everything is asked for nothing twice; others keep within their limit.
    limits = {"lru:1MiB": 1 << 20, "compressed-lru:100KB": 100_000}
    if policy in ("memory", "compressed", "file"):
        assert (report["images"], report["hits"] > report["misses"]) == (40, True)
    elif policy in limits:
        assert 0 < report["bytes"] <= limits[policy] and report["images"] < 40
    elif policy == "none":
        assert report["bytes"] == report["hits"] == 0


def test_what_is_not_there_is_said(tmp_path, parquet):
    with pytest.raises(wr.Error) as missing:
        wr.Dataset(tmp_path / "none.parquet")
    assert isinstance(missing.value, FileNotFoundError) and missing.value.path.endswith("none.parquet")
    assert "none.parquet" in str(missing.value)
    (tmp_path / "text.parquet").write_text("no images")
    with pytest.raises(wr.Error, match="recognised|Parquet"):
        wr.Dataset(tmp_path / "text.parquet")
    for name, near in {"jpeg2000": "", "parqet": 'is it "parquet"[^?]*\\? ', "zarr": 'is it "ome-zarr"\\? '}.items():
        # A ValueError, as of other wrong arguments.
        said = rf"^{name}: is no storage format of .*\(hint: {near}there are: "
        with pytest.raises(ValueError, match=said) as wrong:
            wr.Dataset(parquet, format=name)
        assert isinstance(wrong.value, wr.ChoiceError)
    for name in ("png", "jpeg"):
        with pytest.raises(wr.ChoiceError, match=f'{name}: is no storage format.*format="image-folder"'):
            wr.Dataset(parquet, format=name)
    for wrong in (1, None, b"x", object()):
        with pytest.raises(TypeError, match="path"):
            wr.Dataset(wrong)
    with pytest.raises(ValueError, match="null character"):
        wr.Dataset("a\0b")


def test_damage_names_the_row(tmp_path, cells):
    import shutil

    folder = tmp_path / "tiff"
    shutil.copytree(cells["tiff"], folder)
    damaged = sorted(folder.iterdir())[7]
    damaged.write_bytes(damaged.read_bytes()[:-500])
    ds = wr.Dataset(folder)
    with pytest.raises(wr.CorruptImageError) as error:
        ds[7]
    assert error.value.row == 7 and damaged.name in error.value.path
    copy = pickle.loads(pickle.dumps(error.value))
    assert (type(copy), str(copy), copy.row) == (wr.CorruptImageError, str(error.value), 7)
    assert ds[6].shape == (2, 48, 56)


def test_truth_values_choose_rows(cells):
    ds = wr.Dataset(cells["tiff"])
    wanted = [i % 3 == 0 for i in range(len(ds))]
    expected = [ds[i] for i in range(0, len(ds), 3)]
    lists = [[np.bool_(one) for one in wanted], list(torch_of(wanted))]
    for mask in (wanted, np.array(wanted), torch_of(wanted), *lists):
        assert np.array_equal(ds.select(mask)[:], expected)
        found = ds[mask]
        assert len(found) == len(expected) and all(map(np.array_equal, found, expected))
    for wrong in (wanted[:-1], np.array(wanted[:-1]), torch_of(wanted[:-1]), lists[0][:-1]):
        with pytest.raises(IndexError, match="truth values"):
            ds[wrong]
    for mixed in ([0, True], [0, np.True_], [torch_of(True), 0]):
        with pytest.raises(TypeError, match="rows are whole numbers, not (bool|Tensor)"):
            ds[mixed]


def torch_of(values):
    return pytest.importorskip("torch").tensor(values)


def test_a_table_of_what_has_none_is_refused(cells):
    for kind in ("tiff", "parquet"):
        with pytest.raises(wr.ChoiceError, match="no tables to choose from"):
            wr.Dataset(cells[kind], table="images")


def test_a_level_that_is_not_there_is_refused(cells):
    for kind in ("tiff", "parquet"):
        with pytest.raises(wr.ChoiceError, match="no multiscale levels.*leave level out"):
            wr.Dataset(cells[kind], level=1)
    with pytest.raises(wr.ChoiceError, match="level 7 was asked for"):
        wr.Dataset(cells["ome-zarr"], level=7)


def test_what_cannot_be_meant_is_said_so(cells):
    with pytest.raises(wr.ChoiceError, match="^the path is empty"):
        wr.Dataset("")
    with pytest.raises(ValueError, match='"-5" is no amount of memory'):
        wr.Dataset(cells["tiff"], cache="lru:-5")
    with pytest.raises(wr.ChoiceError, match="the transform would make images of .* more than 1 TiB each"):
        wr.DataLoader(cells["tiff"], 1, resize=10**6)


def test_a_split_is_that_of_the_rust_api(tmp_path, labelled):
    import tifffile

    for i in range(48):
        tifffile.imwrite(tmp_path / f"image {i}.tif", np.zeros((1, 1), np.uint8))
    ds = wr.Dataset(tmp_path)
    parts = ds.split((0.8, 0.1, 0.1), seed=1)
    # Pinned in crates/wellread-loader/src/dataset/split.rs as well.
    assert {ds.name(row) for row in parts[1]} == {f"image {i}" for i in (10, 31, 32, 47)}
    assert sorted(sum(parts, [])) == list(range(48)) and all(part == sorted(part) for part in parts)
    assert ds.split([0.8], seed=1) == parts[:1] and ds.split(seed=2) != parts
    cells = wr.Dataset(labelled)
    wells = cells.column("well")
    for by in ("well", ("well",), wells.tolist(), ("well", "class")):
        of_part = [set(wells[part]) for part in cells.split((0.5, 0.5), by=by, seed=3)]
        assert of_part[0] | of_part[1] == set(wells)
        assert of_part[0].isdisjoint(of_part[1]) == (by != ("well", "class"))
    for fractions in ([], [0], [-0.1, 0.5], [0.9, 0.2]):
        with pytest.raises(wr.ChoiceError, match="cannot split"):
            ds.split(fractions)
    with pytest.raises(ValueError, match="finite"):
        ds.split([float("nan")])
    with pytest.raises(KeyError, match="nothing"):
        ds.split(by="nothing")
    with pytest.raises(ValueError, match="one key for every row"):
        ds.split(by=[1, 2])
    # Columns are lists in most other arguments: what to write is said, and not that keys are missing.
    for columns, said in ((["well", "class"], r"by=\('well', 'class'\)"), (["well"], "by='well'")):
        with pytest.raises(ValueError, match=f"one key per row: name columns by {said}"):
            cells.split((0.5, 0.5), by=columns)
        with pytest.raises(ValueError, match=f"one key per row: name columns by {said}"):
            wr.DataLoader(cells, 4, order="balanced", by=columns)


def test_a_part_without_images_is_warned_of(tmp_path):
    import tifffile

    for i in range(2):
        tifffile.imwrite(tmp_path / f"image {i}.tif", np.zeros((1, 1), np.uint8))
    ds = wr.Dataset(tmp_path)
    with pytest.warns(UserWarning, match=r"of 2 images none is in part .*\(share 1e-09\) of the split"):
        parts = ds.split((0.5, 1e-9))
    assert parts[1] == []
    with pytest.warns(UserWarning, match="or by= with more values: rows with equal values are in one part") as told:
        ds.split((0.5, 0.5), by=["a", "a"])
    assert "alike in name" not in str(told[0].message)
    with pytest.raises(wr.Error, match="empty list of rows .*a split or a filter may have left none"):
        wr.DataLoader(ds, rows=parts[1])
    with pytest.raises(wr.Error, match="no images to load .*a split or a filter left none: look at the values"):
        wr.DataLoader(ds.filter([False, False]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ds.split([1.0]) == [[0, 1]]


def test_masks_among_images_are_warned_of(tmp_path):
    import tifffile

    for part in ("images", "masks"):
        (tmp_path / part).mkdir()
        for name in ("a", "b"):
            tifffile.imwrite(tmp_path / part / f"{name}.tif", np.zeros((4, 4), np.uint8))
    with pytest.warns(UserWarning, match=r"masks/a.tif is a mask of images/a.tif by its name") as told:
        ds = wr.Dataset(tmp_path)
    assert len(told) == 1 and told[0].filename == __file__ and len(ds) == 4
    with pytest.warns(UserWarning, match="is a mask of"):
        wr.DataLoader(tmp_path, shard=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(wr.Dataset(tmp_path / "images")) == len(wr.Dataset(tmp_path / "masks")) == 2
        # Worker processes say nothing again.
        assert len(pickle.loads(pickle.dumps(ds))) == 4


def test_it_is_pickled_by_path_and_options(parquet):
    ds = wr.Dataset(parquet, format="parquet", cache="memory")
    copy = pickle.loads(pickle.dumps(ds))
    assert np.array_equal(copy[5], ds[5]) and copy._options == ds._options


def _sums(ds, rows, answers):
    answers.put([int(ds[row].sum()) for row in rows])


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_other_processes_read_it(cells, method):
    context = multiprocessing.get_context(method)
    for name, path in cells.items():
        ds = wr.Dataset(path)
        # The parent has read, and its threads are reading now.
        want = [int(ds[row].sum()) for row in range(len(ds))]
        busy = threading.Event()
        reader = threading.Thread(
            target=lambda ds=ds, busy=busy: [ds[i % 40] for i in range(10**6) if not busy.is_set()]
        )
        reader.start()
        answers = context.Queue()
        child = context.Process(target=_sums, args=(ds, range(len(ds)), answers))
        child.start()
        try:
            # Long enough for a busy machine to start an interpreter.
            assert answers.get(timeout=600) == want, name
        finally:
            busy.set()
            reader.join()
            child.join(60)
            child.kill()


def test_threads_share_it(parquet):
    ds = wr.Dataset(parquet)
    want = [int(ds[row].sum()) for row in range(40)]
    got = {}

    def read(worker):
        got[worker] = [int(ds[row].sum()) for row in range(40)]

    threads = [threading.Thread(target=read, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(got.values()) == [want] * 4


def test_a_forked_child_of_a_child_reads_it(parquet):
    ds = wr.Dataset(parquet)
    want = int(ds[3].sum())

    def fork(depth):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = 0 if int(ds[3].sum()) == want and (depth == 0 or fork(depth - 1) == 0) else 1
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    assert fork(2) == 0


def test_rows_of_pythons_own_numbers_are_not_looked_at(monkeypatch):
    asked = []
    is_truth = _check.is_truth
    monkeypatch.setattr(_check, "is_truth", lambda value: asked.append(value) or is_truth(value))
    assert [_rows.one(row, 10) for row in (0, 9, -1, -10)] == [0, 9, 9, 0] and asked == []
    assert [_rows.one(row, 10) for row in (np.int64(3), np.uint8(4), np.array(-2))] == [3, 4, 8]
    for wrong in (True, np.bool_(True), np.array(False), 1.0, "1"):
        with pytest.raises(TypeError, match=f"^rows are whole numbers, not {type(wrong).__name__}$"):
            _rows.one(wrong, 10)
    assert len(asked) == 8
    for row in (10, -11):
        with pytest.raises(IndexError, match=f"^row {row} is out of range: rows go from 0 to 9$"):
            _rows.one(row, 10)
