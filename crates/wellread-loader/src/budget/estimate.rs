//! How much memory a read takes.

use crate::compiled_transform::CompiledTransform;
use crate::dataset::Dataset;
use crate::percentiles::TABLE_BYTES;
use wellread_store::{Result, RowInfo};

/// Bytes per row of lists that threads keep of the rows in work: requests, targets, places.
const BOOKKEEPING_BYTES_PER_ROW: usize = 1 << 10;
/// Floats of intermediate images that are read in one call; one image may be larger. The bound keeps memory
/// per thread small and the second pass in cache, and still lets small images be read many at a time.
pub(crate) const MAX_INTERMEDIATE_FLOATS: usize = 1 << 20;
/// Bytes to be read of which a slice of a batch is made of, so that threads share the work where images differ in size.
pub(crate) const SPLIT_BYTES: usize = 4 << 20;

/// How much memory reading takes, the output aside.
pub(crate) struct MemoryEstimate<'a> {
    pub(crate) dataset: &'a Dataset,
    pub(crate) compiled: &'a CompiledTransform,
    /// Bytes of an image in the batch.
    pub(crate) output: usize,
}

impl MemoryEstimate<'_> {
    /// Bytes that reading rows in one call takes, `floats` of them in the intermediate buffer.
    pub(crate) fn of(&self, rows: impl Iterator<Item = (usize, RowInfo)>, floats: usize) -> Result<usize> {
        let store = self.dataset.store();
        let (mut largest, mut all, mut whole, mut pixels, mut n) = (0usize, 0usize, 0usize, 0usize, 0usize);
        for (row, info) in rows {
            let working = store.row_hints(row)?.working_bytes()?;
            largest = largest.max(working);
            all = all.saturating_add(working);
            if self.dataset.is_cached() {
                let kept = self.dataset.kept_info(row)?;
                let kept = kept.shape.checked_bytes(kept.dtype).unwrap_or(usize::MAX);
                whole = whole.saturating_add(kept).min(self.dataset.kept_at_once().max(kept));
            }
            pixels = pixels.max(self.crop(info));
            n += 1;
        }
        // Where a read has a price of its own, the engine decodes all its rows at once; a cache reads whole images of
        // all rows.
        let reading = if store.hints().rows_per_read > 1 { all } else { largest };
        let reading = reading.saturating_add(whole);
        let later = if floats == 0 && self.compiled.post_process.is_none() {
            0
        } else {
            // Straight and turned, then as floats of the output's size, a plane between, values near a percentile.
            (2 * pixels)
                .saturating_add(3 * self.output_floats())
                .saturating_mul(4)
                .saturating_add(TABLE_BYTES)
        };
        Ok(reading
            .saturating_add(floats.saturating_mul(4))
            .saturating_add(later)
            .saturating_add(n * BOOKKEEPING_BYTES_PER_ROW))
    }

    /// The same for as many rows like this one as are read in one call.
    pub(super) fn like(
        &self,
        row: usize,
        info: RowInfo,
        crops: usize,
        [slice, joined]: [usize; 2],
    ) -> Result<usize> {
        let transform = &self.compiled.transform;
        let is_direct = !transform.project
            && !transform.is_corrected()
            && transform.resize.is_none()
            && transform.max_degrees == 0.0
            && self.compiled.post_process.is_none();
        let each = if is_direct { 0 } else { self.crop(info).saturating_mul(crops) };
        let floats = each.max(each.saturating_mul(slice).min(MAX_INTERMEDIATE_FLOATS));
        let one = self.of(std::iter::once((row, info)), floats)?;
        let others = slice.saturating_mul(joined).saturating_sub(1);
        let per_row = if self.dataset.store().hints().rows_per_read > 1 {
            self.dataset.store().row_hints(row)?.working_bytes()?
        } else if self.dataset.is_cached() {
            let kept = self.dataset.kept_info(row)?;
            kept.shape.checked_bytes(kept.dtype).unwrap_or(usize::MAX).min(SPLIT_BYTES / others.max(1))
        } else {
            0
        };
        Ok(one.saturating_add(others.saturating_mul(per_row.saturating_add(BOOKKEEPING_BYTES_PER_ROW))))
    }

    /// Pixels of the largest crop of an image, all channels.
    fn crop(&self, info: RowInfo) -> usize {
        let depth =
            info.shape.t().saturating_mul(self.compiled.channels.len()).saturating_mul(info.shape.z());
        let (height, width) = match self.compiled.transform.crop {
            crate::Crop::Center { height, width } | crate::Crop::Random { height, width } => (height, width),
            _ => (info.shape.y(), info.shape.x()),
        };
        depth.saturating_mul(height).saturating_mul(width)
    }

    const fn output_floats(&self) -> usize {
        // Of one byte at least.
        self.output
    }
}
