//! From the table to what will run: branches found, adapters chosen, and everything checked that can be known before
//! anything runs.
//!
//! ```text
//!  Row of the table ─▶ branch ─▶ adapter, experiment ─▶ Python ─▶ Planned: Ready, or why it cannot run
//!                      └─ chosen, labels, baseline: which rows, what they are called, what they are compared with
//! ```

use crate::adapter::{self, Adapter};
use crate::config::Config;
use crate::environment::Pythons;
use crate::hardware;
use crate::repository::{Branch, Repository};
use crate::results::{GitInfo, TaskConfig};
use crate::search_path::SearchPath;
use crate::task::{Mode, Row, Trainer};
use anyhow::{Result, bail};
use std::collections::HashMap;
use wellread_report::words::counted;

/// A row, ready to run, or why it cannot.
pub struct Planned {
    /// The row as written.
    pub row: Row,
    /// Its name in tables and figures: the branch, and its difference from other rows of the branch.
    pub label: String,
    /// The configuration that will be recorded.
    pub config: TaskConfig,
    /// Its commit, adapter and Python; else why it cannot run.
    pub ready: Result<Ready, String>,
}

/// The inputs that a row needs to run.
#[derive(Clone)]
pub struct Ready {
    /// The commit.
    pub branch: Branch,
    /// How it is run.
    pub adapter: &'static dyn Adapter,
    /// The experiment as the branch calls it.
    pub experiment: String,
    /// Its Python in words; `None` for adapters that need none.
    pub python: Option<String>,
}

impl Planned {
    /// The commit, as results have it.
    pub fn git_info(&self) -> GitInfo {
        let branch = self.ready.as_ref().ok().map(|ready| &ready.branch);
        GitInfo {
            branch: self.row.branch.clone(),
            commit_hash: branch.map(|branch| branch.commit.clone()),
            commit_date: branch.map(|branch| branch.date.clone()),
        }
    }
}

/// Rows of which none can run, for one reason that has nothing to do with them.
pub fn refused(config: &Config, rows: Vec<Row>, why: &str) -> Vec<Planned> {
    let labels = labels(&rows);
    let rows = rows.into_iter().zip(labels);
    rows.map(|(row, label)| planned(config, row, label, Err(why.to_owned()), hardware::has_gpu())).collect()
}

/// Checks every row.
///
/// # Errors
/// A baseline that is no row.
pub fn plan(
    config: &Config,
    rows: Vec<Row>,
    repository: &Repository,
    pythons: &Pythons,
) -> Result<Vec<Planned>> {
    let gpu = config.on_other_machines || hardware::has_gpu();
    plan_on(config, rows, repository, pythons, &SearchPath::of(config)?, gpu)
}

fn plan_on(
    config: &Config,
    rows: Vec<Row>,
    repository: &Repository,
    pythons: &Pythons,
    search_path: &SearchPath,
    gpu: bool,
) -> Result<Vec<Planned>> {
    if let Some(baseline) = &config.baseline
        && !rows.iter().any(|row| row.branch == *baseline)
    {
        let names: Vec<String> = rows.iter().map(|row| row.branch.clone()).collect();
        bail!(
            "--baseline {baseline}: the table has no such branch; it has {}",
            crate::nearest::listed(baseline, &distinct(names))
        );
    }
    let labels = labels(&rows);
    let mut branches: HashMap<String, Result<Branch, String>> = HashMap::new();
    // Rows that say the same are looked at once.
    let mut known: HashMap<Row, Result<Ready, String>> = HashMap::new();
    let mut planned = Vec::new();
    for (row, label) in rows.into_iter().zip(labels) {
        let found = branches
            .entry(row.branch.clone())
            .or_insert_with(|| repository.branch(&row.branch).map_err(|error| format!("{error:#}")));
        let ready = known.entry(Row { line: 0, ..row.clone() }).or_insert_with(|| {
            if let Some(problem) = &row.problem {
                return Err(problem.clone());
            }
            let branch = found.clone()?;
            ready(config, &row, branch, pythons, search_path, gpu).map_err(|error| format!("{error:#}"))
        });
        planned.push(self::planned(config, row, label, ready.clone(), gpu));
    }
    Ok(planned)
}

fn planned(config: &Config, row: Row, label: String, ready: Result<Ready, String>, gpu: bool) -> Planned {
    let trainer = row.trainer.unwrap_or(if gpu { Trainer::Gpu } else { Trainer::Cpu });
    let adapter = ready.as_ref().map_or(config.adapter.as_str(), |ready| ready.adapter.name());
    // An adapter that runs on the processors alone gets them, where the table says nothing.
    let trainer = if row.trainer.is_none() && adapter == "native" { Trainer::Cpu } else { trainer };
    let config = TaskConfig {
        mode: config.mode,
        branch: row.branch.clone(),
        experiment: row.experiment.clone(),
        trainer,
        max_epochs: row.max_epochs,
        batch_size: row.batch_size,
        checkpoint_path: row.checkpoint_path.clone(),
        data_path: row.data_path.clone(),
        overrides: row.overrides.clone(),
        adapter: adapter.to_owned(),
        seed: config.seed,
    };
    Planned { row, label, config, ready }
}

