//! Loaders over sets in a bucket: the batches of a folder, asked for ahead, and nothing left in flight when an epoch is broken off.

use crate::gate;
use crate::server;
use crate::sets::copy;
use std::path::{Path, PathBuf};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_loader::{Dataset, Loader, LoaderBuilder};
use wellread_store::{ImageView, OpenOptions, WriteOptions, create, open, open_all};

const IMAGES: usize = 24;
/// More bytes than come with a file's header.
const SHAPE: Shape = Shape([1, 1, 1, 300, 400]);

/// The same images in a folder and in a bucket.
fn write(folder: &Path, bucket: &str, format: &str) -> [PathBuf; 2] {
    write_images(folder, bucket, format, SHAPE, &WriteOptions::default())
}

fn write_images(
    folder: &Path,
    bucket: &str,
    format: &str,
    shape: Shape,
    options: &WriteOptions,
) -> [PathBuf; 2] {
    server::url();
    let local = folder.join("set");
    let mut writer = create(&local, format, options).unwrap();
    for row in 0..IMAGES {
        // Numbers that hardly compress.
        let pixels: Vec<u8> =
            (0..shape.pixels()).map(|i| ((i + row).wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let metadata = ImageMetadata::named(format!("image-{row:02}"));
        let view = ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels };
        writer.write(&view).unwrap();
    }
    writer.finish().unwrap();
    let other = PathBuf::from(format!("s3://{bucket}/set"));
    copy(&local, &other);
    [local, other]
}

fn dataset(path: &Path) -> Dataset {
    Dataset::from_store(open(path, &OpenOptions::default()).unwrap())
}

fn loader(path: &Path, choose: impl Fn(LoaderBuilder) -> LoaderBuilder) -> Loader {
    choose(Loader::builder(&dataset(path)).batch_size(4).shuffle(7)).build().unwrap()
}

/// Rows and pixels of an epoch.
fn epoch(loader: &Loader) -> Vec<(Vec<usize>, Vec<f32>)> {
    loader.iter().map(Result::unwrap).map(|batch| (batch.rows().to_vec(), batch.pixels().to_vec())).collect()
}

#[test]
fn an_epoch_is_asked_for_at_once_each_image_once_and_is_that_of_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let [local, other] = write(dir.path(), "loaded", "tiff");
    let there = loader(&other, |loader| loader.workers(2));
    let files: Vec<_> = server::keys("loaded/").into_iter().filter(|key| key.contains("image-")).collect();
    assert_eq!(files.len(), IMAGES);
    let asked = || files.iter().map(|file| server::requests(file).len()).sum::<usize>();
    let before = asked();
    gate::hold("loaded", IMAGES);
    let loaded = epoch(&there);
    assert_eq!(loaded, epoch(&loader(&local, |loader| loader.workers(2))));
    assert_eq!(asked() - before, IMAGES);
    assert!(gate::most_at_once("loaded") >= IMAGES);
}

#[test]
fn who_takes_batches_waits_for_no_network_but_without_workers() {
    let dir = tempfile::tempdir().unwrap();
    let [local, other] = write(dir.path(), "readers", "tiff");
    for (workers, remote, local_readers) in [(2, 2, 3), (1, 1, 2), (0, 1, 1)] {
        let readers = |path: &Path| loader(path, |loader| loader.workers(workers)).readers();
        assert_eq!((readers(&other), readers(&local)), (remote, local_readers), "{workers}");
    }
}

#[test]
fn batches_are_the_same_however_they_are_read() {
    let dir = tempfile::tempdir().unwrap();
    for format in ["tiff", "parquet", "ome-zarr", "image-folder"] {
        let folder = dir.path().join(format);
        std::fs::create_dir(&folder).unwrap();
        let [local, other] = write(&folder, &format!("alike-{format}"), format);
        for workers in [0, 2] {
            let crops = |loader: LoaderBuilder| loader.workers(workers).crop(64, 48);
            assert_eq!(epoch(&loader(&other, crops)), epoch(&loader(&local, crops)), "{format} {workers}");
            let bounded = |loader: LoaderBuilder| loader.workers(workers).memory(100 << 20);
            assert_eq!(
                epoch(&loader(&other, bounded)),
                epoch(&loader(&local, bounded)),
                "{format} {workers}"
            );
        }
    }
}

#[test]
fn of_large_shards_the_end_is_asked_for_first_and_then_the_chunks_of_the_crop() {
    let dir = tempfile::tempdir().unwrap();
    let options = WriteOptions {
        chunk: Some([1, 1, 1, 256, 256]),
        shard: Some([1, 1, 1, 1280, 1280]),
        ..WriteOptions::default()
    };
    let shape = Shape([1, 1, 1, 1100, 1200]);
    let [local, other] = write_images(dir.path(), "large-shards", "ome-zarr", shape, &options);
    let shards: Vec<_> =
        server::keys("large-shards/").into_iter().filter(|key| key.ends_with("/c/0/0/0/0/0")).collect();
    assert_eq!(shards.len(), IMAGES);
    let crops = |loader: LoaderBuilder| loader.workers(1).crop(64, 48);
    assert_eq!(epoch(&loader(&other, crops)), epoch(&loader(&local, crops)));
    for shard in &shards {
        let length = server::get(shard).unwrap().len();
        let mut requests = server::requests(shard);
        requests.retain(|one| one.starts_with("GET"));
        // By its number where the length is not known, which is the last byte's else.
        let is_end = |one: &str| one == "GET bytes=-65536" || one.ends_with(&format!("-{}", length - 1));
        assert!(is_end(&requests[0]), "{shard}: {requests:?}");
        // A crop touches four chunks at most.
        assert!(requests.len() <= 5, "{shard}: {requests:?}");
        requests.sort();
        assert!(requests.windows(2).all(|two| two[0] != two[1]), "{requests:?}");
    }
}

