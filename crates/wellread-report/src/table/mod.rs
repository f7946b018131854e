//! Result tables: one row per configuration and run, columns that appear as rows bring them.
//!
//! ```text
//!  row![("format", "parquet"), ("p50_s", 1.2e-3)] ──push──▶ Table ──▶ results/dataset.parquet · .csv · .json
//!                                                           │  ▲
//!                                          figures, report ◀┘  └── Table::read_parquet
//! ```
//!
//! A value that a row does not have is null. The order of the columns is the order of their first appearance,
//! also after writing and reading.

mod estimate;
mod files;
pub mod samples;

pub use estimate::{Estimate, Group, IntervalKind};
pub use samples::{FOLDER as SAMPLES_FOLDER, Samples};

use serde_json::Value;

/// Integers up to this magnitude are the same number as floats.
const EXACT: u64 = 1 << 53;

/// One value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    Null,
    /// A float; may be NaN or infinite.
    F64(f64),
    /// An integer.
    I64(i64),
    /// True or false.
    Bool(bool),
    /// Text.
    Str(String),
}

impl Cell {
    /// The value as a number, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::F64(v) => Some(*v),
            Self::I64(v) => Some(*v as f64),
            _ => None,
        }
    }

    /// The value as text, without quotes; empty when null.
    pub fn text(&self) -> String {
        match self {
            Self::Null => String::new(),
            Self::F64(v) => v.to_string(),
            Self::I64(v) => v.to_string(),
            Self::Bool(v) => v.to_string(),
            Self::Str(v) => v.clone(),
        }
    }

    /// The value as JSON; NaN and infinities, which JSON does not have, are null.
    pub fn json(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::F64(v) => Value::from(*v),
            Self::I64(v) => Value::from(*v),
            Self::Bool(v) => Value::from(*v),
            Self::Str(v) => Value::from(v.as_str()),
        }
    }
}

macro_rules! cell_from {
    ($($from:ty => |$v:ident| $to:expr;)*) => {$(
        impl From<$from> for Cell {
            fn from($v: $from) -> Self {
                $to
            }
        }
    )*};
}

cell_from! {
    f64 => |v| Cell::F64(v);
    f32 => |v| Cell::F64(f64::from(v));
    i64 => |v| Cell::I64(v);
    i32 => |v| Cell::I64(i64::from(v));
    u32 => |v| Cell::I64(i64::from(v));
    u16 => |v| Cell::I64(i64::from(v));
    u8 => |v| Cell::I64(i64::from(v));
    // Integers beyond 64 bits signed (seeds, hashes) keep every digit as text.
    u64 => |v| i64::try_from(v).map_or_else(|_| Cell::Str(v.to_string()), Cell::I64);
    usize => |v| Cell::from(v as u64);
    bool => |v| Cell::Bool(v);
    &str => |v| Cell::Str(v.to_owned());
    &String => |v| Cell::Str(v.clone());
    String => |v| Cell::Str(v);
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(v: Option<T>) -> Self {
        v.map_or(Cell::Null, Into::into)
    }
}

/// A row before it joins a table: column names with values, in order.
pub type Row = Vec<(String, Cell)>;

/// A [`Row`] of `(name, value)` pairs; values are anything that converts into a [`Cell`], options included.
///
/// ```
/// let mut table = wellread_report::Table::new("dataset");
/// table.push(wellread_report::row![("format", "parquet"), ("run", 0), ("p50_s", 1.2e-3), ("note", None::<&str>)]);
/// assert_eq!(table.f64("p50_s", 0), Some(1.2e-3));
/// ```
#[macro_export]
macro_rules! row {
    ($(($name:expr, $value:expr)),* $(,)?) => {
        vec![$((::std::string::String::from($name), $crate::Cell::from($value))),*]
    };
}

/// The values of a column: one type, each value may be missing.
#[derive(Clone, Debug)]
pub enum Values {
    /// Floats.
    F64(Vec<Option<f64>>),
    /// Integers.
    I64(Vec<Option<i64>>),
    /// Booleans.
    Bool(Vec<Option<bool>>),
    /// Text.
    Str(Vec<Option<String>>),
}

