//! The steps that a [`super::Transform`] is made of.

use super::channel_names::{ChannelNormalize, ChannelRange};
use super::groups::GroupNormalize;
use std::sync::Arc;

/// Which part of the image is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Crop {
    /// All of it.
    #[default]
    None,
    /// The middle; where the margin is odd, the extra row or column is cut at the far side.
    Center {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
    /// The square in the middle whose side is this share of the image's shorter side. With a resize after it, 224
    /// / 256 is the share of an image that torchvision's `Resize(256)` and `CenterCrop(224)` show.
    CenterSquare {
        /// Above 0, up to 1.
        share: f32,
    },
    /// Anywhere inside, every place equally likely.
    Random {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
    /// A part of random size, proportion and place, which a resize must follow: torchvision's `RandomResizedCrop`.
    /// The first of ten draws that fits the image is taken. When none does, it is the largest part in the middle whose
    /// proportion lies in the range.
    RandomResized {
        /// Smallest and largest share of the image's area.
        scale: [f32; 2],
        /// Smallest and largest ratio of width to height; its logarithm is uniform.
        ratio: [f32; 2],
    },
}

impl Crop {
    /// Whether the place is drawn at random.
    pub const fn is_random(self) -> bool {
        matches!(self, Self::Random { .. } | Self::RandomResized { .. })
    }
}

/// Random turns by multiples of 90 degrees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RightAngles {
    /// None.
    #[default]
    None,
    /// 0 or 180 degrees.
    HalfTurns,
    /// 0, 90, 180 or 270 degrees. Images that are not square (after the crop) are an error unless a resize
    /// follows, since a quarter turn exchanges height and width.
    QuarterTurns,
    /// [`RightAngles::QuarterTurns`] where these are possible, else [`RightAngles::HalfTurns`].
    Fitting,
}

/// How a resize samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// The mean of the area that an output pixel covers, along axes that shrink; bilinear along axes that
    /// grow. Does not alias.
    #[default]
    Area,
    /// The two nearest pixels along each axis, pixel centres at half-integers (as torch's `interpolate` with
    /// `align_corners=False`, without antialiasing).
    Bilinear,
    /// A triangle as wide as two output pixels along axes that shrink. It is bilinear along axes that grow (as torchvision
    /// and torch's `interpolate` with `antialias=True`, and Pillow). Does not alias.
    Antialias,
}

/// A new height and width for all planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resize {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// How to sample.
    pub filter: Filter,
}

/// The factor of pixel values.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Scale {
    /// Values as stored, as `f32`.
    #[default]
    None,
    /// To `[0, 1]` by the range of the pixel type, `(v - min) / (max - min)`, the same for every image;
    /// floats stay as they are. Computed as `v * k + b` in `f32`, which for unsigned types is
    /// `v * (1 / max)`: a value may differ from exact division in its last bit.
    Unit,
    /// `v * factor`.
    By(f32),
    /// `low..high` to `[0, 1]`, what lies beyond to 0 or 1: percentiles of the set, say ([`Scale::from_stats`]). In units
    /// of stored values: one of each for all channels, or one per (selected) channel, as [`Normalize::Given`].
    Range {
        /// The value that becomes 0.
        low: Vec<f32>,
        /// The value that becomes 1; above `low`.
        high: Vec<f32>,
    },
    /// As [`Scale::Range`], with one of each per channel of the stored image (or one for all): statistics of a set.
    Stored {
        /// The value that becomes 0.
        low: Vec<f32>,
        /// The value that becomes 1; above `low`.
        high: Vec<f32>,
    },
    /// As [`Scale::Stored`], with ends of channels by name, in whatever order the channels of an image are.
    Channels(Arc<ChannelRange>),
    /// As [`Scale::Range`], with the percentiles of each channel of each image as delivered (after crop, resize and
    /// rotation), interpolated as NumPy does. An image of one value becomes 0. NaN and infinite values do not count: NaN stays,
    /// infinite values are clipped to 0 and 1.
    Percentiles {
        /// The percentile that becomes 0: 0 to 100.
        low: f32,
        /// The percentile that becomes 1: above `low`.
        high: f32,
    },
}

/// Means and standard deviations to normalise by.
#[derive(Clone, Debug, PartialEq)]
pub enum Normalize {
    /// In units of the scaled values: one of each for all channels, or one per (selected) channel.
    /// `(v * k + b - mean) / std` is folded into one factor and one summand where nothing comes between.
    Given {
        /// Subtracted.
        mean: Vec<f32>,
        /// Divided by; positive.
        std: Vec<f32>,
    },
    /// In units of stored values, one of each per channel of the stored image (or one for all): statistics of a set,
    /// whatever the scale.
    Stored {
        /// Subtracted.
        mean: Vec<f32>,
        /// Divided by; positive.
        std: Vec<f32>,
    },
    /// As [`Self::Stored`], with numbers of channels by name, in whatever order the channels of an image are. Those of one channel
    /// are of that one alone, named or not.
    Channels(Arc<ChannelNormalize>),
    /// As [`Self::Stored`], with numbers of the group that a row belongs to by columns beside the images, such as its plate.
    Groups(Arc<GroupNormalize>),
    /// By the mean and (population) standard deviation of each channel of each image as delivered, of its finite
    /// values. A channel of one value becomes 0, also where a resize told its pixels apart by rounding.
    PerImage,
}

/// Random changes of intensity: each a factor drawn anew for every image. 0 switches a change off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Jitter {
    /// Values are multiplied by `1 - brightness` to `1 + brightness`.
    pub brightness: f32,
    /// Distances from the channel's mean are multiplied by `1 - contrast` to `1 + contrast`.
    pub contrast: f32,
    /// Values, negative ones taken as 0, are raised to a power between `1 / (1 + gamma)` and `1 + gamma`, whose
    /// logarithm is uniform. For values in `[0, 1]`.
    pub gamma: f32,
    /// Whether each channel has draws of its own.
    pub per_channel: bool,
}

impl Jitter {
    /// Whether nothing changes.
    pub fn is_none(self) -> bool {
        self.brightness == 0.0 && self.contrast == 0.0 && self.gamma == 0.0
    }
}

/// Random noise, in units of the scaled values, another for every image, channel and pixel. 0 switches a kind off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// Value of one photon: `v` becomes `v + sqrt(photon * v) * n` with a standard normal `n`, which has the mean and
    /// variance of Poisson's distribution. It has its shape from about ten photons on.
    pub photon: f32,
    /// Standard deviation of Gaussian noise, added after that.
    pub gaussian: f32,
}

impl Noise {
    /// Whether nothing is added.
    pub fn is_none(self) -> bool {
        self.photon == 0.0 && self.gaussian == 0.0
    }
}
