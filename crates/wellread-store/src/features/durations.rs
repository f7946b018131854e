//! Columns of durations: kept as they are where a format has the type, as whole numbers elsewhere. Times in seconds and dates in
//! milliseconds, which Parquet has no type for either.

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampNanosecondType;
use arrow_array::{ArrayRef, RecordBatch, make_array};
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};
use std::sync::Arc;

/// Whether a column is of durations.
pub fn has_durations(batch: &RecordBatch) -> bool {
    durations(batch).next().is_some()
}

/// The columns of durations, and their units.
pub fn durations(batch: &RecordBatch) -> impl Iterator<Item = (&str, TimeUnit)> {
    batch.schema_ref().fields().iter().filter_map(|field| match field.data_type() {
        DataType::Duration(unit) => Some((field.name().as_str(), *unit)),
        _ => None,
    })
}

/// The columns of times with a zone that have values between two microseconds.
pub fn zoned_nanoseconds(batch: &RecordBatch) -> Vec<String> {
    let fields = batch.schema_ref().fields().iter().zip(batch.columns());
    let finer = fields.filter(|(field, column)| {
        matches!(field.data_type(), DataType::Timestamp(TimeUnit::Nanosecond, Some(_)))
            && column.as_primitive::<TimestampNanosecondType>().iter().flatten().any(|ns| ns % 1000 != 0)
    });
    finer.map(|(field, _)| field.name().clone()).collect()
}

/// Whether times of this type are of another zone than UTC.
pub(crate) fn has_zone(of: &DataType) -> bool {
    const UTC: [&str; 4] = ["UTC", "Etc/UTC", "Z", "+00:00"];
    matches!(of, DataType::Timestamp(_, Some(zone)) if !UTC.contains(&&**zone))
}

/// The columns of times of another zone than UTC, and the zone.
pub fn zones(batch: &RecordBatch) -> impl Iterator<Item = (&str, &str)> {
    batch.schema_ref().fields().iter().filter_map(|field| match field.data_type() {
        of @ DataType::Timestamp(_, Some(zone)) if has_zone(of) => Some((field.name().as_str(), &**zone)),
        _ => None,
    })
}

/// The batch with durations as whole numbers.
///
/// # Errors
/// Arrow's error.
pub fn without_durations(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    retyped(batch, |field| match field.data_type() {
        DataType::Duration(_) => Some(DataType::Int64),
        _ => None,
    })
}

/// The batch with whole numbers of 64 bits as what `declared`, a schema, says that they are: durations, times in seconds, dates in
/// milliseconds. Parquet has none of these, so its columns are those of numbers. It has no zones either: its times are of UTC, and
/// get the zone that is declared. The declared unit may be another one: pyarrow writes seconds in milliseconds, and others as it is told.
pub(crate) fn with_durations(batch: &RecordBatch, declared: &Schema) -> Result<RecordBatch, ArrowError> {
    retyped(batch, |field| {
        let declared = declared.field_with_name(field.name()).ok()?.data_type();
        match (field.data_type(), declared) {
            (DataType::Int64, DataType::Duration(_) | DataType::Timestamp(_, _) | DataType::Date64) => {
                Some(declared.clone())
            }
            (DataType::Timestamp(unit, Some(_)), DataType::Timestamp(_, Some(zone))) => {
                Some(DataType::Timestamp(*unit, Some(Arc::clone(zone))))
            }
            _ => None,
        }
    })
}

/// The batch with columns of other types of the same bytes.
fn retyped(
    batch: &RecordBatch,
    wanted: impl Fn(&Field) -> Option<DataType>,
) -> Result<RecordBatch, ArrowError> {
    changed(batch, |field, column| wanted(field).map(|wanted| relabelled(column, wanted)).transpose())
}

/// A column of another type of the same bytes.
///
/// # Errors
/// Arrow's error, of a type that needs other bytes.
pub(crate) fn relabelled(column: &ArrayRef, wanted: DataType) -> Result<ArrayRef, ArrowError> {
    Ok(make_array(column.to_data().into_builder().data_type(wanted).build()?))
}

