//! Chunks and planes row by row, without arrays of what was read: where the columns of a read are numbers of the structs in
//! one list, and the pixels of each.

use super::layout::Column;
use super::{Direct, Fault, Lists, Node, OUTSIDE, Scratch, Stop};
use arrow_schema::{DataType, Schema};
use std::ops::Range;
use wellread_store::table::{Columns, EachRow, Numbers, RowPieces, Rows};
use wellread_store::{FormatContext, Result};

/// How pieces are made up.
#[derive(Debug)]
pub(super) struct PieceLeaves {
    /// Leaves and types of the numbers.
    numbers: Box<[(usize, DataType)]>,
    /// Which of the structs' nodes is the list of pixels.
    list: usize,
    pixels: (usize, DataType),
}

/// What the nodes of pieces are: where the lists of pieces end, and their fields.
fn fields(tree: &[Node]) -> Option<(&Column, &[Node])> {
    let [Node::Struct(image)] = tree else { return None };
    let [Node::List { ends, element, .. }] = image.as_slice() else { return None };
    let Node::Struct(fields) = &**element else { return None };
    Some((ends, fields))
}

impl PieceLeaves {
    /// `None` where `columns` are something else, or not all that the tree has; `schema` is its types.
    pub fn new(columns: &Columns, tree: &[Node], schema: &Schema) -> Option<Self> {
        let (pixels, numbers) = columns.split_last()?;
        let (_, nodes) = fields(tree)?;
        let [image] = schema.fields().as_ref() else { return None };
        let DataType::Struct(lists) = image.data_type() else { return None };
        let [list] = lists.as_ref() else { return None };
        let DataType::List(element) = list.data_type() else { return None };
        let DataType::Struct(types) = element.data_type() else { return None };
        let find = |path: &[String]| match path {
            [a, b, name] if a == image.name() && b == list.name() => types.find(name),
            _ => None,
        };
        let number = |path: &Vec<String>| {
            let (at, field) = find(path)?;
            let Node::Leaf { leaf, valid: None } = nodes.get(at)? else { return None };
            Numbers::are_whole(field.data_type()).then(|| (*leaf, field.data_type().clone()))
        };
        let (at, field) = find(pixels)?;
        let Node::List { element, .. } = nodes.get(at)? else { return None };
        let (Node::Leaf { leaf, valid: None }, DataType::List(of)) = (&**element, field.data_type()) else {
            return None;
        };
        let pixels = (*leaf, of.data_type().clone());
        let numbers = numbers.iter().map(number).collect::<Option<Box<[_]>>>()?;
        (numbers.len() + 1 == nodes.len()).then_some(Self { numbers, list: at, pixels })
    }
}

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

impl Lists {
    /// How many there are.
    fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Where the elements of list `i` are among those that were read.
    fn nth(&self, i: usize) -> Range<usize> {
        self.offsets[i] as usize..self.offsets[i + 1] as usize
    }
}
