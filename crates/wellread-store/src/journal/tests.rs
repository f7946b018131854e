//! Journals that are begun, gone on with and cut off.

use super::*;

#[test]
fn images_count_up_to_the_first_gap() {
    let dir = tempfile::tempdir().unwrap();
    let once = |of: &str| Journal::open(dir.path(), Path::new("set"), of).map(Option::unwrap);
    // A program that another test is just starting has the lock too, until it runs.
    let open = |of: &str| {
        let is_busy = |found: &Result<Journal>| {
            found.as_ref().is_err_and(|error| error.to_string().contains("another process"))
        };
        let mut tries = (0..100).map(|attempt| {
            std::thread::sleep(std::time::Duration::from_millis(attempt));
            once(of)
        });
        tries.find(|found| !is_busy(found)).unwrap()
    };
    let journal = open("a to b").unwrap();
    assert_eq!(journal.complete(), 0);
    for row in [1, 0, 2, 5] {
        journal.clone().add(row).unwrap();
    }
    assert!(once("a to b").unwrap_err().to_string().contains("another process"));
    drop(journal);
    assert_eq!(open("a to b").unwrap().complete(), 3);
    assert!(open("a to c").unwrap_err().to_string().contains("other images"));
    // Killed in the middle of a line: 3 counts only when it is whole.
    let path = dir.path().join(NAME);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}3")).unwrap();
    let journal = open("a to b").unwrap();
    assert_eq!(journal.complete(), 3);
    drop(journal);
    // Nor when it is looked at again.
    let mut journal = open("a to b").unwrap();
    assert_eq!((journal.complete(), journal.lines()), (3, ["1", "0", "2", "5"].map(String::from).as_slice()));
    journal.keep(2).unwrap();
    journal.note("{}").unwrap();
    drop(journal);
    let journal = open("a to b").unwrap();
    assert_eq!((journal.complete(), journal.begun()), (2, false));
    assert_eq!(journal.lines(), ["1", "0", "{}"]);
    drop(journal);
    // Killed in the first line.
    std::fs::write(&path, "a to").unwrap();
    assert!(open("a to b").unwrap().begun());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a to b\n");
}

/// A run that strikes nothing out and goes on would find the same damage again, without end.
#[test]
fn images_are_struck_out_only_where_they_are_noted() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path(), Path::new("set"), "a to b").unwrap().unwrap();
    assert!(!journal.remove_from(3).unwrap());
    (0..5).try_for_each(|row| journal.add(row)).unwrap();
    assert!(journal.remove_from(3).unwrap());
    let text = || std::fs::read_to_string(dir.path().join(NAME)).unwrap();
    assert_eq!(text(), "a to b\n0\n1\n2\n");
    journal.note("{}").unwrap();
    assert!(!journal.remove_from(1).unwrap());
    assert_eq!(text(), "a to b\n0\n1\n2\n{}\n");
}

#[cfg(unix)]
#[test]
fn a_journal_that_cannot_be_begun_is_of_no_interrupted_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let error = || Journal::open(dir.path(), Path::new("set"), "a").unwrap_err().to_string();
    std::os::unix::fs::symlink(&path, &path).unwrap();
    assert!(error().contains("cannot begin the journal"), "{}", error());
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(error().contains("cannot open the journal of the interrupted run"), "{}", error());
}
