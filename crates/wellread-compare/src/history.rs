//! Many runs, one record each: JSON lines in a file that grows, and where in it a level changed.
//!
//! A record holds the medians of one run with what they were measured on. Series are told apart by machine, pixels,
//! table, configuration and quantity; figures of different machines never stand in one series. Changes are found by
//! [`wellread_measure::steady`].

use crate::series;
use crate::{Results, UsageError, judge, provenance, verdict};
use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::Path;
use wellread_measure::compare::MIN_SAMPLES;
use wellread_measure::{ChangePoint, ChangePoints, IntervalEstimator};
use wellread_report::Table;
use wellread_report::columns::{self, Better};
use wellread_report::staged;
use wellread_report::words::counted;

/// Version of the records that this writes; later ones are refused.
const VERSION: u32 = 1;
/// Longer files are no histories.
const MAX_HISTORY_BYTES: u64 = 1 << 30;

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of this record.
    pub wellread_history: u32,
    /// When it was added: UTC, ISO 8601.
    pub timestamp: String,
    /// When its last row was measured, as far as the tables tell; none in earlier records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<String>,
    /// The measured revision: a commit, a version, a name.
    pub label: String,
    /// The machine in words; empty when unknown.
    pub machine: String,
    /// Checksum of the pixels, where there is one.
    pub pixel_checksum: Option<String>,
    /// The figures.
    pub rows: Vec<Figure>,
}

impl Record {
    /// Whether both are of one run: the same figures, measured at the same time. Text keeps nearly all digits of a figure.
    fn is_same_run(&self, other: &Self) -> bool {
        let is_same = |a: &Figure, b: &Figure| {
            (&a.table, &a.name, &a.quantity) == (&b.table, &b.name, &b.quantity)
                && (a.value - b.value).abs() <= 1e-9 * a.value.abs()
        };
        self.measured.is_some()
            && (&self.measured, &self.machine) == (&other.measured, &other.machine)
            && self.rows.len() == other.rows.len()
            && self.rows.iter().zip(&other.rows).all(|(a, b)| is_same(a, b))
    }
}

/// The median of one quantity of one configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The table.
    pub table: String,
    /// Values of its keys, joined: records know a configuration by it.
    pub name: String,
    /// The configuration in words, as a comparison names it; empty in earlier records.
    #[serde(default)]
    pub configuration: String,
    /// The column.
    pub quantity: String,
    /// Its median.
    pub value: f64,
    /// Lower end of its 95 % interval, if there is one.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Runs behind it.
    pub n: usize,
}

/// One quantity of one configuration over all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// The machine.
    pub machine: String,
    /// The table.
    pub table: String,
    /// Values of its keys, joined.
    pub name: String,
    /// The configuration in words, as its latest record has them.
    pub configuration: String,
    /// The column.
    pub quantity: String,
    /// Numbers of the records, from 0.
    pub records: Vec<usize>,
    /// Their figures.
    pub values: Vec<f64>,
    /// Lower ends of their intervals, or the values where there is none.
    pub low: Vec<f64>,
    /// Upper ends.
    pub high: Vec<f64>,
    /// Runs behind each.
    pub n: Vec<usize>,
    /// Where the level changed; `at` is an index into the above.
    pub changes: Vec<Change>,
    /// Checksum of the pixels, where there is one: series of others have the same names.
    #[serde(rename = "pixel_checksum")]
    pub(crate) pixels: Option<String>,
}

impl Series {
    /// Its table and configuration in words.
    pub(crate) fn title(&self) -> String {
        let words = if self.configuration.is_empty() { &self.name } else { &self.configuration };
        format!("{}: {words}", self.table)
    }

    /// Whether both were measured on one machine and the same pixels.
    pub(crate) fn is_measured_like(&self, other: &Self) -> bool {
        self.machine == other.machine && self.pixels == other.pixels
    }
}

/// A change of level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Where, and how large.
    #[serde(flatten)]
    pub point: ChangePoint,
    /// Label of the first record of the new level.
    pub label: String,
    /// Its time.
    pub timestamp: String,
    /// The present cost over the former; the inverse for rates. Above 1 is slower.
    pub ratio: f64,
}

