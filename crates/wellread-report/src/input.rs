//! Everything a report is made of.

use crate::{Samples, Table};
use base64::Engine;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

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

/// The question that a [`Finding`] answers. A report shows one on the fastest format, one on the limit and one on the next
/// step, and folds the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Topic {
    /// The fastest format.
    Format,
    /// The limit.
    Limit,
    /// The next step.
    Next,
    /// Anything else.
    #[default]
    Other,
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
    /// The question that it answers.
    pub topic: Topic,
}

impl Finding {
    /// A finding.
    pub fn new(severity: Severity, text: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { text: text.into(), detail: detail.into(), severity, topic: Topic::Other }
    }

    /// The same, which answers this.
    pub fn about(self, topic: Topic) -> Self {
        Self { topic, ..self }
    }
}

/// A named value of the configuration or the environment, for people to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// Its name: "CPU".
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
    /// Its subject: "row 3, channel DNA, contrast stretched".
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

/// The content of a report and its figures.
///
/// All texts are plain text; nothing in them is interpreted as markup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportInput {
    /// Headline, such as "How fast are these images read?".
    pub title: String,
    /// One paragraph: the measurement, and its images.
    pub description: String,
    /// When, as text.
    pub generated: String,
    /// The answer, most important first.
    pub findings: Vec<Finding>,
    /// The measured set: images, shapes, formats, repeats, seed, pixel checksum.
    pub configuration: Vec<Fact>,
    /// The machine: hardware, system, versions, commit.
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
    /// The causes of less certain figures: noisy machine, page cache that could not be dropped.
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
    /// Further keys of `summary.json` at its top level; the keys `report` and `aggregates` are taken.
    #[serde(skip)]
    pub details: Map<String, Value>,
}

impl ReportInput {
    /// The noise floor of one table's figures: its own where any table has one, since that of another benchmark says nothing
    /// of this one.
    pub fn noise_floor_of(&self, table: &str) -> Option<f64> {
        let of_all = self.noise_floor.filter(|_| self.noise_floors.is_empty());
        self.noise_floors.get(table).copied().or(of_all).filter(|n| n.is_finite())
    }

    /// Which tables' figures are too noisy to conclude anything from ([`TOO_NOISY`]), in one sentence; `None` where none is.
    pub fn too_noisy(&self) -> Option<String> {
        let of_tables = self.noise_floors.iter().map(|(name, floor)| (name.as_str(), *floor));
        let of_all = self.noise_floor.filter(|_| self.noise_floors.is_empty());
        let of_all = self.tables.iter().filter_map(|table| Some((table.name(), of_all?)));
        let is_noisy = of_tables.chain(of_all).filter(|(_, floor)| *floor > TOO_NOISY);
        let noisy: Vec<&str> = is_noisy.map(|(name, _)| name).collect();
        (!noisy.is_empty()).then(|| {
            format!(
                "Too noisy for conclusions: {}. Repeat on an idle machine, with more images or rounds.",
                noisy.join(", ")
            )
        })
    }
}
