//! Chunks within zstd or LZ4: a piece begins with the number of bytes it becomes, which is looked at before it is believed.

use super::packing::PACK;
use wellread_store::bare_codec::BareCodec;
use wellread_store::direct::Fault::{self, Irregular};
use wellread_store::direct::{grown, little_endian};

/// A general compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum General {
    Zstd,
    Lz4,
}

impl General {
    /// Bytes that say how many a piece becomes.
    pub fn prefix(self) -> usize {
        match self {
            Self::Zstd => 8,
            Self::Lz4 => 4,
        }
    }
}

/// Memory of decompression, used again from chunk to chunk.
#[derive(Default)]
pub(super) struct Decompressed {
    zstd: Option<BareCodec>,
    lz4: Option<BareCodec>,
    bytes: Vec<u64>,
}

impl std::fmt::Debug for Decompressed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressed").field("words", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl Decompressed {
    /// Bytes of memory.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity() * 8
    }

    /// The bytes of a piece with its prefix, aligned to eight bytes.
    pub fn undo(&mut self, kind: General, piece: &[u8]) -> Result<&[u8], Fault> {
        const WRONG: Fault = Irregular("a compressed chunk that is damaged");
        if piece.is_empty() {
            return Ok(&[]);
        }
        let (said, packed) = piece.split_at_checked(kind.prefix()).ok_or(WRONG)?;
        let said = little_endian(said) as usize;
        let (codec, name) = match kind {
            General::Zstd => (&mut self.zstd, "zstd"),
            General::Lz4 => (&mut self.lz4, "lz4"),
        };
        if codec.is_none() {
            *codec = BareCodec::named(name).map_err(|_| Fault::Unknown)?;
        }
        let codec = codec.as_mut().ok_or(Fault::Unknown)?;
        let words = grown(&mut self.bytes, said.div_ceil(8))?;
        let out = &mut bytemuck::cast_slice_mut::<u64, u8>(words)[..said];
        match codec.decompress(packed, out) {
            Ok(length) if length == said => Ok(out),
            _ => Err(WRONG),
        }
    }
}

/// Whether a piece is a frame of zstd without a prefix, as older files have them, or may be one.
pub(super) fn is_frame(piece: &[u8], kind: General) -> bool {
    const ZSTD_FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    kind == General::Zstd && piece.starts_with(&ZSTD_FRAME)
}

/// Whether a piece declares that it becomes no more than `bytes`, and the overhead of packing.
pub(super) fn is_plausible(piece: &[u8], kind: General, bytes: usize) -> bool {
    let prefix = kind.prefix();
    let said = little_endian(&piece[..prefix.min(piece.len())]);
    piece.is_empty()
        || is_frame(piece, kind)
        || (piece.len() >= prefix && said <= 2 * bytes as u64 + 16 * PACK as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_believed_only_if_it_says_what_it_can_be() {
        let said = |n: u64| [n.to_le_bytes().as_slice(), &[1, 2, 3]].concat();
        use General::{Lz4, Zstd};
        assert!(is_plausible(&said(2000), Zstd, 2000) && is_plausible(&[], Zstd, 2000));
        assert!(is_plausible(&said(2000)[..7], Lz4, 2000));
        for (piece, kind) in
            [(said(1 << 40), Zstd), (said(u64::MAX), Zstd), (said(1 << 30), Lz4), (vec![1, 2], Zstd)]
        {
            assert!(!is_plausible(&piece, kind, 2000));
        }
    }
}
