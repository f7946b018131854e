//! Names, channels, physical sizes and times of images.

use super::lists::Lists;
use crate::features::{key_at, text};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Float32Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{DataType, TimeUnit};
use wellread_image::ome_arrow::{UNKNOWN_ILLUMINATION, field};
use wellread_image::{Channel, ImageMetadata, PhysicalSize};

/// The metadata fields of rows that are read together.
#[derive(Debug, Default)]
pub(crate) struct MetadataRows {
    /// Batches with the row that each starts at.
    batches: Vec<(usize, StructArray)>,
    len: usize,
}

impl MetadataRows {
    /// Appends the image column of a batch.
    pub fn push(&mut self, images: &StructArray) {
        self.batches.push((self.len, images.clone()));
        self.len += images.len();
    }

    /// The metadata of row `row`; empty where it is null or not there.
    pub fn row(&self, row: usize) -> ImageMetadata {
        let at = self.batches.partition_point(|(start, _)| *start <= row);
        let found = at.checked_sub(1).map(|at| &self.batches[at]);
        found.map_or_else(ImageMetadata::default, |(start, images)| metadata(images, row - start))
    }
}

impl MetadataRows {
    /// Whether row `row` has a type of image, for which [`ImageMetadata`] has no place.
    pub fn has_image_type(&self, row: usize) -> bool {
        let at = self.batches.partition_point(|(start, _)| *start <= row);
        let Some((start, images)) = at.checked_sub(1).map(|at| &self.batches[at]) else { return false };
        let i = row - start;
        let types =
            images.column_by_name(field::IMAGE_TYPE).filter(|_| i < images.len() && images.is_valid(i));
        types.and_then(|types| text(types, i)).is_some_and(|text| !text.is_empty())
    }
}

/// The facts of an image that [`ImageMetadata`] has no place for, in words.
pub(crate) fn unkept(has_image_type: bool, has_masks: bool) -> Vec<&'static str> {
    let facts = [("types of images", has_image_type), ("masks", has_masks)];
    facts.into_iter().filter(|(_, has)| *has).map(|(what, _)| what).collect()
}

/// The metadata of row `i` of an image column.
fn metadata(images: &StructArray, i: usize) -> ImageMetadata {
    if i >= images.len() || images.is_null(i) {
        return ImageMetadata::default();
    }
    let own = |name: &str| images.column_by_name(name);
    let string = |s: &StructArray, name: &str, i: usize| {
        s.column_by_name(name).and_then(|c| text(c, i)).unwrap_or_default().to_owned()
    };
    let mut out = ImageMetadata {
        id: string(images, field::ID, i),
        name: string(images, field::NAME, i),
        acquired: own(field::ACQUISITION).and_then(|c| time(c, i)),
        ..ImageMetadata::default()
    };
    let Some(meta) = own(field::PIXELS_META).and_then(|c| c.as_struct_opt()).filter(|m| !m.is_null(i)) else {
        return out;
    };
    let size = |axis: usize| {
        let value = meta.column_by_name(field::PHYSICAL_SIZES[axis]).and_then(|c| number(c, i))?;
        // No unit is ome-arrow's default; an empty one is what nobody states.
        let unit = meta.column_by_name(field::PHYSICAL_UNITS[axis]).and_then(|c| text(c, i));
        Some(PhysicalSize { value, unit: unit.unwrap_or("µm").to_owned() })
    };
    [out.physical_size_x, out.physical_size_y, out.physical_size_z] = [size(0), size(1), size(2)];
    let channels = meta
        .column_by_name(field::CHANNELS)
        .and_then(Lists::new)
        .and_then(|lists| Some(lists.values().slice(lists.range(i)?.start, lists.range(i)?.len())));
    if let Some(channels) = channels.as_ref().and_then(|c| c.as_struct_opt()) {
        out.channels = (0..channels.len())
            .map(|k| {
                // Upstream writes a wavelength of zero and "Unknown" for what nobody stated.
                let wavelength =
                    |name| channels.column_by_name(name).and_then(|c| number(c, k)).filter(|&um| um > 0.0);
                let illumination = string(channels, field::ILLUMINATION, k);
                Channel {
                    id: string(channels, field::ID, k),
                    name: string(channels, field::NAME, k),
                    emission_um: wavelength(field::EMISSION),
                    excitation_um: wavelength(field::EXCITATION),
                    illumination: Some(illumination)
                        .filter(|text| !text.is_empty() && text != UNKNOWN_ILLUMINATION),
                    color_rgba: channels
                        .column_by_name(field::COLOR)
                        .and_then(|c| number(c, k))
                        .filter(|v| (0.0..=f64::from(u32::MAX)).contains(v))
                        .map(|v| v as u32),
                }
            })
            .collect();
    }
    out
}

