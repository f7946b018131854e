//! Values of a chunk: as they are, bit-packed, or in an encoding that the engine undoes.

use super::Irregular;
use arrow_buffer::MutableBuffer;
use lance_bitpacking::BitPackingUninit;
use lance_encoding::buffer::LanceBuffer;
use lance_encoding::compression::{DecompressionStrategy, DefaultDecompressionStrategy, MiniBlockDecompressor};
use lance_encoding::data::DataBlock;
use lance_encoding::format::metadata::compressive_encoding::Compression;
use lance_encoding::format::metadata::{CompressionScheme, CompressiveEncoding};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

/// Values that are packed together.
const PACK: usize = 1024;

/// How values are stored.
#[derive(Debug)]
pub(super) enum ValueCodec {
    /// As they are.
    Flat,
    /// Packed to a number of bits that each chunk states.
    Packed,
    /// In an encoding that the engine undoes.
    Engine(Arc<dyn MiniBlockDecompressor>),
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
        Some(Self::Engine(Arc::from(codec)))
    }

    /// Appends the values `wanted` of a chunk of `count` values, of `size` bytes each.
    pub fn decode(
        &self,
        buffers: &[&[u8]],
        count: usize,
        size: usize,
        wanted: Range<usize>,
        out: &mut MutableBuffer,
    ) -> Result<(), Irregular> {
        debug_assert!(wanted.start <= wanted.end && wanted.end <= count);
        let bytes = wanted.start * size..wanted.end * size;
        match (self, buffers) {
            (Self::Flat, [data]) if data.len() == count * size => out.extend_from_slice(&data[bytes]),
            (Self::Packed, [data]) => match size {
                1 => unpack::<u8>(data, count, wanted, out)?,
                2 => unpack::<u16>(data, count, wanted, out)?,
                4 => unpack::<u32>(data, count, wanted, out)?,
                8 => unpack::<u64>(data, count, wanted, out)?,
                _ => return Err(Irregular("packed values of an odd size")),
            },
            (Self::Engine(codec), _) => {
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

/// Unpacks a chunk: the number of bits as a value, then 1,024 values in as many bits.
fn unpack<T: BitPackingUninit + bytemuck::Pod + Into<u64>>(
    data: &[u8],
    count: usize,
    wanted: Range<usize>,
    out: &mut MutableBuffer,
) -> Result<(), Irregular> {
    let size = size_of::<T>();
    let words: &[T] = bytemuck::try_cast_slice(data).map_err(|_| Irregular("packed values not aligned"))?;
    let (&bits, packed) = words.split_first().ok_or(Irregular("packed values without a header"))?;
    let bits = usize::try_from(bits.into()).unwrap_or(usize::MAX);
    if bits > size * 8 || packed.len() * size * 8 != bits * PACK || count > PACK {
        return Err(Irregular("packed values that do not fill their chunk"));
    }
    if wanted.start == 0 {
        // Straight to where they belong; what is beyond is written over by what comes next.
        out.reserve(PACK * size);
        let length = out.len();
        // SAFETY: the room was reserved a moment ago; a buffer is aligned for every primitive type and holds whole
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

/// The encoding in a few words.
pub(super) fn words(encoding: &CompressiveEncoding) -> String {
    let of = |inner: Option<&CompressiveEncoding>| inner.map_or_else(|| "none".into(), words);
    match encoding.compression.as_ref() {
        Some(Compression::Flat(_)) => "none".into(),
        Some(Compression::InlineBitpacking(_) | Compression::OutOfLineBitpacking(_)) => "bit-packed".into(),
        Some(Compression::Rle(_)) => "run lengths".into(),
        Some(Compression::Dictionary(_)) => "dictionary".into(),
        Some(Compression::ByteStreamSplit(split)) => match of(split.values.as_deref()).as_str() {
            "none" => "byte streams".into(),
            inner => format!("byte streams, {inner}"),
        },
        Some(Compression::General(general)) => {
            let scheme = match general.compression.as_ref().map(|c| c.scheme()) {
                Some(CompressionScheme::CompressionAlgorithmLz4) => "lz4",
                Some(CompressionScheme::CompressionAlgorithmZstd) => "zstd",
                _ => "compressed",
            };
            match of(general.values.as_deref()).as_str() {
                "none" => scheme.into(),
                inner => format!("{inner}, {scheme}"),
            }
        }
        _ => "other".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ValueCodec::Packed.decode(&[data], 1000, 2, wanted.clone(), &mut out).unwrap();
            assert_eq!(out.typed_data::<u16>()[0], 1);
            assert_eq!(&out.typed_data::<u16>()[1..], &values[wanted]);
        }
        let mut out = MutableBuffer::new(0);
        for (data, count) in [(&data[..data.len() - 2], 1000), (&data[..0], 1000), (data, 1025)] {
            assert!(ValueCodec::Packed.decode(&[data], count, 2, 0..3, &mut out).is_err());
        }
        words[0] = 17;
        assert!(ValueCodec::Packed.decode(&[bytemuck::cast_slice(&words)], 9, 2, 0..3, &mut out).is_err());
        assert!(ValueCodec::Flat.decode(&[&[1, 2, 3]], 2, 2, 0..1, &mut out).is_err());
        assert!(ValueCodec::Flat.decode(&[], 2, 2, 0..1, &mut out).is_err());
        assert!(out.is_empty());
    }
}
