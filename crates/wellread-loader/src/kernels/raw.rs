//! Pixels as raw bytes: rows reversed and squares transposed in registers of 16, 32 or 64 bytes.

/// A pixel's bytes.
pub(super) trait Raw: bytemuck::Pod {
    /// Elements of 16 bytes: the side of the square that is transposed in registers.
    const SIDE: usize = 16 / size_of::<Self>();

    /// Transposes a square of `SIDE` x `SIDE`: `row(i)` gives the 16 bytes of row `i`, `column(i, …)` takes those of
    /// column `i`.
    fn transpose<'a>(row: impl Fn(usize) -> &'a [u8; 16], column: impl FnMut(usize, [u8; 16]));

    /// Two squares at once, the second of the `SIDE` rows that follow: columns of 32 bytes. From one row to the next it is
    /// `step` bytes.
    ///
    /// # Safety
    /// The CPU has AVX2, and 16 bytes of each of the rows may be read.
    #[cfg(target_arch = "x86_64")]
    unsafe fn transpose_two(first: *const u8, step: isize, column: impl FnMut(usize, [u8; 32]));

    /// Four squares at once: columns of 64 bytes.
    ///
    /// # Safety
    /// The CPU has AVX-512 F and BW, and 16 bytes of each of the rows may be read.
    #[cfg(target_arch = "x86_64")]
    unsafe fn transpose_four(first: *const u8, step: isize, column: impl FnMut(usize, [u8; 64]));

    /// 16 bytes with their elements in reverse order.
    fn reversed(elements: [u8; 16]) -> [u8; 16];
}

#[cfg(target_arch = "x86_64")]
mod vector {
    use std::arch::x86_64::{
        __m128i, _mm_or_si128, _mm_shuffle_epi32, _mm_shufflehi_epi16, _mm_shufflelo_epi16, _mm_slli_epi16,
        _mm_srli_epi16, _mm_unpackhi_epi8, _mm_unpackhi_epi16, _mm_unpackhi_epi32, _mm_unpackhi_epi64,
        _mm_unpacklo_epi8, _mm_unpacklo_epi16, _mm_unpacklo_epi32, _mm_unpacklo_epi64,
    };

    /// 16 bytes in a register; every x86-64 has SSE2.
    pub(super) type Vector = __m128i;

    /// The elements of `a` and `b` by turns: those of the lower halves, those of the upper halves.
    #[inline(always)]
    pub(super) fn interleave<const BYTES: usize>(a: Vector, b: Vector) -> [Vector; 2] {
        // SAFETY: SSE2 belongs to the target.
        #[allow(unused_unsafe)]
        unsafe {
            match BYTES {
                1 => [_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b)],
                2 => [_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b)],
                4 => [_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)],
                _ => [_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b)],
            }
        }
    }

    /// The elements in reverse order.
    #[inline(always)]
    pub(super) fn reverse<const BYTES: usize>(v: Vector) -> Vector {
        // SAFETY: SSE2 belongs to the target.
        #[allow(unused_unsafe)]
        unsafe {
            if BYTES == 8 {
                return _mm_shuffle_epi32::<0b01_00_11_10>(v);
            }
            let v = _mm_shuffle_epi32::<0b00_01_10_11>(v);
            if BYTES == 4 {
                return v;
            }
            let v = _mm_shufflehi_epi16::<0b10_11_00_01>(_mm_shufflelo_epi16::<0b10_11_00_01>(v));
            if BYTES == 2 { v } else { _mm_or_si128(_mm_slli_epi16::<8>(v), _mm_srli_epi16::<8>(v)) }
        }
    }
}

