//! Sinks that put no pixels anywhere themselves.

use crate::{Block, PixelSink, Result};
use wellread_image::Region;

/// Takes pixels that nobody wants.
#[derive(Clone, Copy, Debug)]
pub struct Discard;

impl PixelSink for Discard {
    fn put(&mut self, _: usize, _: &Block<'_>) -> Result<()> {
        Ok(())
    }

    fn mark_unmasked(&mut self, _: usize, _: &Block<'_>) {}
}

/// Hands blocks on under other numbers of requests: for a store that hands some of its requests on to another one.
pub struct NumberedSink<'a> {
    /// By the number of a request as it is read, that which the sink knows.
    pub numbers: &'a [usize],
    /// The consumer of the pixels.
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

    fn mark_unmasked(&mut self, request: usize, unmasked: &Block<'_>) {
        self.sink.mark_unmasked(self.numbers[request], unmasked);
    }
}
