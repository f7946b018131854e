//! Results as the commands write them, compared.

mod few;
mod files;
mod verdicts;

use std::path::Path;
use wellread_measure::rng::Rng;
use wellread_report::{ReportInput, Table, row};

/// A results folder of the dataset benchmark: `formats` with their median and noise.
fn folder(
    dir: &Path,
    formats: &[(&str, f64)],
    seed: u64,
    details: &[(&str, serde_json::Value)],
) -> ReportInput {
    let mut rng = Rng::seed(seed);
    let mut table = Table::new("dataset");
    for run in 0..10 {
        for (format, level) in formats {
            let p50 = level * (0.01 * rng.normal()).exp();
            table.push(row![
                ("format", *format),
                ("access", "random"),
                ("run", run),
                ("verified", true),
                ("status", "ok"),
                ("p50_s", p50),
                ("samples_per_sec", 1.0 / p50),
                ("bytes_on_disk", 4096)
            ]);
        }
    }
    table.push(row![("format", "lance"), ("status", "unavailable"), ("reason", "not in this build")]);
    let mut known = serde_json::Map::new();
    known.insert("wellread".into(), "0.1.0".into());
    known.insert("pixel_checksum".into(), "00ff".into());
    known.extend(details.iter().map(|(k, v)| ((*k).to_owned(), v.clone())));
    let input = ReportInput {
        tables: vec![table],
        details: known,
        noise_floors: [("dataset".to_owned(), 0.01)].into(),
        ..ReportInput::default()
    };
    input.save(dir).unwrap();
    input
}
