"""Targets and views from Python: against NumPy, other loaders, and what programs of torch and MONAI expect.

Long because tests share the pairs of images and masks that a fixture of this file makes once.
"""

import pickle
import shutil
import warnings

import numpy as np
import pytest
import tifffile
import wellread as wr
from wellread import _options

SHAPE = (2, 48, 56)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Twelve images of noise in which objects are bright, and masks of the objects in a folder beside them."""
    folder = tmp_path_factory.mktemp("pairs")
    random = np.random.default_rng(295)
    for part in ("images", "masks", "stains"):
        (folder / part).mkdir()
    for i in range(12):
        mask = np.zeros(SHAPE[1:], np.uint8)
        for number in range(1, 5):
            y, x = 9 * number + i % 4, 11 * number - i % 5
            mask[y : y + 6, x : x + 8] = number
        image = random.integers(0, 1000, SHAPE, dtype=np.uint16)
        image[:, mask > 0] += 30000
        kept = dict(photometric="minisblack", planarconfig="separate", tile=(32, 32), compression="zlib")
        tifffile.imwrite(folder / "images" / f"site{i:02}.tif", image, **kept)
        tifffile.imwrite(folder / "masks" / f"site{i:02}_mask.tif", mask)
        tifffile.imwrite(folder / "stains" / f"site{i:02}.tif", image[0].astype(np.float32) * 2 + 1)
    return folder


def loader(pairs, **choices):
    choices = {"batch_size": 4, "shuffle": True, "seed": 3, "targets": pairs / "masks"} | choices
    return wr.DataLoader(pairs / "images", **choices)


@pytest.mark.parametrize("workers", [0, 2])
def test_masks_are_cut_as_their_images(pairs, workers):
    random = dict(random_crop=(20, 28), flip=True, turns="half")
    with loader(pairs, num_workers=workers, scale=None, brightness=0.1, **random) as load:
        assert load.pairing == "names" and len(load.targets) == 12
        rows = load.rows(0)
        seen = 0
        for pixels, masks in load:
            assert pixels.shape == (4, 2, 20, 28) and masks.shape == (4, 1, 20, 28)
            assert pixels.dtype == np.float32 and masks.dtype == np.uint8
            assert np.array_equal(pixels[:, 0] > 10000, masks[:, 0] > 0)
            assert set(np.unique(masks)) <= {0, 1, 2, 3, 4}
            seen += int((masks > 0).any(axis=(1, 2, 3)).sum())
        assert seen > 0 and sorted(rows) == list(range(12))


def test_labels_are_never_mixed(pairs):
    for pixels, masks in loader(pairs, random_resized_crop=33, rotate=40, flip=True):
        assert pixels.shape == (4, 2, 33, 33) and masks.shape == (4, 1, 33, 33)
        assert set(np.unique(masks)) <= {0, 1, 2, 3, 4}
    for _, masks in loader(pairs, resize=96, target_dtype="float32"):
        assert masks.dtype == np.float32 and set(np.unique(masks)) == {0, 1, 2, 3, 4}


def test_other_stains_are_images(pairs):
    choices = dict(shuffle=False, targets=pairs / "stains", channels=[0], scale=None, random_crop=17, rotate=15)
    for pixels, stains in loader(pairs, **choices):
        # The same mixing of pixels, of twice the values.
        assert stains.dtype == np.float32
        np.testing.assert_allclose(stains, pixels * 2 + 1, rtol=1e-5, atol=0.1)
    scaled = loader(pairs, targets=pairs / "images", target_kind="image", target_channels=[1], scale=0.5)
    for pixels, stains in scaled:
        np.testing.assert_allclose(stains[:, 0] * 65535, pixels[:, 1] * 2, rtol=1e-5)


def test_stains_as_stored_are_not_scaled(pairs):
    stains = dict(shuffle=False, targets=pairs / "images", target_kind="image", dtype="stored")
    stored = wr.Dataset(pairs / "images")[:4]
    for choices in ({}, {"target_dtype": "stored"}, {"target_scale": None}):
        images, targets = next(iter(loader(pairs, **stains, **choices)))
        assert images.dtype == targets.dtype == np.uint16
        assert np.array_equal(images, stored) and np.array_equal(targets, stored)
    images, targets = next(iter(loader(pairs, **stains, target_dtype="float32")))
    assert images.dtype == np.uint16 and targets.dtype == np.float32
    np.testing.assert_allclose(targets, stored / 65535, rtol=1e-5)
    with pytest.raises(ValueError, match="a scale is asked for"):
        loader(pairs, **stains, target_scale="unit")


def test_tuples_and_dictionaries(pairs):
    labels = np.arange(12)
    order = dict(shuffle=False, labels=labels, indices=True)
    pixels, masks, numbers, rows = next(iter(loader(pairs, **order)))
    assert list(numbers) == list(rows) == [0, 1, 2, 3]
    batch = next(iter(loader(pairs, keys=("image", "mask", "label", "row"), **order)))
    assert list(batch) == ["image", "mask", "label", "row"]
    assert np.array_equal(batch["image"], pixels) and np.array_equal(batch["mask"], masks)
    named = next(iter(loader(pairs, shuffle=False, as_dict=True)))
    assert list(named) == ["pixels", "targets"] and np.array_equal(named["targets"], masks)
    plain = next(iter(loader(pairs, shuffle=False, as_="batch")))
    assert [part.dtype for part in plain] == ["float32", "uint8"] and plain[1].rows == [0, 1, 2, 3]
    assert plain[1].address % 64 == 0 and np.array_equal(np.asarray(plain[1]), masks)
    assert (plain[1].epoch, plain[1].index) == (0, 0)


def test_transforms_are_given_both(pairs):
    def cut(sample):
        image, mask = sample
        return image[:, :10], mask[:, :10]

    pixels, masks = next(iter(loader(pairs, transform=cut)))
    assert pixels.shape == (4, 2, 10, 56) and masks.shape == (4, 1, 10, 56)
    batch = next(iter(loader(pairs, keys=("image", "mask"), transform=lambda d: d | {"mask": d["mask"] + 1})))
    assert set(batch) == {"image", "mask"} and batch["mask"].min() == 1
    both = next(iter(loader(pairs, batch_transform=lambda batch: (batch[0] * 2, batch[1]))))
    assert len(both) == 2
    labelled = dict(labels=range(12), shuffle=False)
    pixels, masks, labels = next(iter(loader(pairs, batch_transform=lambda batch: batch[::-1], **labelled)))[::-1]
    assert pixels.shape == (4, 2, 48, 56) and masks.shape == (4, 1, 48, 56) and labels.tolist() == [0, 1, 2, 3]
    named = next(iter(loader(pairs, as_dict=True, batch_transform=lambda batch: list(batch), **labelled)))
    assert named == ["pixels", "targets", "labels"]
    assert next(iter(loader(pairs, batch_transform=lambda batch: batch[0]))).shape == (4, 2, 48, 56)
    with pytest.raises(TypeError, match="must return"):
        next(iter(loader(pairs, transform=lambda sample: sample[0])))


def test_views_are_tuples_and_dictionaries_of_arrays(pairs):
    choices = dict(random_crop=16, flip=True, targets=None)
    two = list(loader(pairs, views=2, **choices))
    alone = list(loader(pairs, **choices))
    for (first, second), only in zip(two, alone, strict=True):
        assert np.array_equal(first, only) and first.shape == second.shape
        assert not np.array_equal(first, second)
    dino = {
        "global": (2, {"random_resized_crop": 32, "scale_range": (0.4, 1.0), "flip": 0.5}),
        "local": (8, {"random_resized_crop": (12, 12), "scale_range": (0.05, 0.4), "brightness": 0.2}),
        "all": {"resize": 24},
    }
    batch = next(iter(loader(pairs, targets=None, views=dino, num_workers=2)))
    assert [view.shape for view in batch["global"]] == [(4, 2, 32, 32)] * 2
    assert [view.shape for view in batch["local"]] == [(4, 2, 12, 12)] * 8
    assert batch["all"].shape == (4, 2, 24, 24)
    assert not np.array_equal(batch["local"][0], batch["local"][7])
    several = next(iter(loader(pairs, targets=None, views=[{"crop": 8}, {"crop": (8, 10)}], labels=range(12))))
    assert [view.shape for view in several[0]] == [(4, 2, 8, 8), (4, 2, 8, 10)] and len(several[1]) == 4
    (one,), masks = next(iter(loader(pairs, views=1)))
    assert one.shape == (4, *SHAPE) and masks[0].shape == (4, 1, *SHAPE[1:])


def test_a_recipe_takes_the_crop_of_the_loader_away(pairs):
    """None replaces the loader's choice, as every other value does."""
    whole = next(iter(loader(pairs, targets=None, shuffle=False)))
    for crop in ({"random_crop": 16}, {"crop": 16}, {"random_resized_crop": 16}, {"crop_square": 1 / 3}):
        recipes = [{}, dict.fromkeys(crop), {"flip": 0.0, "gaussian_noise": 0.0}]
        first, second, third = next(iter(loader(pairs, targets=None, shuffle=False, views=recipes, **crop)))
        assert first.shape == third.shape == (4, 2, 16, 16)
        assert np.array_equal(second, whole)
    # Of a crop that the loader does not have, nothing is taken away; a resize of the recipe's own stays.
    other, small = next(
        iter(
            loader(
                pairs,
                targets=None,
                random_resized_crop=16,
                views=[{"crop": None}, {"random_resized_crop": None, "resize": 24}],
            )
        )
    )
    assert other.shape == (4, 2, 16, 16) and small.shape == (4, 2, 24, 24)


