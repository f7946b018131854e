"""Differences from plate to plate, against NumPy: statistics, normalisation, illumination."""

import json
import shutil

import numpy as np
import pytest
import tifffile
import wellread as wr

PLATES = ["BR1", "BR2"]


@pytest.fixture
def plates(tmp_path, wellread):
    """Plates of 3 and 4 images of two channels as one set, with the column ``plate``, and the images of each."""
    found = {}
    for number, plate in enumerate(PLATES):
        folder = tmp_path / "screen" / f"plate={plate}"
        folder.mkdir(parents=True)
        size = ["--size", "20x16", "--channels", 2, "--images", 3 + number, "--seed", number]
        made = wellread("generate", tmp_path / f"made{number}", *size, "--formats", "parquet")
        shutil.move(made["written"][0]["path"], folder / "images.parquet")
        found[plate] = np.asarray(wr.Dataset(folder / "images.parquet")[:], np.float64)
    return tmp_path / "screen", found


def test_normalisation_is_that_of_each_plate(plates, tmp_path, wellread):
    screen, images = plates
    out = tmp_path / "plate-stats.json"
    said = wellread("stats", screen, "--by", "plate", "--out", out)
    assert said == json.loads(out.read_text())
    assert (said["by"], [group["key"] for group in said["groups"]]) == (["plate"], [["BR1"], ["BR2"]])
    expected = []
    for group in said["groups"]:
        values = images[group["key"][0]]
        mean, std = values.mean((0, 2, 3), keepdims=True), values.std((0, 2, 3), keepdims=True)
        found = [(channel["mean"], channel["std"]) for channel in group["stats"]["channels"]]
        assert np.allclose(found, np.stack([mean.ravel(), std.ravel()], -1), rtol=1e-9)
        expected.append((values - mean) / std)
    expected = np.concatenate(expected)
    for scale in (None, "unit"):
        for workers in (0, 2):
            loader = wr.DataLoader(screen, 3, scale=scale, normalize=out, num_workers=workers)
            assert np.allclose(np.concatenate(list(loader)), expected, atol=2e-3)
    one = wr.DataLoader(screen, 3, scale=None, normalize=out, channels=[1], rows=[6, 0])
    assert np.allclose(np.concatenate(list(one)), expected[[6, 0], 1:], atol=2e-3)
    few = tmp_path / "few.json"
    wellread("stats", screen / "plate=BR1" / "*.parquet", "--out", few)
    with pytest.raises(wr.ChoiceError, match="plate"):
        wr.DataLoader(screen / "plate=BR1" / "images.parquet", normalize=out)
    said["groups"].pop()
    out.write_text(json.dumps(said))
    with pytest.raises(wr.ChoiceError, match=r"row 3.*plate BR2"):
        wr.DataLoader(screen, normalize=out)
    failed = wellread("stats", screen, "--by", "none", code=2)
    assert "no column" in failed and "plate" in failed


