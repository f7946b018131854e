//! The fused sink: decoded bytes to the numbers of a batch, in one pass.
//!
//! A store hands over blocks (chunks, strips, pages). For each, the sink takes the part that lies in the
//! requested region. It converts it, plane by plane, straight to its final place, turned and scaled. Images on which
//! more is to be done go to the intermediate buffer instead, in the same way. Several crops of one image take their
//! parts of the same blocks.

use crate::dtype::Output;
use crate::kernels::{Affine, Patch, bytes_of, convert_patch, plane};
use crate::orientation::Orientation;
use crate::pool::RowMemory;
use crate::reader_faults::{check_block, too_few};
use crate::simd::Level;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use wellread_image::Region;
use wellread_store::{Block, Error, PixelSink, Request, Result, RowInfo};
use wellread_trace::{Kind, span};

/// Bytes of a block from which on a trace shows its transform by itself. Smaller ones take less than a microsecond; they
/// are a part of what is around them.
const TRACED_BYTES: usize = 4 << 10;

/// No mask has told yet whether a pixel is left in.
pub(crate) const MASK_UNSET: u8 = 2;

/// In what form pixels are put down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PixelDestination {
    /// At their place in the batch, part `part` of several, image from byte `start` of an array on.
    Out { part: usize, array: usize, start: usize },
    /// In the intermediate buffer, turned and scaled, from float `start` on.
    Turned { start: usize },
    /// In the intermediate buffer, as floats, neither turned nor scaled.
    Untransformed { start: usize },
    /// In the intermediate buffer, turned, as stored, from float `start` on.
    Stored { start: usize },
    /// In the intermediate buffer, as the maximum over depth, as stored.
    Maximum { start: usize },
}

/// Where the pixels of one crop of a run of channels go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// Pixel type expected.
    pub(crate) info: RowInfo,
    /// The part of the image that it takes.
    pub(crate) region: Region,
    pub(crate) destination: PixelDestination,
    /// Output channels of the image, and the one that the region's first channel becomes.
    pub(crate) channels: usize,
    pub(crate) first_channel: usize,
    /// Where the factors of its channels begin.
    pub(crate) affine: usize,
    /// Where pixels go within each plane.
    pub(crate) orientation: Orientation,
    /// The float of the intermediate buffer from which on bytes tell the pixels that a mask left in, where they are told.
    pub(crate) mask_start: Option<usize>,
    /// Pixels still to come.
    pub(crate) missing: usize,
}

/// A part of a block.
struct Part {
    /// Where it lies in the row that was asked for.
    region: Region,
    /// Its first row and column in the block.
    within: [usize; 2],
}

/// See the module's documentation.
pub(crate) struct FusedSink<'a, 'b> {
    pub(crate) path: &'a Path,
    pub(crate) requests: &'a [Request],
    /// The targets that each request serves.
    pub(crate) serves: &'a [Range<usize>],
    pub(crate) targets: &'a mut [Target],
    /// Memory of one batch or, where reads are joined, of several.
    pub(crate) out: &'a mut [RowMemory<'b>],
    /// The type of its numbers.
    pub(crate) output: Output,
    pub(crate) intermediate: &'a mut [f32],
    /// One per output channel, of all images or of each.
    pub(crate) affine: &'a [Affine],
    pub(crate) level: Level,
    /// Set when nobody wants the result any more: reading ends at the next block.
    pub(crate) stop: Option<&'a AtomicBool>,
}

impl FusedSink<'_, '_> {
    /// Whether every request got all its pixels. A store that breaks its promise would otherwise leave
    /// pixels of an earlier batch in place.
    pub(crate) fn check_complete(&self) -> Result<()> {
        let Some(i) = self.targets.iter().position(|target| target.missing > 0) else { return Ok(()) };
        let request = self.serves.iter().position(|served| served.contains(&i)).unwrap_or(0);
        Err(too_few(self.path, self.requests[request].row, self.targets[i].missing))
    }

