//! Sites that lack files.

use super::{failure, image, names, options, pixels, with_missing, write};
use wellread_store::{Missing, open, read_image};

const FILES: [&str; 5] = [
    "r01c01f01p01-ch2sk1fk1fl1.tiff",
    "r01c01f01p01-ch3sk1fk1fl1.tiff",
    "r01c02f01p01-ch2sk1fk1fl1.tiff",
    "r01c03f01p01-ch2sk1fk1fl1.tiff",
    "r01c03f01p01-ch3sk1fk1fl1.tiff",
];

#[test]
fn a_site_without_a_channel_is_told_and_not_read() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &FILES);
    let store = open(dir.path(), &options()).unwrap();
    let summary = store.hints().sites.unwrap().summary();
    assert_eq!(summary.missing, ["1 site of 3 lacks files: r01c02f01 has no ch3 (missing skip|zero)"]);
    assert_eq!((summary.incomplete, summary.left_out, summary.files_per_site), (1, 0, 2));
    assert_eq!(store.row_info(1).unwrap(), store.row_info(0).unwrap());
    for error in [read_image(&*store, 1).unwrap_err(), store.hints().complete(0..3).unwrap_err()] {
        assert_eq!((error.row_index(), error.cause()), (Some(1), "r01c02f01 has no ch3"));
        assert!(error.hint_text().unwrap().contains("missing skip leaves"), "{error}");
    }
    assert!(store.hints().complete([0, 2]).is_ok() && read_image(&*store, 2).is_ok());
}

#[test]
fn what_is_missing_is_skipped_or_zero() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &FILES);
    let store = open(dir.path(), &with_missing(Missing::Skip)).unwrap();
    assert_eq!(names(&*store), ["r01c01f01", "r01c03f01"]);
    assert_eq!(store.hints().sites.unwrap().summary().left_out, 1);
    assert_eq!(image(&*store, 1), ([1, 2, 1], pixels(&[3, 4])));
    let store = open(dir.path(), &with_missing(Missing::Zero)).unwrap();
    assert!(store.hints().complete(0..3).is_ok());
    assert_eq!(image(&*store, 1), ([1, 2, 1], [pixels(&[2]), vec![0; 12]].concat()));
    assert_eq!(image(&*store, 2), ([1, 2, 1], pixels(&[3, 4])));
}

#[test]
fn no_whole_site_is_an_error_where_they_are_skipped() {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        &[
            "r01c01f01p01-ch2sk1fk1fl1.tiff",
            "r01c01f01p01-ch3sk1fk1fl1.tiff",
            "r01c02f01p01-ch3sk1fk1fl1.tiff",
            "r01c02f01p01-ch4sk1fk1fl1.tiff",
        ],
    );
    // A site would have three files, though none has.
    let summary = open(dir.path(), &options()).unwrap().hints().sites.unwrap().summary();
    assert_eq!((summary.incomplete, summary.files_per_site), (2, 3));
    let error = failure(dir.path(), &with_missing(Missing::Skip));
    assert!(
        error.contains("no site has all of its files: r01c01f01 has no ch4; r01c02f01 has no ch2"),
        "{error}"
    );
    assert!(error.contains("(hint: missing zero reads the missing part as 0)"), "{error}");
}
