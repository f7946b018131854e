//! ONNX Runtime, loaded when it is first needed (cargo feature `onnxruntime`).
//!
//! ```text
//! find_library ─▶ load (once per process) ─▶ inspect: what the model reads
//!                                         └▶ open: session on a provider; input and output bound to its device
//! ```
//!
//! Nothing of ONNX Runtime is linked. The library is found in this order: where the caller says, where
//! `ORT_DYLIB_PATH` says, in the `onnxruntime` package of a Python environment.

mod cuda;
mod library;

pub use library::find_library;

use super::session::{FLOAT32_INPUT, nothing_loaded};
use super::{Dtype, Session, SessionOptions};
use crate::{Device, Error, Result};
use half::f16;
use library::{LOADED, load_library};
use ort::ep::{self, ExecutionProvider};
use ort::memory::{AllocationDevice, AllocatorType, MemoryInfo, MemoryType};
use ort::session::{IoBinding, builder::GraphOptimizationLevel};
use ort::value::{DynTensor, DynValue, Tensor, TensorElementType, ValueType};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::PoisonError;

/// Which of ONNX Runtime's implementations runs the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Provider {
    /// The processor.
    #[default]
    Cpu,
    /// NVIDIA GPUs through cuDNN.
    Cuda,
    /// NVIDIA GPUs through TensorRT, the rest of the model through CUDA.
    TensorRt,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Cuda, Self::TensorRt];

    /// Name as in `--provider`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::TensorRt => "tensorrt",
        }
    }
}

impl FromStr for Provider {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name).ok_or_else(|| {
            Error::new(format_args!("there is no ONNX Runtime provider {name:?}"))
                .hint("there are: cpu, cuda, tensorrt")
        })
    }
}

/// The inputs and outputs of an ONNX model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFile {
    path: PathBuf,
    /// Name of the input.
    pub input: String,
    /// Its axes; `None` where any length will do.
    pub shape: Vec<Option<usize>>,
    /// Its type.
    pub dtype: Dtype,
    /// Name of the output that counts as the logits: the first, or the one that was asked for.
    pub output: String,
}

impl ModelFile {
    /// Channels, rows and columns of an image: those that the model fixes, the others from `wanted`.
    ///
    /// # Errors
    /// `wanted` contradicts the model, or is missing where the model leaves an axis open.
    pub fn images(&self, wanted: Option<[usize; 3]>) -> Result<[usize; 3]> {
        let mut images = [0; 3];
        for (axis, (image, fixed)) in images.iter_mut().zip(&self.shape[1..]).enumerate() {
            *image = match (*fixed, wanted.map(|wanted| wanted[axis])) {
                (Some(fixed), Some(wanted)) if fixed != wanted => {
                    return Err(Error::new(format_args!(
                        "{} reads images of {}, so axis {} cannot be {wanted}",
                        self.path.display(),
                        self.axes(),
                        ["C", "H", "W"][axis]
                    ))
                    .hint("leave --input-shape out, or give what the model reads"));
                }
                (Some(length), _) | (None, Some(length)) => length,
                (None, None) => {
                    return Err(Error::new(format_args!(
                        "{} reads images of any size ({})",
                        self.path.display(),
                        self.axes()
                    ))
                    .hint("say which by --input-shape C,H,W"));
                }
            };
        }
        Ok(images)
    }

    /// The axes in words, such as `batch x 3 x 224 x 224`.
    fn axes(&self) -> String {
        let axes: Vec<_> = self.shape.iter().map(|a| a.map_or("any".into(), |a| a.to_string())).collect();
        axes.join(" x ")
    }

    fn of(path: &Path, session: &ort::session::Session, wanted: Option<&str>) -> Result<Self> {
        let refused = |what: &dyn Display| {
            Error::new(format_args!("{} cannot be fed with images: {what}", path.display()))
                .hint(format_args!("the model needs one input, N x C x H x W; {FLOAT32_INPUT}"))
        };
        let [input] = session.inputs() else {
            let names: Vec<_> = session.inputs().iter().map(|i| i.name().to_owned()).collect();
            return Err(refused(&format_args!("it has {} inputs ({})", names.len(), names.join(", "))));
        };
        let ValueType::Tensor { ty, shape, .. } = input.dtype() else {
            return Err(refused(&format_args!("its input {} is no tensor", input.name())));
        };
        let dtype = match ty {
            TensorElementType::Float32 => Dtype::Float32,
            TensorElementType::Float16 => Dtype::Float16,
            other => return Err(refused(&format_args!("its input {} is of type {other}", input.name()))),
        };
        let shape: Vec<_> = shape.iter().map(|&axis| usize::try_from(axis).ok()).collect();
        if shape.len() != 4 {
            return Err(refused(&format_args!("its input {} has {} axes", input.name(), shape.len())));
        }
        let outputs = session.outputs();
        let output = match wanted {
            None => outputs.first().ok_or_else(|| refused(&"it has no output"))?,
            Some(name) => outputs.iter().find(|output| output.name() == name).ok_or_else(|| {
                let names: Vec<_> = outputs.iter().map(|output| output.name().to_owned()).collect();
                Error::new(format_args!("{} has no output {name:?}", path.display()))
                    .hint(format_args!("it has {}", names.join(", ")))
            })?,
        };
        match output.dtype() {
            ValueType::Tensor { ty: TensorElementType::Float32 | TensorElementType::Float16, .. } => (),
            other => {
                return Err(Error::new(format_args!(
                    "{} delivers {} as {other}, and outputs are taken as floats",
                    path.display(),
                    output.name()
                ))
                .hint("export the model without its last step (such as ArgMax), so that it delivers float32 or float16"));
            }
        }
        let output = output.name().to_owned();
        Ok(Self { path: path.to_owned(), input: input.name().to_owned(), shape, dtype, output })
    }
}

