//! The reference data: golden sets of the reference libraries, and public images.

use std::path::PathBuf;

/// The folder of reference data, or `None` with a printed line where a clone has none.
///
/// A folder that is asked for by the environment variable `WELLREAD_SHARED` must be there. A test that passes
/// because it has not run would go unnoticed.
pub(crate) fn shared() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("WELLREAD_SHARED").map(PathBuf::from) {
        assert!(path.is_dir(), "WELLREAD_SHARED names {}, which is no folder", path.display());
        return Some(path);
    }
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: no reference data at {} (set WELLREAD_SHARED)", path.display());
    None
}
