//! Number, mean and spread of values, plane by plane, merged in a fixed order.

use super::bins::Counts;
use serde::{Deserialize, Serialize};
use wellread_image::PixelType;

/// Largest value whose square, of many values, is summed as it is.
const LARGE: f64 = 1e140;
/// Largest of the values whose squares would be too small to sum.
const SMALL: f64 = 1e-140;

/// Number, mean, sum of squared distances from it, extremes, and the number of values that are not finite. Mean and
/// squares are those of the values divided by `scale`: 1, but where squares would be too large or too small for `f64`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "[u64; 8]", from = "[u64; 8]")]
pub(super) struct Moments {
    pub(super) count: u64,
    mean: f64,
    squares: f64,
    /// A power of two.
    scale: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) nan: u64,
    pub(super) infinite: u64,
}

impl From<Moments> for [u64; 8] {
    /// All bits of each number: text of numbers has no infinity.
    fn from(of: Moments) -> Self {
        let Moments { count, mean, squares, scale, min, max, nan, infinite } = of;
        let [mean, squares, scale, min, max] = [mean, squares, scale, min, max].map(f64::to_bits);
        [count, mean, squares, scale, min, max, nan, infinite]
    }
}

impl From<[u64; 8]> for Moments {
    fn from([count, mean, squares, scale, min, max, nan, infinite]: [u64; 8]) -> Self {
        let [mean, squares, scale, min, max] = [mean, squares, scale, min, max].map(f64::from_bits);
        Self { count, mean, squares, scale, min, max, nan, infinite }
    }
}

impl Moments {
    pub(super) const NONE: Self = Self {
        count: 0,
        mean: 0.0,
        squares: 0.0,
        scale: 1.0,
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
        nan: 0,
        infinite: 0,
    };

    /// Those of all values of two sets (Chan, Golub & LeVeque 1979).
    pub(super) fn merge(self, other: Self) -> Self {
        // Zeros have any scale. Beside larger values, what is too small to square does not matter.
        let scale = if self.is_zero() {
            other.scale
        } else if other.is_zero() {
            self.scale
        } else {
            self.scale.max(other.scale)
        };
        let (this, other) = (self.at(scale), other.at(scale));
        this.merge_alike(other)
    }

    /// The mean.
    pub(super) fn mean(&self) -> f64 {
        self.mean * self.scale
    }

    /// The standard deviation of the population.
    pub(super) fn std(&self) -> f64 {
        (self.squares / self.count.max(1) as f64).sqrt() * self.scale
    }

    fn is_zero(&self) -> bool {
        self.mean == 0.0 && self.squares == 0.0
    }

    /// The same by another scale.
    fn at(self, scale: f64) -> Self {
        let ratio = self.scale / scale;
        Self { mean: self.mean * ratio, squares: self.squares * ratio * ratio, scale, ..self }
    }

    /// [`Self::merge`] of two of one scale.
    fn merge_alike(self, other: Self) -> Self {
        let count = self.count + other.count;
        let share = other.count as f64 / (count as f64).max(1.0);
        let apart = other.mean - self.mean;
        Self {
            count,
            mean: self.mean + apart * share,
            squares: self.squares + other.squares + apart * apart * self.count as f64 * share,
            scale: self.scale,
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            nan: self.nan + other.nan,
            infinite: self.infinite + other.infinite,
        }
    }

    /// Those of a plane of 32 bits and more, whose values are counted as well.
    pub(super) fn of_wide(dtype: PixelType, data: &[u8], counts: &mut Counts) -> Self {
        macro_rules! of {
            ($type:ty) => {{
                let (pixels, _) = data.as_chunks::<{ size_of::<$type>() }>();
                Self::of_values(pixels.iter().map(|pixel| <$type>::from_le_bytes(*pixel) as f64), counts)
            }};
        }
        match dtype {
            PixelType::U32 => of!(u32),
            PixelType::I32 => of!(i32),
            PixelType::F32 => of!(f32),
            PixelType::F64 => of!(f64),
            PixelType::U8 | PixelType::I8 | PixelType::U16 | PixelType::I16 => {
                unreachable!("every value of these is counted")
            }
        }
    }

    fn of_values(values: impl Iterator<Item = f64> + Clone, counts: &mut Counts) -> Self {
        // Sums of distances from one of the values do not cancel.
        let pivot = values.clone().find(|v| v.is_finite()).unwrap_or(0.0);
        let mut found = Self::NONE;
        let (mut sum, mut squares) = (0.0, 0.0);
        for value in values.clone() {
            if value.is_finite() {
                let apart = value - pivot;
                sum += apart;
                squares += apart * apart;
                found.min = found.min.min(value);
                found.max = found.max.max(value);
                found.count += 1;
                counts.count_wide(value);
            } else if value.is_nan() {
                found.nan += 1;
            } else {
                found.infinite += 1;
            }
        }
        let largest = found.max.max(-found.min);
        if found.count > 0 && largest != 0.0 && !(SMALL..LARGE).contains(&largest) {
            // The power of two in the largest value.
            let power = f64::from_bits(largest.to_bits() & f64::INFINITY.to_bits()).max(f64::MIN_POSITIVE);
            found.scale = power;
            let pivot = pivot / power;
            (sum, squares) = (0.0, 0.0);
            for value in values.filter(|v| v.is_finite()) {
                let apart = value / power - pivot;
                sum += apart;
                squares += apart * apart;
            }
        }
        if found.count > 0 {
            let mean = sum / found.count as f64;
            found.mean = pivot / found.scale + mean;
            found.squares = (squares - mean * sum).max(0.0);
        }
        found
    }

    /// Those of counted values.
    pub(super) fn of_counts(counts: &Counts) -> Self {
        let mut found = Self::NONE;
        let mut sum = 0i128;
        let values = counts.values();
        for &(value, n) in &values {
            // Whole numbers: exact.
            sum += value as i128 * i128::from(n);
            found.count += n;
            found.min = found.min.min(value);
            found.max = found.max.max(value);
        }
        if found.count > 0 {
            found.mean = sum as f64 / found.count as f64;
            let apart = |&(value, n): &(f64, u64)| (value - found.mean) * (value - found.mean) * n as f64;
            found.squares = values.iter().map(apart).sum();
        }
        found
    }
}
