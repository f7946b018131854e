//! The memory of one batch, whole and in parts that threads fill at the same time.

use super::aligned::AlignedBytes;
use std::ops::Range;
use std::ptr;

/// Memory for one full batch.
#[derive(Debug)]
pub(crate) struct BatchBuffer {
    pub(crate) pixels: AlignedBytes,
    pub(crate) rows: Vec<usize>,
    /// Of each row, see [`crate::Batch::occurrences`].
    pub(crate) occurrences: Vec<u64>,
}

impl BatchBuffer {
    /// Takes images out of the first `images`, `each` bytes to an image: those after them close up.
    ///
    /// # Panics
    /// When `failed` is not in order or not below `images`.
    pub(crate) fn remove(&mut self, failed: impl Iterator<Item = usize>, images: usize, each: usize) {
        let pixels = self.pixels.as_mut_slice();
        let mut failed = failed.peekable();
        let mut to = failed.peek().copied().unwrap_or(images);
        while let Some(gap) = failed.next() {
            let next = failed.peek().copied().unwrap_or(images);
            let kept = gap + 1..next;
            self.rows.copy_within(kept.clone(), to);
            self.occurrences.copy_within(kept.clone(), to);
            pixels.copy_within(kept.start * each..kept.end * each, to * each);
            to += kept.len();
        }
    }

    /// Rows `within` to be filled with what is at `positions`, `each` bytes to a row.
    pub(crate) fn fill(&mut self, positions: Range<usize>, within: Range<usize>, each: usize) -> Fill<'_> {
        let Self { pixels, rows, occurrences } = self;
        Fill {
            positions,
            pixels: &mut pixels.as_mut_slice()[within.start * each..within.end * each],
            rows: &mut rows[within.clone()],
            occurrences: &mut occurrences[within],
        }
    }

    /// The memory of some rows, `each` bytes to a row, as pointers that outlive the borrow: threads fill
    /// disjoint rows at the same time. No reference to the whole is made, which would invalidate theirs.
    ///
    /// # Panics
    /// When the buffer has fewer rows or bytes.
    pub(crate) fn part(&mut self, rows: Range<usize>, each: usize) -> PartMemory {
        assert!(rows.start <= rows.end && rows.end <= self.rows.len() && rows.end * each <= self.pixels.len);
        assert!(rows.end <= self.occurrences.len());
        let (start, len) = (rows.start, rows.len());
        // SAFETY: all ranges lie inside their allocations, as asserted.
        unsafe {
            PartMemory {
                pixels: ptr::slice_from_raw_parts_mut(
                    self.pixels.start.as_ptr().add(start * each),
                    len * each,
                ),
                rows: ptr::slice_from_raw_parts_mut(self.rows.as_mut_ptr().add(start), len),
                occurrences: ptr::slice_from_raw_parts_mut(self.occurrences.as_mut_ptr().add(start), len),
            }
        }
    }
}

/// The memory of some rows of a batch: [`BatchBuffer::part`].
#[derive(Clone, Copy)]
pub(crate) struct PartMemory {
    pub(crate) pixels: *mut [u8],
    pub(crate) rows: *mut [usize],
    pub(crate) occurrences: *mut [u64],
}

impl PartMemory {
    /// The first `rows` rows, `each` bytes to a row, and the others.
    pub(crate) fn split_at(self, rows: usize, each: usize) -> (Self, Self) {
        assert!(
            rows <= self.rows.len() && rows * each <= self.pixels.len() && rows <= self.occurrences.len()
        );
        let (n, bytes) = (self.rows.len() - rows, self.pixels.len() - rows * each);
        let first = Self {
            pixels: ptr::slice_from_raw_parts_mut(self.pixels.cast(), rows * each),
            rows: ptr::slice_from_raw_parts_mut(self.rows.cast(), rows),
            occurrences: ptr::slice_from_raw_parts_mut(self.occurrences.cast(), rows),
        };
        // SAFETY: as asserted, the new starts lie inside what they begin in, or at its end.
        let rest = unsafe {
            Self {
                pixels: ptr::slice_from_raw_parts_mut(self.pixels.cast::<u8>().add(rows * each), bytes),
                rows: ptr::slice_from_raw_parts_mut(self.rows.cast::<usize>().add(rows), n),
                occurrences: ptr::slice_from_raw_parts_mut(self.occurrences.cast::<u64>().add(rows), n),
            }
        };
        (first, rest)
    }
}

/// What is to be read: positions in the epoch, and the memory of their images.
pub(crate) struct Fill<'a> {
    pub(crate) positions: Range<usize>,
    pub(crate) rows: &'a mut [usize],
    pub(crate) occurrences: &'a mut [u64],
    pub(crate) pixels: &'a mut [u8],
}
