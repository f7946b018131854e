"""The reference libraries read wellread's files to the same bytes; wellread reads theirs."""

import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tifffile
import zarr
from null_rows import without_image
from ome_arrow import OMEArrow
from ome_arrow.dataset import OMEArrowDataset


def sha(array):
    """The digest that wellread documents: C order, little-endian."""
    array = np.ascontiguousarray(array)
    return hashlib.sha256(array.astype(array.dtype.newbyteorder("<")).tobytes()).hexdigest()


def check(found, expected):
    """`found`: name -> TCZYX array."""
    assert sorted(found) == sorted(expected)
    for name, array in found.items():
        e = expected[name]
        assert list(array.shape) == e["shape_tczyx"], name
        assert str(array.dtype) == e["dtype"], name
        assert sha(array) == e["sha256"], name


def assemble(image):
    """An image from the chunks of an OME-Arrow struct, written from the published schema alone."""
    meta = image["pixels_meta"]
    shape = [meta[f"size_{a}"] for a in "tczyx"]
    out = np.zeros(shape, meta["type"])
    for chunk in image["chunks"]:
        z, y, x = chunk["z"], chunk["y"], chunk["x"]
        dz, dy, dx = chunk["shape_z"], chunk["shape_y"], chunk["shape_x"]
        pixels = np.asarray(chunk["pixels"]).reshape(dz, dy, dx)
        out[chunk["t"], chunk["c"], z : z + dz, y : y + dy, x : x + dx] = pixels
    return out


def test_pyarrow_reads_our_parquet(generated):
    folder, expected, _ = generated
    table = pq.read_table(folder / "images.parquet")
    images = table["ome_image"].to_pylist()
    check({i["name"]: assemble(i) for i in images}, expected)


def test_ome_arrow_reads_our_parquet(generated):
    folder, expected, _ = generated
    if next(iter(expected.values()))["dtype"] not in ("uint8", "uint16"):
        pytest.skip("the published OME-Arrow type holds 16-bit pixels only")
    images = pq.read_table(folder / "images.parquet")["ome_image"].to_pylist()
    dtype = np.dtype(next(iter(expected.values()))["dtype"])
    check({i["name"]: OMEArrow(data=i).export(how="numpy", dtype=dtype) for i in images}, expected)


def test_null_rows_are_named_or_left_out(wellread, generated, tmp_path):
    folder, expected, _ = generated
    path = tmp_path / "nulls.parquet"
    names = without_image(folder, 2, path)
    error = wellread("checksum", path, code=1)
    assert "row 2" in error and "--skip-null" in error
    sums = wellread("checksum", path, "--skip-null")
    assert [s["name"] for s in sums] == names[:2] + names[3:]
    # Written by another library than ours, 8-bit pixels are told by their values alone.
    assert all(s["shape_tczyx"] == expected[s["name"]]["shape_tczyx"] for s in sums)
    wellread("convert", path, tmp_path / "tiff", "--format", "tiff", "--skip-null")
    assert len(list((tmp_path / "tiff").iterdir())) == len(names) - 1


@pytest.fixture(scope="module")
def small_image(wellread, tmp_path_factory):
    """A column of one small image, and its checksum: pyarrow makes hundreds of rows of it without many pixels."""
    folder = tmp_path_factory.mktemp("one")
    wellread("generate", folder, "--images", 1, "--size", "16x16", "--channels", 2, "--formats", "parquet")
    expected = json.loads((folder / "expected.json").read_text())["images"]
    return pq.read_table(folder / "images.parquet", columns=["ome_image"])["ome_image"], expected[0]["sha256"]


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_names_of_a_plate_are_read_from_pyarrows_files(
    wellread, small_image, tmp_path, dictionary, compression, version
):
    """Names of 25 characters in 456 rows and more were called corrupt."""
    image, sum_of_one = small_image
    one = image[0].as_py()
    names = [f"r{i // 96 + 1:02}c{i // 8 % 12 + 1:02}f{i % 8 + 1:02}p01-ch1sk1fk1fl1" for i in range(576)]
    table = pa.table({"ome_image": pa.array([{**one, "name": name} for name in names], image.type)})
    path = tmp_path / "plate.parquet"
    pq.write_table(table, path, use_dictionary=dictionary, compression=compression, data_page_version=version)
    sums = wellread("checksum", path)
    assert [s["name"] for s in sums] == names
    assert {s["sha256"] for s in sums} == {sum_of_one}
    document = wellread("convert", path, tmp_path / "own.parquet")
    assert document["verified"] is True and document["images"] == 576
    assert [s["name"] for s in wellread("checksum", tmp_path / "own.parquet")] == names


@pytest.mark.parametrize("layout", ["image", "tile", "volume", "z-plane", "block"])
@pytest.mark.parametrize("tune", ["random", "scan", "reference"])
def test_ome_arrow_reads_our_datasets(wellread, generated, tmp_path, layout, tune):
    folder, expected, _ = generated
    target = tmp_path / "images.ome-arrow-dataset"
    wellread("convert", folder / "images.parquet", target, "--variant", layout, "--tune", tune)
    dataset = OMEArrowDataset(target)
    names = {row["image_id"]: row["name"] for row in dataset.images.to_pylist()}
    check({names[i]: dataset.read_image(i) for i in dataset.image_ids}, expected)
    e = next(iter(expected.values()))
    region = dataset.read_region(dataset.image_ids[0], y=slice(7, 40), x=slice(11, 60), z=0, t=0, c=0)
    assert np.array_equal(region, dataset.read_image()[:1, :1, :1, 7:40, 11:60])
    assert region.dtype == e["dtype"]


