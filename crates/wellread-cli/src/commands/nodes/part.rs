//! A part of the work: the folder in which its node leaves what it says and its results.
//!
//! ```text
//!  FOLDER/0/ log.txt, results of part 0 as JSON
//!  FOLDER/1/ …
//! ```

use crate::output::{Failure, Outcome};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The file with the output of a part, on its node.
pub const LOG: &str = "log.txt";
/// Lines of it that are shown when a part fails.
const LOG_LINES: usize = 12;

/// A part of the work: its name in messages, and the folder of its results.
#[derive(Clone, Debug)]
pub struct Part {
    pub name: String,
    pub folder: PathBuf,
}

/// Parts of these names, with folders below `folder`, which are made.
///
/// # Errors
/// A folder that cannot be made.
pub fn parts(names: impl IntoIterator<Item = String>, folder: &Path) -> Outcome<Vec<Part>> {
    let failed = |path: &Path, e: &std::io::Error| {
        Failure::Failed(format!("cannot make the folder {}: {e}", path.display()))
    };
    let folder = std::path::absolute(folder).map_err(|e| failed(folder, &e))?;
    names
        .into_iter()
        .enumerate()
        .map(|(number, name)| {
            let folder = folder.join(number.to_string());
            std::fs::create_dir_all(&folder).map_err(|e| failed(&folder, &e))?;
            Ok(Part { name, folder })
        })
        .collect()
}

/// How a part ended, with the last lines of what it said.
pub fn with_log(why: &str, log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    match lines.get(lines.len().saturating_sub(LOG_LINES)..) {
        Some(last @ [_, ..]) => format!("{why}; {}:\n  {}", log.display(), last.join("\n  ")),
        _ => why.to_owned(),
    }
}

/// The results in a part's folder; `None` where the part wrote none. They are the last JSON file by name: measurements that
/// were put aside are called `results.earlier.json`.
pub fn results_of(part: &Part) -> Option<Value> {
    let entries = std::fs::read_dir(&part.folder).ok()?.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
    files.sort();
    serde_json::from_slice(&std::fs::read(files.pop()?).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_failed_says_what_it_said_last() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join(LOG);
        assert_eq!(with_log("exit code 1", &log), "exit code 1");
        let lines: Vec<String> = (0..20).map(|n| format!("line {n}\n\n")).collect();
        std::fs::write(&log, lines.concat()).unwrap();
        let said = with_log("exit code 1", &log);
        assert!(said.starts_with("exit code 1; ") && said.ends_with("line 18\n  line 19"), "{said}");
        assert!(!said.contains("line 7\n") && said.contains("line 8\n"), "{said}");
    }
}
