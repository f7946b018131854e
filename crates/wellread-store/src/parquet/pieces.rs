//! Chunks and planes as boxes of their images, and as runs of values in the pixel leaf.

use super::levels::Start;
use std::collections::HashSet;
use std::ops::Range;
use wellread_image::{Region, Shape};

/// The chunks or the planes of all rows of a row group, in the order of their values.
#[derive(Debug)]
pub(super) struct PieceTable {
    /// Index of each row's first piece, and one more for the end.
    first: Vec<u32>,
    /// Number of rows without pieces before each row, and one more for the end: each has one level entry.
    empties: Vec<u32>,
    /// Where each piece lies in its image.
    pub regions: Vec<PieceBox>,
    /// Index of each piece's first value in the pixel leaf of the row group, and one more for the end.
    values: Vec<u64>,
    /// Whether those indices hold: false when a row's pieces could not be made sense of.
    pub positions_known: bool,
}

/// A piece's box, compactly: origin along T, C, Z, Y, X and shape along Z, Y, X.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PieceBox {
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

    fn pixels(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |n, &s| n.checked_mul(u64::from(s)))
    }
}

impl PieceTable {
    /// A table without rows.
    pub fn new() -> Self {
        Self { first: vec![0], empties: vec![0], regions: vec![], values: vec![0], positions_known: true }
    }

    /// Pieces of a row.
    pub fn pieces(&self, row: usize) -> Range<usize> {
        self.first[row] as usize..self.first[row + 1] as usize
    }

    /// Values of a piece, as indices into the pixel leaf of the row group.
    pub fn values(&self, piece: usize) -> Range<u64> {
        self.values[piece]..self.values[piece + 1]
    }

    fn rows(&self) -> usize {
        self.first.len() - 1
    }

    /// Index of a row's first level entry; for the number of rows, that of all entries.
    fn level(&self, row: usize) -> u64 {
        self.values[self.first[row] as usize] + u64::from(self.empties[row])
    }

    /// Number of level entries that the whole row group has.
    pub fn levels(&self) -> u64 {
        self.level(self.rows())
    }

    /// The last row that starts at or before a level entry.
    fn row_at(&self, level: u64) -> usize {
        let (mut low, mut high) = (0, self.rows());
        while low < high {
            let middle = low.midpoint(high);
            if self.level(middle) <= level { low = middle + 1 } else { high = middle }
        }
        low.saturating_sub(1)
    }

    /// Number of values before a level entry.
    pub fn values_before(&self, level: u64) -> u64 {
        if level >= self.levels() {
            return self.values.last().copied().unwrap_or(0);
        }
        level - u64::from(self.empties[self.row_at(level)])
    }

    /// Where rows and pieces start among the level entries `levels`, relative to its start.
    pub fn starts(&self, levels: Range<u64>) -> Vec<Start> {
        let mut out = vec![];
        if self.rows() == 0 {
            return out;
        }
        for row in self.row_at(levels.start)..self.rows() {
            let at = self.level(row);
            if at >= levels.end {
                break;
            }
            let pieces = self.pieces(row);
            let mut push = |at: u64, rep: u32, empty: bool| {
                if levels.contains(&at) {
                    out.push(Start { at: (at - levels.start) as usize, rep, empty });
                }
            };
            if pieces.is_empty() {
                push(at, 0, true);
            }
            for piece in pieces.clone() {
                let rep = u32::from(piece > pieces.start);
                push(self.values[piece] + u64::from(self.empties[row]), rep, false);
            }
        }
        out
    }

    /// Appends a row with its pieces.
    pub fn push_row(&mut self, pieces: &[PieceBox]) {
        for piece in pieces {
            let end = piece.pixels().and_then(|n| self.values[self.regions.len()].checked_add(n));
            self.positions_known &= end.is_some();
            self.regions.push(*piece);
            self.values.push(end.unwrap_or(u64::MAX));
        }
        let empties = self.empties[self.empties.len() - 1] + u32::from(pieces.is_empty());
        self.empties.push(empties);
        self.first.push(self.regions.len() as u32);
    }
}

/// Checks that pieces cover an image of `shape` exactly: no gap, no overlap, nothing outside.
///
/// Where pixels add up to the whole, there is a gap if and only if there is an overlap, and then the corners
/// of all boxes do not cancel: a corner inside the image belongs to an even number of boxes when they fit
/// together, and the corners of each volume to one.
pub(super) fn covers(pieces: &[PieceBox], shape: Shape) -> std::result::Result<(), String> {
    if let [piece] = pieces
        && piece.region() == shape.full()
    {
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
            "its {} chunks have {pixels} pixels, the image of {shape} has {}: chunks must cover the image",
            pieces.len(),
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

    #[test]
    fn positions_follow_from_shapes() {
        let mut table = PieceTable::new();
        table.push_row(&[piece([0; 5], [1, 2, 5])]);
        table.push_row(&[]);
        table.push_row(&[piece([0; 5], [1, 1, 4]), piece([0, 0, 0, 1, 0], [1, 2, 4])]);
        assert!(table.positions_known);
        assert_eq!((table.levels(), table.values(2)), (23, 14..22));
        assert_eq!([0, 9, 10, 11, 15, 23].map(|l| table.values_before(l)), [0, 9, 10, 10, 14, 22]);
        let start = |at, rep, empty| Start { at, rep, empty };
        assert_eq!(
            table.starts(0..23),
            [start(0, 0, false), start(10, 0, true), start(11, 0, false), start(15, 1, false)]
        );
        assert_eq!(table.starts(3..11), [start(7, 0, true)]);
        assert_eq!(table.starts(12..15), []);
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
