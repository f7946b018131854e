//! The operations on the floats of one image after the pass over its pixels, channel by channel. They are percentiles, clipping,
//! changes of intensity, noise, normalisation by the image's own statistics.
//!
//! ```text
//!   percentiles? ─▶ scale, clip, brightness ─▶ mean? ─▶ contrast, gamma, noise, given normalisation
//!                                                          ─▶ mean and deviation? ─▶ normalisation per image
//! ```
//!
//! Steps between two that need the whole channel go over it in one pass, in tiles that stay in the first-level cache.

#![allow(clippy::inline_always)]

mod channel;
mod flat;

use crate::draw::{Draws, Purpose};
use crate::kernels::Affine;
use crate::math::{self, NORMALS_PER_BLOCK, Stream};
use crate::percentiles::Percentiles;
use crate::simd::{Kernel, Level, dispatch};
use crate::transform::{Jitter, Noise};
use channel::Channel;
use flat::{flatten, without_rounding, zero_if_one};

/// The last step.
#[derive(Clone, Debug)]
pub(crate) enum FinalNormalize {
    Nothing,
    /// By given numbers, one of each per channel.
    Affine(Vec<Affine>),
    PerImage,
}

/// The steps that a transform leaves to be done.
#[derive(Clone, Debug)]
pub(crate) struct PostProcess {
    /// Whether pixels have more than 16 bits: values may be large and close to each other.
    pub(crate) is_wide: bool,
    /// Scale by these percentiles of each channel.
    pub(crate) percentiles: Option<[f64; 2]>,
    /// Clip to `[0, 1]`.
    pub(crate) clip: bool,
    /// Brightness, where the pass over the pixels could not take it along.
    pub(crate) brightness: f32,
    pub(crate) jitter: Jitter,
    pub(crate) noise: Noise,
    /// Which channels are masks, of which nothing is changed.
    pub(crate) masks: Vec<bool>,
    pub(crate) last: FinalNormalize,
}

/// Where the values of an image come from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// They are those of 8- or 16-bit integers, neither scaled nor resampled.
    pub(crate) is_whole: bool,
    /// They were resized or rotated.
    pub(crate) is_resampled: bool,
}

/// A factor drawn from `1 - strength` to `1 + strength`, for a channel or for all.
pub(crate) fn factor(jitter: Jitter, strength: f32, purpose: Purpose, draws: Draws, channel: usize) -> f32 {
    let drawn = draws.nth(purpose, if jitter.per_channel { channel as u64 } else { 0 }).unit();
    (1.0 + (2.0 * drawn - 1.0) * f64::from(strength)) as f32
}

impl PostProcess {
    /// Does the steps on an image of `channels` channels, in C order (time, channel, the rest). `last` is the image's own
    /// normalisation, channel by channel.
    pub(crate) fn run(
        &self,
        level: Level,
        draws: Draws,
        floats: &mut [f32],
        [times, channels]: [usize; 2],
        last: Option<&[Affine]>,
        (percentiles, origin): (&mut Percentiles, Origin),
    ) {
        let len = floats.len() / (times * channels);
        for c in (0..channels).filter(|&c| !self.masks[c]) {
            let mut channel = Channel { floats: &mut *floats, stride: len * channels, start: c * len, len };
            let last = last.map(|last| last[c]);
            self.run_channel(level, draws, &mut channel, (c, last), (&mut *percentiles, origin));
        }
    }

