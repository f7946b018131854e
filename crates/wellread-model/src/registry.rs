//! The models of this build, one line each.

use crate::training::{linear_probe, small_cnn};
use crate::{Device, Error, Model, ModelEntry, ModelOptions, Result};

/// One line per model; the first is the default of the `loop` benchmark. Those that run on GPUs, too, have a line in
/// `crate::candle`.
static MODELS: &[&ModelEntry] = &[&linear_probe::MODEL, &small_cnn::MODEL];

/// All models of this build.
pub fn models() -> &'static [&'static ModelEntry] {
    MODELS
}

/// Makes the model of that name.
///
/// # Errors
/// No such model in this build (the message lists those there are), or options it cannot meet.
pub fn create(name: &str, options: &ModelOptions) -> Result<Box<dyn Model>> {
    let Some(entry) = models().iter().find(|m| m.name == name) else {
        let known: Vec<_> = models().iter().map(|m| m.name).collect();
        return Err(Error::new(format_args!("there is no model {name:?} in this build"))
            .hint(format_args!("there are: {}", known.join(", "))));
    };
    if options.in_channels == 0 {
        return Err(Error::new("a model needs at least one channel"));
    }
    match options.device {
        Device::Cpu => (entry.create)(options),
        #[cfg(any(feature = "cuda", all(feature = "candle", test)))]
        Device::Cuda(_) => crate::candle::create(entry.name, options),
        #[cfg(not(any(feature = "cuda", all(feature = "candle", test))))]
        Device::Cuda(_) => Err(options.device.without_candle()),
    }
}
