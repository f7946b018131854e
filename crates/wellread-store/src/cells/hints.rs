//! Hints for reading cells well. They say which parts of images and masks are kept, where a cell lies, and the memory
//! that reading it takes. They also say which part of a set of several holds its image.

use super::edge::CellBox;
use super::options::Mask;
use super::store::CellsStore;
use crate::{
    Hints, LeftOutCounts, PageCache, PartTable, Result, RowCut, RowFacts, RowHints, SetPart, Store,
    unknown_facts,
};
use std::path::PathBuf;

impl CellsStore {
    /// The hints of the set of cells itself: its images' parts are its parts.
    pub(super) fn own_hints(&self) -> Hints<'_> {
        let images = self.images.hints();
        let keeps = images.page_cache.is_some() || self.mask_hints().page_cache.is_some();
        Hints {
            columns: Some(self),
            sites: None,
            parts: images.parts.map(|_| self as &dyn PartTable),
            page_cache: keeps.then_some(self as &dyn PageCache),
            left_out: LeftOutCounts { cells: self.cells.report().left_out(), ..images.left_out },
            is_last_mask: self.mask() == Mask::Channel,
            are_crops: true,
            ..images
        }
    }

    /// The hints of the label images, where they are masks.
    pub(super) fn mask_hints(&self) -> Hints<'_> {
        self.masks.as_ref().map_or_else(Hints::default, |masks| masks.hints())
    }

    /// The use of the label images.
    pub(super) fn mask(&self) -> Mask {
        self.cells.masks.as_ref().map_or(Mask::None, |masks| masks.mask)
    }
}

impl PartTable for CellsStore {
    fn parts(&self) -> Vec<SetPart> {
        SetPart::regrouped(self.images.hints().set_parts(), self.cells.boxes.iter().map(|cell| cell.image))
    }

    /// A cell's name begins with that of its image.
    fn names_begin_with_parts(&self) -> bool {
        self.images.hints().names_begin_with_parts()
    }
}

impl PageCache for CellsStore {
    fn max_bytes(&self) -> usize {
        self.images.hints().page_cache_bytes().saturating_add(self.mask_hints().page_cache_bytes())
    }

    /// Label images get up to a half.
    fn keep_at_most(&self, bytes: usize) {
        let masks = self.mask_hints().page_cache_bytes().min(bytes / 2);
        self.mask_hints().limit_page_cache(masks);
        self.images.hints().limit_page_cache(bytes - masks);
    }

    fn forget_all(&self) {
        self.images.hints().forget_pages();
        self.mask_hints().forget_pages();
    }
}

impl RowFacts for CellsStore {
    // A cell begins anywhere in the pieces of its image.
    unknown_facts!(grid);

    fn position(&self, row: usize) -> u64 {
        let image = self.cell(row).and_then(|cell| self.images.row_hints(cell.image));
        image.map_or(u64::MAX, RowHints::position)
    }

    /// That of its image.
    fn file(&self, row: usize) -> Option<PathBuf> {
        self.images.row_hints(self.cell(row).ok()?.image).ok()?.file()
    }

    fn cut(&self, row: usize) -> Option<RowCut> {
        let CellBox { image, start } = self.cell(row).ok()?;
        let shape = self.images.row_info(image).ok()?.shape;
        let own = RowCut { start, whole: [shape.y(), shape.x()] };
        // For an image that is a part itself, this gives the part of the whole.
        let cut = self.images.row_hints(image).ok()?.cut();
        Some(cut.map_or(own, |RowCut { start: [y, x], whole }| RowCut {
            start: [start[0].saturating_add(y), start[1].saturating_add(x)],
            whole,
        }))
    }

    fn metadata_rows(&self, row: usize) -> usize {
        let image = self.cell(row).and_then(|cell| self.images.row_hints(cell.image));
        image.map_or(1, RowHints::metadata_rows)
    }

    /// Those of its image.
    fn unkept(&self, row: usize) -> Vec<&'static str> {
        let image = self.cell(row).and_then(|cell| self.images.row_hints(cell.image));
        image.map_or_else(|_| vec![], RowHints::unkept)
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
