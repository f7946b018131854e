//! Files that are cut short, changed or from the future, and files that are no Vortex file: errors that say so, and
//! never a panic.

use super::{image, open, options, small_file, write};
use std::path::Path;
use wellread_image::{PixelType, Shape};
use wellread_store::{
    Block, Compression, PixelSink, Request, Result, Scratch, Tune, WriteOptions, read_image,
};

/// Opens a damaged file and reads all of it. The outcome must always be a result.
fn try_all(path: &Path) -> Result<()> {
    let store = open(path)?;
    store.layout()?;
    for row in 0..store.len().min(64) {
        read_image(&*store, row)?;
        store.metadata(row)?;
    }
    store.scan(0..store.len().min(64), &mut |_, _, _| Ok(()))
}

#[test]
fn truncated_files_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = small_file(dir.path());
    let path = dir.path().join("cut.vortex");
    let cuts = (0..60).map(|k| bytes.len() * k / 60).chain((1..300).map(|k| bytes.len() - k));
    for cut in cuts {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let error = try_all(&path).expect_err("a cut file cannot be whole").to_string();
        assert!(error.contains("cut.vortex") && error.contains("hint"), "cut at {cut}: {error}");
    }
    // A block missing from the middle is found as well.
    for at in (0..20).map(|k| bytes.len() * k / 20 + 4) {
        let mut less = bytes.clone();
        less.drain(at..(at + 64).min(bytes.len() - 8));
        std::fs::write(&path, &less).unwrap();
        let _ = try_all(&path);
    }
}

/// Every few bytes (all of them where `WELLREAD_FLIPS` is 1), for files of every kind of encoding.
#[test]
fn flipped_bits_never_panic() {
    let every = std::env::var("WELLREAD_FLIPS").map_or(37, |v| v.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let mut images: Vec<_> = (0..12).map(|n| image(n, Shape([1, 1, 2, 60, 50]), PixelType::U16)).collect();
    for i in &mut images {
        // Twelve bits, some of them rare: packed, with exceptions.
        i.pixels.chunks_exact_mut(2).for_each(|p| p[1] &= if p[0] == 7 { 0x3f } else { 0x0f });
    }
    let kinds = [
        (Tune::Random, Compression::Default),
        (Tune::Size, Compression::Default),
        (Tune::Random, Compression::Zstd(1)),
        (Tune::Reference, Compression::None),
    ];
    let mut failed = 0;
    for (tune, compression) in kinds {
        let path = dir.path().join("flipped.vortex");
        write(&path, &WriteOptions { tune, compression, overwrite: true, ..options() }, &images).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        // Pixels take most of a file and are of one kind; footer and small columns are looked at more closely.
        let places =
            (0..bytes.len()).step_by(every * 11).chain((0..bytes.len()).rev().take(12_000).step_by(every));
        for (at, bit) in places.zip((0..8).cycle()) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            std::fs::write(&path, &damaged).unwrap();
            if let Err(error) = try_all(&path) {
                assert!(error.to_string().contains("flipped.vortex"), "byte {at}: {error}");
                failed += 1;
            }
        }
    }
    assert!(failed > 50, "only {failed} of the damages were noticed");
}

#[test]
fn a_newer_version_is_said_to_be_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = small_file(dir.path());
    let version = bytes.len() - 8;
    bytes[version..version + 2].copy_from_slice(&9u16.to_le_bytes());
    let path = dir.path().join("newer.vortex");
    std::fs::write(&path, &bytes).unwrap();
    let error = open(&path).err().unwrap().to_string();
    assert!(error.contains("version 9") && error.contains("update wellread"), "{error}");
}

#[test]
fn an_encoding_of_a_newer_library_is_said_to_be_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = small_file(dir.path());
    let name = b"vortex.primitive";
    let places: Vec<_> = (0..bytes.len() - name.len()).filter(|&at| bytes[at..].starts_with(name)).collect();
    assert!(!places.is_empty(), "the encoding is not named in the footer");
    for at in places {
        bytes[at + name.len() - 1] = b'X';
    }
    let path = dir.path().join("newer.vortex");
    std::fs::write(&path, &bytes).unwrap();
    let error = try_all(&path).unwrap_err().to_string();
    assert!(error.contains("primitivX") && error.contains("newer Vortex"), "{error}");
}

