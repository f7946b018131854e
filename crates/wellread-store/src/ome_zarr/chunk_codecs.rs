//! The codecs of an array, resolved from its metadata: how its chunks are decoded and put in order.
//!
//! ```text
//!  [transpose …] bytes [compressor] [crc32c] ──▶ Kind::Chunk(Native)
//!  [transpose …] anything else that zarrs knows ─▶ Kind::Chunk(General)
//!  [transpose …] sharding_indexed(codecs) ───────▶ Kind::Shard(codecs of its inner chunks)
//! ```

use super::chunk::Target;
use super::codec::ChunkCodec;
use super::general::General;
use super::native::{Compressor, Native};
use super::order::Reorder;
use super::shard::{ShardCodec, inner_chunk};
use crate::refusal::Refusal;
use serde_json::Value;

/// The codecs of a chunk of an array.
#[derive(Debug)]
pub(super) struct ChunkCodecs {
    pub kind: Kind,
    /// How to bring a decoded chunk to TCZYX order, unless it is (or the file is a shard).
    pub reorder: Option<Reorder>,
    /// For `wellread info`, such as `zstd` or `blosc(lz4, shuffle)`.
    pub label: String,
    /// Whether chunks have a checksum, as far as the codecs tell.
    pub checked: bool,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// The file is one encoded chunk.
    Chunk(ChunkCodec),
    /// The file is a shard: many encoded chunks and an index.
    Shard(Box<ShardCodec>),
}

/// The name and configuration of a codec, which may be a bare name.
fn named(codec: &Value) -> Result<(&str, &Value), String> {
    match codec {
        Value::String(name) => Ok((name, &Value::Null)),
        Value::Object(fields) => {
            let name = fields.get("name").and_then(Value::as_str);
            let name = name.ok_or_else(|| format!("a codec has no name: {codec}"))?;
            match fields.get("configuration").unwrap_or(&Value::Null) {
                configuration @ (Value::Null | Value::Object(_)) => Ok((name, configuration)),
                other => Err(format!("the codec {name} has a configuration that is none: {other}")),
            }
        }
        _ => Err(format!("{codec} is no codec")),
    }
}

/// Resolves the `codecs` of Zarr v3 metadata (v2 metadata is brought into this form first).
pub(super) fn resolve(codecs: &[Value], target: &Target<'_>) -> Result<ChunkCodecs, Refusal> {
    let mut order = target.axes.to_vec();
    let mut chunk = target.chunk.to_vec();
    let mut rest = codecs;
    while let Some((first, after)) = rest.split_first() {
        let (name, configuration) = named(first)?;
        if name != "transpose" {
            break;
        }
        let permutation = permutation(configuration, order.len())?;
        order = permutation.iter().map(|&i| order[i]).collect();
        chunk = permutation.iter().map(|&i| chunk[i]).collect();
        rest = after;
    }
    let (first, trailing) = rest.split_first().ok_or("the array has no array-to-bytes codec")?;
    let (name, configuration) = named(first)?;
    let target = Target { axes: &order, chunk: &chunk, ..*target };
    let (kind, label) = match name {
        "sharding_indexed" if !trailing.is_empty() => {
            return Err(Refusal::unsupported("codecs after sharding_indexed are not supported"));
        }
        "sharding_indexed" => {
            let (shard, label) = shard(configuration, &target)?;
            (Kind::Shard(Box::new(shard)), label)
        }
        "bytes" | "endian" => match native(configuration, trailing)? {
            Some((native, label)) => (Kind::Chunk(ChunkCodec::Native(native)), label),
            None => general(rest, &target)?,
        },
        _ => general(rest, &target)?,
    };
    let mut shape = [1; 5];
    for (&axis, &n) in order.iter().zip(&chunk) {
        shape[axis] = n;
    }
    let reorder = match kind {
        Kind::Chunk(_) => Reorder::new(shape, &order),
        Kind::Shard(_) => None,
    };
    Ok(ChunkCodecs { kind, reorder, label, checked: is_checked(codecs) })
}

