//! Everything that is not a product: GELU, softmax, layer norm, pooling, tokens.
//!
//! Loops over whole blocks of 64 numbers, without branches, that the compiler turns into vectors. [`Arch`]
//! compiles them for every instruction set and chooses at run time.

#![allow(clippy::inline_always, reason = "only what is inlined into pulp's entry point is compiled for it")]

use super::layout::{BLOCK, Layout};
use pulp::Arch;
use rayon::prelude::*;

/// Replaces every `x` by `x * Phi(x)`, with the normal distribution function `Phi`.
pub(super) fn gelu(arch: Arch, values: &mut [f32]) {
    arch.dispatch(
        #[inline(always)]
        || {
            for value in values {
                *value *= 0.5 * (1.0 + erf(*value * std::f32::consts::FRAC_1_SQRT_2));
            }
        },
    );
}

/// The error function to about 3e-7: Eigen's rational approximation, which XLA uses too.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let x = x.clamp(-4.0, 4.0);
    let square = x * x;
    let mut above = -2.726_142_3e-10;
    for coefficient in
        [2.770_681_5e-8, -2.101_024e-6, -5.692_506_3e-5, -7.349_906_3e-4, -2.954_6e-3, -1.609_603_3e-2]
    {
        above = above * square + coefficient;
    }
    let mut below = -1.456_607_2e-5;
    for coefficient in [-2.133_740_6e-4, -1.682_827e-3, -7.373_329e-3, -1.426_473_9e-2] {
        below = below * square + coefficient;
    }
    x * above / below
}

/// `e^x` to about 2e-7 for `x <= 0`; 0 far below.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// Adding it rounds to a whole number, which then stands in the lower bits.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = x.max(-87.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let rest = x - whole * LN_2_HIGH - whole * LN_2_LOW;
    // Taylor's series: |rest| is at most ln(2) / 2.
    let mut sum = 1.0 / 5040.0;
    for factorial in [720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0f32] {
        sum = sum * rest + 1.0 / factorial;
    }
    sum * f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23))
}

/// Softmax of `scale * row` for each of `rows` rows of `count` numbers, which lie in blocks as a [`Layout`] has
/// them; numbers beyond `count` become zero.
pub(super) fn softmax(arch: Arch, values: &mut [f32], (rows, count): (usize, usize), scale: f32) {
    let blocks = values.len() / (rows * BLOCK);
    arch.dispatch(
        #[inline(always)]
        || {
            let (values, _) = values.as_chunks_mut::<BLOCK>();
            for row in 0..rows {
                for lane in count..blocks * BLOCK {
                    values[lane / BLOCK * rows + row][lane % BLOCK] = f32::NEG_INFINITY;
                }
                let mut largest = [f32::NEG_INFINITY; BLOCK];
                for block in 0..blocks {
                    for (l, &v) in largest.iter_mut().zip(&values[block * rows + row]) {
                        *l = if v > *l { v } else { *l };
                    }
                }
                let largest = largest.iter().copied().fold(f32::NEG_INFINITY, f32::max) * scale;
                let mut sums = [0.0; BLOCK];
                for block in 0..blocks {
                    for (sum, v) in sums.iter_mut().zip(&mut values[block * rows + row]) {
                        *v = exp(*v * scale - largest);
                        *sum += *v;
                    }
                }
                let share = 1.0 / sums.iter().sum::<f32>();
                for block in 0..blocks {
                    values[block * rows + row].iter_mut().for_each(|v| *v *= share);
                }
                for lane in count..blocks * BLOCK {
                    values[lane / BLOCK * rows + row][lane % BLOCK] = 0.0;
                }
            }
        },
    );
}

/// Layer norm over the channels of each of `batch` images' tokens; `gain` and `shift` have whole blocks.
pub(super) fn layer_norm(
    batch: usize,
    layout: &Layout,
    input: &[f32],
    (gain, shift, epsilon): (&[f32], &[f32], f32),
    out: &mut [f32],
) {
    /// Tokens per task.
    const TOKENS: usize = 32;
    let arch = Arch::new();
    let tokens = batch * layout.pixels();
    let (input, _) = input.as_chunks::<BLOCK>();
    let whole = layout.channels / BLOCK;
    let (all, rest) = (layout.channels as f32, layout.channels % BLOCK);
    let mut moments = vec![(0.0f32, 0.0f32); tokens];
    moments.par_chunks_mut(TOKENS).enumerate().for_each(|(task, moments)| {
        arch.dispatch(
            #[inline(always)]
            || {
                for (i, moment) in moments.iter_mut().enumerate() {
                    let token = task * TOKENS + i;
                    let last = &input[if rest > 0 { whole * tokens + token } else { token }][..rest];
                    let mut sums = [0.0; BLOCK];
                    for block in 0..whole {
                        sums.iter_mut().zip(&input[block * tokens + token]).for_each(|(s, &v)| *s += v);
                    }
                    let mean = (sums.iter().sum::<f32>() + last.iter().sum::<f32>()) / all;
                    let mut sums = [0.0; BLOCK];
                    for block in 0..whole {
                        for (s, &v) in sums.iter_mut().zip(&input[block * tokens + token]) {
                            *s += (v - mean) * (v - mean);
                        }
                    }
                    let last: f32 = last.iter().map(|v| (v - mean) * (v - mean)).sum();
                    let variance = (sums.iter().sum::<f32>() + last) / all;
                    *moment = (mean, 1.0 / (variance + epsilon).sqrt());
                }
            },
        );
    });
    out.par_chunks_mut(tokens * BLOCK).enumerate().for_each(|(block, out)| {
        arch.dispatch(
            #[inline(always)]
            || {
                let (gain, shift) = (&gain[block * BLOCK..][..BLOCK], &shift[block * BLOCK..][..BLOCK]);
                let input = &input[block * tokens..][..tokens];
                let (out, _) = out.as_chunks_mut::<BLOCK>();
                for ((out, input), &(mean, scale)) in out.iter_mut().zip(input).zip(&moments) {
                    for c in 0..BLOCK {
                        out[c] = (input[c] - mean) * scale * gain[c] + shift[c];
                    }
                }
            },
        );
    });
}

