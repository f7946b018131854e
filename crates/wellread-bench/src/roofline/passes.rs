//! How a limit is measured: repeated passes, of which the fastest counts.

use anyhow::Result;
use std::time::Duration;
use wellread_measure::clock::Stopwatch;

/// Time of one limit of one set.
pub(super) const BUDGET: Duration = Duration::from_millis(300);

/// Fewest passes behind a limit, and most.
pub(super) const PASSES: (usize, usize) = (3, 50);

/// Things per second over repeated passes of `count` of them, each of which tells its seconds: of the fastest.
pub(super) fn rate(count: usize, mut pass: impl FnMut() -> Result<f64>) -> Result<f64> {
    // Caches fill, buffers grow.
    pass()?;
    let whole = Stopwatch::start();
    let mut times = Vec::new();
    while times.len() < PASSES.0 || (times.len() < PASSES.1 && whole.elapsed() < BUDGET.as_secs_f64()) {
        times.push(pass()?);
    }
    Ok(count as f64 / times.into_iter().fold(f64::INFINITY, f64::min))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_things_per_second() {
        let mut passes = 0;
        let found = rate(100, || {
            passes += 1;
            // The fastest pass counts; the first, of 9 s, fills caches.
            Ok([0.01, 9.0, 0.02, 0.02, 0.05][passes.min(4)])
        });
        assert_eq!(found.unwrap(), 100.0 / 0.02, "{passes} passes");
    }
}
