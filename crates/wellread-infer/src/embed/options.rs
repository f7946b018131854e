//! The choices: [`EmbedOptions`].

use super::features::Pool;
use super::table::FeatureLayout;
use crate::config::{Config, is_onnx};
use anyhow::{Result, ensure};
use serde_json::Value;
use std::path::PathBuf;
use std::str::FromStr;
use wellread_loader::Transform;
use wellread_model::infer::architectures;

/// A model, by what it is called on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelName {
    /// An ONNX file, run by ONNX Runtime.
    Onnx(PathBuf),
    /// An architecture that this program runs itself.
    BuiltIn(String),
    /// A user's own in Python: `python:package.module:Class`.
    Python(String),
}

impl FromStr for ModelName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known: Vec<_> = architectures().iter().map(|a| a.name).collect();
        if text.starts_with("python:") {
            let parts: Vec<&str> = text.split(':').collect();
            if parts.len() != 3 || parts.iter().any(|part| part.is_empty()) {
                return Err(format!("{text:?} names no class; write python:package.module:Class"));
            }
            Ok(Self::Python(text.to_owned()))
        } else if is_onnx(text) {
            Ok(Self::Onnx(text.into()))
        } else if known.contains(&text) {
            Ok(Self::BuiltIn(text.to_owned()))
        } else {
            let known = known.join(", ");
            Err(format!(
                "there is no model {text:?}; give FILE.onnx, python:package.module:Class, or one of {known}"
            ))
        }
    }
}

impl std::fmt::Display for ModelName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Onnx(path) => write!(f, "{}", path.display()),
            Self::BuiltIn(name) | Self::Python(name) => f.write_str(name),
        }
    }
}

/// The choices.
#[derive(Clone, Debug)]
pub struct EmbedOptions {
    /// The model.
    pub model: ModelName,
    /// Safetensors file with the weights of an architecture of this program; `None` draws them from the seed.
    pub weights: Option<PathBuf>,
    /// Name of the output of an ONNX file; `None` for the first.
    pub output: Option<String>,
    /// The treatment of feature maps.
    pub pool: Pool,
    /// From stored images to what the model takes.
    pub transform: Transform,
    /// Images of a batch.
    pub batch_size: usize,
    /// Threads that read images.
    pub workers: usize,
    /// Leave images out that cannot be read or whose features are no numbers, and list them, instead of failing.
    pub skip: bool,
    /// Keep features that are NaN or infinite.
    pub allow_nan: bool,
    /// Columns of the set to keep; `None` for all.
    pub columns: Option<Vec<String>>,
    /// How features lie in the table.
    pub layout: FeatureLayout,
    /// The table to write: a Parquet file.
    pub out: PathBuf,
    /// Replace a table that is there.
    pub overwrite: bool,
    /// Go on with what an interrupted run left.
    pub resume: bool,
    /// Images of a part, about: the most that an interrupted run loses.
    pub part_rows: usize,
    /// The key of the set, and the way to open it: a run goes on only where that is the same.
    pub source: Value,
    /// How models are run: device, provider, threads, Python, folder of weights.
    pub frameworks: Config,
}

impl EmbedOptions {
    /// Checks the choices, but no file.
    ///
    /// # Errors
    /// The first that makes no sense.
    pub fn check(&self) -> Result<()> {
        let is_onnx = matches!(self.model, ModelName::Onnx(_));
        let is_built_in = matches!(self.model, ModelName::BuiltIn(_));
        ensure!(
            self.output.is_none() || is_onnx,
            "--model-output names an output of an ONNX file, and {} is none",
            self.model
        );
        ensure!(
            self.frameworks.provider.is_none() || is_onnx,
            "--provider is one of ONNX Runtime, which runs ONNX files; {} is none",
            self.model
        );
        ensure!(
            self.weights.is_none() || is_built_in,
            "--weights are of a model of this program ({}); {} brings its own",
            architectures().iter().map(|a| a.name).collect::<Vec<_>>().join(", "),
            self.model
        );
        ensure!(self.batch_size > 0, "a batch has at least one image");
        ensure!(self.part_rows > 0, "a part has at least one image");
        let frameworks = Config { models: Config::default().models, ..self.frameworks.clone() };
        frameworks.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_told_by_their_names() {
        let parse = str::parse::<ModelName>;
        assert_eq!(parse("a/b.onnx"), Ok(ModelName::Onnx("a/b.onnx".into())));
        assert_eq!(parse("resnet50"), Ok(ModelName::BuiltIn("resnet50".into())));
        assert_eq!(parse("python:a.b:C"), Ok(ModelName::Python("python:a.b:C".into())));
        assert!(parse("python:a").unwrap_err().contains("python:package.module:Class"));
        assert!(parse("resnet18").unwrap_err().contains("vit_b_16"));
        assert_eq!(parse("python:a.b:C").unwrap().to_string(), "python:a.b:C");
    }
}
