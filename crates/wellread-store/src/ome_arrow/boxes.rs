//! Chunks and planes as boxes of their images.

use crate::words::counted_with;
use std::collections::HashSet;
use std::ops::Range;
use wellread_image::{Region, Shape};

/// A piece's box, compactly: origin along T, C, Z, Y, X and shape along Z, Y, X.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PieceBox {
    origin: [u32; 5],
    shape: [u32; 3],
}

impl PieceBox {
    /// The box, if it can be one: nothing negative, nothing empty.
    pub fn new(origin: [i64; 5], shape: [i64; 3]) -> Option<Self> {
        let (mut o, mut s) = ([0; 5], [0; 3]);
        for (to, from) in o.iter_mut().zip(origin) {
            *to = u32::try_from(from).ok()?;
        }
        for (to, from) in s.iter_mut().zip(shape) {
            *to = u32::try_from(from).ok().filter(|&n| n > 0)?;
        }
        Some(Self { origin: o, shape: s })
    }

    /// As a region of its image.
    pub fn region(&self) -> Region {
        let [z, y, x] = self.shape.map(|n| n as usize);
        Region { start: self.origin.map(|n| n as usize), size: [1, 1, z, y, x] }
    }

    /// Number of pixels; `None` beyond 64 bits.
    pub fn pixels(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |n, &s| n.checked_mul(u64::from(s)))
    }
}

/// The numbers of a piece by their place among [`AXES`]: where it starts along T, C, Z, Y, X, its size along Z, Y, X.
pub(crate) const AXES: usize = 8;
/// Those of them that are sizes; planes have none.
pub(crate) const SIZE_AXES: Range<usize> = 5..AXES;

/// Stands for a null among the numbers of a piece.
pub(crate) const NULL: i64 = i64::MIN;

/// Replaces `out` by the boxes of pieces, numbered by `range`: `number(axis, piece)` is `None` for fields that are not there.
/// Planes, which have no sizes, are as large as the image, of shape `whole`.
pub(crate) fn read_boxes(
    range: Range<usize>,
    whole: [usize; 5],
    number: impl Fn(usize, usize) -> Option<i64>,
    out: &mut Vec<PieceBox>,
) -> std::result::Result<(), String> {
    out.clear();
    out.reserve(range.len());
    for (k, at) in range.enumerate() {
        let origin = std::array::from_fn(|a| number(a, at).unwrap_or(0));
        let size =
            |a| number(SIZE_AXES.start + a, at).unwrap_or(if a == 0 { 1 } else { whole[2 + a] as i64 });
        let shape = std::array::from_fn(size);
        out.push(PieceBox::new(origin, shape).ok_or_else(|| {
            let is_plane = SIZE_AXES.clone().all(|axis| number(axis, at).is_none());
            let (kind, [t, c, z, y, x], [sz, sy, sx]) =
                (if is_plane { "plane" } else { "chunk" }, origin.map(shown), shape.map(shown));
            format!("{kind} {k} lies at {t},{c},{z},{y},{x} (TCZYX) and has shape {sz},{sy},{sx} (ZYX)")
        })?);
    }
    Ok(())
}

fn shown(n: i64) -> String {
    if n == NULL { "null".into() } else { n.to_string() }
}

/// Checks that pieces cover an image of `shape` exactly: no gap, no overlap, nothing outside.
///
/// Where pixels add up to the whole, there is a gap if and only if there is an overlap. Then the corners
/// of all boxes do not cancel. A corner inside the image belongs to an even number of boxes when they fit
/// together, and the corners of each volume to one.
pub(crate) fn covers(pieces: &[PieceBox], shape: Shape) -> std::result::Result<(), String> {
    if are_volumes(pieces, shape) {
        return Ok(());
    }
    let mut pixels = 0u64;
    for (k, piece) in pieces.iter().enumerate() {
        let region = piece.region();
        if !region.fits(shape) {
            return Err(format!(
                "chunk {k} of shape {} at {:?} (TCZYX) exceeds the image of {shape}",
                region.shape(),
                region.start
            ));
        }
        // Each piece fits an image below 1 TiB, so neither product nor sum can overflow soon.
        pixels = pixels.saturating_add(piece.pixels().unwrap_or(u64::MAX));
    }
    if pixels != shape.pixels() as u64 {
        return Err(format!(
            "its {} {pixels} pixels, the image of {shape} has {}: chunks must cover the image",
            counted_with(pieces.len(), "chunk", ["has", "have"]),
            shape.pixels()
        ));
    }
    let mut corners = HashSet::new();
    let mut toggle = |t: u32, c: u32, start: [u32; 3], size: [u32; 3]| {
        for bits in 0..8u32 {
            let corner: [u32; 3] = std::array::from_fn(|a| start[a] + (bits >> a & 1) * size[a]);
            if !corners.remove(&(t, c, corner)) {
                corners.insert((t, c, corner));
            }
        }
    };
    for piece in pieces {
        let [t, c, z, y, x] = piece.origin;
        toggle(t, c, [z, y, x], piece.shape);
    }
    // Fewer pieces than volumes leave one of them empty; otherwise this loop is no longer than the last.
    let [t, c, z, y, x] = shape.0.map(|n| n as u32);
    let enough = shape.t().saturating_mul(shape.c()) <= pieces.len();
    for volume in 0..if enough { t * c } else { 0 } {
        toggle(volume / c, volume % c, [0; 3], [z, y, x]);
    }
    if enough && corners.is_empty() {
        Ok(())
    } else {
        Err("its chunks overlap and leave gaps: they must cover the image".into())
    }
}

