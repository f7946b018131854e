"""The package against the libraries that its users come from: the same files and the same numbers."""

import pathlib

import numpy as np
import pyarrow as pa
import pytest
import wellread as wr


def of_pyarrow(path):
    import pyarrow.parquet as pq
    from test_cross_reading import assemble

    return {image["name"]: assemble(image) for image in pq.read_table(path)["ome_image"].to_pylist()}


def of_tifffile(folder):
    import tifffile

    files = pathlib.Path(folder).iterdir()
    return {path.name.removesuffix(".tiff").removesuffix(".ome"): tifffile.imread(path) for path in files}


def of_zarr(folder):
    import zarr

    return {path.stem: zarr.open_group(str(path), mode="r")["0"][...] for path in pathlib.Path(folder).iterdir()}


@pytest.mark.parametrize(
    ("name", "reference"), [("parquet", of_pyarrow), ("tiff", of_tifffile), ("ome-zarr", of_zarr)]
)
def test_pixels_are_those_of_the_reference_library(cells, name, reference):
    theirs = reference(cells[name])
    ds = wr.Dataset(cells[name])
    assert len(theirs) == len(ds) == 40
    whole = [theirs[ds.name(row)] for row in range(40)]
    for row, image in enumerate(whole):
        assert image.dtype == np.uint16 and image.tobytes() == ds[row].tobytes(), row
    batches = wr.DataLoader(ds, 16, dtype="stored", num_workers=2)
    assert b"".join(batch.tobytes() for batch in batches) == b"".join(image.tobytes() for image in whole)


def resized(folder, images, resize_filter, size, **choices):
    """Images (C, Y, X) of a TIFF folder, resized, as numbers of their own range."""
    import tifffile

    for i, image in enumerate(images):
        tifffile.imwrite(folder / f"{i}.ome.tif", image, photometric="minisblack", metadata={"axes": "CYX"})
    loader = wr.DataLoader(
        folder, len(images), resize=size, resize_filter=resize_filter, scale=None, num_workers=0, **choices
    )
    return next(iter(loader))


@pytest.mark.parametrize("resize_filter", ["bilinear", "antialias"])
def test_resizing_is_within_one_grey_level_of_torchvision(tmp_path, resize_filter):
    import torch
    from torchvision.transforms.v2 import functional

    random = np.random.default_rng(11)
    for case in range(24):
        height, width, *size = (int(n) for n in random.integers(2, 70, 4))
        image = random.integers(0, 256, (2, height, width), np.uint8)
        want = functional.resize(torch.from_numpy(image), size, antialias=resize_filter == "antialias").numpy()
        # torchvision has no uint16: the same grey levels spread over its range.
        for factor in (np.uint8(1), np.uint16(257)):
            folder = tmp_path / f"{case}-{factor}"
            folder.mkdir()
            got = resized(folder, [image * factor], resize_filter, size)[0]
            levels = np.round(got / np.float32(factor))
            assert levels.shape == want.shape
            assert np.abs(levels - want).max() <= 1, (image.shape, size, factor)


def test_areas_are_those_of_torch(tmp_path):
    """torch's areas overlap where a ratio is not whole, so whole ratios are compared."""
    import torch

    random = np.random.default_rng(12)
    for case in range(12):
        height, width, *times = (int(n) for n in random.integers(1, 9, 4))
        image = random.integers(0, 65536, (2, height * times[0], width * times[1]), np.uint16)
        want = torch.nn.functional.interpolate(torch.from_numpy(image).float()[None], (height, width), mode="area")
        folder = tmp_path / f"{case}"
        folder.mkdir()
        got = resized(folder, [image], "area", [height, width])
        assert got.shape == want.shape
        assert np.abs(got - want.numpy()).max() <= 0.01, image.shape


ENCODINGS = [
    {"use_dictionary": True, "data_page_version": "2.0"},
    {"use_dictionary": True, "dictionary_pagesize_limit": 300, "data_page_version": "2.0"},
    {"use_dictionary": False, "data_page_version": "2.0", "data_page_size": 5000},
    {"use_dictionary": False, "column_encoding": "DELTA_BINARY_PACKED", "data_page_size": 3000},
    {"use_dictionary": False, "column_encoding": "DELTA_BINARY_PACKED", "data_page_version": "2.0"},
    {"use_dictionary": False, "column_encoding": "BYTE_STREAM_SPLIT", "compression": "lz4"},
    {"compression": "gzip", "write_page_index": True, "row_group_size": 7},
    {"compression": "brotli", "data_page_size": 2000},
]


