//! The timeline of loaders: every thread's spans, nested, and all of the consumer's waiting.
//!
//! In a process of its own: there is one recording per process.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wellread_image::{PixelType, Shape};
use wellread_loader::{Dataset, ItemContext, Loader, MemoryStore, Transform};
use wellread_store::{Compression, OpenOptions, WriteOptions, convert, registry, trace};

static ALONE: Mutex<()> = Mutex::new(());

/// A span of the file, in nanoseconds.
#[derive(Debug)]
struct Span {
    thread: String,
    name: String,
    start: u64,
    end: u64,
    args: Value,
}

/// The spans of what `work` does, by thread and start.
fn recorded(work: impl FnOnce()) -> Vec<Span> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    trace::start(&path, "a test").unwrap();
    work();
    let written = trace::finish().unwrap().unwrap();
    assert_eq!(written.dropped, 0);
    let file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let seconds: f64 = file["otherData"]["seconds"].as_str().unwrap().parse().unwrap();
    let events = file["traceEvents"].as_array().unwrap();
    let threads: BTreeMap<u64, String> = events
        .iter()
        .filter(|e| e["name"] == "thread_name")
        .map(|e| (e["tid"].as_u64().unwrap(), e["args"]["name"].as_str().unwrap().to_owned()))
        .collect();
    let nanoseconds = |value: &Value| (value.as_f64().unwrap() * 1000.0).round() as u64;
    let spans = events.iter().filter(|e| e["ph"] == "X").map(|e| Span {
        thread: threads[&e["tid"].as_u64().unwrap()].clone(),
        name: e["name"].as_str().unwrap().to_owned(),
        start: nanoseconds(&e["ts"]),
        end: nanoseconds(&e["ts"]) + nanoseconds(&e["dur"]),
        args: e["args"].clone(),
    });
    let mut spans: Vec<Span> = spans.collect();
    assert_eq!(spans.len(), written.spans);
    spans.sort_by_key(|s| (s.thread.clone(), s.start, std::cmp::Reverse(s.end)));
    check_nesting(&spans, (seconds * 1e9) as u64 + 1000);
    spans
}

/// Each span lies in the one it began in, and all of them in the time recorded.
fn check_nesting(spans: &[Span], whole: u64) {
    let mut open: Vec<&Span> = vec![];
    for span in spans {
        open.retain(|outer| outer.thread == span.thread && outer.end > span.start);
        assert!(open.last().is_none_or(|outer| span.end <= outer.end), "{span:?} in {:?}", open.last());
        assert!(span.end <= whole, "{span:?} of {whole}");
        open.push(span);
    }
}

fn names(spans: &[Span], thread: impl Fn(&str) -> bool) -> BTreeSet<&str> {
    spans.iter().filter(|s| thread(&s.thread)).map(|s| s.name.as_str()).collect()
}

fn count(spans: &[Span], name: &str) -> usize {
    spans.iter().filter(|s| s.name == name).count()
}

/// Images with something to decompress, as a file of a format.
fn written(folder: &Path, format: &str, name: &str) -> Dataset {
    let mut store = MemoryStore::new("images");
    let shape = Shape::plane(128, 160);
    for i in 0..48u32 {
        let pixel = |p: u32| (((p * 7919 + i * 104_729) >> 5) as u16 % 500).to_le_bytes();
        let pixels = (0..shape.pixels() as u32).flat_map(pixel).collect();
        store.push(format!("{i}"), shape, PixelType::U16, pixels).unwrap();
    }
    let path = folder.join(name);
    // PNG has no other.
    let compression = if format == "image-folder" { Compression::Deflate(1) } else { Compression::Zstd(1) };
    let options = WriteOptions { compression, ..WriteOptions::default() };
    let writer = registry::create(&path, format, &options).unwrap();
    let options = convert::ConvertOptions { memory: 1 << 20 };
    convert::convert(&store, writer, options, &mut |_| ()).unwrap().commit().unwrap();
    let store = wellread_store::open(&path, &OpenOptions::default()).unwrap();
    assert_eq!(store.len(), 48);
    Dataset::from_store(store)
}

