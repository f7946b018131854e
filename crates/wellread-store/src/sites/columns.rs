//! Columns beside sites: plate, well, site and what else the names or a table say.

use crate::features::SITE;
use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray};
use std::sync::Arc;

/// Words for no number in a column of numbers, as in tables of cells.
const NO_NUMBER: [&str; 6] = ["NA", "N/A", "NaN", "nan", "null", "None"];

/// The type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Whole,
    Number,
}

/// A column, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextColumn {
    pub name: String,
    /// A value for each site.
    pub values: Vec<Option<String>>,
    kind: Kind,
}

impl TextColumn {
    /// A column of text.
    pub fn new(name: &str, values: Vec<Option<String>>) -> Self {
        Self { name: name.to_owned(), values, kind: Kind::Text }
    }

    /// As numbers, where all values are whole ones; else as text. Digits of a plate's barcode are no number.
    pub fn into_numbers(mut self) -> Self {
        let is_number = self.values.iter().any(Option::is_some)
            && self.values.iter().flatten().all(|value| value.parse::<i64>().is_ok());
        self.kind = if is_number { Kind::Whole } else { Kind::Text };
        self
    }

    /// As whole or other numbers, where all values are such and none is a code (`01`); else as text: as tables of cells have it.
    pub fn typed(mut self) -> Self {
        let mut numbers = self.values.iter().flatten().filter(|value| is_some(value)).peekable();
        let has_some = numbers.peek().is_some();
        let (mut is_whole, mut is_number) = (true, true);
        for value in numbers {
            is_number = is_number && !is_code(value) && value.parse::<f64>().is_ok();
            is_whole = is_whole && value.parse::<i64>().is_ok();
        }
        self.kind = match (has_some && is_number, is_whole) {
            (true, true) => Kind::Whole,
            (true, false) => Kind::Number,
            (false, _) => Kind::Text,
        };
        self
    }

    /// The column of these sites only.
    pub fn of(&self, sites: &[usize]) -> Self {
        let values = sites.iter().map(|&site| self.values.get(site).cloned().flatten()).collect();
        Self { name: self.name.clone(), values, kind: self.kind }
    }

    /// As Arrow has it.
    pub fn array(&self) -> ArrayRef {
        let values = self.values.iter().map(Option::as_deref);
        match self.kind {
            Kind::Text => Arc::new(values.collect::<StringArray>()),
            Kind::Whole => Arc::new(values.map(|value| value?.parse::<i64>().ok()).collect::<Int64Array>()),
            Kind::Number => {
                let number = |value: Option<&str>| value.filter(|value| is_some(value))?.parse::<f64>().ok();
                Arc::new(values.map(number).collect::<Float64Array>())
            }
        }
    }
}

/// Whether a value of a column of numbers is one.
fn is_some(value: &str) -> bool {
    !NO_NUMBER.contains(&value)
}

/// Whether digits are a code rather than a number.
fn is_code(value: &str) -> bool {
    let digits = value.trim_start_matches('-');
    digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The columns with sites as numbers, as CellProfiler has them.
pub(super) fn numbered(columns: Vec<TextColumn>) -> Vec<TextColumn> {
    let number = |column: TextColumn| if column.name == SITE { column.into_numbers() } else { column };
    columns.into_iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type};

    #[test]
    fn columns_of_tables_have_the_narrowest_type() {
        let of = |values: [&str; 2]| {
            let values = values.iter().map(|&value| Some(value.to_owned()).filter(|value| !value.is_empty()));
            TextColumn::new("Metadata_Dose", values.collect()).typed()
        };
        assert_eq!(of(["0", "-3"]).array().as_primitive::<Int64Type>().values(), &[0, -3]);
        let doses = of(["0.5", "NA"]).array();
        assert_eq!((doses.as_primitive::<Float64Type>().value(0), doses.is_null(1)), (0.5, true));
        assert!(of(["", "2"]).array().is_null(0));
        for text in [["01", "2"], ["A01", "2"], ["NA", "nan"]] {
            assert_eq!(of(text).array().as_string::<i32>().value(0), text[0]);
        }
    }

    #[test]
    fn sites_are_numbers_where_all_are() {
        let column = |name: &str, values: [&str; 2]| {
            TextColumn::new(name, values.iter().map(|&value| Some(value.to_owned())).collect())
        };
        let columns = numbered(vec![column(SITE, ["01", "10"]), column("Metadata_Plate", ["01", "10"])]);
        assert_eq!(columns[0].array().as_primitive::<Int64Type>().values(), &[1, 10]);
        assert_eq!(columns[1].array().as_string::<i32>().value(0), "01");
        let mixed = numbered(vec![column(SITE, ["1", "a"])]);
        assert_eq!(mixed[0].of(&[1]).array().as_string::<i32>().value(0), "a");
        assert!(mixed[0].of(&[7]).array().is_null(0));
    }
}
