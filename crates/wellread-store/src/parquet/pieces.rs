//! Chunks and planes as runs of values in the pixel leaf.

use super::levels::Start;
use crate::ome_arrow::PieceBox;
use std::ops::Range;

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

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(origin: [i64; 5], shape: [i64; 3]) -> PieceBox {
        PieceBox::new(origin, shape).unwrap()
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
}
