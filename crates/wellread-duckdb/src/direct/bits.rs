//! Numbers packed to a few bits each, lowest bits first and back to back, in packs of 32.

// Steps of loops that are to become vectors.
#![allow(clippy::inline_always)]

use bytemuck::Pod;
use std::ops::Range;
use wellread_store::direct::Fault;

/// Values that are packed together.
pub(super) const PACK: usize = 32;
/// Bytes that are read behind a value.
const PADDING: usize = 4;

/// An unsigned integer that values are unpacked to.
pub(super) trait Lane: Pod + Ord {
    const BITS: u32;
    /// The low bits of a number.
    fn wrap(value: u64) -> Self;
    fn wide(self) -> u64;
    fn plus(self, other: Self) -> Self;
}

macro_rules! lane {
    ($($type:ty),*) => {$(
        impl Lane for $type {
            const BITS: u32 = <$type>::BITS;

            #[inline(always)]
            fn wrap(value: u64) -> Self {
                value as $type
            }

            #[inline(always)]
            fn wide(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
        }
    )*};
}

lane!(u8, u16, u32, u64);

/// Whether numbers whose bits are all in `seen`, stored in `stored` bytes, are whole in `L`.
pub(super) fn fits<L: Lane>(seen: u64, stored: usize) -> Result<(), Fault> {
    if size_of::<L>() < stored && seen >> L::BITS > 0 { Err(Fault::TooNarrow) } else { Ok(()) }
}

/// Bytes of `count` values of `width` bits: packs are whole.
pub(super) fn packed_bytes(count: usize, width: u32) -> usize {
    count.div_ceil(PACK) * (PACK / 8) * width as usize
}

/// Unpacks the values `wanted` to `out`, which has room for just as many. `None` where `packed` ends before them, or
/// values of `width` bits do not fit.
pub(super) fn unpack<L: Lane>(packed: &[u8], width: u32, wanted: Range<usize>, out: &mut [L]) -> Option<()> {
    debug_assert_eq!(wanted.len(), out.len());
    if width > L::BITS || packed.len() < packed_bytes(wanted.end, width) {
        return None;
    }
    if width == L::BITS {
        // Whole numbers: as they lie.
        let size = size_of::<L>();
        bytemuck::cast_slice_mut(out).copy_from_slice(&packed[wanted.start * size..wanted.end * size]);
        return Some(());
    }
    // A pack is read in words that may end behind it.
    let pack = |k: usize| &packed[packed_bytes(k * PACK, width)..];
    let last = |k: usize, room: &mut [L; PACK]| {
        let mut padded = [0u8; PACK / 8 * 64 + PADDING];
        let bytes = packed_bytes(PACK, width);
        padded[..bytes].copy_from_slice(&pack(k)[..bytes]);
        packs(&padded, width, room);
    };
    let mut room = [L::zeroed(); PACK];
    let mut out = out;
    let mut at = wanted.start;
    if !at.is_multiple_of(PACK) {
        let skip = at % PACK;
        let n = (PACK - skip).min(out.len());
        last(at / PACK, &mut room);
        out[..n].copy_from_slice(&room[skip..skip + n]);
        (out, at) = (&mut out[n..], at + n);
    }
    let packs_left =
        (packed.len() - packed_bytes(at, width)).saturating_sub(PADDING) / packed_bytes(PACK, width).max(1);
    let whole = (out.len() / PACK).min(packs_left) * PACK;
    if whole > 0 {
        packs(pack(at / PACK), width, &mut out[..whole]);
        (out, at) = (&mut out[whole..], at + whole);
    }
    for out in out.chunks_mut(PACK) {
        last(at / PACK, &mut room);
        out.copy_from_slice(&room[..out.len()]);
        at += PACK;
    }
    Some(())
}

/// Unpacks whole packs, which more bytes follow, by code made for each width.
fn packs<L: Lane>(packed: &[u8], width: u32, out: &mut [L]) {
    macro_rules! by_width {
        ($($width:literal)*) => {
            match width {
                0 => out.fill(L::zeroed()),
                $($width => packs_of::<L, $width>(packed, out),)*
                _ => wide_packs(packed, width, out),
            }
        };
    }
    by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25);
}

/// Packs of values of `W` bits: 4 to 28 values a nanosecond. Instructions wider than every processor has made it no
/// faster.
fn packs_of<L: Lane, const W: usize>(packed: &[u8], out: &mut [L]) {
    // Never asked for: spares the code.
    if W as u32 >= L::BITS {
        return;
    }
    for (k, out) in out.as_chunks_mut::<PACK>().0.iter_mut().enumerate() {
        let start = k * (PACK / 8 * W);
        let bytes = &packed[start..start + (PACK / 8 * W + PADDING)];
        // By index: so the loop is unrolled, its offsets become constants, and its values vectors.
        #[expect(clippy::needless_range_loop)]
        for i in 0..PACK {
            let (at, shift) = (i * W / 8, i * W % 8);
            // Four bytes hold a value of up to 25 bits from any bit on.
            let word = u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
            out[i] = L::wrap(u64::from(word >> shift & (u32::MAX >> (32 - W))));
        }
    }
}

/// Packs of values of more bits, which are rare.
fn wide_packs<L: Lane>(packed: &[u8], width: u32, out: &mut [L]) {
    let mask = u64::MAX >> (64 - width.clamp(1, 64));
    for (i, out) in out.iter_mut().enumerate() {
        let bit = i * width as usize;
        // Nine bytes hold 64 bits from any bit on.
        let bytes = packed[bit / 8..].iter().take(9);
        let value = bytes.rev().fold(0u128, |n, &byte| n << 8 | u128::from(byte));
        *out = L::wrap((value >> (bit % 8)) as u64 & mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As DuckDB packs them, bit by bit.
    fn pack(values: &[u64], width: u32) -> Vec<u8> {
        let mut out = vec![0u8; packed_bytes(values.len(), width)];
        for (i, value) in values.iter().enumerate() {
            for bit in (0..width as usize).filter(|bit| value >> bit & 1 == 1) {
                let at = i * width as usize + bit;
                out[at / 8] |= 1 << (at % 8);
            }
        }
        out
    }

    fn check<L: Lane + std::fmt::Debug>(count: usize) {
        for width in 0..=L::BITS {
            let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
            let values: Vec<u64> =
                (0..count as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3 & mask).collect();
            let packed = pack(&values, width);
            for wanted in [0..count, 0..1, 31..33, 5..20, 32..64, 33..count, 40..40, count - 1..count] {
                let mut out = vec![L::zeroed(); wanted.len()];
                unpack(&packed, width, wanted.clone(), &mut out).unwrap();
                let wide: Vec<u64> = out.iter().map(|v| v.wide()).collect();
                assert_eq!(wide, values[wanted], "{width}");
            }
            if width > 0 {
                let mut out = vec![L::zeroed(); count];
                assert!(unpack(&packed[..packed.len() - 1], width, 0..count, &mut out).is_none());
            }
        }
        assert!(unpack::<L>(&[0; 4096], L::BITS + 1, 0..1, &mut [L::zeroed()]).is_none());
    }

    #[test]
    fn every_width_is_unpacked_whole_and_in_part() {
        for count in [100, 128, 2048] {
            check::<u8>(count);
            check::<u16>(count);
            check::<u32>(count);
            check::<u64>(count);
        }
    }
}
