//! Where pixels go: rows as they lie, reversed rows, or rows that become columns.
//!
//! All turning is done on raw bytes, in pieces of 64 bytes in the first-level cache: before widening there are
//! fewest of them. What the [`Write`] gets is contiguous and in the order of the target, so that it reads and
//! writes whole vectors.

use super::write::Write;
use super::Patch;
use crate::orientation::Orientation;
use crate::simd::Kernel;

/// A pixel's bytes.
pub(super) trait Raw: bytemuck::Pod {
    /// Elements of 16 bytes: the side of the square that is transposed in registers.
    const SIDE: usize = 16 / size_of::<Self>();

    /// Transposes a square of `SIDE` x `SIDE`: `row(i)` gives the 16 bytes of row `i`, `column(i, …)` takes those of
    /// column `i`.
    fn transpose<'a>(row: impl Fn(usize) -> &'a [u8; 16], column: impl FnMut(usize, [u8; 16]));
}

#[cfg(target_arch = "x86_64")]
mod vector {
    use std::arch::x86_64::{
        __m128i, _mm_unpackhi_epi8, _mm_unpackhi_epi16, _mm_unpackhi_epi32, _mm_unpackhi_epi64, _mm_unpacklo_epi8,
        _mm_unpacklo_epi16, _mm_unpacklo_epi32, _mm_unpacklo_epi64,
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
}

macro_rules! raw {
    ($($bytes:literal),*) => {$(
        impl Raw for [u8; $bytes] {
            #[inline(always)]
            fn transpose<'a>(row: impl Fn(usize) -> &'a [u8; 16], mut column: impl FnMut(usize, [u8; 16])) {
                const SIDE: usize = 16 / $bytes;
                let mut rows: [vector::Vector; SIDE] = std::array::from_fn(|i| bytemuck::cast(*row(i)));
                // Interleaving the first half of the rows with the second, log2(SIDE) times, transposes.
                for _ in 0..SIDE.ilog2() {
                    let before = rows;
                    for i in 0..SIDE / 2 {
                        let [low, high] = vector::interleave::<$bytes>(before[i], before[i + SIDE / 2]);
                        (rows[2 * i], rows[2 * i + 1]) = (low, high);
                    }
                }
                for (i, row) in rows.into_iter().enumerate() {
                    column(i, bytemuck::cast(row));
                }
            }
        }
    )*};
}
raw!(1, 2, 4, 8);

/// Bytes of a tile's row: a cache line.
const LINE: usize = 64;

/// A tile: 64 bytes of each of as many rows as 64 bytes have elements.
#[repr(align(64))]
struct Tile([[u8; LINE]; LINE]);

/// The kernel.
pub(super) struct Place<'a, R, W: Write<R>> {
    patch: &'a Patch<'a>,
    source: &'a [R],
    to: Orientation,
    write: W,
    plane: &'a mut [W::Out],
}

impl<'a, R: Raw, W: Write<R>> Place<'a, R, W> {
    pub(super) fn new(patch: &'a Patch<'a>, to: Orientation, write: W, plane: &'a mut [W::Out]) -> Self {
        Self { patch, source: patch.elements(), to, write, plane }
    }

