//! All settings of an experiment. Every key is described in docs/tasks-native.md; the fields below are those keys.
//! `settings.rs` reads them for a task.

use crate::net::{Loss, NormKind};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Folder of a branch that holds its experiments.
pub const FOLDER: &str = "configs/experiment";

/// All settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The work, by the name of a built-in experiment.
    pub kind: String,
    /// Images and targets.
    pub data: Data,
    /// Random changes of training patches.
    pub augment: Augment,
    /// The network.
    pub model: Model,
    /// How weights are moved.
    pub optimizer: Optimizer,
    /// How long, in what portions.
    pub training: Training,
    /// Whole images.
    pub inference: Inference,
}

/// Images and targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Set of images: any format that wellread reads.
    pub images: PathBuf,
    /// Names of the images to take; `*` stands for anything.
    pub image_names: String,
    /// Channel of the images to take.
    pub image_channel: usize,
    /// Set of masks (segmentation) or target images (label-free). Empty: the set of images itself.
    pub targets: PathBuf,
    /// Names of the targets to take.
    pub target_names: String,
    /// Channel of the targets.
    pub target_channel: usize,
    /// How images and targets belong together.
    #[serde(rename = "match")]
    pub matching: Matching,
    /// Names of the images to validate on, or the share of them.
    pub validation: Validation,
    /// The normalisation of intensities.
    pub normalize: Normalization,
    /// Rows and columns of a training patch.
    pub patch: [usize; 2],
    /// Patches of each image in an epoch.
    pub patches_per_image: usize,
    /// Threads that read ahead; 0: patches are read when they are asked for.
    pub workers: usize,
    /// The cache for decoded images, as `wellread bench --loader-cache` names it.
    pub cache: String,
}

/// How images and targets belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Matching {
    /// A target has the name of its image, or that name, `_` and more.
    Name,
    /// The first image belongs to the first target, and so on.
    Row,
}

/// The images for validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Validation {
    /// This share of the images, drawn by the seed: at least one.
    Share(f64),
    /// Images of these names; `*` stands for anything.
    Names(Vec<String>),
}

/// The normalisation of intensities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalization {
    /// Mean and deviation of each whole image.
    Image,
    /// Mean and deviation of all training images.
    Set,
    /// Not at all.
    None,
}

/// Random changes of training patches, the same for image and target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Augment {
    /// Flips, each way with probability one half.
    pub flip: bool,
    /// Turns by right angles.
    pub turns: bool,
    /// Rotation by up to so many degrees.
    pub rotate_degrees: f32,
    /// Intensities of the image are multiplied by `1 - brightness` to `1 + brightness`.
    pub brightness: f32,
    /// The same for distances from its mean.
    pub contrast: f32,
    /// Elastic deformation: standard deviation of the displacement in pixels.
    pub elastic: f32,
    /// Distance in pixels between the points that are displaced.
    pub elastic_spacing: usize,
}

/// The network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// 2 or 3.
    pub dimensions: usize,
    /// Channels of the first level; each level has twice those above.
    pub width: usize,
    /// How often the size is halved.
    pub depth: usize,
    /// Normalisation after each convolution.
    pub norm: NormKind,
    /// The loss to minimise.
    pub loss: Loss,
}

/// How weights are moved (AdamW).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Optimizer {
    /// Learning rate.
    pub lr: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// How the learning rate goes on.
    pub schedule: Schedule,
}

/// How the learning rate goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// As it is.
    Constant,
    /// Along half a cosine, to a hundredth at the end of the last epoch.
    Cosine,
}

/// How long, in what portions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// Epochs.
    pub epochs: usize,
    /// Patches in a step (images in inference).
    pub batch_size: usize,
    /// Threads of the network; 0: as many as there are processors.
    pub threads: usize,
}

/// Whole images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inference {
    /// Largest side of what goes through the network at once; larger images are cut into overlapping tiles.
    pub tile: usize,
    /// Probability from which on a pixel is foreground.
    pub threshold: f64,
}

/// Whether `name` matches `pattern`, in which `*` stands for anything.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("*DAPI*", "B7_DAPI_001", true),
            ("*_1", "x_1_2", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("aa*a", "aa", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
