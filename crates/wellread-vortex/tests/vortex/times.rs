//! Dates and times at the ends of what the library takes, and beyond.

use crate::{SHAPES, image, open, options, write};
use std::sync::Arc;
use wellread_image::PixelType;
use wellread_store::table::arrow_array::{
    Array, ArrayRef, Date32Array, RecordBatch, Time64MicrosecondArray, TimestampMicrosecondArray,
    TimestampSecondArray,
};
use wellread_store::{WriteOptions, features};

/// Rows of a set.
const ROWS: usize = 3;

fn written(name: &str, column: &ArrayRef) -> wellread_store::Result<ArrayRef> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set.vortex");
    let beside = RecordBatch::try_from_iter_with_nullable([(name, Arc::clone(column), true)]).unwrap();
    let images: Vec<_> = (0..ROWS).map(|n| image(n, SHAPES[1], PixelType::U8)).collect();
    write(&path, &WriteOptions { features: Some(beside), ..options() }, &images)?;
    let back = features::all(&*open(&path).unwrap()).unwrap().unwrap();
    Ok(Arc::clone(back.column(0)))
}

#[test]
fn times_at_the_ends_of_the_range_are_kept() {
    let (first, last) = (-377_705_023_201_000_000, 253_402_207_200_999_999);
    let columns: [ArrayRef; 7] = [
        Arc::new(TimestampMicrosecondArray::from(vec![Some(first), None, Some(last)])),
        // Columns of one value are stored as that.
        Arc::new(TimestampMicrosecondArray::from(vec![first; ROWS])),
        Arc::new(TimestampMicrosecondArray::from(vec![last; ROWS]).with_timezone("+05:30")),
        Arc::new(TimestampSecondArray::from(vec![253_402_207_200; ROWS])),
        Arc::new(Time64MicrosecondArray::from(vec![Some(0), None, Some(86_399_999_999)])),
        // Days are not looked at by the library.
        Arc::new(Date32Array::from(vec![i32::MAX - 1, 0, 2 - i32::MAX])),
        Arc::new(Date32Array::from(vec![i32::MAX - 1; ROWS])),
    ];
    for column in columns {
        assert_eq!(&written("seen", &column).unwrap(), &column, "{}", column.data_type());
    }
}

#[test]
fn times_beyond_the_range_are_refused_before_anything_is_written() {
    let columns: [(ArrayRef, &str); 4] = [
        (
            Arc::new(TimestampMicrosecondArray::from(vec![Some(0), None, Some(253_402_207_201_000_000)])),
            "row 2: Vortex cannot be written: the column \"seen\" has the time 9999-12-30T22:00:01",
        ),
        (
            Arc::new(TimestampSecondArray::from(vec![0, i64::MAX, 0])),
            "row 1: Vortex cannot be written: the column \"seen\" has the time +292277026596-12-04T15:30:07",
        ),
        (
            Arc::new(Time64MicrosecondArray::from(vec![86_400_000_000; ROWS])),
            "row 0: Vortex cannot be written: the column \"seen\" has the time 24:00:00",
        ),
        (
            Arc::new(TimestampMicrosecondArray::from(vec![0; ROWS]).with_timezone("Mars/Base")),
            "Vortex cannot be written: the column \"seen\" has times of the zone \"Mars/Base\"",
        ),
    ];
    for (column, said) in columns {
        let error = written("seen", &column).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(said) && text.contains("without_column"), "{text}");
        assert!(error.is_choice() && !text.contains("corrupt"), "{text}");
    }
}
