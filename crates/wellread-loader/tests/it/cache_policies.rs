//! Every cache policy delivers the pixels of the set; each keeps what it says it keeps.

use crate::support::{Fault, TestStore, bits, images};
use std::path::Path;
use std::sync::atomic::Ordering;
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_loader::{Cache, Dataset, Loader, MemoryStore};
use wellread_store::planes::PlaneStore;
use wellread_store::{ImageView, OpenOptions, Store, WriteOptions, delegate_store};

const ROWS: usize = 40;

fn shape() -> Shape {
    Shape([1, 2, 1, 12, 9])
}

fn each() -> usize {
    shape().pixels() * PixelType::U16.size()
}

/// A set in a file, as cache files need one.
fn written(path: &Path, seed: usize) {
    let mut writer = wellread_store::create(path, "tiff", &WriteOptions::default()).unwrap();
    for row in 0..ROWS {
        let metadata = ImageMetadata::named(format!("image {row}"));
        let pixels: Vec<u8> =
            (0..each()).map(|i| (((i * 31 + row * 7 + seed) * 2_654_435_761) >> 11) as u8).collect();
        let image = ImageView { metadata: &metadata, shape: shape(), dtype: PixelType::U16, pixels: &pixels };
        writer.write(&image).unwrap();
    }
    writer.finish().unwrap();
}

fn opened(path: &Path) -> Dataset {
    Dataset::open_with(path, &OpenOptions::default()).unwrap()
}

fn opened_store(path: &Path) -> Box<dyn Store> {
    wellread_store::open(path, &OpenOptions::default()).unwrap()
}

fn epoch(dataset: &Dataset, workers: usize, number: u64) -> Vec<(Vec<usize>, Vec<usize>, Vec<u32>)> {
    let loader = Loader::builder(dataset)
        .batch_size(7)
        .shuffle(3)
        .channels([1, 0])
        .random_crop(8, 8)
        .workers(workers)
        .build()
        .unwrap();
    loader.set_epoch(number);
    loader.iter().map(|batch| bits(&batch.unwrap())).collect()
}

/// A set here whose images lie in a bucket, as those of a table do.
struct NamedHere(Box<dyn Store>);

impl Store for NamedHere {
    delegate_store!(self => self.0; format, path, len, name, metadata, layout, files, files_of, has_checksums);
    delegate_store!(self => self.0; hints, row_hints, row_info, heads, ranges, check, read, scan);

    fn remote_path(&self) -> Option<&Path> {
        Some(Path::new("s3://bucket/a"))
    }
}

#[test]
fn a_cache_goes_by_where_the_images_lie() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    written(&path, 0);
    let remote = || Dataset::from_store(Box::new(NamedHere(opened_store(&path))));
    let planes = PlaneStore::new(Box::new(NamedHere(opened_store(&path)))).unwrap();
    assert!(planes.len() == 2 * ROWS && planes.remote_path().is_some());
    let said = |dataset: Dataset, cache: &Cache| dataset.with_cache(cache).err().unwrap().to_string();
    let file = Cache::File { folder: Some(dir.path().join("cache")), limit: usize::MAX };
    let error = said(remote(), &file);
    assert!(error.contains("lies behind a network"), "{error}");
    // It gets as far as the folder, which is a file.
    let taken = dir.path().join("taken");
    std::fs::write(&taken, b"").unwrap();
    let disk: Cache = format!("disk:{}:1GiB", taken.display()).parse().unwrap();
    let error = said(remote(), &disk);
    assert!(error.contains("cannot keep a cache there"), "{error}");
    let error = said(opened(&path), &disk);
    assert!(error.contains("lies on this machine"), "{error}");
    // Before a set is open, a path here does not tell where its images lie.
    assert!(disk.begin(&path).is_ok() && file.begin(&path).is_ok());
}

