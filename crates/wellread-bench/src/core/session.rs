//! The inputs of a benchmark, and the progress of the run.
//!
//! ```text
//!  Config, Prepared, ExpectedPixels, Frameworks ─▶ Session ─▶ a benchmark: sets to open, transforms, what must be delivered
//!                              time budget ─▶ TimeBudget ─▶ the time it has, and what is left of that
//! ```

use super::frameworks::Frameworks;
use crate::budget;
use crate::choices::Preset;
use crate::config::Config;
use crate::data::{self, FormatSet, Prepared};
use crate::expected::ExpectedPixels;
use crate::live::RunObserver;
use anyhow::{Context as _, Result};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use wellread_loader::{Crop, Scale, Transform};
use wellread_store::checksum::ImageChecksum;
use wellread_store::{OpenOptions, Store, WriteOptions};
use wellread_trace::{Kind, span};

/// The inputs of a benchmark.
pub struct Session<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The sets.
    pub prepared: &'a Prepared,
    /// The pixels that must be delivered.
    pub expected: ExpectedPixels,
    /// Options the sets were written with.
    pub write_options: WriteOptions,
    /// Options the sets are opened with.
    pub open_options: OpenOptions,
    /// Told the benchmark's name, turns done, turns in all; and current figures.
    pub watch: RunObserver<'a>,
    /// Remarks to be printed beside every benchmark's figures.
    pub notes: Vec<String>,
    /// Frameworks in Python that are measured.
    pub frameworks: &'a Frameworks,
    /// How far the run is.
    pub pace: TimeBudget,
    /// By format, what readers in Python are told of a set's files, once they were looked for.
    pub(crate) row_files: RefCell<HashMap<&'static str, RowFiles>>,
}

/// The file of each row of a set, in the rows' order; `None` where readers find them by themselves. Or why a reader of single files
/// cannot read the set.
pub(crate) type RowFiles = Result<Option<Rc<[String]>>, String>;

/// So much of its time a benchmark has for measuring, whatever came before.
const MIN_TIME_LEFT: f64 = 0.25;

/// Turns of a variant that are taken whatever the time budget: a warm-up and two rounds.
pub(crate) const MIN_ROUNDS: usize = 3;

/// A benchmark is late from so much of its time on.
const LATE_SHARE: f64 = 1.25;

/// The progress of a run, and the time of its benchmarks.
pub struct TimeBudget {
    /// The time budget of all benchmarks.
    whole: Duration,
    /// When the first benchmark began.
    began: Instant,
    /// Benchmarks in all, and those that follow the running one.
    all: usize,
    later: Cell<usize>,
    /// The time of the running one, and when it began.
    current: Cell<Duration>,
    since: Cell<Instant>,
    /// The variants of the running one, of this program and of frameworks.
    variants: Cell<usize>,
}

impl TimeBudget {
    /// For so many benchmarks from now on.
    pub(crate) fn new(whole: Duration, all: usize) -> Self {
        let current = Cell::new(budget::share(whole, Duration::ZERO, all, all));
        let now = Instant::now();
        Self {
            whole,
            began: now,
            all,
            later: Cell::new(all.saturating_sub(1)),
            current,
            since: Cell::new(now),
            variants: Cell::new(0),
        }
    }

    /// The next benchmark begins, when so many are left with it.
    pub(crate) fn next(&self, left: usize) {
        self.since.set(Instant::now());
        self.later.set(left.saturating_sub(1));
        self.current.set(budget::share(self.whole, self.began.elapsed(), left, self.all));
    }

    /// The running benchmark has so many variants.
    pub(crate) fn set_variants(&self, count: usize) {
        self.variants.set(count);
    }

    /// Seconds that each variant may take in a turn.
    fn turn_seconds(&self) -> f64 {
        self.current.get().as_secs_f64() / (self.variants.get() * MIN_ROUNDS).max(1) as f64
    }
}

