"""Pixels of int64, uint64 and float16, as scikit-image gives labels and others keep intensities: beside NumPy."""

import numpy as np
import pytest
import tifffile
import wellread as wr

SHAPE = (2, 40, 56)
READ_AS = {"int64": np.int32, "uint64": np.uint32, "float16": np.float32}
BESIDE_TIFF = {
    "plain": {},
    "strips": dict(rowsperstrip=7),
    "tiles": dict(tile=(16, 32)),
    "deflate": dict(compression="zlib", tile=(16, 32)),
    "zstd": dict(compression="zstd", rowsperstrip=7),
    "lzw": dict(compression="lzw", rowsperstrip=40),
    "differences": dict(compression="zlib", predictor=2),
    "sorted bytes": dict(compression="zlib", predictor=3),
    "channels": dict(photometric="rgb", planarconfig="contig"),
}


def pixels_of(dtype, shape=SHAPE):
    """Numbers over all of the range that the type is read in."""
    random = np.random.default_rng(17)
    if dtype == "float16":
        pixels = random.normal(0, 1000, shape).astype(np.float16)
        pixels[0, 0, :6] = [np.inf, -np.inf, np.nan, 65504, 2**-24, -0.0]
        return pixels
    limits = np.iinfo(READ_AS[dtype])
    pixels = random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    pixels[:, :9, :30] = 7
    pixels[0, 0, :2] = limits.min, limits.max
    return pixels


def check(path, pixels):
    """The whole image, a crop of it, and what the description says."""
    ds = wr.Dataset(path)
    expected = pixels.astype(READ_AS[pixels.dtype.newbyteorder("=").name])
    whole = ds[0].reshape(pixels.shape)
    assert whole.dtype == expected.dtype
    np.testing.assert_array_equal(whole, expected)
    (crop,) = wr.DataLoader(ds, 1, dtype="stored", crop=(20, 16))
    np.testing.assert_array_equal(np.asarray(crop).reshape(2, 20, 16), expected[:, 10:30, 20:36])
    (crop,) = wr.DataLoader(ds, 1, scale=None, channels=[1])
    np.testing.assert_array_equal(np.asarray(crop).reshape(40, 56), expected[1].astype(np.float32))


@pytest.mark.parametrize("byteorder", "<>")
@pytest.mark.parametrize("how", BESIDE_TIFF)
@pytest.mark.parametrize("dtype", READ_AS)
def test_tiff_is_read_as_tifffile_reads_it(dtype, how, byteorder, tmp_path):
    choices = BESIDE_TIFF[how]
    if {2: "float16"}.get(choices.get("predictor")) == dtype or how == "sorted bytes" and dtype != "float16":
        pytest.skip("tifffile has this predictor for other types only")
    pixels = pixels_of(dtype)
    if how == "channels":
        pixels = np.concatenate([pixels, pixels[:1]])
        tifffile.imwrite(tmp_path / "a.tif", np.moveaxis(pixels, 0, -1), byteorder=byteorder, **choices)
        whole = wr.Dataset(tmp_path / "a.tif")[0].reshape(pixels.shape)
        np.testing.assert_array_equal(whole, pixels.astype(READ_AS[dtype]))
        return
    kept = dict(photometric="minisblack", byteorder=byteorder, metadata={"axes": "CYX"})
    tifffile.imwrite(tmp_path / "a.tif", pixels, **kept, **choices)
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "a.tif"), pixels)
    check(tmp_path / "a.tif", pixels)


def zarr_image(path, version, pixels, axes="cyx", fill=0, **choices):
    """An OME-Zarr image of these pixels; chunks that hold nothing but the fill value are not written."""
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(path, mode="w", zarr_format=version)
    choices = {"chunks": (1, 16, 24)[-pixels.ndim :]} | choices
    array = group.create_array("0", shape=pixels.shape, dtype=pixels.dtype, fill_value=fill, **choices)
    array[:] = pixels
    kinds = {"c": "channel", "y": "space", "x": "space"}
    scale = [{"type": "scale", "scale": [1.0] * pixels.ndim}]
    levels = [{"path": "0", "coordinateTransformations": scale}]
    scales = [{"axes": [{"name": name, "type": kinds[name]} for name in axes], "datasets": levels}]
    if version == 2:
        group.attrs["multiscales"] = [{**scales[0], "version": "0.4"}]
    else:
        group.attrs["ome"] = {"version": "0.5", "multiscales": scales}
    return array


def zarr_choices(version, how):
    if how == "none":
        return dict(compressors=None)
    if how == "shards":
        return dict(shards=(2, 48, 72))
    if how == "order F" and version == 2:
        return dict(order="F")
    if how == "order F":
        return dict(filters=pytest.importorskip("zarr.codecs").TransposeCodec(order=(2, 1, 0)))
    if version == 2:
        numcodecs = pytest.importorskip("numcodecs")
        codec = {
            "zstd": numcodecs.Zstd(level=1),
            "blosc": numcodecs.Blosc(cname="lz4", shuffle=numcodecs.Blosc.BITSHUFFLE),
            "zlib": numcodecs.Zlib(),
        }
        return dict(compressors=codec[how])
    codecs = pytest.importorskip("zarr.codecs")
    codec = {"zstd": codecs.ZstdCodec(), "blosc": codecs.BloscCodec(cname="lz4"), "zlib": codecs.GzipCodec()}
    # Two compressors, which the crate zarrs undoes.
    return dict(compressors=[codec["blosc"], codec["zlib"]] if how == "two" else codec[how])