    /// The targets that a request serves, once the block is known to be one for them.
    fn served(&self, request: usize, block: &Block<'_>) -> Result<Range<usize>> {
        let row = self.requests[request].row;
        if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(Error::new(self.path, "reading was cancelled").row(row));
        }
        let served = self.serves[request].clone();
        check_block(self.path, row, self.targets[served.start].info.dtype, block)?;
        Ok(served)
    }

    /// Takes what its targets need of a part of a block, of which so many bytes come with it.
    fn put_served(&mut self, served: Range<usize>, row: usize, block: &Block<'_>, part: &Part, bytes: usize) {
        let _transform =
            (bytes >= TRACED_BYTES).then(|| span(Kind::Transform).with(row as u64, bytes as u64));
        served.for_each(|target| self.put_target(target, block, part));
    }

    /// Takes what a target needs of a part of a block.
    fn put_target(&mut self, target: usize, block: &Block<'_>, part: &Part) {
        let target = &mut self.targets[target];
        let Some(shared) = part.region.intersection(&target.region) else { return };
        target.missing = target.missing.saturating_sub(shared.pixels());
        let &mut Target { region, destination, channels, first_channel, affine, orientation, .. } = target;
        let size = block.dtype.size();
        let [t0, c0, z0, y0, x0] = shared.start;
        let [_, block_c, block_z, block_y, block_x] = block.region.size;
        let [rows, columns] = [shared.size[3], shared.size[4]];
        let at = [y0 - region.start[3], x0 - region.start[4]];
        let [below, right] = [y0 - part.region.start[3], x0 - part.region.start[4]];
        let skipped = (part.within[0] + below) * block_x + part.within[1] + right;
        let straight = Orientation { first: 0, row_step: region.size[4] as isize, column_step: 1 };
        let (memory, start, output, to) = match destination {
            PixelDestination::Out { part, array, start } => {
                (self.out[part].array(array), start, self.output, orientation)
            }
            PixelDestination::Turned { start } => {
                (bytes_of(self.intermediate), start * 4, Output::F32, orientation)
            }
            PixelDestination::Untransformed { start } => {
                (bytes_of(self.intermediate), start * 4, Output::F32, straight)
            }
            PixelDestination::Stored { start } => {
                (bytes_of(self.intermediate), start * 4, Output::Stored, orientation)
            }
            PixelDestination::Maximum { start } => {
                (bytes_of(self.intermediate), start * 4, Output::Stored, straight)
            }
        };
        let plane_bytes = region.size[3] * region.size[4] * output.dtype(block.dtype).size();
        let depth = if matches!(destination, PixelDestination::Maximum { .. }) { 1 } else { region.size[2] };
        for t in t0..t0 + shared.size[0] {
            for c in c0..c0 + shared.size[1] {
                let channel = first_channel + c - region.start[1];
                for z in z0..z0 + shared.size[2] {
                    let [bt, bc, bz] =
                        [t - block.region.start[0], c - block.region.start[1], z - block.region.start[2]];
                    let from = ((bt * block_c + bc) * block_z + bz) * block_y * block_x + skipped;
                    let number = ((t - region.start[0]) * channels + channel) * depth
                        + (z - region.start[2]).min(depth - 1);
                    let patch = Patch {
                        data: &block.data[from * size..],
                        dtype: block.dtype,
                        rows,
                        columns,
                        stride: block_x,
                    };
                    let plane = &mut memory[start + number * plane_bytes..][..plane_bytes];
                    match destination {
                        PixelDestination::Maximum { .. } => {
                            plane::maximum(self.level, &patch, at, region.size[4], plane);
                        }
                        PixelDestination::Out { .. }
                        | PixelDestination::Turned { .. }
                        | PixelDestination::Stored { .. } => {
                            let affine = self.affine[affine + channel];
                            convert_patch(self.level, &patch, to.at(at[0], at[1]), affine, output, plane);
                        }
                        PixelDestination::Untransformed { .. } => {
                            let to = to.at(at[0], at[1]);
                            convert_patch(self.level, &patch, to, Affine::IDENTITY, output, plane);
                        }
                    }
                }
            }
        }
    }
}

impl PixelSink for FusedSink<'_, '_> {
    fn put(&mut self, request: usize, block: &Block<'_>) -> Result<()> {
        let served = self.served(request, block)?;
        let Request { row, region } = self.requests[request];
        // Blocks may exceed the request; the pixels of another request come with that.
        let Some(part) = block.region.intersection(&region) else { return Ok(()) };
        let within = [3, 4].map(|axis| part.start[axis] - block.region.start[axis]);
        self.put_served(served, row, block, &Part { region: part, within }, block.data.len());
        Ok(())
    }

    fn takes_parts(&self) -> bool {
        true
    }

    fn put_part(&mut self, request: usize, block: &Block<'_>, part: &Region, to: [usize; 2]) -> Result<()> {
        let served = self.served(request, block)?;
        let Request { row, region } = self.requests[request];
        let mut moved = *part;
        moved.start[3..].copy_from_slice(&to);
        let Some(shared) = moved.intersection(&region) else { return Ok(()) };
        let within = [3, 4].map(|axis| {
            (part.start[axis] - block.region.start[axis]) + (shared.start[axis] - moved.start[axis])
        });
        let bytes = shared.pixels() * block.dtype.size();
        self.put_served(served, row, block, &Part { region: shared, within }, bytes);
        Ok(())
    }

    fn mark_unmasked(&mut self, request: usize, unmasked: &Block<'_>) {
        for target in &self.targets[self.serves[request].clone()] {
            if let Some(start) = target.mask_start {
                mark_target(target, unmasked, bytes_of(&mut self.intermediate[start..]));
            }
        }
    }
}

/// Notes in `marked`, a byte for each pixel of a channel of a target, which pixels a mask left in. Where the maximum over depth is
/// taken, one plane that has the pixel will do.
fn mark_target(target: &Target, unmasked: &Block<'_>, marked: &mut [u8]) {
    let Region { start, size: [times, _, depth, height, width] } = target.region;
    let mut plane = unmasked.region;
    plane.start[..3].copy_from_slice(&start[..3]);
    plane.size[..3].copy_from_slice(&target.region.size[..3]);
    let Some(shared) = plane.intersection(&target.region) else { return };
    let ([_, _, _, y0, x0], [_, _, unmasked_depth, unmasked_height, unmasked_width]) =
        (unmasked.region.start, unmasked.region.size);
    let along = |axis: usize, i: usize| {
        i.saturating_sub(unmasked.region.start[axis]).min(unmasked.region.size[axis] - 1)
    };
    let kept = if matches!(target.destination, PixelDestination::Maximum { .. }) { 1 } else { depth };
    for (t, z) in (0..times).flat_map(|t| (0..depth).map(move |z| (t, z))) {
        let from = (along(0, start[0] + t) * unmasked_depth + along(2, start[2] + z)) * unmasked_height;
        let to = (t * kept + z.min(kept - 1)) * height;
        for y in shared.start[3]..shared.start[3] + shared.size[3] {
            let first = (from + y - y0) * unmasked_width + shared.start[4] - x0;
            let source = &unmasked.data[first..first + shared.size[4]];
            let first = (to + y - start[3]) * width + shared.start[4] - start[4];
            for (marked, own) in marked[first..first + shared.size[4]].iter_mut().zip(source) {
                *marked = if *marked == MASK_UNSET { *own } else { *marked | *own };
            }
        }
    }
}
