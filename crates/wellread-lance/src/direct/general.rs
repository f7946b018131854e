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
    pub fn decompress(&mut self, kind: General, piece: &[u8]) -> Result<&[u8], Fault> {
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

const ZSTD_FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Whether Lance takes a piece for a frame of zstd without a prefix, as older files have them.
pub(super) fn is_frame(piece: &[u8], kind: General) -> bool {
    // A bit that is not set in any frame.
    const RESERVED: u8 = 0x10;
    kind == General::Zstd
        && piece.starts_with(&ZSTD_FRAME)
        && piece.get(ZSTD_FRAME.len()).is_none_or(|descriptor| descriptor & RESERVED == 0)
}

/// The fault of a piece that is not [`has_plausible_size`].
pub(super) const WRONG_SIZE: Fault = Irregular("a compressed piece that says it is larger than it can be");

/// Whether a piece may become as many bytes as it declares, which Lance asks for before it decodes the piece. A frame
/// that tells its own size must tell the same.
pub(super) fn has_plausible_size(piece: &[u8], kind: General) -> bool {
    // Lance takes so few bytes for a frame without a prefix.
    if piece.len() < kind.prefix() || is_frame(piece, kind) {
        return true;
    }
    let (said, packed) = piece.split_at(kind.prefix());
    let said = little_endian(said);
    let length = packed.len() as u64;
    match kind {
        // Four bytes at least make a block, which becomes 128 KiB at most.
        General::Zstd => {
            said <= (length / 4 + 1) << 17 && frame_content(packed).is_none_or(|content| content == said)
        }
        // A byte of a length stands for 255 bytes at most.
        General::Lz4 => said <= (length + 1) * 255,
    }
}

/// The number of bytes that a frame of zstd says it becomes.
fn frame_content(frame: &[u8]) -> Option<u64> {
    let after = frame.strip_prefix(&ZSTD_FRAME)?;
    let (&descriptor, after) = after.split_first()?;
    let is_single = descriptor & 0x20 > 0;
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let wide = match descriptor >> 6 {
        0 if is_single => 1,
        0 => return None,
        power => 1 << power,
    };
    // A byte tells the window, unless the content is a single segment.
    let at = usize::from(!is_single) + dictionary;
    let said = little_endian(after.get(at..at + wide)?);
    Some(if wide == 2 { said + 256 } else { said })
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
    fn a_size_is_believed_that_the_bytes_can_become() {
        use General::{Lz4, Zstd};
        for (kind, name) in [(Zstd, "zstd"), (Lz4, "lz4")] {
            for count in [1usize, 200, 300, 70_000, 5 << 20] {
                let bytes = vec![7u8; count];
                let packed = BareCodec::named(name).unwrap().unwrap().compress(&bytes).unwrap();
                let piece = |said: u64| [&said.to_le_bytes()[..kind.prefix()], &packed].concat();
                assert!(has_plausible_size(&piece(count as u64), kind), "{name}, {count} bytes");
                for wrong in [1 << 31, (1 << 45) | (1 << 31), u64::MAX] {
                    assert!(
                        !has_plausible_size(&piece(wrong), kind),
                        "{name}, {count} bytes that say {wrong}"
                    );
                }
            }
        }
        // Lance asks for less than this without the frame's own size.
        let packed = BareCodec::named("zstd").unwrap().unwrap().compress(&[7; 300]).unwrap();
        assert_eq!(frame_content(&packed), Some(300));
        assert!(!has_plausible_size(&[301u64.to_le_bytes().as_slice(), &packed].concat(), Zstd));
        // A frame without a prefix, and one that Lance takes for a prefix, for it has a bit that no frame has.
        assert!(has_plausible_size(&packed, Zstd) && is_frame(&packed, Zstd));
        let prefix = [0x28, 0xb5, 0x2f, 0xfd, 0x30, 0, 0, 9];
        assert!(!is_frame(&prefix, Zstd) && !has_plausible_size(&prefix, Zstd));
    }

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
