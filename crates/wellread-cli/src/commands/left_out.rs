//! The images that a command leaves out, and says so.

use crate::output::Ui;

/// So many are named.
const MAX_NAMED: usize = 5;

/// Names the first of the images that are left out: row, name and reason of each.
pub fn tell<'a>(images: impl ExactSizeIterator<Item = (usize, &'a str, &'a str)>, ui: Ui) {
    let more = images.len().saturating_sub(MAX_NAMED);
    for (row, name, reason) in images.take(MAX_NAMED) {
        ui.warn(format!("left out: row {row}: {}: {reason}", name.escape_debug()));
    }
    if more > 0 {
        ui.warn(format!("… and {more} more; --json lists all"));
    }
}