/// Several registers of 16 bytes side by side, which the instructions treat alike.
#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m128i, __m256i, __m512i, _mm256_inserti128_si256, _mm256_unpackhi_epi8, _mm256_unpackhi_epi16,
        _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi8, _mm256_unpacklo_epi16,
        _mm256_unpacklo_epi32, _mm256_unpacklo_epi64, _mm256_zextsi128_si256, _mm512_inserti32x4,
        _mm512_unpackhi_epi8, _mm512_unpackhi_epi16, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64,
        _mm512_unpacklo_epi8, _mm512_unpacklo_epi16, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
        _mm512_zextsi128_si512,
    };

    /// # Safety
    /// 16 bytes may be read.
    #[inline(always)]
    #[allow(clippy::cast_ptr_alignment)]
    pub(super) unsafe fn load(from: *const u8) -> __m128i {
        // SAFETY: as the caller promises; no alignment is needed.
        unsafe { from.cast::<__m128i>().read_unaligned() }
    }

    /// # Safety
    /// The CPU has AVX2.
    #[inline(always)]
    pub(super) unsafe fn join_two(parts: [__m128i; 2]) -> __m256i {
        // SAFETY: as the caller promises.
        unsafe { _mm256_inserti128_si256::<1>(_mm256_zextsi128_si256(parts[0]), parts[1]) }
    }

    /// # Safety
    /// The CPU has AVX-512 F.
    #[inline(always)]
    pub(super) unsafe fn join_four(parts: [__m128i; 4]) -> __m512i {
        // SAFETY: as the caller promises.
        unsafe {
            let joined = _mm512_inserti32x4::<1>(_mm512_zextsi128_si512(parts[0]), parts[1]);
            _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(joined, parts[2]), parts[3])
        }
    }

    /// As [`super::vector::interleave`] in each part.
    ///
    /// # Safety
    /// The CPU has AVX2.
    #[inline(always)]
    pub(super) unsafe fn interleave_two<const BYTES: usize>(a: __m256i, b: __m256i) -> [__m256i; 2] {
        // SAFETY: as the caller promises.
        unsafe {
            match BYTES {
                1 => [_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)],
                2 => [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)],
                4 => [_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)],
                _ => [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)],
            }
        }
    }

    /// As [`super::vector::interleave`] in each part.
    ///
    /// # Safety
    /// The CPU has AVX-512 F and BW.
    #[inline(always)]
    pub(super) unsafe fn interleave_four<const BYTES: usize>(a: __m512i, b: __m512i) -> [__m512i; 2] {
        // SAFETY: as the caller promises.
        unsafe {
            match BYTES {
                1 => [_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)],
                2 => [_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)],
                4 => [_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)],
                _ => [_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)],
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod vector {
    /// 16 bytes; LLVM makes registers of them.
    pub(super) type Vector = [u8; 16];

    /// The elements of `a` and `b` by turns: those of the lower halves, those of the upper halves.
    #[inline(always)]
    pub(super) fn interleave<const BYTES: usize>(a: Vector, b: Vector) -> [Vector; 2] {
        std::array::from_fn(|half| {
            std::array::from_fn(|i| {
                let (element, byte) = (i / BYTES, i % BYTES);
                let from = if element % 2 == 0 { &a } else { &b };
                from[half * 8 + element / 2 * BYTES + byte]
            })
        })
    }

    /// The elements in reverse order.
    #[inline(always)]
    pub(super) fn reverse<const BYTES: usize>(v: Vector) -> Vector {
        std::array::from_fn(|i| v[16 - BYTES - i / BYTES * BYTES + i % BYTES])
    }
}

/// Transposes the square of elements that `rows` hold: interleaving the first half of the rows with the second,
/// log2(rows) times, does it. Indices are written out, so that all stays in registers.
macro_rules! transpose_registers {
    ($rows:ident, [$($i:literal)*], $interleave:expr) => {
        for _ in 0..$rows.len().ilog2() {
            let mut next = $rows;
            $(
                let [low, high] = $interleave($rows[$i], $rows[$i + SIDE / 2]);
                (next[2 * $i], next[2 * $i + 1]) = (low, high);
            )*
            $rows = next;
        }
    };
}

macro_rules! raw {
    ($($bytes:literal => $half:tt $($i:literal)*;)*) => {$(
        impl Raw for [u8; $bytes] {
            #[inline(always)]
            fn transpose<'a>(row: impl Fn(usize) -> &'a [u8; 16], mut column: impl FnMut(usize, [u8; 16])) {
                const SIDE: usize = 16 / $bytes;
                let mut rows: [vector::Vector; SIDE] = std::array::from_fn(|i| bytemuck::cast(*row(i)));
                transpose_registers!(rows, $half, vector::interleave::<$bytes>);
                for (i, row) in rows.into_iter().enumerate() {
                    column(i, bytemuck::cast(row));
                }
            }

            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn transpose_two(first: *const u8, step: isize, mut column: impl FnMut(usize, [u8; 32])) {
                const SIDE: usize = 16 / $bytes;
                // SAFETY: as the caller promises.
                unsafe {
                    let row = |i: usize| wide::load(first.offset(i as isize * step));
                    // One by one, so that all are in registers.
                    let mut rows = [$(wide::join_two([row($i), row($i + SIDE)])),*];
                    transpose_registers!(rows, $half, wide::interleave_two::<$bytes>);
                    $(column($i, bytemuck::cast(rows[$i]));)*
                }
            }

            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn transpose_four(first: *const u8, step: isize, mut column: impl FnMut(usize, [u8; 64])) {
                const SIDE: usize = 16 / $bytes;
                // SAFETY: as the caller promises.
                unsafe {
                    let row = |i: usize| wide::load(first.offset(i as isize * step));
                    let four = |i: usize| [row(i), row(i + SIDE), row(i + 2 * SIDE), row(i + 3 * SIDE)];
                    // One by one, so that all are in registers.
                    let mut rows = [$(wide::join_four(four($i))),*];
                    transpose_registers!(rows, $half, wide::interleave_four::<$bytes>);
                    $(column($i, std::mem::transmute::<std::arch::x86_64::__m512i, [u8; 64]>(rows[$i]));)*
                }
            }

            #[inline(always)]
            fn reversed(elements: [u8; 16]) -> [u8; 16] {
                bytemuck::cast(vector::reverse::<$bytes>(bytemuck::cast(elements)))
            }
        }
    )*};
}
raw! {
    1 => [0 1 2 3 4 5 6 7] 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15;
    2 => [0 1 2 3] 0 1 2 3 4 5 6 7;
    4 => [0 1] 0 1 2 3;
    8 => [0] 0 1;
}
