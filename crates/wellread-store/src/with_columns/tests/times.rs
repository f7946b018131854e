//! Keys that are times, in columns of several units.

use super::*;
use arrow_array::{TimestampMicrosecondArray, TimestampMillisecondArray};

/// Three seconds of 2020 from midnight on, in milliseconds and in microseconds.
fn times() -> [ArrayRef; 2] {
    let milliseconds = [1_577_836_800_000, 1_577_836_801_000, 1_577_836_802_000];
    [
        Arc::new(TimestampMillisecondArray::from(milliseconds.to_vec())),
        Arc::new(TimestampMicrosecondArray::from(milliseconds.map(|ms| ms * 1000).to_vec())),
    ]
}

#[test]
fn times_are_compared_by_their_value() {
    let [milliseconds, microseconds] = times();
    let of = |column: &ArrayRef| Named(batch(vec![("at", Arc::clone(column))]));
    let table = |column: &ArrayRef| batch(vec![("at", Arc::clone(column)), ("dose", numbers(&[1, 2, 3]))]);
    for (images, rows) in [(&milliseconds, &microseconds), (&microseconds, &milliseconds)] {
        let found = joined(&of(images), &[table(rows)], &on(&["at"]), false).unwrap();
        assert_eq!(values(&found, "dose"), some(&["1", "2", "3"]));
    }
    // The same numbers, of other times.
    let other: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1_577_836_800_000, 0, 1]));
    let error = joined(&of(&milliseconds), &[table(&other)], &on(&["at"]), true).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("no image has a row by at"), "{said}");
    assert!(said.contains("and have 2020-01-01, 2020-01-01T00:00:01, 2020-01-01T00:00:02 there"), "{said}");
    assert!(
        said.contains("rows have 1970-01-19T06:17:16.8, 1970-01-01, 1970-01-01T00:00:00.000001"),
        "{said}"
    );
    // Numbers are no times.
    let plain = table(&numbers(&[1_577_836_800_000, 1_577_836_801_000, 1_577_836_802_000]));
    let error = joined(&of(&milliseconds), &[plain], &on(&["at"]), true).unwrap_err();
    let said = error.to_string();
    assert!(error.is_choice() && said.contains("column \"at\" has Arrow's type Int64"), "{said}");
    assert!(said.contains("the images' column \"at\" has Timestamp(ms): times and numbers"), "{said}");
}

#[test]
fn groups_of_times_have_one_key_in_each_unit() {
    let [milliseconds, microseconds] = times();
    let keys = |column: ArrayRef| features::keys(&Named(batch(vec![("at", column)])), &on(&["at"])).unwrap();
    let found = keys(milliseconds);
    assert_eq!(found, ["2020-01-01T00:00:00", "2020-01-01T00:00:01", "2020-01-01T00:00:02"]);
    assert_eq!(keys(microseconds), found);
    // Divisions by numbers stay as they were.
    assert_eq!(keys(numbers(&[-1, 0, 12])), ["-1", "0", "12"]);
    assert_eq!(keys(Arc::new(Float32Array::from(vec![-0.0, 0.5, 2.0]))), ["-0.0", "0.5", "2.0"]);
}

#[test]
fn values_of_rows_are_those_of_their_keys() {
    let [milliseconds, _] = times();
    let named = Named(batch(vec![("at", numbers(&[-1, 0, 12])), ("of", milliseconds)]));
    let columns = on(&["of", "at"]);
    let values = features::row_values(&named, &columns).unwrap();
    let text = |value: &str| Some(value.to_owned());
    assert_eq!(values[1], [text("2020-01-01T00:00:01"), text("0")]);
    let keys = features::keys(&named, &columns).unwrap();
    assert_eq!(values.iter().map(|values| features::key_of(values)).collect::<Vec<_>>(), keys);
}