#[test]
fn every_policy_delivers_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    written(&path, 0);
    let plain = opened(&path);
    let folder = Some(dir.path().join("cache"));
    let part = 10 * each() + 5;
    for cache in [
        Cache::MEMORY,
        Cache::Memory { limit: part },
        Cache::Lru { limit: part },
        Cache::Lru { limit: 1 },
        Cache::Compressed { limit: usize::MAX },
        Cache::Compressed { limit: part },
        Cache::CompressedLru { limit: part },
        Cache::File { folder: folder.clone(), limit: usize::MAX },
        Cache::File { folder, limit: part },
        Cache::Preload { limit: usize::MAX },
        Cache::Preload { limit: part },
        Cache::Chunked { rows: 6, limit: usize::MAX },
        Cache::Chunked { rows: 6, limit: part },
    ] {
        let cached = opened(&path).with_cache(&cache).unwrap();
        for (workers, number) in [(0, 0), (2, 1), (0, 2)] {
            assert_eq!(
                epoch(&cached, workers, number),
                epoch(&plain, workers, number),
                "{cache}, epoch {number}"
            );
        }
        let report = cached.cache_report();
        let limit = if cache.limit() == usize::MAX { ROWS * (each() + 64) } else { cache.limit() };
        assert!(report.bytes <= limit && report.images <= ROWS, "{cache}: {report:?}");
        assert_eq!(cached.read(5).unwrap(), plain.read(5).unwrap());
    }
}

#[test]
fn a_cache_file_serves_other_processes_and_later_runs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    written(&path, 0);
    let cache = Cache::File { folder: Some(dir.path().join("cache")), limit: usize::MAX };
    let first = opened(&path).with_cache(&cache).unwrap();
    let pixels: Vec<_> = (0..ROWS).map(|row| first.read(row).unwrap()).collect();
    assert_eq!(first.cache_report().misses, ROWS as u64);
    // As another process would, at the same time.
    let second = opened(&path).with_cache(&cache).unwrap();
    for (row, expected) in pixels.iter().enumerate() {
        assert_eq!(second.read(row).unwrap(), *expected);
    }
    let report = second.cache_report();
    assert_eq!((report.images, report.hits, report.misses), (ROWS, ROWS as u64, 0));
    drop((first, second));
    // Pixels that were damaged on disk are read from the set again.
    let file = std::fs::read_dir(dir.path().join("cache")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let last = bytes.len() - 3 - 8;
    bytes[last] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let third = opened(&path).with_cache(&cache).unwrap();
    for (row, expected) in pixels.iter().enumerate() {
        assert_eq!(third.read(row).unwrap(), *expected);
    }
    drop(third);
    // A file that is cut is never read behind its end.
    std::fs::File::options().write(true).open(&file).unwrap().set_len(bytes.len() as u64 / 2).unwrap();
    let fourth = opened(&path).with_cache(&cache).unwrap();
    for (row, expected) in pixels.iter().enumerate() {
        assert_eq!(fourth.read(row).unwrap(), *expected);
    }
    drop(fourth);
    // Another state of the set has a file of its own, and the old one goes.
    written_again(&path);
    let changed = opened(&path).with_cache(&cache).unwrap();
    assert_eq!(changed.cache_report().images, 0);
    assert_ne!(changed.read(0).unwrap(), pixels[0]);
    let files: Vec<_> = std::fs::read_dir(dir.path().join("cache")).unwrap().collect();
    assert_eq!(files.len(), 1);
    assert_ne!(files[0].as_ref().unwrap().path(), file);
}

/// The first and the last row are the same, and so are the files.
#[test]
fn a_cache_file_is_of_the_rows_that_were_chosen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    written(&path, 0);
    let cache = Cache::File { folder: Some(dir.path().join("cache")), limit: usize::MAX };
    let plain = opened(&path);
    for rows in [[0, 1, 2, 3], [0, 2, 1, 3]] {
        let some = plain.select(rows).unwrap().with_cache(&cache).unwrap();
        // As a forked process would, which has the same file.
        let anew = some.reopened().unwrap();
        for set in [&some, &anew] {
            for (i, row) in rows.into_iter().enumerate() {
                assert_eq!(set.read(i).unwrap(), plain.read(row).unwrap(), "{rows:?}");
            }
        }
        assert_eq!((some.cache_report().misses, anew.cache_report().misses), (4, 0));
    }
    assert_eq!(std::fs::read_dir(dir.path().join("cache")).unwrap().count(), 2);
}