    /// `n` pixels of row `y` from column `x` on.
    #[inline(always)]
    fn row(&self, y: usize, x: usize, n: usize) -> &'a [R] {
        &self.source[y * self.patch.stride + x..][..n]
    }

    /// Where pixel (y, x) goes.
    #[inline(always)]
    fn target(&self, y: usize, x: usize) -> usize {
        self.to.at(y, x).first as usize
    }

    /// Rows from right to left.
    #[inline(always)]
    fn reversed(&mut self) {
        let &Patch { rows, columns, .. } = self.patch;
        let mut line = [R::zeroed(); LINE];
        for y in 0..rows {
            let start = self.target(y, columns - 1);
            let source = self.row(y, 0, columns);
            let out = &mut self.plane[start..][..columns];
            for (out, source) in out.chunks_mut(LINE).zip(source.rchunks(LINE)) {
                if let Ok(source) = <&[R; LINE]>::try_from(source) {
                    // Of fixed length: shuffles of whole vectors.
                    for i in 0..LINE {
                        line[i] = source[LINE - 1 - i];
                    }
                } else {
                    line.iter_mut().zip(source.iter().rev()).for_each(|(l, s)| *l = *s);
                }
                self.write.write(&line[..source.len()], out);
            }
        }
    }

    /// Rows of the source become columns of the target.
    #[inline(always)]
    fn transposed(&mut self) {
        let &Patch { rows, columns, .. } = self.patch;
        let side = LINE / size_of::<R>();
        let mut tile = Tile([[0; LINE]; LINE]);
        for y in (0..rows).step_by(side) {
            let height = side.min(rows - y);
            for x in (0..columns).step_by(side) {
                // The last tile is no narrower than a register: it may share columns with the one before.
                let x = x.min(columns - R::SIDE);
                let width = side.min(columns - x);
                self.load(&mut tile, [y, x], [height, width]);
                let last = if self.to.row_step == 1 { y } else { y + height - 1 };
                for (c, line) in tile.0.iter().enumerate().take(width) {
                    let start = self.target(last, x + c);
                    let line: &[R] = bytemuck::cast_slice(line);
                    self.write.write(&line[..height], &mut self.plane[start..][..height]);
                }
            }
        }
    }

    /// Transposes a tile's pixels into it, rows in the order that the target has them in.
    #[inline(always)]
    fn load(&self, tile: &mut Tile, [y, x]: [usize; 2], [height, width]: [usize; 2]) {
        let upwards = self.to.row_step != 1;
        for c in (0..width).step_by(R::SIDE) {
            let c = c.min(width - R::SIDE);
            for r in (0..height).step_by(R::SIDE) {
                let row = |i: usize| {
                    // Rows beyond the last are of no account.
                    let r = (r + i).min(height - 1);
                    let r = if upwards { height - 1 - r } else { r };
                    let row: &[u8] = bytemuck::cast_slice(self.row(y + r, x + c, R::SIDE));
                    row.try_into().expect("as many elements as fit 16 bytes")
                };
                let at = r * size_of::<R>();
                R::transpose(row, |i, column| tile.0[c + i][at..at + 16].copy_from_slice(&column));
            }
        }
    }

    /// As [`Self::transposed`] for patches narrower than a register: pixel by pixel.
    #[inline(always)]
    fn transposed_narrow(&mut self) {
        let &Patch { rows, columns, .. } = self.patch;
        let mut line = [R::zeroed(); LINE];
        for y in (0..rows).step_by(LINE) {
            let height = LINE.min(rows - y);
            let last = if self.to.row_step == 1 { y } else { y + height - 1 };
            for x in 0..columns {
                for (r, line) in line.iter_mut().enumerate().take(height) {
                    let r = if self.to.row_step == 1 { r } else { height - 1 - r };
                    *line = self.source[(y + r) * self.patch.stride + x];
                }
                let start = self.target(last, x);
                self.write.write(&line[..height], &mut self.plane[start..][..height]);
            }
        }
    }
}

impl<R: Raw, W: Write<R>> Kernel for Place<'_, R, W> {
    #[inline(always)]
    fn run(mut self) {
        let &Patch { rows, columns, stride, .. } = self.patch;
        match self.to.column_step {
            1 if stride == columns && self.to.row_step == columns as isize => {
                let start = self.target(0, 0);
                let n = rows * columns;
                self.write.write(self.row(0, 0, n), &mut self.plane[start..][..n]);
            }
            1 => {
                for y in 0..rows {
                    let start = self.target(y, 0);
                    self.write.write(self.row(y, 0, columns), &mut self.plane[start..][..columns]);
                }
            }
            -1 => self.reversed(),
            _ if columns >= R::SIDE => self.transposed(),
            _ => self.transposed_narrow(),
        }
    }
}
