//! The equation against a simulated pipeline (exact, whatever the machine does) and against real loops.

use super::*;
use crate::feed::LoaderSettings;
use crate::sample::Limits;
use crate::test_store::TestStore;
use wellread_loader::{Cache, Transform};
use wellread_measure::rng::Rng;
use wellread_store::Store;

/// A pipeline in simulated time. Workers and the waiting thread claim batches in order, `ahead` of the one delivered
/// last at most. They read each in `read` seconds of one thread, more or less.
struct Pipeline<'r> {
    read: f64,
    ahead: usize,
    rng: &'r mut Rng,
    /// When each worker is free.
    free: Vec<f64>,
    /// When each batch that was claimed is finished, and when each that was delivered was.
    finished: Vec<f64>,
    delivered: Vec<f64>,
}

impl Pipeline<'_> {
    fn cost(&mut self) -> f64 {
        self.read * (0.7 + 0.6 * self.rng.unit())
    }

    /// From when on the next batch may be claimed; `None` while there is no room.
    fn opens(&self) -> Option<f64> {
        match self.finished.len().checked_sub(self.ahead) {
            None => Some(0.0),
            Some(before) => self.delivered.get(before).copied(),
        }
    }

    /// Workers claim what they can until `until`.
    fn advance(&mut self, until: f64) {
        while let Some(opens) = self.opens() {
            let earliest = (0..self.free.len()).min_by(|a, b| self.free[*a].total_cmp(&self.free[*b]));
            let Some(worker) = earliest else { return };
            let begin = self.free[worker].max(opens);
            if begin > until {
                return;
            }
            self.free[worker] = begin + self.cost();
            self.finished.push(self.free[worker]);
        }
    }

    /// The time at which the next batch is there for one who asks at `now`, and reads where it would wait.
    fn next(&mut self, mut now: f64) -> f64 {
        let wanted = self.delivered.len();
        loop {
            self.advance(now);
            if self.finished.get(wanted).is_some_and(|done| *done <= now) {
                self.delivered.push(now);
                return now;
            }
            if self.opens().is_some_and(|opens| opens <= now) {
                now += self.cost();
                self.finished.push(now);
            } else {
                now = self.finished[wanted];
            }
        }
    }
}

/// Mean compute and wait of a step of a simulated loop.
fn simulated(workers: usize, read: f64, step: f64, ahead: usize, rng: &mut Rng) -> LoopTimes {
    let (finished, delivered) = (vec![], vec![]);
    let mut pipeline = Pipeline { read, ahead, rng, free: vec![0.0; workers], finished, delivered };
    let (mut now, mut waits) = (0.0, 0.0);
    let (warmup, steps) = (100, 3_000);
    for number in 0..warmup + steps {
        let there = pipeline.next(now);
        if number >= warmup {
            waits += there - now;
        }
        now = there + step;
    }
    LoopTimes { compute: step, wait: waits / f64::from(steps) }
}

/// Seconds of a batch in a simulated loop without a model, and the [`Speed`] that a probe would find.
fn probed(workers: usize, read: f64, rng: &mut Rng) -> Speed {
    let ahead = (2 * workers).max(4);
    let batch = simulated(workers, read, 0.0, ahead, rng).wait;
    if workers == 0 {
        return Speed { background: 0.0, waiting: 1.0 / batch };
    }
    let loaded = simulated(workers, read, LOADED * batch, ahead, rng);
    Speed::measured(batch, loaded.compute, loaded.wait)
}

#[test]
fn the_equation_holds_in_a_simulated_pipeline() {
    let mut rng = Rng::seed(11);
    for workers in [0, 1, 2, 4] {
        let read = 0.010;
        let speed = probed(workers, read, &mut rng);
        for share in [0.1, 0.3, 0.6, 1.0, 1.5, 3.0] {
            let step = share * read;
            let found = simulated(workers, read, step, (2 * workers).max(4), &mut rng);
            let ratio = (step + speed.wait(step)) / (step + found.wait);
            assert!(
                (0.9..1.1).contains(&ratio),
                "{workers} workers, step {share} of a read: {ratio}, {speed:?}"
            );
        }
        if workers > 0 {
            let each = speed.background * read / workers as f64;
            assert!((0.85..1.15).contains(&each), "a worker reads {each} batches in the time of one");
        }
    }
}

#[test]
fn simpler_equations_would_be_found_out() {
    // The tests here accept less than the errors of these.
    let mut rng = Rng::seed(12);
    let (read, step) = (0.010, 0.010);
    let found = simulated(1, read, step, 4, &mut rng);
    let speed = probed(1, read, &mut rng);
    let ratio = |wait: f64| (step + wait) / (step + found.wait);
    let no_overlap = Speed { background: 0.0, ..speed };
    assert!(ratio(no_overlap.wait(step)) > 1.0 + TOLERANCE, "nothing is read while the model computes");
    // The thread that waits counted as if it read all the time.
    let step = 0.6 * read;
    let found = simulated(1, read, step, 4, &mut rng);
    let always = Speed { background: speed.waiting, ..speed };
    assert!((step + always.wait(step)) / (step + found.wait) < 1.0 / (1.0 + TOLERANCE));
}

