//! The images that a loader's cache keeps, their cost, and the number of reads it serves: columns of the data-loader
//! benchmark, and its findings.

use crate::core::judge::Judge;
use crate::core::series::{Series, by_median, series, telling_batch_size};
use crate::core::words::{number, percent};
use wellread_loader::CacheReport;
use wellread_measure::samples::median;
use wellread_report::number::Unit;
use wellread_report::{Finding, Severity, Table};

/// The content of a cache after an epoch, and its counts in that epoch.
pub(crate) fn columns(before: &CacheReport, after: &CacheReport) -> [(&'static str, f64); 4] {
    [
        ("cache_bytes", after.bytes as f64),
        ("cache_images", after.images as f64),
        ("cache_hits", after.hits.saturating_sub(before.hits) as f64),
        ("cache_misses", after.misses.saturating_sub(before.misses) as f64),
    ]
}

/// The unit of the rates of a table: crops, where it has several of each image.
pub(super) fn counted_per_s(table: &Table, judge: &Judge) -> String {
    if table.column("crops").is_some() { "crops/s".to_owned() } else { judge.per_second() }
}

/// The policies of `--loader-cache`, each with its best number of workers, and its cost.
pub(crate) fn finding(table: &Table, judge: &Judge) -> Option<Finding> {
    let batch = telling_batch_size(table)?;
    let is_batch = |r: usize| table.f64("batch_size", r) == Some(batch);
    let all = series(table, &["cache", "workers"], "samples_per_sec", is_batch);
    // The first format that was measured.
    let format = all.first()?.format.clone();
    let keep = |r: usize| is_batch(r) && table.str("format", r) == Some(format.as_str());
    let mut best: Vec<Series> = Vec::new();
    for s in by_median(all).into_iter().filter(|s| s.format == format) {
        if !best.iter().any(|b| parts(b).0 == parts(&s).0) {
            best.push(s);
        }
    }
    if table.distinct("cache").iter().all(|policy| policy.text() == "none") {
        return None;
    }
    let each = best.iter().map(|s| {
        let (policy, workers) = parts(s);
        let interval = judge.interval(&s.values, number);
        let rows = |r: usize| {
            keep(r) && table.str("cache", r) == Some(policy) && table.cell("workers", r).text() == workers
        };
        let cost = cost(table, policy, rows).map_or(String::new(), |cost| format!(", {cost}"));
        let threads = crate::core::words::workers(workers);
        format!("{policy} {}{interval} {} ({threads}){cost}", number(s.median()), counted_per_s(table, judge))
    });
    let what = if best.len() == 1 { "The cache" } else { "Caches" };
    let text = format!("{what} for {format}, in later epochs: {}", each.collect::<Vec<_>>().join("; "));
    Some(Finding::new(
        Severity::Info,
        text,
        "The columns cache_bytes, cache_images, cache_hits and cache_misses have the content and the use of each.",
    ))
}

/// The policy and the number of workers that a series is of.
fn parts(series: &Series) -> (&str, &str) {
    series.label.split_once(' ').unwrap_or((&series.label, "0"))
}

/// The images that a policy keeps and their cost in some rows, in words; `None` for one that keeps nothing.
fn cost(table: &Table, policy: &str, rows: impl Fn(usize) -> bool) -> Option<String> {
    let value = |column: &str| {
        let values: Vec<f64> =
            (0..table.rows()).filter(|&r| rows(r)).filter_map(|r| table.f64(column, r)).collect();
        median(&values)
    };
    let (images, bytes) = (value("cache_images")?, value("cache_bytes")?);
    let place = if policy.starts_with("file") { "a mapped file" } else { "memory" };
    let (hits, misses) = (value("cache_hits")?, value("cache_misses")?);
    let share = if hits + misses > 0.0 { percent(hits / (hits + misses)) } else { "no".to_owned() };
    let noun = if images == 1.0 { "image" } else { "images" };
    Some(format!("keeps {images:.0} {noun} in {} of {place}, {share} hits", Unit::Bytes.format(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_report::{Cell, row};

    #[test]
    fn each_policy_is_told_with_what_it_keeps_and_costs() {
        let mut table = Table::new("dataloader");
        let kept = |of: bool, value: f64| if of { Cell::from(value) } else { Cell::Null };
        for run in 0..3 {
            for (cache, rate, keeps) in
                [("none", 100.0, false), ("lru:1MiB", 300.0, true), ("file", 200.0, true)]
            {
                table.push(row![
                    ("format", "tiff"),
                    ("batch_size", 4),
                    ("workers", 2),
                    ("cache", cache),
                    ("run", run),
                    ("samples_per_sec", rate),
                    ("num_samples", 100.0),
                    ("cache_bytes", kept(keeps, 2e6)),
                    ("cache_images", kept(keeps, 50.0)),
                    ("cache_hits", kept(keeps, 75.0)),
                    ("cache_misses", kept(keeps, 25.0))
                ]);
            }
        }
        let text = finding(&table, &Judge::new(0, None)).unwrap().text.replace('\u{a0}', " ");
        assert!(text.contains("keeps 50 images in 2.00 MB of memory, 75.0 % hits"), "{text}");
        assert!(text.contains("keeps 50 images in 2.00 MB of a mapped file, 75.0 % hits"), "{text}");
        let last = text.rsplit("; ").next().unwrap();
        assert!(last.starts_with("none 100") && !last.contains("keeps"), "{text}");
    }

    #[test]
    fn a_format_that_failed_is_not_the_one_that_is_told() {
        let mut table = Table::new("dataloader");
        table.push(row![("format", "lance"), ("cache", "memory"), ("batch_size", 4), ("status", "failed")]);
        table.push(row![
            ("format", "tiff"),
            ("batch_size", 4),
            ("workers", 2),
            ("cache", "memory"),
            ("num_samples", 100.0),
            ("samples_per_sec", 300.0)
        ]);
        let text = finding(&table, &Judge::new(0, None)).unwrap().text;
        assert!(text.starts_with("The cache for tiff, in later epochs: memory 300"), "{text}");
    }

    #[test]
    fn hits_and_misses_are_those_of_the_epoch() {
        let before = CacheReport { bytes: 10, images: 1, hits: 5, misses: 7 };
        let after = CacheReport { bytes: 20, images: 2, hits: 9, misses: 8 };
        let values = columns(&before, &after).map(|(_, value)| value);
        assert_eq!(values, [20.0, 2.0, 4.0, 1.0]);
    }
}
