//! A run as a report: a table with a row per configuration and round, what it says in sentences, figures, `report.html`.
//!
//! ```text
//!  Run ─▶ table "inference" ─┐
//!     └─▶ findings ──────────┴▶ ReportInput ─▶ benchmark_results_…/: inference.parquet, .csv, .svg, .png, summary.json, report.html
//! ```

mod noise;
mod ranking;

pub use ranking::{NEEDED, Ranking, RankingVerdict, rankings};

use crate::results::{Record, Row, Run, Status};
use crate::source;
use anyhow::{Context as _, Result};
use noise::noise;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use wellread_measure::samples::median;
use wellread_report::{Cell, Fact, Finding, ReportInput, Samples, Severity, Table, Thumbnail};
use wellread_store::words::counted;
use wellread_store::{preview, registry};

/// Name of the table.
const TABLE: &str = "inference";

/// Writes the report beside the run's CSV file, in a folder of its name; returns the folder.
///
/// `environment` and `machine` are the machine in words.
///
/// # Errors
/// A folder that cannot be written.
pub fn write(run: &Run, environment: Vec<Fact>, machine: String) -> Result<PathBuf> {
    let folder = run.csv.with_extension("");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let input = input(run, environment, machine);
    let written = input
        .save(&folder)
        .and_then(|()| wellread_report::write_figures(&folder, &input).map(drop))
        .and_then(|()| wellread_report::write_report(&folder, &input).map(drop));
    if let Err(error) = written {
        // A part of a report is none; it can be made again from the tables.
        let _ = std::fs::remove_dir_all(&folder);
        return Err(error).context("the report was not written");
    }
    Ok(folder)
}

/// The question, and that there is no answer where no configuration was measured, or none often enough for an interval.
fn title(records: &[Record]) -> String {
    const QUESTION: &str = "Which framework ran the model fastest?";
    if !records.is_empty() && records.iter().all(|record| record.row.status == Status::Failed) {
        return format!("{QUESTION} Nothing was measured");
    }
    let mut measured = records.iter().filter(|record| record.row.status == Status::Ok).peekable();
    if measured.peek().is_some() && measured.all(|record| record.row.latency_p50_low_ms.is_none()) {
        return format!("{QUESTION} Too short to say");
    }
    QUESTION.to_owned()
}

/// The parts of the report.
pub fn input(run: &Run, environment: Vec<Fact>, machine: String) -> ReportInput {
    let config = &run.config;
    let about = format!(
        "{}, {}, {}, seed {}",
        config.data.as_ref().map_or("synthetic images".to_owned(), |path| path.display().to_string()),
        config.dtype,
        counted(config.threads, "thread"),
        config.seed
    );
    let configuration = [
        ("Frameworks", config.frameworks.join(", ")),
        ("Models", config.models.join(", ")),
        (
            "Images per pass",
            config.batch_sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        ),
        ("Passes measured", config.iterations.to_string()),
        ("Passes before them", format!("{} at least, until latency is steady", config.warmup)),
        ("Type", config.dtype.clone()),
        ("Threads of each framework", config.threads.to_string()),
        ("Seed", config.seed.to_string()),
        ("Results", run.csv.display().to_string()),
        ("All samples", run.json.display().to_string()),
    ];
    let noise = noise(run);
    // One framework alone, or others that failed, leave nothing to compare with.
    let compared = run.rows().any(|row| row.max_difference.is_some());
    ReportInput {
        title: title(&run.records),
        description: format!(
            "All frameworks run the same weights on the same images, each in a process of its own, in turns in random order. A \
             figure is the median over rounds, with six rounds and more its 95 % interval is that of the medians of rounds. \
             {} compared.",
            if compared { "Outputs were" } else { "No outputs were" }
        ),
        generated: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
        findings: findings(run),
        configuration: configuration.into_iter().map(Fact::from).collect(),
        environment,
        machine,
        images: about,
        warnings: warnings(run),
        thumbnails: thumbnails(run),
        commands: vec![config.command.clone()],
        tables: vec![table(run)],
        samples: vec![samples(run)],
        details: details(run),
        noise_floor: noise.map(|(floor, _)| floor),
        detectable: noise.map(|(_, least)| (TABLE.to_owned(), least)).into_iter().collect(),
        ..ReportInput::default()
    }
}

