"""Single-cell crops: against NumPy's slices of tifffile's images, of generated sets and of real ones.

Long because tests share the sites and label images that a fixture of this file makes once.
"""

import pickle
import warnings

import numpy as np
import pytest
import tifffile
import wellread as wr

SHAPE = (2, 70, 90)


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """Three images of noise, each of two channels, in tiles; and label images of a few rectangles."""
    folder = tmp_path_factory.mktemp("sites")
    (folder / "images").mkdir()
    (folder / "labels").mkdir()
    random = np.random.default_rng(293)
    images = {}
    for i in range(3):
        image = random.integers(0, 4096, SHAPE, dtype=np.uint16)
        name = f"P1_A0{i}_s1"
        tifffile.imwrite(
            folder / "images" / f"{name}.tif",
            image,
            tile=(32, 32),
            photometric="minisblack",
            planarconfig="separate",
            compression="zlib",
        )
        labels = np.zeros(SHAPE[1:], np.uint16)
        for number in range(1, 5):
            y, x = 12 * number, 15 * number + i
            labels[y : y + 7, x : x + 9] = number
        tifffile.imwrite(folder / "labels" / f"{name}_MaskNuclei.tif", labels)
        images[name] = (image, labels)
    return folder, images


def crop(image, y, x, size, edge):
    """The crop by NumPy, as it is documented; None where it is left out."""
    (height, width), shape = size, image.shape[-2:]
    top, left = int(np.floor(y + 0.5)) - height // 2, int(np.floor(x + 0.5)) - width // 2
    if edge == "shift":
        top, left = min(max(top, 0), shape[0] - height), min(max(left, 0), shape[1] - width)
    around = [(0, 0), (height, height), (width, width)]
    padded = np.pad(image, around)
    inside = 0 <= top <= shape[0] - height and 0 <= left <= shape[1] - width
    if edge == "drop" and not inside:
        return None
    return padded[:, top + height : top + 2 * height, left + width : left + 2 * width]


def table_of(folder, images, cells=40, seed=1):
    random = np.random.default_rng(seed)
    rows = []
    for name in images:
        for _ in range(cells):
            y, x = random.uniform(-0.5, SHAPE[1] - 0.51), random.uniform(-0.5, SHAPE[2] - 0.51)
            rows.append((name, x, y))
    random.shuffle(rows)
    rows = [(str(name), float(x), float(y)) for name, x, y in rows]
    path = folder / f"cells-{seed}.csv"
    lines = ["Image_FileName_DNA,Nuclei_Location_Center_X,Nuclei_Location_Center_Y,Nuclei_AreaShape_Area"]
    lines += [f"{name}.tif,{x!r},{y!r},{i}" for i, (name, x, y) in enumerate(rows)]
    path.write_text("\n".join(lines) + "\n")
    return path, rows


