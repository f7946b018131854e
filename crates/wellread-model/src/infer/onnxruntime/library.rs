//! The library of ONNX Runtime: found, checked and loaded, once per process.
//!
//! It is checked before `ort` makes use of it, because `ort` hangs or panics where a library is missing, too old or
//! something else.

use crate::{Error, Result};
use std::ffi::CStr;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Where the library is: `ORT_DYLIB_PATH`, or the `onnxruntime` package of `python` (of `python3` if there is
/// none given).
///
/// # Errors
/// Neither; the message says where it was looked for.
pub fn find_library(python: Option<&Path>) -> Result<PathBuf> {
    /// Finds the package without importing it. As `wellread_store::python::command` does, which this crate does not know: a file of
    /// the current folder is not what is imported.
    const ASK: &str = "import sys; sys.path[:] = [p for p in sys.path if p]; \
                       import importlib.util as u; s = u.find_spec('onnxruntime'); \
                       print(next(iter(s.submodule_search_locations)) if s else '')";
    if let Some(path) = std::env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    let python = python.unwrap_or(Path::new("python3"));
    let missing = |what: &dyn Display| {
        Error::new(format_args!("ONNX Runtime was not found: {what}")).hint(
            "pip install onnxruntime (or onnxruntime-gpu) for that Python, or set ORT_DYLIB_PATH to libonnxruntime",
        )
    };
    let asked = Command::new(python).env("PYTHONSAFEPATH", "1").args(["-c", ASK]).output();
    let answer = asked.map_err(|e| missing(&format_args!("{} does not start: {e}", python.display())))?;
    let package = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    if !answer.status.success() || package.is_empty() {
        return Err(missing(&format_args!("{} has no package onnxruntime", python.display())));
    }
    let folder = Path::new(&package).join("capi");
    let entries =
        std::fs::read_dir(&folder).map_err(|e| missing(&format_args!("{}: {e}", folder.display())))?;
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name == "onnxruntime.dll" || name.starts_with("libonnxruntime.")
    };
    entries
        .flatten()
        .map(|entry| entry.path())
        .find(is_library)
        .ok_or_else(|| missing(&format_args!("{} has no libonnxruntime", folder.display())))
}

/// A library that was loaded.
pub(super) struct Library {
    /// Where it is, links resolved.
    pub(super) path: PathBuf,
    pub(super) version: String,
}

/// The library of this process: `ort` can load one only.
pub(super) static LOADED: Mutex<Option<Library>> = Mutex::new(None);

/// Loads the library unless that was done.
pub(super) fn load_library(library: Option<&Path>) -> Result<()> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(Library { path: loaded, .. }) = &*loaded {
        return match library {
            Some(other) if other.canonicalize().ok().as_ref() != Some(loaded) => {
                Err(Error::new(format_args!(
                    "{} cannot be loaded: this process has ONNX Runtime from {} already",
                    other.display(),
                    loaded.display()
                ))
                .hint("use one library per run"))
            }
            _ => Ok(()),
        };
    }
    let path = library.map_or_else(|| find_library(None), |path| Ok(path.to_owned()))?;
    let failed = |what: &dyn Display| {
        Error::new(format_args!("{} cannot be used as ONNX Runtime: {what}", path.display())).hint(
            format_args!(
                "ONNX Runtime 1.{} or newer is needed: pip install -U onnxruntime",
                ort::MINOR_VERSION
            ),
        )
    };
    if !path.is_file() {
        return Err(failed(&"there is no such file"));
    }
    // An absolute path, or `ort` would look beside the executable first.
    let path = path.canonicalize().map_err(|e| failed(&e))?;
    let version = version_of(&path).map_err(|what| failed(&what))?;
    let environment = ort::init_from(&path).map_err(|e| failed(&e))?;
    environment.with_name("wellread").with_telemetry(false).commit();
    *loaded = Some(Library { path, version });
    Ok(())
}

/// Version of the library at `path`, once it is sure that `ort` can use it. Where that fails, `ort` waits for itself
/// forever, since its error type asks the library that is just being loaded.
fn version_of(path: &Path) -> Result<String, String> {
    type GetApiBase = unsafe extern "C" fn() -> *const ort::sys::OrtApiBase;
    // SAFETY: loading runs the library's initialisers. It is the file that the user or their Python environment
    // names as ONNX Runtime, which is about to be run anyway. It stays loaded, so nothing of it dangles.
    let library = unsafe { libloading::Library::new(path) }.map_err(|e| e.to_string())?;
    let library = std::mem::ManuallyDrop::new(library);
    // SAFETY: the signature is that of `onnxruntime_c_api.h`, unchanged since the first release.
    let entry = unsafe { library.get::<GetApiBase>(b"OrtGetApiBase") };
    let entry = entry.map_err(|_| "it has no function OrtGetApiBase".to_owned())?;
    // SAFETY: the function takes nothing and returns null or a table that lives as long as the library. Its
    // `GetVersionString` takes nothing and returns a static string.
    let version = unsafe {
        let base = entry().as_ref().ok_or("OrtGetApiBase returns nothing")?;
        CStr::from_ptr((base.GetVersionString)())
    };
    let version = version.to_string_lossy().into_owned();
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    match (parts.next(), parts.next()) {
        (Some(1), Some(minor)) if minor >= ort::MINOR_VERSION => Ok(version),
        _ => Err(format!("it is version {version}")),
    }
}
