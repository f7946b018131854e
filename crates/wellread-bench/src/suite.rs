//! All benchmarks in order, and the results folder.

use crate::choices::Preset;
use crate::config::Config;
use crate::data::{self, FormatSet, Prepared, Source};
use crate::expected::ExpectedPixels;
use crate::findings::{Judge, Ranked};
use crate::framework::{self, Frameworks};
use crate::live::Watch;
use crate::variants::Results;
use crate::{conversion, dataloader, dataset, findings, histograms, machine, model_loop, storage, sweep};
use anyhow::{Context as _, Result, bail};
use std::collections::{BTreeMap, HashSet};
use std::time::{Instant, SystemTime};
use wellread_image::Shape;
use wellread_loader::{Crop, Scale, Transform};
use wellread_measure::clock::Clock;
use wellread_measure::environment::{CpuTimes, Environment};
use wellread_measure::limits::{CopyLimits, LimitSettings, measure_copy};
use wellread_report::{Fact, Finding, ReportInput, Table, Thumbnail};
use wellread_store::checksum::ImageChecksum;
use wellread_store::preview::{self, Preview, contact_sheet};
use wellread_store::{OpenOptions, Store, WriteOptions, checksum, registry};
use wellread_trace::{Kind, labelled, span};

/// One benchmark: its name, what it measures, how, and what its table says.
pub struct Benchmark {
    /// Name on the command line and of its result files.
    pub name: &'static str,
    /// One line for help texts.
    pub about: &'static str,
    /// Measures.
    pub run: fn(&Session<'_>) -> Result<Results>,
    /// Transforms whose floats it has delivered and compares with [`Session::expected`].
    pub transforms: fn(&Config) -> Vec<Preset>,
    /// Columns of its table that fit a terminal.
    pub headline: &'static [&'static str],
    /// What its table says, in sentences.
    pub findings: fn(&Table, &Judge) -> Vec<Ranked>,
}

/// All benchmarks in the order of a report. One line each.
pub static BENCHMARKS: &[&Benchmark] = &[
    &storage::BENCHMARK,
    &dataset::BENCHMARK,
    &dataloader::BENCHMARK,
    &model_loop::BENCHMARK,
    &conversion::BENCHMARK,
];

/// What a benchmark is given.
pub struct Session<'a> {
    /// What was asked for.
    pub config: &'a Config,
    /// The sets.
    pub prepared: &'a Prepared,
    /// What must be delivered.
    pub expected: ExpectedPixels,
    /// Options the sets were written with.
    pub write_options: WriteOptions,
    /// Options the sets are opened with.
    pub open_options: OpenOptions,
    /// Told the benchmark's name, turns done, turns in all; and current figures.
    pub watch: Watch<'a>,
    /// Remarks to be printed beside every benchmark's figures.
    pub notes: Vec<String>,
    /// Frameworks in Python that are measured.
    pub frameworks: &'a Frameworks,
}

impl Session<'_> {
    /// The sets that this program itself is measured with: all, or none where it is not asked for.
    pub fn own_sets(&self) -> &[FormatSet] {
        if self.config.rust() { &self.prepared.sets } else { &[] }
    }

    /// Opens a format's copy of the set.
    pub fn open(&self, set: &FormatSet) -> Result<Box<dyn Store>> {
        let _open = span(Kind::OpenSet);
        if self.config.in_place {
            // What was found out once: looking at every shape again would change what opening costs.
            return data::open_source(&set.path, Some(self.prepared.planes));
        }
        let options = OpenOptions { format: Some(set.format.to_owned()), ..self.open_options.clone() };
        Ok(wellread_store::open(&set.path, &options)?)
    }

    /// A transform preset with the configured crop and scale.
    pub fn transform(&self, preset: Preset) -> Result<Transform> {
        let mut transform =
            preset.transform().with_context(|| format!("the loader has no transform {preset}"))?;
        if let Some((height, width)) = self.config.crop {
            transform.crop = Crop::Center { height, width };
        }
        if let Some(factor) = self.config.scale {
            transform.scale = Scale::By(factor);
        }
        Ok(transform)
    }

    /// Bytes of the files of a set.
    pub fn bytes_on_disk(&self, set: &FormatSet) -> Option<u64> {
        self.open(set).ok()?.bytes_on_disk().ok()
    }
}

