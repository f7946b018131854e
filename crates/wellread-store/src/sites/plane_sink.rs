//! Blocks of single files, moved to where they lie in their site.

use crate::{Block, PixelSink, Result};
use wellread_image::Region;

/// Where the pixels of a file's request go.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlaneOrigin {
    /// The request of the site.
    pub request: usize,
    /// The file's index along T, C and Z in its site.
    pub origin: [usize; 3],
    /// Whether it has one along each of these.
    pub given: [bool; 3],
}

impl PlaneOrigin {
    /// Hands a block of the file on, at its place in the site.
    pub fn put(&self, block: &Block<'_>, sink: &mut dyn PixelSink) -> Result<()> {
        let given = |axis: &usize| self.given[*axis];
        // A file has one index along a given axis. A block may be longer there, as chunks beyond an image's border are.
        let is_plain = (0..3).filter(given).all(|a| block.region.start[a] == 0 && block.region.size[a] == 1);
        if is_plain {
            let mut region = block.region;
            for axis in (0..3).filter(given) {
                region.start[axis] = self.origin[axis];
            }
            return sink.put(self.request, &Block { region, ..*block });
        }
        let Region { start, size } = block.region;
        let bytes = size[3] * size[4] * block.dtype.size();
        // Along a given axis the file's one index is 0.
        let indices = |axis: usize| {
            let is_beyond = start[axis] > 0;
            if !self.given[axis] {
                0..size[axis]
            } else if is_beyond {
                0..0
            } else {
                0..size[axis].min(1)
            }
        };
        for t in indices(0) {
            for c in indices(1) {
                for z in indices(2) {
                    let at = ((t * size[1] + c) * size[2] + z) * bytes;
                    let place = |axis: usize, index: usize| {
                        if self.given[axis] { self.origin[axis] } else { start[axis] + index }
                    };
                    let region = Region {
                        start: [place(0, t), place(1, c), place(2, z), start[3], start[4]],
                        size: [1, 1, 1, size[3], size[4]],
                    };
                    let data = &block.data[at..at + bytes];
                    sink.put(self.request, &Block { region, data, dtype: block.dtype })?;
                }
            }
        }
        Ok(())
    }
}

/// Hands blocks of requests of files on.
pub(super) struct PlaneSink<'a> {
    /// The origin of each request.
    pub origins: &'a [PlaneOrigin],
    pub sink: &'a mut dyn PixelSink,
}

impl PixelSink for PlaneSink<'_> {
    fn put(&mut self, request: usize, block: &Block<'_>) -> Result<()> {
        self.origins[request].put(block, self.sink)
    }

    // Files are no cells.
    fn mark_unmasked(&mut self, _: usize, _: &Block<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CopySink;
    use wellread_image::PixelType;

    #[test]
    fn blocks_go_to_their_channel() {
        let whole = Region { start: [0; 5], size: [1, 3, 2, 1, 2] };
        let mut out = vec![0u8; 12];
        let mut sink = CopySink::new(vec![(whole, PixelType::U8, out.as_mut_slice())]);
        let place = PlaneOrigin { request: 0, origin: [0, 2, 0], given: [false, true, false] };
        // A stack of two planes; then one that is longer along C than the file is.
        let region = Region { start: [0; 5], size: [1, 1, 2, 1, 2] };
        place.put(&Block { region, data: &[1, 2, 3, 4], dtype: PixelType::U8 }, &mut sink).unwrap();
        let region = Region { start: [0; 5], size: [1, 2, 2, 1, 2] };
        let place = PlaneOrigin { origin: [0, 1, 0], ..place };
        place
            .put(&Block { region, data: &[5, 6, 7, 8, 9, 9, 9, 9], dtype: PixelType::U8 }, &mut sink)
            .unwrap();
        drop(sink);
        assert_eq!(out, [0, 0, 0, 0, 5, 6, 7, 8, 1, 2, 3, 4]);
    }
}
