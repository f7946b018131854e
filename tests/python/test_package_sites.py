"""Images made of several files each, from Python: layouts, patterns, what is missing, tables of files."""

import pickle
import shutil
import warnings

import numpy as np
import pyarrow as pa
import pytest
import tifffile
import wellread as wr


def write(folder, names, first=0):
    """A file for each name; all of its pixels are its place in the list."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, name in enumerate(names):
        tifffile.imwrite(folder / name, np.full((4, 5), first + i, np.uint16))


@pytest.fixture
def plate(tmp_path):
    folder = tmp_path / "P1" / "Images"
    wells = ("r01c01", "r01c02", "r02c01")
    write(folder, [f"{well}f01p01-ch{channel}sk1fk1fl1.tiff" for well in wells for channel in (1, 2)])
    return folder


def test_a_plate_is_read_by_site(plate):
    ds = wr.Dataset(plate)
    assert [ds.name(row) for row in range(len(ds))] == ["r01c01f01", "r01c02f01", "r02c01f01"]
    assert ds[1].shape == (2, 4, 5)
    assert [int(channel[0, 0]) for channel in ds[1]] == [2, 3]
    assert list(ds.column("Metadata_Well")) == ["A01", "A02", "B01"]
    assert list(ds.column("Metadata_Plate")) == ["P1"] * 3
    assert list(ds.column("Metadata_Site")) == [1, 1, 1]
    assert len(wr.Dataset(plate, layout="files")) == 6
    assert len(pickle.loads(pickle.dumps(wr.Dataset(plate, layout="harmony")))) == 3


def test_a_shape_is_that_of_each_file(plate):
    """Files of a channel beside the first were not looked at."""
    assert wr.Dataset(plate).shape == (3, 2, 4, 5)
    other = plate / "r01c02f01p01-ch2sk1fk1fl1.tiff"
    for wrong in (
        lambda: tifffile.imwrite(other, np.zeros((100, 100), np.uint16)),
        lambda: other.write_bytes(b"rubb"),
    ):
        wrong()
        ds = wr.Dataset(plate)
        with pytest.raises(wr.Error) as of_pixels:
            ds[1]
        for looked in (ds, wr.Dataset(plate), wr.Dataset(plate).select([2, 1])):
            with pytest.raises(wr.Error, match="r01c02f01p01-ch2sk1fk1fl1.tiff") as of_shape:
                looked.shape  # noqa: B018
            assert of_shape.value.row == 1
        # The words of reading.
        with pytest.raises(wr.Error) as of_shape:
            ds.shape  # noqa: B018
        assert str(of_shape.value) == str(of_pixels.value)
    # Sites without the file have a shape.
    assert wr.Dataset(plate).select([0, 2]).shape == (2, 2, 4, 5)


def test_a_split_by_plate_shares_no_plate_and_no_well(tmp_path):
    sites = [f"{well}f{field}" for well in ("r01c01", "r01c02", "r02c01") for field in ("01", "02")]
    plates = ("BR1", "BR2", "BR3")
    for name in plates:
        folder = tmp_path / f"{name}__2020-11-02T19_54_45-Measurement1" / "Images"
        write(folder, [f"{site}p01-ch{channel}sk1fk1fl1.tiff" for site in sites for channel in (1, 2)])
    ds = wr.Dataset(tmp_path)
    plate_of, well_of = ds.column("Metadata_Plate"), ds.column("Metadata_Well")
    assert sorted(plate_of) == sorted(6 * plates) and len(ds) == 18
    divided = 0
    for seed in range(8):
        with warnings.catch_warnings():
            # Plates go to parts by chance: one may get none of three, which is warned of.
            warnings.simplefilter("ignore")
            parts = ds.split([0.5, 0.5], by="Metadata_Plate", seed=seed)
        assert sorted(sum(parts, [])) == list(range(18)) and {len(part) % 6 for part in parts} == {0}
        one, other = ({plate_of[row] for row in part} for part in parts)
        assert not one & other and one | other == set(plates)
        one, other = ({(plate_of[row], well_of[row]) for row in part} for part in parts)
        assert not one & other and len(one | other) == 9
        divided += all(parts)
    assert divided, "no seed has plates in both parts"


def test_jump_s_own_files_are_cells_with_their_treatment(shared, tmp_path):
    """The steps of docs/tutorial-plate.md on what JUMP published: files, table of cells, plate map by well."""
    pandas = pytest.importorskip("pandas")
    jump = shared / "jump"
    if not jump.is_dir():
        pytest.skip("no JUMP images in the shared folder")
    folder = tmp_path / "BR00117006__2020-11-02T19_54_45-Measurement1" / "Images"
    folder.mkdir(parents=True)
    files = sorted(jump.glob("*.tiff"))
    for file in files:
        (folder / file.name).symlink_to(file)
    plan = pandas.DataFrame({"Metadata_Well": ["A01", "A02"], "gene": ["HSP90AA1", "none"]})
    sites = wr.Dataset(folder.parent).with_columns(plan, on="Metadata_Well")
    assert (len(sites), sites.image_shape(0)) == (1, (3, 1080, 1080))
    told = {name: sites.column(name)[0] for name in sites.columns}
    assert told == {
        "Metadata_Plate": "BR00117006", "Metadata_Well": "A01", "Metadata_Site": 1, "gene": "HSP90AA1",
    }  # fmt: skip
    cells = sites.cells(jump / "profiles.parquet", size=(64, 64))
    loader = wr.DataLoader(cells, 5, shuffle=False, labels="gene", classes=True, dtype="stored")
    pixels, genes = next(iter(loader))
    assert loader.classes == ["HSP90AA1"] and genes.tolist() == [0] * 5
    image = np.stack([tifffile.imread(file) for file in files])
    places = zip(cells.column("Nuclei_Location_Center_X"), cells.column("Nuclei_Location_Center_Y"), strict=True)
    for row, (x, y) in enumerate(places):
        # Boxes at the border of the image are moved inside.
        left, top = (min(max(int(np.floor(at + 0.5)) - 32, 0), 1080 - 64) for at in (x, y))
        np.testing.assert_array_equal(np.asarray(pixels)[row], image[:, top : top + 64, left : left + 64])


def test_a_plate_is_the_value_of_its_partition(tmp_path):
    """Cells are joined by plate: `plate=BR1` of a folder's name is no plate of a table."""
    for folder in ("plate=BR1", "plate=BR2"):
        write(tmp_path / folder / "Images", [f"r01c01f01p01-ch{channel}sk1fk1fl1.tiff" for channel in (1, 2)])
    both = ["BR1", "BR2"]
    for path in (tmp_path, tmp_path / "*", sorted(tmp_path.iterdir())):
        assert list(wr.Dataset(path).column("Metadata_Plate")) == both
    assert list(wr.Dataset(tmp_path / "*").column("plate")) == both
    table = {"Plate": ["BR2"], "Well": ["A01"], "Site": [1], "x": [2.0], "y": [2.0]}
    assert wr.Dataset(tmp_path).cells(table, size=2).name(0).startswith("plate=BR2/")


