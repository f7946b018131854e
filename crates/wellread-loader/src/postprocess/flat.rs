//! Channels of one value, where rounding may tell their pixels apart.
//!
//! The weights of a resize are single-precision numbers, so their sum is 1 but for rounding. A channel of one value comes out as
//! several, which differ in their last bits. Scaled by their own spread they would be noise.

use super::channel::Channel;

/// How far a resize moves values apart by rounding, as a share of the largest.
const ROUNDING: f64 = 2e-6;

/// Whether two values, the lower one first, are one but for the rounding of a resize.
fn are_one([low, high]: [f64; 2]) -> bool {
    high - low <= ROUNDING * low.abs().max(high.abs())
}

/// Ends to scale between; of a resized image the same number twice where they are one but for rounding.
pub(super) fn without_rounding(ends: [f64; 2], is_resampled: bool) -> [f64; 2] {
    if is_resampled && are_one(ends) { [ends[0]; 2] } else { ends }
}

/// Makes the finite values of a resized channel 0 where they are one but for rounding. Returns whether they are. `mean` and
/// `variance` are theirs: where those say that values differ, none is looked at.
pub(super) fn zero_if_one(channel: &mut Channel<'_>, mean: f64, variance: f64) -> bool {
    if variance.sqrt() > ROUNDING * mean.abs() {
        return false;
    }
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in channel.runs().flatten().filter(|v| v.is_finite()) {
        low = low.min(f64::from(*value));
        high = high.max(f64::from(*value));
    }
    if low > high || !are_one([low, high]) {
        return false;
    }
    for (_, run) in channel.runs_mut() {
        run.iter_mut().filter(|v| v.is_finite()).for_each(|v| *v = 0.0);
    }
    true
}

/// Scales where the percentiles are equal: finite values become 0. Infinite ones go to the ends as elsewhere, where a
/// factor of 0 would make them NaN.
pub(super) fn flatten(channel: &mut Channel<'_>) {
    for (_, run) in channel.runs_mut() {
        for v in run {
            *v = if v.is_nan() { *v } else { f32::from(*v == f32::INFINITY) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rounding_tells_apart_is_one_value() {
        let next = f32::from_bits(200f32.to_bits() + 1);
        let zeroed = |values: &[f32], mean: f64, variance: f64| {
            let mut floats = values.to_vec();
            let len = floats.len();
            let mut channel = Channel { floats: &mut floats, stride: len, start: 0, len };
            let is_one = zero_if_one(&mut channel, mean, variance);
            (is_one, floats)
        };
        let (is_one, floats) = zeroed(&[200.0, next, f32::INFINITY, 200.0], 200.0, 1e-10);
        assert_eq!((is_one, floats), (true, vec![0.0, 0.0, f32::INFINITY, 0.0]));
        // One pixel of many that differs by more is a value of its own, however small the variance.
        let values = [200.0, 200.0, 200.1];
        assert_eq!(zeroed(&values, 200.0, 1e-10), (false, values.to_vec()));
        assert_eq!(zeroed(&[f32::INFINITY], 0.0, 0.0), (false, vec![f32::INFINITY]));
        let near = [200.0, f64::from(next)];
        assert_eq!((without_rounding(near, true), without_rounding(near, false)), ([200.0; 2], near));
        assert_eq!(without_rounding([200.0, 200.1], true), [200.0, 200.1]);
        assert_eq!(without_rounding([0.0, 1e-9], true), [0.0, 1e-9]);
    }
}
