//! Batches: images, contiguous, in memory that goes back to its pool when they are dropped.

use crate::dtype::{DType, Element};
use crate::pool::{BatchBuffer, BufferPool};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// Images, contiguous in C order, with the rows they came from.
///
/// They are `f32` ([`Self::pixels`]) unless another [`crate::Output`] was asked for ([`Self::pixels_as`],
/// [`Self::bytes`]).
///
/// Dropping a batch gives its memory back to the loader's pool, or to whoever lent it ([`crate::BatchMemory`]); keep as many as
/// memory allows.
pub struct Batch {
    /// Always there until dropped.
    buffer: Option<BatchBuffer>,
    pool: Arc<BufferPool>,
    shape: [usize; 6],
    axes: usize,
    dtype: DType,
    index: usize,
    epoch: u64,
}

impl Batch {
    /// A batch of `rows` rows, each of which became `crops` images.
    pub(crate) fn new(
        mut buffer: BatchBuffer,
        pool: Arc<BufferPool>,
        [rows, crops]: [usize; 2],
        (each, dtype): (wellread_image::Shape, DType),
        index: usize,
        epoch: u64,
    ) -> Self {
        let images = rows * crops;
        // Until here the lists have a row once, from now on once per crop.
        for i in (0..images).rev() {
            buffer.rows[i] = buffer.rows[i / crops];
            buffer.occurrences[i] = buffer.occurrences[i / crops];
        }
        let [t, c, z, y, x] = each.0;
        let (shape, axes) =
            if t == 1 && z == 1 { ([images, c, y, x, 1, 1], 4) } else { ([images, t, c, z, y, x], 6) };
        buffer.pixels.allow_fork_access();
        Self { buffer: Some(buffer), pool, shape, axes, dtype, index, epoch }
    }

    fn buffer(&self) -> &BatchBuffer {
        self.buffer.as_ref().expect("a batch has its buffer until it is dropped")
    }

    fn size(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.size()
    }

    /// The type of the pixels.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The pixels as bytes, in C order of [`Self::shape`], little-endian, aligned to 64 bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer().pixels.as_slice()[..self.size()]
    }

    /// The pixels as bytes, to be changed in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let size = self.size();
        let buffer = self.buffer.as_mut().expect("a batch has its buffer until it is dropped");
        &mut buffer.pixels.as_mut_slice()[..size]
    }

    /// The pixels of a batch of `f32`, in C order of [`Self::shape`], aligned to 64 bytes.
    ///
    /// # Panics
    /// When the loader delivers another type ([`Self::dtype`]).
    pub fn pixels(&self) -> &[f32] {
        self.pixels_as()
    }

    /// The pixels of a batch of `f32`, to be changed in place.
    ///
    /// # Panics
    /// When the loader delivers another type ([`Self::dtype`]).
    pub fn pixels_mut(&mut self) -> &mut [f32] {
        self.expect(DType::F32);
        bytemuck::cast_slice_mut(self.bytes_mut())
    }

    /// The pixels as numbers: `u8`, `u16`, `half::f16` …
    ///
    /// # Panics
    /// When the batch holds another type ([`Self::dtype`]).
    pub fn pixels_as<T: Element>(&self) -> &[T] {
        self.expect(T::DTYPE);
        T::cast(self.bytes())
    }

    #[track_caller]
    fn expect(&self, dtype: DType) {
        assert!(
            self.dtype == dtype,
            "the batch holds {}, not {dtype}: use pixels_as or bytes, or choose another output of the loader",
            self.dtype
        );
    }

    /// `[N, C, Y, X]`, or `[N, T, C, Z, Y, X]` for images with more than one time point or depth.
    pub fn shape(&self) -> &[usize] {
        &self.shape[..self.axes]
    }

    /// The dataset's row of each image. Crops of one row stand together.
    pub fn rows(&self) -> &[usize] {
        &self.buffer().rows[..self.len()]
    }

    /// What tells the times apart that the epoch has a row: 0 for each image where the order has each row once, otherwise
    /// numbers that differ among the images of a row. Random draws depend on them
    /// ([`crate::Transform::placement_of_occurrence`]).
    pub fn occurrences(&self) -> &[u64] {
        &self.buffer().occurrences[..self.len()]
    }

    /// Number of images: the batch size, or fewer in the last batch.
    pub fn len(&self) -> usize {
        self.shape[0]
    }

    /// Never: a batch holds at least one image.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pixels of image `i` of a batch of `f32`.
    ///
    /// # Panics
    /// When `i` is not below [`Self::len`], or the loader delivers another type ([`Self::dtype`]).
    pub fn image(&self, i: usize) -> &[f32] {
        self.image_as(i)
    }

    /// The pixels of image `i` as numbers.
    ///
    /// # Panics
    /// When `i` is not below [`Self::len`], or the batch holds another type ([`Self::dtype`]).
    pub fn image_as<T: Element>(&self, i: usize) -> &[T] {
        let pixels = self.pixels_as();
        let each = pixels.len() / self.len();
        &pixels[i * each..(i + 1) * each]
    }

    /// Which batch of the epoch it is, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The epoch it belongs to.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("epoch", &self.epoch)
            .field("index", &self.index)
            .field("shape", &self.shape())
            .field("dtype", &self.dtype)
            .field("rows", &self.rows())
            .finish_non_exhaustive()
    }
}

impl Batch {
    /// Gives the memory of a batch of [`crate::BatchMemory`] up to whom it came from, who must not wait for [`BatchMemory::give`]:
    /// where its pixels begin. `None` where the loader owns its memory, which goes back to it as when dropped.
    pub fn release(mut self) -> Option<NonNull<u8>> {
        self.buffer.as_mut()?.pixels.release()
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.pool.give(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_dimensions_are_shown_when_they_are_there() {
        let pool = Arc::new(BufferPool::new(480, 1, 1, None));
        let shape = wellread_image::Shape([2, 1, 3, 4, 5]);
        let batch = Batch::new(pool.take().unwrap(), pool, [1, 1], (shape, DType::F32), 3, 7);
        assert_eq!(batch.shape(), [1, 2, 1, 3, 4, 5]);
        assert_eq!((batch.index(), batch.epoch(), batch.len()), (3, 7, 1));
    }

    #[test]
    fn numbers_are_seen_as_what_they_are() {
        let pool = Arc::new(BufferPool::new(24, 4, 1, None));
        let mut buffer = pool.take().unwrap();
        buffer.rows = vec![5, 9, 0, 0];
        buffer.occurrences = vec![0, 2, 7, 7];
        let shape = wellread_image::Shape([1, 1, 1, 1, 3]);
        let mut batch = Batch::new(buffer, pool, [2, 2], (shape, DType::BF16), 0, 0);
        batch.bytes_mut()[..4].copy_from_slice(&[0x80, 0x3f, 0, 0xc0]);
        assert_eq!(batch.pixels_as::<half::bf16>()[..2], [1.0, -2.0].map(half::bf16::from_f32));
        assert_eq!((batch.image_as::<half::bf16>(3).len(), batch.rows()), (3, &[5, 5, 9, 9][..]));
        assert_eq!(batch.occurrences(), [0, 0, 2, 2]);
        let wrong = std::panic::catch_unwind(|| batch.pixels().len()).unwrap_err();
        assert!(wrong.downcast_ref::<String>().unwrap().contains("holds bfloat16, not float32"));
    }
}
