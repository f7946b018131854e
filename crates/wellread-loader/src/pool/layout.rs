//! Where the arrays of a batch lie in its memory: views of the images, and of their targets, one array after the other.
//!
//! ```text
//!   start                        start                     (of each array, a multiple of 64 bytes)
//!   ▼                            ▼
//!   row 0 │ row 1 │ … │ padding  row 0 │ row 1 │ …         (of each row, all the images that it becomes there)
//! ```

use super::aligned::ALIGNMENT;
use crate::dtype::DType;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use wellread_image::Shape;

/// One array of a batch: its place, and the shape and type of its images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrayLayout {
    /// Offset of its first byte in the batch's memory.
    pub(crate) start: usize,
    /// Bytes of a row: of all the images that it becomes.
    pub(crate) row_bytes: usize,
    /// Shape (TCZYX) of each image.
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
}

impl ArrayLayout {
    /// An array by itself, of which one row has `row_bytes` bytes.
    pub(crate) const fn alone(row_bytes: usize, shape: Shape, dtype: DType) -> Self {
        Self { start: 0, row_bytes, shape, dtype }
    }

    /// Where some rows of it lie.
    pub(super) const fn span(&self, rows: &Range<usize>) -> Range<usize> {
        self.start + rows.start * self.row_bytes..self.start + rows.end * self.row_bytes
    }
}

/// Lays out arrays of these images for `rows` rows, each of which becomes `crops` images in each array. Returns the bytes of
/// all as well; `None` where they exceed all memory.
pub(crate) fn lay_out(
    arrays: impl Iterator<Item = (Shape, DType)>,
    crops: usize,
    rows: usize,
) -> Option<(Vec<ArrayLayout>, usize)> {
    let mut laid = vec![];
    let mut end = 0usize;
    for (shape, dtype) in arrays {
        let start = end.checked_next_multiple_of(ALIGNMENT)?;
        let pixels = shape.0.iter().try_fold(crops, |n, &axis| n.checked_mul(axis))?;
        let row_bytes = pixels.checked_mul(dtype.size())?;
        laid.push(ArrayLayout { start, row_bytes, shape, dtype });
        end = row_bytes.checked_mul(rows)?.checked_add(start)?;
    }
    Some((laid, end))
}

/// The memory of some rows of a batch: a run of bytes in each of its arrays. Threads have disjoint rows of the same batch.
pub(crate) struct RowMemory<'a> {
    /// The batch's memory.
    start: NonNull<u8>,
    arrays: &'a [ArrayLayout],
    rows: Range<usize>,
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a> RowMemory<'a> {
    /// One row, of one array, which `bytes` are.
    ///
    /// # Panics
    /// When there are fewer bytes than a row has.
    pub(crate) fn of_image(bytes: &'a mut [u8], array: &'a [ArrayLayout; 1]) -> Self {
        assert!(array[0].span(&(0..1)).end <= bytes.len(), "too few bytes for an image");
        Self { start: NonNull::from(bytes).cast(), arrays: array, rows: 0..1, memory: PhantomData }
    }

    /// These rows of a batch whose memory begins at `start`.
    ///
    /// # Safety
    /// In each array the rows lie in the memory that begins there, which lives as long as this, and nobody else uses these rows.
    pub(super) const unsafe fn new(
        start: NonNull<u8>,
        arrays: &'a [ArrayLayout],
        rows: Range<usize>,
    ) -> Self {
        Self { start, arrays, rows, memory: PhantomData }
    }

    /// How many rows.
    pub(crate) const fn count(&self) -> usize {
        self.rows.end - self.rows.start
    }

    /// The rows in one of the arrays.
    pub(crate) fn array(&mut self, array: usize) -> &mut [u8] {
        let span = self.arrays[array].span(&self.rows);
        // SAFETY: it lies in memory that nobody else uses, as whoever made this promised, and is borrowed from this.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(span.start).as_ptr(), span.end - span.start) }
    }

    /// The same memory, for as long as this is not used.
    pub(crate) fn again(&mut self) -> RowMemory<'_> {
        RowMemory { start: self.start, arrays: self.arrays, rows: self.rows.clone(), memory: PhantomData }
    }

    /// One of the rows.
    ///
    /// # Panics
    /// When there is no such row.
    pub(crate) fn row(&mut self, row: usize) -> RowMemory<'_> {
        assert!(row < self.count(), "there is no such row");
        let first = self.rows.start + row;
        RowMemory { rows: first..first + 1, ..self.again() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_lie_one_after_the_other() {
        let arrays = [(Shape::plane(3, 5), DType::U8), (Shape([1, 2, 1, 4, 4]), DType::F32)];
        let (laid, bytes) = lay_out(arrays.into_iter(), 2, 5).unwrap();
        assert_eq!((laid[0].start, laid[0].row_bytes), (0, 30));
        // 150 bytes, and the next multiple of 64.
        assert_eq!((laid[1].start, laid[1].row_bytes, bytes), (192, 256, 192 + 5 * 256));
        let mut memory = vec![0u8; bytes];
        // SAFETY: both arrays have five rows in the memory, which is used by this alone.
        let mut rows = unsafe { RowMemory::new(NonNull::from(&mut memory[..]).cast(), &laid, 1..4) };
        assert_eq!((rows.count(), rows.array(0).len(), rows.array(1).len()), (3, 90, 768));
        rows.row(2).array(1).fill(7);
        rows.again().array(0)[0] = 9;
        let filled: Vec<usize> = (0..bytes).filter(|&i| memory[i] != 0).collect();
        assert_eq!((filled[0], filled[1], filled.len()), (30, 192 + 3 * 256, 257));
        let huge = Shape([1, 1, 1, usize::MAX / 2, 1]);
        assert_eq!(lay_out([(huge, DType::F32)].into_iter(), 1, 1), None);
    }
}
