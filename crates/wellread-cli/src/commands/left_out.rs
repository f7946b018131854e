//! The images that a command leaves out, and says so.

use crate::output::Ui;
use wellread_infer::source::Unreadable;

/// So many are named.
const MAX_NAMED: usize = 5;

/// Names the first of the images that are left out.
pub fn tell(images: &[Unreadable], ui: Ui) {
    for image in images.iter().take(MAX_NAMED) {
        ui.warn(in_words(image));
    }
    let more = images.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        ui.warn(format!("… and {more} more; --json lists all"));
    }
}

/// An image by its row, its name where it has one, and the reason.
fn in_words(Unreadable { row, name, reason }: &Unreadable) -> String {
    let row = format!("row {row}");
    if *name == row {
        return format!("left out: {row}: {reason}");
    }
    format!("left out: {row}: {}: {reason}", name.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_a_name_has_its_row_once() {
        let said =
            |name: &str| in_words(&Unreadable { row: 1, name: name.into(), reason: "is cut off".into() });
        assert_eq!(said("row 1"), "left out: row 1: is cut off");
        assert_eq!(said("a\tb"), "left out: row 1: a\\tb: is cut off");
    }
}
