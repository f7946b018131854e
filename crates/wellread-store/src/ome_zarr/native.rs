//! Chunks of the usual codecs, decoded here: `bytes`, at most one compressor, and a CRC32C or not.

use super::chunk::{MAX_RATIO, checked, same_length};
use crate::try_alloc;
use zarrs::array::codec::{blosc_decompress_bytes, blosc_validate};

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

impl Native {
    /// Whether pixels are stored as they are.
    pub fn is_plain(self, pixel: usize) -> bool {
        self.compressor == Compressor::None && !(self.big_endian && pixel > 1)
    }

    /// Decodes `encoded` to exactly `expected` bytes, little-endian, in `decoded` or where they are.
    pub fn decode<'a>(
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
        try_alloc::grow(decoded, expected)?;
        let target = &mut decoded[..expected];
        if self == Self::Zstd {
            let zstd = match &mut decoders.zstd {
                Some(zstd) => zstd,
                empty => empty.insert(try_alloc::zstd_decompressor()?),
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
