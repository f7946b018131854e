//! Errors come at their place, name row and file, and say what to do.

use crate::support::{Fault, TestStore, bits, images};
use std::sync::Arc;
use wellread_image::{PixelType, Shape};
use wellread_loader::cache::parse_bytes;
use wellread_loader::{
    Cache, Dataset, Grouping, ItemContext, Loader, LoaderBuilder, MemoryStore, RightAngles, Transform,
};
use wellread_store::concat::Concat;
use wellread_store::table::RecordBatches;
use wellread_store::{
    Error, PixelSink, Request, Result, RowInfo, Scratch, Store, default_answers, delegate_store,
};

fn squares(n: usize) -> MemoryStore {
    images(n, Shape::plane(8, 8), PixelType::U8)
}

fn refusal(builder: LoaderBuilder) -> String {
    builder.build().expect_err("should not build").to_string()
}

#[test]
fn a_failing_row_fails_its_batch_and_no_other() {
    for (workers, rows_per_read) in [(0, 1), (1, 1), (3, 1), (0, 12), (1, 12), (3, 12), (2, 100)] {
        let mut store = TestStore::new(squares(20));
        store.faults = vec![(9, Fault::Fail), (5, Fault::Fail)];
        store.rows_per_read = rows_per_read;
        let loader = Loader::builder(&store.dataset()).batch_size(4).workers(workers).build().unwrap();
        let good = Loader::builder(&TestStore::new(squares(20)).dataset()).batch_size(4).build().unwrap();
        for _ in 0..3 {
            let got: Vec<_> = loader.iter().collect();
            assert_eq!(got.len(), 5);
            for (i, (batch, good)) in got.iter().zip(&good).enumerate() {
                match batch {
                    Ok(batch) => assert_eq!(bits(batch), bits(&good.unwrap())),
                    Err(error) => {
                        assert_eq!(error.row_index(), Some([usize::MAX, 5, 9][i]));
                        let text = error.to_string();
                        assert!(text.contains("test-images") && text.contains("does not decode"), "{text}");
                    }
                }
            }
            assert!(got[1].is_err() && got[2].is_err());
        }
    }
}

#[test]
fn the_row_is_found_where_the_reader_does_not_name_it() {
    for (workers, rows_per_read) in [(0, 1), (0, 12), (3, 12), (2, 100)] {
        let mut store = TestStore::new(squares(20));
        store.faults = vec![(6, Fault::Unnamed), (7, Fault::Unnamed)];
        store.rows_per_read = rows_per_read;
        let loader = Loader::builder(&store.dataset()).batch_size(4).workers(workers).build().unwrap();
        let got: Vec<_> = loader.iter().collect();
        let failed: Vec<_> =
            got.iter().map(|batch| batch.as_ref().err().and_then(Error::row_index)).collect();
        assert_eq!(failed, [None, Some(6), None, None, None]);
        assert!(got.iter().enumerate().all(|(i, batch)| batch.is_ok() || i == 1));
    }
}

/// In batches that are split among threads, the error reported is the same whichever thread is faster.
#[test]
fn the_first_of_several_failing_rows_is_reported() {
    for workers in [0, 1, 4] {
        let mut store = TestStore::new(images(8, Shape::plane(600, 600), PixelType::U8));
        store.faults = vec![(6, Fault::Fail), (2, Fault::Fail), (5, Fault::Panic)];
        let loader = Loader::builder(&store.dataset()).batch_size(8).workers(workers).build().unwrap();
        for _ in 0..5 {
            let error = loader.iter().next().unwrap().unwrap_err();
            assert_eq!(error.row_index(), Some(2), "{error}");
        }
    }
}

