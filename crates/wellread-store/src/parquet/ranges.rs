//! Where the pages lie that rows are read from: for those who ask for their bytes before they are read.
//!
//! ```text
//!  rows ─▶ row groups ─▶ small columns and offset indices (read once) ─▶ pages of the wanted values, without those that are kept decoded
//! ```

use super::cache::Key;
use super::fast::contiguous_part;
use super::pages_ahead;
use super::store::ParquetStore;
use crate::ome_arrow::{CHUNKS, PLANES};
use crate::place::WantedRanges;
use crate::{Request, Result, Store};
use std::sync::atomic::Ordering;

/// Most bytes of a column beside the pixels that is asked for before it is read.
const MAX_AHEAD_BYTES: i64 = 1 << 20;

impl ParquetStore {
    /// Whether the layout of a row group is known, or the footer tells it.
    fn knows_layout(&self, group: usize) -> bool {
        let known = &self.groups[group].layout;
        if known.known().is_none()
            && let Some(layout) = self.layout_by_statistics(group)
        {
            let _ = known.get(|| Ok(layout));
        }
        known.known().is_some()
    }

    /// The columns that tell a layout where the footer does not.
    pub(super) fn layout_leaves(&self) -> impl Iterator<Item = &usize> {
        let positions = self.column.pieces.iter().flatten().flat_map(|pieces| pieces.positions.iter());
        self.column.sizes.iter().chain(positions)
    }

    /// Adds the small columns that tell shapes, and the offset indices, of the row groups of some rows, where they were not
    /// read yet.
    pub(super) fn index_ranges(&self, rows: &[usize], wanted: &mut WantedRanges) {
        let mut groups: Vec<_> = rows.iter().map(|&row| self.group_of(row)).collect();
        groups.sort_unstable();
        groups.dedup();
        for group in groups {
            let Some(state) = self.groups.get(group) else { continue };
            if !self.knows_layout(group) {
                let columns = self.layout_leaves().map(|&leaf| self.chunk(group, leaf));
                columns
                    .filter(|chunk| chunk.compressed_size() <= MAX_AHEAD_BYTES)
                    .for_each(|chunk| pages_ahead::push_column(&self.file, chunk, wanted));
            }
            for source in [CHUNKS, PLANES] {
                if self.column.pieces[source].is_none() || state.pages[source].known().is_some() {
                    continue;
                }
                let chunk = self.pixel_chunk(group, source);
                let place = chunk.offset_index_offset().zip(chunk.offset_index_length());
                if let Some((Ok(offset), Ok(length))) =
                    place.map(|(offset, length)| (u64::try_from(offset), u64::try_from(length)))
                {
                    wanted.push(self.path(), offset, length);
                }
            }
        }
    }

    /// Adds the pages that hold the pixels of some requests, but those that are kept decoded. The pages of the general
    /// reader are not known before.
    pub(super) fn page_ranges(&self, requests: &[Request], wanted: &mut WantedRanges) -> Result<()> {
        for request in requests {
            let (group, row, info) = self.row(request.row)?;
            let source = row.source;
            let (layout, state) = (self.layout_of(group)?, &self.groups[group]);
            let Some(table) = &layout.tables[source] else { continue };
            if !table.positions_known || state.general[source].load(Ordering::Relaxed) {
                continue;
            }
            let pages = self.pages_of(group, source, table)?;
            let is_kept = |page| {
                let key = Key { group: group as u32, source: source as u8, page, dtype: info.dtype };
                self.cache.has(key)
            };
            if let Some(page) = pages.dictionary.as_ref().filter(|_| !is_kept(Key::DICTIONARY)) {
                wanted.push(self.path(), page.offset, page.header.compressed as u64);
            }
            for piece in table.pieces(request.row - state.rows.start) {
                let Some((part, offset)) = contiguous_part(&table.region(piece), &request.region) else {
                    continue;
                };
                let first = table.values(piece).start + offset as u64;
                let last = (first + part.pixels() as u64).saturating_sub(1);
                let (Some(from), Some(to)) = (pages.holding(first), pages.holding(last)) else { continue };
                for page in (from..=to).filter(|&page| !is_kept(page as u32)) {
                    let (offset, size) = pages.location(page);
                    wanted.push(self.path(), offset, u64::from(size));
                }
            }
        }
        Ok(())
    }
}
