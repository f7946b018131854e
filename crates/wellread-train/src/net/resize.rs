//! Halving and doubling: max-pooling over 2 x 2 (x 2) pixels, and nearest-neighbour doubling joined with a skip
//! connection.

use super::tensor::Tensor;
use rayon::prelude::*;

/// Lengths of D, H and W after halving; `planes`: whether D is halved too.
pub const fn halved([d, h, w]: [usize; 3], planes: bool) -> [usize; 3] {
    [if planes { d / 2 } else { d }, h / 2, w / 2]
}

/// The maximum of each 2 x 2 (x 2) box, and which of its pixels that was (the first of equals), for [`unpool`].
///
/// The axes that are halved must be even.
pub fn pool(x: &Tensor, planes: bool) -> (Tensor, Vec<u8>) {
    let [n, d, h, w, c] = x.shape;
    let [od, oh, ow] = halved([d, h, w], planes);
    let mut out = Tensor::zeros([n, od, oh, ow, c]);
    let mut which = vec![0u8; out.data.len()];
    let row = (ow * c).max(1);
    let pairs = out.data.par_chunks_mut(row).zip(which.par_chunks_mut(row)).enumerate();
    pairs.for_each(|(i, (out, which))| {
        let (y, z, n) = (i % oh, i / oh % od, i / oh / od);
        out.fill(f32::NEG_INFINITY);
        for k in 0..if planes { 8 } else { 4 } {
            let z = if planes { 2 * z + k / 4 } else { z };
            let line = &x.data[((n * d + z) * h + 2 * y + k / 2 % 2) * w * c..][..w * c];
            let pixels = out.chunks_exact_mut(c).zip(which.chunks_exact_mut(c));
            for ((out, which), from) in pixels.zip(line.chunks_exact(2 * c)) {
                let from = &from[k % 2 * c..][..c];
                for ((out, which), &v) in out.iter_mut().zip(which).zip(from) {
                    // Not a number stays one, so that the loss tells.
                    if v > *out || v.is_nan() {
                        (*out, *which) = (v, k as u8);
                    }
                }
            }
        }
    });
    (out, which)
}

/// The gradient of [`pool`]'s input of `shape`, given that of its result.
pub fn unpool(gradient: &Tensor, which: &[u8], shape: [usize; 5], planes: bool) -> Tensor {
    let [_, d, h, w, c] = shape;
    let [od, oh] = [gradient.shape[1], gradient.shape[2]];
    let mut out = Tensor::zeros(shape);
    let row = gradient.shape[3] * c;
    out.data.par_chunks_mut((w * c).max(1)).enumerate().for_each(|(i, to)| {
        let (y, z, n) = (i % h, i / h % d, i / h / d);
        let oz = if planes { z / 2 } else { z };
        let at = ((n * od + oz) * oh + y / 2) * row;
        let (from, which) = (&gradient.data[at..][..row], &which[at..][..row]);
        let part = (if planes { z % 2 * 4 } else { 0 }) + y % 2 * 2;
        for (x, to) in to.chunks_exact_mut(c).enumerate() {
            let at = x / 2 * c;
            for (j, to) in to.iter_mut().enumerate() {
                if usize::from(which[at + j]) == part + x % 2 {
                    *to = from[at + j];
                }
            }
        }
    });
    out
}

/// `skip`'s channels, then those of `x`, each of whose pixels is repeated twice along H and W (and D).
pub fn double_and_join(x: &Tensor, skip: &Tensor, planes: bool) -> Tensor {
    let [n, d, h, w, c_skip] = skip.shape;
    let c = x.channels();
    let mut out = Tensor::zeros([n, d, h, w, c_skip + c]);
    out.data.par_chunks_mut(w * (c_skip + c)).enumerate().for_each(|(i, to)| {
        let (y, z) = (i % h, i / h % d);
        let below =
            ((i / h / d * x.shape[1] + if planes { z / 2 } else { z }) * x.shape[2] + y / 2) * x.shape[3];
        let beside = &skip.data[i * w * c_skip..][..w * c_skip];
        for (column, to) in to.chunks_exact_mut(c_skip + c).enumerate() {
            to[..c_skip].copy_from_slice(&beside[column * c_skip..][..c_skip]);
            to[c_skip..].copy_from_slice(&x.data[(below + column / 2) * c..][..c]);
        }
    });
    out
}

/// The gradients of [`double_and_join`]'s `x` and `skip` (of `c_skip` channels), given that of its result.
pub fn split_and_halve(gradient: &Tensor, c_skip: usize, planes: bool) -> (Tensor, Tensor) {
    let [n, d, h, w, both] = gradient.shape;
    let c = both - c_skip;
    let mut skip = Tensor::zeros([n, d, h, w, c_skip]);
    skip.data.par_chunks_mut(w * c_skip).zip(gradient.data.par_chunks(w * both)).for_each(|(to, from)| {
        for (to, from) in to.chunks_exact_mut(c_skip).zip(from.chunks_exact(both)) {
            to.copy_from_slice(&from[..c_skip]);
        }
    });
    let [od, oh, ow] = halved([d, h, w], planes);
    let mut x = Tensor::zeros([n, od, oh, ow, c]);
    x.data.par_chunks_mut((ow * c).max(1)).enumerate().for_each(|(i, to)| {
        let (y, z, n) = (i % oh, i / oh % od, i / oh / od);
        for k in 0..if planes { 8 } else { 4 } {
            let z = if planes { 2 * z + k / 4 } else { z };
            let line = &gradient.data[((n * d + z) * h + 2 * y + k / 2 % 2) * w * both..][..w * both];
            for (to, from) in to.chunks_exact_mut(c).zip(line.chunks_exact(2 * both)) {
                let from = &from[k % 2 * both + c_skip..][..c];
                to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
            }
        }
    });
    (x, skip)
}
