//! Decoding one chunk: from the bytes of a chunk file (or of an inner chunk of a shard) to pixels.
//!
//! ```text
//!  encoded chunk ──▶ Native (codecs that OME-Zarr writers use) ──▶ pixels, little-endian, in the chunk's order of axes
//!                └─▶ General (any other that zarrs knows) ─────┘
//! ```

use super::general::General;
use super::native::{Decoders, Native};
use wellread_trace as trace;

/// Decodes the bytes of one chunk.
#[derive(Debug)]
pub(super) enum ChunkCodec {
    Native(Native),
    General(Box<General>),
}

impl ChunkCodec {
    /// Decodes `encoded` to exactly `expected` bytes, little-endian, in the chunk's own order of axes. A pixel has
    /// `pixel` of them. The result is in `decoded`, or in `encoded` itself where nothing had to be done.
    pub fn decode<'a>(
        &self,
        encoded: &'a [u8],
        expected: usize,
        pixel: usize,
        decoders: &mut Decoders,
        decoded: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], String> {
        let is_plain = matches!(self, Self::Native(native) if native.is_plain(pixel));
        let sizes = (encoded.len() as u64, expected as u64);
        let _decompress = (!is_plain).then(|| trace::span(trace::Kind::Decompress).with(sizes.0, sizes.1));
        match self {
            Self::Native(native) => native.decode(encoded, expected, pixel, decoders, decoded),
            Self::General(general) => {
                *decoded = general.decode(encoded, expected)?;
                Ok(decoded)
            }
        }
    }
}
