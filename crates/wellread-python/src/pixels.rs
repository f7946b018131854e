//! Memory of images that arrays of other libraries share: aligned, counted, given back with the last view.

use std::ptr::NonNull;
use std::sync::Arc;
use wellread::DType;

/// Memory in pieces of a cache line, which aligns it.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct CacheLine([u8; 64]);

/// Bytes aligned as those of batches are, to 64 bytes.
pub(crate) struct AlignedVec {
    lines: Vec<CacheLine>,
    bytes: usize,
}

impl AlignedVec {
    /// So many bytes, all 0; `None` when memory is exhausted.
    pub(crate) fn zeroed(bytes: usize) -> Option<Self> {
        let mut lines = Vec::new();
        lines.try_reserve_exact(bytes.div_ceil(64)).ok()?;
        lines.resize(bytes.div_ceil(64), CacheLine([0; 64]));
        Some(Self { lines, bytes })
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the lines are that many bytes at least, all initialised, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.bytes) }
    }
}

/// Whom the memory belongs to.
pub(crate) enum Owner {
    Loader(wellread::Batch),
    /// The batch of which these pixels are the first array, and this is another.
    Array(Arc<Pixels>),
    /// Its rows stand beside it.
    Own(#[expect(dead_code, reason = "kept for its memory")] AlignedVec, Vec<usize>),
}

/// Pixels that views in other libraries share. Given back with the last of them, by whichever thread.
pub(crate) struct Pixels {
    /// Where they begin, as long as `owner` lives.
    start: NonNull<u8>,
    pub(crate) bytes: usize,
    /// Six axes at most, of which so many are there.
    shape: [i64; 6],
    strides: [i64; 6],
    axes: usize,
    pub(crate) dtype: DType,
    pub(crate) owner: Owner,
}

// SAFETY: the memory behind `start` belongs to `owner`, which may be sent and shared. It is written to by whoever has a
// view, as NumPy's and torch's memory is; nobody in Rust reads it while Python has it.
unsafe impl Send for Pixels {}
// SAFETY: as above.
unsafe impl Sync for Pixels {}

impl Pixels {
    fn new(start: NonNull<u8>, shape: &[usize], dtype: DType, owner: Owner) -> Self {
        let axes = shape.len();
        let mut own = ([1; 6], [1; 6]);
        // Axes of images in memory: far below 2^63.
        own.0.iter_mut().zip(shape).for_each(|(own, &n)| *own = n as i64);
        for axis in (1..axes).rev() {
            own.1[axis - 1] = own.1[axis] * own.0[axis];
        }
        let bytes = shape.iter().product::<usize>() * dtype.size();
        Self { start, bytes, shape: own.0, strides: own.1, axes, dtype, owner }
    }

    /// The first array of a batch, or the only one.
    pub(crate) fn of_loader(mut batch: wellread::Batch) -> Self {
        let axes = batch.shape().len();
        let mut shape = [1; 6];
        shape[..axes].copy_from_slice(batch.shape());
        let (start, dtype) = (batch.array_start(0), batch.dtype());
        Self::new(start, &shape[..axes], dtype, Owner::Loader(batch))
    }

    /// All arrays of a batch, which share its memory.
    pub(crate) fn of_arrays(mut batch: wellread::Batch) -> Vec<Arc<Self>> {
        let mut others = Vec::with_capacity(batch.arrays() - 1);
        for i in 1..batch.arrays() {
            let start = batch.array_start(i);
            let array = batch.array(i);
            others.push((start, array.shape().to_vec(), array.dtype()));
        }
        let first = Arc::new(Self::of_loader(batch));
        let of_first = |(start, shape, dtype): (NonNull<u8>, Vec<usize>, DType)| {
            Arc::new(Self::new(start, &shape, dtype, Owner::Array(Arc::clone(&first))))
        };
        let others: Vec<_> = others.into_iter().map(of_first).collect();
        std::iter::once(first).chain(others).collect()
    }

    /// Images of these rows: `pixels` has as many bytes as the shape says.
    pub(crate) fn own(mut pixels: AlignedVec, shape: &[usize], dtype: DType, rows: Vec<usize>) -> Self {
        let start = NonNull::from(pixels.as_mut_slice()).cast();
        Self::new(start, shape, dtype, Owner::Own(pixels, rows))
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn shape(&self) -> &[i64] {
        &self.shape[..self.axes]
    }

    pub(crate) fn strides(&self) -> &[i64] {
        &self.strides[..self.axes]
    }

    /// The batch that they are of; `None` for images that were read by themselves.
    pub(crate) fn batch(&self) -> Option<&wellread::Batch> {
        match &self.owner {
            Owner::Loader(batch) => Some(batch),
            Owner::Array(first) => first.batch(),
            Owner::Own(..) => None,
        }
    }

    pub(crate) fn rows(&self) -> &[usize] {
        match &self.owner {
            Owner::Loader(batch) => batch.rows(),
            Owner::Array(first) => first.rows(),
            Owner::Own(_, rows) => rows,
        }
    }

    /// The same numbers in memory of their own; `None` when there is none.
    pub(crate) fn copied(&self) -> Option<Self> {
        let mut copy = AlignedVec::zeroed(self.bytes)?;
        // SAFETY: that many bytes are there, and the copy is no part of them.
        unsafe { self.start.as_ptr().copy_to_nonoverlapping(copy.as_mut_slice().as_mut_ptr(), self.bytes) };
        let shape: Vec<usize> = self.shape().iter().map(|&n| n as usize).collect();
        Some(Self::own(copy, &shape, self.dtype, self.rows().to_vec()))
    }
}
