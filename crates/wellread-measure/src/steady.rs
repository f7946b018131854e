//! Where a series of measurements changes: warm-up and steady state, and changes over many runs.
//!
//! [`ChangePoints`] looks for places at which the level of a series changes for good. The statistic is the largest
//! standardised rank sum over all ways to cut the series in two. (Pettitt 1979, <https://doi.org/10.2307/2346729>,
//! standardised so that early and late cuts count alike). Permutations of the series decide whether it is larger
//! than chance gives. So no distribution is assumed, and one outlier, however far out, is one rank. Where there is
//! a change, both parts are searched again (binary segmentation). Last, changes smaller than a tolerance are taken
//! out: with enough values a test finds changes that matter to nobody.
//!
//! [`steady_state`] says of a series whether and from where on it is steady. Barrett et al. 2017 classify virtual
//! machines so (<https://doi.org/10.1145/3133876>): flat, warming up, slowing down, or unsteady to the end.
//!
//! [`windows_agree`] is for deciding while it runs: with a handful of values no test has the power to say anything.
//!
//! **Limits.** Permuting supposes that without a change every order is equally likely. Values that follow their
//! neighbours (a clock frequency that wanders) are therefore found to change too often, and a steady slope is cut
//! into steps.

use serde::{Deserialize, Serialize};

use crate::hypothesis::Ranks;
use crate::rng::Rng;
use crate::samples::{median, median_in_place};

/// Longer series are condensed to so many medians of neighbours first.
const MAX_SERIES_LEN: usize = 2_000;

/// How to look for changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangePoints {
    /// Most probability of finding a change, per series searched, where there is none.
    pub level: f64,
    /// Changes of the median by no more than this share are none: 0.02 is 2 %.
    pub tolerance: f64,
    /// Fewest values between two changes.
    pub least: usize,
    /// Permutations of each test.
    pub permutations: usize,
    /// Seed of the permutations.
    pub seed: u64,
}

impl Default for ChangePoints {
    fn default() -> Self {
        Self { level: 0.01, tolerance: 0.02, least: 3, permutations: 999, seed: 0 }
    }
}

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangePoint {
    /// Index of the first value of the new level.
    pub at: usize,
    /// Median from the change before (or the beginning) up to here.
    pub before: f64,
    /// Median from here up to the next change (or the end).
    pub after: f64,
    /// Probability of so large a change by chance, of those permutations tell apart.
    pub p_value: f64,
}

impl ChangePoint {
    /// New level over old.
    pub fn ratio(&self) -> f64 {
        self.after / self.before
    }

    /// Size of the change as a share of the old level.
    fn share(&self) -> f64 {
        let difference = (self.after - self.before).abs();
        if difference == 0.0 { 0.0 } else { difference / self.before.abs() }
    }
}

impl ChangePoints {
    /// The default settings with a seed.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// The changes in a series, in order. None when a value is not finite, or there are too few for any test.
    pub fn find(&self, values: &[f64]) -> Vec<ChangePoint> {
        if values.iter().any(|value| !value.is_finite()) {
            return Vec::new();
        }
        let block = values.len().div_ceil(MAX_SERIES_LEN).max(1);
        let condensed: Vec<f64> = values.chunks(block).filter_map(median).collect();
        let mut rng = Rng::seed(self.seed);
        let mut cuts: Vec<(usize, f64)> = Vec::new();
        let mut parts = vec![(0, condensed.len())];
        while let Some((begin, end)) = parts.pop() {
            if let Some((cut, p_value)) = self.cut(&condensed[begin..end], &mut rng) {
                cuts.push((begin + cut, p_value));
                parts.extend([(begin, begin + cut), (begin + cut, end)]);
            }
        }
        cuts.sort_unstable_by_key(|(at, _)| *at);
        let mut found = levels(values, cuts.iter().map(|(at, p)| (at * block, *p)));
        // The smallest first: those beside it may be large enough once it is gone.
        while let Some((smallest, _)) = found
            .iter()
            .enumerate()
            .filter(|(_, change)| change.share() <= self.tolerance)
            .min_by(|a, b| a.1.share().total_cmp(&b.1.share()))
        {
            found.remove(smallest);
            found = levels(values, found.iter().map(|change| (change.at, change.p_value)));
        }
        found
    }

