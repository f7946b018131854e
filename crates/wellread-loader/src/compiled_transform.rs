//! A transform compiled for one pixel type and number of channels. It has the steps folded into the pass over the pixels,
//! and the steps left for the image's floats.

use crate::dataset::Dataset;
use crate::dtype::{DType, Output};
use crate::kernels::Affine;
use crate::postprocess::{FinalNormalize, PostProcess};
use crate::row_channels::RowChannels;
use crate::row_fields::RowFields;
use crate::row_groups::RowGroups;
use crate::transform::affine::{ChannelNumbers, affine, first_affine, is_between, is_clipped, mean_and_std};
use crate::transform::{Normalize, Scale, Transform};
use std::borrow::Cow;
use std::sync::Arc;
use wellread_image::{PixelType, Shape};
use wellread_store::row_location::path_of_row;
use wellread_store::{Result, RowInfo};

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
    /// The stored channel that is a mask, whose values stay as they are.
    mask: Option<usize>,
    /// The stored channel of each output channel.
    pub(crate) channels: Vec<usize>,
    /// Factor and summand of each output channel in the pass over the pixels; where brightness varies, those of
    /// brightness 1.
    pub(crate) affine: Vec<Affine>,
    /// Whether the brightness differs from image to image.
    pub(crate) per_image_brightness: bool,
    /// The values that rows take from columns beside them, where they do.
    pub(crate) groups: Option<Arc<RowGroups>>,
    /// Where the channels are in each row, where these go by name.
    pub(crate) row_channels: Option<Arc<RowChannels>>,
    /// The steps after the pass.
    pub(crate) post_process: Option<PostProcess>,
    pub(crate) runs: Vec<ChannelRun>,
    /// Whether values are labels: a resize and a rotation take the nearest one and mix none.
    pub(crate) is_of_labels: bool,
}

