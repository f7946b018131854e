//! The whole run: every model, every batch size, all frameworks side by side; results are written after each.
//!
//! ```text
//!  Config ─▶ each model: a FrameworkRunner for each framework ─▶ each batch size: rounds ─▶ Record … ─▶ CSV, JSON
//! ```

use crate::check::{self, Outputs};
use crate::config::{Config, is_onnx};
use crate::measure::{Batch, Measured, measure};
use crate::models::Model;
use crate::protocol::Opened;
use crate::record::RowSubject;
use crate::result_files;
use crate::results::{Record, Row, Run, Status};
use crate::runner::{FrameworkRunner, lacked_memory};
use crate::shared::Shared;
use crate::source::Source;
use anyhow::{Context as _, Result, ensure};
use std::cell::RefCell;
use std::path::Path;
use wellread_measure::Environment;
use wellread_measure::interleave::Progress;

/// The events of a run.
#[derive(Debug)]
pub enum Event<'e> {
    /// A framework has opened a model, or cannot.
    Opened {
        /// Name for people, with the way it is run.
        name: String,
        /// The model.
        model: &'e str,
        /// Its device, or the reason why there is none.
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
/// An error of the whole run: choices that make no sense, images that cannot be opened, a folder that cannot be
/// written. An error of one framework, model or batch size is a row that says so.
pub fn run(config: &Config, tell: &dyn Fn(&Event<'_>)) -> Result<Run> {
    config.check()?;
    for name in config.models.iter().filter(|name| is_onnx(name)) {
        ensure!(Path::new(name).is_file(), "--model {name}: there is no such file");
    }
    let source = Source::open(config)?;
    let mut written = result_files::begin(&config.output_dir)?;
    let environment = Environment::capture(&[&config.output_dir]).with_git(Path::new("."));
    let (csv, json) = (written.csv().to_owned(), written.json().to_owned());
    let mut run =
        Run { config: config.clone(), environment, records: Vec::new(), unreadable: Vec::new(), csv, json };
    for name in &config.models {
        let model = match Model::find(name, config) {
            Ok(model) => model,
            Err(error) => {
                let new = run.records.len();
                run.records.extend(unusable(name, &format!("{error:#}"), &run)?);
                write_results(&run, new, &mut written, tell)?;
                continue;
            }
        };
        let mut runners = start(&model, config, tell)?;
        for &size in &config.batch_sizes {
            let new = run.records.len();
            let mut records = configuration(&mut runners, &model, size, &source, &run, tell)?;
            run.unreadable = source.unreadable();
            for Record { row, .. } in &mut records {
                row.images_skipped = config.data.is_some().then_some(run.unreadable.len());
            }
            run.records.extend(records);
            write_results(&run, new, &mut written, tell)?;
        }
    }
    Ok(run)
}

/// Writes what there is and tells what is new.
fn write_results(
    run: &Run,
    new: usize,
    written: &mut result_files::Files,
    tell: &dyn Fn(&Event<'_>),
) -> Result<()> {
    written.write(run)?;
    for Record { row, .. } in &run.records[new..] {
        tell(&Event::Row { name: label(&row.framework, &row.variant), row });
    }
    Ok(())
}

/// The rows of a model that nobody can open, a file that is no ONNX model, say, or that a cluster did not measure.
///
/// # Errors
/// A framework that there is not.
pub fn unusable(model: &str, reason: &str, run: &Run) -> Result<Vec<Record>> {
    let config = &run.config;
    let mut records = Vec::new();
    for &size in &config.batch_sizes {
        for backend in config.backends()? {
            for variant in backend.variants(config) {
                let about = RowSubject {
                    framework: backend.name(),
                    variant: &variant,
                    ..about(model, None, size, run)
                };
                records.push(about.record(Err(reason.to_owned())));
            }
        }
    }
    Ok(records)
}

/// The values that the rows of a model and batch size have in common.
fn about<'a>(model: &'a str, input: Option<[usize; 3]>, size: usize, run: &'a Run) -> RowSubject<'a> {
    let git = run.environment.git.as_ref();
    RowSubject { framework: "", variant: "", model, input, size, opened: None, git, config: &run.config }
}

/// Starts every framework in every way asked for.
fn start(model: &Model, config: &Config, tell: &dyn Fn(&Event<'_>)) -> Result<Vec<FrameworkRunner>> {
    let mut runners: Vec<FrameworkRunner> = Vec::new();
    for backend in config.backends()? {
        for variant in backend.variants(config) {
            tell(&Event::Progress { what: &format!("starting {}", backend.label()), done: 0, of: 1 });
            let runner = FrameworkRunner::start(backend, variant, model, config);
            // The same framework twice would be one name for two.
            if runners.iter().any(|other| other.name() == runner.name()) {
                continue;
            }
            let name = label(backend.name(), &runner.variant);
            tell(&Event::Opened { name, model: model.name(), opened: &runner.opened });
            runners.push(runner);
        }
    }
    Ok(runners)
}

/// Name for people: the framework's, and the way it is run.
pub fn label(framework: &str, variant: &str) -> String {
    let known = crate::backend::named(framework).map_or(framework, |backend| backend.label());
    crate::runner::name(framework, variant).replacen(framework, known, 1)
}

/// One batch size of a model, in all frameworks: a record for each.
fn configuration(
    runners: &mut [FrameworkRunner],
    model: &Model,
    size: usize,
    source: &Source,
    run: &Run,
    tell: &dyn Fn(&Event<'_>),
) -> Result<Vec<Record>> {
    let (config, input) = (&run.config, model.input());
    let images = source.batch(size, input, config);
    let shared = images.and_then(|images| Shared::new(&images, size, model.classes()));
    let about = about(model.name(), Some(input), size, run);
    let shared = match shared {
        Ok(shared) => RefCell::new(shared),
        Err(error) => {
            let reason = format!("{error:#}");
            let failed = |runner: &FrameworkRunner| {
                let why = runner.opened.clone().err().unwrap_or(reason.clone());
                RowSubject::runner(runner, &about).record(Err(why))
            };
            return Ok(runners.iter().map(failed).collect());
        }
    };
    let batch = Batch { size, input, source, shared: &shared };
    let progress = |progress: &Progress<'_>| {
        let what = format!("{} {} x{size}", progress.variant, model.name());
        tell(&Event::Progress { what: &what, done: progress.turns_done, of: progress.turns });
    };
    let mut measured = measure(runners, &batch, config, &progress)?;
    let alone = measure_alone(runners, &mut measured, &batch, config, &progress)?;
    let dtype = config.dtype()?;
    let outputs: Vec<Outputs> = runners
        .iter()
        .zip(&measured)
        .filter_map(|(c, m)| {
            let values = m.as_ref().ok()?.warm.logits.clone();
            let bound = check::bound(dtype, c.backend.tf32(&c.variant, config));
            Some(Outputs { name: c.name(), values, bound })
        })
        .collect();
    let (verdicts, reference) = check::compare(&outputs);
    let mut verdicts = verdicts.into_iter();
    let mut records = Vec::new();
    for ((runner, measured), alone) in runners.iter().zip(measured).zip(alone) {
        let mut record = RowSubject::runner(runner, &about).record(measured);
        if record.row.status == Status::Ok {
            record.row.note = alone.then(|| ALONE.to_owned());
            let verdict = verdicts.next().context("every outputs have a verdict")?;
            record.row.max_difference = verdict.difference;
            record.row.allowed_difference = verdict.bound;
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

/// See [`measure_alone`].
pub(crate) const ALONE: &str = "measured alone, since memory did not suffice for all frameworks at once";

/// Puts the images of the batch back: a stored set was read on in their place, in the rounds of the others.
fn put_images_back(batch: &Batch<'_>, config: &Config) -> Result<()> {
    if matches!(batch.source, Source::Stored(_)) {
        let images = batch.source.batch(batch.size, batch.input, config)?;
        batch.shared.borrow_mut().put(&images)?;
    }
    Ok(())
}

/// While one framework is measured the others hold their memory. Those that lacked it try again with nobody else there,
/// on the same images; tells for each whether that was so.
fn measure_alone(
    runners: &mut [FrameworkRunner],
    measured: &mut [Result<Measured, String>],
    batch: &Batch<'_>,
    config: &Config,
    progress: &dyn Fn(&Progress<'_>),
) -> Result<Vec<bool>> {
    let lacked = |m: &Result<Measured, String>| m.as_ref().is_err_and(|reason| lacked_memory(reason));
    let lacked: Vec<bool> = measured.iter().map(lacked).collect();
    if runners.iter().filter(|runner| runner.opened.is_ok()).count() < 2 {
        return Ok(vec![false; lacked.len()]);
    }
    for at in (0..lacked.len()).filter(|&at| lacked[at]) {
        runners.iter_mut().for_each(FrameworkRunner::stop);
        if let Err(error) = put_images_back(batch, config) {
            measured[at] = Err(format!("{error:#}"));
            continue;
        }
        let again = measure(&mut runners[at..=at], batch, config, progress)?;
        if let Some(again) = again.into_iter().next() {
            measured[at] = again;
        }
    }
    Ok(lacked)
}
