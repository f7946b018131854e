//! Whole images through the network: at once, or in overlapping tiles.
//!
//! ```text
//! image, padded ─▶ tiles: core + reach on every side ─▶ network ─▶ cores side by side ─▶ result of the image's size
//! ```
//!
//! A tile overlaps its neighbours by as many pixels as a result depends on. So the result is the one that the whole
//! image at once would give (except with instance normalisation, whose statistics are those of the tile). Planes are
//! never cut.

use crate::net::{Tensor, Unet};
use anyhow::Result;

/// First pixel and length of the cores along an axis of `n` pixels, none longer than `core`.
fn cores(n: usize, core: usize) -> Vec<(usize, usize)> {
    (0..n).step_by(core).map(|at| (at, core.min(n - at))).collect()
}

/// The network's result for images of `N x D x H x W x C`, with no more than `tile` rows and columns at a time.
///
/// # Errors
/// Other channels than the network's.
pub fn whole(net: &Unet, images: &Tensor, tile: usize) -> Result<Tensor> {
    let [n, d, h, w, _] = images.shape;
    let step = 1usize << net.spec().depth;
    if h <= tile && w <= tile {
        return net.logits(images);
    }
    let [pd, ph, pw] = net.padded_size([d, h, w]);
    let padded = images.window([0, 0, 0], [pd, ph, pw]);
    let overlap = net.reach().next_multiple_of(step);
    // A tile of which nothing is left when the overlaps are gone has a core nevertheless.
    let core = tile.saturating_sub(2 * overlap).max(tile / 2).next_multiple_of(step);
    let mut out = Tensor::zeros([n, d, h, w, net.spec().c_out]);
    let c = net.spec().c_out;
    for (y, rows) in cores(ph, core) {
        for (x, columns) in cores(pw, core) {
            let (top, left) = (y.saturating_sub(overlap), x.saturating_sub(overlap));
            let (bottom, right) = ((y + rows + overlap).min(ph), (x + columns + overlap).min(pw));
            let part = padded.window([0, top as isize, left as isize], [pd, bottom - top, right - left]);
            let logits = net.logits(&part)?;
            let [_, _, part_h, part_w, _] = logits.shape;
            let (rows, columns) = (rows.min(h.saturating_sub(y)), columns.min(w.saturating_sub(x)));
            for image in 0..n * d {
                let (of, z) = (image / d, image % d);
                for row in 0..rows {
                    let from = (((of * pd + z) * part_h + y - top + row) * part_w + x - left) * c;
                    let to = ((image * h + y + row) * w + x) * c;
                    out.data[to..to + columns * c].copy_from_slice(&logits.data[from..from + columns * c]);
                }
            }
        }
    }
    Ok(out)
}

/// Pixels that go through the network at once, of an image of `[D, H, W]` in tiles of `tile`: for estimates of memory.
pub fn pixels_at_once(net_reach: usize, [d, h, w]: [usize; 3], tile: usize) -> f64 {
    let side = |n: usize| n.min(tile.max(tile / 2 + 2 * net_reach)) as f64;
    d as f64 * side(h) * side(w)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{NormKind, UnetSpec};
    use wellread_model::init::Uniform;

    #[test]
    fn tiles_give_what_the_whole_image_gives() {
        for (dimensions, shape) in [(2, [2, 1, 75, 90, 1]), (3, [1, 3, 70, 41, 1])] {
            let spec = UnetSpec { dimensions, c_in: 1, c_out: 1, width: 2, depth: 1, norm: NormKind::Batch };
            let net = Unet::new(spec, 1).unwrap();
            let mut uniform = Uniform::new(1, 1);
            let data = (0..shape.iter().product()).map(|_| uniform.next_within(1.0)).collect();
            let images = Tensor::new(data, shape).unwrap();
            let expected = net.logits(&images).unwrap();
            for tile in [32, 50, 80] {
                let tiled = whole(&net, &images, tile).unwrap();
                let far =
                    tiled.data.iter().zip(&expected.data).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(far < 1e-5, "{dimensions}D in tiles of {tile}: {far}");
            }
        }
    }
}
