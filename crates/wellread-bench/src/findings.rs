//! The answer in sentences, each computed from the tables with its uncertainty.
//!
//! A benchmark computes its own findings ([`crate::Benchmark::findings`]) with [`crate::core`]; this module asks each
//! and puts them in order. Two formats are called different only when a [`Judge`] says so. It needs enough rounds, and
//! a 95 % interval of their ratio (the median of the ratios of rounds). This must lie beyond 1 and the benchmark's own noise
//! floor.
//!
//! The fastest of several formats is compared with the second only. A sentence has one comparison, so that no
//! correction for many is due. That the best was chosen by the same values favours it, but against the one that comes
//! next to it. Those two lie closest together among formats that are all alike.

pub(crate) mod frameworks;

pub use crate::core::judge::{Judge, Ranked, Repeats};

use crate::core::measurement::{LEFT_OUT, formats_without_time, is_late};
use crate::core::series::in_python;
use crate::{benchmarks, conversion, next_step, sweep};
use std::borrow::Cow;
use std::collections::BTreeMap;
use wellread_report::{Cell, Finding, Severity, Table, columns};
use wellread_store::words::counted;

/// Findings on frameworks in Python, where there are some, and then those of [`all`].
pub fn with_frameworks(
    tables: &[Table],
    noise: &BTreeMap<String, f64>,
    seed: u64,
    repeats: Repeats,
) -> Vec<Finding> {
    let mut found = frameworks::all(tables, noise, seed, repeats);
    found.extend(all(tables, noise, seed, repeats));
    found
}

/// Findings of all tables, most important first, then what to do next; last what could not be measured. `noise` is the
/// noise floor of each benchmark, by its name; `repeats` are those that verdicts are over.
pub fn all(tables: &[Table], noise: &BTreeMap<String, f64>, seed: u64, repeats: Repeats) -> Vec<Finding> {
    let mut found: Vec<Ranked> = tables
        .iter()
        .filter_map(|table| Some((benchmarks::benchmark(table.name())?, own_rows(table))))
        .flat_map(|(benchmark, table)| {
            let judge = Judge::new(seed, noise.get(table.name()).copied()).over(repeats);
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
    let next = next_step::finding(&own, noise, &Judge::new(seed, None).over(repeats));
    let missing = unavailable(tables).into_iter().chain(left_out(tables));
    found.into_iter().map(|found| found.finding).chain(next).chain(missing).collect()
}

/// The rows that this program measured by itself: those of frameworks in Python have findings of their own.
pub(crate) fn own_rows(table: &Table) -> Cow<'_, Table> {
    if table.column("loader").is_none() {
        return Cow::Borrowed(table);
    }
    let mut own = Table::new(table.name());
    for row in (0..table.rows()).filter(|&row| !in_python(table, row)) {
        own.push(table.columns().iter().map(|c| (c.name().to_owned(), table.cell(c.name(), row))));
    }
    Cow::Owned(own)
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
        let whole = formats_without_time(tables);
        let whole = if whole.is_empty() {
            String::new()
        } else {
            format!("; nothing was measured of {}", whole.join(", "))
        };
        Finding::new(Severity::Caution, format!("No time for {}{whole}", counts.join(", ")), detail)
    })
}

/// The columns that tell loaders in Python apart.
const LOADER: [&str; 4] = ["framework", "loader", "mode", "path"];

