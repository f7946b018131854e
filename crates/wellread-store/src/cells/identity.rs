//! [`Cells::identity`]: which crops these are, for a program that keeps pixels of them.

use super::join::Cells;

impl Cells {
    /// Numbers that tell these crops from others of the same images: the boxes, the cells' numbers, and the use of
    /// label images.
    pub fn identity(&self) -> impl Iterator<Item = u64> {
        let boxes = self.boxes.iter().zip(&self.ids).flat_map(|(cell, id)| {
            let [y, x] = cell.start.map(i64::cast_unsigned);
            [cell.image as u64, y, x, id.cast_unsigned()]
        });
        let masks = self.masks.iter().flat_map(|masks| {
            let rows = masks.rows.iter().map(|row| row.map_or(0, |row| row as u64 + 1));
            let how = [masks.mask as u64, u64::from(masks.are_binary), u64::from(masks.has_to_be_seen)];
            how.into_iter().chain(rows)
        });
        self.size.into_iter().map(|side| side as u64).chain(boxes).chain(masks)
    }
}
