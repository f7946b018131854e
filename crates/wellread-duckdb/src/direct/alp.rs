//! Floating-point numbers as integers (ALP: decimals scaled by powers of ten) or as two parts. The latter is ALPRD:
//! high bits from a small dictionary, low bits as they are. Both are bit-packed, with exceptions
//! ([paper](https://dl.acm.org/doi/10.1145/3626717)).

use super::bits::{Lane, packed_bytes, unpack};
use std::ops::Range;
use wellread_store::direct::Fault::{self, Irregular};
use wellread_store::direct::little_endian;

/// Values of a vector.
pub(super) const VECTOR: usize = 1024;
/// Entries of a dictionary of high bits.
const DICTIONARY: usize = 8;

/// A floating-point number by its bits.
trait Real: Lane {
    const MOST_EXPONENT: usize;
    /// `value · 10^factor · 10^-exponent`, each step rounded.
    fn decimal(value: i64, factor: usize, exponent: usize) -> Self;
}

/// Powers of ten that are integers of 64 bits.
const POWERS: [i64; 19] = {
    let mut powers = [1; 19];
    let mut i = 1;
    while i < 19 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

impl Real for u32 {
    const MOST_EXPONENT: usize = 10;

    fn decimal(value: i64, factor: usize, exponent: usize) -> Self {
        const FRACTIONS: [f32; 11] = [1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10];
        (value as f32 * POWERS[factor] as f32 * FRACTIONS[exponent]).to_bits()
    }
}

impl Real for u64 {
    const MOST_EXPONENT: usize = 18;

    fn decimal(value: i64, factor: usize, exponent: usize) -> Self {
        const FRACTIONS: [f64; 19] = [
            1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14,
            1e-15, 1e-16, 1e-17, 1e-18,
        ];
        (value as f64 * POWERS[factor] as f64 * FRACTIONS[exponent]).to_bits()
    }
}

/// Reads a vector's bytes from front to back.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], Fault> {
        let (now, rest) = self.0.split_at_checked(bytes).ok_or(Irregular("a vector that ends early"))?;
        self.0 = rest;
        Ok(now)
    }

    fn number(&mut self, bytes: usize) -> Result<u64, Fault> {
        Ok(little_endian(self.take(bytes)?))
    }

    /// Exceptions in a vector of `count` values: their values of `size` bytes, then their positions.
    fn exceptions(&mut self, n: usize, size: usize, count: usize) -> Result<Exceptions<'a>, Fault> {
        if n > count {
            return Err(Irregular("more exceptions than values"));
        }
        let all = Exceptions { values: self.take(n * size)?, positions: self.take(n * 2)?, size };
        if all.iter().any(|(at, _)| at >= count) {
            return Err(Irregular("an exception outside of its vector"));
        }
        Ok(all)
    }

    /// Values as they are.
    fn plain<L: Lane>(&mut self, wanted: Range<usize>, out: &mut [L]) -> Result<(), Fault> {
        let size = size_of::<L>();
        let bytes = self.take(wanted.end * size)?;
        bytemuck::cast_slice_mut(out).copy_from_slice(&bytes[wanted.start * size..]);
        Ok(())
    }
}

/// Values that are not as the others of their vector.
struct Exceptions<'a> {
    values: &'a [u8],
    positions: &'a [u8],
    /// Bytes of a value.
    size: usize,
}

impl Exceptions<'_> {
    /// Position and value of each.
    fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        let positions = self.positions.as_chunks::<2>().0.iter();
        let values = self.values.chunks_exact(self.size);
        positions.zip(values).map(|(at, value)| (usize::from(u16::from_le_bytes(*at)), little_endian(value)))
    }
}

/// Decodes the values `wanted` of an ALP vector of `count`.
pub(super) fn decode<L: Lane>(
    bytes: &[u8],
    count: usize,
    wanted: Range<usize>,
    out: &mut [L],
) -> Result<(), Fault> {
    match size_of::<L>() {
        4 => decimals::<u32>(bytes, count, wanted, bytemuck::cast_slice_mut(out)),
        8 => decimals::<u64>(bytes, count, wanted, bytemuck::cast_slice_mut(out)),
        _ => Err(Irregular("floating-point numbers of an odd size")),
    }
}