#[test]
fn workers_and_consumer_show_what_they_do_in_every_format() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    for (format, name) in
        [("parquet", "a.parquet"), ("tiff", "a"), ("ome-zarr", "zarr"), ("image-folder", "png")]
    {
        // Opened within the recording, so that the opening is part of it.
        let path = folder.path().join(name);
        written(folder.path(), format, name);
        let mut rows = vec![];
        let spans = recorded(|| {
            let store = wellread_store::open(&path, &OpenOptions::default()).unwrap();
            let dataset = Dataset::from_store(store);
            let loader = Loader::builder(&dataset)
                .batch_size(4)
                .shuffle(3)
                .workers(2)
                .scale_to_unit()
                .build()
                .unwrap();
            // Workers may get nothing to do in one epoch: a consumer that waits reads, too. So this one has other work.
            for _ in 0..20 {
                for batch in &loader {
                    rows.extend_from_slice(batch.unwrap().rows());
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        });
        // All workers count: on a busy machine the thread that waits for batches may read what one of them would have
        // read.
        let workers = names(&spans, |thread| thread.starts_with("wellread-"));
        // Pages of a table stay decoded, so that the waiting thread may have read them all.
        let wanted: &[&str] =
            if format == "parquet" { &[] } else { &["rows", "transform", "decompress", "read"] };
        assert!(wanted.iter().all(|name| workers.contains(name)), "{format}: {workers:?}");
        let all = names(&spans, |_| true);
        assert!(
            ["open", "read", "decompress", "rows", "transform"].iter().all(|name| all.contains(name)),
            "{format}: {all:?}"
        );
        let consumer = names(&spans, |thread| !thread.starts_with("wellread-"));
        assert!(
            ["open", "batch", "start workers", "stop workers"].iter().all(|name| consumer.contains(name)),
            "{consumer:?}"
        );
        assert_eq!(
            names(&spans, |thread| thread.contains('(')).len(),
            0,
            "threads of later epochs have lanes of their own"
        );
        assert_eq!(count(&spans, "batch"), 20 * 12, "{format}");
        let of_batches: u64 =
            spans.iter().filter(|s| s.name == "batch").map(|s| s.args["rows"].as_u64().unwrap()).sum();
        let of_slices: u64 =
            spans.iter().filter(|s| s.name == "rows").map(|s| s.args["rows"].as_u64().unwrap()).sum();
        assert_eq!((of_batches, of_slices), (rows.len() as u64, rows.len() as u64), "{format}");
        // Every image is transformed, by the row it is of.
        let transformed: BTreeSet<u64> =
            spans.iter().filter(|s| s.name == "transform").map(|s| s.args["row"].as_u64().unwrap()).collect();
        assert_eq!(transformed, (0..48).collect(), "{format}");
    }
}

#[test]
fn waiting_for_room_and_for_a_batch_is_seen() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let dataset = written(folder.path(), "tiff", "a");
    let loader = Loader::builder(&dataset).batch_size(1).workers(2).prefetch(2).build().unwrap();
    // A consumer that takes its time lets the workers wait, sooner or later; one that does not waits itself.
    for (pause, wanted) in [(5, "wait for room"), (0, "wait for batch")] {
        let seen = (0..200).any(|_| {
            let spans = recorded(|| {
                for batch in &loader {
                    drop(batch.unwrap());
                    std::thread::sleep(Duration::from_millis(pause));
                }
            });
            assert_eq!(count(&spans, "batch"), 48);
            count(&spans, wanted) > 0
        });
        assert!(seen, "{wanted}");
    }
}

#[test]
fn single_images_and_second_passes_are_seen_and_small_blocks_are_not() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let dataset = written(folder.path(), "parquet", "a.parquet");
    let (mut out, mut context) = (vec![], ItemContext::new());
    let recipe = Transform::default().resize(40, 50).scale_to_unit();
    let spans = recorded(|| {
        for row in 0..10 {
            dataset.sample_into(row, &recipe, &mut out, &mut context).unwrap();
        }
    });
    assert_eq!((count(&spans, "sample"), count(&spans, "finish")), (10, 10));
    let mut store = MemoryStore::new("small");
    for i in 0..10 {
        store.push(format!("{i}"), Shape::plane(8, 8), PixelType::U8, vec![i; 64]).unwrap();
    }
    let small = Dataset::from_store(Box::new(store));
    let spans = recorded(|| {
        for batch in &Loader::builder(&small).batch_size(5).build().unwrap() {
            drop(batch.unwrap());
        }
    });
    assert_eq!(names(&spans, |_| true), BTreeSet::from(["batch"]));
}
