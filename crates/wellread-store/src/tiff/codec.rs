//! Compression of strips and tiles: TIFF tag 259.
//!
//! | value | name | by |
//! |---|---|---|
//! | 1 | none | |
//! | 5 | LZW | [`super::lzw`] |
//! | 8, 32946 | Deflate (zlib) | libdeflate |
//! | 32773 | PackBits | here |
//! | 50000, 34926 | Zstandard | zstd |
//!
//! Each knows how much at most one stored byte can expand to. So a header cannot make a reader allocate
//! more than the file's real size justifies.

use super::lzw;
use crate::refusal::Refusal;
use crate::{Compression, Error, Result};
use std::path::Path;

/// The compression of a page. All but [`Codec::Other`] can be read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Codec {
    None,
    Lzw,
    Deflate,
    PackBits,
    Zstd,
    /// Known by number only: reading it is an error.
    Other(u16),
}

impl Codec {
    /// The codec of a value of tag 259.
    pub(super) fn from_tag(value: u16) -> Self {
        match value {
            1 => Self::None,
            5 => Self::Lzw,
            8 | 32946 => Self::Deflate,
            32773 => Self::PackBits,
            // 34926 is what libtiff called it before it had a number of its own.
            50000 | 34926 => Self::Zstd,
            other => Self::Other(other),
        }
    }

    /// The value of tag 259 that is written.
    pub(super) fn tag(self) -> u16 {
        match self {
            Self::None => 1,
            Self::Lzw => 5,
            Self::Deflate => 8,
            Self::PackBits => 32773,
            Self::Zstd => 50000,
            Self::Other(value) => value,
        }
    }

    /// Name for people.
    pub(super) fn name(self) -> String {
        match self {
            Self::None => "none".into(),
            Self::Lzw => "lzw".into(),
            Self::Deflate => "deflate".into(),
            Self::PackBits => "packbits".into(),
            Self::Zstd => "zstd".into(),
            Self::Other(value) => match value {
                2..=4 => format!("CCITT fax ({value})"),
                6 | 7 => format!("JPEG ({value})"),
                33003 | 33005 | 34712 => format!("JPEG 2000 ({value})"),
                34887 => "LERC (34887)".into(),
                34892 => "lossy JPEG of DNG (34892)".into(),
                34925 => "LZMA (34925)".into(),
                50001 => "WebP (50001)".into(),
                50002 => "JPEG XL (50002)".into(),
                _ => format!("number {value}"),
            },
        }
    }

    /// The most bytes that `stored` bytes can decode to.
    pub(super) fn at_most(self, stored: u64) -> u64 {
        match self {
            Self::None => stored,
            Self::Lzw => stored.saturating_mul(lzw::MAX_RATIO),
            // A match of 258 bytes takes at least two bits.
            Self::Deflate => stored.saturating_mul(1032),
            // Two bytes stand for at most 128.
            Self::PackBits => stored.saturating_mul(64),
            // A block of 128 KiB of one byte takes four bytes.
            Self::Zstd | Self::Other(_) => stored.saturating_mul(1 << 15),
        }
    }

    /// Why strips and tiles cannot be decoded, if they cannot.
    pub(super) fn refusal(self) -> Option<Refusal> {
        matches!(self, Self::Other(_)).then(|| {
            Refusal::unsupported(format_args!(
                "compression {} is not supported; supported: none, LZW, Deflate, PackBits, Zstandard",
                self.name()
            ))
        })
    }

    /// Whether the first bytes of a strip can be had without decoding the rest.
    pub(super) fn stops_early(self) -> bool {
        matches!(self, Self::None | Self::Lzw | Self::PackBits)
    }
}

/// Decompressors with their working memory, one per thread.
#[derive(Default)]
pub(super) struct Decompressors {
    lzw: Option<lzw::Decoder>,
    deflate: Option<libdeflater::Decompressor>,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

/// The result of decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decoded {
    /// Bytes that were written.
    pub(super) bytes: usize,
    /// Whether there is more than fits.
    pub(super) more: bool,
}

impl Decompressors {
    /// Decodes `raw` into `out` as far as both go.
    pub(super) fn decode(&mut self, codec: Codec, raw: &[u8], out: &mut [u8]) -> Result<Decoded, String> {
        let bytes = match codec {
            Codec::None => {
                let n = raw.len().min(out.len());
                out[..n].copy_from_slice(&raw[..n]);
                return Ok(Decoded { bytes: n, more: raw.len() > n });
            }
            Codec::Lzw => {
                let more = self.lzw.get_or_insert_default().decode(raw, out)?;
                return Ok(Decoded { bytes: out.len(), more });
            }
            Codec::PackBits => return Ok(unpack_bits(raw, out)),
            Codec::Deflate => {
                let deflate = self.deflate.get_or_insert_with(libdeflater::Decompressor::new);
                match deflate.zlib_decompress(raw, out) {
                    Ok(bytes) => bytes,
                    Err(libdeflater::DecompressionError::InsufficientSpace) => {
                        return Ok(Decoded { bytes: out.len(), more: true });
                    }
                    Err(e) => return Err(format!("Deflate data are corrupt ({e})")),
                }
            }
            Codec::Zstd => {
                if self.zstd.is_none() {
                    let new = crate::try_alloc::zstd_decompressor()?;
                    self.zstd = Some(new);
                }
                let zstd = self.zstd.as_mut().expect("just made");
                zstd.decompress_to_buffer(raw, out)
                    .map_err(|e| format!("Zstandard data are corrupt ({e})"))?
            }
            Codec::Other(_) => {
                return Err(format!("compression {} is not supported", codec.name()));
            }
        };
        Ok(Decoded { bytes, more: false })
    }