/// The image that illumination was uneven in: a stored one without its mask. Where that is cut out of a larger one, it is the
/// larger one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IlluminatedImage {
    /// Its shape.
    pub(crate) shape: Shape,
    /// The first row and column of the stored image in it.
    pub(crate) start: [i64; 2],
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
        let channels = transform.channels.clone().unwrap_or_else(|| (0..info.shape.c()).collect());
        let runs = runs_of(&channels);
        let mask = transform.mask(info.shape.c());
        let affine = (0..channels.len()).map(|c| match numbers(&channels, mask, c) {
            Some(numbers) => first_affine(transform, info.dtype, numbers, None, 1.0),
            None => Affine::IDENTITY,
        });
        let affine = affine.collect();
        Self {
            output,
            dtype: info.dtype,
            stored_channels: info.shape.c(),
            mask,
            affine,
            groups: None,
            row_channels: None,
            per_image_brightness: transform.jitter.brightness > 0.0 && !is_clipped(transform),
            post_process: needs_post_process(transform)
                .then(|| post_process(transform, info.dtype, &channels, mask)),
            transform: transform.clone(),
            channels,
            runs,
            is_of_labels: false,
        }
    }

    /// The same with what it takes from columns beside the images of this set, of which its rows will be.
    ///
    /// # Errors
    /// Columns that are not there or cannot be read.
    pub(crate) fn of_rows(mut self, dataset: &Dataset) -> Result<Self> {
        self.groups = RowGroups::of(dataset, &self.transform, &self.corrected_channels())?.map(Arc::new);
        self.row_channels = RowChannels::of(dataset, &self.transform, &self.channels)?.map(Arc::new);
        Ok(self)
    }

    /// The same for labels. Nothing may be left to do with values but a resize and a rotation.
    pub(crate) fn of_labels(self) -> Self {
        Self { is_of_labels: true, ..self }
    }

    pub(crate) fn fits(&self, dataset: &Dataset, transform: &Transform, info: RowInfo) -> bool {
        self.dtype == info.dtype
            && self.stored_channels == self.checked_shape(info.shape).c()
            && self.groups.as_ref().is_none_or(|groups| groups.is_of(dataset))
            && self.row_channels.as_ref().is_none_or(|channels| channels.is_of(dataset))
            && self.transform == *transform
    }

    /// The shape that a row's checks go by: where channels go by name, another number of them in another order will do.
    pub(crate) fn checked_shape(&self, Shape([t, c, z, y, x]): Shape) -> Shape {
        // All channels are asked for: then all images have as many.
        let is_chosen = self.row_channels.is_some() && self.transform.channels.is_some();
        Shape([t, if is_chosen { self.stored_channels } else { c }, z, y, x])
    }

    /// The size that illumination fields of a row must have, checked where one field is for all rows.
    ///
    /// # Errors
    /// No such row; a field that does not fit.
    pub(crate) fn illuminated_image(
        &self,
        dataset: &Dataset,
        row: usize,
        shape: Shape,
    ) -> Result<IlluminatedImage> {
        let Shape([t, c, z, y, x]) = self.transform.without_mask(shape);
        let whole = IlluminatedImage { shape: Shape([t, c, z, y, x]), start: [0, 0] };
        if !self.transform.marks_unmasked() {
            return Ok(whole);
        }
        let cut = dataset.store().row_hints(row)?.cut();
        let lit = cut.map_or(whole, |cut| IlluminatedImage {
            shape: Shape([t, c, z, cut.whole[0], cut.whole[1]]),
            start: cut.start,
        });
        if let Some(field) = &self.transform.illumination {
            field
                .check(lit.shape)
                .map_err(|error| error.at(&path_of_row(dataset.store(), row), Some(row)))?;
        }
        Ok(lit)
    }

    /// Whether an output channel is a mask.
    pub(crate) fn is_mask(&self, channel: usize) -> bool {
        self.mask == Some(self.channels[channel])
    }

    /// The stored channels whose illumination fields are asked for: of a mask, which has none, another's stands in.
    pub(crate) fn corrected_channels(&self) -> Vec<usize> {
        let instead = self.channels.iter().copied().find(|&stored| Some(stored) != self.mask).unwrap_or(0);
        let of = |&stored: &usize| if Some(stored) == self.mask { instead } else { stored };
        self.channels.iter().map(of).collect()
    }

    /// Whether the channels of a row of this set stand elsewhere than in the first image.
    ///
    /// # Errors
    /// Channels go by name, and the row lacks one of them.
    pub(crate) fn has_other_channel_order(&self, set: &Dataset, row: usize) -> Result<bool> {
        self.row_channels.as_ref().map_or(Ok(false), |channels| channels.has_other_channel_order(set, row))
    }

    /// The stored channel of each output channel of a row of this set.
    ///
    /// # Errors
    /// As [`Self::has_other_channel_order`].
    pub(crate) fn channels_of(
        &self,
        set: &Dataset,
        row: usize,
        has_other_channel_order: bool,
    ) -> Result<Cow<'_, [usize]>> {
        match self.row_channels.as_ref().filter(|_| has_other_channel_order) {
            Some(channels) => Ok(Cow::Owned(channels.find(set, row)?)),
            None => Ok(Cow::Borrowed(self.channels.as_slice())),
        }
    }

    /// The runs of channels of a row of this set.
    ///
    /// # Errors
    /// As [`Self::has_other_channel_order`].
    pub(crate) fn runs_of(
        &self,
        set: &Dataset,
        row: usize,
        has_other_channel_order: bool,
    ) -> Result<Cow<'_, [ChannelRun]>> {
        if !has_other_channel_order {
            return Ok(Cow::Borrowed(self.runs.as_slice()));
        }
        let channels = self.channels_of(set, row, has_other_channel_order)?;
        Ok(Cow::Owned(runs_of(&channels)))
    }

    /// The group of a row, where rows are normalised by groups.
    ///
    /// # Errors
    /// A group of which nothing is known.
    pub(crate) fn group(&self, row: usize) -> Result<Option<u32>> {
        self.groups.as_ref().map_or(Ok(None), |groups| groups.group(row))
    }

    /// The illumination fields of rows, where they have such.
    pub(crate) fn fields(&self) -> Option<&Arc<RowFields>> {
        self.groups.as_ref()?.fields()
    }

    /// Puts the factors that are an image's own behind `all`. They are those of the pass over its pixels, where its
    /// brightness or group has some. Else they are those of the last step, where normalisation by groups comes after others.
    /// Returns where each begin.
    pub(crate) fn own_factors(
        &self,
        group: Option<u32>,
        brightness: impl Fn(usize) -> f32,
        all: &mut Vec<Affine>,
    ) -> [Option<usize>; 2] {
        let channels = 0..self.channels.len();
        let of_pass = (self.per_image_brightness || group.is_some()).then_some(all.len());
        if of_pass.is_some() {
            let brightness = |c| if self.per_image_brightness { brightness(c) } else { 1.0 };
            all.extend(channels.clone().map(|c| self.affine_at(c, group, brightness(c))));
        }
        let group = group.filter(|_| self.post_process.is_some());
        let of_last = group.map(|_| all.len());
        all.extend(channels.filter_map(|c| self.last_affine(c, group?)));
        [of_pass, of_last]
    }

    /// The factor and summand of an output channel for a row of this group under a brightness.
    fn affine_at(&self, channel: usize, group: Option<u32>, brightness: f32) -> Affine {
        match numbers(&self.channels, self.mask, channel) {
            Some(numbers) => first_affine(&self.transform, self.dtype, numbers, group, f64::from(brightness)),
            None => Affine::IDENTITY,
        }
    }

    /// The normalisation of an output channel for a row of this group, where it is the last step.
    fn last_affine(&self, channel: usize, group: u32) -> Option<Affine> {
        let Some(numbers) = numbers(&self.channels, self.mask, channel) else {
            return Some(Affine::IDENTITY);
        };
        let (mean, std) = mean_and_std(&self.transform, self.dtype, numbers, Some(group))?;
        Some(affine(self.dtype, 1.0 / std, -mean / std))
    }
}