#[test]
fn a_cache_file_is_of_the_options_that_the_set_was_opened_with() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    written(&path, 0);
    let cache = Cache::File { folder: Some(dir.path().join("cache")), limit: usize::MAX };
    let file_of = |options: &OpenOptions| {
        let set = Dataset::open_with(&path, options).unwrap().with_cache(&cache).unwrap();
        let report = set.cache_report();
        assert_eq!((set.read(7).unwrap(), report.images), (opened(&path).read(7).unwrap(), 0));
        drop(set);
        let again = Dataset::open_with(&path, options).unwrap().with_cache(&cache).unwrap();
        assert_eq!(again.cache_report().images, 1);
        std::fs::read_dir(dir.path().join("cache")).unwrap().count()
    };
    let files = OpenOptions { layout: Some("files".to_owned()), ..OpenOptions::default() };
    // The other options have files of their own, and take none of the others away.
    assert_eq!([file_of(&OpenOptions::default()), file_of(&files)], [1, 2]);
}

fn written_again(path: &Path) {
    std::fs::remove_dir_all(path).unwrap();
    written(path, 1);
    // Times of files may be told in steps that are longer than this test.
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(10);
    for entry in std::fs::read_dir(path).unwrap() {
        let file = std::fs::File::options().append(true).open(entry.unwrap().path()).unwrap();
        file.set_modified(later).unwrap();
    }
}

#[test]
fn a_cache_file_needs_files_and_a_folder() {
    let store = TestStore::new(images(3, shape(), PixelType::U16));
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::File { folder: Some(dir.path().to_owned()), limit: usize::MAX };
    assert!(store.dataset().with_cache(&cache).is_err());
    let path = dir.path().join("a");
    written(&path, 0);
    let file = dir.path().join("not a folder");
    std::fs::write(&file, "").unwrap();
    let error = opened(&path)
        .with_cache(&Cache::File { folder: Some(file.join("folder")), limit: 1 })
        .unwrap_err()
        .to_string();
    assert!(error.contains("not a folder"), "{error}");
}

#[test]
fn the_least_recently_used_make_room() {
    let store = TestStore::new(images(10, shape(), PixelType::U16));
    let blocks = store.blocks.clone();
    let cached = store.dataset().with_cache(&Cache::Lru { limit: 3 * each() }).unwrap();
    let read = |row| {
        let before = blocks.load(Ordering::Relaxed);
        cached.read(row).unwrap();
        blocks.load(Ordering::Relaxed) - before
    };
    assert_eq!([0, 1, 2, 0].map(read), [1, 1, 1, 0]);
    // Row 1 was used longest ago.
    assert_eq!([3, 0, 2, 3, 1].map(read), [1, 0, 0, 0, 1]);
    // Then row 0.
    assert_eq!([2, 3, 1, 0].map(read), [0, 0, 0, 1]);
    let report = cached.cache_report();
    assert_eq!((report.bytes, report.images, report.hits, report.misses), (3 * each(), 3, 7, 6));
}

#[test]
fn more_compressed_images_fit_and_those_used_least_recently_make_room() {
    // Images of one grey level: LZ4 makes a few bytes of each.
    let flat = |row: usize| vec![row as u8; each()];
    let mut images = MemoryStore::new("flat");
    for row in 0..100 {
        images.push(format!("image {row}"), shape(), PixelType::U16, flat(row)).unwrap();
    }
    let store = TestStore::new(images);
    let blocks = store.blocks.clone();
    let cached = store.dataset().with_cache(&Cache::CompressedLru { limit: each() }).unwrap();
    let read = |row| {
        let before = blocks.load(Ordering::Relaxed);
        assert_eq!(cached.read(row).unwrap().1, flat(row));
        blocks.load(Ordering::Relaxed) - before
    };
    read(0);
    let one = cached.cache_report().bytes;
    let fit = each() / one;
    assert!((4..100).contains(&fit), "{fit} images of {one} bytes in {}", each());
    for row in 1..fit {
        assert_eq!([row, 0].map(read), [1, 0]);
    }
    // The next takes the place of row 1.
    assert_eq!([fit, 0, 2, 1].map(read), [1, 0, 0, 1]);
    assert_eq!(cached.cache_report().images, fit);
}

#[test]
fn a_miss_reads_a_chunk_of_neighbours() {
    let store = TestStore::new(images(10, shape(), PixelType::U16));
    let blocks = store.blocks.clone();
    let cached = store.dataset().with_cache(&Cache::Chunked { rows: 4, limit: usize::MAX }).unwrap();
    let read = |row| {
        let before = blocks.load(Ordering::Relaxed);
        cached.read(row).unwrap();
        blocks.load(Ordering::Relaxed) - before
    };
    assert_eq!([5, 4, 6, 7, 9, 8, 0].map(read), [4, 0, 0, 0, 2, 0, 4]);
}

