"""Pictures as Pillow reads them: JPEG in four inks, pixel by pixel."""

import io
import pickle
import warnings

import numpy as np
import pytest
import wellread
from PIL import Image
from wellread.bench import DEVIATION, MEAN, create_dataloader

# Two decoders' inverse cosine transforms may round differently, and so may what follows from them.
ROUNDING = 3


def inks(height, width):
    """Smooth inks, all values of black, as (height, width, 4)."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [128 + 120 * np.sin(x / 9 + y / 13 + phase) for phase in (0, 1, 2)]
    return np.stack([*waves, 255 * x / (width - 1)], axis=-1).astype(np.uint8)


def of_pillow(pixels, **options):
    file = io.BytesIO()
    Image.fromarray(pixels, "CMYK").save(file, "JPEG", quality=95, **options)
    return file.getvalue()


def of_imagecodecs(pixels, colors, subsampling="444"):
    codecs = pytest.importorskip("imagecodecs")
    return codecs.jpeg8_encode(pixels, level=95, colorspace="CMYK", outcolorspace=colors, subsampling=subsampling)


FILES = {
    "cmyk": lambda pixels: of_pillow(pixels),
    "cmyk-progressive": lambda pixels: of_pillow(pixels, progressive=True),
    "cmyk-not-inverted": lambda pixels: of_imagecodecs(pixels, "CMYK"),
    "ycck": lambda pixels: of_imagecodecs(pixels, "YCCK"),
}


@pytest.mark.parametrize("name", FILES)
def test_four_inks_have_the_colours_of_pillow(name, tmp_path):
    pixels = inks(70, 90)
    (tmp_path / "a.jpg").write_bytes(FILES[name](pixels))
    with Image.open(tmp_path / "a.jpg") as image:
        assert image.mode == "CMYK"
        expected = np.asarray(image.convert("RGB")).astype(int)
    found = np.asarray(wellread.Dataset(tmp_path)[0]).transpose(1, 2, 0).astype(int)
    assert found.shape == expected.shape == (70, 90, 3)
    off = np.abs(found - expected)
    # YCCK goes through one matrix more.
    assert off.max() <= ROUNDING + (name == "ycck") and off.mean() < 0.3, (off.max(), off.mean())
    # They are pictures of something.
    assert expected.std() > 30


def test_a_folder_of_inks_colours_and_grey_feeds_a_model(tmp_path):
    pixels = inks(40, 40)
    (tmp_path / "inks.jpg").write_bytes(FILES["cmyk"](pixels))
    Image.fromarray(pixels[..., :3], "RGB").save(tmp_path / "colours.jpg", quality=95)
    set_ = wellread.Dataset(tmp_path)
    assert [set_[row].shape for row in range(2)] == [(3, 40, 40)] * 2


def test_grey_pictures_lie_among_coloured_ones(tmp_path):
    """As in ImageNet. The first one is grey, and the others stay coloured."""
    for name, mode, color in (
        ("a", "L", 100),
        ("b", "RGB", (10, 20, 30)),
        ("c", "LA", (60, 9)),
        ("d", "RGBA", (1, 2, 3, 9)),
    ):
        Image.new(mode, (9, 8), color).save(tmp_path / f"{name}.png")
    with warnings.catch_warnings():
        # Channels of grey and coloured pictures are the same.
        warnings.simplefilter("error")
        loader = create_dataloader(tmp_path, 4, (3, 8, 8), as_="numpy")
    colors = np.array([(100, 100, 100), (10, 20, 30), (60, 60, 60), (1, 2, 3)])
    wanted = (colors / 255 - np.array(MEAN)) / np.array(DEVIATION)
    for found in (loader, pickle.loads(pickle.dumps(loader))):
        (batch,) = found
        assert batch.shape == (4, 3, 8, 8)
        assert batch[:, :, 4, 4] == pytest.approx(wanted, abs=1e-5)
    (red,) = create_dataloader(tmp_path, 4, (1, 8, 8), as_="numpy")
    assert red[:, 0, 4, 4] * 255 == pytest.approx(colors[:, 0], abs=1e-3)


def test_a_first_picture_that_is_none_is_skipped_where_that_is_asked_for(tmp_path):
    (tmp_path / "0.png").write_bytes(b"no picture")
    for name in ("1", "2"):
        Image.new("RGB", (8, 8), (10, 20, 30)).save(tmp_path / f"{name}.png")
    with pytest.raises(wellread.Error, match=r"0\.png"):
        create_dataloader(tmp_path, 3, (3, 8, 8))
    loader = create_dataloader(tmp_path, 3, (3, 8, 8), as_="numpy", on_error="skip")
    assert sum(len(batch) for batch in loader) == 2
    assert [row for row, _ in loader.skipped] == [0]


def test_splits_and_classes_are_columns(tmp_path):
    folders = ("train.X1/n02", "train.X2/n01", "val.X/n01")
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
        Image.new("RGB", (8, 8), (10, 20, 30)).save(tmp_path / folder / "a.png")
    (tmp_path / "Labels.json").write_text('{"n01": "goldfish, Carassius auratus", "n02": "hen"}')
    whole = wellread.Dataset(tmp_path)
    assert [whole.name(row) for row in range(3)] == ["train/n01/a", "train/n02/a", "val/n01/a"]
    val = wellread.Dataset(tmp_path, table="val")
    assert (len(val), val.name(0)) == (1, "val/n01/a")
    loader = wellread.DataLoader(wellread.Dataset(tmp_path, table="train"), batch_size=2, as_="numpy", labels="label")
    (batch,) = list(loader)
    assert batch[0].shape == (2, 3, 8, 8) and list(np.asarray(batch[1])) == [0, 1]
    (images,) = list(create_dataloader(tmp_path, 4, (3, 8, 8), as_="numpy", split="val"))
    # What normalising makes of (10, 20, 30).
    expected = [(value / 255 - mean) / off for value, mean, off in zip((10, 20, 30), MEAN, DEVIATION, strict=True)]
    assert images.shape == (1, 3, 8, 8) and images[0, :, 4, 4] == pytest.approx(expected, abs=1e-5)
    (labelled,) = list(create_dataloader(tmp_path, 4, (3, 8, 8), as_="numpy", split="val", labels="label"))
    assert np.array_equal(labelled[0], images) and list(labelled[1]) == [0]
    with pytest.raises(wellread.ChoiceError, match="train, val"):
        create_dataloader(tmp_path, split="test")
