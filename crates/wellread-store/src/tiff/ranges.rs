//! Where the bytes of a region of one image lie: its strips and tiles, without reading them.

use super::pieces::plan;
use super::read::{Context, Job};
use crate::place::Wanted;
use crate::{FormatContext, Result};

impl Job<'_> {
    /// Adds the strips and tiles that [`Job::run`] is going to read. Pages that cannot be decoded add nothing: reading says why.
    pub(super) fn ranges(
        &self,
        context: &mut FormatContext,
        raw: &mut Vec<u8>,
        wanted: &mut Wanted,
    ) -> Result<()> {
        let context = context.get::<Context>();
        let [t0, c0, z0, y0, x0] = self.region.start;
        let [nt, nc, nz, ny, nx] = self.region.size;
        let shape = self.info.shape;
        for t in t0..t0 + nt {
            for c in c0..c0 + nc {
                for z in z0..z0 + nz {
                    let plane = self.series.planes[(t * shape.c() + c) * shape.z() + z];
                    let source = self.source(plane, [t, c, z], context, raw)?;
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
            }
        }
        Ok(())
    }
}
