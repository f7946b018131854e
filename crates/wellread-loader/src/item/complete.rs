//! The steps after reading, image by image. They are illumination, turning of pixels that were read untransformed,
//! resize and rotation, then the steps of [`crate::postprocess`], rounding to half precision, dropped channels.
//!
//! ```text
//!   Maximum ──▶ Untransformed ──▶ Turned ──▶ resize, rotate ──▶ finish ──▶ half precision ──▶ drop
//!   (stored)    × field      × affine    (when asked for)
//!               0 by a mask
//! ```
//!
//! An image enters where its [`PixelDestination`] put it; each step writes to the batch itself when it is the last.

use super::read::grow;
use super::{Item, Job, PostReadBuffers};
use crate::compiled_transform::CompiledTransform;
use crate::draw::{Draws, Purpose};
use crate::dtype::Output;
use crate::kernels::plane::zero_others;
use crate::kernels::{Affine, Patch, bytes_of, convert, convert_patch, narrow};
use crate::postprocess::Origin;
use crate::resample::{nearest, rotate};
use crate::simd::Level;
use crate::sink::PixelDestination;
use wellread_image::PixelType;
use wellread_store::Result;

/// Where the image's floats are.
#[derive(Clone, Copy, PartialEq)]
enum FloatsAt {
    /// In the batch: they are what it holds, or will be when no step is left.
    Out,
    /// In the intermediate buffer.
    Intermediate,
    /// In [`PostReadBuffers::turned`].
    Turned,
    /// In [`PostReadBuffers::floats`].
    Own,
}

impl PostReadBuffers {
    /// Does what is left to do for `item`. `out` is its place in the batch.
    pub(super) fn complete(
        &mut self,
        job: &Job<'_>,
        item: &Item,
        affine: &[Affine],
        intermediate: &mut [f32],
        out: &mut [u8],
    ) -> Result<()> {
        let compiled = &job.arrays[item.array].compiled;
        let level = Level::detect();
        // Floats that are not yet what the batch holds need memory of their own.
        let is_half = matches!(compiled.output, Output::F16 | Output::BF16);
        let (read, mut at) = match item.destination {
            PixelDestination::Out { .. } => (&mut [][..], FloatsAt::Out),
            PixelDestination::Turned { start } | PixelDestination::Stored { start } => {
                (&mut intermediate[start..start + item.intermediate], FloatsAt::Intermediate)
            }
            PixelDestination::Untransformed { start } | PixelDestination::Maximum { start } => {
                let read = &mut intermediate[start..start + item.intermediate];
                let to = match (item.resampled, compiled.post_process.is_some() && is_half) {
                    (true, _) => FloatsAt::Turned,
                    (false, true) => FloatsAt::Own,
                    (false, false) => FloatsAt::Out,
                };
                self.turn(job, item, affine, read, out, to)?;
                (read, to)
            }
        };
        if item.resampled {
            let images = out.len() / compiled.output.dtype(item.info.dtype).size();
            let Self { turned, floats, resized, resampler, .. } = self;
            let source = if at == FloatsAt::Turned { &turned[..] } else { &*read };
            at = if is_half { FloatsAt::Own } else { FloatsAt::Out };
            let target = if is_half {
                grow(floats, images, job.dataset)?;
                &mut floats[..images]
            } else {
                bytemuck::cast_slice_mut(&mut *out)
            };
            let from = item.placement.turned_size();
            let resize = compiled.transform.resize.filter(|to| (to.height, to.width) != from);
            let size = resize.map_or(from, |to| (to.height, to.width));
            let degrees = item.placement.degrees;
            if resize.is_some() && degrees != 0.0 {
                grow(resized, size.0 * size.1, job.dataset)?;
            }
            let (from_size, made) = (from.0 * from.1, size.0 * size.1);
            match resize {
                // All planes at once.
                Some(resize) if degrees == 0.0 => resampler.resize(level, source, from, resize, target),
                Some(resize) => {
                    let middle = &mut resized[..made];
                    for (plane, target) in source.chunks_exact(from_size).zip(target.chunks_exact_mut(made)) {
                        resampler.resize(level, plane, from, resize, middle);
                        rotate(level, middle, size, degrees, target);
                    }
                }
                None => {
                    for (plane, target) in source.chunks_exact(from_size).zip(target.chunks_exact_mut(made)) {
                        rotate(level, plane, from, degrees, target);
                    }
                }
            }
            // A mask stays 0 and 1.
            let depth = compiled.transform.depth(item.info.shape);
            let planes = source.chunks_exact(from_size).zip(target.chunks_exact_mut(made)).enumerate();
            for (_, (plane, target)) in
                planes.filter(|(number, _)| compiled.is_mask(number / depth % compiled.channels.len()))
            {
                nearest(size_of::<f32>(), bytemuck::cast_slice(plane), from, size, degrees, bytes_of(target));
            }
        }
        let Self { floats, percentiles, .. } = self;
        // Values of a pixel's own type, as they are before scaling by percentiles.
        let is_whole = !item.resampled
            && !compiled.transform.is_corrected()
            && !item.info.dtype.is_float()
            && item.info.dtype.size() <= 2;
        let origin = Origin { is_whole, is_resampled: item.resampled };
        let size = [item.info.shape.t(), compiled.channels.len()];
        let mut finish = |floats: &mut [f32]| {
            if let Some(finish) = &compiled.post_process {
                let last = item.final_affine.map(|last| &affine[last..last + compiled.channels.len()]);
                finish.run(level, item.draws, floats, size, last, (&mut *percentiles, origin));
            }
        };
        if at == FloatsAt::Out {
            if compiled.post_process.is_some() {
                finish(bytemuck::cast_slice_mut(&mut *out));
            }
        } else {
            let halves: &mut [u16] = bytemuck::cast_slice_mut(&mut *out);
            let floats = if at == FloatsAt::Own { &mut floats[..halves.len()] } else { read };
            finish(floats);
            narrow(level, compiled.output, floats, halves);
        }
        drop_channels(compiled, item.draws, item.info.shape.t(), out);
        Ok(())
    }

