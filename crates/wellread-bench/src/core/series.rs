//! The values of a table's configurations, run by run.
//!
//! ```text
//!  rows of a table that are kept ─▶ Series of each format and label ─▶ compared by a Judge
//! ```

use crate::choices::Framework;
use wellread_measure::samples::median;
pub(crate) use wellread_report::figures::decision::telling_batch_size;
use wellread_report::{Cell, Table};

/// One configuration's value per run, in order of runs.
pub(crate) struct Series {
    pub(crate) format: String,
    pub(crate) label: String,
    pub(crate) values: Vec<f64>,
    /// The run of each value; its place where the table numbers none.
    runs: Vec<i64>,
}

impl Series {
    pub(crate) fn median(&self) -> f64 {
        median(&self.values).unwrap_or(f64::NAN)
    }

    /// The values of both in the runs that both have.
    pub(super) fn paired(&self, other: &Self) -> (Vec<f64>, Vec<f64>) {
        if self.runs == other.runs {
            return (self.values.clone(), other.values.clone());
        }
        let of = |run: &i64| other.runs.iter().position(|r| r == run).map(|at| other.values[at]);
        self.runs.iter().zip(&self.values).filter_map(|(run, value)| Some((*value, of(run)?))).unzip()
    }
}

/// Values of `column` per configuration of `keys`, for rows where `keep` holds.
pub(crate) fn series(
    table: &Table,
    keys: &[&str],
    column: &str,
    keep: impl Fn(usize) -> bool,
) -> Vec<Series> {
    let mut out: Vec<Series> = Vec::new();
    for row in (0..table.rows()).filter(|&r| keep(r)) {
        let Some(value) = table.f64(column, row) else { continue };
        if table.cell("verified", row) == Cell::Bool(false) {
            continue;
        }
        let format = table.str("format", row).unwrap_or_default().to_owned();
        let label = keys.iter().map(|k| table.cell(k, row).text()).collect::<Vec<_>>().join(" ");
        let at = out.iter().position(|s| s.format == format && s.label == label).unwrap_or_else(|| {
            out.push(Series { format, label, values: vec![], runs: vec![] });
            out.len() - 1
        });
        let of = &mut out[at];
        of.runs.push(table.f64("run", row).map_or(of.values.len() as i64, |run| run as i64));
        of.values.push(value);
    }
    out
}

/// Sorts by median, largest first.
pub(crate) fn by_median(mut series: Vec<Series>) -> Vec<Series> {
    series.retain(|s| s.median().is_finite());
    series.sort_by(|a, b| b.median().total_cmp(&a.median()));
    series
}

/// Whether a framework in Python was measured in this row.
pub(crate) fn in_python(table: &Table, row: usize) -> bool {
    let framework = table.str("framework", row).and_then(|name| name.parse::<Framework>().ok());
    framework.is_some_and(|framework| framework != Framework::Rust)
}