@pytest.mark.parametrize("how", ["none", "zstd", "blosc", "zlib", "shards", "order F", "two"])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("dtype", READ_AS)
def test_ome_zarr_is_read_as_zarr_reads_it(dtype, version, how, tmp_path):
    if version == 2 and how in ("shards", "two"):
        pytest.skip("not in this version of Zarr")
    pixels = pixels_of(dtype)
    # A chunk of the fill value.
    pixels[1, 16:32, 24:48] = 3
    choices = zarr_choices(version, how)
    array = zarr_image(tmp_path / "a.zarr", version, pixels, fill=3, **choices)
    np.testing.assert_array_equal(array[:], pixels)
    check(tmp_path / "a.zarr", pixels)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("dtype", READ_AS)
def test_big_endian_chunks_are_read(dtype, version, tmp_path):
    pixels = pixels_of(dtype)
    if version == 2:
        pixels, choices = pixels.astype(np.dtype(dtype).newbyteorder(">")), {}
    else:
        choices = dict(serializer=pytest.importorskip("zarr.codecs").BytesCodec(endian="big"))
    zarr_image(tmp_path / "a.zarr", version, pixels, **choices)
    check(tmp_path / "a.zarr", pixels)


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """Images, and their labels as uint16, and as int64 and uint64 in TIFF and OME-Zarr."""
    folder = tmp_path_factory.mktemp("cells")
    random = np.random.default_rng(23)
    kinds = [f"{dtype}-{kind}" for dtype in ("int64", "uint64") for kind in ("tiff", "zarr2", "zarr3")]
    for part in ("images", "labels", *kinds):
        (folder / part).mkdir()
    for i in range(3):
        image = random.integers(0, 4096, SHAPE, dtype=np.uint16)
        tifffile.imwrite(folder / "images" / f"s{i}.tif", image, photometric="minisblack")
        labels = np.zeros(SHAPE[1:], np.uint16)
        for number in range(1, 4):
            y, x = 10 * number, 13 * number + i
            labels[y : y + 7, x : x + 9] = 10 * number + i
        tifffile.imwrite(folder / "labels" / f"s{i}_labels.tif", labels)
        for kind in kinds:
            dtype, form = kind.split("-")
            wide = labels.astype(dtype)
            if form == "tiff":
                tifffile.imwrite(folder / kind / f"s{i}_labels.tif", wide, compression="zlib")
            else:
                zarr_image(folder / kind / f"s{i}_labels.zarr", int(form[-1]), wide, axes="yx")
    return folder, kinds


def test_wide_labels_cut_the_same_cells(cells, wellread):
    folder, kinds = cells
    images = wr.Dataset(folder / "images")
    for mask in ("none", "zero", "channel"):
        choices = dict(size=(15, 15), edge="pad") | ({} if mask == "none" else {"mask": mask})
        wanted = images.cells(folder / "labels", **choices)
        assert len(wanted) == 9
        for kind in kinds:
            found = images.cells(folder / kind, **choices)
            assert list(found.column("ObjectNumber")) == list(wanted.column("ObjectNumber"))
            np.testing.assert_array_equal(found[:], wanted[:])
    how = ["--cells-size", "15x15", "--cells-edge", "pad", "--cells-mask", "zero"]
    sums = {
        kind: wellread("checksum", folder / "images", "--cells", folder / kind, *how) for kind in ("labels", *kinds)
    }
    pixels = {kind: [one["sha256"] for one in found] for kind, found in sums.items()}
    assert all(found == pixels["labels"] for found in pixels.values())


def test_wide_labels_are_targets(cells):
    folder, kinds = cells
    choices = dict(batch_size=3, scale=None, random_crop=(24, 24), flip=True, turns="half", seed=4)
    ((_, wanted),) = wr.DataLoader(folder / "images", targets=folder / "labels", **choices)
    assert wanted.max() > 30
    for kind in kinds:
        ((_, found),) = wr.DataLoader(folder / "images", targets=folder / kind, **choices)
        assert found.dtype == READ_AS[kind.split("-")[0]]
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("form", ["tiff", "zarr2", "zarr3"])
@pytest.mark.parametrize(("dtype", "value"), [("int64", 2**31), ("int64", -(2**40)), ("uint64", 2**64 - 1)])
def test_a_label_that_32_bits_do_not_hold_is_named(dtype, value, form, tmp_path, wellread):
    labels = np.ones(SHAPE[1:], dtype)
    labels[30, 50] = value
    path = tmp_path / ("labels.tif" if form == "tiff" else "labels.zarr")
    if form == "tiff":
        tifffile.imwrite(path, labels)
    else:
        zarr_image(path, int(form[-1]), labels, axes="yx")
    ds = wr.Dataset(path)
    narrow = np.dtype(READ_AS[dtype]).name
    with pytest.raises(wr.UnsupportedImageError, match=f"labels.*row 0.* {value} does not fit {narrow}.*{dtype}"):
        _ = ds[0]
    # A crop without it is read.
    (crop,) = wr.DataLoader(ds, 1, dtype="stored", crop=(20, 16))
    assert (np.asarray(crop) == 1).all()
    assert wellread("info", path)["variant"].endswith(f"pixels stored as {dtype}")


def test_labels_of_scikit_image_are_read(tmp_path):
    measure = pytest.importorskip("skimage.measure")
    labels = measure.label(np.random.default_rng(5).random(SHAPE[1:]) < 0.3).astype(np.int64)
    tifffile.imwrite(tmp_path / "labels.tif", labels)
    np.testing.assert_array_equal(wr.Dataset(tmp_path / "labels.tif")[0].squeeze(), labels)