/// The record of a run.
///
/// # Errors
/// Results without any figure; a [`UsageError`] where they have none of those asked for.
pub fn record(results: &Results, label: &str, options: &judge::Options) -> Result<Record> {
    let mut rows = Vec::new();
    let asked = |name: &str| options.tables.is_empty() || options.tables.iter().any(|table| table == name);
    for table in results.tables.iter().filter(|table| asked(table.name())) {
        let keys = series::keys(table, table);
        for quantity in series::quantities(table, table, &options.quantities)? {
            for pair in series::pairs(table, table, &keys, &quantity) {
                let Some(of) = pair.a.filter(|of| of.problem.is_none() && of.value.is_finite()) else {
                    continue;
                };
                let of_median = || IntervalEstimator::seeded(options.seed).median(&of.samples);
                // Fewer runs give no interval of 95 %.
                let is_enough = of.samples.len() >= MIN_SAMPLES;
                let interval = of.interval.or_else(|| is_enough.then(of_median).flatten());
                let back = |cost: f64| if quantity.better == Better::Higher { cost.recip() } else { cost };
                let ends = interval.map(|i| (back(i.low).min(back(i.high)), back(i.low).max(back(i.high))));
                rows.push(Figure {
                    table: table.name().to_owned(),
                    name: values(&pair.key),
                    configuration: verdict::name(&pair.key),
                    quantity: quantity.column.clone(),
                    value: of.value,
                    low: ends.map(|(low, _)| low).filter(|low| low.is_finite()),
                    high: ends.map(|(_, high)| high).filter(|high| high.is_finite()),
                    n: of.samples.len(),
                });
            }
        }
    }
    if rows.is_empty() && !options.quantities.is_empty() {
        let wanted = options.quantities.join(" or ");
        let there = series::names(results.tables.iter().filter(|table| asked(table.name())));
        bail!(UsageError(format!("{}: holds no {wanted} to keep; there are {there}", results.label)));
    }
    ensure!(!rows.is_empty(), "{}: holds no figure to keep", results.label);
    Ok(Record {
        wellread_history: VERSION,
        timestamp: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        measured: results.tables.iter().filter_map(last_timestamp).max(),
        label: label.to_owned(),
        machine: provenance::machine(results),
        pixel_checksum: results.detail("/pixel_checksum").and_then(|v| v.as_str()).map(str::to_owned),
        rows,
    })
}

/// The time of the row that was measured last.
fn last_timestamp(table: &Table) -> Option<String> {
    let times = (0..table.rows()).filter_map(|row| table.str("timestamp", row));
    times.max().map(str::to_owned)
}

/// Values of the keys, joined.
fn values(key: &[(String, String)]) -> String {
    let values: Vec<&str> = key.iter().map(|(_, value)| value.as_str()).collect();
    if values.is_empty() { "all".to_owned() } else { values.join(" ") }
}

/// The records of a file, oldest first.
///
/// # Errors
/// Unreadable file, or a line that is no record, with its number.
pub fn read(path: &Path) -> Result<Vec<Record>> {
    let size = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.len();
    ensure!(size <= MAX_HISTORY_BYTES, "{}: {size} bytes are too many for a history", path.display());
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut records = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let at = || format!("{}, line {}", path.display(), i + 1);
        let record: Record = serde_json::from_str(line).with_context(|| {
            format!("{}: is no record of a history; remove the line, or name another file", at())
        })?;
        if record.wellread_history > VERSION {
            bail!("{}: was written by a later version of wellread", at());
        }
        records.push(record);
    }
    Ok(records)
}

/// Adds a record at the end of the file, which is made if need be, unless one of the same run is there. The file is replaced as a whole, so that it never
/// holds half a record; several that write at once wait for each other. Returns all records, and whether this one was added.
///
/// # Errors
/// A file that is no history, or cannot be written.
pub fn append(path: &Path, record: Record) -> Result<(Vec<Record>, bool)> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let name = path.file_name().with_context(|| format!("{} is no name of a file", path.display()))?;
    let lock = folder.join(format!(".{}.lock", name.to_string_lossy()));
    let file = File::create(&lock).with_context(|| format!("cannot write {}", lock.display()))?;
    file.lock().with_context(|| format!("cannot lock {}", lock.display()))?;
    let mut records = if path.exists() { read(path)? } else { Vec::new() };
    if records.iter().any(|known| known.is_same_run(&record)) {
        return Ok((records, false));
    }
    records.push(record);
    let mut text = String::new();
    for record in &records {
        text += &serde_json::to_string(record)?;
        text.push('\n');
    }
    staged::write(path, text.as_bytes())?;
    Ok((records, true))
}

