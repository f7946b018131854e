//! The parts that the layouts of pages share: memory that is used again, and bytes of the file that may have been
//! fetched before.

use super::ahead::{Ahead, Extent};
use super::general::Decompressed;
use super::input::Input;
use super::levels::Run;
use arrow_buffer::MutableBuffer;
use wellread_store::direct::{Fault, trim};

/// Memory that is used again from page to page.
#[derive(Debug, Default)]
pub(super) struct DecodeBuffers {
    /// Bytes of the file.
    pub raw: Vec<u64>,
    /// Chunks that were fetched before they are read.
    pub ahead: Ahead,
    /// Levels: those of repetition, those of definition, and both put together.
    pub runs: Vec<Run>,
    pub defined: Vec<Run>,
    pub marked: Vec<Run>,
    /// Places in a dictionary, and the content of zstd or LZ4.
    pub indices: MutableBuffer,
    pub decompressed: Decompressed,
}

impl DecodeBuffers {
    /// Gives memory back that is more than is worth keeping.
    pub fn trim(&mut self) {
        self.ahead.clear();
        trim(self.raw.len() * 8, &mut self.raw);
        trim(self.indices.capacity(), &mut self.indices);
        trim(self.decompressed.capacity(), &mut self.decompressed);
    }
}

/// Bytes of the file: those that were fetched before, or else read into `raw`.
pub(super) fn fetched<'a>(
    input: &Input,
    extent: Extent,
    ahead: &'a Ahead,
    raw: &'a mut Vec<u64>,
) -> Result<&'a [u8], Fault> {
    match ahead.get(input, extent) {
        Some(bytes) => Ok(bytes),
        None => input.read(extent.0, extent.1, raw),
    }
}

/// Bytes of a leaf's values, stored and delivered, and how deep they lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeafWidths {
    /// Bytes of a value as it is stored.
    pub size: usize,
    /// Bytes of a value as it is delivered.
    pub width: usize,
    /// Lists around it.
    pub depth: usize,
}