/// The row with the experiment as the branch spells it, where the table's differs in `_` and `-` alone. Upstream's tables say
/// `im2im/label_free` and its branches `im2im/labelfree`.
fn as_spelled(branch: &Branch, row: &Row) -> Result<Row> {
    let experiment = adapter::spelled(branch, &row.experiment)?.unwrap_or_else(|| row.experiment.clone());
    Ok(Row { experiment, ..row.clone() })
}

/// The inputs of a row, when it has no error.
fn ready(
    config: &Config,
    row: &Row,
    branch: Branch,
    pythons: &Pythons,
    search_path: &SearchPath,
    gpu: bool,
) -> Result<Ready> {
    if row.trainer == Some(Trainer::Gpu) && !gpu {
        bail!(
            "trainer gpu: this machine has no NVIDIA GPU (no /dev/nvidia0, and nvidia-smi finds none); use cpu"
        );
    }
    let row = &as_spelled(&branch, row)?;
    let adapter = adapter::choose(&config.adapter, &branch, row)?;
    adapter.check(&branch, row, config.mode)?;
    for (name, path) in [("checkpoint_path", &row.checkpoint_path), ("data_path", &row.data_path)] {
        if let Some(path) = path {
            search_path.check(name, path, &branch)?;
        }
    }
    adapter.check_settings(&branch, row, config)?;
    let python = adapter.modules().map(|_| pythons.plan(&branch)).transpose()?;
    Ok(Ready { branch, adapter, experiment: row.experiment.clone(), python })
}

fn distinct(mut names: Vec<String>) -> Vec<String> {
    let mut seen = Vec::new();
    names.retain(|name| {
        let new = !seen.contains(name);
        seen.push(name.clone());
        new
    });
    names
}

/// Names for the rows of an experiment: the branch, and the differences between several rows of one branch.
fn labels(rows: &[Row]) -> Vec<String> {
    let of = |row: &Row| (row.branch.clone(), row.experiment.clone());
    let mut groups: HashMap<(String, String), Vec<&Row>> = HashMap::new();
    for row in rows {
        groups.entry(of(row)).or_default().push(row);
    }
    // Which columns differ within a group.
    let differ: HashMap<_, [bool; 6]> = groups
        .iter()
        .map(|(key, others)| {
            let any = |differs: &dyn Fn(&Row) -> bool| others.iter().any(|row| differs(row));
            let first = others[0];
            let differ = [
                any(&|o| o.trainer != first.trainer),
                any(&|o| o.max_epochs != first.max_epochs),
                any(&|o| o.batch_size != first.batch_size),
                any(&|o| o.checkpoint_path != first.checkpoint_path),
                any(&|o| o.data_path != first.data_path),
                any(&|o| o.overrides != first.overrides),
            ];
            (key.clone(), differ)
        })
        .collect();
    let mut seen: HashMap<(String, String), usize> = HashMap::new();
    rows.iter()
        .map(|row| {
            let texts = [
                row.trainer.map(|trainer| trainer.to_string()),
                row.max_epochs.map(|n| counted(n as usize, "epoch")),
                row.batch_size.map(|n| format!("batch {n}")),
                row.checkpoint_path.clone(),
                row.data_path.clone(),
                Some(row.overrides.join(",")).filter(|text| !text.is_empty()),
            ];
            let parts = texts
                .into_iter()
                .zip(differ[&of(row)])
                .filter_map(|(text, differs)| text.filter(|_| differs));
            let parts: Vec<String> = parts.collect();
            let label = if parts.is_empty() {
                row.branch.clone()
            } else {
                format!("{} ({})", row.branch, parts.join(", "))
            };
            let same = seen.entry((row.experiment.clone(), label.clone())).or_default();
            *same += 1;
            if *same == 1 { label } else { format!("{label} #{same}") }
        })
        .collect()
}

/// The experiments of a plan in their order, each with the places of its rows.
pub fn experiments(planned: &[Planned]) -> Vec<(String, Vec<usize>)> {
    let mut experiments: Vec<(String, Vec<usize>)> = Vec::new();
    for (at, task) in planned.iter().enumerate() {
        match experiments.iter_mut().find(|(name, _)| *name == task.row.experiment) {
            Some((_, positions)) => positions.push(at),
            None => experiments.push((task.row.experiment.clone(), vec![at])),
        }
    }
    experiments
}