/// What figures are told with that were taken while a timeline was recorded.
const TRACED: &str = "a timeline was recorded meanwhile (--trace), which makes loading up to 3 % slower; leave it out for figures to compare";

/// What a run gives: everything in the results folder, and what to print.
pub struct Outcome {
    /// As written to the results folder.
    pub report: ReportInput,
    /// Whether every checksum agreed.
    pub verified: bool,
    /// Variants that failed, in words.
    pub failures: Vec<String>,
}

/// Prepares the sets, runs the benchmarks, writes tables, `summary.json`, plots and `report.html`.
///
/// # Errors
/// Wrong names, a source that cannot be read, a results folder that cannot be written. Formats that cannot be
/// measured are results, not errors.
pub fn run(config: &Config, watch: Watch<'_>) -> Result<Outcome> {
    let benchmarks = with_frameworks(config, select(&config.what)?)?;
    let sweeps = sweep::select(config, &benchmarks)?;
    check_out(config)?;
    // Before images are made: a Python that is not there should not take minutes to say so.
    let frameworks = Frameworks::start(config, &formats_of(config)?)?;
    std::fs::create_dir_all(&config.out)
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
    let mut prepared = prepare(config, &write_options, watch.progress)?;
    check_shapes(config, &benchmarks, &prepared.expected)?;
    find_codecs(&mut prepared.sets);
    if benchmarks.iter().any(|b| b.name == model_loop::BENCHMARK.name) {
        frameworks.check_model(config, &batch_shape(config, &prepared.expected))?;
    }
    let session = begin(config, &prepared, write_options, &benchmarks, &frameworks, watch)?;
    drop(preparing);
    let mut left = benchmarks.len() + sweeps.len();
    let mut run = |benchmark: &Benchmark| {
        wellread_trace::section(left);
        left = left.saturating_sub(1);
        let _section = labelled(Kind::Section, || benchmark.name.to_owned());
        (benchmark.run)(&session)
    };
    let mut measured: Vec<(&'static str, Results)> = Vec::new();
    for benchmark in &benchmarks {
        let mut results = run(benchmark)?;
        let mut swept = Vec::new();
        for &sweep in sweeps.iter().filter(|_| benchmark.name == storage::BENCHMARK.name) {
            match sweep::reason_to_skip(sweep, &prepared.expected) {
                Some(reason) => results.notes.push(reason),
                None => swept.push(sweep::benchmark(sweep)),
            }
        }
        measured.push((benchmark.name, results));
        for sweep in swept {
            measured.push((sweep.name, run(sweep)?));
        }
    }
    environment.during_run = CpuTimes::now().zip(times_before).and_then(|(now, before)| now.since(&before));
    // After the benchmarks, so that its buffers are no part of their peak memory.
    let limits = measure_copy(&LimitSettings::default());
    let outcome = assemble(config, &session, &environment, &limits, measured)?;
    outcome.report.save(&config.out)?;
    let lasted = clock.elapsed();
    for samples in &outcome.report.samples {
        histograms::save(&config.out, samples, began, lasted)?;
    }
    wellread_report::write_figures(&config.out, &outcome.report)?;
    wellread_report::write_report(&config.out, &outcome.report)?;
    Ok(outcome)
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
        (Source::Path { path, .. }, true) => Ok(vec![data::open_source(path, Some(false))?.format()]),
        _ => Ok(data::parse_formats(&config.formats)?.iter().map(|format| format.name).collect()),
    }
}

/// The shape of a batch of the loop, as loaders deliver it: time points and planes are axes where there are several.
fn batch_shape(config: &Config, images: &[ImageChecksum]) -> Vec<usize> {
    let [t, c, z, y, x] = images.first().map_or([1; 5], |image| image.shape_tczyx);
    let (y, x) = config.crop.unwrap_or((y, x));
    let batch = config.batch_size.min(images.len());
    if t == 1 && z == 1 { vec![batch, c, y, x] } else { vec![batch, t, c, z, y, x] }
}

