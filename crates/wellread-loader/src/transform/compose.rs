//! A [`Transform`]: the steps put together, one by one.

use super::field::Field;
use super::fields::GroupFields;
use super::steps::{Crop, Filter, Jitter, Noise, Normalize, Resize, RightAngles, Scale};
use std::sync::Arc;
use wellread_image::Shape;
use wellread_store::Hints;

/// The steps from a stored image to floats. The default changes nothing but the type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transform {
    /// Whether depth is reduced to its maximum, before all else.
    pub project: bool,
    /// Channels to take, in this order; `None` for all.
    pub channels: Option<Vec<usize>>,
    /// Names of [`Self::channels`], where these are asked for by name: the channels of these names are taken in each image,
    /// wherever they stand there. Numbers, also those of lists of one value per channel, are of the set's first image.
    pub channel_names: Option<Arc<[String]>>,
    /// The part of the plane to take.
    pub crop: Crop,
    /// Field that illumination is corrected by.
    pub illumination: Option<Arc<Field>>,
    /// The same by a field for each plate and channel, say: where they lie by columns beside the images.
    pub fields: Option<Arc<GroupFields>>,
    /// Probability of exchanging left and right.
    pub flip_horizontal: f32,
    /// Probability of exchanging top and bottom.
    pub flip_vertical: f32,
    /// Random turns by right angles.
    pub right_angles: RightAngles,
    /// Resize.
    pub resize: Option<Resize>,
    /// Random rotation about the centre by an angle uniform in `[-max_degrees, max_degrees]`, bilinear.
    /// Beyond the edge the image continues as its mirror image (the edge pixel not repeated), so that no
    /// artificial black corners appear.
    pub max_degrees: f32,
    /// Scale.
    pub scale: Scale,
    /// Random changes of intensity.
    pub jitter: Jitter,
    /// Random noise.
    pub noise: Noise,
    /// Normalisation after all that.
    pub normalize: Option<Normalize>,
    /// Probability, for each channel, of becoming 0. One channel always stays.
    pub channel_dropout: f32,
    /// Names of the channels that are delivered, where these go by number and statistics by name: all images follow the first one's
    /// names. Loaders set it by the set.
    pub statistics_names: Option<Arc<[String]>>,
    /// Whether the last stored channel is a mask of 0 and 1. It is cut, turned and resized as the others. Its
    /// values are neither corrected, scaled, changed nor normalised, and lists of one number per channel may leave it
    /// out. Loaders set it by the set ([`wellread_store::Hints::is_last_mask`]).
    pub is_last_mask: bool,
    /// Whether stored images are parts of larger ones, which illumination fields are of. Loaders set it by the set
    /// ([`wellread_store::Hints::are_crops`]).
    pub is_cut: bool,
}