/// Whether one of the codecs makes a checksum. Zarr v2 does not say whether frames of Zstandard have one; ours have.
fn is_checked(codecs: &[Value]) -> bool {
    codecs.iter().any(|codec| {
        let Ok((name, configuration)) = named(codec) else { return false };
        match name.trim_start_matches("numcodecs.") {
            "crc32c" | "crc32" | "adler32" | "fletcher32" | "gzip" | "zlib" => true,
            "zstd" => configuration.get("checksum").and_then(Value::as_bool).unwrap_or(true),
            "sharding_indexed" => {
                configuration.get("codecs").and_then(Value::as_array).is_some_and(|inner| is_checked(inner))
            }
            _ => false,
        }
    })
}

fn general(codecs: &[Value], target: &Target<'_>) -> Result<(Kind, String), Refusal> {
    let names: Result<Vec<_>, _> = codecs.iter().map(|c| named(c).map(|(name, _)| name)).collect();
    let label = names?.join("+");
    Ok((Kind::Chunk(ChunkCodec::General(Box::new(General::new(codecs, target)?))), label))
}

fn permutation(configuration: &Value, rank: usize) -> Result<Vec<usize>, String> {
    let wrong = || format!("the transpose codec has a wrong order: {configuration}");
    match configuration.get("order") {
        Some(Value::String(order)) if order == "C" => Ok((0..rank).collect()),
        Some(Value::String(order)) if order == "F" => Ok((0..rank).rev().collect()),
        Some(Value::Array(order)) => {
            let order: Vec<usize> =
                order.iter().filter_map(Value::as_u64).filter_map(|i| usize::try_from(i).ok()).collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if sorted.iter().copied().eq(0..rank) { Ok(order) } else { Err(wrong()) }
        }
        _ => Err(wrong()),
    }
}

/// `bytes` and what follows it, if that is what [`Native`] can do.
fn native(bytes: &Value, trailing: &[Value]) -> Result<Option<(Native, String)>, String> {
    let big_endian = match bytes.get("endian").and_then(Value::as_str) {
        Some("big") => true,
        Some("little") | None => false,
        Some(other) => return Err(format!("unknown byte order {other:?}")),
    };
    let mut native = Native { compressor: Compressor::None, crc32c: false, big_endian };
    let mut label = "none".to_owned();
    for codec in trailing {
        let (name, configuration) = named(codec)?;
        let compressor = match name {
            "zstd" | "numcodecs.zstd" => Compressor::Zstd,
            "gzip" | "numcodecs.gzip" => Compressor::Gzip,
            "zlib" | "numcodecs.zlib" => Compressor::Zlib,
            "blosc" | "numcodecs.blosc" => Compressor::Blosc,
            "lz4" | "numcodecs.lz4" => Compressor::Lz4,
            "crc32c" if !native.crc32c => {
                native.crc32c = true;
                label = if label == "none" { name.to_owned() } else { label + "+crc32c" };
                continue;
            }
            _ => return Ok(None),
        };
        if native.crc32c || native.compressor != Compressor::None {
            return Ok(None);
        }
        native.compressor = compressor;
        label = if compressor == Compressor::Blosc {
            let cname = configuration.get("cname").and_then(Value::as_str).unwrap_or("lz4");
            let shuffle = match configuration.get("shuffle") {
                Some(Value::String(s)) => s.clone(),
                Some(Value::Number(n)) => match n.as_i64() {
                    Some(0) => "noshuffle".to_owned(),
                    Some(2) => "bitshuffle".to_owned(),
                    _ => "shuffle".to_owned(),
                },
                _ => "shuffle".to_owned(),
            };
            format!("blosc({cname}, {shuffle})")
        } else {
            name.trim_start_matches("numcodecs.").to_owned()
        };
    }
    Ok(Some((native, label)))
}

/// Resolves the configuration of `sharding_indexed` for shards of `target`; also the label of the codecs inside.
fn shard(configuration: &Value, target: &Target<'_>) -> Result<(ShardCodec, String), Refusal> {
    let inner = inner_chunk(configuration, target)?;
    let codecs = configuration.get("codecs").and_then(Value::as_array);
    let codecs = codecs.ok_or("sharding_indexed has no codecs")?;
    let ChunkCodecs { kind: Kind::Chunk(codec), reorder, label, .. } =
        resolve(codecs, &Target { chunk: &inner, ..*target })?
    else {
        return Err(Refusal::unsupported("shards inside shards are not supported"));
    };
    Ok((ShardCodec::new(configuration, target, &inner, codec, reorder)?, label))
}
