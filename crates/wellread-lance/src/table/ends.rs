//! The ends of data files, where Lance keeps what tells how a file is laid out.
//!
//! ```text
//!  opening a dataset ─▶ files of its first fragments, remote ─▶ their last bytes, held as long as it is open
//!  rows of a fragment that is not open ─▶ their last 64 KiB
//! ```

use crate::dataset::DATA;
use lance_table::format::{DataFile, Fragment};
use std::path::{Path, PathBuf};
use wellread_store::ahead::FileTails;
use wellread_store::place::{HEAD, Wanted};

/// Fragments whose data files are asked for their end while the dataset is opened.
const FRAGMENTS: usize = 4;

/// Where a data file of the dataset's own folder lies, and its length, where that is known.
fn located(folder: &Path, file: &DataFile) -> Option<(PathBuf, u64)> {
    let size = file.file_size_bytes.get().filter(|_| file.base_id.is_none())?;
    Some((folder.join(DATA).join(&file.path), size.get()))
}

/// Asks for the ends of the first data files.
pub(super) fn ends_ahead(folder: &Path, fragments: &[Fragment]) -> FileTails {
    let files = fragments.iter().take(FRAGMENTS).flat_map(|fragment| &fragment.files);
    FileTails::of(files.filter_map(|file| located(folder, file)))
}

/// Adds the last bytes of a data file.
pub(super) fn want_end(folder: &Path, file: &DataFile, wanted: &mut Wanted) {
    if let Some((path, length)) = located(folder, file) {
        let start = length.saturating_sub(HEAD);
        wanted.push(&path, start, length - start);
    }
}