#[test]
fn noise_cannot_make_speeds_absurd() {
    let speed = Speed::measured(0.01, 0.008, 0.02);
    assert_eq!((speed.background, speed.wait(1.0)), (0.0, 0.01));
    let speed = Speed::measured(0.01, 0.004, 0.0);
    assert!((speed.background - 100.0).abs() < 1e-9 && speed.wait(0.01) == 0.0);
    assert_eq!(Speed { background: 50.0, waiting: 100.0 }.enough(), 0.02);
    let figure = |value, low, high| Figure { value, low: Some(low), high: Some(high) };
    for (value, low, high, right) in
        [(1.1, 1.05, 1.15, true), (1.3, 1.15, 1.4, true), (1.3, 1.25, 1.4, false), (0.7, 0.6, 0.8, false)]
    {
        assert_eq!(agrees(&figure(value, low, high)), Some(right));
    }
    let few = |value| Figure { value, low: None, high: None };
    assert_eq!((agrees(&few(1.1)), agrees(&few(1.5))), (Some(true), None));
}

/// A set of which reading an image takes 2 ms.
fn slow() -> Result<Box<dyn Store>> {
    Ok(Box::new(TestStore { each: Duration::from_millis(2), ..TestStore::squares(24, 8)? }))
}

fn feed_of(workers: usize) -> Feed<'static> {
    let how = LoaderSettings {
        batch_size: 4,
        workers,
        seed: 5,
        transform: Transform::default(),
        cache: Cache::None,
        memory: None,
        prefetch: None,
    };
    Feed::new(Box::new(slow), (0..24).collect(), how)
}

/// A batch takes 8 ms of one thread. Threads sleep, so that the load of the machine matters little. The rest is in the
/// interval of the ratio, and a machine that stalls is tried again.
#[test]
fn predictions_hold_in_a_real_loop() {
    for workers in [0, 1] {
        let feed = feed_of(workers);
        let mut off = Vec::new();
        for attempt in 0..10 {
            let pace = (6, Duration::from_secs(15), attempt);
            let (predictions, _) =
                predict(&feed, workers, 1.0, &[0.006, 0.020], true, pace, &|_, _| ()).unwrap();
            let checked = predictions.iter().map(|p| (p.step_ms, p.checked.as_ref().expect("checked")));
            off = checked.filter(|(_, c)| c.agrees == Some(false)).map(|(ms, c)| (ms, c.ratio)).collect();
            if off.is_empty() {
                break;
            }
        }
        assert!(off.is_empty(), "{workers} workers: predicted over measured {off:?}");
    }
}

#[test]
fn a_loop_without_workers_waits_for_all_of_a_batch() {
    let feed = feed_of(0);
    let speed = Probe::new(&feed, 0).speed(0).unwrap();
    assert_eq!(speed.background, 0.0);
    // Sleeping takes as long as it is told to, or longer.
    assert!(speed.wait(0.001) >= 0.008, "{speed:?}");
    let sample =
        crate::sample::Sample::draw(&*slow().unwrap(), Limits { images: 8, bytes: 1 << 20 }, 4, 0, None);
    assert_eq!(sample.unwrap().rows.len(), 8);
}

/// A batch that is four measured ones takes a step, and waits, four times as long.
#[test]
fn what_a_part_of_a_batch_measured_is_told_of_the_whole() {
    let part = Speed { background: 100.0, waiting: 200.0 };
    let whole = part.joined(4.0);
    assert_eq!(whole, Speed { background: 25.0, waiting: 50.0 });
    assert!((whole.wait(0.02) - 4.0 * part.wait(0.005)).abs() < 1e-12);
    assert!((whole.wait_share(0.02) - part.wait_share(0.005)).abs() < 1e-12);
    let looped = LoopTimes { compute: 0.005, wait: 0.001 };
    assert!((looped.joined(4.0).wait_share() - looped.wait_share()).abs() < 1e-12);
}

fn told(value: f64, low: Option<f64>, high: Option<f64>, waits: &[(f64, f64)]) -> String {
    let point = |value| Figure { value, low: None, high: None };
    let prediction = |&(step_ms, wait): &(f64, f64)| Prediction {
        step_ms,
        data_wait_fraction: point(wait),
        utilisation: point(1.0 - wait),
        whole_step_ms: point(step_ms / (1.0 - wait)),
        mark: "",
        checked: None,
    };
    no_wait(&Figure { value, low, high }, &waits.iter().map(prediction).collect::<Vec<_>>())
}

/// "Every step waits" stood above a table with 0.0 % for steps of 20 ms and more.
#[test]
fn one_sentence_says_from_which_step_on_nothing_waits() {
    let never = f64::INFINITY;
    assert_eq!(told(12.0, Some(11.0), Some(13.0), &[]), "no wait for steps from 12.0 ms (11.0 to 13.0)");
    assert_eq!(told(12.0, Some(11.0), Some(never), &[]), "no wait for steps from 12.0 ms (11.0 or more)");
    let every = "every step waits, as far as these rounds tell";
    for value in [never, f64::NAN] {
        assert_eq!(told(value, None, None, &[]), every);
        assert_eq!(told(value, None, None, &[(5.0, 0.3), (20.0, 0.0006)]), every);
        let waits = [(5.0, 0.002), (20.0, 0.0004), (50.0, 0.0002)];
        assert_eq!(told(value, None, None, &waits), "waits are 0.0 % for steps from 20.0 ms");
    }
}
