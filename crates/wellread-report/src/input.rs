//! Everything a report is made of, and how it lies in a results folder.
//!
//! ```text
//!  ReportInput ──save──▶ results/WHAT.parquet, WHAT.csv   one row per configuration and run
//!       │                results/samples/WHAT.parquet     one row per configuration and run, a list of its items' times
//!       ▲                results/summary.json             details, aggregates, and under "report" the rest
//!       └───from_dir────────────────────┘
//! ```

use crate::table::samples;
use crate::{Error, Result, Samples, Table, columns, figures, summary};
use base64::Engine;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Noise floor above which nothing is concluded from a benchmark's figures.
pub const TOO_NOISY: f64 = 0.25;

/// How a [`Finding`] bears on the reader's work, in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// All is well: nothing to do.
    Good,
    /// Worth knowing.
    #[default]
    Info,
    /// Look at it: it costs time, or the figures are less certain than they look.
    Caution,
    /// It limits the work, or a result must not be used.
    Bad,
}

/// One sentence of the answer, computed from the data by the benchmark.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// The sentence, with its figures: "TIFF is fastest here: 2.1 (2.0–2.2) times Parquet".
    pub text: String,
    /// How it was found and what to do; may be empty.
    pub detail: String,
    /// How it bears on the reader's work.
    pub severity: Severity,
}

impl Finding {
    /// A finding.
    pub fn new(severity: Severity, text: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { text: text.into(), detail: detail.into(), severity }
    }
}

/// A named value of the configuration or the environment, for people to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What it is: "CPU".
    pub name: String,
    /// Its value: "AMD EPYC 9R14, 2 cores".
    pub value: String,
}

impl<N: Into<String>, V: ToString> From<(N, V)> for Fact {
    fn from((name, value): (N, V)) -> Self {
        Self { name: name.into(), value: value.to_string() }
    }
}

/// A small picture of an image that was used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Thumbnail {
    /// What it shows: "row 3, channel DNA, contrast stretched".
    pub caption: String,
    /// The PNG as `data:image/png;base64,…`; anything else is not shown.
    pub data_uri: String,
}

impl Thumbnail {
    /// A thumbnail of an encoded PNG.
    pub fn from_png(caption: impl Into<String>, png: &[u8]) -> Self {
        let data = base64::engine::general_purpose::STANDARD.encode(png);
        Self { caption: caption.into(), data_uri: format!("data:image/png;base64,{data}") }
    }
}

/// What a report and its figures are made of.
///
/// All texts are plain text; nothing in them is interpreted as markup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportInput {
    /// Headline, such as "How fast are these images read?".
    pub title: String,
    /// One paragraph: what was measured, on which images.
    pub description: String,
    /// When, as text.
    pub generated: String,
    /// The answer, most important first.
    pub findings: Vec<Finding>,
    /// What was measured: images, shapes, formats, repeats, seed, pixel checksum.
    pub configuration: Vec<Fact>,
    /// What it was measured on: hardware, system, versions, commit.
    pub environment: Vec<Fact>,
    /// The machine in a few words, for the foot of every figure: "AMD EPYC, 2 cores, ext4 on SSD".
    pub machine: String,
    /// The images in a few words, for the subtitle of every figure: "1,000 images, 100 × 100, uint8".
    pub images: String,
    /// Differences below this share are noise (an A/A comparison's): 0.02 is 2 %.
    pub noise_floor: Option<f64>,
    /// The same per table, by its name; where any is present, [`Self::noise_floor`] is of no table.
    pub noise_floors: BTreeMap<String, f64>,
    /// Smallest slow-down, as a share, that a table's benchmark would find in nine of ten cases.
    pub detectable: BTreeMap<String, f64>,
    /// What makes the figures less certain: noisy machine, page cache that could not be dropped.
    pub warnings: Vec<String>,
    /// Pictures of the images used.
    pub thumbnails: Vec<Thumbnail>,
    /// The commands that give these results again.
    pub commands: Vec<String>,
    /// The result tables; kept in their own files.
    #[serde(skip)]
    pub tables: Vec<Table>,
    /// The single measurements behind them; kept in files of their own.
    #[serde(skip)]
    pub samples: Vec<Samples>,
    /// Whatever else `summary.json` holds at its top level; the keys `report` and `aggregates` are taken.
    #[serde(skip)]
    pub details: Map<String, Value>,
}

/// Whether a name can be a file's on any system and stands for itself in HTML.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// The samples of these tables, of those that have some.
fn read_samples(folder: &Path, tables: &[Table]) -> Result<Vec<Samples>> {
    let files = tables.iter().map(|table| folder.join(format!("{}.parquet", table.name())));
    files.filter(|file| file.is_file()).map(Samples::read_parquet).collect()
}

/// Keys of `summary.json` that this crate writes.
const REPORT_KEY: &str = "report";
const AGGREGATES_KEY: &str = "aggregates";

