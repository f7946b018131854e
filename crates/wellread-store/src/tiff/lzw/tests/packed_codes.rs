//! LZW codes as they are stored, for encoders of tests: these, and those of `tests/it/tiff/strips.rs`, which takes this file in.

/// Codes as they are stored, the most significant bit first.
#[derive(Default)]
pub(super) struct Codes {
    pub(super) packed: Vec<u8>,
    /// Those of a byte that is not full yet, and how many.
    bits: u64,
    count: u32,
}

impl Codes {
    pub(super) fn push(&mut self, code: usize, width: u32) {
        self.bits = self.bits << width | code as u64;
        self.count += width;
        while self.count >= 8 {
            self.count -= 8;
            self.packed.push((self.bits >> self.count) as u8);
        }
    }
}
