//! What is run: an architecture with its weights, or a user's ONNX file.

use crate::config::{Config, is_onnx};
use anyhow::{Context as _, Result, bail, ensure};
use std::path::{Path, PathBuf};
use wellread_model::infer::{self, Architecture, Dtype};

/// Where a model in a user's ONNX file takes images that nobody gave the shape of.
const USUAL: [usize; 3] = [3, 224, 224];

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
    /// The model of that name.
    ///
    /// # Errors
    /// No such model or file; images that it cannot take.
    pub fn find(name: &str, config: &Config) -> Result<Self> {
        if is_onnx(name) {
            let path = Path::new(name);
            ensure!(path.is_file(), "--model {name}: there is no such file");
            let input = input_of(path, config)?;
            return Ok(Self::File { path: path.to_owned(), name: name.to_owned(), input });
        }
        let architecture = infer::architecture(name)?;
        let architecture = match config.input_shape {
            Some(input) => {
                architecture.with_input(input).with_context(|| format!("--input-shape for {name}"))?
            }
            None => architecture.clone(),
        };
        let folder = config.model_dir.clone();
        Ok(Self::Architecture { architecture, seed: config.seed, folder })
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

/// Channels, rows and columns that an ONNX file takes, where ONNX Runtime can be asked; else those given, or the usual.
#[cfg(feature = "onnxruntime")]
fn input_of(path: &Path, config: &Config) -> Result<[usize; 3]> {
    let found = crate::backend::onnxruntime::find(config.onnxruntime.as_deref(), config.python.as_deref());
    // Without the library nobody can be asked; that it is missing is a row of its own.
    let Ok(library) = found else { return Ok(config.input_shape.unwrap_or(USUAL)) };
    let file = infer::onnxruntime::inspect(path, Some(&library))?;
    Ok(file.images(config.input_shape)?)
}

#[cfg(not(feature = "onnxruntime"))]
#[expect(clippy::unnecessary_wraps, reason = "with ONNX Runtime it may fail")]
fn input_of(_: &Path, config: &Config) -> Result<[usize; 3]> {
    Ok(config.input_shape.unwrap_or(USUAL))
}
