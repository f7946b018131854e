//! The work that all fuzz targets over stores share: open, look at everything, read images that are not too
//! large to be quick.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use wellread_store::{OpenOptions, RowHints, read_image, registry};

pub mod mutate;

/// Images of more pixels are not read: a declared size that the file justifies is no fault, only slow.
pub const LARGEST: usize = 1 << 22;
/// Rows looked at.
pub const ROWS: usize = 8;

/// A folder of this process, in memory where the system keeps temporary files there.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| tempfile::tempdir().expect("a temporary folder")).path()
}

/// Writes `data` to a file called `name`, and its path.
pub fn file(name: &str, data: &[u8]) -> PathBuf {
    let path = folder().join(name);
    std::fs::write(&path, data).expect("the temporary folder can be written to");
    path
}

/// Writes over parts of `good`: patches are four bytes of offset, one of length, and so many bytes. So checksums and
/// lengths around the change stay as they are, and the code behind them is reached.
pub fn patch(good: &mut [u8], mut patches: &[u8]) {
    if good.is_empty() {
        return;
    }
    while let Some((head, rest)) = patches.split_first_chunk::<5>() {
        let [a, b, c, d, length] = *head;
        let (patch, rest) = rest.split_at(usize::from(length).min(rest.len()));
        let at = u32::from_le_bytes([a, b, c, d]) as usize % good.len();
        let end = (at + patch.len()).min(good.len());
        good[at..end].copy_from_slice(&patch[..end - at]);
        patches = rest;
    }
}

/// Opens `path` in a format and asks for everything. Errors are what most inputs should give; panics, hangs and
/// memory that the file does not justify are what libFuzzer reports.
pub fn read_all(path: &Path, format: &str) {
    let options = OpenOptions { format: Some(format.to_owned()), ..OpenOptions::default() };
    let format = registry::format_named(format).expect("a format of this build");
    let Ok(store) = (format.open)(path, &options) else { return };
    let _ = (store.layout(), store.files());
    for row in 0..store.len().min(ROWS) {
        let _ = (store.name(row), store.metadata(row), store.row_hints(row).map(RowHints::position));
        if store.row_info(row).is_ok_and(|info| info.shape.pixels() <= LARGEST)
            && let Ok((info, pixels)) = read_image(&*store, row)
        {
            assert_eq!(pixels.len(), info.shape.pixels() * info.dtype.size());
        }
    }
}
