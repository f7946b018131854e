//! Values of a chunk: as they are, bit-packed, or in an encoding that the engine undoes.

use super::general::{Decompressed, General, is_frame, is_plausible};
use super::packing::{PACK, packed};
use arrow_buffer::MutableBuffer;
use lance_bitpacking::{BitPacking, BitPackingUninit};
use lance_encoding::buffer::LanceBuffer;
use lance_encoding::compression::{
    BlockDecompressor, DecompressionStrategy, DefaultDecompressionStrategy, MiniBlockDecompressor,
};
use lance_encoding::data::DataBlock;
use lance_encoding::format::metadata::compressive_encoding::Compression;
use lance_encoding::format::metadata::{CompressionScheme, CompressiveEncoding};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;
use wellread_store::direct::Fault::{self, Irregular};
use wellread_store::direct::little_endian;

/// How values are stored.
#[derive(Debug)]
pub(super) enum ValueCodec {
    /// As they are.
    Flat,
    /// Packed to a number of bits that each chunk states.
    Packed,
    /// In an encoding that the engine undoes.
    Engine(Arc<dyn MiniBlockDecompressor>),
    /// Within zstd or LZ4, whose pieces begin with the number of bytes they become.
    Prefixed(Prefixed),
}

/// Values within a general compression.
#[derive(Debug)]
pub(super) struct Prefixed {
    kind: General,
    /// The codec of its content, where that is undone here.
    inner: Option<Box<ValueCodec>>,
    /// All of it, for the engine to undo.
    engine: Arc<dyn MiniBlockDecompressor>,
}

impl ValueCodec {
    /// The codec of a page of values of `size` bytes; `None` for one that the engine refuses.
    pub fn new(encoding: &CompressiveEncoding, size: usize) -> Option<Self> {
        let bits = size as u64 * 8;
        match encoding.compression.as_ref()? {
            Compression::Flat(flat) if flat.data.is_none() && flat.bits_per_value == bits => {
                return Some(Self::Flat);
            }
            Compression::InlineBitpacking(packed)
                if packed.values.is_none() && packed.uncompressed_bits_per_value == bits =>
            {
                return Some(Self::Packed);
            }
            _ => {}
        }
        let strategy = DefaultDecompressionStrategy::default();
        let codec = strategy.create_miniblock_decompressor(encoding, &strategy).ok()?;
        let engine = Arc::from(codec);
        Some(match encoding.compression.as_ref()? {
            Compression::General(general) => {
                // Only the outer of two pieces is looked at.
                let inner = general.values.as_deref().and_then(|inner| inner.compression.as_ref());
                if matches!(inner, Some(Compression::General(_))) {
                    return None;
                }
                let kind = match general.compression.as_ref()?.scheme() {
                    CompressionScheme::CompressionAlgorithmLz4 => General::Lz4,
                    _ => General::Zstd,
                };
                let inner = general.values.as_deref().and_then(|inner| Self::new(inner, size));
                let inner = inner.filter(|inner| matches!(inner, Self::Flat | Self::Packed));
                Self::Prefixed(Prefixed { kind, inner: inner.map(Box::new), engine })
            }
            _ => Self::Engine(engine),
        })
    }

    /// Whether pieces say how much memory they take.
    pub fn has_prefixes(&self) -> bool {
        matches!(self, Self::Prefixed(..))
    }

