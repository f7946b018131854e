//! Columns of several sets as one: by name, nulls where a part has none, numbers as what holds them all. A value that
//! would be rounded is an error, and so is one that contradicts the names of folders. A column that is nested in one part and plain
//! in another is an error, too.

use super::store::{Concat, Part};
use crate::features::ONLY_NULLS;
use crate::words::counted;
use crate::{Error, FeatureTable, LeftOut, Renamed, Result, Store, features};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array, new_null_array,
};
use arrow_schema::{DataType, Field, Schema};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError};
use wellread_image::ome_arrow::ROW_ID;

/// The next step where parts do not agree in a column.
const ONE_TYPE: &str = "give it one type in all parts, or leave it out of one";

impl FeatureTable for Concat {
    fn feature_names(&self) -> Vec<String> {
        self.names().to_vec()
    }

    fn columns_left_out(&self) -> Vec<LeftOut> {
        let mut seen: HashSet<String> = self.names().iter().cloned().collect();
        let all = self.parts().iter().flat_map(|part| part.store.hints().columns_left_out());
        all.filter(|column| seen.insert(column.name.clone())).collect()
    }

    /// Those of any part.
    fn columns_renamed(&self) -> Vec<Renamed> {
        let mut all: Vec<Renamed> = vec![];
        for renamed in self.parts().iter().flat_map(|part| part.store.hints().columns_renamed()) {
            if !all.contains(&renamed) {
                all.push(renamed);
            }
        }
        all
    }

    /// Those of this set, and of sets that are parts of it.
    fn columns_in_utc(&self) -> Vec<String> {
        let mut all = self.in_utc.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.extend(self.parts().iter().flat_map(|part| part.store.hints().columns_in_utc()));
        all.into_iter().collect()
    }

    /// Where all parts have such numbers.
    fn has_row_numbers(&self) -> bool {
        !self.names().iter().any(|name| name == ROW_ID)
            && self.parts().iter().all(|part| part.store.hints().has_row_numbers())
    }

    fn features(&self, names: &[String]) -> Result<Option<RecordBatch>> {
        if names.is_empty() || self.is_empty() {
            return Ok(None);
        }
        // For each column what each part has of it.
        let mut found: Vec<Vec<Option<ArrayRef>>> = vec![vec![]; names.len()];
        let mut left_out: Vec<(&Part, LeftOut)> = vec![];
        let is_lost = |column: &LeftOut| {
            column.why != ONLY_NULLS && !self.is_key(&column.name) && names.contains(&column.name)
        };
        for part in self.filled() {
            let mut there: HashSet<String> = part.store.hints().feature_names().into_iter().collect();
            // Numbers that go on from part to part count the rows of the first one.
            if part.store.hints().has_row_numbers() {
                there.insert(ROW_ID.to_owned());
            }
            let own: Vec<String> = names.iter().filter(|name| there.contains(*name)).cloned().collect();
            let batch = part.store.hints().features(&own)?;
            let rows = part.store.len();
            let others = part.store.hints().columns_left_out().into_iter();
            left_out.extend(others.filter(is_lost).map(|column| (part, column)));
            if let Some(batch) = batch.as_ref().filter(|batch| batch.num_rows() != rows) {
                let (there, images) = (counted(batch.num_rows(), "row"), counted(rows, "image"));
                return Err(Error::new(
                    part.store.path(),
                    format_args!("columns of {there} beside {images}"),
                ));
            }
            for (name, found) in names.iter().zip(&mut found) {
                let own = batch.as_ref().and_then(|batch| batch.column_by_name(name)).cloned();
                if let Some(own) = &own {
                    agrees_with_folders(part, name, own)?;
                }
                found.push(own);
            }
        }
        let (mut fields, mut columns) = (vec![], vec![]);
        for (name, parts) in names.iter().zip(&mut found) {
            let other = left_out.iter().find(|(_, column)| column.name == *name);
            if other.is_none() {
                self.fill_with_keys(name, parts);
            }
            let column = self.column(name, parts)?;
            if let Some((part, other)) = other {
                return Err(self.not_plain(part, other, parts));
            }
            fields.push(Field::new(name, column.data_type().clone(), true));
            columns.push(column);
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
            .map(Some)
            .map_err(|e| Error::new(self.path(), e))
    }
}

impl Concat {
    /// Puts the keys in names of folders in the place of a column, where parts lack it.
    fn fill_with_keys(&self, name: &str, found: &mut [Option<ArrayRef>]) {
        let types: Vec<DataType> = found.iter().flatten().map(|array| array.data_type().clone()).collect();
        for (part, array) in self.filled().zip(found).filter(|(_, array)| array.is_none()) {
            let key = part.keys.iter().find(|(key, _)| key == name);
            *array = key.and_then(|(_, value)| as_column(value.as_deref(), &types, part.store.len()));
        }
    }

