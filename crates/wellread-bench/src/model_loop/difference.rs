//! Waiting by difference: the same steps on batches that are full already, on decoded images in memory, and on cold files.
//!
//! ```text
//!  rows of a set ─▶ Feed ─▶ full batches, images in memory, cold files ─▶ mean of a step each ─▶ shares of waiting
//! ```

use super::step::{Slot, built, model_shape, run_model};
use crate::budget;
use crate::choices::{Mode, Preset};
use crate::core::Session;
use crate::core::variants::Measurement;
use crate::data::FormatSet;
use crate::feed::{BatchSource, Feed, LoaderSettings, RunLength, Step};
use anyhow::Result;
use wellread_loader::{Batch, Cache};

/// Named values, and a note where files stayed in memory.
type Differences = (Vec<(&'static str, f64)>, Option<String>);

/// Waiting by difference, with a model of its own; `warm` is the run that was just measured.
pub(super) fn differences(
    session: &Session<'_>,
    set: &FormatSet,
    mode: Mode,
    model: &mut Slot,
    round: u64,
    warm: &Measurement,
    (batch_size, steps): (usize, usize),
) -> Result<Differences> {
    let config = session.config;
    let images = session.prepared.expected.len();
    let how = LoaderSettings {
        batch_size: batch_size.min(images),
        workers: config.loop_workers,
        seed: config.seed,
        transform: session.transform(Preset::None)?,
        cache: Cache::None,
        memory: None,
        prefetch: config.prefetch,
    };
    let few = budget::steps_by_difference(steps);
    // A run on these rows alone, so that the images kept in memory are bounded.
    let rows = (0..(few * how.batch_size).min(images - images % how.batch_size)).collect();
    let feed = Feed::new(Box::new(|| session.open(set)), rows, how);
    let is_new = model.is_none();
    let mut step = |batch: &Batch| {
        let shape = model_shape(batch.shape())?;
        run_model(&mut **built(config, model, shape[1])?, mode, batch.pixels(), shape, batch.rows())
            .map(|_| ())
    };
    let [synthetic, cached] = steps_without_reading(&feed, few, round, is_new, &mut step)?;
    let warm = warm.items.iter().sum::<f64>() / warm.items.len().max(1) as f64;
    let mut values = vec![
        ("wait_by_difference_fraction", 1.0 - synthetic / warm),
        ("wait_by_difference_cached_fraction", 1.0 - synthetic / cached),
        ("synthetic_step_s", synthetic),
        ("cached_step_s", cached),
    ];
    if !config.cold {
        return Ok((values, None));
    }
    let cold = feed.pass(BatchSource::Cold, RunLength::Once, round, &mut step)?;
    // The steps of the next round read other rows of these files, and are warm.
    feed.restore_pages()?;
    if let Some(why) = cold.not_cold {
        return Ok((
            values,
            Some(format!("{}: waiting with cold files was not measured ({why})", set.format)),
        ));
    }
    values.extend([
        ("wait_by_difference_cold_fraction", 1.0 - synthetic / cold.step()),
        ("cold_step_s", cold.step()),
    ]);
    Ok((values, None))
}

/// Mean seconds of `few` steps on full batches, and on decoded images in memory. The first step of a new model builds it and
/// asks for its memory, which no other step does: it counts in neither.
fn steps_without_reading(
    feed: &Feed<'_>,
    few: usize,
    round: u64,
    is_new: bool,
    step: &mut Step<'_>,
) -> Result<[f64; 2]> {
    if is_new {
        feed.pass(BatchSource::Synthetic, RunLength::Steady(1), round, step)?;
    }
    let synthetic = feed.pass(BatchSource::Synthetic, RunLength::Steady(few), round, step)?.step();
    let cached = feed.pass(BatchSource::Cached, RunLength::Steady(few), round, step)?.step();
    Ok([synthetic, cached])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_store::TestStore;
    use wellread_loader::Transform;
    use wellread_store::Store;

    #[test]
    fn the_step_that_builds_a_model_counts_in_no_mean() {
        let open = || -> Result<Box<dyn Store>> { Ok(Box::new(TestStore::squares(12, 4)?)) };
        let how = LoaderSettings {
            batch_size: 4,
            workers: 0,
            seed: 1,
            transform: Transform::default(),
            cache: Cache::None,
            memory: None,
            prefetch: None,
        };
        let feed = Feed::new(Box::new(open), (0..12).collect(), how);
        let steps = |is_new: bool| {
            let mut steps = 0;
            steps_without_reading(&feed, 3, 1, is_new, &mut |_| {
                steps += 1;
                Ok(())
            })
            .unwrap();
            steps
        };
        assert_eq!(steps(true), steps(false) + 1);
    }
}
