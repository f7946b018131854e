//! Bytes that are asked for before they are read: many at once, within a bound, each once; given up when nobody wants them.

use crate::gate;
use crate::server::{self, Wrong};
use crate::sets::{NAMES, SETS, copy, options, recognised, write};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wellread_store::ahead::Fetching;
use wellread_store::place::{self, FetchAhead, PrefetchGuard, TAIL, WantedRanges};
use wellread_store::{ReadExtent, Request, read_image};

/// As much as one request brings at most.
const PIECE: u64 = 8 << 20;

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 % 251) as u8).collect()
}

/// Asks the place of `path` ahead, of which no more than `most` bytes are to be held.
fn asker(path: &Path, most: Option<u64>) -> Box<dyn FetchAhead> {
    place::of(path).ahead(most).expect("a remote place")
}

fn ask(asker: &mut dyn FetchAhead, path: &Path, ranges: &[Range<u64>]) -> PrefetchGuard {
    asker.fetch(&[(path, ranges)], 1).unwrap()
}

/// An object of so many bytes, which lies where no other test's does, and a read of it.
fn opened(bucket: &str, length: usize) -> (PathBuf, place::File) {
    server::url();
    server::put(&format!("{bucket}/a"), &bytes(length));
    let path = PathBuf::from(format!("s3://{bucket}/a"));
    let file = place::open(&path).unwrap().0;
    (path, file)
}

fn read(file: &place::File, range: &Range<u64>) -> Vec<u8> {
    let mut buffer = vec![0; (range.end - range.start) as usize];
    file.read_exact_at(&mut buffer, range.start).unwrap();
    buffer
}

#[test]
fn all_ranges_are_on_their_way_at_once_and_read_in_any_order() {
    let (path, file) = opened("at-once", 3_400_000);
    // Too far from each other to be joined, and none at the file's ends.
    let ranges: Vec<_> = (1..17).map(|i| 200_000 * i..200_000 * i + 1000 * i).collect();
    gate::hold("at-once", ranges.len());
    let guard = ask(&mut *asker(&path, None), &path, &ranges);
    let all = bytes(3_400_000);
    for i in 0..ranges.len() {
        let range = &ranges[i * 7 % ranges.len()];
        assert_eq!(read(&file, range), all[range.start as usize..range.end as usize], "{range:?}");
    }
    // A part of what was asked for is there as well.
    assert_eq!(read(&file, &(400_100..400_200)), all[400_100..400_200]);
    assert_eq!(gate::most_at_once("at-once"), ranges.len());
    assert_eq!(
        server::requests("at-once/a").len(),
        1 + ranges.len(),
        "the file's beginning, and each range once"
    );
    drop(guard);
    read(&file, &ranges[0]);
    assert_eq!(server::requests("at-once/a").len(), 2 + ranges.len(), "what is let go is gone");
}

#[test]
fn no_more_is_held_than_the_bound_and_a_reader_does_not_wait_for_room() {
    let (path, file) = opened("bounded", 5 * PIECE as usize);
    let mut asker = asker(&path, Some(2 * PIECE));
    let ranges: Vec<_> = (0..5).map(|i| i * PIECE..(i + 1) * PIECE).collect();
    let mut guards: Vec<_> =
        ranges.iter().map(|range| ask(&mut *asker, &path, std::slice::from_ref(range))).collect();
    let all = bytes(5 * PIECE as usize);
    let check = |range: &Range<u64>| {
        assert!(read(&file, range) == all[range.start as usize..range.end as usize], "{range:?}");
    };
    let asked = || server::requests("bounded/a").len() - 1;
    check(&ranges[0]);
    check(&ranges[1]);
    assert_eq!(asked(), 2, "there is no room for the others");
    check(&ranges[2]);
    assert_eq!(asked(), 3, "the reader has asked for it");
    drop(guards.drain(..2));
    check(&ranges[3]);
    check(&ranges[4]);
    assert_eq!(asked(), 5, "each once");
    drop(guards);
}

