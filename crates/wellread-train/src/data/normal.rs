//! The normalisation of intensities: one factor and summand per image.

use super::Pairs;
use crate::config::Normalization;
use anyhow::{Result, ensure};
use wellread_loader::{Dataset, ItemContext};

/// Means and deviations of images and targets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Normal {
    /// For each row the mean and deviation of the image.
    images: Vec<[f64; 2]>,
    /// The same of the target; empty for masks.
    targets: Vec<[f64; 2]>,
    /// Those of the set, where these are used: image, target.
    pub set: Option<[[f64; 2]; 2]>,
}

/// Mean and deviation of one channel of an image.
fn moments(set: &Dataset, row: usize, channel: usize, context: &mut ItemContext) -> Result<[f64; 2]> {
    let image = Pairs::read(set, row, channel, context)?;
    let n = image.data.len() as f64;
    let mean = image.data.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
    let variance = image.data.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
    ensure!(
        mean.is_finite() && variance.is_finite(),
        "{}: row {row}: the image holds numbers that are not finite: clean it before training",
        set.store().path().display()
    );
    Ok([mean, variance.sqrt()])
}

/// Mean and deviation of images of equal weight, of those of each.
fn pooled(all: impl Iterator<Item = [f64; 2]> + Clone) -> [f64; 2] {
    let n = all.clone().count().max(1) as f64;
    let mean = all.clone().map(|[mean, _]| mean).sum::<f64>() / n;
    let variance = all.map(|[m, deviation]| deviation * deviation + (m - mean).powi(2)).sum::<f64>() / n;
    [mean, variance.sqrt()]
}

impl Normal {
    /// Looks at all images (and targets, unless these are masks). `set` is that of a checkpoint, if there is one.
    ///
    /// # Errors
    /// Pixels that cannot be read or are not finite.
    pub fn of(pairs: &Pairs, masks: bool, how: Normalization, set: Option<[[f64; 2]; 2]>) -> Result<Self> {
        let rows = pairs.names.len();
        let same = |moments: [f64; 2]| vec![moments; rows];
        let targets = pairs.targets.as_ref().filter(|_| !masks);
        match (how, set) {
            (Normalization::None, _) => {
                Ok(Self { images: same([0.0, 1.0]), targets: same([0.0, 1.0]), set: None })
            }
            (Normalization::Set, Some(set)) => {
                Ok(Self { images: same(set[0]), targets: same(set[1]), set: Some(set) })
            }
            _ => {
                let mut context = ItemContext::new();
                let mut all = |dataset: &Dataset, channel| {
                    (0..rows)
                        .map(|row| moments(dataset, row, channel, &mut context))
                        .collect::<Result<Vec<_>>>()
                };
                let images = all(&pairs.images, pairs.channels[0])?;
                let targets = targets.map(|t| all(t, pairs.channels[1])).transpose()?.unwrap_or_default();
                if how == Normalization::Image {
                    return Ok(Self { images, targets, set: None });
                }
                let training = |all: &[[f64; 2]]| {
                    if all.is_empty() {
                        [0.0, 1.0]
                    } else {
                        pooled(pairs.training.iter().map(|&row| all[row]))
                    }
                };
                let set = [training(&images), training(&targets)];
                Ok(Self { images: same(set[0]), targets: same(set[1]), set: Some(set) })
            }
        }
    }

    /// Factor and summand of the image of a row.
    pub fn image(&self, row: usize) -> [f32; 2] {
        affine(self.images[row])
    }

    /// Factor and summand of its target; masks stay as they are.
    pub fn target(&self, row: usize) -> [f32; 2] {
        self.targets.get(row).map_or([1.0, 0.0], |&moments| affine(moments))
    }
}

/// `(v - mean) / deviation` as factor and summand; an image of one value becomes 0.
fn affine([mean, deviation]: [f64; 2]) -> [f32; 2] {
    let factor = if deviation > 0.0 { 1.0 / deviation } else { 1.0 };
    [factor as f32, (-mean * factor) as f32]
}

/// `v * factor + summand` in place.
pub fn apply(values: &mut [f32], [factor, summand]: [f32; 2]) {
    for v in values {
        *v = *v * factor + summand;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pooled_moments_are_those_of_all_values() {
        // Two images: {0, 2} and {3, 7}.
        let [mean, deviation] = pooled([[1.0, 1.0], [5.0, 2.0]].into_iter());
        assert!((mean - 3.0).abs() < 1e-12 && (deviation.powi(2) - 6.5).abs() < 1e-12);
        assert_eq!(affine([4.0, 2.0]), [0.5, -2.0]);
        assert_eq!(affine([4.0, 0.0]), [1.0, -4.0]);
    }
}
