//! The settings of a study.

use crate::data::SourceCells;
use crate::sample::Limits;
use std::path::PathBuf;
use std::time::Duration;

/// The set to study, and the time for it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Seconds that a model takes for a batch.
    pub step: Option<f64>,
    /// Images of a batch; `None` lets it be recommended.
    pub batch_size: Option<usize>,
    /// Formats by name, or `all`.
    pub formats: Vec<String>,
    /// Cells that are cut out of the images and studied in their place.
    pub cells: Option<SourceCells>,
    /// Centre of each image that is taken, height and width.
    pub crop: Option<(usize, usize)>,
    /// Images and bytes of the sample.
    pub limits: Limits,
    /// About how long all of it may take.
    pub time_budget: Duration,
    /// Folder below which copies are written; removed afterwards.
    pub scratch: PathBuf,
    /// Seed of the sample, the orders and the intervals.
    pub seed: u64,
    /// The price of a thousand requests, for a set behind a network.
    pub price_per_1000: Option<f64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            step: None,
            batch_size: None,
            formats: vec!["all".to_owned()],
            cells: None,
            crop: None,
            limits: Limits { images: 256, bytes: 96 << 20 },
            time_budget: Duration::from_secs(90),
            scratch: std::env::temp_dir(),
            seed: 42,
            price_per_1000: None,
        }
    }
}
