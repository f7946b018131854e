//! The whole run: every experiment's tasks in rounds, each run in a process of its own, results written after each.
//!
//! Long because rounds, processes and results are one loop over one state.

mod claimed;
mod replaced;

use crate::adapter::Site;
use crate::config::Config;
use crate::environment::{Python, Pythons};
use crate::hardware::{CpuMonitor, State};
use crate::phases::PhaseReport;
use crate::plan::{self, Planned, Ready};
use crate::process::{self, FinishedProcess};
use crate::repository::{self, Repository};
use crate::results::earlier::Earlier;
use crate::results::{self, Entry, Repeat};
use crate::search_path::SearchPath;
use crate::task::{TASK, Task};
use crate::{stop, table};
use anyhow::{Context as _, Result, bail};
use claimed::OutputClaim;
use serde_json::Map;
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use wellread_measure::Environment;
use wellread_measure::rng::Rng;
use wellread_store::staged::ScratchFolder;
use wellread_trace::{Kind, labelled};

/// The events of a run.
#[derive(Debug)]
pub enum Event<'e> {
    /// Something that takes time before anything runs, or that is worth knowing.
    Note(&'e str),
    /// A run begins.
    Begin {
        /// Experiment, branch and repeat.
        what: &'e str,
        /// Runs that are done.
        done: usize,
        /// All runs.
        of: usize,
    },
    /// A run has ended.
    End {
        /// Experiment, branch and repeat.
        what: &'e str,
        /// The run.
        repeat: &'e Repeat,
    },
}

/// The result.
pub struct Outcome {
    /// The plan, in the order of the table.
    pub planned: Vec<Planned>,
    /// The results, in the same order; empty for a dry run.
    pub entries: Vec<Entry>,
    /// The machine.
    pub environment: Environment,
    /// Runs that were not made again because an earlier run has them.
    pub resumed: usize,
    /// Why the run stopped before its end.
    pub stopped: Option<String>,
    /// Notes on oddities that are no error.
    pub notes: Vec<String>,
    /// Keeps other runs from the output: of a dry run whose tasks run [on other machines](Config::on_other_machines).
    pub lock: Option<File>,
}

