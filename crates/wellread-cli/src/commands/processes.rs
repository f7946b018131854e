//! `bench --processes N`: the whole benchmark in fresh processes, one value of each.
//!
//! ```text
//!  the command's words ─▶ N children, one after the other, over the same sets ─▶ medians of each child
//!        ─▶ tables of N rows a configuration ─▶ intervals over processes, findings, figures, report
//! ```
//!
//! The spread then has the differences between processes (layout of memory, order of hash tables, huge pages), as users
//! see them. Source: Mytkowicz et al., *Producing wrong data without doing anything obviously wrong*, ASPLOS 2009.

use super::command_line::{remove, split};
use anyhow::{Context as _, Result, bail};
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use wellread_bench::findings::{self, Repeats};
use wellread_bench::outcome::{PROCESSES, description, title, unverified};
use wellread_bench::suite::{self, InterruptedState};
use wellread_bench::{Config, RunObserver, budget};
use wellread_compare::{append, condensed};
use wellread_measure::compare::MIN_SAMPLES;
use wellread_measure::intervals::IntervalEstimator;
use wellread_measure::path_text;
use wellread_report::{Cell, Fact, ReportInput, Samples, Table, columns};
use wellread_store::staged::{Existing, MadeFolder, Staged};

/// Options that a child is given by its parent, each with a value.
const CHILD_OPTIONS: [&str; 5] = ["processes", "out", "output", "data-dir", "trace"];

