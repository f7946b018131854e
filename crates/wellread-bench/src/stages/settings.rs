//! The choices of a study, and the sources that its batches come from.
//!
//! ```text
//!  Settings ─▶ diagnose: a run from each of SOURCES in each round
//! ```

use super::consumer::Consumer;
use crate::feed::BatchSource;
use crate::sample::Limits;
use std::time::Duration;

/// The set to study, and the time for it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Images of a batch; `None` for [`crate::sample::batch_size`], or fewer where the model needs long for them.
    pub batch_size: Option<usize>,
    /// Threads that read ahead.
    pub workers: usize,
    /// The work of a step.
    pub consumer: Consumer,
    /// Centre of each image that is taken, height and width.
    pub crop: Option<(usize, usize)>,
    /// Images and bytes of the sample.
    pub limits: Limits,
    /// Measured rounds.
    pub rounds: usize,
    /// Begin no further round after this time.
    pub time_budget: Duration,
    /// Seed of the sample, the orders and the intervals.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            batch_size: None,
            workers: 1,
            consumer: Consumer::Nothing,
            crop: None,
            limits: Limits { images: 512, bytes: 256 << 20 },
            rounds: 10,
            time_budget: Duration::from_secs(30),
            seed: 42,
        }
    }
}

/// Sources in the order of stages, and the meaning of the difference to the next.
pub(super) const SOURCES: [(BatchSource, &str, &str, &str); 4] = [
    (BatchSource::Cold, "cold", "storage", "reading files that are not in memory"),
    (BatchSource::Warm, "warm", "decoding", "reading cached files, decompressing and decoding"),
    (BatchSource::Cached, "cached", "copying", "copying decoded images into batches, and starting threads"),
    (BatchSource::Synthetic, "synthetic", "model", "the step itself"),
];