    /// From untransformed pixels, or those of the maximum, to turned and scaled ones.
    fn turn(
        &mut self,
        job: &Job<'_>,
        item: &Item,
        affine: &[Affine],
        read: &mut [f32],
        out: &mut [u8],
        to: FloatsAt,
    ) -> Result<()> {
        let (compiled, level) = (&job.arrays[item.array].compiled, Level::detect());
        let (height, width) = (item.placement.height, item.placement.width);
        let depth = compiled.transform.depth(item.info.shape);
        let channels = compiled.channels.len();
        let plane = height * width;
        let pixels = item.info.shape.t() * channels * depth * plane;
        let Self { untransformed, turned, floats, fields, .. } = self;
        let mut dtype = PixelType::F32;
        let (mut source, own_pixels) = read.split_at_mut(read.len() - item.mask_floats);
        let own_pixels = &*bytes_of(own_pixels);
        if matches!(item.destination, PixelDestination::Maximum { .. }) {
            if compiled.transform.is_corrected() {
                grow(untransformed, pixels, job.dataset)?;
                let stored = &bytes_of(source)[..pixels * item.info.dtype.size()];
                convert(item.info.dtype, stored, Affine::IDENTITY, &mut untransformed[..pixels]);
                source = untransformed;
            } else {
                dtype = item.info.dtype;
            }
        }
        let lit = compiled.illuminated_image(job.dataset, item.row, item.info.shape)?;
        if let Some(of_rows) = compiled.fields() {
            of_rows.find(item.row, lit.shape, fields)?;
        }
        if compiled.transform.is_corrected() {
            // A field of all channels is in the order of the images that it is for.
            let has_other_channel_order = item.has_other_channel_order && compiled.fields().is_some();
            let own = compiled.channels_of(job.dataset, item.row, has_other_channel_order)?;
            for (number, plane) in source[..pixels].chunks_exact_mut(plane).enumerate() {
                let channel = number / depth % channels;
                if compiled.is_mask(channel) {
                    continue;
                }
                let field = match &compiled.transform.illumination {
                    Some(field) => &**field,
                    None => fields.channel(channel),
                };
                let start =
                    [lit.start[0] + item.placement.top as i64, lit.start[1] + item.placement.left as i64];
                field.correct(level, own[channel], start, width, plane);
                if item.mask_floats > 0 {
                    let number = number / (channels * depth) * depth + number % depth;
                    zero_others(&own_pixels[number * plane.len()..], plane);
                }
            }
        }
        let (target, output) = match to {
            FloatsAt::Turned => {
                grow(turned, pixels, job.dataset)?;
                (bytes_of(&mut turned[..pixels]), Output::F32)
            }
            FloatsAt::Own => {
                grow(floats, pixels, job.dataset)?;
                (bytes_of(&mut floats[..pixels]), Output::F32)
            }
            FloatsAt::Out | FloatsAt::Intermediate => (out, compiled.output),
        };
        let source: &[u8] = &bytes_of(source)[..pixels * dtype.size()];
        let planes = source.chunks_exact(plane * dtype.size());
        let targets = target.chunks_exact_mut(plane * output.dtype(dtype).size());
        for (number, (data, target)) in planes.zip(targets).enumerate() {
            let patch = Patch { data, dtype, rows: height, columns: width, stride: width };
            let affine = affine[item.affine + number / depth % channels];
            convert_patch(level, &patch, item.orientation, affine, output, target);
        }
        Ok(())
    }
}

/// Makes dropped channels 0, which is 0 in every type. A mask stays. Were all others to be dropped, the one of the largest draw
/// stays.
fn drop_channels(compiled: &CompiledTransform, draws: Draws, times: usize, out: &mut [u8]) {
    let probability = f64::from(compiled.transform.channel_dropout);
    if probability == 0.0 {
        return;
    }
    let channels = compiled.channels.len();
    let drawn = |c: usize| draws.nth(Purpose::Dropout, c as u64).unit();
    let stains = (0..channels).filter(|&c| !compiled.is_mask(c));
    let kept = stains.max_by(|a, b| drawn(*a).total_cmp(&drawn(*b)));
    let each = out.len() / (times * channels);
    for (number, channel) in out.chunks_exact_mut(each).enumerate() {
        let c = number % channels;
        if drawn(c) < probability && kept != Some(c) && !compiled.is_mask(c) {
            channel.fill(0);
        }
    }
}
