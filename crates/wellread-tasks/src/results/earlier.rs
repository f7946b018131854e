//! The results of an earlier run, where a run goes on with it.
//!
//! ```text
//!  RESULTS.json ─▶ Earlier ─┬ take: of a task that is planned ──▶ its runs are kept
//!                           └ put_aside ─┬ tasks that are not planned ─▶ RESULTS.json
//!                                        └ other commits, unlike nodes ─▶ RESULTS.earlier.json
//! ```
//!
//! A file has one commit of a task: programs that read it take two entries of a task for runs of the same code.

use super::{Entry, read, write};
use crate::config::beside;
use anyhow::Result;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use wellread_report::words::counted;

/// The ending of the file of measurements that the results no longer have.
const ASIDE: &str = "earlier.json";

/// Entries of an earlier run that nothing has taken.
#[derive(Debug)]
pub struct Earlier(Vec<Entry>);

impl Earlier {
    /// Reads the results at `output`; none where `resume` is not asked for.
    ///
    /// # Errors
    /// A file that is something else.
    pub fn read(output: &Path, resume: bool) -> Result<Self> {
        Ok(Self(if resume { read(output)?.unwrap_or_default() } else { Vec::new() }))
    }

    /// Folders of runs that ended well, also of those that were put aside before: nothing else may be written there.
    pub fn folders(&self, output: &Path) -> HashSet<PathBuf> {
        if self.0.is_empty() {
            return HashSet::new();
        }
        let aside = read(&beside(output, ASIDE)).ok().flatten().unwrap_or_default();
        self.0.iter().chain(&aside).flat_map(Entry::successful).map(|run| run.output_dir.clone()).collect()
    }

    /// Takes the first entry that `is_known` accepts.
    pub fn take(&mut self, is_known: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let at = self.0.iter().position(is_known)?;
        Some(self.0.remove(at))
    }

    /// The entries of tasks that are not planned. Measurements of planned ones go to a file beside `output`, which the
    /// note names.
    ///
    /// # Errors
    /// That file holds something else, or cannot be written.
    pub fn put_aside(
        self,
        output: &Path,
        is_planned: impl Fn(&Entry) -> bool,
    ) -> Result<(Vec<Entry>, Option<String>)> {
        let (planned, others): (Vec<Entry>, Vec<Entry>) = self.0.into_iter().partition(is_planned);
        let measured: Vec<Entry> =
            planned.into_iter().filter(|entry| entry.successful().next().is_some()).collect();
        if measured.is_empty() {
            return Ok((others, None));
        }
        let path = beside(output, ASIDE);
        let mut aside = read(&path)?.unwrap_or_default();
        let note = format!(
            "{} of another commit or an unlike node: moved to {}",
            counted(measured.len(), "result"),
            path.display()
        );
        for entry in measured {
            // A run that was killed here has put it there already.
            if !aside.contains(&entry) {
                aside.push(entry);
            }
        }
        write(&path, &aside)?;
        Ok((others, Some(note)))
    }
}
