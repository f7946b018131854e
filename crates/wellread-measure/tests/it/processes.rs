//! Do intervals over processes hold the truth? Each process has a level of its own (a run effect of 2 or 5 %) and 3 to 10
//! rounds about it. Noises of rounds are log-normal, without a variance, skewed, or alike from round to round.
//!
//! Welch's interval alone covers 95 % of experiments with independent processes, and the printed interval contains it. So
//! the least count is 95 % of the trials less 2.8 standard errors: 92.5 %. No limit above holds for all noises: the
//! bootstrap counts the noise of rounds twice.

use crate::coverage::within;
use wellread_measure::nested;
use wellread_measure::rng::Rng;
use wellread_measure::samples::median;
use wellread_measure::{Interval, IntervalEstimator, Pairing};

const TRIALS: u64 = 600;
/// Fewest experiments of which the interval holds the truth.
const FEWEST: u64 = 555;
/// Fewest where nothing but the noise of rounds is there, which counts twice: 95 %.
const FEWEST_WITHOUT_EFFECT: u64 = 570;
/// Most where processes differ by more than rounds do: 98 %.
const MOST: u64 = 588;

/// The logarithms of some rounds about their level.
type Noise = fn(&mut Rng, usize) -> Vec<f64>;

/// Log-normal, 1 %.
fn log_normal(rng: &mut Rng, rounds: usize) -> Vec<f64> {
    (0..rounds).map(|_| 0.01 * rng.normal()).collect()
}

/// Student's t with 2 degrees of freedom: no variance.
fn heavy(rng: &mut Rng, rounds: usize) -> Vec<f64> {
    let draw = |_| {
        let spread = f64::midpoint(rng.normal().powi(2), rng.normal().powi(2));
        0.05 * rng.normal() / spread.sqrt()
    };
    (0..rounds).map(draw).collect()
}

/// Pareto times with a tail of 1.5 and a median of 1.
fn pareto(rng: &mut Rng, rounds: usize) -> Vec<f64> {
    (0..rounds).map(|_| (-rng.unit_positive().ln() - std::f64::consts::LN_2) / 1.5).collect()
}

/// The next of values with this standard deviation that resemble the one before by 0.9.
fn next(rng: &mut Rng, last: f64, deviation: f64) -> f64 {
    0.9 * last + deviation * (1.0_f64 - 0.81).sqrt() * rng.normal()
}

/// AR(1), 0.9: rounds that resemble the one before, 2 % apart in the long run.
fn ar1(rng: &mut Rng, rounds: usize) -> Vec<f64> {
    let mut last = 0.02 * rng.normal();
    let draw = |_| {
        let now = last;
        last = next(rng, last, 0.02);
        now
    };
    (0..rounds).map(draw).collect()
}

/// The rounds of a process at this level.
fn process(rng: &mut Rng, level: f64, noise: Noise, rounds: usize) -> Vec<f64> {
    noise(rng, rounds).iter().map(|log| level * log.exp()).collect()
}

/// The rounds of processes of which each has a level of its own: `effect` is the standard deviation of their logarithms.
fn side(
    rng: &mut Rng,
    processes: usize,
    effect: f64,
    level: f64,
    noise: Noise,
    rounds: usize,
) -> Vec<Vec<f64>> {
    (0..processes)
        .map(|_| {
            let own = level * (effect * rng.normal()).exp();
            process(rng, own, noise, rounds)
        })
        .collect()
}

/// An interval as `compare` makes it, with fewer resamples.
fn ratio(b: &[Vec<f64>], a: &[Vec<f64>], seed: u64) -> Interval {
    let estimator = IntervalEstimator { resamples: 200, confidence: 0.95, seed };
    nested::ratio(b, a, &estimator).expect("three processes and more, all above zero").ratio
}

/// Experiments, of [`TRIALS`], whose interval holds `truth`.
fn covered(seed: u64, truth: f64, mut experiment: impl FnMut(&mut Rng, u64) -> Interval) -> u64 {
    let mut rng = Rng::seed(seed);
    (0..TRIALS).map(|trial| u64::from(experiment(&mut rng, trial).contains(truth))).sum()
}

/// Two sides: processes and run effects of A and of B, and the rounds of every process.
struct Design {
    name: &'static str,
    noise: Noise,
    processes: [usize; 2],
    effects: [f64; 2],
    rounds: usize,
    /// Fewest and most experiments that the interval must hold the truth of.
    expected: [u64; 2],
}

impl Design {
    /// Sides that have as many processes and the same effect.
    const fn even(name: &'static str, noise: Noise, processes: usize, effect: f64, rounds: usize) -> Self {
        let (processes, effects) = ([processes; 2], [effect; 2]);
        Self { name, noise, processes, effects, rounds, expected: [FEWEST, TRIALS] }
    }
}

