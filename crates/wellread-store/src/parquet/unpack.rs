//! Bit-packed integers of up to 16 bits, side by side again: the indices of dictionary pages.
//!
//! Packed values do not care about bytes: value `i` of width `w` is at bit `i * w`. With AVX2, two loads take eight
//! values, which are `w` bytes. A shuffle brings the four bytes of each value to its lane, and a shift of its own
//! brings it to the lane's lowest bits. Processors without it take the values one by one.

use super::levels::packed_at;

/// Values that are unpacked at once, from a multiple of this on.
const UNPACK_GROUP: usize = 16;

/// Unpacks values of one width.
pub(super) struct Unpacker {
    width: usize,
    #[cfg(target_arch = "x86_64")]
    avx2: Option<avx2::Plan>,
}

impl Unpacker {
    /// The largest width, in bits.
    pub const MAX_WIDTH: u32 = 16;

    /// For values of `width` bits, 16 at most.
    pub fn new(width: u32) -> Self {
        debug_assert!(width <= Self::MAX_WIDTH);
        let width = width as usize;
        Self {
            width,
            #[cfg(target_arch = "x86_64")]
            avx2: avx2::Plan::new(width),
        }
    }

    /// Values from `start` on, as many as `out` holds, all of which lie in `bytes`.
    pub fn unpack(&self, bytes: &[u8], mut start: usize, mut out: &mut [u16]) {
        if self.width == 0 {
            return out.fill(0);
        }
        // Up to where a group begins.
        let single = (start.next_multiple_of(UNPACK_GROUP) - start).min(out.len());
        if single > 0 {
            let mut group = [0; UNPACK_GROUP];
            let (first, skipped) = (start - start % UNPACK_GROUP, start % UNPACK_GROUP);
            self.groups(bytes, first, &mut group);
            let (head, rest) = out.split_at_mut(single);
            head.copy_from_slice(&group[skipped..skipped + single]);
            (start, out) = (start + single, rest);
        }
        if out.is_empty() {
            return;
        }
        let (whole, tail) = out.split_at_mut(out.len() / UNPACK_GROUP * UNPACK_GROUP);
        self.groups(bytes, start, whole);
        if !tail.is_empty() {
            let mut group = [0; UNPACK_GROUP];
            self.groups(bytes, start + whole.len(), &mut group);
            tail.copy_from_slice(&group[..tail.len()]);
        }
    }

    /// Whole groups. Values beyond the end of `bytes` are anything.
    fn groups(&self, bytes: &[u8], start: usize, out: &mut [u16]) {
        debug_assert!(start.is_multiple_of(UNPACK_GROUP) && out.len().is_multiple_of(UNPACK_GROUP));
        let bytes = &bytes[(start / 8 * self.width).min(bytes.len())..];
        #[cfg(target_arch = "x86_64")]
        if let Some(plan) = &self.avx2 {
            return plan.groups(bytes, out);
        }
        one_by_one(bytes, self.width as u32, 0, out, |value| value as u16);
    }
}