impl Transform {
    /// Names of [`Self::preset`].
    pub const PRESETS: [&'static str; 3] = ["none", "normalize", "augment"];

    /// The transforms of the benchmarks by name. `none` scales to `[0, 1]`; `normalize` then subtracts 0.5
    /// and divides by 0.5. `augment` scales, flips both ways with probability one half, turns by right angles
    /// and rotates by up to 15 degrees.
    pub fn preset(name: &str) -> Option<Self> {
        let unit = Self::default().scale_to_unit();
        match name {
            "none" => Some(unit),
            "normalize" => Some(unit.normalize([0.5], [0.5])),
            "augment" => Some(unit.flip(0.5, 0.5).right_angles(RightAngles::Fitting).rotate_degrees(15.0)),
            _ => None,
        }
    }

    /// Takes these channels, in this order.
    pub fn channels(mut self, channels: impl Into<Vec<usize>>) -> Self {
        self.channels = Some(channels.into());
        self.channel_names = None;
        self
    }

    /// Takes the channels of these names, in this order, wherever they stand in an image; each with its number in the set's first
    /// image.
    pub fn named_channels<'a>(mut self, channels: impl IntoIterator<Item = (&'a str, usize)>) -> Self {
        let (names, numbers): (Vec<String>, Vec<usize>) =
            channels.into_iter().map(|(name, number)| (name.to_owned(), number)).unzip();
        (self.channels, self.channel_names) = (Some(numbers), Some(names.into()));
        self
    }

    /// The same for the images of a set, which says this of itself.
    pub(crate) fn for_set(mut self, set: Hints<'_>) -> Self {
        (self.is_last_mask, self.is_cut) = (set.is_last_mask, set.are_crops);
        self
    }

    /// Whether it is as [`Self::for_set`] makes it.
    pub(crate) fn is_for(&self, set: Hints<'_>) -> bool {
        (self.is_last_mask, self.is_cut) == (set.is_last_mask, set.are_crops)
    }

    /// The channel that is a mask, of images of so many.
    pub(crate) fn mask(&self, channels: usize) -> Option<usize> {
        channels.checked_sub(1).filter(|_| self.is_last_mask)
    }

    /// The shape of a stored image without its mask.
    pub(crate) fn without_mask(&self, Shape([t, c, z, y, x]): Shape) -> Shape {
        Shape([t, self.mask(c).unwrap_or(c), z, y, x])
    }

    /// Takes the centre, `height` by `width`.
    pub fn crop(mut self, height: usize, width: usize) -> Self {
        self.crop = Crop::Center { height, width };
        self
    }

    /// Takes the square in the middle whose side is this share of the shorter side ([`Crop::CenterSquare`]).
    pub fn crop_square(mut self, share: f32) -> Self {
        self.crop = Crop::CenterSquare { share };
        self
    }

    /// Takes a random part, `height` by `width`.
    pub fn random_crop(mut self, height: usize, width: usize) -> Self {
        self.crop = Crop::Random { height, width };
        self
    }

    /// Flips with these probabilities: left to right, top to bottom.
    pub fn flip(mut self, horizontal: f32, vertical: f32) -> Self {
        self.flip_horizontal = horizontal;
        self.flip_vertical = vertical;
        self
    }

    /// Turns by random multiples of 90 degrees.
    pub fn right_angles(mut self, turns: RightAngles) -> Self {
        self.right_angles = turns;
        self
    }

    /// Rotates by a random angle of up to `max_degrees` either way.
    pub fn rotate_degrees(mut self, max_degrees: f32) -> Self {
        self.max_degrees = max_degrees;
        self
    }

    /// Resizes every plane, averaging where it shrinks.
    pub fn resize(self, height: usize, width: usize) -> Self {
        self.resize_with(Resize { height, width, filter: Filter::Area })
    }

    /// Resizes every plane.
    pub fn resize_with(mut self, resize: Resize) -> Self {
        self.resize = Some(resize);
        self
    }

    /// Scales to `[0, 1]` by the range of the pixel type. Floats keep their values.
    pub fn scale_to_unit(mut self) -> Self {
        self.scale = Scale::Unit;
        self
    }

    /// Multiplies by `factor`.
    pub fn scale(mut self, factor: f32) -> Self {
        self.scale = Scale::By(factor);
        self
    }

    /// Normalises, after scaling, by one mean and standard deviation for all channels or one per (selected) channel.
    pub fn normalize(self, mean: impl Into<Vec<f32>>, std: impl Into<Vec<f32>>) -> Self {
        self.normalize_with(Normalize::Given { mean: mean.into(), std: std.into() })
    }

    /// Normalises.
    pub fn normalize_with(mut self, normalize: Normalize) -> Self {
        self.normalize = Some(normalize);
        self
    }

    /// Takes the maximum over depth: images of one plane per channel. Each plane is read once.
    pub fn max_projection(mut self) -> Self {
        self.project = true;
        self
    }

    /// Corrects illumination by a field of the size of the stored images.
    pub fn illumination(mut self, field: impl Into<Arc<Field>>) -> Self {
        self.illumination = Some(field.into());
        self
    }

    /// Corrects illumination by the fields of the row's group, such as its plate.
    pub fn illumination_by(mut self, fields: impl Into<Arc<GroupFields>>) -> Self {
        self.fields = Some(fields.into());
        self
    }

    /// Whether illumination is corrected.
    pub(crate) fn is_corrected(&self) -> bool {
        self.illumination.is_some() || self.fields.is_some()
    }

    /// Whether pixels that a mask made 0 are told from others: a correction leaves them at 0.
    pub(crate) fn marks_unmasked(&self) -> bool {
        self.is_cut && self.is_corrected()
    }

    /// Takes a random part of 8 % to all of the image's area, between 3:4 and 4:3 in proportion, and resizes it:
    /// torchvision's `RandomResizedCrop`. For other ranges see [`Crop::RandomResized`].
    pub fn random_resized_crop(mut self, height: usize, width: usize) -> Self {
        self.crop = Crop::RandomResized { scale: [0.08, 1.0], ratio: [3.0 / 4.0, 4.0 / 3.0] };
        self.resize_with(Resize { height, width, filter: Filter::Antialias })
    }

    /// Scales to `[0, 1]` by percentiles of each channel of each image.
    pub fn scale_by_percentiles(self, low: f32, high: f32) -> Self {
        self.scale_with(Scale::Percentiles { low, high })
    }

    /// Scales.
    pub fn scale_with(mut self, scale: Scale) -> Self {
        self.scale = scale;
        self
    }

    /// Changes intensities at random.
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// Adds noise.
    pub fn noise(mut self, noise: Noise) -> Self {
        self.noise = noise;
        self
    }

    /// Drops each channel with this probability.
    pub fn channel_dropout(mut self, probability: f32) -> Self {
        self.channel_dropout = probability;
        self
    }

    /// Whether anything is drawn at random.
    pub fn is_random(&self) -> bool {
        self.crop.is_random()
            || self.flip_horizontal > 0.0
            || self.flip_vertical > 0.0
            || self.right_angles != RightAngles::None
            || self.max_degrees > 0.0
            || !self.jitter.is_none()
            || !self.noise.is_none()
            || self.channel_dropout > 0.0
    }
}
