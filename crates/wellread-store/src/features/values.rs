//! The values of a column in one of the types that every engine takes.

use super::text;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, StringArray};
use arrow_buffer::i256;
use arrow_schema::{ArrowError, DataType};
use arrow_select::take::{TakeOptions, take};
use std::sync::Arc;

/// The values themselves in place of a dictionary of them. Text of any kind comes as plain strings, decimals of any width as those
/// of 128 bits. Other columns stay as they are.
///
/// # Errors
/// Keys that are not in their dictionary, decimals that are too large.
pub(super) fn plain_values(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match column.data_type() {
        DataType::Dictionary(_, _) => {
            let dictionary = column.as_any_dictionary();
            // The keys of a damaged file may lead anywhere.
            let options = TakeOptions { check_bounds: true };
            plain_values(&take(dictionary.values(), dictionary.keys(), Some(options))?)
        }
        DataType::LargeUtf8 | DataType::Utf8View => {
            let strings = (0..column.len()).map(|i| text(column, i));
            Ok(Arc::new(strings.collect::<StringArray>()))
        }
        DataType::Decimal32(precision, scale) => {
            let numbers = column.as_primitive::<Decimal32Type>();
            of_128_bits(numbers, |number| Some(i128::from(number)), (*precision, *scale))
        }
        DataType::Decimal64(precision, scale) => {
            let numbers = column.as_primitive::<Decimal64Type>();
            of_128_bits(numbers, |number| Some(i128::from(number)), (*precision, *scale))
        }
        DataType::Decimal256(precision, scale) => {
            let numbers = column.as_primitive::<Decimal256Type>();
            of_128_bits(numbers, i256::to_i128, (*precision, *scale))
        }
        _ => Ok(Arc::clone(column)),
    }
}

/// Decimals of another width as those of 128 bits.
fn of_128_bits<T: ArrowPrimitiveType>(
    numbers: &PrimitiveArray<T>,
    narrow: impl Fn(T::Native) -> Option<i128>,
    (precision, scale): (u8, i8),
) -> Result<ArrayRef, ArrowError> {
    let too_large = || ArrowError::CastError("a decimal has more than 38 digits".to_owned());
    let numbers =
        numbers.try_unary::<_, Decimal128Type, ArrowError>(|number| narrow(number).ok_or_else(too_large))?;
    Ok(Arc::new(numbers.with_precision_and_scale(precision, scale)?))
}

/// The row and the value of the first number that has more digits than its type says. `HUGEINT` of DuckDB has up to 39, and comes
/// as a decimal of 38: no other reader takes such a number.
pub(super) fn too_long(column: &ArrayRef) -> Option<(usize, String)> {
    let numbers = column.as_primitive_opt::<Decimal128Type>()?;
    let end = 10u128.checked_pow(u32::from(numbers.precision()))?;
    let is_too_long = |number: Option<i128>| number.is_some_and(|number| number.unsigned_abs() >= end);
    let row = numbers.iter().position(is_too_long)?;
    let (number, scale) = (numbers.value(row), numbers.scale());
    let number = if scale == 0 { number.to_string() } else { format!("{number}e-{scale}") };
    Some((row, number))
}

/// A decimal with its point, as 0.50; `None` in columns of other types.
pub(super) fn decimal_at(column: &ArrayRef, row: usize) -> Option<String> {
    match column.data_type() {
        DataType::Decimal32(_, _) => Some(column.as_primitive::<Decimal32Type>().value_as_string(row)),
        DataType::Decimal64(_, _) => Some(column.as_primitive::<Decimal64Type>().value_as_string(row)),
        DataType::Decimal128(_, _) => Some(column.as_primitive::<Decimal128Type>().value_as_string(row)),
        DataType::Decimal256(_, _) => Some(column.as_primitive::<Decimal256Type>().value_as_string(row)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Int8Type;
    use arrow_array::{Decimal32Array, Decimal128Array, Decimal256Array, DictionaryArray, Int8Array};

    #[test]
    fn categories_become_their_values() {
        let words = DictionaryArray::<Int8Type>::from_iter([Some("x"), None, Some("y"), Some("x")]);
        let column: ArrayRef = Arc::new(words.slice(1, 3));
        let found = plain_values(&column).unwrap();
        let found: Vec<_> = found.as_string::<i32>().iter().collect();
        assert_eq!(found, [None, Some("y"), Some("x")]);
        // A null among the values, which are of another kind of text.
        let values: ArrayRef = Arc::new(arrow_array::LargeStringArray::from(vec![Some("z"), None]));
        let keys = Int8Array::from(vec![Some(1), Some(0), None]);
        let column: ArrayRef = Arc::new(DictionaryArray::new(keys, values));
        let found = plain_values(&column).unwrap();
        assert_eq!(found.as_string::<i32>().iter().collect::<Vec<_>>(), [None, Some("z"), None]);
    }

    #[test]
    fn decimals_have_128_bits() {
        let expected = |numbers: Vec<Option<i128>>| {
            Decimal128Array::from(numbers).with_precision_and_scale(5, 2).unwrap()
        };
        let narrow = Decimal32Array::from(vec![Some(-150), None]).with_precision_and_scale(5, 2).unwrap();
        let found = plain_values(&(Arc::new(narrow) as ArrayRef)).unwrap();
        assert_eq!(found.as_primitive::<Decimal128Type>(), &expected(vec![Some(-150), None]));
        let wide = |number: i256| -> ArrayRef {
            Arc::new(Decimal256Array::from(vec![number]).with_precision_and_scale(5, 2).unwrap())
        };
        let found = plain_values(&wide(i256::from_i128(-150))).unwrap();
        assert_eq!(found.as_primitive::<Decimal128Type>(), &expected(vec![Some(-150)]));
        assert!(plain_values(&wide(i256::MAX)).unwrap_err().to_string().contains("more than 38 digits"));
    }

    #[test]
    fn numbers_of_more_digits_than_their_type_are_found() {
        let column = |numbers: Vec<Option<i128>>, precision, scale| -> ArrayRef {
            let numbers = Decimal128Array::from(numbers);
            Arc::new(numbers.with_precision_and_scale(precision, scale).unwrap())
        };
        let nines = 10i128.pow(38) - 1;
        assert_eq!(too_long(&column(vec![Some(nines), None, Some(-nines)], 38, 0)), None);
        let found = too_long(&column(vec![None, Some(-nines - 1)], 38, 0));
        assert_eq!(found, Some((1, format!("-1{}", "0".repeat(38)))));
        assert_eq!(too_long(&column(vec![Some(999), Some(1000)], 3, 2)), Some((1, "1000e-2".to_owned())));
        assert_eq!(too_long(&(Arc::new(Int8Array::from(vec![100])) as ArrayRef)), None);
    }
}
