//! Chunks and planes as runs of values in the pixel leaf.

use super::levels::Start;
use crate::ome_arrow::PieceBox;
use std::ops::Range;
use wellread_image::Region;

/// The chunks or the planes of all rows of a row group, in the order of their values.
#[derive(Debug)]
pub(super) struct PieceTable {
    positions: PiecePositions,
    /// Whether the values of pieces are where [`PieceTable::values`] says: false when a row's pieces could not be made
    /// sense of.
    pub positions_known: bool,
}

#[derive(Debug)]
enum PiecePositions {
    /// Every row is divided as the first: nothing needs to be kept for each.
    Alike {
        rows: u64,
        /// The pieces of each row.
        pieces: Box<[PieceBox]>,
        /// Index of each piece's first value within its row, and one more for the end.
        values: Box<[u64]>,
    },
    Each(Each),
}

#[derive(Debug, PartialEq)]
struct Each {
    /// Index of each row's first piece, and one more for the end.
    first: Vec<u32>,
    /// Number of rows without pieces before each row, and one more for the end: each has one level entry.
    empties: Vec<u32>,
    /// Where each piece lies in its image.
    regions: Vec<PieceBox>,
    /// Index of each piece's first value in the pixel leaf of the row group, and one more for the end.
    values: Vec<u64>,
}

impl PieceTable {
    /// A table without rows.
    pub fn new() -> Self {
        let each = Each { first: vec![0], empties: vec![0], regions: vec![], values: vec![0] };
        Self { positions: PiecePositions::Each(each), positions_known: true }
    }

    /// A table of `rows` rows, each with these pieces and at least one.
    pub fn alike(rows: usize, pieces: &[PieceBox]) -> Self {
        let mut values = vec![0u64];
        for piece in pieces {
            let end = piece.pixels().and_then(|n| values[values.len() - 1].checked_add(n));
            values.push(end.unwrap_or(u64::MAX));
        }
        let rows = rows as u64;
        let positions_known = !pieces.is_empty() && values[pieces.len()].checked_mul(rows).is_some();
        Self {
            positions: PiecePositions::Alike { rows, pieces: pieces.into(), values: values.into() },
            positions_known,
        }
    }

    /// The same, kept once where every row has the same pieces.
    pub fn compact(self) -> Self {
        let PiecePositions::Each(each) = &self.positions else { return self };
        let (rows, n) = (each.first.len() - 1, each.first.get(1).map_or(0, |&n| n as usize));
        let same = self.positions_known
            && rows > 1
            && n > 0
            && each.regions.len() == rows * n
            && each.first.iter().enumerate().all(|(row, &first)| first as usize == row * n)
            && each.regions.chunks_exact(n).all(|pieces| *pieces == each.regions[..n]);
        if same { Self::alike(rows, &each.regions[..n]) } else { self }
    }

    /// Pieces of a row.
    pub fn pieces(&self, row: usize) -> Range<usize> {
        match &self.positions {
            PiecePositions::Alike { pieces, .. } => row * pieces.len()..(row + 1) * pieces.len(),
            PiecePositions::Each(each) => each.first[row] as usize..each.first[row + 1] as usize,
        }
    }

    /// Where a piece lies in its image.
    pub fn region(&self, piece: usize) -> Region {
        match &self.positions {
            PiecePositions::Alike { pieces, .. } => pieces[piece % pieces.len()].region(),
            PiecePositions::Each(each) => each.regions[piece].region(),
        }
    }

    /// Values of a piece, as indices into the pixel leaf of the row group.
    pub fn values(&self, piece: usize) -> Range<u64> {
        self.first_value(piece)..self.first_value(piece + 1)
    }

    /// Index of a piece's first value; for the number of pieces, that of all values.
    fn first_value(&self, piece: usize) -> u64 {
        match &self.positions {
            PiecePositions::Alike { pieces, values, .. } => {
                let (row, k) = (piece / pieces.len(), piece % pieces.len());
                values[pieces.len()] * row as u64 + values[k]
            }
            PiecePositions::Each(each) => each.values[piece],
        }
    }

    fn rows(&self) -> usize {
        match &self.positions {
            PiecePositions::Alike { rows, .. } => *rows as usize,
            PiecePositions::Each(each) => each.first.len() - 1,
        }
    }

    /// Number of rows without pieces before a row; for the number of rows, of all.
    fn empties(&self, row: usize) -> u64 {
        match &self.positions {
            PiecePositions::Alike { .. } => 0,
            PiecePositions::Each(each) => u64::from(each.empties[row]),
        }
    }

    /// Whether some row has no pieces: then values and entries of levels are counted differently.
    pub fn has_empties(&self) -> bool {
        self.empties(self.rows()) > 0
    }

