//! `im2im/labelfree`, which upstream also calls `im2im/label_free`: one channel predicted from another.

use super::interface::{Experiment, defaults};
use crate::config::Config;
use crate::metrics::Correlation;
use crate::net::Loss;
use crate::overlay;
use wellread_image::{PixelType, Shape};
use wellread_store::store::RowInfo;

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "im2im/labelfree",
    aliases: &["im2im/label_free"],
    defaults: || {
        let defaults = defaults("im2im/labelfree", Loss::Mse);
        Config { data: crate::config::Data { target_channel: 1, ..defaults.data.clone() }, ..defaults }
    },
    masks: false,
    scores: |_, result, target| {
        let found = Correlation::of(&result.data, &target.data);
        vec![("pearson", found.pearson), ("mse", found.mse)]
    },
    write: |_, result| {
        let [_, z, y, x, _] = result.shape;
        let info = RowInfo { shape: Shape([1, 1, z, y, x]), dtype: PixelType::F32 };
        (info, result.data.iter().flat_map(|v| v.to_le_bytes()).collect())
    },
    draw: |_, [image, target, result]| overlay::side_by_side(image, target, result),
};
