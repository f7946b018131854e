//! The Python sources, carried in the program and unpacked where a Python can import them.
//!
//! | package | imported as | what it is |
//! |---|---|---|
//! | `python/wellread/_bench` | `_wellread_bench` | the worker of benchmarks and of inference |
//! | `python/wellread/_tasks` | [`TASKS`] | the adapters of `wellread tasks` |

use anyhow::{Context as _, Result};
use std::path::Path;
use wellread_store::staged::ScratchFolder;

/// Name and text of each file, put together by `build.rs`.
type Files = &'static [(&'static str, &'static str)];
const WORKER: Files = include!(concat!(env!("OUT_DIR"), "/worker_sources.rs"));
const ADAPTERS: Files = include!(concat!(env!("OUT_DIR"), "/task_sources.rs"));

/// Name that the worker's sources are imported by. Not `wellread`: the package of that name is what may be measured.
const PACKAGE: &str = "_wellread_bench";

/// Name that the adapters of `wellread tasks` are imported by: `python -m` of it runs one, named by its argument.
pub const TASKS: &str = "_wellread_tasks";

/// The code that Python runs first; its argument is the folder of the sources. With `-c` there is no main module that
/// processes of a data loader would import again. The current folder, where the user's own models are looked for, comes
/// last: a file `torch.py` in it is not PyTorch. Programs that the user's code starts are as they were: PYTHONSAFEPATH
/// is not theirs.
pub(crate) const BOOTSTRAP: &str = "\
import sys
if sys.version_info < (3, 10): sys.exit('Python 3.10 or newer is needed, this is ' + sys.version.split()[0])
sys.path.extend([sys.argv[1], ''])
__import__('os').environ.pop('PYTHONSAFEPATH', None)
if not __import__('importlib.util').util.find_spec('numpy'):
    sys.exit('this Python has no NumPy; pip install numpy for it, or name another with --python')
from _wellread_bench.worker import main
main()
";

/// Unpacks the worker's sources into a new folder. It goes when this is dropped and when the program is interrupted.
///
/// # Errors
/// A folder for temporary files that cannot be written.
pub(crate) fn unpack() -> Result<ScratchFolder> {
    let folder = ScratchFolder::within(&std::env::temp_dir());
    let folder = folder.context("cannot make a temporary folder for the Python worker")?;
    write(WORKER, &folder.path().join(PACKAGE))?;
    Ok(folder)
}

/// Unpacks the adapters of `wellread tasks` as the package [`TASKS`] within `folder`; files that are there already
/// stay.
///
/// # Errors
/// A folder that cannot be written.
pub fn unpack_tasks(folder: &Path) -> Result<()> {
    let package = folder.join(TASKS);
    if package.is_dir() {
        return Ok(());
    }
    // Beside, then renamed: a package that is there is whole.
    let beside = tempfile::Builder::new().prefix("unpacking-").tempdir_in(folder);
    let beside = beside.with_context(|| format!("cannot write {}", folder.display()))?;
    let made = beside.path().join(TASKS);
    write(ADAPTERS, &made)?;
    std::fs::rename(&made, &package).with_context(|| format!("cannot write {}", package.display()))
}

fn write(files: Files, package: &Path) -> Result<()> {
    for (name, text) in files {
        let path = package.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(package))
            .and_then(|()| std::fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_worker_is_there() {
        let folder = unpack().unwrap();
        for name in ["worker.py", "clock.py", "peers/__init__.py", "frameworks/pytorch.py", "tracks/loop.py"]
        {
            assert!(folder.path().join(PACKAGE).join(name).is_file(), "{name}");
        }
        assert!(BOOTSTRAP.contains(PACKAGE));
        assert!(BOOTSTRAP.contains("sys.path.extend([sys.argv[1], ''])"), "the current folder comes last");
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn all_adapters_of_tasks_are_there_and_unpacking_again_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        unpack_tasks(folder.path()).unwrap();
        let package = folder.path().join(TASKS);
        for name in ["__main__.py", "lightning.py", "cyto_dl.py", "callback.py"] {
            assert!(package.join(name).is_file(), "{name}");
        }
        std::fs::write(package.join("mark"), "").unwrap();
        unpack_tasks(folder.path()).unwrap();
        assert!(package.join("mark").is_file());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(unpack_tasks(&folder.path().join("not there")).is_err());
    }
}
