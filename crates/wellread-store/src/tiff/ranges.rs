//! Where the bytes of a region of one image lie: its strips and tiles, without reading them.

use super::pieces::plan;
use super::planes::{Plane, Planes};
use super::read::{Context, Job};
use crate::place::WantedRanges;
use crate::{FormatContext, Result};
use wellread_image::Region;

impl Job<'_> {
    /// Adds the strips and tiles that [`Job::run`] is going to read. Pages that cannot be decoded add nothing: reading says why.
    pub(super) fn ranges(
        &self,
        context: &mut FormatContext,
        raw: &mut Vec<u8>,
        wanted: &mut WantedRanges,
    ) -> Result<()> {
        let context = context.get::<Context>();
        let Region { start: [.., y0, x0], size: [.., ny, nx] } = *self.region;
        for Plane { at, index, .. } in Planes::of(self.region, self.info.shape) {
            let plane = self.series.planes[index];
            let source = self.source(plane, at, context, raw)?;
            let page = self.page(&source, plane)?;
            if page.format.refusal.is_some() || page.format.codec.refusal().is_some() {
                continue;
            }
            let Context { pieces, sums, .. } = &mut *context;
            pieces.clear();
            sums.clear();
            plan(page, plane.sample as usize, [y0, x0], [ny, nx], 1, pieces, sums);
            for piece in pieces.iter().filter(|piece| !piece.segment.is_empty()) {
                wanted.push(source.path, piece.segment.offset, piece.segment.len);
            }
        }
        Ok(())
    }
}