impl Session<'_> {
    /// The time that the running benchmark may take.
    pub fn budget(&self) -> Duration {
        self.pace.current.get()
    }

    /// The rest of that: looks before the measurement are part of a benchmark's time. A part of it remains however long
    /// that took.
    pub fn remaining(&self) -> Duration {
        let budget = self.budget();
        budget.saturating_sub(self.pace.since.get().elapsed()).max(budget.mul_f64(MIN_TIME_LEFT))
    }

    /// Whether the running benchmark has taken more than that: figures that only stand beside its own are left out
    /// then.
    pub fn is_late(&self) -> bool {
        self.pace.since.get().elapsed() > self.budget().mul_f64(LATE_SHARE)
    }

    /// A row of the sets in a word. Crops that are stored do not tell what they were cut out of.
    pub fn thing(&self) -> &'static str {
        if self.prepared.of_images.is_some() {
            "plane"
        } else if self.config.source.cells().is_some() {
            "cell"
        } else {
            "image"
        }
    }

    /// [`Self::budget`] in seconds.
    pub fn seconds(&self) -> f64 {
        self.budget().as_secs_f64()
    }

    /// Seconds that each variant of the running benchmark may take in a turn, known once its variants run. They have equal parts,
    /// whether they are of this program or of a framework.
    pub(crate) fn turn_seconds(&self) -> f64 {
        self.pace.turn_seconds()
    }

    /// The time left of all benchmarks at most, when the running one needs so much.
    pub fn left(&self, current: Duration) -> Duration {
        let TimeBudget { whole, began, all, later, .. } = &self.pace;
        budget::left_of_all(*whole, began.elapsed(), current, later.get(), *all)
    }

    /// The sets that this program itself is measured with: all, or none where it is not asked for.
    pub fn own_sets(&self) -> &[FormatSet] {
        if self.config.rust() { &self.prepared.sets } else { &[] }
    }

    /// Opens a format's copy of the set.
    pub fn open(&self, set: &FormatSet) -> Result<Box<dyn Store>> {
        let _open = span(Kind::OpenSet);
        if self.config.in_place {
            // The known facts of the set: looking at every shape again would change the cost of opening.
            let source = &self.config.source;
            return data::open_source(&set.path, self.prepared.planes, source.cells(), source.sites());
        }
        // By its format: names of a copy are those of its images, which are put together already.
        let options = OpenOptions { format: Some(set.format.to_owned()), ..self.open_options.clone() };
        Ok(wellread_store::open(&set.path, &options)?)
    }

    /// A transform preset with the configured crop and scale.
    pub fn transform(&self, preset: Preset) -> Result<Transform> {
        let mut transform =
            preset.transform().with_context(|| format!("the loader has no transform {preset}"))?;
        if let Some((height, width)) = self.config.crop {
            transform.crop = Crop::Center { height, width };
        }
        if let Some(factor) = self.config.scale {
            transform.scale = Scale::By(factor);
        }
        Ok(transform)
    }

    /// Bytes of the files of a set.
    pub fn bytes_on_disk(&self, set: &FormatSet) -> Option<u64> {
        self.open(set).ok()?.bytes_on_disk().ok()
    }
}

/// The shape of a batch of the loop, as loaders deliver it: time points and planes are axes where there are several.
pub(crate) fn batch_shape(config: &Config, images: &[ImageChecksum]) -> Vec<usize> {
    let [t, c, z, y, x] = images.first().map_or([1; 5], |image| image.shape_tczyx);
    let (y, x) = config.crop.unwrap_or((y, x));
    let batch = config.batch_size.min(images.len());
    if t == 1 && z == 1 { vec![batch, c, y, x] } else { vec![batch, t, c, z, y, x] }
}

#[cfg(test)]
mod tests {
    use super::{Duration, MIN_ROUNDS, TimeBudget};

    #[test]
    fn variants_of_a_benchmark_have_equal_parts_of_its_time() {
        let pace = TimeBudget::new(Duration::from_mins(1), 1);
        // Two of this program and three of a framework.
        pace.set_variants(2 + 3);
        let whole = pace.turn_seconds() * (5 * MIN_ROUNDS) as f64;
        assert!((whole - 60.0).abs() < 1e-9, "{whole}");
    }
}
