//! ONNX Runtime: an ONNX file with the same weights, or a user's; the library is that of the Python, or named.

use super::interface::{Backend, asked};
use crate::config::Config;
use crate::launch::in_rust;
use crate::models::Model;
use crate::protocol::{Axes, Inspect, Inspected, Open, Opened};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use wellread_model::infer::{Dtype, Session};
use wellread_worker::Launch;

/// ONNX Runtime.
pub struct OnnxRuntime;

impl Backend for OnnxRuntime {
    fn name(&self) -> &'static str {
        "onnxruntime"
    }

    fn label(&self) -> &'static str {
        "ONNX Runtime"
    }

    fn launch(&self, config: &Config) -> Launch {
        in_rust(config)
    }

    fn tf32(&self, _: &str, config: &Config) -> bool {
        // Its CUDA provider is told not to; TensorRT's own choice is to.
        config.provider.as_deref() == Some("tensorrt")
    }

    fn open(&self, model: &Model, _: &str, config: &Config) -> Result<Open> {
        // TensorRT chooses the type of each layer itself, from a float32 file.
        let half = config.dtype()? == Dtype::Float16 && config.provider.as_deref() != Some("tensorrt");
        Ok(Open {
            onnx: Some(model.onnx(if half { Dtype::Float16 } else { Dtype::Float32 })?),
            provider: config.provider.clone(),
            library: config.onnxruntime.clone(),
            python: Some(wellread_worker::python(config.python.as_deref())),
            ..asked(self, model, config)
        })
    }

    fn session(&self, open: &Open) -> Result<(Box<dyn Session>, Opened)> {
        session(open)
    }
}

/// The library: the one given, else that of the Python.
///
/// # Errors
/// None is found; the message says how to get it.
pub fn find(given: Option<&Path>, python: Option<&Path>) -> Result<PathBuf> {
    library(given, python)
}

#[cfg(feature = "onnxruntime")]
mod built {
    use super::super::interface::open_first;
    use super::{Axes, Inspect, Inspected, Open, Opened, Path, PathBuf, Result, Session, bail};
    use anyhow::Context as _;
    use wellread_model::Device;
    use wellread_model::infer::SessionOptions;
    use wellread_model::infer::onnxruntime::{
        ModelFile, Provider, find_library, inspect as inspect_file, open as open_session,
    };

    pub(super) fn library(given: Option<&Path>, python: Option<&Path>) -> Result<PathBuf> {
        match given {
            Some(path) => Ok(path.to_owned()),
            None => Ok(find_library(Some(&wellread_worker::python(python)))?),
        }
    }

    /// Providers to try, in order. Only where neither provider nor device was asked for by name is there a second.
    fn providers(open: &Open) -> Result<Vec<Provider>> {
        Ok(match (open.provider.as_deref(), open.device.as_deref()) {
            (Some(name), _) => vec![name.parse::<Provider>()?],
            (None, Some("cpu")) => vec![Provider::Cpu],
            (None, Some("cuda")) => vec![Provider::Cuda],
            (None, Some(device)) => bail!("ONNX Runtime has no {device} device here; it has cpu and cuda"),
            (None, None) if Path::new("/proc/driver/nvidia").exists() => {
                vec![Provider::Cuda, Provider::Cpu]
            }
            (None, None) => vec![Provider::Cpu],
        })
    }

    /// The images that an ONNX file takes.
    ///
    /// # Errors
    /// A file that is none; images that it cannot take.
    pub(crate) fn inspect(asked: &Inspect) -> Result<Inspected> {
        let Ok(library) = library(asked.library.as_deref(), Some(&asked.python)) else {
            return Ok(Inspected { input: None });
        };
        let file = inspected(asked, &library)?;
        Ok(Inspected { input: Some(file.images(asked.wanted)?) })
    }

    /// The axes that an ONNX file leaves open.
    ///
    /// # Errors
    /// No ONNX Runtime; a file that is no ONNX model, or that images cannot be fed to.
    pub(crate) fn axes(asked: &Inspect) -> Result<Axes> {
        let library = library(asked.library.as_deref(), Some(&asked.python))?;
        let shape = inspected(asked, &library)?.shape;
        let [batch, image @ ..] = <[Option<usize>; 4]>::try_from(shape)
            .map_err(|shape| anyhow::anyhow!("{} has {} axes", asked.file.display(), shape.len()))?;
        Ok(Axes { batch, image })
    }

    fn inspected(asked: &Inspect, library: &Path) -> Result<ModelFile> {
        Ok(inspect_file(&asked.file, Some(library), asked.output.as_deref())?)
    }

    pub(super) fn session(open: &Open) -> Result<(Box<dyn Session>, Opened)> {
        let file = open.onnx.as_deref().context("no ONNX file is named")?;
        let dtype = open.dtype.parse()?;
        let library = library(open.library.as_deref(), open.python.as_deref())?;
        let device_of =
            |provider: Provider| if provider == Provider::Cpu { Device::Cpu } else { Device::Cuda(0) };
        let on = |provider: Provider| {
            let (device, output) = (device_of(provider), open.output.clone());
            let options = SessionOptions { threads: open.threads, device, dtype, output };
            open_session(file, Some(&library), provider, open.input, &options)
        };
        let (session, provider, notes) = open_first(&providers(open)?, on)?;
        let device = device_of(provider);
        let opened = Opened {
            backend: session.backend(),
            device: device.to_string(),
            device_type: if device == Device::Cpu { "cpu".into() } else { "cuda".into() },
            layout: Some("NCHW".into()),
            notes,
            ..Opened::default()
        };
        Ok((session, opened))
    }
}

#[cfg(feature = "onnxruntime")]
pub(crate) use built::{axes, inspect};
#[cfg(feature = "onnxruntime")]
use built::{library, session};

#[cfg(not(feature = "onnxruntime"))]
const MISSING: &str = "this build has no ONNX Runtime; build it with the cargo feature onnxruntime";

#[cfg(not(feature = "onnxruntime"))]
fn library(_: Option<&Path>, _: Option<&Path>) -> Result<PathBuf> {
    bail!(MISSING)
}

#[cfg(not(feature = "onnxruntime"))]
#[expect(clippy::unnecessary_wraps, reason = "with ONNX Runtime it may fail")]
pub(crate) fn inspect(_: &Inspect) -> Result<Inspected> {
    Ok(Inspected { input: None })
}

#[cfg(not(feature = "onnxruntime"))]
pub(crate) fn axes(_: &Inspect) -> Result<Axes> {
    bail!(MISSING)
}

#[cfg(not(feature = "onnxruntime"))]
fn session(_: &Open) -> Result<(Box<dyn Session>, Opened)> {
    bail!(MISSING)
}
