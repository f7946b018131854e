//! Feature columns: plain values that stand beside images, such as well, compound or a morphology profile.
//!
//! ```text
//!  Hints::features ─┐
//!                   ├─ beside ─▶ WriteOptions::features ─▶ columns of the table that is written
//!  PROFILES ─ join ─┘
//! ```
//!
//! They are read whole, a row per image in the images' order, and carried through conversion. Profiles of another table are
//! joined to the images by [`crate::profiles`].
//!
//! | module | what it holds |
//! |---|---|
//! | `plain`, `values` | which columns are features; the values of one in a type that every engine takes |
//! | `seconds`, `times`, `durations` | dates, times and durations in the types that formats have for them, and as text |
//! | `index`, `joint`, `site_numbers`, `well_names` | rows by their keys; which keys are equal, however sites and wells are written |
//! | `wells` | names of wells by their row and column |
//! | `unlike` | joins that are refused, since both sides write the same places in two ways |
//! | `group`, `key_text` | the values that tell groups of rows; those of one row as a text, and back |
//! | `unique`, `row_id` | names of columns that differ; whose the column `row_id` is |
//! | `digest`, `differing` | whether columns are the same; which are not, and in which row |

mod differing;
mod digest;
mod durations;
mod group;
mod index;
mod joint;
mod key_text;
mod plain;
mod row_id;
mod seconds;
mod site_numbers;
mod times;
mod unique;
mod unlike;
mod values;
mod well_names;
mod wells;

pub use differing::differing;
pub(crate) use differing::first_difference;
pub use digest::digest;
pub use durations::{durations, has_durations, without_durations, zoned_nanoseconds, zones};
pub(crate) use durations::{has_zone, relabelled, with_durations};
pub use group::{group_keys, written_keys};
pub(crate) use index::Index;
pub(crate) use joint::{Comparison, as_written, joint_key};
pub(crate) use key_text::joined;
pub use key_text::{key_in_words, key_of, key_values};
#[cfg(feature = "sqlite")]
pub(crate) use plain::BYTES;
pub use plain::left_out_in_words;
pub(crate) use plain::{ONLY_NULLS, left_out, names, other_columns, plain_columns, text};
pub(crate) use row_id::{RowId, is_own_number};
pub(crate) use seconds::finer;
pub use seconds::{without_date64, without_seconds};
pub(crate) use site_numbers::doubtful;
pub use times::{first_infinite, first_outside};
pub use unique::{is_own_of_tables, refuse_nul, renamed, without_nul};
pub(crate) use unique::{unique_names, unique_schema};
pub(crate) use unlike::refuse_unlike;
use values::{decimal_at, plain_values, too_long};
pub(crate) use wells::row_letters;
#[cfg(feature = "tiff")]
pub(crate) use wells::well_at;

use crate::hints::{LeftOut, Renamed};
use crate::row_location::path_of_set;
use crate::suggested::question;
use crate::surface::option_as;
use crate::words::{counted, first_few};
use crate::{Error, Result, Store, place};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array, downcast_primitive_array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use std::path::Path;
use std::sync::Arc;

/// The columns of plates, wells, sites and acquisitions, as CellProfiler and pycytominer call them.
pub const PLATE: &str = "Metadata_Plate";
/// See [`PLATE`].
pub const WELL: &str = "Metadata_Well";
/// See [`PLATE`].
pub const SITE: &str = "Metadata_Site";
/// See [`PLATE`].
pub const ACQUISITION: &str = "Metadata_Acquisition";

/// Feature columns: a row per image.
pub type FeatureColumns = RecordBatch;

/// The columns of both batches, of which each is a row per image. Where a name is in both, the second batch's column
/// is left out if it has the same values, and renamed otherwise. The renamed columns are told beside them.
///
/// # Errors
/// Batches of different lengths.
pub fn beside(
    path: &Path,
    first: Option<&RecordBatch>,
    second: &RecordBatch,
) -> Result<(RecordBatch, Vec<Renamed>)> {
    let (mut fields, mut columns) = match first {
        Some(first) => (first.schema().fields().to_vec(), first.columns().to_vec()),
        None => (vec![], vec![]),
    };
    let own = fields.len();
    for (field, column) in second.schema().fields().iter().zip(second.columns()) {
        let namesake = fields[..own].iter().position(|f| f.name() == field.name());
        if namesake.is_none_or(|i| columns[i].to_data() != column.to_data()) {
            fields.push(Arc::clone(field));
            columns.push(Arc::clone(column));
        }
    }
    let (schema, renamed) = unique_schema(&Schema::new(fields), &|_| false);
    let both = RecordBatch::try_new(Arc::new(schema), columns)
        .map_err(|e| Error::new(path, format_args!("cannot put feature columns side by side: {e}")))?;
    Ok((both, renamed))
}

