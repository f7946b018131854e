//! Pixels of rows without Arrow arrays: what an engine that decodes them into memory of its own hands on.
//!
//! ```text
//!  file ──engine──▶ bytes of numbers, bounds of lists (used again from read to read) ──RowPieces──▶ Blocks
//! ```
//!
//! A record batch is a tree of arrays, and each of them is allocated. Where a caller copies the pieces (chunks or
//! planes) of a row at once, that takes most of the time of reading a small image. So an engine may pass them on as
//! they are.

use crate::numbers::Numbers;

/// The pieces of one row: chunks or planes, as an engine has them in memory. Neither they nor their numbers nor pixels
/// are null. A call for a piece that is not there may panic.
pub trait RowPieces {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of a piece in the column that was asked for as number `column`, such as where it starts along X.
    /// It is `None` for one that is no whole number.
    fn number(&self, column: usize, piece: usize) -> Option<i64>;

    /// The pixels of a piece: the column that was asked for last.
    fn pixels(&self, piece: usize) -> Numbers<'_>;
}
