//! Rows that cannot be read are left out, and nothing else changes.

use crate::support::{Bits, Fault, TestStore, bits, images};
use wellread_image::{PixelType, Shape};
use wellread_loader::{Batches, Loader, OnError, Uneven};

fn images_of(batches: &mut Batches) -> Vec<Bits> {
    batches.map(|batch| bits(&batch.unwrap())).collect()
}

/// Images that are small, and large ones whose batches are split among threads; reads that are joined.
#[test]
fn bad_rows_are_left_out_whatever_the_threads() {
    for (shape, joined) in [(Shape::plane(8, 8), 1), (Shape::plane(8, 8), 12), (Shape::plane(500, 600), 1)] {
        let bad = [3, 4, 8, 9, 10, 11, 17];
        let mut good = vec![];
        let store = || {
            let mut inner = images(20, shape, PixelType::U8);
            // Row 20 has another shape, row 21 another type.
            inner.push("odd", Shape::plane(3, 3), PixelType::U8, vec![1; 9]).unwrap();
            inner.push("wide", shape, PixelType::U16, vec![1; shape.pixels() * 2]).unwrap();
            let mut store = TestStore::new(inner);
            store.rows_per_read = joined;
            store
        };
        let fine = Loader::builder(&store().dataset()).batch_size(1).random_crop(4, 4).seed(2);
        for row in (0..20).filter(|row| !bad.contains(row)) {
            let loader = fine.clone().rows([row]).build().unwrap();
            good.push(bits(&loader.iter_at(0, 0).next().unwrap().unwrap()));
        }
        for workers in [0, 1, 3] {
            let mut store = store();
            store.faults = bad.iter().map(|&row| (row, Fault::Fail)).collect();
            store.faults[1].1 = Fault::Panic;
            store.faults[2].1 = Fault::Short;
            store.faults[3].1 = Fault::WrongType;
            let builder =
                Loader::builder(&store.dataset()).batch_size(4).random_crop(4, 4).seed(2).workers(workers);
            let loader = builder.clone().on_error(OnError::Skip).build().unwrap();
            for _ in 0..3 {
                let mut batches = loader.iter_at(0, 0);
                assert_eq!(batches.size_hint(), (0, Some(6)));
                let got = images_of(&mut batches);
                // The batch of rows 8 to 11 is gone, and that of 20 and 21.
                let rows: Vec<_> = got.iter().map(|(_, rows, _)| rows.clone()).collect();
                assert_eq!(rows, [&[0, 1, 2][..], &[5, 6, 7], &[12, 13, 14, 15], &[16, 18, 19]]);
                assert!(got.iter().all(|(shape, rows, _)| shape[..] == [rows.len(), 1, 4, 4]));
                let pixels: Vec<u32> = got.into_iter().flat_map(|(.., pixels)| pixels).collect();
                let expected: Vec<u32> = good.iter().flat_map(|(.., pixels)| pixels.clone()).collect();
                assert!(pixels == expected, "{workers} workers, {shape}, {joined} joined");
                let skipped = batches.skipped();
                assert_eq!(skipped.count(), 9);
                let rows: Vec<usize> = skipped.rows().iter().map(|(row, _)| *row).collect();
                assert_eq!(rows, [3, 4, 8, 9, 10, 11, 17, 20, 21]);
                let texts: Vec<String> = skipped.rows().iter().map(|(_, error)| error.to_string()).collect();
                for (text, part) in
                    [(0, "does not decode"), (1, "a defect in a reader"), (7, "3x3"), (8, "uint16")]
                {
                    assert!(texts[text].contains(part), "{texts:?}");
                }
                assert!(skipped.to_string().starts_with("9 images skipped, the first: test-images: row 3"));
            }
            assert!(builder.build().unwrap().iter().next().unwrap().is_err(), "raised unless asked for");
        }
    }
}

#[test]
fn a_state_counts_skipped_images() {
    let mut store = TestStore::new(images(12, Shape::plane(4, 4), PixelType::U8));
    store.faults = [4, 5, 6, 7].map(|row| (row, Fault::Fail)).to_vec();
    let loader = Loader::builder(&store.dataset()).batch_size(4).on_error(OnError::Skip).build().unwrap();
    let mut batches = loader.iter();
    assert_eq!(batches.next().unwrap().unwrap().rows(), [0, 1, 2, 3]);
    assert_eq!(batches.state().position(), 4);
    assert_eq!(batches.next().unwrap().unwrap().rows(), [8, 9, 10, 11]);
    assert_eq!((batches.state().position(), batches.skipped().count()), (12, 4));
    assert!(batches.next().is_none());
}

/// The state stays before a batch that is an error, so that its other images are not lost.
#[test]
fn a_state_counts_delivered_batches_alone() {
    for workers in [0, 2] {
        let mut store = TestStore::new(images(12, Shape::plane(4, 4), PixelType::U8));
        store.faults = [5, 11].map(|row| (row, Fault::Fail)).to_vec();
        let loader = Loader::builder(&store.dataset()).batch_size(3).workers(workers).build().unwrap();
        let mut batches = loader.iter();
        assert_eq!(batches.next().unwrap().unwrap().rows(), [0, 1, 2]);
        assert!(batches.next().unwrap().is_err());
        assert_eq!((batches.state().position(), batches.remaining()), (3, 2));
        let mut again = loader.resume(&batches.state()).unwrap();
        assert!(again.next().unwrap().is_err(), "the batch of rows 3, 4 and 5");
        assert_eq!(again.state(), batches.state());
        assert_eq!(batches.next().unwrap().unwrap().rows(), [6, 7, 8]);
        assert_eq!(batches.state().position(), 9);
        assert!(batches.next().unwrap().is_err() && batches.next().is_none());
        assert_eq!((batches.state().position(), batches.remaining()), (9, 0));
    }
}