    fn run_channel(
        &self,
        level: Level,
        draws: Draws,
        channel: &mut Channel<'_>,
        (c, last): (usize, Option<Affine>),
        (percentiles, origin): (&mut Percentiles, Origin),
    ) {
        let Jitter { contrast, gamma, .. } = self.jitter;
        let mut next = Pointwise { clip: self.clip, ..Pointwise::default() };
        if let Some(percents) = self.percentiles {
            let range = percentiles.percentiles(level, || channel.runs(), percents, origin.is_whole);
            let mut range = without_rounding(range, origin.is_resampled);
            if lacks_reciprocal(range[1] - range[0]) {
                raise(level, channel);
                range = range.map(|end| end * RAISE);
            }
            let affine = rescale_to_unit(range, self.is_wide);
            if affine.scale == 0.0 {
                flatten(channel);
            } else {
                next.scale = Some(affine);
            }
        }
        if self.brightness > 0.0 {
            let factor = factor(self.jitter, self.brightness, Purpose::Brightness, draws, c);
            next.then = Some(Affine { scale: factor, ..Affine::IDENTITY });
        }
        if contrast > 0.0 {
            next.apply(level, channel);
            let factor = f64::from(factor(self.jitter, contrast, Purpose::Contrast, draws, c));
            let mean = mean(level, channel);
            let offset = mean * (1.0 - factor);
            next = Pointwise {
                then: Some(Affine { scale: factor as f32, offset: offset as f32, ..Affine::IDENTITY }),
                ..Pointwise::default()
            };
        }
        if gamma > 0.0 {
            let drawn = draws.nth(Purpose::Gamma, if self.jitter.per_channel { c as u64 } else { 0 }).unit();
            next.gamma = Some((1.0 + f64::from(gamma)).powf(2.0 * drawn - 1.0) as f32);
        }
        let stream = |purpose| Stream::new(draws.nth(purpose, c as u64).0);
        if self.noise.photon > 0.0 {
            next.photon = Some((stream(Purpose::PhotonNoise), self.noise.photon));
        }
        if self.noise.gaussian > 0.0 {
            next.gaussian = Some((stream(Purpose::GaussianNoise), self.noise.gaussian));
        }
        match &self.last {
            FinalNormalize::Nothing => {}
            FinalNormalize::Affine(affine) => next.last = Some(last.unwrap_or(affine[c])),
            FinalNormalize::PerImage => {
                next.apply(level, channel);
                let (mut mean, mut variance) = moments(level, channel);
                if origin.is_resampled && zero_if_one(channel, mean, variance) {
                    return;
                }
                if lacks_reciprocal(variance.sqrt()) {
                    raise(level, channel);
                    (mean, variance) = (mean * RAISE, variance * RAISE * RAISE);
                }
                let scale = if variance > 0.0 { 1.0 / variance.sqrt() } else { 1.0 };
                // Subtracting first loses nothing where the values are large and close to each other.
                let with_pivot = if self.is_wide { Affine::with_pivot(scale, -mean * scale) } else { None };
                next = match with_pivot {
                    Some(_) => Pointwise { scale: with_pivot, ..Pointwise::default() },
                    None => Pointwise {
                        scale: Some(Affine { offset: -mean as f32, ..Affine::IDENTITY }),
                        then: Some(Affine { scale: scale as f32, ..Affine::IDENTITY }),
                        ..Pointwise::default()
                    },
                };
            }
        }
        next.apply(level, channel);
    }
}

/// The factor of values that are too close for a factor of single precision: 2 to the power of 100.
const RAISE: f64 = (1u128 << 100) as f64;

/// Whether the reciprocal of a difference of values is infinite in single precision.
fn lacks_reciprocal(difference: f64) -> bool {
    difference > 0.0 && ((1.0 / difference) as f32).is_infinite()
}

/// Multiplies the values by [`RAISE`], which loses no digit of small ones.
fn raise(level: Level, channel: &mut Channel<'_>) {
    let by = Affine { scale: RAISE as f32, ..Affine::IDENTITY };
    Pointwise { scale: Some(by), ..Pointwise::default() }.apply(level, channel);
}

/// The map that sends the first number to 0 and the second to 1; everything to 0 when they are equal.
fn rescale_to_unit([low, high]: [f64; 2], is_wide: bool) -> Affine {
    let scale = if high > low { 1.0 / (high - low) } else { 0.0 };
    let with_pivot = if is_wide { Affine::with_pivot(scale, -low * scale) } else { None };
    let offset = (-low * scale) as f32;
    with_pivot.unwrap_or(Affine { scale: scale as f32, offset, ..Affine::IDENTITY })
}

