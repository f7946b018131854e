//! The configurations of two tables side by side: keys, and the measurements of a quantity.
//!
//! ```text
//!  Table of A ─┐  keys, quantities ─▶ rows with the same keys ─▶ Measured: costs by run and process, or an interval
//!  Table of B ─┴─────────────────────────────────────────────────────────────────▶ Pair: one or both of these
//! ```

use crate::results::{PROCESS, UsageError};
use anyhow::{Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use wellread_measure::intervals::Interval;
use wellread_measure::intervals::Method;
use wellread_report::columns::{self, Better, Quantity};
use wellread_report::{Cell, Table};

/// Texts that tell no configurations apart: versions and remarks.
const NOT_KEYS: &[&str] = &["backend", "device_name", "processors", "reference", "wellread", "data_dir"];

/// The default quantity of a table: the first of these that it has.
const DEFAULT_QUANTITIES: &[&str] = &[
    "seconds",
    "latency_p50_s",
    "step_p50_s",
    "torch_p50_s",
    "samples_per_sec",
    "images_per_sec",
    "images_per_s",
    "reads_per_s",
    "throughput_ips",
    "p50_s",
    "full_training_s",
    "full_prediction_s",
];

/// The facts of one configuration on one side. Everything is a cost: of rates, the inverse.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The quantity as it is shown: median of the samples, or the figure of a summary.
    pub value: f64,
    /// Raw values, one per run, as costs.
    pub samples: Vec<f64>,
    /// The same by run, where the table numbers them.
    pub runs: Vec<i64>,
    /// The process that each was measured in ([`crate::results::PROCESS`]); of one process all the same.
    pub processes: Vec<i64>,
    /// The 95 % interval of a summary, as costs; without raw values only.
    pub interval: Option<Interval>,
    /// Why nothing may be concluded of it.
    pub problem: Option<String>,
}

impl Measured {
    /// The samples of each process.
    pub fn by_process(&self) -> Vec<Vec<f64>> {
        let mut groups: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for (process, sample) in self.processes.iter().zip(&self.samples) {
            groups.entry(*process).or_default().push(*sample);
        }
        groups.into_values().collect()
    }
}

/// One configuration of both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Names and values of the keys, empty ones left out.
    pub key: Vec<(String, String)>,
    /// The baseline; `None` where it lacks the configuration.
    pub a: Option<Measured>,
    /// The candidate.
    pub b: Option<Measured>,
}

/// The keys of two tables, which are those of both, and remarks on those that only one has.
pub fn keys(a: &Table, b: &Table) -> Vec<String> {
    let of = |table| -> Vec<&str> {
        columns::keys(table).into_iter().filter(|key| !NOT_KEYS.contains(key)).collect()
    };
    let (of_a, of_b) = (of(a), of(b));
    let mut keys: Vec<String> = of_a.iter().map(|key| (*key).to_owned()).collect();
    keys.extend(of_b.iter().filter(|key| !of_a.contains(key)).map(|key| (*key).to_owned()));
    // A key that one side lacks tells nothing apart as long as the other has one value of it only: versions add keys.
    keys.retain(|key| {
        let name = key.as_str();
        (of_a.contains(&name) && of_b.contains(&name))
            || a.distinct(name).len() > 1
            || b.distinct(name).len() > 1
    });
    keys
}

/// The quantities of two tables that are compared: those asked for, or the headline.
///
/// # Errors
/// A [`UsageError`] of a quantity asked for that cannot be judged.
pub fn quantities(a: &Table, b: &Table, wanted: &[String]) -> Result<Vec<Quantity>> {
    let of_b: BTreeSet<String> = columns::quantities(b).into_iter().map(|q| q.column).collect();
    let both: Vec<Quantity> =
        columns::quantities(a).into_iter().filter(|q| of_b.contains(&q.column)).collect();
    let judged = |q: &&Quantity| q.better != Better::Neither;
    if wanted.iter().any(|name| name == "all") {
        return Ok(both.iter().filter(judged).cloned().collect());
    }
    if wanted.is_empty() {
        let headline = DEFAULT_QUANTITIES.iter().find_map(|name| both.iter().find(|q| q.column == *name));
        return Ok(headline.or_else(|| both.iter().find(judged)).cloned().into_iter().collect());
    }
    if let Some(neither) = both.iter().find(|q| wanted.contains(&q.column) && q.better == Better::Neither) {
        bail!(UsageError(format!(
            "{} of {} is neither better when less nor when more; it cannot be judged",
            neither.column,
            a.name()
        )));
    }
    Ok(both.into_iter().filter(|q| wanted.contains(&q.column)).collect())
}

