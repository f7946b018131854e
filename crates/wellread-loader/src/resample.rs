//! The two steps that need a second pass: resize and rotation by any angle, plane by plane, in `f32`. For labels both
//! are one, and mix nothing.
//!
//! ```text
//!   floats ──▶ Resampler: axis (weights) ─▶ rows mixed, across ──▶ rotate ──▶ floats
//!   labels ──▶ nearest ──▶ labels
//! ```

#![allow(clippy::inline_always)]

mod across;
mod axis;
mod nearest;
mod resize;

pub(crate) use nearest::nearest;
pub(crate) use resize::Resampler;

use crate::simd::{Kernel, Level, dispatch};

/// Rotates a plane about its centre by `degrees` counter-clockwise, bilinear; beyond the edge the plane is
/// mirrored, the edge pixel not repeated. Each output pixel mixes four source pixels, so NaN spreads by one.
pub(crate) fn rotate(
    level: Level,
    plane: &[f32],
    (height, width): (usize, usize),
    degrees: f32,
    out: &mut [f32],
) {
    let (sin, cos) = (degrees as f64).to_radians().sin_cos();
    let plane = &plane[..height * width];
    dispatch(level, RotatePlane { plane, height, width, sin, cos, out });
}

struct RotatePlane<'a> {
    plane: &'a [f32],
    height: usize,
    width: usize,
    sin: f64,
    cos: f64,
    out: &'a mut [f32],
}

/// Pixels of a row that are rotated together. There are positions by vector arithmetic, then the pixels they name one
/// by one, then the mixing by vector arithmetic again.
const BLOCK: usize = 64;

impl Kernel for RotatePlane<'_> {
    #[inline(always)]
    fn run(self) {
        let Self { plane, height, width, sin, cos, out } = self;
        let (middle_y, middle_x) = ((height - 1) as f64 / 2.0, (width - 1) as f64 / 2.0);
        for (y, out_row) in out.chunks_exact_mut(width).enumerate() {
            let dy = y as f64 - middle_y;
            // Source position of column 0; each column further adds (cos, sin).
            let x0 = middle_x - cos * middle_x - sin * dy;
            let y0 = middle_y - sin * middle_x + cos * dy;
            // Columns whose four neighbours all exist need no mirroring. (Offsets within a block of absurdly
            // long rows would not fit 32 bits.)
            let (from, to) = if width < 1 << 23 {
                inside(x0, cos, width, inside(y0, sin, height, (0, width)))
            } else {
                (0, 0)
            };
            let (before, rest) = out_row.split_at_mut(from);
            let (between, after) = rest.split_at_mut(to - from);
            for (offset, edge) in [(0, before), (to, after)] {
                for (x, o) in edge.iter_mut().enumerate() {
                    let along = (offset + x) as f64;
                    *o = mirrored(plane, (height, width), x0 + cos * along, y0 + sin * along);
                }
            }
            for (block, out) in between.chunks_mut(BLOCK).enumerate() {
                let along = (from + block * BLOCK) as f64;
                rotate_block(plane, width, [x0 + cos * along, y0 + sin * along], [cos, sin], out);
            }
        }
    }
}

/// Up to [`BLOCK`] pixels whose neighbours all exist. `at` is the position (x, y) of the first.
#[inline(always)]
fn rotate_block(plane: &[f32], width: usize, at: [f64; 2], step: [f64; 2], out: &mut [f32]) {
    // Positions are relative to a pixel left of and above all in the block. They are small and positive, so
    // that single precision is exact to a few millionths of a pixel and truncation rounds down.
    let base = at.map(|p| p.floor() - (BLOCK + 1) as f64);
    let [start_x, start_y] = [(at[0] - base[0]) as f32, (at[1] - base[1]) as f32];
    let [step_x, step_y] = step.map(|s| s as f32);
    let first = base[1] as isize * width as isize + base[0] as isize;
    let (mut offset, mut fraction_x, mut fraction_y) = ([0i32; BLOCK], [0f32; BLOCK], [0f32; BLOCK]);
    for i in 0..BLOCK {
        let (sx, sy) = (start_x + step_x * i as f32, start_y + step_y * i as f32);
        let (ix, iy) = (sx as i32, sy as i32);
        (fraction_x[i], fraction_y[i]) = (sx - ix as f32, sy - iy as f32);
        offset[i] = iy.wrapping_mul(width as i32).wrapping_add(ix);
    }
    // Pairs, not single pixels: one load and one store for two. (Gathering by vector instructions is slower.)
    let (mut upper, mut lower) = ([[0f32; 2]; BLOCK], [[0f32; 2]; BLOCK]);
    for ((&offset, upper), lower) in offset.iter().zip(&mut upper).zip(&mut lower).take(out.len()) {
        let top = (first + offset as isize) as usize;
        upper.copy_from_slice(&plane[top..top + 2]);
        lower.copy_from_slice(&plane[top + width..top + width + 2]);
    }
    let mut mixed = [0f32; BLOCK];
    for i in 0..BLOCK {
        mixed[i] = mix([upper[i][0], upper[i][1], lower[i][0], lower[i][1]], fraction_x[i], fraction_y[i]);
    }
    out.copy_from_slice(&mixed[..out.len()]);
}

