//! Batches: images, contiguous, in memory that goes back to its pool when they are dropped.
//!
//! ```text
//!  Batch ── view(0), view(1) … ──▶ BatchArray     the images: one array unless each row has several views
//!    └───── targets_of(0), …   ──▶ BatchArray     their targets, cut and turned as that view is
//! ```

mod array;

pub use array::BatchArray;

use crate::dtype::{DType, Element};
use crate::pool::{ArrayLayout, BatchBuffer, BufferPool};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// Images, contiguous in C order, with the rows they came from.
///
/// They are `f32` ([`Self::pixels`]) unless another [`crate::Output`] was asked for ([`Self::pixels_as`],
/// [`Self::bytes`]). Where each row has several views ([`crate::LoaderBuilder::views`]), or a target
/// ([`crate::LoaderBuilder::targets`]), they are arrays of their own in the same memory: [`Self::view`],
/// [`Self::targets`]. Methods that do not mention these are about the first view.
///
/// Dropping a batch gives its memory back to the loader's pool, or to whoever lent it ([`crate::BatchMemory`]); keep as many as
/// memory allows.
pub struct Batch {
    /// Always there until dropped.
    buffer: Option<BatchBuffer>,
    pool: Arc<BufferPool>,
    /// Views of the images, then of their targets if there are any.
    arrays: Arc<[ArrayLayout]>,
    views: usize,
    shape: [usize; 6],
    axes: usize,
    dtype: DType,
    index: usize,
    epoch: u64,
}

impl Batch {
    /// A batch of `rows` rows, each of which became `crops` images in each array; the first `views` arrays are the images'.
    pub(crate) fn new(
        mut buffer: BatchBuffer,
        pool: Arc<BufferPool>,
        arrays: Arc<[ArrayLayout]>,
        views: usize,
        [rows, crops]: [usize; 2],
        (index, epoch): (usize, u64),
    ) -> Self {
        let images = rows * crops;
        // Until here the lists have a row once, from now on once per crop.
        for i in (0..images).rev() {
            buffer.rows[i] = buffer.rows[i / crops];
            buffer.occurrences[i] = buffer.occurrences[i / crops];
        }
        let (shape, axes) = array::shape_of(images, arrays[0].shape);
        let dtype = arrays[0].dtype;
        buffer.pixels.allow_fork_access();
        Self { buffer: Some(buffer), pool, arrays, views, shape, axes, dtype, index, epoch }
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

    /// Views of each row: 1 unless [`crate::LoaderBuilder::views`] or [`crate::LoaderBuilder::recipes`] asked for more.
    pub fn views(&self) -> usize {
        self.views
    }

    /// View `view` of all images, from 0.
    ///
    /// # Panics
    /// When there is no such view.
    pub fn view(&self, view: usize) -> BatchArray<'_> {
        assert!(view < self.views, "view {view} was asked for of {}", self.views);
        self.array(view)
    }

