//! The benchmarks that were asked for in order, and the results folder.

pub use crate::benchmarks::{BENCHMARKS, benchmark, select};
pub use crate::outcome::Outcome;

use crate::choices::Preset;
use crate::config::Config;
use crate::core::frameworks::Frameworks;
use crate::core::session::{TimeBudget, batch_shape};
use crate::core::variants::{self, Results};
use crate::core::{Benchmark, Session};
use crate::data::{self, FormatSet, Prepared, Source};
use crate::expected::ExpectedPixels;
use crate::live::RunObserver;
use crate::outcome;
use crate::usage::{check_crop, check_shapes};
use crate::{budget, conversion, dataset, histograms, model_loop, storage, sweep};
use anyhow::{Context as _, Result, bail};
use std::cell::RefCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use wellread_loader::Transform;
use wellread_measure::environment::{CpuTimes, Environment};
use wellread_measure::limits::{LimitSettings, measure_copy};
use wellread_store::staged::MadeFolder;
use wellread_store::words::counted;
use wellread_store::{OpenOptions, WriteOptions, checksum};
use wellread_trace::{Kind, labelled};

/// The note on figures that were taken while a timeline was recorded.
const TRACED: &str = "a timeline was recorded meanwhile (--trace), which makes loading up to 3 % slower; leave it out for figures to compare";

/// The files that the present run leaves when it is interrupted.
#[derive(Clone, Debug)]
pub enum InterruptedState {
    /// This results folder, with the results of the benchmarks that are finished.
    Results(PathBuf),
    /// The former content of this folder: images were being prepared in it. Sets that were begun are removed.
    Begun(PathBuf),
    /// The images that were prepared in this folder, and no result.
    Images(PathBuf),
}

static INTERRUPTED_STATE: Mutex<Option<InterruptedState>> = Mutex::new(None);

/// Says what stays when the run that is going on is interrupted.
pub fn set_interrupted_state(state: InterruptedState) {
    *INTERRUPTED_STATE.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
}

/// The files that the present run leaves: the message when it is interrupted.
pub fn interrupted_state() -> Option<InterruptedState> {
    INTERRUPTED_STATE.try_lock().ok()?.clone()
}

