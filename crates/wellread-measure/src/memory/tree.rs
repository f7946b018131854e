//! The proportional sets of a process and its descendants, added up.

use super::status::{Status, kibibytes_field, missing, text};
use crate::error::{Error, Result};
use crate::sys;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TreeSample {
    pub bytes: u64,
    processes: u64,
    resident_instead: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TreePeak {
    pub bytes: u64,
    pub processes: u64,
    pub resident_instead: u64,
    pub samples: u64,
}

impl TreePeak {
    pub fn include(&mut self, sample: TreeSample) {
        self.bytes = self.bytes.max(sample.bytes);
        self.processes = self.processes.max(sample.processes);
        self.resident_instead += sample.resident_instead;
        self.samples += 1;
    }
}

/// Adds up the proportional sets of a process and its descendants. Processes that end meanwhile are skipped.
pub(super) fn sample_tree(root: u32) -> Result<TreeSample> {
    let mut sample = TreeSample::default();
    for pid in descendants(root)? {
        let pss = text(&format!("{pid}/smaps_rollup")).ok().and_then(|text| kibibytes_field(&text, "Pss"));
        let bytes = pss.or_else(|| {
            let bytes = Status::read(&pid.to_string()).ok()?.bytes("VmRSS")?;
            sample.resident_instead += 1;
            Some(bytes)
        });
        if let Some(bytes) = bytes {
            sample.bytes += bytes;
            sample.processes += 1;
        }
    }
    if sample.processes == 0 {
        return Err(missing("smaps_rollup"));
    }
    Ok(sample)
}

/// The process and its descendants, from the parents that `/proc/PID/stat` names.
pub(super) fn descendants(root: u32) -> Result<Vec<u32>> {
    let processes = sys::processes()
        .map_err(|error| Error::Unsupported { what: "a process tree", reason: format!("/proc: {error}") })?;
    let parents: Vec<(u32, u32)> = processes
        .into_iter()
        .filter_map(|pid| {
            let stat = text(&format!("{pid}/stat")).ok()?;
            Some((pid, parent_in_stat(&stat)?))
        })
        .collect();
    let mut tree = vec![root];
    let mut next = 0;
    while next < tree.len() {
        let parent = tree[next];
        // Process ids can be reused while the list is read: a process must not enter twice.
        let children: Vec<u32> = parents
            .iter()
            .filter(|(pid, of)| *of == parent && !tree.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        tree.extend(children);
        next += 1;
    }
    Ok(tree)
}

/// The parent in `PID (NAME) STATE PARENT …`; the name may hold spaces and brackets.
pub(super) fn parent_in_stat(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