def test_each_view_has_its_masks(pairs):
    views = {"global": (2, {"random_crop": 30}), "local": {"random_crop": 10, "flip": True}}
    for pixels, masks in loader(pairs, views=views, scale=None):
        for name in ("global", "local"):
            images, targets = ([part[name]] if name == "local" else part[name] for part in (pixels, masks))
            for image, target in zip(images, targets, strict=True):
                assert np.array_equal(image[:, 0] > 10000, target[:, 0] > 0)


def test_memory_is_shared_and_given_back(pairs):
    batches = iter(loader(pairs, num_workers=0, shuffle=False, scale=None))
    pixels, masks = next(batches)
    kept = masks.copy()
    del pixels
    for other_pixels, other in batches:
        other[:] = 9
        other_pixels[:] = 0
    assert np.array_equal(masks, kept)


def test_loaders_resume_and_are_pickled(pairs):
    choices = dict(random_crop=20, views=2, num_workers=2, keys=("image", "mask"))
    load = loader(pairs, **choices)
    expected = [batch["mask"][1].copy() for batch in load]
    load.set_epoch(0)
    begun = iter(load)
    next(begun)
    state = load.state_dict()
    copied = pickle.loads(pickle.dumps(load))
    assert copied.pairing == "names"
    for again in (copied, loader(pairs, **choices)):
        again.load_state_dict(state)
        rest = [batch["mask"][1] for batch in again]
        assert len(rest) == 2 and all(map(np.array_equal, rest, expected[1:]))


