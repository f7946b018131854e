//! The answer in sentences, each computed from the tables with its uncertainty.
//!
//! A benchmark computes its own findings ([`crate::Benchmark::findings`]) with what is here; this module puts
//! them in order. Two formats are called different only when a [`Judge`] says so: enough rounds, and a 95 % interval of
//! their ratio (the median of the ratios of rounds) that lies beyond 1 and the benchmark's own noise floor.
//!
//! Of several formats the fastest is compared with the second only: one comparison per sentence, so that no correction for
//! many is due. That the best was chosen by the same values favours it, but against the one that comes next to it: of
//! formats that are all alike, those two lie closest together.

use crate::choices::Framework;
use crate::variants::LEFT_OUT;
use crate::{conversion, next_step, suite, sweep};
use std::borrow::Cow;
use std::collections::BTreeMap;
use wellread_measure::bootstrap::{Bootstrap, Interval, Method, Pairing};
use wellread_measure::compare::MIN_SAMPLES;
use wellread_measure::samples::median;
pub(crate) use wellread_report::figures::decision::telling_batch_size;
use wellread_report::{Cell, Finding, Severity, Table, columns};
use wellread_store::words::counted;

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

/// Findings of all tables, most important first, then what to do next; last what could not be measured. `noise` is the
/// noise floor of each benchmark, by its name; `hint` says how there are more rounds ([`more_rounds`]).
pub fn all(tables: &[Table], noise: &BTreeMap<String, f64>, seed: u64, hint: &str) -> Vec<Finding> {
    let mut found: Vec<Ranked> = tables
        .iter()
        .filter_map(|table| Some((suite::benchmark(table.name())?, own_rows(table))))
        .flat_map(|(benchmark, table)| {
            let judge = Judge::new(seed, noise.get(table.name()).copied()).with_hint(hint);
            let found = (benchmark.findings)(&table, &judge);
            let told = |found: Ranked| Ranked { finding: judge.not_good(found.finding), ..found };
            found.into_iter().map(told).collect::<Vec<_>>()
        })
        .collect();
    found.sort_by_key(|found| found.rank);
    // A tensor is made in Python too: whichever takes longest is what to look at.
    let told = |table: &Table| match table.name() {
        name if name == conversion::BENCHMARK.name => table.clone(),
        _ => own_rows(table).into_owned(),
    };
    let own: Vec<Table> = tables.iter().map(told).collect();
    let next = next_step::finding(&own, noise, &Judge::new(seed, None).with_hint(hint));
    let missing = unavailable(tables).into_iter().chain(left_out(tables));
    found.into_iter().map(|found| found.finding).chain(next).chain(missing).collect()
}

/// How to come to rounds enough for a verdict, where `asked` were asked for with `option`.
pub fn more_rounds(asked: usize, option: &str) -> String {
    if asked < MIN_SAMPLES {
        format!("({option} 7 gives one)")
    } else {
        format!("({MIN_SAMPLES} are needed; {asked} were asked for, but the time was short: --time-budget)")
    }
}

/// The rows that this program measured by itself: those of frameworks in Python have findings of their own.
fn own_rows(table: &Table) -> Cow<'_, Table> {
    if table.column("loader").is_none() {
        return Cow::Borrowed(table);
    }
    let mut own = Table::new(table.name());
    for row in (0..table.rows()).filter(|&row| !in_python(table, row)) {
        own.push(table.columns().iter().map(|c| (c.name().to_owned(), table.cell(c.name(), row))));
    }
    Cow::Owned(own)
}

/// Whether a framework in Python was measured in this row.
pub(crate) fn in_python(table: &Table, row: usize) -> bool {
    let framework = table.str("framework", row).and_then(|name| name.parse::<Framework>().ok());
    framework.is_some_and(|framework| framework != Framework::Rust)
}