#[test]
fn a_neighbour_that_cannot_be_read_harms_nobody() {
    for fault in [Fault::Fail, Fault::Panic] {
        let mut store = TestStore::new(images(8, shape(), PixelType::U16));
        store.faults = vec![(2, fault)];
        let preloaded = store.dataset().with_cache(&Cache::Preload { limit: usize::MAX }).unwrap();
        let begun = std::time::Instant::now();
        while preloaded.cache_report().images < 7 {
            assert!(begun.elapsed().as_secs() < 300, "{fault:?}: {:?}", preloaded.cache_report());
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    for cache in [Cache::Chunked { rows: 4, limit: usize::MAX }, Cache::Preload { limit: usize::MAX }] {
        let mut store = TestStore::new(images(8, shape(), PixelType::U16));
        store.faults = vec![(2, Fault::Fail)];
        let cached = store.dataset().with_cache(&cache).unwrap();
        assert!(cached.read(1).is_ok() && cached.read(3).is_ok());
        assert!(cached.read(2).is_err());
    }
}

#[test]
fn preloading_ends_with_the_set_in_memory_or_with_the_dataset() {
    let store = || TestStore::new(images(50, shape(), PixelType::U16)).dataset();
    let cached = store().with_cache(&Cache::Preload { limit: usize::MAX }).unwrap();
    let begun = std::time::Instant::now();
    while cached.cache_report().images < 50 {
        assert!(begun.elapsed().as_secs() < 300, "{:?}", cached.cache_report());
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    cached.read(7).unwrap();
    assert_eq!((cached.cache_report().hits, cached.cache_report().misses), (1, 0));
    // Dropped at once: the thread ends, and nothing waits for it for long.
    drop(store().with_cache(&Cache::Preload { limit: usize::MAX }).unwrap());
}

/// Another program shortens the cache file while it is mapped: an error, and no signal.
#[cfg(unix)]
#[test]
fn a_cache_file_that_is_shortened_is_an_error_and_no_signal() {
    if !crate::support::is_alone("cache_policies::a_cache_file_that_is_shortened_is_an_error_and_no_signal") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    written(&path, 0);
    let plain = opened(&path);
    let pixels: Vec<_> = (0..ROWS).map(|row| plain.read(row).unwrap()).collect();
    // Cuts to nothing, within the entries, within the pixels, and by a byte.
    let cases: [fn(u64) -> u64; 4] = [|_| 0, |_| 100, |whole| whole / 2, |whole| whole - 1];
    for (case, left) in cases.into_iter().enumerate() {
        let folder = dir.path().join(case.to_string());
        let cache = Cache::File { folder: Some(folder.clone()), limit: usize::MAX };
        let cached = opened(&path).with_cache(&cache).unwrap();
        for (row, expected) in pixels.iter().enumerate() {
            assert_eq!(cached.read(row).unwrap(), *expected);
        }
        let other = opened(&path).with_cache(&cache).unwrap();
        assert_eq!(other.read(0).unwrap(), pixels[0]);
        let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
        let handle = std::fs::File::options().write(true).open(&file).unwrap();
        let whole = handle.metadata().unwrap().len();
        handle.set_len(left(whole)).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        let refused = |error: String| {
            assert!(error.contains(name) && error.contains("was shortened"), "{case}: {error}");
        };
        for row in [ROWS - 1, 0, ROWS / 2] {
            refused(cached.read(row).unwrap_err().to_string());
        }
        let loader = Loader::builder(&cached).batch_size(8).workers(2).build().unwrap();
        let errors: Vec<_> = loader.iter().filter_map(Result::err).collect();
        assert!(!errors.is_empty());
        for error in errors {
            refused(error.to_string());
        }
        // Also when it is as long again: the new part is zeros.
        handle.set_len(whole).unwrap();
        refused(cached.read(ROWS - 1).unwrap_err().to_string());
        // Another process that has it open and begins to read checks what it finds, and so does one that opens the set anew.
        for (row, expected) in pixels.iter().enumerate() {
            match other.read(row) {
                Ok(read) => assert_eq!(read, *expected, "{case}"),
                Err(error) => refused(error.to_string()),
            }
        }
        drop((cached, other));
        let anew = opened(&path).with_cache(&cache).unwrap();
        for (row, expected) in pixels.iter().enumerate() {
            assert_eq!(anew.read(row).unwrap(), *expected, "{case}, row {row}");
        }
    }
}
