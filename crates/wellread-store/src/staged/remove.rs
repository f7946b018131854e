//! Removing what is at a path, be it a file or a folder.

use crate::place;
use std::path::Path;

/// How often a folder is looked at again before it is said not to be replaceable.
pub(super) const MAX_LOOKS: usize = 10;

/// Removes a file, or a folder with all that is in it, as far as the system lets it. It is waited for also in a thread
/// that is to stop.
pub(super) fn remove_any(path: &Path) {
    place::to_its_end(|| {
        if place::is_folder(path) {
            let _ = place::of(path).remove_folder(path);
        } else {
            let _ = place::of(path).remove_file(path);
        }
    });
}
