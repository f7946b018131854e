//! What happens to an image on its way into a batch.
//!
//! A [`Transform`] is the recipe; a [`Placement`] is what it came to for one row in one epoch. The order of
//! the steps is fixed:
//!
//! channels → crop → flips → right-angle turns → resize → rotation by a few degrees → scale → normalise
//!
//! All but resize and the small rotation are folded into the one pass that reads the pixels. Random draws
//! depend on (seed, epoch, row) alone and each step has draws of its own, so switching one on changes no
//! other.

use crate::draw::{Draws, Purpose};
use crate::kernels::Affine;
use wellread_image::{PixelType, Shape};

/// Which part of the image is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Anywhere inside, every place equally likely.
    Random {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
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

/// What pixel values are multiplied by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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
}

/// Mean and standard deviation to normalise by, in units of the scaled values: one of each for all channels,
/// or one per channel. `(v * k + b - mean) / std` is folded into one factor and one summand.
#[derive(Clone, Debug, PartialEq)]
pub struct Normalize {
    /// Subtracted.
    pub mean: Vec<f32>,
    /// Divided by; positive.
    pub std: Vec<f32>,
}

/// The recipe from a stored image to floats. The default changes nothing but the type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transform {
    /// Channels to take, in this order; `None` for all.
    pub channels: Option<Vec<usize>>,
    /// The part of the plane to take.
    pub crop: Crop,
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
    /// Normalisation after scaling.
    pub normalize: Option<Normalize>,
}

/// A transform that cannot be applied: what is wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause} (hint: {hint})")]
pub struct TransformError {
    /// What is wrong.
    pub cause: String,
    /// What to do about it.
    pub hint: String,
}

impl TransformError {
    fn new(cause: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { cause: cause.into(), hint: hint.into() }
    }

    /// As an error about a file, and a row of it if one is at fault.
    pub(crate) fn at(self, path: &std::path::Path, row: Option<usize>) -> wellread_store::Error {
        let error = wellread_store::Error::new(path, self.cause).hint(self.hint);
        match row {
            Some(row) => error.row(row),
            None => error,
        }
    }
}

/// What a transform came to for one row in one epoch. Apply the same to a mask by hand, or ask for it again:
/// it depends on nothing but its arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placement {
    /// First row of the crop.
    pub top: usize,
    /// First column of the crop.
    pub left: usize,
    /// Rows of the crop.
    pub height: usize,
    /// Columns of the crop.
    pub width: usize,
    /// Whether left and right are exchanged.
    pub flip_horizontal: bool,
    /// Whether top and bottom are exchanged.
    pub flip_vertical: bool,
    /// Turns by 90 degrees counter-clockwise, after the flips: 0 to 3.
    pub quarter_turns: u8,
    /// Rotation counter-clockwise, after the resize.
    pub degrees: f32,
}

impl Placement {
    /// Height and width after the flips and turns.
    pub const fn turned_size(&self) -> (usize, usize) {
        if self.quarter_turns.is_multiple_of(2) {
            (self.height, self.width)
        } else {
            (self.width, self.height)
        }
    }
}

impl Transform {
    /// Names of [`Self::preset`].
    pub const PRESETS: [&'static str; 3] = ["none", "normalize", "augment"];

    /// The transforms of the benchmarks by name: `none` scales to `[0, 1]`; `normalize` then subtracts 0.5
    /// and divides by 0.5; `augment` scales, flips both ways with probability one half, turns by right
    /// angles and rotates by up to 15 degrees.
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
        self
    }

