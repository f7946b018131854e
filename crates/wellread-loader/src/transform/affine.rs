//! A transform as factor and summand: the steps folded into the one pass over the pixels, channel by channel.

use super::compose::Transform;
use super::steps::{Normalize, Scale};
use crate::kernels::Affine;
use wellread_image::PixelType;

impl Transform {
    /// Factor and summand of output channel `channel` for images of `dtype`: scale and normalisation in one. It has
    /// what belongs to the one pass over the pixels. Brightness and normalisation by groups are left out: they differ from image to
    /// image.
    pub fn affine(&self, dtype: PixelType, channel: usize) -> Affine {
        let stored = self.channels.as_ref().map_or(channel, |channels| channels[channel]);
        let numbers = ChannelNumbers { selected: channel, without_mask: channel, count: 0, stored };
        first_affine(self, dtype, numbers, None, 1.0)
    }
}

/// Where the numbers of a channel that is delivered stand in lists.
#[derive(Clone, Copy)]
pub(crate) struct ChannelNumbers {
    /// In lists of one number per selected channel.
    pub(crate) selected: usize,
    /// In those that leave the mask out.
    pub(crate) without_mask: usize,
    /// How many channels are delivered: shorter lists leave the mask out.
    pub(crate) count: usize,
    /// In lists of one number per stored channel.
    pub(crate) stored: usize,
}

impl ChannelNumbers {
    /// The channel's number of a list of one per selected channel.
    fn of_selected(self, list: &[f32]) -> f64 {
        of_list(list, if list.len() < self.count { self.without_mask } else { self.selected })
    }

    /// The channel's number of a list of one per stored channel.
    fn of_stored(self, list: &[f32]) -> f64 {
        of_list(list, self.stored)
    }
}

/// Whether scaling ends with what no factor and summand can do.
pub(crate) fn is_clipped(transform: &Transform) -> bool {
    matches!(
        transform.scale,
        Scale::Range { .. } | Scale::Stored { .. } | Scale::Channels(_) | Scale::Percentiles { .. }
    )
}

/// Whether anything comes between scaling and normalisation.
pub(crate) fn is_between(transform: &Transform) -> bool {
    is_clipped(transform)
        || transform.jitter.contrast > 0.0
        || transform.jitter.gamma > 0.0
        || !transform.noise.is_none()
}

/// `list[i]`, or the one number that is for all.
fn of_list(list: &[f32], i: usize) -> f64 {
    f64::from(list[if list.len() == 1 { 0 } else { i }])
}

/// Factor and summand of the scale of a channel; those of percentiles are found image by image.
fn scale(transform: &Transform, dtype: PixelType, channel: ChannelNumbers) -> (f64, f64) {
    let of_range = |low: f64, high: f64| (1.0 / (high - low), -low / (high - low));
    match &transform.scale {
        Scale::None | Scale::Percentiles { .. } => (1.0, 0.0),
        Scale::By(factor) => (f64::from(*factor), 0.0),
        Scale::Unit => {
            let (min, max) = dtype.range();
            (1.0 / (max - min), -min / (max - min))
        }
        Scale::Range { low, high } => of_range(channel.of_selected(low), channel.of_selected(high)),
        Scale::Stored { low, high } => of_range(channel.of_stored(low), channel.of_stored(high)),
        Scale::Channels(of) => of_range(channel.of_stored(&of.low), channel.of_stored(&of.high)),
    }
}

/// Mean and standard deviation to normalise scaled values of a channel by. Where they are those of groups, they are of this one.
pub(crate) fn mean_and_std(
    transform: &Transform,
    dtype: PixelType,
    channel: ChannelNumbers,
    group: Option<u32>,
) -> Option<(f64, f64)> {
    let of_stored = |mean: &[f32], std: &[f32]| {
        let (k, b) = scale(transform, dtype, channel);
        Some((channel.of_stored(mean) * k + b, channel.of_stored(std) * k.abs()))
    };
    match transform.normalize.as_ref()? {
        Normalize::PerImage => None,
        Normalize::Groups(groups) => {
            let [mean, std] = groups.of(group?, channel.stored);
            let (k, b) = scale(transform, dtype, channel);
            Some((mean * k + b, std * k.abs()))
        }
        Normalize::Given { mean, std } => Some((channel.of_selected(mean), channel.of_selected(std))),
        Normalize::Stored { mean, std } => of_stored(mean, std),
        Normalize::Channels(of) => of_stored(&of.mean, &of.std),
    }
}

/// The operation on values that come of `dtype`. Those of 8 and 16 bits are exact in `f32` and need no pivot.
pub(crate) fn affine(dtype: PixelType, scale: f64, offset: f64) -> Affine {
    let with_pivot = if dtype.size() > 2 { Affine::with_pivot(scale, offset) } else { None };
    let offset = if offset == 0.0 { -0.0 } else { offset as f32 };
    with_pivot.unwrap_or(Affine { scale: scale as f32, offset, ..Affine::IDENTITY })
}

/// The factor and the summand of the pass over the pixels, computed in `f64`; see [`mean_and_std`].
pub(crate) fn first_affine(
    transform: &Transform,
    dtype: PixelType,
    channel: ChannelNumbers,
    group: Option<u32>,
    brightness: f64,
) -> Affine {
    let (mut k, mut b) = scale(transform, dtype, channel);
    if !is_clipped(transform) {
        (k, b) = (k * brightness, b * brightness);
    }
    if let Some((mean, std)) = mean_and_std(transform, dtype, channel, group)
        && !is_between(transform)
    {
        (k, b) = (k / std, (b - mean) / std);
    }
    affine(dtype, k, b)
}