fn designs() -> Vec<Design> {
    let between = |processes, effect, rounds| Design {
        expected: [FEWEST, MOST],
        ..Design::even("log-normal", log_normal, processes, effect, rounds)
    };
    vec![
        between(6, 0.02, 3),
        between(6, 0.05, 10),
        between(10, 0.05, 7),
        between(20, 0.02, 5),
        Design {
            processes: [20, 6],
            effects: [0.02, 0.05],
            ..Design::even("unequal sides", log_normal, 6, 0.02, 7)
        },
        // Skewness of the smaller side does not cancel: 90 %.
        Design {
            processes: [20, 6],
            expected: [540, TRIALS],
            ..Design::even("unequal sides, Pareto", pareto, 6, 0.02, 3)
        },
        Design {
            expected: [FEWEST_WITHOUT_EFFECT, TRIALS],
            ..Design::even("no run effect", log_normal, 6, 0.0, 7)
        },
        Design::even("heavy tails", heavy, 6, 0.02, 3),
        Design::even("heavy tails", heavy, 12, 0.05, 7),
        Design::even("Pareto", pareto, 6, 0.02, 3),
        Design::even("Pareto", pareto, 20, 0.05, 3),
        Design::even("AR(1)", ar1, 6, 0.02, 10),
        Design::even("AR(1)", ar1, 10, 0.05, 5),
    ]
}

#[test]
fn ratios_of_sides_of_processes() {
    for (seed, design) in (2_600..).zip(designs()) {
        let Design { name, noise, processes, effects, rounds, expected } = design;
        let found = covered(seed, 1.1, |rng, trial| {
            let a = side(rng, processes[0], effects[0], 1.0, noise, rounds);
            let b = side(rng, processes[1], effects[1], 1.1, noise, rounds);
            ratio(&b, &a, trial)
        });
        let what = format!("{name}, {processes:?} processes apart by {effects:?}, {rounds} rounds");
        println!("{what}: {found} of {TRIALS}");
        assert!((expected[0]..=expected[1]).contains(&found), "{what}: {found} of {TRIALS}");
    }
}

/// The reason for processes. Two processes that differ by 2 % have medians 2.9 % apart. Seven rounds at 1 % noise give an
/// interval of about 1.4 % to either side. A normal number is that close to zero in about a third of all cases.
#[test]
fn rounds_of_one_process_a_side_cover_a_third() {
    let found = covered(2_700, 1.1, |rng, seed| {
        let estimator = IntervalEstimator { resamples: 200, confidence: 0.95, seed };
        let (a, b) = (
            side(rng, 1, 0.02, 1.0, log_normal, 7).concat(),
            side(rng, 1, 0.02, 1.1, log_normal, 7).concat(),
        );
        estimator.ratio(&b, &a, Pairing::Unpaired).unwrap()
    });
    println!("one process a side: {found} of {TRIALS}");
    assert!((168..=252).contains(&found), "{found} of {TRIALS}");
}

/// The limit of the method. Processes that resemble the one before are no independent values: where all of A come before
/// all of B, the interval is too narrow. Where A and B alternate, it is wide.
#[test]
fn processes_of_a_drifting_machine_must_alternate() {
    let of = |alternate: bool| {
        covered(2_800, 1.1, |rng, trial| {
            let mut last = 0.02 * rng.normal();
            let (mut a, mut b) = (Vec::new(), Vec::new());
            for process_of_both in 0..12 {
                let is_b = if alternate { process_of_both % 2 == 1 } else { process_of_both >= 6 };
                let (side, factor) = if is_b { (&mut b, 1.1) } else { (&mut a, 1.0) };
                side.push(process(rng, factor * last.exp(), log_normal, 5));
                last = next(rng, last, 0.02);
            }
            ratio(&b, &a, trial)
        })
    };
    let (apart, in_turns) = (of(false), of(true));
    println!("six of A, then six of B: {apart} of {TRIALS}; in turns: {in_turns}");
    assert!((240..=390).contains(&apart), "{apart} of {TRIALS}");
    assert!(in_turns >= FEWEST_WITHOUT_EFFECT, "{in_turns} of {TRIALS}");
}

/// The interval that `bench --processes` prints. The numbers of rounds are odd. The median of an even number is the mean of
/// the two middle ones, which lies above the median of skewed times.
#[test]
fn medians_over_processes() {
    const TRIALS: usize = 2_000;
    let noises: [(&str, Noise); 4] =
        [("log-normal", log_normal), ("heavy tails", heavy), ("Pareto", pareto), ("AR(1)", ar1)];
    for (name, noise) in noises {
        for (processes, effect, rounds) in
            [(6, 0.02, 3), (6, 0.05, 9), (10, 0.02, 7), (10, 0.05, 3), (20, 0.02, 9), (20, 0.05, 7)]
        {
            let mut rng = Rng::seed(2_900);
            let held = (0..TRIALS)
                .filter(|_| {
                    let side = side(&mut rng, processes, effect, 1.0, noise, rounds);
                    let medians: Vec<f64> = side.iter().filter_map(|rounds| median(rounds)).collect();
                    IntervalEstimator::default().median(&medians).unwrap().contains(1.0)
                })
                .count();
            let what = format!("median of {processes} processes apart by {effect}, {rounds} rounds, {name}");
            within(&what, held as f64 / TRIALS as f64);
        }
    }
}
