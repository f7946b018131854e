//! The models that run in candle, one line each.

use super::on_device::{Definition, OnDevice};
use super::{linear_probe, small_cnn};
use crate::{Error, Model, ModelOptions, Result};

/// One line per model.
static MODELS: &[&Definition] = &[&linear_probe::MODEL, &small_cnn::MODEL];

/// Makes the model of that name on the device of `options`.
///
/// # Errors
/// A model that is not made for it; a device or a number of threads that cannot be had.
pub(crate) fn create(name: &str, options: &ModelOptions) -> Result<Box<dyn Model>> {
    let Some(definition) = MODELS.iter().find(|m| m.name == name) else {
        let known: Vec<_> = MODELS.iter().map(|m| m.name).collect();
        return Err(Error::new(format_args!("{name} does not run on {}", options.device))
            .hint(format_args!("run it on the cpu; made for GPUs, too, are: {}", known.join(", "))));
    };
    Ok(Box::new(OnDevice::new(definition, options)?))
}
