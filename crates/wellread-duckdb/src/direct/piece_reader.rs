//! Chunks and planes row by row, without arrays of what was read. It reads columns that are numbers of the structs in one
//! list, and the pixels of each.

use super::pieces::{PieceLeaves, fields};
use super::reader::Direct;
use super::scratch::{OUTSIDE, Scratch};
use super::tree::Node;
use std::ops::Range;
use wellread_store::direct::{Fault, PieceValues, PiecesOfRow, Stop, each_part, handed_on};
use wellread_store::table::{EachRow, Numbers, Rows};
use wellread_store::{FormatContext, Result};

/// The values that were read. Behind the values of each leaf are others, of a read before.
struct Values<'a> {
    leaves: &'a PieceLeaves,
    scratch: &'a Scratch,
}

impl PieceValues for Values<'_> {
    #[inline]
    fn number(&self, column: usize, at: usize) -> Option<i64> {
        let (leaf, data_type) = &self.leaves.numbers[column];
        Numbers { data_type, bytes: self.scratch.values[*leaf].as_slice() }.whole(at)
    }

    #[inline]
    fn bounds(&self, at: usize) -> Range<usize> {
        self.scratch.pixels.nth(at)
    }

    #[inline]
    fn pixels(&self) -> Numbers<'_> {
        let (leaf, data_type) = &self.leaves.pixels;
        Numbers { data_type, bytes: self.scratch.values[*leaf].as_slice() }
    }
}

impl Direct {
    /// Reads rows, handing on the pieces of each in order. It returns how many were handed on, before rows that are not as
    /// they should be or columns of another kind.
    pub fn read_pieces(
        &self,
        rows: &[usize],
        context: &mut FormatContext,
        each: &mut EachRow<'_>,
    ) -> Result<usize> {
        let Some(leaves) = &self.pieces else { return Ok(0) };
        let mut done = 0;
        let read = self.with_scratch(context, |scratch| {
            let make = |scratch: &mut Scratch, part: Range<usize>| {
                self.runs(&Rows::Chosen(&rows[part]), &mut scratch.rows)?;
                self.fill(leaves, scratch)
            };
            each_part(rows.len(), self.batch_rows, scratch, make, |scratch, ()| {
                let values = Values { leaves, scratch };
                for row in 0..scratch.pieces.len() {
                    each(done, &PiecesOfRow::new(&values, scratch.pieces.nth(row)))?;
                    done += 1;
                }
                Ok(())
            })
        });
        handed_on(done, read.map_err(Stop::refusal))
    }

    /// Reads the pieces of the rows in `scratch`.
    fn fill(&self, leaves: &PieceLeaves, scratch: &mut Scratch) -> std::result::Result<(), Fault> {
        let Scratch { raw, ends: room, values, rows, pieces, pixels } = scratch;
        let (ends, nodes) = fields(&self.tree).ok_or(OUTSIDE)?;
        self.lists(ends, rows, (raw, room), pieces)?;
        for &(leaf, _) in &leaves.numbers {
            self.values(&self.leaves[leaf], &pieces.inner, raw, &mut values[leaf])?;
        }
        let Some(Node::List { ends, .. }) = nodes.get(leaves.list) else { return Err(OUTSIDE) };
        self.lists(ends, &pieces.inner, (raw, room), pixels)?;
        let leaf = leaves.pixels.0;
        self.values(&self.leaves[leaf], &pixels.inner, raw, &mut values[leaf])?;
        Ok(())
    }
}
