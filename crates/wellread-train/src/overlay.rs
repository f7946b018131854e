//! Pictures of predictions, for people.

use crate::net::Tensor;
use anyhow::{Context as _, Result};
use std::path::Path;
use wellread_store::preview::Preview;

const TRUTH: [u8; 3] = [40, 220, 60];
const OURS: [u8; 3] = [240, 60, 220];
const BOTH: [u8; 3] = [255, 255, 255];

/// The middle plane of a one-channel tensor's first image: height, width, values.
fn plane(t: &Tensor) -> (usize, usize, &[f32]) {
    let [_, d, h, w, _] = t.shape;
    (h, w, &t.data[d / 2 * h * w..][..h * w])
}

/// Grey levels from the 0.5th to the 99.8th percentile.
fn grey(values: &[f32]) -> Vec<u8> {
    let mut sorted: Vec<f32> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f32::total_cmp);
    let at =
        |p: f64| sorted.get((sorted.len().saturating_sub(1) as f64 * p) as usize).copied().unwrap_or(0.0);
    let (low, high) = (at(0.005), at(0.998));
    let range = if high > low { high - low } else { 1.0 };
    values.iter().map(|v| ((v - low) / range * 255.0).clamp(0.0, 255.0) as u8).collect()
}

/// Whether pixel `i` belongs to the mask and one of its four neighbours does not.
fn on_outline(mask: &[bool], (h, w): (usize, usize), i: usize) -> bool {
    let (y, x) = (i / w, i % w);
    mask[i]
        && !((y == 0 || mask[i - w])
            && (y + 1 == h || mask[i + w])
            && (x == 0 || mask[i - 1])
            && (x + 1 == w || mask[i + 1]))
}

/// The image in grey with the outlines of two masks: the truth's green, ours magenta, white where they agree.
pub fn outlines(image: &Tensor, truth: &Tensor, ours: &Tensor, least: f32) -> Preview {
    let (height, width, values) = plane(image);
    let mask = |t: &Tensor, least: f32| plane(t).2.iter().map(|&v| v >= least).collect::<Vec<_>>();
    let (truth, ours) = (mask(truth, 0.5), mask(ours, least));
    let size = (height, width);
    let colour = |(i, v): (usize, u8)| match (on_outline(&truth, size, i), on_outline(&ours, size, i)) {
        (true, true) => BOTH,
        (true, false) => TRUTH,
        (false, true) => OURS,
        (false, false) => [v; 3],
    };
    let rgb = grey(values).into_iter().enumerate().flat_map(colour).collect();
    Preview { width, height, rgb }
}

/// Image, truth and prediction side by side.
pub fn side_by_side(image: &Tensor, truth: &Tensor, ours: &Tensor) -> Preview {
    let (height, width, _) = plane(image);
    let pictures = [image, truth, ours].map(|t| grey(plane(t).2));
    let row = |y: usize| pictures.iter().flat_map(move |p| &p[y * width..][..width]);
    let rgb = (0..height).flat_map(row).flat_map(|&v| [v; 3]).collect();
    Preview { width: 3 * width, height, rgb }
}

/// Writes a picture as PNG.
///
/// # Errors
/// A file that cannot be written.
pub fn write(path: &Path, picture: &Preview) -> Result<()> {
    let png = picture.to_png().context("the overlay")?;
    wellread_store::staged::write(path, png).context("the overlay")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outlines_are_the_edges_of_masks() {
        let image = Tensor::zeros([1, 1, 5, 5, 1]);
        let mut truth = image.clone();
        let mut ours = image.clone();
        for y in 1..4 {
            for x in 1..4 {
                truth.data[y * 5 + x] = 1.0;
            }
        }
        ours.data[7] = 1.0;
        ours.data[0] = 1.0;
        let picture = outlines(&image, &truth, &ours, 0.5);
        let at = |y: usize, x: usize| &picture.rgb[(y * 5 + x) * 3..][..3];
        assert_eq!(
            (at(1, 1), at(1, 2), at(0, 0), at(2, 2), at(4, 4)),
            (&TRUTH[..], &BOTH[..], &OURS[..], &[0; 3][..], &[0; 3][..])
        );
        assert_eq!(side_by_side(&image, &truth, &ours).width, 15);
    }
}