    /// The last place of an LZW strip at or before decoded byte `wanted` at which it can be entered. It is found from bit number `bit` on,
    /// a place itself: [`lzw::Decoder::skim`].
    pub(super) fn skim_lzw(
        &mut self,
        raw: &[u8],
        bit: usize,
        wanted: usize,
        cleared: &mut dyn FnMut(usize, usize),
    ) -> (usize, usize) {
        self.lzw.get_or_insert_default().skim(raw, bit, wanted, cleared)
    }

    /// Decodes an LZW strip into `out`, from bit number `bit` on: its first, or one that follows a clear code. Calls
    /// `cleared` behind each clear code, with the number of the bit and of the byte of `out` that follow.
    pub(super) fn decode_lzw(
        &mut self,
        raw: &[u8],
        bit: usize,
        out: &mut [u8],
        cleared: &mut dyn FnMut(usize, usize),
    ) -> Result<Decoded, String> {
        let more = self.lzw.get_or_insert_default().decode_from(raw, bit, out, cleared)?;
        Ok(Decoded { bytes: out.len(), more })
    }
}

/// PackBits (TIFF 6.0, section 9).
fn unpack_bits(mut input: &[u8], out: &mut [u8]) -> Decoded {
    let mut pos = 0;
    let mut more = false;
    while let [head, rest @ ..] = input
        && !more
    {
        let left = out.len() - pos;
        match *head as i8 {
            -128 => input = rest,
            n @ 0.. => {
                let n = n as usize + 1;
                let take = n.min(left).min(rest.len());
                // A byte that only fills the strip up to an even length announces what does not come.
                more = n.min(rest.len()) > left;
                out[pos..pos + take].copy_from_slice(&rest[..take]);
                pos += take;
                input = &rest[n.min(rest.len())..];
            }
            n => {
                let [value, rest @ ..] = rest else { break };
                let n = (1 - isize::from(n)) as usize;
                more = n > left;
                let n = n.min(left);
                out[pos..pos + n].fill(*value);
                pos += n;
                input = rest;
            }
        }
    }
    Decoded { bytes: pos, more }
}

/// Packs one row of pixels. TIFF 6.0 asks for rows to be packed separately.
fn pack_bits(mut row: &[u8], packed: &mut Vec<u8>) {
    let run = |s: &[u8]| s.iter().take(128).take_while(|&&b| b == s[0]).count();
    while !row.is_empty() {
        let same = run(row);
        if same > 1 {
            packed.extend([(1 - same as i16) as u8, row[0]]);
            row = &row[same..];
            continue;
        }
        // Up to 128 different bytes; a pair inside is cheaper left in place, three of a kind are not.
        let n = (1..row.len().min(128)).find(|&i| run(&row[i..]) > 2).unwrap_or(row.len().min(128));
        packed.push(n as u8 - 1);
        packed.extend_from_slice(&row[..n]);
        row = &row[n..];
    }
}

/// The codec and predictor of a writer's strips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packing {
    pub(super) codec: Codec,
    pub(super) level: i32,
    /// Whether Zstandard frames end with a checksum of what they hold.
    pub(super) checksums: bool,
}

impl Packing {
    /// The packing that was asked for; the default is none, as tifffile and Bio-Formats write.
    pub(super) fn new(path: &Path, compression: Compression, checksums: bool) -> Result<Self> {
        let (codec, level) = match compression {
            Compression::Default | Compression::None => (Codec::None, 0),
            Compression::Lzw => (Codec::Lzw, 0),
            Compression::PackBits => (Codec::PackBits, 0),
            Compression::Deflate(level) => (Codec::Deflate, level),
            Compression::Zstd(level) => (Codec::Zstd, level),
            Compression::Lz4 | Compression::Snappy => {
                return Err(Error::new(path, format_args!("TIFF has no compression {compression}"))
                    .choice()
                    .hint("TIFF has none, lzw, deflate[:LEVEL], packbits and zstd[:LEVEL]"));
            }
        };
        Ok(Self { codec, level, checksums })
    }