/// Images of a batch are equal in shape; where they cannot be, nothing is measured.
fn check_shapes(config: &Config, benchmarks: &[&Benchmark], images: &[ImageChecksum]) -> Result<()> {
    let in_batches =
        |b: &&&Benchmark| [dataloader::BENCHMARK.name, model_loop::BENCHMARK.name].contains(&b.name);
    let batches = benchmarks.iter().find(in_batches).filter(|_| config.crop.is_none());
    let (Some(batches), Some(first)) = (batches, images.first()) else { return Ok(()) };
    let others: Vec<_> = images.iter().filter(|image| image.shape_tczyx != first.shape_tczyx).collect();
    let Some(other) = others.first() else { return Ok(()) };
    let rows: Vec<_> = others.iter().take(5).map(|image| image.row.to_string()).collect();
    let least = |axis: usize| images.iter().map(|image| image.shape_tczyx[axis]).min().unwrap_or_default();
    bail!(
        "the images differ in shape, and {} joins them in batches: row {} is {} (TCZYX), row {} is {}; {} of {} rows \
         differ from the first ({}{}) (hint: --crop {}x{} takes the centre of each; storage, dataset and conversion \
         measure single images as they are)",
        batches.name,
        first.row,
        Shape(first.shape_tczyx),
        other.row,
        Shape(other.shape_tczyx),
        others.len(),
        images.len(),
        rows.join(", "),
        if others.len() > rows.len() { " …" } else { "" },
        least(3),
        least(4),
    )
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

fn prepare(
    config: &Config,
    options: &WriteOptions,
    progress: &dyn Fn(&str, usize, usize),
) -> Result<Prepared> {
    if config.in_place {
        let Source::Path { path, planes } = &config.source else {
            bail!("--in-place needs --input: there is nothing to measure in place");
        };
        let (store, images) = data::open_counted(path, *planes)?;
        let expected =
            checksum::all(&*store, options.jobs, &|| ()).into_iter().collect::<Result<Vec<_>, _>>()?;
        let codec = store.layout().ok().map(|layout| layout.codec);
        let sets = vec![FormatSet { format: store.format(), path: path.clone(), error: None, codec }];
        let what = images.map_or("images".to_owned(), |images| format!("planes of the {images} images"));
        let about = format!("{} {what} of {}, as they lie there", expected.len(), path.display());
        let planes = images.is_some();
        return Ok(Prepared { folder: config.out.clone(), sets, expected, about, planes });
    }
    let formats = data::parse_formats(&config.formats)?;
    let folder = config.data_dir.clone().unwrap_or_else(|| config.out.join("data"));
    let mut prepared = prepare_in(&folder, &config.source, &formats, options, progress)?;
    if prepared.sets.iter().all(|s| s.error.is_some()) {
        let reasons: Vec<_> = prepared.sets.iter().filter_map(|s| s.error.clone()).collect();
        bail!("no format can hold these images: {}", reasons.join("; "));
    }
    if config.formats.iter().any(|name| name == "all") {
        prepared.sets.extend(data::absent_sets(&folder));
    }
    Ok(prepared)
}

/// [`data::prepare`], which reports from several threads, with a callback that is for one.
pub(crate) fn prepare_in(
    folder: &std::path::Path,
    source: &Source,
    formats: &[&'static wellread_store::Format],
    options: &WriteOptions,
    progress: &dyn Fn(&str, usize, usize),
) -> Result<Prepared> {
    let done = std::sync::Mutex::new((0, 0));
    std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            data::prepare(folder, source, formats, options, &|n, of| {
                *done.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = (n, of);
            })
        });
        while !work.is_finished() {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let (n, of) = *done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            progress("preparing images", n, of);
        }
        work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Notes the codec of every set that does not know it.
pub(crate) fn find_codecs(sets: &mut [FormatSet]) {
    for set in sets.iter_mut().filter(|s| s.error.is_none() && s.codec.is_none()) {
        let options = OpenOptions { format: Some(set.format.to_owned()), ..OpenOptions::default() };
        let layout = wellread_store::open(&set.path, &options).and_then(|store| store.layout());
        set.codec = layout.ok().map(|l| l.codec);
    }
}

/// Verifies the pixels of one copy of the set and computes what must be delivered.
fn begin<'a>(
    config: &'a Config,
    prepared: &'a Prepared,
    write_options: WriteOptions,
    benchmarks: &[&Benchmark],
    frameworks: &'a Frameworks,
    watch: Watch<'a>,
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

fn assemble(
    config: &Config,
    session: &Session<'_>,
    environment: &Environment,
    limits: &CopyLimits,
    measured: Vec<(&'static str, Results)>,
) -> Result<Outcome> {
    let mut noise = serde_json::Map::new();
    let mut detectable = BTreeMap::new();
    let mut warnings: Vec<String> = environment.noise_warnings();
    let mut failures = Vec::new();
    let mut tables: Vec<Table> = Vec::new();
    let mut samples = Vec::new();
    let mut rounds: Vec<String> = Vec::new();
    for (name, results) in measured {
        rounds.push(format!("{name} {}", results.rounds));
        noise.insert(name.to_owned(), results.noise_floor.into());
        detectable.extend(results.detectable.map(|least| (name.to_owned(), least)));
        warnings.extend(results.notes);
        for row in 0..results.table.rows() {
            if results.table.str("status", row) == Some("failed") {
                let format = results.table.str("format", row).unwrap_or("?").to_owned();
                failures
                    .push(format!("{name}: {format}: {}", results.table.str("reason", row).unwrap_or("")));
            }
        }
        tables.push(results.table);
        if !results.samples.seconds().is_empty() {
            samples.push(results.samples);
        }
    }
    let mut said = HashSet::new();
    warnings.retain(|warning| said.insert(warning.clone()));
    let unverified =
        |t: &Table| (0..t.rows()).any(|r| t.cell("verified", r) == wellread_report::Cell::Bool(false));
    let verified = !tables.iter().any(unverified);
    let noise_floors: BTreeMap<String, f64> =
        noise.iter().filter_map(|(name, floor)| Some((name.clone(), floor.as_f64()?))).collect();
    let largest_noise = noise.values().filter_map(serde_json::Value::as_f64).reduce(f64::max);
    let mut found = findings::all(&tables, &noise_floors, config.seed);
    let frameworks = framework::findings::all(&tables, &noise_floors, config.seed);
    found.splice(0..0, frameworks);
    if !verified {
        found.insert(
            0,
            Finding::new(
                wellread_report::Severity::Bad,
                "Some runs delivered pixels that differ from the expected ones: their figures must not be used",
                "Rows with verified = false in the tables.",
            ),
        );
    }
    let checksum = session.expected.checksum(Preset::None).map(|sum| format!("{sum:016x}"));
    let mut configuration: Vec<Fact> = vec![
        ("images", session.prepared.about.clone()).into(),
        ("pixels", bytes(session.prepared.bytes_of_pixels())).into(),
        (
            "measured rounds",
            format!(
                "{} (interleaved in random order, after 1 of warm-up; {} asked for{})",
                rounds.join(", "),
                config.repeats,
                config.precision.map_or(String::new(), |share| format!(
                    ", or more until medians are known to {} %",
                    100.0 * share
                ))
            ),
        )
            .into(),
        ("codecs", codecs(session)).into(),
        ("seed", config.seed).into(),
    ];
    configuration.extend(checksum.iter().map(|sum| Fact::from(("checksum of the batches", sum.clone()))));
    let mut facts: Vec<Fact> = machine::facts(environment).into_iter().map(Fact::from).collect();
    facts.push(
        (
            "memory copy",
            format!(
                "{:.1} GB/s with one thread, {:.1} GB/s with {}",
                limits.one_thread.bytes_per_second / 1e9,
                limits.all_threads.bytes_per_second / 1e9,
                limits.threads
            ),
        )
            .into(),
    );
    facts.extend(engines(session).into_iter().map(Fact::from));
    let (in_python, python_details) = session.frameworks.facts();
    facts.extend(in_python.into_iter().map(Fact::from));
    let mut details = serde_json::Map::new();
    details.insert("wellread".into(), env!("CARGO_PKG_VERSION").into());
    details.insert("configuration".into(), serde_json::to_value(config)?);
    details.insert("data_dir".into(), serde_json::to_value(&session.prepared.folder)?);
    details.insert("images".into(), session.prepared.about.clone().into());
    details.insert("seed".into(), config.seed.into());
    details.insert("pixel_checksum".into(), checksum.into());
    details.insert("verified".into(), verified.into());
    details.insert("noise_floor".into(), noise.into());
    details.insert("environment".into(), serde_json::to_value(environment)?);
    details.insert("clock".into(), serde_json::to_value(Clock::calibrated())?);
    details.insert("limits".into(), serde_json::to_value(limits)?);
    details.insert("frameworks".into(), python_details);
    details.insert("engines".into(), serde_json::to_value(registry::engines())?);
    details.insert(
        "engines_missing".into(),
        registry::absent_formats()
            .iter()
            .map(|absent| (absent.name.to_owned(), absent.how_to_get.into()))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    );
    let thumbnails = thumbnails(session, &config.out)?;
    let report = ReportInput {
        title: "Which format feeds the model fastest?".to_owned(),
        description: format!(
            "Measured on {}. Every figure is a median over interleaved runs with its 95 % interval; every run's pixels were compared with a checksum.",
            session.prepared.about
        ),
        generated: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
        findings: found,
        configuration,
        environment: facts,
        machine: machine::short(environment),
        images: session.prepared.about.clone(),
        noise_floor: largest_noise,
        noise_floors,
        detectable,
        warnings,
        thumbnails,
        commands: if config.command.is_empty() { vec![] } else { vec![config.command.clone()] },
        tables,
        samples,
        details,
    };
    Ok(Outcome { report, verified, failures })
}

/// Library and file format behind each format that was measured.
fn engines(session: &Session<'_>) -> Vec<(String, String)> {
    let formats = session.prepared.sets.iter().filter_map(|set| registry::format_named(set.format).ok());
    formats.map(|format| (format!("engine of {}", format.name), (format.engine)())).collect()
}

/// Codec of each set, and whether it was converted for this comparison.
fn codecs(session: &Session<'_>) -> String {
    let of = |set: &FormatSet| format!("{}: {}", set.format, set.codec.as_deref().unwrap_or("unknown"));
    let list: Vec<_> = session.prepared.sets.iter().filter(|s| s.error.is_none()).map(of).collect();
    let how = match (&session.config.source, session.config.in_place) {
        (Source::Path { .. }, false) => {
            " (all written anew from the source; --in-place measures it as it lies there)"
        }
        _ => "",
    };
    format!("{}{how}", list.join(", "))
}

/// Pictures of the first images: for the report, and as `images.png` in the results folder.
fn thumbnails(session: &Session<'_>, out: &std::path::Path) -> Result<Vec<Thumbnail>> {
    let Some(set) = session.prepared.sets.iter().find(|s| s.error.is_none()) else { return Ok(vec![]) };
    let store = session.open(set)?;
    let (captions, pictures): (Vec<_>, Vec<_>) = preview::first(&*store, 8, 160)?.into_iter().unzip();
    let thumbnail =
        |(caption, picture): (String, &Preview)| Ok(Thumbnail::from_png(caption, &picture.to_png()?));
    let thumbnails = captions.into_iter().zip(&pictures).map(thumbnail).collect::<Result<Vec<_>>>()?;
    wellread_store::staged::write(&out.join("images.png"), contact_sheet(&pictures, 4).to_png()?)?;
    Ok(thumbnails)
}

fn bytes(n: u64) -> String {
    format!("{:.1} MB", n as f64 / 1e6)
}
