//! Types that hold columns of several parts, and values that contradict names of folders.

use super::*;
use arrow_array::types::TimestampSecondType;
use arrow_array::{Float32Array, Int8Array, LargeStringArray, TimestampSecondArray};
use arrow_schema::TimeUnit;

#[test]
fn numbers_that_a_float_does_not_hold_are_found() {
    let signed: ArrayRef = Arc::new(Int64Array::from(vec![Some(1 << 62), None, Some((1 << 62) + 1)]));
    assert_eq!(rounded(&signed).as_deref(), Some("4611686018427387905"));
    let unsigned: ArrayRef = Arc::new(UInt64Array::from(vec![1 << 63, u64::MAX]));
    assert_eq!(rounded(&unsigned).as_deref(), Some("18446744073709551615"));
    let exact: ArrayRef = Arc::new(Int64Array::from(vec![i64::MIN, -1, 1 << 53]));
    assert_eq!(rounded(&exact), None);
}

#[test]
fn values_agree_with_names_of_folders() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("AA"), None]));
    assert_eq!(differing(&texts, "AA"), None);
    assert_eq!(differing(&texts, "BB").as_deref(), Some("AA"));
    let numbers: ArrayRef = Arc::new(Int8Array::from(vec![Some(1), None, Some(2)]));
    assert_eq!(differing(&numbers, "01").as_deref(), Some("2"));
    assert_eq!(differing(&numbers.slice(0, 2), "01"), None);
    assert_eq!(differing(&numbers, "one").as_deref(), Some("1"));
}

#[test]
fn keys_of_folders_are_as_the_column_is_elsewhere() {
    use DataType::{Boolean, Float64, Int8, Int64, LargeUtf8, UInt8, UInt64, Utf8};
    let cases = [
        ("01", vec![], Some((Utf8, "01"))),
        ("01", vec![LargeUtf8], Some((Utf8, "01"))),
        ("01", vec![Int8], Some((Int64, "1"))),
        ("7", vec![UInt8], Some((UInt64, "7"))),
        ("7", vec![Int8, Float64], Some((Float64, "7.0"))),
        ("0.5", vec![Int8], Some((Float64, "0.5"))),
        ("BR1", vec![Int8], None),
        ("1", vec![Boolean], None),
        ("1", vec![Utf8, Int8], None),
    ];
    for (value, types, expected) in cases {
        let found = as_column(Some(value), &types, 2);
        let found = found.map(|array| (array.data_type().clone(), features::key_at(&array, 1).unwrap()));
        assert_eq!(found, expected.map(|(of, text)| (of, text.to_owned())), "{value} {types:?}");
    }
    assert_eq!(as_column(None, &[Utf8], 2).unwrap().null_count(), 2);
    assert!(as_column(None, &[Int8], 2).is_none());
}

#[test]
fn numbers_become_what_holds_them_all() {
    use DataType::{Boolean, Float32, Float64, Int8, Int64, LargeUtf8, UInt16, UInt64, Utf8};
    let cases = [
        (Int8, Int8, Some(Int8)),
        (Int8, Int64, Some(Int64)),
        (Int8, UInt16, Some(Int64)),
        (UInt16, UInt64, Some(UInt64)),
        (Int8, UInt64, Some(Float64)),
        (Float32, Float64, Some(Float64)),
        (Int64, Float32, Some(Float64)),
        (LargeUtf8, Utf8, Some(Utf8)),
        (Int8, Utf8, None),
        (Boolean, Int8, None),
    ];
    for (a, b, expected) in cases {
        assert_eq!(holding_both(&a, &b), expected, "{a} {b}");
        assert_eq!(holding_both(&b, &a), expected, "{b} {a}");
    }
    let three = |types: [DataType; 3]| of_integers(types.iter());
    assert_eq!(three([DataType::UInt8, UInt16, Int8]), Some(Int64));
    assert_eq!(three([DataType::UInt8, UInt16, UInt16]), Some(UInt64));
    assert_eq!(three([UInt64, UInt16, Int8]), Some(Float64));
    assert_eq!(three([DataType::UInt8, Float32, Int8]), None);
    let zoned = |unit, zone: &str| DataType::Timestamp(unit, Some(zone.into()));
    let [utc, berlin, local] = [
        zoned(TimeUnit::Second, "UTC"),
        zoned(TimeUnit::Second, "Europe/Berlin"),
        DataType::Timestamp(TimeUnit::Second, None),
    ];
    assert_eq!(holding_both(&berlin, &zoned(TimeUnit::Second, "+05:30")), Some(utc.clone()));
    assert_eq!(holding_both(&berlin, &local), None);
    assert_eq!(holding_both(&berlin, &zoned(TimeUnit::Millisecond, "Europe/Berlin")), None);
    let times = TimestampSecondArray::from(vec![Some(7), None]);
    let there: ArrayRef = Arc::new(times.clone().with_timezone("Europe/Berlin"));
    assert_eq!(as_type(&there, &utc).as_primitive::<TimestampSecondType>(), &times.with_timezone("UTC"));
    let narrow: ArrayRef = Arc::new(Int8Array::from(vec![Some(-3), None]));
    let wide = as_type(&narrow, &Int64);
    assert_eq!(wide.as_primitive::<Int64Type>(), &Int64Array::from(vec![Some(-3), None]));
    let wide = as_type(&narrow, &Float64);
    assert_eq!(wide.as_primitive::<Float64Type>().value(0), -3.0);
    let large: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX]));
    assert_eq!(as_type(&large, &UInt64).as_primitive::<UInt64Type>().value(0), u64::MAX);
    let half: ArrayRef = Arc::new(Float32Array::from(vec![0.5]));
    assert_eq!(as_type(&half, &Float64).as_primitive::<Float64Type>().value(0), 0.5);
    let text: ArrayRef = Arc::new(LargeStringArray::from(vec![Some("a"), None]));
    assert_eq!(as_type(&text, &Utf8).as_string::<i32>(), &StringArray::from(vec![Some("a"), None]));
}
