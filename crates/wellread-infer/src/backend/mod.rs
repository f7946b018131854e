//! The frameworks, one file each.

mod candle;
mod jax;
pub mod onnxruntime;
mod pytorch;

use crate::config::Config;
use crate::models::Model;
use crate::protocol::{Open, Opened};
use anyhow::{Result, bail};
use wellread_measure::process;
use wellread_model::infer::Session;
use wellread_worker::Launch;

/// One line per framework, in the order of tables.
pub static BACKENDS: &[&dyn Backend] =
    &[&pytorch::PyTorch, &jax::Jax, &onnxruntime::OnnxRuntime, &candle::Candle];

/// A framework: how its process is started, and what it is asked to open there.
pub trait Backend: Sync {
    /// Name of `--framework` and of the column.
    fn name(&self) -> &'static str;

    /// Name for people.
    fn label(&self) -> &'static str;

    /// The process.
    fn launch(&self, config: &Config) -> Launch;

    /// Ways to run it, each measured by itself; [`Self::open`] is given one.
    fn variants(&self, _config: &Config) -> Vec<String> {
        vec![String::new()]
    }

    /// Whether products of float32 are computed in TF32 there, if the device has it.
    fn tf32(&self, _variant: &str, _config: &Config) -> bool {
        false
    }

    /// What to open there.
    ///
    /// # Errors
    /// A model that it cannot take; files that cannot be made.
    fn open(&self, model: &Model, variant: &str, config: &Config) -> Result<Open>;

    /// Opens the model in this process, which is the worker: backends in Rust.
    ///
    /// # Errors
    /// A device or type that there is not; files that cannot be read.
    fn session(&self, _open: &Open) -> Result<(Box<dyn Session>, Opened)> {
        bail!("{} does not run in this program", self.name())
    }
}

/// The backend of that name.
pub fn named(name: &str) -> Option<&'static dyn Backend> {
    BACKENDS.iter().copied().find(|backend| backend.name() == name)
}

/// The process of a framework in Python.
fn in_python(config: &Config) -> Launch {
    let python = wellread_worker::python(config.python.as_deref());
    pinned(Launch::python(python, config.threads, config.turn_limit), config)
}

/// The process of a backend in Rust: this program.
pub(crate) fn in_rust(config: &Config) -> Launch {
    pinned(Launch::native(config.server.clone(), config.threads, config.turn_limit), config)
}

/// As many processors as threads, the same for all: XLA takes as many threads as it sees processors.
fn pinned(launch: Launch, config: &Config) -> Launch {
    match process::first_processors(config.threads) {
        Some(processors) => launch.on_processors(processors),
        None => launch,
    }
}

/// What every framework is asked to open.
fn asked(backend: &dyn Backend, model: &Model, config: &Config) -> Open {
    Open {
        framework: backend.name().to_owned(),
        threads: config.threads,
        device: config.device.clone(),
        dtype: config.dtype.clone(),
        model: model.name().to_owned(),
        input: model.input(),
        ..Open::default()
    }
}
