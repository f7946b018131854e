//! The choices that make up the transform, one by one.

use super::LoaderBuilder;
use crate::transform::field::Field;
use crate::transform::{GroupFields, Jitter, Noise, Normalize, Resize, RightAngles, Scale, Transform};
use std::sync::Arc;

impl LoaderBuilder {
    /// The whole transform at once, in place of those below.
    pub fn transform(mut self, transform: Transform) -> Self {
        self.transform = transform;
        self
    }

    /// Takes these channels, in this order.
    pub fn channels(mut self, channels: impl Into<Vec<usize>>) -> Self {
        self.transform = self.transform.channels(channels);
        self
    }

    /// Takes the channels of these names: see [`Transform::named_channels`].
    pub fn named_channels<'a>(mut self, channels: impl IntoIterator<Item = (&'a str, usize)>) -> Self {
        self.transform = self.transform.named_channels(channels);
        self
    }

    /// Takes the centre, `height` by `width` pixels.
    pub fn crop(mut self, height: usize, width: usize) -> Self {
        self.transform = self.transform.crop(height, width);
        self
    }

    /// Takes a random part, `height` by `width` pixels.
    pub fn random_crop(mut self, height: usize, width: usize) -> Self {
        self.transform = self.transform.random_crop(height, width);
        self
    }

    /// Flips with these probabilities: left to right, top to bottom.
    pub fn flip(mut self, horizontal: f32, vertical: f32) -> Self {
        self.transform = self.transform.flip(horizontal, vertical);
        self
    }

    /// Turns by random multiples of 90 degrees.
    pub fn right_angles(mut self, turns: RightAngles) -> Self {
        self.transform = self.transform.right_angles(turns);
        self
    }

    /// Rotates by a random angle of up to `max_degrees` either way.
    pub fn rotate_degrees(mut self, max_degrees: f32) -> Self {
        self.transform = self.transform.rotate_degrees(max_degrees);
        self
    }

    /// Resizes every plane, averaging where it shrinks.
    pub fn resize(mut self, height: usize, width: usize) -> Self {
        self.transform = self.transform.resize(height, width);
        self
    }

    /// Resizes every plane.
    pub fn resize_with(mut self, resize: Resize) -> Self {
        self.transform = self.transform.resize_with(resize);
        self
    }

    /// Scales to `[0, 1]` by the range of the pixel type.
    pub fn scale_to_unit(mut self) -> Self {
        self.transform = self.transform.scale_to_unit();
        self
    }

    /// Multiplies by `factor`.
    pub fn scale(mut self, factor: f32) -> Self {
        self.transform = self.transform.scale(factor);
        self
    }

    /// Normalises, after scaling, by one mean and standard deviation for all channels or one per (selected) channel.
    pub fn normalize(mut self, mean: impl Into<Vec<f32>>, std: impl Into<Vec<f32>>) -> Self {
        self.transform = self.transform.normalize(mean, std);
        self
    }

    /// Normalises.
    pub fn normalize_with(mut self, normalize: Normalize) -> Self {
        self.transform = self.transform.normalize_with(normalize);
        self
    }

    /// Scales.
    pub fn scale_with(mut self, scale: Scale) -> Self {
        self.transform = self.transform.scale_with(scale);
        self
    }

    /// Scales to `[0, 1]` by percentiles of each channel of each image.
    pub fn scale_by_percentiles(mut self, low: f32, high: f32) -> Self {
        self.transform = self.transform.scale_by_percentiles(low, high);
        self
    }

    /// Takes the maximum over depth.
    pub fn max_projection(mut self) -> Self {
        self.transform = self.transform.max_projection();
        self
    }

    /// Corrects illumination by a field of the size of the stored images.
    pub fn illumination(mut self, field: impl Into<Arc<Field>>) -> Self {
        self.transform = self.transform.illumination(field);
        self
    }

    /// Corrects illumination by the fields of each row's group, such as its plate, told by columns beside the images.
    pub fn illumination_by(mut self, fields: impl Into<Arc<GroupFields>>) -> Self {
        self.transform = self.transform.illumination_by(fields);
        self
    }

    /// Takes a random part of random size and resizes it; see [`Transform::random_resized_crop`].
    pub fn random_resized_crop(mut self, height: usize, width: usize) -> Self {
        self.transform = self.transform.random_resized_crop(height, width);
        self
    }

    /// Changes intensities at random.
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.transform = self.transform.jitter(jitter);
        self
    }

    /// Adds noise.
    pub fn noise(mut self, noise: Noise) -> Self {
        self.transform = self.transform.noise(noise);
        self
    }

    /// Drops each channel with this probability.
    pub fn channel_dropout(mut self, probability: f32) -> Self {
        self.transform = self.transform.channel_dropout(probability);
        self
    }
}
