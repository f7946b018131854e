//! Pieces of images row by row. They are columns that are numbers of the structs in one list, chunks or planes. The pixels of
//! each are as an engine has decoded them.

use crate::table::{Columns, Numbers, RowPieces};
use std::ops::Range;

/// The columns of a read, where they are numbers of the structs in one list, and last the pixels of each.
#[derive(Debug)]
pub struct PieceColumns<'a> {
    /// The path of the list.
    pub list: &'a [String],
    /// Names of the numbers.
    pub numbers: Vec<&'a str>,
    /// Name of the list of pixels.
    pub pixels: &'a str,
}

impl<'a> PieceColumns<'a> {
    /// `None` where `columns` are something else.
    pub fn of(columns: &'a Columns) -> Option<Self> {
        let (pixels, numbers) = columns.split_last()?;
        let (pixels, list) = pixels.split_last()?;
        let beside = |path: &'a Vec<String>| {
            path.split_last().filter(|(_, around)| *around == list).map(|(name, _)| name.as_str())
        };
        let numbers = numbers.iter().map(beside).collect::<Option<_>>()?;
        Some(Self { list, numbers, pixels: pixels.as_str() })
    }
}

/// The values that were read of pieces, of the rows of a batch or of all that lie together: one after another,
/// whatever their row.
pub trait PieceValues {
    /// The number of piece `at` in the column that was asked for as number `column`.
    fn number(&self, column: usize, at: usize) -> Option<i64>;

    /// Where the pixels of piece `at` are among those of all pieces.
    fn bounds(&self, at: usize) -> Range<usize>;

    /// The pixels of all pieces.
    fn pixels(&self) -> Numbers<'_>;
}

/// The pieces of one row among those that were read.
#[derive(Debug)]
pub struct PiecesOfRow<'a, V> {
    values: &'a V,
    pieces: Range<usize>,
}

impl<'a, V: PieceValues> PiecesOfRow<'a, V> {
    /// The pieces `pieces` of those in `values`.
    #[inline]
    pub fn new(values: &'a V, pieces: Range<usize>) -> Self {
        Self { values, pieces }
    }
}

impl<V: PieceValues> RowPieces for PiecesOfRow<'_, V> {
    #[inline]
    fn len(&self) -> usize {
        self.pieces.len()
    }

    #[inline]
    fn number(&self, column: usize, piece: usize) -> Option<i64> {
        self.values.number(column, self.pieces.start + piece)
    }

    #[inline]
    fn pixels(&self, piece: usize) -> Numbers<'_> {
        let Numbers { data_type, bytes } = self.values.pixels();
        let size = data_type.primitive_width().unwrap_or(1);
        let Range { start, end } = self.values.bounds(self.pieces.start + piece);
        Numbers { data_type, bytes: &bytes[start * size..end * size] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::DataType;

    #[test]
    fn columns_of_pieces_lie_beside_their_pixels() {
        let path = |text: &str| text.split('/').map(str::to_owned).collect::<Vec<_>>();
        let columns = ["image/chunks/x", "image/chunks/y", "image/chunks/pixels"].map(path);
        let found = PieceColumns::of(&columns).unwrap();
        assert_eq!((found.list, found.pixels), (&path("image/chunks")[..], "pixels"));
        assert_eq!(found.numbers, ["x", "y"]);
        assert!(PieceColumns::of(&["image/planes/x", "image/chunks/pixels"].map(path)).is_none());
        assert!(PieceColumns::of(&[]).is_none() && PieceColumns::of(&[vec![]]).is_none());
    }

    struct Three;

    impl PieceValues for Three {
        fn number(&self, column: usize, at: usize) -> Option<i64> {
            Some((column * 10 + at) as i64)
        }

        fn bounds(&self, at: usize) -> Range<usize> {
            [0..1, 1..1, 1..3][at].clone()
        }

        fn pixels(&self) -> Numbers<'_> {
            Numbers { data_type: &DataType::UInt16, bytes: &[1, 0, 2, 0, 3, 1] }
        }
    }

    #[test]
    fn pieces_of_a_row_are_counted_from_its_first() {
        let row = PiecesOfRow::new(&Three, 1..3);
        assert_eq!((row.len(), row.number(2, 1)), (2, Some(22)));
        assert!(row.pixels(0).bytes.is_empty());
        assert_eq!(row.pixels(1).bytes, [2, 0, 3, 1]);
    }
}
