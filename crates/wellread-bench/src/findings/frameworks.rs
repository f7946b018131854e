//! The findings about frameworks: wellread beside its peers in the same framework, and beside itself in Rust.

use crate::choices::Framework;
use crate::conversion::python::{ALWAYS, NEVER};
use crate::core::judge::{Judge, Repeats};
use crate::core::series::{Series, by_median, in_python, series, telling_batch_size};
use crate::core::words::{number, percent, workers};
use crate::model_loop::thresholds::SMALL_SHARE;
use std::collections::BTreeMap;
use wellread_report::{Cell, Finding, Severity, Table};

/// Findings of all tables that have rows of frameworks.
pub(crate) fn all(tables: &[Table], noise: &BTreeMap<String, f64>, seed: u64, over: Repeats) -> Vec<Finding> {
    let mut found = Vec::new();
    for table in tables.iter().filter(|table| (0..table.rows()).any(|row| in_python(table, row))) {
        let judge = Judge::new(seed, noise.get(table.name()).copied()).over(over);
        let of_table = match table.name() {
            "dataloader" => loaders(table, &judge),
            "loop" => waiting(table, &judge),
            "conversion" => no_ops(table),
            _ => vec![],
        };
        found.extend(of_table.into_iter().map(|finding| judge.not_good(finding)));
    }
    found
}

fn frameworks(table: &Table) -> impl Iterator<Item = Framework> {
    let there = table.distinct("framework");
    Framework::ALL
        .iter()
        .copied()
        .filter(move |framework| *framework != Framework::Rust && there.contains(&Cell::from(*framework)))
}

/// The best number of workers of each loader, best loader first; [`Series::label`] is `loader workers`.
fn best_loaders(table: &Table, framework: Framework, format: &str, batch: f64) -> Vec<Series> {
    // As in the findings on this program: the first of several caches. Frameworks in Python have none.
    let cache = table.str("cache", 0).filter(|_| framework == Framework::Rust);
    let mut best: Vec<Series> = Vec::new();
    for s in by_median(series(table, &["loader", "workers"], "samples_per_sec", |r| {
        table.cell("framework", r) == framework.into()
            && table.str("cache", r) == cache
            && table.str("format", r) == Some(format)
            && table.f64("batch_size", r) == Some(batch)
    })) {
        if !best.iter().any(|b| loader_of(b) == loader_of(&s)) {
            best.push(s);
        }
    }
    best
}

