//! The rows of a benchmark's table.
//!
//! ```text
//!  keys, run, Measurement, intervals, peak memory ─▶ RowWriter ─▶ one row: what tells it apart, what was measured, when
//! ```

use super::measurement::{Keys, Measurement, Settings};
use super::session::Session;
use wellread_measure::compare::MIN_SAMPLES;
use wellread_measure::intervals::IntervalEstimator;
use wellread_measure::memory::{PeakMemory, PeakSource};
use wellread_measure::samples::Samples;
use wellread_report::{Cell, Row, Table};

/// Columns with both ends of their interval.
pub(super) type Intervals = Vec<(String, f64, f64)>;

/// The intervals of a configuration, of its measured runs. A column has none where too few runs have a value: it is shown
/// by its range.
pub(super) fn intervals(
    runs: &[&Measurement],
    settings: &Settings<'_>,
    estimator: &IntervalEstimator,
) -> Intervals {
    let mut out = Vec::new();
    for &name in settings.intervals {
        let of = |run: &&Measurement| run.values.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
        let values: Vec<f64> = runs.iter().filter_map(of).filter(|value| value.is_finite()).collect();
        if let Some(i) = estimator.median(&values).filter(|i| i.n >= MIN_SAMPLES) {
            out.push((name.to_owned(), i.low, i.high));
        }
    }
    let groups: Vec<&[f64]> = runs.iter().map(|r| r.items.as_slice()).filter(|i| !i.is_empty()).collect();
    if let Some(i) = estimator.clustered_median(&groups).filter(|i| i.n >= MIN_SAMPLES) {
        out.push((format!("{}p50_s", settings.item_prefix), i.low, i.high));
    }
    out
}

/// Writes the rows of a table.
pub(super) struct RowWriter<'t, 's> {
    pub(super) session: &'t Session<'s>,
    pub(super) table: &'t mut Table,
}

impl RowWriter<'_, '_> {
    /// The beginning of every row.
    fn begin(&self, keys: &Keys, run: Option<usize>) -> Row {
        let mut row: Row = keys.iter().map(|(n, c)| ((*n).to_owned(), c.clone())).collect();
        row.extend(run.map(|run| ("run".into(), Cell::from(run))));
        let of = |column: &str| keys.iter().find(|(name, _)| *name == column).map(|(_, cell)| cell.text());
        if of("codec").is_none() {
            let format = of("format");
            let set = self.session.prepared.sets.iter().find(|s| Some(s.format) == format.as_deref());
            row.push(("codec".into(), set.and_then(|s| s.codec.as_deref()).map_or(Cell::Null, Cell::from)));
        }
        row.push(("seed".into(), Cell::from(self.session.config.seed as i64)));
        row.push(("timestamp".into(), Cell::from(timestamp())));
        row
    }

    /// A configuration that was not measured, and why.
    pub(super) fn unmeasured(&mut self, keys: &Keys, status: &str, reason: &str) {
        let mut row = self.begin(keys, None);
        row.push(("status".into(), Cell::from(status)));
        row.push(("reason".into(), Cell::from(reason)));
        self.table.push(row);
    }

    /// A run of a configuration.
    pub(super) fn measured(
        &mut self,
        keys: &Keys,
        run: usize,
        measured: &Measurement,
        verified: bool,
        (prefix, hidden): (&str, Option<&str>),
        intervals: &Intervals,
        peak: Option<&PeakMemory>,
    ) {
        let mut row = self.begin(keys, Some(run));
        row.push(("verified".into(), Cell::from(verified)));
        row.push(("status".into(), Cell::from("ok")));
        for (name, value) in &measured.values {
            row.push(((*name).to_owned(), Cell::from(Some(*value).filter(|v| !v.is_nan()))));
        }
        for (name, text) in &measured.texts {
            row.push(((*name).to_owned(), Cell::from(text.as_str())));
        }
        row.extend(item_columns(&measured.items, prefix).into_iter().map(|(name, cell)| {
            let cell = if hidden == Some(name.as_str()) { Cell::Null } else { cell };
            (name, cell)
        }));
        for (name, low, high) in intervals {
            row.push((format!("{name}_ci_low"), Cell::from(*low)));
            row.push((format!("{name}_ci_high"), Cell::from(*high)));
        }
        let megabytes = |bytes: u64| Cell::from(bytes as f64 / 1e6);
        if let Some(bytes) = peak.and_then(|peak| peak.bytes) {
            row.push(("peak_rss_mb".into(), megabytes(bytes)));
        }
        let is_bound = |peak: &&PeakMemory| {
            matches!(peak.source, PeakSource::HighWaterMarkOfProcess { exact: false, .. })
        };
        if let Some(growth) = peak.filter(|peak| !is_bound(peak)).and_then(PeakMemory::growth) {
            row.push(("peak_growth_mb".into(), megabytes(growth)));
        }
        self.table.push(row);
    }
}

