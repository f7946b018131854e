//! Columns of types that Arrow has not, or has otherwise.

use crate::{FORMATS, IMAGE, columns_back, database, made, options, write};
use arrow_array::Array as _;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float64Type, Int64Type, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType,
};
use arrow_array::{
    ArrayRef, Date32Array, Date64Array, Decimal256Array, Float64Array, RecordBatch, Time64NanosecondArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray,
};
use arrow_buffer::i256;
use arrow_schema::{DataType, TimeUnit};
use std::sync::Arc;
use wellread_image::{PixelType, Shape};
use wellread_store::{LeftOut, OpenOptions, WriteOptions, create, open, open_all, read_image};

#[test]
fn columns_that_arrow_cannot_tell_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.duckdb");
    database(
        &path,
        &format!(
            "CREATE TABLE images AS SELECT i + 7 AS dose, 'a'::VARIANT AS any_value, ['a'::VARIANT] AS any_values, \
             '12:00:00+05'::TIMETZ AS begun, 340282366920938463463374607431768211455::UHUGEINT AS most, '12:00:00'::TIME AS noon, \
             {IMAGE} AS ome_image, i AS n FROM range(3) t(i)"
        ),
    );
    let store = open(&path, &OpenOptions::default()).unwrap();
    assert_eq!(store.hints().feature_names(), ["dose", "noon", "n"]);
    let mut left_out = store.hints().columns_left_out();
    left_out.sort_by(|a, b| a.name.cmp(&b.name));
    let words: Vec<_> = left_out.iter().map(|column| (column.name.as_str(), column.why)).collect();
    assert_eq!(
        words,
        [
            ("any_value", "values of several types"),
            ("any_values", "values of several types"),
            ("begun", "times of day with an offset"),
            ("most", "whole numbers of 128 bits without a sign"),
        ]
    );
    // Columns behind these, and pixels, are still those of their own names.
    let columns = wellread_store::features::all(&*store).unwrap().unwrap();
    assert_eq!(columns.column(0).as_primitive::<Int64Type>().values(), &[7, 8, 9]);
    assert_eq!(columns.column(1).as_primitive::<Time64MicrosecondType>().values(), &[43_200_000_000; 3]);
    assert_eq!(columns.column(2).as_primitive::<Int64Type>().values(), &[0, 1, 2]);
    assert_eq!(read_image(&*store, 2).unwrap().1, [2, 0, 0xea, 3]);
}

/// DuckDB makes floats of them, which round.
#[test]
fn decimals_of_parquet_that_duckdb_does_not_hold_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let long = |digits| -> ArrayRef {
        let numbers = Decimal256Array::from(vec![Some(i256::from_i128(125)), None]);
        Arc::new(numbers.with_precision_and_scale(digits, 2).unwrap())
    };
    let half: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 1.5]));
    let beside = RecordBatch::try_from_iter([("sum", long(50)), ("half", half), ("fits", long(38))]).unwrap();
    let written = WriteOptions { features: Some(beside), ..WriteOptions::default() };
    let images = [0, 1].map(|row| made(row, Shape::plane(8, 8), PixelType::U8));
    write(&path, "parquet", &written, &images).unwrap();
    let store = open(&path, &options("parquet-duckdb")).unwrap();
    assert_eq!(store.hints().feature_names(), ["half", "fits"]);
    let sum = LeftOut { name: "sum".to_owned(), why: "decimals of more than 38 digits" };
    assert_eq!(store.hints().columns_left_out(), [sum]);
    let columns = wellread_store::features::all(&*store).unwrap().unwrap();
    assert_eq!(columns.column(0).as_primitive::<Float64Type>().values(), &[0.5, 1.5]);
    let fits = columns.column(1).as_primitive::<Decimal128Type>();
    assert_eq!(fits.iter().collect::<Vec<_>>(), [Some(125), None]);
    assert_eq!(read_image(&*store, 1).unwrap().1, images[1].pixels);
}

#[test]
fn numbers_that_decimals_do_not_hold_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.duckdb");
    database(
        &path,
        &format!(
            "CREATE TABLE images AS SELECT i::HUGEINT AS small, CASE i WHEN 2 THEN \
             170141183460469231731687303715884105727::HUGEINT END AS large, {IMAGE} AS ome_image FROM range(3) t(i)"
        ),
    );
    let store = open(&path, &OpenOptions::default()).unwrap();
    let small = store.hints().features(&["small".to_owned()]).unwrap().unwrap();
    assert_eq!(small.column(0).as_primitive::<Decimal128Type>().values(), &[0, 1, 2]);
    let error = wellread_store::features::all(&*store).unwrap_err().to_string();
    assert!(
        error.contains("row 2: the column \"large\" has 170141183460469231731687303715884105727"),
        "{error}"
    );
    assert!(error.contains("(hint: give the column another type") && !error.contains("corrupt"), "{error}");
}

