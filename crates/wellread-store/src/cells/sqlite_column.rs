//! A column of a SQLite table, whose values may be of any type each: whole numbers, numbers or text, whichever holds them all. Whole
//! numbers that a float rounds are text where others are floats, as in [`text_columns`].

use crate::text_columns;
use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray};
use rusqlite::types::ValueRef;
use std::sync::Arc;

/// The values read so far.
#[derive(Debug)]
pub(super) enum Column {
    /// So many nulls, and nothing else.
    Nulls(usize),
    Whole(Vec<Option<i64>>),
    Real(Vec<Option<f64>>),
    Text(Vec<Option<String>>),
}

impl Column {
    /// Appends a value; text that stands for no value (`nan`) is null.
    ///
    /// # Errors
    /// Bytes, and text that is no UTF-8: what is wrong, in words.
    pub fn push(&mut self, value: ValueRef<'_>) -> Result<(), String> {
        match value {
            ValueRef::Null => self.push_null(),
            ValueRef::Integer(value) => self.push_whole(value),
            ValueRef::Real(value) => self.push_real(value),
            ValueRef::Text(bytes) => {
                let text = std::str::from_utf8(bytes).map_err(|e| format!("is no UTF-8 text: {e}"))?;
                match text_columns::value(text) {
                    Some(text) => self.push_text(text),
                    None => self.push_null(),
                }
            }
            ValueRef::Blob(_) => return Err("holds bytes, neither a number nor text".to_owned()),
        }
        Ok(())
    }

    /// As Arrow has it.
    pub fn finish(self) -> ArrayRef {
        match self {
            Self::Nulls(rows) => Arc::new(StringArray::new_null(rows)),
            Self::Whole(values) => Arc::new(Int64Array::from(values)),
            Self::Real(values) => Arc::new(Float64Array::from(values)),
            Self::Text(values) => Arc::new(StringArray::from(values)),
        }
    }

    fn push_null(&mut self) {
        match self {
            Self::Nulls(rows) => *rows += 1,
            Self::Whole(values) => values.push(None),
            Self::Real(values) => values.push(None),
            Self::Text(values) => values.push(None),
        }
    }

    fn push_whole(&mut self, value: i64) {
        match self {
            Self::Nulls(rows) => {
                let mut values = vec![None; *rows];
                values.push(Some(value));
                *self = Self::Whole(values);
            }
            Self::Whole(values) => values.push(Some(value)),
            Self::Real(values) if is_exact(value) => values.push(Some(value as f64)),
            Self::Real(_) => self.push_text(&value.to_string()),
            Self::Text(values) => values.push(Some(value.to_string())),
        }
    }

    fn push_real(&mut self, value: f64) {
        match self {
            Self::Nulls(rows) => {
                let mut values = vec![None; *rows];
                values.push(Some(value));
                *self = Self::Real(values);
            }
            Self::Whole(values) if values.iter().flatten().all(|&value| is_exact(value)) => {
                let mut wide: Vec<Option<f64>> =
                    values.iter().map(|value| value.map(|value| value as f64)).collect();
                wide.push(Some(value));
                *self = Self::Real(wide);
            }
            Self::Whole(_) => self.push_text(&value.to_string()),
            Self::Real(values) => values.push(Some(value)),
            Self::Text(values) => values.push(Some(value.to_string())),
        }
    }

    fn push_text(&mut self, text: &str) {
        let mut texts: Vec<Option<String>> = match self {
            Self::Text(values) => {
                values.push(Some(text.to_owned()));
                return;
            }
            Self::Nulls(rows) => vec![None; *rows],
            Self::Whole(values) => values.iter().map(|value| value.map(|value| value.to_string())).collect(),
            Self::Real(values) => values.iter().map(|value| value.map(|value| value.to_string())).collect(),
        };
        texts.push(Some(text.to_owned()));
        *self = Self::Text(texts);
    }
}

/// Whether a float has the value of a whole number.
fn is_exact(value: i64) -> bool {
    value as f64 as i128 == i128::from(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type};

    fn column(values: &[ValueRef<'_>]) -> ArrayRef {
        let mut column = Column::Nulls(0);
        for value in values {
            column.push(*value).unwrap();
        }
        column.finish()
    }

    #[test]
    fn a_column_is_of_the_type_that_holds_all_values() {
        use ValueRef::{Integer, Null, Real, Text};
        let whole = column(&[Null, Integer(3)]);
        assert!(whole.is_null(0) && whole.as_primitive::<Int64Type>().value(1) == 3);
        let real = column(&[Integer(3), Text(b"nan"), Real(0.5), Integer(4)]);
        let values: Vec<_> = real.as_primitive::<Float64Type>().iter().collect();
        assert_eq!(values, [Some(3.0), None, Some(0.5), Some(4.0)]);
        let text = column(&[Integer(1), Text(b"A01"), Real(0.5)]);
        let values: Vec<_> = text.as_string::<i32>().iter().collect();
        assert_eq!(values, [Some("1"), Some("A01"), Some("0.5")]);
        let nulls = column(&[Null, Null]);
        assert_eq!(nulls.len(), 2);
    }

    #[test]
    fn whole_numbers_that_a_float_rounds_are_text_beside_floats() {
        use ValueRef::{Integer, Null, Real};
        for large in [9_007_199_254_740_993, -9_007_199_254_740_993, i64::MAX] {
            let texts = |values: &[ValueRef<'_>]| -> Vec<Option<String>> {
                let column = column(values);
                column.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
            };
            let [large_text, half, three] = [large.to_string(), "0.5".into(), "3".into()].map(Some);
            let all = [half.clone(), three.clone(), None, large_text.clone()];
            assert_eq!(texts(&[Real(0.5), Integer(3), Null, Integer(large)]), all);
            assert_eq!(texts(&[Integer(large), Integer(3), Real(0.5)]), [large_text, three, half]);
        }
        let exact = column(&[Integer(i64::MIN), Real(0.5), Integer(1 << 53)]);
        let values: Vec<_> = exact.as_primitive::<Float64Type>().iter().flatten().collect();
        assert_eq!(values, [-9_223_372_036_854_775_808.0, 0.5, 9_007_199_254_740_992.0]);
    }

    #[test]
    fn bytes_and_damaged_text_are_refused() {
        let mut column = Column::Nulls(0);
        assert!(column.push(ValueRef::Blob(b"x")).unwrap_err().contains("holds bytes"));
        assert!(column.push(ValueRef::Text(b"\xff")).unwrap_err().contains("is no UTF-8 text"));
    }
}
