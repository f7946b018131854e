//! Errors of output that takes the place of a set: whether all of it is there, and where it is kept if it is not.

use crate::server;
use crate::sets::write_rows;
use std::path::{Path, PathBuf};
use wellread_store::staged::{Existing, Staged};
use wellread_store::{WriteOptions, create, place};

/// The file that comes last, where one does.
const LAST: &str = "z.tif";

/// A set in a bucket of this name, and output of two files that is to replace it.
fn to_replace(bucket: &str) -> (String, Staged) {
    server::url();
    let set = PathBuf::from(format!("s3://{bucket}/set"));
    let mut writer = create(&set, "tiff", &WriteOptions::default()).unwrap();
    // No folder: none of the files is to go before the others.
    write_rows(&mut *writer, 0..2);
    writer.finish().unwrap();
    let old = server::keys(&format!("{bucket}/set/")).into_iter().find(|key| key.contains(".tif")).unwrap();
    let staged = Staged::new(&set, Existing::Replaced).unwrap();
    for name in ["new.tif", LAST] {
        place::write(&staged.path().join(name), name.as_bytes()).unwrap();
    }
    (old, staged)
}

fn error_of(staged: Staged, in_order: bool) -> String {
    let done = if in_order { staged.commit_with_last(Path::new(LAST)) } else { staged.commit() };
    done.unwrap_err().to_string()
}

fn kept(bucket: &str) -> usize {
    server::keys(&format!("{bucket}/")).iter().filter(|key| key.contains(".wellread-partial-")).count()
}

/// Neither does the run that goes on with the output, which takes a half of it at its place for its own.
#[test]
fn output_does_not_replace_what_another_process_has_put_there_meanwhile() {
    server::url();
    let set = Path::new("s3://meanwhile/set");
    let options = WriteOptions { resume: Some("these images".into()), ..WriteOptions::default() };
    let mut writer = create(set, "tiff", &options).unwrap();
    write_rows(&mut *writer, 0..2);
    server::put("meanwhile/set/other.tif", b"other");
    let error = writer.finish().err().unwrap().to_string();
    assert!(error.contains("was put there by another process meanwhile"), "{error}");
    let error = create(set, "tiff", &options).err().unwrap().to_string();
    assert!(error.contains("already exists"), "{error}");
    assert_eq!(server::get("meanwhile/set/other.tif").unwrap(), b"other");
}

/// A journal that this process has read may be that of a minute ago.
#[test]
fn a_run_goes_on_with_what_another_process_has_noted_since() {
    server::url();
    let set = Path::new("s3://noted-since/set");
    let note = |images: &str| {
        let text = format!("these images\nby another\n{images}\n");
        server::put("noted-since/.wellread-resume-set/.wellread-journal", text.as_bytes());
    };
    note("0-2");
    let error = Staged::resumable(set, Existing::Kept, "other images").err().unwrap().to_string();
    assert!(error.contains("made of other images"), "{error}");
    note("0-6");
    assert_eq!(Staged::resumable(set, Existing::Kept, "these images").unwrap().complete(), 7);
}

#[test]
fn an_error_of_a_file_of_the_old_set_says_that_the_new_one_is_there() {
    for (bucket, in_order) in [("stays", false), ("stays-in-order", true)] {
        let (old, staged) = to_replace(bucket);
        server::lock(&old);
        let error = error_of(staged, in_order);
        assert!(
            error.contains(&format!("s3://{old}: the new set is there, but a file of the old one")),
            "{error}"
        );
        assert!(!error.contains("is kept"), "{error}");
        for name in ["new.tif", LAST] {
            assert_eq!(server::get(&format!("{bucket}/set/{name}")).unwrap(), name.as_bytes());
        }
        assert!(server::get(&old).is_some());
        assert_eq!(kept(bucket), 0);
    }
}

#[test]
fn an_error_of_a_file_of_the_new_set_says_where_the_rest_of_it_is() {
    for (bucket, in_order) in [("not-moved", false), ("not-moved-in-order", true)] {
        let (old, staged) = to_replace(bucket);
        let rest = format!("what is not in s3://{bucket}/set yet is in {}", staged.path().display());
        // More than the attempts of all copies that are made at once.
        server::fail_late(bucket, &["InternalError"; 1000]);
        let error = error_of(staged, in_order);
        server::fail_late(bucket, &[]);
        assert!(error.contains(&format!("the new output is kept: {rest}")), "{error}");
        assert!(!error.contains("the new set is there"), "{error}");
        assert!(server::get(&old).is_some());
        assert_eq!(kept(bucket), 2);
    }
}
