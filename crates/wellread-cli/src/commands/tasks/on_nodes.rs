//! `tasks --on`: an experiment is a part, so that the branches that are compared with each other run on one node, in turns.

use super::super::nodes::{self, Cluster};
use crate::output::{Outcome, Ui};
use serde_json::Value;
use std::path::Path;
use wellread_measure::Environment;
use wellread_measure::environment::Node;
use wellread_tasks::config::{Config, beside};
use wellread_tasks::plan::{self, Planned};
use wellread_tasks::results::earlier::Earlier;
use wellread_tasks::results::{self, Entry, TaskConfig};
use wellread_tasks::suite::{self, Event};

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

/// A task of a part that ended in this way. Results of a part that failed may be of an earlier run, and fewer than are asked
/// for. The failure is the error of the task then.
fn ended(mut entry: Entry, repeats: usize, end: Option<&str>) -> Entry {
    let is_whole = entry.successful().count() >= repeats;
    if !is_whole
        && entry.error.is_none()
        && let Some(why) = end
    {
        entry.error = Some(why.to_owned());
        entry.success = false;
    }
    entry
}

/// The results of a task: of its part, else of an earlier run at the same commit. A branch may have moved while its part waited.
/// The results of a part that went well count then. Results of an earlier run that these replace are taken, too.
fn results_of(
    task: &Planned,
    part: &mut Vec<Entry>,
    earlier: &mut Earlier,
    end: Option<&str>,
) -> Option<Entry> {
    let is_own = |entry: &Entry| is_same(&task.config, &entry.task_config);
    let commit = task.git_info().commit_hash;
    let at = part.iter().position(|entry| is_own(entry) && entry.git_info.commit_hash == commit);
    let at = at.or_else(|| part.iter().position(is_own).filter(|_| end.is_none()));
    let new = at.map(|at| part.remove(at));
    let commit = new.as_ref().map_or(commit, |new| new.git_info.commit_hash.clone());
    let old = earlier.take(|old| {
        is_own(old)
            && old.git_info.commit_hash == commit
            && new.as_ref().is_none_or(|new| old.is_on_kind_of(new.node.as_ref()))
    });
    new.or(old)
}

/// Has a cluster run the tasks, and writes the results of all parts as those of one run. The plan's lock keeps other runs
/// from the results and the folders of the parts, until the outcome is dropped.
///
/// # Errors
/// A fault of the whole run, no cluster, or results that cannot be written. A part that failed is the error of its
/// tasks.
pub fn run(
    cluster: &Cluster,
    config: &Config,
    print: &dyn Fn(&Event<'_>),
    ui: Ui,
) -> Outcome<suite::Outcome> {
    let planning = Config { dry_run: true, on_other_machines: true, ..config.clone() };
    let mut outcome = suite::run(&planning, print)?;
    let mut earlier = Earlier::read(&config.output, config.resume)?;
    let experiments = plan::experiments(&outcome.planned);
    let folder = beside(&config.output, "nodes");
    let parts = nodes::parts(experiments.iter().map(|(name, _)| name.clone()), &folder)?;
    if !config.resume {
        // Results of an earlier run, which is measured again.
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
            let entry = results_of(task, &mut found, &mut earlier, end.as_deref());
            entries[place] = Some(entry.map_or_else(
                || {
                    let mut entry = Entry::new(task.config.clone(), task.git_info(), Value::Null);
                    let why = end.clone().unwrap_or_else(|| "its node returned no results".to_owned());
                    entry.error = Some(why);
                    entry
                },
                |entry| ended(entry, config.repeats, end.as_deref()),
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
    let is_planned = |old: &Entry| outcome.planned.iter().any(|task| is_same(&task.config, &old.task_config));
    let (others, note) = earlier.put_aside(&config.output, is_planned)?;
    outcome.notes.extend(note);
    results::write(&config.output, outcome.entries.iter().chain(&others))?;
    Ok(outcome)
}
