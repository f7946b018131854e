//! The Python in whose packages engines look for libraries.

use std::path::PathBuf;
use std::sync::OnceLock;

/// The Python that this process is.
static HERE: OnceLock<PathBuf> = OnceLock::new();

/// Says which Python this process is: the native module's own.
pub fn set_here(program: PathBuf) {
    let _ = HERE.set(program);
}

/// Whether a Python runs in this process.
pub fn is_here() -> bool {
    HERE.get().is_some()
}

/// The Python that this process is; elsewhere that of `WELLREAD_PYTHON`, else `python3` on the `PATH`.
pub fn program() -> PathBuf {
    let named = || std::env::var_os("WELLREAD_PYTHON").filter(|value| !value.is_empty());
    HERE.get().cloned().unwrap_or_else(|| named().map_or_else(|| PathBuf::from("python3"), PathBuf::from))
}