/// A number of whatever type. Single precision becomes the double with the same shortest decimal form, so
/// that 0.65 stays 0.65.
fn number(array: &ArrayRef, i: usize) -> Option<f64> {
    if array.is_null(i) {
        return None;
    }
    let value = match array.data_type() {
        DataType::Float32 => array.as_primitive::<Float32Type>().value(i).to_string().parse().ok()?,
        DataType::Float64 => array.as_primitive::<Float64Type>().value(i),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(i).into(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(i).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(i) as f64,
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(i) as f64,
        // DuckDB makes a decimal of 0.65, and a number of 8 bits of a small one.
        of if of.is_numeric() => key_at(array, i)?.parse().ok()?,
        _ => return None,
    };
    value.is_finite().then_some(value)
}

/// A time in ISO 8601, with `Z` where the column says that it is UTC; texts as they are. Times may be of any unit, or days.
fn time(array: &dyn Array, i: usize) -> Option<String> {
    if array.is_null(i) {
        return None;
    }
    let (stamp, zone) = match array.data_type() {
        DataType::Timestamp(unit, zone) => {
            let stamp = match unit {
                TimeUnit::Second => {
                    jiff::Timestamp::from_second(array.as_primitive::<TimestampSecondType>().value(i))
                }
                TimeUnit::Millisecond => {
                    let ms = array.as_primitive::<TimestampMillisecondType>().value(i);
                    jiff::Timestamp::from_millisecond(ms)
                }
                TimeUnit::Microsecond => {
                    let us = array.as_primitive::<TimestampMicrosecondType>().value(i);
                    jiff::Timestamp::from_microsecond(us)
                }
                TimeUnit::Nanosecond => {
                    let ns = array.as_primitive::<TimestampNanosecondType>().value(i);
                    jiff::Timestamp::from_nanosecond(ns.into())
                }
            };
            (stamp, zone.is_some())
        }
        // A day is its midnight.
        DataType::Date32 => {
            let days = i64::from(array.as_primitive::<Date32Type>().value(i));
            (jiff::Timestamp::from_second(days * 86_400), false)
        }
        DataType::Date64 => {
            (jiff::Timestamp::from_millisecond(array.as_primitive::<Date64Type>().value(i)), false)
        }
        _ => return text(array, i).map(str::to_owned),
    };
    let civil = jiff::tz::Offset::UTC.to_datetime(stamp.ok()?);
    Some(if zone { format!("{civil}Z") } else { civil.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{
        Date32Array, Date64Array, Decimal32Array, Decimal128Array, Float32Array, Int8Array, Int64Array,
        StringArray, TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt16Array,
    };
    use std::sync::Arc;

    fn column(array: impl Array + 'static) -> ArrayRef {
        Arc::new(array)
    }

    #[test]
    fn types_of_images_are_seen() {
        let types = StringArray::from(vec![Some("image"), None, Some("")]);
        let field = arrow_schema::Field::new(field::IMAGE_TYPE, DataType::Utf8, true);
        let images = StructArray::from(vec![(Arc::new(field), column(types))]);
        let mut rows = MetadataRows::default();
        rows.push(&images);
        rows.push(&images);
        let has: Vec<bool> = (0..7).map(|row| rows.has_image_type(row)).collect();
        assert_eq!(has, [true, false, false, true, false, false, false]);
        assert_eq!(unkept(true, true), ["types of images", "masks"]);
        assert_eq!(unkept(false, false), Vec::<&str>::new());
    }

    #[test]
    fn numbers_of_every_type_are_read() {
        let of = |column: ArrayRef| [number(&column, 0), number(&column, 1)];
        let sizes = Decimal128Array::from(vec![Some(65), None]).with_precision_and_scale(3, 2).unwrap();
        assert_eq!(of(column(sizes)), [Some(0.65), None]);
        let sizes = Decimal32Array::from(vec![Some(-5), None]).with_precision_and_scale(3, 1).unwrap();
        assert_eq!(of(column(sizes)), [Some(-0.5), None]);
        assert_eq!(of(column(Int8Array::from(vec![Some(2), None]))), [Some(2.0), None]);
        assert_eq!(of(column(UInt16Array::from(vec![Some(461), None]))), [Some(461.0), None]);
        assert_eq!(of(column(Float32Array::from(vec![Some(0.65), None]))), [Some(0.65), None]);
        assert_eq!(of(column(Float32Array::from(vec![f32::NAN, f32::INFINITY]))), [None, None]);
        assert_eq!(of(column(StringArray::from(vec!["1", "2"]))), [None, None]);
        assert_eq!(of(column(TimestampSecondArray::from(vec![1, 2]))), [None, None]);
    }

    #[test]
    fn times_of_every_unit_are_read() {
        let of = |column: &dyn Array| [time(column, 0), time(column, 1)];
        let expected = [Some("2023-11-14T22:13:20".to_owned()), None];
        assert_eq!(of(&TimestampSecondArray::from(vec![Some(1_700_000_000), None])), expected);
        assert_eq!(of(&TimestampMillisecondArray::from(vec![Some(1_700_000_000_000), None])), expected);
        assert_eq!(
            of(&TimestampNanosecondArray::from(vec![Some(1_700_000_000_000_000_000), None])),
            expected
        );
        assert_eq!(of(&Date64Array::from(vec![Some(1_700_000_000_000), None])), expected);
        let zoned = TimestampSecondArray::from(vec![Some(1_700_000_000), None]).with_timezone("UTC");
        assert_eq!(of(&zoned), [Some("2023-11-14T22:13:20Z".to_owned()), None]);
        let days = [Some("1969-12-31T00:00:00".to_owned()), None];
        assert_eq!(of(&Date32Array::from(vec![Some(-1), None])), days);
        assert_eq!(of(&StringArray::from(vec![Some("today"), None])), [Some("today".to_owned()), None]);
        assert_eq!(of(&Int64Array::from(vec![Some(7), None])), [None, None]);
    }
}
