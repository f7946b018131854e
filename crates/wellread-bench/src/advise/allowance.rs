//! The parts of a study that the time allows, predicted from the time to read an image.
//!
//! A study consists of steady runs of a loader. Each of these reads what the loader reads ahead, twice over, before it
//! has counted a step. Where images are few and large, one such run may take longer than a section has, so that
//! fewer rounds do not help. Batches and the sample then become smaller, and whole sections are left out.

use super::predict::{MIN_STEPS, steps_of};
use crate::core::words::number;
use crate::feed::ahead;
use wellread_measure::clock::Stopwatch;
use wellread_store::words::counted;
use wellread_store::{Scratch, Store, read_region};

/// Steady runs that the shortest study of all sections consists of.
const RUNS: f64 = 20.0;
/// Share of the time that these may take; the rest is for writing and for images that are read one by one.
const RUNNING_SHARE: f64 = 0.6;
/// Share of the time that reading the sample may take.
const LOADING_SHARE: f64 = 0.1;
/// How often the first image is read to tell how long one takes, and the share of the time from which on no more.
const PROBES: (usize, f64) = (3, 0.03);

/// The time of a study, and the cost of an image.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// Seconds that a thread needs to read an image.
    pub image: f64,
    /// Threads that read at once, at most.
    pub threads: usize,
    /// Seconds of the whole study.
    pub budget: f64,
}

/// Images of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batches {
    /// In a batch that was asked for, or that a step time is of; else as many as are measured.
    pub meant: usize,
    /// In a batch that is measured: fewer where there is no time for more, or where the set has no more.
    pub measured: usize,
}

impl Batches {
    /// How many measured batches make one that is meant.
    pub fn parts(self) -> f64 {
        self.meant as f64 / self.measured as f64
    }

    /// The same for a set of so many images: a batch that is measured has no more.
    pub fn of_set(self, images: usize) -> Self {
        Self { measured: self.measured.min(images.max(1)), ..self }
    }
}

impl Allowance {
    /// Reads the first image, more than once since it may lie on a disk. One that cannot be read says nothing here: the sample
    /// tells of it, should it be in there.
    pub fn probe(store: &dyn Store, threads: usize, budget: f64) -> Self {
        let (mut scratch, mut pixels, mut image) = (Scratch::default(), Vec::new(), f64::INFINITY);
        let all = Stopwatch::start();
        for _ in 0..PROBES.0 {
            let clock = Stopwatch::start();
            let read = store
                .row_info(0)
                .and_then(|info| read_region(store, 0, &info.shape.full(), &mut scratch, &mut pixels));
            if read.is_err() {
                image = 0.0;
                break;
            }
            image = image.min(clock.elapsed());
            if all.elapsed() > PROBES.1 * budget {
                break;
            }
        }
        Self { image, threads, budget }
    }

    /// Seconds of the shortest steady run with batches of so many images.
    pub fn run(&self, batch_size: usize, workers: usize) -> f64 {
        let threads = (workers + 1).min(self.threads).max(1);
        batches_of_run(workers) * batch_size as f64 * self.image / threads as f64
    }

    /// Images of a batch with which the shortest study is done in time: `usual`, or fewer.
    pub fn batch_size(&self, usual: usize, workers: usize) -> usize {
        let fitting = RUNNING_SHARE * self.budget / (RUNS * self.run(1, workers));
        (fitting as usize).min(usual).max(1)
    }

    /// Batches with which the shortest study is done in time, where `wanted` images are usual. A choice that is `given`
    /// by the user (a batch size, or a step time, which is one of a batch) stays. Smaller batches are measured, and its
    /// figures are computed from those.
    pub fn batches(&self, wanted: usize, given: bool, workers: usize) -> Batches {
        let measured = self.batch_size(wanted, workers);
        Batches { meant: if given { wanted } else { measured }, measured }
    }

    /// The note where batches of fewer than `wanted` images are measured, of a set of `images`, each of which is a `thing`. Times of a
    /// step belong to a batch that is `given`.
    pub fn note(
        &self,
        batches: Batches,
        wanted: usize,
        given: bool,
        (images, thing): (usize, &str),
    ) -> Option<String> {
        let Batches { meant, measured } = batches;
        let why = if measured < images {
            format!(
                ", to keep to the time (--time-budget): one {thing} takes {} ms to be read",
                number(1e3 * self.image)
            )
        } else {
            format!(": the set has only {}", counted(images, thing))
        };
        let told = if given {
            format!("; times of a step are for batches of {meant}, in proportion")
        } else {
            String::new()
        };
        (measured < wanted)
            .then(|| format!("batches of {measured} instead of {wanted} were measured{why}{told}"))
    }

    /// Images of a sample that is read in time: `usual`, or fewer, and a batch in any case.
    pub fn images(&self, usual: usize, batch_size: usize) -> usize {
        ((LOADING_SHARE * self.budget / self.image) as usize).min(usual).max(batch_size)
    }
}

/// Batches that the shortest steady run reads.
pub fn batches_of_run(workers: usize) -> f64 {
    (MIN_STEPS + 2 * ahead(None, workers)) as f64
}

