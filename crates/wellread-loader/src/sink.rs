//! The fused sink: decoded bytes to scaled floats in batch memory, in one pass.
//!
//! A store hands over blocks (chunks, strips, pages). For each, the sink takes the part that lies in the
//! requested region and converts it, plane by plane, straight to its final place, turned and scaled. Images
//! that are resized or rotated by a few degrees go to the intermediate buffer instead, in the same way.

use crate::kernels::{Affine, Patch, convert_patch};
use crate::orientation::Orientation;
use crate::simd::Level;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use wellread_image::Region;
use wellread_store::{Block, Error, PixelSink, Request, Result, RowInfo};

/// Where the pixels of one request go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// Pixel type expected.
    pub(crate) info: RowInfo,
    /// Which of the outputs the image goes to.
    pub(crate) part: usize,
    /// Offset of the image's first float, in that output or in the intermediate buffer.
    pub(crate) start: usize,
    /// Whether it goes to the intermediate buffer.
    pub(crate) intermediate: bool,
    /// Output channels of the image, and the one that the region's first channel becomes.
    pub(crate) channels: usize,
    pub(crate) first_channel: usize,
    /// Where pixels go within each plane.
    pub(crate) orientation: Orientation,
    /// Pixels still to come.
    pub(crate) missing: usize,
}

/// See the module's documentation.
pub(crate) struct FusedSink<'a, 'b> {
    pub(crate) path: &'a Path,
    /// Parallel to `targets`.
    pub(crate) requests: &'a [Request],
    pub(crate) targets: &'a mut [Target],
    /// Memory of one batch or, where reads are joined, of several.
    pub(crate) out: &'a mut [&'b mut [f32]],
    pub(crate) intermediate: &'a mut [f32],
    /// One per output channel.
    pub(crate) affine: &'a [Affine],
    pub(crate) level: Level,
    /// Set when nobody wants the result any more: reading ends at the next block.
    pub(crate) stop: Option<&'a AtomicBool>,
}

impl FusedSink<'_, '_> {
    /// Whether every request got all its pixels. A store that breaks its promise would otherwise leave
    /// pixels of an earlier batch in place.
    pub(crate) fn check_complete(&self) -> Result<()> {
        match self.targets.iter().position(|target| target.missing > 0) {
            None => Ok(()),
            Some(i) => Err(Error::new(
                self.path,
                format_args!("the reader delivered {} pixels too few", self.targets[i].missing),
            )
            .row(self.requests[i].row)
            .hint("this is a defect of the format's reader, or the file is corrupt")),
        }
    }
}

impl PixelSink for FusedSink<'_, '_> {
    fn put(&mut self, request: usize, block: &Block<'_>) -> Result<()> {
        let Request { row, region } = self.requests[request];
        if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(Error::new(self.path, "reading was cancelled").row(row));
        }
        let target = &mut self.targets[request];
        let size = block.dtype.size();
        if block.dtype != target.info.dtype || block.data.len() != block.region.pixels() * size {
            return Err(Error::new(
                self.path,
                format_args!(
                    "the reader delivered {} bytes of {} for {} pixels of {}",
                    block.data.len(),
                    block.dtype,
                    block.region.pixels(),
                    target.info.dtype
                ),
            )
            .row(row)
            .hint("this is a defect of the format's reader, or the file is corrupt"));
        }
        let Some(shared) = intersection(&block.region, &region) else { return Ok(()) };
        target.missing = target.missing.saturating_sub(shared.pixels());
        let plane_len = region.size[3] * region.size[4];
        let [t0, c0, z0, y0, x0] = shared.start;
        let [_, block_c, block_z, block_y, block_x] = block.region.size;
        let [rows, columns] = [shared.size[3], shared.size[4]];
        let to = target.orientation.at(y0 - region.start[3], x0 - region.start[4]);
        let skipped = (y0 - block.region.start[3]) * block_x + (x0 - block.region.start[4]);
        let memory = if target.intermediate { &mut *self.intermediate } else { &mut *self.out[target.part] };
        for t in t0..t0 + shared.size[0] {
            for c in c0..c0 + shared.size[1] {
                let channel = target.first_channel + c - region.start[1];
                for z in z0..z0 + shared.size[2] {
                    let [bt, bc, bz] =
                        [t - block.region.start[0], c - block.region.start[1], z - block.region.start[2]];
                    let from = ((bt * block_c + bc) * block_z + bz) * block_y * block_x + skipped;
                    let plane = ((t - region.start[0]) * target.channels + channel) * region.size[2]
                        + (z - region.start[2]);
                    let patch = Patch {
                        data: &block.data[from * size..],
                        dtype: block.dtype,
                        rows,
                        columns,
                        stride: block_x,
                    };
                    let plane = &mut memory[target.start + plane * plane_len..][..plane_len];
                    convert_patch(self.level, &patch, to, self.affine[channel], plane);
                }
            }
        }
        Ok(())
    }
}

/// The box that two boxes share. Unlike `clip_runs` it keeps rows and columns apart, which turning needs.
fn intersection(a: &Region, b: &Region) -> Option<Region> {
    let mut shared = Region { start: [0; 5], size: [0; 5] };
    for axis in 0..5 {
        let start = a.start[axis].max(b.start[axis]);
        let end = (a.start[axis] + a.size[axis]).min(b.start[axis] + b.size[axis]);
        shared.start[axis] = start;
        shared.size[axis] = end.checked_sub(start).filter(|&n| n > 0)?;
    }
    Some(shared)
}
