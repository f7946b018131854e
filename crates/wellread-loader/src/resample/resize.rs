//! Resize of planes: along columns, where whole rows are mixed, and along rows ([`RowWeights`]).
//!
//! ```text
//!   fewer rows:  source rows ─mixed─▶ line ─across─▶ out row              each output row goes across once
//!   more rows:   source row ─across─▶ one of two lines ─mixed─▶ out row   each source row goes across once
//! ```
//!
//! Going across is what costs more, so it is done on whichever has fewer rows.

use super::across::RowWeights;
use super::axis::Axis;
use crate::simd::{Kernel, Level, dispatch};
use crate::transform::Resize;

/// Tables and line buffers of one thread; reused from plane to plane and from image to image.
#[derive(Debug, Default)]
pub(crate) struct Resampler {
    rows: Axis,
    columns: Axis,
    across: RowWeights,
    line: Vec<f32>,
}

impl Resampler {
    /// Resizes planes of `height` x `width` into `out`, `resize.height` x `resize.width` each: as many as `out` has room for.
    pub(crate) fn resize(
        &mut self,
        level: Level,
        planes: &[f32],
        (height, width): (usize, usize),
        resize: Resize,
        out: &mut [f32],
    ) {
        self.rows.prepare(height, resize.height, resize.filter);
        if self.columns.prepare(width, resize.width, resize.filter) {
            self.across.prepare(&self.columns);
        }
        let Self { rows, columns: _, across, line } = self;
        let size = [height, width, resize.width];
        dispatch(level, ResizePlanes { level, rows, across, line, planes, size, out });
    }
}

/// Floats of a cache line.
const LINE: usize = 16;

struct ResizePlanes<'a> {
    level: Level,
    rows: &'a Axis,
    across: &'a RowWeights,
    line: &'a mut Vec<f32>,
    planes: &'a [f32],
    /// Height and width of the source, width of the output.
    size: [usize; 3],
    out: &'a mut [f32],
}

impl Kernel for ResizePlanes<'_> {
    #[inline(always)]
    fn run(self) {
        let Self { level, rows, across, line, planes, size: [height, width, out_width], out } = self;
        // Bytes behind the row do not matter, but must be there.
        let padded = width + across.margin();
        // Each on cache lines of its own, so that whole vectors cross none.
        let (of_line, of_out) = (padded.next_multiple_of(LINE), out_width.next_multiple_of(LINE));
        let room = of_line + 2 * of_out + LINE;
        line.resize(line.len().max(room), 0.0);
        let skipped = line.as_ptr().align_offset(64).min(LINE);
        let (line, lines) = line[skipped..].split_at_mut(of_line);
        let line = &mut line[..padded];
        let (even, odd) = lines.split_at_mut(of_out);
        let (even, odd) = (&mut even[..out_width], &mut odd[..out_width]);
        let planes = planes.chunks_exact(height * width);
        for (plane, out) in planes.zip(out.chunks_exact_mut(rows.len() * out_width)) {
            if !rows.grows() {
                for (y, out) in out.chunks_exact_mut(out_width).enumerate() {
                    let (first, weights) = rows.taps(y);
                    mix_rows(&plane[first * width..], width, weights, &mut line[..width]);
                    across.run(level, line, out);
                }
                continue;
            }
            // Rows up to this one went across already.
            let mut done = 0;
            for (y, out) in out.chunks_exact_mut(out_width).enumerate() {
                let (first, weights) = rows.taps(y);
                while done < first + weights.len() {
                    let to = if done % 2 == 0 { &mut *even } else { &mut *odd };
                    let source = &plane[done * width..];
                    if source.len() >= padded {
                        across.run(level, source, to);
                    } else {
                        line[..width].copy_from_slice(&source[..width]);
                        across.run(level, line, to);
                    }
                    done += 1;
                }
                let (one, two) = if first % 2 == 0 { (&*even, &*odd) } else { (&*odd, &*even) };
                match *weights {
                    [a, b] => {
                        for ((out, one), two) in out.iter_mut().zip(one).zip(two) {
                            *out = one * a + two * b;
                        }
                    }
                    // One, of weight 1.
                    _ => out.copy_from_slice(one),
                }
            }
        }
    }
}