def test_columns_of_a_layout_serve_wherever_columns_do(plate, tmp_path, wellread):
    # Five more sites of one well: sites of the others are rare.
    write(plate, [f"r01c01f0{site}p01-ch{channel}sk1fk1fl1.tiff" for site in range(2, 7) for channel in (1, 2)], 6)
    ds = wr.Dataset(plate)
    assert list(ds.column("Metadata_Well")) == ["A01"] * 6 + ["A02", "B01"]
    columns = ["Metadata_Plate", "Metadata_Site"]
    loader = wr.DataLoader(ds, 8, labels="Metadata_Well", classes=True, columns=columns, dtype="stored")
    pixels, labels, beside = next(iter(loader))
    assert pixels[:, 0, 0, 0].tolist() == [0, 6, 8, 10, 12, 14, 2, 4]
    assert loader.classes == ["A01", "A02", "B01"] and labels.tolist() == [0] * 6 + [1, 2]
    assert list(beside["Metadata_Plate"]) == ["P1"] * 8
    assert beside["Metadata_Site"].tolist() == [1, 2, 3, 4, 5, 6, 1, 1]
    balanced = wr.DataLoader(ds, 3, order="balanced", by="Metadata_Well", labels="Metadata_Well", seed=1)
    wells = [sorted(of_batch) for _, of_batch in balanced]
    assert wells and all(of_batch == ["A01", "A02", "B01"] for of_batch in wells if len(of_batch) == 3)
    grouped = wr.DataLoader(ds, 4, order="grouped", by="Metadata_Well", seed=1).rows(0)
    places = [i for i, row in enumerate(grouped) if row < 6]
    assert places == list(range(places[0], places[0] + 6))
    target = tmp_path / "plate.parquet"
    wellread("convert", plate, target)
    stored = wr.Dataset(target)
    assert stored.columns == ds.columns
    for name in ds.columns:
        want, got = ds.column(name), stored.column(name)
        assert list(got) == list(want) and got.dtype == want.dtype, name


