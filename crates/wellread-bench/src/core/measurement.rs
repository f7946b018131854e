//! The parts of a benchmark, and its results.
//!
//! ```text
//!  Variant (keys, job) ─▶ a Measurement of each turn ─▶ Results: one row per configuration and run
//!  Unavailable (keys, reason) ────────────────────────▶ a row that says why
//! ```

use super::words::workers;
use anyhow::Result;
use wellread_measure::interleave::Turn;
use wellread_measure::memory::PeakMemory;
use wellread_report::{Cell, Samples as RawSamples, Table};

/// How the reason begins of a configuration that was not measured because there was no time for it.
pub const LEFT_OUT: &str = wellread_report::columns::LEFT_OUT;

/// Whether there was no time for the configuration of this row.
pub(crate) fn is_late(table: &Table, row: usize) -> bool {
    table.str("reason", row).is_some_and(|reason| reason.starts_with(LEFT_OUT))
}

/// Formats of which nothing was measured in any of the tables, as there was no time for them.
pub(crate) fn formats_without_time(tables: &[Table]) -> Vec<String> {
    let rows = || tables.iter().flat_map(|table| (0..table.rows()).map(move |row| (table, row)));
    let is_measured = |format: &str| {
        rows().any(|(table, row)| {
            table.str("status", row) == Some("ok") && table.str("format", row) == Some(format)
        })
    };
    let mut formats: Vec<String> = Vec::new();
    for (table, row) in rows().filter(|&(table, row)| is_late(table, row)) {
        let format = table.str("format", row).unwrap_or_default();
        if !format.is_empty() && !formats.iter().any(|known| known == format) && !is_measured(format) {
            formats.push(format.to_owned());
        }
    }
    formats
}

/// Columns that tell one configuration from another, in order, `format` first. A `codec` among them is none of that:
/// it stands in for the codec of the session's set.
pub type Keys = Vec<(&'static str, Cell)>;

/// The measurement of one turn.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    /// Named values; names are column names. NaN is no value, such as a percentile of too few samples.
    pub values: Vec<(&'static str, f64)>,
    /// Named texts, such as advice.
    pub texts: Vec<(&'static str, String)>,
    /// Latency of each item (image, batch or step) in seconds.
    pub items: Vec<f64>,
    /// Whether the checksum of what was delivered agreed.
    pub verified: bool,
    /// Seconds that a turn that counts takes, of a turn of warm-up that was cut shorter than those are.
    pub full_turn_s: Option<f64>,
    /// Peak memory of the turn; filled in by [`run`](super::variants::run), unless the job watched another process.
    pub peak: Option<PeakMemory>,
}

/// Fewest items of a turn that counts, however slow they are.
pub(crate) const MIN_ITEMS: usize = 4;

/// Fewest items of a turn. No figure uses warm-up: of slow items it has one, which tells the plan how slow they are.
pub(crate) fn fewest(warmup: bool) -> usize {
    if warmup { 1 } else { MIN_ITEMS }
}

/// [`Measurement::full_turn_s`] of a turn. It took `once` for opening and the like, however many items there are, and the other
/// seconds for so many items of `of`.
pub(crate) fn full_turn_s(warmup: bool, [once, of_items]: [f64; 2], items: usize, of: usize) -> Option<f64> {
    let full = MIN_ITEMS.min(of);
    (warmup && (1..full).contains(&items)).then(|| once + of_items * full as f64 / items as f64)
}

/// One configuration to measure.
pub struct Variant<'a> {
    /// The keys that tell it apart.
    pub keys: Keys,
    /// Whether it may be impossible here, as somebody else's library or a cold page cache may. One that fails is
    /// unavailable, and no failure of this run.
    pub peer: bool,
    /// Measures once.
    pub job: Box<dyn FnMut(Turn) -> Result<Measurement> + 'a>,
}

/// A configuration that cannot be measured, and why.
pub struct Unavailable {
    /// The keys that tell it apart.
    pub keys: Keys,
    /// Why.
    pub reason: String,
}

/// The results of a benchmark.
pub struct Results {
    /// One row per configuration and run.
    pub table: Table,
    /// Time of every item of every run.
    pub samples: RawSamples,
    /// Relative difference below which this benchmark cannot tell two variants apart.
    pub noise_floor: Option<f64>,
    /// Remarks that belong beside the measured.
    pub notes: Vec<String>,
    /// Smallest slow-down, as a share, that this benchmark would find in nine of ten cases, as far as its A/A pair shows.
    pub detectable: Option<f64>,
    /// Rounds that were measured.
    pub rounds: usize,
}

/// How to run.
pub struct Settings<'s> {
    /// Name of the benchmark and of its table.
    pub name: &'s str,
    /// Measurement that get intervals.
    pub intervals: &'s [&'static str],
    /// The figure of the A/A pair.
    pub noise_figure: &'static str,
    /// Prefix of the latency columns (`""` gives `p50_s` …, `"step_"` gives `step_p50_s` …).
    pub item_prefix: &'static str,
}

/// A variant's name for people: its keys joined.
pub fn name_of(keys: &Keys) -> String {
    let telling = keys.iter().filter(|(name, _)| *name != "codec").map(|(_, cell)| cell.text());
    telling.filter(|t| !t.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A variant for a sentence, where numbers say what they are of: `parquet, batches of 1, 2 workers`.
pub(super) fn told(keys: &Keys) -> String {
    let word = |(name, cell): &(&'static str, Cell)| match *name {
        "batch_size" => format!("batches of {}", cell.text()),
        "workers" => workers(&cell.text()),
        "crops" => format!("{} crops of each image", cell.text()),
        _ => cell.text(),
    };
    let telling = keys.iter().filter(|(name, _)| *name != "codec").map(word);
    telling.filter(|t| !t.is_empty()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_variant_say_what_they_are_of() {
        let keys: Keys = vec![
            ("format", Cell::from("parquet")),
            ("codec", Cell::from("zstd")),
            ("batch_size", Cell::from(1usize)),
            ("workers", Cell::from(2usize)),
            ("cache", Cell::from("none")),
        ];
        assert_eq!(told(&keys), "parquet, batches of 1, 2 workers, none");
    }

    #[test]
    fn warm_up_of_slow_items_tells_what_a_turn_takes() {
        assert_eq!((fewest(true), fewest(false)), (1, MIN_ITEMS));
        let told = |warmup, items, of| full_turn_s(warmup, [0.0, 0.5], items, of);
        assert_eq!(told(true, 1, 100), Some(0.5 * MIN_ITEMS as f64));
        // All there are, as many as a turn has, and no warm-up: the turn itself tells.
        assert_eq!(told(true, 2, 2), None);
        assert_eq!(told(true, MIN_ITEMS, 100), None);
        assert_eq!(told(false, 1, 100), None);
        assert_eq!(told(true, 0, 0), None);
        // A set is opened once.
        assert_eq!(full_turn_s(true, [3.0, 0.5], 1, 100), Some(3.0 + 0.5 * MIN_ITEMS as f64));
    }
}
