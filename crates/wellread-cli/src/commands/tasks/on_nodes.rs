//! `tasks --on`: an experiment is a part, so that the branches that are compared with each other run on one node, in turns.

use super::super::nodes::{self, Cluster};
use crate::output::{Failure, Outcome, Ui};
use serde_json::Value;
use std::path::Path;
use wellread_measure::Environment;
use wellread_measure::environment::Node;
use wellread_tasks::config::Config;
use wellread_tasks::plan;
use wellread_tasks::results::{self, Entry, TaskConfig};
use wellread_tasks::suite::{self, Event};

fn failed(error: &wellread_tasks::Error) -> Failure {
    Failure::Failed(format!("{error:#}"))
}

/// Leaves of a run the part that is this process's, on this node.
pub fn take_part(config: &mut Config, (number, folder, node): (usize, &Path, Node)) {
    config.experiment = Some(number);
    config.output = folder.join("results.json");
    config.report = None;
    config.node = Some(node);
    // Nodes may share the cache, in which one repository is one run's.
    config.cache = config.cache.join("nodes").join(number.to_string());
}

/// Whether these are the same task, whatever it runs on: where the table says nothing, that is the node's to say.
fn is_same(a: &TaskConfig, b: &TaskConfig) -> bool {
    *a == TaskConfig { trainer: a.trainer, adapter: a.adapter.clone(), ..b.clone() }
}

/// A task of a part that ended in this way. Results of a part that failed may be of an earlier run, at another commit or fewer
/// than are asked for. The failure is the error of the task then.
fn ended(mut entry: Entry, commit: Option<&str>, repeats: usize, end: Option<&str>) -> Entry {
    let is_whole = entry.good().count() >= repeats && entry.git_info.commit_hash.as_deref() == commit;
    if !is_whole
        && entry.error.is_none()
        && let Some(why) = end
    {
        entry.error = Some(why.to_owned());
        entry.success = false;
    }
    entry
}

/// Results of an earlier run that goes on, of tasks that are not planned.
///
/// # Errors
/// A file that is something else.
fn kept(config: &Config, planned: &[plan::Planned]) -> Outcome<Vec<Entry>> {
    let earlier = results::earlier(&config.output, config.resume).map_err(|e| failed(&e))?;
    let is_other = |old: &Entry| planned.iter().all(|task| !is_same(&task.config, &old.task_config));
    Ok(earlier.into_iter().filter(is_other).collect())
}

/// Has a cluster run the tasks, and writes the results of all parts as those of one run.
///
/// # Errors
/// A fault of the whole run, no cluster, or results that cannot be written. A part that failed is the error of its
/// tasks.
pub fn run(cluster: &Cluster, config: &Config, tell: &dyn Fn(&Event<'_>), ui: Ui) -> Outcome<suite::Outcome> {
    let planning = Config { dry_run: true, on_other_machines: true, ..config.clone() };
    let mut outcome = suite::run(&planning, tell).map_err(|e| failed(&e))?;
    let others = kept(config, &outcome.planned)?;
    let experiments = plan::experiments(&outcome.planned);
    let folder = config.output.with_extension("nodes");
    let parts = nodes::parts(experiments.iter().map(|(name, _)| name.clone()), &folder)?;
    if !config.resume {
        // Of an earlier run, which is measured again.
        for part in &parts {
            let _ = std::fs::remove_file(part.folder.join("results.json"));
        }
    }
    let ends = cluster.run(&config.program, &parts, ui)?;
    let mut entries: Vec<Option<Entry>> = outcome.planned.iter().map(|_| None).collect();
    for (((name, places), part), end) in experiments.iter().zip(&parts).zip(ends) {
        let found = nodes::results_of(part).and_then(|found| serde_json::from_value(found).ok());
        let mut found: Vec<Entry> = found.unwrap_or_default();
        for &place in places {
            let task = &outcome.planned[place];
            let at = found.iter().position(|entry| is_same(&task.config, &entry.task_config));
            entries[place] = Some(at.map_or_else(
                || {
                    let mut entry = Entry::new(task.config.clone(), task.git_info(), Value::Null);
                    let why = end.clone().unwrap_or_else(|| "its node gave no results of it".to_owned());
                    entry.error = Some(why);
                    entry
                },
                |at| {
                    let commit = task.git_info().commit_hash;
                    ended(found.remove(at), commit.as_deref(), config.repeats, end.as_deref())
                },
            ));
        }
        if let (Some(why), false) = (end, config.skip_failed) {
            outcome.stopped.get_or_insert_with(|| format!("{name}: {why}"));
        }
    }
    outcome.entries = entries.into_iter().flatten().collect();
    let machine = outcome.entries.iter().map(|entry| &entry.environment["machine"]).find(|m| m.is_object());
    let machine = machine.and_then(|machine| serde_json::from_value::<Environment>(machine.clone()).ok());
    if let Some(machine) = machine {
        outcome.environment = machine;
    }
    results::write(&config.output, outcome.entries.iter().chain(&others)).map_err(|e| failed(&e))?;
    Ok(outcome)
}