/// Mean of the finite values, the same bits as that of [`moments`]; 0 where there are none.
fn mean(level: Level, channel: &Channel<'_>) -> f64 {
    let pivot = pivot(channel);
    let (mut n, mut sum) = (0, 0.0);
    for run in channel.runs() {
        n += run.len();
        dispatch(level, Sum { run, pivot, total: &mut sum });
    }
    // A sum of finite `f32` cannot overflow `f64`: where it is finite, all of them are.
    if n > 0 && sum.is_finite() { pivot + sum / n as f64 } else { moments(level, channel).0 }
}

/// A value that others are likely to be close to: less of their digits is lost in sums without it.
fn pivot(channel: &Channel<'_>) -> f64 {
    channel.runs().flatten().copied().find(|v| v.is_finite()).map_or(0.0, f64::from)
}

/// Sums of every sixteenth value: the same at every vector width.
const LANES: usize = 16;

/// Adds the sum of the values, less `pivot`, whatever they are: half the time of [`Moments`].
struct Sum<'a> {
    run: &'a [f32],
    pivot: f64,
    total: &'a mut f64,
}

impl Kernel for Sum<'_> {
    #[inline(always)]
    fn run(self) {
        let mut sums = [0f64; LANES];
        let (blocks, rest) = self.run.as_chunks::<LANES>();
        for block in blocks {
            // By index: LLVM makes slower code of the same zipped.
            for i in 0..LANES {
                sums[i] += f64::from(block[i]) - self.pivot;
            }
        }
        for (sum, value) in sums.iter_mut().zip(rest) {
            *sum += f64::from(*value) - self.pivot;
        }
        *self.total += sums.iter().sum::<f64>();
    }
}

/// Mean and population variance of the finite values; 0 where there are none.
fn moments(level: Level, channel: &Channel<'_>) -> (f64, f64) {
    let pivot = pivot(channel);
    let mut sums = [0f64; 3];
    for run in channel.runs() {
        dispatch(level, Moments { run, pivot, sums: &mut sums });
    }
    let [n, sum, squares] = sums;
    if n == 0.0 {
        return (0.0, 0.0);
    }
    let mean = sum / n;
    (pivot + mean, (squares / n - mean * mean).max(0.0))
}

/// Adds number, sum and sum of squares of the finite values, less `pivot`.
struct Moments<'a> {
    run: &'a [f32],
    pivot: f64,
    sums: &'a mut [f64; 3],
}

impl Kernel for Moments<'_> {
    #[inline(always)]
    fn run(self) {
        let (mut n, mut sum, mut squares) = ([0u64; LANES], [0f64; LANES], [0f64; LANES]);
        let mut add = |i: usize, value: f32| {
            let finite = value.is_finite();
            let value = if finite { f64::from(value) - self.pivot } else { 0.0 };
            n[i] += u64::from(finite);
            sum[i] += value;
            squares[i] += value * value;
        };
        let (blocks, rest) = self.run.as_chunks::<LANES>();
        for block in blocks {
            for (i, value) in block.iter().enumerate() {
                add(i, *value);
            }
        }
        rest.iter().enumerate().for_each(|(i, value)| add(i, *value));
        self.sums[0] += n.iter().sum::<u64>() as f64;
        self.sums[1] += sum.iter().sum::<f64>();
        self.sums[2] += squares.iter().sum::<f64>();
    }
}

/// Steps that need nothing but each value and its place, in this order.
#[derive(Clone, Copy, Debug, Default)]
struct Pointwise {
    scale: Option<Affine>,
    clip: bool,
    then: Option<Affine>,
    gamma: Option<f32>,
    photon: Option<(Stream, f32)>,
    gaussian: Option<(Stream, f32)>,
    last: Option<Affine>,
}

