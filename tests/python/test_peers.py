"""The comparison with peers (`make bench-peers`): its plan and its sets, and that it sees wrong pixels."""

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parents[2] / "benches" / "peers"
NAMES = ("judge", "checks", "page", "collation", "peers", "runs", "compare")


@pytest.fixture(scope="module")
def modules():
    """Those of benches/peers, whose names are for their own folder only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(HERE)
        found = {name: importlib.import_module(name) for name in NAMES}
        yield type("Modules", (), found)
        for name in NAMES:
            sys.modules.pop(name)


STORED = np.arange(4 * 5 * 7, dtype=np.uint16).reshape(4, 1, 5, 7) * 400


def scaled(stored):
    return stored.astype(np.float32) / np.float32(np.iinfo(stored.dtype).max)


def test_checks_find_scaled_pixels_whatever_their_place_in_a_batch(modules):
    checks = modules.checks
    expected = [checks.checksum(image) for image in STORED]
    found = checks.of_batch(scaled(STORED)[[2, 0, 3]], "uint16")
    assert found == [expected[2], expected[0], expected[3]]
    assert checks.wrong(found, [0, 2, 3], expected) is None
    # The same by multiplication with the rounded inverse, as most loaders do.
    assert checks.of_batch(STORED.astype(np.float32) * np.float32(1 / 65535), "uint16") == expected


def test_checks_catch_a_wrong_pixel(modules):
    checks = modules.checks
    expected = [checks.checksum(image) for image in STORED]
    changed = STORED.copy()
    changed[1, 0, 4, 6] += 1
    found = checks.of_batch(scaled(changed), "uint16")
    assert checks.wrong(found, [0, 1, 2, 3], expected) == "4 images for 4 rows, 1 of them with other pixels"
    whole = checks.of_batch(scaled(STORED), "uint16")
    assert checks.wrong(whole[:3], [0, 1, 2, 3], expected) == "3 images for 4 rows, 0 of them with other pixels"
    # One image twice in place of another.
    assert checks.wrong([*whole[:3], whole[0]], [0, 1, 2, 3], expected).endswith("1 of them with other pixels")


@pytest.mark.parametrize(
    "batch",
    [
        # Scaled by another type's range, one value between two stored ones, one that is no number, out of range.
        scaled(STORED) * np.float32(65535 / 65000),
        scaled(STORED) + np.eye(5, 7, dtype=np.float32) * np.float32(0.3 / 65535),
        np.full((1, 1, 2, 2), np.nan, np.float32),
        np.full((1, 1, 2, 2), 2.0, np.float32),
        np.full((1, 1, 2, 2), -1 / 65535, np.float32),
        scaled(STORED).astype(np.float64),
    ],
)
def test_checks_refuse_what_is_not_scaled(modules, batch):
    with pytest.raises(ValueError, match="no stored value|not float32"):
        modules.checks.of_batch(batch, "uint16")


COUNT = 6


@pytest.fixture
def folder(modules, tmp_path):
    """A set of TIFF files as benches/peers/sets.py leaves it."""
    import tifffile

    rng = np.random.default_rng(3)
    images = rng.integers(0, 256, (COUNT, 1, 1, 1, 9, 11), dtype=np.uint8)
    (tmp_path / "tiff").mkdir()
    for i, image in enumerate(images):
        tifffile.imwrite(tmp_path / "tiff" / f"image-{i:06d}.tiff", image)
    np.save(tmp_path / "checksums.npy", np.array([modules.checks.checksum(image) for image in images]))
    about = {"images": COUNT, "shape": list(images.shape[1:]), "dtype": "uint8", "whole": "tiff"}
    (tmp_path / "about.json").write_text(json.dumps(about))
    return tmp_path


def task(modules, folder, name, **more):
    orders = modules.runs.orders_of(folder, "tiff", 4, 3, 7)
    given = {"batch": 4, "threads": 2, "later": 2, "seed": 7, "orders": orders, **more}
    return modules.runs.Task(name, str(folder), **given)


@pytest.mark.parametrize(
    "name", ["wellread:tiff", "wellread:tiff,kept", "tifffile-mapped-0", "tifffile-mapped", "gather"]
)
def test_each_loader_has_the_same_epochs_and_checks(modules, folder, name):
    one = task(modules, folder, name, checked=True)
    assert all(sorted(order) == list(range(COUNT)) for order in one.orders) and len(set(map(tuple, one.orders))) > 1
    done = modules.runs.measure(one)
    assert (len(done["epochs_s"]), done["images"], done["compared"]) == (3, COUNT, 3 * COUNT)
    assert 0 < done["open_s"] <= done["first_batch_s"] <= done["epochs_s"][0]
    # Of timed epochs a batch is compared, here all there is.
    assert modules.runs.measure(task(modules, folder, name, batch=COUNT))["compared"] == 3 * COUNT


@pytest.mark.parametrize(
    "name",
    ["zarr-array-0", "zarr-batches", "zarr-images", "tensorstore-array", "tensorstore-batches",
     "tensorstore-batches-kept"],
)  # fmt: skip
def test_each_way_to_read_one_array_gives_the_rows_that_were_asked_for(modules, folder, name):
    pytest.importorskip("tensorstore")
    zarr, tifffile = pytest.importorskip("zarr"), pytest.importorskip("tifffile")
    images = np.stack([tifffile.imread(path).reshape(1, 9, 11) for path in sorted((folder / "tiff").glob("*.tiff"))])
    zarr.create_array(str(folder / "array.zarr"), data=images, chunks=(1, 1, 9, 11), zarr_format=2)
    done = modules.runs.measure(task(modules, folder, name, checked=True))
    assert (done["images"], done["compared"]) == (COUNT, 3 * COUNT)


@pytest.mark.parametrize("name", ["wellread:tiff", "tifffile-mapped-0", "gather"])
@pytest.mark.parametrize("checked", [True, False])
def test_a_wrong_pixel_ends_a_run(modules, folder, name, checked):
    import tifffile

    path = folder / "tiff" / "image-000002.tiff"
    image = tifffile.imread(path)
    image.flat[17] ^= 1
    tifffile.imwrite(path, image)
    with pytest.raises(ValueError, match="epoch 1: .* 1 of them with other pixels"):
        modules.runs.measure(task(modules, folder, name, checked=checked, batch=COUNT))


def test_spdl_reads_whole_batches_in_the_order_that_was_asked_for(modules, folder):
    pytest.importorskip("spdl")
    orders = ((3, 0, 5, 1, 4, 2), (1, 2, 0, 5, 3, 4))
    one = modules.runs.Task("spdl", str(folder), 4, 2, 1, 7, orders, True)
    done = modules.runs.measure(one)
    assert (done["images"], done["compared"]) == (COUNT, 2 * COUNT)
    shapes = [tuple(batch.shape) for batch in modules.peers.Spdl(one).epoch(0)]
    assert shapes == [(4, 1, 9, 11), (2, 1, 9, 11)]


def test_other_rows_than_were_asked_for_end_a_run(modules, folder):
    one = task(modules, folder, "wellread:tiff")
    orders = (one.orders[1], one.orders[0], one.orders[2])
    with pytest.raises(ValueError, match="another one than its peers were given"):
        modules.runs.measure(task(modules, folder, "wellread:tiff", orders=orders, batch=COUNT))


def test_the_set_of_fields_is_larger_than_what_wellread_keeps(modules, monkeypatch):
    compare, page = modules.compare, modules.page
    monkeypatch.setattr(compare, "KINDS", {name: replace(kind) for name, kind in compare.KINDS.items()})
    fields = compare.KINDS["1080"]
    assert fields.images * page.IMAGE > 3 * page.KEPT_PAGES
    assert fields.images * page.IMAGE < modules.peers.KEPT_BYTES
    # The libraries write a few of them a second.
    compare.arguments(["--only", "write"])
    assert (fields.images, compare.KINDS["1k"].images) == (24, 1000)
    compare.arguments(["--images", "1080=12"])
    assert fields.images == 12


def test_a_title_says_what_images_are_made_of(modules, tmp_path, monkeypatch):
    pytest.importorskip("ome_zarr")
    pytest.importorskip("vortex")
    monkeypatch.syspath_prepend(HERE)
    sets = importlib.import_module("sets")
    try:
        for name in ("b.tiff", "a.tif", "notes.txt"):
            (tmp_path / name).write_bytes(b"")
        nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        assert sets.real_files(tmp_path) == [{"name": name, "sha256": nothing} for name in ("a.tif", "b.tiff")]
        assert sets.about_fields(tmp_path, 96) == " (2 files of JUMP, each shifted 48 times)"
        assert sets.about_fields(None, 96) == " (3 generated, each shifted 32 times)" and not sets.real_files(None)
        # A set of other files is written anew.
        about = {"version": sets.VERSION, "files": sets.real_files(tmp_path)}
        (tmp_path / "about.json").write_text(json.dumps(about))
        assert sets.written(tmp_path, about["files"]) == about and sets.written(tmp_path) is None
    finally:
        sys.modules.pop("sets", None)


def test_bare_pixels_in_duckdb_are_not_compressed(tmp_path, monkeypatch):
    """Each read of a row would decompress the column from its beginning."""
    for name in ("duckdb", "ome_zarr", "vortex", "tifffile"):
        pytest.importorskip(name)
    import duckdb
    import pyarrow as pa
    import tifffile

    monkeypatch.syspath_prepend(HERE)
    sets = importlib.import_module("sets")
    try:
        (tmp_path / "tiff").mkdir()
        for row in range(3):
            pixels = np.full((500, 500), row, np.uint16)
            tifffile.imwrite(tmp_path / "tiff" / f"image-{row:06d}.tiff", pixels)
        sets.write_keyed(tmp_path, pa.table({"ome_image": [{"pixels": [row]} for row in range(3)]}))
        with duckdb.connect(str(tmp_path / "keyed.duckdb"), read_only=True) as connection:
            kinds = connection.sql(
                "SELECT DISTINCT compression FROM pragma_storage_info('bare') WHERE segment_type = 'BLOB'"
            ).fetchall()
            stored = connection.sql("SELECT pixels FROM bare WHERE row_id = 2").fetchall()
        assert kinds == [("Uncompressed",)] and stored == [(np.full((500, 500), 2, np.uint16).tobytes(),)]
    finally:
        sys.modules.pop("sets", None)


def test_memory_of_a_batch_is_shared_in_workers_alone(modules, monkeypatch):
    collation = modules.collation
    assert not collation.room((2, 1, 3, 4)).is_shared()
    monkeypatch.setattr(collation, "get_worker_info", lambda: "a worker")
    batch = collation.room((2, 1, 3, 4))
    batch.numpy()[1, 0, 2] = 5
    assert batch.is_shared() and batch.shape == (2, 1, 3, 4) and batch.is_contiguous()
    assert batch.dtype == modules.runs.torch.float32 and batch[1, 0, 2].tolist() == [5.0] * 4


def test_the_plan_has_the_large_fields_first_and_leaves_out_what_was_not_asked_for(modules, monkeypatch):
    compare = modules.compare
    monkeypatch.setattr(compare, "ANNBATCH_PYTHON", None)
    assert list(compare.KINDS)[0] == "1080" and compare.KINDS["20k"].images >= 20_000
    assert all(kind.later >= 1 for kind in compare.KINDS.values())
    peers = {row["peer"] for row in compare.rows_of(compare.KINDS["1k"])}
    assert {"ram-cache-0", "ram-cache-2", "zarr-python", "tensorstore", "tensorstore-batches", "duckdb"} <= peers
    # Each way of zarr-python, and bare pixels for who unpacks nested lists.
    ways = {"zarr-python-0", "zarr-array-0", "zarr-batches", "zarr-images", "tifffile-0", "pylance-bare"}
    assert {*ways, "vortex-bare"} <= peers
    page = modules.page
    assert not any(page.unequal(row) for kind in compare.KINDS.values() for row in compare.rows_of(kind))
    assert not any(name.startswith("annbatch") for name in peers)
    assert {row["peer"] for row in compare.rows_of(compare.KINDS["1k"], ["duckdb"])} == {"duckdb"}
    # What the large set lacks cannot be asked for; what is only slow there can.
    large = compare.KINDS["20k"]
    assert not {"zarr-python", "ram-cache-0"} & {row["peer"] for row in compare.rows_of(large)}
    rows = compare.rows_of(large, ["zarr-python", "ram-cache-0"])
    assert {row["peer"] for row in rows} == {"zarr-python"}
    assert set(modules.peers.LOADERS) >= {name for _, names in compare.ROWS.values() for name in names}
    assert compare.arguments([]).rounds >= modules.judge.MIN_ROUNDS


def test_both_sides_write_as_many_images_with_the_same_codec(modules, tmp_path, monkeypatch):
    zarr = pytest.importorskip("zarr")
    numcodecs = pytest.importorskip("numcodecs")
    pytest.importorskip("ome_zarr")
    pytest.importorskip("vortex")
    monkeypatch.syspath_prepend(HERE)
    sets, writes = importlib.import_module("sets"), importlib.import_module("writes")
    try:
        images = [("a", np.arange(64 * 64, dtype=np.uint16).reshape(1, 1, 1, 64, 64))]
        sets.write_with_library("ome-zarr", tmp_path, images)
        group = zarr.open_group(str(tmp_path / "ome-zarr" / "a.zarr"), mode="r")
        (level,) = group.attrs.asdict()["ome"]["multiscales"][0]["datasets"]
        array = group[level["path"]]
        assert array.chunks == array.shape == (1, 1, 1, 64, 64) and (array[:] == images[0][1]).all()
        assert [codec.to_dict()["configuration"] for codec in array.compressors] == [{"level": 1, "checksum": True}]
        sets.write_zarr(tmp_path, images)
        group = zarr.open_group(str(tmp_path / "a.zarr"), mode="r")
        (level,) = group.attrs.asdict()["multiscales"][0]["datasets"]
        array = group[level["path"]]
        # As docs/peers-method.md says it: a chunk for each image, and the codec that zarr-python takes by itself.
        own = zarr.create_array(str(tmp_path / "own"), shape=(2, 2), dtype="uint16", zarr_format=2).compressors
        assert array.chunks == array.shape and array.compressors == own == (numcodecs.Zstd(level=0),)
        assert set(writes.CODECS) <= set(writes.FORMATS)
    finally:
        for name in ("sets", "writes"):
            sys.modules.pop(name, None)


def test_the_command_is_said_without_folders_of_the_machine(modules):
    words = ["--out", "/a/b", "--rounds", "6", "--wellread=/c/d", "--real", "/e/jump", "--only", "duckdb,spdl"]
    assert modules.compare.command(words) == "compare.py --rounds 6 --real jump --only duckdb,spdl"
    assert modules.compare.command([]) == "compare.py"
