//! How far a configuration lies from itself.

use crate::results::{Record, Run, Status};
use wellread_measure::compare::MIN_SAMPLES;
use wellread_measure::samples::median;

/// The noise floor and the smallest detectable slow-down. The floor is the distance of one half of a configuration's
/// rounds from the other, as if it had been measured twice (A/A). The slow-down is found beyond that and the whole
/// width of its interval. Both are fractions, the largest of all configurations whose outputs were right. Halves are
/// every other two rounds crosswise (0, 3, 4, 7, … and 1, 2, 5, 6, …), so that drift cancels. They are compared
/// by the medians of all their passes.
pub(super) fn noise(run: &Run) -> Option<(f64, f64)> {
    let ok = run.records.iter().filter(|record| record.row.status == Status::Ok);
    let of = |record: &Record| {
        let half = |first: bool| {
            let rounds =
                record.rounds.iter().enumerate().filter(|(i, _)| (i % 4 == 0 || i % 4 == 3) == first);
            median(&rounds.flat_map(|(_, round)| &round.samples_ns).map(|&ns| ns as f64).collect::<Vec<_>>())
        };
        let floor = (half(true)? / half(false)?).ln().abs();
        let width = (record.row.latency_p50_high_ms? / record.row.latency_p50_low_ms?).ln();
        Some((floor, floor + width)).filter(|(floor, whole)| floor.is_finite() && whole.is_finite())
    };
    let found = ok.filter(|record| record.rounds.len() >= MIN_SAMPLES).filter_map(of);
    let (floor, whole) = found.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)))?;
    Some((floor.exp_m1(), whole.exp_m1()))
}