/// A set of which one process delivers but an image or two, which cannot be read, is not gone.
#[test]
fn a_turn_without_an_image_that_can_be_read_is_no_error() {
    for (workers, bad, expected) in
        [(0, vec![8], (8, 0)), (2, vec![8], (8, 0)), (0, (0..9).collect(), (0, 3))]
    {
        let mut store = TestStore::new(images(9, Shape::plane(4, 4), PixelType::U8));
        store.faults = bad.into_iter().map(|row| (row, Fault::Fail)).collect();
        let builder = Loader::builder(&store.dataset()).batch_size(4).workers(workers);
        let loader = builder.on_error(OnError::Skip).build().unwrap();
        let state = loader.iter_at(0, 0).state();
        let (mut delivered, mut errors) = (0, 0);
        // The third has the last row alone, and the fourth none.
        for turn in 0..4 {
            for batch in loader.resume_turn(&state, turn, 4).unwrap() {
                match batch {
                    Ok(batch) => delivered += batch.len(),
                    Err(_) => errors += 1,
                }
            }
        }
        assert_eq!((delivered, errors), expected, "{workers} workers");
    }
}

/// Ranks have equally many steps, whatever cannot be read, or say why not.
#[test]
fn ranks_keep_step_or_say_so() {
    let ranks = |bad: &[usize], workers| {
        let mut store = TestStore::new(images(24, Shape::plane(4, 4), PixelType::U8));
        store.faults = bad.iter().map(|&row| (row, Fault::Fail)).collect();
        let dataset = store.dataset();
        let builder = Loader::builder(&dataset).batch_size(4).workers(workers).on_error(OnError::Skip);
        [0, 1].map(|rank| builder.clone().shard(rank, 2, Uneven::Pad).build().unwrap())
    };
    for workers in [0, 2] {
        let both = ranks(&[4, 5, 9], workers);
        let steps = both.each_ref().map(|rank| rank.iter().map(Result::unwrap).count());
        assert_eq!(steps, [3, 3], "of each some image can be read");
        // All of the second batch of the first rank.
        let [first, second] = ranks(&both[0].rows(0)[4..8], workers);
        assert_eq!(second.iter().map(Result::unwrap).count(), 3);
        let mut batches = first.iter();
        assert!(batches.next().unwrap().is_ok());
        let error = batches.next().unwrap().unwrap_err().to_string();
        assert!(
            error.contains("no image of batch 1") && error.contains("other 1 and leave them waiting"),
            "{error}"
        );
        assert!(batches.next().is_none());
    }
}

/// The first row that can be read and suits the transform is what the others must agree with.
#[test]
fn the_first_row_may_be_the_bad_one() {
    let mut store = images(0, Shape::plane(4, 4), PixelType::U8);
    store.push("small", Shape::plane(3, 3), PixelType::U8, vec![0; 9]).unwrap();
    for i in 0..5 {
        store.push(i.to_string(), Shape::plane(8, 8), PixelType::U8, vec![i; 64]).unwrap();
    }
    let builder = Loader::builder(&TestStore::new(store).dataset()).crop(6, 6);
    assert!(builder.clone().build().is_err());
    let loader = builder.on_error(OnError::Skip).build().unwrap();
    let mut batches = loader.iter();
    assert_eq!(batches.next().unwrap().unwrap().rows(), [1, 2, 3, 4, 5]);
    assert_eq!(batches.skipped().rows()[0].0, 0);
}

/// A store that is gone is an error, not an empty epoch and not hours of skipping.
#[test]
fn a_dead_store_is_an_error() {
    for (n, dead, workers) in [(50, 0..50, 0), (50, 0..50, 2), (3000, 10..2000, 0), (3000, 10..2000, 2)] {
        let mut store = TestStore::new(images(n, Shape::plane(2, 2), PixelType::U8));
        store.faults = dead.clone().map(|row| (row, Fault::Fail)).collect();
        let builder = Loader::builder(&store.dataset()).batch_size(5).workers(workers);
        let loader = builder.on_error(OnError::Skip).build().unwrap();
        let mut batches = loader.iter();
        let results: Vec<_> = batches.by_ref().collect();
        let (last, before) = results.split_last().unwrap();
        assert_eq!(before.len(), dead.start / 5);
        assert!(before.iter().all(Result::is_ok));
        let error = last.as_ref().unwrap_err().to_string();
        assert!(
            error.contains("images in a row can be read") && error.contains("does not decode"),
            "{error}"
        );
        assert_eq!(batches.skipped().count(), dead.len().min(1000));
        assert!(batches.skipped().rows().len() <= 1000 && batches.next().is_none());
    }
    // As many, but not in a row.
    let mut store = TestStore::new(images(3000, Shape::plane(2, 2), PixelType::U8));
    store.faults = (0..2900).filter(|row| row % 900 != 7).map(|row| (row, Fault::Fail)).collect();
    let loader = Loader::builder(&store.dataset()).on_error(OnError::Skip).build().unwrap();
    let mut batches = loader.iter();
    assert!(batches.by_ref().all(|batch| batch.is_ok()));
    assert_eq!((batches.skipped().count(), batches.skipped().rows().len()), (2896, 1000));
}
