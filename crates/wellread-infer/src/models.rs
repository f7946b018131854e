//! The models: an architecture with its weights, or a user's ONNX file.

use crate::config::{Config, is_onnx};
use crate::launch::in_rust;
use crate::protocol::{Inspect, Inspected, Request};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use wellread_model::infer::{self, Architecture, Dtype};
use wellread_worker::Worker;

/// Where a model in a user's ONNX file takes images that nobody gave the shape of.
const DEFAULT_INPUT_SHAPE: [usize; 3] = [3, 224, 224];

/// A model. Its files are made when a backend first asks for them.
#[derive(Clone, Debug)]
pub enum Model {
    /// An architecture of ours.
    Architecture {
        /// With the input that is asked for.
        architecture: Architecture,
        /// Seed of the weights.
        seed: u64,
        /// Folder of its files.
        folder: PathBuf,
    },
    /// A user's ONNX file.
    File {
        /// The file.
        path: PathBuf,
        /// Its name, as given.
        name: String,
        /// Channels, rows, columns.
        input: [usize; 3],
    },
}

impl Model {
    /// The model of that name, which [`Config::check`] has looked at.
    ///
    /// # Errors
    /// A file that is no ONNX model; images that it cannot take.
    pub fn find(name: &str, config: &Config) -> Result<Self> {
        if is_onnx(name) {
            let path = Path::new(name);
            let input = input_of(path, config)?.or(config.input_shape).unwrap_or(DEFAULT_INPUT_SHAPE);
            return Ok(Self::File { path: path.to_owned(), name: name.to_owned(), input });
        }
        let (seed, folder) = (config.seed, config.model_dir.clone());
        Ok(Self::Architecture { architecture: architecture(name, config.input_shape)?, seed, folder })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Architecture { architecture, .. } => architecture.name,
            Self::File { name, .. } => name,
        }
    }

    /// Channels, rows, columns.
    pub fn input(&self) -> [usize; 3] {
        match self {
            Self::Architecture { architecture, .. } => architecture.input,
            Self::File { input, .. } => *input,
        }
    }

    /// Numbers per image that come out, where they are known before.
    pub fn classes(&self) -> Option<usize> {
        match self {
            Self::Architecture { architecture, .. } => Some(architecture.classes),
            Self::File { .. } => None,
        }
    }

    /// The safetensors file of an architecture.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn weights(&self) -> Result<Option<PathBuf>> {
        match self {
            Self::Architecture { architecture, seed, folder } => {
                let made = infer::weights_file(architecture, *seed, folder);
                Ok(Some(made.context("--model-dir PATH names another folder for weights")?))
            }
            Self::File { .. } => Ok(None),
        }
    }

    /// The ONNX file, with numbers of this type.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn onnx(&self, dtype: Dtype) -> Result<PathBuf> {
        match self {
            Self::Architecture { architecture, folder, .. } => {
                let Some(weights) = self.weights()? else { bail!("{} has no weights", self.name()) };
                Ok(infer::onnx_file_in(architecture, &weights, folder, dtype)?)
            }
            Self::File { path, .. } => Ok(path.clone()),
        }
    }
}

/// An architecture, with the input that is asked for.
///
/// # Errors
/// No such architecture; images that it cannot take.
pub(crate) fn architecture(name: &str, input: Option<[usize; 3]>) -> Result<Architecture> {
    let found = infer::architecture(name)?;
    match input {
        Some(input) => found.with_input(input).with_context(|| format!("--input-shape for {name}")),
        None => Ok(found.clone()),
    }
}

/// Channels, rows and columns that an ONNX file takes, where ONNX Runtime can be asked; that it is missing is a row of its
/// own. A file may be anything, so a process is asked that may crash or hang.
fn input_of(path: &Path, config: &Config) -> Result<Option<[usize; 3]>> {
    let asked = Inspect {
        file: path.to_owned(),
        wanted: config.input_shape,
        output: None,
        library: config.onnxruntime.clone(),
        python: wellread_worker::python(config.python.as_deref()),
    };
    let mut worker = Worker::start(&in_rust(config))?;
    let answer = worker.ask(&serde_json::to_value(Request::Inspect(asked))?, |_| ());
    let answer = answer.with_context(|| format!("--model {}", path.display()))?;
    Ok(serde_json::from_value::<Inspected>(answer)?.input)
}
