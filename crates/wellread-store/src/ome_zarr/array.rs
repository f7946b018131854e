//! Array metadata of Zarr v3 (`zarr.json`) and v2 (`.zarray`), resolved to a plan in TCZYX order.
//!
//! Everything in it is checked here, once: later code may multiply and index without fear. Images of a set
//! mostly have the same metadata, so plans are shared between rows.

use super::chunk::Target;
use super::chunk_codecs::{ChunkCodecs, resolve};
use super::fill;
use super::group::{Level, check_format};
use super::metadata_file::parse;
use crate::refusal::Refusal;
use crate::stored_type::StoredType;
use crate::{Result, RowInfo};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use wellread_image::{PixelType, Shape};
use zarrs::array::ArrayMetadataV2;
use zarrs::convert::{ArrayMetadataV2ToV3Error, array_metadata_v2_to_v3};

/// How to find and decode the chunks of one array.
#[derive(Debug)]
pub(super) struct ArrayPlan {
    pub info: RowInfo,
    /// The type of pixels in chunks.
    pub stored: StoredType,
    /// Path of the array below its group.
    pub dataset: String,
    /// Chunk (or shard) length along TCZYX.
    pub chunk: [usize; 5],
    /// Number of chunks (or shards) along TCZYX.
    pub grid: [usize; 5],
    /// One pixel of a missing chunk, little-endian, of the stored type; as many bytes count as that has.
    pub fill: [u8; 8],
    /// Whether no chunk may be missing.
    pub complete: bool,
    pub codecs: ChunkCodecs,
    /// Whether its metadata are those of Zarr 3.
    pub is_v3: bool,
    /// TCZYX axis of each array dimension.
    axes: Vec<usize>,
    /// The beginning of chunk keys: `c` and the separator, or nothing.
    prefix: &'static str,
    separator: char,
}

#[derive(Deserialize)]
struct V3 {
    zarr_format: Option<Value>,
    node_type: String,
    shape: Vec<u64>,
    data_type: Value,
    chunk_grid: Value,
    chunk_key_encoding: Value,
    fill_value: Value,
    codecs: Vec<Value>,
    #[serde(default)]
    storage_transformers: Vec<Value>,
}

#[derive(Deserialize)]
struct V2 {
    zarr_format: Option<Value>,
    shape: Vec<u64>,
    chunks: Vec<u64>,
    dtype: Value,
    fill_value: Value,
    order: String,
    compressor: Value,
    #[serde(default)]
    filters: Value,
    #[serde(default)]
    dimension_separator: Option<String>,
}

/// The metadata that both versions share.
struct ArrayMetadata {
    shape: Vec<u64>,
    chunks: Vec<u64>,
    stored: StoredType,
    fill: [u8; 8],
    codecs: Vec<Value>,
    prefix: &'static str,
    separator: char,
}

impl ArrayPlan {
    /// Resolves the metadata `bytes` of `file` (Zarr version `zarr`) for an image's `level`.
    ///
    /// # Errors
    /// Malformed or unsupported metadata, or sizes that no image has.
    pub fn resolve(file: &Path, bytes: &[u8], zarr: u8, level: &Level) -> Result<Self> {
        let described = if zarr == 3 { v3(parse(file, bytes)?) } else { v2(parse(file, bytes)?, bytes) };
        let convert = "convert the image with the program that wrote it, or with zarr-python";
        described
            .and_then(|d| Self::from_described(&d, level))
            .map(|plan| Self { is_v3: zarr == 3, ..plan })
            .map_err(|refusal| refusal.error(file, "", convert))
    }

