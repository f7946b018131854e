//! The Python of this program: the one that engines look for libraries in, that workers are run in, and how it is asked.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
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

/// The Python that a program asks: that of `WELLREAD_PYTHON`, else the one of the environment that the program lies in, else `python3` on
/// the `PATH`.
pub fn program() -> PathBuf {
    let named = std::env::var_os("WELLREAD_PYTHON").filter(|value| !value.is_empty());
    let beside = || std::env::current_exe().ok().and_then(|program| beside(&program));
    named.map(PathBuf::from).or_else(beside).unwrap_or_else(|| Path::new("python3").to_owned())
}

/// The Python beside a program, where both lie in an environment of venv or conda. That of the system is no better than the one on the
/// `PATH`, which may be an environment's.
fn beside(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?;
    let is_environment =
        |place: &Path| place.join("pyvenv.cfg").is_file() || place.join("conda-meta").is_dir();
    let python = folder.join(if cfg!(windows) { "python.exe" } else { "python3" });
    // On Windows conda has its Python at the root.
    let found = folder.ancestors().take(2).any(is_environment) && python.is_file();
    found.then_some(python)
}

/// The beginning of code for `python -c`: Python has the current folder among the places of modules, before all others,
/// as an empty entry.
const NOT_FROM_HERE: &str = "import sys; sys.path[:] = [place for place in sys.path if place]\n";

/// Runs this code in a Python. A file `torch.py` or `json.py` in the current folder is not what it imports; `PYTHONPATH` and the user's
/// packages count.
pub fn command(python: impl AsRef<OsStr>, code: &str) -> Command {
    let mut command = Command::new(python);
    // Python 3.11 and later leave the folder out at once, also in processes that this one starts.
    command.env("PYTHONSAFEPATH", "1").arg("-c").arg(format!("{NOT_FROM_HERE}{code}"));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_python_of_an_environment_is_found_beside_the_program() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        let (program, python) =
            (bin.join("wellread"), bin.join(if cfg!(windows) { "python.exe" } else { "python3" }));
        assert_eq!(beside(&program), None);
        std::fs::write(&python, "").unwrap();
        assert_eq!(beside(&program), None, "it is in no environment");
        std::fs::write(dir.path().join("pyvenv.cfg"), "").unwrap();
        assert_eq!(beside(&program), Some(python.clone()));
        std::fs::remove_file(python).unwrap();
        assert_eq!(beside(&program), None);
    }

    #[test]
    fn what_lies_in_the_current_folder_is_not_imported() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("json.py"), "raise SystemExit('run')\n").unwrap();
        let packages = dir.path().join("packages");
        std::fs::create_dir(&packages).unwrap();
        std::fs::write(packages.join("of_the_user.py"), "VALUE = 7\n").unwrap();
        let code = "import json, of_the_user; print(json.dumps([sys.argv[1], of_the_user.VALUE]))";
        let asked =
            command("python3", code).arg("a").current_dir(dir.path()).env("PYTHONPATH", &packages).output();
        // A machine without Python has nothing to show here.
        let Ok(answer) = asked else { return };
        assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
        assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), "[\"a\", 7]");
    }
}