#[test]
fn an_epoch_that_is_broken_off_leaves_nothing_in_flight() {
    let dir = tempfile::tempdir().unwrap();
    let [local, other] = write(dir.path(), "broken-off", "tiff");
    let there = loader(&other, |loader| loader.workers(2));
    gate::hold("broken-off", usize::MAX);
    let batches = there.iter();
    gate::wait_for("broken-off", IMAGES);
    drop(batches);
    gate::wait_for_given_up("broken-off", IMAGES);
    gate::hold("broken-off", 0);
    assert_eq!(epoch(&there)[0].0.len(), 4);
    assert_eq!(epoch(&loader(&other, |loader| loader)), epoch(&loader(&local, |loader| loader)));
}

#[test]
fn headers_that_a_bound_on_memory_needs_are_asked_for_at_once_and_once() {
    let dir = tempfile::tempdir().unwrap();
    for format in ["tiff", "image-folder"] {
        let folder = dir.path().join(format);
        std::fs::create_dir(&folder).unwrap();
        let bucket = format!("bounded-{format}");
        let [local, other] = write(&folder, &bucket, format);
        let files: Vec<_> =
            server::keys(&format!("{bucket}/")).into_iter().filter(|key| key.contains("image-")).collect();
        assert_eq!(files.len(), IMAGES);
        let dataset = dataset(&other);
        // The files that the loader looks at first.
        dataset.store().row_info(0).unwrap();
        // Those of TIFF files were asked for when the folder was opened.
        let is_left = format == "image-folder";
        if is_left {
            gate::hold(&bucket, IMAGES - 1);
        }
        let there = Loader::builder(&dataset).batch_size(4).shuffle(7).memory(100 << 20).build().unwrap();
        assert!(!is_left || gate::most_at_once(&bucket) >= IMAGES - 1, "{format}");
        for file in &files {
            // The directories of a TIFF file are at its end, which is near enough to come along.
            let headers =
                server::requests(file).into_iter().filter(|one| one.starts_with("GET bytes=0-")).count();
            assert_eq!(headers, 1, "{file}");
        }
        assert_eq!(epoch(&there), epoch(&loader(&local, |loader| loader.memory(100 << 20))), "{format}");
    }
}

#[test]
fn a_worker_that_waits_for_what_nobody_asked_ahead_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let [local, other] = write(dir.path(), "not-ahead", "tiff");
    // No room for anything ahead.
    let there = loader(&other, |loader| loader.workers(2).memory(40 << 20));
    gate::hold("not-ahead", usize::MAX);
    let batches = there.iter();
    gate::wait_for("not-ahead", 1);
    drop(batches);
    gate::wait_for_given_up("not-ahead", 1);
    gate::hold("not-ahead", 0);
    assert_eq!(epoch(&there)[0].0.len(), 4);
    assert_eq!(epoch(&loader(&other, |loader| loader)), epoch(&loader(&local, |loader| loader)));
}

#[test]
fn a_set_here_and_one_in_a_bucket_are_one_set_of_which_the_far_images_alone_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| {
        let folder = dir.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        write(&folder, &format!("mixed-{name}"), "tiff")
    });
    let loader = |paths: &[PathBuf; 2]| {
        let dataset = Dataset::from_store(open_all(paths, &OpenOptions::default()).unwrap());
        assert_eq!(dataset.len(), 2 * IMAGES);
        Loader::builder(&dataset).batch_size(4).shuffle(7).workers(2).build().unwrap()
    };
    let here = loader(&[first[0].clone(), second[0].clone()]);
    let mixed = loader(&[first[0].clone(), second[1].clone()]);
    assert!(mixed.is_remote() && !here.is_remote() && here.stats().link.is_none());
    let files: Vec<_> =
        server::keys("mixed-second/").into_iter().filter(|key| key.contains("image-")).collect();
    let asked = || files.iter().map(|file| server::requests(file).len()).sum::<usize>();
    let before = asked();
    gate::hold("mixed-second", IMAGES);
    assert_eq!(epoch(&mixed), epoch(&here));
    assert_eq!(asked() - before, IMAGES, "each far image once");
    assert!(gate::most_at_once("mixed-second") >= IMAGES);
    // These count requests of the process, in which other tests ask as well.
    assert!(mixed.stats().link.is_some_and(|link| link.requests >= IMAGES as u64));
    assert!(
        server::all_requests("mixed-first").iter().all(|one| one.starts_with("PUT")),
        "this one is read here"
    );
}