/// Largest value under a square window at steps of `stride`; the border of `from` counts as it is.
pub(super) fn max_pool(
    batch: usize,
    (input, from): (&[f32], &Layout),
    (kernel, stride, pad): (usize, usize, usize),
    (out, to): (&mut [f32], &Layout),
) {
    let arch = Arch::new();
    let rows = batch * (to.height + 2 * to.pad);
    out.par_chunks_mut(to.row()).with_min_len(4).enumerate().for_each(|(number, out)| {
        let (block, image) = (number / rows, number % rows / (to.height + 2 * to.pad));
        let Some(y) = (number % (to.height + 2 * to.pad)).checked_sub(to.pad).filter(|&y| y < to.height)
        else {
            return;
        };
        arch.dispatch(
            #[inline(always)]
            || {
                let image = &input[(block * batch + image) * from.image()..][..from.image()];
                let (out, _) = out[to.pad * BLOCK..].as_chunks_mut::<BLOCK>();
                for (x, out) in out.iter_mut().take(to.width).enumerate() {
                    let mut largest = [f32::NEG_INFINITY; BLOCK];
                    for ky in 0..kernel {
                        let line = &image[(y * stride + ky + from.pad - pad) * from.row()..][..from.row()];
                        let pixels = &line[(x * stride + from.pad - pad) * BLOCK..][..kernel * BLOCK];
                        for pixel in pixels.as_chunks::<BLOCK>().0 {
                            for (l, &v) in largest.iter_mut().zip(pixel) {
                                *l = if v > *l { v } else { *l };
                            }
                        }
                    }
                    *out = largest;
                }
            },
        );
    });
}

/// Mean over the pixels of each image.
pub(super) fn global_mean((input, from): (&[f32], &Layout), out: &mut [f32]) {
    let (out, _) = out.as_chunks_mut::<BLOCK>();
    out.iter_mut().zip(input.chunks_exact(from.image())).for_each(|(out, image)| {
        let mut sums = [0.0f32; BLOCK];
        for pixel in (0..from.pixels()).map(|p| &image[from.offset(p)..][..BLOCK]) {
            sums.iter_mut().zip(pixel).for_each(|(s, &v)| *s += v);
        }
        *out = sums.map(|s| s / from.pixels() as f32);
    });
}

/// Puts a learned token before the pixels of each image and adds learned positions, which lie as one image of
/// the result does.
pub(super) fn tokens(
    batch: usize,
    (input, from): (&[f32], &Layout),
    (class_token, positions): (&[f32], &[f32]),
    (out, to): (&mut [f32], &Layout),
) {
    for (number, out) in out.chunks_exact_mut(to.image()).enumerate() {
        let block = number / batch;
        let positions = &positions[block * to.image()..][..to.image()];
        let image = &input[number * from.image()..][..from.image()];
        out.copy_from_slice(positions);
        let add = |out: &mut [f32], more: &[f32]| out.iter_mut().zip(more).for_each(|(o, &m)| *o += m);
        add(&mut out[..BLOCK], &class_token[block * BLOCK..][..BLOCK]);
        for (pixel, out) in out[BLOCK..].chunks_exact_mut(BLOCK).enumerate() {
            add(out, &image[from.offset(pixel)..][..BLOCK]);
        }
    }
}

/// The first token of each image.
pub(super) fn first_token((input, from): (&[f32], &Layout), out: &mut [f32]) {
    for (out, image) in out.chunks_exact_mut(BLOCK).zip(input.chunks_exact(from.image())) {
        out.copy_from_slice(&image[..BLOCK]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_function_and_exponential_are_exact_enough() {
        for i in -60_000..60_000 {
            let x = i as f32 / 10_000.0;
            assert!((f64::from(erf(x)) - libm::erf(f64::from(x))).abs() < 5e-7, "erf({x}) = {}", erf(x));
            let below = 14.0 * (x - 6.0);
            let expected = f64::from(below).exp();
            if below > -87.0 {
                let error = (f64::from(exp(below)) - expected).abs() / expected;
                assert!(error < 5e-7, "exp({below}) = {} is off by {error}", exp(below));
            }
        }
        assert!(exp(f32::NEG_INFINITY) < 1e-37);
    }

    #[test]
    fn softmax_of_some_columns_adds_up_to_one_and_leaves_zeros_beyond() {
        let (rows, count, blocks) = (3, 70, 2);
        let mut values: Vec<f32> = (0..rows * blocks * BLOCK).map(|i| (i * 37 % 101) as f32 / 10.0).collect();
        let before = values.clone();
        let at = |row: usize, column: usize| (column / BLOCK * rows + row) * BLOCK + column % BLOCK;
        softmax(Arch::new(), &mut values, (rows, count), 0.5);
        for row in 0..rows {
            let exponentials: Vec<f64> =
                (0..count).map(|c| (0.5 * f64::from(before[at(row, c)])).exp()).collect();
            let sum: f64 = exponentials.iter().sum();
            for (column, expected) in exponentials.iter().enumerate() {
                assert!((f64::from(values[at(row, column)]) - expected / sum).abs() < 1e-6);
            }
            assert!((count..blocks * BLOCK).all(|c| values[at(row, c)] == 0.0));
        }
    }
}
