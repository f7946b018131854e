//! From rows to estimates: rows of one configuration, the median of their values and how far to trust it.

use super::{Cell, Table};
use std::collections::{HashMap, HashSet};
use wellread_measure::compare::MIN_SAMPLES;
use wellread_measure::intervals::IntervalEstimator;
use wellread_measure::samples::median_in_place;

/// Where the ends of an [`Estimate`]'s interval come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalKind {
    /// One run, or no spread known.
    None,
    /// Smallest and largest of the runs, which are too few for an interval.
    Range,
    /// The 95 % interval: of the columns `Q_ci_low` and `Q_ci_high`, else of the median of the runs.
    Confidence,
}

/// A quantity of one configuration: the median over its runs, with an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Median over the runs.
    pub value: f64,
    /// Lower end of the interval; `value` itself when there is none.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// The kind of interval.
    pub interval: IntervalKind,
    /// Number of runs with a value.
    pub n: usize,
}

impl Estimate {
    /// A value without an interval.
    pub fn exact(value: f64) -> Self {
        Self { value, low: value, high: value, interval: IntervalKind::None, n: 1 }
    }

    /// The estimate with every number multiplied by `k`.
    pub fn scaled(self, k: f64) -> Self {
        Self { value: self.value * k, low: self.low * k, high: self.high * k, ..self }
    }
}

/// The rows of one configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Values of the key columns, in the order asked for.
    pub key: Vec<Cell>,
    /// Row numbers, ascending.
    pub rows: Vec<usize>,
}

/// The value of a cell as it is told from others: all NaN are one, and so are the two zeros.
#[derive(PartialEq, Eq, Hash)]
enum Identity {
    Null,
    F64(u64),
    I64(i64),
    Bool(bool),
    Str(String),
}

impl Identity {
    fn of(cell: &Cell) -> Self {
        match cell {
            Cell::Null => Self::Null,
            Cell::F64(v) if v.is_nan() => Self::F64(f64::NAN.to_bits()),
            // Minus zero and zero are zero.
            Cell::F64(v) => Self::F64((v + 0.0).to_bits()),
            Cell::I64(v) => Self::I64(*v),
            Cell::Bool(v) => Self::Bool(*v),
            Cell::Str(v) => Self::Str(v.clone()),
        }
    }
}

impl Table {
    /// Groups the rows by the values of `keys`; groups in order of first appearance.
    pub fn groups(&self, keys: &[&str]) -> Vec<Group> {
        let mut groups: Vec<Group> = vec![];
        let mut numbers: HashMap<Vec<Identity>, usize> = HashMap::new();
        for row in 0..self.rows() {
            let key: Vec<_> = keys.iter().map(|k| self.cell(k, row)).collect();
            let number = *numbers.entry(key.iter().map(Identity::of).collect()).or_insert(groups.len());
            match groups.get_mut(number) {
                Some(group) => group.rows.push(row),
                None => groups.push(Group { key, rows: vec![row] }),
            }
        }
        groups
    }