/// The weighted sum of rows of `width` that follow each other in `source`. Four at a time: the sum is written and read less often.
#[inline(always)]
fn mix_rows(source: &[f32], width: usize, weights: &[f32], sum: &mut [f32]) {
    let row = |i: usize| &source[i * width..][..width];
    let sum = &mut sum[..width];
    let (four, rest) = weights.as_chunks::<4>();
    for (i, &[a, b, c, d]) in four.iter().enumerate() {
        let (first, second) =
            (row(4 * i).iter().zip(row(4 * i + 1)), row(4 * i + 2).iter().zip(row(4 * i + 3)));
        let sources = sum.iter_mut().zip(first).zip(second);
        if i == 0 {
            sources.for_each(|((sum, (p, q)), (r, s))| *sum = p * a + q * b + r * c + s * d);
        } else {
            sources.for_each(|((sum, (p, q)), (r, s))| *sum = *sum + p * a + q * b + r * c + s * d);
        }
    }
    let done = 4 * four.len();
    let is_first = done == 0;
    match *rest {
        [] => {}
        [a] if is_first => sum.iter_mut().zip(row(0)).for_each(|(sum, p)| *sum = p * a),
        [a] => sum.iter_mut().zip(row(done)).for_each(|(sum, p)| *sum += p * a),
        [a, b] => {
            let sources = sum.iter_mut().zip(row(done).iter().zip(row(done + 1)));
            if is_first {
                sources.for_each(|(sum, (p, q))| *sum = p * a + q * b);
            } else {
                sources.for_each(|(sum, (p, q))| *sum = *sum + p * a + q * b);
            }
        }
        [a, b, c, ..] => {
            let sources = sum.iter_mut().zip(row(done).iter().zip(row(done + 1))).zip(row(done + 2));
            if is_first {
                sources.for_each(|((sum, (p, q)), r)| *sum = p * a + q * b + r * c);
            } else {
                sources.for_each(|((sum, (p, q)), r)| *sum = *sum + p * a + q * b + r * c);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::Filter;

    /// The definition of one axis, in `f64`: of each output pixel, what each source pixel adds.
    fn weights(from: usize, to: usize, filter: Filter, i: usize) -> Vec<f64> {
        let ratio = from as f64 / to as f64;
        let shrinks = from > to;
        let middle = (i as f64 + 0.5) * ratio;
        let weight = |s: usize| match filter {
            Filter::Area if shrinks => {
                let (low, high) = (i as f64 * ratio, (i + 1) as f64 * ratio);
                (high.min(s as f64 + 1.0) - low.max(s as f64)).max(0.0)
            }
            Filter::Antialias if shrinks => (1.0 - ((s as f64 + 0.5 - middle) / ratio).abs()).max(0.0),
            _ => {
                let at = (middle - 0.5).clamp(0.0, from as f64 - 1.0);
                (1.0 - (at - s as f64).abs()).max(0.0)
            }
        };
        let all: Vec<f64> = (0..from).map(weight).collect();
        let total: f64 = all.iter().sum();
        all.iter().map(|weight| weight / total).collect()
    }

    /// The definition: of each output pixel the sum over rows of sums over columns.
    fn definition(plane: &[f32], (h, w): (usize, usize), to: Resize) -> Vec<f64> {
        let of_columns: Vec<_> = (0..to.width).map(|x| weights(w, to.width, to.filter, x)).collect();
        let across = |row: &[f32]| -> Vec<f64> {
            let sum = |weights: &Vec<f64>| weights.iter().zip(row).map(|(w, v)| w * f64::from(*v)).sum();
            of_columns.iter().map(sum).collect()
        };
        let lines: Vec<Vec<f64>> = plane.chunks_exact(w).map(across).collect();
        let mut out = vec![];
        for y in 0..to.height {
            let weights = weights(h, to.height, to.filter, y);
            out.extend(
                (0..to.width).map(|x| weights.iter().zip(&lines).map(|(w, line)| w * line[x]).sum::<f64>()),
            );
        }
        out
    }

    /// Resizes planes at every level, which must give the same bits, and compares with the definition.
    fn check(resampler: &mut Resampler, planes: &[f32], (h, w): (usize, usize), to: Resize) {
        let number = planes.len() / (h * w);
        let size = to.height * to.width;
        let mut first: Option<Vec<f32>> = None;
        for level in Level::available() {
            let mut out = vec![f32::NAN; number * size];
            resampler.resize(level, planes, (h, w), to, &mut out);
            let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<u32>>();
            assert_eq!(bits(first.get_or_insert(out.clone())), bits(&out), "{h}x{w} {to:?} {level:?}");
        }
        let got = first.unwrap_or_default();
        for (plane, got) in planes.chunks_exact(h * w).zip(got.chunks_exact(size)) {
            for (i, (got, expected)) in got.iter().zip(definition(plane, (h, w), to)).enumerate() {
                // All values are positive: nothing cancels.
                let off = (f64::from(*got) - expected).abs();
                assert!(off <= 1e-5 * expected, "{h}x{w} {to:?} {i}: {got} {expected}");
            }
        }
    }

    /// Numbers that look random.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 33) as usize % n
        }

        fn planes(&mut self, n: usize) -> Vec<f32> {
            (0..n).map(|_| 1.0 + self.below(65536) as f32 / 7.0).collect()
        }
    }

    const FILTERS: [Filter; 3] = [Filter::Area, Filter::Bilinear, Filter::Antialias];

    #[test]
    fn resize_is_its_definition() {
        let mut numbers = Numbers(29);
        // One for all: tables and lines of one size must not leak into the next.
        let mut resampler = Resampler::default();
        for i in 0..60 {
            let mut side = || 1 + numbers.below(if i % 3 == 0 { 300 } else { 60 });
            let (h, w, height, width) = (side(), side(), side(), side());
            let number = 1 + numbers.below(if h * w > 10_000 { 1 } else { 5 });
            let planes = numbers.planes(number * h * w);
            check(&mut resampler, &planes, (h, w), Resize { height, width, filter: FILTERS[i / 3 % 3] });
        }
    }

    /// Around the widths of vectors, and by factors that take every number of taps.
    #[test]
    fn edges_are_as_the_middle() {
        let mut numbers = Numbers(7);
        let mut resampler = Resampler::default();
        for filter in FILTERS {
            for to in [1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33] {
                for from in [1, 2, 3, 8, 15, 16, 17, 18, 30, 32, 33, 34, 47, 64, 65, 100, 160, 290] {
                    let plane = numbers.planes(3 * from);
                    check(&mut resampler, &plane, (3, from), Resize { height: 2, width: to, filter });
                    check(&mut resampler, &plane, (from, 3), Resize { height: to, width: 4, filter });
                }
            }
        }
    }

    /// A pixel that is no number, or infinite, changes the outputs that have a weight for it, and no others.
    #[test]
    fn nan_stays_where_it_is() {
        let mut resampler = Resampler::default();
        let (h, w) = (12, 19);
        for filter in FILTERS {
            for (height, width) in
                [(12, 19), (12, 57), (36, 19), (30, 40), (6, 19), (4, 6), (5, 7), (1, 2), (3, 50)]
            {
                let to = Resize { height, width, filter };
                for (at, bad) in
                    [(0, f32::NAN), (h * w - 1, f32::NAN), (5 * w + 9, f32::INFINITY), (7 * w, f32::NAN)]
                {
                    let mut plane = vec![1.0f32; h * w];
                    plane[at] = bad;
                    let share = |y, x| {
                        let (rows, columns) = (weights(h, height, filter, y), weights(w, width, filter, x));
                        [rows[at / w], columns[at % w]]
                    };
                    for level in Level::available() {
                        let mut out = vec![0.0; height * width];
                        resampler.resize(level, &plane, (h, w), to, &mut out);
                        for (i, value) in out.iter().enumerate() {
                            let [a, b] = share(i / width, i % width);
                            if a.min(b) > 1e-6 {
                                assert!(
                                    !value.is_finite() && value.is_nan() == bad.is_nan(),
                                    "{to:?} {at} {i} {value}"
                                );
                            } else if a.min(b) == 0.0 && filter != Filter::Antialias {
                                assert!((value - 1.0).abs() < 1e-5, "{to:?} {at} {i} {value}");
                            }
                        }
                    }
                }
            }
        }
    }
}
