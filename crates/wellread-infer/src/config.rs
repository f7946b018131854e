//! Everything that can be asked for, with upstream's defaults.

use crate::backend::{BACKENDS, Backend};
use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wellread_model::infer::{Dtype, architectures};

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
    /// Names of [`BACKENDS`].
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
    pub data: Option<PathBuf>,
    /// Split of the images, such as `val`; `None` for all.
    #[serde(default)]
    pub split: Option<String>,
    /// Leave out images that cannot be read, and count them, instead of failing.
    #[serde(default)]
    pub skip_unreadable: bool,
    /// Channels of the images to take; `None` for the first three, or the only one three times.
    pub channels: Option<Vec<usize>>,
    /// Threads of the loader that reads the images.
    pub loader_workers: usize,
    /// Folder of the results.
    pub output_dir: PathBuf,
    /// Ways to run PyTorch, each a list of [`TORCH_OPTIONS`] joined by `+`, or `eager`.
    pub torch: Vec<String>,
    /// Provider of ONNX Runtime; `None` for that of the device.
    pub provider: Option<String>,
    /// Library of ONNX Runtime; `None` for that of the Python.
    pub onnxruntime: Option<PathBuf>,
    /// Whether the largest difference of outputs is told, and differing ones are a failure.
    pub check: bool,
    /// Threads of every framework.
    pub threads: usize,
    /// Seed of weights, synthetic images and the order of turns.
    pub seed: u64,
    /// Python of the frameworks; `None` for [`wellread_worker::python`]'s choice.
    pub python: Option<PathBuf>,
    /// How long a framework may take for one answer.
    pub turn_limit: Duration,
    /// Folder of weights and ONNX files.
    pub model_dir: PathBuf,
    /// Command that runs [`crate::serve::main`], for backends in Rust.
    pub server: Vec<OsString>,
    /// The command as typed, for the record.
    pub command: String,
    /// The recipe that this run is a part of, whole.
    pub recipe: Option<serde_json::Value>,
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
            recipe: None,
        }
    }
}

/// Where weights are kept from run to run: `wellread/models` in the user's cache folder.
fn model_dir() -> PathBuf {
    wellread_worker::cache_folder().join("models")
}

impl Config {
    /// The frameworks of a list in which `both` is PyTorch and JAX, and `all` is every one.
    ///
    /// # Errors
    /// A name that is none of them; the message lists them.
    pub fn parse_framework(name: &str) -> Result<Vec<String>> {
        let all = || BACKENDS.iter().map(|backend| backend.name().to_owned());
        match name {
            "both" => Ok(Self::default().frameworks),
            "all" => Ok(all().collect()),
            name if all().any(|known| known == name) => Ok(vec![name.to_owned()]),
            _ => {
                let known: Vec<_> = all().collect();
                bail!(
                    "there is no framework {name:?}; there are {}, both (pytorch and jax) and all",
                    known.join(", ")
                )
            }
        }
    }

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

    /// The backends of the run, in the order asked for.
    ///
    /// # Errors
    /// A name that is none of them.
    pub fn backends(&self) -> Result<Vec<&'static dyn Backend>> {
        self.frameworks
            .iter()
            .map(|name| {
                Self::parse_framework(name)?;
                let found = BACKENDS.iter().copied().find(|backend| backend.name() == name);
                found.ok_or_else(|| anyhow::anyhow!("{name} is several frameworks; name each"))
            })
            .collect()
    }

    /// The type of numbers.
    ///
    /// # Errors
    /// A name that is none of them.
    pub fn dtype(&self) -> Result<Dtype> {
        Ok(self.dtype.parse()?)
    }

    /// Checks the choices, but no file.
    ///
    /// # Errors
    /// The first that makes no sense; the message lists what there is.
    pub fn check(&self) -> Result<()> {
        self.backends()?;
        self.dtype()?;
        for model in &self.models {
            Self::parse_model(model)?;
            if !is_onnx(model) {
                crate::models::architecture(model, self.input_shape)?;
            }
        }
        for way in &self.torch {
            Self::parse_torch(way)?;
        }
        let named = |given: &Option<String>, known: &[&str], what: &str| -> Result<()> {
            if let Some(name) = given {
                ensure!(
                    known.contains(&name.as_str()),
                    "there is no {what} {name:?}; there are {}",
                    known.join(", ")
                );
            }
            Ok(())
        };
        named(&self.device, &DEVICES, "device")?;
        named(&self.provider, &PROVIDERS, "provider")?;
        ensure!(
            !self.frameworks.is_empty() && !self.models.is_empty(),
            "name at least one framework and one model"
        );
        ensure!(!self.batch_sizes.is_empty(), "name at least one batch size");
        ensure!(!self.batch_sizes.contains(&0), "a batch has at least one image; 0 was asked for");
        ensure!(self.iterations > 0, "at least one iteration is measured; 0 were asked for");
        let processors = wellread_worker::threads();
        ensure!(
            (1..=processors).contains(&self.threads),
            "--threads {}: a framework runs with 1 to {processors} threads here, as many as there are processors",
            self.threads
        );
        Ok(())
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

    #[test]
    fn names_that_there_are_not_are_answered_by_those_there_are() {
        assert_eq!(Config::parse_framework("both").unwrap(), ["pytorch", "jax"]);
        assert_eq!(Config::parse_framework("all").unwrap().len(), BACKENDS.len());
        let text = Config::parse_framework("tensorflow").unwrap_err().to_string();
        assert!(text.contains("onnxruntime") && text.contains("candle"), "{text}");
        assert!(Config::parse_model("resnet18").unwrap_err().to_string().contains("vit_b_16"));
        assert_eq!(Config::parse_model("a/b.onnx").unwrap(), ["a/b.onnx"]);
        assert!(Config::parse_torch("compile+fast").unwrap_err().to_string().contains("channels-last"));
        Config::parse_torch("compile=max-autotune+channels-last").unwrap();
        assert_eq!(Config::parse_shape("3,64,48").unwrap(), [3, 64, 48]);
        assert!(Config::parse_shape("3,0,48").is_err() && Config::parse_shape("64,48").is_err());
        let wrong = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert!(wrong(|c| c.dtype = "int8".into()).contains("bfloat16"));
        assert!(wrong(|c| c.device = Some("npu".into())).contains("tpu"));
        assert!(wrong(|c| c.provider = Some("coreml".into())).contains("tensorrt"));
        assert!(wrong(|c| c.batch_sizes = vec![0]).contains("at least one image"));
        assert!(wrong(|c| c.iterations = 0).contains("iteration"));
        assert!(wrong(|c| c.input_shape = Some([1, 64, 64])).contains("--input-shape"));
    }
}
