//! Reading the rows of a group, in order of position, each crop to its place.

use super::{ItemContext, Job};
use crate::dataset::Dataset;
use crate::kernels::{bytes_of, plane};
use crate::pool::RowMemory;
use crate::simd::Level;
use crate::sink::{FusedSink, MASK_UNSET, PixelDestination, Target};
use std::ops::Range;
use wellread_image::Region;
use wellread_store::cover::Rectangle;
use wellread_store::place::bytes_read;
use wellread_store::row_location::path_of_set;
use wellread_store::{Error, Request, Result, RowHints, RowInfo};

/// Floats of an image that have memory without more ado: 64 MiB.
const FREE_FLOATS: usize = 16 << 20;

/// Makes `buffer` at least `len` long; its content stays, so nothing is written when it is long enough.
pub(super) fn grow(buffer: &mut Vec<f32>, len: usize, dataset: &Dataset) -> Result<()> {
    if buffer.len() < len {
        buffer.try_reserve_exact(len - buffer.len()).map_err(|_| {
            let cause = format_args!("not enough memory for an image of {len} floats");
            Error::new(path_of_set(dataset.store()), cause)
        })?;
        buffer.resize(len, 0.0);
    }
    Ok(())
}

/// As [`grow`], for floats of `row`: its store says of large ones first whether there are so many pixels. A damaged shape must not cost
/// memory.
pub(super) fn grow_for(
    (row, info): (usize, RowInfo),
    buffer: &mut Vec<f32>,
    len: usize,
    dataset: &Dataset,
) -> Result<()> {
    if len > FREE_FLOATS {
        dataset.store().check(&Request { row, region: info.shape.full() })?;
    }
    grow(buffer, len, dataset)
}

impl super::Item {
    /// Where the floats begin whose bytes tell the pixels that a mask left in.
    fn mask_start(&self) -> Option<usize> {
        match self.destination {
            PixelDestination::Untransformed { start } | PixelDestination::Maximum { start }
                if self.mask_floats > 0 =>
            {
                Some(start + self.intermediate - self.mask_floats)
            }
            _ => None,
        }
    }
}

impl ItemContext {
    /// The requests that reading some rows comes to, as they will be made; nothing is read but what tells what the rows are.
    pub(crate) fn requests(
        &mut self,
        job: &Job<'_>,
        rows: &[usize],
        occurrences: &[u64],
    ) -> Result<&[Request]> {
        self.plan(job, rows, occurrences, rows.len(), usize::MAX)?;
        self.find_requests(job, 0..self.items.len())?;
        self.take_traffic();
        Ok(&self.requests)
    }

    /// Finds the requests of the items `group`, in order of position, and the targets that each serves.
    fn find_requests(&mut self, job: &Job<'_>, group: Range<usize>) -> Result<()> {
        let store = job.dataset.store();
        // The same of all arrays.
        let shared = &job.arrays[0].compiled;
        self.by_position.clear();
        let rows = group.step_by(job.per_row());
        self.by_position.extend(rows.map(|first| {
            let hints = store.row_hints(self.items[first].row);
            (hints.map_or(u64::MAX, RowHints::position), first)
        }));
        self.by_position.sort_unstable();
        self.requests.clear();
        self.serves.clear();
        self.targets.clear();
        for &(_, first) in &self.by_position {
            let items = &self.items[first..first + job.per_row()];
            let (row, info) = (items[0].row, items[0].info);
            let grid = if items.len() > 1 { store.row_hints(row)?.grid() } else { None };
            self.cover.find(items.iter().map(super::Item::crop), grid);
            let runs = shared.runs_of(job.dataset, row, items[0].has_other_channel_order)?;
            for run in &*runs {
                let region = |[rows, columns]: &Rectangle| Region {
                    start: [0, run.from, 0, rows.start, columns.start],
                    size: [info.shape.t(), run.count, info.shape.z(), rows.len(), columns.len()],
                };
                let served = self.targets.len()..self.targets.len() + items.len();
                for item in items {
                    let region = region(&item.crop());
                    self.traffic.used += (region.pixels() * info.dtype.size()) as u64;
                    self.targets.push(Target {
                        info,
                        region,
                        destination: item.destination,
                        channels: shared.channels.len(),
                        first_channel: run.to,
                        affine: item.affine,
                        orientation: item.orientation,
                        mask_start: item.mask_start(),
                        missing: region.pixels(),
                    });
                }
                for area in &self.cover.boxes {
                    self.requests.push(Request { row, region: region(area) });
                    self.serves.push(served.clone());
                }
            }
        }
        Ok(())
    }

    /// Reads the items `group`, whole rows of [`Job::per_row`] each, whose intermediate images have `floats` together. Views and crops
    /// of a row are cut out of one read.
    pub(super) fn read_group(
        &mut self,
        job: &Job<'_>,
        group: Range<usize>,
        floats: usize,
        out: &mut [RowMemory<'_>],
    ) -> Result<()> {
        // Rows together have few: one of many is alone.
        let super::Item { row, info, .. } = self.items[group.start];
        grow_for((row, info), &mut self.intermediate, floats, job.dataset)?;
        self.find_requests(job, group.clone())?;
        for item in &self.items[group] {
            if let PixelDestination::Maximum { start } = item.destination {
                let planes = &mut self.intermediate[start..start + item.intermediate - item.mask_floats];
                let whole = planes.len() * 4 / item.info.dtype.size() * item.info.dtype.size();
                plane::fill_lowest(item.info.dtype, &mut bytes_of(planes)[..whole]);
            }
            if let Some(start) = item.mask_start() {
                bytes_of(&mut self.intermediate[start..start + item.mask_floats]).fill(MASK_UNSET);
            }
        }
        let (store, shared) = (job.dataset.store(), &job.arrays[0].compiled);
        let mut sink = FusedSink {
            path: store.path(),
            requests: &self.requests,
            serves: &self.serves,
            targets: &mut self.targets,
            out,
            output: shared.output,
            intermediate: &mut self.intermediate,
            affine: &self.affine,
            level: Level::detect(),
            stop: job.stop,
        };
        let before = bytes_read();
        let result = store.read(&self.requests, &mut self.scratch, &mut sink);
        self.traffic.read += bytes_read().wrapping_sub(before);
        result?;
        sink.check_complete()
    }
}