@pytest.mark.parametrize("edge", ["shift", "pad", "drop"])
def test_crops_are_slices(sites, tmp_path, edge):
    folder, images = sites
    path, rows = table_of(tmp_path, images)
    ds = wr.Dataset(folder / "images")
    cells = ds.cells(path, size=(21, 30), edge=edge)
    wanted = [crop(images[name][0], y, x, (21, 30), edge) for name, x, y in rows]
    kept = [i for i, image in enumerate(wanted) if image is not None]
    assert len(cells) == len(kept) and cells.image_shape(0) == (2, 21, 30)
    for row in (0, len(kept) // 2, -1):
        np.testing.assert_array_equal(cells[row], wanted[kept[row]])
    np.testing.assert_array_equal(cells[:], np.stack([wanted[i] for i in kept]))
    np.testing.assert_array_equal(cells.column("Nuclei_AreaShape_Area"), kept)
    assert cells.name(0) == f"{rows[kept[0]][0]}/cell-{kept[0]}"
    report = cells.cells_report
    assert (report["rows"], report["cells"], report["dropped"]["count"]) == (120, len(kept), 120 - len(kept))
    assert ds.cells_report is None
    # A box of it.
    np.testing.assert_array_equal(cells.read(3, (slice(4, 20), slice(10, 30))), wanted[kept[3]][:, 4:20, 10:30])


def test_loaders_deliver_cells_and_tell_what_is_read(sites, tmp_path):
    folder, images = sites
    path, rows = table_of(tmp_path, images)
    wanted = np.stack([crop(images[name][0], y, x, (16, 16), "shift") for name, x, y in rows])
    ratios = {}
    for cache in (None, "memory"):
        cells = wr.Dataset(folder / "images", cache=cache).cells(path, size=16)
        for order in ("shuffle", "block"):
            block = 2 if order == "block" else None
            loader = wr.DataLoader(cells, 20, as_="batch", order=order, block=block, dtype="stored", seed=5)
            for epoch in range(2):
                loader.set_epoch(epoch)
                seen = []
                for batch in loader:
                    np.testing.assert_array_equal(np.asarray(batch), wanted[batch.rows])
                    seen += batch.rows
                assert sorted(seen) == list(range(len(rows)))
            ratios[cache, order] = loader.traffic["amplification"]
    assert all(ratio is None or ratio > 0 for ratio in ratios.values())
    assert ratios[None, "shuffle"] is not None
    # Images that are kept are read once, in the first loader.
    assert ratios["memory", "block"] is None


def test_a_table_of_a_european_excel_has_decimal_commas(sites, tmp_path):
    folder, images = sites
    path, _ = table_of(tmp_path, images, seed=5)
    rows = [line.split(",") for line in path.read_text().splitlines()]
    european = tmp_path / "european.csv"
    lines = [";".join(value if ".tif" in value else value.replace(".", ",") for value in row) for row in rows]
    european.write_text("\n".join(["sep=;", *lines]) + "\n")
    ds = wr.Dataset(folder / "images")
    plain, cells = (ds.cells(table, size=16) for table in (path, european))
    assert len(plain) == len(cells) == 120
    for row in range(0, 120, 7):
        np.testing.assert_array_equal(cells[row], plain[row])
    x = "Nuclei_Location_Center_X"
    np.testing.assert_array_equal(cells.column(x), plain.column(x))


def test_it_is_pickled_and_read_by_threads(sites, tmp_path):
    folder, images = sites
    path, _ = table_of(tmp_path, images)
    cells = wr.Dataset(folder / "images").cells(path, size=(9, 11), edge="pad")
    again = pickle.loads(pickle.dumps(cells))
    np.testing.assert_array_equal(again[5], cells[5])
    assert len(again) == len(cells) and "120 cells" in repr(again)


def test_label_images_are_cells_and_masks(sites):
    folder, images = sites
    ds = wr.Dataset(folder / "images")
    plain = ds.cells(folder / "labels", size=(15, 15), edge="pad")
    zero = ds.cells(folder / "labels", size=(15, 15), edge="pad", mask="zero")
    channel = ds.cells(folder / "labels", size=(15, 15), edge="pad", mask="channel")
    assert len(plain) == 12
    numbers, names = plain.column("ObjectNumber"), plain.column("ImageName")
    for row in range(12):
        image, labels = images[names[row]]
        own = labels == numbers[row]
        y, x = (axis.mean() for axis in np.nonzero(own))
        assert plain.column("Location_Center_Y")[row] == y and plain.column("Location_Center_X")[row] == x
        assert plain.column("AreaShape_Area")[row] == own.sum() == 63
        want = crop(image, y, x, (15, 15), "pad")
        mask = crop(own[None].astype(np.uint16), y, x, (15, 15), "pad")
        np.testing.assert_array_equal(plain[row], want)
        np.testing.assert_array_equal(zero[row], want * mask)
        np.testing.assert_array_equal(channel[row], np.concatenate([want, mask]))


def test_errors_of_orders_count_cells(sites):
    folder, _ = sites
    cells = wr.Dataset(folder / "images").cells(folder / "labels", size=9)
    with pytest.raises(wr.ChoiceError, match="of 12 cells, 1 row has no value as their key"):
        wr.DataLoader(cells, order="balanced", by=["a"] * 11 + [None])
    with pytest.raises(ValueError, match="1 weight was given for 12 cells"):
        wr.DataLoader(cells, weights=[1.0])


def test_tables_in_memory_are_tables_of_cells(sites):
    pa = pytest.importorskip("pyarrow")
    folder, images = sites
    ds = wr.Dataset(folder / "images")
    path, rows = table_of(folder, images, cells=10, seed=7)
    names, xs, ys = zip(*rows, strict=True)
    table = pa.table({"Image_FileName_DNA": [f"{name}.tif" for name in names], "x": xs, "y": ys})
    cells = ds.cells(table, size=(9, 11))
    stored = ds.cells(path, size=(9, 11))
    assert len(cells) == len(stored) == 30 and "30 cells" in repr(cells)
    for row in (0, 13, 29):
        np.testing.assert_array_equal(cells[row], stored[row])
    np.testing.assert_array_equal(cells.column("x"), xs)
    again = pickle.loads(pickle.dumps(cells))
    np.testing.assert_array_equal(again[5], cells[5])
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"image": [names[0]], "x": [xs[0]], "y": [ys[0]]})
    np.testing.assert_array_equal(ds.cells(frame, size=(9, 11))[0], stored[0])
    with pytest.raises(wr.ChoiceError, match="no rows"):
        ds.cells(table.slice(0, 0))
    with pytest.raises(wr.Error, match="has 2 channels, and a label image one"):
        ds.cells(ds)
    with pytest.raises(TypeError, match="table"):
        ds.cells(3)


def test_the_command_joins_by_the_same_rule(tmp_path, wellread):
    pa = pytest.importorskip("pyarrow")
    folder = tmp_path / "set"
    (folder / "dir").mkdir(parents=True)
    for name in ("w1", "dir/w1", "dir/w2"):
        tifffile.imwrite(folder / f"{name}.tif", np.full((4, 4), 7, np.uint16))
    ds = wr.Dataset(folder)
    assert sorted(map(ds.name, range(3))) == ["dir/w1", "dir/w2", "w1"]
    # A row with the whole name of an image is of no other one.
    table = tmp_path / "table.csv"
    table.write_text("file,dose\nw1.tif,1\nw2.png,2\n")
    columns = pa.table({"file": ["w1.tif", "w2.png"], "dose": [1, 2]})
    both = ds.with_columns(columns, on="file", unmatched="null")
    wellread("convert", folder, tmp_path / "joined.parquet", "--join", table, "--on", "file")
    joined = wr.Dataset(tmp_path / "joined.parquet")
    doses = [dict(zip(map(one.name, range(3)), one.column("dose").tolist(), strict=True)) for one in (both, joined)]
    for found in doses:
        np.testing.assert_equal(found, {"w1": 1.0, "dir/w1": np.nan, "dir/w2": 2.0})