/// Formats that were not measured at all, and batch sizes that were not where their formats were.
fn unavailable(tables: &[Table]) -> Option<Finding> {
    // A sweep asks for what not every format has, and says so itself.
    let tables = || tables.iter().filter(|table| !sweep::is_table(table.name()));
    let rows = || tables().flat_map(|table| (0..table.rows()).map(move |row| (table, row)));
    // Formats that were not measured for want of time are told apart.
    let is_missing =
        |table: &Table, row| table.str("status", row) == Some("unavailable") && !is_late(table, row);
    let measured: Vec<&str> = rows()
        .filter(|&(t, r)| !is_missing(t, r) && !in_python(t, r))
        .filter_map(|(t, r)| t.str("format", r))
        .collect();
    let is_seen = |column: &str, value: Option<&str>| {
        rows().any(|(t, r)| !is_missing(t, r) && t.str(column, r) == value)
    };
    // A set that is smaller than a batch says nothing of a loader that was measured in smaller ones.
    let is_measured = |table: &Table, row| {
        table.cell("batch_size", row) != Cell::Null
            && (0..table.rows()).filter(|&other| !is_missing(table, other)).any(|other| {
                LOADER.iter().chain(&["format"]).all(|name| table.cell(name, other) == table.cell(name, row))
            })
    };
    let is_size_seen = |table: &Table, size: &Cell| {
        (0..table.rows()).any(|row| !is_missing(table, row) && table.cell("batch_size", row) == *size)
    };
    let loader = |table: &Table, row| {
        let columns = LOADER.map(|name| table.cell(name, row).text());
        columns.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let mut seen: Vec<(String, String)> = Vec::new();
    for (table, row) in rows().filter(|&(t, r)| is_missing(t, r)) {
        let format = table.str("format", row).unwrap_or_default();
        // A framework that was measured with another format does not lack this one: nobody could read it.
        let is_of_format =
            || is_seen("framework", table.str("framework", row)) && !is_seen("format", Some(format));
        // That a set is smaller than a batch is the same for all formats.
        let name = match table.cell("batch_size", row) {
            _ if in_python(table, row) && is_of_format() => format.to_owned(),
            size if in_python(table, row) && is_measured(table, row) => {
                let batches = format!("batches of {}", size.text());
                if is_size_seen(table, &size) {
                    format!("{} in {batches}", loader(table, row))
                } else {
                    batches
                }
            }
            _ if in_python(table, row) => loader(table, row),
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

/// A table of loaders: of each of `loaders` what tells it apart, and images per second round by round.
#[cfg(test)]
pub(crate) fn loader_table<R: IntoIterator<Item = f64>>(
    loaders: impl IntoIterator<Item = (wellread_report::Row, R)>,
) -> Table {
    let mut table = Table::new("dataloader");
    for (what, rates) in loaders {
        for (run, rate) in rates.into_iter().enumerate() {
            let mut row = what.clone();
            row.extend(wellread_report::row![
                ("run", run),
                ("verified", true),
                ("num_samples", 100),
                ("samples_per_sec", rate)
            ]);
            table.push(row);
        }
    }
    table
}

/// Runs of a model loop of 12 steps, each of which waits this share of its time; with what tells the loop apart.
#[cfg(test)]
pub(crate) fn loop_table(
    what: &[(String, wellread_report::Cell)],
    runs: usize,
    share: f64,
    ahead: i64,
) -> Table {
    let mut table = Table::new("loop");
    for run in 0..runs {
        let mut row = what.to_vec();
        row.extend(wellread_report::row![
            ("mode", "train"),
            ("run", run),
            ("steps", 12),
            ("batches_ahead", ahead),
            ("data_wait_fraction", share + 1e-4 * run as f64)
        ]);
        table.push(row);
    }
    table
}

/// Rounds of `tiff`, which is twice as fast as `parquet`, without workers, with further columns.
#[cfg(test)]
pub(crate) fn two_formats(runs: usize, more: &[(&str, f64)]) -> Table {
    loader_table([("tiff", 200.0), ("parquet", 100.0)].map(|(format, rate)| {
        let mut what = wellread_report::row![("format", format), ("batch_size", 4), ("workers", 0)];
        what.extend(
            more.iter().map(|(name, value)| ((*name).to_owned(), wellread_report::Cell::from(*value))),
        );
        (what, vec![rate; runs])
    }))
}

#[cfg(test)]
mod sentences;
#[cfg(test)]
mod tests;
