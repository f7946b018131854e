//! A cache from outside: kept bytes are there, for the object that they were kept of, and within the bound.

use super::*;

fn bytes(n: u64) -> Vec<u8> {
    (0..n).map(|i| (i * 7 % 251 + i / BLOCK) as u8).collect()
}

fn cache(folder: &Path, limit: u64) -> DiskCache {
    DiskCache::open(&DiskCacheSpec { folder: folder.to_owned(), limit }).unwrap()
}

#[test]
fn ranges_are_kept_over_blocks_and_by_version() {
    let dir = tempfile::tempdir().unwrap();
    let one = cache(dir.path(), 64 << 20);
    let length = 3 * BLOCK + 100;
    let object = CachedObject::new(&["s3", "a", "1"], length);
    let all = bytes(length);
    let range = object.rounded(&(BLOCK - 5..2 * BLOCK + 7));
    assert_eq!(range, BLOCK - GRANULE..2 * BLOCK + GRANULE);
    one.keep(&object, range.start, &all[range.start as usize..range.end as usize]);
    // Another process finds it.
    let other = cache(dir.path(), 64 << 20);
    let mut buffer = vec![0; (BLOCK + 12) as usize];
    assert!(other.read(&object, BLOCK - 5, &mut buffer));
    assert_eq!(buffer, &all[(BLOCK - 5) as usize..(2 * BLOCK + 7) as usize]);
    assert!(!other.read(&object, 0, &mut buffer));
    assert!(other.has(&object, BLOCK - 5..2 * BLOCK + 7) && !other.has(&object, 0..10));
    assert!(!other.has(&object, BLOCK..length + 1));
    for (named, length) in
        [(["s3", "a", "2"], length), (["s3", "a1", ""], length), (["s3", "a", "1"], length - 1)]
    {
        assert!(!other.read(&CachedObject::new(&named, length), BLOCK, &mut [0; 10]));
    }
    // The end of an object is a piece, however short; a range cut off elsewhere is none.
    one.keep(&object, length - 150, &all[(length - 150) as usize..]);
    let mut last = [0; 100];
    assert!(one.read(&object, length - 100, &mut last) && last == all[(length - 100) as usize..]);
    assert!(!one.read(&object, length - 101, &mut last) && !one.read(&object, length - 99, &mut last));
    let report = one.report();
    assert_eq!((report.hits, report.misses, report.bytes_read), (1, 1, 100));
    assert_eq!(report.bytes_kept, range.end - range.start + 100);
}

#[test]
fn the_bound_holds_whatever_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let small = cache(dir.path(), cache_folder::MIN_CACHE_BYTES);
    for i in 0..20u64 {
        let object = CachedObject::new(&["s3", &i.to_string()], BLOCK);
        small.keep(&object, 0, &bytes(BLOCK));
    }
    let files = std::fs::read_dir(dir.path()).unwrap().flatten().filter(|e| e.path().is_dir());
    let files: Vec<_> = files.flat_map(|e| std::fs::read_dir(e.path()).unwrap().flatten()).collect();
    assert!((1..=4).contains(&files.len()), "{files:?}");
    // The newest block is there.
    assert!(small.read(&CachedObject::new(&["s3", "19"], BLOCK), 7, &mut [0; 100]));
}

#[test]
fn a_folder_that_goes_ends_its_use() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("cache");
    let cache = cache(&folder, 64 << 20);
    std::fs::remove_dir_all(&folder).unwrap();
    let object = CachedObject::new(&["a"], 5000);
    cache.keep(&object, 0, &bytes(5000));
    assert!(cache.given_up.load(Ordering::Relaxed) && !folder.exists());
    assert!(!cache.read(&object, 0, &mut [0; 10]));
}

#[test]
fn one_that_is_begun_again_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let spec = DiskCacheSpec { folder: dir.path().to_owned(), limit: 64 << 20 };
    let cache = begin(&spec).unwrap();
    assert!(ptr::eq(begin(&spec).unwrap(), cache) && cache.spec() == spec);
    assert!(ptr::eq(current().unwrap().unwrap(), cache));
    let file = dir.path().join("file");
    std::fs::write(&file, b"").unwrap();
    assert!(begin(&DiskCacheSpec { folder: file, limit: 64 << 20 }).is_err());
    assert!(ptr::eq(current().unwrap().unwrap(), cache));
}
