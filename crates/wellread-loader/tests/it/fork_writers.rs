//! Writers that are open while their process forks: children leave them alone, and the parent completes its sets.

use crate::fork::in_child;
use crate::support::images;
use std::ops::Range;
use std::path::Path;
use wellread_image::{PixelType, Shape};
use wellread_loader::MemoryStore;
use wellread_store::registry::format_named;
use wellread_store::staged::{Existing, Staged};
use wellread_store::table::{MakeSink, TableWriter, ThreadSink};
use wellread_store::{
    Error, Format, ImageView, OpenOptions, Result, Store, StoreWriter, WriteOptions, read_image,
};

/// A format whose writer has a thread of its own, as engines have that pull their batches. Its file says how many rows there were.
static OF_A_THREAD: Format =
    Format { name: "of-a-thread", create: create_with_thread, ..wellread_store::tiff::FORMAT };

fn create_with_thread(target: &Path, options: &WriteOptions) -> Result<Box<dyn StoreWriter>> {
    let staged = Staged::new(target, Existing::Kept)?;
    let name = target.to_owned();
    let make: MakeSink = Box::new(move |_| {
        let path = staged.path().to_owned();
        let sink = ThreadSink::spawn(
            name,
            move |batches| {
                let mut rows = 0;
                for batch in batches {
                    rows += batch.num_rows();
                }
                std::fs::write(&path, rows.to_string()).map_err(|e| Error::io(&path, "cannot write", &e))
            },
            move || Ok(staged.finished()),
        )?;
        Ok(Box::new(sink))
    });
    Ok(Box::new(TableWriter::create(target, options, make)?))
}

/// Writes these rows of a set.
fn write_rows(writer: &mut dyn StoreWriter, store: &MemoryStore, rows: Range<usize>) -> Result<()> {
    for row in rows {
        let (info, pixels) = read_image(store, row)?;
        let metadata = store.metadata(row)?;
        let image = ImageView { metadata: &metadata, shape: info.shape, dtype: info.dtype, pixels: &pixels };
        writer.write(&image)?;
    }
    Ok(())
}

/// A child that dropped an open writer joined threads that it does not have, and removed what the parent was writing. The parent
/// completes its set, whatever its children do.
#[test]
fn a_writer_of_the_parent_is_neither_used_nor_dropped_in_a_child() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["parquet", "ome-arrow-dataset", "tiff", "ome-zarr", "image-folder"];
    let formats = names.map(|name| (format_named(name).unwrap(), 8));
    // So many rows that the thread has begun.
    for (format, rows) in formats.into_iter().chain([(&OF_A_THREAD, 1100)]) {
        let store = images(rows, Shape::plane(4, 4), PixelType::U8);
        for jobs in [1, 2] {
            let what = format!("{}, {jobs} jobs", format.name);
            let target = folder.path().join(format!("{}-{jobs}", format.name));
            let options = WriteOptions { jobs, ..WriteOptions::default() };
            let mut writer = Some(format.writer(&target, &options).unwrap());
            write_rows(writer.as_deref_mut().unwrap(), &store, 0..rows - 1).unwrap();
            let is_dropped = in_child(|| {
                drop(writer.take());
                true
            });
            assert!(is_dropped, "{what}");
            let is_refused = in_child(|| {
                let Some(mut own) = writer.take() else { return false };
                let used = write_rows(&mut *own, &store, 0..1).unwrap_err().to_string();
                let completed = own.complete_output().unwrap_err().to_string();
                [used, completed].iter().all(|error| error.contains("is written by another process"))
            });
            assert!(is_refused, "{what}");
            let mut writer = writer.unwrap();
            write_rows(&mut *writer, &store, rows - 1..rows).unwrap();
            // So it is with what is complete and not at its place.
            let mut finished = Some(writer.complete_output().unwrap());
            let is_left = in_child(|| {
                drop(finished.take());
                true
            });
            assert!(is_left, "{what}");
            assert!(in_child(|| finished.take().is_some_and(|own| own.commit().is_err())), "{what}");
            assert!(!target.exists(), "{what}");
            finished.unwrap().commit().unwrap();
            if format.name == OF_A_THREAD.name {
                assert_eq!(std::fs::read_to_string(&target).unwrap(), rows.to_string());
                continue;
            }
            let written = wellread_store::open(&target, &OpenOptions::default()).unwrap();
            assert_eq!(written.len(), rows, "{what}");
            for row in 0..rows {
                let pixels = |set: &dyn Store| read_image(set, row).unwrap().1;
                assert_eq!(pixels(&*written), pixels(&store), "{what}, row {row}");
            }
        }
    }
}
