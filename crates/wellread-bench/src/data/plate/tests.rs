//! Plates that are written are read, with their columns, nuclei and masks.

use super::*;
use wellread_image::PixelType;
use wellread_store::cells::{CellOptions, CellsStore, Mask};
use wellread_store::{OpenOptions, Store};

fn spec(layout: PlateLayout) -> PlateSpec {
    PlateSpec {
        name: "P1".to_owned(),
        size: "2x2".parse().unwrap(),
        fields: 2,
        channels: 2,
        pixels: [64, 80],
        dtype: PixelType::U16,
        seed: 7,
        layout,
        table: true,
        masks: true,
    }
}

fn generated(out: &Path, spec: &PlateSpec) -> PlateSet {
    generate_plate(out, spec, &WriteOptions { jobs: 2, ..WriteOptions::default() }, &|| ()).unwrap()
}

fn text_column(store: &dyn Store, name: &str) -> Vec<String> {
    wellread_store::features::keys(store, &[name.to_owned()]).unwrap()
}

#[test]
fn every_layout_is_read_with_its_nuclei_and_masks() {
    let dir = tempfile::tempdir().unwrap();
    for layout in PlateLayout::ALL {
        let spec = spec(layout);
        let set = generated(&dir.path().join(layout.name()), &spec);
        let store = wellread_store::open(&set.images, &OpenOptions::default()).unwrap();
        assert_eq!(store.len(), 8, "{layout}");
        let info = store.row_info(5).unwrap();
        assert_eq!((info.shape, info.dtype), (spec.shape(), PixelType::U16), "{layout}");
        let wells = text_column(&*store, "Metadata_Well");
        let wells: Vec<&str> = wells.iter().map(|well| well.trim_matches('"')).collect();
        assert_eq!(wells, ["A01", "A01", "A02", "A02", "B01", "B01", "B02", "B02"], "{layout}");
        // The pixels of a site are those of its image.
        let made = synthetic::treated(&spec.image(), 5, spec.site(5).well.treatment().effect).unwrap();
        let (_, pixels) = wellread_store::read_image(&*store, 5).unwrap();
        assert!(pixels == made.pixels, "{layout}");
        for table in &set.cells {
            let options = CellOptions {
                size: [24, 24],
                mask: Mask::Zero,
                masks: set.masks.clone(),
                ..CellOptions::default()
            };
            let store = wellread_store::open(&set.images, &OpenOptions::default()).unwrap();
            let cells = CellsStore::open(store, table, &options).unwrap();
            assert_eq!(cells.len(), set.nuclei, "{layout}");
            let dose = text_column(&cells, "Metadata_Dose");
            assert_eq!(dose.len(), set.nuclei, "{layout}");
        }
    }
}

#[test]
fn harmony_says_what_channels_are_and_how_large_pixels_are() {
    let dir = tempfile::tempdir().unwrap();
    let set = generated(&dir.path().join("p"), &spec(PlateLayout::Harmony));
    let store = wellread_store::open(&set.images, &OpenOptions::default()).unwrap();
    let metadata = store.metadata(0).unwrap();
    let names: Vec<&str> = metadata.channels.iter().map(|channel| channel.name.as_str()).collect();
    assert_eq!(names, ["DNA", "ER"]);
    assert_eq!(metadata.channels[0].emission_um, Some(0.461));
    assert_eq!(metadata.physical_size_x.map(|size| size.value), Some(0.6));
}

#[test]
fn files_are_as_a_microscope_writes_them() {
    let dir = tempfile::tempdir().unwrap();
    for layout in [PlateLayout::Harmony, PlateLayout::ImageXpress, PlateLayout::LoadData] {
        let set = generated(&dir.path().join(layout.name()), &spec(layout));
        let store = wellread_store::open(&set.images, &OpenOptions::default()).unwrap();
        assert!(!store.has_checksums(), "{layout}");
        // A row is read without the others.
        assert_eq!(store.row_hints(0).unwrap().grid(), Some([1, 80]), "{layout}");
        let file = store.files().unwrap().remove(0);
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(8).any(|part| part == b"{\"shape\""), "{layout}");
    }
    // The requested variant is written.
    let options = WriteOptions { variant: Some("plain".to_owned()), ..WriteOptions::default() };
    let out = dir.path().join("plain");
    let set = generate_plate(&out, &spec(PlateLayout::Harmony), &options, &|| ()).unwrap();
    let store = wellread_store::open(&set.images, &OpenOptions::default()).unwrap();
    assert!(store.has_checksums());
}

#[test]
fn both_versions_of_ome_zarr_are_written() {
    let dir = tempfile::tempdir().unwrap();
    for (version, file) in [("0.4", ".zattrs"), ("0.5", "zarr.json")] {
        let options = WriteOptions { variant: Some(version.to_owned()), ..WriteOptions::default() };
        let spec = PlateSpec { masks: false, table: false, ..spec(PlateLayout::HcsZarr) };
        let set = generate_plate(&dir.path().join(version), &spec, &options, &|| ()).unwrap();
        assert!(set.images.join(file).is_file() && set.images.join("B/2").join(file).is_file(), "{version}");
        assert!(set.masks.is_none() && set.cells.is_empty());
        let store = wellread_store::open(&set.images, &OpenOptions::default()).unwrap();
        assert_eq!((store.len(), store.name(7).unwrap()), (8, "B/2/1".to_owned()));
    }
    let options = WriteOptions { variant: Some("0.3".to_owned()), ..WriteOptions::default() };
    let out = dir.path().join("wrong");
    let error = generate_plate(&out, &spec(PlateLayout::HcsZarr), &options, &|| ()).unwrap_err();
    assert!(error.to_string().contains("there are 0.4 and 0.5") && !out.exists(), "{error}");
}

#[test]
fn a_plate_depends_on_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(PlateLayout::LoadData);
    let [one, two] = ["one", "two"].map(|name| generated(&dir.path().join(name), &spec));
    let text = |path: &Path| std::fs::read(path).unwrap();
    assert_eq!(text(&one.images), text(&two.images));
    assert_eq!(text(&one.cells[1]), text(&two.cells[1]));
    let file = "P1_B02_s2_ER.tiff";
    assert_eq!(text(&one.images.with_file_name(file)), text(&two.images.with_file_name(file)));
    let other = generated(&dir.path().join("three"), &PlateSpec { seed: 8, ..spec });
    assert_ne!(text(&one.cells[1]), text(&other.cells[1]));
}

#[test]
fn what_cannot_be_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refusal = |out: &str, spec: &PlateSpec| {
        let error = generate_plate(&dir.path().join(out), spec, &WriteOptions::default(), &|| ());
        error.unwrap_err().to_string()
    };
    let spec = spec(PlateLayout::ImageXpress);
    assert!(refusal("a", &PlateSpec { channels: 9, ..spec.clone() }).contains("names for 1 to 8"));
    assert!(refusal("a", &PlateSpec { fields: 0, ..spec.clone() }).contains("a well has 1 to 99"));
    std::fs::create_dir(dir.path().join("there")).unwrap();
    assert!(refusal("there", &spec).contains("already exists"));
    assert_eq!(PlateSpec::name_of(Path::new("a/my plate_1")), "my-plate-1");
    assert_eq!(PlateSpec::name_of(Path::new("..")), "plate");
}