/// Reads what an ONNX model takes, with the library at `library` or where [`find_library`] finds it. `output` names the output that is
/// wanted, where that is not the first.
///
/// # Errors
/// A library that cannot be loaded, or a file that is no ONNX model. So is a model that images cannot be fed to or that lacks the output.
pub fn inspect(file: &Path, library: Option<&Path>, output: Option<&str>) -> Result<ModelFile> {
    load_library(library)?;
    let session = build(file, Provider::Cpu, 0, &SessionOptions::default(), GraphOptimizationLevel::Disable)?;
    ModelFile::of(file, &session, output)
}

/// Opens an ONNX model for images of `[C, H, W]`.
///
/// `options.dtype` must be the type of the model's input; on TensorRT a `float32` model may also run in
/// `float16`.
///
/// # Errors
/// As [`inspect`]. A provider that the library lacks or that finds no device. A type that does not fit.
pub fn open(
    file: &Path,
    library: Option<&Path>,
    provider: Provider,
    input: [usize; 3],
    options: &SessionOptions,
) -> Result<Box<dyn Session>> {
    load_library(library)?;
    let device = match (provider, options.device) {
        (Provider::Cpu, _) => 0,
        (_, Device::Cuda(index)) => index as i32,
        (_, Device::Cpu) => {
            return Err(Error::new(format_args!("the provider {} does not run on the CPU", provider.name()))
                .hint("choose --device-prefer cuda, or --provider cpu"));
        }
    };
    if provider == Provider::Cpu {
        options.dtype.check("ONNX Runtime on the CPU", &[Dtype::Float32])?;
    } else if let Some(loaded) = &*LOADED.lock().unwrap_or_else(PoisonError::into_inner) {
        cuda::preload(&loaded.path);
    }
    let session = build(file, provider, device, options, GraphOptimizationLevel::Level3)?;
    let model = ModelFile::of(file, &session, options.output.as_deref())?;
    let mut supported = vec![model.dtype];
    if provider == Provider::TensorRt {
        supported.push(Dtype::Float16);
    }
    options.dtype.check_input(&format!("the model {}", file.display()), &supported)?;
    model.images(Some(input))?;
    let binding = session.create_binding().map_err(|e| failure(file, &e))?;
    let (provider, threads) = (provider.name(), options.threads);
    Ok(Box::new(OrtSession {
        session,
        binding,
        model,
        input,
        provider,
        device,
        threads,
        loaded: false,
        output: None,
    }))
}

fn failure(file: &Path, error: &dyn Display) -> Error {
    Error::new(format_args!("ONNX Runtime cannot run {}: {error}", file.display()))
}

fn build(
    file: &Path,
    provider: Provider,
    device: i32,
    options: &SessionOptions,
    level: GraphOptimizationLevel,
) -> Result<ort::session::Session> {
    if !file.is_file() {
        return Err(failure(file, &"there is no such file"));
    }
    // float32 means float32, as in the other frameworks.
    let cuda = ep::CUDA::default().with_device_id(device).with_tf32(false);
    let tensorrt = ep::TensorRT::default().with_device_id(device).with_fp16(options.dtype == Dtype::Float16);
    let available = match provider {
        Provider::Cpu => Ok(true),
        Provider::Cuda => cuda.is_available(),
        Provider::TensorRt => tensorrt.is_available(),
    };
    if !available.map_err(|e| failure(file, &e))? {
        return Err(Error::new(format_args!(
            "this ONNX Runtime was built without the provider {}",
            provider.name()
        ))
        .hint("pip install onnxruntime-gpu in place of onnxruntime, or choose --provider cpu"));
    }
    // With `error_on_failure`, a provider that finds no device is an error, not a silent change to the CPU.
    let providers = match provider {
        Provider::Cpu => Vec::new(),
        Provider::Cuda => vec![cuda.build().error_on_failure()],
        Provider::TensorRt => {
            vec![tensorrt.build().error_on_failure(), cuda.build().error_on_failure()]
        }
    };
    let configured = || -> ort::Result<ort::session::builder::SessionBuilder> {
        Ok(ort::session::Session::builder()?
            .with_intra_threads(options.threads)?
            .with_inter_threads(1)?
            .with_optimization_level(level)?
            .with_execution_providers(providers)?)
    };
    let mut builder = configured().map_err(|e| match cuda::lacking(&e.to_string()) {
        Some(hint) => failure(file, &e).hint(hint),
        None => failure(file, &e),
    })?;
    builder.commit_from_file(file).map_err(|e| failure(file, &e))
}

