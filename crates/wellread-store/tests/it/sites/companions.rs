//! Plates of companions of OME-TIFF: their columns, and images that are in no well or in two.

use super::{failure, names, options, text, tiff, with_missing};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use std::path::{Path, PathBuf};
use wellread_store::{Missing, OpenOptions, Store, open, read_image};

/// An image of one file, `x0.tif` for the first, with this ID.
fn image(number: usize, id: &str) -> String {
    format!(
        r#"<Image ID="{id}" Name="x{number}"><Pixels ID="Pixels:{number}" DimensionOrder="XYZCT" Type="uint16" SizeX="3" SizeY="2" SizeZ="1" SizeC="1" SizeT="1"><Channel ID="Channel:{number}:0" SamplesPerPixel="1"/><TiffData IFD="0" PlaneCount="1"><UUID FileName="x{number}.tif">urn:uuid:00000000-0000-0000-0000-00000000000{number}</UUID></TiffData></Pixels></Image>"#
    )
}

/// A well with samples, each an index and the ID of its image.
fn well(row: usize, column: usize, samples: &[(usize, &str)]) -> String {
    let sample = |(index, id): &(usize, &str)| {
        format!(r#"<WellSample ID="WellSample:{index}" Index="{index}"><ImageRef ID="{id}"/></WellSample>"#)
    };
    let samples: String = samples.iter().map(sample).collect();
    format!(r#"<Well ID="Well:{row}:{column}" Row="{row}" Column="{column}">{samples}</Well>"#)
}

/// A companion of these plates and of an image for each ID, with a file for each.
fn companion(folder: &Path, plates: &str, ids: &[&str]) -> PathBuf {
    let images: String = ids.iter().enumerate().map(|(number, id)| image(number, id)).collect();
    for number in 0..ids.len() {
        let file = tiff(100 * number as u16, super::SIZE, "");
        std::fs::write(folder.join(format!("x{number}.tif")), file).unwrap();
    }
    let path = folder.join("set.companion.ome");
    let xml = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06">{plates}{images}</OME>"#
    );
    std::fs::write(&path, xml).unwrap();
    path
}

/// The sites of all images.
fn sites(store: &dyn Store) -> Vec<Option<i64>> {
    let table = store.hints().features(&["Metadata_Site".to_owned()]).unwrap().unwrap();
    table.column(0).as_primitive::<Int64Type>().iter().collect()
}

const COLUMNS: [&str; 3] = ["Metadata_Plate", "Metadata_Well", "Metadata_Site"];

#[test]
fn a_plate_in_a_companion_is_columns() {
    let dir = tempfile::tempdir().unwrap();
    let wells = [well(0, 0, &[(0, "Image:0"), (1, "Image:1")]), well(7, 11, &[(2, "Image:2")])].concat();
    let plates = format!(r#"<Plate ID="Plate:0" Name="BR1">{wells}</Plate>"#);
    let path = companion(dir.path(), &plates, &["Image:0", "Image:1", "Image:2", "Image:3"]);
    let by_name = OpenOptions { layout: Some("ome-companion".to_owned()), ..options() };
    // The folder as well, however it is opened.
    for (opened, options) in [(path.as_path(), options()), (dir.path(), options()), (dir.path(), by_name)] {
        let store = open(opened, &options).unwrap();
        assert_eq!(store.hints().feature_names(), COLUMNS, "{}", opened.display());
        assert_eq!(names(&*store), ["x0", "x1", "x2", "x3"].map(|name| format!("x0:{name}")));
        // No well names the last image.
        assert_eq!(text(&*store, "Metadata_Plate"), ["BR1", "BR1", "BR1", "null"]);
        assert_eq!(text(&*store, "Metadata_Well"), ["A01", "A01", "H12", "null"]);
        assert_eq!(sites(&*store), [Some(1), Some(2), Some(1), None]);
        assert!(store.hints().features(&[]).unwrap().is_none());
        let error = store.hints().features(&["Metadata_Dose".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("has no column \"Metadata_Dose\""), "{error}");
    }
    // A file that the companion does not name is an image in no well.
    std::fs::write(dir.path().join("y.tif"), tiff(900, super::SIZE, "")).unwrap();
    let with_another = open(dir.path(), &options()).unwrap();
    assert_eq!(text(&*with_another, "Metadata_Well"), ["A01", "A01", "H12", "null", "null"]);
    // Images that are left out do not move the others to their wells.
    std::fs::remove_file(dir.path().join("x0.tif")).unwrap();
    let error = open(&path, &options()).err().unwrap();
    assert!(error.is_skippable() && error.to_string().contains("x0 has no x0.tif"), "{error}");
    let error = failure(&path, &with_missing(Missing::Zero));
    assert!(
        error.contains("hint: a companion's images cannot be read as zeros; use missing skip"),
        "{error}"
    );
    let store = open(&path, &with_missing(Missing::Skip)).unwrap();
    assert_eq!(names(&*store), ["x1", "x2", "x3"].map(|name| format!("x0:{name}")));
    assert_eq!(text(&*store, "Metadata_Well"), ["A01", "H12", "null"]);
    assert_eq!(sites(&*store), [Some(2), Some(1), None]);
}

#[test]
fn a_companion_without_a_plate_has_no_columns() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = format!(r#"<Plate ID="Plate:0">{}</Plate>"#, well(0, 0, &[(0, "Image:9")]));
    for plates in ["", r#"<Plate ID="Plate:0" Name="empty"/>"#, elsewhere.as_str()] {
        let store = open(companion(dir.path(), plates, &["Image:0"]), &options()).unwrap();
        assert!(store.hints().feature_names().is_empty(), "{plates}");
    }
}

#[test]
fn wells_that_cannot_be_understood_are_nulls() {
    let dir = tempfile::tempdir().unwrap();
    let both = [well(0, 0, &[(0, "twice"), (1, "once")]), well(0, 1, &[(0, "twice"), (2, "same")])].concat();
    let broken =
        r#"<Well Row="x" Column="1"><WellSample><ImageRef ID="nowhere"/><ImageRef/></WellSample></Well>"#;
    let many: String = (0..3000).map(|i| well(i, i, &[(i, "nothing")])).collect();
    let plates = format!(r#"<Plate ID="Plate:7">{both}{broken}{many}</Plate>"#);
    // Two images of one ID: nothing tells which of them the well has.
    let path = companion(dir.path(), &plates, &["twice", "once", "same", "same", "nowhere"]);
    let store = open(&path, &options()).unwrap();
    assert_eq!(text(&*store, "Metadata_Plate"), ["null", "Plate:7", "null", "null", "Plate:7"]);
    assert_eq!(text(&*store, "Metadata_Well"), ["null", "A01", "null", "null", "null"]);
    assert_eq!(sites(&*store), [None, Some(2), None, None, None]);
    for row in 0..5 {
        assert!(read_image(&*store, row).is_ok(), "{row}");
    }
}