def test_wrong_choices_are_named(pairs, tmp_path):
    (tmp_path / "few").mkdir()
    for i in (0, 2):
        shutil.copy(pairs / "masks" / f"site{i:02}_mask.tif", tmp_path / "few")
    (tmp_path / "small").mkdir()
    for i in range(12):
        tifffile.imwrite(tmp_path / "small" / f"site{i:02}.tif", np.zeros((8, 8), np.uint8))
    for wrong, text in [
        (dict(targets=tmp_path / "few"), "10 of 12 images have no target"),
        (dict(targets=tmp_path / "small"), "48x56"),
        (dict(targets=None, target_kind="labels"), "target_kind is about targets"),
        (dict(target_scale="unit"), "target_scale"),
        (dict(target_kind="mask"), "target_kind"),
        (dict(keys=("image",)), "keys has 1 name, and a batch has 2 parts: pixels, targets"),
        (dict(views=0), "views"),
        (dict(views=65), "65 views"),
        (dict(views=[{"crop": 100}]), "larger than the image"),
        (dict(views=[{"crop": 4, "random_crop": 4}]), "views\\[0\\] has crop and random_crop"),
        (dict(views=[{"scale_range": (0.1, 0.2)}]), "belongs to random_resized_crop"),
        (dict(views=[{"resize_filter": "bilinear"}]), "resize_filter belongs to resize"),
        (dict(views=[{"per_channel": True}]), "per_channel belongs to brightness, contrast and gamma"),
    ]:
        with pytest.raises(ValueError, match=text):
            loader(pairs, **wrong)
    for wrong in (dict(targets=3), dict(views=[3]), dict(views=[{"crpo": 3}]), dict(views="two")):
        with pytest.raises(TypeError):
            loader(pairs, **wrong)
    left = loader(pairs, targets=tmp_path / "few", on_error="skip", shuffle=False)
    assert [len(masks) for _, masks in left] == [2] and len(left.skipped) == 10