fn decimals<R: Real>(bytes: &[u8], count: usize, wanted: Range<usize>, out: &mut [R]) -> Result<(), Fault> {
    let mut cursor = Cursor(bytes);
    let exponent = cursor.number(1)? as usize;
    if exponent == usize::from(u8::MAX) {
        return cursor.plain(wanted, out);
    }
    let factor = cursor.number(1)? as usize;
    let exceptions = cursor.number(2)? as usize;
    let base = cursor.number(8)?;
    let width = cursor.number(1)? as u32;
    if exponent > R::MOST_EXPONENT || factor > exponent || width > u64::BITS {
        return Err(Irregular("a vector with an odd header"));
    }
    let packed = cursor.take(packed_bytes(count, width))?;
    let exceptions = cursor.exceptions(exceptions, size_of::<R>(), count)?;
    let mut room = [0u64; VECTOR];
    let room = &mut room[..wanted.len()];
    unpack(packed, width, wanted.clone(), room).ok_or(Irregular("a vector that ends early"))?;
    for (out, value) in out.iter_mut().zip(room) {
        *out = R::decimal(value.wrapping_add(base) as i64, factor, exponent);
    }
    patch(&exceptions, &wanted, out, |_, value| value);
    Ok(())
}

fn patch<L: Lane>(
    exceptions: &Exceptions<'_>,
    wanted: &Range<usize>,
    out: &mut [L],
    with: impl Fn(L, u64) -> u64,
) {
    for (at, value) in exceptions.iter().filter(|(at, _)| wanted.contains(at)) {
        let out = &mut out[at - wanted.start];
        *out = L::wrap(with(*out, value));
    }
}

/// The values that the vectors of an ALPRD segment share.
#[derive(Debug)]
pub(super) struct Split {
    high: [u64; DICTIONARY],
    low_width: u32,
    high_width: u32,
}

impl Split {
    /// From the head of a segment.
    pub fn new(head: &[u8]) -> Result<Self, Fault> {
        let mut cursor = Cursor(head);
        cursor.take(4)?;
        let (low_width, high_width) = (cursor.number(1)? as u32, cursor.number(1)? as u32);
        let entries = cursor.number(1)? as usize;
        if entries > DICTIONARY || high_width > DICTIONARY.ilog2() {
            return Err(Irregular("a dictionary that is too large"));
        }
        let mut high = [0; DICTIONARY];
        for entry in &mut high[..entries] {
            *entry = cursor.number(2)?;
        }
        Ok(Self { high, low_width, high_width })
    }

    /// Decodes the values `wanted` of a vector of `count`.
    pub fn decode<L: Lane>(
        &self,
        bytes: &[u8],
        count: usize,
        wanted: Range<usize>,
        out: &mut [L],
    ) -> Result<(), Fault> {
        let mut cursor = Cursor(bytes);
        let exceptions = cursor.number(2)? as usize;
        if exceptions == usize::from(u16::MAX) {
            return cursor.plain(wanted, out);
        }
        if self.low_width >= L::BITS {
            return Err(Irregular("parts that are too wide"));
        }
        let high = cursor.take(packed_bytes(count, self.high_width))?;
        let low = cursor.take(packed_bytes(count, self.low_width))?;
        let exceptions = cursor.exceptions(exceptions, 2, count)?;
        let short = Irregular("a vector that ends early");
        let mut room = [0u8; VECTOR];
        let room = &mut room[..wanted.len()];
        unpack(high, self.high_width, wanted.clone(), room).ok_or(short)?;
        unpack(low, self.low_width, wanted.clone(), out).ok_or(short)?;
        for (out, &index) in out.iter_mut().zip(&*room) {
            let high = self.high[usize::from(index) % DICTIONARY];
            *out = L::wrap(high << self.low_width | out.wide());
        }
        let low_bits = (1u64 << self.low_width) - 1;
        patch(&exceptions, &wanted, out, |low, high| high << self.low_width | low.wide() & low_bits);
        Ok(())
    }
}
