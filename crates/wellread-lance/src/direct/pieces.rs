//! Chunks and planes row by row, without arrays of what was read. It reads columns that are numbers of the structs in one
//! list, and the pixels of each.

use super::tree::{Leaf, Node, Output, WIDTHS};
use arrow_schema::{DataType, Schema};
use std::ops::Range;
use wellread_store::direct::Fault::{self, Irregular};
use wellread_store::direct::{PieceColumns, PieceValues, PiecesOfRow};
use wellread_store::table::{Columns, Numbers, RowPieces};

/// Which leaves the numbers of pieces are, and which their pixels.
#[derive(Debug)]
pub(super) struct PieceLeaves {
    numbers: Box<[(usize, DataType)]>,
    pixels: usize,
    /// Types of the pixels as delivered in each of [`WIDTHS`].
    types: [DataType; WIDTHS.len()],
}

impl PieceLeaves {
    /// `None` where `columns` are something else, or not all that the tree has; `schemas` are those of a [`super::Direct`].
    pub fn new<S: AsRef<Schema>>(
        columns: &Columns,
        tree: &[Node],
        leaves: &[Leaf],
        schemas: &[S; WIDTHS.len()],
    ) -> Option<Self> {
        PieceColumns::of(columns).filter(|_| leaves.len() == columns.len())?;
        let (pixels, numbers) = columns.split_last()?;
        let find = |path: &[String], depth: usize, schema: &S| {
            let (name, below) = path.split_first()?;
            let (at, field) = schema.as_ref().column_with_name(name)?;
            let found = leaf(tree.get(at)?, field.data_type(), below)?;
            (leaves[found.0].depth == depth).then_some(found)
        };
        let of_numbers =
            |path: &Vec<String>| find(path, 1, &schemas[0]).filter(|(_, t)| Numbers::are_whole(t));
        let (at, _) = find(pixels, 2, &schemas[0])?;
        let types = schemas.each_ref().map(|schema| find(pixels, 2, schema).map(|(_, data_type)| data_type));
        let [Some(a), Some(b), Some(c)] = types else { return None };
        Some(Self {
            numbers: numbers.iter().map(of_numbers).collect::<Option<_>>()?,
            pixels: at,
            types: [a, b, c],
        })
    }

    /// Checks that the values of `rows` rows fit together, as arrays are checked when they are built.
    pub fn check(&self, rows: usize, width: usize, leaves: &[Leaf], outputs: &[Output]) -> Result<(), Fault> {
        let [innermost, outermost] = outputs[self.pixels].starts.0.as_slice() else {
            return Err(Irregular("lists of another depth"));
        };
        let pieces = innermost.len();
        let ascend = |starts: &[i64], end: usize| {
            starts.first().is_none_or(|&first| first >= 0)
                && starts.windows(2).all(|w| w[0] <= w[1])
                && starts.last().is_none_or(|&last| last <= end as i64)
        };
        let pixels = outputs[self.pixels].values.len() / self.size(width);
        if outermost.len() != rows || !ascend(outermost, pieces) || !ascend(innermost, pixels) {
            return Err(Irregular("lists do not fit their elements"));
        }
        for &(leaf, _) in &self.numbers {
            let Output { values, starts } = &outputs[leaf];
            if starts.0.first() != Some(outermost) || values.len() != pieces * leaves[leaf].size {
                return Err(Irregular("lists of different lengths"));
            }
        }
        Ok(())
    }

    /// Hands on the pieces of each of the `rows` rows that were read, in order.
    pub fn each(
        &self,
        rows: usize,
        width: usize,
        outputs: &[Output],
        each: &mut dyn FnMut(&dyn RowPieces) -> wellread_store::Result<()>,
    ) -> wellread_store::Result<()> {
        let [innermost, outermost] = outputs[self.pixels].starts.0.as_slice() else { return Ok(()) };
        let values = Values { leaves: self, outputs, width };
        (0..rows).try_for_each(|row| each(&PiecesOfRow::new(&values, nth(outermost, row, innermost.len()))))
    }

    /// Bytes of a pixel.
    fn size(&self, width: usize) -> usize {
        self.types[width].primitive_width().unwrap_or(1)
    }
}

/// The leaf at the end of a path of field names, through structs and lists, and its type.
fn leaf(node: &Node, data_type: &DataType, path: &[String]) -> Option<(usize, DataType)> {
    match (node, data_type) {
        (Node::Leaf(leaf), _) => path.is_empty().then(|| (*leaf, data_type.clone())),
        (Node::Struct(children), DataType::Struct(fields)) => {
            let (name, below) = path.split_first()?;
            let (at, field) = fields.find(name)?;
            leaf(children.get(at)?, field.data_type(), below)
        }
        (Node::List { element, .. }, DataType::List(field) | DataType::LargeList(field)) => {
            leaf(element, field.data_type(), path)
        }
        _ => None,
    }
}

/// The values that were read.
struct Values<'a> {
    leaves: &'a PieceLeaves,
    outputs: &'a [Output],
    width: usize,
}

impl PieceValues for Values<'_> {
    #[inline]
    fn number(&self, column: usize, at: usize) -> Option<i64> {
        let (leaf, data_type) = &self.leaves.numbers[column];
        Numbers { data_type, bytes: self.outputs[*leaf].values.as_slice() }.whole(at)
    }

    #[inline]
    fn bounds(&self, at: usize) -> Range<usize> {
        let Output { values, starts } = &self.outputs[self.leaves.pixels];
        nth(&starts.0[0], at, values.len() / self.leaves.size(self.width))
    }

    #[inline]
    fn pixels(&self) -> Numbers<'_> {
        let bytes = self.outputs[self.leaves.pixels].values.as_slice();
        Numbers { data_type: &self.leaves.types[self.width], bytes }
    }
}

/// Where the elements of list `i` are, of lists that have `end` elements.
fn nth(starts: &[i64], i: usize, end: usize) -> Range<usize> {
    starts[i] as usize..starts.get(i + 1).map_or(end, |&next| next as usize)
}
