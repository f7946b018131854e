//! Chunks whose codecs only `zarrs` knows, such as `packbits` or two compressors in a row.
//!
//! `zarrs` trusts the size that a Zstandard frame declares, so an outermost `zstd` is taken off here, with a
//! bound. `zstd` anywhere deeper is refused. So is `fixedscaleoffset`: `zarrs` computes within the types of the array, and
//! numcodecs in floats, so that pixels would differ.

use super::chunk::{MAX_RATIO, Target, same_length};
use crate::refusal::Refusal;
use crate::stored_type::StoredType;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::io::Read;
use std::num::NonZeroU64;
use wellread_image::PixelType;
use zarrs::array::{
    ArrayBytesRaw, ArrayToBytesCodecTraits, CodecChain, CodecOptions, DataType, FillValue, data_type,
};
use zarrs::metadata::v3::MetadataV3;

/// A chain of codecs run by `zarrs`.
#[derive(Debug)]
pub(super) struct General {
    zstd_outermost: bool,
    chain: CodecChain,
    shape: Vec<NonZeroU64>,
    dtype: DataType,
    fill: FillValue,
}

impl General {
    /// Resolves Zarr v3 `codecs` for chunks of `target`.
    pub fn new(codecs: &[Value], target: &Target<'_>) -> Result<Self, Refusal> {
        let mut codecs: Vec<MetadataV3> = codecs
            .iter()
            .map(MetadataV3::deserialize)
            .collect::<Result<_, _>>()
            .map_err(|e| Refusal::damaged(format_args!("malformed codecs: {e}")))?;
        let is_zstd = |c: &MetadataV3| c.name().ends_with("zstd");
        let zstd_outermost = codecs.last().is_some_and(is_zstd);
        if zstd_outermost {
            codecs.pop();
        }
        if codecs.iter().any(is_zstd) {
            return Err(Refusal::unsupported("zstd under another compressor is not supported"));
        }
        if codecs.iter().any(|codec| codec.name().ends_with("fixedscaleoffset")) {
            let cause = "the codec fixedscaleoffset is not supported: numbers would be rounded otherwise than by numcodecs";
            return Err(Refusal::unsupported(cause));
        }
        let chain = CodecChain::from_metadata(&codecs)
            .map_err(|e| Refusal::unsupported(format_args!("unsupported codecs: {e}")))?;
        let shape = target
            .chunk
            .iter()
            .map(|&n| NonZeroU64::new(n as u64).ok_or_else(|| "a chunk is empty".to_owned()))
            .collect::<Result<_, _>>()?;
        let dtype = match target.stored {
            StoredType::Pixel(PixelType::U8) => data_type::uint8(),
            StoredType::Pixel(PixelType::I8) => data_type::int8(),
            StoredType::Pixel(PixelType::U16) => data_type::uint16(),
            StoredType::Pixel(PixelType::I16) => data_type::int16(),
            StoredType::Pixel(PixelType::U32) => data_type::uint32(),
            StoredType::Pixel(PixelType::I32) => data_type::int32(),
            StoredType::Pixel(PixelType::F32) => data_type::float32(),
            StoredType::Pixel(PixelType::F64) => data_type::float64(),
            StoredType::F16 => data_type::float16(),
            StoredType::I64 => data_type::int64(),
            StoredType::U64 => data_type::uint64(),
        };
        let mut fill = target.fill[..target.stored.size()].to_vec();
        if cfg!(target_endian = "big") {
            fill.reverse();
        }
        Ok(Self { zstd_outermost, chain, shape, dtype, fill: FillValue::new(fill) })
    }

    /// Decodes one chunk to exactly `expected` bytes, little-endian.
    pub fn decode(&self, encoded: &[u8], expected: usize) -> Result<Vec<u8>, String> {
        if encoded.len().saturating_mul(MAX_RATIO) < expected {
            return Err(format!("its {} bytes cannot hold a chunk of {expected} bytes", encoded.len()));
        }
        let encoded: ArrayBytesRaw<'_> = if self.zstd_outermost {
            // Bytes below zstd may be larger than the pixels (checksums, incompressible data), not by much.
            let limit = expected as u64 * 2 + (1 << 16);
            let mut bytes = Vec::new();
            zstd::stream::read::Decoder::new(encoded)
                .and_then(|decoder| decoder.take(limit).read_to_end(&mut bytes))
                .map_err(|e| format!("zstd: {e}"))?;
            Cow::Owned(bytes)
        } else {
            Cow::Borrowed(encoded)
        };
        let decoded = self
            .chain
            .decode(encoded, &self.shape, &self.dtype, &self.fill, &CodecOptions::default())
            .map_err(|e| e.to_string())?
            .into_fixed()
            .map_err(|e| e.to_string())?;
        same_length(decoded.len(), expected)?;
        let mut decoded = decoded.into_owned();
        if cfg!(target_endian = "big") && self.fill.size() > 1 {
            decoded.chunks_exact_mut(self.fill.size()).for_each(<[u8]>::reverse);
        }
        Ok(decoded)
    }
}