#[test]
fn a_panic_becomes_an_error_and_the_iteration_goes_on() {
    for workers in [0, 2] {
        let mut store = TestStore::new(squares(9));
        store.faults = vec![(4, Fault::Panic)];
        let loader = Loader::builder(&store.dataset()).batch_size(3).workers(workers).build().unwrap();
        let got: Vec<_> = loader.iter().collect();
        assert!(got[0].is_ok() && got[2].is_ok());
        let text = got[1].as_ref().unwrap_err().to_string();
        assert!(text.contains("a defect in a reader") && text.contains("while reading row 4"), "{text}");
    }
}

#[test]
fn a_reader_that_breaks_its_promise_is_found_out() {
    for fault in [Fault::Short, Fault::WrongType] {
        let mut store = TestStore::new(squares(3));
        store.faults = vec![(1, fault)];
        let loader = Loader::builder(&store.dataset()).batch_size(3).build().unwrap();
        let error = loader.iter().next().unwrap().unwrap_err();
        assert_eq!(error.row_index(), Some(1));
        assert!(error.to_string().contains("the reader delivered"), "{error}");
    }
}

#[test]
fn mixed_shapes_name_both_rows_and_suggest_crop_or_resize() {
    let mut store = squares(6);
    store.push("odd", Shape::plane(10, 6), PixelType::U8, vec![0; 60]).unwrap();
    let dataset = TestStore::new(store).dataset();
    for workers in [0, 2] {
        let loader = Loader::builder(&dataset).batch_size(2).workers(workers).build().unwrap();
        let got: Vec<_> = loader.iter().collect();
        assert!(got[..3].iter().all(Result::is_ok), "at its place, not before");
        let error = got[3].as_ref().unwrap_err();
        assert_eq!(error.row_index(), Some(6));
        let text = error.to_string();
        for part in ["1x1x1x10x6", "row 0", "1x1x1x8x8", "crop to at most 8x6 (by these two rows", "resize"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

#[test]
fn mixed_depths_do_not_suggest_a_crop() {
    let mut store = squares(1);
    store.push("deep", Shape([1, 1, 2, 8, 8]), PixelType::U8, vec![0; 128]).unwrap();
    let loader = Loader::builder(&TestStore::new(store).dataset()).crop(4, 4).build().unwrap();
    let text = loader.iter().next().unwrap().unwrap_err().to_string();
    assert!(text.contains("change Y and X only"), "{text}");
}

#[test]
fn mixed_types_name_both() {
    let mut store = squares(2);
    store.push("sixteen", Shape::plane(8, 8), PixelType::U16, vec![0; 128]).unwrap();
    let loader = Loader::builder(&TestStore::new(store).dataset()).build().unwrap();
    let error = loader.iter().next().unwrap().unwrap_err();
    assert_eq!(error.row_index(), Some(2));
    let text = error.to_string();
    assert!(text.contains("uint16") && text.contains("row 0 is uint8"), "{text}");
}

#[test]
fn unlike_rows_of_two_sets_name_their_sets() {
    let set = |name: &str, dtype: PixelType| {
        let mut store = MemoryStore::new(name);
        store.push("a", Shape::plane(8, 8), dtype, vec![0; 64 * dtype.size()]).unwrap();
        store
    };
    let (narrow, wide) = (set("narrow", PixelType::U8), set("wide", PixelType::U16));
    let both = Concat::of(vec![Arc::new(narrow) as Arc<dyn Store>, Arc::new(wide)]);
    let loader = Loader::builder(&Dataset::from_store(Box::new(both))).batch_size(2).build().unwrap();
    let error = loader.iter().next().unwrap().unwrap_err();
    let cause =
        "the image of wide is uint16, but row 0 of narrow is uint8; one loader delivers one pixel type";
    assert_eq!((error.row_index(), error.cause()), (Some(1), cause));
}

#[test]
fn a_crop_larger_than_an_image_names_the_row() {
    let mut store = squares(3);
    store.push("small", Shape::plane(8, 5), PixelType::U8, vec![0; 40]).unwrap();
    let dataset = TestStore::new(store).dataset();
    let error = Loader::builder(&dataset).crop(8, 6).build().unwrap().iter().next().unwrap().unwrap_err();
    let text = error.to_string();
    assert!(error.is_choice(), "the file is not damaged: {text}");
    assert!(text.contains("row 3") && text.contains("8x6") && text.contains("8x5"), "{text}");
    let text = refusal(Loader::builder(&dataset).crop(9, 9));
    assert!(text.contains("row 0") && text.contains("resize"), "{text}");
}

#[test]
fn choices_that_make_no_sense_are_refused() {
    let dataset = TestStore::new(images(5, Shape([1, 2, 1, 8, 6]), PixelType::U8)).dataset();
    let builder = || Loader::builder(&dataset);
    for (builder, expected) in vec![
        (Loader::builder(&Dataset::from_store(Box::new(MemoryStore::new("none")))), "no images"),
        (builder().batch_size(0), "batch size is 0"),
        (builder().workers(2).prefetch(0), "prefetch"),
        (builder().rows([]), "empty list"),
        (builder().rows([1, 5]), "row 5"),
        (builder().batch_size(6).drop_last(true), "leaves none"),
        (builder().crop(0, 5), "no pixels"),
        (builder().resize(5, 0), "no pixels"),
        (builder().flip(1.5, 0.0), "1.5"),
        (builder().flip(0.0, f32::NAN), "NaN"),
        (builder().rotate_degrees(-1.0), "-1"),
        (builder().scale(f32::INFINITY), "inf"),
        (builder().normalize([0.5], [0.0]), "standard deviation"),
        (builder().normalize([f32::NAN], [1.0]), "mean"),
        (builder().normalize([0.5, 0.5], [1.0]), "2 means"),
        (builder().normalize([0.5; 3], [1.0; 3]), "3 channels"),
        (builder().channels([]), "no channel"),
        (builder().channels([2]), "channel 2"),
        (builder().right_angles(RightAngles::QuarterTurns), "crop to a square"),
        (builder().resize(usize::MAX, 2), "1 TiB"),
        (builder().grouped(Grouping::keys(["a"]), 0), "1 group key was given"),
    ] {
        let text = refusal(builder);
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

/// The memory that a refusal names is enough: it is not refused again.
#[test]
fn the_memory_that_is_advised_is_enough() {
    for side in [20, 57, 64, 111, 300] {
        let dataset = TestStore::new(images(9, Shape::plane(side, side), PixelType::U16)).dataset();
        let preloaded = dataset.clone().with_cache(&Cache::Preload { limit: 1 << 20 }).unwrap();
        for dataset in [dataset, preloaded] {
            let loader = |memory| Loader::builder(&dataset).batch_size(4).workers(2).memory(memory).build();
            let error = loader(1).unwrap_err();
            let hint = error.hint_text().unwrap();
            let (_, amount) = hint.split_once("give at least ").unwrap();
            let amount = parse_bytes(amount.trim_end_matches(" of memory")).unwrap();
            let enough = loader(usize::try_from(amount).unwrap());
            assert!(enough.is_ok(), "{side}: {error}, and then {}", enough.unwrap_err());
        }
    }
}

/// A batch that no memory can hold: an error for each batch, with and without threads, and no hang.
#[test]
fn running_out_of_memory_is_an_error() {
    let dataset = TestStore::new(images(300, Shape::plane(2, 2), PixelType::U8)).dataset();
    for workers in [0, 2] {
        let loader = Loader::builder(&dataset)
            .resize(1 << 19, 1 << 19)
            .batch_size(256)
            .workers(workers)
            .build()
            .unwrap();
        let got: Vec<_> = loader.iter().collect();
        assert_eq!(got.len(), 2);
        for error in got {
            assert!(error.unwrap_err().to_string().contains("not enough memory"));
        }
    }
}

#[test]
fn single_items_name_their_row_too() {
    let dataset = TestStore::new(squares(3)).dataset();
    let (mut out, mut context) = (vec![], ItemContext::new());
    let none = Transform::default();
    let text = dataset.sample_into(3, &none, &mut out, &mut context).unwrap_err().to_string();
    assert!(text.contains("row 3") && text.contains("3 images"), "{text}");
    let text =
        dataset.sample_into(1, &none.clone().crop(9, 9), &mut out, &mut context).unwrap_err().to_string();
    assert!(text.contains("row 1"), "{text}");
    assert!(dataset.sample_into(1, &none.clone().rotate_degrees(f32::NAN), &mut out, &mut context).is_err());
    assert_eq!(dataset.sample_into(1, &none, &mut out, &mut context).unwrap(), Shape::plane(8, 8));
    assert!(dataset.row_info(3).is_err() && dataset.name(3).is_err() && dataset.metadata(3).is_err());
    assert_eq!(dataset.name(2).unwrap(), "C_2");
    assert!(format!("{dataset:?}").contains("3 images"));
}

/// Images of a shape for which their file has not the bytes, as their store finds.
struct Claimed(MemoryStore);

impl Store for Claimed {
    delegate_store!(self => self.0; format, path, remote_path, len, name, metadata, layout, files, files_of);
    delegate_store!(self => self.0; has_checksums, hints, row_hints, heads, ranges);
    default_answers!(scan);

    fn row_info(&self, row: usize) -> Result<RowInfo> {
        Ok(RowInfo { shape: Shape::plane(4200, 4200), ..self.0.row_info(row)? })
    }
    fn check(&self, request: &Request) -> Result<RowInfo> {
        Err(Error::new(self.path(), "its chunks must cover the image").row(request.row))
    }
    fn read(&self, _: &[Request], _: &mut Scratch, _: &mut dyn PixelSink) -> Result<()> {
        Err(Error::new(self.path(), "it was read"))
    }
}

/// There is no memory for pixels of a large image before its store has looked whether they are there.
#[test]
fn a_large_image_is_checked_before_memory_is_taken() {
    let dataset = Dataset::from_store(Box::new(Claimed(squares(2))));
    let (mut out, mut context) = (vec![], ItemContext::new());
    let error = dataset.sample_into(1, &Transform::default(), &mut out, &mut context).unwrap_err();
    assert_eq!((error.row_index(), out.capacity()), (Some(1), 0));
    assert!(error.to_string().contains("its chunks must cover the image"), "{error}");
    for workers in [0, 1] {
        let loader = Loader::builder(&dataset).batch_size(1).resize(8, 8).workers(workers).build().unwrap();
        let error = loader.iter().next().unwrap().unwrap_err();
        assert!(error.to_string().contains("its chunks must cover the image"), "{error}");
    }
    let cached = Dataset::from_store(Box::new(Claimed(squares(2)))).with_cache(&Cache::MEMORY).unwrap();
    let loader = Loader::builder(&cached).batch_size(1).crop(4, 4).build().unwrap();
    let error = loader.iter().next().unwrap().unwrap_err();
    assert!(error.to_string().contains("its chunks must cover the image"), "{error}");
}

#[test]
fn a_missing_file_is_an_error() {
    assert!(Dataset::open("no-such-file.parquet").unwrap_err().is_missing());
}

/// A stream of record batches is asked for the next one by C, through which no panic can go.
#[test]
fn a_panic_of_a_reader_ends_a_stream_of_record_batches_with_an_error() {
    let mut store = TestStore::new(images(5, Shape::plane(4, 4), PixelType::U8));
    store.faults = vec![(3, Fault::Panic)];
    let mut batches = RecordBatches::new(&store).unwrap();
    let error = batches.next_caught(&store).unwrap_err().to_string();
    assert!(error.contains("test-images") && error.contains("a defect in a reader"), "{error}");
    assert!(batches.next_caught(&store).unwrap().is_none());
    store.faults.clear();
    let mut batches = RecordBatches::new(&store).unwrap();
    assert_eq!(batches.next_caught(&store).unwrap().unwrap().num_rows(), 5);
    assert!(batches.next_caught(&store).unwrap().is_none());
}