    /// The targets of the images, of the first view; `None` without [`crate::LoaderBuilder::targets`].
    pub fn targets(&self) -> Option<BatchArray<'_>> {
        self.targets_of(0)
    }

    /// The targets of a view: cut, turned and resized as the view is.
    ///
    /// # Panics
    /// When there is no such view.
    pub fn targets_of(&self, view: usize) -> Option<BatchArray<'_>> {
        assert!(view < self.views, "view {view} was asked for of {}", self.views);
        (self.arrays.len() > self.views).then(|| self.array(self.views + view))
    }

    /// How many arrays there are: the views, and as many again where there are targets.
    pub fn arrays(&self) -> usize {
        self.arrays.len()
    }

    /// Array `array`: the views come first, then the targets of each.
    ///
    /// # Panics
    /// When there is no such array.
    pub fn array(&self, array: usize) -> BatchArray<'_> {
        let layout = &self.arrays[array];
        BatchArray::new(layout, self.len(), &self.buffer().pixels.as_slice()[layout.start..])
    }

    /// Where an array begins, a multiple of 64 bytes, for those who share its memory with other libraries. It may be written
    /// to as long as the batch lives and nothing else in Rust looks at it.
    ///
    /// # Panics
    /// When there is no such array.
    pub fn array_start(&mut self, array: usize) -> NonNull<u8> {
        let start = self.arrays[array].start;
        self.buffer.as_mut().expect("a batch has its buffer until it is dropped").pixels.at(start)
    }

    /// `[N, C, Y, X]`, or `[N, T, C, Z, Y, X]` for images with more than one time point or depth.
    pub fn shape(&self) -> &[usize] {
        &self.shape[..self.axes]
    }

    /// The dataset's row of each image. Crops of one row stand together.
    pub fn rows(&self) -> &[usize] {
        &self.buffer().rows[..self.len()]
    }

    /// The numbers that tell the times apart that the epoch has a row. They are 0 for each image where the order has
    /// each row once, otherwise numbers that differ among the images of a row. Random draws depend on them
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
            .field("arrays", &self.arrays())
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

    /// A buffer for rows of these arrays, and the batch that is made of it.
    fn batch(
        arrays: &[ArrayLayout],
        views: usize,
        [rows, crops]: [usize; 2],
        fill: impl FnOnce(&mut BatchBuffer),
    ) -> Batch {
        let bytes = arrays.iter().map(|array| array.start + rows * array.row_bytes).max().unwrap();
        let pool = Arc::new(BufferPool::new(bytes, rows * crops, 1, None));
        let mut buffer = pool.take().unwrap();
        fill(&mut buffer);
        Batch::new(buffer, pool, arrays.into(), views, [rows, crops], (3, 7))
    }

    #[test]
    fn five_dimensions_are_shown_when_they_are_there() {
        let shape = wellread_image::Shape([2, 1, 3, 4, 5]);
        let batch = batch(&[ArrayLayout::alone(480, shape, DType::F32)], 1, [1, 1], |_| {});
        assert_eq!(batch.shape(), [1, 2, 1, 3, 4, 5]);
        assert_eq!((batch.index(), batch.epoch(), batch.len()), (3, 7, 1));
        assert!(batch.targets().is_none());
    }

    #[test]
    fn numbers_are_seen_as_what_they_are() {
        let shape = wellread_image::Shape([1, 1, 1, 1, 3]);
        let mut batch = batch(&[ArrayLayout::alone(12, shape, DType::BF16)], 1, [2, 2], |buffer| {
            buffer.rows = vec![5, 9, 0, 0];
            buffer.occurrences = vec![0, 2, 7, 7];
        });
        batch.bytes_mut()[..4].copy_from_slice(&[0x80, 0x3f, 0, 0xc0]);
        assert_eq!(batch.pixels_as::<half::bf16>()[..2], [1.0, -2.0].map(half::bf16::from_f32));
        assert_eq!((batch.image_as::<half::bf16>(3).len(), batch.rows()), (3, &[5, 5, 9, 9][..]));
        assert_eq!(batch.occurrences(), [0, 0, 2, 2]);
        let wrong = std::panic::catch_unwind(|| batch.pixels().len()).unwrap_err();
        assert!(wrong.downcast_ref::<String>().unwrap().contains("holds bfloat16, not float32"));
    }

    #[test]
    fn views_and_their_targets_are_arrays_of_their_own() {
        let [large, small] = [(4, 4), (2, 3)].map(|(y, x)| wellread_image::Shape::plane(y, x));
        let of = [(large, DType::F32), (small, DType::F32), (large, DType::U8), (small, DType::U8)];
        let (arrays, bytes) = crate::pool::lay_out(of.into_iter(), 1, 2).unwrap();
        let mut batch = batch(&arrays, 2, [2, 1], |buffer| {
            assert_eq!(buffer.pixels.as_slice().len(), bytes);
            for i in 0..4 {
                buffer.fill(0..2, 0..2, &arrays).pixels.array(i).fill(10 + i as u8);
            }
        });
        assert_eq!((batch.views(), batch.arrays(), batch.shape()), (2, 4, &[2, 1, 4, 4][..]));
        assert_eq!(batch.view(1).shape(), [2, 1, 2, 3]);
        assert!(batch.view(1).bytes().iter().all(|&byte| byte == 11));
        let target = batch.targets_of(1).unwrap();
        assert_eq!((target.dtype(), target.shape()), (DType::U8, &[2, 1, 2, 3][..]));
        assert_eq!((target.pixels_as::<u8>(), target.image_as::<u8>(1)), (&[13; 12][..], &[13; 6][..]));
        for i in 0..4 {
            let start = batch.array_start(i).as_ptr();
            assert_eq!((start.cast_const(), start as usize % 64), (batch.array(i).bytes().as_ptr(), 0));
        }
    }
}
