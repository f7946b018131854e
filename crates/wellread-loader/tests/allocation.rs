//! In steady state nothing is allocated, neither by the consumer nor by the workers.
//!
//! A counting allocator counts only threads that are marked: the test marks its own, and the store marks each worker as
//! it reads. In a process of its own: stores share the files that one may keep open, and others would take them all.

#[path = "it/counting.rs"]
#[allow(dead_code)]
mod counting;
#[path = "it/support.rs"]
#[allow(dead_code)]
mod support;

use counting::{ALONE, COUNT, Watched, check_steady_loader, check_steady_state, marked};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use support::{TestStore, images, parquet, written};
use wellread_image::{PixelType, Shape};
use wellread_loader::{ItemContext, Jitter, Loader, Noise, Normalize, Targets, Transform};
use wellread_store::{Compression, OpenOptions, Tune, WriteOptions};

#[test]
fn the_counter_counts() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = COUNT.load(Ordering::Relaxed);
    marked(|| std::hint::black_box(vec![1u8; 100]));
    assert_eq!(COUNT.load(Ordering::Relaxed) - before, 1);
}

#[test]
fn steady_state_allocates_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let augment = Transform::preset("augment").unwrap().channels([1, 0]).normalize([0.5, 0.4], [1.0, 2.0]);
    let transforms = [
        Transform::default(),
        augment.clone(),
        augment.random_crop(20, 20),
        Transform::default().resize(12, 12),
        Transform::default()
            .random_resized_crop(12, 12)
            .scale_by_percentiles(1.0, 99.0)
            .jitter(Jitter { brightness: 0.1, contrast: 0.1, gamma: 0.1, per_channel: true })
            .noise(Noise { photon: 0.01, gaussian: 0.01 })
            .normalize_with(Normalize::PerImage)
            .channel_dropout(0.3),
    ];
    for transform in transforms {
        for workers in [0, 1, 2] {
            let dataset = Watched(Box::new(images(512, Shape([1, 2, 1, 32, 32]), PixelType::U16))).dataset();
            check_steady_state(&dataset, workers, &transform, [16, 40]);
        }
    }
}

/// Several views of each row, and their targets.
#[test]
fn steady_state_allocates_nothing_with_views_and_targets() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let set = |dtype| Watched(Box::new(images(512, Shape([1, 2, 1, 32, 32]), dtype))).dataset();
    let (images, labels) = (set(PixelType::U16), set(PixelType::U8));
    for workers in [0, 2] {
        let builder = Loader::builder(&images).batch_size(4).shuffle(1).workers(workers).views(2);
        let builder = builder.transform(Transform::preset("augment").unwrap().random_crop(20, 20));
        let loader = builder.targets(Targets::labels(&labels).channels([1])).build().unwrap();
        check_steady_loader(&loader, [16, 40]);
    }
}

/// A file whose decoded pages fit the reader's cache: each is decoded once, and from then on nothing is allocated.
#[test]
fn steady_state_allocates_nothing_for_parquet() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.parquet");
    parquet(&path, &images(256, Shape([1, 2, 1, 32, 32]), PixelType::U16), None);
    for workers in [0, 2] {
        let store = wellread_store::open(&path, &OpenOptions::default()).unwrap();
        let transform = Transform::default().scale_to_unit();
        check_steady_state(&Watched(store).dataset(), workers, &transform, [16, 40]);
    }
}

/// A file whose pages do not fit: for each that is decoded one goes, and its memory is used again. (Not that of dictionaries,
/// which seldom go.)
#[test]
fn steady_state_allocates_nothing_for_parquet_beyond_its_cache() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let images = images(1024, Shape([1, 2, 1, 32, 32]), PixelType::U16);
    for tune in [Tune::Random, Tune::Scan] {
        let path = folder.path().join(format!("{tune:?}.parquet"));
        written(&path, "parquet", &images, &WriteOptions { tune, ..WriteOptions::default() });
        for workers in [0, 2] {
            let store = wellread_store::open(&path, &OpenOptions::default()).unwrap();
            store.hints().limit_page_cache(1536 << 10);
            let dataset = Watched(store).dataset();
            // Until what is kept has come.
            let whole = Loader::builder(&dataset).batch_size(16).shuffle(1).build().unwrap();
            for _ in 0..3 {
                for batch in &whole {
                    drop(batch.unwrap());
                }
            }
            check_steady_state(&dataset, workers, &Transform::default().scale_to_unit(), [16, 40]);
        }
    }
}

/// A dataset folder, whose chunks are asked for by row group and row.
#[test]
fn steady_state_allocates_nothing_for_a_dataset_folder() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let store = images(256, Shape([1, 2, 1, 32, 32]), PixelType::U16);
    for compression in [Compression::None, Compression::Zstd(3)] {
        let path = folder.path().join(compression.to_string());
        let options = WriteOptions { compression, ..WriteOptions::default() };
        written(&path, "ome-arrow-dataset", &store, &options);
        for workers in [0, 2] {
            let store = wellread_store::open(&path, &OpenOptions::default()).unwrap();
            let transform = Transform::default().scale_to_unit();
            check_steady_state(&Watched(store).dataset(), workers, &transform, [16, 40]);
        }
    }
}

/// Sets of many files, as many as stay open between reads (a quarter of the process's limit). The same decoders decode
/// them into the same buffers, and nothing is allocated for an image.
#[test]
fn steady_state_allocates_nothing_for_files_that_stay_open() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let store = images(40, Shape::plane(32, 32), PixelType::U16);
    for (format, compression) in [
        ("tiff", Compression::Lzw),
        ("tiff", Compression::Zstd(3)),
        ("ome-zarr", Compression::Zstd(3)),
        ("ome-zarr", Compression::None),
    ] {
        let path = folder.path().join(format!("{format}-{compression}"));
        written(&path, format, &store, &WriteOptions { compression, ..WriteOptions::default() });
        for workers in [0, 2] {
            let store = wellread_store::open(&path, &OpenOptions::default()).unwrap();
            let transform = Transform::default().scale_to_unit();
            check_steady_state(&Watched(store).dataset(), workers, &transform, [2, 8]);
        }
    }
}

#[test]
fn single_items_allocate_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dataset = TestStore::new(images(20, Shape::plane(32, 32), PixelType::U8)).dataset();
    for name in Transform::PRESETS {
        let transform = Transform::preset(name).unwrap();
        let (mut out, mut context) = (vec![], ItemContext::new());
        let mut epoch = |out: &mut Vec<f32>| {
            for row in 0..20 {
                dataset.sample_into(row, &transform, out, &mut context).unwrap();
            }
        };
        epoch(&mut out);
        let before = COUNT.load(Ordering::Relaxed);
        marked(|| epoch(&mut out));
        assert_eq!(COUNT.load(Ordering::Relaxed), before, "{name}");
    }
}
