//! Which set of images a cache file belongs to, so that it is never taken for another's.

use std::fmt::Write as _;
use std::time::UNIX_EPOCH;
use wellread_store::checksum::sha256_hex;
use wellread_store::{Error, Result, Store};

/// A set's name and state.
pub(super) struct Fingerprint {
    /// The set's path, and what makes images of the files there: the same before and after a change.
    pub set: String,
    /// Its files, their sizes and times of change, the way they are read, and its first and last image's names and
    /// shapes.
    pub state: String,
}

impl Fingerprint {
    /// Looks at every file of the set, at none of its pixels. `made_by` tells what makes its images of them: the options
    /// and the rows that were chosen.
    ///
    /// # Errors
    /// A set that is not in files, or a file that cannot be looked at.
    pub fn of(store: &dyn Store, made_by: &str) -> Result<Self> {
        let path = store.path();
        let canonical = path.canonicalize().map_err(|e| Error::io(path, "cannot look at", &e))?;
        let files = store.files()?;
        if files.is_empty() {
            return Err(Error::new(path, "is not in files, so no cache file can belong to it")
                .hint("use the cache `memory` instead"));
        }
        let layout = store.layout()?;
        let mut text = format!("{} {} {} {}\n", store.format(), store.len(), layout.variant, layout.pieces);
        for file in files {
            let meta = std::fs::metadata(&file).map_err(|e| Error::io(&file, "cannot look at", &e))?;
            let changed = meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
            let _ = writeln!(text, "{} {} {changed:?}", file.display(), meta.len());
        }
        for row in [0, store.len().saturating_sub(1)] {
            let info = store.row_info(row).map(|info| (info.shape.0, info.dtype)).ok();
            let _ = writeln!(text, "{:?} {info:?}", store.name(row).unwrap_or_default());
        }
        let mut named = canonical.as_os_str().as_encoded_bytes().to_vec();
        if !made_by.is_empty() {
            named.push(0);
            named.extend_from_slice(made_by.as_bytes());
        }
        Ok(Self { set: short(&named), state: short(text.as_bytes()) })
    }
}

fn short(bytes: &[u8]) -> String {
    let mut hash = sha256_hex(bytes);
    hash.truncate(24);
    hash
}
