//! Rows that were asked for, one by one and in part.

use crate::table::Rows;
use std::ops::Range;

impl<'a> Rows<'a> {
    /// The row at position `i` of those asked for.
    ///
    /// # Panics
    /// There are not so many chosen rows.
    #[inline]
    pub fn at(&self, i: usize) -> usize {
        match self {
            Self::Range(range) => range.start + i,
            Self::Chosen(rows) => rows[i],
        }
    }

    /// The last row.
    pub fn last(&self) -> Option<usize> {
        self.len().checked_sub(1).map(|i| self.at(i))
    }

    /// Those at some positions, of which none is beyond the end.
    ///
    /// # Panics
    /// One is, among chosen rows.
    pub fn part(&self, at: Range<usize>) -> Rows<'a> {
        match self {
            Self::Range(range) => Rows::Range(range.start + at.start..range.start + at.end),
            Self::Chosen(rows) => Rows::Chosen(&rows[at]),
        }
    }

    /// Those without the first `done`.
    pub fn after(&self, done: usize) -> Rows<'a> {
        match self {
            Self::Range(range) => Rows::Range(range.start.saturating_add(done)..range.end),
            Self::Chosen(rows) => Rows::Chosen(rows.get(done..).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_by_position() {
        for rows in [Rows::Range(4..7), Rows::Chosen(&[4, 5, 6])] {
            assert_eq!((rows.at(1), rows.last(), rows.after(2).at(0)), (5, Some(6), 6));
            assert_eq!((rows.part(1..3).at(0), rows.part(1..3).len(), rows.part(2..2).len()), (5, 2, 0));
            assert_eq!((rows.after(2).len(), rows.after(3).last(), rows.after(9).len()), (1, None, 0));
        }
    }
}
