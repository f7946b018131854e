//! Random patches of images and targets, batch by batch.
//!
//! Two loaders with the same seed and rows. Crops, flips and turns are functions of (seed, epoch, row, occurrence), so
//! image and target get the same. Changes of intensities are given to the images' loader alone.

use super::elastic::Field;
use super::normal::{Normal, apply};
use super::pairs::Pairs;
use crate::config::Config;
use crate::net::Tensor;
use anyhow::{Context as _, Result, bail, ensure};
use wellread_loader::{Batch, Batches, Jitter, Loader, RightAngles, Transform};
use wellread_model::init::Uniform;

/// Delivers patches, epoch after epoch.
pub struct Patches {
    images: Loader,
    targets: Loader,
    elastic: Option<(f32, usize)>,
    seed: u64,
    masks: bool,
}

/// Patches as read: images and targets.
pub struct Raw(Batch, Batch);

/// The patches of one epoch.
pub struct Epoch<'a> {
    patches: &'a Patches,
    images: Batches,
    targets: Batches,
}

impl Patches {
    /// Patches of the training rows.
    ///
    /// # Errors
    /// Settings that do not fit the images.
    pub fn new(pairs: &Pairs, config: &Config, seed: u64, masks: bool) -> Result<Self> {
        let (data, augment) = (&config.data, &config.augment);
        let targets = pairs.targets.as_ref().context("there are no targets to train on")?;
        let rows: Vec<usize> =
            pairs.training.iter().flat_map(|&row| std::iter::repeat_n(row, data.patches_per_image)).collect();
        let transform = |channel: usize| {
            let flip = if augment.flip { 0.5 } else { 0.0 };
            let turns = if augment.turns { RightAngles::Fitting } else { RightAngles::None };
            Transform::default()
                .channels([channel])
                .random_crop(data.patch[0], data.patch[1])
                .flip(flip, flip)
                .right_angles(turns)
                .rotate_degrees(augment.rotate_degrees)
        };
        let loader = |set, transform: Transform| {
            Loader::builder(set)
                .rows(rows.clone())
                .shuffle(seed)
                .batch_size(config.training.batch_size)
                .workers(data.workers)
                .transform(transform)
                .build()
        };
        let jitter = Jitter {
            brightness: augment.brightness,
            contrast: augment.contrast,
            gamma: 0.0,
            per_channel: false,
        };
        Ok(Self {
            images: loader(&pairs.images, transform(pairs.channels[0]).jitter(jitter))?,
            targets: loader(targets, transform(pairs.channels[1]))?,
            elastic: (augment.elastic > 0.0).then_some((augment.elastic, augment.elastic_spacing)),
            seed,
            masks,
        })
    }

    /// Batches of an epoch.
    pub fn len(&self) -> usize {
        self.images.len()
    }

    /// Never: a loader has a batch at least.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }

    /// Patches of an epoch.
    pub fn samples(&self) -> usize {
        self.images.images()
    }

    /// The patches of epoch number `epoch`.
    pub fn epoch(&self, epoch: u64) -> Epoch<'_> {
        Epoch {
            patches: self,
            images: self.images.iter_at(epoch, 0),
            targets: self.targets.iter_at(epoch, 0),
        }
    }

    /// Brings patches into the network's layout, normalised.
    ///
    /// # Errors
    /// Patches of more than one channel, which the loaders do not make.
    pub fn tensors(&self, Raw(images, targets): &Raw, normal: &Normal) -> Result<(Tensor, Tensor)> {
        let images = tensor(images, |row| normal.image(row))?;
        let mut targets = tensor(targets, |row| normal.target(row))?;
        if self.masks {
            // Rotated or deformed masks have values between.
            targets.data.iter_mut().for_each(|v| *v = if *v >= 0.5 { 1.0 } else { 0.0 });
        }
        Ok((images, targets))
    }
}

/// A loader's batch of one channel in the network's layout, each image with the factor and summand of its row.
///
/// # Errors
/// Images of several channels or time points.
pub fn tensor(batch: &Batch, affine: impl Fn(usize) -> [f32; 2]) -> Result<Tensor> {
    let shape = match *batch.shape() {
        [n, 1, y, x] => [n, 1, y, x, 1],
        [n, 1, 1, z, y, x] => [n, z, y, x, 1],
        ref other => bail!("images of shape {other:?} are not of one channel and time point"),
    };
    let mut tensor = Tensor::new(batch.pixels().to_vec(), shape)?;
    let len = tensor.image_len();
    for (image, &row) in tensor.data.chunks_exact_mut(len).zip(batch.rows()) {
        apply(image, affine(row));
    }
    Ok(tensor)
}

/// Batches as they are read, cropped, turned and deformed; an error where pixels cannot be read.
impl Iterator for Epoch<'_> {
    type Item = Result<Raw>;

    fn next(&mut self) -> Option<Self::Item> {
        let pair = match (self.images.next()?, self.targets.next()?) {
            (Ok(images), Ok(targets)) => Ok((images, targets)),
            (Err(error), _) | (_, Err(error)) => Err(error.into()),
        };
        Some(pair.and_then(|(mut images, mut targets)| {
            let same = images.rows() == targets.rows() && images.occurrences() == targets.occurrences();
            ensure!(
                same,
                "image and target of a batch are not of the same rows; it is a bug: please report it"
            );
            if let Some((amplitude, spacing)) = self.patches.elastic {
                self.deform(&mut images, amplitude, spacing);
                self.deform(&mut targets, amplitude, spacing);
            }
            Ok(Raw(images, targets))
        }))
    }
}

impl Epoch<'_> {
    fn deform(&self, batch: &mut Batch, amplitude: f32, spacing: usize) {
        let shape = batch.shape();
        let size = [shape[shape.len() - 2], shape[shape.len() - 1]];
        let keys: Vec<(usize, u64)> =
            batch.rows().iter().copied().zip(batch.occurrences().iter().copied()).collect();
        let len = batch.pixels().len() / keys.len();
        let epoch = batch.epoch();
        for (image, (row, occurrence)) in batch.pixels_mut().chunks_exact_mut(len).zip(keys) {
            // A stream of its own for each patch: one number after the other is mixed in.
            let stream = [epoch, row as u64, occurrence]
                .iter()
                .fold(self.patches.seed, |key, &part| Uniform::new(key, part).next_u64());
            Field::draw(size, amplitude, spacing, Uniform::new(stream, 0xe1a5)).apply(image);
        }
    }
}