    /// Appends the values `wanted` of a chunk of `count` values, stored in `size` bytes each, delivered in `width`. `decompressed` is
    /// for what is decompressed.
    ///
    /// # Errors
    /// [`Fault::TooNarrow`] where values of fewer bytes than stored are asked for and may not fit.
    pub fn decode(
        &self,
        buffers: &[&[u8]],
        count: usize,
        (size, width): (usize, usize),
        wanted: Range<usize>,
        decompressed: &mut Decompressed,
        out: &mut MutableBuffer,
    ) -> Result<(), Fault> {
        debug_assert!(wanted.start <= wanted.end && wanted.end <= count);
        let bytes = wanted.start * size..wanted.end * size;
        // The engine believes a prefix, and the process ends where there is not so much memory.
        if let (Self::Prefixed(Prefixed { kind, .. }), Some(piece)) = (self, buffers.first())
            && !is_plausible(piece, *kind, count * size)
        {
            return Err(Irregular("a compressed chunk that says it is larger than its values"));
        }
        match (self, buffers) {
            (Self::Prefixed(Prefixed { kind, inner: Some(inner), .. }), [piece])
                if !is_frame(piece, *kind) =>
            {
                let piece = decompressed.decompress(*kind, piece)?;
                return inner.decode(
                    &[piece],
                    count,
                    (size, width),
                    wanted,
                    &mut Decompressed::default(),
                    out,
                );
            }
            (Self::Packed, [data]) => match (size, width) {
                (1, 1) => unpack::<u8>(data, count, wanted, out)?,
                (2, 2) => unpack::<u16>(data, count, wanted, out)?,
                (4, 4) => unpack::<u32>(data, count, wanted, out)?,
                (8, 8) => unpack::<u64>(data, count, wanted, out)?,
                (8, 1) => unpack_narrow(data, count, wanted, out, |v| v as u8)?,
                (8, 2) => unpack_narrow(data, count, wanted, out, |v| v as u16)?,
                _ => return Err(Irregular("packed values of an odd size")),
            },
            _ if width < size => return Err(Fault::TooNarrow),
            (Self::Flat, [data]) if data.len() == count * size => out.extend_from_slice(&data[bytes]),
            (Self::Engine(codec) | Self::Prefixed(Prefixed { engine: codec, .. }), _) => {
                let buffers = buffers.iter().map(|b| LanceBuffer::copy_slice(b)).collect();
                let block = codec.decompress(buffers, count as u64);
                let Ok(DataBlock::FixedWidth(block)) = block else { return Err(Irregular("values")) };
                if block.bits_per_value != size as u64 * 8 || block.data.len() != count * size {
                    return Err(Irregular("values of another size"));
                }
                out.extend_from_slice(&block.data[bytes]);
            }
            _ => return Err(Irregular("values that do not fill their chunk")),
        }
        Ok(())
    }
}

/// Unpacks a chunk.
fn unpack<T: BitPackingUninit + bytemuck::Pod + Into<u64>>(
    data: &[u8],
    count: usize,
    wanted: Range<usize>,
    out: &mut MutableBuffer,
) -> Result<(), Fault> {
    let size = size_of::<T>();
    let (bits, packed) = packed::<T>(data, count)?;
    if wanted.start == 0 {
        // Straight to where they belong; later values are written over those beyond.
        out.reserve(PACK * size);
        let length = out.len();
        // SAFETY: the room was reserved a moment ago. A buffer is aligned for every primitive type and holds whole
        // values of this one, so the room behind its end is aligned too.
        let room = unsafe {
            let end = out.as_mut_ptr().add(length).cast::<MaybeUninit<T>>();
            std::slice::from_raw_parts_mut(end, PACK)
        };
        // SAFETY: both lengths are as the packing asks for; it writes all of `room`, of which the wanted part then
        // counts.
        unsafe {
            T::unchecked_unpack_uninit(bits, packed, room);
            out.set_len(length + wanted.end * size);
        }
    } else {
        let mut room = [T::zeroed(); PACK];
        // SAFETY: the lengths are as the packing asks for.
        unsafe { T::unchecked_unpack(bits, packed, &mut room) };
        out.extend_from_slice(bytemuck::cast_slice::<T, u8>(&room[wanted]));
    }
    Ok(())
}

/// Unpacks a chunk of 64-bit values of so few bits that they fit a narrower type.
fn unpack_narrow<N: bytemuck::Pod>(
    data: &[u8],
    count: usize,
    wanted: Range<usize>,
    out: &mut MutableBuffer,
    narrow: impl Fn(u64) -> N,
) -> Result<(), Fault> {
    let (bits, packed) = packed::<u64>(data, count)?;
    if bits > size_of::<N>() * 8 {
        return Err(Fault::TooNarrow);
    }
    let mut room = [0u64; PACK];
    // SAFETY: the lengths are as the packing asks for.
    unsafe { u64::unchecked_unpack(bits, packed, &mut room) };
    append(&room[wanted], out, narrow);
    Ok(())
}

/// Appends `narrow` of each value, with the widest instructions that there are.
fn append<V: Copy, N: bytemuck::Pod>(values: &[V], out: &mut MutableBuffer, narrow: impl Fn(V) -> N) {
    let first = out.len();
    out.resize(first + size_of_val(values) / size_of::<V>() * size_of::<N>(), 0);
    let room: &mut [N] = bytemuck::cast_slice_mut(&mut out.as_slice_mut()[first..]);
    pulp::Arch::new().dispatch(|| {
        for (to, &from) in room.iter_mut().zip(values) {
            *to = narrow(from);
        }
    });
}

