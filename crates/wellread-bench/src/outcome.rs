//! The result of a run: its tables, findings and facts put together for the results folder, after each benchmark and at
//! the end.

mod facts;
mod titles;

use crate::choices::Preset;
use crate::config::Config;
use crate::core::Session;
use crate::core::variants::Results;
use crate::findings::{self, Repeats};
use crate::machine;
use anyhow::Result;
use facts::Details;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};
use wellread_measure::compare::MIN_SAMPLES;
use wellread_measure::environment::Environment;
use wellread_measure::limits::CopyLimits;
use wellread_report::{Cell, Fact, Finding, ReportInput, Samples, Severity, Table, Thumbnail};
use wellread_store::preview::{self, Preview, contact_sheet};
use wellread_store::{registry, words::counted};

pub use titles::title;

/// The result of a run: everything in the results folder, and the text to print.
pub struct Outcome {
    /// As written to the results folder.
    pub report: ReportInput,
    /// Whether every checksum agreed.
    pub verified: bool,
    /// Variants that failed, in words.
    pub failures: Vec<String>,
}

/// Puts together what was measured so far; `rest` names the benchmarks that are still to come. The speed of memory
/// copies is measured last and unknown until then.
pub(crate) fn assemble(
    config: &Config,
    session: &Session<'_>,
    environment: &Environment,
    limits: Option<&CopyLimits>,
    measured: &[(&'static str, Results)],
    rest: &[&str],
) -> Result<Outcome> {
    let rounds: Vec<(&str, usize)> =
        measured.iter().map(|(name, results)| (*name, rounds_of(&results.table, results.rounds))).collect();
    let joined = Joined::of(measured);
    let warnings = warnings(environment, measured, rest);
    let unverified = unverified(&joined.tables);
    let verified = unverified.is_none();
    let noise_floors: BTreeMap<String, f64> =
        joined.noise.iter().filter_map(|(name, floor)| Some((name.clone(), floor.as_f64()?))).collect();
    let repeats = Repeats::rounds(config.repeats).of(session.thing());
    let mut found = findings::with_frameworks(&joined.tables, &noise_floors, config.seed, repeats);
    if let Some(unverified) = unverified {
        found.insert(0, unverified);
    }
    let checksum = session.expected.checksum(Preset::None).map(|sum| format!("{sum:016x}"));
    let configuration =
        facts::configuration(config, session, &listed(&rounds, |n| n.to_string()), checksum.as_deref());
    let engines = registry::engines();
    let mut of_machine = facts::of_machine(session, environment, limits, &engines);
    let (in_python, frameworks) = session.frameworks.facts();
    of_machine.extend(in_python.into_iter().map(Fact::from));
    let details = Details {
        config,
        session,
        environment,
        limits,
        engines: &engines,
        frameworks,
        rest,
        checksum,
        verified,
        noise: joined.noise,
    };
    let details = details.keys()?;
    let thumbnails = thumbnails(session, &config.out)?;
    let report = ReportInput {
        title: title(&joined.tables, &rounds, &noise_floors, config.seed, repeats),
        description: description(&session.prepared.about, &rounds, &RUNS),
        generated: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
        findings: found,
        configuration,
        environment: of_machine,
        machine: machine::short(environment),
        images: session.prepared.about.clone(),
        noise_floor: noise_floors.values().copied().reduce(f64::max),
        noise_floors,
        detectable: joined.detectable,
        warnings,
        thumbnails,
        commands: if config.command.is_empty() { vec![] } else { vec![config.command.clone()] },
        tables: joined.tables,
        samples: joined.samples,
        details,
    };
    Ok(Outcome { report, verified, failures: joined.failures })
}

/// The results of all benchmarks side by side.
#[derive(Default)]
struct Joined {
    /// The noise floor of each; null where it has none.
    noise: Map<String, Value>,
    detectable: BTreeMap<String, f64>,
    failures: Vec<String>,
    tables: Vec<Table>,
    samples: Vec<Samples>,
}

impl Joined {
    fn of(measured: &[(&'static str, Results)]) -> Self {
        let mut joined = Self::default();
        for (name, results) in measured {
            joined.noise.insert((*name).to_owned(), results.noise_floor.into());
            joined.detectable.extend(results.detectable.map(|least| ((*name).to_owned(), least)));
            joined.failures.extend(failures_of(name, &results.table));
            joined.tables.push(results.table.clone());
            if !results.samples.seconds().is_empty() {
                joined.samples.push(results.samples.clone());
            }
        }
        joined
    }
}

/// The causes of less certain figures, each once.
fn warnings(environment: &Environment, measured: &[(&'static str, Results)], rest: &[&str]) -> Vec<String> {
    let mut warnings: Vec<String> = environment.noise_warnings();
    if !rest.is_empty() {
        warnings.push(format!("the run ended before these were measured: {}", rest.join(", ")));
    }
    warnings.extend(measured.iter().flat_map(|(_, results)| results.notes.iter().cloned()));
    let mut said = HashSet::new();
    warnings.retain(|warning| said.insert(warning.clone()));
    warnings
}

/// The finding that pixels differ, where those of any row do.
pub fn unverified(tables: &[Table]) -> Option<Finding> {
    let is_wrong = |t: &Table| (0..t.rows()).any(|r| t.cell("verified", r) == Cell::Bool(false));
    tables.iter().any(is_wrong).then(|| {
        Finding::new(
            Severity::Bad,
            "Some runs delivered pixels that differ from the expected ones: their figures must not be used",
            "Rows with verified = false in the tables.",
        )
    })
}

/// Rounds of a table that has so many, of which none counts where nothing was measured.
fn rounds_of(table: &Table, rounds: usize) -> usize {
    let any = (0..table.rows()).any(|row| table.str("status", row) == Some("ok"));
    if any { rounds } else { 0 }
}

/// The variants of a table that failed, in words: each reason once for each format.
fn failures_of(name: &str, table: &Table) -> Vec<String> {
    let mut failures: Vec<String> = Vec::new();
    for row in (0..table.rows()).filter(|&row| table.str("status", row) == Some("failed")) {
        let text = |column: &str| table.str(column, row).unwrap_or_default();
        let format = if text("format").is_empty() { "?" } else { text("format") };
        let failure = format!("{name}: {format}: {}", text("reason"));
        if !failures.contains(&failure) {
            failures.push(failure);
        }
    }
    failures
}

/// `storage 2, loop 1`, with the numbers in words.
fn listed(rounds: &[(&str, usize)], words: impl Fn(usize) -> String) -> String {
    rounds.iter().map(|(name, rounds)| format!("{name} {}", words(*rounds))).collect::<Vec<_>>().join(", ")
}

/// The things that a figure is a median over: all of them, and one.
pub struct Aggregation(pub &'static str, pub &'static str);

/// Rounds of one process.
const RUNS: Aggregation = Aggregation("interleaved runs of one process", "run");
/// Processes, each the median of its rounds.
pub const PROCESSES: Aggregation = Aggregation("processes, each the median of its rounds,", "process");

/// The measured images, and the meaning of the figures that so many rounds, or processes, of each benchmark
/// give.
pub fn description(images: &str, rounds: &[(&str, usize)], over: &Aggregation) -> String {
    if rounds.iter().all(|(_, rounds)| *rounds == 0) {
        return format!("Nothing was measured on {images}.");
    }
    format!(
        "Measured on {images}. {}; every run's pixels were compared with a checksum.",
        what_figures_are(rounds, over)
    )
}

/// The meaning of the figures that so many rounds, or processes, of each benchmark give.
fn what_figures_are(rounds: &[(&str, usize)], Aggregation(all, one): &Aggregation) -> String {
    // One that measured nothing has no figures.
    let measured: Vec<_> = rounds.iter().copied().filter(|(_, rounds)| *rounds > 0).collect();
    let (enough, few): (Vec<_>, Vec<_>) =
        measured.into_iter().partition(|(_, rounds)| *rounds >= MIN_SAMPLES);
    let most = few.iter().map(|(_, rounds)| *rounds).max().unwrap_or(0);
    match (enough.is_empty(), few.is_empty()) {
        (_, true) => format!("Every figure is a median over {all} with its 95 % interval"),
        (true, false) if most == 1 => {
            format!("Every figure is that of a single {one}: a 95 % interval needs {MIN_SAMPLES} of them")
        }
        (true, false) => format!(
            "Every figure is a median over {} ({}), too few for a 95 % interval, which needs \
             {MIN_SAMPLES}. The values beside a figure are its smallest and largest {one}",
            all.trim_end_matches(','),
            listed(&few, |n| counted(n, one))
        ),
        (false, false) => format!(
            "Every figure is a median over {}, with its 95 % interval where there are {MIN_SAMPLES} or \
             more ({}). Fewer give no interval ({}): the values beside such a figure are its smallest and largest {one}",
            all.trim_end_matches(','),
            listed(&enough, |n| counted(n, one)),
            listed(&few, |n| counted(n, one))
        ),
    }
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

#[cfg(test)]
mod tests {
    use super::{PROCESSES, RUNS, Table, description, failures_of, rounds_of};
    use wellread_report::row;

    #[test]
    fn what_failed_is_told_once_and_has_no_figures() {
        let mut table = Table::new("dataloader");
        for (format, workers) in [("tiff", 0), ("tiff", 2), ("parquet", 0), ("parquet", 2)] {
            table.push(row![
                ("format", format),
                ("workers", workers),
                ("status", "failed"),
                ("reason", "1 KB is too little")
            ]);
        }
        assert_eq!(
            failures_of("dataloader", &table),
            ["dataloader: tiff: 1 KB is too little", "dataloader: parquet: 1 KB is too little"]
        );
        assert_eq!(rounds_of(&table, 10), 0);
        assert_eq!(description("4 images", &[("dataloader", 0)], &RUNS), "Nothing was measured on 4 images.");
        table.push(row![("format", "tiff"), ("workers", 4), ("status", "ok")]);
        assert_eq!(rounds_of(&table, 10), 10);
        assert!(
            description("4 images", &[("dataloader", 10)], &RUNS).starts_with("Measured on 4 images. Every")
        );
    }

    #[test]
    fn an_interval_is_said_only_where_there_are_runs_enough() {
        let what_figures_are = |rounds: &[(&str, usize)]| super::what_figures_are(rounds, &RUNS);
        let all = what_figures_are(&[("storage", 7), ("loop", 6)]);
        assert!(all.ends_with("over interleaved runs of one process with its 95 % interval"), "{all}");
        let few = what_figures_are(&[("storage", 2), ("loop", 3)]);
        assert!(few.contains("(storage 2 runs, loop 3 runs), too few for a 95 % interval"), "{few}");
        let one = what_figures_are(&[("storage", 1), ("loop", 0)]);
        assert!(one.starts_with("Every figure is that of a single run"), "{one}");
        let both = what_figures_are(&[("storage", 7), ("loop", 2)]);
        assert!(both.contains("more (storage 7 runs)") && both.contains("interval (loop 2 runs)"), "{both}");
        let of_processes = super::what_figures_are(&[("dataset", 3)], &PROCESSES);
        assert!(
            of_processes.starts_with(
                "Every figure is a median over processes, each the median of its rounds (dataset 3 processes), too few"
            ) && of_processes.ends_with("smallest and largest process"),
            "{of_processes}"
        );
    }
}