    /// The best place to cut a series in two, if chance does not explain it.
    fn cut(&self, values: &[f64], rng: &mut Rng) -> Option<(usize, f64)> {
        let n = values.len();
        let least = self.least.max(1);
        if n < 2 * least {
            return None;
        }
        let centre = f64::midpoint(n as f64, 1.0);
        let mut ranks: Vec<f64> = Ranks::of(values).ranks.into_iter().map(|rank| rank - centre).collect();
        // Variance of the sum of the first `k`, up to a factor that all orders share.
        let weights: Vec<f64> = (1..n).map(|k| 1.0 / ((k * (n - k)) as f64).sqrt()).collect();
        let largest = |ranks: &[f64]| {
            let mut sum = 0.0;
            let mut best = (0, 0.0);
            for k in 1..=n - least {
                sum += ranks[k - 1];
                let size = (sum * weights[k - 1]).abs();
                if k >= least && size > best.1 {
                    best = (k, size);
                }
            }
            best
        };
        let (at, size) = largest(&ranks);
        if at == 0 {
            return None;
        }
        let permutations = self.permutations.max(99);
        let most = (self.level * (permutations + 1) as f64 + 1e-9) as usize;
        let mut as_large = 0;
        for _ in 0..permutations {
            rng.shuffle(&mut ranks);
            as_large += usize::from(largest(&ranks).1 >= size - 1e-9);
            if as_large + 1 > most {
                return None;
            }
        }
        Some((at, (as_large + 1) as f64 / (permutations + 1) as f64))
    }
}

/// The changes with the medians of what lies between them.
fn levels(values: &[f64], cuts: impl Iterator<Item = (usize, f64)>) -> Vec<ChangePoint> {
    let cuts: Vec<(usize, f64)> = cuts.collect();
    let of = |begin: usize, end: usize| median_in_place(&mut values[begin..end].to_vec()).unwrap_or(f64::NAN);
    let begin = |i: usize| if i == 0 { 0 } else { cuts[i - 1].0 };
    let end = |i: usize| cuts.get(i + 1).map_or(values.len(), |next| next.0);
    let change = |(i, &(at, p_value)): (usize, &(usize, f64))| ChangePoint {
        at,
        before: of(begin(i), at),
        after: of(at, end(i)),
        p_value,
    };
    cuts.iter().enumerate().map(change).collect()
}

/// The shape of a series of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// The same level from the first value on.
    Flat,
    /// Ends on a level below the first.
    WarmUp,
    /// Ends on a level above the first.
    SlowDown,
    /// Changes so late that the last level is no steady state.
    Unsteady,
}

/// Whether, and from where on, a series is steady.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyState {
    /// In a word.
    pub shape: Shape,
    /// Index of the first steady value; `None` when it is unsteady.
    pub steady_from: Option<usize>,
    /// All changes.
    pub changes: Vec<ChangePoint>,
}

/// Whether, and from where on, a series of times is steady. Its last level is the steady state if it holds a quarter of the values at
/// least.
pub fn steady_state(values: &[f64], settings: &ChangePoints) -> SteadyState {
    let changes = settings.find(values);
    let (shape, steady_from) = match (changes.first(), changes.last()) {
        (Some(_), Some(last)) if (values.len() - last.at) * 4 < values.len() => (Shape::Unsteady, None),
        (Some(first), Some(last)) if last.after < first.before => (Shape::WarmUp, Some(last.at)),
        (Some(_), Some(last)) => (Shape::SlowDown, Some(last.at)),
        _ => (Shape::Flat, Some(0)),
    };
    SteadyState { shape, steady_from, changes }
}

