//! The cache on disk: no process asks for bytes that another has read, also when processes are killed and files damaged
//! meanwhile.
//!
//! A process has one cache, and other tests here count requests; so this program, started again, reads with one.

use crate::server;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use wellread_store::disk_cache;
use wellread_store::place::{self, Part};

/// Says to the program that was started what to read.
const ADDRESS: &str = "WELLREAD_TEST_READS";
const LENGTH: u64 = (5 << 20) + 123;
/// Offset and bytes of what is read; none is in what is fetched with the beginning or the end.
const RANGES: [(u64, usize); 5] =
    [(100_000, 10), (1_000_000, 3_000_000), (4_500_000, 1), (4_600_001, 70_000), (4_800_000, 0)];

fn bytes(from: u64, n: usize) -> Vec<u8> {
    (from..from + n as u64).map(|i| (i * 7 % 251 + i / 100_000) as u8).collect()
}

/// The test of the started program; nothing among the other tests.
#[test]
fn reader() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let opened = place::open(Path::new(&address));
    let (file, length) = match opened {
        Ok(opened) => opened,
        Err(e) => return println!("error: {e}"),
    };
    assert_eq!(length, LENGTH);
    // A read by a request is no hit of the cache, though its bytes may be there.
    let report = disk_cache::current().unwrap().unwrap().report();
    assert_eq!((report.hits, report.bytes_read), (0, 0));
    for _ in 0..2 {
        for (offset, n) in RANGES {
            let mut buffer = vec![0; n];
            file.read_exact_at(&mut buffer, offset).unwrap();
            assert!(buffer == bytes(offset, n), "{offset}");
        }
        let mut buffers: Vec<_> = RANGES.iter().map(|&(offset, n)| (offset, vec![0; n])).collect();
        let parts = buffers.iter_mut().map(|(offset, buffer)| Part { offset: *offset, buffer });
        file.read_ranges(&mut parts.collect::<Vec<_>>()).unwrap();
        assert!(buffers.iter().all(|(offset, buffer)| *buffer == bytes(*offset, buffer.len())));
        let mut last = [0; 100];
        file.peek_exact_at(&mut last, LENGTH - 100).unwrap();
        assert_eq!(last[..], bytes(LENGTH - 100, 100));
    }
    println!("all is right");
}

fn start(address: &str, cache: &str) -> Child {
    server::url();
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "disk_cache::reader", "--nocapture"])
        .env(ADDRESS, address)
        .env("WELLREAD_DISK_CACHE", cache)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Its output, and the number of requests that it made for the object.
fn reads(bucket: &str, cache: &str) -> (String, usize) {
    let before = server::requests(&format!("{bucket}/a")).len();
    let output = start(&format!("s3://{bucket}/a"), cache).wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{said}");
    (said, server::requests(&format!("{bucket}/a")).len() - before)
}

fn blocks(folder: &Path) -> Vec<std::path::PathBuf> {
    let folders = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let folders = folders.filter(|path| path.is_dir());
    folders.flat_map(|path| std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path())).collect()
}

#[test]
fn what_one_process_has_read_no_other_asks_for() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("cache");
    let cache = format!("{}:64MiB", folder.display());
    server::put("kept/a", &bytes(0, LENGTH as usize));
    let (said, first) = reads("kept", &cache);
    assert!(said.contains("all is right"), "{said}");
    // Opening, three ranges far from each other (each once, though it was read four times), and the end.
    assert!((4..=6).contains(&first), "{:?}", server::requests("kept/a"));
    let (said, second) = reads("kept", &cache);
    assert!(said.contains("all is right"), "{said}");
    assert_eq!(second, 1, "only opening asks which version there is: {:?}", server::requests("kept/a"));
    // Damaged: bytes in the middle of each file, and one that is cut off.
    let files = blocks(&folder);
    assert!((4..=6).contains(&files.len()), "{files:?}");
    for file in &files {
        let mut found = std::fs::read(file).unwrap();
        let middle = 8192 + (found.len() - 8192) / 2;
        found[middle..].iter_mut().take(5000).for_each(|byte| *byte ^= 1);
        std::fs::write(file, &found).unwrap();
    }
    std::fs::File::options().write(true).open(&files[0]).unwrap().set_len(9000).unwrap();
    let (said, third) = reads("kept", &cache);
    assert!(said.contains("all is right") && third > 1, "{third}: {said}");
    assert_eq!(reads("kept", &cache).1, 1, "what was damaged is whole again");
    // Another version of the object is another object.
    server::put("kept/a", &bytes(0, LENGTH as usize));
    assert!(reads("kept", &cache).1 > 3);
}

#[test]
fn those_who_are_killed_leave_it_valid() {
    let dir = tempfile::tempdir().unwrap();
    let cache = format!("{}:64MiB", dir.path().display());
    server::put("killed/a", &bytes(0, LENGTH as usize));
    for wait in [0, 5, 10, 20, 40, 80] {
        let mut readers = [start("s3://killed/a", &cache), start("s3://killed/a", &cache)];
        // Whenever it comes, it must not matter.
        std::thread::sleep(std::time::Duration::from_millis(wait));
        for reader in &mut readers {
            reader.kill().unwrap();
        }
        for reader in &mut readers {
            let _ = reader.wait().unwrap();
        }
    }
    let (said, _) = reads("killed", &cache);
    assert!(said.contains("all is right") && !said.contains("note:"), "{said}");
    assert_eq!(reads("killed", &cache).1, 1);
}

#[cfg(unix)]
#[test]
fn a_cache_that_is_too_small_for_all_is_kept_within_its_bound() {
    let dir = tempfile::tempdir().unwrap();
    let cache = format!("{}:4MiB", dir.path().display());
    for _ in 0..3 {
        // Each time another version, of which more than half of the cache is read.
        server::put("small-cache/a", &bytes(0, LENGTH as usize));
        let (said, _) = reads("small-cache", &cache);
        assert!(said.contains("all is right") && !said.contains("note:"), "{said}");
        let on_disk = |path: &std::path::PathBuf| {
            std::os::unix::fs::MetadataExt::blocks(&path.metadata().unwrap()) * 512
        };
        let taken: u64 = blocks(dir.path()).iter().map(on_disk).sum();
        assert!((1 << 20..=5 << 20).contains(&taken), "{taken}");
    }
}

#[test]
fn a_folder_that_cannot_be_used_is_told_at_opening() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, b"").unwrap();
    server::put("unusable/a", &bytes(0, LENGTH as usize));
    for (cache, words) in [
        (format!("{}:64MiB", file.display()), "cannot keep a cache there"),
        (format!("{}:500000TiB", dir.path().join("new").display()), "its disk has"),
        (format!("{}", dir.path().display()), "WELLREAD_DISK_CACHE"),
    ] {
        let (said, _) = reads("unusable", &cache);
        assert!(said.contains("error: ") && said.contains(words), "{said}");
    }
}
