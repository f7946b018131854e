//! A figure of a study with its interval.

use serde::Serialize;
use wellread_measure::compare::MIN_SAMPLES;
use wellread_measure::intervals::IntervalEstimator;
use wellread_measure::samples::median;

/// A figure with its 95 % interval, of which there is none where the rounds are too few.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Median over the rounds.
    pub value: f64,
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Figure {
    /// The median of one value per round. Infinite values stand for "never" and take no part in arithmetic: a median, or an end
    /// of the interval, that touches one is infinite itself.
    pub fn of(values: &[f64], estimator: &IntervalEstimator) -> Self {
        if !values.contains(&f64::INFINITY) {
            return Self::of_numbers(values, estimator);
        }
        let largest = values.iter().copied().filter(|v| v.is_finite()).fold(f64::NEG_INFINITY, f64::max);
        // Larger than all numbers: only what was made with it is larger than those.
        let never = 2.0 * largest.max(0.0) + 1.0;
        let numbers: Vec<f64> = values.iter().map(|v| if *v == f64::INFINITY { never } else { *v }).collect();
        let figure = Self::of_numbers(&numbers, estimator);
        let told = |v: f64| if v > largest { f64::INFINITY } else { v };
        Self { value: told(figure.value), low: figure.low.map(told), high: figure.high.map(told) }
    }

    fn of_numbers(values: &[f64], estimator: &IntervalEstimator) -> Self {
        let interval = estimator.median(values).filter(|_| values.len() >= MIN_SAMPLES);
        Self {
            value: median(values).unwrap_or(f64::NAN),
            low: interval.map(|i| i.low),
            high: interval.map(|i| i.high),
        }
    }
}
