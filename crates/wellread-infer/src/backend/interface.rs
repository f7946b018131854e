//! The interface of a framework for the benchmark: [`Backend`], which its file implements.

use crate::config::Config;
use crate::models::Model;
use crate::protocol::{Open, Opened};
use anyhow::{Context as _, Result, bail};
use wellread_model::infer::Session;
use wellread_worker::Launch;

/// A framework: the start of its process, and the request to open a model there.
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

    /// The request to open it there.
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

/// The request to open that every framework gets.
pub(super) fn asked(backend: &dyn Backend, model: &Model, config: &Config) -> Open {
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

/// Opens a session on the first of these devices that it opens on, best first. Notes say why it is not a better one.
pub(super) fn open_first<D: Copy, S>(
    devices: &[D],
    open: impl Fn(D) -> wellread_model::Result<S>,
) -> Result<(S, D, Vec<String>)> {
    let (&last, better) = devices.split_last().context("there is no device to try")?;
    let mut notes = Vec::new();
    for &device in better {
        match open(device) {
            Ok(session) => return Ok((session, device, notes)),
            Err(error) => notes.push(format!("not on the GPU: {error}")),
        }
    }
    Ok((open(last)?, last, notes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_model::{Device, Error};

    #[test]
    fn a_device_that_is_not_the_best_one_is_noted() {
        let both = [Device::Cuda(0), Device::Cpu];
        let lacking = |lacking: Device| {
            move |device: Device| {
                if device == lacking { Err(Error::new("no driver")) } else { Ok(device.to_string()) }
            }
        };
        let found = open_first(&both, lacking(Device::Cuda(0))).unwrap();
        assert_eq!(found, ("cpu".to_owned(), Device::Cpu, vec!["not on the GPU: no driver".to_owned()]));
        let found = open_first(&both, lacking(Device::Cpu)).unwrap();
        assert_eq!(found, ("cuda:0".to_owned(), Device::Cuda(0), vec![]));
        // A device that was asked for by name is the only one.
        let asked = open_first(&both[..1], lacking(Device::Cuda(0)));
        assert_eq!(asked.unwrap_err().to_string(), "no driver");
    }
}
