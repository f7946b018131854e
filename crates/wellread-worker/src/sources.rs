//! The Python worker's sources, carried in the program and unpacked where a Python can import them.

use anyhow::{Context as _, Result};
use tempfile::TempDir;

/// Name and text of each file, put together by `build.rs`.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/worker_sources.rs"));

/// Name that the sources are imported by. Not `wellread`: the package of that name is what may be measured.
const PACKAGE: &str = "_wellread_bench";

/// What Python runs first; its argument is the folder of the sources. With `-c` there is no main module that
/// processes of a data loader would import again.
pub(crate) const BOOTSTRAP: &str = "\
import sys
if sys.version_info < (3, 10): sys.exit('Python 3.10 or newer is needed, this is ' + sys.version.split()[0])
sys.path.append(sys.argv[1])
from _wellread_bench.worker import main
main()
";

/// Unpacks the sources into a new folder, which goes when this is dropped.
///
/// # Errors
/// A folder for temporary files that cannot be written.
pub(crate) fn unpack() -> Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("wellread-worker-").tempdir();
    let folder = folder.context("cannot make a temporary folder for the Python worker")?;
    for (name, text) in FILES {
        let path = folder.path().join(PACKAGE).join(name);
        let parent = path.parent().unwrap_or(folder.path());
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_worker_is_there() {
        let folder = unpack().unwrap();
        for name in
            ["worker.py", "protocol.py", "peers/__init__.py", "frameworks/pytorch.py", "tracks/loop.py"]
        {
            assert!(folder.path().join(PACKAGE).join(name).is_file(), "{name}");
        }
        assert!(BOOTSTRAP.contains(PACKAGE));
    }
}
