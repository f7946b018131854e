//! `samples/WHAT.hlog`: the times of a benchmark's items as histograms, for HdrHistogram's tools.
//!
//! ```text
//! samples (one list per run) ─▶ one histogram per configuration, all its runs added up ─▶ interval log, a tag each
//! ```

use anyhow::Result;
use std::path::Path;
use std::time::{Duration, SystemTime};
use wellread_measure::{Histogram, histogram};
use wellread_report::{Cell, Column, SAMPLES_FOLDER, Samples};

/// Writes the histograms of a benchmark below the results folder, whole or not at all; none where nothing was timed.
pub(crate) fn save(out: &Path, samples: &Samples, began: SystemTime, lasted: Duration) -> Result<()> {
    let tagged = tagged(samples);
    if tagged.is_empty() {
        return Ok(());
    }
    let runs = samples.runs();
    let comment =
        format!("wellread {}: times of items of benchmark {}", env!("CARGO_PKG_VERSION"), runs.name());
    let mut log = Vec::new();
    histogram::write_log(&mut log, &comment, began, lasted, &tagged)?;
    let path = out.join(SAMPLES_FOLDER).join(format!("{}.hlog", runs.name()));
    Ok(wellread_store::staged::write(&path, log)?)
}

/// One histogram per configuration, in the order of the table.
fn tagged(samples: &Samples) -> Vec<(String, Histogram)> {
    let runs = samples.runs();
    let mut tagged: Vec<(String, Histogram)> = Vec::new();
    for (row, seconds) in samples.seconds().iter().enumerate().filter(|(_, seconds)| !seconds.is_empty()) {
        // Neither the number of a run nor its place in its round tells configurations apart.
        let names =
            runs.columns().iter().map(Column::name).filter(|name| !matches!(*name, "run" | "position"));
        let keys = names.filter_map(|name| {
            let cell = runs.cell(name, row);
            (cell != Cell::Null).then(|| format!("{name}={}", cell.text()))
        });
        let tag = keys.collect::<Vec<_>>().join(",");
        let times = seconds.iter().copied().collect();
        match tagged.iter_mut().find(|(other, _)| *other == tag) {
            Some((_, histogram)) => histogram.add(&times),
            None => tagged.push((tag, times)),
        }
    }
    tagged
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_report::row;

    #[test]
    fn runs_of_a_configuration_are_added_up() {
        let mut samples = Samples::new("dataset");
        let tiff = |run: i64, position: i64| {
            row![("format", "tiff"), ("workers", 2), ("run", run), ("position", position)]
        };
        samples.push(tiff(0, 1), vec![0.5; 3]);
        samples.push(row![("format", "lance"), ("run", 0)], vec![0.25]);
        samples.push(tiff(1, 0), vec![0.5; 4]);
        samples.push(row![("format", "zarr"), ("run", 0)], vec![]);
        let tagged = tagged(&samples);
        let found: Vec<_> = tagged.iter().map(|(tag, h)| (tag.as_str(), h.len())).collect();
        assert_eq!(found, [("format=tiff,workers=2", 7), ("format=lance", 1)]);
        let out = tempfile::tempdir().unwrap();
        save(out.path(), &samples, SystemTime::now(), Duration::from_secs(1)).unwrap();
        let text = std::fs::read_to_string(out.path().join("samples/dataset.hlog")).unwrap();
        assert_eq!(text.lines().filter(|line| line.starts_with("Tag=format")).count(), 2, "{text}");
    }
}