fn item_columns(items: &[f64], prefix: &str) -> Vec<(String, Cell)> {
    let samples: Samples = items.iter().copied().collect();
    let Some(s) = samples.summary() else { return vec![] };
    let optional = |v: Option<f64>| v.map_or(Cell::Null, Cell::from);
    [
        ("mean_s", Cell::from(s.mean)),
        ("std_s", optional(s.std)),
        ("p50_s", Cell::from(s.p50)),
        ("p95_s", optional(s.p95)),
        ("p99_s", optional(s.p99)),
        ("min_s", Cell::from(s.min)),
        ("max_s", Cell::from(s.max)),
    ]
    .into_iter()
    .map(|(name, cell)| (format!("{prefix}{name}"), cell))
    .collect()
}

fn timestamp() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_an_interval_where_enough_of_its_runs_have_a_value() {
        let settings = Settings {
            name: "dataloader",
            intervals: &["samples_per_sec", "epoch_s", "first_batch_s"],
            noise_figure: "samples_per_sec",
            item_prefix: "",
        };
        // Seven runs: one was cut short, so that it has no epoch, and five have no first batch.
        let measured = |run: usize| Measurement {
            values: vec![
                ("samples_per_sec", 100.0 + run as f64),
                ("epoch_s", if run == 3 { f64::NAN } else { 1.0 }),
                ("first_batch_s", if run < 2 { 0.5 } else { f64::NAN }),
            ],
            items: if run < 2 { vec![0.1, 0.2] } else { vec![] },
            ..Measurement::default()
        };
        let runs: Vec<Measurement> = (0..7).map(measured).collect();
        let estimator = IntervalEstimator::seeded(1);
        let of = |runs: &[Measurement]| {
            intervals(&runs.iter().collect::<Vec<_>>(), &settings, &estimator)
                .into_iter()
                .map(|(name, low, high)| (name, low > 100.0 && high < 106.0, low == high))
                .collect::<Vec<_>>()
        };
        let rate = ("samples_per_sec".to_owned(), true, false);
        assert_eq!(of(&runs), [rate, ("epoch_s".to_owned(), false, true)], "two batches give no p50");
        assert!(of(&runs[..5]).is_empty());
    }

    /// Images of one run resemble each other, so that an interval by their ranks would be too narrow, however many there are.
    #[test]
    fn the_median_alone_of_the_figures_of_items_has_an_interval() {
        let settings = Settings {
            name: "dataset",
            intervals: &["samples_per_sec"],
            noise_figure: "samples_per_sec",
            item_prefix: "",
        };
        for items in [71, 72, 73, 367, 368, 369] {
            let run = |_| Measurement {
                values: vec![("samples_per_sec", 100.0)],
                items: (1..=items).map(f64::from).collect(),
                ..Measurement::default()
            };
            let runs: Vec<Measurement> = (0..7).map(run).collect();
            let found = intervals(&runs.iter().collect::<Vec<_>>(), &settings, &IntervalEstimator::seeded(1));
            let names: Vec<String> = found.into_iter().map(|(name, ..)| name).collect();
            assert_eq!(names, ["samples_per_sec", "p50_s"], "{items} items");
        }
    }

    #[test]
    fn a_percentile_is_empty_where_none_of_the_items_would_lie_beyond() {
        let empty = |items: i32| {
            let items: Vec<f64> = (1..=items).map(f64::from).collect();
            let columns = item_columns(&items, "item_").into_iter();
            columns.filter(|(_, cell)| *cell == Cell::Null).map(|(name, _)| name).collect::<Vec<_>>()
        };
        let (p95, p99) = ("item_p95_s", "item_p99_s");
        assert_eq!(empty(19), [p95, p99]);
        assert_eq!((empty(20), empty(21)), (vec![p99.to_owned()], vec![p99.to_owned()]));
        assert_eq!(empty(99), [p99]);
        assert!(empty(100).is_empty() && empty(101).is_empty());
    }
}
