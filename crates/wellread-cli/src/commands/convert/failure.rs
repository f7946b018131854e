//! The part that a failed conversion leaves for the next run with `--resume`.
//!
//! ```text
//!  the part of the target ─▶ images that are complete, as the next run finds them ─▶ some: kept; none: removed ─▶ said
//! ```

use std::path::Path;
use wellread_store::words::counted_with;
use wellread_store::{Format, WriteOptions, journal, registry, staged};

/// The part that is left of a set of so many images at `target`, in words. A part in which no image is complete is removed.
pub(super) fn left_of(target: &Path, images: usize, format: &Format, options: &WriteOptions) -> String {
    let Some(folder) = staged::part(target) else { return "nothing was left behind".to_owned() };
    // As the next run will find it; where that cannot be told now, it says so then.
    let next = registry::create(target, format.name, options);
    let complete = next.map(|writer| writer.complete()).ok();
    let place = folder.display();
    if complete.map_or_else(|| journal::is_any_complete(&folder), |n| n > 0) {
        let of = counted_with(images, "image", ["is", "are"]);
        let complete = complete.map_or_else(String::new, |n| format!("{n} of {of} complete; "));
        format!("{complete}the complete part is kept in {place}: the same command continues from it")
    } else if staged::remove_part(target) {
        "no image was complete yet, and nothing was left behind: the same command begins anew".to_owned()
    } else {
        format!("no image was complete yet: the same command begins anew, in {place}")
    }
}
