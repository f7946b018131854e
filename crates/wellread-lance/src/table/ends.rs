//! The ends of data files that lie far away, where Lance keeps what tells how a file is laid out.
//!
//! ```text
//!  opening a dataset ─▶ the last 1 MiB of its first data files, in one request ─▶ held as long as it is open
//!                                                    └ many small reads of metadata find it there
//! ```

use crate::dataset::DATA;
use lance_table::format;
use std::path::Path;
use wellread_store::ahead::Fetching;
use wellread_store::place::{Ticket, Wanted};

/// Bytes at the end of a data file that hold most of what tells where the pixels of a thousand rows lie.
const END: u64 = 1 << 20;
/// Fragments whose data files are asked for their end while the dataset is opened.
const FRAGMENTS: usize = 4;

/// Asks for the ends of the first data files, if they lie far away.
pub(super) fn ends_ahead(folder: &Path, fragments: &[format::Fragment]) -> Vec<Ticket> {
    let Some(mut fetching) = Fetching::of(folder, None) else { return vec![] };
    let mut wanted = Wanted::default();
    for file in fragments.iter().take(FRAGMENTS).flat_map(|fragment| &fragment.files) {
        want_end(folder, file, END, &mut wanted);
    }
    fetching.fetch(&wanted)
}

/// Adds the last bytes of a data file, where its length is known.
pub(super) fn want_end(folder: &Path, file: &format::DataFile, bytes: u64, wanted: &mut Wanted) {
    if let Some(size) = file.file_size_bytes.get()
        && file.base_id.is_none()
    {
        let start = size.get().saturating_sub(bytes);
        wanted.push(&folder.join(DATA).join(&file.path), start, size.get() - start);
    }
}