/// Whether regions of an image of `shape`, whose pixels add up to its own, cover it exactly. Corners tell, as in [`covers`]; a
/// region may have several times and channels.
pub(crate) fn are_tiles(regions: impl Iterator<Item = Region>, shape: Shape) -> bool {
    let mut corners = HashSet::new();
    for region in regions.chain([shape.full()]) {
        for bits in 0..32usize {
            let corner: [usize; 5] =
                std::array::from_fn(|a| region.start[a] + (bits >> a & 1) * region.size[a]);
            if !corners.remove(&corner) {
                corners.insert(corner);
            }
        }
    }
    corners.is_empty()
}

/// Whether the boxes are the image's volumes in order, one for each time and channel: what most images consist of.
fn are_volumes(pieces: &[PieceBox], shape: Shape) -> bool {
    let [t, c, z, y, x] = shape.0;
    pieces.len() == t * c
        && pieces.iter().enumerate().all(|(k, piece)| {
            piece.region() == Region { start: [k / c, k % c, 0, 0, 0], size: [1, 1, z, y, x] }
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn piece(origin: [i64; 5], shape: [i64; 3]) -> PieceBox {
        PieceBox::new(origin, shape).unwrap()
    }

    #[test]
    fn pieces_must_cover_the_image() {
        let shape = Shape([1, 2, 1, 4, 6]);
        let halves = |c| [piece([0, c, 0, 0, 0], [1, 4, 3]), piece([0, c, 0, 0, 3], [1, 4, 3])];
        let mut pieces = [halves(1), halves(0)].concat();
        assert_eq!(covers(&pieces, shape), Ok(()));
        pieces[3] = pieces[2];
        assert!(covers(&pieces, shape).unwrap_err().contains("overlap"));
        pieces.pop();
        assert!(covers(&pieces, shape).unwrap_err().contains("must cover"));
        pieces.push(piece([0, 0, 0, 1, 3], [1, 4, 3]));
        assert!(covers(&pieces, shape).unwrap_err().contains("exceeds"));
        assert_eq!(PieceBox::new([0, 0, 0, 0, -1], [1, 1, 1]), None);
        assert_eq!(PieceBox::new([0; 5], [1, 0, 1]), None);
    }

    proptest! {
        /// Grids of any tile size cover; moving one edge by one pixel breaks it.
        #[test]
        fn grids_cover(
            shape in [1usize..3, 1..3, 1..4, 1..20, 1..20],
            tile in [1i64..4, 1i64..9, 1i64..9],
            at in any::<prop::sample::Index>(),
        ) {
            let [t, c, z, y, x] = shape.map(|n| n as i64);
            let mut pieces = vec![];
            for volume in 0..t * c {
                for z0 in (0..z).step_by(tile[0] as usize) {
                    for y0 in (0..y).step_by(tile[1] as usize) {
                        for x0 in (0..x).step_by(tile[2] as usize) {
                            pieces.push(piece(
                                [volume / c, volume % c, z0, y0, x0],
                                [tile[0].min(z - z0), tile[1].min(y - y0), tile[2].min(x - x0)],
                            ));
                        }
                    }
                }
            }
            prop_assert_eq!(covers(&pieces, Shape(shape)), Ok(()));
            let at = at.index(pieces.len());
            pieces[at].shape[2] += 1;
            prop_assert!(covers(&pieces, Shape(shape)).is_err());
        }
    }
}