    /// The estimate of `quantity` over `rows`: the median over the runs. The interval comes from the columns
    /// `QUANTITY_ci_low` and `QUANTITY_ci_high` where they have values (medians of them, should the rows
    /// differ). Else it is the 95 % interval of the median, which findings state too. Fewer than
    /// [`MIN_SAMPLES`] runs have their range. Runs of one same value, as one run, have no interval. `None` when no row has a
    /// finite value.
    pub fn estimate(&self, quantity: &str, rows: &[usize]) -> Option<Estimate> {
        let finite = |name: &str| -> Vec<f64> {
            rows.iter().filter_map(|&r| self.f64(name, r)).filter(|v| v.is_finite()).collect()
        };
        let mut values = finite(quantity);
        let n = values.len();
        let value = median_in_place(&mut values)?;
        let mut lows = finite(&format!("{quantity}_ci_low"));
        let mut highs = finite(&format!("{quantity}_ci_high"));
        let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high, interval) = match (median_in_place(&mut lows), median_in_place(&mut highs)) {
            (Some(low), Some(high)) if low <= high => (low, high, IntervalKind::Confidence),
            // One number in all runs, such as a limit or the memory of the warm-up, was not measured in each.
            _ if smallest == largest => (value, value, IntervalKind::None),
            _ if n >= MIN_SAMPLES => {
                let found = IntervalEstimator::default().median(&values)?;
                (found.low, found.high, IntervalKind::Confidence)
            }
            _ => (smallest, largest, IntervalKind::Range),
        };
        Some(Estimate { value, low, high, interval, n })
    }

    /// Distinct values of a column in order of first appearance, nulls left out.
    pub fn distinct(&self, name: &str) -> Vec<Cell> {
        let mut seen: HashSet<Identity> = HashSet::new();
        let cells = (0..self.rows()).map(|row| self.cell(name, row));
        cells.filter(|cell| *cell != Cell::Null && seen.insert(Identity::of(cell))).collect()
    }

    /// Why the configuration at `row` could not be measured, if it could not: its `status` is `unavailable`
    /// (or `failed`), with the text of `reason`.
    pub fn unavailable(&self, row: usize) -> Option<String> {
        let status = self.str("status", row)?;
        if !matches!(status, "unavailable" | "failed") {
            return None;
        }
        let reason = self.str("reason", row).filter(|r| !r.trim().is_empty()).unwrap_or("no reason recorded");
        Some(format!("{status}: {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row;

    #[test]
    fn medians_ranges_and_given_intervals() {
        let mut t = Table::new("t");
        for (run, v) in [3.0, 1.0, f64::NAN, 2.0, 4.0].into_iter().enumerate() {
            t.push(row![
                ("format", "tiff"),
                ("run", run),
                ("x", v),
                ("y", v),
                ("y_ci_low", 0.5),
                ("y_ci_high", 9.0)
            ]);
        }
        t.push(row![("format", "lance"), ("status", "unavailable"), ("reason", "not built in")]);
        let groups = t.groups(&["format"]);
        assert_eq!(groups.len(), 2);
        let x = t.estimate("x", &groups[0].rows).unwrap();
        assert_eq!((x.value, x.low, x.high, x.n, x.interval), (2.5, 1.0, 4.0, 4, IntervalKind::Range));
        let y = t.estimate("y", &groups[0].rows).unwrap();
        assert_eq!((y.low, y.high, y.interval), (0.5, 9.0, IntervalKind::Confidence));
        assert_eq!(t.estimate("x", &groups[1].rows), None);
        assert_eq!(t.unavailable(5).as_deref(), Some("unavailable: not built in"));
        assert_eq!(t.unavailable(0), None);
        assert_eq!(t.distinct("format").len(), 2);
    }

    #[test]
    fn groups_and_values_come_in_the_order_of_their_first_appearance() {
        let mut t = Table::new("t");
        for (format, x) in [("b", 0.0), ("a", f64::NAN), ("b", -0.0), ("c", 2.0), ("a", f64::NAN)] {
            t.push(row![("format", format), ("x", x)]);
        }
        let groups = t.groups(&["format", "x"]);
        let rows: Vec<_> = groups.iter().map(|group| group.rows.as_slice()).collect();
        assert_eq!(rows, [&[0, 2][..], &[1, 4], &[3]]);
        assert_eq!(groups[2].key, [Cell::from("c"), Cell::from(2.0)]);
        assert_eq!(t.distinct("format"), ["b", "a", "c"].map(Cell::from));
        assert_eq!(t.distinct("x").len(), 3);
    }

    #[test]
    fn shares_of_a_rate_have_the_interval_of_the_rate() {
        let rates = [241.0, 383.0, 347.0, 300.0, 380.0, 346.0, 350.0];
        let given = IntervalEstimator::seeded(7).median(&rates).unwrap();
        let mut t = Table::new("dataloader");
        for (run, rate) in rates.into_iter().enumerate() {
            t.push(row![
                ("run", run),
                ("samples_per_sec", rate),
                ("samples_per_sec_ci_low", given.low),
                ("samples_per_sec_ci_high", given.high),
                // Nobody computed an interval of what was divided by a limit.
                ("share_of_limit", rate / 1000.0),
                ("limit_read_per_s", 1000.0)
            ]);
        }
        let all: Vec<usize> = (0..7).collect();
        let rate = t.estimate("samples_per_sec", &all).unwrap();
        let share = t.estimate("share_of_limit", &all).unwrap();
        assert_eq!((share.value, share.n, share.interval), (0.347, 7, IntervalKind::Confidence));
        assert!((share.low - rate.low / 1000.0).abs() < 1e-12, "{share:?}, {rate:?}");
        assert!((share.high - rate.high / 1000.0).abs() < 1e-12, "{share:?}, {rate:?}");
        assert!(0.241 < share.low && share.high < 0.383, "no smallest and largest run: {share:?}");
        let limit = t.estimate("limit_read_per_s", &all).unwrap();
        assert_eq!((limit.value, limit.n, limit.interval), (1000.0, 7, IntervalKind::None));
        let two = t.estimate("limit_read_per_s", &all[..2]).unwrap();
        assert_eq!((two.low, two.high, two.interval), (1000.0, 1000.0, IntervalKind::None));
        // Six runs are enough for one, and five are not.
        assert_eq!(t.estimate("share_of_limit", &all[..6]).unwrap().interval, IntervalKind::Confidence);
        let few = t.estimate("share_of_limit", &all[..5]).unwrap();
        assert_eq!((few.low, few.high, few.interval), (0.241, 0.383, IntervalKind::Range));
    }
}