#[test]
fn times_of_day_keep_their_nanoseconds() {
    let times = Time64NanosecondArray::from(vec![Some(1), None, Some(1_999), Some(86_399_999_999_999)]);
    let column: ArrayRef = Arc::new(times.clone());
    for (format, back) in columns_back(&column) {
        assert_eq!(back.as_primitive::<Time64NanosecondType>(), &times, "{format}");
    }
}

/// DuckDB's dates are days, and its appender would cut off the time of day.
#[test]
fn dates_keep_their_time_of_day() {
    const DAY: i64 = 86_400_000;
    let parts: ArrayRef = Arc::new(Date64Array::from(vec![Some(DAY), None, Some(2 * DAY + 5_400_000)]));
    for (format, back) in columns_back(&parts) {
        let times: Vec<_> = (0..3).map(|row| time_of(&back, row)).collect();
        assert_eq!(times, [Some(DAY), None, Some(2 * DAY + 5_400_000)], "{format}");
    }
    let days: ArrayRef = Arc::new(Date64Array::from(vec![Some(DAY), None, Some(-DAY)]));
    for (format, back) in columns_back(&days) {
        let days = Date32Array::from(vec![Some(1), None, Some(-1)]);
        assert_eq!(back.as_primitive::<Date32Type>(), &days, "{format}");
    }
}

/// Milliseconds since 1970 of a time in milliseconds or microseconds.
fn time_of(column: &ArrayRef, row: usize) -> Option<i64> {
    let is_millis = *column.data_type() == DataType::Timestamp(TimeUnit::Millisecond, None);
    let millis = || {
        if is_millis {
            column.as_primitive::<TimestampMillisecondType>().value(row)
        } else {
            column.as_primitive::<TimestampMicrosecondType>().value(row) / 1000
        }
    };
    column.is_valid(row).then(millis)
}

/// Infinity is a time of DuckDB alone: others have a number there, as of the year 294247.
#[test]
fn infinite_times_are_refused_by_name_and_far_years_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.duckdb");
    database(
        &path,
        &format!(
            "CREATE TABLE images AS SELECT CASE i WHEN 1 THEN 'infinity' ELSE '2026-01-02' END::TIMESTAMP AS until, \
             CASE i WHEN 2 THEN '-infinity' END::DATE AS since, CASE i WHEN 0 THEN 'infinity' END::TIMESTAMPTZ AS zoned, \
             CASE i WHEN 1 THEN '-infinity' END::TIMESTAMP::TIMESTAMP_S AS seconds, CASE i WHEN 2 THEN '-infinity' END::TIMESTAMP::TIMESTAMP_MS AS millis, \
             CASE i WHEN 0 THEN 'infinity' END::TIMESTAMP::TIMESTAMP_NS AS nanos, DATE '12026-11-21' AS far, \
             TIMESTAMP '200000-01-01 00:00:00.5' AS further, {IMAGE} AS ome_image FROM range(3) t(i)"
        ),
    );
    let store = open(&path, &OpenOptions::default()).unwrap();
    for (name, row, what) in [
        ("until", 1, "infinity"),
        ("since", 2, "-infinity"),
        ("zoned", 0, "infinity"),
        ("seconds", 1, "-infinity"),
        ("millis", 2, "-infinity"),
        ("nanos", 0, "infinity"),
    ] {
        let error = store.hints().features(&[name.to_owned()]).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.row_index(), Some(row), "{text}");
        assert!(
            text.contains(&format!("the column {name:?} has the time {what}, which other tables")),
            "{text}"
        );
        assert!(
            text.contains("put NULL or another time in its place") && !text.contains("corrupt"),
            "{text}"
        );
    }
    let key = |name: &str| wellread_store::features::keys(&*store, &[name.to_owned()]).unwrap().remove(0);
    assert_eq!((key("far").as_str(), key("further").as_str()), ("+012026-11-21", "+200000-01-01T00:00:00.5"));
    // Pixels and other columns are there all the same.
    assert_eq!(read_image(&*store, 2).unwrap().1, [2, 0, 0xea, 3]);
}