@pytest.mark.parametrize("part", ["images", "masks"])
@pytest.mark.parametrize("row", [0, 3])
def test_files_that_cannot_be_opened_are_skipped_on_either_side(tmp_path, part, row):
    """Empty files, files of another kind, and files that end in their directory or in their pixels."""
    for folder in ("images", "masks"):
        (tmp_path / folder).mkdir()
    for number in range(6):
        tifffile.imwrite(tmp_path / "images" / f"s{number}.tif", np.full((20, 20), 10 + number, np.uint16))
        tifffile.imwrite(tmp_path / "masks" / f"s{number}_mask.tif", np.full((20, 20), number, np.uint8))
    name = f"s{row}.tif" if part == "images" else f"s{row}_mask.tif"
    damaged = tmp_path / part / name
    whole = damaged.read_bytes()
    kept = [number for number in range(6) if number != row]
    for data in (b"", b"junk" * 50, whole[:100], whole[:-100]):
        damaged.write_bytes(data)
        choices = dict(batch_size=2, scale=None, targets=tmp_path / "masks", num_workers=0)
        load = wr.DataLoader(tmp_path / "images", on_error="skip", **choices)
        assert load.pairing == "names"
        pixels, masks = (np.concatenate(arrays) for arrays in zip(*load, strict=True))
        assert pixels[:, 0, 0, 0].tolist() == [10 + number for number in kept]
        assert masks[:, 0, 0, 0].tolist() == kept and masks.dtype == np.uint8
        [(skipped, why)] = load.skipped
        assert skipped == row and name in str(why)
        with pytest.raises(wr.CorruptImageError, match=f"{name}: row {row}: "):
            list(wr.DataLoader(tmp_path / "images", **choices))


def test_channels_of_targets_are_those_of_the_first_that_can_be_read(tmp_path):
    about = {"axes": "CYX", "Channel": {"Name": ["DNA", "ER"]}}
    for folder in ("images", "stains"):
        (tmp_path / folder).mkdir()
    for number in range(3):
        stack = np.stack([np.full((20, 20), value, np.float32) for value in (number, 7)])
        image = np.full((20, 20), number, np.uint16)
        tifffile.imwrite(tmp_path / "images" / f"s{number}.tif", image)
        stain = tmp_path / "stains" / f"s{number}.ome.tif"
        tifffile.imwrite(stain, stack, photometric="minisblack", metadata=about)
    (tmp_path / "stains" / "s0.ome.tif").write_bytes(b"")
    choices = dict(batch_size=3, scale=None, targets=tmp_path / "stains", target_channels=["ER"], target_scale=None)
    load = wr.DataLoader(tmp_path / "images", on_error="skip", **choices)
    [(pixels, stains)] = load
    assert pixels[:, 0, 0, 0].tolist() == [1, 2]
    assert stains.shape == (2, 1, 20, 20) and stains.dtype == np.float32 and (stains == 7).all()
    with pytest.raises(wr.CorruptImageError, match="s0.ome.tif: row 0: the file is empty"):
        wr.DataLoader(tmp_path / "images", **choices)