/// Prepares the sets, runs the benchmarks, writes tables, `summary.json`, plots and `report.html`.
///
/// # Errors
/// Wrong names, a source that cannot be read, a results folder that cannot be written. Formats that cannot be
/// measured are results, not errors.
pub fn run(config: &Config, watch: RunObserver<'_>) -> Result<Outcome> {
    let benchmarks = with_frameworks(config, select(&config.what)?)?;
    let sweeps = sweep::select(config, &benchmarks)?;
    check_out(config)?;
    // Before images are made: a Python that is not there should not take minutes to say so.
    let converts = benchmarks.iter().any(|b| b.name == conversion::BENCHMARK.name);
    let frameworks = Frameworks::start(config, &formats_of(config)?, converts)?;
    let _made = MadeFolder::new(&config.out)
        .with_context(|| format!("cannot make the results folder {}", config.out.display()))?;
    let mut environment = Environment::capture(&[&config.out]).with_git(std::path::Path::new("."));
    let (times_before, began, clock) = (CpuTimes::now(), SystemTime::now(), Instant::now());
    let write_options = WriteOptions {
        jobs: wellread_worker::threads(),
        compression: config.compression,
        ..WriteOptions::default()
    };
    wellread_trace::section(benchmarks.len() + sweeps.len() + 1);
    let preparing = labelled(Kind::Section, || "prepare images".to_owned());
    let data = config.data_folder();
    if !config.in_place {
        set_interrupted_state(InterruptedState::Begun(data.clone()));
    }
    let mut prepared = prepare(config, &write_options, watch.progress)?;
    if !config.in_place {
        set_interrupted_state(InterruptedState::Images(data));
    }
    check_crop(config, &prepared)?;
    check_shapes(config, &benchmarks, &prepared)?;
    data::find_codecs(&mut prepared.sets);
    if benchmarks.iter().any(|b| b.name == model_loop::BENCHMARK.name) {
        frameworks.check_model(config, &batch_shape(config, &prepared.expected))?;
    }
    if benchmarks.iter().any(|b| b.name == dataset::BENCHMARK.name) {
        frameworks.check_transforms(config, &batch_shape(config, &prepared.expected)[1..])?;
    }
    let mut session = begin(config, &prepared, write_options, &benchmarks, &frameworks, watch)?;
    drop(preparing);
    (watch.left)(None);
    (watch.phase)(&format!(
        "prepared {} in {}",
        prepared.about,
        budget::words(clock.elapsed().as_secs_f64())
    ));
    // Each sweep that can be made follows storage.
    let mut skipped = Vec::new();
    let mut all: Vec<&'static Benchmark> = Vec::new();
    for &benchmark in &benchmarks {
        all.push(benchmark);
        for &sweep in sweeps.iter().filter(|_| benchmark.name == storage::BENCHMARK.name) {
            match sweep::reason_to_skip(sweep, &prepared.expected) {
                Some(reason) => skipped.push(reason),
                None => all.push(sweep::benchmark(sweep)),
            }
        }
    }
    session.pace = TimeBudget::new(config.time_budget, all.len());
    let mut measured: Vec<(&'static str, Results)> = Vec::new();
    for (done, &benchmark) in all.iter().enumerate() {
        wellread_trace::section(all.len() - done);
        let section = labelled(Kind::Section, || benchmark.name.to_owned());
        session.pace.next(all.len() - done);
        let begun = Instant::now();
        let mut results = (benchmark.run)(&session)?;
        drop(section);
        if benchmark.name == storage::BENCHMARK.name {
            results.notes.append(&mut skipped);
        }
        let line = phase_line(benchmark.name, &results, config, begun.elapsed());
        measured.push((benchmark.name, results));
        let rest: Vec<&str> = all[done + 1..].iter().map(|benchmark| benchmark.name).collect();
        if done == 0 {
            remove_earlier_results(&config.out, all.iter().map(|benchmark| benchmark.name))?;
        }
        if !rest.is_empty() {
            outcome::assemble(config, &session, &environment, None, &measured, &rest)?
                .report
                .save(&config.out)?;
            set_interrupted_state(InterruptedState::Results(config.out.clone()));
        }
        (watch.phase)(&line);
    }
    environment.during_run = CpuTimes::now().zip(times_before).and_then(|(now, before)| now.since(&before));
    // After the benchmarks, so that its buffers are no part of their peak memory.
    let limits = measure_copy(&LimitSettings::default());
    let outcome = outcome::assemble(config, &session, &environment, Some(&limits), &measured, &[])?;
    outcome.report.save(&config.out)?;
    let lasted = clock.elapsed();
    for samples in &outcome.report.samples {
        histograms::save(&config.out, samples, began, lasted)?;
    }
    wellread_report::write_figures(&config.out, &outcome.report)?;
    wellread_report::write_report(&config.out, &outcome.report)?;
    Ok(outcome)
}

/// A line about a benchmark that has ended.
fn phase_line(name: &str, results: &Results, config: &Config, took: Duration) -> String {
    let table = &results.table;
    let is = |row: &usize, status: &str| table.str("status", *row) == Some(status);
    let keys = wellread_report::columns::keys(table);
    let of = |status: &str| {
        let rows = (0..table.rows()).filter(|row| is(row, status));
        let names: HashSet<String> =
            rows.map(|row| keys.iter().map(|key| table.cell(key, row).text() + "\n").collect()).collect();
        names.len()
    };
    let late = (0..table.rows())
        .filter(|row| table.str("reason", *row).is_some_and(|reason| reason.starts_with(variants::LEFT_OUT)))
        .count();
    let rounds = match (results.rounds, config.repeats) {
        (done, asked) if done < asked => format!("{done} of {}", counted(asked, "round")),
        (done, _) => counted(done, "round"),
    };
    let configurations = counted(of("ok"), "configuration");
    format!(
        "{name}: {rounds} of {configurations} in {}{}",
        budget::words(took.as_secs_f64()),
        if late > 0 { format!("; {late} left out for want of time") } else { String::new() }
    )
}

/// Removes what an earlier run has left of the benchmarks of these names, and its report: its figures are not those of this run.
///
/// # Errors
/// A file that cannot be removed.
pub fn remove_earlier_results<'n>(out: &Path, benchmarks: impl IntoIterator<Item = &'n str>) -> Result<()> {
    let kinds = ["", "_distribution", "_timeline"];
    let of = |name: &'n str| {
        let figures = kinds.iter().flat_map(move |kind| ["svg", "png"].map(|e| format!("{name}{kind}.{e}")));
        figures
            .chain(["parquet", "csv"].map(|e| format!("{name}.{e}")))
            .chain(["parquet", "hlog"].map(|e| format!("samples/{name}.{e}")))
    };
    for name in benchmarks.into_iter().flat_map(of).chain(["report.html".to_owned()]) {
        match std::fs::remove_file(out.join(&name)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(e).with_context(|| format!("cannot replace {}", out.join(&name).display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The benchmarks that the frameworks asked for have.
///
/// # Errors
/// Only benchmarks that they lack.
fn with_frameworks(
    config: &Config,
    mut benchmarks: Vec<&'static Benchmark>,
) -> Result<Vec<&'static Benchmark>> {
    if !config.rust() {
        benchmarks.retain(|benchmark| benchmark.name != storage::BENCHMARK.name);
        if benchmarks.is_empty() {
            bail!(
                "storage is a benchmark of this program alone; add rust to --framework, or ask for another benchmark"
            );
        }
    }
    Ok(benchmarks)
}

/// Names of the formats that will be measured.
fn formats_of(config: &Config) -> Result<Vec<&'static str>> {
    match (&config.source, config.in_place) {
        (Source::Path { path, sites, .. }, true) => {
            Ok(vec![data::open_source(path, false, None, Some(sites))?.format()])
        }
        _ => Ok(data::parse_formats(&config.formats)?.iter().map(|format| format.name).collect()),
    }
}

/// Names of files in a results folder whatever is measured.
const RESULTS: [&str; 3] = ["summary.json", "report.html", "images.png"];

/// Whether results may be written: nothing of their names is there, or an earlier run wrote it.
///
/// # Errors
/// Something else is there.
pub fn check_out(config: &Config) -> Result<()> {
    let out = &config.out;
    let summary = std::fs::read(out.join(RESULTS[0])).ok();
    let summary = summary.and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
    if summary.is_some_and(|summary| summary.get("wellread").is_some()) {
        return Ok(());
    }
    let sweeps = sweep::SWEEPS.iter().map(|(_, benchmark)| benchmark.name);
    let tables = BENCHMARKS.iter().map(|benchmark| benchmark.name).chain(sweeps);
    let tables =
        tables.flat_map(|name| ["parquet", "csv", "png", "svg"].map(|ending| format!("{name}.{ending}")));
    let names = RESULTS.map(str::to_owned).into_iter().chain(tables);
    match names.map(|name| out.join(name)).find(|path| path.exists()) {
        None => Ok(()),
        Some(path) => bail!(
            "{}: is there and would be replaced, but no earlier run of `wellread bench` wrote it (choose another --out)",
            path.display()
        ),
    }
}

/// The error where no format has a set, for these reasons.
fn why_no_set(reasons: &[String]) -> &'static str {
    let is_full = |reason: &String| {
        let reason = reason.to_lowercase();
        ["no space left", "disk full", "quota exceeded"].iter().any(|words| reason.contains(words))
    };
    if reasons.iter().any(is_full) {
        "there is too little space for copies of these images; free some, or name another place by --data-dir"
    } else {
        "no format can hold these images"
    }
}

fn prepare(
    config: &Config,
    options: &WriteOptions,
    progress: &dyn Fn(&str, usize, usize),
) -> Result<Prepared> {
    if config.in_place {
        let Source::Path { path, planes, cells, sites } = &config.source else {
            bail!("--in-place needs --input: there is nothing to measure in place");
        };
        let (store, images) = data::open_checked(path, *planes, cells.as_ref(), sites)?;
        let expected =
            checksum::all(&*store, options.jobs, &|| ()).into_iter().collect::<Result<Vec<_>, _>>()?;
        let codec = store.layout().ok().map(|layout| layout.codec);
        let sets = vec![FormatSet { format: store.format(), path: path.clone(), error: None, codec }];
        let what = match images {
            Some(images) => {
                format!("{} of the {}", counted(expected.len(), "plane"), counted(images, "image"))
            }
            None => counted(expected.len(), store.hints().thing()),
        };
        let about = format!("{what} of {}, as they lie there", path.display());
        let planes = images.is_some();
        return Ok(Prepared { folder: config.out.clone(), sets, expected, about, planes, of_images: images });
    }
    let formats = data::parse_formats(&config.formats)?;
    let folder = config.data_folder();
    let mut prepared = data::prepare_in_thread(&folder, &config.source, &formats, options, progress)?;
    if prepared.sets.iter().all(|s| s.error.is_some()) {
        let reasons: Vec<_> = prepared.sets.iter().filter_map(|s| s.error.clone()).collect();
        bail!("{}: {}", why_no_set(&reasons), reasons.join("; "));
    }
    if config.formats.iter().any(|name| name == "all") {
        prepared.sets.extend(data::absent_sets(&folder));
    }
    Ok(prepared)
}

/// Verifies the pixels of one copy of the set and computes what must be delivered.
fn begin<'a>(
    config: &'a Config,
    prepared: &'a Prepared,
    write_options: WriteOptions,
    benchmarks: &[&Benchmark],
    frameworks: &'a Frameworks,
    watch: RunObserver<'a>,
) -> Result<Session<'a>> {
    let mut session = Session {
        config,
        prepared,
        expected: ExpectedPixels::default(),
        write_options,
        open_options: OpenOptions::default(),
        watch,
        notes: wellread_trace::is_recording().then(|| TRACED.to_owned()).into_iter().collect(),
        frameworks,
        pace: TimeBudget::new(config.time_budget, 1),
        row_files: RefCell::default(),
    };
    let Some(first) = prepared.sets.iter().find(|s| s.error.is_none()) else {
        bail!("there is no set to measure");
    };
    let mut transforms: Vec<(Preset, Transform)> = Vec::new();
    for preset in benchmarks.iter().flat_map(|benchmark| (benchmark.transforms)(config)) {
        if !transforms.iter().any(|(known, _)| *known == preset) {
            transforms.push((preset, session.transform(preset)?));
        }
    }
    let sums = &prepared.expected;
    let checking = |n, of| (watch.progress)("checking pixels", n, of);
    session.expected =
        ExpectedPixels::compute(session.open(first)?, sums, &transforms, config.seed, &checking)
            .with_context(|| {
                let remedy =
                    if config.in_place { "write it again" } else { "delete it to have it made again" };
                format!("{} is damaged or was changed ({remedy})", first.path.display())
            })?;
    Ok(session)
}

