//! The memory that images and their tensors lie in: taken and touched outside of the clocks, and used again.
//!
//! ```text
//! two buffers ──take──▶ array ──convert──▶ tensor ──give──▶ behind the other buffer
//!                         └─ of the path with a copy: the second buffer is the tensor's
//! ```
//!
//! Memory that is taken anew for each image has a cost that depends on the C library's heap. The heap keeps freed
//! memory or gives it back to the kernel, depending on how much a path frees. The page faults of the next image would
//! then fall on the clock of reading, of one path alone. Both paths go through the same two buffers here, as a training
//! loop's batches do. That of the batch before is there while the next is filled.

use anyhow::{Context as _, Result};
use std::collections::VecDeque;
use wellread_model::TensorHandle;

/// Buffers of a turn, the one that was used longest ago first.
pub(super) struct TurnMemory {
    free: VecDeque<Vec<f32>>,
}

impl TurnMemory {
    /// Two buffers without memory.
    pub(super) fn new() -> Self {
        Self { free: VecDeque::from([Vec::new(), Vec::new()]) }
    }

    /// Makes both buffers large enough for `floats`, and writes to memory that is new.
    ///
    /// # Errors
    /// More memory than there is.
    pub(super) fn prepare(&mut self, floats: usize) -> Result<()> {
        for buffer in self.free.iter_mut().filter(|buffer| buffer.capacity() < floats) {
            buffer.clear();
            buffer
                .try_reserve_exact(floats)
                .with_context(|| format!("no memory for an image of {floats} floats"))?;
            buffer.resize(floats, f32::NAN);
        }
        Ok(())
    }

    /// The buffer that was used longest ago.
    pub(super) fn take(&mut self) -> Vec<f32> {
        self.free.pop_front().unwrap_or_default()
    }

    /// Gives a buffer back.
    pub(super) fn give(&mut self, buffer: Vec<f32>) {
        self.free.push_back(buffer);
    }

    /// Gives the memory of a tensor back.
    pub(super) fn give_tensor(&mut self, tensor: TensorHandle) {
        self.give(tensor.into_values());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choices::TensorPath;
    use crate::conversion::tensor_of;

    #[test]
    fn both_paths_go_through_the_same_two_buffers_in_turn() {
        for &path in TensorPath::ALL {
            let mut memory = TurnMemory::new();
            memory.prepare(6).unwrap();
            let there: Vec<*const f32> = memory.free.iter().map(Vec::as_ptr).collect();
            assert_ne!(there[0], there[1]);
            let mut used = Vec::new();
            for image in 0..6 {
                memory.prepare(6).unwrap();
                let mut array = memory.take();
                array.clear();
                array.extend((0..6).map(|i| (10 * image + i) as f32));
                let expected = array.clone();
                let read_into = array.as_ptr();
                let tensor = tensor_of(path, array, [1, 1, 2, 3], &mut memory).unwrap();
                assert_eq!(tensor.values(), expected);
                assert_eq!(tensor.copied_bytes(), if path == TensorPath::Copy { 24 } else { 0 });
                used.push([read_into, tensor.values().as_ptr()]);
                memory.give_tensor(tensor);
            }
            let [a, b] = [there[0], there[1]];
            let expected = match path {
                TensorPath::Copy => [[a, b]; 6],
                TensorPath::ZeroCopy => [[a, a], [b, b], [a, a], [b, b], [a, a], [b, b]],
            };
            assert_eq!(used, expected, "{path:?}");
        }
    }

    #[test]
    fn memory_grows_with_the_images_and_too_much_is_an_error() {
        let mut memory = TurnMemory::new();
        memory.prepare(4).unwrap();
        memory.prepare(2).unwrap();
        assert!(memory.free.iter().all(|buffer| buffer.len() == 4));
        memory.prepare(8).unwrap();
        assert!(memory.free.iter().all(|buffer| buffer.len() == 8));
        let error = memory.prepare(usize::MAX).unwrap_err();
        assert!(error.to_string().contains("no memory for an image"), "{error}");
    }
}