class Rows:
    """A set whose rows fail: which were asked for, it remembers."""

    _path = "set"

    def __init__(self, length, failing, kind):
        self.length, self.failing, self.kind, self.asked = length, failing, kind, []

    def __len__(self):
        return self.length

    def metadata(self, row):
        self.asked.append(row)
        if row in self.failing:
            raise self.kind(f"row {row}")
        return {"channels": [{"name": "DNA"}, {"name": "ER"}]}


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        (wr.CorruptImageError, 16),
        (wr.UnsupportedImageError, 16),
        (wr.MissingError, 16),
        (wr.ChoiceError, 1),
        (wr.Error, 1),
    ],
)
def test_rows_are_tried_after_errors_of_one_image_only(kind, most):
    """Without an answer of a server, each row would wait for its time."""
    for length, failing, asked, is_found in [
        (100, range(100), most, False),
        (5, range(5), min(5, most), False),
        (100, range(3), min(4, most), most > 1),
        (100, range(15), most, most > 1),
        (100, range(16), most, False),
        (100, (), 1, True),
    ]:
        rows = Rows(length, failing, kind)
        if is_found:
            assert _options.channels(["ER", "DNA"], rows, "channels") == [1, 0]
        else:
            with pytest.raises(kind, match="^row 0$"):
                _options.channels(["ER", "DNA"], rows, "channels")
        assert rows.asked == list(range(asked))


def test_wrong_channels_of_targets_are_those_of_the_targets(tmp_path):
    about = {"axes": "CYX", "Channel": {"Name": ["DNA", "ER"]}}
    tifffile.imwrite(tmp_path / "0.ome.tif", np.zeros(SHAPE, np.uint16), photometric="minisblack", metadata=about)
    (tmp_path / "plain").mkdir()
    tifffile.imwrite(tmp_path / "plain" / "0.tif", np.zeros(SHAPE[1:], np.uint8))
    named, plain = wr.Dataset(tmp_path / "0.ome.tif"), wr.Dataset(tmp_path / "plain")
    of = "of the first image of"
    are = f"'GFP', and channels {of} {tmp_path / '0.ome.tif'} are ['DNA', 'ER']"
    have_none = f"'GFP', and channels {of} {tmp_path / 'plain'} have no names: give their numbers"
    for targets, text in [(named, are), (plain, have_none)]:
        with pytest.raises(ValueError) as wrong:
            wr.DataLoader(named, 1, targets=targets, target_kind="image", target_channels=["GFP"])
        assert str(wrong.value) == f"target_channels has {text}"
    with pytest.raises(ValueError) as wrong:
        wr.DataLoader(named, 1, channels=["GFP"])
    assert str(wrong.value) == f"channels has {are}"
    for mixed, error in [(["DNA", 1], TypeError), ([-1], ValueError)]:
        with pytest.raises(error, match="^target_channels"):
            wr.DataLoader(named, 1, targets=named, target_kind="image", target_channels=mixed)


def test_unlike_names_need_a_word(pairs, tmp_path):
    (tmp_path / "unlike").mkdir()
    for i in range(12):
        name = "abcdefghijkl"[i]
        shutil.copy(pairs / "masks" / f"site{i:02}_mask.tif", tmp_path / "unlike" / f"{name}.tif")
    with pytest.raises(ValueError, match='pairing="order"'):
        loader(pairs, targets=tmp_path / "unlike")
    ordered = loader(pairs, targets=tmp_path / "unlike", pairing="order", scale=None)
    assert ordered.pairing == "order"
    for pixels, masks in ordered:
        assert np.array_equal(pixels[:, 0] > 10000, masks[:, 0] > 0)
    for wrong in (dict(pairing="size"), dict(targets=None, pairing="order")):
        with pytest.raises(ValueError, match="pairing"):
            loader(pairs, **wrong)