    /// Compresses one strip or tile of rows of `row_bytes`.
    pub(super) fn encode(self, data: &[u8], row_bytes: usize) -> Result<Vec<u8>, String> {
        match self.codec {
            Codec::Lzw => lzw::encode(data),
            Codec::PackBits => {
                let mut packed = Vec::with_capacity(data.len());
                data.chunks(row_bytes).for_each(|row| pack_bits(row, &mut packed));
                Ok(packed)
            }
            Codec::Deflate => {
                let level = libdeflater::CompressionLvl::new(self.level)
                    .map_err(|_| format!("Deflate has no level {}", self.level))?;
                let mut compressor = libdeflater::Compressor::new(level);
                let mut out = vec![0; compressor.zlib_compress_bound(data.len())];
                let n = compressor.zlib_compress(data, &mut out).map_err(|e| format!("Deflate: {e}"))?;
                out.truncate(n);
                Ok(out)
            }
            Codec::Zstd => zstd::bulk::Compressor::new(self.level)
                .and_then(|mut zstd| zstd.include_checksum(self.checksums).and_then(|()| zstd.compress(data)))
                .map_err(|e| format!("Zstandard: {e}")),
            // No `Packing` has a codec of the kind `Other`.
            Codec::None | Codec::Other(_) => Ok(data.to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pack_bits_example() {
        // The example of Apple's Technical Note TN1023.
        let packed =
            [0xFE, 0xAA, 0x02, 0x80, 0x00, 0x2A, 0xFD, 0xAA, 0x03, 0x80, 0x00, 0x2A, 0x22, 0xF7, 0xAA];
        let plain = [
            0xAA, 0xAA, 0xAA, 0x80, 0x00, 0x2A, 0xAA, 0xAA, 0xAA, 0xAA, 0x80, 0x00, 0x2A, 0x22, 0xAA, 0xAA,
            0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA,
        ];
        let mut out = [0; 24];
        assert_eq!(unpack_bits(&packed, &mut out), Decoded { bytes: 24, more: false });
        assert_eq!(unpack_bits(&packed, &mut [0; 23]), Decoded { bytes: 23, more: true });
        // Filled up to an even length.
        assert!(!unpack_bits(&[&packed[..], &[0]].concat(), &mut out).more);
        assert!(unpack_bits(&[&packed[..], &[0, 7]].concat(), &mut out).more);
        assert_eq!(out, plain);
        let mut again = vec![];
        pack_bits(&plain, &mut again);
        assert_eq!(again, packed);
    }

    #[test]
    fn unknown_compressions_are_named() {
        assert_eq!([8, 32946].map(Codec::from_tag), [Codec::Deflate; 2]);
        assert_eq!([50000, 34926].map(Codec::from_tag), [Codec::Zstd; 2]);
        let error = Decompressors::default().decode(Codec::from_tag(7), &[], &mut [0; 4]).unwrap_err();
        assert!(error.contains("JPEG (7)"), "{error}");
        assert!(Packing::new(Path::new("x"), Compression::Snappy, true).is_err());
    }

    proptest! {
        #[test]
        fn round_trips(data in prop::collection::vec(0u8..3, 1..5000), wide in prop::collection::vec(any::<u8>(), 1..500)) {
            for data in [data, wide] {
                for compression in [
                    Compression::None, Compression::Lzw, Compression::PackBits, Compression::Deflate(0),
                    Compression::Deflate(6), Compression::Zstd(3),
                ] {
                    let packing = Packing::new(Path::new("x"), compression, true).unwrap();
                    let packed = packing.encode(&data, 100).unwrap();
                    prop_assert!(data.len() as u64 <= packing.codec.at_most(packed.len() as u64));
                    let mut out = vec![0; data.len()];
                    let mut tools = Decompressors::default();
                    let made = tools.decode(packing.codec, &packed, &mut out).unwrap();
                    prop_assert_eq!(made, Decoded { bytes: data.len(), more: false });
                    prop_assert_eq!(&out, &data);
                    let short = tools.decode(packing.codec, &packed, &mut out[..data.len() - 1]);
                    // LZW that goes on for but a few bytes is taken for filling.
                    let lzw = packing.codec == Codec::Lzw;
                    prop_assert!(lzw || short.is_err() || short.is_ok_and(|made| made.more));
                    if packing.codec.stops_early() {
                        let half = data.len() / 2;
                        out.fill(0);
                        tools.decode(packing.codec, &packed, &mut out[..half]).unwrap();
                        prop_assert_eq!(&out[..half], &data[..half]);
                    }
                }
            }
        }

        #[test]
        fn garbage_does_not_panic(data in prop::collection::vec(any::<u8>(), 0..500)) {
            for codec in [1, 5, 8, 32773, 50000, 7].map(Codec::from_tag) {
                let _ = Decompressors::default().decode(codec, &data, &mut [0; 1000]);
            }
        }
    }
}