#[cfg(test)]
mod tests {
    use super::{remove_earlier_results, why_no_set};

    #[test]
    fn results_of_an_earlier_run_go_with_their_histograms_and_those_of_other_benchmarks_stay() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path();
        std::fs::create_dir(out.join("samples")).unwrap();
        let own = ["dataset.parquet", "dataset_timeline.png", "samples/dataset.hlog", "report.html"];
        let others = ["loop.csv", "samples/loop.hlog", "notes.txt"];
        for name in own.iter().chain(&others) {
            std::fs::write(out.join(name), "earlier").unwrap();
        }
        remove_earlier_results(out, ["dataset"]).unwrap();
        assert!(own.iter().all(|name| !out.join(name).exists()));
        assert!(others.iter().all(|name| out.join(name).exists()));
        remove_earlier_results(out, ["dataset"]).unwrap();
    }

    #[test]
    fn a_full_disk_is_not_told_as_images_that_no_format_can_hold() {
        let reasons = |all: &[&str]| all.iter().map(|&reason| reason.to_owned()).collect::<Vec<_>>();
        let full = reasons(&[
            "data/images.parquet: cannot write: No space left on device (os error 28)",
            "data/tiff: stopped with the others",
        ]);
        assert!(why_no_set(&full).starts_with("there is too little space"));
        let refused = reasons(&["png holds planes alone", "tiff: 65 planes are too many"]);
        assert_eq!(why_no_set(&refused), "no format can hold these images");
    }
}