def test_tifffile_reads_our_ome_tiff(generated):
    folder, expected, _ = generated
    found = {}
    for path in sorted((folder / "tiff").iterdir()):
        with tifffile.TiffFile(path) as tif:
            assert tif.is_ome, path
            series = tif.series[0]
            array, axes = series.asarray(), series.axes
        for axis in "TCZYX":
            if axis not in axes:
                array, axes = array[None], axis + axes
        name = path.name.removesuffix(".tiff").removesuffix(".ome")
        found[name] = np.transpose(array, [axes.index(a) for a in "TCZYX"])
    check(found, expected)


@pytest.mark.parametrize("compression", ["none", "lzw", "deflate", "packbits", "zstd:5"])
@pytest.mark.parametrize("tiles", [None, "1,1,1,32,48"])
def test_tifffile_reads_every_tiff_compression(wellread, generated, tmp_path, compression, tiles):
    folder, expected, _ = generated
    target = tmp_path / "tiff"
    chunk = ["--chunk", tiles] if tiles else []
    wellread(
        "convert", folder / "images.parquet", target, "--format", "tiff", "--variant", "plain",
        "--compression", compression, *chunk,
    )  # fmt: skip
    for path in target.iterdir():
        e = expected[path.stem]
        assert sha(tifffile.imread(path).reshape(e["shape_tczyx"])) == e["sha256"], path


@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize("compression", ["default", "none", "zstd:3", "lz4", "deflate"])
def test_zarr_reads_our_ome_zarr(wellread, generated, tmp_path, version, compression):
    folder, expected, _ = generated
    target = tmp_path / "zarr"
    wellread(
        "convert", folder / "images.parquet", target, "--format", "ome-zarr", "--variant", version,
        "--compression", compression, "--chunk", "1,1,2,32,40",
    )  # fmt: skip
    found = {}
    for path in target.iterdir():
        group = zarr.open_group(str(path), mode="r")
        attributes = group.attrs.asdict()
        multiscales = attributes.get("ome", attributes)["multiscales"][0]
        assert [a["name"] for a in multiscales["axes"]] == list("tczyx")
        found[path.stem] = group[multiscales["datasets"][0]["path"]][...]
    check(found, expected)


def test_zarr_reads_our_shards(wellread, generated, tmp_path):
    folder, expected, _ = generated
    target = tmp_path / "zarr"
    wellread(
        "convert", folder / "images.parquet", target, "--format", "ome-zarr",
        "--chunk", "1,1,1,16,16", "--shard", "1,1,1,64,96",
    )  # fmt: skip
    found = {p.stem: zarr.open_group(str(p), mode="r")["0"][...] for p in target.iterdir()}
    check(found, expected)


def test_ome_zarr_reads_our_ome_zarr(generated):
    from ome_zarr.io import parse_url
    from ome_zarr.reader import Reader

    folder, expected, _ = generated
    found = {}
    for path in (folder / "ome-zarr").iterdir():
        nodes = list(Reader(parse_url(str(path)))())
        found[path.stem] = np.asarray(nodes[0].data[0])
    check(found, expected)


def test_every_format_that_can_hold_the_images_does(generated, wellread):
    folder, expected, written = generated
    first = next(iter(expected.values()))
    for name, entry in written.items():
        if name == "image-folder" and (first["dtype"] == "float32" or first["shape_tczyx"][0] > 1):
            assert entry["error"], "PNG cannot hold this"
            continue
        assert entry["error"] is None, entry
        assert wellread("verify", entry["path"], "--against", folder / "expected.json")["passed"]


def golden_sets(shared):
    """Every golden copy of the stores of this build, with its expected checksums."""
    names = ["ome-tiff", "tiff", "ome-zarr-0.4", "ome-zarr-0.5"]
    names += ["images.lancedb", "images.vortex", "images.duckdb"]
    for expected in sorted(shared.glob("golden/*/*/expected.json")):
        for name in [*names, *(p.name for p in expected.parent.glob("*.parquet"))]:
            yield expected.parent / name, expected


def test_golden_sets(wellread, shared):
    sets = list(golden_sets(shared))
    assert len(sets) >= 44
    for path, expected in sets:
        document = wellread("verify", path, "--against", expected)
        assert document["passed"] and document["images"] == len(json.loads(expected.read_text())["images"])


def test_real_images_equal_tifffile(wellread, shared):
    for folder in ["jump", "nf1/images", "nf1/masks", "examplehuman", "ome-5d"]:
        sums = wellread("checksum", shared / folder, "--layout", "files")
        paths = sorted(p for p in (shared / folder).iterdir() if ".tif" in p.name)
        assert len(sums) == len(paths)
        by_name = {s["name"]: s for s in sums}
        for path in paths:
            with tifffile.TiffFile(path) as tif:
                series = tif.series[0]
                array, axes = series.asarray(), series.axes
            axes = axes.replace("S", "C").replace("Q", "Z").replace("I", "Z")
            for axis in "TCZYX":
                if axis not in axes:
                    array, axes = array[None], axis + axes
            array = np.transpose(array, [axes.index(a) for a in "TCZYX"])
            name = path.name.rsplit(".tif", 1)[0].removesuffix(".ome")
            assert by_name[name]["sha256"] == sha(array), path
            assert by_name[name]["shape_tczyx"] == list(array.shape)
