//! Do 95 % intervals hold the truth 95 % of the time?

use wellread_measure::rng::Rng;
use wellread_measure::samples::median;
use wellread_measure::{Bootstrap, Interval, Pairing};

const TRIALS: u64 = 400;

/// Share of simulated experiments whose interval holds the truth.
fn coverage(truth: f64, mut experiment: impl FnMut(&mut Rng, &Bootstrap) -> Interval) -> f64 {
    let mut rng = Rng::seed(2024);
    let held = (0..TRIALS)
        .filter(|trial| {
            let settings = Bootstrap { resamples: 1_000, confidence: 0.95, seed: *trial };
            experiment(&mut rng, &settings).contains(truth)
        })
        .count();
    held as f64 / TRIALS as f64
}

fn lognormal(rng: &mut Rng, n: usize, sigma: f64) -> Vec<f64> {
    (0..n).map(|_| (sigma * rng.normal()).exp()).collect()
}

/// Mostly quiet, every tenth value a pause of five times the time: how timings look on a shared machine.
fn with_pauses(rng: &mut Rng, n: usize) -> Vec<f64> {
    (0..n).map(|_| (0.05 * rng.normal()).exp() * if rng.below(10) == 0 { 5.0 } else { 1.0 }).collect()
}

#[track_caller]
fn assert_covers(what: &str, share: f64, at_least: f64) {
    println!("{what}: {:.1} %", share * 100.0);
    assert!(share >= at_least, "{what}: {share}");
    assert!(share <= 0.995, "{what}: {share}, the interval is too wide to be useful");
}

#[test]
fn medians() {
    for (n, at_least) in [(7, 0.93), (10, 0.93), (30, 0.93), (101, 0.93)] {
        let share = coverage(1.0, |rng, settings| settings.median(&lognormal(rng, n, 0.5)).unwrap());
        assert_covers(&format!("median of {n}, lognormal"), share, at_least);
    }
    let mut rng = Rng::seed(1);
    let truth = median(&with_pauses(&mut rng, 1_000_001)).unwrap();
    let share = coverage(truth, |rng, settings| settings.median(&with_pauses(rng, 40)).unwrap());
    assert_covers("median of 40 with pauses", share, 0.93);
}

#[test]
fn percentiles() {
    // 95th percentile of a lognormal: exp(0.5 * 1.6449).
    let truth = (0.5 * 1.644_853_626_951_472_f64).exp();
    let share =
        coverage(truth, |rng, settings| settings.percentile(&lognormal(rng, 400, 0.5), 0.95).unwrap());
    assert_covers("p95 of 400, lognormal", share, 0.92);
}

#[test]
fn means() {
    // Mean of a lognormal: exp(sigma^2 / 2).
    let truth = (0.5_f64 * 0.5 / 2.0).exp();
    for (n, at_least) in [(20, 0.91), (100, 0.92)] {
        let share = coverage(truth, |rng, settings| settings.mean(&lognormal(rng, n, 0.5)).unwrap());
        assert_covers(&format!("mean of {n}, lognormal"), share, at_least);
    }
}

#[test]
fn ratios_of_medians() {
    for (pairing, n) in
        [(Pairing::Unpaired, 15), (Pairing::Unpaired, 40), (Pairing::Paired, 15), (Pairing::Paired, 40)]
    {
        let share = coverage(0.8, |rng, settings| {
            // A shared slow drift, as when a machine warms up over the rounds.
            let drift = |values: Vec<f64>, factor: f64| -> Vec<f64> {
                values
                    .iter()
                    .enumerate()
                    .map(|(i, v)| factor * v * (1.0 + 0.2 * i as f64 / n as f64))
                    .collect()
            };
            let numerator = drift(lognormal(rng, n, 0.2), 0.8);
            let denominator = drift(lognormal(rng, n, 0.2), 1.0);
            settings.ratio_of_medians(&numerator, &denominator, pairing).unwrap()
        });
        assert_covers(&format!("ratio of medians of {n}, {pairing:?}"), share, 0.93);
    }
    let share = coverage(0.8, |rng, settings| {
        let shared = lognormal(rng, 20, 1.0);
        let numerator: Vec<f64> = shared.iter().map(|s| 0.8 * s * (0.05 * rng.normal()).exp()).collect();
        let denominator: Vec<f64> = shared.iter().map(|s| s * (0.05 * rng.normal()).exp()).collect();
        settings.median_of_ratios(&numerator, &denominator).unwrap()
    });
    assert_covers("median of 20 ratios", share, 0.92);
}