@pytest.mark.parametrize("options", ENCODINGS, ids=lambda options: "-".join(map(str, options.values())))
@pytest.mark.parametrize("wide", [False, True], ids=["typed", "int64"])
def test_parquet_as_pyarrow_encodes_it(parquet, tmp_path, options, wide):
    import pyarrow as pa
    import pyarrow.parquet as pq

    ds = wr.Dataset(parquet)
    table = pa.table(ds)
    if wide:
        # As pixels are where types are inferred.
        table = pa.table({"ome_image": pa.array(table["ome_image"].to_pylist())})
    path, options = tmp_path / "images.parquet", dict(options)
    encoding = options.pop("column_encoding", None)
    if encoding:
        names = pq.ParquetFile(parquet_of(table, tmp_path / "names.parquet")).schema
        leaves = [names.column(i).path for i in range(len(names))]
        options["column_encoding"] = {leaf: encoding for leaf in leaves if ".pixels." in leaf}
    pq.write_table(table, path, **options)
    group = pq.ParquetFile(path).metadata.row_group(0)
    pixels = [group.column(i) for i in range(group.num_columns) if ".chunks.list.element.pixels." in
              group.column(i).path_in_schema]  # fmt: skip
    assert not encoding or all(encoding in column.encodings for column in pixels), pixels
    check_pixels(wr.Dataset(path), ds)


@pytest.mark.parametrize("version", ["V1", "V2"])
@pytest.mark.parametrize("codec", ["uncompressed", "zstd", "snappy"])
def test_parquet_as_duckdb_encodes_it(parquet, tmp_path, version, codec):
    import duckdb
    import pyarrow as pa

    ds = wr.Dataset(parquet)
    path, table = tmp_path / "images.parquet", pa.table(ds)
    with duckdb.connect() as connection:
        connection.register("images", table)
        connection.execute(
            f"COPY images TO '{path}' (FORMAT parquet, COMPRESSION {codec}, PARQUET_VERSION {version})"
        )
    check_pixels(wr.Dataset(path), ds)


def parquet_of(table, path):
    """The table as a file of pyarrow's defaults."""
    import pyarrow.parquet as pq

    pq.write_table(table, path)
    return path


def check_pixels(found, want):
    """All images of two datasets are the same, one by one and in batches."""
    assert len(found) == len(want)
    for row in range(len(want)):
        assert np.array_equal(found[row], want[row]), row
    loaders = [wr.DataLoader(ds, 16, shuffle=True, seed=3, scale=None, num_workers=1) for ds in (found, want)]
    for ours, theirs in zip(*loaders, strict=True):
        assert np.array_equal(ours, theirs)


def place(ramp, length):
    """First index and length along an axis of what a ramp of that axis, resized to `length`, shows."""
    # Far from the ends, a resized ramp is a ramp.
    first, last = length // 4, length - 1 - length // 4
    step = (ramp[last] - ramp[first]) / (last - first)
    size = round(float(step) * length)
    return round(float(ramp[first]) + 0.5 - (first + 0.5) * size / length), size


def test_random_resized_crops_are_resized_as_torchvision_does(tmp_path):
    """Two channels of the image say where the crop is."""
    import tifffile
    import torch
    from torchvision.transforms.v2 import functional

    height, width, size = 200, 160, [32, 40]
    y, x = np.mgrid[:height, :width].astype(np.float32)
    noise = np.random.default_rng(5).integers(0, 256, (height, width)).astype(np.float32)
    image = np.stack([noise, y, x])
    tifffile.imwrite(tmp_path / "a.ome.tif", image, photometric="minisblack", metadata={"axes": "CYX"})
    crops = next(iter(wr.DataLoader(tmp_path, 24, rows=[0] * 24, random_resized_crop=size, scale=None, seed=2)))
    places = set()
    for crop in crops:
        top, rows = place(crop[1][:, size[1] // 2], size[0])
        left, columns = place(crop[2][size[0] // 2], size[1])
        want = functional.resized_crop(
            torch.from_numpy(image), top, left, rows, columns, size, antialias=True
        ).numpy()
        assert np.abs(crop - want).max() <= 1
        places.add((top, left, rows, columns))
    assert len(places) > 20


def test_errors_of_a_stream_name_file_and_row(tmp_path, cells):
    import shutil

    folder = tmp_path / "tiff"
    shutil.copytree(cells["tiff"], folder)
    damaged = sorted(folder.iterdir())[7]
    damaged.write_bytes(damaged.read_bytes()[:-500])
    # A file that is cut short is seen before the stream begins.
    with pytest.raises((OSError, pa.ArrowException, wr.CorruptImageError)) as error:
        pa.RecordBatchReader.from_stream(wr.Dataset(folder)).read_all()
    assert damaged.name in str(error.value) and "row 7" in str(error.value)
