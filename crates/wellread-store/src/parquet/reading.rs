//! Reading rows: the choice between the fast path and the general reader.

use super::dictionary::PageCursor;
use super::fast::FastReader;
use super::general::GeneralReader;
use super::pages::FastPathError;
use super::store::ParquetStore;
use crate::ome_arrow::{CHUNKS, PLANES};
use crate::store::RowsAhead;
use crate::{Block, CopySink, Error, PixelSink, Request, Result, Scratch, Store, try_alloc};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Takes each image of a scan.
type Each<'a> = &'a mut crate::EachImage<'a>;

impl ParquetStore {
    /// Reads `order` (indices of requests, all in `group`, ascending by row) by the fast path. Returns how
    /// many were read before one was met that is for the general reader.
    pub(super) fn read_fast(
        &self,
        group: usize,
        order: &[usize],
        requests: &[Request],
        scratch: &mut Scratch,
        sink: &mut dyn PixelSink,
    ) -> Result<usize> {
        let layout = self.layout_of(group)?;
        let state = &self.groups[group];
        let mut readers = [None, None];
        for (done, &i) in order.iter().enumerate() {
            let request = &requests[i];
            let (_, row, info) = self.row(request.row)?;
            let source = row.source;
            let (Some(table), Some(pieces)) = (&layout.tables[source], &self.column.pieces[source]) else {
                return Ok(done);
            };
            if !table.positions_known || state.general[source].load(Ordering::Relaxed) {
                state.general[source].store(true, Ordering::Relaxed);
                return Ok(done);
            }
            let reader = match &mut readers[source] {
                Some(reader) => reader,
                none => {
                    let pages = self.pages_of(group, source, table)?;
                    none.insert(FastReader {
                        file: &self.file,
                        cache: &self.cache,
                        group,
                        source,
                        leaf: pieces.pixels,
                        pages,
                        table,
                        kept_share: self.kept_share(source, info.dtype),
                        current: None,
                        walk: PageCursor::default(),
                        wanted: 0..0,
                        loaded: None,
                    })
                }
            };
            let pieces = table.pieces(request.row - state.rows.start);
            let whole = request.region == info.shape.full() && !pieces.is_empty();
            let values = |piece| table.values(piece);
            reader.begin(if whole { values(pieces.start).start..values(pieces.end - 1).end } else { 0..0 });
            for piece in pieces {
                match reader.deliver(piece, info, &request.region, i, scratch, sink) {
                    Ok(()) => {}
                    Err(FastPathError::Error(error)) => return Err(error.row(request.row)),
                    Err(FastPathError::General) => {
                        state.general[source].store(true, Ordering::Relaxed);
                        return Ok(done);
                    }
                }
            }
            reader.end(scratch);
        }
        Ok(order.len())
    }

    /// Reads `order` (as for [`Self::read_fast`]) by the general reader.
    pub(super) fn read_general(
        &self,
        group: usize,
        order: &[usize],
        requests: &[Request],
        scratch: &mut Scratch,
        sink: &mut dyn PixelSink,
    ) -> Result<()> {
        let layout = self.layout_of(group)?;
        let start = self.groups[group].rows.start;
        for source in [CHUNKS, PLANES] {
            let mut own = vec![];
            for &i in order {
                if self.row(requests[i].row)?.1.source == source {
                    own.push(i);
                }
            }
            let Some(table) = &layout.tables[source] else { continue };
            let mut rows: Vec<_> = own.iter().map(|&i| requests[i].row - start).collect();
            rows.dedup();
            if rows.is_empty() {
                continue;
            }
            let mut reader = self.general_reader(group, source, &rows)?;
            let mut next = own.iter().copied().peekable();
            for row in rows {
                let at = |e: Error| e.row(start + row);
                let lists = reader.next_row().map_err(at)?;
                while let Some(i) = next.next_if(|&i| requests[i].row == start + row) {
                    let (_, _, info) = self.row(requests[i].row)?;
                    for (k, piece) in table.pieces(row).enumerate() {
                        let region = table.region(piece);
                        if !region.intersects(&requests[i].region) {
                            continue;
                        }
                        let data = lists
                            .pixels(k, region.shape(), info.dtype, &mut scratch.pixels)
                            .map_err(|cause| at(Error::new(self.path(), cause)))?;
                        let block = Block { region, data, dtype: info.dtype };
                        sink.put(i, &block)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn general_reader(&self, group: usize, source: usize, rows: &[usize]) -> Result<GeneralReader> {
        self.check_pixels(group, source)?;
        let total = self.groups[group].rows.len();
        GeneralReader::new(&self.file, &self.metadata, &self.column, source, group, rows, total)
    }

    /// [`Store::scan`].
    pub(super) fn scan_rows(&self, rows: Range<usize>, each: Each<'_>) -> Result<()> {
        let mut scratch = Scratch::default();
        let mut pixels = Vec::new();
        let mut row = rows.start;
        let mut ahead = RowsAhead::new(self, rows.end);
        while row < rows.end {
            ahead.before(row);
            let (group, found, info) = self.row(row)?;
            let source = found.source;
            let region = info.shape.full();
            if !self.groups[group].general[source].load(Ordering::Relaxed) {
                crate::read_region(self, row, &region, &mut scratch, &mut pixels)?;
                each(row, info, &pixels)?;
                row += 1;
                continue;
            }
            // The general reader cannot jump: one pass over the rest of the row group.
            let group_rows = self.groups[group].rows.clone();
            let end = rows.end.min(group_rows.end);
            let layout = self.layout_of(group)?;
            let of_source: Vec<_> = (row - group_rows.start..end - group_rows.start)
                .take_while(|&r| layout.rows.at(r).source == source)
                .collect();
            let Some(table) = &layout.tables[source] else {
                return Err(Error::new(self.path(), "the image has no pixels").row(row));
            };
            let mut reader = self.general_reader(group, source, &of_source)?;
            for r in of_source {
                let at = |e: Error| e.row(group_rows.start + r);
                let (_, _, info) = self.row(group_rows.start + r)?;
                let bytes = info.shape.pixels() * info.dtype.size();
                let lists = reader.next_row().map_err(at)?;
                pixels.clear();
                try_alloc::resize(&mut pixels, bytes).map_err(|cause| at(Error::new(self.path(), cause)))?;
                let mut sink = CopySink::new(vec![(info.shape.full(), info.dtype, pixels.as_mut_slice())]);
                for (k, piece) in table.pieces(r).enumerate() {
                    let region = table.region(piece);
                    let data = lists
                        .pixels(k, region.shape(), info.dtype, &mut scratch.pixels)
                        .map_err(|cause| at(Error::new(self.path(), cause)))?;
                    sink.put(0, &Block { region, data, dtype: info.dtype })?;
                }
                drop(sink);
                each(group_rows.start + r, info, &pixels)?;
                row += 1;
            }
        }
        Ok(())
    }
}
