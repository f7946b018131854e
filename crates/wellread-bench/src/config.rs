//! Everything that can be asked of a benchmark run, with upstream's defaults.

use crate::choices::{Access, Framework, Mode, Preset, Sweep};
use crate::data::{SetSpec, Source};
use serde::{Serialize, Serializer};
use std::path::PathBuf;
use std::time::Duration;
use wellread_loader::Cache;
use wellread_store::Compression;

/// One benchmark run. Serialised whole into `summary.json`; its [`Default`] holds the defaults of the command
/// line too.
#[derive(Clone, Debug, Serialize)]
pub struct Config {
    /// Benchmarks by name, in order; see [`crate::BENCHMARKS`].
    pub what: Vec<String>,
    /// The images.
    pub source: Source,
    /// Format names, or `all`.
    pub formats: Vec<String>,
    /// Measure [`Source::Path`] as it lies there instead of converting it to the formats.
    pub in_place: bool,
    /// Compression of the sets that are written; formats that lack it are unavailable.
    pub compression: Compression,
    /// Measured rounds.
    pub repeats: usize,
    /// Seed of every order, draw and interval.
    pub seed: u64,
    /// Results folder.
    #[serde(serialize_with = "wellread_measure::path_text::serialize")]
    pub out: PathBuf,
    /// Folder of the prepared sets; `None` for `data` in the results folder.
    #[serde(serialize_with = "wellread_measure::path_text::serialize_option")]
    pub data_dir: Option<PathBuf>,
    /// Measure on beyond [`Self::repeats`] until every median is known to this share, or time is up.
    pub precision: Option<f64>,
    /// Time of all benchmarks together, when the images are prepared.
    #[serde(rename = "time_budget_s", serialize_with = "seconds")]
    pub time_budget: Duration,
    /// Track 1: order of access.
    pub access: Vec<Access>,
    /// Track 1: rows of a block of grouped and block access.
    pub block_rows: usize,
    /// Track 1: blocks whose rows block access mixes.
    pub block_window: usize,
    /// Track 1: transform presets.
    pub transforms: Vec<Preset>,
    /// Track 1: transforms of the user's own, `python:package.module:Class`, which frameworks in Python run.
    pub user_transforms: Vec<String>,
    /// Track 1: the cache for images.
    #[serde(serialize_with = "texts")]
    pub caches: Vec<Cache>,
    /// Track 1: samples per run.
    pub samples: usize,
    /// Track 2: batch sizes.
    pub batch_sizes: Vec<usize>,
    /// Track 2: worker threads.
    pub workers: Vec<usize>,
    /// Track 2: open each set once and keep its loader from round to round, as a training run does.
    pub keep_open: bool,
    /// Track 2: the loader's cache of images from epoch to epoch.
    #[serde(serialize_with = "texts")]
    pub loader_caches: Vec<Cache>,
    /// Track 3: model.
    pub model: String,
    /// Track 3: train, inference.
    pub modes: Vec<Mode>,
    /// Track 3: steps per run.
    pub steps: usize,
    /// Track 3: batch size.
    pub batch_size: usize,
    /// Track 3: worker threads of the loader.
    pub loop_workers: usize,
    /// Tracks 2 and 3: bytes that a loader holds at most.
    pub memory: Option<u64>,
    /// Tracks 2 and 3: batches that a loader reads ahead; `None` for its own choice.
    pub prefetch: Option<usize>,
    /// Centre crop before everything else, height and width.
    pub crop: Option<(usize, usize)>,
    /// Track 2: random crops of this height and width instead.
    pub random_crop: Option<(usize, usize)>,
    /// Track 2: random crops of each image, from one read.
    pub crops: usize,
    /// Multiply pixels by this instead of scaling them to `[0, 1]` by the range of their type.
    pub scale: Option<f32>,
    /// The programs that run tracks 1 to 4: this program, frameworks in Python, several side by side.
    pub frameworks: Vec<Framework>,
    /// Track 4: measure NumPy and torch too where [`Self::python`] has torch, though no framework in Python is asked for.
    pub find_torch: bool,
    /// Readers by name that frameworks are measured with, or `all`.
    pub loaders: Vec<String>,
    /// The Python that has the frameworks; `None` for [`wellread_worker::python`]'s choice.
    #[serde(serialize_with = "wellread_measure::path_text::serialize_option")]
    pub python: Option<PathBuf>,
    /// End a Python worker that has not answered for so long.
    #[serde(rename = "turn_limit_s", serialize_with = "seconds")]
    pub turn_limit: Duration,
    /// Storage: cold-cache runs as well.
    pub cold: bool,
    /// Storage: images of a random read, and reads of a run of the layout sweep.
    pub random_images: usize,
    /// Storage: sweeps that are run after it.
    pub sweeps: Vec<Sweep>,
    /// The command line, for the report.
    pub command: String,
    /// The folder that it was run in: relative paths are from there.
    #[serde(serialize_with = "wellread_measure::path_text::serialize_option")]
    pub working_folder: Option<PathBuf>,
    /// The recipe that this run is a part of, whole.
    pub recipe: Option<serde_json::Value>,
}