def test_illumination_is_told_by_names_of_channels(tmp_path):
    """Two plates whose channels are in another order each."""
    random = np.random.default_rng(8)
    flat = {stain: random.uniform(0.5, 2, (12, 10)).astype(np.float32) for stain in ("DNA", "ER", "AGP")}
    for number, field in enumerate(flat.values()):
        # No pattern tells these names.
        np.save(tmp_path / f"laser{number}.npy", field)
    orders = {"P1": ("DNA", "ER", "AGP"), "P2": ("AGP", "DNA", "ER")}
    images, expected = {}, {}
    for plate, stains in orders.items():
        folder = tmp_path / f"{plate}__1-Measurement1" / "Images"
        folder.mkdir(parents=True)
        planes = random.integers(1, 4096, (2, 3, 12, 10), dtype=np.uint16)
        entries = "".join(
            f"<Image><ChannelID>{channel}</ChannelID><ChannelName>{stain}</ChannelName></Image>"
            for channel, stain in enumerate(stains, 1)
        )
        (folder / "Index.xml").write_text(f"<EvaluationInputData><Images>{entries}</Images></EvaluationInputData>")
        for well, image in enumerate(planes, 1):
            for channel, plane in enumerate(image, 1):
                tifffile.imwrite(folder / f"r01c0{well}f01p01-ch{channel}sk1fk1fl1.tiff", plane)
        images[plate] = planes
        expected[plate] = planes / np.stack([flat[stain] for stain in stains])
    screen = wr.Dataset(tmp_path)
    assert len(screen) == 4
    illumination = {stain: tmp_path / f"laser{number}.npy" for number, stain in enumerate(flat)}
    for workers in (0, 2):
        loader = wr.DataLoader(screen, 3, scale=None, illumination=illumination, num_workers=workers)
        got = np.concatenate(list(loader))
        # Images are delivered in the order of the first plate, whichever they are stored in.
        assert np.allclose(got[:2], expected["P1"], rtol=1e-5)
        assert np.allclose(got[2:], expected["P2"][:, [1, 2, 0]], rtol=1e-5)
    two = wr.DataLoader(screen, 4, scale=None, channels=["AGP", "DNA"], illumination=illumination)
    got = next(iter(two))
    assert np.allclose(got[:2], expected["P1"][:, [2, 0]], rtol=1e-5)
    assert np.allclose(got[2:], expected["P2"][:, [0, 1]], rtol=1e-5)
    # Patterns of columns, and a dark field.
    np.save(tmp_path / "dark.npy", np.full((12, 10), 100, np.float32))
    (tmp_path / "P1_DNA.npy").write_bytes((tmp_path / "laser0.npy").read_bytes())
    (tmp_path / "P2_DNA.npy").write_bytes((tmp_path / "laser1.npy").read_bytes())
    given = {"DNA": (str(tmp_path / "{Metadata_Plate}_DNA.npy"), tmp_path / "dark.npy")}
    got = next(iter(wr.DataLoader(screen, 4, scale=None, channels=["DNA"], illumination=given)))[:, 0]
    assert np.allclose(got[:2], (images["P1"][:, 0] - 100.0) / flat["DNA"], rtol=1e-4)
    assert np.allclose(got[2:], (images["P2"][:, 1] - 100.0) / flat["ER"], rtol=1e-4)
    # Every view is corrected.
    views = next(iter(wr.DataLoader(screen, 4, scale=None, illumination=illumination, views=[{}, {}])))
    for view in views:
        assert np.allclose(view[:2], expected["P1"], rtol=1e-5)
    del illumination["ER"]
    with pytest.raises(wr.ChoiceError, match='given for the channel "ER", but for "DNA", "AGP"'):
        wr.DataLoader(screen, illumination=illumination)
    with pytest.raises(TypeError, match=r"illumination\['DNA'\] must be"):
        wr.DataLoader(screen, illumination={"DNA": 3})
    with pytest.raises(ValueError, match="empty"):
        wr.DataLoader(screen, illumination={})


