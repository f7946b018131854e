//! Where a model runs: its device, and the thread pool of its own from which all of it is called.

use crate::threads::{in_words, thread_pool};
use crate::{Device, Error, ModelOptions, Result};

/// Version of candle that this build uses, as far as it decides behaviour.
const VERSION: &str = "0.11";

/// Device and threads of one model.
pub(crate) struct Runtime {
    pub device: candle_core::Device,
    pub pool: rayon::ThreadPool,
    /// For reports.
    pub name: String,
}

impl Runtime {
    pub fn new(options: &ModelOptions) -> Result<Self> {
        let device = match options.device {
            Device::Cpu => candle_core::Device::Cpu,
            Device::Cuda(index) => candle_core::Device::new_cuda(index).map_err(|e| {
                Error::new(format_args!("there is no usable GPU cuda:{index}: {e}"))
                    .hint("build with the feature `cuda` on a machine with an NVIDIA GPU, or run on the cpu")
            })?,
        };
        let pool = thread_pool(options.threads)?;
        let name = match options.device {
            Device::Cpu => format!("candle {VERSION} (cpu, {})", in_words(pool.current_num_threads())),
            device @ Device::Cuda(_) => format!("candle {VERSION} ({device})"),
        };
        Ok(Self { device, pool, name })
    }
}

impl From<candle_core::Error> for Error {
    fn from(error: candle_core::Error) -> Self {
        Self::new(format_args!("the candle backend failed: {error}"))
    }
}
