//! Names of ImageXpress: with and without plate, well and site.

use super::{channels, image, names, numbers, options, pixels, text, write};
use wellread_store::open;

#[test]
fn imagexpress_has_more_than_nine_wavelengths() {
    // An identifier may begin with a digit.
    for identifier in ["", "07447158-AC92-4844-8826-F9B43BC7F8F9"] {
        let dir = tempfile::tempdir().unwrap();
        let files: Vec<String> = (1..=12).map(|w| format!("P1_A01_s1_w{w}{identifier}.tif")).collect();
        write(dir.path(), &files.iter().map(String::as_str).collect::<Vec<_>>());
        let store = open(dir.path(), &options()).unwrap();
        assert_eq!(store.hints().sites.unwrap().summary().layout, "imagexpress");
        assert_eq!(names(&*store), ["P1_A01_s1"]);
        assert_eq!(channels(&*store), (1..=12).map(|w| format!("w{w}")).collect::<Vec<_>>());
        assert_eq!(image(&*store, 0), ([1, 12, 1], pixels(&(0..12).collect::<Vec<u16>>())));
    }
}

#[test]
fn imagexpress_without_the_plate_has_wells_and_sites() {
    for folder in ["", "TimePoint_1/", "ZStep_1/", "TimePoint_1/ZStep_1/"] {
        let dir = tempfile::tempdir().unwrap();
        let files =
            ["A01_s1", "A01_s2", "B03_s1"].map(|site| [1, 2].map(|w| format!("{folder}{site}_w{w}.tif")));
        write(dir.path(), &files.iter().flatten().map(String::as_str).collect::<Vec<_>>());
        let store = open(dir.path(), &options()).unwrap();
        assert_eq!(names(&*store), ["A01_s1", "A01_s2", "B03_s1"], "{folder}");
        // `s1` is the site, and no well of a plate A01.
        assert_eq!(store.hints().feature_names(), ["Metadata_Well", "Metadata_Site"], "{folder}");
        assert_eq!(text(&*store, "Metadata_Well"), ["A01", "A01", "B03"], "{folder}");
        assert_eq!(numbers(&*store, "Metadata_Site"), [1, 2, 1], "{folder}");
        assert_eq!(image(&*store, 1), ([1, 2, 1], pixels(&[2, 3])), "{folder}");
    }
}

#[test]
fn imagexpress_without_wells_has_sites() {
    for folder in ["", "TimePoint_1/", "ZStep_1/", "TimePoint_1/ZStep_1/"] {
        let dir = tempfile::tempdir().unwrap();
        let files =
            ["exp_s1", "exp_s2", "exp_s10"].map(|site| [1, 2].map(|w| format!("{folder}{site}_w{w}.tif")));
        write(dir.path(), &files.iter().flatten().map(String::as_str).collect::<Vec<_>>());
        let store = open(dir.path(), &options()).unwrap();
        assert_eq!(store.hints().sites.unwrap().summary().layout, "imagexpress", "{folder}");
        assert_eq!(names(&*store), ["exp_s1", "exp_s2", "exp_s10"], "{folder}");
        // No plate has a well s1 in small letters.
        assert_eq!(store.hints().feature_names(), ["Metadata_Plate", "Metadata_Site"], "{folder}");
        assert_eq!(numbers(&*store, "Metadata_Site"), [1, 2, 10], "{folder}");
        assert_eq!(image(&*store, 1), ([1, 2, 1], pixels(&[2, 3])), "{folder}");
    }
    // Row S of a plate of 1536 wells, one site each.
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &["exp_R01_w1.tif", "exp_R01_w2.tif", "exp_S01_w1.tif", "exp_S01_w2.tif"]);
    let store = open(dir.path(), &options()).unwrap();
    assert_eq!(text(&*store, "Metadata_Well"), ["R01", "S01"]);
}
