//! Files that are damaged, newer, held by another process or somebody's own.

use crate::{FORMATS, database, made, options, write};
use std::io::{BufRead, Read};
use wellread_image::{PixelType, Shape};
use wellread_store::{OpenOptions, WriteOptions, open, read_image};

#[test]
fn damaged_files_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let images: Vec<_> = (0..8).map(|row| made(row, Shape::plane(60, 60), PixelType::U16)).collect();
    for (format, name) in FORMATS {
        let path = dir.path().join(name);
        write(&path, format, &WriteOptions::default(), &images).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let damaged = dir.path().join(format!("damaged-{name}"));
        let all = |bytes: &[u8]| {
            std::fs::write(&damaged, bytes).unwrap();
            let store = open(&damaged, &options(format))?;
            (0..store.len()).try_fold(store.len(), |n, row| {
                let pixels = read_image(&*store, row)?.1;
                assert!(pixels == images[row].pixels, "{format}: wrong pixels");
                Ok::<_, wellread_store::Error>(n)
            })
        };
        assert_eq!(all(&whole).unwrap(), 8);
        for part in 1..16 {
            let error = all(&whole[..whole.len() * part / 16]).unwrap_err();
            assert!(error.to_string().contains("damaged"), "{error}");
        }
        if format == "duckdb" {
            // Blocks carry checksums: a flipped bit is an error or lies in what nobody reads.
            for i in 0..48 {
                let mut bytes = whole.clone();
                let at = (i * 2_654_435_761usize) % bytes.len();
                bytes[at] ^= 1 << (i % 8);
                if let Ok(rows) = all(&bytes) {
                    assert_eq!(rows, 8);
                }
            }
        }
    }
    std::fs::write(dir.path().join("empty.duckdb"), "").unwrap();
    for name in ["empty.duckdb", "missing.duckdb"] {
        let error = open(dir.path().join(name), &options("duckdb")).err().unwrap().to_string();
        assert!(error.contains(name), "{error}");
    }
}

/// DuckDB cuts free blocks off the end of the file when rows are deleted, and still counts them.
#[test]
fn what_sql_leaves_after_deleting_is_not_called_truncated() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.duckdb");
    let images: Vec<_> = (0..120).map(|row| made(row, Shape::plane(100, 100), PixelType::U16)).collect();
    write(&path, "duckdb", &WriteOptions::default(), &images).unwrap();
    for left in [100, 50, 20, 0] {
        database(&path, &format!("DELETE FROM images WHERE row_id >= {left}"));
        let store = open(&path, &OpenOptions { table: Some("images".into()), ..options("duckdb") }).unwrap();
        assert_eq!(store.len(), left);
        for (row, image) in images[..left].iter().enumerate() {
            assert!(read_image(&*store, row).unwrap().1 == image.pixels, "row {row} of {left}");
        }
    }
}

#[test]
fn newer_storage_versions_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.duckdb");
    write(&path, "duckdb", &WriteOptions::default(), &[made(0, Shape::plane(4, 4), PixelType::U8)]).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // The main header: checksum, mark, version number.
    bytes[12] = 0xff;
    std::fs::write(&path, bytes).unwrap();
    let error = open(&path, &OpenOptions::default()).err().unwrap().to_string();
    assert!(error.contains("a.duckdb") && error.contains("cannot open"), "{error}");
}

#[test]
fn a_database_that_is_being_written_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("busy.duckdb");
    write(&path, "duckdb", &WriteOptions::default(), &[made(0, Shape::plane(4, 4), PixelType::U8)]).unwrap();
    let held = duckdb::Connection::open(&path).unwrap();
    let error = open(&path, &OpenOptions::default()).err().map(|e| e.to_string());
    // The same process may share its own database; then it must be readable.
    if let Some(error) = error {
        assert!(error.contains("another process") || error.contains("busy"), "{error}");
    } else {
        assert_eq!(open(&path, &OpenOptions::default()).unwrap().len(), 1);
    }
    drop(held);
}

/// Holds the database that the environment names until standard input ends: the next test runs it as a process.
#[test]
#[ignore = "run by another test"]
fn holds_a_database() {
    let Some(path) = std::env::var_os("WELLREAD_TEST_HOLD") else { return };
    // This loads the library.
    (wellread_duckdb::FORMAT.engine)().unwrap();
    let held = duckdb::Connection::open(path).unwrap();
    held.execute_batch("CREATE TABLE IF NOT EXISTS other (a INTEGER); DROP TABLE other").unwrap();
    println!("held");
    std::io::stdin().read_to_end(&mut vec![]).unwrap();
}