    /// The error of a column that has plain values in `parts`, and in `part` values that are left out: these would become nulls.
    fn not_plain(&self, part: &Part, LeftOut { name, why }: &LeftOut, parts: &[Option<ArrayRef>]) -> Error {
        let plain =
            self.filled().zip(parts).find_map(|(part, array)| Some((part, array.as_ref()?.data_type())));
        let beside = plain.map_or_else(String::new, |(part, own)| format!(", and is {own} in {}", part.name));
        let cause = format_args!("the column {name:?} has {why} in {}{beside}", part.name);
        Error::new(self.path(), cause).column(name).hint(ONE_TYPE).choice()
    }

    /// One column of what the parts have of it. Times in seconds beside times in milliseconds become those: Parquet has no others.
    fn column(&self, name: &str, parts: &[Option<ArrayRef>]) -> Result<ArrayRef> {
        let mut types = parts.iter().flatten().map(Array::data_type);
        let first = types.next();
        if types.all(|of| Some(of) == first) {
            return self.column_of(name, parts);
        }
        let finer = |array: &ArrayRef| features::finer(array).unwrap_or_else(|| Arc::clone(array));
        let parts: Vec<_> = parts.iter().map(|array| array.as_ref().map(finer)).collect();
        self.column_of(name, &parts)
    }