#[test]
fn what_is_no_vortex_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("absent.vortex");
    assert!(open(&path).err().unwrap().is_missing());
    assert!(open(dir.path()).err().unwrap().to_string().contains("not a regular file"));
    for content in
        [&b""[..], b"VTXF", b"VTXF\0\0\0\0\0\0\0\0\0\0\0\0VTXF", b"PAR1 something else PAR1", &[0; 5000]]
    {
        let path = dir.path().join("other.vortex");
        std::fs::write(&path, content).unwrap();
        let error = open(&path).err().unwrap().to_string();
        assert!(error.contains("other.vortex") && error.contains("hint"), "{error}");
    }
}

#[test]
fn a_file_that_is_cut_while_open_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = small_file(dir.path());
    let path = dir.path().join("whole.vortex");
    let store = open(&path).unwrap();
    read_image(&*store, 3).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(bytes.len() as u64 / 2).unwrap();
    let error = read_image(&*store, 20).unwrap_err().to_string();
    assert!(error.contains("whole.vortex") && error.contains("was shortened"), "{error}");
    // Made as long again, it has zeros there, without a signal: the time of its last change tells.
    let path = dir.path().join("again.vortex");
    std::fs::write(&path, &bytes).unwrap();
    let store = open(&path).unwrap();
    read_image(&*store, 3).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    for length in [bytes.len() / 2, bytes.len()] {
        file.set_len(length as u64).unwrap();
    }
    // Clocks of file systems may be coarse.
    file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(1)).unwrap();
    let error = read_image(&*store, 20).unwrap_err().to_string();
    assert!(error.contains("again.vortex") && error.contains("was written to after"), "{error}");
}

/// The file is cut between the look at its length and the reading: by the sink, which is called within. In a process of its
/// own, whose end tells whether a signal came.
#[cfg(unix)]
#[test]
fn a_file_that_is_cut_while_it_is_read_is_an_error_and_no_signal() {
    const INSIDE: &str = "WELLREAD_TEST_SHORTENED";
    if std::env::var_os(INSIDE).is_none() {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "damage::a_file_that_is_cut_while_it_is_read_is_an_error_and_no_signal",
                "--nocapture",
            ])
            .env(INSIDE, "1")
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        // A path that no test has runs none, which is no failure.
        assert!(output.status.success() && said.contains("1 passed"), "{:?}: {said}", output.status);
        return;
    }
    /// A handler of another program, which ends the process.
    extern "C" fn theirs(_: libc::c_int) {
        // SAFETY: may be called in a handler.
        unsafe { libc::_exit(42) }
    }
    struct Cutting<'a> {
        path: &'a Path,
        left: u64,
        /// Whether somebody installs [`theirs`] in the middle of reading, some milliseconds before the file is cut.
        installs: bool,
        blocks: usize,
    }
    impl PixelSink for Cutting<'_> {
        fn put(&mut self, request: usize, block: &Block<'_>) -> Result<()> {
            if self.blocks == 0 {
                if self.installs {
                    // SAFETY: `theirs` may be a handler.
                    unsafe {
                        libc::signal(libc::SIGBUS, theirs as extern "C" fn(_) as libc::sighandler_t);
                    }
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                std::fs::OpenOptions::new().write(true).open(self.path).unwrap().set_len(self.left).unwrap();
            }
            self.blocks += 1;
            // The handler is looked for before the next row, not in the middle of one.
            if self.installs && request == 0 {
                return Ok(());
            }
            // Every byte is looked at.
            std::hint::black_box(block.data.iter().map(|byte| u64::from(*byte)).sum::<u64>());
            Ok(())
        }

        fn mark_unmasked(&mut self, _: usize, _: &Block<'_>) {}
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.vortex");
    let images: Vec<_> = (0..40).map(|i| image(i, Shape::plane(256, 256), PixelType::U16)).collect();
    let ways = [(Compression::None, false), (Compression::Default, false), (Compression::None, true)];
    for (compression, installs) in ways {
        for left in [0, 5000] {
            let _ = std::fs::remove_file(&path);
            write(&path, &WriteOptions { compression, ..options() }, &images).unwrap();
            let store = open(&path).unwrap();
            let requests: Vec<_> =
                (0..images.len()).map(|row| Request { row, region: Shape::plane(256, 256).full() }).collect();
            let mut sink = Cutting { path: &path, left, installs, blocks: 0 };
            let error = store.read(&requests, &mut Scratch::default(), &mut sink).unwrap_err().to_string();
            assert!(sink.blocks > 0);
            assert!(error.contains("large.vortex") && error.contains("was shortened"), "{error}");
            let error = read_image(&*store, 0).unwrap_err().to_string();
            assert!(error.contains("large.vortex") && error.contains("was shortened"), "{error}");
        }
    }
}