/// Noise floor of a benchmark above which it gives no advice.
pub(crate) use wellread_report::TOO_NOISY;

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
    fn paired(&self, other: &Self) -> (Vec<f64>, Vec<f64>) {
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

/// Says whether two series differ.
pub struct Judge {
    bootstrap: Bootstrap,
    noise: Option<f64>,
    hint: String,
}

/// How two series compare.
pub(crate) struct Comparison {
    ratio: Interval,
    verdict: Verdict,
    /// How there are more rounds.
    hint: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    /// The first is larger beyond doubt.
    Clear,
    /// The interval holds 1.
    Unclear,
    /// The interval excludes 1, but reaches into what the same variant measured twice differed by: this share.
    Noise(f64),
    /// Too few rounds to tell.
    TooFew(usize),
}

impl Judge {
    /// For a benchmark with this noise floor: the share by which the same variant differed when measured twice.
    pub fn new(seed: u64, noise: Option<f64>) -> Self {
        Self { bootstrap: Bootstrap::seeded(seed), noise, hint: more_rounds(1, "--repeats") }
    }

    /// The same, which says this of how there are more rounds.
    pub fn with_hint(self, hint: &str) -> Self {
        Self { hint: hint.to_owned(), ..self }
    }

    /// Compares the larger with the smaller, paired by round.
    pub(crate) fn compare(&self, a: &Series, b: &Series) -> Option<Comparison> {
        let (x, y) = a.paired(b);
        let ratio = self.bootstrap.ratio(&x, &y, Pairing::Paired).or_else(|| ratio_of_one(&x, &y))?;
        let noise = self.noise.unwrap_or(0.0);
        let verdict = if ratio.n < MIN_SAMPLES {
            Verdict::TooFew(ratio.n)
        } else if ratio.low <= 1.0 {
            Verdict::Unclear
        } else if ratio.low <= 1.0 + noise {
            Verdict::Noise(noise)
        } else {
            Verdict::Clear
        };
        Some(Comparison { ratio, verdict, hint: self.hint.clone() })
    }

    /// Why nothing is advised from figures of this noise; `None` where it is small enough.
    pub(crate) fn too_noisy(&self) -> Option<String> {
        let noise = self.noise.filter(|noise| *noise > TOO_NOISY)?;
        Some(format!("{}: measure again on an idle machine", twice(noise)))
    }

    /// The finding, which is no good news where nothing can be advised from the figures.
    pub(crate) fn not_good(&self, finding: Finding) -> Finding {
        match self.too_noisy() {
            Some(_) if finding.severity == Severity::Good => Finding { severity: Severity::Info, ..finding },
            _ => finding,
        }
    }

    /// The interval of a median, where there are rounds enough for one.
    pub(crate) fn median(&self, values: &[f64]) -> Option<Interval> {
        self.bootstrap.median(values).filter(|_| values.len() >= MIN_SAMPLES)
    }

    /// Why so many rounds give no verdict.
    pub(crate) fn too_few(&self, rounds: usize) -> String {
        too_few(rounds, &self.hint)
    }

    /// The interval of a median as it stands behind its number, ` (63,000–66,000)`; nothing where there are too few rounds
    /// for one.
    pub(crate) fn interval(&self, values: &[f64], show: impl Fn(f64) -> String) -> String {
        self.median(values).map_or(String::new(), |i| format!(" ({}–{})", show(i.low), show(i.high)))
    }
}

/// What a noise floor is.
fn twice(noise: f64) -> String {
    format!("one variant measured twice differed by up to {:.0} %", 100.0 * noise)
}

/// Why so many rounds give no verdict; `hint` says how there are more.
fn too_few(rounds: usize, hint: &str) -> String {
    match rounds {
        1 => format!("one round is too few for a verdict {hint}"),
        n => format!("{n} rounds are too few for a verdict {hint}"),
    }
}

/// The ratio of one round, which has no interval.
fn ratio_of_one(x: &[f64], y: &[f64]) -> Option<Interval> {
    let ([x], [y]) = (x, y) else { return None };
    let estimate = Some(x / y).filter(|ratio| ratio.is_finite())?;
    Some(Interval {
        estimate,
        low: estimate,
        high: estimate,
        confidence: 0.0,
        n: 1,
        method: Method::Percentile,
    })
}

impl Comparison {
    /// Whether the first is larger beyond doubt.
    pub(crate) fn is_clear(&self) -> bool {
        self.verdict == Verdict::Clear
    }

    /// `2.1 (2.0–2.3) times`; without the interval where the rounds are too few for one.
    pub(crate) fn times(&self) -> String {
        let i = &self.ratio;
        match self.verdict {
            Verdict::TooFew(_) => format!("{} times", number(i.estimate)),
            _ => format!("{} ({}–{}) times", number(i.estimate), number(i.low), number(i.high)),
        }
    }

    /// How a sentence begins that gives no verdict on two formats.
    pub(crate) fn no_verdict(&self, first: &str, second: &str) -> String {
        match self.verdict {
            Verdict::TooFew(_) => format!("It is too early to say which of {first} and {second} is faster"),
            _ => format!("{first} and {second} cannot be told apart here"),
        }
    }

    /// Why there is no verdict; empty where there is one.
    pub(crate) fn doubt(&self) -> String {
        match self.verdict {
            Verdict::Clear => String::new(),
            Verdict::Unclear => "; the interval holds 1".to_owned(),
            Verdict::Noise(noise) => format!("; but {}", twice(noise)),
            Verdict::TooFew(n) => format!("; {}", too_few(n, &self.hint)),
        }
    }
}

/// A format with its codec, as measured: `tiff (none)`; formats differ by their compression as much as by anything.
pub(crate) fn with_codec(table: &Table, format: &str) -> String {
    let rows = (0..table.rows()).find(|&r| table.str("format", r) == Some(format));
    match rows.and_then(|r| table.str("codec", r)) {
        Some("none") => format!("{format} (uncompressed)"),
        Some(codec) if !codec.is_empty() => format!("{format} ({codec})"),
        _ => format.to_owned(),
    }
}

/// A share as text; what rounds to nothing says so.
pub(crate) fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.001 { "<0.1 %".to_owned() } else { format!("{:.1} %", 100.0 * share) }
}

