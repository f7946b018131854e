//! Checks of a transform, each later one with more facts at hand, and the shape of what it makes of an image.
//!
//! ```text
//!  Transform ── check: its numbers alone ──▶ check_dtype: the pixel type ──▶ output_shape: the image's shape, channels
//!      └─────── check_stored: nothing is computed, for batches of stored pixels
//! ```

use super::compose::Transform;
use super::error::TransformError;
use super::steps::{Crop, Normalize, Resize, RightAngles, Scale};
use crate::percentiles::percent;
use wellread_image::words::{counted, counted_with, there_are};
use wellread_image::{PixelType, Shape};

type Checked<T = ()> = Result<T, TransformError>;

fn refuse<T>(cause: impl Into<String>, hint: impl Into<String>) -> Checked<T> {
    Err(TransformError::new(cause, hint))
}

impl Transform {
    /// Checks the numbers that need no image: probabilities, angles, sizes, standard deviations.
    ///
    /// # Errors
    /// The first that makes no sense.
    pub fn check(&self) -> Checked {
        let probabilities = [
            (self.flip_horizontal, "a horizontal flip"),
            (self.flip_vertical, "a vertical flip"),
            (self.channel_dropout, "dropping a channel"),
        ];
        for (p, what) in probabilities {
            if !(0.0..=1.0).contains(&p) {
                return refuse(format!("the probability of {what} is {p}"), "give 0 to 1");
            }
        }
        if !(0.0..=180.0).contains(&self.max_degrees) {
            return refuse(format!("the largest rotation is {} degrees", self.max_degrees), "give 0 to 180");
        }
        if self.channels.as_ref().is_some_and(Vec::is_empty) {
            return refuse("no channel is selected", "give at least one");
        }
        let numbers = self.channels.as_ref().map_or(0, Vec::len);
        if let Some(names) = self.channel_names.as_ref().filter(|names| names.len() != numbers) {
            return refuse(
                format!(
                    "{} given for {}",
                    counted_with(names.len(), "name", ["is", "are"]),
                    counted(numbers, "channel")
                ),
                "give the number of each channel in the first image",
            );
        }
        if self.illumination.is_some() && self.fields.is_some() {
            return refuse(
                "illumination is corrected by one field, and by fields of groups",
                "give one of both",
            );
        }
        self.check_crop()?;
        self.check_scale()?;
        self.check_intensities()?;
        self.check_normalize()
    }