/// The requests for a file of so many bytes by three of so many batches, each of which asks for eight short ranges.
fn requests_of_batches(bucket: &str, length: usize, batches: usize) -> usize {
    let (path, file) = opened(bucket, length);
    // Half of the least bound of a reader is 8 MiB.
    let mut asker = asker(&path, Some(1));
    let mut row = 0;
    let mut batch = || {
        row += 1;
        let at = |i: usize| (100_000 + i * (length / 8) + row * 5000) as u64;
        (0..8).map(|i| at(i)..at(i) + 4000).collect::<Vec<_>>()
    };
    let all = bytes(length);
    for _ in 0..3 {
        let ranges = batch();
        let guard = asker.fetch(&[(&path, &ranges)], batches).unwrap();
        for range in &ranges {
            assert_eq!(read(&file, range), all[range.start as usize..range.end as usize], "{range:?}");
        }
        drop(guard);
    }
    server::requests(&format!("{bucket}/a")).len()
}

#[test]
fn a_file_of_short_ranges_comes_whole_after_those_of_the_first_batch() {
    // Beside the file's beginning: three batches of 8 ranges each, or the first one's and five parts of the file.
    assert_eq!(requests_of_batches("all-wanted", 5_000_000, 100), 1 + 8 + 5);
    assert_eq!(requests_of_batches("few-wanted", 5_000_000, 50), 1 + 24);
    assert_eq!(requests_of_batches("no-room", 9_000_000, 1000), 1 + 24);
}

#[test]
fn what_nobody_wants_any_more_is_given_up() {
    let (path, file) = opened("given-up", 2_000_000);
    let ranges: Vec<_> = (1..9).map(|i| 200_000 * i..200_000 * i + 10).collect();
    gate::hold("given-up", usize::MAX);
    let mut asker = asker(&path, None);
    let guard = ask(&mut *asker, &path, &ranges);
    gate::wait_for("given-up", ranges.len());
    drop(guard);
    gate::wait_for_given_up("given-up", ranges.len());
    gate::hold("given-up", 0);
    assert_eq!(read(&file, &ranges[3]), bytes(2_000_000)[800_000..800_010]);
}

#[test]
fn what_another_has_given_up_is_asked_for_by_who_reads_it() {
    let (path, file) = opened("left-by-another", 400_000);
    let range = 200_000..200_100;
    gate::hold("left-by-another", usize::MAX);
    let mut guard = ask(&mut *asker(&path, None), &path, std::slice::from_ref(&range));
    gate::wait_for("left-by-another", 1);
    std::thread::scope(|scope| {
        // Whether it waits for the piece already or comes later.
        let reader = scope.spawn(|| read(&file, &range));
        guard.give_up();
        gate::wait_for_given_up("left-by-another", 1);
        gate::hold("left-by-another", 0);
        assert_eq!(reader.join().unwrap(), bytes(400_000)[200_000..200_100]);
    });
}

#[test]
fn who_is_to_stop_does_not_wait_for_what_another_has_asked_for() {
    let (path, file) = opened("asked-by-another", 400_000);
    let range = 200_000..200_100;
    gate::hold("asked-by-another", usize::MAX);
    let guard = ask(&mut *asker(&path, None), &path, std::slice::from_ref(&range));
    gate::wait_for("asked-by-another", 1);
    let stop = Arc::new(AtomicBool::new(true));
    let error = place::until(&stop, || file.read_exact_at(&mut [0; 100], 200_000)).unwrap_err();
    assert!(error.to_string().contains("given up"), "{error}");
    gate::hold("asked-by-another", 0);
    assert_eq!(read(&file, &range), bytes(400_000)[200_000..200_100]);
    assert_eq!(server::requests("asked-by-another/a").len(), 2, "the file's beginning, and the range once");
    drop(guard);
}

