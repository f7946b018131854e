//! Labels after reading: turned where the maximum over depth was taken, the nearest one where they are resized or rotated.
//! None are mixed, so no value appears that was not there.
//!
//! ```text
//!   Maximum ──▶ turned ─┐
//!   (stored)            ├──▶ nearest ──▶ batch (stored, or as floats)
//!   Stored ─────────────┘
//! ```

use super::read::grow;
use super::{Item, Job, PostReadBuffers};
use crate::dtype::{Element, Output};
use crate::kernels::{Affine, Patch, bytes_of, convert_patch};
use crate::orientation::{Orientation, Turn};
use crate::resample::nearest;
use crate::simd::Level;
use crate::sink::PixelDestination;
use half::{bf16, f16};
use wellread_image::PixelType;
use wellread_store::row_location::path_of_set;
use wellread_store::{Error, Result};

impl PostReadBuffers {
    /// Does what is left to do for the labels of `item`. `out` is their place in the batch.
    ///
    /// # Errors
    /// Labels that the type of the batch would round.
    pub(super) fn complete_labels(
        &mut self,
        job: &Job<'_>,
        item: &Item,
        intermediate: &mut [f32],
        out: &mut [u8],
    ) -> Result<()> {
        self.place_labels(job, item, intermediate, out)?;
        check_exact(job, item, out)
    }

    fn place_labels(
        &mut self,
        job: &Job<'_>,
        item: &Item,
        intermediate: &mut [f32],
        out: &mut [u8],
    ) -> Result<()> {
        let compiled = &job.arrays[item.array].compiled;
        let dtype = item.info.dtype;
        let Self { turned, floats, .. } = self;
        let source: &[u8] = match item.destination {
            PixelDestination::Stored { start } => {
                bytes_of(&mut intermediate[start..start + item.intermediate])
            }
            PixelDestination::Maximum { start } => {
                let size = [item.placement.height, item.placement.width];
                let read = bytes_of(&mut intermediate[start..start + item.intermediate]);
                if !item.resampled {
                    convert_planes(dtype, read, size, item.orientation, compiled.output, out);
                    return Ok(());
                }
                grow(turned, item.intermediate, job.dataset)?;
                let turned = bytes_of(&mut turned[..item.intermediate]);
                convert_planes(dtype, read, size, item.orientation, Output::Stored, turned);
                turned
            }
            // They are where they belong: labels have neither illumination nor anything else that is computed.
            PixelDestination::Out { .. }
            | PixelDestination::Turned { .. }
            | PixelDestination::Untransformed { .. } => {
                return Ok(());
            }
        };
        let from = item.placement.turned_size();
        let to = compiled.transform.resize.map_or(from, |resize| (resize.height, resize.width));
        let degrees = item.placement.degrees;
        let planes = source.chunks_exact(from.0 * from.1 * dtype.size());
        let pixels = to.0 * to.1;
        let stored = pixels * dtype.size();
        if compiled.output == Output::Stored {
            for (plane, target) in planes.zip(out.chunks_exact_mut(stored)) {
                nearest(dtype.size(), plane, from, to, degrees, target);
            }
            return Ok(());
        }
        grow(floats, stored.div_ceil(4), job.dataset)?;
        let middle = &mut bytes_of(floats)[..stored];
        let straight = Orientation::new([to.0, to.1], Turn::default());
        let targets = out.chunks_exact_mut(pixels * compiled.output.dtype(dtype).size());
        for (plane, target) in planes.zip(targets) {
            nearest(dtype.size(), plane, from, to, degrees, middle);
            convert_planes(dtype, middle, [to.0, to.1], straight, compiled.output, target);
        }
        Ok(())
    }
}

/// Checks labels in the type of the batch: below a power of two, whole numbers are exact in it.
///
/// # Errors
/// A label from there on: it may be that of another object.
fn check_exact(job: &Job<'_>, item: &Item, out: &[u8]) -> Result<()> {
    fn any_from<T: Element>(out: &[u8], first: f32, value: impl Fn(T) -> f32) -> bool {
        T::cast(out).iter().any(|label| value(*label).abs() >= first)
    }
    let output = job.arrays[item.array].compiled.output;
    let bits = match output {
        Output::Stored => return Ok(()),
        Output::F32 => f32::MANTISSA_DIGITS,
        Output::F16 => f16::MANTISSA_DIGITS,
        Output::BF16 => bf16::MANTISSA_DIGITS,
    };
    let stored = item.info.dtype;
    let are_all_exact = |output: Output, bits: u32| {
        if stored.is_float() {
            stored == PixelType::F32 && output == Output::F32
        } else {
            8 * stored.size() <= bits as usize
        }
    };
    if are_all_exact(output, bits) {
        return Ok(());
    }
    let first = 2f32.powi(bits as i32);
    let is_rounded = match output {
        Output::F16 => any_from(out, first, f16::to_f32),
        Output::BF16 => any_from(out, first, bf16::to_f32),
        Output::F32 | Output::Stored => any_from(out, first, |label: f32| label),
    };
    if !is_rounded {
        return Ok(());
    }
    let cause = format_args!("labels of {first} and more are not exact in {}", output.dtype(stored));
    let float = if are_all_exact(Output::F32, f32::MANTISSA_DIGITS) { ", or use float32" } else { "" };
    let int = if stored.is_float() { "" } else { ". int64 holds them all" };
    Err(Error::new(path_of_set(job.dataset.store()), cause).row(item.row).choice().hint(format_args!(
        "take labels as they are stored, in {stored}: leave their type out (target_dtype, Targets::output){float}{int}"
    )))
}

/// Writes planes, turned, as numbers of a type. Labels are not scaled.
fn convert_planes(
    dtype: PixelType,
    source: &[u8],
    [rows, columns]: [usize; 2],
    to: Orientation,
    output: Output,
    out: &mut [u8],
) {
    let level = Level::detect();
    let planes = source.chunks_exact(rows * columns * dtype.size());
    let targets = out.chunks_exact_mut(rows * columns * output.dtype(dtype).size());
    for (data, target) in planes.zip(targets) {
        let patch = Patch { data, dtype, rows, columns, stride: columns };
        convert_patch(level, &patch, to, Affine::IDENTITY, output, target);
    }
}
