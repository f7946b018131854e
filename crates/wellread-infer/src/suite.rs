//! The whole run: every model, every batch size, all frameworks side by side; results are written after each.

use crate::check;
use crate::config::Config;
use crate::contender::Contender;
use crate::measure::{Batch, Measured, measure};
use crate::models::Model;
use crate::protocol::Opened;
use crate::results::{Record, Row, Run, Status};
use crate::shared::Shared;
use crate::source::Source;
use crate::{statistics, written};
use anyhow::{Context as _, Result};
use std::cell::RefCell;
use std::path::Path;
use wellread_measure::environment::GitState;
use wellread_measure::samples::median;
use wellread_measure::{Environment, process};

/// What happens, told as it happens.
#[derive(Debug)]
pub enum Event<'e> {
    /// A framework has opened a model, or cannot.
    Opened {
        /// Name for people, with the way it is run.
        name: String,
        /// The model.
        model: &'e str,
        /// What it runs on, or why not.
        opened: &'e Result<Opened, String>,
    },
    /// A turn begins.
    Progress {
        /// Framework, model and batch size.
        what: &'e str,
        /// Turns of this model and batch size that are done.
        done: usize,
        /// All of them.
        of: usize,
    },
    /// A configuration is done.
    Row {
        /// Name for people.
        name: String,
        /// Its figures.
        row: &'e Row,
    },
}

