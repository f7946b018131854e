//! The Python sources, carried in the program and unpacked where a Python can import them.
//!
//! | package | imported as | what it is |
//! |---|---|---|
//! | `python/wellread/_bench` | `_wellread_bench` | the worker of benchmarks and of inference |
//! | `python/wellread/_tasks` | [`TASKS`] | the adapters of `wellread tasks` |

use anyhow::{Context as _, Result};
use std::path::Path;
use tempfile::TempDir;
use wellread_store::staged::{Leftover, leftovers_of};

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

/// The prefix of names of folders of sources; the process that made one follows, and a part that no other
/// has.
const FOLDER: &str = "wellread-worker-";

/// Unpacks the worker's sources into a new folder, which goes when this is dropped.
///
/// # Errors
/// A folder for temporary files that cannot be written.
pub(crate) fn unpack() -> Result<TempDir> {
    let prefix = format!("{FOLDER}{}-", std::process::id());
    let folder = tempfile::Builder::new().prefix(&prefix).tempdir();
    let folder = folder.context("cannot make a temporary folder for the Python worker")?;
    write(WORKER, &folder.path().join(PACKAGE))?;
    Ok(folder)
}

/// Folders of sources that killed processes left in `folder`, or in that for temporary files; those only to which nobody has written
/// for an hour.
pub fn leftovers(folder: Option<&Path>) -> Vec<Leftover> {
    leftovers_of(folder.unwrap_or(&std::env::temp_dir()), maker)
}

/// The process in the name of a folder of sources.
fn maker(name: &str) -> Option<&str> {
    name.strip_prefix(FOLDER)?.split_once('-').map(|(process, _)| process)
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
    }

    #[test]
    #[cfg(all(target_os = "linux", not(feature = "portable")))]
    fn folders_of_killed_processes_are_named_and_those_in_use_are_not() {
        let used = unpack().unwrap();
        let name = used.path().file_name().unwrap().to_str().unwrap();
        assert_eq!(maker(name), Some(std::process::id().to_string().as_str()));
        let temporary = tempfile::tempdir().unwrap();
        // The last is of a release whose names did not tell.
        for name in [name, "wellread-worker-4294967294-a1B2c3", "wellread-worker-a1B2c3"] {
            let folder = temporary.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            let long_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(2);
            std::fs::File::open(&folder).unwrap().set_modified(long_ago).unwrap();
        }
        let found = leftovers(Some(temporary.path()));
        let names: Vec<_> = found.iter().filter_map(|one| one.path.file_name()?.to_str()).collect();
        assert_eq!(names, ["wellread-worker-4294967294-a1B2c3"]);
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