    /// Index of a row's first level entry; for the number of rows, that of all entries.
    pub fn level(&self, row: usize) -> u64 {
        let first = self.first_value(if row < self.rows() { self.pieces(row).start } else { self.len() });
        // Saturated where positions are not known.
        first.saturating_add(self.empties(row))
    }

    /// Number of pieces.
    fn len(&self) -> usize {
        match &self.positions {
            PiecePositions::Alike { rows, pieces, .. } => *rows as usize * pieces.len(),
            PiecePositions::Each(each) => each.regions.len(),
        }
    }

    /// Number of level entries that the whole row group has.
    pub fn levels(&self) -> u64 {
        self.level(self.rows())
    }

    /// The last row that starts at or before a level entry.
    fn row_at(&self, level: u64) -> usize {
        if let PiecePositions::Alike { rows, pieces, values } = &self.positions {
            return (level / values[pieces.len()]).min(rows.saturating_sub(1)) as usize;
        }
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
            return self.first_value(self.len());
        }
        level - self.empties(self.row_at(level))
    }

    /// Replaces `out` by where rows and pieces start among the level entries `levels`, relative to its start.
    pub fn starts(&self, levels: Range<u64>, out: &mut Vec<Start>) {
        out.clear();
        if self.rows() == 0 {
            return;
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
                push(self.first_value(piece).saturating_add(self.empties(row)), rep, false);
            }
        }
    }

    /// Appends a row with its pieces.
    pub fn push_row(&mut self, pieces: &[PieceBox]) {
        let PiecePositions::Each(each) = &mut self.positions else { return };
        for piece in pieces {
            let end = piece.pixels().and_then(|n| each.values[each.regions.len()].checked_add(n));
            self.positions_known &= end.is_some();
            each.regions.push(*piece);
            each.values.push(end.unwrap_or(u64::MAX));
        }
        let empties = each.empties[each.empties.len() - 1] + u32::from(pieces.is_empty());
        each.empties.push(empties);
        each.first.push(each.regions.len() as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(origin: [i64; 5], shape: [i64; 3]) -> PieceBox {
        PieceBox::new(origin, shape).unwrap()
    }

    fn starts(table: &PieceTable, levels: Range<u64>) -> Vec<Start> {
        let mut out = vec![Start { at: 7, rep: 7, empty: true }];
        table.starts(levels, &mut out);
        out
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
            starts(&table, 0..23),
            [start(0, 0, false), start(10, 0, true), start(11, 0, false), start(15, 1, false)]
        );
        assert_eq!(starts(&table, 3..11), [start(7, 0, true)]);
        assert_eq!(starts(&table, 12..15), []);
    }

    #[test]
    fn tables_of_equal_rows_say_the_same_in_less_room() {
        for boxes in [
            vec![piece([0; 5], [1, 3, 4])],
            vec![
                piece([0; 5], [1, 1, 4]),
                piece([0, 0, 0, 1, 0], [1, 2, 4]),
                piece([0, 1, 0, 0, 0], [1, 3, 4]),
            ],
        ] {
            let mut each = PieceTable::new();
            (0..5).for_each(|_| each.push_row(&boxes));
            let mut twin = PieceTable::new();
            (0..5).for_each(|_| twin.push_row(&boxes));
            let alike = twin.compact();
            assert!(matches!(alike.positions, PiecePositions::Alike { .. }));
            assert!(each.positions_known && alike.positions_known && !alike.has_empties());
            assert_eq!((each.levels(), each.len()), (alike.levels(), alike.len()));
            for row in 0..5 {
                assert_eq!((each.pieces(row), each.level(row)), (alike.pieces(row), alike.level(row)));
            }
            for k in 0..each.len() {
                assert_eq!((each.region(k), each.values(k)), (alike.region(k), alike.values(k)));
            }
            for level in 0..=each.levels() {
                assert_eq!(each.values_before(level), alike.values_before(level));
                for end in level..=each.levels() {
                    assert_eq!(starts(&each, level..end), starts(&alike, level..end), "{level}..{end}");
                }
            }
            // One row that differs, or none at all, keeps them apart.
            each.push_row(&boxes[..1].repeat(2));
            assert!(matches!(each.compact().positions, PiecePositions::Each(_)));
        }
        let mut empty = PieceTable::new();
        (0..3).for_each(|_| empty.push_row(&[]));
        assert!(matches!(empty.compact().positions, PiecePositions::Each(_)));
        assert!(!PieceTable::alike(usize::MAX, &[piece([0; 5], [1, 3, 4])]).positions_known);
    }
}
