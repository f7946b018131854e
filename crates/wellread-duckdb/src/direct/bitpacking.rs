//! Groups of bit-packed integers: a constant, an arithmetic sequence, or numbers of a few bits above a smallest one
//! (frame of reference). These are the values or their differences.

use super::bits::{Lane, fits, unpack};
use std::ops::Range;
use wellread_store::direct::Fault::{self, Irregular};
use wellread_store::direct::little_endian;

/// Values of a group.
pub(super) const GROUP: usize = 2048;
/// The bits of a table's entry that say where the group starts; those above are its mode.
pub(super) const OFFSET_MASK: u32 = 0x00ff_ffff;

/// A group; numbers have the bits that they are stored with, without sign.
#[derive(Debug)]
pub(super) struct Group<'a> {
    mode: Mode,
    /// The smallest value or difference.
    base: u64,
    packed: &'a [u8],
    /// Bits of a packed number.
    width: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Constant,
    /// With this difference between values.
    Sequence(u64),
    Values,
    /// Differences, and the number before the first value.
    Differences(u64),
}

impl<'a> Group<'a> {
    /// The group with `entry` in its segment's table, of values of `stored` bytes.
    pub fn new(bytes: &'a [u8], entry: u32, stored: usize) -> Result<Self, Fault> {
        let word = |i: usize| {
            let word =
                bytes.get(i * stored..(i + 1) * stored).ok_or(Irregular("a group without a header"))?;
            Ok(little_endian(word))
        };
        let base = word(0)?;
        let (mode, words) = match entry >> 24 {
            2 => (Mode::Constant, 1),
            3 => (Mode::Sequence(word(1)?), 2),
            4 => (Mode::Differences(word(2)?), 3),
            5 => (Mode::Values, 2),
            _ => return Err(Irregular("a group of an unknown kind")),
        };
        let packs = matches!(mode, Mode::Values | Mode::Differences(_));
        let width = if packs { word(1)? } else { 0 };
        let width = u32::try_from(width).ok().filter(|w| *w as usize <= stored * 8);
        let width = width.ok_or(Irregular("packed numbers that are too wide"))?;
        Ok(Self { mode, base, packed: &bytes[words * stored..], width })
    }

    /// The values `wanted`, stored in `stored` bytes.
    pub fn decode<L: Lane>(&self, wanted: Range<usize>, stored: usize, out: &mut [L]) -> Result<(), Fault> {
        match self.mode {
            Mode::Constant => {
                out.fill(L::wrap(self.base));
                fits::<L>(self.base, stored)
            }
            Mode::Sequence(step) => {
                let mut seen = 0;
                for (i, out) in wanted.zip(out) {
                    let value = step.wrapping_mul(i as u64).wrapping_add(self.base);
                    seen |= value;
                    *out = L::wrap(value);
                }
                fits::<L>(seen, stored)
            }
            Mode::Values => self.values(wanted, stored, out),
            Mode::Differences(before) if self.width <= 32 => {
                fits::<L>(self.sums::<u32, L>(before, wanted, out)?, stored)
            }
            Mode::Differences(before) => fits::<L>(self.sums::<u64, L>(before, wanted, out)?, stored),
        }
    }

    fn values<L: Lane>(&self, wanted: Range<usize>, stored: usize, out: &mut [L]) -> Result<(), Fault> {
        if size_of::<L>() < stored && self.width > L::BITS {
            return Err(Fault::TooNarrow);
        }
        fits::<L>(self.base, stored)?;
        unpack(self.packed, self.width, wanted, out).ok_or(SHORT)?;
        if self.base == 0 {
            return Ok(());
        }
        let base = L::wrap(self.base);
        let mut smallest = L::wrap(u64::MAX);
        pulp::Arch::new().dispatch(|| {
            for out in out {
                *out = out.plus(base);
                smallest = smallest.min(*out);
            }
        });
        // Only sums that went round are smaller than what was added.
        if size_of::<L>() < stored && smallest < base { Err(Fault::TooNarrow) } else { Ok(()) }
    }

