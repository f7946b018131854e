//! Decoding one chunk: from the bytes of a chunk file (or of an inner chunk of a shard) to pixels.
//!
//! The size of the result is known before, so a chunk that would decompress to anything else is an error, and
//! no buffer grows beyond what [`MAX_RATIO`] times the bytes that are really there could fill.

use super::general::General;
use super::order::Reorder;
use super::shard::ShardCodec;
use crate::refusal::Refusal;
use crate::room;
use serde_json::Value;
use wellread_image::PixelType;
use wellread_trace as trace;
use zarrs::array::codec::{blosc_decompress_bytes, blosc_validate};

/// No codec expands its input more than this: a Zstandard block of one repeated byte is 4 bytes for 128 KiB.
pub(super) const MAX_RATIO: usize = 32_768;

/// What a chunk of an array is made of.
#[derive(Debug)]
pub(super) struct Chain {
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

/// Decodes the bytes of one chunk.
#[derive(Debug)]
pub(super) enum ChunkCodec {
    Native(Native),
    General(Box<General>),
}

/// `bytes`, at most one compressor, then `crc32c` or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Native {
    pub compressor: Compressor,
    /// A CRC32C of the compressed bytes follows them.
    pub crc32c: bool,
    pub big_endian: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compressor {
    None,
    Zstd,
    Gzip,
    Zlib,
    Blosc,
    /// A block of LZ4 behind its decompressed size (4 bytes, little-endian), as numcodecs writes it.
    Lz4,
}

/// Decompressor state that a thread reuses from chunk to chunk.
#[derive(Default)]
pub(super) struct Decoders {
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    deflate: Option<libdeflater::Decompressor>,
}

/// The array that codecs are resolved for.
pub(super) struct Target<'a> {
    /// TCZYX axis of each dimension.
    pub axes: &'a [usize],
    /// Chunk length along each dimension.
    pub chunk: &'a [usize],
    pub dtype: PixelType,
    /// One pixel, little-endian.
    pub fill: [u8; 8],
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
pub(super) fn resolve(codecs: &[Value], target: &Target<'_>) -> Result<Chain, Refusal> {
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
            let (shard, label) = ShardCodec::resolve(configuration, &target)?;
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
    Ok(Chain { kind, reorder, label, checked: is_checked(codecs) })
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

impl ChunkCodec {
    /// Decodes `encoded` to exactly `expected` bytes, little-endian, in the chunk's own order of axes. The
    /// result is in `decoded`, or in `encoded` itself where nothing had to be done.
    pub fn decode<'a>(
        &self,
        encoded: &'a [u8],
        expected: usize,
        dtype: PixelType,
        decoders: &mut Decoders,
        decoded: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], String> {
        let is_plain = matches!(self, Self::Native(native) if native.is_plain(dtype.size()));
        let sizes = (encoded.len() as u64, expected as u64);
        let _decompress = (!is_plain).then(|| trace::span(trace::Kind::Decompress).with(sizes.0, sizes.1));
        match self {
            Self::Native(native) => native.decode(encoded, expected, dtype.size(), decoders, decoded),
            Self::General(general) => {
                *decoded = general.decode(encoded, expected)?;
                Ok(decoded)
            }
        }
    }
}

impl Native {
    /// Whether pixels are stored as they are.
    fn is_plain(self, pixel: usize) -> bool {
        self.compressor == Compressor::None && !(self.big_endian && pixel > 1)
    }

    fn decode<'a>(
        self,
        encoded: &'a [u8],
        expected: usize,
        pixel: usize,
        decoders: &mut Decoders,
        decoded: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], String> {
        let encoded = if self.crc32c { checked(encoded)? } else { encoded };
        if self.is_plain(pixel) {
            return same_length(encoded.len(), expected).map(|()| encoded);
        }
        self.compressor.decompress(encoded, expected, decoders, decoded)?;
        let pixels = &mut decoded[..expected];
        if self.big_endian && pixel > 1 {
            pixels.chunks_exact_mut(pixel).for_each(<[u8]>::reverse);
        }
        Ok(pixels)
    }
}

impl Compressor {
    fn decompress(
        self,
        encoded: &[u8],
        expected: usize,
        decoders: &mut Decoders,
        decoded: &mut Vec<u8>,
    ) -> Result<(), String> {
        if encoded.len().saturating_mul(MAX_RATIO) < expected {
            return Err(format!("its {} bytes cannot hold a chunk of {expected} bytes", encoded.len()));
        }
        if self == Self::Blosc {
            same_length(blosc_validate(encoded).ok_or("it is no valid blosc buffer")?, expected)?;
            *decoded = blosc_decompress_bytes(encoded, expected, 1).map_err(|e| format!("blosc: {e}"))?;
            return same_length(decoded.len(), expected);
        }
        if self == Self::None {
            same_length(encoded.len(), expected)?;
            decoded.clear();
            decoded.extend_from_slice(encoded);
            return Ok(());
        }
        room::grow(decoded, expected)?;
        let target = &mut decoded[..expected];
        if self == Self::Zstd {
            let zstd = match &mut decoders.zstd {
                Some(zstd) => zstd,
                empty => empty.insert(room::zstd_decompressor()?),
            };
            let n = zstd.decompress_to_buffer(encoded, target).map_err(|e| format!("zstd: {e}"))?;
            return same_length(n, expected);
        }
        if self == Self::Lz4 {
            let (size, block) = encoded.split_first_chunk::<4>().ok_or("lz4: it has no size")?;
            same_length(u32::from_le_bytes(*size) as usize, expected)?;
            let n = lz4_flex::block::decompress_into(block, target).map_err(|e| format!("lz4: {e}"))?;
            return same_length(n, expected);
        }
        let deflate = decoders.deflate.get_or_insert_with(libdeflater::Decompressor::new);
        let (name, result) = if self == Self::Gzip {
            ("gzip", deflate.gzip_decompress(encoded, target))
        } else {
            ("zlib", deflate.zlib_decompress(encoded, target))
        };
        let n = result.map_err(|e| match e {
            libdeflater::DecompressionError::BadData => format!("{name}: corrupt or truncated data"),
            libdeflater::DecompressionError::InsufficientSpace => {
                format!("{name}: it decompresses to more than the {expected} bytes of a chunk")
            }
        })?;
        same_length(n, expected)
    }
}

/// Strips and checks the CRC32C at the end of `encoded`.
pub(super) fn checked(encoded: &[u8]) -> Result<&[u8], String> {
    let (data, crc) = encoded.split_last_chunk::<4>().ok_or("it is too short for its checksum")?;
    if crc32c::crc32c(data) == u32::from_le_bytes(*crc) {
        Ok(data)
    } else {
        Err("its CRC32C does not match".to_owned())
    }
}

/// Whether a decoded chunk is as long as it should be.
pub(super) fn same_length(length: usize, expected: usize) -> Result<(), String> {
    if length == expected {
        Ok(())
    } else {
        Err(format!("it holds {length} bytes of pixels where a chunk has {expected}"))
    }
}