/// Values of `width` bits, 1 to 32, from `start` on, as many as `out` holds. Those beyond the end of `bytes` are anything.
pub(super) fn one_by_one<T>(bytes: &[u8], width: u32, start: usize, out: &mut [T], value: impl Fn(u32) -> T) {
    let mask = (1u64 << width) - 1;
    let bits = width as usize;
    // Where eight bytes can be loaded from any value on, no end needs watching.
    let safe = (bytes.len().saturating_sub(8) * 8 / bits).saturating_sub(start).min(out.len());
    let (fast, last) = out.split_at_mut(safe);
    for (i, out) in fast.iter_mut().enumerate() {
        let bit = (start + i) * bits;
        let word: [u8; 8] = bytes[bit / 8..bit / 8 + 8].try_into().expect("eight bytes");
        *out = value(((u64::from_le_bytes(word) >> (bit % 8)) & mask) as u32);
    }
    for (i, out) in last.iter_mut().enumerate() {
        *out = value(packed_at(bytes, width, start + safe + i));
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::UNPACK_GROUP;
    use std::arch::x86_64::{
        _mm_loadu_si128, _mm256_and_si256, _mm256_castsi128_si256, _mm256_inserti128_si256,
        _mm256_loadu_si256, _mm256_packus_epi32, _mm256_permute4x64_epi64, _mm256_set1_epi32,
        _mm256_shuffle_epi8, _mm256_srlv_epi32, _mm256_storeu_si256,
    };

    /// Bytes of a load.
    const LOAD_BYTES: usize = 16;

    /// Where the bytes of eight values are, and how far they are shifted.
    pub struct Plan {
        width: usize,
        bytes: [u8; 32],
        shifts: [u32; 8],
    }

    impl Plan {
        /// `None` where the processor cannot.
        pub fn new(width: usize) -> Option<Self> {
            if !is_x86_feature_detected!("avx2") {
                return None;
            }
            let (mut bytes, mut shifts) = ([0; 32], [0; 8]);
            for value in 0..8 {
                // The fifth value begins in the byte that the second load begins with.
                let bit = value % 4 * width + value / 4 * (4 * width % 8);
                for byte in 0..4 {
                    bytes[value * 4 + byte] = (bit / 8 + byte) as u8;
                }
                shifts[value] = (bit % 8) as u32;
            }
            Some(Self { width, bytes, shifts })
        }

        /// Groups of values from the start of `bytes` on. Those beyond its end are anything.
        pub fn groups(&self, bytes: &[u8], out: &mut [u16]) {
            // The last of a group's four loads begins half of eight values before its end.
            let reach = self.width + self.width / 2 + LOAD_BYTES;
            let inside = bytes.len().checked_sub(reach).map_or(0, |room| room / (2 * self.width) + 1);
            let (most, last) = out.split_at_mut((inside * UNPACK_GROUP).min(out.len()));
            // SAFETY: the processor has AVX2, or there were no plan; and all loads of these groups end within `bytes`.
            unsafe { self.loaded(bytes, most) };
            for (i, out) in last.chunks_exact_mut(UNPACK_GROUP).enumerate() {
                let mut padded = [0; 4 * LOAD_BYTES];
                let from = ((most.len() / UNPACK_GROUP + i) * 2 * self.width).min(bytes.len());
                let there = &bytes[from..bytes.len().min(from + 2 * self.width)];
                padded[..there.len()].copy_from_slice(there);
                // SAFETY: as before: 16 values of 16 bits and a load are 48 bytes.
                unsafe { self.loaded(&padded, out) };
            }
        }

        /// # Safety
        /// The processor has AVX2, and `bytes` has as many as the loads of all groups of `out` reach.
        #[target_feature(enable = "avx2")]
        unsafe fn loaded(&self, bytes: &[u8], out: &mut [u16]) {
            // SAFETY: both arrays have 32 bytes.
            let (shuffle, shifts) = unsafe {
                (
                    _mm256_loadu_si256(self.bytes.as_ptr().cast()),
                    _mm256_loadu_si256(self.shifts.as_ptr().cast()),
                )
            };
            let mask = _mm256_set1_epi32((1 << self.width) - 1);
            let half = self.width / 2;
            for (group, out) in out.chunks_exact_mut(UNPACK_GROUP).enumerate() {
                let at = group * 2 * self.width;
                debug_assert!(at + self.width + half + LOAD_BYTES <= bytes.len());
                let eight = |at: usize| {
                    // SAFETY: the caller's promise.
                    let (low, high) = unsafe {
                        (
                            _mm_loadu_si128(bytes.as_ptr().add(at).cast()),
                            _mm_loadu_si128(bytes.as_ptr().add(at + half).cast()),
                        )
                    };
                    let both = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high);
                    _mm256_and_si256(_mm256_srlv_epi32(_mm256_shuffle_epi8(both, shuffle), shifts), mask)
                };
                let packed = _mm256_packus_epi32(eight(at), eight(at + self.width));
                let ordered = _mm256_permute4x64_epi64::<0b11_01_10_00>(packed);
                // SAFETY: a group has 32 bytes.
                unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), ordered) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_part_is_as_one_by_one(
            width in 0u32..=16,
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            cut in any::<(prop::sample::Index, prop::sample::Index)>(),
        ) {
            let all = if width == 0 { 300 } else { bytes.len() * 8 / width as usize };
            let (a, b) = (cut.0.index(all + 1), cut.1.index(all + 1));
            let (start, end) = (a.min(b), a.max(b));
            let expected: Vec<u16> = (start..end).map(|i| packed_at(&bytes, width, i) as u16).collect();
            // In memory of its own, so that a sanitizer sees what is read beyond the end.
            let bytes = bytes.into_boxed_slice();
            let mut out = vec![0xabcd; end - start];
            let unpacker = Unpacker::new(width);
            unpacker.unpack(&bytes, start, &mut out);
            prop_assert_eq!(&out, &expected);
            #[cfg(target_arch = "x86_64")]
            {
                out.fill(0xabcd);
                Unpacker { avx2: None, ..unpacker }.unpack(&bytes, start, &mut out);
                prop_assert_eq!(&out, &expected);
            }
        }
    }
}
