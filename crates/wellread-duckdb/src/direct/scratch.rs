//! Memory of a reader: runs of values, where lists begin and end, bytes as they were read and values as they are delivered.

use arrow_buffer::MutableBuffer;
use std::ops::Range;
use wellread_store::direct::{self, Fault};

/// Rows, or values of theirs, that the file has no place for.
pub(super) const OUTSIDE: Fault = Fault::Irregular("rows outside of the table");

/// Values of a column that follow one another in a row group.
pub(super) type Run = direct::Run<usize>;

/// Memory of a reader, used again from read to read.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub raw: Vec<u8>,
    pub ends: MutableBuffer,
    /// Values of each leaf.
    pub values: Vec<MutableBuffer>,
    /// Rows that are read together, the pieces of each, the pixels of each of those.
    pub rows: Vec<Run>,
    pub pieces: Lists,
    pub pixels: Lists,
}

/// Where some lists begin and end: as offsets among their elements that are read, and those as runs.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub offsets: Vec<i32>,
    pub inner: Vec<Run>,
}

impl Lists {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Where the elements of list `i` are among those that were read.
    pub fn nth(&self, i: usize) -> Range<usize> {
        self.offsets[i] as usize..self.offsets[i + 1] as usize
    }
}
