//! Rows by the values of some columns: what every join by key looks up.
//!
//! ```text
//!  columns of one side ─ Comparison ─▶ Index: key ▶ row, or two rows
//!  columns of the other ─ Comparison ─▶ find ─▶ its row, none, or two that it could be of
//! ```
//!
//! Whole numbers are the same as 1, 1.0 and "01", times in each unit. Texts beside texts are compared as they are. A row with a null or NaN among its values is found by no key.

use super::Comparison;
use arrow_array::ArrayRef;
use std::collections::HashMap;

/// Rows by their keys.
pub(crate) struct Index(HashMap<String, (usize, Option<usize>)>);

impl Index {
    /// The first `rows` rows of these columns, which have so many at least.
    pub fn new(columns: &[ArrayRef], compared: &Comparison, rows: usize) -> Self {
        let mut found: HashMap<String, (usize, Option<usize>)> = HashMap::with_capacity(rows);
        for row in 0..rows {
            let Some(key) = compared.key(columns, row) else { continue };
            found.entry(key).and_modify(|(_, second)| *second = second.or(Some(row))).or_insert((row, None));
        }
        Self(found)
    }

    /// The row of a key, where there is one; the first two rows of a key that several have, as an error.
    pub fn find(&self, key: &str) -> Result<Option<usize>, [usize; 2]> {
        match self.0.get(key) {
            Some((first, Some(second))) => Err([*first, *second]),
            Some((row, None)) => Ok(Some(*row)),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Float64Array, Int64Array, StringArray};
    use std::sync::Arc;

    #[test]
    fn rows_are_found_by_keys_however_numbers_are_written() {
        let wells: ArrayRef =
            Arc::new(StringArray::from(vec![Some("A01"), Some("A01"), None, Some("B02"), Some("B02")]));
        let sites: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 1, 3, 3]));
        let index = Index::new(&[wells, sites], &Comparison::default(), 5);
        let site: ArrayRef = Arc::new(StringArray::from(vec!["01", "2", "1", "003"]));
        let well: ArrayRef = Arc::new(StringArray::from(vec!["A01", "A01", "C", "B02"]));
        let columns = [well, site];
        let find = |row| index.find(&Comparison::default().key(&columns, row).unwrap());
        assert_eq!([find(0), find(1), find(2), find(3)], [Ok(Some(0)), Ok(Some(1)), Ok(None), Err([3, 4])]);
        let fields: ArrayRef =
            Arc::new(Float64Array::from(vec![Some(7.0), None, Some(f64::NAN), Some(f64::NAN)]));
        let index = Index::new(&[fields], &Comparison::default(), 4);
        assert_eq!([index.find("7"), index.find(""), index.find("NaN")], [Ok(Some(0)), Ok(None), Ok(None)]);
    }
}
