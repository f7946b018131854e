//! Parts on the nodes of a Slurm cluster, by `srun`.
//!
//! ```text
//!  in an allocation ── scontrol show hostnames ─▶ a thread per node ─┐
//!  in none ──────────────────────────────────▶ a thread per part ───┴▶ srun --nodes=1 --ntasks=1 … PROGRAM … (one after the other)
//! ```
//!
//! In an allocation each thread keeps to its node, so that a node has one part at a time. In none, `--exclusive` asks for whole
//! nodes, and Slurm's own queue says when there is one. Partition, account and limits come from the variables that srun reads.

use super::part::{LOG, Part};
use crate::output::{Failure, Outcome, Ui};
use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The processes of srun that run.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());
/// Whether this program is about to end: then nothing is started.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Asks what runs on nodes to end: srun hands that on.
pub fn interrupt() {
    INTERRUPTED.store(true, Ordering::SeqCst);
    for pid in RUNNING.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        #[cfg(unix)]
        if let Ok(pid @ 2..) = i32::try_from(*pid) {
            // SAFETY: kill has no preconditions; the number is taken off the list as soon as its process was waited for.
            unsafe { libc::kill(pid, libc::SIGTERM) };
        }
        #[cfg(not(unix))]
        let _ = pid;
    }
}

/// Runs the commands, one on a node at a time; says for each how it failed, if it did.
pub(super) fn run(commands: &[Vec<OsString>], parts: &[Part], ui: Ui) -> Outcome<Vec<Option<String>>> {
    let nodes = allocated()?;
    // Without an allocation Slurm deals the nodes out.
    let threads: Vec<Option<&str>> = match &nodes {
        Some(nodes) => nodes.iter().map(|node| Some(node.as_str())).collect(),
        None => vec![None; commands.len()],
    };
    let (next, ends) = (AtomicUsize::new(0), Mutex::new(vec![None; commands.len()]));
    let work = |node: Option<&str>| {
        while !INTERRUPTED.load(Ordering::SeqCst) {
            let at = next.fetch_add(1, Ordering::SeqCst);
            let (Some(command), Some(part)) = (commands.get(at), parts.get(at)) else { return };
            ui.hint(format!("{}: on {}", part.name, node.unwrap_or("a node of Slurm's choice")));
            let end = step(node, command, part);
            ui.hint(format!("{}: {}", part.name, end.as_deref().unwrap_or("done")));
            if let Some(slot) = ends.lock().unwrap_or_else(PoisonError::into_inner).get_mut(at) {
                *slot = end;
            }
        }
    };
    std::thread::scope(|scope| {
        for node in threads.into_iter().take(commands.len()) {
            let work = &work;
            scope.spawn(move || work(node));
        }
    });
    Ok(ends.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The arguments of srun before the command: a task, alone on a node, with all that the node has.
fn arguments(node: Option<&str>) -> Vec<String> {
    let mut arguments = ["--nodes=1", "--ntasks=1", "--cpu-bind=none", "--mem=0"].map(str::to_owned).to_vec();
    arguments.push(match node {
        Some(node) => format!("--nodelist={node}"),
        None => "--exclusive".to_owned(),
    });
    arguments.push("--job-name=wellread".to_owned());
    arguments
}

/// One part; how it failed, if it did.
fn step(node: Option<&str>, command: &[OsString], part: &Part) -> Option<String> {
    let log = part.folder.join(LOG);
    let opened = File::create(&log).and_then(|out| Ok((out.try_clone()?, out)));
    let (out, err) = match opened {
        Ok(files) => files,
        Err(e) => return Some(format!("cannot write {}: {e}", log.display())),
    };
    let mut srun = Command::new("srun");
    srun.args(arguments(node)).args(command).stdin(Stdio::null()).stdout(out).stderr(err);
    // In one step with its number, or one that is interrupted just now would not be ended.
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut child = match srun.spawn() {
        Ok(child) => child,
        Err(e) => return Some(format!("cannot start srun: {e}")),
    };
    let pid = child.id();
    running.push(pid);
    drop(running);
    let status = child.wait();
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).retain(|known| *known != pid);
    match status {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("srun ended with {status}")),
        Err(e) => Some(format!("cannot wait for srun: {e}")),
    }
}

/// The nodes of the allocation that this process is in; `None` outside of one.
///
/// # Errors
/// There is no Slurm here.
fn allocated() -> Outcome<Option<Vec<String>>> {
    let failed = |program: &str, why: &dyn std::fmt::Display| {
        Failure::Failed(format!(
            "--on slurm: cannot run {program}: {why} (hint: run it where Slurm's commands are, or leave --on out)"
        ))
    };
    let version = Command::new("srun").arg("--version").stdin(Stdio::null()).output();
    match version {
        Ok(output) if output.status.success() => (),
        Ok(output) => return Err(failed("srun", &output.status)),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return Err(failed("srun", &"there is no such program on the PATH"));
        }
        Err(e) => return Err(failed("srun", &e)),
    }
    let list = ["SLURM_JOB_NODELIST", "SLURM_NODELIST"].into_iter().find_map(std::env::var_os);
    let Some(list) = list.filter(|list| !list.is_empty()) else { return Ok(None) };
    let output =
        Command::new("scontrol").args(["show", "hostnames"]).arg(&list).stdin(Stdio::null()).output();
    let output = output.map_err(|e| failed("scontrol", &e))?;
    let names = String::from_utf8_lossy(&output.stdout);
    let mut nodes: Vec<String> = Vec::new();
    for name in names.split_whitespace() {
        // A node that is named twice would be given two parts at once.
        if !nodes.iter().any(|known| known == name) {
            nodes.push(name.to_owned());
        }
    }
    if nodes.is_empty() {
        let list = list.to_string_lossy();
        return Err(failed("scontrol", &format!("it names no node of the allocation {list}")));
    }
    Ok(Some(nodes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_alone_on_its_node() {
        let inside = arguments(Some("n1"));
        assert_eq!(inside[..2], ["--nodes=1", "--ntasks=1"]);
        assert!(inside.contains(&"--nodelist=n1".to_owned()) && !inside.contains(&"--exclusive".to_owned()));
        let outside = arguments(None);
        assert!(
            outside.contains(&"--exclusive".to_owned()) && outside.iter().all(|a| !a.contains("nodelist"))
        );
    }
}
