//! Losses: a number to be made small, and its gradient with respect to the network's result.

use super::Tensor;
use anyhow::{Result, ensure};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Added to both sides of the Dice ratio, so that an empty image has a gradient.
const SMOOTH: f64 = 1.0;
/// Values that are summed in one go.
const SPAN: usize = 1 << 15;

/// The loss to minimise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Binary cross-entropy of the logits plus one minus the soft Dice coefficient of each image.
    BceDice,
    /// Mean squared difference.
    Mse,
    /// Mean absolute difference.
    L1,
}

/// The logistic function.
pub fn sigmoid(logit: f32) -> f32 {
    if logit >= 0.0 {
        1.0 / (1.0 + (-logit).exp())
    } else {
        let e = logit.exp();
        e / (1.0 + e)
    }
}

/// Sum of `term(i)` over all values: in double precision, in the same order whatever the number of threads.
fn sum<const K: usize>(range: std::ops::Range<usize>, term: impl Fn(usize) -> [f64; K] + Sync) -> [f64; K] {
    let spans: Vec<[f64; K]> = (range.start..range.end)
        .into_par_iter()
        .step_by(SPAN)
        .map(|first| {
            let mut part = [0.0; K];
            for i in first..(first + SPAN).min(range.end) {
                part.iter_mut().zip(term(i)).for_each(|(sum, value)| *sum += value);
            }
            part
        })
        .collect();
    let mut total = [0.0; K];
    for part in spans {
        total.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
    }
    total
}

impl Loss {
    /// The loss of `result` against `target` of the same shape, and its gradient with respect to `result`.
    ///
    /// # Errors
    /// Shapes that differ.
    pub fn of(self, result: &Tensor, target: &Tensor) -> Result<(f64, Tensor)> {
        ensure!(
            result.shape == target.shape && !result.data.is_empty(),
            "the target's shape {:?} is not the result's {:?}",
            target.shape,
            result.shape
        );
        let mut gradient = Tensor::zeros(result.shape);
        let (z, t) = (&result.data, &target.data);
        let n = z.len() as f64;
        let fill = |gradient: &mut [f32], first: usize, slope: &(dyn Fn(usize) -> f32 + Sync)| {
            gradient.par_chunks_mut(SPAN).enumerate().for_each(|(span, part)| {
                part.iter_mut().enumerate().for_each(|(i, g)| *g = slope(first + span * SPAN + i));
            });
        };
        let loss = match self {
            Self::Mse => {
                fill(&mut gradient.data, 0, &|i| (f64::from(z[i] - t[i]) * 2.0 / n) as f32);
                sum(0..z.len(), |i| [f64::from(z[i] - t[i]).powi(2)])[0] / n
            }
            Self::L1 => {
                fill(&mut gradient.data, 0, &|i| {
                    let difference = z[i] - t[i];
                    if difference == 0.0 { 0.0 } else { difference.signum() / n as f32 }
                });
                sum(0..z.len(), |i| [f64::from((z[i] - t[i]).abs())])[0] / n
            }
            Self::BceDice => {
                let (images, len) = (result.shape[0], result.image_len());
                let mut loss = 0.0;
                for (image, part) in gradient.data.chunks_exact_mut(len).enumerate() {
                    let first = image * len;
                    let [entropy, both, either] = sum(first..first + len, |i| {
                        let (z, t) = (f64::from(z[i]), f64::from(t[i]));
                        let p = f64::from(sigmoid(z as f32));
                        [z.max(0.0) - z * t + (-z.abs()).exp().ln_1p(), p * t, p + t]
                    });
                    let (above, below) = (2.0 * both + SMOOTH, either + SMOOTH);
                    loss += entropy / n + (1.0 - above / below) / images as f64;
                    fill(part, first, &|i| {
                        let (p, t) = (f64::from(sigmoid(z[i])), f64::from(t[i]));
                        let dice = (above - 2.0 * t * below) / (below * below) * p * (1.0 - p);
                        ((p - t) / n + dice / images as f64) as f32
                    });
                }
                loss
            }
        };
        Ok((loss, gradient))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_model::init::Uniform;

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let shape = [2, 1, 3, 5, 1];
        let mut uniform = Uniform::new(5, 0);
        let result = Tensor::new((0..30).map(|_| uniform.next_within(3.0)).collect(), shape).unwrap();
        let target = Tensor::new((0..30).map(|i| f32::from(u8::from(i % 3 == 0))).collect(), shape).unwrap();
        for loss in [Loss::BceDice, Loss::Mse, Loss::L1] {
            let (_, gradient) = loss.of(&result, &target).unwrap();
            for i in 0..30 {
                let at = |step: f32| {
                    let mut moved = result.clone();
                    moved.data[i] += step;
                    loss.of(&moved, &target).unwrap().0
                };
                let expected = (at(1e-2) - at(-1e-2)) / 2e-2;
                let found = f64::from(gradient.data[i]);
                assert!((found - expected).abs() < 2e-5, "{loss:?}[{i}]: {found} against {expected}");
            }
        }
        assert!(Loss::Mse.of(&result, &Tensor::zeros([1, 1, 3, 5, 1])).is_err());
    }

    #[test]
    fn extreme_logits_stay_finite() {
        let result = Tensor::new(vec![1e4, -1e4, 0.0, 88.0], [1, 1, 1, 4, 1]).unwrap();
        let target = Tensor::new(vec![0.0, 1.0, 1.0, 1.0], [1, 1, 1, 4, 1]).unwrap();
        let (loss, gradient) = Loss::BceDice.of(&result, &target).unwrap();
        assert!(loss.is_finite() && gradient.data.iter().all(|g| g.is_finite()));
    }
}
