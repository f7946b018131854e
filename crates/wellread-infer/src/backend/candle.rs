//! The embedded backend `candle`, from the safetensors file: the program's own kernels on the CPU, candle's on NVIDIA GPUs.

use super::interface::{Backend, asked, open_first};
use crate::config::Config;
use crate::launch::in_rust;
use crate::models::Model;
use crate::protocol::{Open, Opened};
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;
use wellread_model::Device;
use wellread_model::infer::{self, Session, SessionOptions};
use wellread_worker::Launch;

/// The backend `candle`.
pub struct Candle;

impl Backend for Candle {
    fn name(&self) -> &'static str {
        "candle"
    }

    fn label(&self) -> &'static str {
        "candle"
    }

    fn launch(&self, config: &Config) -> Launch {
        in_rust(config)
    }

    fn open(&self, model: &Model, _: &str, config: &Config) -> Result<Open> {
        if let Model::File { path, .. } = model {
            bail!(
                "candle runs {}, and no ONNX files; run {} with --framework onnxruntime",
                infer::architectures().iter().map(|a| a.name).collect::<Vec<_>>().join(", "),
                path.display()
            );
        }
        Ok(Open { weights: model.weights()?, ..asked(self, model, config) })
    }

    fn session(&self, open: &Open) -> Result<(Box<dyn Session>, Opened)> {
        let architecture = infer::architecture(&open.model)?.with_input(open.input)?;
        let weights = open.weights.as_deref().context("no weights are named")?;
        let dtype = open.dtype.parse()?;
        let on = |device| {
            let options = SessionOptions { threads: open.threads, device, dtype, ..Default::default() };
            infer::candle::open(&architecture, weights, &options)
        };
        let devices: &[Device] = match open.device.as_deref() {
            Some("cpu") => &[Device::Cpu],
            Some("cuda") => &[Device::Cuda(0)],
            Some(other) => {
                bail!("candle has no {other} device here; it has cpu, and cuda when built with it")
            }
            // Where no device was asked for by name, the best there is.
            None if cfg!(feature = "cuda") => &[Device::Cuda(0), Device::Cpu],
            None => &[Device::Cpu],
        };
        let (session, device, notes) = open_first(devices, on)?;
        let opened = Opened {
            backend: session.backend(),
            device: device.to_string(),
            device_type: match device {
                Device::Cpu => "cpu".into(),
                Device::Cuda(_) => "cuda".into(),
            },
            notes,
            versions: BTreeMap::from([("wellread".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]),
            ..Opened::default()
        };
        Ok((session, opened))
    }
}
