//! Everything that can be asked for, with upstream's defaults.

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wellread_measure::environment::Node;
use wellread_model::infer::{Dtype, architectures};
use wellread_store::sites::SiteOptions;

/// Devices that can be asked for by name.
pub const DEVICES: [&str; 4] = ["cuda", "mps", "tpu", "cpu"];
/// Providers of ONNX Runtime.
pub const PROVIDERS: [&str; 3] = ["cpu", "cuda", "tensorrt"];
/// Ways to run PyTorch, besides the modes of `compile=`; see `python/wellread/_bench/inference/pytorch.py`.
pub const TORCH_OPTIONS: [&str; 6] =
    ["compile", "channels-last", "autocast", "cuda-graphs", "tensorrt", "tf32"];

/// A benchmark: every model with every framework and every batch size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    /// Names of [`BACKENDS`](crate::backend::BACKENDS).
    pub frameworks: Vec<String>,
    /// Names of architectures, or paths of ONNX files.
    pub models: Vec<String>,
    /// Images per pass.
    pub batch_sizes: Vec<usize>,
    /// Passes that are measured.
    pub iterations: usize,
    /// Fewest passes before; more follow until they are steady.
    pub warmup: usize,
    /// Where to run; `None` for each framework's best.
    pub device: Option<String>,
    /// `float32`, `float16` or `bfloat16`.
    pub dtype: String,
    /// Channels, rows and columns; `None` for the model's own.
    pub input_shape: Option<[usize; 3]>,
    /// A set of images in any format; `None` for synthetic ones.
    #[serde(serialize_with = "wellread_measure::path_text::serialize_option")]
    pub data: Option<PathBuf>,
    /// Split of the images, such as `val`; `None` for all.
    #[serde(default)]
    pub split: Option<String>,
    /// How the files of the set make images.
    #[serde(default, skip_serializing_if = "SiteOptions::is_default")]
    pub sites: SiteOptions,
    /// Leave out images that cannot be read, and count them, instead of failing.
    #[serde(default)]
    pub skip_unreadable: bool,
    /// Channels of the images to take; `None` for the first three, or the only one three times.
    pub channels: Option<Vec<usize>>,
    /// Threads of the loader that reads the images.
    pub loader_workers: usize,
    /// Folder of the results.
    #[serde(serialize_with = "wellread_measure::path_text::serialize")]
    pub output_dir: PathBuf,
    /// Ways to run PyTorch, each a list of [`TORCH_OPTIONS`] joined by `+`, or `eager`.
    pub torch: Vec<String>,
    /// Provider of ONNX Runtime; `None` for that of the device.
    pub provider: Option<String>,
    /// Library of ONNX Runtime; `None` for that of the Python.
    #[serde(serialize_with = "wellread_measure::path_text::serialize_option")]
    pub onnxruntime: Option<PathBuf>,
    /// Whether the largest difference of outputs is told, and differing ones are a failure.
    pub check: bool,
    /// Threads of every framework.
    pub threads: usize,
    /// Seed of weights, synthetic images and the order of turns.
    pub seed: u64,
    /// Python of the frameworks; `None` for [`wellread_worker::python`]'s choice.
    #[serde(serialize_with = "wellread_measure::path_text::serialize_option")]
    pub python: Option<PathBuf>,
    /// How long a framework may take for one answer.
    pub turn_limit: Duration,
    /// Folder of weights and ONNX files.
    #[serde(serialize_with = "wellread_measure::path_text::serialize")]
    pub model_dir: PathBuf,
    /// Command that runs [`crate::serve::main`], for backends in Rust.
    pub server: Vec<OsString>,
    /// The command as typed, for the record.
    pub command: String,
    /// The folder that it was run in: relative paths are from there.
    #[serde(serialize_with = "wellread_measure::path_text::serialize_option")]
    pub working_folder: Option<PathBuf>,
    /// The recipe that this run is a part of, whole.
    pub recipe: Option<serde_json::Value>,
    /// The node of a cluster that it runs on, where one was asked for: recorded in every row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Node>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            frameworks: vec!["pytorch".into(), "jax".into()],
            models: architectures().iter().map(|a| a.name.to_owned()).collect(),
            batch_sizes: vec![1, 8, 32, 128],
            iterations: 50,
            warmup: 10,
            device: None,
            dtype: "float32".into(),
            input_shape: None,
            data: None,
            split: None,
            sites: SiteOptions::default(),
            skip_unreadable: false,
            channels: None,
            loader_workers: 2,
            output_dir: "results/raw".into(),
            torch: vec!["eager".into()],
            provider: None,
            onnxruntime: None,
            check: false,
            threads: wellread_worker::threads(),
            seed: 0,
            python: None,
            turn_limit: Duration::from_mins(5),
            model_dir: model_dir(),
            server: Vec::new(),
            command: String::new(),
            working_folder: None,
            recipe: None,
            node: None,
        }
    }
}

/// Where weights are kept from run to run: `wellread/models` in the user's cache folder.
fn model_dir() -> PathBuf {
    wellread_worker::cache_folder().join("models")
}

impl Config {
    /// The models of a name in which `both` is every architecture.
    ///
    /// # Errors
    /// A name that is none of them, and no ONNX file; the message lists them.
    pub fn parse_model(name: &str) -> Result<Vec<String>> {
        let known: Vec<_> = architectures().iter().map(|a| a.name.to_owned()).collect();
        if name == "both" {
            return Ok(known);
        }
        if known.iter().any(|k| k == name) || is_onnx(name) {
            return Ok(vec![name.to_owned()]);
        }
        bail!("there is no model {name:?}; there are {}, both, and FILE.onnx", known.join(", "))
    }

    /// A way to run PyTorch, checked.
    ///
    /// # Errors
    /// An option that there is not; the message lists them.
    pub fn parse_torch(text: &str) -> Result<String> {
        for option in text.split('+').filter(|option| *option != "eager") {
            let known = TORCH_OPTIONS.contains(&option) || option.starts_with("compile=");
            ensure!(
                known,
                "there is no way {option:?} to run PyTorch; there are eager, {}, joined by +",
                TORCH_OPTIONS.join(", ")
            );
        }
        Ok(text.to_owned())
    }

    /// Channels, rows and columns.
    ///
    /// # Errors
    /// Text of another form.
    pub fn parse_shape(text: &str) -> Result<[usize; 3]> {
        let numbers: Option<Vec<usize>> =
            text.split(',').map(|s| s.trim().parse().ok().filter(|&n| n > 0)).collect();
        let shape = numbers.and_then(|n| n.try_into().ok());
        shape.ok_or_else(|| anyhow::anyhow!("{text:?} is no input shape; write C,H,W, such as 3,224,224"))
    }

    /// The type of numbers.
    ///
    /// # Errors
    /// A name that is none of them.
    pub fn dtype(&self) -> Result<Dtype> {
        Ok(self.dtype.parse()?)
    }
}

/// Whether a model is named by its ONNX file.
pub fn is_onnx(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "onnx")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_upstream() {
        let config = Config::default();
        assert_eq!((config.iterations, config.warmup), (50, 10));
        assert_eq!(config.batch_sizes, [1, 8, 32, 128]);
        assert_eq!(config.models, ["resnet50", "vit_b_16"]);
        assert_eq!(config.output_dir, Path::new("results/raw"));
        config.check().unwrap();
    }
}
