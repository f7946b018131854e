//! The Python in whose packages engines look for libraries: the one that this process is, or another program.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The file of a module by its name, such as `_duckdb`, as `import` would find it; `None` where there is none.
pub type FindModule = fn(&str) -> Option<PathBuf>;

/// How the Python that this process is finds modules.
static HERE: OnceLock<FindModule> = OnceLock::new();

/// Says that this process is a Python, which finds its modules in this way: the native module does.
pub fn set_here(find: FindModule) {
    let _ = HERE.set(find);
}

/// How this process finds modules, where it is a Python.
pub fn here() -> Option<FindModule> {
    HERE.get().copied()
}

/// The Python that a program asks: that of `WELLREAD_PYTHON`, else the one beside the program (both are in an environment then), else
/// `python3` on the `PATH`.
pub fn program() -> PathBuf {
    let named = std::env::var_os("WELLREAD_PYTHON").filter(|value| !value.is_empty());
    let beside = || {
        let name = if cfg!(windows) { "python.exe" } else { "python3" };
        std::env::current_exe().ok().map(|program| program.with_file_name(name)).filter(|path| path.is_file())
    };
    named.map(PathBuf::from).or_else(beside).unwrap_or_else(|| Path::new("python3").to_owned())
}
