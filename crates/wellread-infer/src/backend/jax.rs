//! JAX, in Python: the networks in plain jax.numpy, jitted. See `python/wellread/_bench/inference/jax.py`.

use super::interface::{Backend, asked};
use crate::config::Config;
use crate::launch::in_python;
use crate::models::Model;
use crate::protocol::Open;
use anyhow::Result;
use wellread_worker::Launch;

/// JAX.
pub struct Jax;

impl Backend for Jax {
    fn name(&self) -> &'static str {
        "jax"
    }

    fn label(&self) -> &'static str {
        "JAX"
    }

    fn launch(&self, config: &Config) -> Launch {
        in_python(config)
    }

    fn variants(&self, _: &Config) -> Vec<String> {
        vec!["jit".to_owned()]
    }

    fn open(&self, model: &Model, _: &str, config: &Config) -> Result<Open> {
        Ok(Open { weights: model.weights()?, ..asked(self, model, config) })
    }
}
