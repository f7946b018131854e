//! Microscope and camera: from light to 16-bit counts.
//!
//! Out-of-focus haze, blur by the point spread function (wider out of focus), uneven illumination, background,
//! bleaching, then photon (shot) noise, read noise, amplification and offset.

use super::random::Random;
use super::render::Stain;
use super::scene::Scene;

/// Camera counts of one photoelectron.
const COUNTS_PER_ELECTRON: f32 = 1.7;
/// Standard deviation of the read noise in electrons.
const READ_NOISE: f32 = 3.0;
/// Counts without light.
const OFFSET: f32 = 110.0;

/// Brightness of a stain in counts, background likewise, and the part of the light that becomes haze.
struct Exposure {
    signal: f32,
    background: f32,
    haze: f32,
}

impl Stain {
    fn exposure(self) -> Exposure {
        let (signal, background, haze) = match self {
            Self::Dna => (15_500.0, 230.0, 0.13),
            Self::Er => (12_500.0, 420.0, 0.16),
            Self::Rna => (16_500.0, 430.0, 0.16),
            Self::Agp => (9_500.0, 430.0, 0.14),
            Self::Mito => (11_500.0, 300.0, 0.15),
        };
        Exposure { signal, background, haze }
    }
}

/// The settings that stay the same for all planes of an image.
pub(super) struct Microscope {
    width: usize,
    scale: f32,
    /// Illumination is the sum of a part by column and a part by row.
    by_column: Vec<f32>,
    by_row: Vec<f32>,
    exposure: [f32; 5],
    sigma: f32,
}

impl Microscope {
    pub(super) fn new(random: &mut Random, scene: &Scene) -> Self {
        let vignette = random.between(0.06, 0.16);
        let mut profile = |size: usize, base: f32| -> Vec<f32> {
            let (center, tilt) = (random.between(-0.25, 0.25), 0.05 * random.normal());
            (0..size)
                .map(|i| {
                    let at = (2 * i + 1) as f32 / size as f32 - 1.0;
                    base - vignette * (at - center) * (at - center) + tilt * at
                })
                .collect()
        };
        let (by_column, by_row) = (profile(scene.width, 0.53), profile(scene.height, 0.53));
        let mut exposure = [0.0; 5];
        for exposure in &mut exposure {
            *exposure = random.between(0.8, 1.2);
        }
        let sigma = random.between(0.85, 1.1) * scene.scale.max(0.5);
        Self { width: scene.width, scale: scene.scale, by_column, by_row, exposure, sigma }
    }

    /// Takes the picture; `light` is used up. `defocus` is in half heights of a nucleus.
    pub(super) fn take<'a>(
        &'a self,
        light: &'a mut [f32],
        c: usize,
        t: usize,
        defocus: f32,
        noise: &'a mut Random,
    ) -> impl Iterator<Item = u16> + 'a {
        let stain = Stain::of(c);
        let Exposure { signal, background, haze } = stain.exposure();
        self.add_haze(light, haze);
        let wider = 1.5 * defocus;
        blur(light, self.width, self.sigma * (1.0 + wider * wider).sqrt());
        // Each exposure bleaches a little.
        let bleached = 1.0 / (1.0 + 0.03 * t as f32);
        let signal = signal * self.exposure[c % Stain::ALL.len()] * bleached / COUNTS_PER_ELECTRON;
        let background = background / COUNTS_PER_ELECTRON;
        let rows = light.chunks_exact(self.width).zip(&self.by_row);
        rows.flat_map(move |(row, &row_part)| {
            row.iter().zip(&self.by_column).map(move |(&light, &column_part)| {
                (light * signal + background) * (row_part + column_part).max(0.2)
            })
        })
        .map(move |electrons| expose(electrons, noise))
    }

    /// Spreads a part of the light over the surroundings: the light from above and below the focal plane.
    fn add_haze(&self, light: &mut [f32], part: f32) {
        let width = self.width;
        let height = light.len() / width;
        let step = ((4.0 * self.scale) as usize).max(1);
        let (small_w, small_h) = (width.div_ceil(step), height.div_ceil(step));
        let mut small = vec![0.0f32; small_w * small_h];
        for (y, row) in light.chunks_exact(width).enumerate() {
            let target = &mut small[y / step * small_w..][..small_w];
            for (pixels, sum) in row.chunks(step).zip(target) {
                *sum += pixels.iter().sum::<f32>();
            }
        }
        for (index, sum) in small.iter_mut().enumerate() {
            let (y, x) = (index / small_w, index % small_w);
            let area = step.min(height - y * step) * step.min(width - x * step);
            *sum /= area as f32;
        }
        blur(&mut small, small_w, 12.0 * self.scale / step as f32);
        // Linear interpolation between the centres of the small pixels.
        let place = |i: usize, size: usize| {
            let at = ((i as f32 + 0.5) / step as f32 - 0.5).clamp(0.0, (size - 1) as f32);
            let low = at as usize;
            (low, (low + 1).min(size - 1), at - low as f32)
        };
        let columns: Vec<_> = (0..width).map(|x| place(x, small_w)).collect();
        for (y, row) in light.chunks_exact_mut(width).enumerate() {
            let (y0, y1, fy) = place(y, small_h);
            let (top, bottom) = (&small[y0 * small_w..][..small_w], &small[y1 * small_w..][..small_w]);
            for (pixel, &(x0, x1, fx)) in row.iter_mut().zip(&columns) {
                let upper = top[x0] + fx * (top[x1] - top[x0]);
                let lower = bottom[x0] + fx * (bottom[x1] - bottom[x0]);
                *pixel += part * (upper + fy * (lower - upper) - *pixel);
            }
        }
    }
}