    /// Takes the centre, `height` by `width`.
    pub fn crop(mut self, height: usize, width: usize) -> Self {
        self.crop = Crop::Center { height, width };
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

    /// Scales to `[0, 1]` by the range of the pixel type.
    pub fn scale_to_unit(mut self) -> Self {
        self.scale = Scale::Unit;
        self
    }

    /// Multiplies by `factor`.
    pub fn scale(mut self, factor: f32) -> Self {
        self.scale = Scale::By(factor);
        self
    }

    /// Normalises, after scaling, by one mean and standard deviation for all channels or one per channel.
    pub fn normalize(mut self, mean: impl Into<Vec<f32>>, std: impl Into<Vec<f32>>) -> Self {
        self.normalize = Some(Normalize { mean: mean.into(), std: std.into() });
        self
    }

    /// Whether anything is drawn at random.
    pub fn is_random(&self) -> bool {
        matches!(self.crop, Crop::Random { .. })
            || self.flip_horizontal > 0.0
            || self.flip_vertical > 0.0
            || self.right_angles != RightAngles::None
            || self.max_degrees > 0.0
    }

    /// Checks the numbers that need no image: probabilities, angles, sizes, standard deviations.
    ///
    /// # Errors
    /// The first that makes no sense.
    pub fn check(&self) -> Result<(), TransformError> {
        let probability = |p: f32, name| {
            if (0.0..=1.0).contains(&p) {
                return Ok(());
            }
            Err(TransformError::new(format!("the probability of a {name} flip is {p}"), "give 0 to 1"))
        };
        probability(self.flip_horizontal, "horizontal")?;
        probability(self.flip_vertical, "vertical")?;
        if !(0.0..=180.0).contains(&self.max_degrees) {
            let cause = format!("the largest rotation is {} degrees", self.max_degrees);
            return Err(TransformError::new(cause, "give 0 to 180"));
        }
        let empty = match (self.crop, self.resize) {
            (Crop::Center { height, width } | Crop::Random { height, width }, _)
                if height == 0 || width == 0 =>
            {
                Some(("crop", height, width))
            }
            (_, Some(Resize { height, width, .. })) if height == 0 || width == 0 => {
                Some(("resize", height, width))
            }
            _ => None,
        };
        if let Some((what, height, width)) = empty {
            return Err(TransformError::new(
                format!("{what} to {height}x{width} leaves no pixels"),
                "give at least 1 row and 1 column",
            ));
        }
        if let Scale::By(factor) = self.scale
            && !factor.is_finite()
        {
            return Err(TransformError::new(format!("the scale is {factor}"), "give a finite number"));
        }
        if let Some(Normalize { mean, std }) = &self.normalize {
            if mean.len() != std.len() || mean.is_empty() {
                return Err(TransformError::new(
                    format!("{} means and {} standard deviations to normalise by", mean.len(), std.len()),
                    "give one of each, or one of each per channel",
                ));
            }
            if let Some(bad) = std.iter().find(|s| !(s.is_finite() && **s > 0.0)) {
                let cause = format!("a standard deviation to normalise by is {bad}");
                return Err(TransformError::new(cause, "give positive numbers"));
            }
            if mean.iter().any(|m| !m.is_finite()) {
                return Err(TransformError::new(
                    "a mean to normalise by is not finite",
                    "give finite numbers",
                ));
            }
        }
        if let Some(channels) = &self.channels
            && channels.is_empty()
        {
            return Err(TransformError::new("no channel is selected", "give at least one"));
        }
        Ok(())
    }

    /// Size of the crop in an image of `shape`.
    fn cropped(&self, shape: Shape) -> Result<(usize, usize), TransformError> {
        match self.crop {
            Crop::None => Ok((shape.y(), shape.x())),
            Crop::Center { height, width } | Crop::Random { height, width } => {
                if height > shape.y() || width > shape.x() {
                    return Err(TransformError::new(
                        format!(
                            "the crop of {height}x{width} is larger than the image of {}x{} (TCZYX {shape})",
                            shape.y(),
                            shape.x()
                        ),
                        "crop to no more than the smallest image, or use resize",
                    ));
                }
                Ok((height, width))
            }
        }
    }

    /// The shape (TCZYX) of the floats that an image of `shape` becomes.
    ///
    /// # Errors
    /// A crop larger than the image, a channel the image does not have, normalisation for another number of
    /// channels, or quarter turns of an image that is not square.
    pub fn output_shape(&self, shape: Shape) -> Result<Shape, TransformError> {
        let (height, width) = self.cropped(shape)?;
        let channels = match &self.channels {
            None => shape.c(),
            Some(channels) => {
                if let Some(missing) = channels.iter().find(|&&c| c >= shape.c()) {
                    return Err(TransformError::new(
                        format!("channel {missing} is selected, but the image has {} channels", shape.c()),
                        format!("channels are counted from 0: the last is {}", shape.c() - 1),
                    ));
                }
                channels.len()
            }
        };
        if let Some(Normalize { mean, .. }) = &self.normalize
            && ![1, channels].contains(&mean.len())
        {
            return Err(TransformError::new(
                format!(
                    "means to normalise by are given for {} channels, but there are {channels}",
                    mean.len()
                ),
                "give one for all channels, or one per (selected) channel",
            ));
        }
        let (height, width) = match self.resize {
            Some(resize) => (resize.height, resize.width),
            None if self.right_angles == RightAngles::QuarterTurns && height != width => {
                return Err(TransformError::new(
                    format!("quarter turns would exchange the height and width of {height}x{width} pixels"),
                    "crop to a square, add a resize, or turn by half turns only",
                ));
            }
            None => (height, width),
        };
        Ok(Shape([shape.t(), channels, shape.z(), height, width]))
    }

    /// What the transform comes to for `row`, an image of `shape`, under a seed and an epoch.
    ///
    /// # Errors
    /// As [`Self::output_shape`].
    pub fn placement(
        &self,
        shape: Shape,
        seed: u64,
        epoch: u64,
        row: usize,
    ) -> Result<Placement, TransformError> {
        let (height, width) = self.cropped(shape)?;
        let draws = Draws::new(seed, epoch, row);
        let (top, left) = match self.crop {
            Crop::None => (0, 0),
            Crop::Center { .. } => ((shape.y() - height) / 2, (shape.x() - width) / 2),
            Crop::Random { .. } => (
                draws.below(Purpose::CropY, shape.y() - height + 1),
                draws.below(Purpose::CropX, shape.x() - width + 1),
            ),
        };
        let quarter_turns = match self.right_angles {
            RightAngles::None => 0,
            RightAngles::QuarterTurns => draws.below(Purpose::Turns, 4),
            RightAngles::Fitting if height == width || self.resize.is_some() => {
                draws.below(Purpose::Turns, 4)
            }
            RightAngles::HalfTurns | RightAngles::Fitting => 2 * draws.below(Purpose::Turns, 2),
        };
        Ok(Placement {
            top,
            left,
            height,
            width,
            flip_horizontal: draws.unit(Purpose::FlipHorizontal) < self.flip_horizontal as f64,
            flip_vertical: draws.unit(Purpose::FlipVertical) < self.flip_vertical as f64,
            quarter_turns: quarter_turns as u8,
            degrees: ((2.0 * draws.unit(Purpose::Degrees) - 1.0) * self.max_degrees as f64) as f32,
        })
    }

    /// Factor and summand of output channel `channel` for images of `dtype`: scale and normalisation in one.
    pub fn affine(&self, dtype: PixelType, channel: usize) -> Affine {
        let (mut scale, mut offset) = match self.scale {
            Scale::None => (1.0, 0.0),
            Scale::By(factor) => (factor as f64, 0.0),
            Scale::Unit => {
                let (min, max) = dtype.range();
                (1.0 / (max - min), -min / (max - min))
            }
        };
        if let Some(Normalize { mean, std }) = &self.normalize {
            let i = if mean.len() == 1 { 0 } else { channel };
            scale /= std[i] as f64;
            offset = (offset - mean[i] as f64) / std[i] as f64;
        }
        Affine { scale: scale as f32, offset: if offset == 0.0 { -0.0 } else { offset as f32 } }
    }
}
