//! The boundary between host memory and the backend's tensor, with and without a copy.
//!
//! What candle can and cannot do on the CPU, which is what the `conversion` benchmark reports:
//!
//! * [`tensor_from_slice_copy`] copies borrowed memory: every float once.
//! * [`tensor_from_vec`] takes a `Vec<f32>` over as the tensor's own memory: no pixel is touched, the address
//!   stays the same. The vector belongs to the tensor from then on and is freed with it: candle has no way of
//!   giving it back, so a caller pays for a fresh buffer per batch instead of reusing one.
//! * Borrowed memory cannot become a candle tensor without a copy: its storage owns a `Vec`.
//!
//! The models of this crate take borrowed batches and copy them once into the input tensor: for a small CNN
//! this is far below one percent of a forward pass.

use crate::model::check_batch;
use crate::{Error, Result};
use candle_core::{Device, Storage, Tensor};

/// An `N x C x H x W` float tensor of the embedded backend, on the CPU.
#[derive(Debug)]
pub struct TensorHandle {
    tensor: Tensor,
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

    /// Calls `read` with the tensor's own memory, in C order: to check it or to sum it up.
    ///
    /// # Errors
    /// A failure of the backend.
    pub fn with_values<R>(&self, read: impl FnOnce(&[f32]) -> R) -> Result<R> {
        let (storage, layout) = self.tensor.storage_and_layout();
        match (&*storage, layout.contiguous_offsets()) {
            (Storage::Cpu(storage), Some((start, end))) => Ok(read(&storage.as_slice::<f32>()?[start..end])),
            _ => Err(Error::new("the tensor does not lie in one piece on the CPU")),
        }
    }
}

/// Copies `pixels` into a tensor of `shape` (NCHW).
///
/// # Errors
/// A shape that does not fit.
pub fn tensor_from_slice_copy(pixels: &[f32], shape: [usize; 4]) -> Result<TensorHandle> {
    check_batch(pixels, shape, shape[1])?;
    let tensor = Tensor::from_slice(pixels, shape.as_slice(), &Device::Cpu)?;
    Ok(TensorHandle { tensor, shape, copied_bytes: size_of_val(pixels) })
}

/// Makes `pixels` a tensor of `shape` (NCHW) without copying; the tensor owns the memory from then on.
///
/// # Errors
/// A shape that does not fit.
pub fn tensor_from_vec(pixels: Vec<f32>, shape: [usize; 4]) -> Result<TensorHandle> {
    check_batch(&pixels, shape, shape[1])?;
    let tensor = Tensor::from_vec(pixels, shape.as_slice(), &Device::Cpu)?;
    Ok(TensorHandle { tensor, shape, copied_bytes: 0 })
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
        assert!(copy.with_values(|v| v == pixels && v.as_ptr() != address).unwrap());

        let expected = pixels.clone();
        let moved = tensor_from_vec(pixels, [2, 1, 3, 4]).unwrap();
        assert_eq!(moved.copied_bytes(), 0);
        assert_eq!(moved.shape(), [2, 1, 3, 4]);
        assert!(moved.with_values(|v| v == expected && v.as_ptr() == address).unwrap());
    }

    #[test]
    fn shapes_are_checked() {
        assert!(tensor_from_slice_copy(&[0.0; 5], [1, 1, 2, 3]).is_err());
        assert!(tensor_from_vec(vec![0.0; 5], [1, usize::MAX, 2, 3]).is_err());
    }
}