/// The facts needed to repeat the run, and to see what another was measured on and with.
fn details(run: &Run) -> Map<String, Value> {
    let config = &run.config;
    let mut configuration = serde_json::to_value(config).unwrap_or_default();
    // Where this program lies is the machine's.
    if let Some(all) = configuration.as_object_mut() {
        all.remove("server");
    }
    // In the words of the samples' file, which may be compared with this one.
    let images = config.data.as_ref().map_or("synthetic".to_owned(), |path| path.display().to_string());
    let details = [
        ("wellread", Value::from(env!("CARGO_PKG_VERSION"))),
        ("configuration", configuration),
        ("images", images.into()),
        ("seed", config.seed.into()),
        ("environment", serde_json::to_value(&run.environment).unwrap_or_default()),
        ("frameworks", frameworks(run).into()),
        ("engines", serde_json::to_value(registry::engines()).unwrap_or_default()),
        ("nodes", nodes(run)),
    ];
    details.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The causes of noisy or hardly comparable figures, one sentence each; empty is good.
pub fn warnings(run: &Run) -> Vec<String> {
    let mut warnings = run.environment.noise_warnings();
    let kinds = run.node_kinds();
    if kinds.len() > 1 {
        let kinds: Vec<String> = kinds.into_iter().collect();
        warnings.push(format!(
            "Models were measured on unlike nodes, so that they do not compare: {}.",
            kinds.join(" / ")
        ));
    }
    warnings
}

/// The kinds of nodes of a cluster, where one was asked for.
fn nodes(run: &Run) -> Value {
    let kinds = run.node_kinds();
    if kinds.is_empty() { Value::Null } else { kinds.into_iter().collect() }
}

/// The description that each framework gave of itself.
fn frameworks(run: &Run) -> Map<String, Value> {
    let said = run.records.iter().filter_map(|record| Some((name(&record.row), record.opened.as_ref()?)));
    said.map(|(name, opened)| {
        let about = json!({
            "backend": opened.backend,
            "device": opened.device_name,
            "versions": opened.versions,
        });
        (name, about)
    })
    .collect()
}

/// Pictures of the first images, where there are some and they can be drawn.
fn thumbnails(run: &Run) -> Vec<Thumbnail> {
    let drawn = |path: &PathBuf| -> Result<Vec<Thumbnail>> {
        let store = source::images(&run.config, path)?;
        let pictures = preview::first(&*store, 8, 160)?.into_iter();
        pictures.map(|(caption, picture)| Ok(Thumbnail::from_png(caption, &picture.to_png()?))).collect()
    };
    run.config.data.as_ref().and_then(|path| drawn(path).ok()).unwrap_or_default()
}

/// The framework, and the way it was run where there are several.
fn name(row: &Row) -> String {
    crate::runner::name(&row.framework, &row.variant)
}

/// The keys that tell a configuration apart.
fn keys(row: &Row) -> Vec<(&'static str, Cell)> {
    vec![
        ("framework", Cell::from(name(row))),
        ("model", Cell::from(&row.model)),
        ("batch_size", Cell::from(row.batch_size)),
        ("device", Cell::from(&row.device)),
        ("dtype", Cell::from(&row.dtype)),
    ]
}

/// Seconds of every pass of every round whose outputs were right.
fn samples(run: &Run) -> Samples {
    let mut samples = Samples::new(TABLE);
    for Record { row, rounds, .. } in run.records.iter().filter(|record| record.row.status == Status::Ok) {
        for round in rounds.iter().filter(|round| !round.samples_ns.is_empty()) {
            let mut of = keys(row);
            of.push(("run", Cell::from(round.round)));
            let seconds = round.samples_ns.iter().map(|&ns| ns as f64 * 1e-9).collect();
            samples.push(of.into_iter().map(|(name, cell)| (name.to_owned(), cell)).collect(), seconds);
        }
    }
    samples
}

fn table(run: &Run) -> Table {
    let mut table = Table::new(TABLE);
    for Record { row, rounds, .. } in &run.records {
        // Figures of wrong outputs are not to be compared with others.
        if row.status != Status::Ok {
            let mut failed = keys(row);
            failed.push(("status", Cell::from("unavailable")));
            failed.push(("reason", Cell::from(row.reason.as_deref().unwrap_or("not measured"))));
            table.push(failed);
            continue;
        }
        for round in rounds.iter().filter(|round| !round.samples_ns.is_empty()) {
            let samples: Vec<f64> = round.samples_ns.iter().map(|&ns| ns as f64 * 1e-9).collect();
            let mut measured = keys(row);
            measured.extend([
                ("run", Cell::from(round.round)),
                ("latency_p50_s", Cell::from(median(&samples))),
                ("throughput_ips", Cell::from(round.throughput(row.batch_size))),
                ("memory_mb", Cell::from(row.memory_mb)),
                ("end_to_end_ips", Cell::from(round.fed_throughput(row.batch_size))),
                ("compilation_s", Cell::from(row.compilation_time_ms.map(|ms| ms * 1e-3))),
                ("max_difference", Cell::from(row.max_difference)),
                ("status", Cell::from("ok")),
            ]);
            table.push(measured);
        }
    }
    table
}

/// The findings of the rows.
fn findings(run: &Run) -> Vec<Finding> {
    let mut found = Vec::new();
    let of = |status: Status| run.rows().filter(move |row| row.status == status);
    for row in of(Status::Invalid) {
        found.push(Finding::new(
            Severity::Bad,
            format!(
                "{}, {}, batch {}: the outputs differ from those of the others; its figures must not be used.",
                name(row),
                row.model,
                row.batch_size
            ),
            row.reason.clone().unwrap_or_default(),
        ));
    }
    found.extend(rankings(run).into_iter().map(Ranking::finding));
    let differences = run.rows().filter_map(|row| row.max_difference);
    if of(Status::Invalid).next().is_none()
        && let Some(largest) = differences.reduce(f64::max)
    {
        found.push(Finding::new(
            Severity::Good,
            format!(
                "Frameworks that were compared compute the same: outputs differ by {largest:.1e} of the largest at most."
            ),
            "Compared on the same images after the warm-up, wherever at least two frameworks ran.",
        ));
    }
    let waits = of(Status::Ok).filter_map(|row| Some((row, row.data_wait_fraction?)));
    if let Some((row, wait)) = waits.max_by(|a, b| a.1.total_cmp(&b.1)) {
        found.push(Finding::new(
            if wait < 0.1 { Severity::Good } else { Severity::Caution },
            format!(
                "From stored images to outputs, {} waits for images {:.0} % of the time at most ({}, batch {}).",
                name(row),
                100.0 * wait,
                row.model,
                row.batch_size
            ),
            if wait < 0.1 { "" } else { "More --workers, or images kept smaller or less compressed, would help." },
        ));
    }
    let unsteady = of(Status::Ok).filter(|row| row.steady == Some(false)).count();
    if unsteady > 0 {
        found.push(Finding::new(
            Severity::Caution,
            format!(
                "Latency was not steady after the warm-up in {unsteady} of {}.",
                counted(run.records.len(), "configuration")
            ),
            "The machine was busy, or a longer --warmup is needed.",
        ));
    }
    let mut reasons: Vec<(String, String)> = Vec::new();
    for row in of(Status::Failed) {
        let reason = row.reason.clone().unwrap_or_default();
        let what = format!("{} {} batch {}", name(row), row.model, row.batch_size);
        match reasons.iter_mut().find(|known| known.1 == reason) {
            Some(known) => known.0 += &format!("; {what}"),
            None => reasons.push((what, reason)),
        }
    }
    found.extend(
        reasons
            .into_iter()
            .map(|(what, reason)| Finding::new(Severity::Caution, format!("Not measured: {what}."), reason)),
    );
    found
}

#[cfg(test)]
mod tests;
