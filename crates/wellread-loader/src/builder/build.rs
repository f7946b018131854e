//! From choices to a loader: they are checked against the dataset, sizes are computed, memory is shared out.
//!
//! ```text
//!  LoaderBuilder ── first row ──▶ compiled transforms, targets, order ──▶ sizes of batches and reads
//!                                                                            │ budget::fit, where memory is bounded
//!                                                                            ▼
//!                                                                         Plan ──▶ Loader
//! ```

use super::LoaderBuilder;
use crate::budget::{self, FitRequest, MemoryEstimate, ReadAhead};
use crate::dataset::Dataset;
use crate::loader::Loader;
use crate::order::{RankBatches, RowOrder, Rows};
use crate::plan::Plan;
use crate::pool::lay_out;
use crate::skip::OnError;
use std::sync::Arc;
use wellread_store::row_location::path_of_set;
use wellread_store::words::{counted, there_are};
use wellread_store::{Error, Result};

/// Bytes of output below which a batch is not split among threads, and that each part has at least. Reading
/// many small images at once is cheaper than a wake-up of another thread.
const SLICE_BYTES: usize = 1 << 20;
/// Batches read ahead unless told otherwise, at least: with two, one worker and the thread that waits wait for each other.
const MIN_READ_AHEAD: usize = 4;
/// The most stored bytes of an image for which the thread that waits for a batch reads, too. It must be there when its
/// batch is, and when it is told to stop.
const CONSUMER_READS_BYTES: usize = 16 << 20;
/// Bytes of the batches of one joined read, at most.
const JOINED_BYTES: usize = 64 << 20;

impl LoaderBuilder {
    /// Makes the loader. Reads the first row's shape, and the names or columns that the order asks for, with targets all
    /// names; no pixels.
    ///
    /// # Errors
    /// A choice that makes no sense or does not fit the first row. Rows that do not exist, nothing to load, or images
    /// without a target.
    pub fn build(self) -> Result<Loader> {
        let rows = self.checked_rows()?;
        let transforms = self.view_transforms()?;
        let images = self.plan_images(&rows, &transforms)?;
        if matches!(self.on_error, OnError::Raise) {
            images.check_groups(&self.dataset, &rows)?;
        }
        let targets = self.targets.as_ref().map(|targets| self.plan_targets(targets, &rows, &transforms));
        let targets = targets.transpose()?;
        let (row, info) = (images.reference.row, images.reference.info);
        let store = self.dataset.store();
        let order = match self.local {
            None => RowOrder::new(&self.order, rows.clone(), store)?,
            Some((_, every)) => RowOrder::local(&self.order, rows.clone(), store, every)?,
        };
        let rank_batches = self.checked_rank_batches(&order)?;
        // Never more than there are rows: a huge batch size costs nothing.
        let largest = rank_batches.batch_size.min(order.len().div_ceil(rank_batches.world));
        let arrays = images.arrays.iter().chain(targets.iter().flat_map(|(set, _)| &set.arrays));
        let laid = lay_out(arrays.map(|array| (array.shape, array.dtype())), self.crops, largest);
        // A second copy of everything must be countable as well.
        let laid = laid.filter(|(_, bytes)| bytes.checked_mul(4).is_some());
        let (layout, bytes) = laid.ok_or_else(|| {
            let count = counted(largest * self.crops, "image");
            let shape = images.arrays[0].shape;
            self.refusal(format_args!("a batch of {count} of {shape} exceeds all memory"))
                .row(row)
                .hint("choose a smaller batch size")
        })?;
        let slices = (bytes / SLICE_BYTES).clamp(1, largest);
        let slice = |joined| if joined > 1 { largest } else { largest.div_ceil(slices) };
        let of_targets = targets.as_ref().map(|(set, _)| set.reference.info);
        let each = [Some(info), of_targets].into_iter().flatten();
        let each = each.map(|info| info.shape.checked_bytes(info.dtype).unwrap_or(usize::MAX));
        let stored = each.fold(0, usize::saturating_add);
        let sets = [Some(&self.dataset), self.targets.as_ref().map(|targets| &targets.dataset)];
        let is_remote = sets.into_iter().flatten().any(Dataset::is_remote);
        // The reader of batches looks for signals: it never waits for a network.
        let consumer_may_read = stored <= CONSUMER_READS_BYTES && !is_remote;
        let mut read_ahead = self.read_ahead(&rank_batches, [largest, bytes], consumer_may_read);
        let mut memory = None;
        let mut ahead = Some(u64::MAX);
        if let Some(limit) = self.memory {
            let for_link = budget::ahead_share(limit, is_remote);
            ahead = (for_link > 0).then_some(for_link as u64);
            let estimate = MemoryEstimate { dataset: &self.dataset, arrays: &images.arrays };
            let of_targets = self.targets.as_ref().zip(targets.as_ref());
            let of_targets = of_targets.map(|(chosen, (set, pairs))| {
                (MemoryEstimate { dataset: &chosen.dataset, arrays: &set.arrays }, pairs)
            });
            let request = FitRequest {
                limit,
                estimate,
                targets: of_targets,
                rows: &rows,
                crops: self.crops,
                largest,
                bytes,
                slice: slice(read_ahead.joined),
                read_ahead,
                is_remote,
            };
            let (fitting, used) = budget::fit(&request)?;
            (read_ahead, memory) = (fitting, Some(used));
        }
        let plan = Plan {
            images,
            targets,
            layout: layout.into(),
            bytes,
            order,
            seed: self.seed,
            rank_batches,
            nodes: self.local.map(|(nodes, _)| nodes),
            crops: self.crops,
            on_error: self.on_error,
            read_ahead,
            slice_rows: slice(read_ahead.joined),
            largest,
            ahead,
            memory,
            source: self.source,
            fingerprints: Default::default(),
        };
        let targets = self.targets.map(|targets| targets.dataset);
        Ok(Loader::new(plan, self.dataset, targets, self.epoch))
    }