def test_numbers_in_names_pair_images_and_masks(tmp_path):
    def folder(name, stems):
        (tmp_path / name).mkdir()
        for number, stem in enumerate(stems, 1):
            tifffile.imwrite(tmp_path / name / f"{stem}.tif", np.full((8, 8), number, np.uint8))
        return tmp_path / name

    numbers = range(1, 12)
    images = folder("images", [f"img_{i}" for i in numbers])
    for name, stems in {
        "padded": [f"{i:03}" for i in numbers],
        "plain": [f"{i}" for i in numbers],
        "masks": [f"mask_{i:03}" for i in numbers],
        "images2": [f"img_mask_{i:03}" for i in numbers],
    }.items():
        load = wr.DataLoader(images, 11, targets=folder(name, stems), scale=None)
        ((pixels, masks),) = load
        assert np.array_equal(pixels[:, 0], masks[:, 0]) and sorted(pixels[:, 0, 0, 0]) == list(numbers), name
    zero = folder("zero", [f"{i - 1}" for i in numbers])
    with pytest.raises(wr.ChoiceError, match='numbers in names do not match.*pairing="order"'):
        wr.DataLoader(images, 11, targets=zero)
    assert wr.DataLoader(images, 11, targets=zero, pairing="order").pairing == "order"


def test_numbers_in_folders_pair_wells_and_masks(tmp_path):
    """The order of text puts A10 before A2, and A02 before A10: masks of other wells had no error."""
    wells = (1, 2, 10)
    for column in wells:
        for file in (f"images/A{column}/1.tif", f"masks/A{column:02}_1_mask.tif", f"running/{column + 1:02}.tif"):
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            tifffile.imwrite(tmp_path / file, np.full((8, 8), column, np.uint8))
    load = wr.DataLoader(tmp_path / "images", 3, targets=tmp_path / "masks", scale=None)
    ((pixels, masks),) = load
    assert load.pairing == "names" and sorted(masks[:, 0, 0, 0]) == list(wells)
    assert np.array_equal(pixels[:, 0], masks[:, 0])
    with pytest.raises(wr.ChoiceError, match='numbers in names do not match.*pairing="order"'):
        wr.DataLoader(tmp_path / "images", 3, targets=tmp_path / "running")


def test_masks_of_two_plates_are_told_by_the_plates_of_their_images(tmp_path):
    """As of plates of Harmony, whose folders are called by plate and time: P1__2026-01-05-Measurement1."""
    for value, (folder, plate) in enumerate([("a", "P2"), ("b", "P1")], 1):
        for file in (f"images/{folder}/Images/s1.tif", f"masks/{plate}/masks/s1_mask.tif"):
            (tmp_path / file).parent.mkdir(parents=True)
            tifffile.imwrite(tmp_path / file, np.full((8, 8), value, np.uint8))
    images, masks = wr.Dataset(tmp_path / "images"), wr.Dataset(tmp_path / "masks")
    with pytest.raises(wr.ChoiceError, match="could be of either of two images"):
        wr.DataLoader(images, 2, targets=masks)
    images = images.with_columns({"Metadata_Plate": ["P2", "P1"]})
    load = wr.DataLoader(images, 2, targets=masks, scale=None)
    ((pixels, targets),) = load
    assert load.pairing == "names" and np.array_equal(pixels, targets) and sorted(pixels[:, 0, 0, 0]) == [1, 2]
    assert wr.DataLoader(images.select([1]), 1, targets=masks).pairing == "names"


