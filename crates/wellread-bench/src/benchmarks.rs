//! The list of all benchmarks.
//!
//! ```text
//!  names that were asked for ─▶ select ─▶ benchmarks in the order of a report
//!  name of a table ─▶ benchmark ─▶ the benchmark or sweep that it is of
//! ```

use crate::core::Benchmark;
use crate::{conversion, dataloader, dataset, model_loop, storage, sweep};
use anyhow::{Result, bail};

/// All benchmarks in the order of a report. One line each.
pub static BENCHMARKS: &[&Benchmark] = &[
    &storage::BENCHMARK,
    &dataset::BENCHMARK,
    &dataloader::BENCHMARK,
    &model_loop::BENCHMARK,
    &conversion::BENCHMARK,
];

/// The benchmark or sweep of that name, which is also that of its table.
pub fn benchmark(name: &str) -> Option<&'static Benchmark> {
    let sweeps = sweep::SWEEPS.iter().map(|(_, benchmark)| *benchmark);
    BENCHMARKS.iter().copied().chain(sweeps).find(|benchmark| benchmark.name == name)
}

/// The benchmarks of these names, in report order.
///
/// # Errors
/// An unknown name.
pub fn select(names: &[String]) -> Result<Vec<&'static Benchmark>> {
    let is_known = |name: &str| name == "all" || BENCHMARKS.iter().any(|b| b.name == name);
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        let known: Vec<_> = BENCHMARKS.iter().map(|b| b.name).collect();
        bail!("unknown benchmark {unknown:?}; there are all, {}", known.join(", "));
    }
    let wanted = |b: &&&Benchmark| names.iter().any(|n| n == "all" || n == b.name);
    Ok(BENCHMARKS.iter().filter(wanted).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::benchmark;

    #[test]
    fn the_first_epoch_is_printed_wherever_there_are_epochs() {
        for name in ["dataset", "dataloader", "loop"] {
            let headline = benchmark(name).unwrap().headline;
            assert!(headline.contains(&"first_epoch_images_per_s"), "{name}: {headline:?}");
        }
    }
}