#[test]
fn a_database_that_another_process_writes_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("busy.duckdb");
    let images: Vec<_> = (0..3).map(|row| made(row, Shape::plane(9, 8), PixelType::U16)).collect();
    write(&path, "duckdb", &WriteOptions::default(), &images).unwrap();
    let mut process = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "files::holds_a_database", "--ignored", "--nocapture"])
        .env("WELLREAD_TEST_HOLD", &path)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("held")));
    for format in [Some("duckdb"), None] {
        let options = OpenOptions { format: format.map(Into::into), ..OpenOptions::default() };
        let error = open(&path, &options).err().unwrap().to_string();
        assert!(error.contains("busy.duckdb") && error.contains("another process"), "{error}");
    }
    // Replaced, it would be found beside the log of the old one.
    let overwrite = WriteOptions { overwrite: true, ..WriteOptions::default() };
    let error = write(&path, "duckdb", &overwrite, &images[..2]).unwrap_err().to_string();
    assert!(error.contains("cannot replace") && error.contains("another process"), "{error}");
    // Killed, it leaves its log, which goes with the database.
    process.kill().unwrap();
    process.wait().unwrap();
    let log = dir.path().join("busy.duckdb.wal");
    assert!(log.exists());
    assert_eq!(open(&path, &OpenOptions::default()).unwrap().len(), 3);
    write(&path, "duckdb", &overwrite, &images[..2]).unwrap();
    let store = open(&path, &OpenOptions::default()).unwrap();
    assert!(store.len() == 2 && read_image(&*store, 1).unwrap().1 == images[1].pixels);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    drop(store);
    // Another table would go with it.
    duckdb::Connection::open(&path).unwrap().execute_batch("CREATE TABLE profiles (a INTEGER)").unwrap();
    let error = write(&path, "duckdb", &overwrite, &images).unwrap_err().to_string();
    assert!(error.contains("would be lost: table images, table profiles"), "{error}");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&log, "a log").unwrap();
    let error = write(&path, "duckdb", &WriteOptions::default(), &images).unwrap_err().to_string();
    assert!(error.contains("busy.duckdb.wal") && error.contains("remove it"), "{error}");
}

/// A cache on disk tells by the files of a set whether it is still the same: changes may be in the log alone.
#[test]
fn the_log_of_a_database_is_one_of_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.duckdb");
    let images: Vec<_> = (0..3).map(|row| made(row, Shape::plane(9, 8), PixelType::U16)).collect();
    write(&path, "duckdb", &WriteOptions::default(), &images).unwrap();
    let found = || {
        let store = open(&path, &options("duckdb")).unwrap();
        (store.len(), store.files().unwrap())
    };
    assert_eq!(found(), (3, vec![path.clone()]));
    database(&path, "PRAGMA disable_checkpoint_on_shutdown; DELETE FROM images WHERE row_id = 1");
    assert_eq!(found(), (2, vec![path.clone(), dir.path().join("a.duckdb.wal")]));
}

#[test]
fn databases_of_others_are_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.duckdb");
    let images: Vec<_> = (0..2).map(|row| made(row, Shape::plane(9, 8), PixelType::U16)).collect();
    let overwrite = WriteOptions { overwrite: true, ..WriteOptions::default() };
    let refused = |said: &str| {
        let before = std::fs::read(&path).unwrap();
        let error = write(&path, "duckdb", &overwrite, &images).unwrap_err().to_string();
        assert!(error.contains(said) && error.contains("remove the file yourself"), "{said}: {error}");
        assert!(std::fs::read(&path).unwrap() == before, "{said}");
    };
    database(&path, "CREATE TABLE annotations AS SELECT 1 AS a");
    refused("would be lost: table annotations");
    database(&path, "DROP TABLE annotations; CREATE TABLE images AS SELECT 1 AS a");
    refused("would be lost: table images");
    // An empty file, and one that wellread wrote, is replaced.
    database(&path, "DROP TABLE images");
    write(&path, "duckdb", &overwrite, &images).unwrap();
    for (make, drop, said) in [
        ("CREATE VIEW v AS FROM images", "DROP VIEW v", "table images, view v"),
        ("CREATE MACRO m(x) AS x + 1", "DROP MACRO m", "macro m, table images"),
        ("CREATE SEQUENCE s", "DROP SEQUENCE s", "sequence s, table images"),
        ("CREATE TYPE e AS ENUM ('a')", "DROP TYPE e", "table images, type e"),
        ("CREATE SCHEMA b", "DROP SCHEMA b", "schema b, table images"),
    ] {
        database(&path, make);
        refused(said);
        database(&path, drop);
    }
    write(&path, "duckdb", &overwrite, &images).unwrap();
    assert_eq!(open(&path, &options("duckdb")).unwrap().len(), 2);
    std::fs::write(&path, "notes of somebody").unwrap();
    refused("no database that can be looked into");
    std::fs::write(&path, "").unwrap();
    write(&path, "duckdb", &overwrite, &images).unwrap();
    assert_eq!(open(&path, &options("duckdb")).unwrap().len(), 2);
}
