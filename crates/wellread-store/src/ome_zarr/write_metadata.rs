//! The JSON of new images: group (multiscales, omero) and array, for OME-Zarr 0.4 and 0.5.
//!
//! The name, and the metadata that OME-Zarr has no place for (wavelengths, acquisition time, identifiers), are
//! kept under the attribute `wellread`, which other readers ignore.
//!
//! Both versions ask for a colour of every channel in `omero` (their schemas require `color` and `window`). So one
//! without is written there as white. wellread reads its own attribute, in which such a channel has none.

use super::encode::Compressor;
use super::units::unit_name;
use crate::ImageView;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use wellread_image::{Channel, ImageMetadata, PhysicalSize, PixelType};

/// OME-Zarr version to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    V04,
    V05,
}

/// Chunking of one image, all TCZYX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunking {
    pub chunk: [usize; 5],
    /// Size of a shard, where chunks are sharded.
    pub shard: Option<[usize; 5]>,
}

/// The name of the only level.
pub(super) const DATASET: &str = "0";

/// Metadata files of one image, as paths below its group with their content.
pub(super) fn files(
    version: Version,
    image: &ImageView<'_>,
    chunking: &Chunking,
    compressor: Compressor,
    checksums: bool,
) -> Vec<(String, Value)> {
    let scaled = with_scales(image.metadata);
    let metadata = &*scaled;
    let mut ome = Map::new();
    let mut multiscale = json!({
        "name": metadata.name,
        "axes": axes(metadata),
        "datasets": [{
            "path": DATASET,
            "coordinateTransformations": [{"type": "scale", "scale": scale(metadata)}],
        }],
    });
    match version {
        Version::V05 => ome.insert("version".into(), "0.5".into()),
        Version::V04 => multiscale.as_object_mut().and_then(|m| m.insert("version".into(), "0.4".into())),
    };
    ome.insert("multiscales".into(), json!([multiscale]));
    if metadata.channels.len() == image.shape.c() {
        ome.insert("omero".into(), omero(version, &metadata.channels, image.dtype));
    }
    let kept = kept(metadata);
    match version {
        Version::V05 => {
            let mut attributes = Map::from_iter([("ome".to_owned(), Value::Object(ome))]);
            attributes.extend([kept]);
            vec![
                (
                    "zarr.json".into(),
                    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes}),
                ),
                (format!("{DATASET}/zarr.json"), array_v3(image, chunking, compressor, checksums)),
            ]
        }
        Version::V04 => {
            ome.extend([kept]);
            vec![
                (".zgroup".into(), json!({"zarr_format": 2})),
                (".zattrs".into(), Value::Object(ome)),
                (format!("{DATASET}/.zarray"), array_v2(image, chunking, compressor)),
            ]
        }
    }
}

/// The metadata without sizes and times that no scale can be: zero, negative or no number. Their axes have no unit then,
/// and readers take a scale of 1 without a unit for an unknown size.
fn with_scales(metadata: &ImageMetadata) -> Cow<'_, ImageMetadata> {
    let is_scale = |value: f64| value.is_finite() && value > 0.0;
    let sizes = [&metadata.physical_size_x, &metadata.physical_size_y, &metadata.physical_size_z];
    let all_are = sizes.into_iter().flatten().all(|size| is_scale(size.value))
        && metadata.time_increment.as_ref().is_none_or(|step| is_scale(step.value));
    if all_are {
        return Cow::Borrowed(metadata);
    }
    let size = |size: &Option<PhysicalSize>| size.clone().filter(|size| is_scale(size.value));
    Cow::Owned(ImageMetadata {
        physical_size_x: size(&metadata.physical_size_x),
        physical_size_y: size(&metadata.physical_size_y),
        physical_size_z: size(&metadata.physical_size_z),
        time_increment: metadata.time_increment.clone().filter(|step| is_scale(step.value)),
        ..metadata.clone()
    })
}

fn axes(metadata: &ImageMetadata) -> Value {
    let axis = |name: &str, kind: &str, unit: Option<&str>| match unit {
        Some(unit) if !unit.is_empty() => json!({"name": name, "type": kind, "unit": unit_name(unit)}),
        _ => json!({"name": name, "type": kind}),
    };
    let space = |name: &str, size: &Option<PhysicalSize>| {
        axis(name, "space", size.as_ref().map(|size| size.unit.as_str()))
    };
    json!([
        axis("t", "time", metadata.time_increment.as_ref().map(|step| step.unit.as_str())),
        axis("c", "channel", None),
        space("z", &metadata.physical_size_z),
        space("y", &metadata.physical_size_y),
        space("x", &metadata.physical_size_x),
    ])
}

fn scale(metadata: &ImageMetadata) -> [f64; 5] {
    let value = |size: &Option<PhysicalSize>| size.as_ref().map_or(1.0, |size| size.value);
    [
        metadata.time_increment.as_ref().map_or(1.0, |step| step.value),
        1.0,
        value(&metadata.physical_size_z),
        value(&metadata.physical_size_y),
        value(&metadata.physical_size_x),
    ]
}