#[test]
fn clustered() {
    let share = coverage(1.0, |rng, settings| {
        let rounds: Vec<Vec<f64>> = (0..15)
            .map(|_| {
                let level = 1.0 + 0.1 * rng.normal();
                (0..20).map(|_| level + 0.02 * rng.normal()).collect()
            })
            .collect();
        let groups: Vec<&[f64]> = rounds.iter().map(Vec::as_slice).collect();
        settings.clustered(&groups, |values| values.iter().sum::<f64>() / values.len() as f64).unwrap()
    });
    assert_covers("mean of 15 rounds of 20", share, 0.92);
}

/// Student's t with 2 degrees of freedom on a logarithmic scale: no variance at all.
fn heavy(rng: &mut Rng, n: usize) -> Vec<f64> {
    let one = |rng: &mut Rng| {
        let spread = f64::midpoint(rng.normal().powi(2), rng.normal().powi(2));
        (0.05 * rng.normal() / spread.sqrt()).exp()
    };
    (0..n).map(|_| one(rng)).collect()
}

/// Pareto with a tail of 1.5, divided by its median: a mean, but no variance.
fn pareto(rng: &mut Rng, n: usize) -> Vec<f64> {
    (0..n).map(|_| rng.unit_positive().powf(-1.0 / 1.5) / 2.0_f64.powf(1.0 / 1.5)).collect()
}

/// A machine that slows down by half from the first round to the last, on top of heavy tails.
fn drift(n: usize) -> impl Iterator<Item = f64> {
    (0..n).map(move |i| 1.0 + 0.5 * i as f64 / n as f64)
}

#[test]
fn heavy_tails_and_drift_are_covered_by_93_to_97_percent() {
    let within = |what: String, share: f64| {
        println!("{what}: {:.2} %", share * 100.0);
        assert!((0.93..=0.97).contains(&share), "{what}: {share}");
    };
    let many = |experiment: &mut dyn FnMut(&mut Rng, &Bootstrap) -> Interval| {
        let mut rng = Rng::seed(77);
        let trials = 2_000;
        let held = (0..trials)
            .filter(|seed| {
                let settings = Bootstrap { resamples: 1_000, confidence: 0.95, seed: *seed };
                experiment(&mut rng, &settings).contains(1.0)
            })
            .count();
        held as f64 / trials as f64
    };
    type Draw = fn(&mut Rng, usize) -> Vec<f64>;
    for (name, draw) in [("heavy tails", heavy as Draw), ("Pareto", pareto)] {
        for n in [15, 30] {
            within(format!("median of {n}, {name}"), many(&mut |rng, by| by.median(&draw(rng, n)).unwrap()));
            let ratio =
                many(&mut |rng, by| by.ratio(&draw(rng, n), &draw(rng, n), Pairing::Unpaired).unwrap());
            within(format!("ratio of medians of {n}, {name}"), ratio);
            let paired = many(&mut |rng, by| {
                let mut drifting =
                    || -> Vec<f64> { drift(n).zip(draw(rng, n)).map(|(d, x)| d * x).collect() };
                by.ratio(&drifting(), &drifting(), Pairing::Paired).unwrap()
            });
            within(format!("median of {n} ratios of rounds, {name} and drift"), paired);
        }
    }
}
