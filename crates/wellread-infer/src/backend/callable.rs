//! A model of the user's own in Python, `python:package.module:Class`, called with batches. See
//! `python/wellread/_bench/inference/callable.py`.
//!
//! It is none of [`BACKENDS`](super::BACKENDS): there is nothing to compare it with. `wellread embed` runs it.

use super::interface::{Backend, asked};
use crate::config::Config;
use crate::launch::in_python;
use crate::models::Model;
use crate::protocol::Open;
use anyhow::Result;
use wellread_worker::Launch;

/// A user's own model.
pub struct Callable;

/// The one there is.
pub static CALLABLE: Callable = Callable;

impl Backend for Callable {
    fn name(&self) -> &'static str {
        "python"
    }

    fn label(&self) -> &'static str {
        "Python"
    }

    fn launch(&self, config: &Config) -> Launch {
        in_python(config)
    }

    fn open(&self, model: &Model, _: &str, config: &Config) -> Result<Open> {
        Ok(asked(self, model, config))
    }
}
