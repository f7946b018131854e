//! Blocks of one part's requests, under the numbers of the whole's.

use crate::{Block, PixelSink, Result};
use wellread_image::Region;

/// Hands blocks on under the number that their request has among those of all parts.
pub(super) struct NumberedSink<'a> {
    pub numbers: &'a [usize],
    pub sink: &'a mut dyn PixelSink,
}

impl PixelSink for NumberedSink<'_> {
    fn put(&mut self, request: usize, block: &Block<'_>) -> Result<()> {
        self.sink.put(self.numbers[request], block)
    }

    fn takes_parts(&self) -> bool {
        self.sink.takes_parts()
    }

    fn put_part(&mut self, request: usize, block: &Block<'_>, part: &Region, to: [usize; 2]) -> Result<()> {
        self.sink.put_part(self.numbers[request], block, part, to)
    }
}