def test_illumination_is_that_of_each_plate_and_channel(plates, tmp_path):
    screen, images = plates
    random = np.random.default_rng(3)
    expected = []
    for plate in PLATES:
        (tmp_path / "illum" / plate).mkdir(parents=True)
        fields = random.uniform(0.5, 2, (2, 20, 16))
        for channel, field in enumerate(fields):
            order = "F" if channel else "C"
            np.save(tmp_path / "illum" / plate / f"{plate}_Illum{channel + 1}.npy", np.asarray(field, order=order))
        expected.append(images[plate] / fields)
    expected = np.concatenate(expected)
    pattern = str(tmp_path / "illum" / "{plate}" / "{plate}_Illum{channel:1}.npy")
    for workers in (0, 3):
        loader = wr.DataLoader(screen, 2, scale=None, illumination=pattern, num_workers=workers, shuffle=True, seed=4)
        got = np.concatenate(list(loader))
        assert np.allclose(got, expected[loader.rows(0)], rtol=1e-5)
    cropped = wr.DataLoader(screen, 7, scale=None, illumination=pattern, channels=[1], crop=(6, 8))
    assert np.allclose(next(iter(cropped)), expected[:, 1:, 7:13, 4:12], rtol=1e-5)
    # One field of all, as .npy too.
    flat = tmp_path / "flat.npy"
    np.save(flat, np.full((20, 16), 2, np.float32))
    halved = np.concatenate(list(wr.DataLoader(screen, 7, scale=None, illumination=flat)))
    assert np.allclose(halved, np.concatenate([images[plate] for plate in PLATES]) / 2)
    (tmp_path / "illum" / "BR2" / "BR2_Illum2.npy").unlink()
    loader = wr.DataLoader(screen, 1, illumination=pattern, num_workers=0)
    with pytest.raises(wr.Error, match=r"BR2_Illum2.npy.*row 3.*plate BR2.*channel 1"):
        list(loader)
    with pytest.raises(wr.Error, match="brace"):
        wr.DataLoader(screen, illumination="illum/{plate")
    with pytest.raises(wr.Error, match="no column"):
        wr.DataLoader(screen, illumination="illum/{none}.npy")


def test_statistics_go_by_the_names_of_channels(tmp_path, wellread):
    random, levels = np.random.default_rng(0), {"DNA": 100, "ER": 1000, "AGP": 10000}
    names = {"a": ["DNA", "ER", "AGP"], "b": ["ER", "AGP", "DNA"]}
    for plate, channels in names.items():
        (tmp_path / "both" / f"plate={plate}").mkdir(parents=True)
        for i in range(4):
            image = np.stack([random.integers(0, levels[name], (16, 16)) for name in channels]).astype("uint16")
            file = tmp_path / "both" / f"plate={plate}" / f"{plate}{i}.ome.tif"
            metadata = {"axes": "CYX", "Channel": {"Name": channels}}
            tifffile.imwrite(file, image, ome=True, photometric="minisblack", metadata=metadata)
    images, out = tmp_path / "both" / "plate=b", tmp_path / "a.json"
    wellread("stats", tmp_path / "both" / "plate=a", "--out", out)
    for channels in (list(levels), ["AGP"], None):
        found = np.concatenate(list(wr.DataLoader(images, 4, channels=channels, scale=None, normalize=out)))
        assert abs(found.mean((0, 2, 3))).max() < 0.2 and abs(found.std((0, 2, 3)) - 1).max() < 0.2, channels
    # Of both: by name, which is said.
    pooled = wellread("stats", tmp_path / "both")
    assert [channel["name"] for channel in pooled["channels"]] == list(levels)
    assert (pooled["reordered"], pooled["other_names"]) == (4, 0)
    for channel, level in zip(pooled["channels"], levels.values(), strict=True):
        assert abs(channel["mean"] / level - 0.5) < 0.05
    info = wellread("info", tmp_path / "both")
    assert info["channels_reordered"] == 4
    other = tmp_path / "other.ome.tif"
    tifffile.imwrite(
        other, np.zeros((3, 16, 16), "uint16"), ome=True, photometric="minisblack",
        metadata={"axes": "CYX", "Channel": {"Name": ["DNA", "RNA", "AGP"]}},
    )  # fmt: skip
    with pytest.raises(wr.ChoiceError, match='no statistics of the channel "RNA"'):
        wr.DataLoader(other, 1, scale=None, normalize=out)
    # Images of one stain each, without names: their number tells no stain.
    single = tmp_path / "single.tif"
    tifffile.imwrite(single, np.zeros((16, 16), "uint16"))
    with pytest.raises(
        wr.ChoiceError, match=r"3 channels \(DNA, ER, AGP\), but the images have 1 channel without a name"
    ):
        wr.DataLoader(single, 1, scale=None, normalize=out)