/// Runs everything that `config` asks for.
///
/// # Errors
/// An error of the whole run, before anything runs: a table that cannot be read, no repository, results that cannot be
/// written. Without `skip_failed`, every row that cannot run. A task that fails is in the results, and with
/// `skip_failed` so is one that cannot run, whatever the reason.
pub fn run(config: &Config, tell: &dyn Fn(&Event<'_>)) -> Result<Outcome> {
    let rows = plan::chosen(config, table::read(&config.table)?)?;
    let mut output = OutputClaim::default();
    output.claim(config)?;
    let mut pythons = Pythons::new(config.python.as_deref(), &config.cache);
    let (repository, planned) = match Repository::open(&config.repository, &config.cache) {
        Ok(repository) => {
            if repository.removed > 0 {
                tell(&Event::Note("removed what a run that was killed had left in the cache"));
            }
            let planned = plan::plan(config, rows, &repository, &pythons)?;
            (Some(repository), planned)
        }
        // No task can run, and that is recorded of each.
        Err(error) if config.skip_failed => (None, plan::refused(config, rows, &format!("{error:#}"))),
        Err(error) => return Err(error),
    };
    refuse(config, &planned)?;
    let mut notes = plan::notes(config.mode, config.baseline.as_deref(), &planned);
    for note in &notes {
        tell(&Event::Note(note));
    }
    let folder = config.output.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let environment = Environment::capture(&[folder]).with_git(&config.repository);
    let mut suite = Suite {
        config,
        environment,
        entries: Vec::new(),
        others: Vec::new(),
        kept: HashSet::new(),
        sites: Vec::new(),
        search_path: SearchPath::of(config)?,
        scratch: stop::scratch_folder()?,
        resumed: 0,
        done: 0,
    };
    let mut stopped = None;
    if !config.dry_run {
        let preparing = labelled(Kind::Section, || "prepare branches".to_owned());
        suite.sites = prepare(config, &planned, repository.as_ref(), &mut pythons, tell)?;
        drop(preparing);
        let moved = suite.begin(&planned)?;
        if let Some(note) = &moved {
            tell(&Event::Note(note));
        }
        notes.extend(moved);
        output.keep();
        // Results of an earlier call stay until the first run of this one has ended.
        if config.resume || !suite.has_runs_left() {
            suite.write()?;
        }
        stopped = suite.rounds(&planned, tell)?;
    }
    let Suite { environment, entries, resumed, .. } = suite;
    let lock = output.end().filter(|_| config.on_other_machines);
    Ok(Outcome { planned, entries, environment, resumed, stopped, notes, lock })
}

/// Every row that cannot run is an error, unless those are skipped.
fn refuse(config: &Config, planned: &[Planned]) -> Result<()> {
    let problems: Vec<String> = planned
        .iter()
        .filter_map(|task| {
            let why = task.ready.as_ref().err()?;
            let table = config.table.display();
            Some(match &task.row.problem {
                Some(problem) => format!("{table}, {problem}"),
                None => format!("{table}, line {}: {why}", task.row.line),
            })
        })
        .collect();
    // A dry run writes nothing that could hold them.
    let recorded = config.skip_failed && !(config.dry_run && problems.len() == planned.len());
    if problems.is_empty() || recorded {
        return Ok(());
    }
    let hint = if problems.len() == planned.len() {
        "no task of the table can run"
    } else {
        "nothing was run; --skip-failed records these and runs the others"
    };
    bail!("{}\n{hint}", problems.join("\n"));
}

/// Where a task that can run is run; else why that failed.
type Prepared = Option<Result<(PathBuf, Option<Python>), String>>;

/// Checks every branch out and makes its environment.
fn prepare(
    config: &Config,
    planned: &[Planned],
    repository: Option<&Repository>,
    pythons: &mut Pythons,
    tell: &dyn Fn(&Event<'_>),
) -> Result<Vec<Prepared>> {
    let mut sites = Vec::new();
    for task in planned {
        let (Ok(ready), Some(repository)) = (&task.ready, repository) else {
            sites.push(None);
            continue;
        };
        let prepared = site(ready, repository, pythons, tell);
        if let (Err(error), false) = (&prepared, config.skip_failed) {
            bail!("{}, line {}: {error:#}", config.table.display(), task.row.line);
        }
        sites.push(Some(prepared.map_err(|error| format!("{error:#}"))));
    }
    Ok(sites)
}

fn site(
    ready: &Ready,
    repository: &Repository,
    pythons: &mut Pythons,
    tell: &dyn Fn(&Event<'_>),
) -> Result<(PathBuf, Option<Python>)> {
    let worktree = repository.worktree(&ready.branch)?;
    let say = |text: &str| tell(&Event::Note(text));
    let python = ready.adapter.modules().map(|_| pythons.of(&ready.branch, &worktree, ready.adapter, &say));
    Ok((worktree, python.transpose()?))
}

struct Suite<'c> {
    config: &'c Config,
    environment: Environment,
    entries: Vec<Entry>,
    /// Tasks of an earlier run that the table does not have: kept in the file.
    others: Vec<Entry>,
    /// Folders of earlier runs that stay.
    kept: HashSet<PathBuf>,
    sites: Vec<Prepared>,
    search_path: SearchPath,
    scratch: ScratchFolder,
    resumed: usize,
    done: usize,
}

impl Suite<'_> {
    /// An entry per task: that of an earlier run where it is to be gone on with. Returns a note on what else that had.
    fn begin(&mut self, planned: &[Planned]) -> Result<Option<String>> {
        let mut earlier = Earlier::read(&self.config.output, self.config.resume)?;
        self.kept = earlier.folders(&self.config.output);
        for (task, site) in planned.iter().zip(&self.sites) {
            let git = task.git_info();
            let is_known = |e: &Entry| {
                e.is_of(&task.config, git.commit_hash.as_deref())
                    && e.is_on_kind_of(self.config.node.as_ref())
            };
            let known = earlier.take(is_known);
            let python =
                site.as_ref().and_then(|site| site.as_ref().ok()).and_then(|(_, python)| python.as_ref());
            let environment = results::environment(&self.environment, python);
            let mut entry = Entry::new(task.config.clone(), git, environment);
            entry.node.clone_from(&self.config.node);
            if let Some(old) = known {
                // Where they were measured; the state of the machine is with every run.
                if old.successful().next().is_some() {
                    entry.environment = old.environment.clone();
                }
                // Failed runs are tried again.
                for repeat in old.repeats.into_iter().filter(|repeat| repeat.success) {
                    replaced::put_back(&repeat.output_dir)?;
                    self.resumed += 1;
                    entry.add(repeat, self.config.seed);
                }
            }
            let refused = match (&task.ready, site) {
                (Err(why), _) | (_, Some(Err(why))) => Some(why.clone()),
                _ => None,
            };
            entry.error = refused.or(entry.error);
            self.entries.push(entry);
        }
        let is_planned = |old: &Entry| planned.iter().any(|task| task.config == old.task_config);
        let (others, note) = earlier.put_aside(&self.config.output, is_planned)?;
        self.others = others;
        Ok(note)
    }

    fn write(&self) -> Result<()> {
        results::write(&self.config.output, self.entries.iter().chain(&self.others))
    }

    /// Whether something is to be run.
    fn has_runs_left(&self) -> bool {
        self.entries.iter().any(|entry| entry.error.is_none() && entry.repeats.len() < self.config.repeats)
    }

    /// All runs: experiment by experiment, in each the tasks in rounds of random order. `Some` when a failure ends it.
    fn rounds(&mut self, planned: &[Planned], tell: &dyn Fn(&Event<'_>)) -> Result<Option<String>> {
        let mut rng = Rng::seed(self.config.seed);
        let left = |entry: &Entry| self.config.repeats.saturating_sub(entry.repeats.len());
        let of: usize = self.entries.iter().filter(|entry| entry.error.is_none()).map(left).sum();
        for (_, positions) in plan::experiments(planned) {
            for (round, order) in orders(&positions, self.config.repeats, &mut rng).into_iter().enumerate() {
                for at in order {
                    let has = self.entries[at].repeats.iter().any(|repeat| repeat.repeat == round);
                    if has || self.entries[at].error.is_some() {
                        continue;
                    }
                    let what =
                        format!("{} · {}, run {}", planned[at].row.experiment, planned[at].label, round + 1);
                    tell(&Event::Begin { what: &what, done: self.done, of });
                    let turn = labelled(Kind::Turn, || what.clone()).with(round as u64 + 1, 0);
                    let repeat = self.run_once(&planned[at], at, round);
                    drop(turn);
                    self.done += 1;
                    tell(&Event::End { what: &what, repeat: &repeat });
                    let error = repeat.error.clone();
                    self.entries[at].add(repeat, self.config.seed);
                    self.write()?;
                    if let (Some(error), false) = (error, self.config.skip_failed) {
                        return Ok(Some(format!("{what}: {error}")));
                    }
                }
            }
        }
        Ok(None)
    }

    /// One run of a task in a process of its own. An error that keeps it from being started is its error,
    /// too.
    fn run_once(&self, planned: &Planned, at: usize, round: usize) -> Repeat {
        let mut repeat = Repeat {
            repeat: round,
            timestamp: results::now(),
            success: false,
            error: None,
            end: None,
            wall_seconds: None,
            metrics: Map::new(),
            said: PhaseReport::default(),
            output_dir: PathBuf::new(),
            hardware: State::before(),
            hardware_after: None,
        };
        if let Err(error) = self.measure(planned, at, &mut repeat) {
            repeat.error = Some(format!("{error:#}"));
        }
        repeat
    }

    fn measure(&self, planned: &Planned, at: usize, repeat: &mut Repeat) -> Result<()> {
        let (Ok(ready), Some(Some(Ok((worktree, python))))) = (&planned.ready, self.sites.get(at)) else {
            bail!("{} is not ready", planned.label);
        };
        let round = repeat.repeat;
        let name = format!("{:03}-{}-{}", at + 1, slug(&planned.row.branch), slug(&planned.row.experiment));
        let runs = std::path::absolute(self.config.runs()).context("--output has no absolute path")?;
        let output_dir = replaced::folder_of(&runs, &name, round + 1, &self.kept);
        repeat.output_dir.clone_from(&output_dir);
        let earlier = replaced::put_aside(&output_dir)?;
        std::fs::create_dir_all(&output_dir)
            .with_context(|| format!("cannot make the folder {}", output_dir.display()))?;
        let row = &planned.row;
        let task = Task {
            mode: self.config.mode,
            branch: row.branch.clone(),
            commit: ready.branch.commit.clone(),
            experiment: ready.experiment.clone(),
            trainer: planned.config.trainer,
            max_epochs: row.max_epochs,
            batch_size: row.batch_size,
            checkpoint_path: self.search_path.absolute(row.checkpoint_path.as_deref(), worktree),
            data_path: self.search_path.absolute(row.data_path.as_deref(), worktree),
            overrides: row.overrides.clone(),
            seed: self.config.seed,
            repeat: round,
            worktree: worktree.clone(),
            search: self.search_path.beyond_the_branch(),
            output_dir,
        };
        repeat.hardware = State::before();
        let watch = CpuMonitor::start();
        let ran = self.start(&task, ready, python.as_ref());
        watch.stop(&mut repeat.hardware);
        // Nothing is recorded of a run that was cut off.
        stop::wait_if_interrupted();
        // Another run has ended in its place.
        replaced::remove(&earlier)?;
        repeat.hardware_after = Some(State::now());
        repeat.said = PhaseReport::read(&task.output_dir.join(PHASES));
        for artifact in &mut repeat.said.artifacts {
            artifact.path = task.output_dir.join(&artifact.path).to_string_lossy().into_owned();
        }
        repeat.ended(task.mode, task.max_epochs, &ran?, &process::tail(&task.output_dir.join(LOG)));
        Ok(())
    }

    fn start(&self, task: &Task, ready: &Ready, python: Option<&Python>) -> Result<FinishedProcess> {
        let file = task.output_dir.join("task.json");
        std::fs::write(&file, serde_json::to_vec_pretty(task)?)
            .with_context(|| format!("cannot write {}", file.display()))?;
        let phases = task.output_dir.join(PHASES);
        std::fs::write(&phases, "").with_context(|| format!("cannot write {}", phases.display()))?;
        let site = Site {
            task,
            program: &self.config.program,
            python: python.map_or(Path::new("python3"), |python| &python.path),
            scratch: self.scratch.path(),
        };
        let mut command = ready.adapter.command(&site)?;
        command.current_dir(&task.worktree).env(TASK, &file);
        repository::forget_redirections(&mut command);
        process::run(command, &task.output_dir.join(LOG), &phases, self.config.timeout)
    }
}

/// The rounds of an experiment's tasks: each has every task once, in random order.
fn orders(positions: &[usize], repeats: usize, rng: &mut Rng) -> Vec<Vec<usize>> {
    let round = |_| {
        let mut order = positions.to_vec();
        rng.shuffle(&mut order);
        order
    };
    (0..repeats).map(round).collect()
}

/// File of phases and of the log in a run's folder.
const PHASES: &str = "phases.jsonl";
const LOG: &str = "log.txt";

/// A text as a part of a folder's name.
fn slug(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let slug: String = text.chars().map(plain).take(40).collect();
    slug.trim_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_every_task_once_and_orders_change() {
        let positions = [2, 5, 7, 9];
        let rounds = orders(&positions, 50, &mut Rng::seed(1));
        assert_eq!(rounds.len(), 50);
        for order in &rounds {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, positions);
        }
        // Each task begins a round now and then.
        assert!(positions.iter().all(|place| rounds.iter().any(|order| order[0] == *place)), "{rounds:?}");
    }
}