#[test]
fn an_error_is_told_to_who_reads() {
    let (path, file) = opened("told", 400_000);
    server::spoil("told", &[Wrong::Status(403, "AccessDenied")]);
    let range = 200_000..200_100;
    let guard = ask(&mut *asker(&path, None), &path, std::slice::from_ref(&range));
    let error = file.read_exact_at(&mut [0; 100], 200_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    let said = error.to_string();
    assert!(said.starts_with("GET bytes 200000-200099 of s3://told/a: "), "{said}");
    // A second request goes to the server.
    assert_eq!(read(&file, &range), bytes(400_000)[200_000..200_100]);
    drop(guard);
}

#[test]
fn a_replaced_object_is_an_error_and_no_mixture() {
    let (path, file) = opened("exchanged", 400_000);
    server::put("exchanged/a", &vec![1; 400_000]);
    let range = 200_000..200_100;
    let guard = ask(&mut *asker(&path, None), &path, std::slice::from_ref(&range));
    for _ in 0..2 {
        let error = file.read_exact_at(&mut [0; 100], 200_000).unwrap_err().to_string();
        assert!(error.contains("was replaced"), "{error}");
    }
    drop(guard);
}

#[test]
fn small_files_of_which_nothing_is_known_come_in_one_request_each() {
    server::url();
    let lengths: Vec<usize> = (0..20).map(|i| 100 + 9000 * i).collect();
    let path = |i: usize| PathBuf::from(format!("s3://small/{i}"));
    for (i, length) in lengths.iter().enumerate() {
        server::put(&format!("small/{i}"), &bytes(*length));
    }
    gate::hold("small", 21);
    let paths: Vec<PathBuf> = (0..20).map(path).chain([PathBuf::from("s3://small/missing")]).collect();
    let whole = 0..u64::MAX;
    let files: Vec<_> = paths.iter().map(|path| (path.as_path(), std::slice::from_ref(&whole))).collect();
    let guard = asker(&paths[0], None).fetch(&files, 1).unwrap();
    for i in 0..20 {
        let i = i * 7 % 20;
        assert_eq!(place::read(&paths[i]).unwrap(), bytes(lengths[i]), "{i}");
        assert_eq!(server::requests(&format!("small/{i}")), ["GET bytes=0-8388607"]);
    }
    assert_eq!(place::read(&paths[20]).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(server::requests("small/missing").len(), 1);
    assert_eq!(gate::most_at_once("small"), 21);
    drop(guard);
}

#[test]
fn the_end_of_a_file_of_unknown_length_is_one_request() {
    server::url();
    // On its way before anybody reads.
    let asked = |path: &Path| {
        gate::hold("ends", usize::MAX);
        let guard = ask(&mut *asker(path, None), path, &[TAIL]);
        gate::wait_for("ends", 1);
        gate::hold("ends", 0);
        guard
    };
    let path = Path::new("s3://ends/a");
    server::put("ends/a", &bytes(400_000));
    let guard = asked(path);
    let (file, length) = place::open(path).unwrap();
    assert_eq!(length, 400_000);
    assert_eq!(read(&file, &(399_000..400_000)), bytes(400_000)[399_000..]);
    assert_eq!(server::requests("ends/a"), ["GET bytes=-65536"]);
    drop(guard);
    // An object whose end cannot be asked for gives its beginning when it is opened.
    server::put("ends/b", &bytes(400_000));
    server::spoil("ends", &[Wrong::Status(403, "AccessDenied")]);
    let path = Path::new("s3://ends/b");
    let guard = asked(path);
    assert_eq!(place::open(path).unwrap().1, 400_000);
    assert_eq!(server::requests("ends/b"), ["GET bytes=-65536", "GET bytes=0-65535"]);
    drop(guard);
}

#[test]
fn every_format_says_what_it_reads() {
    server::url();
    let dir = tempfile::tempdir().unwrap();
    for (name, format, variant, shard) in SETS {
        let (local, other) = (dir.path().join(name), Path::new("s3://foretold/sets").join(name));
        write(&local, format, &options(variant, shard));
        copy(&local, &other);
        let (local, other) = (recognised(&local), recognised(&other));
        let mut fetching = Fetching::of(other.path(), None).unwrap();
        let rows: Vec<usize> = (0..NAMES.len()).rev().collect();
        let mut wanted = WantedRanges::default();
        other.heads(&rows, ReadExtent::Whole, &mut wanted);
        let heads = fetching.fetch(&wanted);
        let requests: Vec<_> = rows
            .iter()
            .map(|&row| Request { row, region: other.row_info(row).unwrap().shape.full() })
            .collect();
        let mut wanted = WantedRanges::default();
        other.ranges(&requests, &mut wanted).unwrap();
        let pixels = fetching.fetch(&wanted);
        assert!(!heads.is_empty() || !pixels.is_empty(), "{name}");
        for &row in &rows {
            assert_eq!(read_image(&*other, row).unwrap(), read_image(&*local, row).unwrap(), "{name}");
        }
        drop((heads, pixels));
    }
    assert!(Fetching::of(dir.path(), None).is_none(), "nobody plans what lies on this machine");
}
