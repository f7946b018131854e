//! Do 95 % intervals hold the truth 95 % of the time? Every kind that a command prints, on times with heavy tails, with
//! pauses and with drift: 93 to 97 % of 2,000 simulated experiments. An interval that cannot reach that, for want of
//! samples, is tested for the coverage that it has.

use wellread_measure::rng::Rng;
use wellread_measure::samples::percentile_of_sorted;
use wellread_measure::{Interval, IntervalEstimator, Pairing};

const TRIALS: u64 = 2_000;

/// Share of simulated experiments whose interval holds the truth.
fn coverage(truth: f64, mut experiment: impl FnMut(&mut Rng, &IntervalEstimator) -> Interval) -> f64 {
    let mut rng = Rng::seed(2024);
    let held = (0..TRIALS)
        .filter(|trial| {
            let estimator = IntervalEstimator { resamples: 1_000, confidence: 0.95, seed: *trial };
            experiment(&mut rng, &estimator).contains(truth)
        })
        .count();
    held as f64 / TRIALS as f64
}

#[track_caller]
pub(crate) fn within(what: &str, share: f64) {
    println!("{what}: {:.2} %", share * 100.0);
    assert!((0.93..=0.97).contains(&share), "{what}: {share}");
}

/// A time about a level of 1.
type Draw = fn(&mut Rng) -> f64;

fn quiet(rng: &mut Rng) -> f64 {
    (0.05 * rng.normal()).exp()
}

fn lognormal(rng: &mut Rng) -> f64 {
    (0.5 * rng.normal()).exp()
}

/// Mostly quiet, every tenth value a pause of five times the time: how timings look on a shared machine.
fn pauses(rng: &mut Rng) -> f64 {
    quiet(rng) * if rng.below(10) == 0 { 5.0 } else { 1.0 }
}

/// Student's t with 2 degrees of freedom on a logarithmic scale: no variance at all.
fn heavy(rng: &mut Rng) -> f64 {
    let spread = f64::midpoint(rng.normal().powi(2), rng.normal().powi(2));
    (0.05 * rng.normal() / spread.sqrt()).exp()
}

/// Pareto with a tail of 1.5, divided by its median: a mean, but no variance.
fn pareto(rng: &mut Rng) -> f64 {
    rng.unit_positive().powf(-1.0 / 1.5) / 2.0_f64.powf(1.0 / 1.5)
}

const TIMES: [(&str, Draw); 5] = [
    ("quiet", quiet),
    ("lognormal", lognormal),
    ("pauses", pauses),
    ("heavy tails", heavy),
    ("Pareto", pareto),
];

fn some(rng: &mut Rng, n: usize, draw: Draw) -> Vec<f64> {
    (0..n).map(|_| draw(rng)).collect()
}

/// The true percentile, of a million draws.
fn truth(q: f64, draw: impl Fn(&mut Rng) -> f64) -> f64 {
    let mut rng = Rng::seed(1);
    let mut many: Vec<f64> = (0..1_000_001).map(|_| draw(&mut rng)).collect();
    many.sort_unstable_by(f64::total_cmp);
    percentile_of_sorted(&many, q)
}

/// A machine that slows down by half from the first round to the last.
fn drift(n: usize) -> impl Iterator<Item = f64> {
    (0..n).map(move |i| 1.0 + 0.5 * i as f64 / n as f64)
}

#[test]
fn medians() {
    for (name, draw) in TIMES {
        let truth = truth(0.5, draw);
        for n in [6, 7, 10, 15, 30, 101] {
            let share = coverage(truth, |rng, by| by.median(&some(rng, n, draw)).unwrap());
            within(&format!("median of {n}, {name}"), share);
        }
    }
}

#[test]
fn of_fewer_than_six_samples_not_even_the_widest_interval_covers_95_percent() {
    for (n, expected) in [(2, 0.5), (3, 0.75), (4, 0.875), (5, 0.9375)] {
        let share = coverage(1.0, |rng, by| by.median(&some(rng, n, lognormal)).unwrap());
        assert!((share - expected).abs() < 0.03, "{n}: {share}");
    }
}

#[test]
fn percentiles() {
    for (name, draw) in TIMES {
        // The first of each is the smallest number of samples that reaches 95 %.
        for (n, q) in [(72, 0.95), (100, 0.95), (400, 0.95), (368, 0.99), (400, 0.99)] {
            let share = coverage(truth(q, draw), |rng, by| by.percentile(&some(rng, n, draw), q).unwrap());
            within(&format!("percentile {q} of {n}, {name}"), share);
        }
    }
    // All 20 samples are below the 95th percentile with 0.95^20 = 36 %: no interval of theirs can hold it then.
    let share =
        coverage(truth(0.95, lognormal), |rng, by| by.percentile(&some(rng, 20, lognormal), 0.95).unwrap());
    assert!((share - 0.64).abs() < 0.03, "{share}");
}

#[test]
fn means() {
    // Mean of a lognormal: exp(sigma^2 / 2).
    for (name, draw, sigma) in [("quiet", quiet as Draw, 0.05_f64), ("lognormal", lognormal, 0.5)] {
        for n in [7, 10, 20, 100] {
            let truth = (sigma * sigma / 2.0).exp();
            let share = coverage(truth, |rng, by| by.mean(&some(rng, n, draw)).unwrap());
            within(&format!("mean of {n}, {name}"), share);
        }
    }
    // Twelve of a hundred sets of 20 hold no pause at all, and know nothing of what pauses cost.
    let truth = 1.4 * (0.05_f64.powi(2) / 2.0).exp();
    let share = coverage(truth, |rng, by| by.mean(&some(rng, 20, pauses)).unwrap());
    assert!((0.8..0.9).contains(&share), "{share}");
}

#[test]
fn ratios_of_independent_medians() {
    for (name, draw) in TIMES {
        for n in [6, 7, 15, 30] {
            let share = coverage(0.8, |rng, by| {
                let faster: Vec<f64> = some(rng, n, draw).iter().map(|time| 0.8 * time).collect();
                by.ratio(&faster, &some(rng, n, draw), Pairing::Unpaired).unwrap()
            });
            within(&format!("ratio of medians of {n}, {name}"), share);
        }
    }
}

#[test]
fn ratios_of_rounds_under_drift() {
    for (name, draw) in TIMES {
        for n in [6, 7, 10, 15, 30] {
            let share = coverage(1.0, |rng, by| {
                let mut drifting =
                    || -> Vec<f64> { drift(n).zip(some(rng, n, draw)).map(|(d, x)| d * x).collect() };
                by.ratio(&drifting(), &drifting(), Pairing::Paired).unwrap()
            });
            within(&format!("median of {n} ratios of rounds, {name} and drift"), share);
        }
    }
}

#[test]
fn medians_of_items_in_rounds() {
    for (name, draw) in TIMES {
        // How far rounds differ: not at all, less than their items, more.
        for level in [0.0, 0.02, 0.1] {
            let truth = truth(0.5, |rng| (level * rng.normal()).exp() * draw(rng));
            for rounds in [6, 7, 10] {
                let share = coverage(truth, |rng, by| {
                    let rounds: Vec<Vec<f64>> = (0..rounds)
                        .map(|_| {
                            let level = (level * rng.normal()).exp();
                            some(rng, 20, draw).iter().map(|time| level * time).collect()
                        })
                        .collect();
                    let groups: Vec<&[f64]> = rounds.iter().map(Vec::as_slice).collect();
                    by.clustered_median(&groups).unwrap()
                });
                within(&format!("median of {rounds} rounds of 20, apart by {level}, {name}"), share);
            }
        }
    }
}