impl ReportInput {
    /// Writes `WHAT.parquet` and `WHAT.csv` of every table, `samples/WHAT.parquet`, and `summary.json` with the details, the
    /// aggregates of all tables and what else a report needs. Each file appears whole or not at all.
    ///
    /// Tables and figures of an earlier run that this one has not are removed: whoever reads the folder next, such as
    /// `compare`, would take them for this run's.
    ///
    /// # Errors
    /// A table's name is no plain file name, two have the same, or a file cannot be written.
    pub fn save(&self, dir: impl AsRef<Path>) -> Result<()> {
        let dir = dir.as_ref();
        self.remove_others(dir);
        for (i, table) in self.tables.iter().enumerate() {
            let name = table.name();
            if !is_plain_name(name) {
                return Err(Error::new(dir, format_args!("{name:?} is no name for a result table")));
            }
            if self.tables[..i].iter().any(|t| t.name() == name) {
                return Err(Error::new(dir, format_args!("two result tables are named {name:?}")));
            }
            table.write_parquet(dir.join(format!("{name}.parquet")))?;
            table.write_csv(dir.join(format!("{name}.csv")))?;
        }
        for samples in self.samples.iter().filter(|samples| !samples.seconds().is_empty()) {
            let name = format!("{}.parquet", samples.runs().name());
            samples.write_parquet(dir.join(samples::FOLDER).join(name))?;
        }
        summary::write(dir.join(summary::FILE_NAME), &self.to_summary())
    }

    /// Removes what an earlier summary in the folder names and this input has not.
    fn remove_others(&self, dir: &Path) {
        let Ok(summary) = summary::read(dir.join(summary::FILE_NAME)) else { return };
        let Some(earlier) = summary[AGGREGATES_KEY].as_object() else { return };
        for name in earlier.keys().filter(|name| is_plain_name(name)) {
            if self.tables.iter().any(|table| table.name() == name) {
                continue;
            }
            let figures = ["", "_distribution", "_timeline"].map(|kind| format!("{name}{kind}"));
            let figures = figures.iter().flat_map(|f| [format!("{f}.svg"), format!("{f}.png")]);
            let tables = [format!("{name}.parquet"), format!("{name}.csv")];
            for file in figures.chain(tables).chain([format!("{}/{name}.parquet", samples::FOLDER)]) {
                // What cannot be removed is not this run's, as its summary says.
                let _ = std::fs::remove_file(dir.join(file));
            }
        }
    }

    /// The noise floor of one table's figures: its own where any table has one, since that of another benchmark says nothing
    /// of this one.
    pub fn noise_floor_of(&self, table: &str) -> Option<f64> {
        let of_all = self.noise_floor.filter(|_| self.noise_floors.is_empty());
        self.noise_floors.get(table).copied().or(of_all).filter(|n| n.is_finite())
    }

    /// Which tables' figures are too noisy to conclude anything from ([`TOO_NOISY`]), in one sentence; `None` where none is.
    pub fn too_noisy(&self) -> Option<String> {
        let noisy: Vec<&str> = self
            .noise_floors
            .iter()
            .filter(|(_, floor)| **floor > TOO_NOISY)
            .map(|(name, _)| name.as_str())
            .collect();
        (!noisy.is_empty()).then(|| {
            format!(
                "Too noisy for conclusions: {}. Repeat on an idle machine, with more images or rounds.",
                noisy.join(", ")
            )
        })
    }

    /// The whole content of `summary.json`.
    pub fn to_summary(&self) -> Value {
        let mut all = self.details.clone();
        let aggregates: Map<_, _> =
            self.tables.iter().map(|t| (t.name().to_owned(), columns::aggregates(t))).collect();
        all.insert(AGGREGATES_KEY.to_owned(), aggregates.into());
        all.insert(REPORT_KEY.to_owned(), json!(self));
        all.into()
    }

    /// Rebuilds the input from a results folder: every `*.parquet`, the samples of each, and `summary.json` if there is
    /// one.
    ///
    /// # Errors
    /// No such folder, no result table in it, or a file that is damaged.
    pub fn from_dir(dir: impl AsRef<Path>) -> Result<Self> {
        let dir = dir.as_ref();
        let cannot = |e: std::io::Error| Error::io(dir, "cannot list the folder", &e);
        let mut tables = vec![];
        for entry in std::fs::read_dir(dir).map_err(cannot)? {
            let path = entry.map_err(cannot)?.path();
            let hidden = path.file_name().is_none_or(|n| n.as_encoded_bytes().starts_with(b"."));
            if !hidden && path.extension().is_some_and(|e| e == "parquet") && path.is_file() {
                tables.push(Table::read_parquet(&path)?);
            }
        }
        if tables.is_empty() {
            return Err(Error::new(dir, "holds no result table (*.parquet)")
                .hint("give the folder that `wellread bench --out` wrote"));
        }
        tables.sort_by_key(|t| (figures::rank(t.name()), t.name().to_owned()));
        let samples = read_samples(&dir.join(samples::FOLDER), &tables)?;
        let path = dir.join(summary::FILE_NAME);
        if !path.exists() {
            let warnings = vec!["summary.json is missing: configuration and environment are unknown".into()];
            return Ok(Self {
                title: "wellread results".into(),
                warnings,
                tables,
                samples,
                ..Self::default()
            });
        }
        let Value::Object(mut details) = summary::read(&path)? else {
            unreachable!("read gives objects only")
        };
        details.remove(AGGREGATES_KEY);
        let report = details.remove(REPORT_KEY).unwrap_or_else(|| json!({}));
        let input: Self = serde_json::from_value(report)
            .map_err(|e| Error::new(&path, format_args!("its \"{REPORT_KEY}\" part is damaged: {e}")))?;
        Ok(Self { tables, samples, details, ..input })
    }
}