/// The values that a page's chunks give indices of.
#[derive(Debug)]
pub(super) struct Dictionary {
    values: Vec<u64>,
    largest: u64,
}

impl Dictionary {
    /// Decodes `count` values of `size` bytes.
    pub fn new(codec: &dyn BlockDecompressor, data: &[u8], count: usize, size: usize) -> Result<Self, Fault> {
        let block = codec.decompress(Some(LanceBuffer::copy_slice(data)), count as u64);
        let Ok(DataBlock::FixedWidth(block)) = block else { return Err(Irregular("a dictionary")) };
        if block.bits_per_value != size as u64 * 8 || block.data.len() != count * size {
            return Err(Irregular("a dictionary of another size"));
        }
        let values: Vec<_> = block.data.chunks_exact(size).map(little_endian).collect();
        let largest = values.iter().copied().max().unwrap_or(0);
        Ok(Self { values, largest })
    }

    /// Appends the values of 32-bit `indices` in `width` bytes.
    pub fn look_up(
        &self,
        indices: &[u32],
        size: usize,
        width: usize,
        out: &mut MutableBuffer,
    ) -> Result<(), Fault> {
        if indices.iter().any(|&i| i as usize >= self.values.len()) {
            return Err(Irregular("an index beyond its dictionary"));
        }
        if width < size && self.largest >> (width * 8) > 0 {
            return Err(Fault::TooNarrow);
        }
        let value = |i: u32| self.values[i as usize];
        match width {
            1 => append(indices, out, |i| value(i) as u8),
            2 => append(indices, out, |i| value(i) as u16),
            4 => append(indices, out, |i| value(i) as u32),
            _ => append(indices, out, value),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lance_encoding::format::metadata::{self, BufferCompression};
    use wellread_store::bare_codec::BareCodec;

    #[test]
    fn packed_values_are_unpacked_in_place_or_in_part() {
        let values: Vec<u16> = (0..PACK as u16).map(|i| i % 500).collect();
        let mut words = vec![9u16; 1 + PACK * 9 / 16];
        // SAFETY: lengths as the packing asks for.
        unsafe { lance_bitpacking::BitPacking::unchecked_pack(9, &values, &mut words[1..]) };
        let data: &[u8] = bytemuck::cast_slice(&words);
        for wanted in [0..1000, 0..3, 7..1000, 999..1000, 5..5] {
            let mut out = MutableBuffer::new(0);
            out.extend_from_slice(&[1u16]);
            ValueCodec::Packed
                .decode(&[data], 1000, (2, 2), wanted.clone(), &mut Decompressed::default(), &mut out)
                .unwrap();
            assert_eq!(out.typed_data::<u16>()[0], 1);
            assert_eq!(&out.typed_data::<u16>()[1..], &values[wanted]);
        }
        let mut out = MutableBuffer::new(0);
        for (data, count) in [(&data[..data.len() - 2], 1000), (&data[..0], 1000), (data, 1025)] {
            assert!(
                ValueCodec::Packed
                    .decode(&[data], count, (2, 2), 0..3, &mut Decompressed::default(), &mut out)
                    .is_err()
            );
        }
        words[0] = 17;
        let data = bytemuck::cast_slice(&words);
        assert!(
            ValueCodec::Packed
                .decode(&[data], 9, (2, 2), 0..3, &mut Decompressed::default(), &mut out)
                .is_err()
        );
        assert!(
            ValueCodec::Flat
                .decode(&[&[1, 2, 3]], 2, (2, 2), 0..1, &mut Decompressed::default(), &mut out)
                .is_err()
        );
        assert!(
            ValueCodec::Flat.decode(&[], 2, (2, 2), 0..1, &mut Decompressed::default(), &mut out).is_err()
        );
        assert!(out.is_empty());
    }

    #[test]
    fn values_of_few_bits_are_delivered_narrow() {
        let values: Vec<u64> = (0..PACK as u64).map(|i| i % 300).collect();
        let mut words = vec![9u64; 1 + PACK * 9 / 64];
        // SAFETY: lengths as the packing asks for.
        unsafe { u64::unchecked_pack(9, &values, &mut words[1..]) };
        let data: &[u8] = bytemuck::cast_slice(&words);
        let mut out = MutableBuffer::new(0);
        ValueCodec::Packed
            .decode(&[data], 1024, (8, 2), 3..1000, &mut Decompressed::default(), &mut out)
            .unwrap();
        assert!(out.typed_data::<u16>().iter().zip(&values[3..]).all(|(a, b)| u64::from(*a) == *b));
        assert_eq!(out.len(), 997 * 2);
        let too_narrow =
            ValueCodec::Packed.decode(&[data], 1024, (8, 1), 0..9, &mut Decompressed::default(), &mut out);
        assert!(matches!(too_narrow, Err(Fault::TooNarrow)));
        let flat = ValueCodec::Flat.decode(
            &[data],
            words.len(),
            (8, 1),
            0..9,
            &mut Decompressed::default(),
            &mut out,
        );
        assert!(matches!(flat, Err(Fault::TooNarrow)));
    }

    #[test]
    fn indices_are_looked_up() {
        let dictionary = Dictionary { values: vec![7, 300, 9], largest: 300 };
        let mut out = MutableBuffer::new(0);
        dictionary.look_up(&[2, 1, 0], 8, 2, &mut out).unwrap();
        assert_eq!(out.typed_data::<u16>(), [9, 300, 7]);
        assert!(matches!(dictionary.look_up(&[1], 8, 1, &mut out), Err(Fault::TooNarrow)));
        assert!(matches!(dictionary.look_up(&[3], 8, 8, &mut out), Err(Irregular(_))));
        assert_eq!(out.len(), 6);
        let mut out = MutableBuffer::new(0);
        dictionary.look_up(&[1], 8, 8, &mut out).unwrap();
        assert_eq!(out.typed_data::<u64>(), [300]);
    }

    /// Against the engine, for what is in a chunk and for chunks that are damaged.
    #[test]
    fn compressed_chunks_are_undone_as_by_the_engine() {
        let values: Vec<u16> = (0..PACK as u16).map(|i| i % 500).collect();
        let mut packed = vec![9u16; 1 + PACK * 9 / 16];
        // SAFETY: lengths as the packing asks for.
        unsafe { BitPacking::unchecked_pack(9, &values, &mut packed[1..]) };
        for (kind, name, scheme) in [
            (General::Zstd, "zstd", CompressionScheme::CompressionAlgorithmZstd),
            (General::Lz4, "lz4", CompressionScheme::CompressionAlgorithmLz4),
        ] {
            for (inner, words) in [(flat(), &values), (inline(), &packed)] {
                let general = metadata::General {
                    compression: Some(BufferCompression { scheme: scheme.into(), level: None }),
                    values: Some(Box::new(inner)),
                };
                let encoding =
                    CompressiveEncoding { compression: Some(Compression::General(Box::new(general))) };
                let codec = ValueCodec::new(&encoding, 2).unwrap();
                let ValueCodec::Prefixed(own) = &codec else { panic!("{codec:?}") };
                assert!(own.inner.is_some());
                let engine = ValueCodec::Engine(Arc::clone(&own.engine));
                let bytes: &[u8] = bytemuck::cast_slice(words);
                let piece = BareCodec::named(name).unwrap().unwrap().compress(bytes).unwrap();
                let piece = [&bytes.len().to_le_bytes()[..kind.prefix()], &piece].concat();
                let mut decompressed = Decompressed::default();
                let mut decode = |codec: &ValueCodec, piece: &[u8]| {
                    let mut out = MutableBuffer::new(0);
                    codec.decode(&[piece], PACK, (2, 2), 3..1000, &mut decompressed, &mut out).map(|()| out)
                };
                let (ours, theirs) = (decode(&codec, &piece).unwrap(), decode(&engine, &piece).unwrap());
                assert_eq!(ours.typed_data::<u16>(), &values[3..1000]);
                assert_eq!(ours, theirs);
                for at in [0, kind.prefix()] {
                    let mut damaged = piece.clone();
                    damaged[at] ^= 0x55;
                    assert!(decode(&codec, &damaged).is_err(), "{name}, byte {at}");
                }
                assert!(decode(&codec, &piece[..piece.len() / 2]).is_err());
            }
        }
    }

    fn flat() -> CompressiveEncoding {
        let flat = metadata::Flat { bits_per_value: 16, data: None };
        CompressiveEncoding { compression: Some(Compression::Flat(flat)) }
    }

    fn inline() -> CompressiveEncoding {
        let packed = metadata::InlineBitpacking { uncompressed_bits_per_value: 16, values: None };
        CompressiveEncoding { compression: Some(Compression::InlineBitpacking(packed)) }
    }
}
