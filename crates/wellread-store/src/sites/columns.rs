//! Columns beside sites: plate, well, site and what else the names or a table say.

use crate::features::SITE;
use arrow_array::{ArrayRef, Int64Array, StringArray};
use std::sync::Arc;

/// A column, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextColumn {
    pub name: String,
    /// A value for each site.
    pub values: Vec<Option<String>>,
    /// Whether all values are whole numbers that are meant as such.
    is_number: bool,
}

impl TextColumn {
    /// A column of text.
    pub fn new(name: &str, values: Vec<Option<String>>) -> Self {
        Self { name: name.to_owned(), values, is_number: false }
    }

    /// As numbers, where all values are whole ones; else as text. Digits of a plate's barcode are no number.
    pub fn into_numbers(mut self) -> Self {
        self.is_number = self.values.iter().any(Option::is_some)
            && self.values.iter().flatten().all(|value| value.parse::<i64>().is_ok());
        self
    }

    /// The column of these sites only.
    pub fn of(&self, sites: &[usize]) -> Self {
        let values = sites.iter().map(|&site| self.values.get(site).cloned().flatten()).collect();
        Self { name: self.name.clone(), values, is_number: self.is_number }
    }

    /// As Arrow has it.
    pub fn array(&self) -> ArrayRef {
        if self.is_number {
            let numbers = self.values.iter().map(|value| value.as_ref()?.parse::<i64>().ok());
            return Arc::new(numbers.collect::<Int64Array>());
        }
        Arc::new(self.values.iter().map(Option::as_deref).collect::<StringArray>())
    }
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
    use arrow_array::types::Int64Type;

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
