//! Sites that lack files.

use super::{failure, image, names, options, pattern, pixels, with_missing, write};
use wellread_store::{Missing, OpenOptions, Unmatched, open, read_image, sites::unmatched_names};

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

#[test]
fn a_pattern_that_leaves_no_site_whole_is_doubted() {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        &[
            "B7_01_1_3_DAPI_001.tif",
            "B7_01_2_3_GFP_001.tif",
            "D6_01_1_2_DAPI_001.tif",
            "D6_01_2_2_GFP_001.tif",
        ],
    );
    // The number of the channel is taken for the site.
    let wrong = pattern("{well}_*_{site}_{channel}_001.tif");
    let doubt = "the pattern leaves no site whole, and may divide names otherwise than is meant";
    let store = open(dir.path(), &wrong).unwrap();
    let missing = store.hints().sites.unwrap().summary().missing;
    assert!(missing[0].starts_with("4 sites of 4 lack files: B7_1 has no "), "{missing:?}");
    assert!(missing[1].starts_with(doubt) && missing[1].contains("{channel:a} letters"), "{missing:?}");
    // To leave sites out would leave none.
    let error = read_image(&*store, 0).unwrap_err();
    let hint = error.hint_text().unwrap();
    assert!(hint.starts_with(doubt) && hint.contains("missing zero") && !hint.contains("skip"), "{hint}");
    let skipped = failure(dir.path(), &OpenOptions { missing: Missing::Skip, ..wrong });
    assert!(skipped.contains(doubt), "{skipped}");
    // As that message and the help of `wellread info` write it.
    let store = open(dir.path(), &pattern("{well}_*_{site:d}_{channel:a}_001.tif")).unwrap();
    assert_eq!(names(&*store), ["B7_3", "D6_2"]);
    assert!(store.hints().sites.unwrap().summary().missing.is_empty());
    // Where one site is whole, the pattern is as it should be.
    std::fs::remove_file(dir.path().join("D6_01_2_2_GFP_001.tif")).unwrap();
    let store = open(dir.path(), &pattern("{well}_*_{site:d}_{channel:a}_001.tif")).unwrap();
    assert_eq!(
        store.hints().sites.unwrap().summary().missing,
        ["1 site of 2 lacks files: D6_2 has no GFP (missing skip|zero)"]
    );
}

/// A file that is none of a plate's makes single images of that plate alone. Nobody would see it in a set of several plates.
#[test]
fn a_plate_among_several_with_a_file_of_another_name_is_told() {
    let dir = tempfile::tempdir().unwrap();
    for plate in ["q1", "q2"] {
        let names = [1, 2].map(|channel| format!("{plate}/r01c01f01p01-ch{channel}sk1fk1fl1.tiff"));
        write(dir.path(), &names.each_ref().map(String::as_str));
    }
    let plates = dir.path().join("q*");
    let store = open(&plates, &options()).unwrap();
    assert_eq!((store.len(), unmatched_names(&*store, &options())), (2, None));
    write(dir.path(), &["q2/overlay.tif"]);
    let store = open(&plates, &options()).unwrap();
    assert_eq!(store.len(), 4);
    let told = unmatched_names(&*store, &options()).unwrap().to_string();
    assert!(told.starts_with("q2: 2 of 3 names are harmony's; overlay.tif is not"), "{told}");
    let skip = OpenOptions { unmatched: Unmatched::Skip, ..options() };
    let store = open(&plates, &skip).unwrap();
    assert_eq!((store.len(), unmatched_names(&*store, &skip)), (2, None));
}
