//! Columns of types that Arrow has not, or has otherwise.

use crate::{IMAGE, columns_back, database};
use arrow_array::Array as _;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Decimal128Type, Int64Type, Time64MicrosecondType, Time64NanosecondType};
use arrow_array::{ArrayRef, Time64NanosecondArray};
use std::sync::Arc;
use wellread_store::{OpenOptions, open, open_all, read_image};

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
