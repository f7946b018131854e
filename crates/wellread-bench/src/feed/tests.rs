//! Batches of each source, and the memory that it leaves taken.

use super::*;
use crate::test_store::{Pages, TestStore};

/// The file of a row.
fn path_of(row: usize) -> PathBuf {
    PathBuf::from(format!("no/such/{row}.tif"))
}

fn twelve() -> Result<TestStore> {
    Ok(TestStore::squares(12, 4)?)
}

fn how(workers: usize) -> LoaderSettings {
    LoaderSettings {
        batch_size: 4,
        workers,
        seed: 1,
        transform: Transform::default(),
        cache: Cache::None,
        memory: None,
        prefetch: None,
    }
}

fn feed(workers: usize) -> Feed<'static> {
    let open = || -> Result<Box<dyn Store>> { Ok(Box::new(twelve()?)) };
    Feed::new(Box::new(open), (0..12).collect(), how(workers))
}

#[test]
fn pages_of_the_rows_files_are_dropped_and_of_no_others() {
    let open =
        || -> Result<Box<dyn Store>> { Ok(Box::new(TestStore { path_of: Some(path_of), ..twelve()? })) };
    let feed = Feed::new(Box::new(open), vec![3, 7], how(0));
    assert_eq!(feed.files().unwrap(), [path_of(3), path_of(7)]);
    // None of them is there, and one more is counted beside the first.
    let why = feed.drop_pages().unwrap().unwrap();
    assert!(why.contains("3.tif") && why.contains("and 1 more"), "{why}");
}

fn temporary(_: usize) -> PathBuf {
    std::env::temp_dir().join(format!("wellread-feed-{}", std::process::id()))
}

#[test]
fn files_that_were_in_the_page_cache_are_read_back_after_a_cold_run() {
    let file = temporary(3);
    std::fs::write(&file, vec![1u8; 10_000]).unwrap();
    let open =
        || -> Result<Box<dyn Store>> { Ok(Box::new(TestStore { path_of: Some(temporary), ..twelve()? })) };
    let feed = Feed::new(Box::new(open), vec![3], how(0));
    feed.drop_pages().unwrap();
    let noted = feed.dropped.borrow().len();
    feed.restore_pages().unwrap();
    let there = page_cache::residency(&[&file]);
    std::fs::remove_file(&file).unwrap();
    // Other systems than Linux do not tell what is in memory.
    if let Ok(there) = there {
        assert_eq!((noted, there.resident_bytes), (1, 10_000));
    }
}

#[test]
fn every_place_delivers_every_row_once_or_as_many_steps_as_asked() {
    for workers in [0, 2] {
        let feed = feed(workers);
        for place in [BatchSource::Cold, BatchSource::Warm, BatchSource::Cached, BatchSource::Synthetic] {
            let mut rows = vec![];
            let once = feed
                .pass(place, RunLength::Once, 0, &mut |batch| {
                    rows.extend_from_slice(batch.rows());
                    Ok(())
                })
                .unwrap();
            rows.sort_unstable();
            assert_eq!(rows, (0..12).collect::<Vec<_>>(), "{place:?}");
            assert_eq!((once.images, once.waits.len(), once.computes.len()), (12, 3, 3));
            if place != BatchSource::Cold {
                let steady = feed.pass(place, RunLength::Steady(10), 1, &mut |_| Ok(())).unwrap();
                assert_eq!((steady.images, steady.waits.len()), (40, 10), "{place:?}");
            }
        }
    }
}

#[test]
fn a_stand_in_takes_its_time_and_a_step_that_fails_ends_the_run() {
    let pass = feed(1)
        .pass(BatchSource::Synthetic, RunLength::Once, 0, &mut |_| {
            simulate_step(0.003);
            Ok(())
        })
        .unwrap();
    assert!(pass.computes.iter().all(|seconds| *seconds >= 0.003 - 1e-6), "{:?}", pass.computes);
    assert!(pass.seconds >= 0.009 - 1e-5 && pass.step() >= pass.compute());
    let error =
        feed(1).pass(BatchSource::Warm, RunLength::Once, 0, &mut |_| bail!("out of memory")).unwrap_err();
    assert_eq!(error.to_string(), "out of memory");
}

/// The rows of a sample come again and again, unlike those of a large set. So their decoded pixels must not be kept. A run of
/// few steps decoded its images, and one of many steps did not, so that predictions and loops contradicted each other.
#[test]
fn a_steady_run_decodes_the_images_of_every_batch() {
    static PAGES: Pages = Pages::new();
    let open = || -> Result<Box<dyn Store>> { Ok(Box::new(TestStore { pages: Some(&PAGES), ..twelve()? })) };
    let feed = Feed::new(Box::new(open), (0..12).collect(), how(0));
    let forgotten = |span| {
        let before = PAGES.forgotten();
        feed.pass(BatchSource::Warm, span, 0, &mut |_| Ok(())).unwrap();
        PAGES.forgotten() - before
    };
    // The first run reads the rows once to warm their files up; a set is opened anew for each.
    let ahead = ahead(None, 0);
    assert_eq!(
        [forgotten(RunLength::Once), forgotten(RunLength::Once), forgotten(RunLength::Steady(10))],
        [1, 0, ahead + 10]
    );
}