/// Batches that a real loop reads whose step takes so many seconds.
pub fn batches_of_loop(step: f64, workers: usize) -> f64 {
    (steps_of(step) + 2 * ahead(None, workers)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_large_images_are_studied_in_smaller_batches_and_samples() {
        let of = |image, budget| Allowance { image, threads: 2, budget };
        // With a worker 4 batches are read ahead, and 2 more until the queue is as it will be. That is 3 + 2 * 6 batches, by two threads.
        assert!((of(0.02, 5.0).run(16, 1) - 15.0 * 16.0 * 0.01).abs() < 1e-9);
        // 20 runs of 0.15 s for each image of a batch, in 0.6 of the time.
        assert_eq!([5.1, 31.1, 90.0].map(|budget| of(0.02, budget).batch_size(16, 1)), [1, 6, 16]);
        assert_eq!([5.1, 31.1, 90.0].map(|budget| of(0.02, budget).images(256, 16)), [25, 155, 256]);
        assert_eq!(of(1.0, 5.0).images(256, 16), 16, "a batch in any case");
        // Small images are not cut, nor those that could not be read.
        assert_eq!((of(1e-4, 5.0).batch_size(16, 1), of(1e-4, 5.0).images(256, 16)), (16, 256));
        assert_eq!((of(0.0, 5.0).batch_size(16, 1), of(0.0, 5.0).images(256, 16)), (16, 256));
        // Without workers one thread reads; with many no more than there are.
        assert!((of(0.02, 5.0).run(1, 0) - 15.0 * 0.02).abs() < 1e-9);
        assert!((of(0.02, 5.0).run(1, 4) - (3.0 + 2.0 * 10.0) * 0.01).abs() < 1e-9);
    }

    /// A study reads so many runs of measured batches: no more of them because somebody gave a batch size or a step time.
    #[test]
    fn what_is_given_costs_no_more_images_than_what_is_not() {
        for budget in [1e-6, 5.1, 31.1, 90.0] {
            let allowance = Allowance { image: 0.02, threads: 2, budget };
            for wanted in [1, 8, 16, 512] {
                let [given, free] = [true, false].map(|given| allowance.batches(wanted, given, 1));
                assert_eq!(given.measured, free.measured, "{wanted} in {budget}");
                assert_eq!(given.meant, wanted, "what was given stays");
                assert_eq!(free.meant, free.measured);
                let images = [given, free].map(|batches| allowance.images(256, batches.measured));
                assert_eq!(images[0], images[1], "{wanted} in {budget}");
            }
        }
        let allowance = Allowance { image: 0.02, threads: 2, budget: 31.1 };
        let cut = allowance.batches(48, true, 1);
        assert_eq!((cut, cut.parts()), (Batches { meant: 48, measured: 6 }, 8.0));
        let whole = Allowance { budget: 1e4, ..allowance }.batches(48, true, 1);
        assert_eq!((whole, whole.parts()), (Batches { meant: 48, measured: 48 }, 1.0));
    }

    #[test]
    fn a_batch_size_that_is_given_stays_where_the_set_has_fewer_images() {
        let allowance = Allowance { image: 1e-4, threads: 2, budget: 6.0 };
        let batches = allowance.batches(32, true, 1).of_set(5);
        assert_eq!((batches, batches.parts()), (Batches { meant: 32, measured: 5 }, 6.4));
        assert_eq!(
            allowance.note(batches, 32, true, (5, "cell")).unwrap(),
            "batches of 5 instead of 32 were measured: the set has only 5 cells; times of a step are for batches of 32, in \
             proportion"
        );
        let whole = allowance.batches(32, true, 1).of_set(32);
        assert_eq!((whole, whole.parts()), (Batches { meant: 32, measured: 32 }, 1.0));
        assert_eq!(allowance.note(whole, 32, true, (32, "image")), None);
        // No time for all of the set: that is the reason.
        let short = Allowance { image: 0.02, budget: 5.1, ..allowance };
        let batches = short.batches(32, true, 1).of_set(5);
        assert_eq!(batches, Batches { meant: 32, measured: 1 });
        let note = short.note(batches, 32, true, (5, "image")).unwrap();
        assert!(note.starts_with("batches of 1 instead of 32 were measured, to keep to the time"), "{note}");
        assert!(
            note.ends_with("ms to be read; times of a step are for batches of 32, in proportion"),
            "{note}"
        );
        let free = short.note(short.batches(5, false, 1).of_set(5), 5, false, (5, "image")).unwrap();
        assert!(free.contains("batches of 1 instead of 5") && free.ends_with("ms to be read"), "{free}");
        // An empty set has no batch; nothing is divided by zero.
        assert_eq!(allowance.batches(4, true, 1).of_set(0).measured, 1);
    }

    #[test]
    fn a_loop_of_short_steps_has_more_of_them() {
        assert_eq!([1.0, 0.06, 0.01, 1e-5].map(|step| batches_of_loop(step, 1)), [15.0, 15.0, 27.0, 212.0]);
        assert_eq!(batches_of_loop(1.0, 1), batches_of_run(1));
    }
}