def test_batches_of_sites(plate):
    batches = list(wr.DataLoader(wr.Dataset(plate), batch_size=3, shuffle=False, dtype="stored"))
    assert len(batches) == 1
    assert np.asarray(batches[0])[:, :, 0, 0].tolist() == [[0, 1], [2, 3], [4, 5]]


def test_a_site_that_lacks_a_file(plate):
    (plate / "r01c02f01p01-ch2sk1fk1fl1.tiff").unlink()
    ds = wr.Dataset(plate)
    assert ds[0].shape == (2, 4, 5)
    with pytest.raises(wr.CorruptImageError, match="r01c02f01 has no ch2") as lacking:
        ds[1]
    assert lacking.value.row == 1
    with pytest.raises(wr.Error, match="r01c02f01 has no ch2"):
        wr.DataLoader(ds, batch_size=1)
    assert len(wr.Dataset(plate, missing="skip")) == 2
    assert wr.Dataset(plate, missing="zero")[1][:, 0, 0].tolist() == [2, 0]
    with pytest.raises(ValueError, match="none of error, skip and zero"):
        wr.Dataset(plate, missing="guess")


def test_a_pattern(tmp_path):
    stains = ("DNA", "ER")
    write(tmp_path, [f"{well}_{site}_{stain}.tif" for well in ("A1", "B2") for site in (1, 2) for stain in stains])
    ds = wr.Dataset(tmp_path, pattern="{well}_{site}_{channel}.tif")
    assert len(ds) == 4
    assert list(ds.column("Metadata_Well")) == ["A1", "A1", "B2", "B2"]
    with pytest.raises(wr.ChoiceError, match="none of 8 files fits"):
        wr.Dataset(tmp_path, pattern="{well}-{channel}")


def test_a_table_of_another_machine(tmp_path):
    write(tmp_path / "here", ["a.tif", "b.tif"])
    table = tmp_path / "load_data.csv"
    table.write_text(
        "FileName_OrigDNA,PathName_OrigDNA,FileName_OrigER,PathName_OrigER,Metadata_Well\n"
        "a.tif,/there/plate,b.tif,/there/plate,A01\n"
    )
    ds = wr.Dataset(table, path_map={"/there/plate": str(tmp_path / "here")})
    assert ds[0][:, 0, 0].tolist() == [0, 1]
    assert list(ds.column("Metadata_Well")) == ["A01"]
    with pytest.raises(TypeError, match="path_map must be a dict"):
        wr.Dataset(table, path_map="/there=/here")


def test_a_relative_replacement_begins_at_the_folder_of_the_table_on_every_node(tmp_path, monkeypatch):
    from wellread.ray import _sets

    plate, node = tmp_path / "plate", tmp_path / "node"
    write(plate / "here", ["a.tif", "b.tif"])
    # A process of a cluster may have such a folder in its own working folder.
    write(node / "here", ["a.tif", "b.tif"], first=7)
    table = "FileName_OrigDNA,PathName_OrigDNA\na.tif,/there/plate\nb.tif,/there/plate\n"
    (plate / "load_data.csv").write_text(table)
    monkeypatch.chdir(tmp_path)
    sent = pickle.dumps(_sets.of(wr.Dataset("plate/load_data.csv", path_map={"/there/plate": "here"})))
    monkeypatch.chdir(node)
    assert [int(image[0, 0, 0]) for image in pickle.loads(sent)[:]] == [0, 1]