impl Pointwise {
    fn apply(self, level: Level, channel: &mut Channel<'_>) {
        let Self { scale, clip, then, gamma, photon, gaussian, last } = self;
        if !clip && gamma.is_none() && photon.is_none() && gaussian.is_none() {
            let affine = [scale, then, last];
            if affine.iter().all(Option::is_none) {
                return;
            }
        }
        for (first, run) in channel.runs_mut() {
            dispatch(level, Apply { steps: self, first, run });
        }
    }
}

struct Apply<'a> {
    steps: Pointwise,
    /// Number of the first value in its channel.
    first: usize,
    run: &'a mut [f32],
}

/// Floats of a tile: 4 KiB.
const TILE: usize = 1024;

impl Kernel for Apply<'_> {
    #[inline(always)]
    fn run(self) {
        let Self { steps, first, run } = self;
        for (i, tile) in run.chunks_mut(TILE).enumerate() {
            let first = first + i * TILE;
            if let Some(affine) = steps.scale {
                affine.apply(tile);
            }
            if steps.clip {
                // Comparisons, not minimum and maximum: NaN stays.
                for v in tile.iter_mut() {
                    let low = if *v < 0.0 { 0.0 } else { *v };
                    *v = if low > 1.0 { 1.0 } else { low };
                }
            }
            if let Some(affine) = steps.then {
                affine.apply(tile);
            }
            if let Some(gamma) = steps.gamma {
                for v in tile.iter_mut() {
                    *v = math::pow(*v, gamma);
                }
            }
            if let Some((stream, photon)) = steps.photon {
                // Infinite values stay: noise of both signs would make NaN of them.
                add_noise(stream, first, tile, |v| {
                    let variance = v * photon;
                    (if variance > 0.0 && variance < f32::INFINITY { variance } else { 0.0 }).sqrt()
                });
            }
            if let Some((stream, deviation)) = steps.gaussian {
                add_noise(stream, first, tile, |_| deviation);
            }
            if let Some(affine) = steps.last {
                affine.apply(tile);
            }
        }
    }
}

/// Adds normal deviates, number `first` and following, times what `deviation` says for each value.
#[inline(always)]
fn add_noise(stream: Stream, first: usize, tile: &mut [f32], deviation: impl Fn(f32) -> f32) {
    // All deviates of the tile first, then one loop over its values: both vectorise.
    let mut normals = [0f32; TILE + 2 * NORMALS_PER_BLOCK];
    let (skipped, block) = (first % NORMALS_PER_BLOCK, first / NORMALS_PER_BLOCK);
    let count = (skipped + tile.len()).div_ceil(NORMALS_PER_BLOCK);
    for (i, normals) in normals.as_chunks_mut::<NORMALS_PER_BLOCK>().0[..count].iter_mut().enumerate() {
        *normals = stream.normals((block + i) as u64);
    }
    for (v, n) in tile.iter_mut().zip(&normals[skipped..]) {
        *v += deviation(*v) * n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The short way to the mean gives what the long one does, and leaves what is not finite out as that does.
    #[test]
    fn means_are_the_same_bits_either_way() {
        for len in [0, 1, 15, 16, 17, 100, 1025] {
            for bad in [None, Some(f32::NAN), Some(f32::INFINITY), Some(f32::NEG_INFINITY)] {
                let mut floats: Vec<f32> =
                    (0..2 * len).map(|i| 1e4 + (i * 7919 % 1009) as f32 / 3.0).collect();
                if let (Some(bad), Some(last)) = (bad, floats.last_mut()) {
                    *last = bad;
                }
                let all: Vec<f64> = floats.iter().filter(|v| v.is_finite()).map(|v| f64::from(*v)).collect();
                let expected = all.iter().sum::<f64>() / all.len().max(1) as f64;
                let channel = Channel { floats: &mut floats, stride: len.max(1), start: 0, len };
                for level in Level::available() {
                    let (long, short) = (moments(level, &channel).0, mean(level, &channel));
                    assert_eq!(long.to_bits(), short.to_bits(), "{len} {bad:?} {level:?}");
                    assert!((short - expected).abs() <= 1e-9 * expected, "{len} {bad:?}: {short} {expected}");
                }
            }
        }
    }
}
