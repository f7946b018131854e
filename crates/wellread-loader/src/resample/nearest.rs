//! Resize and rotation of labels: of each output pixel the source pixel that it lies in, whatever its bytes are.
//!
//! Resize and rotation are one step. An output pixel is sent back by the rotation, mirrored at the edge as
//! [`super::rotate`] does, and then by the resize. So a label is read once, and its border is as sharp as it can be.

use super::mirror;

/// Takes the nearest pixels of a plane, `size` bytes each, of `from` (height, width). The plane is resized to `to` and
/// then rotated about its centre by `degrees` counter-clockwise.
pub(crate) fn nearest(
    size: usize,
    plane: &[u8],
    from: (usize, usize),
    to: (usize, usize),
    degrees: f32,
    out: &mut [u8],
) {
    match size {
        1 => sample::<1>(plane, from, to, degrees, out),
        2 => sample::<2>(plane, from, to, degrees, out),
        4 => sample::<4>(plane, from, to, degrees, out),
        _ => sample::<8>(plane, from, to, degrees, out),
    }
}

fn sample<const N: usize>(
    plane: &[u8],
    from: (usize, usize),
    to: (usize, usize),
    degrees: f32,
    out: &mut [u8],
) {
    let (plane, _) = plane.as_chunks::<N>();
    let (out, _) = out.as_chunks_mut::<N>();
    if degrees == 0.0 {
        for (y, row) in centres(from.0, to.0).zip(out.chunks_exact_mut(to.1)) {
            let source = &plane[y * from.1..][..from.1];
            for (x, pixel) in centres(from.1, to.1).zip(row) {
                *pixel = source[x];
            }
        }
        return;
    }
    let (sin, cos) = (degrees as f64).to_radians().sin_cos();
    let (middle_y, middle_x) = ((to.0 - 1) as f64 / 2.0, (to.1 - 1) as f64 / 2.0);
    for (y, row) in out.chunks_exact_mut(to.1).enumerate() {
        let dy = y as f64 - middle_y;
        // As `RotatePlane`: the position in the resized plane of column 0; each column further adds (cos, sin).
        let x0 = middle_x - cos * middle_x - sin * dy;
        let y0 = middle_y - sin * middle_x + cos * dy;
        for (x, pixel) in row.iter_mut().enumerate() {
            let along = x as f64;
            let source_y = part(y0 + sin * along, from.0, to.0);
            *pixel = plane[source_y * from.1 + part(x0 + cos * along, from.1, to.1)];
        }
    }
}

/// The source pixel that the centre of each output pixel of `to` lies in: `(2 i + 1) from / (2 to)`, without a division
/// for each.
fn centres(from: usize, to: usize) -> impl Iterator<Item = usize> {
    let (whole, rest) = (from / to, 2 * (from % to));
    let (mut pixel, mut past) = (from / (2 * to), from % (2 * to));
    (0..to).map(move |_| {
        let now = pixel;
        (pixel, past) = (pixel + whole, past + rest);
        if past >= 2 * to {
            (pixel, past) = (pixel + 1, past - 2 * to);
        }
        now
    })
}

/// The source pixel that a position between the pixels of `to` lies in, mirrored at the edge.
fn part(position: f64, from: usize, to: usize) -> usize {
    // Between the centres of two pixels the plane goes on beyond its edge as its mirror image.
    // `f64::floor` is a call into the C library below SSE4.1.
    let pixel = position as i64 - i64::from(position < (position as i64) as f64);
    let fraction = position - pixel as f64;
    let (a, b) = (mirror(pixel, to) as f64, mirror(pixel + 1, to) as f64);
    let inside = a + (b - a) * fraction;
    // Never below 0, so truncation rounds down.
    (((inside + 0.5) * (from as f64 / to as f64)) as usize).min(from - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// No new value appears. Without a rotation, each pixel is the one that its centre lies in; a quarter of a
        /// circle turns a square.
        #[test]
        fn pixels_are_taken_and_never_mixed(
            h in 1usize..20, w in 1usize..20, oh in 1usize..30, ow in 1usize..30, degrees in -180f32..180.0, wide: bool,
        ) {
            let labels: Vec<u16> = (0..h * w).map(|i| 1000 + i as u16).collect();
            let plane: Vec<u8> = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
            let run = |from, to: (usize, usize), degrees| {
                let mut out = vec![0u8; to.0 * to.1 * 2];
                nearest(2, &plane, from, to, degrees, &mut out);
                out.as_chunks::<2>().0.iter().map(|&label| u16::from_le_bytes(label)).collect::<Vec<u16>>()
            };
            let to = if wide { (h, w) } else { (oh, ow) };
            prop_assert!(run((h, w), to, degrees).iter().all(|label| labels.contains(label)));
            let straight = run((h, w), to, 0.0);
            for (i, label) in straight.iter().enumerate() {
                let at = |i: usize, from: usize, to: usize| ((i as f64 + 0.5) * from as f64 / to as f64 + 1e-9) as usize;
                let (y, x) = (at(i / to.1, h, to.0).min(h - 1), at(i % to.1, w, to.1).min(w - 1));
                prop_assert_eq!(*label, labels[y * w + x]);
            }
            // The smallest of angles moves nothing.
            prop_assert_eq!(run((h, w), (h, w), 1e-6), labels.clone());
            let side = h.min(w);
            let turned = run((side, side), (side, side), 90.0);
            for (i, label) in turned.iter().enumerate() {
                // As `numpy.rot90`: out[y][x] = in[x][side - 1 - y].
                let (y, x) = (i / side, i % side);
                prop_assert_eq!(*label, labels[x * side + side - 1 - y]);
            }
        }
    }
}