    /// One column of what the parts have of it, in types as they are.
    fn column_of(&self, name: &str, parts: &[Option<ArrayRef>]) -> Result<ArrayRef> {
        let filled: Vec<&Part> = self.filled().collect();
        let mut common: Option<(DataType, usize)> = None;
        for (i, array) in parts.iter().enumerate() {
            let Some(array) = array else { continue };
            let own = array.data_type();
            let Some((before, first)) = common else {
                common = Some((own.clone(), i));
                continue;
            };
            let Some(both) = holding_both(&before, own) else {
                let [a, b] = [&filled[first].name, &filled[i].name];
                return Err(Error::new(
                    self.path(),
                    format_args!("the column {name:?} is {before} in {a}, and {own} in {b}"),
                )
                .column(name)
                .hint(ONE_TYPE)
                .choice());
            };
            common = Some((both, first));
        }
        let Some((mut wanted, _)) = common else {
            return Err(Error::new(self.path(), format_args!("has no column {name:?}")));
        };
        let mut types = parts.iter().flatten().map(Array::data_type);
        // One after the other, whole numbers without a sign would become those of 64 bits, which no type holds beside a sign.
        if let Some(all) = of_integers(types.clone()).filter(|_| types.clone().any(|of| *of != wanted)) {
            wanted = all;
        }
        if types.any(|of| *of != wanted && features::has_zone(of)) {
            self.in_utc.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        }
        if wanted == DataType::Float64 {
            for (part, array) in filled.iter().zip(parts) {
                let Some((array, value)) = array.as_ref().and_then(|a| Some((a, rounded(a)?))) else {
                    continue;
                };
                let own = array.data_type();
                let other = filled.iter().zip(parts).find_map(|(part, array)| {
                    let other = array.as_ref()?.data_type();
                    (other != own).then_some((&part.name, other))
                });
                let beside = other.map_or(String::new(), |(part, other)| format!(", and {other} in {part}"));
                return Err(Error::new(
                    self.path(),
                    format_args!(
                        "the column {name:?} is {own} in {}{beside}: Float64, which is for both, does not hold {value}",
                        part.name
                    ),
                )
                .column(name)
                .hint(ONE_TYPE)
                .choice());
            }
        }
        let whole = |(part, array): (&&Part, &Option<ArrayRef>)| match array {
            Some(array) => as_type(array, &wanted),
            None => new_null_array(&wanted, part.store.len()),
        };
        let arrays: Vec<ArrayRef> = filled.iter().zip(parts).map(whole).collect();
        let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
        arrow_select::concat::concat(&arrays)
            .map_err(|e| Error::new(self.path(), format_args!("the column {name:?}: {e}")).column(name))
    }
}

/// A key of a folder's name as a column, which has these types in other parts: text, or a number. `None` where it is none of theirs.
fn as_column(value: Option<&str>, types: &[DataType], rows: usize) -> Option<ArrayRef> {
    if types.iter().all(is_text) {
        return Some(Arc::new(std::iter::repeat_n(value, rows).collect::<StringArray>()));
    }
    let value = value.filter(|_| types.iter().all(is_number))?;
    let whole: Option<ArrayRef> = match of_integers(types.iter()) {
        Some(DataType::Int64) => {
            value.parse().ok().map(|n| Arc::new(Int64Array::from_value(n, rows)) as ArrayRef)
        }
        Some(DataType::UInt64) => {
            value.parse().ok().map(|n| Arc::new(UInt64Array::from_value(n, rows)) as ArrayRef)
        }
        _ => None,
    };
    whole.or_else(|| value.parse().ok().map(|n| Arc::new(Float64Array::from_value(n, rows)) as ArrayRef))
}

/// Refuses a column of a part that says otherwise than the name of its folder, such as `plate=BR1`.
fn agrees_with_folders(part: &Part, name: &str, own: &ArrayRef) -> Result<()> {
    let Some((_, Some(value))) = part.keys.iter().find(|(key, _)| key == name) else { return Ok(()) };
    let Some(other) = differing(own, value) else { return Ok(()) };
    Err(Error::new(
        part.store.path(),
        format_args!("its column {name:?} has {other:?}, and its folder is called {name}={value}"),
    )
    .column(name)
    .hint("rename the folder, or the column in the file")
    .choice())
}

/// The first value of texts or numbers that is another than `value`.
fn differing(array: &ArrayRef, value: &str) -> Option<String> {
    if is_text(array.data_type()) {
        let mut texts = (0..array.len()).filter_map(|i| features::text(array, i));
        return texts.find(|text| *text != value).map(str::to_owned);
    }
    if !is_number(array.data_type()) {
        return None;
    }
    let wanted = value.parse::<f64>().ok();
    let numbers = as_type(array, &DataType::Float64);
    let mut numbers = numbers.as_primitive::<Float64Type>().iter().flatten();
    numbers.find(|number| !number.is_nan() && Some(*number) != wanted).map(|number| number.to_string())
}

/// The first number that a float of 64 bits does not hold.
fn rounded(array: &ArrayRef) -> Option<String> {
    let lost = |value: i128| (value as f64) as i128 != value;
    match array.data_type() {
        DataType::Int64 => {
            let mut all = array.as_primitive::<Int64Type>().iter().flatten();
            all.find(|value| lost(i128::from(*value))).map(|value| value.to_string())
        }
        DataType::UInt64 => {
            let mut all = array.as_primitive::<UInt64Type>().iter().flatten();
            all.find(|value| lost(i128::from(*value))).map(|value| value.to_string())
        }
        _ => None,
    }
}

/// The type that holds values of both: themselves, times of UTC, the whole numbers, or floats.
fn holding_both(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::{Float64, Timestamp, Utf8};
    if a == b {
        return Some(a.clone());
    }
    if is_text(a) && is_text(b) {
        return Some(Utf8);
    }
    if let (Timestamp(unit, Some(_)), Timestamp(other, Some(_))) = (a, b) {
        // A moment is one in any zone.
        return (unit == other).then(|| Timestamp(*unit, Some("UTC".into())));
    }
    of_integers([a, b].into_iter()).or_else(|| (is_number(a) && is_number(b)).then_some(Float64))
}

/// The type that holds whole numbers of all `types`; `None` where one is another.
fn of_integers<'a>(mut types: impl Iterator<Item = &'a DataType> + Clone) -> Option<DataType> {
    if !types.clone().all(DataType::is_integer) {
        return None;
    }
    if types.clone().all(DataType::is_unsigned_integer) {
        return Some(DataType::UInt64);
    }
    // No whole number holds those of 64 bits without a sign and those with one.
    Some(if types.any(|of| *of == DataType::UInt64) { DataType::Float64 } else { DataType::Int64 })
}

