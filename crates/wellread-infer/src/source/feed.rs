//! Batches of a set of images, each whole, as long as they are asked for.

use super::stored::{Stored, reason};
use crate::config::Config;
use anyhow::{Result, ensure};
use wellread_loader::{Batches, Loader, OnError, Transform};

/// Batches that are read ahead.
pub(crate) const PREFETCH_BATCHES: usize = 4;

/// The parts of loaders of a feed.
pub(super) struct LoaderParts<'s> {
    pub stored: &'s Stored,
    pub transform: Transform,
    pub batch: usize,
    pub batches: usize,
    pub config: &'s Config,
}

impl LoaderParts<'_> {
    /// Rows of a loader: those of the batches. Where images are left out, it is the whole set at least, since a loader
    /// of which nothing can be read fails.
    fn rows(&self) -> usize {
        let asked = self.batch * self.batches;
        let whole = self.stored.dataset.len().next_multiple_of(self.batch);
        if self.config.skip_unreadable { asked.max(whole) } else { asked }
    }

    /// A loader of so many rows from a row on.
    fn from(&self, first: usize) -> Result<(Batches, Loader)> {
        // Sets that are smaller than a run begin again.
        let rows: Vec<usize> = (first..first + self.rows()).map(|i| i % self.stored.dataset.len()).collect();
        let on_error = if self.config.skip_unreadable { OnError::Skip } else { OnError::Raise };
        let loader = Loader::builder(&self.stored.dataset)
            .batch_size(self.batch)
            .rows(rows)
            .transform(self.transform.clone())
            .workers(self.config.loader_workers)
            .prefetch(PREFETCH_BATCHES)
            .on_error(on_error)
            .build()?;
        Ok((loader.iter(), loader))
    }
}

/// Batches that come, each whole: where images are left out, the next ones take their place.
pub(crate) struct Feed<'s> {
    loader: LoaderParts<'s>,
    reading: (Batches, Loader),
    /// The row after those that are being read.
    next_row: usize,
    /// The batch that was handed on as it came.
    current: Option<wellread_loader::Batch>,
    /// Pixels that came in short batches; the first `used` numbers were handed on.
    pool: Vec<f32>,
    used: usize,
    /// Numbers of a batch.
    wanted: usize,
}

impl<'s> Feed<'s> {
    /// Begins with the first image; a batch has `wanted` numbers.
    ///
    /// # Errors
    /// A transform that the images do not fit.
    pub(super) fn begin(loader: LoaderParts<'s>, wanted: usize) -> Result<Self> {
        let reading = loader.from(0)?;
        let next_row = loader.rows();
        Ok(Self { loader, reading, next_row, current: None, pool: Vec::new(), used: 0, wanted })
    }

    /// The next batch.
    pub fn next(&mut self) -> Result<&[f32]> {
        self.pool.drain(..std::mem::take(&mut self.used));
        while self.pool.len() < self.wanted {
            let batch = self.delivered()?;
            if self.pool.is_empty() && batch.pixels().len() == self.wanted {
                return Ok(self.current.insert(batch).pixels());
            }
            self.pool.extend_from_slice(batch.pixels());
        }
        self.used = self.wanted;
        Ok(&self.pool[..self.wanted])
    }

    fn delivered(&mut self) -> Result<wellread_loader::Batch> {
        loop {
            if let Some(batch) = self.reading.0.next() {
                return Ok(batch?);
            }
            self.note();
            ensure!(self.loader.config.skip_unreadable, "the images are at their end");
            self.reading = self.loader.from(self.next_row)?;
            self.next_row += self.loader.rows();
        }
    }

    /// Keeps which images were left out.
    fn note(&self) {
        let stored = self.loader.stored;
        let mut skipped = stored.skipped.borrow_mut();
        for (row, error) in self.reading.0.skipped().rows() {
            skipped.entry(*row).or_insert_with(|| reason(stored.dataset.store().path(), error));
        }
    }
}

impl Drop for Feed<'_> {
    fn drop(&mut self) {
        self.note();
    }
}
