//! A transform compiled for one pixel type and number of channels: what is folded into the pass over the pixels, and
//! what is left to do with the image's floats.

use crate::dtype::{DType, Output};
use crate::kernels::Affine;
use crate::postprocess::{FinalNormalize, PostProcess};
use crate::transform::affine::{affine, first_affine, is_between, is_clipped, mean_and_std};
use crate::transform::{Normalize, Scale, Transform};
use wellread_image::{PixelType, Shape};
use wellread_store::RowInfo;

/// A run of neighbouring channels that is read by one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ChannelRun {
    /// First channel of the image.
    pub(crate) from: usize,
    pub(crate) count: usize,
    /// The output channel that it becomes.
    pub(crate) to: usize,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct CompiledTransform {
    pub(crate) transform: Transform,
    pub(crate) output: Output,
    dtype: PixelType,
    stored_channels: usize,
    /// The stored channel of each output channel.
    pub(crate) channels: Vec<usize>,
    /// Factor and summand of each output channel in the pass over the pixels; where brightness varies, those of
    /// brightness 1.
    pub(crate) affine: Vec<Affine>,
    /// Whether the factors differ from image to image.
    pub(crate) per_image_brightness: bool,
    /// What comes after the pass.
    pub(crate) post_process: Option<PostProcess>,
    pub(crate) runs: Vec<ChannelRun>,
    /// Whether values are labels: a resize and a rotation take the nearest one and mix none.
    pub(crate) is_of_labels: bool,
}

/// One array of a batch, as it is made of rows of one set: a view of the images, or of their targets.
#[derive(Debug)]
pub(crate) struct ArrayPlan {
    pub(crate) compiled: CompiledTransform,
    /// Shape (TCZYX) of each image.
    pub(crate) shape: Shape,
    /// Number of the draws of its first image: views of a row have draws of their own, as crops have.
    pub(crate) first_draw: usize,
}

impl ArrayPlan {
    /// The type of its numbers.
    pub(crate) fn dtype(&self) -> DType {
        self.compiled.output.dtype(self.compiled.dtype)
    }

    /// Bytes of an image.
    pub(crate) fn image_bytes(&self) -> usize {
        self.shape.pixels() * self.dtype().size()
    }
}

impl CompiledTransform {
    /// Compiles a transform that [`Transform::check`] and [`Transform::output_shape`] accept.
    pub(crate) fn new(transform: &Transform, output: Output, info: RowInfo) -> Self {
        let mut runs: Vec<ChannelRun> = vec![];
        let channels = transform.channels.clone().unwrap_or_else(|| (0..info.shape.c()).collect());
        for (to, &from) in channels.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if run.from + run.count == from => run.count += 1,
                _ => runs.push(ChannelRun { from, count: 1, to }),
            }
        }
        let affine = channels.iter().enumerate();
        let affine = affine.map(|(c, &stored)| first_affine(transform, info.dtype, c, stored, 1.0)).collect();
        Self {
            output,
            dtype: info.dtype,
            stored_channels: info.shape.c(),
            affine,
            per_image_brightness: transform.jitter.brightness > 0.0 && !is_clipped(transform),
            post_process: needs_post_process(transform)
                .then(|| post_process(transform, info.dtype, &channels)),
            transform: transform.clone(),
            channels,
            runs,
            is_of_labels: false,
        }
    }

    /// The same for labels. Nothing may be left to do with values but a resize and a rotation.
    pub(crate) fn of_labels(self) -> Self {
        Self { is_of_labels: true, ..self }
    }

    pub(crate) fn fits(&self, transform: &Transform, info: RowInfo) -> bool {
        self.dtype == info.dtype && self.stored_channels == info.shape.c() && self.transform == *transform
    }

    /// The factor and summand of an output channel under a brightness.
    pub(crate) fn affine_at(&self, channel: usize, brightness: f32) -> Affine {
        first_affine(&self.transform, self.dtype, channel, self.channels[channel], f64::from(brightness))
    }
}

fn needs_post_process(transform: &Transform) -> bool {
    is_between(transform) || transform.normalize == Some(Normalize::PerImage)
}

fn post_process(transform: &Transform, dtype: PixelType, channels: &[usize]) -> PostProcess {
    let clipped = is_clipped(transform);
    let jitter = transform.jitter;
    PostProcess {
        percentiles: match transform.scale {
            Scale::Percentiles { low, high } => Some([low, high].map(f64::from)),
            _ => None,
        },
        clip: clipped,
        brightness: if clipped { jitter.brightness } else { 0.0 },
        jitter,
        noise: transform.noise,
        last: match &transform.normalize {
            None => FinalNormalize::Nothing,
            Some(Normalize::PerImage) => FinalNormalize::PerImage,
            Some(_) => {
                let each = channels.iter().enumerate().map(|(c, &stored)| {
                    let (mean, std) = mean_and_std(transform, dtype, c, stored).unwrap_or((0.0, 1.0));
                    affine(1.0 / std, -mean / std)
                });
                FinalNormalize::Affine(each.collect())
            }
        },
    }
}

/// Checks the shape that a transform gives to images.
///
/// # Errors
/// An image of which `float32` takes more than [`Shape::MAX_BYTES`], in words.
pub(crate) fn check_output(shape: Shape) -> std::result::Result<(), String> {
    let checked = shape.checked_bytes(PixelType::F32);
    checked
        .map(drop)
        .map_err(|_| format!("the transform would make images of {shape} (TCZYX), more than 1 TiB each"))
}
