//! The result of a transform's geometry for one row in one epoch.

use super::compose::Transform;
use super::error::TransformError;
use super::steps::{Crop, RightAngles};
use crate::draw::{Draws, Purpose};
use crate::orientation::{Orientation, Turn};
use wellread_image::Shape;

/// The result of a transform for one row in one epoch. Apply the same to a mask by hand, or ask for it again:
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

    /// Its flips and turns as a map of pixels.
    pub(crate) fn orientation(&self) -> Orientation {
        let &Self { height, width, flip_horizontal, flip_vertical, quarter_turns, .. } = self;
        Orientation::new([height, width], Turn { flip_horizontal, flip_vertical, quarter_turns })
    }
}

/// Draws of a size and proportion before the middle is taken, as in torchvision.
const ATTEMPTS: u64 = 10;

/// Top, left, height and width of a crop of random size in an image of `y` x `x` pixels.
fn random_resized([y, x]: [usize; 2], scale: [f32; 2], ratio: [f32; 2], draws: Draws) -> [usize; 4] {
    let between = |[a, b]: [f64; 2], purpose, i| a + (b - a) * draws.nth(purpose, i).unit();
    let (scale, ratio) = (scale.map(f64::from), ratio.map(f64::from));
    let area = y as f64 * x as f64;
    for i in 0..ATTEMPTS {
        let area = area * between(scale, Purpose::CropArea, i);
        // The draw is uniform in the logarithm, so that upright and lying crops are equally likely. Exponential and
        // logarithm are those of the C library; rounded to whole pixels, their last bit is of no account.
        let ratio = between(ratio.map(f64::ln), Purpose::CropRatio, i).exp();
        let (height, width) =
            ((area / ratio).sqrt().round() as usize, (area * ratio).sqrt().round() as usize);
        if (1..=y).contains(&height) && (1..=x).contains(&width) {
            let top = draws.below(Purpose::CropY, y - height + 1);
            return [top, draws.below(Purpose::CropX, x - width + 1), height, width];
        }
    }
    let own = x as f64 / y as f64;
    let [height, width] = if own < ratio[0] {
        [((x as f64 / ratio[0]).round() as usize).clamp(1, y), x]
    } else if own > ratio[1] {
        [y, ((y as f64 * ratio[1]).round() as usize).clamp(1, x)]
    } else {
        [y, x]
    };
    [(y - height) / 2, (x - width) / 2, height, width]
}

impl Transform {
    /// The placement of `row`, an image of `shape`, under a seed and an epoch.
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
        self.placement_of_occurrence(shape, seed, epoch, row, 0, 0)
    }

    /// As [`Self::placement`], for crop number `crop` of several of the image
    /// ([`crate::LoaderBuilder::crops_per_image`]); number 0 is that of [`Self::placement`].
    ///
    /// # Errors
    /// As [`Self::output_shape`].
    pub fn placement_of_crop(
        &self,
        shape: Shape,
        seed: u64,
        epoch: u64,
        row: usize,
        crop: usize,
    ) -> Result<Placement, TransformError> {
        self.placement_of_occurrence(shape, seed, epoch, row, 0, crop)
    }

    /// As [`Self::placement_of_crop`], where the epoch has the row more than once:
    /// [`Batch::occurrences`](crate::Batch::occurrences) tells the times apart.
    ///
    /// # Errors
    /// As [`Self::output_shape`].
    pub fn placement_of_occurrence(
        &self,
        shape: Shape,
        seed: u64,
        epoch: u64,
        row: usize,
        occurrence: u64,
        crop: usize,
    ) -> Result<Placement, TransformError> {
        self.placement_of(shape, Draws::new(seed, epoch, row).of_occurrence(occurrence).of_crop(crop))
    }

    pub(crate) fn placement_of(&self, shape: Shape, draws: Draws) -> Result<Placement, TransformError> {
        let [top, left, height, width] = match self.crop {
            Crop::None => [0, 0, shape.y(), shape.x()],
            Crop::Center { .. } | Crop::CenterSquare { .. } => {
                let (height, width) = self.cropped(shape)?;
                [(shape.y() - height) / 2, (shape.x() - width) / 2, height, width]
            }
            Crop::Random { .. } => {
                let (height, width) = self.cropped(shape)?;
                let top = draws.below(Purpose::CropY, shape.y() - height + 1);
                [top, draws.below(Purpose::CropX, shape.x() - width + 1), height, width]
            }
            Crop::RandomResized { scale, ratio } => {
                random_resized([shape.y(), shape.x()], scale, ratio, draws)
            }
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
}