fn is_number(t: &DataType) -> bool {
    t.is_integer() || matches!(t, DataType::Float32 | DataType::Float64)
}

fn is_text(t: &DataType) -> bool {
    matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// An array as a type that [`holding_both`] said of it.
fn as_type(array: &ArrayRef, wanted: &DataType) -> ArrayRef {
    if array.data_type() == wanted {
        return Arc::clone(array);
    }
    match wanted {
        DataType::Int64 => numbers::<Int64Type>(array),
        DataType::UInt64 => numbers::<UInt64Type>(array),
        DataType::Float64 => numbers::<Float64Type>(array),
        DataType::Timestamp(_, _) => {
            features::relabelled(array, wanted.clone()).expect("the same numbers in any zone")
        }
        _ => {
            let texts = (0..array.len()).map(|i| features::text(array, i));
            Arc::new(texts.collect::<StringArray>())
        }
    }
}

/// Numbers that are narrower than what they become.
trait Wide: ArrowPrimitiveType {
    fn of_signed(value: i64) -> Self::Native;
    fn of_unsigned(value: u64) -> Self::Native;
    fn of_float(value: f64) -> Self::Native;
}

impl Wide for Int64Type {
    fn of_signed(value: i64) -> i64 {
        value
    }
    fn of_unsigned(value: u64) -> i64 {
        value as i64
    }
    fn of_float(value: f64) -> i64 {
        value as i64
    }
}

impl Wide for UInt64Type {
    fn of_signed(value: i64) -> u64 {
        value as u64
    }
    fn of_unsigned(value: u64) -> u64 {
        value
    }
    fn of_float(value: f64) -> u64 {
        value as u64
    }
}

impl Wide for Float64Type {
    fn of_signed(value: i64) -> f64 {
        value as f64
    }
    fn of_unsigned(value: u64) -> f64 {
        value as f64
    }
    fn of_float(value: f64) -> f64 {
        value
    }
}

fn numbers<T: Wide>(array: &ArrayRef) -> ArrayRef {
    macro_rules! of {
        ($from:ty, $by:ident, $as:ty) => {
            Arc::new(array.as_primitive::<$from>().unary::<_, T>(|value| T::$by(<$as>::from(value))))
        };
    }
    match array.data_type() {
        DataType::Int8 => of!(Int8Type, of_signed, i64),
        DataType::Int16 => of!(Int16Type, of_signed, i64),
        DataType::Int32 => of!(Int32Type, of_signed, i64),
        DataType::Int64 => of!(Int64Type, of_signed, i64),
        DataType::UInt8 => of!(UInt8Type, of_unsigned, u64),
        DataType::UInt16 => of!(UInt16Type, of_unsigned, u64),
        DataType::UInt32 => of!(UInt32Type, of_unsigned, u64),
        DataType::UInt64 => of!(UInt64Type, of_unsigned, u64),
        DataType::Float32 => of!(Float32Type, of_float, f64),
        DataType::Float64 => of!(Float64Type, of_float, f64),
        // No other type is a number.
        other => new_null_array(other, array.len()),
    }
}

#[cfg(test)]
mod tests;