/// All series of a history with their changes: those that changed last and most first.
pub fn series(records: &[Record], seed: u64) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for (number, record) in records.iter().enumerate() {
        for figure in record.rows.iter().filter(|figure| figure.value.is_finite()) {
            let same = |s: &Series| {
                s.machine == record.machine
                    && s.pixels == record.pixel_checksum
                    && (&s.table, &s.name, &s.quantity) == (&figure.table, &figure.name, &figure.quantity)
            };
            let at = all.iter().position(same).unwrap_or_else(|| {
                all.push(Series {
                    machine: record.machine.clone(),
                    table: figure.table.clone(),
                    name: figure.name.clone(),
                    configuration: String::new(),
                    quantity: figure.quantity.clone(),
                    records: vec![],
                    values: vec![],
                    low: vec![],
                    high: vec![],
                    n: vec![],
                    changes: vec![],
                    pixels: record.pixel_checksum.clone(),
                });
                all.len() - 1
            });
            let of = &mut all[at];
            of.configuration.clone_from(&figure.configuration);
            of.records.push(number);
            of.values.push(figure.value);
            of.low.push(figure.low.unwrap_or(figure.value));
            of.high.push(figure.high.unwrap_or(figure.value));
            of.n.push(figure.n);
        }
    }
    for of in &mut all {
        let better = columns::quantity(&of.quantity).better;
        let found = ChangePoints::seeded(seed).find(&of.values);
        of.changes = found
            .into_iter()
            .map(|point| {
                let record = &records[of.records[point.at]];
                let ratio = if better == Better::Higher { point.ratio().recip() } else { point.ratio() };
                Change { point, label: record.label.clone(), timestamp: record.timestamp.clone(), ratio }
            })
            .collect();
    }
    let order = |s: &Series| {
        s.changes.last().map(|change| (s.records[change.point.at], (change.ratio.ln().abs() * 1e6) as u64))
    };
    all.sort_by_key(|s| std::cmp::Reverse(order(s)));
    all
}

/// The findings of a history, for a terminal.
pub fn text(records: &[Record], all: &[Series]) -> String {
    let changed: Vec<&Series> = all.iter().filter(|s| !s.changes.is_empty()).collect();
    let runs = |n: usize| counted(n, "run");
    let mut out =
        format!("{}, {} series, {} of which changed.", runs(records.len()), all.len(), changed.len());
    let longest = all.iter().map(|s| s.values.len()).max().unwrap_or(0);
    if longest < 10 {
        out += &format!(
            "\nThe longest series has {}: about ten are needed before a change can be told.",
            runs(longest)
        );
    }
    let machines: std::collections::BTreeSet<&str> = all.iter().map(|s| s.machine.as_str()).collect();
    if machines.len() > 1 {
        out += &format!("\nFrom {} machines, which are kept apart.", machines.len());
    }
    let pixels: std::collections::BTreeSet<Option<&str>> = all.iter().map(|s| s.pixels.as_deref()).collect();
    if pixels.len() > 1 {
        out += &format!("\nThe runs are of {} sets of pixels, which are kept apart.", pixels.len());
    }
    for s in changed {
        let quantity = columns::quantity(&s.quantity);
        out += &format!("\n{}, {}:", s.title(), quantity.label);
        for change in &s.changes {
            let word = if change.ratio > 1.0 { "slower" } else { "faster" };
            out += &format!(
                "\n  {word} from {} ({}, run {}) on: {} to {}, ratio {:.3}",
                change.label,
                change.timestamp,
                s.records[change.point.at] + 1,
                quantity.unit.format(change.point.before),
                quantity.unit.format(change.point.after),
                change.ratio
            );
        }
    }
    out
}

#[cfg(test)]
mod tests;
