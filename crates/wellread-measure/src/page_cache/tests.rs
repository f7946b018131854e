//! Files in the page cache and out of it.

use super::*;

/// A folder beside the test program: the system's temporary folder may live in memory.
fn on_disk() -> tempfile::TempDir {
    let program = std::env::current_exe().unwrap();
    tempfile::tempdir_in(program.parent().unwrap()).unwrap()
}

/// Share of a file that is in the page cache.
fn resident_fraction(path: &Path) -> Result<f64> {
    Ok(residency(&[path])?.fraction())
}

#[cfg(not(feature = "portable"))]
#[test]
fn a_file_is_dropped_and_warmed_again() {
    let folder = on_disk();
    let path = folder.path().join("data.bin");
    // The cache is the whole machine's: another process may read the file, the kernel may want its pages.
    let mut found = vec![];
    let as_expected = (0..20).any(|_| {
        fs::write(&path, vec![7; 3 * 1024 * 1024 + 123]).unwrap();
        let written = resident_fraction(&path).unwrap();
        let report = drop_pages(&[&path]);
        assert_eq!((report.files, report.bytes), (1, 3 * 1024 * 1024 + 123));
        if sys::lives_in_memory(&path) {
            assert_eq!((written, report.resident_before), (1.0, Some(report.bytes)));
            assert!(!report.complete && report.reason.unwrap().contains("memory"));
            return true;
        }
        let dropped = resident_fraction(&path).unwrap();
        assert_eq!(warm(&[&path]).unwrap(), report.bytes);
        let warmed = resident_fraction(&path).unwrap();
        let as_expected = (written, dropped, warmed) == (1.0, 0.0, 1.0)
            && report.resident_before == Some(report.bytes)
            && (report.complete, report.resident_after) == (true, Some(0));
        found.push((written, dropped, warmed, report));
        as_expected
    });
    assert!(as_expected, "{found:?}");
}

#[test]
fn only_what_stays_is_written_out() {
    // Bytes that each attempt leaves, `None` where they cannot be counted; attempts and writes that it takes.
    let counts = |attempts: u32, leaves: &[Option<u64>]| {
        let (mut asked, mut written) = (0_usize, 0);
        let ask = || -> Result<Result<Residency>> {
            let left = leaves[asked.min(leaves.len() - 1)];
            asked += 1;
            let counted = left.map(|left| Residency { files: 1, bytes: 9, resident_bytes: left });
            let hidden = || Error::Unsupported { what: "page cache residency", reason: "no".to_owned() };
            Ok(counted.ok_or_else(hidden))
        };
        let write_out = || -> Result<()> {
            written += 1;
            Ok(())
        };
        let left = evict_file_pages(attempts, ask, write_out).unwrap().map(|left| left.resident_bytes).ok();
        (left, asked, written)
    };
    assert_eq!(counts(5, &[Some(0)]), (Some(0), 1, 0));
    assert_eq!(counts(5, &[Some(9), Some(0)]), (Some(0), 2, 1));
    assert_eq!(counts(3, &[Some(9)]), (Some(9), 3, 2));
    assert_eq!(counts(1, &[Some(9)]), (Some(9), 1, 0));
    assert_eq!(counts(5, &[None]), (None, 2, 1));
}

#[cfg(not(feature = "portable"))]
#[test]
fn direct_reading_leaves_the_cache_as_it_is() {
    let folder = on_disk();
    let path = folder.path().join("direct.bin");
    // Several blocks and an end that is no whole sector.
    let length = (9 << 20) + 123;
    fs::write(&path, vec![3; length]).unwrap();
    fs::write(folder.path().join("empty"), []).unwrap();
    // As above.
    let is_left = (0..20).any(|_| {
        drop_pages(&[&path]);
        match read_direct(&[folder.path()]) {
            Ok(bytes) => {
                assert_eq!(bytes, length as u64);
                resident_fraction(&path).unwrap() == 0.0
            }
            // File systems in memory may have none.
            Err(error) => {
                assert!(error.to_string().contains("direct"), "{error}");
                true
            }
        }
    });
    assert!(is_left, "it is in the cache");
    assert!(read_direct(&[Path::new("no/such/file")]).is_err());
}

#[cfg(not(feature = "portable"))]
#[test]
fn what_stays_cached_is_said() {
    let folder = on_disk();
    let path = folder.path().join("mapped.bin");
    fs::write(&path, vec![1; 256 * 1024]).unwrap();
    // Pages mapped and touched by someone cannot be dropped.
    let file = File::open(&path).unwrap();
    let map = sys::map(&file).unwrap().unwrap();
    let touched: u64 = map.iter().step_by(1024).map(|byte| u64::from(*byte)).sum();
    assert_eq!(touched, 256);
    let report = drop_pages(&[&path]);
    if sys::lives_in_memory(&path) {
        assert!(!report.complete && report.reason.unwrap().contains("memory"));
        return;
    }
    assert!(!report.complete && report.resident_after.unwrap() > 0, "{report:?}");
    assert!(report.reason.unwrap().contains("mapped.bin stay cached"));
}

#[test]
fn folders_are_searched_links_do_not_lead_in_circles() {
    let folder = on_disk();
    let deep = folder.path().join("a/b");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("1"), [0; 10]).unwrap();
    fs::write(folder.path().join("2"), []).unwrap();
    std::os::unix::fs::symlink(folder.path(), deep.join("up")).unwrap();
    std::os::unix::fs::symlink(folder.path().join("2"), deep.join("again")).unwrap();
    std::os::unix::fs::symlink("nowhere", deep.join("broken")).unwrap();
    assert_eq!(files_under(&[folder.path(), &deep]).unwrap().len(), 2);
    #[cfg(not(feature = "portable"))]
    {
        let sum = residency(&[folder.path()]).unwrap();
        assert_eq!((sum.files, sum.bytes), (2, 10));
    }
    assert_eq!(Residency::default().fraction(), 1.0);
}

#[test]
fn what_is_missing_is_named() {
    let missing = Path::new("no/such/file");
    let folder = on_disk();
    let there = folder.path().join("there");
    fs::write(&there, [1; 9]).unwrap();
    let report = drop_pages(&[missing, &there]);
    assert_eq!((report.files, report.bytes), (1, 9));
    assert!(!report.complete && report.reason.unwrap().contains("no/such/file"));
    assert!(residency(&[missing]).unwrap_err().to_string().contains("cannot find no/such/file"));
    assert!(warm(&[missing]).is_err() && resident_fraction(missing).is_err());
}

/// Other systems have no such calls.
#[cfg(feature = "portable")]
#[test]
fn where_the_page_cache_is_out_of_reach_that_is_said() {
    let folder = on_disk();
    let path = folder.path().join("data.bin");
    fs::write(&path, [7; 9]).unwrap();
    let report = drop_pages(&[&path]);
    assert_eq!((report.files, report.bytes, report.complete), (1, 9, false));
    assert_eq!((report.resident_before, report.resident_after), (None, None));
    let reasons = [
        report.reason.unwrap(),
        residency(&[&path]).unwrap_err().to_string(),
        read_direct(&[&path]).unwrap_err().to_string(),
    ];
    assert!(reasons.iter().all(|reason| reason.contains("only Linux")), "{reasons:?}");
    assert_eq!(warm(&[&path]).unwrap(), 9);
}
