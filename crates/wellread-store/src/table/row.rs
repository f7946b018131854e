//! The chunks or planes of one row: in the arrays of a record batch, or as an engine has them in memory.

use super::RowPieces;
use crate::ome_arrow::{
    AXES, NULL, PieceBox, PixelColumn, PixelLists, SIZE_AXES, SmallColumns, pixels_as, read_boxes,
};
use wellread_image::{PixelType, Shape};

/// The pieces of all rows of a record batch.
pub(super) struct Arrays<'a> {
    pub small: SmallColumns<'a>,
    pub pixels: Option<PixelColumn>,
}

impl Arrays<'_> {
    /// Those of row `i`.
    pub fn row(&self, i: usize) -> Pieces<'_> {
        Pieces::Arrays { small: &self.small, i, lists: self.pixels.as_ref().and_then(|pixels| pixels.row(i)) }
    }
}

/// The pieces of one row.
pub(super) enum Pieces<'a> {
    /// Row `i` of a record batch, and its lists of pixels where it has any.
    Arrays { small: &'a SmallColumns<'a>, i: usize, lists: Option<PixelLists> },
    /// As the engine has them; `axes` says which of its columns are the numbers of a box.
    Row { row: &'a dyn RowPieces, axes: &'a [Option<usize>; AXES] },
}

impl Pieces<'_> {
    /// Whether there is any.
    pub fn has_any(&self) -> bool {
        match self {
            Self::Arrays { small, i, .. } => small.has_pieces(*i),
            Self::Row { row, .. } => !row.is_empty(),
        }
    }

    /// Where they lie in the image of this shape: none where the row has no pixels.
    pub fn boxes(&self, shape: Shape, out: &mut Vec<PieceBox>) -> Result<(), String> {
        match self {
            Self::Arrays { lists: None, .. } => {
                out.clear();
                Ok(())
            }
            Self::Arrays { small, i, .. } => small.pieces_into(*i, Some(shape), out),
            Self::Row { row, axes } => {
                let is_plane = axes[SIZE_AXES].iter().all(Option::is_none);
                let whole = if is_plane { shape.0 } else { [1; 5] };
                let number = |axis: usize, piece| Some(row.number(axes[axis]?, piece).unwrap_or(NULL));
                read_boxes(0..row.len(), whole, number, out)
            }
        }
    }

    /// The pixels of piece `k` of this shape, in `buffer` where they are not stored as `dtype`.
    pub fn pixels<'a>(
        &'a self,
        k: usize,
        shape: Shape,
        dtype: PixelType,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], String> {
        match self {
            Self::Arrays { lists: Some(lists), .. } => lists.pixels(k, shape, dtype, buffer),
            Self::Arrays { lists: None, .. } => Err(format!("chunk {k} has no pixels")),
            Self::Row { row, .. } => pixels_as(k, shape, row.pixels(k), dtype, buffer),
        }
    }
}
