//! Sweeps of the storage benchmark: the same images written in several ways in every format.
//!
//! ```text
//!  Config::sweeps ─▶ prepare: one folder of sets per setting (data/sweep/compression-zstd-3 …)
//!                                  │ same images, same checksums as the session's own sets
//!                                  ▼
//!              variants::run: every setting of every format interleaved ─▶ Table ─▶ report
//! ```
//!
//! A sweep is a [`Benchmark`] with a table of its own; it is no name on the command line, because it belongs to
//! `storage` and takes as long as several of it.

pub mod compression;
pub mod layout;

use crate::choices::Sweep;
use crate::config::Config;
use crate::data::FormatSet;
use crate::storage;
use crate::suite::{Benchmark, Session, find_codecs, prepare_in};
use anyhow::{Result, bail};
use wellread_report::{Finding, Severity, Table};
use wellread_store::checksum::ImageChecksum;
use wellread_store::{WriteOptions, registry};

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

/// The session's images in all its formats, written with `options` and kept in a folder of this name.
///
/// # Errors
/// The source cannot be read again, or gives other images now. A format that cannot be written so says why in
/// [`FormatSet::error`].
fn prepare(session: &Session<'_>, name: &str, options: &WriteOptions) -> Result<Vec<FormatSet>> {
    let folder = session.prepared.folder.join("sweep").join(name);
    let sets = &session.prepared.sets;
    let formats: Vec<_> = sets.iter().filter_map(|set| registry::format_named(set.format).ok()).collect();
    let source = &session.config.source;
    let mut prepared = prepare_in(&folder, source, &formats, options, session.watch.progress)?;
    let written = prepared.sets.iter().any(|set| set.error.is_none());
    if written && prepared.expected != session.prepared.expected {
        bail!("{}: the images differ from those prepared before; was the source changed?", folder.display());
    }
    for set in &mut prepared.sets {
        // The folder is this benchmark's own and says nothing; without it equal reasons are told once.
        let own = format!("{}: ", set.path.display());
        set.error = set.error.take().map(|e| e.strip_prefix(&own).unwrap_or(&e).to_owned());
    }
    find_codecs(&mut prepared.sets);
    // Formats that this build lacks come last in the session's sets too.
    prepared.sets.extend(sets[formats.len()..].iter().cloned());
    Ok(prepared.sets)
}

/// What formats do not have of a sweep's settings, which are in `column`.
fn lacking(table: &Table, column: &str, what: &str) -> Option<Finding> {
    let mut formats: Vec<(String, Vec<String>, String)> = Vec::new();
    let missing = registry::missing_formats();
    for r in (0..table.rows()).filter(|&r| table.str("status", r) == Some("unavailable")) {
        let text = |column: &str| table.str(column, r).unwrap_or_default().to_owned();
        let (format, setting) = (text("format"), text(column));
        // A format that cannot be used here lacks everything; that is said once for all benchmarks.
        if missing.iter().any(|(name, _)| *name == format) {
            continue;
        }
        match formats.iter_mut().find(|f| f.0 == format) {
            Some((_, settings, _)) if settings.contains(&setting) => {}
            Some((_, settings, _)) => settings.push(setting),
            None => formats.push((format, vec![setting], text("reason"))),
        }
    }
    if formats.is_empty() {
        return None;
    }
    let names: Vec<_> = formats.iter().map(|f| format!("{} in {}", f.1.join(", "), f.0)).collect();
    let reasons: Vec<_> = formats.iter().map(|f| format!("{}: {}", f.0, f.2)).collect();
    let text = format!("{what} of the sweep that are not available: {}", names.join("; "));
    Some(Finding::new(Severity::Info, text, reasons.join("; ")))
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
