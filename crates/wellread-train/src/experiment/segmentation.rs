//! `im2im/segmentation`: foreground and background, learnt from masks.

use super::interface::{Experiment, defaults};
use crate::metrics::{Overlap, Scores};
use crate::net::Loss;
use crate::overlay;
use wellread_image::{PixelType, Shape};
use wellread_store::store::RowInfo;

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "im2im/segmentation",
    aliases: &[],
    defaults: || defaults("im2im/segmentation", Loss::BceDice),
    masks: true,
    scores: |config, logits, target| {
        let least = least_logit(config.inference.threshold);
        Overlap::of(logits.data.iter().map(|&z| z >= least), target.data.iter().map(|&t| t >= 0.5)).scores()
    },
    write: |config, logits| {
        let least = least_logit(config.inference.threshold);
        let [_, z, y, x, _] = logits.shape;
        let info = RowInfo { shape: Shape([1, 1, z, y, x]), dtype: PixelType::U8 };
        // 255, so that the foreground is seen in any viewer.
        (info, logits.data.iter().map(|&z| if z >= least { 255 } else { 0 }).collect())
    },
    draw: |config, [image, target, logits]| {
        overlay::outlines(image, target, logits, least_logit(config.inference.threshold))
    },
};

/// The logit from which on a pixel is foreground.
pub fn least_logit(threshold: f64) -> f32 {
    (threshold / (1.0 - threshold)).ln() as f32
}

impl Overlap {
    /// Dice and IoU; 1 where both masks are empty.
    pub fn scores(self) -> Scores {
        let ratio = |above: f64, below: f64| if below == 0.0 { 1.0 } else { above / below };
        let (both, either) = (self.both as f64, (self.ours + self.theirs) as f64);
        vec![("dice", ratio(2.0 * both, either)), ("iou", ratio(both, either - both))]
    }
}
