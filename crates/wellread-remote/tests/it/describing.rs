//! Describing a set in a bucket, as `info`, `verify` and `stats` do: requests go out together, and few of them. No clock tells.

use crate::gate;
use crate::opening::{SMALL, copies, opened};
use crate::pages;
use crate::rounds::names;
use crate::server;
use std::path::Path;
use wellread_image::Shape;
use wellread_loader::stats::Stats;
use wellread_store::each_row;
use wellread_store::mixed_channels;
use wellread_store::subset::Subset;
use wellread_store::{Store, WriteOptions};

/// Five channels, whose layout no statistics of a footer tell.
const FIVE: Shape = Shape([1, 5, 1, 300, 400]);

/// The same images, opened in a bucket and in a folder.
fn both(folder: &Path, bucket: &str, format: &str, shape: Shape, images: usize) -> [Box<dyn Store>; 2] {
    let plain = WriteOptions::default();
    let [local, other] = copies(folder, [bucket, "set"], format, (shape, &names(images)), &plain);
    pages::lengthen_pages(bucket);
    [other, local].map(|path| opened(&path))
}

/// Requests for a bucket while `work` ran.
fn requests(bucket: &str, work: impl FnOnce()) -> usize {
    let before = server::all_requests(bucket).len();
    work();
    server::all_requests(bucket).len() - before
}

#[test]
fn parquet_of_several_channels_and_row_groups_takes_few_requests() {
    let dir = tempfile::tempdir().unwrap();
    let bucket = "describe-parquet";
    let [store, local] = both(dir.path(), bucket, "parquet", FIVE, 40);
    let groups: usize = local.layout().unwrap().pieces.split(' ').next().unwrap().parse().unwrap();
    assert!(groups > 2);
    // The index and the first header: not the header of each page.
    let layout = requests(bucket, || assert_eq!(store.layout().unwrap(), local.layout().unwrap()));
    assert!(layout <= 8, "{layout}");
    // The first header of each row group, together.
    let sums = requests(bucket, || assert!(store.has_checksums() && local.has_checksums()));
    assert!(sums <= groups, "{sums}");
    // Small columns of each row group: not byte by byte.
    let rows = requests(bucket, || {
        for row in 0..store.len() {
            assert_eq!(store.row_info(row).unwrap(), local.row_info(row).unwrap());
            assert_eq!(store.metadata(row).unwrap(), local.metadata(row).unwrap());
        }
    });
    assert!(rows <= 12 * groups, "{rows} requests for {groups} row groups");
}

#[test]
fn the_files_of_ome_zarr_are_listed_together() {
    let dir = tempfile::tempdir().unwrap();
    let bucket = "describe-zarr";
    let [store, local] = both(dir.path(), bucket, "ome-zarr", SMALL, 60);
    for row in each_row::infos(&*store, store.len()) {
        row.unwrap();
    }
    let (mut count, mut bytes) = (0, 0);
    let asked = requests(bucket, || {
        count = store.files().unwrap().len();
        bytes = store.bytes_on_disk().unwrap();
    });
    assert_eq!((count, bytes), (local.files().unwrap().len(), local.bytes_on_disk().unwrap()));
    assert!(count >= 3 * 60 && asked <= 4, "{asked} requests for {count} files");
    // Nobody has looked at these images: their metadata is asked for together.
    let [store, _] = both(&dir.path().join("more"), "describe-more-zarr", "ome-zarr", SMALL, 200);
    gate::hold("describe-more-zarr", 48);
    assert!(store.files().unwrap().len() >= 3 * 200);
    assert!(gate::most_at_once("describe-more-zarr") >= 48);
}

#[test]
fn headers_of_tiff_files_are_asked_for_together() {
    let dir = tempfile::tempdir().unwrap();
    let bucket = "describe-tiff";
    let [store, local] = both(dir.path(), bucket, "tiff", SMALL, 300);
    // More than opening asks for together.
    gate::hold(bucket, 48);
    for (row, info) in each_row::infos(&*store, store.len()).enumerate() {
        assert_eq!(info.unwrap(), local.row_info(row).unwrap());
    }
    assert!(gate::most_at_once(bucket) >= 48);
    let stats = |store| Stats::of(store, &[50.0], 2, &|| ()).unwrap();
    assert_eq!(stats(&*store), stats(&*local));
}

/// A loader in Python looks for them before its first batch.
#[test]
fn images_whose_channels_are_compared_are_asked_for_together() {
    let dir = tempfile::tempdir().unwrap();
    // Each file has a head of its own. Images of OME-Zarr that are alike have one.
    let bucket = "describe-names";
    let [store, _] = both(&dir.path().join("pictures"), bucket, "image-folder", SMALL, 50);
    // Eight images are looked at, and opening has looked into the first.
    gate::hold(bucket, 7);
    assert_eq!(mixed_channels::find(&*store, None, None, 64), None);
    assert!(gate::most_at_once(bucket) >= 7);
}

#[test]
fn rows_here_and_there_are_asked_for_together() {
    let dir = tempfile::tempdir().unwrap();
    let bucket = "describe-some";
    let scattered: Vec<usize> = (0..300).step_by(3).collect();
    let [some, others] =
        both(dir.path(), bucket, "tiff", SMALL, 300).map(|store| Subset::of(store, scattered.clone()));
    gate::hold(bucket, 24);
    let images = |store: &Subset| {
        let mut seen = vec![];
        let each = &mut |row, info, pixels: &[u8]| {
            seen.push((row, info, pixels.to_vec()));
            Ok(())
        };
        store.scan(0..store.len(), each).unwrap();
        seen
    };
    let seen = images(&some);
    assert!(seen == images(&others) && seen.len() == 100);
    assert!(gate::most_at_once(bucket) >= 24);
}
