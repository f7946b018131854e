//! Where a loop's batches come from, so that runs differ in one thing. They come from cold files, warm files, decoded images in memory,
//! batches that are full already.
//!
//! ```text
//!  BatchSource::Cold       pages of the files dropped, and that counted ─▶ read ─▶ decode ─▶ assemble ─▶ step
//!  BatchSource::Warm                              files in the page cache ─▶ decode ─▶ assemble ─▶ step
//!  BatchSource::Cached                               decoded images in the memory cache ─▶ assemble ─▶ step
//!  BatchSource::Synthetic                                          batches that were filled before ─▶ step
//! ```
//!
//! Two neighbours differ by the time that one stage adds to a step where nothing hides it. This is data wait by difference (Mohan et al.
//! 2021, "Analyzing and mitigating data stalls in DNN training", <https://doi.org/10.14778/3446095.3446100>). A set is opened anew for
//! each run, outside the clock: mapped files would keep their pages.

use crate::page_files::{not_here, read_back};
use anyhow::{Result, bail};
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wellread_loader::{Batch, Cache, Dataset, Loader, Transform};
use wellread_measure::clock::Stopwatch;
use wellread_measure::page_cache;
use wellread_store::Store;

/// Where batches come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchSource {
    /// Files that are not in the page cache.
    Cold,
    /// Files in the page cache.
    Warm,
    /// Decoded images in memory.
    Cached,
    /// Batches that are full already.
    Synthetic,
}

/// How much of an iteration is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLength {
    /// Every row once, from starting the threads on.
    Once,
    /// So many steps of an epoch without end, once what is read ahead has been: the rows come again and again. It has
    /// no use with [`BatchSource::Cold`]. Each time they are decoded, also where the store keeps decoded pixels.
    Steady(usize),
}

/// How a loader is built.
#[derive(Clone, Debug)]
pub struct LoaderSettings {
    /// Images of a batch; no more than there are rows.
    pub batch_size: usize,
    /// Threads that read ahead.
    pub workers: usize,
    /// Seed of the order.
    pub seed: u64,
    /// The transform of each image.
    pub transform: Transform,
    /// The cache for images, but for [`BatchSource::Cached`], which keeps all.
    pub cache: Cache,
    /// Bytes that the loader holds at most.
    pub memory: Option<u64>,
    /// Batches read ahead; `None` for the loader's choice.
    pub prefetch: Option<usize>,
}

/// Opens the set.
pub type Open<'a> = dyn Fn() -> Result<Box<dyn Store>> + 'a;

/// The work on each batch.
pub type Step<'s> = dyn FnMut(&Batch) -> Result<()> + 's;

/// Some rows of a set, delivered from any [`BatchSource`].
pub struct Feed<'a> {
    open: Box<Open<'a>>,
    rows: Vec<usize>,
    how: LoaderSettings,
    /// Whether the rows' files are in the page cache, as far as this feed has seen to it.
    warm: Cell<bool>,
    /// Files whose pages were dropped, all of which had been there.
    dropped: RefCell<Vec<PathBuf>>,
    full: RefCell<Vec<Batch>>,
}

/// The result of one run. Times are seconds.
#[derive(Clone, Debug, Default)]
pub struct Pass {
    /// From asking for each batch to having it.
    pub waits: Vec<f64>,
    /// The seconds of work on each.
    pub computes: Vec<f64>,
    /// Images of these batches.
    pub images: usize,
    /// All of it; with [`RunLength::Once`] starting the threads too.
    pub seconds: f64,
    /// Why the files were not cold though they should have been.
    pub not_cold: Option<String>,
    /// Bytes and images that the cache of [`LoaderSettings::cache`] keeps.
    pub kept: (usize, usize),
}

impl Pass {
    /// Mean of a step.
    pub fn step(&self) -> f64 {
        self.seconds / self.computes.len().max(1) as f64
    }

    /// Mean time of what was done with a batch.
    pub fn compute(&self) -> f64 {
        self.computes.iter().sum::<f64>() / self.computes.len().max(1) as f64
    }

    /// Time of an image.
    pub fn image(&self) -> f64 {
        self.seconds / self.images.max(1) as f64
    }
}

/// Full batches that [`BatchSource::Synthetic`] takes in turn, so that a model reads as much memory as from a loader's.
const FULL: usize = 4;

/// Batches that a loader reads ahead and a little more, so that its queue is as it will be.
pub(crate) fn ahead(prefetch: Option<usize>, workers: usize) -> usize {
    prefetch.unwrap_or((2 * workers).max(4)) + 2
}

impl<'a> Feed<'a> {
    /// These rows of the set that `open` opens. A row that is named twice comes twice.
    pub fn new(open: Box<Open<'a>>, rows: Vec<usize>, how: LoaderSettings) -> Self {
        let warm = Cell::new(false);
        Self { open, rows, how, warm, dropped: RefCell::default(), full: RefCell::default() }
    }

    /// Batches of a run over all rows.
    pub fn steps(&self) -> usize {
        self.rows.len() / self.how.batch_size.max(1)
    }

