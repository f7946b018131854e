//! A node of a cluster opens the model once, and computes the parts that it is given.
//!
//! ```text
//!  who has the parts put together ── number of a part ──▶ PartWorker::part ─▶ FOLDER/part-000007.parquet, as one machine writes it
//! ```

use super::options::EmbedOptions;
use super::ready::{Described, Ready, dataset_of};
use super::work::Work;
use anyhow::{Result, anyhow};
use std::path::Path;
use wellread_store::Store;

/// A set and a model that is open, on a node.
pub struct PartWorker {
    options: EmbedOptions,
    ready: Ready,
}

impl PartWorker {
    /// Opens the model.
    ///
    /// # Errors
    /// A model that cannot be opened or does not fit the images.
    pub fn open(store: Box<dyn Store>, options: EmbedOptions) -> Result<Self> {
        let ready = Ready::open(dataset_of(store, &options)?, &options)?;
        Ok(Self { options, ready })
    }

    /// The opened set and model.
    #[must_use]
    pub fn describe(&self) -> Described {
        self.ready.describe()
    }

    /// Computes a part and writes it into `folder`; how many images it is of. Its batches are those of one machine.
    ///
    /// # Errors
    /// There is no such part. An image cannot be read or its features are no numbers, unless those are left out. A disk
    /// is full.
    pub fn part(&mut self, number: usize, folder: &Path) -> Result<usize> {
        let ready = &mut self.ready;
        let images = ready.dataset.len();
        let start = number.checked_mul(ready.part).filter(|&start| start < images);
        let start = start.ok_or_else(|| anyhow!("there is no part {number} of {images} images"))?;
        let end = images.min(start.saturating_add(ready.part));
        let mut work = Work {
            options: &self.options,
            dataset: &ready.dataset,
            folder,
            whole: &|_| Ok(()),
            end,
            part: ready.part,
            next: start,
            tell: &|_| (),
        };
        work.all(&ready.loader, ready.batch, number, &mut ready.extractor)?;
        Ok(end - start)
    }
}