/// Counts of a pixel on which this many electrons are set free on average.
#[inline]
fn expose(electrons: f32, noise: &mut Random) -> u16 {
    let g = noise.normal();
    // A Poisson variate by its Cornish-Fisher expansion: right in mean, variance and skewness.
    let deviation = (electrons + READ_NOISE * READ_NOISE).sqrt();
    let measured = electrons + deviation * g + (g * g - 1.0) / 6.0;
    (OFFSET + COUNTS_PER_ELECTRON * measured + 0.5) as u16
}

/// `exp` of a number that is not above 0, from operations that are the same everywhere.
fn exp(x: f64) -> f64 {
    // (1 + x / 4096) to the power of 4096; good to three digits where it matters.
    let mut power = (1.0 + x / 4096.0).max(0.0);
    for _ in 0..12 {
        power *= power;
    }
    power
}

/// Gaussian blur in place; the border pixels are repeated outwards.
fn blur(plane: &mut [f32], width: usize, sigma: f32) {
    let radius = ((3.0 * sigma) as usize).max(1);
    let two_variances = 2.0 * f64::from(sigma) * f64::from(sigma);
    let mut kernel: Vec<f32> = (0..=radius).map(|i| exp(-((i * i) as f64) / two_variances) as f32).collect();
    let total = kernel[0] + 2.0 * kernel[1..].iter().sum::<f32>();
    for weight in &mut kernel {
        *weight /= total;
    }
    let height = plane.len() / width;
    // Along rows.
    let mut padded = vec![0.0; width + 2 * radius];
    for row in plane.chunks_exact_mut(width) {
        padded[..radius].fill(row[0]);
        padded[radius..radius + width].copy_from_slice(row);
        padded[radius + width..].fill(row[width - 1]);
        convolve(row, &kernel, |offset| &padded[(radius as isize + offset) as usize..][..width]);
    }
    // Along columns, a row at a time.
    let source = plane.to_vec();
    for (y, row) in plane.chunks_exact_mut(width).enumerate() {
        convolve(row, &kernel, |offset| {
            let from = (y as isize + offset).clamp(0, height as isize - 1) as usize;
            &source[from * width..][..width]
        });
    }
}

/// `out` = the rows at all offsets, weighted by a symmetric kernel.
fn convolve<'a>(out: &mut [f32], kernel: &[f32], row: impl Fn(isize) -> &'a [f32]) {
    for (out, &value) in out.iter_mut().zip(row(0)) {
        *out = kernel[0] * value;
    }
    for (offset, &weight) in kernel.iter().enumerate().skip(1) {
        let (before, after) = (row(-(offset as isize)), row(offset as isize));
        for ((out, &a), &b) in out.iter_mut().zip(before).zip(after) {
            *out += weight * (a + b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shot_noise_follows_poisson() {
        for electrons in [20.0f32, 300.0, 8000.0] {
            let mut noise = Random::new(3, 1, 4);
            let n = 40_000;
            let counts: Vec<f64> = (0..n).map(|_| f64::from(expose(electrons, &mut noise))).collect();
            let mean = counts.iter().sum::<f64>() / f64::from(n);
            let moment = |k: i32| counts.iter().map(|c| (c - mean).powi(k)).sum::<f64>() / f64::from(n);
            let (gain, electrons) = (f64::from(COUNTS_PER_ELECTRON), f64::from(electrons));
            let read = f64::from(READ_NOISE * READ_NOISE);
            let expected = f64::from(OFFSET) + gain * electrons;
            assert!((mean / expected - 1.0).abs() < 0.01, "mean {mean}, expected {expected}");
            // The skewness term adds 1/18, rounding to whole counts 1/12.
            let expected = gain * gain * (electrons + read + 1.0 / 18.0) + 1.0 / 12.0;
            assert!((moment(2) / expected - 1.0).abs() < 0.03, "variance {}, expected {expected}", moment(2));
            // Skewness of a Poisson variate with a normal one added.
            let expected = electrons / (electrons + read).powf(1.5);
            let skewness = moment(3) / moment(2).powf(1.5);
            assert!((skewness - expected).abs() < 0.05, "skewness {skewness}, expected {expected}");
        }
    }

    #[test]
    fn saturation_and_darkness_stay_in_range() {
        let mut noise = Random::new(3, 1, 4);
        assert_eq!(expose(1e9, &mut noise), u16::MAX);
        assert!(expose(0.0, &mut noise) > 0);
    }

    #[test]
    fn blur_spreads_and_loses_nothing() {
        let mut plane = vec![0.0; 41 * 31];
        plane[15 * 41 + 20] = 100.0;
        blur(&mut plane, 41, 2.0);
        let total: f32 = plane.iter().sum();
        assert!((total - 100.0).abs() < 0.01, "{total}");
        // The centre of a Gaussian is 1 / (2 pi sigma^2).
        assert!((plane[15 * 41 + 20] / 100.0 - 0.0398).abs() < 0.001);
        let variance: f32 = plane
            .iter()
            .enumerate()
            .map(|(i, &v)| v / 100.0 * ((i % 41) as f32 - 20.0) * ((i % 41) as f32 - 20.0))
            .sum();
        assert!((variance - 4.0).abs() < 0.2, "{variance}");
        let mut one = vec![5.0];
        blur(&mut one, 1, 3.0);
        assert!((one[0] - 5.0).abs() < 1e-5);
    }

    #[test]
    fn exponential_is_right() {
        for x in [0.0, -0.1, -1.0, -4.5, -9.0] {
            assert!((exp(x) - f64::exp(x)).abs() < 1e-3, "{x}");
        }
        assert_eq!(exp(-1e9), 0.0);
    }
}