/// A model that ONNX Runtime runs.
struct OrtSession {
    session: ort::session::Session,
    binding: IoBinding,
    model: ModelFile,
    input: [usize; 3],
    provider: &'static str,
    device: i32,
    threads: usize,
    /// Whether images were bound.
    loaded: bool,
    output: Option<DynValue>,
}

impl OrtSession {
    fn failed(&self, error: &dyn Display) -> Error {
        failure(&self.model.path, error)
    }

    fn on_gpu(&self) -> bool {
        self.provider != Provider::Cpu.name()
    }

    /// Binds the images, on the device, and where the output goes.
    fn bind(&mut self, images: &[f32], batch: usize) -> ort::Result<()> {
        let [c, h, w] = self.input;
        let shape = [batch, c, h, w];
        let images: DynTensor = match self.model.dtype {
            Dtype::Float16 => {
                let halves: Vec<f16> = images.iter().map(|&v| f16::from_f32(v)).collect();
                Tensor::from_array((shape, halves))?.upcast()
            }
            _ => Tensor::from_array((shape, images.to_vec()))?.upcast(),
        };
        let place = if self.on_gpu() { AllocationDevice::CUDA } else { AllocationDevice::CPU };
        let images = if self.on_gpu() { images.to(place, self.device)? } else { images };
        let kind = if self.on_gpu() { MemoryType::Default } else { MemoryType::CPUOutput };
        let memory = MemoryInfo::new(place, self.device, AllocatorType::Device, kind)?;
        self.binding.clear();
        self.binding.bind_input(self.model.input.as_str(), &images)?;
        self.binding.bind_output_to_device(self.model.output.as_str(), &memory)
    }

    /// The output as `float32` on the host.
    fn floats(&self, output: &DynValue) -> ort::Result<Vec<f32>> {
        let output = output.view();
        let output = output.downcast::<ort::value::DynTensorValueType>()?;
        let on_host = if self.on_gpu() { Some(output.to(AllocationDevice::CPU, 0)?) } else { None };
        let tensor = on_host.as_ref().map_or(&*output, |tensor| tensor);
        if *tensor.data_type() == TensorElementType::Float16 {
            let (_, values) = tensor.try_extract_tensor::<f16>()?;
            return Ok(values.iter().map(|v| v.to_f32()).collect());
        }
        let (_, values) = tensor.try_extract_tensor::<f32>()?;
        Ok(values.to_vec())
    }
}

impl Session for OrtSession {
    fn backend(&self) -> String {
        let place = match (self.on_gpu(), self.threads) {
            (true, _) => format!("{}:{}", self.provider, self.device),
            (false, 0) => "cpu, all threads".to_owned(),
            (false, threads) => format!("cpu, {}", crate::threads::in_words(threads)),
        };
        let loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let version = loaded.as_ref().map_or("", |library| &library.version);
        format!("onnxruntime {version} ({place})")
    }

    fn load(&mut self, images: &[f32], batch: usize) -> Result<()> {
        super::session::check_images(images, batch, self.input)?;
        if let Some(fixed) = self.model.shape[0].filter(|&fixed| fixed != batch) {
            return Err(self
                .failed(&format_args!("it takes batches of {fixed}, not {batch}"))
                .hint(format_args!("give --batch-sizes {fixed}, or a model with a dynamic batch axis")));
        }
        (self.output, self.loaded) = (None, false);
        self.bind(images, batch).map_err(|e| self.failed(&e))?;
        self.loaded = true;
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        if !self.loaded {
            return Err(nothing_loaded());
        }
        // Returns when the device is done, unless that were switched off in the run's options.
        let output = match self.session.run_binding(&self.binding) {
            Ok(mut outputs) => Ok(outputs.remove(self.model.output.as_str())),
            Err(error) => Err(failure(&self.model.path, &error)),
        };
        self.output = output?;
        Ok(())
    }

    fn logits(&self) -> Result<Vec<f32>> {
        let output = self.output.as_ref().ok_or_else(nothing_loaded)?;
        self.floats(output).map_err(|e| self.failed(&e))
    }

    fn output_shape(&self) -> Result<Vec<usize>> {
        match self.output.as_ref().ok_or_else(nothing_loaded)?.dtype() {
            ValueType::Tensor { shape, .. } => {
                Ok(shape.iter().map(|&axis| usize::try_from(axis).unwrap_or(0)).collect())
            }
            other => Err(self.failed(&format_args!("it gave {other}, which is no tensor"))),
        }
    }

    fn forget(&mut self) {
        self.binding.clear();
        (self.output, self.loaded) = (None, false);
    }
}