/// The rows of the only experiment to run, where there is one; else all.
///
/// # Errors
/// The table has no experiment of that number.
pub fn chosen(config: &Config, mut rows: Vec<Row>) -> Result<Vec<Row>> {
    let Some(number) = config.experiment else { return Ok(rows) };
    let names = distinct(rows.iter().map(|row| row.experiment.clone()).collect());
    let Some(only) = names.get(number) else {
        bail!(
            "{} has {} and none of number {number}",
            config.table.display(),
            counted(names.len(), "experiment")
        );
    };
    rows.retain(|row| row.experiment == *only);
    Ok(rows)
}

/// The row of an experiment that row `of` is compared with: of the branch that `named` says, else of the first row's.
/// Among several rows of that branch it is the one whose settings are most like those of `of`. The rows of the branch
/// itself are compared with its first.
pub fn baseline(planned: &[Planned], positions: &[usize], named: Option<&str>, of: usize) -> Option<usize> {
    let rows: Vec<&Row> = planned.iter().map(|task| &task.row).collect();
    baseline_row(&rows, positions, named, of)
}

fn baseline_row(rows: &[&Row], positions: &[usize], named: Option<&str>, of: usize) -> Option<usize> {
    let of_branch = |name: &str| -> Vec<usize> {
        positions.iter().copied().filter(|&at| rows[at].branch == name).collect()
    };
    let mut base: Vec<usize> = named.map(of_branch).unwrap_or_default();
    if base.is_empty() {
        base = of_branch(&rows[*positions.first()?].branch);
    }
    if base.contains(&of) {
        return base.first().copied();
    }
    let differing = |at: &usize| {
        let (a, b) = (rows[*at], rows[of]);
        let differs = [
            a.trainer != b.trainer,
            a.max_epochs != b.max_epochs,
            a.batch_size != b.batch_size,
            a.data_path != b.data_path,
            a.overrides != b.overrides,
        ];
        differs.into_iter().filter(|differs| *differs).count()
    };
    base.into_iter().min_by_key(differing)
}

/// Notes on oddities of the table that are no error; `baseline` is the branch that the others are to be
/// compared with.
pub fn notes(mode: Mode, baseline: Option<&str>, planned: &[Planned]) -> Vec<String> {
    let mut notes = Vec::new();
    for (experiment, positions) in experiments(planned) {
        let Some(name) = baseline.filter(|_| positions.len() > 1) else { continue };
        if positions.iter().all(|&at| planned[at].row.branch != name) {
            let first = &planned[positions[0]].row.branch;
            notes.push(format!(
                "--baseline {name}: {experiment} has no row of that branch; its rows are compared with its first, {first}"
            ));
        }
    }
    if mode == Mode::Inference && planned.iter().any(|task| task.row.max_epochs.is_some()) {
        notes.push("max_epochs means nothing for inference and is not used".to_owned());
    }
    let mut note = |note: String| {
        if !notes.contains(&note) {
            notes.push(note);
        }
    };
    for ready in planned.iter().filter_map(|task| task.ready.as_ref().ok()) {
        if let Branch { found: Some(found), name, .. } = &ready.branch {
            note(format!("{name}: {found}"));
        }
    }
    for task in planned {
        if let Some(ready) = task.ready.as_ref().ok().filter(|ready| ready.experiment != task.row.experiment)
        {
            note(format!("{} is {} in {}", task.row.experiment, ready.experiment, ready.branch.name));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(table: &str) -> Vec<Row> {
        crate::table::parse(table).unwrap()
    }

    #[test]
    fn rows_of_one_branch_are_named_by_what_differs() {
        let rows = rows(
            "branch,experiment,batch_size,overrides\nmain,e,8,\nmain,e,16,a=1\nmain,e,16,a=1\nfast,e,8,\nmain,f,8,\nmain,g,1,\nmain,g,1,\n",
        );
        assert_eq!(
            labels(&rows),
            [
                "main (batch 8)",
                "main (batch 16, a=1)",
                "main (batch 16, a=1) #2",
                "fast",
                "main",
                "main",
                "main #2"
            ]
        );
    }

    #[test]
    fn the_baseline_of_several_is_the_one_with_the_same_settings() {
        let rows = rows(
            "branch,experiment,batch_size,overrides\nmain,e,8,\nmain,e,16,\nfast,e,16,\nfast,e,8,a=1\nother,e,,a=1\n",
        );
        let rows: Vec<&Row> = rows.iter().collect();
        let positions = [0, 1, 2, 3, 4];
        let of = |named, at| baseline_row(&rows, &positions, named, at);
        // Without a name it is the branch of the first row, whose own rows are compared with that.
        assert_eq!((0..5).map(|at| of(None, at)).collect::<Vec<_>>(), [0, 0, 1, 0, 0].map(Some));
        assert_eq!(
            (of(Some("fast"), 0), of(Some("fast"), 1), of(Some("fast"), 4)),
            (Some(2), Some(2), Some(3))
        );
        // A branch that the experiment does not have.
        assert_eq!(of(Some("nowhere"), 2), Some(1));
        assert_eq!(baseline_row(&rows, &[], None, 0), None);
    }
}