    /// Runs `step` over batches from `place`, in the order of `epoch`.
    ///
    /// # Errors
    /// The error of the set, the loader or `step`. Files that stay in the page cache are none
    /// ([`Pass::not_cold`]).
    pub fn pass(&self, place: BatchSource, span: RunLength, epoch: u64, step: &mut Step<'_>) -> Result<Pass> {
        if place == BatchSource::Synthetic {
            return self.synthetic(span, step);
        }
        let not_cold = if place == BatchSource::Cold { self.drop_pages()? } else { None };
        let cache = if place == BatchSource::Cached { &Cache::MEMORY } else { &self.how.cache };
        let dataset = Dataset::from_store((self.open)()?).with_cache(cache)?;
        if *cache != Cache::None || (place == BatchSource::Warm && !self.warm.get()) {
            let filling = self.loader(&dataset, self.rows.clone())?;
            for batch in filling.iter_at(epoch, 0) {
                batch?;
            }
            self.warm.set(true);
            dataset.store().hints().forget_pages();
        }
        let (rows, skipped) = match span {
            RunLength::Once => (self.rows.clone(), 0),
            RunLength::Steady(steps) => self.endless(steps),
        };
        let loader = self.loader(&dataset, rows)?;
        let before = dataset.cache_report();
        let wanted = match span {
            RunLength::Once => self.steps(),
            RunLength::Steady(steps) => steps,
        };
        let mut pass = Pass { not_cold, ..Pass::default() };
        let mut clock = Stopwatch::start();
        let mut batches = loader.iter_at(epoch, 0);
        let mut number = 0;
        while pass.waits.len() < wanted {
            if number == skipped {
                clock = Stopwatch::start();
            }
            let waiting = Stopwatch::start();
            let Some(batch) = batches.next() else { break };
            let batch = batch?;
            let wait = waiting.elapsed();
            if matches!(span, RunLength::Steady(_)) {
                // The same few rows come again. Those of a set are many, and are decoded each time.
                dataset.store().hints().forget_pages();
            }
            let computing = Stopwatch::start();
            step(&batch)?;
            if number >= skipped {
                pass.waits.push(wait);
                pass.computes.push(computing.elapsed());
                pass.images += batch.len();
            }
            number += 1;
        }
        pass.seconds = clock.elapsed();
        if pass.images == 0 {
            bail!("the loader delivered no batch");
        }
        let after = dataset.cache_report();
        pass.kept = (after.bytes, after.images);
        if place == BatchSource::Cached && after.misses > before.misses {
            bail!("the memory cache did not keep all images of the sample");
        }
        self.warm.set(true);
        Ok(pass)
    }

    /// Rows of an epoch that goes on for so many steps and what is read ahead of them, and the steps before them.
    fn endless(&self, steps: usize) -> (Vec<usize>, usize) {
        let ahead = ahead(self.how.prefetch, self.how.workers);
        let images = (steps + 2 * ahead) * self.how.batch_size;
        (self.rows.iter().copied().cycle().take(images).collect(), ahead)
    }

    fn loader(&self, dataset: &Dataset, rows: Vec<usize>) -> Result<Loader> {
        let how = &self.how;
        let builder = Loader::builder(dataset)
            .rows(rows)
            .batch_size(how.batch_size)
            .drop_last(true)
            .shuffle(how.seed)
            .workers(how.workers)
            .transform(how.transform.clone());
        Ok(crate::core::bounds::bounded(builder, how.memory, how.prefetch).build()?)
    }

    fn synthetic(&self, span: RunLength, step: &mut Step<'_>) -> Result<Pass> {
        let mut full = self.full.borrow_mut();
        if full.is_empty() {
            let dataset = Dataset::from_store((self.open)()?);
            for batch in self.loader(&dataset, self.rows.clone())?.iter_at(0, 0).take(FULL) {
                full.push(batch?);
            }
        }
        let steps = match span {
            RunLength::Once => self.steps(),
            RunLength::Steady(steps) => steps,
        };
        let mut pass = Pass::default();
        let clock = Stopwatch::start();
        for batch in full.iter().cycle().take(steps) {
            let computing = Stopwatch::start();
            step(batch)?;
            pass.computes.push(computing.elapsed());
            pass.waits.push(0.0);
            pass.images += batch.len();
        }
        pass.seconds = clock.elapsed();
        if pass.images == 0 {
            bail!("the loader delivered no batch");
        }
        Ok(pass)
    }

    /// Files that the rows are read from: of a folder of thousands, those of the sample.
    fn files(&self) -> Result<Vec<PathBuf>> {
        Ok((self.open)()?.files_of(&self.rows)?)
    }

    /// Drops the pages of the rows' files; says why where some stayed.
    ///
    /// # Errors
    /// A set that cannot be opened.
    pub fn drop_pages(&self) -> Result<Option<String>> {
        let files = self.files()?;
        if let Some(why) = not_here(&files) {
            return Ok(Some(why));
        }
        self.warm.set(false);
        let report = page_cache::drop_pages(&files);
        // Those of a set that exceeds the memory were not all there, and cannot all come back. Single pages may have gone.
        if report.resident_before.is_some_and(|before| before as f64 >= 0.99 * report.bytes as f64) {
            *self.dropped.borrow_mut() = files;
        }
        Ok((!report.complete).then(|| report.reason.unwrap_or_else(|| "pages stayed".to_owned())))
    }

    /// Reads the files again that a cold run dropped, if all had been in the page cache: warm runs may read other rows of them.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn restore_pages(&self) -> Result<()> {
        read_back(self.dropped.take()).map(drop)
    }
}

/// Time before the end of a stand-in from which on it watches the clock: sleeping ends late by about as much.
const SPIN_BEFORE_END: f64 = 2e-4;

/// Stands in for a model on a device of its own: really takes `seconds`, and leaves the processor to the loader
/// meanwhile. It sleeps, and watches the clock at the end.
pub fn simulate_step(seconds: f64) {
    let end = Instant::now() + Duration::from_secs_f64(seconds.max(0.0));
    if seconds > 2.0 * SPIN_BEFORE_END {
        std::thread::sleep(Duration::from_secs_f64(seconds - SPIN_BEFORE_END));
    }
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests;
