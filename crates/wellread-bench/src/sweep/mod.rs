//! Sweeps of the storage benchmark: the same images written in several ways in every format.
//!
//! ```text
//!  Config::sweeps ─▶ prepare: one folder of sets per setting (data/sweep/compression-zstd-3 …)
//!                                  │ same images, same checksums as the session's own sets
//!                                  ▼
//!              variants::run: every setting of every format interleaved ─▶ Table ─▶ report
//! ```
//!
//! A sweep is a [`Benchmark`] with a table of its own. It is no name on the command line, because it belongs to
//! `storage` and takes as long as several of it.

pub mod compression;
pub mod layout;
mod sets;

use crate::choices::Sweep;
use crate::config::Config;
use crate::core::Benchmark;
use crate::storage;
use anyhow::{Result, bail};
use wellread_store::checksum::ImageChecksum;

/// All sweeps in the order of a report. One line each.
pub static SWEEPS: &[(Sweep, &Benchmark)] =
    &[(Sweep::Compression, &compression::BENCHMARK), (Sweep::Layout, &layout::BENCHMARK)];

/// The benchmark behind a sweep.
pub fn benchmark(sweep: Sweep) -> &'static Benchmark {
    SWEEPS.iter().find(|(known, _)| *known == sweep).expect("every sweep is registered").1
}

/// Whether the table of this name is a sweep's.
pub(crate) fn is_table(name: &str) -> bool {
    SWEEPS.iter().any(|(_, benchmark)| benchmark.name == name)
}

/// The sweeps that are asked for, each once.
///
/// # Errors
/// Sweeps without the benchmark they belong to, or of a set that is to be measured as it lies there.
pub(crate) fn select(config: &Config, benchmarks: &[&Benchmark]) -> Result<Vec<Sweep>> {
    if config.sweeps.is_empty() {
        return Ok(vec![]);
    }
    if !benchmarks.iter().any(|b| b.name == storage::BENCHMARK.name) {
        bail!("sweeps belong to the storage benchmark, which was not asked for: add `storage`");
    }
    if config.in_place {
        bail!("a sweep writes the images in several ways; it cannot measure them as they lie there");
    }
    Ok(Sweep::ALL.iter().copied().filter(|sweep| config.sweeps.contains(sweep)).collect())
}

/// Why a sweep of these images would show nothing.
pub(crate) fn reason_to_skip(sweep: Sweep, images: &[ImageChecksum]) -> Option<String> {
    (sweep == Sweep::Layout && !images.iter().any(layout::has_depth)).then(|| {
        "sweep: the layout part was skipped, because the set has no depth: every image has one plane along Z"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite;

    #[test]
    fn sweeps_belong_to_storage_and_run_once_each() {
        let config =
            |sweeps: &[Sweep], in_place| Config { sweeps: sweeps.to_vec(), in_place, ..Config::default() };
        let of = |what: &str| suite::select(&[what.to_owned()]).unwrap();
        let twice = config(&[Sweep::Layout, Sweep::Compression, Sweep::Layout], false);
        assert_eq!(select(&twice, &of("all")).unwrap(), [Sweep::Compression, Sweep::Layout]);
        assert_eq!(select(&config(&[], true), &of("dataset")).unwrap(), []);
        assert!(select(&twice, &of("dataset")).unwrap_err().to_string().contains("storage"));
        assert!(select(&config(&[Sweep::Layout], true), &of("storage")).is_err());
        for (sweep, benchmark) in SWEEPS {
            assert!(is_table(benchmark.name) && !is_table(sweep.name()));
            assert!(suite::benchmark(benchmark.name).is_some());
            assert!(
                suite::select(&[benchmark.name.to_owned()]).is_err(),
                "a sweep is no name to be asked for"
            );
        }
    }
}