    /// The values that differ by packed numbers; the bits that are set in any of them.
    fn sums<R: Lane, L: Lane>(&self, before: u64, wanted: Range<usize>, out: &mut [L]) -> Result<u64, Fault> {
        let mut room = [R::zeroed(); GROUP];
        let room = room.get_mut(..wanted.end).ok_or(SHORT)?;
        unpack(self.packed, self.width, 0..wanted.end, room).ok_or(SHORT)?;
        let next = |sum: u64, step: &R| sum.wrapping_add(self.base.wrapping_add(step.wide()));
        let (skipped, room) = room.split_at(wanted.start);
        let mut sum = skipped.iter().fold(before, next);
        let mut seen = 0;
        for (out, step) in out.iter_mut().zip(room) {
            sum = next(sum, step);
            seen |= sum;
            *out = L::wrap(sum);
        }
        Ok(seen)
    }
}

const SHORT: Fault = Irregular("a group without all of its values");

#[cfg(test)]
mod tests {
    use super::*;

    /// A group of 64-bit numbers; `words` follow the base.
    fn group(mode: u32, base: u64, words: &[u64], packed: &[u8]) -> (Vec<u8>, u32) {
        let mut bytes: Vec<u8> = [&[base], words].concat().iter().flat_map(|w| w.to_le_bytes()).collect();
        bytes.extend_from_slice(packed);
        (bytes, mode << 24 | 16)
    }

    fn decode<L: Lane>(group: &(Vec<u8>, u32), wanted: Range<usize>) -> Result<Vec<u64>, Fault> {
        let mut out = vec![L::zeroed(); wanted.len()];
        Group::new(&group.0, group.1, 8)?.decode(wanted, 8, &mut out)?;
        Ok(out.iter().map(|v| v.wide()).collect())
    }

    #[test]
    fn values_that_do_not_fit_are_told() {
        let fits = |group: &(Vec<u8>, u32), value: u64| {
            assert_eq!(decode::<u64>(group, 1..2).unwrap(), [value]);
            let narrow = (decode::<u8>(group, 1..2), decode::<u16>(group, 1..2));
            for (result, most) in [(narrow.0, 0xff), (narrow.1, 0xffff)] {
                match result {
                    Ok(found) => assert!(found == [value] && value <= most),
                    Err(fault) => assert!(matches!(fault, Fault::TooNarrow) && value > most),
                }
            }
        };
        // The second of 32 values of eight bits is 200, and ones of seventeen bits.
        let mut bytes = [0; 32];
        bytes[1] = 200;
        for base in [0, 55, 56, 255, 256, 65_335, 65_336, 1 << 40, u64::MAX - 199, u64::MAX] {
            fits(&group(2, base, &[], &[]), base);
            fits(&group(3, base, &[7], &[]), base.wrapping_add(7));
            let sum = base.wrapping_add(200);
            assert_eq!(decode::<u64>(&group(5, base, &[8], &bytes), 1..2).unwrap(), [sum]);
            match decode::<u8>(&group(5, base, &[8], &bytes), 0..2) {
                Ok(found) => assert_eq!(found, [base, sum]),
                Err(fault) => assert!(matches!(fault, Fault::TooNarrow) && base.max(sum) > 255),
            }
            fits(&group(4, base, &[8, 5], &bytes), base.wrapping_mul(2).wrapping_add(205));
        }
        let wide = group(5, 0, &[17], &[0; 68]);
        assert!(matches!(decode::<u16>(&wide, 0..1), Err(Fault::TooNarrow)));
        assert_eq!(decode::<u64>(&wide, 0..32).unwrap(), [0; 32]);
    }

    #[test]
    fn odd_groups_are_refused() {
        for (bytes, entry) in [
            group(0, 0, &[], &[]),
            group(1, 0, &[], &[]),
            group(6, 0, &[8], &[0; 32]),
            group(5, 0, &[65], &[0; 999]),
            group(5, 0, &[u64::MAX], &[0; 999]),
            group(5, 0, &[8], &[0; 31]),
            group(4, 0, &[8, 0], &[0; 31]),
            group(4, 0, &[8], &[]),
            group(3, 0, &[], &[]),
            (vec![1; 7], 2 << 24),
        ] {
            assert!(matches!(decode::<u64>(&(bytes, entry), 0..1), Err(Irregular(_))), "{entry:x}");
        }
    }
}
