//! How the columns of a read are made up of columns of numbers and of ends of lists.

use super::layout::Column;
use arrow_buffer::BooleanBuffer;

/// How leaves make up columns; types are those of the schema beside it.
#[derive(Debug)]
pub(super) enum Node {
    /// Rows that are null are told where any are.
    Leaf {
        leaf: usize,
        valid: Option<BooleanBuffer>,
    },
    Struct(Vec<Node>),
    /// Where some lists are null, those without elements count as null. Asking DuckDB which of them are would have it
    /// decode them all, and a reader of pixels finds none either way.
    List {
        ends: Column,
        has_nulls: bool,
        element: Box<Node>,
    },
}
