//! The answer in sentences, each computed from the tables with its uncertainty.
//!
//! A benchmark computes its own findings ([`crate::Benchmark::findings`]) with what is here; this module puts
//! them in order. Two formats are called different only when the 95 % interval of their ratio, paired by round,
//! excludes 1.

use crate::suite;
use wellread_measure::bootstrap::{Bootstrap, Interval, Pairing};
use wellread_measure::compare::MIN_SAMPLES;
use wellread_measure::samples::median;
use wellread_report::{Cell, Finding, Severity, Table};

/// A finding and its place among those of all benchmarks: smaller ranks are told first.
pub struct Ranked {
    /// Its place.
    pub rank: u32,
    /// The finding.
    pub finding: Finding,
}

/// Ranks a finding, if there is one.
pub(crate) fn ranked(rank: u32, finding: Option<Finding>) -> Option<Ranked> {
    finding.map(|finding| Ranked { rank, finding })
}

/// Findings of all tables, most important first; last what could not be measured.
pub fn all(tables: &[Table], seed: u64) -> Vec<Finding> {
    let bootstrap = Bootstrap::seeded(seed);
    let mut found: Vec<Ranked> = tables
        .iter()
        .filter_map(|table| Some((suite::benchmark(table.name())?, table)))
        .flat_map(|(benchmark, table)| (benchmark.findings)(table, &bootstrap))
        .collect();
    found.sort_by_key(|found| found.rank);
    found.into_iter().map(|found| found.finding).chain(unavailable(tables)).collect()
}

/// One configuration's value per run, in order of runs.
pub(crate) struct Series {
    pub(crate) format: String,
    pub(crate) label: String,
    pub(crate) values: Vec<f64>,
}

impl Series {
    pub(crate) fn median(&self) -> f64 {
        median(&self.values).unwrap_or(f64::NAN)
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
        match out.iter_mut().find(|s| s.format == format && s.label == label) {
            Some(s) => s.values.push(value),
            None => out.push(Series { format, label, values: vec![value] }),
        }
    }
    out
}

/// Sorts by median, largest first.
pub(crate) fn by_median(mut series: Vec<Series>) -> Vec<Series> {
    series.retain(|s| s.median().is_finite());
    series.sort_by(|a, b| b.median().total_cmp(&a.median()));
    series
}

pub(crate) fn ratio(a: &Series, b: &Series, bootstrap: &Bootstrap) -> Option<Interval> {
    let n = a.values.len().min(b.values.len());
    bootstrap.ratio_of_medians(&a.values[..n], &b.values[..n], Pairing::Paired)
}

/// Whether a ratio is above 1 beyond doubt: its interval excludes 1 and rests on enough rounds.
pub(crate) fn clearly_above_one(ratio: &Interval) -> bool {
    ratio.n >= MIN_SAMPLES && ratio.low > 1.0
}

/// What to say where the rounds are too few for a verdict.
pub(crate) fn too_few(ratio: &Interval) -> &'static str {
    if ratio.n < MIN_SAMPLES { " (too few rounds for a verdict: --repeats 7 or more gives one)" } else { "" }
}

/// `2.1 (2.0–2.3) times`
pub(crate) fn times(i: &Interval) -> String {
    format!("{} ({}–{}) times", number(i.estimate), number(i.low), number(i.high))
}

/// Three significant digits, with thousands separators.
pub(crate) fn number(v: f64) -> String {
    wellread_report::number::significant(v)
}

/// The largest of the column's values, for "at the largest batch".
pub(crate) fn largest(table: &Table, column: &str) -> Option<f64> {
    (0..table.rows()).filter_map(|r| table.f64(column, r)).reduce(f64::max)
}

fn unavailable(tables: &[Table]) -> Option<Finding> {
    let mut seen: Vec<(String, String)> = Vec::new();
    for table in tables {
        for row in 0..table.rows() {
            let format = table.str("format", row).unwrap_or_default().to_owned();
            if table.str("status", row) == Some("unavailable") && !seen.iter().any(|(f, _)| *f == format) {
                seen.push((format, table.str("reason", row).unwrap_or_default().to_owned()));
            }
        }
    }
    if seen.is_empty() {
        return None;
    }
    let names: Vec<_> = seen.iter().map(|(f, _)| f.as_str()).collect();
    let reasons: Vec<_> = seen.iter().map(|(f, r)| format!("{f}: {r}")).collect();
    Some(Finding::new(Severity::Caution, format!("Not measured: {}", names.join(", ")), reasons.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_report::row;

    fn loader_table(rates: &[(&str, i64, [f64; 6])]) -> Table {
        let mut table = Table::new("dataloader");
        for (format, workers, values) in rates {
            for (run, rate) in values.iter().enumerate() {
                table.push(row![
                    ("format", *format),
                    ("batch_size", 16),
                    ("workers", *workers),
                    ("run", run),
                    ("verified", true),
                    ("samples_per_sec", *rate)
                ]);
            }
        }
        table
    }

    #[test]
    fn a_clear_difference_is_said_and_an_unclear_one_is_not() {
        let clear = loader_table(&[
            ("tiff", 0, [200.0, 201.0, 199.0, 200.5, 200.2, 199.6]),
            ("parquet", 0, [100.0, 101.0, 99.0, 100.2, 100.1, 99.5]),
        ]);
        assert!(all(&[clear], 1)[0].text.contains("tiff is the fastest format here"));
        let unclear = loader_table(&[
            ("tiff", 0, [200.0, 90.0, 110.0, 100.0, 95.0, 130.0]),
            ("parquet", 0, [100.0, 190.0, 99.0, 101.0, 120.0, 97.0]),
        ]);
        assert!(all(&[unclear], 1)[0].text.contains("cannot be told apart"));
    }

    #[test]
    fn unverified_runs_are_no_evidence() {
        let mut table = loader_table(&[("tiff", 0, [1.0; 6])]);
        table.push(row![
            ("format", "wrong"),
            ("batch_size", 16),
            ("workers", 0),
            ("run", 0),
            ("verified", false),
            ("samples_per_sec", 1e9)
        ]);
        assert!(all(&[table], 1).iter().all(|f| !f.text.contains("wrong")));
    }

    #[test]
    fn no_table_gives_no_sentence() {
        assert!(all(&[], 1).is_empty());
        assert!(all(&[Table::new("dataloader")], 1).is_empty());
    }
}
