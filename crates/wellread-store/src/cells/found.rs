//! The outcome of a table of cells: how many rows were left out, and the names of the first few.

pub use crate::counted_names::CountedNames;
use serde::Serialize;

/// The outcome of a table of cells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CellsReport {
    /// Rows of the table.
    pub rows: usize,
    /// Cells that can be read.
    pub cells: usize,
    /// Images that they are cut out of.
    pub images: usize,
    /// Rows of the table whose image is not in the set.
    pub without_image: CountedNames,
    /// Rows without a position: null, NaN or infinite.
    pub without_position: CountedNames,
    /// Rows whose position lies outside of their image.
    pub outside: CountedNames,
    /// Cells that were left out because their box reaches beyond the image.
    pub dropped: CountedNames,
    /// Images without a cell, which is no error.
    pub images_without_cells: CountedNames,
    /// Label images whose image is not in the set, where the cells are their labels. It is no error, since the set may be a part of all
    /// images.
    pub labels_without_image: CountedNames,
    /// The doubt whether table and images count sites from the same number, in words, where all of them agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site_numbers: Option<String>,
    /// Why the column `label` does not number the cells, in words, where its values repeat in an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated_labels: Option<String>,
}

impl CellsReport {
    /// Rows that no cell can be cut out for.
    pub(super) fn unmatched(&self) -> usize {
        self.without_image.count + self.without_position.count + self.outside.count
    }

    /// Rows that are left out: those, and cells at the border.
    pub(super) fn left_out(&self) -> usize {
        self.unmatched() + self.dropped.count
    }

    /// Why rows cannot be cut out, a sentence for each reason.
    pub(super) fn problems(&self) -> Vec<String> {
        let kinds = [
            (&self.without_image, "of no image of this set"),
            (&self.without_position, "without a position (null, NaN or infinite)"),
            (&self.outside, "outside of the image"),
        ];
        kinds.into_iter().filter_map(|(found, what)| found.sentence("cell", what)).collect()
    }

    /// Notes for the user, a sentence each; none where all cells can be read and all images have some.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.problems();
        notes.extend(self.dropped.sentence("cell", "left out at the border of the image"));
        notes.extend(self.images_without_cells.sentence("image", "without a cell"));
        notes.extend(self.labels_without_image.sentence("label image", "of no image of this set"));
        notes.extend(self.site_numbers.clone());
        notes.extend(self.repeated_labels.clone());
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_few_are_named() {
        let mut report = CellsReport::default();
        assert!(report.notes().is_empty());
        report.outside.push(|| "row 1".to_owned());
        for i in 0..5 {
            report.images_without_cells.push(|| format!("image {i}"));
        }
        assert_eq!(
            report.notes(),
            ["1 cell outside of the image: row 1", "5 images without a cell: image 0, image 1, image 2 …"]
        );
        report.dropped.push(|| "row 2".to_owned());
        assert_eq!((report.unmatched(), report.left_out()), (1, 2));
    }
}