impl PartialEq for Values {
    /// Equal type and values; NaN equals NaN of the same bits, so that "read back" can be compared.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::F64(a), Self::F64(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.map(f64::to_bits) == b.map(f64::to_bits))
            }
            (Self::I64(a), Self::I64(b)) => a == b,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Str(a), Self::Str(b)) => a == b,
            _ => false,
        }
    }
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::F64(v) => v.len(),
            Self::I64(v) => v.len(),
            Self::Bool(v) => v.len(),
            Self::Str(v) => v.len(),
        }
    }

    fn get(&self, row: usize) -> Cell {
        match self {
            Self::F64(v) => v.get(row).copied().flatten().map_or(Cell::Null, Cell::F64),
            Self::I64(v) => v.get(row).copied().flatten().map_or(Cell::Null, Cell::I64),
            Self::Bool(v) => v.get(row).copied().flatten().map_or(Cell::Null, Cell::Bool),
            Self::Str(v) => v.get(row).cloned().flatten().map_or(Cell::Null, Cell::Str),
        }
    }

    fn push_null(&mut self) {
        match self {
            Self::F64(v) => v.push(None),
            Self::I64(v) => v.push(None),
            Self::Bool(v) => v.push(None),
            Self::Str(v) => v.push(None),
        }
    }

    fn all_null(&self) -> bool {
        match self {
            Self::F64(v) => v.iter().all(Option::is_none),
            Self::I64(v) => v.iter().all(Option::is_none),
            Self::Bool(v) => v.iter().all(Option::is_none),
            Self::Str(v) => v.iter().all(Option::is_none),
        }
    }

    /// Appends `cell`, changing the column's type where it must to keep the value exactly.
    fn push(&mut self, cell: Cell) {
        match (&mut *self, cell) {
            (_, Cell::Null) => self.push_null(),
            (Self::F64(v), Cell::F64(x)) => v.push(Some(x)),
            (Self::I64(v), Cell::I64(x)) => v.push(Some(x)),
            (Self::Bool(v), Cell::Bool(x)) => v.push(Some(x)),
            (Self::Str(v), Cell::Str(x)) => v.push(Some(x)),
            (Self::Str(v), x) => v.push(Some(x.text())),
            (Self::F64(v), Cell::I64(x)) if x.unsigned_abs() <= EXACT && v.iter().any(Option::is_some) => {
                v.push(Some(x as f64));
            }
            (Self::I64(v), Cell::F64(x)) if v.iter().flatten().all(|i| i.unsigned_abs() <= EXACT) => {
                let mut wide: Vec<_> = v.iter().map(|i| i.map(|i| i as f64)).collect();
                wide.push(Some(x));
                *self = Self::F64(wide);
            }
            (_, x) => {
                let n = self.len();
                *self = if self.all_null() {
                    match x {
                        Cell::F64(_) => Self::F64(vec![None; n]),
                        Cell::I64(_) => Self::I64(vec![None; n]),
                        Cell::Bool(_) => Self::Bool(vec![None; n]),
                        Cell::Str(_) | Cell::Null => Self::Str(vec![None; n]),
                    }
                } else {
                    let text = |row| Some(self.get(row)).filter(|c| *c != Cell::Null).map(|c| c.text());
                    Self::Str((0..n).map(text).collect())
                };
                self.push(x);
            }
        }
    }
}

/// A named column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    name: String,
    values: Values,
}

impl Column {
    /// The column's name, such as `p50_s`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its values.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Whether no row has a value.
    pub fn is_empty(&self) -> bool {
        self.values.all_null()
    }
}

/// A result table: see the [module](self).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    name: String,
    columns: Vec<Column>,
    rows: usize,
}

impl Table {
    /// An empty table; `name` is the name of its files, such as `dataset`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Appends a row, such as one made by [`row!`](crate::row). New names become new columns at the end; of a
    /// name given twice the last value counts. A column whose values do not fit one type keeps each of them
    /// exactly: integers among floats become floats, anything else becomes text.
    pub fn push<N: Into<String>>(&mut self, row: impl IntoIterator<Item = (N, Cell)>) {
        let mut cells: Vec<Cell> = vec![Cell::Null; self.columns.len()];
        for (name, cell) in row {
            let name = name.into();
            if let Some(at) = self.columns.iter().position(|c| c.name == name) {
                cells[at] = cell;
            } else {
                self.columns.push(Column { name, values: Values::F64(vec![None; self.rows]) });
                cells.push(cell);
            }
        }
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.values.push(cell);
        }
        // A row of nothing is no row as long as there is no column to hold its nulls.
        self.rows += usize::from(!self.columns.is_empty());
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same table under another name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The columns, in order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// The value at a row; null where there is no such column or row.
    pub fn cell(&self, name: &str, row: usize) -> Cell {
        self.column(name).map_or(Cell::Null, |c| c.values.get(row))
    }

    /// The value at a row as a number, if it is one.
    pub fn f64(&self, name: &str, row: usize) -> Option<f64> {
        self.cell(name, row).as_f64()
    }

    /// The value at a row as text, if the column is text.
    pub fn str(&self, name: &str, row: usize) -> Option<&str> {
        match &self.column(name)?.values {
            Values::Str(v) => v.get(row)?.as_deref(),
            _ => None,
        }
    }

    /// The row as JSON object, every column named.
    pub fn row_json(&self, row: usize) -> Value {
        self.columns
            .iter()
            .map(|c| (c.name.clone(), c.values.get(row).json()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_keep_their_order_and_missing_values_are_null() {
        let mut t = Table::new("t");
        t.push(row![("b", 1), ("a", "x")]);
        t.push(row![("a", "y"), ("c", true)]);
        t.push(row![("b", None::<i64>), ("c", false), ("c", true)]);
        let names: Vec<_> = t.columns().iter().map(Column::name).collect();
        assert_eq!(names, ["b", "a", "c"]);
        assert_eq!(t.column("b").unwrap().values(), &Values::I64(vec![Some(1), None, None]));
        assert_eq!(t.column("c").unwrap().values(), &Values::Bool(vec![None, Some(true), Some(true)]));
        assert_eq!(t.cell("nothing", 0), Cell::Null);
        assert_eq!(t.cell("a", 99), Cell::Null);
    }

    #[test]
    fn mixed_types_keep_every_value() {
        let mut t = Table::new("t");
        t.push(row![("n", 1), ("m", i64::MAX), ("u", u64::MAX), ("late", None::<bool>)]);
        t.push(row![("n", 2.5), ("m", 0.5), ("u", 3u64), ("late", "z")]);
        t.push(row![("n", 7), ("m", "x"), ("u", true), ("late", 1.5)]);
        assert_eq!(t.column("n").unwrap().values(), &Values::F64(vec![Some(1.0), Some(2.5), Some(7.0)]));
        assert_eq!(t.str("m", 0), Some("9223372036854775807"));
        assert_eq!(t.str("u", 0), Some("18446744073709551615"));
        assert_eq!(t.str("late", 2), Some("1.5"));
        assert_eq!(t.cell("late", 0), Cell::Null);
    }
}