def test_labels_of_an_ome_zarr_plate_are_those_of_their_wells(tmp_path):
    zarr = pytest.importorskip("zarr")
    wells = [str(column) for column in range(1, 12)]
    plate = zarr.open_group(tmp_path / "plate.zarr", mode="w", zarr_format=2)
    plate.attrs["plate"] = {
        "version": "0.4",
        "rows": [{"name": "A"}],
        "columns": [{"name": column} for column in wells],
        "wells": [{"path": f"A/{c}", "rowIndex": 0, "columnIndex": i} for i, c in enumerate(wells)],
    }

    def fill(group, pixels):
        group.create_array("0", shape=(1, 8, 8), chunks=(1, 8, 8), dtype="u2")[:] = pixels
        axes = [{"name": "c", "type": "channel"}, {"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
        scale = [{"type": "scale", "scale": [1, 1, 1]}]
        levels = [{"path": "0", "coordinateTransformations": scale}]
        group.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": levels}]

    for column in wells:
        well = plate.create_group(f"A/{column}")
        well.attrs["well"] = {"version": "0.4", "images": [{"path": "0"}]}
        image = well.create_group("0")
        fill(image, int(column))
        labels = image.create_group("labels")
        labels.attrs["labels"] = ["nuclei"]
        # One cell, whose number is the column.
        cell = np.zeros((1, 8, 8), np.uint16)
        cell[:, 2:6, 2:6] = int(column)
        fill(labels.create_group("nuclei"), cell)
    images = wr.Dataset(tmp_path / "plate.zarr")
    paths = sorted((tmp_path / "plate.zarr").glob("A/*/0/labels/nuclei"))
    for order in (paths, paths[::-1]):
        labels = wr.Dataset(order)
        load = wr.DataLoader(images, 11, targets=labels, scale=None)
        ((pixels, masks),) = load
        assert load.pairing == "names" and np.array_equal(pixels[:, 0, 0, 0], masks.max((1, 2, 3)))
        cells = images.cells(labels, size=(4, 4))
        assert [int(crop.max()) for crop in (cells[i] for i in range(len(cells)))] == list(map(int, wells))
        assert list(cells.column("ObjectNumber")) == list(map(int, wells))
    (tmp_path / "other").mkdir()
    for i in range(2):
        tifffile.imwrite(tmp_path / "other" / f"x{i}.tif", np.ones((8, 8), np.uint8))
    with pytest.raises(wr.ChoiceError, match="no label image belongs to an image: .* A/1/0, .* x0"):
        images.cells(tmp_path / "other", size=(4, 4))


def test_views_read_no_more_than_one(pairs):
    read = []
    for views in (None, 1, 2):
        load = loader(pairs, targets=None, views=views, flip=True, num_workers=0)
        for _ in load:
            pass
        read.append(load.traffic)
    assert read[1]["read"] == read[2]["read"] and read[2]["used"] == 2 * read[1]["used"]


def test_tensors(pairs):
    torch = pytest.importorskip("torch")
    import wellread.torch

    for pixels, masks in loader(pairs, as_="torch", flip=True, scale="device"):
        assert pixels.dtype == torch.float32 and masks.dtype == torch.uint8
        # As a loss of Dice takes them.
        probability, truth = (pixels[:, :1] > 0.1).float(), (masks > 0).float()
        dice = 2 * (probability * truth).sum() / (probability.sum() + truth.sum())
        assert dice == 1
        assert float(pixels.max()) <= 1
    (first, second), (one, two) = next(iter(loader(pairs, as_="torch", views=2, device="cpu")))
    assert first.shape == second.shape == (4, *SHAPE) and torch.equal(one, two)
    items = wellread.torch.IterableDataset(wr.Dataset(pairs / "images"), targets=pairs / "masks", views=2)
    (image, _), (mask, _) = next(iter(items))
    assert image.shape == SHAPE and mask.shape == (1, *SHAPE[1:])
    several = torch.utils.data.DataLoader(items, batch_size=3, num_workers=2)
    (images, _), (masks, _) = next(iter(several))
    assert images.shape == (3, *SHAPE) and masks.dtype == torch.uint8


def test_arrays_of_jax(pairs):
    pytest.importorskip("jax")
    both = next(iter(loader(pairs, as_="jax", shuffle=False)))
    plain = next(iter(loader(pairs, shuffle=False)))
    assert all(np.array_equal(np.asarray(a), b) for a, b in zip(both, plain, strict=True))


def test_masks_of_cellpainting(shared, tmp_path):
    root = shared / "nf1"
    if not root.is_dir():
        pytest.skip("no nf1 images on this machine")
    images, masks = sorted((root / "images").glob("*DAPI*")), sorted((root / "masks").glob("*DAPI*Nuclei*"))
    for folder, files in (("images", images), ("masks", masks)):
        (tmp_path / folder).mkdir()
        for file in files:
            shutil.copy(file, tmp_path / folder)
    choices = dict(batch_size=4, random_crop=256, crops_per_image=4)
    pixels, labels = next(iter(wr.DataLoader(tmp_path / "images", targets=tmp_path / "masks", **choices)))
    stored = tifffile.imread(masks[0])
    assert pixels.shape[-2:] == labels.shape[-2:] == (256, 256)
    assert set(np.unique(labels)) <= set(np.unique(stored))


def test_masks_may_be_called_as_a_file_of_their_image(tmp_path):
    """A program segments one file of a site of several: Cellpose writes r01c01f01p01-ch1sk1fk1fl1_cp_masks.tif."""
    sites = [(row, column, field) for row in (1, 2) for column in (1, 2) for field in (1, 2)]
    for folder in ("images", "masks", "few", "two"):
        (tmp_path / folder).mkdir()
    for number, (row, column, field) in enumerate(sites, 1):
        site = f"r{row:02}c{column:02}f{field:02}"
        mask = np.zeros((24, 24), np.uint8)
        mask[4:12, 6:14] = number
        for channel in (1, 2):
            name = f"{site}p01-ch{channel}sk1fk1fl1"
            tifffile.imwrite(tmp_path / "images" / f"{name}.tiff", np.full((24, 24), number, np.uint16))
            tifffile.imwrite(tmp_path / "two" / f"{name}_cp_masks.tif", mask)
            if channel == 1:
                tifffile.imwrite(tmp_path / "masks" / f"{name}_cp_masks.tif", mask)
                if number != 3:
                    tifffile.imwrite(tmp_path / "few" / f"{name}_cp_masks.tif", mask)
    images = wr.Dataset(tmp_path / "images")
    assert len(images) == 8 and images[0].shape == (2, 24, 24)
    load = wr.DataLoader(images, 8, shuffle=True, scale=None, targets=tmp_path / "masks")
    assert load.pairing == "names"
    [(pixels, masks)] = load
    assert np.array_equal(pixels[:, 0, 0, 0], masks.max((1, 2, 3)))
    load = wr.DataLoader(images, 8, scale=None, targets=tmp_path / "few", on_error="skip")
    [(pixels, masks)] = load
    assert len(pixels) == 7 and np.array_equal(pixels[:, 0, 0, 0], masks.max((1, 2, 3)))
    with pytest.raises(wr.ChoiceError, match="1 of 8 images have no target .*: r01c02f01"):
        wr.DataLoader(images, 8, targets=tmp_path / "few")
    with pytest.raises(wr.Error, match="are both of the image r01c01f01"):
        wr.DataLoader(images, 8, targets=tmp_path / "two")
    cells = images.cells(tmp_path / "masks", size=(16, 16), mask="channel")
    assert len(cells) == 8
    for row, number in enumerate(cells.column("ObjectNumber")):
        assert cells[row][0].min() == cells[row][0].max() == number == row + 1
        assert int(cells[row][2].sum()) == 64


def test_a_stored_mask_that_is_scaled_like_a_stain_is_told(tmp_path):
    labels = np.arange(64, dtype=np.uint16).reshape(8, 8)
    image = np.stack([np.full((8, 8), 65535, np.uint16), labels])
    about = {"axes": "CYX", "Channel": {"Name": ["DNA", "nuclei_mask"]}}
    tifffile.imwrite(tmp_path / "a.ome.tif", image, photometric="minisblack", metadata=about)
    ds = wr.Dataset(tmp_path)
    told = r"channel 1 is called 'nuclei_mask'.*channels=\[0\] leaves it out.*target_channels=\['nuclei_mask'\]"
    for choices in ({}, {"channels": ["nuclei_mask", "DNA"]}, {"normalize": (0, 1), "scale": None}):
        with pytest.warns(UserWarning, match=told):
            wr.DataLoader(ds, 1, **choices)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for choices in ({"scale": None}, {"dtype": "stored"}, {"channels": [0]}):
            wr.DataLoader(ds, 1, **choices)
        # As the warning says it.
        [(pixels, targets)] = wr.DataLoader(ds, 1, channels=[0], targets=ds, target_channels=["nuclei_mask"])
    assert (pixels == 1).all() and pixels.shape == (1, 1, 8, 8)
    np.testing.assert_array_equal(targets, labels[None, None])
