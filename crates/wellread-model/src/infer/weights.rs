//! Weights as safetensors: drawn from a seed, written once, read and checked.
//!
//! The file has torchvision's names and shapes, so that `load_state_dict(strict=True)` takes it as it is. It has
//! the same bytes on every platform: the generator is [`Uniform`], and the format's writer fixes the order of
//! tensors. Every file is checked against the network before anything is computed from it.

use super::Architecture;
use super::network::{BATCH_NORM_EPSILON, Conv, Init, Parameter};
use crate::init::Uniform;
use crate::{Error, Result};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wellread_trace::process;

/// Path of the weights of `arch` drawn from `seed`, `FOLDER/NAME-seedN.safetensors`; the file is made when it is
/// not there yet.
///
/// It is written under another name and renamed, so that nothing half-written is ever found and several
/// processes may do it at once. The weights do not depend on the size of the images.
///
/// # Errors
/// A folder or file that cannot be made.
pub fn weights_file(arch: &Architecture, seed: u64, folder: &Path) -> Result<PathBuf> {
    let path = folder.join(format!("{}-seed{seed}.safetensors", arch.name));
    if path.exists() {
        return Ok(path);
    }
    let parameters = arch.network()?.parameters();
    let bytes: Vec<Vec<u8>> = parameters.iter().map(|p| seeded(p, seed)).collect();
    let mut views = Vec::with_capacity(parameters.len());
    for (parameter, bytes) in parameters.iter().zip(&bytes) {
        let view = TensorView::new(dtype(parameter), parameter.shape.clone(), bytes)
            .map_err(|e| Error::new(format_args!("cannot lay out {}: {e}", parameter.name)))?;
        views.push((parameter.name.as_str(), view));
    }
    let about = HashMap::from([("wellread".to_owned(), format!("{}, seed {seed}", arch.name))]);
    let file = safetensors::serialize(views, Some(about))
        .map_err(|e| Error::new(format_args!("cannot lay out the weights of {}: {e}", arch.name)))?;
    write_beside(&path, |out| out.write_all(&file))?;
    Ok(path)
}