/// The process that is measured, 0 for none.
static CHILD_PID: AtomicU32 = AtomicU32::new(0);
/// Whether this program is about to end: the handler of the signal says so, and ends it.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// So long a process that was asked to end may take.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Asks the process that is measured to end, and waits until it has: what it writes is removed afterwards.
pub fn interrupt() {
    INTERRUPTED.store(true, Ordering::SeqCst);
    let pid = CHILD_PID.load(Ordering::SeqCst);
    #[cfg(unix)]
    if let Ok(pid @ 2..) = i32::try_from(pid) {
        // SAFETY: kill has no preconditions; the process is a child that was not waited for yet, so the number is its own.
        unsafe { libc::kill(pid, libc::SIGTERM) };
    }
    let asked = Instant::now();
    while pid != 0 && CHILD_PID.load(Ordering::SeqCst) == pid && asked.elapsed() < SHUTDOWN_TIMEOUT {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The output of a process. Does not return when this program is about to end.
fn output_of(command: &mut Command) -> Result<Output> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.context("cannot start a process")?;
    CHILD_PID.store(child.id(), Ordering::SeqCst);
    let output = child.wait_with_output();
    CHILD_PID.store(0, Ordering::SeqCst);
    let output = output.context("cannot wait for a process")?;
    // A terminal interrupts both, and the child may be the first to end.
    if !output.status.success() && matches!(output.status.code(), None | Some(130)) {
        std::thread::sleep(Duration::from_millis(500));
    }
    while INTERRUPTED.load(Ordering::SeqCst) {
        std::thread::sleep(SHUTDOWN_TIMEOUT);
    }
    Ok(output)
}

/// The results of a process that has measured all that it was asked for, whatever its exit code says of them.
fn finished(out: &Path) -> Option<ReportInput> {
    ReportInput::from_dir(out).ok().filter(|input| !input.details.contains_key("unfinished"))
}

/// Runs the command `config.command` in `count` fresh processes and writes their results as one. It returns these, and
/// an error for each process that failed. One that finished all the same counts, and so do those after it.
///
/// # Errors
/// A process that fails before any has finished, with what it said; a results folder that cannot be written.
pub fn run(
    config: &Config,
    count: usize,
    program: &[OsString],
    watch: RunObserver<'_>,
) -> Result<(ReportInput, Vec<String>)> {
    suite::check_out(config)?;
    let _made = MadeFolder::new(&config.out)
        .with_context(|| format!("cannot make the results folder {}", config.out.display()))?;
    let data = config.data_folder();
    let mut words = split(&config.command).map_err(anyhow::Error::msg)?;
    words.remove(0);
    for option in CHILD_OPTIONS {
        remove(&mut words, option);
    }
    words.retain(|word| !["--json", "--quiet", "-q"].contains(&word.as_str()));
    // Goes when this ends, however it does.
    let scratch = Staged::new(&config.out.join("processes"), Existing::Kept)?;
    let folder = scratch.create_dir()?;
    let (mut inputs, mut report): (Vec<ReportInput>, Option<ReportInput>) = (Vec::new(), None);
    let mut failures = Vec::new();
    if !config.in_place {
        suite::set_interrupted_state(InterruptedState::Images(data.clone()));
    }
    for child in 0..count {
        (watch.progress)("fresh processes", child, count);
        let begun = Instant::now();
        let out = folder.join(child.to_string());
        let (program, arguments) = program.split_first().context("this program has no name")?;
        let mut command = Command::new(program);
        command.args(arguments).arg("--quiet").args(&words).arg("--out").arg(&out);
        if !config.in_place {
            command.arg("--data-dir").arg(&data);
        }
        let output = output_of(&mut command)?;
        let input = if output.status.success() {
            Some(ReportInput::from_dir(&out)?)
        } else {
            let said = String::from_utf8_lossy(&output.stderr);
            let tail: Vec<&str> = said.trim_end().lines().rev().take(5).collect();
            let tail = tail.into_iter().rev().collect::<Vec<_>>().join("\n");
            let failure = format!("process {} of {count} failed ({}):\n{tail}", child + 1, output.status);
            let input = finished(&out);
            if input.is_none() && inputs.is_empty() {
                bail!(failure);
            }
            failures.push(failure);
            input
        };
        let Some(input) = input else { continue };
        let is_first = inputs.is_empty();
        inputs.push(input);
        // Finished processes stay when this is interrupted.
        let so_far = report.insert(joined(&inputs, config)?);
        if is_first {
            suite::remove_earlier_results(&config.out, so_far.tables.iter().map(Table::name))?;
        }
        so_far.save(&config.out)?;
        suite::set_interrupted_state(InterruptedState::Results(config.out.clone()));
        let took = budget::words(begun.elapsed().as_secs_f64());
        (watch.phase)(&format!("process {} of {count} in {took}", child + 1));
    }
    drop(scratch);
    let report = report.context("no process was measured")?;
    wellread_report::write_figures(&config.out, &report)?;
    wellread_report::write_report(&config.out, &report)?;
    Ok((report, failures))
}

/// The results of all processes as those of one run with a round per process.
fn joined(inputs: &[ReportInput], config: &Config) -> Result<ReportInput> {
    let first = inputs.first().context("no process was measured")?;
    let mut tables: Vec<Table> = Vec::new();
    let mut noise_floors: BTreeMap<String, f64> = BTreeMap::new();
    let mut samples: Vec<Samples> = Vec::new();
    let mut warnings = Vec::new();
    for (process, input) in inputs.iter().enumerate() {
        for table in &input.tables {
            append(&mut tables, &condensed(table, process));
        }
        for (name, floor) in &input.noise_floors {
            let largest = noise_floors.entry(name.clone()).or_insert(*floor);
            *largest = largest.max(*floor);
        }
        input.samples.iter().for_each(|of| append_samples(&mut samples, of, process));
        warnings.extend(input.warnings.iter().cloned());
    }
    let mut said = HashSet::new();
    warnings.retain(|warning| said.insert(warning.clone()));
    let estimator = IntervalEstimator::seeded(config.seed);
    let tables: Vec<Table> = tables.iter().map(|table| with_intervals(table, &estimator)).collect();
    let count = inputs.len();
    let mut details = first.details.clone();
    if let Some(configuration) = details.get_mut("configuration").and_then(|c| c.as_object_mut()) {
        configuration.insert("command".into(), config.command.clone().into());
        configuration.insert("recipe".into(), serde_json::to_value(&config.recipe)?);
        configuration.insert("processes".into(), count.into());
        // The children had folders of their own.
        configuration.insert("out".into(), path_text::text(&config.out).into());
        configuration.insert("data_dir".into(), config.data_dir.as_deref().map(path_text::text).into());
    }
    details.insert("noise_floor".into(), serde_json::to_value(&noise_floors)?);
    let unverified = unverified(&tables);
    details.insert("verified".into(), unverified.is_none().into());
    let mut configuration = first.configuration.clone();
    let how = format!("{count} fresh ones, one after the other; a value is the median of a process's rounds");
    configuration.push(Fact::from(("processes", how)));
    let measured: Vec<(&str, usize)> =
        tables.iter().map(|table| (table.name(), processes_of(table))).collect();
    let thing = if config.source.cells().is_some() { "cell" } else { "image" };
    let repeats = Repeats::processes(count).of(thing);
    let found = findings::with_frameworks(&tables, &noise_floors, config.seed, repeats);
    Ok(ReportInput {
        title: title(&tables, &measured, &noise_floors, config.seed, repeats),
        description: description(&first.images, &measured, &PROCESSES),
        findings: unverified.into_iter().chain(found).collect(),
        configuration,
        noise_floor: noise_floors.values().copied().reduce(f64::max),
        noise_floors,
        // That of a process says nothing of the spread between processes.
        detectable: BTreeMap::new(),
        warnings,
        commands: vec![config.command.clone()],
        tables,
        samples,
        details,
        ..first.clone()
    })
}

/// Processes that measured something of a table.
fn processes_of(table: &Table) -> usize {
    let is_measured = |row: &usize| table.str("status", *row).is_none_or(|status| status == "ok");
    let runs = (0..table.rows()).filter(is_measured).filter_map(|row| table.f64("run", row));
    runs.map(|run| run as usize).collect::<HashSet<_>>().len()
}

/// Adds the single times of a process, whose runs are told by it.
fn append_samples(all: &mut Vec<Samples>, of: &Samples, process: usize) {
    let name = of.runs().name();
    let at = all.iter().position(|known| known.runs().name() == name).unwrap_or_else(|| {
        all.push(Samples::new(name));
        all.len() - 1
    });
    for (row, seconds) in of.seconds().iter().enumerate() {
        let columns = of.runs().columns().iter().filter(|column| column.name() != "run");
        let mut run: Vec<(String, Cell)> =
            columns.map(|c| (c.name().to_owned(), of.runs().cell(c.name(), row))).collect();
        let within = of.runs().f64("run", row).unwrap_or(0.0) as usize;
        run.push(("run".into(), Cell::from(process * MAX_RUNS + within)));
        run.push(("process".into(), Cell::from(process)));
        all[at].push(run, seconds.clone());
    }
}

/// Runs of a process at most, as far as numbers of runs are concerned.
const MAX_RUNS: usize = 10_000;

/// The table with the 95 % interval of each configuration's median over processes, where there are enough of them.
fn with_intervals(table: &Table, estimator: &IntervalEstimator) -> Table {
    let keys = columns::keys(table);
    let quantities = columns::quantities(table);
    let groups = table.groups(&keys);
    let mut rows: Vec<Vec<(String, Cell)>> = (0..table.rows())
        .map(|row| table.columns().iter().map(|c| (c.name().to_owned(), table.cell(c.name(), row))).collect())
        .collect();
    for group in &groups {
        for quantity in &quantities {
            let values: Vec<f64> =
                group.rows.iter().filter_map(|&row| table.f64(&quantity.column, row)).collect();
            let Some(i) = estimator.median(&values).filter(|_| values.len() >= MIN_SAMPLES) else { continue };
            for &row in &group.rows {
                rows[row].push((format!("{}_ci_low", quantity.column), Cell::from(i.low)));
                rows[row].push((format!("{}_ci_high", quantity.column), Cell::from(i.high)));
            }
        }
    }
    let mut out = Table::new(table.name());
    for row in rows {
        out.push(row);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_report::row;

    fn process(rate: f64) -> ReportInput {
        let mut table = Table::new("dataset");
        let mut samples = Samples::new("dataset");
        for run in 0..3 {
            table.push(row![
                ("format", "tiff"),
                ("run", run),
                ("codec", "none"),
                ("verified", true),
                ("num_samples", 100),
                ("samples_per_sec", rate + f64::from(run))
            ]);
            samples.push(row![("format", "tiff"), ("run", run)], vec![1.0 / rate]);
        }
        ReportInput {
            tables: vec![table],
            samples: vec![samples],
            noise_floors: BTreeMap::from([("dataset".to_owned(), rate / 1e4)]),
            warnings: vec!["busy".to_owned()],
            ..ReportInput::default()
        }
    }

    #[test]
    fn a_process_that_measured_all_counts_whatever_its_exit_code() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(finished(dir.path()), None);
        let mut input = process(100.0);
        input.save(dir.path()).unwrap();
        assert_eq!(finished(dir.path()).map(|input| input.tables), Some(input.tables.clone()));
        input.details.insert("unfinished".to_owned(), serde_json::json!(["loop"]));
        input.save(dir.path()).unwrap();
        assert_eq!(finished(dir.path()), None);
    }

    #[test]
    fn wrong_pixels_of_one_process_are_told_of_all() {
        let config = Config { command: "wellread bench dataset --processes 2".into(), ..Config::default() };
        let mut wrong = process(100.0);
        let mut table = Table::new("dataset");
        table.push(row![("format", "tiff"), ("run", 0), ("verified", false), ("samples_per_sec", 100.0)]);
        wrong.tables = vec![table];
        let report = joined(&[process(110.0), wrong], &config).unwrap();
        assert!(report.findings[0].text.contains("pixels that differ"), "{:?}", report.findings);
        assert_eq!(report.details["verified"], false);
    }

    #[test]
    fn frameworks_have_findings_over_processes_too() {
        let of = |process: i32| {
            let mut table = Table::new("dataloader");
            for (loader, rate) in [("wellread", 200.0), ("tifffile", 100.0)] {
                table.push(row![
                    ("format", "tiff"),
                    ("framework", "pytorch"),
                    ("loader", loader),
                    ("batch_size", 16),
                    ("workers", 2),
                    ("run", 0),
                    ("verified", true),
                    ("num_samples", 100),
                    ("samples_per_sec", rate + f64::from(process))
                ]);
            }
            ReportInput { tables: vec![table], ..ReportInput::default() }
        };
        let config =
            Config { command: "wellread bench dataloader --processes 6".into(), ..Config::default() };
        let found = joined(&(0..6).map(of).collect::<Vec<_>>(), &config).unwrap().findings;
        let text = &found.first().unwrap().text;
        assert!(text.starts_with("In pytorch, batches of 16") && text.contains("times tifffile"), "{text}");
    }

    /// A process has a 95th percentile from 20 images on. Its interval over processes is that of a median of these.
    #[test]
    fn a_percentile_has_an_interval_where_six_processes_have_one() {
        let of = |known: usize| {
            let mut table = Table::new("dataset");
            for run in 0..7_usize {
                let p95 = (run < known).then_some(1.0 + run as f64);
                table.push(row![("format", "tiff"), ("run", run), ("p95_s", p95)]);
            }
            with_intervals(&table, &IntervalEstimator::seeded(1))
        };
        assert!(of(MIN_SAMPLES - 1).column("p95_s_ci_low").is_none());
        let table = of(MIN_SAMPLES);
        let [low, high] =
            ["p95_s_ci_low", "p95_s_ci_high"].map(|column| table.f64(column, 0).expect("an interval"));
        // Between the first and the second of 1 to 6, and of these from above.
        assert!((low - 1.357_143).abs() < 1e-5 && (high - 5.642_857).abs() < 1e-5, "{low} {high}");
    }

    #[test]
    fn a_process_is_one_value_and_intervals_are_over_processes() {
        let config = Config { command: "wellread bench dataset --processes 7".into(), ..Config::default() };
        let report =
            joined(&(0..7).map(|i| process(100.0 + 10.0 * f64::from(i))).collect::<Vec<_>>(), &config)
                .unwrap();
        let table = &report.tables[0];
        assert_eq!(table.rows(), 7);
        assert_eq!(table.f64("samples_per_sec", 2), Some(121.0));
        assert_eq!(table.str("codec", 2), Some("none"));
        assert_eq!((table.f64("num_samples", 2), table.cell("verified", 2)), (Some(100.0), Cell::Bool(true)));
        let (low, high) = (table.f64("samples_per_sec_ci_low", 0), table.f64("samples_per_sec_ci_high", 0));
        assert!(low.unwrap() < 131.0 && high.unwrap() > 131.0);
        assert_eq!(report.samples[0].seconds().len(), 21);
        assert_eq!(report.samples[0].runs().f64("run", 20), Some(60_002.0));
        assert!((report.noise_floors["dataset"] - 0.016).abs() < 1e-9);
        assert_eq!(report.warnings, ["busy"]);
        assert!(
            report
                .description
                .contains("a median over processes, each the median of its rounds, with its 95 % interval")
        );
        let few =
            joined(&(0..3).map(|i| process(100.0 + f64::from(i))).collect::<Vec<_>>(), &config).unwrap();
        assert!(few.tables[0].column("samples_per_sec_ci_low").is_none(), "three processes give no interval");
        assert!(few.description.contains("(dataset 3 processes), too few"), "{}", few.description);
        assert!(
            few.title.ends_with("Too short to say: 3 processes are too few for a verdict"),
            "{}",
            few.title
        );
        assert!(report.title.ends_with('?'), "{}", report.title);
    }
}