/// The names of the quantities of these tables that can be judged.
pub fn names<'t>(tables: impl Iterator<Item = &'t Table>) -> String {
    let judged = tables.flat_map(columns::quantities).filter(|q| q.better != Better::Neither);
    let names: BTreeSet<String> = judged.map(|q| q.column).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// A configuration of one side: the texts of its keys, what was measured, and whether anything was.
type OneSide = (Vec<String>, Measured, bool);

/// The configurations of both tables, in the order of A, then those that B alone has. A row that could not be measured may
/// lack keys that a measurement alone tells, such as the device. It stands for all that agree in those it has.
pub fn pairs(a: &Table, b: &Table, keys: &[String], quantity: &Quantity) -> Vec<Pair> {
    let names: Vec<&str> = keys.iter().map(String::as_str).collect();
    let read = |table: &Table| -> Vec<OneSide> {
        let groups = table.groups(&names).into_iter();
        // Compared as texts: a number that one side wrote as text is the same configuration.
        let sides = groups.map(|g| {
            let missing = g.rows.iter().all(|&row| table.unavailable(row).is_some());
            let key: Vec<String> = g.key.iter().map(Cell::text).collect();
            (key, measured(table, &g.rows, quantity), missing)
        });
        sides.collect()
    };
    let (of_a, of_b) = (read(a), read(b));
    let has = |side: &[OneSide], key: &[String]| side.iter().any(|(other, ..)| other == key);
    let other_of = |side: &[OneSide], (key, _, missing): &OneSide| {
        let exact = side.iter().find(|(other, ..)| other == key);
        let found = exact.or_else(|| side.iter().find(|other| !missing && other.2 && agrees(&other.0, key)));
        found.map(|(_, measured, _)| measured.clone())
    };
    // It is no configuration of its own beside those that it stands for.
    let stands_for_others = |(key, _, missing): &OneSide, own: &[OneSide], other: &[OneSide]| {
        let is_measured =
            |(found, _, other_missing): &OneSide| !other_missing && agrees(key, found) && !has(own, found);
        *missing && !has(other, key) && other.iter().any(is_measured)
    };
    let named = |key: Vec<String>| {
        keys.iter().cloned().zip(key).filter(|(_, value)| !value.is_empty()).collect::<Vec<_>>()
    };
    let mut pairs: Vec<Pair> = Vec::new();
    for one in of_a.iter().filter(|one| !stands_for_others(one, &of_a, &of_b)) {
        pairs.push(Pair { key: named(one.0.clone()), a: Some(one.1.clone()), b: other_of(&of_b, one) });
    }
    for one in of_b.iter().filter(|one| !has(&of_a, &one.0) && !stands_for_others(one, &of_b, &of_a)) {
        pairs.push(Pair { key: named(one.0.clone()), a: other_of(&of_a, one), b: Some(one.1.clone()) });
    }
    pairs
}

/// Whether a row that was not measured is of this configuration, in all keys that it has.
fn agrees(missing: &[String], key: &[String]) -> bool {
    missing.iter().zip(key).all(|(value, of)| value.is_empty() || value == of)
}

fn measured(table: &Table, rows: &[usize], quantity: &Quantity) -> Measured {
    let cost = |value: f64| if quantity.better == Better::Higher { value.recip() } else { value };
    let mut out = Measured { value: f64::NAN, ..Measured::default() };
    if let Some(reason) = rows.iter().find_map(|&row| table.unavailable(row)) {
        out.problem = Some(format!("not measured ({reason})"));
    }
    if rows.iter().any(|&row| table.cell("verified", row) == Cell::Bool(false)) {
        out.problem = Some("delivered pixels that differ from the expected ones".to_owned());
    }
    let mut refused = 0;
    let mut values = Vec::new();
    for &row in rows {
        match table.f64(&quantity.column, row) {
            Some(value) if value > 0.0 && value.is_finite() => {
                values.push(value);
                out.samples.push(cost(value));
                // A number per run, or the order of the rows.
                out.runs.push(table.f64("run", row).map_or(out.runs.len() as i64, |run| run as i64));
                out.processes.push(table.f64(PROCESS, row).map_or(0, |process| process as i64));
            }
            Some(_) => refused += 1,
            None => (),
        }
    }
    if refused > 0 {
        let reason =
            format!("{refused} of {} values of {} are no positive numbers", rows.len(), quantity.column);
        out.problem.get_or_insert(reason);
    }
    let Some(estimate) = table.estimate(&quantity.column, rows) else {
        out.problem.get_or_insert_with(|| format!("has no {}", quantity.column));
        return out;
    };
    out.value = estimate.value;
    if let ([_], wellread_report::IntervalKind::Confidence) = (&values[..], estimate.interval) {
        // A rate's slowest is its lowest.
        let (x, y) = (cost(estimate.low), cost(estimate.high));
        let interval = Interval {
            estimate: cost(estimate.value),
            low: x.min(y),
            high: x.max(y),
            confidence: 0.95,
            n: 1,
            method: Method::Given,
        };
        let usable = interval.low > 0.0 && interval.high.is_finite();
        out.interval = usable.then_some(interval);
        out.samples.clear();
        out.runs.clear();
        out.processes.clear();
    }
    out
}

/// The values of two sides in the runs that both have.
pub(crate) fn by_run(a: &Measured, b: &Measured) -> (Vec<f64>, Vec<f64>) {
    let other = |run: &i64| b.runs.iter().position(|other| other == run).map(|at| b.samples[at]);
    a.runs.iter().zip(&a.samples).filter_map(|(run, value)| Some((*value, other(run)?))).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_report::row;

    fn table(rows: &[(&str, i64, f64)]) -> Table {
        let mut table = Table::new("dataloader");
        for (run, (format, workers, rate)) in rows.iter().enumerate() {
            table.push(row![
                ("format", *format),
                ("workers", *workers),
                ("run", run),
                ("samples_per_sec", *rate)
            ]);
        }
        table
    }

    #[test]
    fn configurations_are_matched_by_their_keys() {
        let a = table(&[("tiff", 0, 10.0), ("tiff", 0, 12.0), ("tiff", 2, 20.0)]);
        let mut b = table(&[("tiff", 2, 25.0), ("lance", 0, 5.0)]);
        b.push(row![
            ("format", "tiff"),
            ("workers", "0"),
            ("samples_per_sec", f64::NAN),
            ("backend", "new 2.0")
        ]);
        let keys = keys(&a, &b);
        assert_eq!(keys, ["format", "workers"]);
        let quantity = quantities(&a, &b, &[]).unwrap().remove(0);
        assert_eq!(quantity.column, "samples_per_sec");
        let pairs = pairs(&a, &b, &keys, &quantity);
        assert_eq!(pairs.len(), 3);
        let first = pairs[0].a.as_ref().unwrap();
        assert_eq!((first.value, first.samples.clone()), (11.0, vec![0.1, 1.0 / 12.0]));
        let problem = pairs[0].b.as_ref().unwrap().problem.clone().unwrap();
        assert!(problem.contains("1 of 1 values") && problem.contains("samples_per_sec"), "{problem}");
        assert!(pairs[1].a.is_some() && pairs[1].b.is_some());
        assert!(pairs[2].a.is_none() && pairs[2].key[0].1 == "lance");
    }

    /// The device is known once a framework has opened a model.
    #[test]
    fn a_row_that_one_side_could_not_measure_stands_for_those_that_agree_in_its_keys() {
        let of = |devices: &[&str]| {
            let mut table = Table::new("inference");
            for device in devices {
                table.push(row![("framework", "jax"), ("device", *device), ("latency_p50_s", 1.0)]);
            }
            table
        };
        let a = of(&["cpu", "cuda"]);
        let mut b = of(&[]);
        b.push(row![("framework", "jax"), ("status", "failed"), ("reason", "no jax")]);
        b.push(row![("framework", "candle"), ("status", "failed"), ("reason", "no model")]);
        let quantity = columns::quantity("latency_p50_s");
        let told = |x: &Table, y: &Table| {
            let keys = keys(x, y);
            let told = pairs(x, y, &keys, &quantity).into_iter().map(|pair| {
                let names: Vec<String> = pair.key.into_iter().map(|(_, value)| value).collect();
                let problem = |side: Option<Measured>| side.map(|of| of.problem.unwrap_or_default());
                (names.join(" "), problem(pair.a), problem(pair.b))
            });
            told.collect::<Vec<_>>()
        };
        let why = |reason: &str| Some(format!("not measured (failed: {reason})"));
        let (fine, cpu, cuda) = (Some(String::new()), "jax cpu".to_owned(), "jax cuda".to_owned());
        let expected = [
            (cpu.clone(), fine.clone(), why("no jax")),
            (cuda.clone(), fine.clone(), why("no jax")),
            ("candle".to_owned(), None, why("no model")),
        ];
        assert_eq!(told(&a, &b), expected);
        let expected = [
            ("candle".to_owned(), why("no model"), None),
            (cpu, why("no jax"), fine.clone()),
            (cuda, why("no jax"), fine),
        ];
        assert_eq!(told(&b, &a), expected);
    }

    #[test]
    fn a_key_that_a_later_version_added_is_left_out_where_it_tells_nothing_apart() {
        let a = table(&[("tiff", 0, 10.0)]);
        let mut b = Table::new("dataloader");
        b.push(row![("format", "tiff"), ("workers", 0), ("threads", 4), ("samples_per_sec", 9.0)]);
        assert_eq!(keys(&a, &b), ["format", "workers"]);
        b.push(row![("format", "tiff"), ("workers", 0), ("threads", 8), ("samples_per_sec", 9.0)]);
        assert_eq!(keys(&a, &b), ["format", "workers", "threads"]);
    }

    #[test]
    fn a_summary_has_an_interval_in_place_of_samples() {
        let mut t = Table::new("dataloader");
        t.push(row![
            ("format", "tiff"),
            ("samples_per_sec", 10.0),
            ("samples_per_sec_ci_low", 8.0),
            ("samples_per_sec_ci_high", 20.0)
        ]);
        let quantity = columns::quantity("samples_per_sec");
        let found = measured(&t, &[0], &quantity);
        let interval = found.interval.unwrap();
        assert_eq!((interval.low, interval.high, found.samples.len()), (0.05, 0.125, 0));
    }

    #[test]
    fn quantities_are_those_asked_for() {
        let mut t = Table::new("dataset");
        t.push(row![("format", "a"), ("p50_s", 1.0), ("samples_per_sec", 1.0), ("jump", 1.0), ("loss", 2.0)]);
        let names = |wanted: &[&str]| -> Result<Vec<String>> {
            let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
            Ok(quantities(&t, &t, &wanted)?.into_iter().map(|q| q.column).collect())
        };
        assert_eq!(names(&[]).unwrap(), ["samples_per_sec"]);
        assert_eq!(names(&["p50_s"]).unwrap(), ["p50_s"]);
        assert_eq!(names(&["all"]).unwrap(), ["p50_s", "samples_per_sec", "jump"]);
        assert!(names(&["loss"]).unwrap_err().to_string().contains("cannot be judged"));
        assert!(names(&["other"]).unwrap().is_empty());
        assert_eq!(super::names([&t].into_iter()), "jump, p50_s, samples_per_sec");
    }
}
