//! Chunks and planes row by row, without arrays of what was read: where the columns of a read are numbers of the structs in
//! one list, and the pixels of each.

use super::fault::{Fault, OUTSIDE, Stop};
use super::pieces::{PieceLeaves, fields};
use super::reader::Direct;
use super::scratch::Scratch;
use super::tree::Node;
use std::ops::Range;
use wellread_store::table::{EachRow, Numbers, RowPieces, Rows};
use wellread_store::{FormatContext, Result};

/// The pieces of a row among what was read.
struct Row<'a> {
    direct: &'a Direct,
    leaves: &'a PieceLeaves,
    scratch: &'a Scratch,
    pieces: Range<usize>,
}

impl RowPieces for Row<'_> {
    fn len(&self) -> usize {
        self.pieces.len()
    }

    fn number(&self, column: usize, piece: usize) -> Option<i64> {
        let (leaf, data_type) = &self.leaves.numbers[column];
        // Behind those that were read are others, of a read before.
        let bytes = self.scratch.values[*leaf].as_slice();
        Numbers { data_type, bytes }.whole(self.pieces.start + piece)
    }

    fn pixels(&self, piece: usize) -> Numbers<'_> {
        let (leaf, data_type) = &self.leaves.pixels;
        let size = self.direct.leaves[*leaf].width.delivered;
        let range = self.scratch.pixels.nth(self.pieces.start + piece);
        let bytes = &self.scratch.values[*leaf].as_slice()[range.start * size..range.end * size];
        Numbers { data_type, bytes }
    }
}

impl Direct {
    /// Reads rows, handing on the pieces of each in order: how many were handed on, before rows that are not as they should
    /// be or columns of another kind.
    pub fn read_pieces(
        &self,
        rows: &[usize],
        context: &mut FormatContext,
        each: &mut EachRow<'_>,
    ) -> Result<usize> {
        let Some(leaves) = &self.pieces else { return Ok(0) };
        let mut done = 0;
        let read = self.with_scratch(context, |scratch| {
            while done < rows.len() {
                self.runs(&Rows::Chosen(rows), done, &mut scratch.rows)
                    .and_then(|()| self.fill(leaves, scratch))
                    .map_err(|fault| fault.stop(done))?;
                for row in 0..scratch.pieces.len() {
                    let pieces = scratch.pieces.nth(row);
                    each(done, &Row { direct: self, leaves, scratch, pieces }).map_err(Stop::Refused)?;
                    done += 1;
                }
            }
            Ok(())
        });
        match read {
            Err(Stop::Refused(error)) => Err(error),
            Ok(()) | Err(Stop::Irregular(..)) => Ok(done),
        }
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