/// Where the numbers of an output channel stand in lists; `None` for the mask, which has none.
fn numbers(channels: &[usize], mask: Option<usize>, c: usize) -> Option<ChannelNumbers> {
    let stored = channels[c];
    if Some(stored) == mask {
        return None;
    }
    let without_mask = channels[..c].iter().filter(|&&before| Some(before) != mask).count();
    Some(ChannelNumbers { selected: c, without_mask, count: channels.len(), stored })
}

/// Neighbouring channels that are delivered one after the other, in runs.
fn runs_of(channels: &[usize]) -> Vec<ChannelRun> {
    let mut runs: Vec<ChannelRun> = vec![];
    for (to, &from) in channels.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if run.from + run.count == from => run.count += 1,
            _ => runs.push(ChannelRun { from, count: 1, to }),
        }
    }
    runs
}

fn needs_post_process(transform: &Transform) -> bool {
    is_between(transform) || transform.normalize == Some(Normalize::PerImage)
}

fn post_process(
    transform: &Transform,
    dtype: PixelType,
    channels: &[usize],
    mask: Option<usize>,
) -> PostProcess {
    let clipped = is_clipped(transform);
    let jitter = transform.jitter;
    PostProcess {
        is_wide: dtype.size() > 2,
        percentiles: match transform.scale {
            Scale::Percentiles { low, high } => Some([low, high].map(f64::from)),
            _ => None,
        },
        clip: clipped,
        brightness: if clipped { jitter.brightness } else { 0.0 },
        jitter,
        noise: transform.noise,
        masks: channels.iter().map(|&stored| Some(stored) == mask).collect(),
        last: match &transform.normalize {
            None => FinalNormalize::Nothing,
            Some(Normalize::PerImage) => FinalNormalize::PerImage,
            // Values here belong to no group: images bring their own.
            Some(_) => {
                let each = (0..channels.len()).map(|c| {
                    let moments = numbers(channels, mask, c)
                        .and_then(|numbers| mean_and_std(transform, dtype, numbers, None));
                    let (mean, std) = moments.unwrap_or((0.0, 1.0));
                    affine(dtype, 1.0 / std, -mean / std)
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
