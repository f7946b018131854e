//! The result of a comparison: rows with their ratios and words, and the rows of only one side.

use crate::provenance::Difference;
use serde::{Serialize, Serializer};
use std::borrow::Borrow;
use std::fmt;
use wellread_report::columns;
use wellread_report::words::first_and_more;

/// The scope of a row's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// For such processes: there were several on both sides.
    Processes,
    /// For the runs that were measured, which were taken in turns or are said to stand for more.
    Runs,
    /// Within these runs only: no verdict.
    Within,
}

/// The verdict on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RowVerdict {
    /// B takes less (of rates: gives more), beyond chance and noise.
    Faster,
    /// B takes more.
    Slower,
    /// Neither, and no further apart than a factor of 1 + threshold, interval included.
    Same,
    /// It cannot be told.
    Unclear,
}

impl fmt::Display for RowVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::Unclear => "unclear",
        })
    }
}

/// One configuration compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The table.
    pub table: String,
    /// The keys that tell the configuration apart.
    #[serde(serialize_with = "as_object")]
    pub key: Vec<(String, String)>,
    /// Column that is compared.
    pub quantity: String,
    /// Its median on the side of A, of processes the geometric mean of their medians; null when there is none.
    pub a: f64,
    /// On the side of B.
    pub b: f64,
    /// Runs behind A; 0 for a summary without its samples.
    pub n_a: usize,
    /// Runs behind B.
    pub n_b: usize,
    /// Processes behind A; 0 where they are not known.
    pub processes_a: usize,
    /// Processes behind B.
    pub processes_b: usize,
    /// The scope of the figures.
    pub scope: Scope,
    /// The cost of B over the cost of A; the inverse for rates. Above 1 is slower. Null when it is not known.
    pub ratio: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Probability of such a difference if there were none.
    pub p_value: Option<f64>,
    /// The same, corrected for all rows of the table (Holm).
    pub p_corrected: Option<f64>,
    /// Differences up to this share are noise, as an A/A pair showed.
    pub noise_floor: Option<f64>,
    /// Smallest slow-down, as a share, that would be called one in nine of ten repetitions, where the table's other rows show none.
    pub smallest_detectable: Option<f64>,
    /// The word.
    pub verdict: RowVerdict,
    /// Slower, and the interval reaches the threshold. The slow-down itself may be smaller.
    pub regression: bool,
    /// Why the verdict is unclear.
    pub reason: Option<String>,
}

fn as_object<S: Serializer>(key: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(key.iter().map(|(name, value)| (name, value)))
}

impl Row {
    /// The configuration in words.
    pub fn name(&self) -> String {
        name(&self.key)
    }
}

/// The configuration in words, as reports name it: `tiff, workers 2`.
pub(crate) fn name(key: &[(String, String)]) -> String {
    let labelled =
        |(column, value): &(String, String)| columns::labelled(column, value, value.parse::<f64>().is_ok());
    let values: Vec<String> = key.iter().map(labelled).collect();
    if values.is_empty() { "all".to_owned() } else { values.join(", ") }
}

/// Configurations that a list names.
const MAX_NAMED: usize = 5;

/// The first configurations of a list, and how many more there are. Their names have commas in them.
pub(crate) fn first_of<S: Borrow<str>>(names: &[S]) -> String {
    first_and_more(names, MAX_NAMED, ["; ", "; and"])
}

/// A configuration that only one side has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnmatchedRow {
    /// The table.
    pub table: String,
    /// The configuration; empty for a whole table.
    pub name: String,
}

/// Two results compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The baseline.
    pub a: String,
    /// The candidate.
    pub b: String,
    /// A slower row is a regression where its interval reaches this share.
    pub threshold: f64,
    /// Further differences.
    pub differences: Vec<Difference>,
    /// The rows.
    pub rows: Vec<Row>,
    /// Rows that only A has.
    pub only_in_a: Vec<UnmatchedRow>,
    /// Rows that only B has.
    pub only_in_b: Vec<UnmatchedRow>,
    /// Number of regressions: of slower rows whose interval reaches the threshold.
    pub regressions: usize,
    /// Whether the pixels of both were the same, as far as is known. If not, there is no row.
    pub comparable: bool,
}

impl Comparison {
    /// Number of rows with a verdict.
    pub fn count(&self, word: RowVerdict) -> usize {
        self.rows.iter().filter(|row| row.verdict == word).count()
    }
}
