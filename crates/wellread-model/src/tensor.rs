//! The boundary between an array in host memory and a tensor that owns its memory, with and without a copy. The
//! `conversion` benchmark measures it for this program.
//!
//! * [`tensor_from_slice_copy`] copies borrowed memory into new memory: every float once.
//! * [`tensor_from_vec`] takes a `Vec<f32>` over as the tensor's own memory: no pixel is touched, the address stays the
//!   same. The vector belongs to the tensor from then on and is freed with it. So a caller pays for a fresh buffer per
//!   batch instead of reusing one.
//!
//! The [models](crate::Model) of this crate need neither on the CPU: they read borrowed batches where they lie.

use crate::Result;
use crate::model::check_batch;

/// An `N x C x H x W` float tensor on the CPU.
#[derive(Debug)]
pub struct TensorHandle {
    values: Vec<f32>,
    shape: [usize; 4],
    copied_bytes: usize,
}

impl TensorHandle {
    /// The shape, NCHW.
    pub fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// Bytes that were copied to make the tensor.
    pub fn copied_bytes(&self) -> usize {
        self.copied_bytes
    }

    /// The tensor's own memory, in C order: to check it or to sum it up.
    pub fn values(&self) -> &[f32] {
        &self.values
    }
}

/// Copies `pixels` into a tensor of `shape` (NCHW).
///
/// # Errors
/// A shape that does not fit.
pub fn tensor_from_slice_copy(pixels: &[f32], shape: [usize; 4]) -> Result<TensorHandle> {
    check_batch(pixels, shape, shape[1])?;
    Ok(TensorHandle { values: pixels.to_vec(), shape, copied_bytes: size_of_val(pixels) })
}

/// Makes `pixels` a tensor of `shape` (NCHW) without copying; the tensor owns the memory from then on.
///
/// # Errors
/// A shape that does not fit.
pub fn tensor_from_vec(pixels: Vec<f32>, shape: [usize; 4]) -> Result<TensorHandle> {
    check_batch(&pixels, shape, shape[1])?;
    Ok(TensorHandle { values: pixels, shape, copied_bytes: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_copies_and_the_other_does_not() {
        let pixels: Vec<f32> = (0..24).map(|i| i as f32).collect();
        let address = pixels.as_ptr();

        let copy = tensor_from_slice_copy(&pixels, [2, 1, 3, 4]).unwrap();
        assert_eq!(copy.copied_bytes(), 96);
        assert!(copy.values() == pixels && copy.values().as_ptr() != address);

        let expected = pixels.clone();
        let moved = tensor_from_vec(pixels, [2, 1, 3, 4]).unwrap();
        assert_eq!(moved.copied_bytes(), 0);
        assert_eq!(moved.shape(), [2, 1, 3, 4]);
        assert!(moved.values() == expected && moved.values().as_ptr() == address);
    }

    #[test]
    fn shapes_are_checked() {
        assert!(tensor_from_slice_copy(&[0.0; 5], [1, 1, 2, 3]).is_err());
        assert!(tensor_from_vec(vec![0.0; 5], [1, usize::MAX, 2, 3]).is_err());
    }
}