/// One pixel at a position whose neighbours may lie outside.
#[inline(always)]
fn mirrored(plane: &[f32], (height, width): (usize, usize), x: f64, y: f64) -> f32 {
    // `f64::floor` is a call into the C library below SSE4.1.
    let [ix, iy] = [x, y].map(|p| p as i64 - i64::from(p < (p as i64) as f64));
    let (left, right) = (mirror(ix, width), mirror(ix + 1, width));
    let (top, bottom) = (mirror(iy, height) * width, mirror(iy + 1, height) * width);
    let corners = [plane[top + left], plane[top + right], plane[bottom + left], plane[bottom + right]];
    mix(corners, (x - ix as f64) as f32, (y - iy as f64) as f32)
}

#[inline(always)]
fn mix([a, b, c, d]: [f32; 4], fx: f32, fy: f32) -> f32 {
    let (top, bottom) = (a + (b - a) * fx, c + (d - c) * fx);
    top + (bottom - top) * fy
}

/// Narrows `from..to` to columns x at which `start + x * step` is safely within `0..n - 1`.
#[inline(always)]
fn inside(start: f64, step: f64, n: usize, (from, to): (usize, usize)) -> (usize, usize) {
    // A margin of a thousandth of a pixel covers the rounding here and in `rotate_block`.
    let (low, high) = (0.001, (n - 1) as f64 - 0.001);
    if low >= high {
        return (0, 0);
    }
    if step == 0.0 {
        return if (low..high).contains(&start) { (from, to) } else { (0, 0) };
    }
    let (a, b) = ((low - start) / step, (high - start) / step);
    let (a, b) = (a.min(b).ceil().max(from as f64), a.max(b).floor().min(to as f64 - 1.0));
    if a > b { (0, 0) } else { (a as usize, b as usize + 1) }
}

/// Index `i` reflected into `0..n` at the first and last pixel.
#[inline(always)]
fn mirror(i: i64, n: usize) -> usize {
    if n == 1 {
        return 0;
    }
    let last = n as i64 - 1;
    // A division only for images so long and narrow that the position is outside by more than their size.
    let i = if (-last..=2 * last).contains(&i) { i.abs() } else { i.rem_euclid(2 * last) };
    (if i > last { 2 * last - i } else { i }) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rotate_reference(plane: &[f32], (h, w): (usize, usize), degrees: f32) -> Vec<f64> {
        let (sin, cos) = (degrees as f64).to_radians().sin_cos();
        let (cy, cx) = ((h as f64 - 1.0) / 2.0, (w as f64 - 1.0) / 2.0);
        let mut out = vec![];
        for i in 0..h * w {
            let (dy, dx) = ((i / w) as f64 - cy, (i % w) as f64 - cx);
            let (sx, sy) = (cx + cos * dx - sin * dy, cy + sin * dx + cos * dy);
            let mut sum = 0.0;
            for (yy, wy) in [(sy.floor(), 1.0 - (sy - sy.floor())), (sy.floor() + 1.0, sy - sy.floor())] {
                for (xx, wx) in [(sx.floor(), 1.0 - (sx - sx.floor())), (sx.floor() + 1.0, sx - sx.floor())] {
                    let at = mirror(yy as i64, h) * w + mirror(xx as i64, w);
                    sum += wy * wx * plane[at] as f64;
                }
            }
            out.push(sum);
        }
        out
    }

    /// Within a few millionths of the largest values, which are 10.
    fn close(got: &[f32], expected: &[f64]) -> bool {
        got.len() == expected.len() && got.iter().zip(expected).all(|(&g, &e)| (g as f64 - e).abs() < 3e-4)
    }

    fn a_plane() -> impl Strategy<Value = (usize, usize, Vec<f32>)> {
        (1usize..24, 1usize..24)
            .prop_flat_map(|(h, w)| (Just(h), Just(w), prop::collection::vec(-10.0f32..10.0, h * w)))
    }

    proptest! {
        #[test]
        fn rotation_is_its_definition((h, w, plane) in a_plane(), degrees in -180.0f32..180.0) {
            let expected = rotate_reference(&plane, (h, w), degrees);
            let mut first = None;
            for level in Level::available() {
                let mut out = vec![f32::NAN; h * w];
                rotate(level, &plane, (h, w), degrees, &mut out);
                prop_assert!(close(&out, &expected), "{out:?} {expected:?}");
                prop_assert_eq!(first.get_or_insert(out.clone()), &out);
            }
        }
    }

    #[test]
    fn a_quarter_turn_is_numpy_rot90() {
        let plane: Vec<f32> = (0..9).map(|i| i as f32).collect();
        let mut out = vec![0.0; 9];
        rotate(Level::detect(), &plane, (3, 3), 90.0, &mut out);
        let rounded: Vec<f32> = out.iter().map(|v| v.round()).collect();
        assert_eq!(rounded, [2.0, 5.0, 8.0, 1.0, 4.0, 7.0, 0.0, 3.0, 6.0]);
    }
}