    fn check_crop(&self) -> Checked {
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
            return refuse(
                format!("{what} to {height}x{width} leaves no pixels"),
                "give at least 1 row and 1 column",
            );
        }
        if let Crop::CenterSquare { share } = self.crop
            && !(share > 0.0 && share <= 1.0)
        {
            return refuse(
                format!("a square of {share} of the shorter side"),
                "give a share above 0, up to 1",
            );
        }
        if let Crop::RandomResized { scale, ratio } = self.crop {
            if self.resize.is_none() {
                return refuse(
                    "crops of random size would differ in shape",
                    "add a resize, or crop to a given size (random_crop)",
                );
            }
            let ordered = |[a, b]: [f32; 2]| a > 0.0 && b >= a && b.is_finite();
            if !ordered(scale) || scale[1] > 1.0 || !ordered(ratio) {
                return refuse(
                    format!("crops of {scale:?} of the area with width to height of {ratio:?}"),
                    "give the smaller number first, all above 0, shares of the area up to 1",
                );
            }
        }
        Ok(())
    }

    fn check_scale(&self) -> Checked {
        match &self.scale {
            Scale::By(factor) if !factor.is_finite() => {
                refuse(format!("the scale is {factor}"), "give a finite number")
            }
            Scale::Range { low, high } | Scale::Stored { low, high } => Self::check_range(low, high),
            Scale::Channels(of) => Self::check_range(&of.low, &of.high),
            Scale::Percentiles { low, high } if !(0.0 <= *low && low < high && *high <= 100.0) => refuse(
                format!("the percentiles to scale by are {low} and {high}"),
                "give two numbers from 0 to 100, the lower first",
            ),
            // Nearly all values would be 1.
            Scale::Percentiles { low, high } if *high <= 1.0 => refuse(
                format!("the percentiles to scale by are {low} and {high}, both within the lowest percent"),
                format!(
                    "100 is the largest value; if shares are meant, give {} and {} for that",
                    percent((*low).into()),
                    percent((*high).into())
                ),
            ),
            _ => Ok(()),
        }
    }

    fn check_range(low: &[f32], high: &[f32]) -> Checked {
        if low.len() != high.len() || low.is_empty() {
            return refuse(
                format!("{} lower and {} upper ends of the range to scale", low.len(), high.len()),
                "give one of each, or one of each per channel",
            );
        }
        // Where the reciprocal is infinite, the value that is to become 0 becomes NaN.
        let is_range =
            |l: f32, h: f32| l.is_finite() && h.is_finite() && l < h && (1.0 / (h - l)).is_finite();
        let bad = low.iter().zip(high).find(|&(&l, &h)| !is_range(l, h));
        bad.map_or(Ok(()), |(l, h)| {
            refuse(
                format!("the range to scale is {l:?} to {h:?}"),
                "give a lower number, then a higher one, 1e-38 or more apart",
            )
        })
    }

    fn check_intensities(&self) -> Checked {
        let (jitter, noise) = (self.jitter, self.noise);
        for (name, value) in [("brightness", jitter.brightness), ("contrast", jitter.contrast)] {
            if !(0.0..=1.0).contains(&value) {
                return refuse(format!("{name} changes by {value}"), "give 0 (off) to 1");
            }
        }
        for (name, value) in
            [("gamma", jitter.gamma), ("photon noise", noise.photon), ("Gaussian noise", noise.gaussian)]
        {
            if !(value >= 0.0 && value.is_finite()) {
                return refuse(
                    format!("the strength of {name} is {value}"),
                    "give 0 (off) or a positive number",
                );
            }
        }
        Ok(())
    }

    fn check_normalize(&self) -> Checked {
        match &self.normalize {
            None | Some(Normalize::PerImage) => Ok(()),
            Some(Normalize::Stored { .. } | Normalize::Channels(_) | Normalize::Groups(_))
                if matches!(self.scale, Scale::Percentiles { .. }) =>
            {
                refuse(
                    "statistics of stored values do not apply to values scaled by each image's percentiles",
                    "scale by a given range, or normalise each image by its own values",
                )
            }
            Some(Normalize::Groups(groups)) => Self::check_moments(groups.numbers()),
            Some(Normalize::Channels(of)) => Self::check_moments([&of.mean, &of.std]),
            Some(Normalize::Given { mean, std } | Normalize::Stored { mean, std }) => {
                Self::check_moments([mean, std])
            }
        }
    }

    fn check_moments([mean, std]: [&[f32]; 2]) -> Checked {
        if mean.len() != std.len() || mean.is_empty() {
            return refuse(
                format!("{} means and {} standard deviations to normalise by", mean.len(), std.len()),
                "give one of each, or one of each per channel",
            );
        }
        if let Some(bad) = std.iter().find(|s| !(s.is_finite() && **s > 0.0 && (1.0 / **s).is_finite())) {
            return refuse(
                format!("a standard deviation to normalise by is {bad:?}"),
                "give positive numbers, 1e-38 or more",
            );
        }
        if mean.iter().any(|m| !m.is_finite()) {
            return refuse("a mean to normalise by is not finite", "give finite numbers");
        }
        Ok(())
    }

    /// Checks that pixels can stay as they are stored: nothing is computed.
    ///
    /// # Errors
    /// The first step that computes.
    pub fn check_stored(&self) -> Checked {
        let steps = [
            (self.is_corrected(), "an illumination correction"),
            (self.resize.is_some(), "a resize"),
            (self.max_degrees > 0.0, "a rotation by a few degrees"),
            (self.scale != Scale::None, "a scale"),
            (!self.jitter.is_none(), "a change of intensities"),
            (!self.noise.is_none(), "noise"),
            (self.normalize.is_some(), "a normalisation"),
        ];
        match steps.into_iter().find(|(asked, _)| *asked) {
            None => Ok(()),
            Some((_, step)) => refuse(
                format!("{step} is asked for, but pixels are to be delivered as stored"),
                "do it on the device, or choose float32, float16 or bfloat16 as output",
            ),
        }
    }

    /// Checks what needs the pixel type.
    ///
    /// # Errors
    /// A gamma of values that are not scaled to `[0, 1]`.
    pub fn check_dtype(&self, dtype: PixelType) -> Checked {
        if self.jitter.gamma > 0.0 && self.scale == Scale::None && !dtype.is_float() {
            return refuse(
                format!("gamma is for values from 0 to 1, but {dtype} is not scaled"),
                "scale the values to 0 to 1, by the range of their type or by percentiles",
            );
        }
        Ok(())
    }

    /// Size of the crop in an image of `shape`; of crops of random size, the largest.
    pub(super) fn cropped(&self, shape: Shape) -> Checked<(usize, usize)> {
        match self.crop {
            Crop::None | Crop::RandomResized { .. } => Ok((shape.y(), shape.x())),
            Crop::CenterSquare { share } => {
                let shorter = shape.y().min(shape.x());
                let side = (f64::from(share) * shorter as f64).round() as usize;
                let side = side.clamp(1, shorter);
                Ok((side, side))
            }
            Crop::Center { height, width } | Crop::Random { height, width } => {
                if height > shape.y() || width > shape.x() {
                    return refuse(
                        format!(
                            "the crop of {height}x{width} is larger than the image of {}x{} (TCZYX {shape})",
                            shape.y(),
                            shape.x()
                        ),
                        "crop to no more than the smallest image, or use resize",
                    );
                }
                Ok((height, width))
            }
        }
    }

    /// The shape (TCZYX) of what an image of `shape` becomes.
    ///
    /// # Errors
    /// A crop larger than the image, a channel the image does not have, or normalisation for another number
    /// of channels. A field of another size, or quarter turns of an image that is not square.
    pub fn output_shape(&self, shape: Shape) -> Checked<Shape> {
        let (height, width) = self.cropped(shape)?;
        let channels = match &self.channels {
            None => shape.c(),
            Some(channels) => {
                if let Some(missing) = channels.iter().find(|&&c| c >= shape.c()) {
                    return refuse(
                        format!(
                            "channel {missing} is selected, but the image has {}",
                            counted(shape.c(), "channel")
                        ),
                        format!("channels are counted from 0: the last is {}", shape.c() - 1),
                    );
                }
                channels.len()
            }
        };
        self.check_channels(shape.c(), channels)?;
        // The images behind crops are known row by row.
        if let Some(field) = self.illumination.as_ref().filter(|_| !self.is_cut) {
            field.check(self.without_mask(shape))?;
        }
        let (height, width) = match self.resize {
            Some(resize) => (resize.height, resize.width),
            None if self.right_angles == RightAngles::QuarterTurns && height != width => {
                return refuse(
                    format!("quarter turns would exchange the height and width of {height}x{width} pixels"),
                    "crop to a square, add a resize, or turn by half turns only",
                );
            }
            None => (height, width),
        };
        Ok(Shape([shape.t(), channels, self.depth(shape), height, width]))
    }

    /// Planes of each time and channel of an image: one of the maximum over its depth.
    pub(crate) fn depth(&self, shape: Shape) -> usize {
        if self.project { 1 } else { shape.z() }
    }

    /// Checks that lists of one number per channel are as long as there are channels.
    fn check_channels(&self, stored: usize, selected: usize) -> Checked {
        // Masks may be left out.
        let mask = self.mask(stored);
        let masks = match &self.channels {
            None => usize::from(mask.is_some()),
            Some(channels) => channels.iter().filter(|&&channel| Some(channel) == mask).count(),
        };
        let (stored, selected) =
            ([stored, stored - usize::from(mask.is_some())], [selected, selected - masks]);
        let lists = [
            match &self.normalize {
                Some(Normalize::Given { mean, .. }) => {
                    Some(("means to normalise by", mean.len(), selected, "(selected) channel"))
                }
                Some(Normalize::Stored { mean, .. }) => {
                    Some(("means to normalise by", mean.len(), stored, "channel of the stored images"))
                }
                Some(Normalize::Channels(of)) => {
                    Some(("means to normalise by", of.mean.len(), stored, "channel of the stored images"))
                }
                // Those of one channel are of that one.
                Some(Normalize::Groups(groups)) if !stored.contains(&groups.channels()) => {
                    return refuse(
                        format!(
                            "{} has statistics of {}, but the images have {}",
                            groups.path().display(),
                            counted(groups.channels(), "channel"),
                            counted(stored[0], "channel")
                        ),
                        "compute them of these images: wellread stats --by",
                    );
                }
                _ => None,
            },
            match &self.scale {
                Scale::Range { low, .. } => {
                    Some(("ranges to scale", low.len(), selected, "(selected) channel"))
                }
                Scale::Stored { low, .. } => {
                    Some(("ranges to scale", low.len(), stored, "channel of the stored images"))
                }
                Scale::Channels(of) => {
                    Some(("ranges to scale", of.low.len(), stored, "channel of the stored images"))
                }
                _ => None,
            },
        ];
        for (what, given, there, each) in lists.into_iter().flatten() {
            if given != 1 && !there.contains(&given) {
                return refuse(
                    format!("{what} are given for {given} channels, but {}", there_are(there[0], "channel")),
                    format!("give one for all channels, or one per {each}"),
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_that_are_shares_are_refused() {
        for ((low, high), meant) in [
            ((0.01, 0.99), "give 1 and 99"),
            ((0.0, 1.0), "give 0 and 100"),
            ((0.07, 0.57), "give 7 and 57 for"),
        ] {
            let error = Transform::default().scale_by_percentiles(low, high).check().unwrap_err().to_string();
            assert!(error.contains("both within the lowest percent") && error.contains(meant), "{error}");
        }
        assert!(Transform::default().scale_by_percentiles(0.1, 1.2).check().is_ok());
    }
}
