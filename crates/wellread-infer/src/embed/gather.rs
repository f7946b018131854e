//! A table whose parts the nodes of a cluster compute: which are left, which are whole, and all of them put together.
//!
//! ```text
//!  Gatherer::new ─▶ a node has opened the model: begin ─▶ parts that are left ─▶ nodes ─ completed(part) … ─▶ finish: the table
//! ```

use super::fingerprint::ModelRecord;
use super::making::{UnfinishedTable, check_out, complete, summary};
use super::options::EmbedOptions;
use super::outcome::{Event, Summary};
use super::ready::{Described, dataset_of};
use anyhow::{Context as _, Result};
use std::path::PathBuf;
use wellread_loader::Dataset;
use wellread_measure::clock::Stopwatch;
use wellread_store::{Error, Store};

/// The work that is left.
#[derive(Debug)]
pub enum RemainingWork {
    /// Nothing: the table is there, and is what would be written.
    Nothing(Summary),
    /// Parts, by their numbers.
    Parts {
        /// Their numbers, ascending.
        parts: Vec<usize>,
        /// Images of them.
        images: usize,
        /// Where nodes write them.
        folder: PathBuf,
    },
}

/// A table that is being made by others.
pub struct Gatherer<'a> {
    options: &'a EmbedOptions,
    dataset: Dataset,
    begun: Option<Begun>,
}

struct Begun {
    making: UnfinishedTable,
    model: ModelRecord,
    resumed: usize,
    begin: Stopwatch,
}

impl<'a> Gatherer<'a> {
    /// Checks what can be checked before a model is open. Nothing is written yet.
    ///
    /// # Errors
    /// A table that is there; columns that the set does not have.
    pub fn new(store: Box<dyn Store>, options: &'a EmbedOptions) -> Result<Self> {
        check_out(options)?;
        Ok(Self { options, dataset: dataset_of(store, options)?, begun: None })
    }

    /// Begins with what a node has opened, or goes on with what an interrupted run has left.
    ///
    /// # Errors
    /// The node has another set. A table is there. There are parts of something else.
    pub fn begin(&mut self, opened: &Described, tell: &dyn Fn(&Event<'_>)) -> Result<RemainingWork> {
        let (options, images) = (self.options, self.dataset.len());
        let store = self.dataset.store();
        if opened.images != images || opened.part == 0 {
            let cause = format!("has {} images on a node, and {images} here", opened.images);
            return Err(Error::new(store.path(), cause).hint("all nodes must see the same files").into());
        }
        tell(&Event::Opened(&opened.backend, &opened.notes));
        let model = ModelRecord {
            name: options.model.to_string(),
            sha256: opened.sha256.clone(),
            // The line that the node made has it.
            data: None,
            backend: opened.backend.clone(),
        };
        if let Some(found) = complete(options, &opened.made_of, store)? {
            return Ok(RemainingWork::Nothing(Summary {
                complete: true,
                ..summary(found, &model, options, images, 0.0)
            }));
        }
        let making = UnfinishedTable::begin(options, &opened.made_of, [images, opened.part], tell)?;
        let parts = making.left(store);
        let left: usize = parts.iter().map(|&part| making.images_of(part)).sum();
        let resumed = images - left;
        if resumed > 0 {
            tell(&Event::Resumed(resumed));
        }
        let folder = making.folder.clone();
        self.begun = Some(Begun { making, model, resumed, begin: Stopwatch::start() });
        Ok(RemainingWork::Parts { parts, images: left, folder })
    }

    /// Notes that a part is whole.
    ///
    /// # Errors
    /// The journal cannot be written; nothing was begun.
    pub fn completed(&self, part: usize) -> Result<()> {
        self.begun.as_ref().context("no node has opened the model")?.making.completed(part)
    }

    /// Puts the parts together and moves the table to its place.
    ///
    /// # Errors
    /// A part is missing or damaged; a disk that is full. The parts are kept.
    pub fn finish(self, tell: &dyn Fn(&Event<'_>)) -> Result<Summary> {
        let Begun { making, model, resumed, begin } = self.begun.context("no node has opened the model")?;
        let joined = making.finish(self.options, self.dataset.store(), &model, tell)?;
        Ok(summary(joined, &model, self.options, resumed, begin.elapsed()))
    }

    /// Leaves the parts for a later run, if there is one at all.
    pub fn give_up(self) {
        if let Some(begun) = self.begun {
            begun.making.give_up(self.options);
        }
    }
}
