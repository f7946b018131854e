//! Everything that can be asked of a benchmark run, with upstream's defaults.

use crate::data::{SetSpec, Source};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;
use wellread_image::synthetic::Kind;
use wellread_image::{PixelType, Shape};

/// One benchmark run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Benchmarks by name, in order; see [`crate::BENCHMARKS`].
    pub what: Vec<String>,
    /// The images.
    pub source: Source,
    /// Format names, or `all`.
    pub formats: Vec<String>,
    /// Measure [`Source::Path`] as it lies there instead of converting it to the formats.
    pub in_place: bool,
    /// Measured rounds.
    pub repeats: usize,
    /// Seed of every order, draw and interval.
    pub seed: u64,
    /// Results folder.
    pub out: PathBuf,
    /// Folder of the prepared sets; `None` for `data` in the results folder.
    pub data_dir: Option<PathBuf>,
    /// Begin no further round of a benchmark after this time.
    pub time_budget: Duration,
    /// Track 1: order of access.
    pub access: Vec<String>,
    /// Track 1: transform presets.
    pub transforms: Vec<String>,
    /// Track 1: cache policies.
    pub caches: Vec<String>,
    /// Track 1: samples per run.
    pub samples: usize,
    /// Track 2: batch sizes.
    pub batch_sizes: Vec<usize>,
    /// Track 2: worker threads.
    pub workers: Vec<usize>,
    /// Track 2: open each set once and keep its loader from round to round, as a training run does.
    pub keep_open: bool,
    /// Track 2: bytes of decoded pixels that the loader keeps from epoch to epoch; 0 for none.
    pub loader_cache: usize,
    /// Track 3: model.
    pub model: String,
    /// Track 3: `train`, `inference`.
    pub modes: Vec<String>,
    /// Track 3: steps per run.
    pub steps: usize,
    /// Track 3: batch size.
    pub batch_size: usize,
    /// Track 3: worker threads of the loader.
    pub loop_workers: usize,
    /// Centre crop before everything else, height and width.
    pub crop: Option<(usize, usize)>,
    /// Storage: cold-cache runs as well.
    pub cold: bool,
    /// Storage: images of a random read.
    pub random_images: usize,
    /// The command line, for the report.
    pub command: String,
}

impl Default for Config {
    fn default() -> Self {
        let strings = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        Self {
            what: strings(&["all"]),
            source: Source::Synthetic(SetSpec {
                images: 1000,
                shape: Shape::plane(100, 100),
                dtype: PixelType::U16,
                kind: Kind::Cells,
                seed: 42,
            }),
            formats: strings(&["all"]),
            in_place: false,
            repeats: 7,
            seed: 42,
            out: PathBuf::from("results"),
            data_dir: None,
            time_budget: Duration::from_mins(2),
            access: strings(&["sequential", "random", "grouped"]),
            transforms: strings(&["none", "normalize", "augment"]),
            caches: strings(&["none", "memory"]),
            samples: 100,
            batch_sizes: vec![1, 4, 16],
            workers: vec![0, 2, 4],
            keep_open: false,
            loader_cache: 0,
            model: "small-cnn".to_owned(),
            modes: strings(&["train", "inference"]),
            steps: 50,
            batch_size: 16,
            loop_workers: 1,
            crop: None,
            cold: true,
            random_images: 10,
            command: String::new(),
        }
    }
}

impl Config {
    /// What was asked for, for `summary.json`.
    pub fn to_json(&self) -> serde_json::Value {
        #[derive(Serialize)]
        struct Asked<'a> {
            what: &'a [String],
            formats: &'a [String],
            in_place: bool,
            repeats: usize,
            seed: u64,
            time_budget_s: f64,
            access: &'a [String],
            transforms: &'a [String],
            caches: &'a [String],
            samples: usize,
            batch_sizes: &'a [usize],
            workers: &'a [usize],
            keep_open: bool,
            loader_cache: usize,
            model: &'a str,
            modes: &'a [String],
            steps: usize,
            batch_size: usize,
            loop_workers: usize,
            crop: Option<(usize, usize)>,
            cold: bool,
            random_images: usize,
        }
        serde_json::to_value(Asked {
            what: &self.what,
            formats: &self.formats,
            in_place: self.in_place,
            repeats: self.repeats,
            seed: self.seed,
            time_budget_s: self.time_budget.as_secs_f64(),
            access: &self.access,
            transforms: &self.transforms,
            caches: &self.caches,
            samples: self.samples,
            batch_sizes: &self.batch_sizes,
            workers: &self.workers,
            keep_open: self.keep_open,
            loader_cache: self.loader_cache,
            model: &self.model,
            modes: &self.modes,
            steps: self.steps,
            batch_size: self.batch_size,
            loop_workers: self.loop_workers,
            crop: self.crop,
            cold: self.cold,
            random_images: self.random_images,
        })
        .unwrap_or_default()
    }
}