/// The colour in `omero` of a channel without one: white, as viewers draw a channel of which nothing is known.
const NO_COLOR: u32 = 0xffff_ffff;

fn omero(version: Version, channels: &[Channel], dtype: PixelType) -> Value {
    let (low, high) = dtype.range();
    let channels: Vec<Value> = channels
        .iter()
        .map(|c| {
            json!({
                "label": c.name,
                "color": format!("{:06X}", c.color_rgba.unwrap_or(NO_COLOR) >> 8),
                "active": true,
                "window": {"min": low, "max": high, "start": low, "end": high},
            })
        })
        .collect();
    match version {
        Version::V04 => json!({"version": "0.4", "channels": channels}),
        Version::V05 => json!({"channels": channels}),
    }
}

/// The name, that every chunk is written, and the metadata that the fields of OME-Zarr cannot hold, if there
/// are any.
fn kept(metadata: &ImageMetadata) -> (String, Value) {
    let plain = ImageMetadata {
        physical_size_x: metadata.physical_size_x.clone(),
        physical_size_y: metadata.physical_size_y.clone(),
        physical_size_z: metadata.physical_size_z.clone(),
        time_increment: metadata.time_increment.clone(),
        ..ImageMetadata::named(metadata.name.clone())
    };
    let mut kept = json!({"name": metadata.name, "complete": true});
    if *metadata != plain {
        kept["image"] = json!(metadata);
    }
    ("wellread".to_owned(), kept)
}

fn array_v3(image: &ImageView<'_>, chunking: &Chunking, compressor: Compressor, checksums: bool) -> Value {
    let bytes = if image.dtype.size() == 1 {
        json!({"name": "bytes"})
    } else {
        json!({"name": "bytes", "configuration": {"endian": "little"}})
    };
    let codecs: Vec<Value> = std::iter::once(bytes).chain(compressor.v3(image.dtype, checksums)).collect();
    let codecs = match chunking.shard {
        None => json!(codecs),
        Some(_) => json!([{"name": "sharding_indexed", "configuration": {
            "chunk_shape": chunking.chunk,
            "codecs": codecs,
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
            "index_location": "end",
        }}]),
    };
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": image.shape,
        "data_type": image.dtype.name(),
        "chunk_grid": {
            "name": "regular",
            "configuration": {"chunk_shape": chunking.shard.unwrap_or(chunking.chunk)},
        },
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": if image.dtype.is_float() { json!(0.0) } else { json!(0) },
        "codecs": codecs,
        "attributes": {},
        "dimension_names": ["t", "c", "z", "y", "x"],
    })
}

fn array_v2(image: &ImageView<'_>, chunking: &Chunking, compressor: Compressor) -> Value {
    let dtype = match image.dtype {
        PixelType::U8 => "|u1",
        PixelType::I8 => "|i1",
        PixelType::U16 => "<u2",
        PixelType::I16 => "<i2",
        PixelType::U32 => "<u4",
        PixelType::I32 => "<i4",
        PixelType::F32 => "<f4",
        PixelType::F64 => "<f8",
    };
    json!({
        "zarr_format": 2,
        "shape": image.shape,
        "chunks": chunking.chunk,
        "dtype": dtype,
        "fill_value": if image.dtype.is_float() { json!(0.0) } else { json!(0) },
        "order": "C",
        "filters": null,
        "dimension_separator": "/",
        "compressor": compressor.v2(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_image::{Shape, TimeIncrement};

    #[test]
    fn sizes_that_are_no_scale_are_not_written() {
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let size = |value: f64| Some(PhysicalSize { value, unit: "µm".into() });
            let metadata = ImageMetadata {
                physical_size_x: size(value),
                physical_size_y: size(0.6),
                time_increment: Some(TimeIncrement { value, unit: "s".into() }),
                acquired: Some("2026-11-21T05:38:56".into()),
                ..ImageMetadata::named("a")
            };
            let shape = Shape::plane(2, 3);
            let image = ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &[7; 6] };
            let chunking = Chunking { chunk: [1, 1, 1, 2, 3], shard: None };
            let files = files(Version::V05, &image, &chunking, Compressor::None, false);
            let attributes = &files[0].1["attributes"];
            let multiscale = &attributes["ome"]["multiscales"][0];
            let scale = &multiscale["datasets"][0]["coordinateTransformations"][0]["scale"];
            assert_eq!(*scale, json!([1.0, 1.0, 1.0, 0.6, 1.0]), "{value}");
            let units: Vec<Option<&str>> =
                (0..5_usize).map(|i| multiscale["axes"][i]["unit"].as_str()).collect();
            assert_eq!(units, [None, None, None, Some("micrometer"), None], "{value}");
            let kept = &attributes["wellread"]["image"];
            assert_eq!(kept["physical_size_x"], Value::Null, "{value}");
            assert_eq!(kept["acquired"], json!("2026-11-21T05:38:56"), "{value}");
        }
    }
}