/// Whether the medians of the last two windows of `window` values agree within `tolerance`, a share.
pub fn windows_agree(values: &[f64], window: usize, tolerance: f64) -> bool {
    let Some(begin) = values.len().checked_sub(2 * window).filter(|_| window > 0) else { return false };
    let (earlier, later) = values[begin..].split_at(window);
    let (Some(earlier), Some(later)) = (median(earlier), median(later)) else { return false };
    (later - earlier).abs() <= tolerance * earlier.min(later)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lognormal noise of 3 %, every twentieth value five times as long.
    fn noisy(rng: &mut Rng, levels: &[(usize, f64)]) -> Vec<f64> {
        let mut one =
            |level: f64| level * (0.03 * rng.normal()).exp() * if rng.below(20) == 0 { 5.0 } else { 1.0 };
        levels.iter().flat_map(|&(n, level)| (0..n).map(|_| one(level)).collect::<Vec<_>>()).collect()
    }

    #[test]
    fn a_warm_up_is_found_and_its_end_is_right() {
        let mut rng = Rng::seed(3);
        let right = (0..100)
            .filter(|&trial| {
                let values = noisy(&mut rng, &[(12, 3.0), (8, 1.5), (80, 1.0)]);
                let found = steady_state(&values, &ChangePoints::seeded(trial));
                found.shape == Shape::WarmUp && found.steady_from.is_some_and(|n| (18..=24).contains(&n))
            })
            .count();
        // Chance finds a further change in one of a hundred series.
        assert!(right >= 93, "{right} of 100");
        let late = noisy(&mut rng, &[(80, 1.0), (20, 2.0)]);
        assert_eq!(steady_state(&late, &ChangePoints::default()).shape, Shape::Unsteady);
        let slower = noisy(&mut rng, &[(40, 1.0), (60, 1.2)]);
        let slower = steady_state(&slower, &ChangePoints::default());
        assert_eq!(slower.shape, Shape::SlowDown);
        assert!((slower.changes[0].ratio() - 1.2).abs() < 0.05, "{slower:?}");
    }

    #[test]
    fn a_flat_series_is_called_flat() {
        let mut rng = Rng::seed(4);
        let trials = 400;
        let settings =
            ChangePoints { level: 0.05, tolerance: 0.0, permutations: 199, ..ChangePoints::default() };
        let alarms = (0..trials)
            .filter(|&seed| {
                let values = noisy(&mut rng, &[(40, 1.0)]);
                !ChangePoints { seed, ..settings }.find(&values).is_empty()
            })
            .count();
        // 5 % of 400 is 20, give or take 4.4.
        assert!((6..=34).contains(&alarms), "{alarms} of {trials}");
    }

    #[test]
    fn a_step_of_five_percent_in_a_history_is_found_where_it_is() {
        let mut rng = Rng::seed(5);
        let found = (0..200)
            .filter(|&seed| {
                let values: Vec<f64> = (0..40)
                    .map(|i| (if i < 25 { 1.0 } else { 1.05 }) * (0.02 * rng.normal()).exp())
                    .collect();
                let found = ChangePoints::seeded(seed).find(&values);
                found.len() == 1 && found[0].at.abs_diff(25) <= 3
            })
            .count();
        assert!(found >= 180, "{found} of 200");
    }

    #[test]
    fn changes_below_the_tolerance_are_none() {
        let values: Vec<f64> = (0..60).map(|i| if i < 30 { 1.0 } else { 1.015 }).collect();
        assert!(ChangePoints::default().find(&values).is_empty());
        let all = ChangePoints { tolerance: 0.0, ..ChangePoints::default() }.find(&values);
        assert_eq!((all.len(), all[0].at, all[0].before), (1, 30, 1.0));
    }

    #[test]
    fn long_short_and_broken_series() {
        let mut rng = Rng::seed(6);
        let long: Vec<f64> =
            (0..50_000).map(|i| if i < 20_000 { 2.0 } else { 1.0 } + 0.1 * rng.normal()).collect();
        let found = ChangePoints::default().find(&long);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].at.abs_diff(20_000) <= 50, "{found:?}");
        assert!(ChangePoints::default().find(&[1.0, 9.0, 1.0]).is_empty());
        assert!(ChangePoints::default().find(&[]).is_empty());
        let broken: Vec<f64> = long.iter().take(100).copied().chain([f64::NAN]).collect();
        assert!(ChangePoints::default().find(&broken).is_empty());
        assert!(ChangePoints::default().find(&[7.0; 50]).is_empty());
        assert_eq!(steady_state(&[], &ChangePoints::default()).shape, Shape::Flat);
    }

    #[test]
    fn windows_agree_within_the_tolerance() {
        let agree = |values: &[f64]| windows_agree(values, 3, 0.02);
        assert!(!agree(&[100.0; 5]) && agree(&[100.0; 6]));
        assert!(!agree(&[300.0, 250.0, 200.0, 100.0, 100.0, 100.0]));
        assert!(agree(&[900.0, 300.0, 100.0, 101.0, 100.0, 101.0, 100.0, 101.0]));
        assert!(!agree(&[100.0, 100.0, 100.0, 105.0, 105.0, 105.0]));
        assert!(!windows_agree(&[1.0; 6], 0, 0.02) && !agree(&[]));
    }
}