def test_columns_of_a_table_that_are_left_out_are_named(sites, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    folder, images = sites
    ds = wr.Dataset(folder / "images")
    name = f"{next(iter(images))}.tif"
    table = pa.table({"Image_FileName_DNA": [name], "x": [20.0], "y": [20.0], "thumb": [b"a"], "outline": [[1]]})
    pq.write_table(table, tmp_path / "cells.parquet")
    said = "of the table thumb, outline cannot stand beside images and are left out: binary values, nested values"
    for source in (table, tmp_path / "cells.parquet"):
        with pytest.warns(UserWarning, match=said) as told:
            cells = ds.cells(source, size=(9, 11))
        assert len(told) == 1 and told[0].filename == __file__
        assert "x" in cells.columns and "thumb" not in cells.columns
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert len(pickle.loads(pickle.dumps(cells))) == 1
    # Nothing is said where nothing is left out.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds.cells(table.drop_columns(["thumb", "outline"]), size=(9, 11))


def test_parquet_of_profiles_is_joined_by_metadata(sites, tmp_path, wellread):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    folder, images = sites
    names = list(images)
    profiles = pa.table({"name": names, "Metadata_Well": ["A00", "A01", "A02"], "Metadata_Site": [1, 1, 1]})
    pq.write_table(profiles, tmp_path / "profiles.parquet")
    joined = ("--join", tmp_path / "profiles.parquet", "--on", "name")
    wellread("convert", folder / "images", tmp_path / "set.parquet", *joined)
    single = pa.table(
        {
            "Metadata_Well": ["A02", "A00"],
            "Metadata_Site": ["1", "1"],
            "Metadata_Cells_Location_Center_X": [30.0, 31.0],
            "Metadata_Cells_Location_Center_Y": [20.0, 22.0],
            "Cells_Intensity": [0.5, None],
        }
    )
    pq.write_table(single, tmp_path / "cells.parquet")
    cells = wr.Dataset(tmp_path / "set.parquet").cells(tmp_path / "cells.parquet", size=8, by=("Well", "Site"))
    np.testing.assert_array_equal(cells[0], crop(images[names[2]][0], 20, 30, (8, 8), "shift"))
    np.testing.assert_array_equal(cells[1], crop(images[names[0]][0], 22, 31, (8, 8), "shift"))
    values = cells.column("Cells_Intensity")
    assert values[0] == 0.5 and np.isnan(values[1])
    assert list(cells.column("name")) == [names[2], names[0]]


def test_a_table_may_name_any_file_of_a_site(tmp_path):
    """As tables of CytoTable do, with a column for each channel and nothing else that tells the image."""
    random = np.random.default_rng(4)
    stacks = random.integers(0, 4096, (2, 2, 20, 24), dtype=np.uint16)
    for site, stack in enumerate(stacks, 1):
        for channel, plane in enumerate(stack, 1):
            tifffile.imwrite(tmp_path / f"P1_A01_s{site}_w{channel}.tif", plane)
    ds = wr.Dataset(tmp_path)
    table = tmp_path / "cells.csv"
    table.write_text(
        "Image_FileName_IllumDNA,Image_FileName_DNA,Image_FileName_ER,Nuclei_Location_Center_X,Nuclei_Location_Center_Y\n"
        "illum.npy,P1_A01_s2_w1.tif,P1_A01_s2_w2.tif,10,11\nillum.npy,P1_A01_s1_w1.tif,P1_A01_s1_w2.tif,12,9\n"
    )
    for by in (None, "FileName_ER", "Image_FileName_DNA"):
        cells = ds.cells(table, size=6, by=by)
        assert [cells.name(row).split("/")[0] for row in (0, 1)] == ["P1_A01_s2", "P1_A01_s1"]
        np.testing.assert_array_equal(cells[0], stacks[1][:, 8:14, 7:13])
        np.testing.assert_array_equal(cells[1], stacks[0][:, 6:12, 9:15])
    # Of images of one file each it is not told which column is meant.
    with pytest.raises(wr.ChoiceError, match="do not tell the image of a cell"):
        wr.Dataset(tmp_path, layout="files").cells(table, size=6)


@pytest.mark.parametrize("variant", ["0.4", "0.5"])
def test_cells_are_stored_in_zarr_with_their_columns(sites, tmp_path, wellread, variant):
    zarr = pytest.importorskip("zarr")
    folder, images = sites
    table, rows = table_of(tmp_path, images, cells=5)
    target = tmp_path / "cells.zarr"
    said = wellread(
        "convert", folder / "images", target, "--cells", table, "--cells-size", "21x30", "--cells-edge", "pad",
        "--variant", variant, "--jobs", 2,
    )  # fmt: skip
    cells = wr.Dataset(folder / "images").cells(table, size=(21, 30), edge="pad")
    stored = wr.Dataset(target)
    assert (said["images"], said["verified"], said["feature_columns"]) == (15, True, len(cells.columns))
    assert [stored.name(row) for row in range(15)] == [cells.name(row) for row in range(15)]
    assert stored.columns == cells.columns
    for name in cells.columns:
        want, got = cells.column(name), stored.column(name)
        assert list(got) == list(want) and got.dtype == want.dtype, name
    for row, (name, x, y) in enumerate(rows):
        want = crop(images[name][0], y, x, (21, 30), "pad")
        np.testing.assert_array_equal(stored[row], want)
        # As others see it.
        np.testing.assert_array_equal(np.asarray(zarr.open(str(target / str(row)), mode="r")["0"])[0, :, 0], want)
    # All metadata in one file, which zarr takes for the images' own.
    group = zarr.open_consolidated(str(target), mode="r")
    assert set(group.group_keys()) == {*map(str, range(15)), "OME"}
    for row in (0, 2, 14):
        np.testing.assert_array_equal(np.asarray(group[f"{row}/0"])[0, :, 0], stored[row])
        assert group[str(row)].attrs.asdict() == zarr.open_group(str(target / str(row)), mode="r").attrs.asdict()
    for batch in wr.DataLoader(stored, 4, shuffle=True, as_="batch", dtype="stored"):
        np.testing.assert_array_equal(np.asarray(batch), stored[batch.rows])
    check = ("--cells", table, "--cells-size", "21x30", "--cells-edge", "pad")
    wellread("verify", target, "--against", folder / "images", *check)
    few = stored.filter(Nuclei_AreaShape_Area=[3, 7])
    np.testing.assert_array_equal(few[1], cells[7])


def test_a_folder_of_zarr_images_keeps_columns(sites, tmp_path, wellread):
    folder, images = sites
    table, _ = table_of(tmp_path, images, cells=5)
    cells = wr.Dataset(folder / "images").cells(table, size=(21, 30), edge="pad")
    target = tmp_path / "cells"
    said = wellread(
        "convert", folder / "images", target, "--format", "ome-zarr", "--cells", table, "--cells-size", "21x30",
        "--cells-edge", "pad",
    )  # fmt: skip
    assert (said["images"], said["verified"], said["feature_columns"]) == (15, True, len(cells.columns))
    stored = wr.Dataset(target)
    assert [stored.name(row) for row in range(15)] == [cells.name(row) for row in range(15)]
    assert stored.columns == cells.columns
    for name in cells.columns:
        assert list(stored.column(name)) == list(cells.column(name)), name
    # From folder to folder, and to a series.
    for again in ("again", "again.zarr"):
        wellread("convert", target, tmp_path / again, "--format", "ome-zarr")
        assert wr.Dataset(tmp_path / again).columns == cells.columns


def test_what_is_wrong_is_said(sites, tmp_path):
    folder, _ = sites
    ds = wr.Dataset(folder / "images")
    path = tmp_path / "cells.csv"

    def refusal(text, kind=wr.ChoiceError, **choices):
        path.write_text(text)
        with pytest.raises(kind) as error:
            ds.cells(path, **{"size": 8, **choices})
        return str(error.value)

    assert "no column 'z'" in refusal("image,x,y\nP1_A00_s1,1,2\n", x="z").replace('"', "'")
    assert "do not tell the image of a cell" in refusal("x,y\n1,2\n")
    said = refusal("image,x,y\nP1_A00_s1,1,2\nP1_A00_s1,,2\nP9,1,2\n")
    assert "2 of 3 cells cannot be cut out" in said and "row 2 (image P9)" in said
    # Options are called as they are here, not as those of the command.
    assert 'leave them out: unmatched="skip"; or check the columns that tell the image (by=)' in said
    assert "--" not in said
    assert 'edge="pad"' in refusal("image,x,y\nP1_A00_s1,1,2\n", size=80)
    assert "line 3" in refusal("image,x,y\nP1_A00_s1,1,2\nP1_A00_s1\n", wr.Error)
    path.write_text("image,x,y\nP1_A00_s1,1,2\nP1_A00_s1,,2\nP9,1,2\n")
    cells = ds.cells(path, size=8, unmatched="skip")
    assert len(cells) == 1
    assert cells.cells_report["without_position"] == {"count": 1, "first": ["row 1 (image P1_A00_s1)"]}
    with pytest.raises(FileNotFoundError):
        ds.cells(tmp_path / "none.csv")
    for wrong in ({"edge": "moved"}, {"unit": "mm"}, {"mask": "one"}, {"unmatched": "warn"}, {"size": (1, 2, 3)}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            ds.cells(path, **wrong)
    with pytest.raises(TypeError, match="by"):
        ds.cells(path, by=3)


def test_a_table_that_was_changed_since_is_told(sites, tmp_path):
    """Columns of Parquet are read when they are asked for: by then the table may be another one."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    folder, images = sites
    name = next(iter(images))
    path = tmp_path / "cells.parquet"

    def write(cells):
        places = np.arange(10.0, 10 + cells)
        columns = {"image": [name] * cells, "x": places, "y": places, "area": np.arange(cells)}
        pq.write_table(pa.table(columns), path)

    write(4)
    cells = wr.Dataset(folder / "images").cells(path, size=8)
    before = cells[:]
    write(3)
    with pytest.raises(wr.Error, match="has 3 rows now, and had 4.*open the set anew") as error:
        cells.column("area")
    assert error.value.path == str(path)
    with pytest.raises(wr.Error, match="has 3 rows now"):
        next(iter(wr.DataLoader(cells, 2, labels="area")))
    # Where cells lie is known since the set was opened.
    np.testing.assert_array_equal(cells[:], before)
    path.unlink()
    with pytest.raises(wr.Error, match=r"cells\.parquet"):
        cells.column("area")
    write(3)
    assert wr.Dataset(folder / "images").cells(path, size=8).column("area").tolist() == [0, 1, 2]


def components(binary):
    """A number for each component of a mask, by pixels that share a side."""
    numbers = np.zeros(binary.shape, np.uint16)
    found = 0
    for seed in zip(*np.nonzero(binary), strict=True):
        if numbers[seed]:
            continue
        found += 1
        numbers[seed] = found
        stack = [seed]
        while stack:
            y, x = stack.pop()
            for near in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                inside = 0 <= near[0] < binary.shape[0] and 0 <= near[1] < binary.shape[1]
                if inside and binary[near] and not numbers[near]:
                    numbers[near] = found
                    stack.append(near)
    return numbers


def test_cells_of_real_images(shared, tmp_path):
    """Nuclei of NF1's images: the masks are binary, which is refused, and their components are the cells."""
    root = shared / "nf1"
    if not root.is_dir():
        pytest.skip("no NF1 images in the shared folder")
    mask = next((root / "masks").glob("*_MaskNuclei.tiff"))
    name = mask.name.removesuffix("_MaskNuclei.tiff")
    image, binary = tifffile.imread(root / "images" / f"{name}.tif"), tifffile.imread(mask)
    ds = wr.Dataset(root / "images" / f"{name}.tif")
    refused = r"all pixels but 0 are 255, here in \d+ pieces .*skimage\.measure\.label"
    with pytest.raises(wr.ChoiceError, match=refused):
        ds.cells(mask, size=(64, 64))
    labels = components(binary)
    mask = tmp_path / mask.name
    tifffile.imwrite(mask, labels)
    cells = ds.cells(mask, size=(64, 64), edge="pad", mask="zero")
    numbers = np.unique(labels)
    numbers = numbers[numbers > 0]
    np.testing.assert_array_equal(cells.column("ObjectNumber"), numbers)
    for row in range(0, len(cells), max(1, len(cells) // 12)):
        own = labels == numbers[row]
        y, x = (axis.mean() for axis in np.nonzero(own))
        want = crop(np.where(own, image, 0).astype(image.dtype)[None], y, x, (64, 64), "pad")
        np.testing.assert_array_equal(cells[row], want)


def test_label_images_may_be_a_dataset(sites, tmp_path):
    folder, _ = sites
    ds, labels = wr.Dataset(folder / "images"), wr.Dataset(folder / "labels")
    by_path = ds.cells(folder / "labels", size=(15, 15), edge="pad", mask="channel")
    expected = [by_path[row] for row in range(len(by_path))]
    by_set = ds.cells(labels, size=(15, 15), edge="pad", mask="channel")
    cached = wr.Dataset(folder / "images", cache="memory").cells(labels, size=(15, 15), edge="pad", mask="channel")
    for cells in (by_set, cached, pickle.loads(pickle.dumps(by_set))):
        assert [cells.name(row) for row in range(len(cells))] == [by_path.name(row) for row in range(len(by_path))]
        assert all(np.array_equal(cells[row], want) for row, want in enumerate(expected))
    # Label images of some of the images.
    some = ds.cells(labels.select([2, 0]), size=(15, 15), edge="pad", mask="channel")
    kept = [row for row in range(len(by_path)) if not by_path.name(row).startswith(ds.name(1))]
    assert len(some) == len(kept) == 8
    assert all(np.array_equal(some[i], expected[row]) for i, row in enumerate(kept))
    # As masks of a table of cells.
    table = tmp_path / "cells.csv"
    names, numbers = by_path.column("ImageName"), by_path.column("ObjectNumber")
    y, x = by_path.column("Location_Center_Y"), by_path.column("Location_Center_X")
    lines = [f"{name},{number},{a},{b}" for name, number, a, b in zip(names, numbers, x, y, strict=True)]
    table.write_text("\n".join(["ImageName,ObjectNumber,Location_Center_X,Location_Center_Y", *lines]) + "\n")
    masked = ds.cells(table, size=(15, 15), edge="pad", mask="channel", by="ImageName", masks=labels)
    assert all(np.array_equal(masked[row], want) for row, want in enumerate(expected))
    loaded = np.concatenate(list(wr.DataLoader(masked, 5, dtype="stored", num_workers=2)))
    assert np.array_equal(loaded, np.stack(expected))
    labels.close()
    assert np.array_equal(masked[3], expected[3])
    with pytest.raises(wr.ChoiceError, match="nothing to do with them"):
        ds.cells(table, size=15, by="ImageName", masks=wr.Dataset(folder / "labels"))
    with pytest.raises(TypeError, match="masks must be"):
        ds.cells(table, size=15, by="ImageName", mask="zero", masks=3)


def test_pieces_of_binary_masks_are_numbered(sites, tmp_path, wellread):
    folder, images = sites
    (tmp_path / "binary").mkdir()
    for name, (_, labels) in images.items():
        tifffile.imwrite(tmp_path / "binary" / f"{name}_mask.tif", np.where(labels > 0, 255, 0).astype(np.uint8))
    ds = wr.Dataset(folder / "images")
    choices = {"size": (15, 15), "edge": "pad", "mask": "channel"}
    expected = ds.cells(folder / "labels", **choices)
    with pytest.raises(wr.ChoiceError, match="it is a binary mask.*label_masks=True numbers the pieces"):
        ds.cells(tmp_path / "binary", **choices)
    # A folder of stains in the place of that of label images.
    (tmp_path / "stain").mkdir()
    for name, (_, labels) in images.items():
        noise = np.random.default_rng(1).poisson(90, labels.shape).astype(np.uint16)
        tifffile.imwrite(tmp_path / "stain" / f"{name}_dapi.tif", noise)
    with pytest.raises(wr.ChoiceError, match="an image of brightness. In a label image each cell has a number"):
        ds.cells(tmp_path / "stain", **choices)
    with pytest.raises(wr.ChoiceError, match="an image of brightness.* and a mask is 0 beside cells"):
        ds.cells(tmp_path / "stain", label_masks=True, **choices)
    masks = wr.Dataset(tmp_path / "binary")
    for table in (tmp_path / "binary", masks):
        cells = ds.cells(table, label_masks=True, **choices)
        for again in (cells, pickle.loads(pickle.dumps(cells))):
            assert [again.name(row) for row in range(len(again))] == [expected.name(row) for row in range(12)]
            np.testing.assert_array_equal(again[:], expected[:])
    loader = wr.DataLoader(cells, 5, dtype="stored", num_workers=2, memory="64MiB")
    np.testing.assert_array_equal(np.concatenate(list(loader)), expected[:])
    with pytest.raises(TypeError, match="label_masks must be True or False"):
        ds.cells(masks, label_masks="yes")
    # The same on the command line.
    how = ["--cells-size", "15x15", "--cells-edge", "pad", "--cells-mask", "channel"]
    of_masks = ["--cells", tmp_path / "binary", *how]
    assert "--cells-label-masks numbers the pieces" in wellread("info", folder / "images", *of_masks, code=2)
    sums = wellread("checksum", folder / "images", *of_masks, "--cells-label-masks")
    wanted = wellread("checksum", folder / "images", "--cells", folder / "labels", *how)
    assert [(one["name"], one["sha256"]) for one in sums] == [(one["name"], one["sha256"]) for one in wanted]


def test_numbers_of_masks_are_those_of_scikit_image(tmp_path):
    measure = pytest.importorskip("skimage.measure")
    random = np.random.default_rng(5)
    image = random.integers(0, 4096, (60, 80), dtype=np.uint16)
    mask = random.random((60, 80)) < 0.25
    for folder, pixels in (("images", image), ("masks", mask.astype(np.uint8))):
        (tmp_path / folder).mkdir()
        tifffile.imwrite(tmp_path / folder / "a.tif", pixels)
    cells = wr.Dataset(tmp_path / "images").cells(tmp_path / "masks", size=9, label_masks=True)
    labels, count = measure.label(mask, connectivity=2, return_num=True)
    assert len(cells) == count > 50
    places = [np.argwhere(labels == number).mean(0) for number in cells.column("ObjectNumber")]
    np.testing.assert_allclose(cells.column("Location_Center_Y"), [y for y, _ in places])
    np.testing.assert_allclose(cells.column("Location_Center_X"), [x for _, x in places])


def test_masks_stay_0_and_1(sites, tmp_path, wellread):
    folder, _ = sites
    cells = wr.Dataset(folder / "images").cells(folder / "labels", size=(15, 15), edge="pad", mask="channel")
    stored = np.stack([cells[row] for row in range(len(cells))])
    masks = stored[:, 2]
    assert set(np.unique(masks)) == {0, 1}
    out = tmp_path / "stats.json"
    wellread("stats", folder / "images", "--out", out)
    for choices in (
        {},
        {"scale": 2.0},
        {"scale": (0, 16000)},
        {"scale": ([0, 1], [4095, 4000])},
        {"percentiles": (1, 99)},
        {"normalize": ([0.1, 0.2], [0.5, 0.25])},
        {"normalize": ([0.1, 0.2, 0.3], [0.5, 0.25, 4.0])},
        {"normalize": "image"},
        {"normalize": out},
        {"photon_noise": 0.1, "gaussian_noise": 0.2, "normalize": out},
        {"brightness": 0.5, "contrast": 0.5, "gamma": 0.5},
        {"brightness": 0.5, "normalize": "image"},
        {"dtype": "float16", "scale": "unit"},
    ):
        got = np.concatenate(list(wr.DataLoader(cells, 5, **choices)))
        assert np.array_equal(got[:, 2], masks), choices
        assert not np.array_equal(got[:, :2], stored[:, :2]), choices
    got = np.concatenate(list(wr.DataLoader(cells, 5, channels=[2, 1, 0], scale=None, normalize=([10, 20], [5, 4]))))
    assert np.array_equal(got[:, 0], masks)
    assert np.allclose(got[:, 1], (stored[:, 1] - 10.0) / 5) and np.allclose(got[:, 2], (stored[:, 0] - 20.0) / 4)
    # Lists of both kinds, one of which leaves the mask out.
    choices = {"channels": [2, 1, 0], "scale": ([0, 100], [1000, 2100]), "normalize": ([9, 0.1, 0.2], [9, 5, 4])}
    got = np.concatenate(list(wr.DataLoader(cells, 5, **choices)))
    assert np.array_equal(got[:, 0], masks)
    first, second = np.clip(stored[:, 1] / 1000, 0, 1), np.clip((stored[:, 0] - 100.0) / 2000, 0, 1)
    assert np.allclose(got[:, 1], (first - 0.1) / 5, atol=1e-6)
    assert np.allclose(got[:, 2], (second - 0.2) / 4, atol=1e-6)
    with pytest.raises(wr.ChoiceError, match="means"):
        wr.DataLoader(cells, 5, normalize=([1] * 4, [1] * 4))


def test_masks_are_neither_dropped_nor_mixed(sites):
    folder, _ = sites
    cells = wr.Dataset(folder / "images").cells(folder / "labels", size=(15, 15), edge="pad", mask="channel")
    masks = np.stack([cells[row] for row in range(len(cells))])[:, 2]
    got = np.concatenate(list(wr.DataLoader(cells, 5, channel_dropout=0.9, seed=2)))
    assert np.array_equal(got[:, 2], masks)
    assert (got[:, :2].reshape(len(got), 2, -1).any(2).sum(1) == 1).any(), "a stain is dropped"
    nearest = ((np.arange(34) + 0.5) * 15 / 34).astype(int)
    for dtype in ("float32", "float16"):
        got = np.concatenate(list(wr.DataLoader(cells, 5, resize=34, dtype=dtype)))
        assert np.array_equal(got[:, 2], masks[:, nearest][:, :, nearest])
        assert len(np.unique(got[:, 0])) > 1000
    for choices in ({"rotate": 40}, {"rotate": 40, "resize": 20}, {"random_resized_crop": 9}, {"resize": 7}):
        got = np.concatenate(list(wr.DataLoader(cells, 5, seed=3, **choices)))
        assert set(np.unique(got[:, 2])) == {0, 1}, choices


def test_label_images_of_no_image_are_counted(sites, wellread):
    folder, _ = sites
    some = wr.Dataset(folder / "images").select([0, 2])
    report = some.cells(folder / "labels", size=8).cells_report
    assert report["labels_without_image"] == {"count": 1, "first": ["P1_A01_s1_MaskNuclei"]}
    assert report["rows"] == report["cells"] == 8
    whole = wr.Dataset(folder / "images").cells(folder / "labels", size=8).cells_report
    assert whole["labels_without_image"]["count"] == 0


def test_rows_of_images_without_a_cell_have_no_number(sites):
    pd = pytest.importorskip("pandas")
    folder, images = sites
    names = [f"{name}.tif" for name in images]
    # As an outer join leaves an image without cells.
    numbers, ys, xs = [1.0, 2.0, np.nan], [20.0, 30.0, np.nan], [25.0, 35.0, np.nan]
    frame = pd.DataFrame({"Image_FileName_DNA": names, "ObjectNumber": numbers, "y": ys, "x": xs})
    ds = wr.Dataset(folder / "images")
    with pytest.raises(wr.Error, match="without a position"):
        ds.cells(frame, size=8)
    cells = ds.cells(frame, size=8, unmatched="skip")
    assert len(cells) == 2 and cells.cells_report["without_position"]["count"] == 1
    frame.loc[1, "ObjectNumber"] = np.nan
    with pytest.raises(wr.Error, match='row 1: column "ObjectNumber" is NaN'):
        ds.cells(frame, size=8, unmatched="skip")


def test_illumination_is_that_of_the_whole_image(sites, tmp_path):
    folder, images = sites
    random = np.random.default_rng(5)
    flat = random.uniform(0.5, 2, SHAPE).astype(np.float32)
    np.save(tmp_path / "flat.npy", flat)
    for channel, plane in enumerate(flat):
        np.save(tmp_path / f"flat{channel + 1}.npy", plane)
    ds = wr.Dataset(folder / "images")
    for mask in ("none", "channel"):
        # Larger than the distance of some cells from the border.
        cells = ds.cells(folder / "labels", size=(41, 41), edge="pad", mask=mask)
        stored = np.stack([cells[row] for row in range(len(cells))])
        names, y, x = (cells.column(name) for name in ("ImageName", "Location_Center_Y", "Location_Center_X"))
        expected = stored.astype(np.float64)
        for row, name in enumerate(names):
            expected[row, :2] = crop(images[name][0] / flat, y[row], x[row], (41, 41), "pad")
        assert not expected[:, :2, 0].all()
        for illumination in (tmp_path / "flat.npy", str(tmp_path / "flat{channel:1}.npy")):
            for workers in (0, 2):
                loader = wr.DataLoader(cells, 5, scale=None, illumination=illumination, num_workers=workers)
                assert np.allclose(np.concatenate(list(loader)), expected, rtol=1e-5)
            cropped = wr.DataLoader(cells, 5, scale=None, illumination=illumination, crop=(9, 7))
            assert np.allclose(np.concatenate(list(cropped)), expected[:, :, 16:25, 17:24], rtol=1e-5)
    np.save(tmp_path / "small.npy", flat[:, 1:])
    with pytest.raises(wr.ChoiceError, match="illumination field"):
        wr.DataLoader(cells, 5, illumination=tmp_path / "small.npy")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_dark_field_is_not_subtracted_from_masked_pixels(sites, tmp_path, dtype):
    folder, images = sites
    np.save(tmp_path / "flat.npy", np.full(SHAPE[1:], 2, np.float32))
    np.save(tmp_path / "dark.npy", np.full(SHAPE[1:], 96, np.float32))
    cells = wr.Dataset(folder / "images").cells(folder / "labels", size=(41, 41), edge="pad", mask="zero")
    names, numbers = cells.column("ImageName"), [cells.name(row).rsplit("-", 1)[1] for row in range(len(cells))]
    y, x = cells.column("Location_Center_Y"), cells.column("Location_Center_X")
    expected = []
    for row, name in enumerate(names):
        image, labels = images[name]
        # Zeros of the image itself are corrected.
        corrected = np.where(labels == int(numbers[row]), (image.astype(np.float64) - 96) / 2, 0)
        expected.append(crop(corrected, y[row], x[row], (41, 41), "pad"))
    illumination = (tmp_path / "flat.npy", tmp_path / "dark.npy")
    for workers in (0, 2):
        loader = wr.DataLoader(cells, 5, dtype=dtype, scale=None, illumination=illumination, num_workers=workers)
        assert np.array_equal(np.concatenate(list(loader)), np.stack(expected).astype(dtype))
    scaled = wr.DataLoader(cells, 5, dtype=dtype, scale=2, illumination=illumination, crop=(9, 7))
    assert np.array_equal(np.concatenate(list(scaled)), (2 * np.stack(expected)[:, :, 16:25, 17:24]).astype(dtype))


def test_cells_of_several_sets_are_mixed_by_images(sites, tmp_path):
    folder, images = sites
    sets = []
    for seed in (1, 2):
        path, rows = table_of(tmp_path, images, cells=10, seed=seed)
        sets.append((wr.Dataset(folder / "images").cells(path, size=(16, 16), edge="pad"), [row[0] for row in rows]))
    (first, own), (second, theirs) = sets
    both = first + second
    image_of = [(0, name) for name in own] + [(1, name) for name in theirs]
    order = wr.DataLoader(both, 10, order="block", block=1, seed=3).rows(0)
    assert sorted(order) == list(range(60))
    # One image at a time, of which each has ten cells.
    blocks = [{image_of[row] for row in order[at : at + 10]} for at in range(0, 60, 10)]
    assert all(len(block) == 1 for block in blocks) and len(set.union(*blocks)) == 6
    chosen = both.select(range(0, 60, 2))
    assert len(wr.DataLoader(chosen, 10, order="block", block=2).rows(0)) == 30
    with pytest.raises((TypeError, ValueError), match="block"):
        wr.DataLoader(wr.Dataset(folder / "images"), 1, order="block", block=2)


def test_lines_of_minus_one_between_labels_are_no_cell(tmp_path):
    """OpenCV's watershed writes -1 where two cells meet."""
    for folder in ("images", "labels"):
        (tmp_path / folder).mkdir()
    labels = np.zeros((40, 40), np.int32)
    labels[5:15, 5:15], labels[5:15, 16:26], labels[5:15, 15] = 1, 2, -1
    for name in ("a", "b"):
        tifffile.imwrite(tmp_path / "images" / f"{name}.tif", np.full((40, 40), 9, np.uint16))
        tifffile.imwrite(tmp_path / "labels" / f"{name}_labels.tif", labels)
    cells = wr.Dataset(tmp_path / "images").cells(tmp_path / "labels", size=(16, 16), edge="pad", mask="zero")
    assert cells.column("ObjectNumber").tolist() == [1, 2, 1, 2]
    assert [int((cell > 0).sum()) for cell in cells] == [100] * 4


def test_an_image_that_cannot_be_read_keeps_only_its_own_cells_from_being_cut(tmp_path):
    (tmp_path / "images").mkdir()
    for number in range(4):
        tifffile.imwrite(tmp_path / "images" / f"s{number}.tif", np.full((30, 30), number, np.uint16))
    (tmp_path / "images" / "s2.tif").write_bytes(b"")
    images = wr.Dataset(tmp_path / "images")
    head = "ImageName,Location_Center_X,Location_Center_Y\n"
    table = tmp_path / "cells.csv"
    table.write_text(head + "s3,15,15\ns0,12,12\n")
    for unmatched in ("error", "skip"):
        cells = images.cells(table, size=(8, 8), unmatched=unmatched)
        assert [int(cell.max()) for cell in cells] == [3, 0]
        assert cells.cells_report["images_without_cells"]["count"] == 2
    # A cell of it is an error that says how to go on, and so it is possible.
    table.write_text(head + "s3,15,15\ns2,12,12\n")
    with pytest.raises(wr.CorruptImageError, match="s2.tif: row 2: the file is empty") as refused:
        images.cells(table, size=(8, 8))
    assert (refused.value.row, refused.value.path) == (2, str(tmp_path / "images" / "s2.tif"))
    hint = 'leave the image out of the set (select), and its cells by unmatched="skip"'
    assert refused.value.hint.endswith(hint)
    cells = images.select([0, 1, 3]).cells(table, size=(8, 8), unmatched="skip")
    assert [int(cell.max()) for cell in cells] == [3]


def test_sites_that_may_be_counted_from_another_number_are_told(tmp_path):
    for site in range(3):
        tifffile.imwrite(tmp_path / f"s{site}.tif", np.zeros((32, 32), np.uint8))
    images = wr.Dataset(tmp_path).with_columns({"Metadata_Well": ["A01"] * 3, "Metadata_Site": [0, 1, 2]})

    def table(*sites):
        middle = [16.0] * len(sites)
        return {"Metadata_Well": ["A01"] * len(sites), "Metadata_Site": list(sites), "x": middle, "y": middle}

    with pytest.warns(UserWarning, match='no cell is of site 0, where column "Metadata_Site" of the images begins'):
        cells = images.cells(table(1, 2), size=8)
    assert "if the table counts sites from 1" in cells.cells_report["site_numbers"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "site_numbers" not in images.cells(table(0, 2), size=8).cells_report
    # Wells of another spelling would be of no image: the error says how both have them, and skips none.
    others = {**table(1), "Metadata_Well": ["A1"]}
    said = 'column "Metadata_Well" has the well "A1", which the images\' column "Metadata_Well" calls "A01"'
    for unmatched in ("error", "skip"):
        with pytest.raises(wr.ChoiceError, match=said):
            images.cells(others, size=8, unmatched=unmatched)
    with pytest.raises(wr.ChoiceError, match=said):
        images.with_columns({"Metadata_Well": ["A1"], "drug": ["DMSO"]}, on="Metadata_Well")
    with pytest.raises(KeyError, match='is it "Metadata_Well"'):
        next(iter(wr.DataLoader(images, 1, labels="Well")))
    with pytest.raises(wr.ChoiceError, match='has no column "Sit" .hint: is it "Metadata_Site"'):
        images.cells(table(0), size=8, by="Sit")
    with pytest.raises(wr.ChoiceError, match='which column "Well_x" was compared with, as the images have no column'):
        images.cells({**table(0), "Well_x": ["none"]}, size=8, by="Well_x")
    # Wells that the images have by no spelling are of no image, and the error says how the images have theirs.
    others = {**table(1), "Metadata_Well": ["B2"]}
    said = (
        "1 cell of no image .*Metadata_Well B2, Metadata_Site 1.*first image has Metadata_Well A01, Metadata_Site 0"
    )
    with pytest.raises(wr.ChoiceError, match=said):
        images.cells(others, size=8)
    with pytest.raises(wr.ChoiceError, match='give positions in pixels: unit="pixel"'):
        images.cells(table(0), size=8, unit="um")
    with pytest.raises(wr.ChoiceError, match='The images have a column "Metadata_Well": give that of the table this'):
        images.with_columns({"Well": ["A01"], "drug": ["DMSO"]}, on="Well")


def test_numbers_of_cells_that_repeat_are_told(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", np.zeros((32, 32), np.uint8))
    images = wr.Dataset(tmp_path)
    places = {"centroid-0": [9.0, 16.0, 9.0], "centroid-1": [9.0, 16.0, 9.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert images.cells({"label": [7, 8, 9], **places}, size=8).name(1).endswith("/cell-8")
    # One repeated row does not make row numbers of all.
    with pytest.raises(wr.Error, match=r'rows 0 and 2 are both cell 7 \(column "label"\)'):
        images.cells({"label": [7, 8, 7], **places}, size=8)
    # In other tables the column may hold classes.
    classes = {"label": [7, 8, 7], "x": places["centroid-1"], "y": places["centroid-0"]}
    with pytest.warns(UserWarning, match='column "label" does not number the cells.*rows 0 and 2 both have 7'):
        cells = images.cells(classes, size=8)
    assert cells.name(1).endswith("/cell-1")
    assert "rows 0 and 2" in cells.cells_report["repeated_labels"]
    masks = tmp_path / "masks"
    masks.mkdir()
    tifffile.imwrite(masks / "a_mask.tif", np.ones((32, 32), np.uint16))
    with pytest.raises(wr.ChoiceError, match='"label" does not tell it, since rows 0 and 2 both have 7'):
        images.cells(classes, size=8, mask="zero", masks=masks)
