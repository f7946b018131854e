//! The facts of one side of a comparison, from any source: tables, the machine they were measured on, noise floors.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use wellread_report::Table;

/// Column that says which process a row was measured in. A folder of `bench --processes N` has N, each with one row per
/// configuration. A folder without is one process, whose rows are its rounds; each repeat of `tasks` is one.
pub const PROCESS: &str = "process";

/// The facts of one side of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// How it is called in messages: its path, or its revision.
    pub label: String,
    /// The tables.
    pub tables: Vec<Table>,
    /// Further facts: the keys of `summary.json`. Empty when nothing is.
    pub details: Map<String, Value>,
    /// Noise floor of each table as a share, where an A/A pair was measured.
    pub noise_floors: BTreeMap<String, f64>,
    /// Processes behind it, where they were counted ([`crate::sides::open`]); 0 elsewhere.
    pub processes: usize,
}

impl Results {
    /// A value of the details by its JSON pointer; null is none.
    pub fn detail(&self, pointer: &str) -> Option<&Value> {
        let mut keys = pointer.split('/').skip(1);
        let first = self.details.get(keys.next()?)?;
        keys.try_fold(first, |value, key| match value {
            Value::Array(list) => list.get(key.parse::<usize>().ok()?),
            value => value.get(key),
        })
        .filter(|value| !value.is_null())
    }

    /// Whether both are of one run: the same rows, measured at the same time or on the same things. A copy has other paths alone.
    pub fn is_same_run(&self, other: &Self) -> bool {
        // Rows of `bench` say when they were measured. Others may be of two nodes, which the details tell.
        let is_timed = self.tables.iter().any(|table| table.column("timestamp").is_some());
        (is_timed || self.details == other.details)
            && self.tables.len() == other.tables.len()
            && self.tables.iter().zip(&other.tables).all(|(a, b)| have_same_rows(a, b))
    }
}

/// Whether tables agree in all columns of all rows. As JSON, since NaN is no NaN's equal.
fn have_same_rows(a: &Table, b: &Table) -> bool {
    a.rows() == b.rows() && (0..a.rows()).all(|row| a.row_json(row) == b.row_json(row))
}
