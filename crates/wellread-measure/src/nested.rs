//! Values that come in processes: each process has a level of its own, and rounds about it.
//!
//! ```text
//!  rounds of each process ─▶ its median ─┬─▶ mean of their logarithms ─▶ ratio of the two sides
//!                                        ├─▶ Welch's t ────────────────▶ probability, interval ─┐
//!                                        └─▶ bootstrap over processes, then rounds ─▶ interval ─┴─▶ both together
//! ```
//!
//! Rounds of one process share its memory layout, its hash seeds, its hour. An interval over them says how well that
//! one process is known, and nothing of the next one. Where processes differ by 2 %, the "95 %" interval of the rounds
//! of one on each side covers 34 %. So the unit is the process (Kalibera and Jones 2013, section 9,
//! <https://doi.org/10.1145/2464157.2464160>).
//!
//! **Why two.** The interval begins at the lower of the two lower ends, and ends at the higher of the two others. The
//! hierarchical bootstrap (Davison and Hinkley, *Bootstrap Methods and their Application*, 1997, section 3.8) knows
//! no distribution but is too narrow for few processes. With three, it draws the same one thrice in one of nine
//! cases, and no resample lies beyond the outermost process but for its rounds. Welch's t on the logarithms of
//! medians has the right width from three processes on where these are spread about evenly. Medians of few skewed
//! rounds are not, and two sides of equal size cancel that. The bootstrap widens the interval where rounds within a
//! process say that its median is not well known. `tests/it/processes.rs` simulates both.

use crate::hypothesis::{Welch, moments};
use crate::intervals::{Interval, IntervalEstimator, Method};
use crate::rng::Rng;
use crate::samples::median;

/// Fewest processes on either side that a verdict may rest on. The t of two has one to two degrees of freedom, and reaches
/// 4.3 to 12.7 standard errors to either side.
pub const MIN_PROCESSES: usize = 3;

/// Why two sides of so few processes give no verdict. Each side has its name, and a process is called `one` or `several`.
pub fn too_few_for_a_verdict(sides: [(usize, &str); 2], [one, several]: [&str; 2]) -> String {
    let number = |(count, side): (usize, &str)| match count {
        0 | 1 => format!("one {one} of {side}"),
        n => format!("{n} {several} of {side}"),
    };
    let [a, b] = sides.map(number);
    format!("within these runs only: {a} and {b}, and a verdict needs {MIN_PROCESSES} of each")
}

/// The ratio of two sides measured in processes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NestedRatio {
    /// The level of the numerator: the geometric mean of its processes' medians.
    pub numerator: f64,
    /// The level of the denominator.
    pub denominator: f64,
    /// Their ratio. `n` is the number of processes on the side that has fewer.
    pub ratio: Interval,
    /// Two-sided probability of such a ratio if there were no difference.
    pub p_value: f64,
    /// Degrees of freedom of the t behind it; no number where medians never vary.
    pub freedom: f64,
}

/// One side: the logarithms of its rounds by process, and of its processes' medians.
struct Side {
    rounds: Vec<Vec<f64>>,
    mean: f64,
    /// Square of the standard error of the mean.
    error: f64,
}

impl Side {
    fn of(processes: &[Vec<f64>]) -> Option<Self> {
        let is_usable = |value: &f64| *value > 0.0 && value.is_finite();
        if processes.len() < MIN_PROCESSES || !processes.iter().all(|rounds| rounds.iter().all(is_usable)) {
            return None;
        }
        let rounds: Vec<Vec<f64>> =
            processes.iter().map(|rounds| rounds.iter().map(|value| value.ln()).collect()).collect();
        let medians = rounds.iter().map(|rounds| median(rounds)).collect::<Option<Vec<f64>>>()?;
        let (mean, error, _) = moments(&medians);
        Some(Self { rounds, mean, error })
    }

    /// The mean of the medians of processes drawn with replacement, of whose rounds each is drawn with replacement.
    fn drawn(&self, rng: &mut Rng, room: &mut Vec<f64>) -> f64 {
        let n = self.rounds.len();
        let total: f64 = (0..n)
            .map(|_| {
                let rounds = &self.rounds[rng.below(n)];
                room.clear();
                room.extend((0..rounds.len()).map(|_| rounds[rng.below(rounds.len())]));
                crate::samples::median_in_place(room).expect("a process has a round")
            })
            .sum();
        total / n as f64
    }
}

