//! The decompressors that readers here call, on their own: what no reader of such data can exceed.
//!
//! ```text
//!  pixels ──compress──▶ bytes      once
//!  bytes ──decompress──▶ pixels    again and again, timed by whoever asks
//! ```
//!
//! Formats cut images into pages, chunks and strips, difference or shuffle them, and wrap them; nothing of this is here.

use crate::Compression;
use std::io;

/// A codec with its working memory.
pub struct BareCodec(Kind);

enum Kind {
    Zstd(zstd::bulk::Decompressor<'static>),
    Deflate(libdeflater::Decompressor),
    Lz4,
    Snappy(snap::raw::Decoder),
    #[cfg(feature = "tiff")]
    Lzw(Box<crate::tiff::LzwDecoder>),
}

impl BareCodec {
    /// The codec that the description of a set's layout names, such as `zstd` or `lz4 in blosc`. It is `None` of those that are
    /// no general compression, or not decompressed by a library.
    ///
    /// # Errors
    /// A library that cannot be set up.
    pub fn named(description: &str) -> io::Result<Option<Self>> {
        let is = |name: &str| description.to_ascii_lowercase().contains(name);
        Ok(Some(Self(match () {
            () if is("zstd") => Kind::Zstd(zstd::bulk::Decompressor::new()?),
            () if is("deflate") || is("gzip") || is("zlib") => {
                Kind::Deflate(libdeflater::Decompressor::new())
            }
            () if is("lz4") => Kind::Lz4,
            () if is("snappy") => Kind::Snappy(snap::raw::Decoder::new()),
            #[cfg(feature = "tiff")]
            () if is("lzw") => Kind::Lzw(Box::default()),
            () => return Ok(None),
        })))
    }

    /// Compresses bytes with the level that sets are written with.
    ///
    /// # Errors
    /// The library's error.
    pub fn compress(&self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match &self.0 {
            Kind::Zstd(_) => zstd::bulk::compress(bytes, Compression::ZSTD_LEVEL),
            Kind::Deflate(_) => {
                let level = libdeflater::CompressionLvl::new(Compression::DEFLATE_LEVEL).unwrap_or_default();
                let mut library = libdeflater::Compressor::new(level);
                let mut out = vec![0; library.zlib_compress_bound(bytes.len())];
                let length = library.zlib_compress(bytes, &mut out).map_err(io::Error::other)?;
                out.truncate(length);
                Ok(out)
            }
            Kind::Lz4 => Ok(lz4_flex::block::compress(bytes)),
            Kind::Snappy(_) => snap::raw::Encoder::new().compress_vec(bytes).map_err(io::Error::other),
            #[cfg(feature = "tiff")]
            Kind::Lzw(_) => crate::tiff::lzw_encode(bytes).map_err(io::Error::other),
        }
    }

    /// Decompresses to the start of `out`, which has room for all of it: how many bytes.
    ///
    /// # Errors
    /// Bytes that are not of this codec, or too little room.
    pub fn decompress(&mut self, bytes: &[u8], out: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::Zstd(library) => library.decompress_to_buffer(bytes, out),
            Kind::Deflate(library) => library.zlib_decompress(bytes, out).map_err(io::Error::other),
            Kind::Lz4 => lz4_flex::block::decompress_into(bytes, out).map_err(io::Error::other),
            Kind::Snappy(library) => library.decompress(bytes, out).map_err(io::Error::other),
            #[cfg(feature = "tiff")]
            Kind::Lzw(decoder) => decoder.decode(bytes, out).map(|_| out.len()).map_err(io::Error::other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compressed_comes_back() {
        let pixels: Vec<u8> = (0..100_000u32).map(|i| (i / 7 % 251) as u8 ^ (i % 3) as u8).collect();
        for name in ["zstd", "Deflate", "gzip", "lz4 in blosc", "snappy", "lzw + predictor"] {
            let mut codec = BareCodec::named(name).unwrap().unwrap_or_else(|| panic!("{name}"));
            let packed = codec.compress(&pixels).unwrap();
            assert!(packed.len() < pixels.len(), "{name}");
            let mut out = vec![0; pixels.len()];
            for _ in 0..2 {
                out.fill(0);
                assert_eq!(codec.decompress(&packed, &mut out).unwrap(), pixels.len(), "{name}");
                assert!(out == pixels, "{name}");
            }
            assert!(codec.decompress(&[9; 100], &mut out).is_err(), "{name}");
        }
        for name in ["none", "", "ALP, bitpacking"] {
            assert!(BareCodec::named(name).unwrap().is_none(), "{name}");
        }
    }
}
