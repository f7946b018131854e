//! From what a model gave to features: a row of numbers per image.
//!
//! ```text
//!  [N, F]        ─────────────▶ N x F
//!  [N, C, H, W]  ── Mean ─────▶ N x C   the mean of each map
//!  [N, T, F]     ── Mean ─────▶ N x F   the mean over the tokens
//! ```

use anyhow::{Result, bail, ensure};
use std::str::FromStr;
use wellread_store::words::counted;

/// The treatment of outputs with more axes than images and features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pool {
    /// They are refused.
    #[default]
    None,
    /// The mean of each feature map, or over the tokens of a transformer.
    Mean,
}

impl Pool {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::None, Self::Mean];

    /// Name of `--pool`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Mean => "mean",
        }
    }
}

impl FromStr for Pool {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|pool| pool.name() == text);
        found.ok_or_else(|| format!("{text:?} is no way to pool; there are none and mean"))
    }
}

/// Features of some images.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Features {
    /// Features of an image; at least one.
    pub width: usize,
    /// Image after image.
    pub values: Vec<f32>,
}

impl Features {
    /// Features of the first `count` images of a batch of `batch`, of outputs of these axes.
    ///
    /// # Errors
    /// Outputs that are not one per image, that have nothing in them, or that are feature maps and are not pooled.
    pub fn of(
        axes: &[usize],
        mut values: Vec<f32>,
        (batch, count): (usize, usize),
        pool: Pool,
    ) -> Result<Self> {
        ensure!(
            axes.first() == Some(&batch),
            "the model gave outputs of {} for {} (hint: the first axis of the output must be that of the images)",
            shape(axes),
            counted(batch, "image")
        );
        let rest = &axes[1..];
        let all = rest.iter().try_fold(1usize, |n, &axis| n.checked_mul(axis)).unwrap_or(0);
        ensure!(
            all > 0 && values.len() == all.saturating_mul(batch),
            "the model gave outputs of {}, in which there are no features",
            shape(axes)
        );
        values.truncate(all * count);
        let wide = rest.iter().filter(|&&axis| axis > 1).count();
        match (pool, rest) {
            (_, _) if wide <= 1 => Ok(Self { width: all, values }),
            (Pool::None, _) => bail!(
                "the model gives {} for {}: feature maps or tokens, not a row of features per image (hint: --pool mean \
                 takes their mean, --model-output names another output of an ONNX file)",
                shape(axes),
                counted(batch, "image")
            ),
            (Pool::Mean, &[tokens, width]) => {
                let images = values.chunks_exact(all);
                Ok(Self {
                    width,
                    values: images.flat_map(|image| mean_of_rows(image, tokens, width)).collect(),
                })
            }
            (Pool::Mean, maps) => {
                let pixels = all / maps[0];
                Ok(Self { width: maps[0], values: values.chunks_exact(pixels).map(mean).collect() })
            }
        }
    }

    /// By image, the first of its features that is NaN or infinite: image, feature, value.
    pub fn not_finite(&self) -> impl Iterator<Item = (usize, usize, f32)> {
        self.values.chunks_exact(self.width).enumerate().filter_map(|(image, features)| {
            let at = features.iter().position(|value| !value.is_finite())?;
            Some((image, at, features[at]))
        })
    }

    /// Those of some of the images, by their places.
    pub fn only(&self, images: &[usize]) -> Self {
        let of = |&image: &usize| &self.values[image * self.width..(image + 1) * self.width];
        Self { width: self.width, values: images.iter().flat_map(of).copied().collect() }
    }
}

/// Axes in words, such as `8 x 512 x 7 x 7`.
fn shape(axes: &[usize]) -> String {
    if axes.is_empty() {
        return "one number".to_owned();
    }
    axes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ")
}

fn mean(values: &[f32]) -> f32 {
    (values.iter().map(|&value| f64::from(value)).sum::<f64>() / values.len() as f64) as f32
}

fn mean_of_rows(values: &[f32], rows: usize, width: usize) -> Vec<f32> {
    let mut sums = vec![0f64; width];
    for row in values.chunks_exact(width) {
        for (sum, &value) in sums.iter_mut().zip(row) {
            *sum += f64::from(value);
        }
    }
    sums.into_iter().map(|sum| (sum / rows as f64) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_taken_as_they_are_and_maps_by_their_means() {
        let values = || vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 9.0];
        let rows = Features::of(&[2, 4], values(), (2, 2), Pool::None).unwrap();
        assert_eq!(rows, Features { width: 4, values: values() });
        // Axes of one number are none; images that only fill a batch up are left out.
        let squeezed = Features::of(&[2, 4, 1, 1], values(), (2, 1), Pool::None).unwrap();
        assert_eq!(squeezed, Features { width: 4, values: vec![1.0, 2.0, 3.0, 4.0] });
        let maps = Features::of(&[1, 2, 2, 2], values(), (1, 1), Pool::Mean).unwrap();
        assert_eq!(maps, Features { width: 2, values: vec![2.5, 6.75] });
        let tokens = Features::of(&[2, 2, 2], values(), (2, 2), Pool::Mean).unwrap();
        assert_eq!(tokens, Features { width: 2, values: vec![2.0, 3.0, 6.0, 7.5] });
        let single = Features::of(&[8], values(), (8, 8), Pool::Mean).unwrap();
        assert_eq!((single.width, single.values.len()), (1, 8));
    }

    #[test]
    fn outputs_that_are_no_features_are_refused() {
        let said = |axes: &[usize], batch, pool| {
            let values = vec![0.0; axes.iter().product()];
            Features::of(axes, values, (batch, batch), pool).unwrap_err().to_string()
        };
        assert!(said(&[2, 3, 2, 2], 2, Pool::None).contains("2 x 3 x 2 x 2 for 2 images"));
        assert!(said(&[2, 3, 2, 2], 2, Pool::None).contains("--pool mean"));
        assert!(said(&[1, 4], 2, Pool::Mean).contains("1 x 4 for 2 images"));
        assert!(said(&[], 2, Pool::None).contains("one number for 2 images"));
        assert!(said(&[2, 0], 2, Pool::None).contains("no features"));
        assert!("median".parse::<Pool>().unwrap_err().contains("mean"));
    }

    #[test]
    fn numbers_that_are_none_are_found() {
        let features = Features { width: 2, values: vec![1.0, 2.0, 3.0, f32::NAN, f32::INFINITY, 0.0] };
        let found: Vec<_> = features.not_finite().map(|(image, at, _)| (image, at)).collect();
        assert_eq!(found, [(1, 1), (2, 0)]);
        assert_eq!(features.only(&[0]), Features { width: 2, values: vec![1.0, 2.0] });
    }
}