def test_info_names_the_layout_of_a_companion(tmp_path, wellread):
    write(tmp_path, ["first.tif", "second.tif"])
    files = [
        f'<TiffData FirstC="{c}" IFD="0" PlaneCount="1"><UUID FileName="{name}.tif">urn:uuid:{c}</UUID></TiffData>'
        for c, name in enumerate(("second", "first"))
    ]
    names = "".join(f'<Channel ID="Channel:0:{c}" Name="{name}"/>' for c, name in enumerate(("DNA", "ER")))
    pixels = 'DimensionOrder="XYZCT" Type="uint16" SizeX="5" SizeY="4" SizeZ="1" SizeC="2" SizeT="1"'
    (tmp_path / "x.companion.ome").write_text(
        '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0" Name="A">'
        f'<Pixels ID="Pixels:0" {pixels}>{names}{"".join(files)}</Pixels></Image></OME>'
    )
    info = wellread("info", tmp_path, "--layout", "ome-companion")
    assert (info["images"], info["shape_tczyx"]) == (1, [1, 2, 1, 4, 5])
    assert [channel["name"] for channel in info["channels"]] == ["DNA", "ER"]
    assert info["layout_preset"] == "ome-companion"
    # Its name tells as much.
    assert wellread("info", tmp_path / "x.companion.ome")["layout_preset"] == "ome-companion"
    assert "layout_preset" not in wellread("info", tmp_path, "--layout", "files")
    assert wr.Dataset(tmp_path, layout="ome-companion")[0][:, 0, 0].tolist() == [1, 0]


@pytest.fixture
def companion(tmp_path):
    """Three images of a file each, in two wells of the plate P1."""
    folder = tmp_path / "companion"
    write(folder, [f"x{i}.tif" for i in range(3)])
    pixels = 'DimensionOrder="XYZCT" Type="uint16" SizeX="5" SizeY="4" SizeZ="1" SizeC="1" SizeT="1"'
    images = [
        f'<Image ID="Image:{i}" Name="x{i}"><Pixels ID="Pixels:{i}" {pixels}><Channel ID="Channel:{i}:0"/>'
        f'<TiffData IFD="0" PlaneCount="1"><UUID FileName="x{i}.tif">urn:uuid:{i}</UUID></TiffData></Pixels></Image>'
        for i in range(3)
    ]
    wells = [
        f'<Well Row="{row}" Column="{column}">'
        + "".join(f'<WellSample Index="{i}"><ImageRef ID="Image:{i}"/></WellSample>' for i in samples)
        + "</Well>"
        for row, column, samples in ((0, 0, (0, 1)), (1, 2, (2,)))
    ]
    xmlns = "http://www.openmicroscopy.org/Schemas/OME/2016-06"
    plate = f'<Plate ID="Plate:0" Name="P1">{"".join(wells)}</Plate>'
    path = folder / "set.companion.ome"
    path.write_text(f'<OME xmlns="{xmlns}">{plate}{"".join(images)}</OME>')
    return path


def test_a_plate_in_a_companion_is_split_joined_and_cut_by_well(companion, wellread):
    ds = wr.Dataset(companion)
    assert list(ds.column("Metadata_Plate")) == ["P1"] * 3
    assert list(ds.column("Metadata_Well")) == ["A01", "A01", "B03"]
    assert list(ds.column("Metadata_Site")) == [1, 2, 1]
    with warnings.catch_warnings():
        # One of two parts may have both wells.
        warnings.simplefilter("ignore", UserWarning)
        splits = [ds.split([0.5, 0.5], by="Metadata_Well", seed=seed) for seed in range(8)]
    assert {tuple(part) for parts in splits for part in parts} <= {(), (2,), (0, 1), (0, 1, 2)}
    compounds = pa.table({"Metadata_Well": ["B03", "A01"], "compound": ["b", "a"]})
    joined = ds.with_columns(compounds, on="Metadata_Well")
    assert list(joined.column("compound")) == ["a", "a", "b"]
    table = pa.table({"Plate": ["P1"] * 2, "Well": ["B03", "A01"], "Site": [1, 1], "x": [2.0, 2.0], "y": [2.0, 2.0]})
    cells = ds.cells(table, size=(2, 2))
    assert {well: int(cells[i].max()) for i, well in enumerate(cells.column("Well"))} == {"B03": 2, "A01": 0}
    info = wellread("info", companion)
    assert (info["plates"], info["wells"]) == (1, 2)
    assert info["columns"] == ["Metadata_Plate", "Metadata_Well", "Metadata_Site"]


def test_info_describes_a_companion_without_a_file(companion, wellread):
    (companion.parent / "x1.tif").unlink()
    lacks = "1 image of 3 lacks files: x1 has no x1.tif"
    info = wellread("info", companion)
    assert (info["images"], info["wells"], info["lacks"]) == (2, 2, [f"{lacks} (left out)"])
    with pytest.raises(wr.Error, match='missing="skip" leaves such images out'):
        wr.Dataset(companion)
    with pytest.raises(wr.Error, match='cannot be read as zeros; use missing="skip"'):
        wr.Dataset(companion, missing="zero")
    for refused in (("stats", companion), ("info", companion, "--missing", "zero")):
        assert lacks in wellread(*refused, code=1)


