//! The requests to a worker and its answers, the same in Python (`python/wellread/_bench/inference`) and in Rust
//! ([`crate::serve`]). One JSON line each; images and logits lie in files in shared memory.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A request: `do` is `infer` for the Python worker, which has other things to do, too.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Request {
    /// Import, choose a device, load a model: answered by [`Opened`].
    Open(Open),
    /// Take the images of a batch and compile for it: [`Prepared`].
    Batch(Batch),
    /// So many passes: [`Passes`].
    Run {
        /// How many.
        passes: usize,
    },
    /// Write the last outputs: [`Outputs`].
    Logits,
    /// Fetch images and run a pass: [`Step`].
    Step,
    /// Give back to the kernel what earlier batches freed.
    Rest,
    /// Say what images an ONNX file takes: [`Inspected`].
    Inspect(Inspect),
    /// Say what an ONNX file leaves open: [`Axes`].
    Axes(Inspect),
}

/// An ONNX file, and whom to ask about it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inspect {
    /// The file.
    pub file: PathBuf,
    /// Channels, rows, columns where the file leaves them open.
    pub wanted: Option<[usize; 3]>,
    /// The output that is wanted; `None` for the first.
    pub output: Option<String>,
    /// Library of ONNX Runtime; `None` for that of the Python.
    pub library: Option<PathBuf>,
    /// The Python.
    pub python: PathBuf,
}

/// The images that an ONNX file takes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Inspected {
    /// Channels, rows, columns; `None` where there is no ONNX Runtime to be asked.
    pub input: Option<[usize; 3]>,
}

/// The axes that an ONNX file takes; `None` where any length will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axes {
    /// Images of a batch.
    pub batch: Option<usize>,
    /// Channels, rows, columns.
    pub image: [Option<usize>; 3],
}

/// The request to open a model.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Open {
    /// Name of the backend.
    pub framework: String,
    /// Threads to use.
    pub threads: usize,
    /// Device asked for by name.
    pub device: Option<String>,
    /// Type to compute in.
    pub dtype: String,
    /// Name of the architecture, or path of an ONNX file.
    pub model: String,
    /// Channels, rows, columns.
    pub input: [usize; 3],
    /// Safetensors file of an architecture.
    pub weights: Option<PathBuf>,
    /// ONNX file of an architecture, or the user's.
    pub onnx: Option<PathBuf>,
    /// Its output that is wanted; `None` for the first.
    pub output: Option<String>,
    /// Options of the framework.
    pub variant: Vec<String>,
    /// Provider of ONNX Runtime.
    pub provider: Option<String>,
    /// Library of ONNX Runtime; `None` for that of the Python.
    pub library: Option<PathBuf>,
    /// The Python that has it.
    pub python: Option<PathBuf>,
}

/// The opened model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// Library, version, device and threads, in words.
    pub backend: String,
    /// Identifier of the device, such as `cuda:0`.
    pub device: String,
    /// `cpu`, `cuda`, `mps` or `tpu`.
    pub device_type: String,
    /// Name of the device, where it is not the processor.
    pub device_name: Option<String>,
    /// Versions of libraries.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// Memory layout of images in the model, where it is known.
    pub layout: Option<String>,
    /// Notes for the reader of the figures.
    #[serde(default)]
    pub notes: Vec<String>,
    /// File of the model's code, where it is a user's.
    #[serde(default)]
    pub source: Option<PathBuf>,
    /// Time to import the framework.
    pub import_ms: f64,
    /// Time to choose the device and load the model.
    pub load_ms: f64,
    /// Cost of reading the clock, subtracted from every time that is answered; results of before do not have it.
    #[serde(default)]
    pub clock_overhead_ns: Option<f64>,
}

/// Where a batch lies.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Batch {
    /// File of N x C x H x W float32.
    pub images: PathBuf,
    /// File with room for the outputs.
    pub logits: PathBuf,
    /// N, C, H, W.
    pub shape: [usize; 4],
}

/// A batch that can be run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Prepared {
    /// Time to compile; `None` where nothing is compiled.
    pub compilation_time_ms: Option<f64>,
}

/// Passes that were run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Passes {
    /// Nanoseconds of each, the device idle before and after.
    pub samples_ns: Vec<u64>,
    /// From the first's beginning to the last's end.
    pub wall_ns: u64,
    /// Most bytes that the framework's allocator held on the device since the batch came.
    pub device_peak_bytes: Option<u64>,
}

/// Outputs that lie in shared memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outputs {
    /// Their shape.
    pub shape: Vec<usize>,
}

/// A fed pass.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Step {
    /// Images from shared memory to the device.
    pub fetch_ns: u64,
    /// The pass.
    pub forward_ns: u64,
}
