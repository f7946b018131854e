//! Sets whose files have no checksums of their own, and the way to see damage in them all the same.

use crate::output::Ui;
use std::path::Path;
use wellread_store::OpenOptions;

/// The words on such a set.
pub const UNSEEN: &str = "has no checksums of its own, so damage that can be decoded is not seen";

/// Whether the files of the set at `path` have checksums of their own; `None` where it cannot be opened.
pub fn has_checksums(path: &Path, format: &str) -> Option<bool> {
    let options = OpenOptions { format: Some(format.to_owned()), ..OpenOptions::default() };
    wellread_store::open(path, &options).ok().map(|set| set.has_checksums())
}

/// Says of a set that was written now that it has no checksums, where they were `wanted`. `has` is what the set said when it was
/// opened to be compared, and is returned.
pub fn say_of_new(path: &Path, has: Option<bool>, wanted: bool, ui: Ui) -> Option<bool> {
    if wanted && has == Some(false) {
        let path = path.display();
        ui.hint(format!(
            "note: {path} {UNSEEN}: keep `wellread checksum {path} --json > expected.json` beside it, and compare by \
             `wellread verify {path} --against expected.json`"
        ));
    }
    has
}
