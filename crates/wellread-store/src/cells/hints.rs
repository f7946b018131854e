//! How cells are read best: what is kept of images and masks, where a cell lies, the memory that reading it takes.

use super::store::CellsStore;
use crate::{PageCache, Result, RowFacts, RowHints, Store};

impl PageCache for CellsStore {
    fn most(&self) -> usize {
        self.images.hints().page_cache().saturating_add(self.mask_hints().page_cache())
    }

    /// Of label images up to a half.
    fn keep_at_most(&self, bytes: usize) {
        let masks = self.mask_hints().page_cache().min(bytes / 2);
        self.mask_hints().limit_page_cache(masks);
        self.images.hints().limit_page_cache(bytes - masks);
    }

    fn forget_all(&self) {
        self.images.hints().forget_pages();
        self.mask_hints().forget_pages();
    }
}

impl RowFacts for CellsStore {
    fn position(&self, row: usize) -> u64 {
        let image = self.cell(row).and_then(|cell| self.images.row_hints(cell.image));
        image.map_or(u64::MAX, RowHints::position)
    }

    fn working_bytes(&self, row: usize) -> Result<usize> {
        let at = self.cell(row)?.image;
        let image = self.images.row_hints(at).and_then(RowHints::working_bytes).map_err(|e| e.of_row(row))?;
        // Label images are read before the images.
        let mask = match (&self.masks, &self.cells.masks) {
            (Some(masks), Some(found)) => match found.rows.get(at).copied().flatten() {
                Some(own) => {
                    masks.row_hints(own).and_then(RowHints::working_bytes).map_err(|e| e.of_row(row))?
                }
                None => 0,
            },
            _ => 0,
        };
        let image = image.saturating_add(mask);
        let info = self.row_info(row)?;
        let crop = info.shape.checked_bytes(info.dtype).unwrap_or(usize::MAX / 4);
        // A copy of the crop, zeros around it, and which of its pixels are the cell's.
        Ok(image.saturating_add(crop.saturating_mul(3)))
    }
}
