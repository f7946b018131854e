//! Names, channels, physical sizes and times of images.

use super::lists::Lists;
use crate::features::text;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, UInt32Type, UInt64Type,
};
use arrow_array::{Array, StructArray};
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
fn number(array: &dyn Array, i: usize) -> Option<f64> {
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
        _ => return None,
    };
    value.is_finite().then_some(value)
}

/// A time in ISO 8601, with `Z` where the column says that it is UTC; texts as they are.
fn time(array: &dyn Array, i: usize) -> Option<String> {
    if array.is_null(i) {
        return None;
    }
    let (stamp, zone) = match array.data_type() {
        DataType::Timestamp(unit, zone) => {
            let stamp = match unit {
                TimeUnit::Second => return None,
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
            (stamp.ok()?, zone.is_some())
        }
        _ => return text(array, i).map(str::to_owned),
    };
    let civil = jiff::tz::Offset::UTC.to_datetime(stamp);
    Some(if zone { format!("{civil}Z") } else { civil.to_string() })
}