/// The largest number of each unit is infinity in a database. Others that are next to it are kept.
#[test]
fn times_that_are_infinity_in_a_database_are_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.duckdb");
    let days = i64::from(i32::MAX);
    let columns: [ArrayRef; 9] = [
        Arc::new(TimestampNanosecondArray::from(vec![Some(0), None, Some(i64::MAX)])),
        Arc::new(TimestampNanosecondArray::from(vec![0, 0, -i64::MAX])),
        Arc::new(TimestampMicrosecondArray::from(vec![0, 0, i64::MAX])),
        Arc::new(TimestampMicrosecondArray::from(vec![0, 0, -i64::MAX]).with_timezone("UTC")),
        Arc::new(TimestampMillisecondArray::from(vec![0, 0, -i64::MAX])),
        Arc::new(TimestampSecondArray::from(vec![0, 0, i64::MAX])),
        Arc::new(Date32Array::from(vec![0, 0, i32::MAX])),
        Arc::new(Date32Array::from(vec![0, 0, -i32::MAX])),
        Arc::new(Date64Array::from(vec![0, 0, -days * 86_400_000])),
    ];
    for column in columns {
        let is_nanos = matches!(column.data_type(), DataType::Timestamp(TimeUnit::Nanosecond, _));
        let beside = Some(RecordBatch::try_from_iter([("until", column)]).unwrap());
        let with = WriteOptions { features: beside, ..WriteOptions::default() };
        let error = create(&path, "duckdb", &with).err().unwrap();
        let text = error.to_string();
        assert!(text.contains("row 2: the column \"until\" has "), "{text}");
        assert!(text.contains("DuckDB cannot hold this time: it means infinity there"), "{text}");
        assert!(text.contains("leave the column out (without_column)"), "{text}");
        assert_eq!(text.contains("choose parquet, lance or vortex"), is_nanos, "{text}");
        assert!(error.is_choice() && !path.exists(), "{text}");
    }
    let next: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![1 - i64::MAX, i64::MAX - 1]));
    let (format, back) = columns_back(&next).remove(0);
    assert_eq!((format, &back), ("duckdb", &next));
}

/// DuckDB takes names as texts of C.
#[test]
fn names_with_a_nul_byte_are_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    for (format, name) in FORMATS {
        let column: ArrayRef = Arc::new(Date32Array::from(vec![0]));
        let beside = Some(RecordBatch::try_from_iter([("a\0b", column)]).unwrap());
        let with = WriteOptions { features: beside, ..WriteOptions::default() };
        let error = create(dir.path().join(name), format, &with).err().unwrap();
        assert!(error.is_choice() && error.column_name() == Some("a\0b"), "{error}");
        assert!(error.to_string().contains("has a NUL byte"), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

/// The appender would make nulls of times that microseconds do not hold.
#[test]
fn times_that_the_appender_does_not_hold_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.duckdb");
    let fits = 9_223_372_036_853;
    let seconds = |last: i64| -> ArrayRef {
        Arc::new(TimestampSecondArray::from(vec![Some(0), None, Some(last)]).with_timezone("UTC"))
    };
    for (column, said) in [
        (seconds(fits + 1), "+294247-01-10T04:00:54Z, which DuckDB's times with a zone do not hold"),
        (
            Arc::new(Date64Array::from(vec![0, 0, i64::MAX / 2])) as ArrayRef,
            "which DuckDB's dates do not hold",
        ),
    ] {
        let beside = Some(RecordBatch::try_from_iter([("seen", column)]).unwrap());
        let with = WriteOptions { features: beside, ..WriteOptions::default() };
        let images: Vec<_> = (0..3).map(|row| made(row, Shape::plane(8, 8), PixelType::U8)).collect();
        let error = write(&path, "duckdb", &with, &images).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("row 2: the column \"seen\" has ") && text.contains(said), "{text}");
        assert!(error.is_choice() && !path.exists(), "{text}");
    }
    for (format, back) in columns_back(&seconds(fits)) {
        let expected = TimestampMicrosecondArray::from(vec![Some(0), None, Some(fits * 1_000_000)]);
        assert_eq!(
            back.as_primitive::<TimestampMicrosecondType>().values()[2],
            expected.value(2),
            "{format}"
        );
        assert!(back.is_null(1), "{format}");
    }
}

/// The values of the part whose column is nested would be nulls.
#[test]
fn parts_with_unlike_columns_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let part = |name: &str, column: &str| {
        let path = dir.path().join(name);
        database(
            &path,
            &format!("CREATE TABLE images AS SELECT {column}, {IMAGE} AS ome_image FROM range(2) t(i)"),
        );
        path
    };
    let numbers = part("a.duckdb", "i AS c, i AS d");
    for (name, column, why) in [
        ("b.duckdb", "[i] AS c, i AS d", "nested values"),
        ("c.duckdb", "'a'::BLOB AS c, i AS d", "binary values"),
    ] {
        let other = part(name, column);
        for paths in [[&numbers, &other], [&other, &numbers]] {
            let set = open_all(&paths, &OpenOptions::default()).unwrap();
            let error = wellread_store::features::all(&*set).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(&format!("the column \"c\" has {why} in ")), "{text}");
            assert!(text.contains(", and is Int64 in ") && error.is_choice(), "{text}");
            // Other columns can be read.
            let alike = set.hints().features(&["d".to_owned()]).unwrap().unwrap();
            assert_eq!(alike.column(0).as_primitive::<Int64Type>().values(), &[0, 1, 0, 1]);
        }
    }
    // A part without the column has nulls in its rows.
    let without = part("d.duckdb", "i AS d");
    let set = open_all(&[&numbers, &without], &OpenOptions::default()).unwrap();
    let columns = set.hints().features(&["c".to_owned()]).unwrap().unwrap();
    assert_eq!(columns.column(0).null_count(), 2);
}