/// Three significant digits, with thousands separators.
pub(crate) fn number(v: f64) -> String {
    wellread_report::number::significant(v)
}

/// Whether there was no time for a configuration.
fn is_late(table: &Table, row: usize) -> bool {
    table.str("reason", row).is_some_and(|reason| reason.starts_with(LEFT_OUT))
}

/// How many configurations there was no time for.
fn left_out(tables: &[Table]) -> Option<Finding> {
    let mut counts = Vec::new();
    let mut reasons: Vec<String> = Vec::new();
    for table in tables {
        let late: Vec<usize> = (0..table.rows()).filter(|&row| is_late(table, row)).collect();
        if late.is_empty() {
            continue;
        }
        let all = columns::configurations(table, &columns::keys(table), &[]).len();
        counts.push(format!("{} of {} of {}", late.len(), counted(all, "configuration"), table.name()));
        for row in late {
            let reason = table.str("reason", row).unwrap_or_default();
            let reason = reason.strip_prefix(LEFT_OUT).unwrap_or(reason).trim_start_matches(": ");
            let which = table.cell("mode", row).text();
            let told = if which.is_empty() {
                reason.to_owned()
            } else {
                format!("{} {which}: {reason}", table.name())
            };
            if !reasons.contains(&told) {
                reasons.push(told);
            }
        }
    }
    (!counts.is_empty()).then(|| {
        let detail =
            format!("{}. Fewer --formats or a longer --time-budget measure more", reasons.join("; "));
        Finding::new(Severity::Caution, format!("No time for {}", counts.join(", ")), detail)
    })
}

/// Formats that were not measured at all, and batch sizes that were not where their formats were.
fn unavailable(tables: &[Table]) -> Option<Finding> {
    // A sweep asks for what not every format has, and says so itself.
    let tables = || tables.iter().filter(|table| !sweep::is_table(table.name()));
    let rows = || tables().flat_map(|table| (0..table.rows()).map(move |row| (table, row)));
    // What there was no time for is told apart.
    let is_missing =
        |table: &Table, row| table.str("status", row) == Some("unavailable") && !is_late(table, row);
    let measured: Vec<&str> = rows()
        .filter(|&(t, r)| !is_missing(t, r) && !in_python(t, r))
        .filter_map(|(t, r)| t.str("format", r))
        .collect();
    let mut seen: Vec<(String, String)> = Vec::new();
    for (table, row) in rows().filter(|&(t, r)| is_missing(t, r)) {
        let format = table.str("format", row).unwrap_or_default();
        // That a set is smaller than a batch is the same for all formats.
        let name = match table.cell("batch_size", row) {
            _ if in_python(table, row) => {
                let columns =
                    ["framework", "loader", "mode", "path"].map(|name| table.cell(name, row).text());
                columns.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
            }
            size if size != Cell::Null && measured.contains(&format) => format!("batches of {}", size.text()),
            // The same for all operations on the set.
            _ if measured.contains(&format) => match table.str("cache", row) {
                Some("direct") => format!("{format} past the page cache"),
                Some(state) => format!("{format} from a {state} page cache"),
                None => format.to_owned(),
            },
            _ => format.to_owned(),
        };
        if !seen.iter().any(|(known, _)| *known == name) {
            seen.push((name, table.str("reason", row).unwrap_or_default().to_owned()));
        }
    }
    if seen.is_empty() {
        return None;
    }
    let names: Vec<_> = seen.iter().map(|(f, _)| f.as_str()).collect();
    // One reason, such as a framework that is missing, often holds for many.
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, reason) in &seen {
        match by_reason.iter_mut().find(|(known, _)| known == reason) {
            Some((_, names)) => names.push(name),
            None => by_reason.push((reason, vec![name])),
        }
    }
    let reasons: Vec<_> =
        by_reason.iter().map(|(reason, names)| format!("{}: {reason}", names.join(", "))).collect();
    Some(Finding::new(Severity::Caution, format!("Not measured: {}", names.join(", ")), reasons.join("; ")))
}

/// Rounds of `tiff`, which is twice as fast as `parquet`, without workers, with further columns.
#[cfg(test)]
pub(crate) fn two_formats(runs: i64, more: &[(&str, f64)]) -> Table {
    let mut table = Table::new("dataloader");
    for (format, rate) in [("tiff", 200.0), ("parquet", 100.0)] {
        for run in 0..runs {
            let mut row = wellread_report::row![
                ("format", format),
                ("batch_size", 4),
                ("workers", 0),
                ("run", run),
                ("verified", true),
                ("num_samples", 100),
                ("samples_per_sec", rate)
            ];
            row.extend(
                more.iter().map(|(name, value)| ((*name).to_owned(), wellread_report::Cell::from(*value))),
            );
            table.push(row);
        }
    }
    table
}

#[cfg(test)]
mod tests;
