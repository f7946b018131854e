//! The answer in sentences, each computed from the tables with its uncertainty.
//!
//! Two formats are called different only when the 95 % interval of their ratio, paired by round, excludes 1.

use crate::{conversion, model_loop};
use wellread_measure::bootstrap::{Bootstrap, Interval, Pairing};
use wellread_measure::compare::MIN_SAMPLES;
use wellread_measure::samples::median;
use wellread_report::{Cell, Finding, Severity, Table};

/// Findings of all tables, most important first.
pub fn all(tables: &[Table], seed: u64) -> Vec<Finding> {
    let bootstrap = Bootstrap::seeded(seed);
    let table = |name: &str| tables.iter().find(|t| t.name() == name);
    let mut found = Vec::new();
    found.extend(table("dataloader").and_then(|t| fastest_loader(t, &bootstrap)));
    found.extend(table("loop").and_then(|t| waiting(t, &bootstrap)));
    found.extend(table("dataloader").and_then(|t| best_workers(t, &bootstrap)));
    found.extend(table("conversion").and_then(|t| tensor_path(t, &bootstrap)));
    found.extend(table("dataset").and_then(|t| single_images(t, &bootstrap)));
    found.extend(table("storage").and_then(smallest));
    found.extend(unavailable(tables));
    found
}

/// One configuration's value per run, in order of runs.
struct Series {
    format: String,
    label: String,
    values: Vec<f64>,
}

impl Series {
    fn median(&self) -> f64 {
        median(&self.values).unwrap_or(f64::NAN)
    }
}

/// Values of `column` per configuration of `keys`, for rows where `keep` holds.
fn series(table: &Table, keys: &[&str], column: &str, keep: impl Fn(usize) -> bool) -> Vec<Series> {
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
fn by_median(mut series: Vec<Series>) -> Vec<Series> {
    series.retain(|s| s.median().is_finite());
    series.sort_by(|a, b| b.median().total_cmp(&a.median()));
    series
}

fn ratio(a: &Series, b: &Series, bootstrap: &Bootstrap) -> Option<Interval> {
    let n = a.values.len().min(b.values.len());
    bootstrap.ratio_of_medians(&a.values[..n], &b.values[..n], Pairing::Paired)
}

/// Whether a ratio is above 1 beyond doubt: its interval excludes 1 and rests on enough rounds.
fn clearly_above_one(ratio: &Interval) -> bool {
    ratio.n >= MIN_SAMPLES && ratio.low > 1.0
}

/// What to say where the rounds are too few for a verdict.
fn too_few(ratio: &Interval) -> &'static str {
    if ratio.n < MIN_SAMPLES { " (too few rounds for a verdict: --repeats 7 or more gives one)" } else { "" }
}

/// `2.1 (2.0–2.3) times`
fn times(i: &Interval) -> String {
    format!("{} ({}–{}) times", number(i.estimate), number(i.low), number(i.high))
}

/// Three significant digits, with thousands separators.
fn number(v: f64) -> String {
    wellread_report::number::significant(v)
}

/// The largest of the column's values, for "at the largest batch".
fn largest(table: &Table, column: &str) -> Option<f64> {
    (0..table.rows()).filter_map(|r| table.f64(column, r)).reduce(f64::max)
}

fn fastest_loader(table: &Table, bootstrap: &Bootstrap) -> Option<Finding> {
    let batch = largest(table, "batch_size")?;
    // Each format with its own best number of workers.
    let all = series(table, &["workers"], "samples_per_sec", |r| table.f64("batch_size", r) == Some(batch));
    let mut best: Vec<Series> = Vec::new();
    for s in by_median(all) {
        if !best.iter().any(|b| b.format == s.format) {
            best.push(s);
        }
    }
    let first = best.first()?;
    let about =
        format!("{} images/s in batches of {batch} with {} workers", number(first.median()), first.label);
    let Some(second) = best.get(1) else {
        return Some(Finding::new(Severity::Info, format!("{} delivers {about}", first.format), ""));
    };
    let detail = best
        .iter()
        .map(|s| format!("{}: {} images/s ({} workers)", s.format, number(s.median()), s.label))
        .collect::<Vec<_>>()
        .join("; ");
    let compared = ratio(first, second, bootstrap)?;
    Some(if clearly_above_one(&compared) {
        Finding::new(
            Severity::Good,
            format!(
                "{} is the fastest format here: {about}, {} {}",
                first.format,
                times(&compared),
                second.format
            ),
            detail,
        )
    } else {
        Finding::new(
            Severity::Info,
            format!(
                "{} and {} cannot be told apart here: {about}; their ratio is {}{}",
                first.format,
                second.format,
                times(&compared),
                too_few(&compared)
            ),
            detail,
        )
    })
}

