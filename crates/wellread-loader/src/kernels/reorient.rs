//! Where pixels go: rows as they lie, reversed rows, or rows that become columns.
//!
//! All turning is done on raw bytes, in registers of 16, 32 or 64 and tiles of 4096, which stay in the first-level
//! cache. Before widening there are fewest of them. The [`Write`] gets contiguous pixels in the order of the target, in
//! runs of 64 and more, so that it reads and writes whole vectors.

use super::patch::Patch;
use super::raw::Raw;
use super::write::Write;
use crate::orientation::Orientation;
use crate::simd::{Kernel, Level};

/// Bytes of a tile's row in the source: a cache line.
const LINE: usize = 64;
/// Rows of a tile: elements that are written in one go.
const TALL: usize = 64;
/// Bytes of a tile, and of a piece of a reversed row.
const TILE: usize = LINE * TALL;

/// The first-level cache's part of the work.
#[repr(align(64))]
struct Tile([u8; TILE]);

/// The kernel.
pub(super) struct Reorient<'a, R, W: Write<R>> {
    patch: &'a Patch<'a>,
    source: &'a [R],
    to: Orientation,
    level: Level,
    write: W,
    plane: &'a mut [W::Out],
}

impl<'a, R: Raw, W: Write<R>> Reorient<'a, R, W> {
    pub(super) fn new(
        level: Level,
        patch: &'a Patch<'a>,
        to: Orientation,
        write: W,
        plane: &'a mut [W::Out],
    ) -> Self {
        Self { patch, source: patch.elements(), to, level, write, plane }
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
        let &Patch { rows, columns, stride, .. } = self.patch;
        let source = self.source;
        let mut tile = Tile([0; TILE]);
        let line: &mut [R] = bytemuck::cast_slice_mut(&mut tile.0);
        // Rows that follow one another in the target, in its order, are written together as far as a tile has room.
        let (upwards, together) = match self.to.row_step {
            step if step == columns as isize => (false, (line.len() / columns).max(1)),
            step if step == -(columns as isize) => (true, (line.len() / columns).max(1)),
            _ => (false, 1),
        };
        for first in (0..rows).step_by(together) {
            let count = together.min(rows - first);
            // The first of them in the target.
            let y = if upwards { rows - 1 - first } else { first };
            let start = self.target(y, columns - 1);
            let row = |i: usize| &source[(if upwards { y - i } else { y + i }) * stride..][..columns];
            let out = &mut self.plane[start..][..count * columns];
            if let Some(out) = W::as_raw(out) {
                for (i, out) in out.chunks_exact_mut(columns).enumerate() {
                    reverse(row(i), out);
                }
            } else if columns <= line.len() {
                for (i, line) in line.chunks_exact_mut(columns).take(count).enumerate() {
                    reverse(row(i), line);
                }
                self.write.write(&line[..count * columns], out);
            } else {
                for (out, source) in out.chunks_mut(line.len()).zip(row(0).rchunks(line.len())) {
                    let line = &mut line[..source.len()];
                    reverse(source, line);
                    self.write.write(line, out);
                }
            }
        }
    }

    /// Rows of the source become columns of the target.
    #[inline(always)]
    fn transposed(&mut self) {
        let &Patch { rows, columns, .. } = self.patch;
        let across = LINE / size_of::<R>();
        let mut tile = Tile([0; TILE]);
        for y in (0..rows).step_by(TALL) {
            let height = TALL.min(rows - y);
            for x in (0..columns).step_by(across) {
                // The last tile is no narrower than a register: it may share columns with the one before.
                let x = x.min(columns - R::SIDE);
                let width = across.min(columns - x);
                self.load(&mut tile, [y, x], [height, width]);
                let last = if self.to.row_step == 1 { y } else { y + height - 1 };
                let runs: &[R] = bytemuck::cast_slice(&tile.0);
                for (c, run) in runs.chunks_exact(TALL).enumerate().take(width) {
                    let start = self.target(last, x + c);
                    // Whole runs are of a length that the compiler knows.
                    if let (TALL, Some(out)) = (height, self.plane[start..].first_chunk_mut::<TALL>()) {
                        self.write.write(&run[..TALL], out);
                    } else {
                        self.write.write(&run[..height], &mut self.plane[start..][..height]);
                    }
                }
            }
        }
    }

