//! Weights of one axis: which source pixels make each output pixel, and how much of each.

use crate::transform::Filter;

/// Weights of the source pixels that make each output pixel along one axis.
#[derive(Debug, Default)]
pub(super) struct Axis {
    /// The key of the table: source length, output length, filter.
    made_for: (usize, usize, Filter),
    /// First source pixel and first weight of each output pixel, and one more for the end of the weights.
    spans: Vec<(usize, usize)>,
    weights: Vec<f32>,
}

impl Axis {
    /// Makes the table, unless it is the one that there is. Returns whether it is another one than before.
    pub(super) fn prepare(&mut self, from: usize, to: usize, filter: Filter) -> bool {
        if self.made_for == (from, to, filter) {
            return false;
        }
        self.spans.clear();
        self.weights.clear();
        let ratio = from as f64 / to as f64;
        for i in 0..to {
            if filter == Filter::Area && from > to {
                let (low, high) = (i as f64 * ratio, (i + 1) as f64 * ratio);
                // Overlaps of less than the margin come from rounding, and a weight of zero would still
                // carry a NaN over.
                let margin = 1e-9;
                let first = ((low + margin) as usize).min(from - 1);
                let last = ((high - margin).ceil() as usize).clamp(first + 1, from);
                self.spans.push((first, self.weights.len()));
                self.weights.extend((first..last).map(|s| {
                    let overlap = high.min((s + 1) as f64) - low.max(s as f64);
                    (overlap / ratio) as f32
                }));
            } else if filter == Filter::Antialias && from > to {
                // A triangle of two output pixels' width; where the image ends, what is inside counts for all.
                let middle = (i as f64 + 0.5) * ratio;
                let first = ((middle - ratio + 0.5).max(0.0) as usize).min(from - 1);
                let last = ((middle + ratio + 0.5) as usize).clamp(first + 1, from);
                let weight = |s: usize| (1.0 - ((s as f64 + 0.5 - middle) / ratio).abs()).max(0.0);
                let total: f64 = (first..last).map(weight).sum();
                self.spans.push((first, self.weights.len()));
                self.weights.extend((first..last).map(|s| (weight(s) / total) as f32));
            } else {
                let at = ((i as f64 + 0.5) * ratio - 0.5).clamp(0.0, (from - 1) as f64);
                // `f64::fract` is a call into the C library below SSE4.1.
                let first = at as usize;
                let fraction = (at - first as f64) as f32;
                self.spans.push((first, self.weights.len()));
                if fraction == 0.0 {
                    self.weights.push(1.0);
                } else {
                    self.weights.extend([1.0 - fraction, fraction]);
                }
            }
        }
        self.spans.push((0, self.weights.len()));
        self.made_for = (from, to, filter);
        true
    }

    /// Length of the source.
    pub(super) fn source(&self) -> usize {
        self.made_for.0
    }

    /// Whether there are more output pixels than source pixels, or as many. Then each is made of two neighbours at most, and no
    /// two neighbouring outputs are further apart in the source than one pixel.
    pub(super) fn grows(&self) -> bool {
        self.made_for.0 <= self.made_for.1
    }

    /// Number of output pixels.
    pub(super) fn len(&self) -> usize {
        self.made_for.1
    }

    /// The most source pixels that make an output pixel.
    pub(super) fn most_taps(&self) -> usize {
        self.spans.windows(2).map(|pair| pair[1].1 - pair[0].1).max().unwrap_or(0)
    }

    /// First source pixel and weights of output pixel `i`.
    #[inline(always)]
    pub(super) fn taps(&self, i: usize) -> (usize, &[f32]) {
        let (first, start) = self.spans[i];
        (first, &self.weights[start..self.spans[i + 1].1])
    }
}