/// Writes `path` under another name in the same folder, which is made if need be, and renames it.
///
/// # Errors
/// As the file system says, with the path.
pub(super) fn write_beside(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<()> {
    let failed = |e: std::io::Error| {
        Error::new(format_args!("cannot write {}: {e}", path.display()))
            .hint("choose a folder that can be written to and has room")
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed)?;
    remove_leftovers(path, folder);
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.part", process::process_mark(std::process::id())));
    let temporary = PathBuf::from(temporary);
    unfinished().push(temporary.clone());
    let written = File::create(&temporary).and_then(|file| {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        write(&mut out)?;
        out.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&temporary, path)
    });
    unfinished().retain(|path| *path != temporary);
    if written.is_err() {
        // Best effort: the error that counts is the first.
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(failed)
}

/// Files that this process is writing.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the files that this process is writing: for the moment before it ends on a signal.
pub fn remove_unfinished() {
    for path in unfinished().drain(..) {
        let _ = fs::remove_file(path);
    }
}

/// Removes what processes left that were killed while they wrote `path`. A file that another container may be writing
/// stays.
fn remove_leftovers(path: &Path, folder: &Path) {
    let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned() + ".") else { return };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let other = entry.file_name();
        let mark = other.to_str().and_then(|other| other.strip_prefix(&name)?.strip_suffix(".part"));
        if mark.is_some_and(|mark| process::state_of_mark(mark) == process::ProcessState::Ended) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn dtype(parameter: &Parameter) -> Dtype {
    match parameter.init {
        Init::Uniform(..) => Dtype::F32,
        Init::Count => Dtype::I64,
    }
}

/// Little-endian values of one parameter. Its stream follows from its name, so that another layer more or less
/// leaves the others' weights as they were.
fn seeded(parameter: &Parameter, seed: u64) -> Vec<u8> {
    let count: usize = parameter.shape.iter().product();
    let (low, high) = match parameter.init {
        Init::Uniform(low, high) => (low, high),
        Init::Count => return 0i64.to_le_bytes().to_vec(),
    };
    let mut uniform = Uniform::new(seed, name_hash(&parameter.name));
    let (middle, bound) = (f32::midpoint(low, high), (high - low) / 2.0);
    (0..count).flat_map(|_| (middle + uniform.next_within(bound)).to_le_bytes()).collect()
}

/// FNV-1a, 64 bits.
fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// All parameters of a network, read from a file and checked.
pub struct Weights {
    path: PathBuf,
    values: BTreeMap<String, Vec<f32>>,
}

impl Weights {
    /// Reads the weights of `arch`.
    ///
    /// # Errors
    /// A file that cannot be read or is no safetensors file; a parameter that is missing, surplus, of another
    /// shape or type, or not finite. The message names file and parameter.
    pub fn read(arch: &Architecture, path: &Path) -> Result<Self> {
        /// Room for names and offsets; torchvision's models need a few tens of kilobytes.
        const HEADER: u64 = 16 << 20;
        let parameters = arch.network()?.parameters();
        let failed = |what: &dyn Display| {
            Error::new(format_args!("cannot read {} as weights of {}: {what}", path.display(), arch.name))
                .hint("give a safetensors file with torchvision's names and float32 values, or remove it to have it made from the seed")
        };
        let size: usize = parameters.iter().map(|p| p.shape.iter().product::<usize>() * 8).sum();
        let length = fs::metadata(path).map_err(|e| failed(&e))?.len();
        if length > size as u64 + HEADER {
            return Err(failed(&format_args!("it has {length} bytes, far more than they need")));
        }
        let bytes = fs::read(path).map_err(|e| failed(&e))?;
        let file = SafeTensors::deserialize(&bytes).map_err(|e| failed(&e))?;
        let mut values = BTreeMap::new();
        for parameter in parameters.iter().filter(|p| p.init != Init::Count) {
            let name = &parameter.name;
            let tensor =
                file.tensor(name).map_err(|_| failed(&format_args!("the parameter {name} is missing")))?;
            if tensor.shape() != parameter.shape || tensor.dtype() != Dtype::F32 {
                return Err(failed(&format_args!(
                    "{name} is {:?} of shape {:?}, not F32 of shape {:?}",
                    tensor.dtype(),
                    tensor.shape(),
                    parameter.shape
                )));
            }
            let (numbers, _) = tensor.data().as_chunks::<4>();
            let numbers: Vec<f32> = numbers.iter().map(|&b| f32::from_le_bytes(b)).collect();
            if let Some(at) = numbers.iter().position(|v| !v.is_finite()) {
                return Err(failed(&format_args!("{name} has {} at position {at}", numbers[at])));
            }
            values.insert(name.clone(), numbers);
        }
        if let Some(name) = file.names().into_iter().find(|n| parameters.iter().all(|p| p.name != *n)) {
            return Err(failed(&format_args!("{} has no parameter {name}", arch.name)));
        }
        Ok(Self { path: path.to_owned(), values })
    }

    /// The values of `name` in C order.
    ///
    /// # Errors
    /// A parameter that the network these weights were read for does not have.
    pub fn get(&self, name: &str) -> Result<&[f32]> {
        self.values
            .get(name)
            .map(Vec::as_slice)
            .ok_or_else(|| Error::new(format_args!("{} has no parameter {name}", self.path.display())))
    }

    /// Weights and bias of a convolution with its batch norm folded in, computed in double precision.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn folded(&self, conv: &Conv) -> Result<(Vec<f32>, Vec<f32>)> {
        let mut values = self.get(&format!("{}.weight", conv.name))?.to_vec();
        let mut bias = vec![0.0; conv.out];
        if conv.bias {
            bias.copy_from_slice(self.get(&format!("{}.bias", conv.name))?);
        }
        if let Some(norm) = &conv.norm {
            let get = |what: &str| self.get(&format!("{norm}.{what}"));
            let (gain, shift) = (get("weight")?, get("bias")?);
            let (mean, variance) = (get("running_mean")?, get("running_var")?);
            let per_channel = values.len() / conv.out;
            for (c, values) in values.chunks_exact_mut(per_channel).enumerate() {
                let deviation = (f64::from(variance[c]) + f64::from(BATCH_NORM_EPSILON)).sqrt();
                let scale = f64::from(gain[c]) / deviation;
                for v in values {
                    *v = (f64::from(*v) * scale) as f32;
                }
                bias[c] = (f64::from(shift[c]) + (f64::from(bias[c]) - f64::from(mean[c])) * scale) as f32;
            }
        }
        Ok((values, bias))
    }
}
