//! The claim of a thread: slices of batches, or parts of them, as memory to be filled.

use crate::pool::{ArrayLayout, Fill, PartMemory};
use std::ops::Range;

/// The claim of one thread: a slice of a batch or, where reads are joined, a run of whole batches.
pub(super) struct Claim {
    pub(super) first: Part,
    /// The batches after the first.
    pub(super) more: Vec<Part>,
}

/// A slice of a batch, or a part of one: its place in the batch's memory.
pub(super) struct Part {
    pub(super) batch: usize,
    /// Its first row in the batch.
    pub(super) first: usize,
    /// Positions in the epoch.
    pub(super) positions: Range<usize>,
    pub(super) memory: PartMemory,
}

// SAFETY: it points to memory that belongs to whoever has the part.
unsafe impl Send for Part {}

impl Part {
    /// Keeps `rows` rows and returns the others.
    pub(super) fn split_off(&mut self, rows: usize) -> Self {
        let (memory, rest) = self.memory.split_at(rows);
        let middle = self.positions.start + rows;
        let positions = middle..self.positions.end;
        (self.memory, self.positions.end) = (memory, middle);
        Self { batch: self.batch, first: self.first + rows, positions, memory: rest }
    }

    /// The memory to be filled, in these arrays of the batch.
    ///
    /// # Safety
    /// The part's batch is still in its slot, and nobody else fills this part.
    // Each part is claimed once, by a thread of its own.
    pub(super) unsafe fn memory_to_fill<'a>(&'a self, arrays: &'a [ArrayLayout]) -> Fill<'a> {
        // SAFETY: the buffer stays in its slot until all its slices are finished, and the memory it points to does not
        // move. Slices of a batch are disjoint.
        unsafe { self.memory.fill(self.positions.clone(), arrays) }
    }
}
