//! The images that a command leaves out, and says so.

use crate::output::Ui;
use wellread_infer::source::Unreadable;

/// So many are named.
const MAX_NAMED: usize = 5;

/// Names the first of the images that are left out.
pub fn tell(images: &[Unreadable], ui: Ui) {
    for Unreadable { row, name, reason } in images.iter().take(MAX_NAMED) {
        ui.warn(format!("left out: row {row}: {}: {reason}", name.escape_debug()));
    }
    let more = images.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        ui.warn(format!("… and {more} more; --json lists all"));
    }
}