def test_a_stray_file_is_told_and_left_out_on_request(plate):
    write(plate, ["overlay.tif"], first=9)
    with pytest.warns(UserWarning, match=r"6 of 7 names are harmony's; overlay\.tif is not"):
        assert len(wr.Dataset(plate)) == 7
    ds = wr.Dataset(plate, unmatched="skip")
    assert (len(ds), ds[0].shape) == (3, (2, 4, 5))


def test_a_plane_in_two_files_is_told(plate):
    twin = "r01c01f01p01-ch1sk1fk1fl1.tif"
    write(plate, [twin], first=9)
    with pytest.warns(UserWarning, match="are the same plane by their names") as told:
        assert len(wr.Dataset(plate)) == 7
    (said,) = [str(warning.message) for warning in told]
    assert f"all names are harmony's, but {twin} and {twin}f are the same plane by their names" in said
    # Leaving others out would not help here.
    assert "pattern= with a field that tells them apart" in said and "unmatched=" not in said
    assert said.endswith('layout="files" if single files are meant')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(wr.Dataset(plate, layout="files")) == 7


def test_metadata_of_a_table_are_numbers_and_filters_heed_types(tmp_path):
    write(tmp_path, ["a1.tif", "b1.tif"])
    table = tmp_path / "load_data.csv"
    table.write_text("FileName_OrigDNA,Metadata_Well,Metadata_Dose\na1.tif,A01,0\nb1.tif,A02,3\n")
    ds = wr.Dataset(table)
    assert [int(image.max()) for image in ds.filter(Metadata_Dose=3)] == [1]
    assert len(ds.filter(Metadata_Dose=[0, 3])) == 2
    with pytest.raises(TypeError, match="column Metadata_Dose has numbers"):
        ds.filter(Metadata_Dose="3")
    with pytest.raises(TypeError, match="column Metadata_Well has texts"):
        ds.filter(Metadata_Well=1)


def test_images_that_the_table_of_a_folder_does_not_name_are_told(tmp_path):
    write(tmp_path, ["a1.tif", "b1.tif", "c1.tif"])
    table = tmp_path / "load_data.csv"
    table.write_text("FileName_OrigDNA,Metadata_Well\na1.tif,A01\nb1.tif,A02\n")
    with pytest.warns(UserWarning, match=r"1 image of the folder is not in its load_data\.csv: c1\.tif: layout="):
        assert len(wr.Dataset(tmp_path)) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (len(wr.Dataset(table)), len(wr.Dataset(tmp_path, layout="files"))) == (2, 3)
    table.write_text("FileName_OrigDNA,PathName_OrigDNA\na1.tif,D:\\x\\img\n")
    (tmp_path / "deep").mkdir()
    for name in ("a1.tif", "b1.tif", "c1.tif"):
        (tmp_path / name).rename(tmp_path / "deep" / name)
    with pytest.warns(UserWarning, match=r"load_data\.csv that was not used.*D:\\x\\img\\a1\.tif .*path_map"):
        assert len(wr.Dataset(tmp_path)) == 3


def test_a_well_that_is_not_there_is_told_in_words_of_python(tmp_path, wellread):
    wellread(
        "generate", tmp_path / "made", "--plate", "2x2", "--fields", "1", "--size", "16x16", "--layout", "hcs-zarr"
    )
    [plate] = (tmp_path / "made").rglob("*.zarr")
    shutil.rmtree(plate / "A" / "1")
    with pytest.raises(wr.Error, match='missing="skip" leaves wells out'):
        wr.Dataset(plate)
    assert len(wr.Dataset(plate, missing="skip")) == 3
    # Its description names the well; commands that read images refuse the plate.
    info = wellread("info", plate)
    assert (info["images"], info["wells"], info["lacks"]) == (3, 3, ["1 well is not there: A/1 (left out)"])
    assert "--missing skip leaves wells out" in wellread("stats", plate, code=1)
    assert "--missing skip leaves wells out" in wellread("info", plate, "--missing", "zero", code=1)
    for well in ("A/2", "B/1", "B/2"):
        shutil.rmtree(plate / well)
    wellread("info", plate, code=1)
