//! Names beside a target: of what is written now, and of what is kept to be gone on with.

use super::replace::through_links;
use crate::entries::{PARTIAL, RESUME};
use crate::place;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use wellread_trace::process::process_mark;

/// The folder with the part of `target` that an interrupted run has left and that can be gone on with, or that a run is writing.
pub fn part(target: &Path) -> Option<PathBuf> {
    let folder = resume_folder(&through_links(target).ok()?);
    place::look_anew(&folder);
    place::exists(&folder).then_some(folder)
}

/// Where a part of `target` is kept when writing is interrupted.
pub(super) fn resume_folder(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!("{RESUME}{name}"))
}

/// A name beside `target` that no other writer has.
pub(super) fn partial_name(target: &Path) -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let n = COUNTER.fetch_add(1, Ordering::Relaxed);
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!("{PARTIAL}{}-{n}-{name}", process_mark(std::process::id())))
}
