//! Intervals against theory, pairs, clusters, bad values.

use super::*;
use crate::rng::Rng;
use proptest::prelude::*;

const SETTINGS: IntervalEstimator = IntervalEstimator { resamples: 4_000, confidence: 0.95, seed: 7 };

#[test]
fn same_seed_same_interval() {
    let samples: Vec<f64> = (0..50).map(|i| f64::from(1 + i * i % 37)).collect();
    // Medians and means are computed: nothing is drawn.
    let other = IntervalEstimator { resamples: 100, seed: 8, ..SETTINGS };
    assert_eq!(SETTINGS.median(&samples), other.median(&samples));
    assert_eq!(SETTINGS.mean(&samples), other.mean(&samples));
    let ratio = |by: IntervalEstimator| by.ratio_of_medians(&samples[1..40], &samples[11..]);
    assert_eq!(ratio(SETTINGS), ratio(SETTINGS));
    assert_ne!(ratio(SETTINGS), ratio(IntervalEstimator { seed: 8, ..SETTINGS }));
}

#[test]
fn mean_agrees_with_theory() {
    let mut rng = Rng::seed(2);
    let samples: Vec<f64> = (0..400).map(|_| 10.0 + rng.normal()).collect();
    let interval = SETTINGS.mean(&samples).unwrap();
    // Standard error 1 / sqrt(400): the interval is 2 * 1.96 * 0.05 wide.
    assert!((interval.high - interval.low - 0.196).abs() < 0.03, "{interval:?}");
    assert_eq!((interval.method, interval.n), (Method::Student, 400));
}

#[test]
fn skew_moves_the_interval_of_a_mean_upwards() {
    let samples: Vec<f64> = (0..30).map(|i| if i == 0 { 50.0 } else { f64::from(i % 5) }).collect();
    let interval = SETTINGS.mean(&samples).unwrap();
    assert!(interval.high - interval.estimate > 1.5 * (interval.estimate - interval.low), "{interval:?}");
    let mirrored: Vec<f64> = samples.iter().map(|sample| -sample).collect();
    let other = SETTINGS.mean(&mirrored).unwrap();
    assert!((other.low + interval.high).abs() < 1e-9 && (other.high + interval.low).abs() < 1e-9);
}

#[test]
fn ends_of_a_median_are_those_of_the_binomial_distribution() {
    // By hand, of 1 to 6: 0.357 of the way from the first to the second.
    let interval = SETTINGS.median(&[6.0, 1.0, 5.0, 2.0, 4.0, 3.0]).unwrap();
    assert!((interval.low - 1.357_142_857).abs() < 1e-6, "{interval:?}");
    assert!((interval.high - 5.642_857_143).abs() < 1e-6, "{interval:?}");
}

#[test]
fn a_percentile_reaches_its_confidence_from_6_and_72_and_368_samples_on() {
    assert_eq!(SETTINGS.fewest_for(0.5), Some(crate::compare::MIN_SAMPLES));
    // The confidence of one sample fewer, by hand: 1 - 2 / 2^5, 0.975 - 0.95^71, 0.975 - 0.99^367.
    for (q, fewest, short) in [(0.5, 6, 0.937_5), (0.95, 72, 0.948_795), (0.99, 368, 0.949_990)] {
        assert_eq!(SETTINGS.fewest_for(q), Some(fewest), "{q}");
        let of = |n: usize| SETTINGS.percentile(&(0..n).map(|i| i as f64).collect::<Vec<_>>(), q).unwrap();
        let below = of(fewest - 1);
        assert_eq!(below.high, (fewest - 2) as f64, "{q}: the widest interval ends on the largest sample");
        assert!((below.confidence - short).abs() < 5e-6 && below.confidence < 0.95, "{q}: {below:?}");
        for n in [fewest, fewest + 1] {
            let found = of(n);
            assert!(found.high < (n - 1) as f64 && found.high > (n - 2) as f64, "{q} of {n}: {found:?}");
            assert_eq!(found.confidence, 0.95, "{q} of {n}");
        }
    }
    // The fifth percentile is the mirror of the 95th.
    assert_eq!(SETTINGS.fewest_for(0.05), Some(72));
    assert_eq!((SETTINGS.fewest_for(0.0), SETTINGS.fewest_for(1.0)), (None, None));
    assert_eq!(SETTINGS.median(&[1.0, 2.0]).unwrap().confidence, 0.5);
    assert_eq!(SETTINGS.clustered_median(&[&[1.0], &[2.0], &[3.0]]).unwrap().confidence, 0.75);
}

