//! The memory of one batch, whole and in parts that threads fill at the same time.

use super::aligned::AlignedBytes;
use super::layout::{ArrayLayout, RowMemory};
use std::ops::Range;
use std::ptr::{self, NonNull};

/// Memory for one full batch.
#[derive(Debug)]
pub(crate) struct BatchBuffer {
    pub(crate) pixels: AlignedBytes,
    pub(crate) rows: Vec<usize>,
    /// The occurrence of each row, see [`crate::Batch::occurrences`].
    pub(crate) occurrences: Vec<u64>,
}

impl BatchBuffer {
    /// Takes rows out of the first `rows`, in all arrays: those after them close up.
    ///
    /// # Panics
    /// When `failed` is not in order or not below `rows`.
    pub(crate) fn remove(
        &mut self,
        failed: impl Iterator<Item = usize>,
        rows: usize,
        arrays: &[ArrayLayout],
    ) {
        let pixels = self.pixels.as_mut_slice();
        let mut failed = failed.peekable();
        let mut to = failed.peek().copied().unwrap_or(rows);
        while let Some(gap) = failed.next() {
            let next = failed.peek().copied().unwrap_or(rows);
            let kept = gap + 1..next;
            self.rows.copy_within(kept.clone(), to);
            self.occurrences.copy_within(kept.clone(), to);
            for array in arrays {
                pixels.copy_within(array.span(&kept), array.span(&(to..to)).start);
            }
            to += kept.len();
        }
    }

    /// Rows `within` to be filled with what is at `positions`.
    ///
    /// # Panics
    /// When the buffer has fewer rows or bytes.
    pub(crate) fn fill<'a>(
        &'a mut self,
        positions: Range<usize>,
        within: Range<usize>,
        arrays: &'a [ArrayLayout],
    ) -> Fill<'a> {
        // SAFETY: the buffer is borrowed for as long as what is to be filled.
        unsafe { self.part(within, arrays).fill(positions, arrays) }
    }

    /// The memory of some rows, as pointers that outlive the borrow: threads fill disjoint rows at the same time. No
    /// reference to the whole is made, which would invalidate theirs.
    ///
    /// # Panics
    /// When the buffer has fewer rows or bytes.
    pub(crate) fn part(&mut self, rows: Range<usize>, arrays: &[ArrayLayout]) -> PartMemory {
        assert!(rows.start <= rows.end && rows.end <= self.rows.len());
        assert!(rows.end <= self.occurrences.len());
        assert!(arrays.iter().all(|array| array.span(&rows).end <= self.pixels.len));
        let (start, len) = (rows.start, rows.len());
        // SAFETY: both ranges lie inside their allocations, as asserted.
        unsafe {
            PartMemory {
                pixels: self.pixels.start,
                first: start,
                rows: ptr::slice_from_raw_parts_mut(self.rows.as_mut_ptr().add(start), len),
                occurrences: ptr::slice_from_raw_parts_mut(self.occurrences.as_mut_ptr().add(start), len),
            }
        }
    }
}

/// The memory of some rows of a batch: [`BatchBuffer::part`].
#[derive(Clone, Copy)]
pub(crate) struct PartMemory {
    /// Where the batch's memory begins.
    pixels: NonNull<u8>,
    /// The first of the rows in the batch.
    first: usize,
    rows: *mut [usize],
    occurrences: *mut [u64],
}

impl PartMemory {
    /// The first `rows` rows, and the others.
    pub(crate) fn split_at(self, rows: usize) -> (Self, Self) {
        assert!(rows <= self.rows.len() && rows <= self.occurrences.len());
        let n = self.rows.len() - rows;
        let first = Self {
            rows: ptr::slice_from_raw_parts_mut(self.rows.cast(), rows),
            occurrences: ptr::slice_from_raw_parts_mut(self.occurrences.cast(), rows),
            ..self
        };
        // SAFETY: as asserted, the new starts lie inside what they begin in, or at its end.
        let rest = unsafe {
            Self {
                first: self.first + rows,
                rows: ptr::slice_from_raw_parts_mut(self.rows.cast::<usize>().add(rows), n),
                occurrences: ptr::slice_from_raw_parts_mut(self.occurrences.cast::<u64>().add(rows), n),
                ..self
            }
        };
        (first, rest)
    }

    /// The rows, to be filled with what is at `positions`.
    ///
    /// # Safety
    /// The buffer lives as long as that, nobody else uses these rows of it, and `arrays` are those of [`BatchBuffer::part`].
    pub(crate) unsafe fn fill(self, positions: Range<usize>, arrays: &[ArrayLayout]) -> Fill<'_> {
        let Self { pixels, first, rows, occurrences } = self;
        // SAFETY: they lie inside of the buffer, as was asserted when they were taken; the rest the caller promises.
        unsafe {
            let (rows, occurrences) = (&mut *rows, &mut *occurrences);
            let pixels = RowMemory::new(pixels, arrays, first..first + rows.len());
            Fill { positions, rows, occurrences, pixels }
        }
    }
}

/// The images to read: positions in the epoch, and the memory of their images.
pub(crate) struct Fill<'a> {
    pub(crate) positions: Range<usize>,
    pub(crate) rows: &'a mut [usize],
    pub(crate) occurrences: &'a mut [u64],
    pub(crate) pixels: RowMemory<'a>,
}