    /// The error of a choice.
    fn refusal(&self, cause: impl std::fmt::Display) -> Error {
        Error::new(path_of_set(self.dataset.store()), cause)
    }

    /// The rows that are loaded. Choices that make no sense are refused, as far as that shows without a look at the rows.
    fn checked_rows(&self) -> Result<Rows> {
        if self.dataset.is_empty() {
            let hint = if self.dataset.is_of_rows() {
                "a selection, a split or a filter left none: look at the values of its columns"
            } else {
                "check that this is the right file or folder"
            };
            return Err(self.refusal("there are no images to load").hint(hint));
        }
        if self.batch_size == 0 {
            return Err(self.refusal("the batch size is 0").hint("give at least 1"));
        }
        if self.crops == 0 || !self.batch_size.is_multiple_of(self.crops) {
            let (images, crops) = (counted(self.batch_size, "image"), counted(self.crops, "crop"));
            return Err(self
                .refusal(format_args!("a batch of {images} cannot hold {crops} of each row"))
                .hint("give a batch size that is a multiple of the crops per image"));
        }
        if self.prefetch == Some(0) {
            return Err(self
                .refusal("prefetch is 0 batches")
                .hint("give at least 1, or workers(0) to read each batch when it is asked for"));
        }
        let rows = match &self.rows {
            None => Rows::All(self.dataset.len()),
            Some(rows) => Rows::Some(Arc::clone(rows)),
        };
        if let Rows::Some(rows) = &rows {
            if rows.is_empty() {
                return Err(self
                    .refusal("an empty list of rows was selected")
                    .hint("give at least one row; a split or a filter may have left none"));
            }
            if let Some(row) = rows.iter().find(|&&row| row >= self.dataset.len()) {
                let there = there_are(self.dataset.len(), self.dataset.store().hints().thing());
                return Err(self
                    .refusal(format_args!("row {row} was selected, but {there}"))
                    .hint("rows are counted from 0"));
            }
        }
        // Rows that cannot be read are an error when their turn comes; those that lack a file are known now.
        if matches!(self.on_error, OnError::Raise) {
            self.dataset.store().hints().complete((0..rows.len()).map(|i| rows.get(i)))?;
        }
        let (rank, world) = (self.rank, self.world);
        if rank >= world {
            return Err(self
                .refusal(format_args!("there is no rank {rank} of {world}"))
                .hint("ranks are counted from 0, and there is at least one"));
        }
        if let Some((nodes, _)) = self.local
            && world.checked_rem(nodes) != Some(0)
        {
            let [ranks, nodes] = [counted(world, "rank"), counted(nodes, "node")];
            return Err(self
                .refusal(format_args!("{ranks} on {nodes} are not equally many on each"))
                .hint("a part for each node needs equally many ranks on each; or let all ranks divide the whole set"));
        }
        Ok(rows)
    }

    /// The batches of an epoch in this order, counted in rows. There must be one.
    fn checked_rank_batches(&self, order: &RowOrder) -> Result<RankBatches> {
        let world = self.world;
        let rank_batches = RankBatches {
            images: order.len(),
            first: 0,
            batch_size: self.batch_size / self.crops,
            rank: self.rank,
            world,
            uneven: self.uneven,
            drop_last: self.drop_last,
            turn: 0,
            turns: 1,
        };
        if rank_batches.len() > 0 {
            return Ok(rank_batches);
        }
        if !self.drop_last {
            let images = counted(order.len(), "image");
            return Err(self
                .refusal(format_args!(
                    "there are more ranks than images: {world} ranks, {images}, and leaving out images that do not \
                     divide leaves none"
                ))
                .hint(format_args!(
                    "choose {} ranks at most, or let ranks have the same images, by uneven=\"pad\" (Uneven::Pad)",
                    order.len()
                )));
        }
        let ranks = if world == 1 { String::new() } else { format!(" on each of {world} ranks") };
        Err(self
            .refusal(format_args!(
                "dropping the last batch leaves none: {}, batches of {}{ranks}",
                counted(order.len() * self.crops, "image"),
                self.batch_size
            ))
            .hint("choose a smaller batch size or keep the last batch"))
    }

    /// The distance at which is read ahead where memory is not bounded. `largest` and `bytes` are the rows and the size of a batch.
    fn read_ahead(
        &self,
        rank_batches: &RankBatches,
        [largest, bytes]: [usize; 2],
        consumer_may_read: bool,
    ) -> ReadAhead {
        let threads = self.workers.max(1);
        // Each thread's read fills a run of batches while the runs before are delivered.
        let room =
            self.prefetch.map_or(usize::MAX, |p| if self.workers == 0 { p } else { p / (threads + 1) });
        let joined = self
            .dataset
            .store()
            .hints()
            .rows_per_read
            .div_ceil(largest)
            .min(JOINED_BYTES / bytes.max(1))
            .min(room)
            .min(rank_batches.len())
            .max(1);
        let ahead = match self.workers {
            _ if joined > 1 => joined * (threads + 1),
            0 => 1,
            workers => (2 * workers).max(MIN_READ_AHEAD),
        };
        ReadAhead {
            workers: self.workers,
            consumer_reads: self.workers > 0 && joined == 1 && consumer_may_read,
            prefetch: self.prefetch.unwrap_or(ahead).max(1),
            joined,
        }
    }
}