/// The batch with what `change` makes of its columns; those of which it makes `None` stay.
///
/// # Errors
/// Those of `change`; Arrow's error.
pub(super) fn changed(
    batch: &RecordBatch,
    change: impl Fn(&Field, &ArrayRef) -> Result<Option<ArrayRef>, ArrowError>,
) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut columns) = (vec![], vec![]);
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let column = change(field, column)?.unwrap_or_else(|| Arc::clone(column));
        fields.push(field.as_ref().clone().with_data_type(column.data_type().clone()));
        columns.push(column);
    }
    let schema = Schema::new_with_metadata(fields, batch.schema_ref().metadata().clone());
    RecordBatch::try_new(Arc::new(schema), columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{
        Array, Date64Array, DurationMicrosecondArray, Int64Array, TimestampMillisecondArray,
        TimestampNanosecondArray, TimestampSecondArray,
    };

    #[test]
    fn durations_are_numbers_and_back() {
        let waits: ArrayRef = Arc::new(DurationMicrosecondArray::from(vec![Some(5), None]));
        let counts: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let batch = RecordBatch::try_from_iter([("wait", waits), ("count", counts)]).unwrap();
        assert_eq!(durations(&batch).collect::<Vec<_>>(), [("wait", TimeUnit::Microsecond)]);
        let numbers = without_durations(&batch).unwrap();
        assert!(!has_durations(&numbers));
        assert_eq!(numbers.column(0).to_data(), Int64Array::from(vec![Some(5), None]).to_data());
        assert_eq!(with_durations(&numbers, batch.schema_ref()).unwrap(), batch);
    }

    #[test]
    fn numbers_that_are_declared_as_times_and_dates_are_these() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(86_400_000), None]));
        let times: ArrayRef = Arc::new(TimestampSecondArray::from(vec![Some(86_400_000), None]));
        let dates: ArrayRef = Arc::new(Date64Array::from(vec![Some(86_400_000), None]));
        let batch = |columns: [&ArrayRef; 3]| {
            let [a, b, c] = columns.map(Arc::clone);
            RecordBatch::try_from_iter([("time", a), ("date", b), ("count", c)]).unwrap()
        };
        let declared = batch([&times, &dates, &numbers]);
        let read = batch([&numbers, &numbers, &numbers]);
        assert_eq!(with_durations(&read, declared.schema_ref()).unwrap(), declared);
        // Declarations of another column, or of one that is no number, change nothing.
        assert_eq!(with_durations(&declared, read.schema_ref()).unwrap(), declared);
    }

    #[test]
    fn times_have_the_zone_that_is_declared() {
        let times = TimestampNanosecondArray::from(vec![Some(1), None]);
        let batch = |column: ArrayRef| RecordBatch::try_from_iter([("time", column)]).unwrap();
        let zoned = |zone: &str| batch(Arc::new(times.clone().with_timezone(zone)));
        let [utc, berlin, local] = [zoned("UTC"), zoned("Europe/Berlin"), batch(Arc::new(times.clone()))];
        assert_eq!(with_durations(&utc, berlin.schema_ref()).unwrap(), berlin);
        // Times without a zone are no moments.
        assert_eq!(with_durations(&local, berlin.schema_ref()).unwrap(), local);
        assert_eq!(with_durations(&utc, local.schema_ref()).unwrap(), utc);
        let seconds = batch(Arc::new(TimestampSecondArray::from(vec![1]).with_timezone("Europe/Berlin")));
        // The unit that is declared may be another one.
        assert_eq!(with_durations(&utc, seconds.schema_ref()).unwrap(), berlin);
        let times = TimestampMillisecondArray::from(vec![Some(1_700_000_000_000), None]);
        let [utc, berlin] =
            ["UTC", "Europe/Berlin"].map(|zone| batch(Arc::new(times.clone().with_timezone(zone))));
        assert_eq!(with_durations(&utc, seconds.schema_ref()).unwrap(), berlin);
    }

    #[test]
    fn zones_that_are_not_utc_are_named() {
        let times = TimestampNanosecondArray::from(vec![1]);
        let zoned = |zone: &str| Arc::new(times.clone().with_timezone(zone)) as ArrayRef;
        let columns = ["UTC", "Etc/UTC", "+00:00", "Europe/Berlin", "+05:30"].map(|zone| (zone, zoned(zone)));
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let expected = [("Europe/Berlin", "Europe/Berlin"), ("+05:30", "+05:30")];
        assert_eq!(zones(&batch).collect::<Vec<_>>(), expected);
        assert!(!has_zone(&DataType::Timestamp(TimeUnit::Second, None)));
    }

    #[test]
    fn times_with_a_zone_between_microseconds_are_named() {
        let fine = TimestampNanosecondArray::from(vec![None, Some(1_999)]);
        let coarse = TimestampNanosecondArray::from(vec![Some(-2_000), None]);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("fine", Arc::new(fine.clone().with_timezone("Europe/Berlin"))),
            ("coarse", Arc::new(coarse.with_timezone("UTC"))),
            ("local", Arc::new(fine)),
            ("count", Arc::new(Int64Array::from(vec![1, 2]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        assert_eq!(zoned_nanoseconds(&batch), ["fine"]);
    }
}
