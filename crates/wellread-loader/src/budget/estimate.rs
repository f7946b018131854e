//! How much memory a read takes.

use crate::compiled_transform::ArrayPlan;
use crate::dataset::Dataset;
use crate::percentiles::TABLE_BYTES;
use wellread_store::{Result, RowInfo};

/// Bytes of lists that threads keep of each row in work, for each array that it goes to: requests, targets, places.
const BOOKKEEPING_BYTES_PER_ROW: usize = 1 << 10;
/// Floats of intermediate images that are read in one call; one image may be larger. The bound keeps memory
/// per thread small and the second pass in cache, and still lets small images be read many at a time.
pub(crate) const MAX_INTERMEDIATE_FLOATS: usize = 1 << 20;
/// Bytes to be read of which a slice of a batch is made of, so that threads share the work where images differ in size.
pub(crate) const SPLIT_BYTES: usize = 4 << 20;

/// How much memory reading takes, the output aside.
#[derive(Clone, Copy)]
pub(crate) struct MemoryEstimate<'a> {
    pub(crate) dataset: &'a Dataset,
    /// The arrays made of each row.
    pub(crate) arrays: &'a [ArrayPlan],
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
            let crops = self.arrays.iter().map(|array| crop(array, info));
            pixels = pixels.max(crops.max().unwrap_or(0));
            n += 1;
        }
        // Where a read has a price of its own, the engine decodes all its rows at once; a cache reads whole images of
        // all rows.
        let reading = if store.hints().rows_per_read > 1 { all } else { largest };
        let reading = reading.saturating_add(whole);
        let has_steps = self.arrays.iter().any(|array| array.compiled.post_process.is_some());
        let later = if floats == 0 && !has_steps {
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
            .saturating_add(n * self.bookkeeping()))
    }

    /// The same for as many rows like this one as are read in one call.
    pub(super) fn like(
        &self,
        row: usize,
        info: RowInfo,
        crops: usize,
        [slice, joined]: [usize; 2],
    ) -> Result<usize> {
        let of_array = |array: &ArrayPlan| {
            let transform = &array.compiled.transform;
            let is_direct = !transform.project
                && !transform.is_corrected()
                && transform.resize.is_none()
                && transform.max_degrees == 0.0
                && array.compiled.post_process.is_none();
            // Labels of eight bytes take twice as much as floats.
            let floats = info.dtype.size().div_ceil(4);
            let pixels = crop(array, info);
            let own = if transform.marks_unmasked() { pixels.div_ceil(4) } else { 0 };
            let each = pixels.saturating_mul(floats).saturating_add(own);
            if is_direct { 0 } else { each.saturating_mul(crops) }
        };
        let each = self.arrays.iter().map(of_array).fold(0, usize::saturating_add);
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
        Ok(one.saturating_add(others.saturating_mul(per_row.saturating_add(self.bookkeeping()))))
    }

    /// Bytes of lists that a thread keeps of a row.
    const fn bookkeeping(&self) -> usize {
        BOOKKEEPING_BYTES_PER_ROW * self.arrays.len()
    }

    /// The floats of an image in the batch: as many as it has bytes, of one each at least.
    fn output_floats(&self) -> usize {
        self.arrays.iter().map(ArrayPlan::image_bytes).max().unwrap_or(0)
    }
}

/// Pixels of the largest crop of an image, all channels.
fn crop(array: &ArrayPlan, info: RowInfo) -> usize {
    let channels = array.compiled.channels.len();
    let depth = info.shape.t().saturating_mul(channels).saturating_mul(info.shape.z());
    let (height, width) = match array.compiled.transform.crop {
        crate::Crop::Center { height, width } | crate::Crop::Random { height, width } => (height, width),
        _ => (info.shape.y(), info.shape.x()),
    };
    depth.saturating_mul(height).saturating_mul(width)
}
