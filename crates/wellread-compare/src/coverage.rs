//! The configurations, rounds and steps that one of two results has measured and the other has not, or not as often. A
//! time budget, a failure or another version leaves them out.
//!
//! ```text
//!   tables of A, B ──series::keys──▶ configurations that were measured ─┬─▶ only in one
//!                                    rows, steps, samples of each ──────┴─▶ other counts
//! ```

use crate::Results;
use crate::provenance::{Difference, Weight};
use crate::series;
use crate::verdict::{first_of, name};
use std::collections::BTreeMap;
use wellread_report::Table;
use wellread_report::columns::is_derived;

/// Columns that say how much was measured for a figure, and their units.
const COUNTS: [(&str, &str); 3] =
    [("steps", "steps"), ("num_samples", "images of a run"), ("latency_samples", "passes")];

/// How much of one configuration was measured.
#[derive(Debug, Default)]
struct Measured {
    rows: usize,
    /// Least and most of each of [`COUNTS`], where there is any.
    counts: [Option<[f64; 2]>; COUNTS.len()],
}

/// Configurations that were measured, by the texts of their keys.
type Configurations = BTreeMap<Vec<String>, Measured>;

/// In which rows, and in how many samples, two results differ.
pub fn differences(a: &Results, b: &Results) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut push = |what: String, a: String, b: String| {
        found.push(Difference { what, a, b, weight: Weight::Caution });
    };
    let of_b = b.tables.iter().filter(|table| !is_derived(table.name()));
    for table_b in of_b.filter(|table| named(a, table.name()).is_none()) {
        push(table_b.name().to_owned(), "not measured".to_owned(), "measured".to_owned());
    }
    for table_a in a.tables.iter().filter(|table| !is_derived(table.name())) {
        let table = table_a.name();
        let Some(table_b) = named(b, table) else {
            push(table.to_owned(), "measured".to_owned(), "not measured".to_owned());
            continue;
        };
        let keys = series::keys(table_a, table_b);
        let (of_a, of_b) = (configurations(table_a, &keys), configurations(table_b, &keys));
        let (only_a, only_b) = (unmatched(&of_a, &of_b, &keys), unmatched(&of_b, &of_a, &keys));
        if !(only_a.is_empty() && only_b.is_empty()) {
            let said = |all: &Configurations, only: &[String]| format!("{}{}", all.len(), listed(only));
            push(format!("{table}: number of configurations"), said(&of_a, &only_a), said(&of_b, &only_b));
        }
        let both: Vec<_> = of_a.iter().filter_map(|(key, a)| Some((a, of_b.get(key)?))).collect();
        // A summary alone has medians, in a row each.
        let alike = table_a.column("run").is_some() == table_b.column("run").is_some();
        let rows = both.iter().filter(|(a, b)| alike && a.rows != b.rows);
        if let Some([a, b]) = ranges(rows.map(|(a, b)| [a, b].map(|of| [of.rows as f64; 2]))) {
            push(format!("{table}: rounds of a configuration"), a, b);
        }
        for (i, (_, what)) in COUNTS.iter().enumerate() {
            let counts = both.iter().filter_map(|(a, b)| Some([a.counts[i]?, b.counts[i]?]));
            if let Some([a, b]) = ranges(counts.filter(|[a, b]| a != b)) {
                push(format!("{table}: {what}"), a, b);
            }
        }
    }
    found
}

fn named<'r>(results: &'r Results, name: &str) -> Option<&'r Table> {
    results.tables.iter().find(|table| table.name() == name)
}

fn configurations(table: &Table, keys: &[String]) -> Configurations {
    let mut found = Configurations::new();
    for row in (0..table.rows()).filter(|&row| table.unavailable(row).is_none()) {
        let key = keys.iter().map(|key| table.cell(key, row).text()).collect();
        let of: &mut Measured = found.entry(key).or_default();
        of.rows += 1;
        for (range, (column, _)) in of.counts.iter_mut().zip(COUNTS) {
            if let Some(count) = table.f64(column, row) {
                let [least, most] = range.unwrap_or([count; 2]);
                *range = Some([least.min(count), most.max(count)]);
            }
        }
    }
    found
}

/// Names of the configurations that the other side lacks.
fn unmatched(of: &Configurations, other: &Configurations, keys: &[String]) -> Vec<String> {
    let only = of.keys().filter(|key| !other.contains_key(*key));
    only.map(|key| {
        let pairs = keys.iter().cloned().zip(key.iter().cloned());
        name(&pairs.filter(|(_, value)| !value.is_empty()).collect::<Vec<_>>())
    })
    .collect()
}

/// In brackets, the first few of those that one side alone has.
fn listed(only: &[String]) -> String {
    if only.is_empty() {
        return String::new();
    }
    format!(" ({} only here: {})", only.len(), first_of(only))
}

/// The least and the most of both sides in words; nothing where there is none.
fn ranges(pairs: impl Iterator<Item = [[f64; 2]; 2]>) -> Option<[String; 2]> {
    let joined = pairs.reduce(|[a, b], [c, d]| {
        let join = |[low, high]: [f64; 2], [least, most]: [f64; 2]| [low.min(least), high.max(most)];
        [join(a, c), join(b, d)]
    })?;
    Some(joined.map(|[low, high]| if low == high { low.to_string() } else { format!("{low} to {high}") }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_report::row;

    /// A side: rows of format, batch size and steps.
    fn side(rows: &[(&str, i64, i64)]) -> Results {
        let mut table = Table::new("loop");
        for (run, (format, batch_size, steps)) in rows.iter().enumerate() {
            table.push(row![
                ("format", *format),
                ("batch_size", *batch_size),
                ("run", run),
                ("steps", *steps),
                ("status", "ok"),
                ("images_per_sec", 10.0)
            ]);
        }
        Results { tables: vec![table], ..Results::default() }
    }

    fn said(a: &Results, b: &Results) -> Vec<[String; 3]> {
        differences(a, b).into_iter().map(|d| [d.what, d.a, d.b]).collect()
    }

    #[test]
    fn what_was_measured_by_one_alone_is_named() {
        let a = side(&[("tiff", 16, 8), ("tiff", 16, 8), ("lance", 16, 8)]);
        assert_eq!(said(&a, &a), Vec::<[String; 3]>::new());
        // Smaller batches, and fewer rounds.
        let b = side(&[("tiff", 2, 8), ("lance", 16, 8)]);
        let expected = [
            "loop: number of configurations",
            "2 (1 only here: tiff, batch size 16)",
            "2 (1 only here: tiff, batch size 2)",
        ];
        assert_eq!(said(&a, &b), [expected.map(str::to_owned)]);
        let b = side(&[("tiff", 16, 8), ("lance", 16, 3)]);
        let rounds = ["loop: rounds of a configuration", "2", "1"].map(str::to_owned);
        let steps = ["loop: steps", "8", "3"].map(str::to_owned);
        assert_eq!(said(&a, &b), [rounds, steps]);
        let none = ["loop", "measured", "not measured"].map(str::to_owned);
        assert_eq!(said(&a, &Results::default()), [none]);
    }
}