/// The numbers of workers that a framework's loaders were measured with, all of them or one loader's, in ascending order.
fn measured_workers(table: &Table, framework: Framework, batch: f64, loader: Option<&str>) -> Vec<u64> {
    let of = |row: &usize| {
        table.cell("framework", *row) == framework.into()
            && table.f64("batch_size", *row) == Some(batch)
            && table.f64("samples_per_sec", *row).is_some()
            && loader.is_none_or(|loader| table.str("loader", *row) == Some(loader))
    };
    let rows = (0..table.rows()).filter(of);
    let mut all: Vec<u64> = rows.filter_map(|row| table.f64("workers", row)).map(|n| n as u64).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// These numbers of workers in words.
fn in_words(numbers: &[u64]) -> String {
    match numbers {
        [one] => workers(&one.to_string()),
        all => format!("{} workers", all.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

fn loader_of(series: &Series) -> &str {
    series.label.split(' ').next().unwrap_or_default()
}

/// For each framework and format: wellread beside the best of its peers, each with its best number of workers.
fn loaders(table: &Table, judge: &Judge) -> Vec<Finding> {
    let Some(batch) = telling_batch_size(table) else { return vec![] };
    let (mut found, unit) = (Vec::new(), judge.per_second());
    for framework in frameworks(table) {
        let mut lines = Vec::new();
        let mut severity = Severity::Good;
        let all = measured_workers(table, framework, batch, None);
        // A loader that was measured with fewer numbers of workers than others says so.
        let name = |s: &Series| {
            let own = measured_workers(table, framework, batch, Some(loader_of(s)));
            if own == all {
                loader_of(s).to_owned()
            } else {
                format!("{} (measured with {} alone)", loader_of(s), in_words(&own))
            }
        };
        for format in table.distinct("format") {
            let format = format.text();
            let best = best_loaders(table, framework, &format, batch);
            let peer = best.iter().find(|s| !loader_of(s).starts_with("wellread"));
            let own = best.iter().find(|s| loader_of(s) == "wellread");
            let rust = best_loaders(table, Framework::Rust, &format, batch);
            let beside = rust.first().zip(own.or(peer)).map_or_else(String::new, |(rust, here)| {
                format!(", {} of the Rust loader", percent(here.median() / rust.median()))
            });
            match (own, peer) {
                (Some(own), Some(peer)) => {
                    let ahead = own.median() >= peer.median();
                    let compared = if ahead { judge.compare(own, peer) } else { judge.compare(peer, own) };
                    let Some(compared) = compared else { continue };
                    if !ahead || !compared.is_clear() {
                        severity = Severity::Info;
                    }
                    let (first, second) = if ahead { (own, peer) } else { (peer, own) };
                    lines.push(format!(
                        "{format}: {} {} {unit}, {} {}{}{}{beside}",
                        name(first),
                        number(first.median()),
                        compared.times(),
                        name(second),
                        compared.by_rounds(first.median(), second.median(), &unit),
                        compared.no_verdict_reason()
                    ));
                }
                (Some(only), None) | (None, Some(only)) => {
                    let few = match judge.median(&only.values) {
                        Some(_) => String::new(),
                        None => format!("; {}", judge.too_few(only.values.len())),
                    };
                    lines.push(format!(
                        "{format}: {} {} {unit}{beside}{few}",
                        name(only),
                        number(only.median())
                    ));
                    severity = Severity::Info;
                }
                (None, None) => {}
            }
        }
        if !lines.is_empty() {
            let how = if all.len() == 1 {
                format!("with {}, the only number that was measured", in_words(&all))
            } else {
                format!("each loader with its best number of workers of those measured ({})", in_words(&all))
            };
            found.push(Finding::new(
                severity,
                format!("In {framework}, batches of {batch}, {how}: {}", lines.join("; ")),
                "Without --keep-open every epoch opens anew and starts its workers; with it these are later epochs of one loader.",
            ));
        }
    }
    found
}

/// For each framework: the share of a training step that waits for data, by loader.
fn waiting(table: &Table, judge: &Judge) -> Vec<Finding> {
    let about = |framework: Framework, mode: &str| {
        let mut shares = by_median(series(table, &["loader"], "data_wait_fraction", |r| {
            table.cell("framework", r) == framework.into() && table.str("mode", r) == Some(mode)
        }));
        shares.reverse();
        let (best, worst) = (shares.first()?, shares.last()?);
        let name = |s: &Series| format!("{} with {} ({})", percent(s.median()), s.label, s.format);
        let verb = if mode == "train" { "training" } else { mode };
        let model = table.distinct("model").first().map(Cell::text).unwrap_or_default();
        let range = if shares.len() == 1 { name(best) } else { format!("{}, {}", name(best), name(worst)) };
        let text = format!(
            "In {framework} a step of {verb} of {model} waits for data for this share of its time: {range}"
        );
        // Good news is what the interval of the slowest says too.
        let (severity, few) = match judge.median(&worst.values) {
            Some(interval) if interval.high < SMALL_SHARE => (Severity::Good, String::new()),
            Some(_) => (Severity::Info, String::new()),
            None => (Severity::Caution, format!("; {}", judge.too_few(worst.values.len()))),
        };
        Some(Finding::new(
            severity,
            text + &few,
            "The first batch and the model's first step, which compiles in JAX, are not counted.",
        ))
    };
    let modes = table.distinct("mode");
    frameworks(table).flat_map(|f| modes.iter().filter_map(move |mode| about(f, &mode.text()))).collect()
}

/// Conversions that copied nothing, by the addresses of array and tensor.
fn no_ops(table: &Table) -> Vec<Finding> {
    let mut lines = Vec::new();
    for framework in frameworks(table) {
        let (mut free, mut copying, mut sometimes) = (Vec::new(), Vec::new(), Vec::new());
        for path in table.distinct("path") {
            let rows = (0..table.rows())
                .filter(|&r| table.cell("framework", r) == framework.into() && table.cell("path", r) == path);
            let copied: Vec<&str> = rows.filter_map(|r| table.str("copied", r)).collect();
            let all = |how: &str| copied.iter().all(|copied| *copied == how);
            if !copied.is_empty() {
                let list = match (all(NEVER), all(ALWAYS)) {
                    (true, _) => &mut free,
                    (_, true) => &mut copying,
                    _ => &mut sometimes,
                };
                list.push(path.text());
            }
        }
        // Where none of a framework's conversions was measured, there is nothing to list.
        if free.is_empty() && copying.is_empty() && sometimes.is_empty() {
            continue;
        }
        let none = |list: Vec<String>| {
            if list.is_empty() { "none that was measured".to_owned() } else { list.join(", ") }
        };
        let sometimes = if sometimes.is_empty() {
            String::new()
        } else {
            format!("; sometimes: {}", sometimes.join(", "))
        };
        lines.push(format!("{framework}: without: {}; with: {}{sometimes}", none(free), none(copying)));
    }
    if lines.is_empty() {
        return vec![];
    }
    vec![Finding::new(
        Severity::Info,
        format!(
            "Conversions without and with a copy of the pixels, by the addresses of array and tensor: {}",
            lines.join(". ")
        ),
        "float_of_float32 is torch.from_numpy(float32).float(), which converts nothing.",
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversion::python::SOMETIMES;
    use crate::findings::loader_table;
    use wellread_report::row;

    fn table(rates: &[(&str, &str, i64, [f64; 6])]) -> Table {
        loader_table(rates.iter().map(|(framework, loader, workers, rates)| {
            let what = row![
                ("format", "tiff"),
                ("framework", *framework),
                ("loader", *loader),
                ("batch_size", 16),
                ("workers", *workers)
            ];
            (what, *rates)
        }))
    }

    fn all(tables: &[Table]) -> Vec<Finding> {
        super::all(tables, &BTreeMap::new(), 1, Repeats::rounds(1))
    }

    fn around(rate: f64) -> [f64; 6] {
        [1.0, 1.01, 0.99, 1.005, 1.002, 0.996].map(|k| k * rate)
    }

    #[test]
    fn wellread_stands_beside_the_best_peer_and_the_rust_loader() {
        let table = table(&[
            ("rust", "wellread", 2, around(1000.0)),
            ("pytorch", "wellread", 0, around(700.0)),
            ("pytorch", "wellread", 2, around(800.0)),
            ("pytorch", "tifffile", 0, around(50.0)),
            ("pytorch", "tifffile", 2, around(100.0)),
        ]);
        let found = all(std::slice::from_ref(&table));
        assert_eq!(found.len(), 1);
        let text = &found[0].text;
        assert!(text.starts_with("In pytorch, batches of 16"), "{text}");
        assert!(text.contains("wellread 801 images/s, 8") && text.contains("times tifffile"), "{text}");
        assert!(text.contains("80.0 % of the Rust loader"), "{text}");
        assert_eq!(found[0].severity, Severity::Good);
        // Findings about this program are as if nobody else had been measured.
        let own = crate::findings::all(&[table], &BTreeMap::new(), 1, Repeats::rounds(1));
        assert!(
            own[0].text.contains("images/s in batches of 16 with 2 workers")
                && own.iter().all(|f| !f.text.contains("801"))
        );
    }

    #[test]
    fn the_rust_loader_is_that_of_the_first_cache() {
        let rows =
            [("rust", Some("none"), 1000.0), ("rust", Some("memory"), 9000.0), ("pytorch", None, 800.0)];
        let table = loader_table(rows.map(|(framework, cache, rate)| {
            let mut what = row![("format", "tiff"), ("framework", framework), ("loader", "wellread")];
            what.extend(row![("batch_size", 16), ("workers", 2), ("cache", cache)]);
            (what, around(rate))
        }));
        let text = all(&[table]).remove(0).text;
        assert!(text.contains("80.0 % of the Rust loader"), "{text}");
    }

    #[test]
    fn the_numbers_of_workers_that_were_measured_are_told_and_so_are_few_rounds() {
        let mut one = Table::new("dataloader");
        for (framework, loader, rate) in [("rust", "wellread", 1300.0), ("pytorch", "tifffile", 181.0)] {
            one.push(row![
                ("format", "tiff"),
                ("framework", framework),
                ("loader", loader),
                ("batch_size", 16),
                ("workers", 0),
                ("run", 0),
                ("verified", true),
                ("num_samples", 100),
                ("samples_per_sec", rate)
            ]);
        }
        let text = all(&[one]).remove(0).text;
        assert!(
            text.contains("with no workers, the only number that was measured: tiff: tifffile 181 images/s"),
            "{text}"
        );
        assert!(text.contains("one round is too few") && !text.contains("best"), "{text}");
        let some = table(&[
            ("pytorch", "wellread", 0, around(700.0)),
            ("pytorch", "wellread", 2, around(800.0)),
            ("pytorch", "tifffile", 0, around(50.0)),
        ]);
        let text = all(&[some]).remove(0).text;
        assert!(text.contains("of those measured (0, 2 workers)"), "{text}");
        assert!(text.contains("times tifffile (measured with no workers alone)"), "{text}");
    }

    #[test]
    fn noisy_figures_are_no_good_news() {
        let rates =
            table(&[("pytorch", "wellread", 2, around(800.0)), ("pytorch", "tifffile", 2, around(100.0))]);
        let of = |noise: f64| {
            let noise = BTreeMap::from([("dataloader".to_owned(), noise)]);
            super::all(std::slice::from_ref(&rates), &noise, 1, Repeats::rounds(1)).remove(0).severity
        };
        assert_eq!((of(0.2), of(0.3)), (Severity::Good, Severity::Info));
    }

    #[test]
    fn a_peer_that_is_ahead_is_named_first() {
        let table = table(&[("jax", "wellread", 0, around(90.0)), ("jax", "pyarrow", 0, around(100.0))]);
        let found = all(&[table]);
        assert!(found[0].text.contains("tiff: pyarrow 100 images/s"), "{}", found[0].text);
        assert_eq!(found[0].severity, Severity::Info);
    }

    #[test]
    fn what_copied_nothing_is_listed() {
        let mut table = Table::new("conversion");
        // One path copied some images of a turn; another all images of one turn and none of another.
        let paths = [
            ("zero_copy", NEVER),
            ("copy", ALWAYS),
            ("dlpack", SOMETIMES),
            ("asarray", NEVER),
            ("asarray", ALWAYS),
        ];
        for (path, copied) in paths {
            table.push(row![
                ("format", "tiff"),
                ("framework", "pytorch"),
                ("path", path),
                ("copied", copied)
            ]);
        }
        let found = all(&[table]);
        assert!(
            found[0].text.ends_with("pytorch: without: zero_copy; with: copy; sometimes: dlpack, asarray"),
            "{}",
            found[0].text
        );
    }

    #[test]
    fn conversions_that_were_not_measured_are_no_finding() {
        let mut table = Table::new("conversion");
        let left_out = |framework: &str| {
            row![
                ("format", "tiff"),
                ("framework", framework),
                ("path", "copy"),
                ("status", "unavailable"),
                ("reason", "left out for want of time")
            ]
        };
        table.push(left_out("pytorch"));
        assert!(all(std::slice::from_ref(&table)).is_empty());
        table.push(left_out("jax"));
        table.push(row![("format", "tiff"), ("framework", "jax"), ("path", "dlpack"), ("copied", NEVER)]);
        let found = all(&[table]);
        assert_eq!(found.len(), 1);
        // It is not known whether one that was left out copies.
        let ending = "tensor: jax: without: dlpack; with: none that was measured";
        assert!(found[0].text.ends_with(ending), "{}", found[0].text);
    }
}