/// Measures everything that `config` asks for.
///
/// # Errors
/// What is wrong with the whole run: choices that make no sense, images that cannot be opened, a folder that cannot be
/// written. What is wrong with one framework, model or batch size is a row that says so.
pub fn run(config: &Config, tell: &dyn Fn(&Event<'_>)) -> Result<Run> {
    config.check()?;
    let models: Vec<Model> =
        config.models.iter().map(|name| Model::find(name, config)).collect::<Result<_>>()?;
    let source = Source::open(config)?;
    let (csv, json) = written::begin(&config.output_dir)?;
    let environment = Environment::capture(&[&config.output_dir]).with_git(Path::new("."));
    let mut run = Run { config: config.clone(), environment, records: Vec::new(), csv, json };
    for model in &models {
        let mut contenders = start(model, config, tell)?;
        for &size in &config.batch_sizes {
            let records = configuration(&mut contenders, model, size, &source, config, tell)?;
            run.records.extend(records);
            written::write(&run)?;
            let labels = contenders.iter().map(label);
            let new = run.records.len() - contenders.len();
            for (name, record) in labels.zip(&run.records[new..]) {
                tell(&Event::Row { name, row: &record.row });
            }
        }
    }
    Ok(run)
}

/// Starts every framework in every way asked for.
fn start(model: &Model, config: &Config, tell: &dyn Fn(&Event<'_>)) -> Result<Vec<Contender>> {
    let mut contenders: Vec<Contender> = Vec::new();
    for backend in config.backends()? {
        for variant in backend.variants(config) {
            tell(&Event::Progress { what: &format!("starting {}", backend.label()), done: 0, of: 1 });
            let contender = Contender::start(backend, variant, model, config);
            // The same framework twice would be one name for two.
            if contenders.iter().any(|other| other.name() == contender.name()) {
                continue;
            }
            tell(&Event::Opened { name: label(&contender), model: model.name(), opened: &contender.opened });
            contenders.push(contender);
        }
    }
    Ok(contenders)
}

/// Name for people: the framework's, and the way it is run.
fn label(contender: &Contender) -> String {
    contender.name().replacen(contender.backend.name(), contender.backend.label(), 1)
}

/// One batch size of a model, in all frameworks: a record for each.
fn configuration(
    contenders: &mut [Contender],
    model: &Model,
    size: usize,
    source: &Source,
    config: &Config,
    tell: &dyn Fn(&Event<'_>),
) -> Result<Vec<Record>> {
    let input = model.input();
    let images = source.batch(size, input, config);
    let shared = images.and_then(|images| Shared::new(&images, size, model.classes()));
    let shared = match shared {
        Ok(shared) => RefCell::new(shared),
        Err(error) => {
            let reason = format!("{error:#}");
            let failed = |contender: &Contender| {
                record(
                    contender,
                    model,
                    size,
                    config,
                    Err(contender.opened.clone().err().unwrap_or(reason.clone())),
                )
            };
            return Ok(contenders.iter().map(failed).collect());
        }
    };
    let batch = Batch { size, input, source, shared: &shared };
    let measured = measure(contenders, &batch, config, &|progress| {
        let what = format!("{} {} x{size}", progress.variant, model.name());
        tell(&Event::Progress { what: &what, done: progress.turns_done, of: progress.turns });
    })?;
    let outputs: Vec<(String, Vec<f32>)> = contenders
        .iter()
        .zip(&measured)
        .filter_map(|(c, m)| m.as_ref().ok().map(|m| (c.name(), m.warm.logits.clone())))
        .collect();
    let (verdicts, reference) = check::compare(&outputs, config.dtype()?);
    let mut verdicts = verdicts.into_iter();
    let mut records = Vec::new();
    for (contender, measured) in contenders.iter().zip(measured) {
        let mut record = record(contender, model, size, config, measured);
        if record.row.status == Status::Ok {
            let verdict = verdicts.next().context("every outputs have a verdict")?;
            record.row.max_difference = verdict.difference;
            record.row.reference.clone_from(&reference);
            if !verdict.valid {
                record.row.status = Status::Invalid;
                record.row.reason = verdict.reason;
            }
        }
        records.push(record);
    }
    Ok(records)
}

/// The row of a configuration and its samples.
fn record(
    contender: &Contender,
    model: &Model,
    size: usize,
    config: &Config,
    measured: Result<Measured, String>,
) -> Record {
    let [c, h, w] = model.input();
    let opened = contender.opened.as_ref().ok().cloned();
    let about = opened.clone().unwrap_or_default();
    let mut row = Row {
        framework: contender.backend.name().to_owned(),
        model: model.name().to_owned(),
        device: about.device,
        device_type: about.device_type,
        batch_size: size,
        input_shape: format!("({c}, {h}, {w})"),
        dtype: config.dtype.clone(),
        timestamp: jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S").to_string(),
        git_commit: GitState::read(Path::new(".")).map(|git| git.commit),
        variant: contender.variant.clone(),
        data_source: config.data.as_ref().map_or("synthetic".to_owned(), |path| path.display().to_string()),
        threads: config.threads,
        processors: process::first_processors(config.threads).map(|p| listed(&p)),
        import_ms: opened.as_ref().map(|opened| opened.import_ms),
        load_ms: opened.as_ref().map(|opened| opened.load_ms),
        backend: opened.as_ref().map(|opened| opened.backend.clone()),
        device_name: about.device_name,
        layout: about.layout,
        seed: config.seed,
        wellread: env!("CARGO_PKG_VERSION").to_owned(),
        ..Row::default()
    };
    let measured = match measured {
        Ok(measured) => measured,
        Err(reason) => {
            row.reason = Some(reason);
            return Record { row, opened, ..Record::default() };
        }
    };
    fill(&mut row, &measured, size, config.seed);
    Record { row, opened, warmup_ns: measured.warm.samples_ns, rounds: measured.rounds }
}

/// The figures of a row.
fn fill(row: &mut Row, measured: &Measured, size: usize, seed: u64) {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let rounds: Vec<Vec<u64>> = measured.rounds.iter().map(|round| round.samples_ns.clone()).collect();
    let samples = rounds.concat();
    let Some(latency) = statistics::latency(&samples) else {
        row.reason = Some("no pass was measured".to_owned());
        return;
    };
    let wall: u64 = measured.rounds.iter().map(|round| round.wall_ns).sum();
    row.status = Status::Ok;
    row.latency_p50_ms = Some(latency.p50);
    row.latency_p95_ms = Some(latency.p95);
    row.latency_p99_ms = Some(latency.p99);
    row.latency_mean_ms = Some(latency.mean);
    row.latency_std_ms = Some(latency.std);
    row.latency_min_ms = Some(latency.min);
    row.latency_max_ms = Some(latency.max);
    row.throughput_ips = Some((size * samples.len()) as f64 / (wall as f64 * 1e-9));
    row.host_peak_mb = measured.warm.host_peak.map(mib);
    row.device_peak_mb = measured.device_peak.map(mib);
    row.memory_mb = row.device_peak_mb.or(row.host_peak_mb);
    row.compilation_time_ms = measured.prepared.compilation_time_ms;
    row.samples = samples.len();
    row.outliers = Some(latency.outliers);
    row.warmup_passes = Some(measured.warm.samples_ns.len());
    // Without a warm-up there is nothing to tell it by.
    row.steady = (measured.warm.samples_ns.len() > 1).then_some(measured.warm.steady);
    if let Some(interval) = statistics::interval(&rounds, seed) {
        row.latency_p50_low_ms = Some(interval.low);
        row.latency_p50_high_ms = Some(interval.high);
    }
    let steps: Vec<_> = measured.rounds.iter().flat_map(|round| &round.steps).collect();
    let whole: Vec<f64> = steps.iter().map(|step| step.whole_ns as f64 * 1e-6).collect();
    let total: f64 = whole.iter().sum();
    row.end_to_end_p50_ms = median(&whole);
    if row.end_to_end_p50_ms.is_some() {
        let waited: f64 = steps.iter().map(|step| step.wait_ns as f64 * 1e-6).sum();
        row.end_to_end_ips = Some((size * whole.len()) as f64 / (total * 1e-3));
        row.data_wait_fraction = Some(waited / total);
    }
}

/// Processors as Linux writes them where they follow each other: `0-1`.
fn listed(processors: &[usize]) -> String {
    match (processors.first(), processors.last()) {
        (Some(first), Some(last)) if last > first && last - first + 1 == processors.len() => {
            format!("{first}-{last}")
        }
        _ => processors.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
    }
}