    fn from_described(d: &ArrayMetadata, level: &Level) -> Result<Self, Refusal> {
        let axes = match &level.axes {
            Some(axes) => axes.clone(),
            None if d.shape.len() == 5 => (0..5).collect(),
            None => {
                return Err(format!(
                    "the group names no axes, and the array has {} dimensions instead of five",
                    d.shape.len()
                )
                .into());
            }
        };
        if axes.len() != d.shape.len() || axes.len() != d.chunks.len() {
            return Err(format!(
                "the group names {} axes, but the array has {} dimensions and its chunks have {}",
                axes.len(),
                d.shape.len(),
                d.chunks.len()
            )
            .into());
        }
        let (mut shape, mut chunk, mut dims) = ([1; 5], [1; 5], vec![]);
        for ((&axis, &length), &part) in axes.iter().zip(&d.shape).zip(&d.chunks) {
            shape[axis] = usize::try_from(length).map_err(|_| format!("an axis of length {length}"))?;
            chunk[axis] = usize::try_from(part).map_err(|_| format!("a chunk of length {part}"))?;
            dims.push(chunk[axis]);
        }
        let (shape, chunk_shape) = (Shape(shape), Shape(chunk));
        let dtype = d.stored.dtype();
        shape.checked_bytes(dtype).map_err(|e| e.to_string())?;
        chunk_shape.checked_bytes(dtype).map_err(|e| format!("its chunks are impossible: {e}"))?;
        let mut grid = [1; 5];
        for axis in 0..5 {
            grid[axis] = shape.0[axis].div_ceil(chunk[axis]);
        }
        let target = Target { axes: &axes, chunk: &dims, stored: d.stored, fill: d.fill };
        Ok(Self {
            info: RowInfo { shape, dtype },
            stored: d.stored,
            dataset: level.dataset.clone(),
            chunk,
            grid,
            fill: d.fill,
            complete: level.complete,
            codecs: resolve(&d.codecs, &target)?,
            is_v3: false,
            axes,
            prefix: d.prefix,
            separator: d.separator,
        })
    }

    /// Writes the key (path below the array) of the chunk at `at` (TCZYX, in chunks) into `key`.
    pub fn key(&self, at: [usize; 5], key: &mut String) {
        key.clear();
        key.push_str(self.prefix);
        for (i, &axis) in self.axes.iter().enumerate() {
            if i > 0 || !self.prefix.is_empty() {
                key.push(self.separator);
            }
            // Writing to a String cannot fail.
            let _ = write!(key, "{}", at[axis]);
        }
    }
}

fn v3(array: V3) -> Result<ArrayMetadata, Refusal> {
    check_format(array.zarr_format.as_ref(), 3)?;
    if array.node_type != "array" {
        return Err(format!("a {} is where the image's array should be", array.node_type).into());
    }
    if !array.storage_transformers.is_empty() {
        return Err(Refusal::unsupported("storage transformers are not supported"));
    }
    let name = array.data_type.as_str().or_else(|| array.data_type.get("name")?.as_str());
    let stored = match name {
        Some("bool") => Some(StoredType::Pixel(PixelType::U8)),
        name => StoredType::ALL.into_iter().find(|stored| Some(stored.name()) == name),
    };
    let stored = stored.ok_or_else(|| unsupported_dtype(&array.data_type))?;
    if array.chunk_grid.get("name").and_then(Value::as_str) != Some("regular") {
        let grid = &array.chunk_grid;
        return Err(Refusal::unsupported(format_args!("only regular chunk grids are supported, not {grid}")));
    }
    let chunks = array.chunk_grid.pointer("/configuration/chunk_shape").map(Vec::<u64>::deserialize);
    let Some(Ok(chunks)) = chunks else {
        return Err("the chunk grid has no proper chunk_shape".into());
    };
    let encoding = &array.chunk_key_encoding;
    let separator = encoding.pointer("/configuration/separator").and_then(Value::as_str);
    let (prefix, separator) =
        match (encoding.get("name").or(Some(encoding)).and_then(Value::as_str), separator) {
            (Some("default"), None | Some("/")) => ("c", '/'),
            (Some("default"), Some(".")) => ("c", '.'),
            (Some("v2"), None | Some(".")) => ("", '.'),
            (Some("v2"), Some("/")) => ("", '/'),
            _ => return Err(Refusal::unsupported(format_args!("unknown chunk key encoding {encoding}"))),
        };
    let fill = fill::pixel(&array.fill_value, stored)?;
    Ok(ArrayMetadata { shape: array.shape, chunks, stored, fill, codecs: array.codecs, prefix, separator })
}

