"""Files that say how their pages form an image, and files that somebody writes to meanwhile, beside tifffile."""

import numpy as np
import pytest
import tifffile
import wellread as wr


@pytest.fixture
def planes():
    """Twelve planes, told apart by their values."""
    return np.arange(12 * 20 * 24, dtype=np.uint16).reshape(12, 20, 24)


@pytest.mark.parametrize("order", ["czt", "ctz", "zct", "ztc", "tcz", "tzc", "default"])
def test_planes_of_imagej_lie_in_its_order(order, planes, tmp_path):
    text = f"ImageJ=1.53t\nimages=12\nchannels=3\nslices=2\nframes=2\nhyperstack=true\norder={order}\n"
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        for i, plane in enumerate(planes):
            file.write(plane, description=text if i == 0 else None, metadata=None, contiguous=False)
    series = tifffile.TiffFile(tmp_path / "a.tif").series[0]
    theirs = np.transpose(series.asarray(), [series.axes.index(axis) for axis in "TCZYX"])
    np.testing.assert_array_equal(wr.Dataset(tmp_path / "a.tif")[0], theirs)


@pytest.mark.parametrize("byteorder", "<>")
def test_labels_of_imagej_that_tell_channels_are_their_names(byteorder, planes, tmp_path):
    """A stack of two channels, three slices and two frames. ImageJ shows its labels, and channels had no names."""
    stack = planes.reshape(2, 3, 2, 20, 24)

    def names(labels, image=stack, axes="TZCYX"):
        metadata = {"axes": axes, "Labels": labels, "Info": "a stack"}
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.tif"
        tifffile.imwrite(path, image, imagej=True, byteorder=byteorder, metadata=metadata)
        assert "Labels" in tifffile.TiffFile(path).imagej_metadata
        ds = wr.Dataset(path)
        if axes == "TZCYX":
            np.testing.assert_array_equal(ds[0], np.moveaxis(image, 2, 1))
        return [channel["name"] for channel in ds.metadata(0)["channels"]]

    assert names(["DAPI", "α-GFP"] * 6) == ["DAPI", "α-GFP"]
    assert names(["DAPI\nBitsPerPixel: 12", "GFP"] * 6) == ["DAPI", "GFP"]
    assert names(["DAPI", "GFP"]) == ["DAPI", "GFP"]
    assert names(["DAPI", "GFP"], stack[0, 0], "CYX") == ["DAPI", "GFP"]
    # Labels of slices, of the file, and of one channel alone tell no channels.
    unnamed = names(["DAPI", "GFP"] * 5 + ["DAPI", "RFP"])
    assert "".join(unnamed) == ""
    assert names([f"slice {number}" for number in range(12)]) == unnamed
    assert names(["plate.tif"] * 12) == unnamed
    assert names(["DAPI"]) == unnamed
    assert "".join(names(["z = 1", "z = 2", "z = 3"], stack[0, :, 0], "ZYX")) == ""


def test_levels_of_a_pyramid_are_no_images(tmp_path):
    whole = np.random.default_rng(3).integers(0, 4096, (256, 256), dtype=np.uint16)
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(whole, tile=(64, 64))
        file.write(whole[::2, ::2], tile=(64, 64), subfiletype=1)
        file.write(whole[::4, ::4], tile=(64, 64), subfiletype=1)
        file.write(whole[::-1], tile=(64, 64))
    ds = wr.Dataset(tmp_path / "a.tif")
    assert len(ds) == 2
    np.testing.assert_array_equal(ds[0].squeeze(), whole)
    np.testing.assert_array_equal(ds[1].squeeze(), whole[::-1])


def test_axes_that_end_otherwise_are_refused(tmp_path):
    image = np.zeros((20, 30, 4), np.uint16)
    for axes in ("YXC", "YXZ"):
        tifffile.imwrite(tmp_path / "a.tif", image, metadata={"axes": axes}, photometric="minisblack")
        with pytest.raises(wr.Error, match=f"its axes are {axes}"):
            _ = wr.Dataset(tmp_path / "a.tif")[0]
    tifffile.imwrite(tmp_path / "rgb.tif", image[..., :3], metadata={"axes": "YXS"}, photometric="rgb")
    assert wr.Dataset(tmp_path / "rgb.tif")[0].shape == (3, 20, 30)


def test_a_file_that_is_written_to_is_an_error(planes, tmp_path):
    for i in range(3):
        tifffile.imwrite(tmp_path / f"a{i}.tif", planes[i])
    ds = wr.Dataset(tmp_path)
    np.testing.assert_array_equal(ds[1].squeeze(), planes[1])
    # The same name and shape, and other bytes at the places of the old ones.
    tifffile.imwrite(tmp_path / "a1.tif", planes[5], description="x" * 501)
    np.testing.assert_array_equal(ds[0].squeeze(), planes[0])
    with pytest.raises(wr.Error, match=r"a1\.tif.*was written to after it was opened"):
        _ = ds[1]
    with pytest.raises(wr.Error, match="was written to after it was opened"):
        list(wr.DataLoader(ds, 3))
    np.testing.assert_array_equal(wr.Dataset(tmp_path)[1].squeeze(), planes[5])


def test_a_file_that_is_replaced_is_what_it_was(planes, tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", planes[0])
    ds = wr.Dataset(tmp_path)
    np.testing.assert_array_equal(ds[0].squeeze(), planes[0])
    tifffile.imwrite(tmp_path / "new", planes[1], description="x" * 501)
    (tmp_path / "new").rename(tmp_path / "a.tif")
    np.testing.assert_array_equal(ds[0].squeeze(), planes[0])


@pytest.mark.parametrize("version", [2, 3])
def test_a_filter_that_rounds_otherwise_is_refused(version, tmp_path):
    zarr = pytest.importorskip("zarr")
    if version == 2:
        import numcodecs

        filters = [numcodecs.FixedScaleOffset(offset=32768, scale=1, dtype="<u2", astype="<i2")]
    else:
        from zarr.codecs import numcodecs

        filters = [numcodecs.FixedScaleOffset(offset=32768, scale=1, dtype="<u2", astype="<i2")]
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=version)
    array = group.create_array(
        "0", shape=(1, 1, 1, 64, 64), chunks=(1, 1, 1, 64, 64), dtype="uint16", filters=filters
    )
    array[:] = np.arange(4096, dtype=np.uint16).reshape(array.shape) * 16
    axes = [{"name": n, "type": t} for n, t in zip("tczyx", ["time", "channel", *["space"] * 3], strict=True)]
    scale = [{"type": "scale", "scale": [1.0] * 5}]
    scales = [{"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": scale}]}]
    if version == 2:
        group.attrs["multiscales"] = [{**scales[0], "version": "0.4"}]
    else:
        group.attrs["ome"] = {"version": "0.5", "multiscales": scales}
    with pytest.raises(wr.Error, match="fixedscaleoffset is not supported"):
        _ = wr.Dataset(tmp_path / "a.zarr")[0]
