//! The differences between experiments, [`Experiment`], and the settings that all of them start from.

use crate::config::{
    Augment, Config, Data, Inference, Matching, Model, Normalization, Optimizer, Schedule, Training,
    Validation,
};
use crate::metrics::Scores;
use crate::net::{Loss, NormKind, Tensor};
use std::path::PathBuf;
use wellread_store::preview::Preview;
use wellread_store::store::RowInfo;

/// A kind of experiment.
pub struct Experiment {
    /// Name, such as `im2im/segmentation`.
    pub name: &'static str,
    /// Other names of the same, as upstream's documents have them.
    pub aliases: &'static [&'static str],
    /// Settings where the branch says nothing.
    pub defaults: fn() -> Config,
    /// Whether targets are masks: 0 is background, everything else foreground. Otherwise they are normalised as images.
    pub masks: bool,
    /// Scores of the network's result for one whole image against its target. The first decides which checkpoint is
    /// best (the larger, the better).
    pub scores: fn(&Config, &Tensor, &Tensor) -> Scores,
    /// A prediction as it is written, of the network's result for one image: shape and type, and its bytes.
    pub write: fn(&Config, &Tensor) -> (RowInfo, Vec<u8>),
    /// A picture of an image (its middle plane), its target and the network's result.
    pub draw: fn(&Config, [&Tensor; 3]) -> Preview,
}

/// The settings that all experiments start from.
pub(super) fn defaults(kind: &str, loss: Loss) -> Config {
    Config {
        kind: kind.to_owned(),
        data: Data {
            images: PathBuf::new(),
            image_names: "*".to_owned(),
            image_channel: 0,
            targets: PathBuf::new(),
            target_names: "*".to_owned(),
            target_channel: 0,
            matching: Matching::Name,
            validation: Validation::Share(0.2),
            normalize: Normalization::Image,
            patch: [128, 128],
            patches_per_image: 16,
            workers: 2,
            cache: "memory".to_owned(),
        },
        augment: Augment {
            flip: true,
            turns: true,
            rotate_degrees: 0.0,
            brightness: 0.0,
            contrast: 0.0,
            elastic: 0.0,
            elastic_spacing: 32,
        },
        model: Model { dimensions: 2, width: 16, depth: 3, norm: NormKind::Batch, loss },
        optimizer: Optimizer { lr: 1e-3, weight_decay: 1e-4, schedule: Schedule::Constant },
        training: Training { epochs: 10, batch_size: 8, threads: 0 },
        inference: Inference { tile: 512, threshold: 0.5 },
    }
}