/// The ratio of `numerator` to `denominator`, each given as the rounds of its processes, with its interval and its test.
/// `None` of fewer than [`MIN_PROCESSES`] processes on either side, of a process without a round, and of values that are
/// not above zero.
pub fn ratio(
    numerator: &[Vec<f64>],
    denominator: &[Vec<f64>],
    estimator: &IntervalEstimator,
) -> Option<NestedRatio> {
    let (x, y) = (Side::of(numerator)?, Side::of(denominator)?);
    let of = |side: &Side| (side.mean, side.error, side.rounds.len() as f64);
    let welch = Welch::of([of(&x), of(&y)]);
    let (difference, reach) = (welch.difference, welch.reach(estimator.confidence));
    let mut rng = Rng::seed(estimator.seed);
    let mut room = Vec::new();
    let mut drawn: Vec<f64> = (0..estimator.resamples)
        .map(|_| x.drawn(&mut rng, &mut room) - y.drawn(&mut rng, &mut room))
        .collect();
    drawn.sort_unstable_by(f64::total_cmp);
    let at = |q: f64| crate::samples::percentile_of_sorted(&drawn, q);
    let tail = (1.0 - estimator.confidence) / 2.0;
    let (by_t, by_bootstrap) = ([difference - reach, difference + reach], [at(tail), at(1.0 - tail)]);
    let is_student = by_t[0] <= by_bootstrap[0] && by_bootstrap[1] <= by_t[1];
    let (low, high) = (by_t[0].min(by_bootstrap[0]), by_t[1].max(by_bootstrap[1]));
    Some(NestedRatio {
        numerator: x.mean.exp(),
        denominator: y.mean.exp(),
        ratio: Interval {
            estimate: difference.exp(),
            low: low.exp(),
            high: high.exp(),
            confidence: estimator.confidence,
            n: x.rounds.len().min(y.rounds.len()),
            method: if is_student { Method::Student } else { Method::HierarchicalBootstrap },
        },
        p_value: welch.p_value(),
        freedom: welch.freedom,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processes(rng: &mut Rng, n: usize, level: f64, between: f64, within: f64) -> Vec<Vec<f64>> {
        (0..n)
            .map(|_| {
                let own = level * (between * rng.normal()).exp();
                (0..7).map(|_| own * (within * rng.normal()).exp()).collect()
            })
            .collect()
    }

    #[test]
    fn agrees_with_scipy() {
        // scipy.stats.ttest_ind(log(b), log(a), equal_var=False), its confidence_interval(0.95), exp
        let a = [1.0, 1.02, 0.99, 1.01].map(|value| vec![value]);
        let b = [1.06, 1.04, 1.07].map(|value| vec![value]);
        let found =
            ratio(&b, &a, &IntervalEstimator { resamples: 100, ..IntervalEstimator::default() }).unwrap();
        assert!((found.p_value - 0.008_412_077_2).abs() < 1e-8, "{found:?}");
        assert!((found.ratio.low - 1.021_352).abs() < 1e-5, "{found:?}");
        assert!((found.ratio.high - 1.082_335).abs() < 1e-5, "{found:?}");
        assert!((found.ratio.estimate - found.numerator / found.denominator).abs() < 1e-12);
        assert_eq!((found.ratio.n, found.ratio.method), (3, Method::Student));
        // From the smaller side's alone to both sides' together.
        assert!(found.freedom > 2.0 && found.freedom < 5.0, "{found:?}");
    }

    #[test]
    fn the_interval_covers_what_processes_differ_by() {
        let estimator = IntervalEstimator { resamples: 200, ..IntervalEstimator::default() };
        for (n, between, within) in [(3, 0.02, 0.01), (5, 0.05, 0.01), (7, 0.0, 0.05), (10, 0.02, 0.02)] {
            let mut rng = Rng::seed(7);
            let trials = 400;
            let covered = (0..trials)
                .filter(|_| {
                    let b = processes(&mut rng, n, 1.1, between, within);
                    let a = processes(&mut rng, n, 1.0, between, within);
                    ratio(&b, &a, &estimator).unwrap().ratio.contains(1.1)
                })
                .count();
            // 95 %, less what chance leaves in 99 of 100 cases.
            assert!(covered >= 370, "{covered} of {trials} with {n} processes");
        }
    }

    #[test]
    fn rounds_that_vary_make_the_interval_wider() {
        // All processes have the same median, so Student's t sees no spread.
        let processes = vec![vec![1.0, 2.0, 9.0]; 3];
        let found = ratio(&processes, &processes, &IntervalEstimator::default()).unwrap().ratio;
        assert!(found.low < 1.0 && found.high > 1.0, "{found:?}");
        assert_eq!(found.method, Method::HierarchicalBootstrap);
    }

    #[test]
    fn why_few_processes_give_no_verdict_names_both_sides() {
        assert_eq!(
            too_few_for_a_verdict([(1, "A"), (2, "B")], ["process", "processes"]),
            "within these runs only: one process of A and 2 processes of B, and a verdict needs 3 of each"
        );
    }

    #[test]
    fn values_that_never_vary_and_bad_ones() {
        let same = vec![vec![2.0; 3]; 3];
        let found = ratio(&same, &same, &IntervalEstimator::default()).unwrap();
        assert_eq!((found.p_value, found.ratio.low, found.ratio.high), (1.0, 1.0, 1.0));
        let other = vec![vec![3.0; 3]; 3];
        assert_eq!(ratio(&other, &same, &IntervalEstimator::default()).unwrap().p_value, 0.0);
        assert_eq!(ratio(&same[..2], &same, &IntervalEstimator::default()), None);
        for bad in [vec![], vec![f64::NAN], vec![0.0], vec![-1.0], vec![f64::INFINITY]] {
            let with = [same.clone(), vec![bad]].concat();
            assert_eq!(ratio(&with, &same, &IntervalEstimator::default()), None);
        }
    }
}
