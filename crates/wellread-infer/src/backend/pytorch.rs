//! PyTorch, in Python: torchvision's models; `--torch` names ways to run them. See
//! `python/wellread/_bench/inference/pytorch.py`.

use super::interface::{Backend, asked};
use crate::config::Config;
use crate::launch::in_python;
use crate::models::Model;
use crate::protocol::Open;
use anyhow::Result;
use wellread_worker::Launch;

/// PyTorch.
pub struct PyTorch;

impl Backend for PyTorch {
    fn name(&self) -> &'static str {
        "pytorch"
    }

    fn label(&self) -> &'static str {
        "PyTorch"
    }

    fn launch(&self, config: &Config) -> Launch {
        in_python(config)
    }

    fn variants(&self, config: &Config) -> Vec<String> {
        config.torch.clone()
    }

    fn tf32(&self, variant: &str, _: &Config) -> bool {
        variant.split('+').any(|option| matches!(option, "tf32" | "tensorrt"))
    }

    fn open(&self, model: &Model, variant: &str, config: &Config) -> Result<Open> {
        let options = variant.split('+').filter(|option| *option != "eager").map(ToOwned::to_owned);
        Ok(Open { weights: model.weights()?, variant: options.collect(), ..asked(self, model, config) })
    }
}