fn waiting(table: &Table, bootstrap: &Bootstrap) -> Option<Finding> {
    let mode = if (0..table.rows()).any(|r| table.str("mode", r) == Some("inference")) {
        "inference"
    } else {
        "train"
    };
    let all = series(table, &["model"], "data_wait_fraction", |r| table.str("mode", r) == Some(mode));
    let mut sorted = by_median(all);
    sorted.reverse();
    let (best, worst) = (sorted.first()?, sorted.last()?);
    let interval = |s: &Series| {
        bootstrap
            .median(&s.values)
            .map_or(String::new(), |i| format!(" ({:.1}–{:.1} %)", 100.0 * i.low, 100.0 * i.high))
    };
    let fraction = worst.median();
    let severity = if fraction < 0.3 {
        Severity::Good
    } else if fraction <= 0.5 {
        Severity::Caution
    } else {
        Severity::Bad
    };
    let verb = if mode == "train" { "training" } else { "inference" };
    Some(Finding::new(
        severity,
        format!(
            "In {verb} of {} a step waits for data {:.1} %{} of its time with {}, {:.1} %{} with {}",
            best.label,
            100.0 * best.median(),
            interval(best),
            best.format,
            100.0 * fraction,
            interval(worst),
            worst.format
        ),
        format!(
            "With {}: {}. This holds for the model named on this machine's CPU; a faster model or device waits more.",
            worst.format,
            model_loop::advice(fraction)
        ),
    ))
}

fn best_workers(table: &Table, bootstrap: &Bootstrap) -> Option<Finding> {
    let batch = largest(table, "batch_size")?;
    let all = series(table, &["workers"], "samples_per_sec", |r| table.f64("batch_size", r) == Some(batch));
    let sorted = by_median(all);
    let format = sorted.first()?.format.clone();
    let of_format: Vec<&Series> = sorted.iter().filter(|s| s.format == format).collect();
    let best = *of_format.first()?;
    let none = *of_format.iter().find(|s| s.label == "0")?;
    if best.label == "0" {
        return Some(Finding::new(
            Severity::Info,
            format!(
                "More worker threads do not help {format} here: 0 workers are fastest at batches of {batch}"
            ),
            "Starting threads and handing batches over costs more here than it saves; later epochs of one loader (--keep-open) need not start anew.",
        ));
    }
    let gain = ratio(best, none, bootstrap)?;
    Some(Finding::new(
        if clearly_above_one(&gain) { Severity::Good } else { Severity::Info },
        format!(
            "{} workers are best for {format}: {} the throughput without workers",
            best.label,
            times(&gain)
        ),
        format!("This machine has {} cores.", std::thread::available_parallelism().map_or(1, usize::from)),
    ))
}

fn tensor_path(table: &Table, bootstrap: &Bootstrap) -> Option<Finding> {
    let overhead = |path: &str| {
        by_median(series(table, &["path"], "conversion_overhead_pct", |r| table.str("path", r) == Some(path)))
    };
    let (copy, free) = (overhead("copy"), overhead("zero_copy"));
    let (worst, without) = (copy.first()?, free.first()?);
    let time = |path: &str| {
        series(table, &["path"], "torch_p50_s", |r| {
            table.str("path", r) == Some(path) && table.str("format", r) == Some(worst.format.as_str())
        })
        .pop()
    };
    let ratio = ratio(&time("copy")?, &time("zero_copy")?, bootstrap)?;
    let severity = if worst.median() < 10.0 {
        Severity::Good
    } else if worst.median() <= 30.0 {
        Severity::Info
    } else {
        Severity::Caution
    };
    Some(Finding::new(
        severity,
        format!(
            "Making a tensor by copy takes up to {:.1} % of an image's time ({}), without a copy {:.1} %; in all the copying path takes {} as long",
            worst.median(),
            worst.format,
            without.median(),
            times(&ratio)
        ),
        format!("Conversion by copy is {}.", conversion::advice(worst.median())),
    ))
}

fn single_images(table: &Table, bootstrap: &Bootstrap) -> Option<Finding> {
    let keep = |r: usize| {
        table.str("access", r) == Some("random")
            && table.str("transform", r) == Some("none")
            && table.str("cache", r) == Some("none")
    };
    let mut sorted = by_median(series(table, &["access"], "p50_s", keep));
    sorted.reverse();
    let (first, second) = (sorted.first()?, sorted.get(1)?);
    let compared = ratio(second, first, bootstrap)?;
    let detail = sorted
        .iter()
        .map(|s| format!("{}: {:.3} ms", s.format, 1e3 * s.median()))
        .collect::<Vec<_>>()
        .join("; ");
    let text = if clearly_above_one(&compared) {
        format!(
            "For single images at random {} is fastest: half of them within {:.3} ms; {} takes {} as long",
            first.format,
            1e3 * first.median(),
            second.format,
            times(&compared)
        )
    } else {
        format!(
            "For single images at random {} and {} cannot be told apart{}",
            first.format,
            second.format,
            too_few(&compared)
        )
    };
    Some(Finding::new(Severity::Info, text, detail))
}

fn smallest(table: &Table) -> Option<Finding> {
    let mut sorted = by_median(series(table, &["operation"], "bits_per_pixel", |r| {
        table.str("operation", r) == Some("open") && table.str("cache", r) == Some("warm")
    }));
    sorted.reverse();
    let first = sorted.first()?;
    let detail =
        sorted.iter().map(|s| format!("{}: {:.2} bits", s.format, s.median())).collect::<Vec<_>>().join("; ");
    Some(Finding::new(
        Severity::Info,
        format!("{} is smallest on disk: {:.2} bits per pixel", first.format, first.median()),
        detail,
    ))
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