    /// Transposes a tile's pixels into it, rows in the order that the target has them in.
    #[inline(always)]
    fn load(&self, tile: &mut Tile, [y, x]: [usize; 2], [height, width]: [usize; 2]) {
        let upwards = self.to.row_step != 1;
        let pitch = TALL * size_of::<R>();
        // Squares on top of each other that one register has room for.
        let most = match self.level {
            Level::Baseline => 1,
            // Bytes that become floats are widened slower from whole columns, when measured.
            #[cfg(target_arch = "x86_64")]
            _ if size_of::<R>() == 1 && size_of::<W::Out>() == 4 => 1,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => 2,
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => 4,
        };
        assert!((y + height - 1) * self.patch.stride + x + width <= self.source.len());
        let mut r = 0;
        while r < height {
            let squares = if r + most * R::SIDE <= height { most } else { 1 };
            let at = r * size_of::<R>();
            let mut c = 0;
            while c < width {
                let from = c.min(width - R::SIDE);
                let mut put = |i: usize, column: &[u8]| {
                    tile.0[(from + i) * pitch + at..][..column.len()].copy_from_slice(column);
                };
                // The start of a row of the tile, in the order of the target.
                let start = |r: usize| {
                    let r = if upwards { height - 1 - r } else { r };
                    (y + r) * self.patch.stride + x + from
                };
                #[cfg(target_arch = "x86_64")]
                if squares > 1 {
                    let step = (self.patch.stride * size_of::<R>()) as isize;
                    let step = if upwards { -step } else { step };
                    let first = self.source[start(r)..].as_ptr().cast::<u8>();
                    // SAFETY: all rows of the tile lie in the source, as asserted above, and these are such. The level has
                    // the instructions, see `Level::available`; levels the CPU lacks are not given out.
                    unsafe {
                        if squares == 2 {
                            R::transpose_two(first, step, |i, column| put(i, &column));
                        } else {
                            R::transpose_four(first, step, |i, column| put(i, &column));
                        }
                    }
                    c += R::SIDE;
                    continue;
                }
                let row = |i: usize| {
                    // Rows beyond the last are of no account.
                    let start = start((r + i).min(height - 1));
                    let row: &[u8] = bytemuck::cast_slice(&self.source[start..start + R::SIDE]);
                    row.try_into().expect("as many elements as fit 16 bytes")
                };
                R::transpose(row, |i, column| put(i, &column));
                c += R::SIDE;
            }
            r += squares * R::SIDE;
        }
    }

    /// As [`Self::transposed`] for patches narrower than a register: pixel by pixel.
    #[inline(always)]
    fn transposed_narrow(&mut self) {
        let &Patch { rows, columns, .. } = self.patch;
        let mut line = [R::zeroed(); TALL];
        for y in (0..rows).step_by(TALL) {
            let height = TALL.min(rows - y);
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

/// Writes `source` from its end to its start.
#[inline(always)]
fn reverse<R: Raw>(source: &[R], out: &mut [R]) {
    let n = source.len();
    if n < R::SIDE {
        for (out, source) in out.iter_mut().zip(source.iter().rev()) {
            *out = *source;
        }
        return;
    }
    let (source, out) = (bytemuck::cast_slice::<R, u8>(source), bytemuck::cast_slice_mut::<R, u8>(out));
    let (vectors, _) = out.as_chunks_mut::<16>();
    for (out, source) in vectors.iter_mut().zip(source.as_rchunks::<16>().1.iter().rev()) {
        *out = R::reversed(*source);
    }
    // The last vector may share elements with the one before.
    if let (Some(out), Some(source)) = (out.last_chunk_mut::<16>(), source.first_chunk::<16>()) {
        *out = R::reversed(*source);
    }
}

impl<R: Raw, W: Write<R>> Kernel for Reorient<'_, R, W> {
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