fn v2(array: V2, bytes: &[u8]) -> Result<ArrayMetadata, Refusal> {
    check_format(array.zarr_format.as_ref(), 2)?;
    let name = array.dtype.as_str().unwrap_or_default();
    let kind = name.get(1..).unwrap_or_default();
    let stored = match kind {
        "u1" | "b1" => StoredType::Pixel(PixelType::U8),
        "i1" => StoredType::Pixel(PixelType::I8),
        "u2" => StoredType::Pixel(PixelType::U16),
        "i2" => StoredType::Pixel(PixelType::I16),
        "u4" => StoredType::Pixel(PixelType::U32),
        "i4" => StoredType::Pixel(PixelType::I32),
        "u8" => StoredType::U64,
        "i8" => StoredType::I64,
        "f2" => StoredType::F16,
        "f4" => StoredType::Pixel(PixelType::F32),
        "f8" => StoredType::Pixel(PixelType::F64),
        _ => return Err(unsupported_dtype(&array.dtype)),
    };
    let endian = match name.as_bytes()[0] {
        b'>' => "big",
        b'<' | b'|' | b'=' => "little",
        _ => return Err(unsupported_dtype(&array.dtype)),
    };
    let separator = match array.dimension_separator.as_deref() {
        Some("/") => '/',
        Some(".") | None => '.',
        Some(other) => return Err(format!("unknown dimension separator {other:?}").into()),
    };
    let plain = array.filters.is_null() || array.filters.as_array().is_some_and(Vec::is_empty);
    let compressor = match array.compressor.get("id").and_then(Value::as_str) {
        None if array.compressor.is_null() => Some(None),
        Some(id @ ("zstd" | "gzip" | "zlib" | "blosc" | "lz4")) => {
            Some(Some(json!({"name": id, "configuration": array.compressor})))
        }
        _ => None,
    };
    let codecs = match compressor {
        Some(compressor) if plain => {
            let mut codecs = vec![];
            match array.order.as_str() {
                "C" => {}
                "F" => codecs.push(json!({"name": "transpose", "configuration": {"order": "F"}})),
                other => return Err(format!("unknown memory order {other:?}").into()),
            }
            codecs.push(json!({"name": "bytes", "configuration": {"endian": endian}}));
            codecs.extend(compressor);
            codecs
        }
        // Filters and rarer compressors in the terms of Zarr v3, as zarrs translates them.
        _ => {
            let metadata: ArrayMetadataV2 = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
            let metadata = array_metadata_v2_to_v3(&metadata).map_err(|error| match error {
                // Its own text shows the configuration as Rust does.
                ArrayMetadataV2ToV3Error::UnsupportedCodec(name, configuration) => {
                    let configuration = Value::Object(configuration);
                    Refusal::unsupported(format_args!(
                        "unsupported codec {name} with configuration {configuration}"
                    ))
                }
                other => Refusal::unsupported(other),
            })?;
            metadata
                .codecs
                .iter()
                .map(serde_json::to_value)
                .collect::<Result<_, _>>()
                .map_err(|e| e.to_string())?
        }
    };
    let fill = fill::pixel(&array.fill_value, stored)?;
    Ok(ArrayMetadata {
        shape: array.shape,
        chunks: array.chunks,
        stored,
        fill,
        codecs,
        prefix: "",
        separator,
    })
}

fn unsupported_dtype(dtype: &Value) -> Refusal {
    let known = StoredType::ALL.map(StoredType::name);
    Refusal::unsupported(format_args!(
        "pixels of type {dtype} are not supported; supported: {}, bool",
        known.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_metadata_is_refused() {
        let level = Level { dataset: "0".into(), axes: Some(vec![3, 4]), complete: false };
        let base = json!({
            "zarr_format": 3, "node_type": "array", "shape": [4, 5], "data_type": "uint16", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 5]}},
            "chunk_key_encoding": {"name": "default"}, "codecs": ["bytes"],
        });
        let resolve = |change: &dyn Fn(&mut Value)| {
            let mut metadata = base.clone();
            change(&mut metadata);
            ArrayPlan::resolve(Path::new("zarr.json"), metadata.to_string().as_bytes(), 3, &level)
        };
        assert_eq!(resolve(&|_| {}).unwrap().grid, [1, 1, 1, 2, 1]);
        let chunks = "/chunk_grid/configuration/chunk_shape";
        for (pointer, value) in [
            ("/shape", json!([4, 5, 6])),
            ("/shape", json!([0, 5])),
            ("/shape", json!([u64::MAX, u64::MAX])),
            ("/shape", json!([-4, 5])),
            (chunks, json!([0, 5])),
            (chunks, json!([u64::MAX, 5])),
            (chunks, json!([2])),
            ("/data_type", json!("complex64")),
            ("/fill_value", json!("x")),
            ("/codecs", json!([])),
            ("/codecs", json!(["bytes", "lzma"])),
            ("/codecs", json!([{"name": "transpose", "configuration": {"order": [0, 0]}}, "bytes"])),
            ("/chunk_key_encoding", json!("other")),
            ("/node_type", json!("group")),
            ("/zarr_format", json!(2)),
            ("/zarr_format", json!("3")),
            ("/codecs/0", json!({"name": "bytes", "configuration": 5})),
        ] {
            let result = resolve(&|m| *m.pointer_mut(pointer).unwrap() = value.clone());
            assert!(result.is_err(), "{pointer} = {value}");
        }
    }
}