#[test]
fn pairing_cancels_shared_drift() {
    let mut rng = Rng::seed(4);
    let drift: Vec<f64> = (0..30).map(|_| (0.5 * rng.normal()).exp()).collect();
    let a: Vec<f64> = drift.iter().map(|d| 0.9 * d * (0.01 * rng.normal()).exp()).collect();
    let b: Vec<f64> = drift.iter().map(|d| d * (0.01 * rng.normal()).exp()).collect();
    let width = |interval: Interval| interval.high - interval.low;
    let unpaired = SETTINGS.ratio(&a, &b, Pairing::Unpaired).unwrap();
    let paired = SETTINGS.ratio(&a, &b, Pairing::Paired).unwrap();
    assert_eq!((unpaired.method, paired.method), (Method::Percentile, Method::OrderStatistics));
    assert!(width(paired) < width(unpaired) / 10.0 && paired.contains(0.9), "{paired:?} {unpaired:?}");
}

#[test]
fn clusters_are_wider_than_their_samples() {
    // 10 rounds, each with its own level: 1,000 batches are worth 10, not 1,000.
    let mut rng = Rng::seed(6);
    let rounds: Vec<Vec<f64>> = (0..10)
        .map(|_| {
            let level = 1.0 + 0.1 * rng.normal();
            (0..100).map(|_| level + 0.01 * rng.normal()).collect()
        })
        .collect();
    let groups: Vec<&[f64]> = rounds.iter().map(Vec::as_slice).collect();
    let clustered = SETTINGS.clustered_median(&groups).unwrap();
    let pooled = SETTINGS.median(&rounds.concat()).unwrap();
    assert!(clustered.high - clustered.low > 3.0 * (pooled.high - pooled.low), "{clustered:?} {pooled:?}");
    assert_eq!(clustered.n, 10);
}

#[test]
fn nothing_is_claimed_of_bad_or_too_few_values() {
    assert_eq!(SETTINGS.median(&[]), None);
    assert_eq!(SETTINGS.median(&[1.0]), None);
    assert_eq!(SETTINGS.mean(&[1.0, f64::NAN]), None);
    assert_eq!(SETTINGS.ratio_of_medians(&[1.0, 2.0], &[0.0, 1.0]), None);
    assert_eq!(SETTINGS.median_of_ratios(&[1.0, 2.0], &[1.0]), None);
    assert_eq!(SETTINGS.clustered_median(&[&[1.0]]), None);
    assert_eq!(SETTINGS.clustered_median(&[&[1.0], &[]]), None);
    let constant = SETTINGS.mean(&[2.0; 5]).unwrap();
    assert_eq!((constant.low, constant.estimate, constant.high), (2.0, 2.0, 2.0));
    let absurd = IntervalEstimator { resamples: 0, confidence: f64::INFINITY, seed: 0 };
    assert!(absurd.median(&[1.0, 2.0, 3.0]).unwrap().contains(2.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn median_interval_holds_the_median_and_stays_within_the_samples(
        samples in prop::collection::vec(1e-6_f64..1e3, 2..80), seed: u64
    ) {
        let interval = IntervalEstimator { resamples: 500, confidence: 0.95, seed }.median(&samples).unwrap();
        prop_assert_eq!(interval.estimate, median(&samples).unwrap());
        prop_assert!(interval.contains(interval.estimate));
        let inside = |end: f64| samples.iter().any(|s| *s <= end) && samples.iter().any(|s| *s >= end);
        prop_assert!(inside(interval.low) && inside(interval.high));
    }

    #[test]
    fn ratio_of_a_set_with_itself_by_round_is_one(samples in prop::collection::vec(1e-6_f64..1e3, 2..40)) {
        let estimator = IntervalEstimator { resamples: 200, ..IntervalEstimator::default() };
        let interval = estimator.median_of_ratios(&samples, &samples).unwrap();
        prop_assert_eq!((interval.low, interval.estimate, interval.high), (1.0, 1.0, 1.0));
    }
}