/// All feature columns of a store; `None` where it has none.
///
/// # Errors
/// Columns that cannot be read.
pub fn all(store: &dyn Store) -> Result<Option<FeatureColumns>> {
    let hints = store.hints();
    hints.features(&hints.feature_names())
}

/// Feature columns of `inner` for a view of it at rows `rows`; `None` stands for a row of nulls.
pub(crate) fn of_rows(
    inner: &dyn Store,
    names: &[String],
    rows: impl IntoIterator<Item = Option<u64>>,
) -> Result<Option<FeatureColumns>> {
    let Some(columns) = inner.hints().features(names)? else { return Ok(None) };
    taken(&columns, rows).map(Some).map_err(|e| Error::new(inner.path(), e))
}

/// Chosen rows of feature columns; `None` gives nulls.
pub(crate) fn taken(
    batch: &RecordBatch,
    rows: impl IntoIterator<Item = Option<u64>>,
) -> std::result::Result<RecordBatch, ArrowError> {
    let rows: UInt64Array = rows.into_iter().collect();
    let mut fields = Vec::with_capacity(batch.num_columns());
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(batch.num_columns());
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        columns.push(arrow_select::take::take(column, &rows, None)?);
        fields.push(field.as_ref().clone().with_nullable(true));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// One batch of several with the same columns, or of several of each column: those of `names`, in a form that every engine takes.
/// `has_infinity` says that the largest number of nanoseconds is infinity, as in DuckDB.
pub(crate) fn gathered(
    path: &Path,
    batches: &[RecordBatch],
    names: &[String],
    has_infinity: bool,
) -> Result<RecordBatch> {
    let whole = || -> std::result::Result<RecordBatch, ArrowError> {
        let mut fields = vec![];
        let mut columns = vec![];
        for name in names {
            let parts = batches.iter().filter_map(|b| b.column_by_name(name)).map(plain_values);
            let parts = parts.collect::<std::result::Result<Vec<_>, _>>()?;
            let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
            let column = arrow_select::concat::concat(&parts)?;
            fields.push(Field::new(name, column.data_type().clone(), true));
            columns.push(column);
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
    };
    let whole =
        whole().map_err(|e| Error::new(path, format_args!("cannot read the feature columns: {e}")))?;
    for (name, column) in names.iter().zip(whole.columns()) {
        if let Some((row, what)) = times::no_time(column, has_infinity) {
            return Err(times::refusal(path, name, &what).row(row));
        }
        let Some((row, number)) = too_long(column) else { continue };
        let cause =
            format!("the column {name:?} has {number}: it has more digits than {}", column.data_type());
        let hint = "give the column another type in the table, such as text or floats of 64 bits, or drop it";
        return Err(Error::new(path, cause).row(row).column(name).hint(hint));
    }
    Ok(whole)
}

/// A name without folders and without the ending of a file.
pub(crate) fn stem(name: &str) -> &str {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let lower = name.to_ascii_lowercase();
    for ending in [".ome.tiff", ".ome.tif", ".ome.zarr", ".tiff", ".tif", ".png", ".jpeg", ".jpg", ".zarr"] {
        if lower.ends_with(ending) && lower.len() > ending.len() {
            return &name[..name.len() - ending.len()];
        }
    }
    name
}

/// One text per row for the values of `columns` in it: equal where all of them are equal. Nulls are equal to each
/// other and to nothing else.
///
/// # Errors
/// A set without such columns.
pub fn keys(source: &dyn Store, columns: &[String]) -> Result<Vec<String>> {
    keys_of(source, columns, key_at)
}

/// As [`keys`], of the texts that `value` gives.
fn keys_of(source: &dyn Store, columns: &[String], value: ValueText) -> Result<Vec<String>> {
    Ok(values_of(source, columns, value)?.map(|values| key_of(&values)).collect())
}

/// The values of `columns` in each row, of which [`keys`] makes one text; `None` where one is null.
///
/// # Errors
/// A set without such columns.
pub fn row_values(source: &dyn Store, columns: &[String]) -> Result<Vec<Vec<Option<String>>>> {
    Ok(values_of(source, columns, key_at)?.collect())
}

/// The error of a column that the set does not have beside its images, where it has these: it names the nearest.
pub fn no_column(source: &dyn Store, name: &str, there: &[String]) -> Error {
    // Sets that have no folder in common but the working one have no path together that says something.
    let are_sets = source.path() == Path::new(".") && source.hints().parts.is_some();
    let (error, it_has) = if are_sets {
        (Error::new("", format_args!("these sets have no column {name:?}")), "they have")
    } else {
        (Error::new(path_of_set(source), format_args!("has no column {name:?}")), "it has")
    };
    let error = error.choice();
    if there.is_empty() {
        let hint =
            format!("{it_has} no columns beside the images: `wellread convert --join` adds those of a table");
        return if may_be_named_by_site(source) {
            let pattern = option_as("pattern", "{well}_{site}_{channel}.tif");
            error.hint(format_args!("{hint}, and {pattern} takes wells and sites from names of files"))
        } else {
            error.hint(hint)
        };
    }
    error.hint(format_args!(
        "{}{it_has} {} beside the images: {}",
        question(name, there),
        counted(there.len(), "column"),
        first_few(there, 12)
    ))
}

/// Whether a set is a folder of image files that are not put together by their names.
fn may_be_named_by_site(source: &dyn Store) -> bool {
    let is_of_files = matches!(source.format(), "tiff" | "image-folder");
    is_of_files && source.hints().sites.is_none() && place::is_folder(source.path())
}

/// The text of the value of a column in a row; `None` where there is none.
type ValueText = fn(&ArrayRef, usize) -> Option<String>;

/// As [`row_values`], of the texts that `value` gives, row by row.
fn values_of(
    source: &dyn Store,
    columns: &[String],
    value: ValueText,
) -> Result<impl Iterator<Item = Vec<Option<String>>>> {
    if columns.is_empty() {
        return Err(
            Error::new(path_of_set(source), "no column was given to group by").hint("give at least one")
        );
    }
    let there = source.hints().feature_names();
    if let Some(name) = columns.iter().find(|name| !there.contains(name)) {
        let others = source.hints().columns_left_out();
        if let Some(LeftOut { why, .. }) = others.iter().find(|other| other.name == *name) {
            let cause = format_args!("the column {name:?} has {why}, which make no groups");
            let hint = "name a column of text, numbers or times";
            return Err(Error::new(path_of_set(source), cause).choice().hint(hint));
        }
        return Err(no_column(source, name, &there));
    }
    let table = source.hints().features(columns)?;
    let columns = table.as_ref().map_or(vec![], |table| table.columns().to_vec());
    let rows = table.as_ref().map_or(0, RecordBatch::num_rows);
    if rows != source.len() {
        let (rows, images) = (counted(rows, "row"), counted(source.len(), "image"));
        return Err(Error::new(path_of_set(source), format_args!("columns of {rows} beside {images}")));
    }
    Ok((0..rows).map(move |row| columns.iter().map(|column| value(column, row)).collect::<Vec<_>>()))
}

/// A plain value as text, decimals with all their digits, dates and times in ISO 8601; `None` where there is none.
pub(crate) fn key_at(column: &ArrayRef, row: usize) -> Option<String> {
    if column.is_null(row) {
        return None;
    }
    if let Some(text) = decimal_at(column, row).or_else(|| times::text_at(column, row)) {
        return Some(text);
    }
    let array: &dyn Array = column;
    downcast_primitive_array!(
        array => Some(format!("{:?}", array.value(row))),
        DataType::Boolean => Some(array.as_boolean().value(row).to_string()),
        _ => text(array, row).map(str::to_owned)
    )
}

/// As [`key_at`]; `None` also for NaN, as which pandas keeps a number that is missing.
pub(crate) fn known_at(column: &ArrayRef, row: usize) -> Option<String> {
    key_at(column, row).filter(|text| text != "NaN" || !column.data_type().is_floating())
}

/// The columns of `names`, in that order, each of the first batch that has it; the batches have equally many rows.
///
/// # Errors
/// A column that none of them has.
pub(crate) fn chosen(path: &Path, batches: &[RecordBatch], names: &[String]) -> Result<RecordBatch> {
    let (mut fields, mut columns) = (vec![], vec![]);
    for name in names {
        let found = batches.iter().find_map(|batch| batch.schema().index_of(name).ok().map(|i| (batch, i)));
        let (batch, i) = found.ok_or_else(|| Error::new(path, format_args!("has no column {name:?}")))?;
        fields.push(batch.schema().field(i).clone());
        columns.push(Arc::clone(batch.column(i)));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(|e| Error::new(path, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Decimal128Array, Decimal256Array, Float64Array, Int64Array, StringArray};
    use arrow_buffer::i256;

    #[test]
    fn names_are_compared_without_folder_and_ending() {
        assert_eq!(stem("plate/A01.ome.tiff"), "A01");
        assert_eq!(stem("C:\\x\\A01.TIF"), "A01");
        assert_eq!(stem("A.01"), "A.01");
        assert_eq!(stem(".tif"), ".tif");
    }

    #[test]
    fn decimals_have_their_point() {
        let numbers = Decimal128Array::from(vec![Some(50), Some(1000), Some(-990), Some(-5), None]);
        let doses: ArrayRef = Arc::new(numbers.with_precision_and_scale(4, 2).unwrap());
        let found: Vec<String> = (0..5).filter_map(|row| key_at(&doses, row)).collect();
        assert_eq!(found, ["0.50", "10.00", "-9.90", "-0.05"]);
        let wide = Decimal256Array::from(vec![i256::from_i128(1230)]);
        let wide: ArrayRef = Arc::new(wide.with_precision_and_scale(5, 3).unwrap());
        assert_eq!(key_at(&wide, 0).as_deref(), Some("1.230"));
        let whole: ArrayRef =
            Arc::new(Decimal128Array::from(vec![100]).with_precision_and_scale(3, 0).unwrap());
        assert_eq!(key_at(&whole, 0).as_deref(), Some("100"));
        // Another table may have them as floats or whole numbers.
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 10.0, -9.9, -0.05]));
        for row in 0..4 {
            let [decimal, float] = [&doses, &floats].map(|column| joint_key(&[Arc::clone(column)], row));
            assert_eq!(decimal, float, "row {row}");
        }
        assert_eq!(joint_key(&[whole], 0).as_deref(), Some("100"));
    }

    #[test]
    fn batches_stand_side_by_side() {
        let batch = |columns: Vec<(&str, ArrayRef)>| RecordBatch::try_from_iter(columns).unwrap();
        let ints = |v: [i64; 2]| Arc::new(Int64Array::from(v.to_vec())) as ArrayRef;
        let text = Arc::new(StringArray::from(vec!["x", "y"])) as ArrayRef;
        let first = batch(vec![("a", ints([1, 2])), ("b", ints([3, 4]))]);
        let second = batch(vec![("a", ints([1, 2])), ("b", ints([5, 6])), ("c", text)]);
        let names = |batch: &RecordBatch| -> Vec<String> {
            batch.schema().fields().iter().map(|f| f.name().clone()).collect()
        };
        let (both, renamed) = beside(Path::new("f"), Some(&first), &second).unwrap();
        assert_eq!(names(&both), ["a", "b", "b_y", "c"]);
        assert_eq!(renamed, [Renamed { from: "b".to_owned(), to: "b_y".to_owned() }]);
        // A third b beside these is not a second b_y.
        let third = batch(vec![("b", ints([7, 8]))]);
        let (all, _) = beside(Path::new("f"), Some(&both), &third).unwrap();
        assert_eq!(names(&all), ["a", "b", "b_y", "c", "b_y_y"]);
        assert_eq!(key_at(all.column_by_name("b_y").unwrap(), 0).as_deref(), Some("5"));
        assert_eq!(key_at(all.column_by_name("b_y_y").unwrap(), 0).as_deref(), Some("7"));
        let key = |column: ArrayRef, row| key_at(&column, row);
        assert_eq!(key(Arc::new(arrow_array::Float32Array::from(vec![0.5])), 0).as_deref(), Some("0.5"));
        assert_eq!(key(Arc::new(arrow_array::BooleanArray::from(vec![true])), 0).as_deref(), Some("true"));
        assert_eq!(key(Arc::new(StringArray::from(vec![None, Some("a")])), 0), None);
        let some = taken(&second, [Some(1), None]).unwrap();
        assert!(some.column(2).is_null(1));
        assert_eq!(key_at(some.column(1), 0).as_deref(), Some("6"));
    }
}