impl Config {
    /// Whether this program itself is measured.
    pub fn rust(&self) -> bool {
        self.frameworks.contains(&Framework::Rust)
    }

    /// The largest height and width of an image of a batch of the data loader.
    pub fn batch_crop(&self) -> Option<(usize, usize)> {
        self.random_crop.or(self.crop)
    }

    /// The folder of the prepared images.
    pub fn data_folder(&self) -> PathBuf {
        self.data_dir.clone().unwrap_or_else(|| self.out.join("data"))
    }

    /// Whether a framework in Python is measured.
    pub fn in_python(&self) -> bool {
        self.frameworks.iter().any(|framework| *framework != Framework::Rust)
    }
}

fn texts<S: Serializer>(values: &[impl ToString], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(ToString::to_string))
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

impl Default for Config {
    fn default() -> Self {
        let set = SetSpec::default();
        Self {
            what: vec!["all".to_owned()],
            seed: set.seed,
            source: Source::Synthetic(set),
            formats: vec!["all".to_owned()],
            in_place: false,
            compression: Compression::Default,
            repeats: 7,
            out: PathBuf::from("results"),
            data_dir: None,
            precision: None,
            time_budget: Duration::from_mins(10),
            access: vec![Access::Sequential, Access::Random, Access::Grouped],
            block_rows: 10,
            block_window: 8,
            transforms: Preset::ALL.to_vec(),
            user_transforms: vec![],
            caches: vec![Cache::None, Cache::MEMORY],
            samples: 100,
            batch_sizes: vec![1, 4, 16],
            workers: vec![0, 2, 4],
            keep_open: false,
            loader_caches: vec![Cache::None],
            model: wellread_model::models()[0].name.to_owned(),
            modes: Mode::ALL.to_vec(),
            steps: 50,
            batch_size: 16,
            loop_workers: 1,
            memory: None,
            prefetch: None,
            random_crop: None,
            crops: 1,
            crop: None,
            scale: None,
            frameworks: vec![Framework::Rust],
            find_torch: true,
            loaders: vec!["all".to_owned()],
            python: None,
            turn_limit: Duration::from_mins(3),
            cold: true,
            random_images: 10,
            sweeps: vec![],
            command: String::new(),
            working_folder: None,
            recipe: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_store::sites::SiteOptions;

    #[test]
    fn the_summary_says_what_was_measured_and_how() {
        let written = serde_json::to_value(Config::default()).unwrap();
        let set = &written["source"]["synthetic"];
        assert_eq!(set["images"], 1000);
        assert_eq!(set["shape"], serde_json::json!([1, 1, 1, 100, 100]));
        assert_eq!(
            (&set["dtype"], &set["kind"], &set["seed"]),
            (&"uint16".into(), &"cells".into(), &42.into())
        );
        assert_eq!(written["time_budget_s"], 600.0);
        assert_eq!(written["access"], serde_json::json!(["sequential", "random", "grouped"]));
        let source = Source::Path {
            path: "plate.parquet".into(),
            planes: Some(true),
            cells: None,
            sites: SiteOptions::default(),
        };
        let written =
            serde_json::to_value(Config { source, data_dir: Some("sets".into()), ..Config::default() })
                .unwrap();
        assert_eq!(written["source"]["path"], serde_json::json!({ "path": "plate.parquet", "planes": true }));
        assert_eq!(written["data_dir"], "sets");
    }
}
