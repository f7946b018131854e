//! The folder of a run that is measured again: the earlier one is kept until the new run has ended.
//!
//! ```text
//!  run-1 ── put_aside ──▶ run-1.earlier, run-1 is written ─┬ it ends ────▶ run-1
//!                                                          └ it is cut off, and --resume keeps the
//!                                                            earlier run ── put_back ──▶ run-1
//! ```

use anyhow::{Context as _, Result};
use std::collections::HashSet;
use std::iter;
use std::path::{Path, PathBuf};

/// Ending of the folder of an earlier run.
const EARLIER: &str = "earlier";

/// The folder of run `number` of the task that is called `name`, below `runs`. Where an earlier run that is `kept` has
/// it, the name has a number more: rows that come and go move the others' names.
pub(super) fn folder_of(runs: &Path, name: &str, number: usize, kept: &HashSet<PathBuf>) -> PathBuf {
    let of = |name: &str| runs.join(name).join(format!("run-{number}"));
    // One more than there are kept ones is free.
    let more = (2..kept.len() + 3).map(|n| of(&format!("{name}.{n}")));
    let mut all = iter::once(of(name)).chain(more);
    all.find(|folder| !kept.contains(folder)).unwrap_or_else(|| of(name))
}

/// Moves the folder of an earlier run, where there is one, and returns where it is then. The
/// folder of a run that was cut off is removed instead: the earlier one is moved already.
///
/// # Errors
/// A folder that cannot be moved or removed.
pub(super) fn put_aside(output_dir: &Path) -> Result<PathBuf> {
    let earlier = output_dir.with_extension(EARLIER);
    if earlier.exists() {
        remove(output_dir)?;
    } else if output_dir.exists() {
        rename(output_dir, &earlier)?;
    }
    Ok(earlier)
}

/// Moves the folder of an earlier run back, in place of that of a run that was cut off.
///
/// # Errors
/// A folder that cannot be moved or removed.
pub(super) fn put_back(output_dir: &Path) -> Result<()> {
    let earlier = output_dir.with_extension(EARLIER);
    if !earlier.exists() {
        return Ok(());
    }
    remove(output_dir)?;
    rename(&earlier, output_dir)
}

/// Removes a folder, if it is there.
///
/// # Errors
/// A folder that cannot be removed.
pub(super) fn remove(folder: &Path) -> Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to).with_context(|| format!("cannot move {}", from.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_run_does_not_take_the_folder_of_one_that_is_kept() {
        let folder = |name: &str| Path::new("/runs").join(name);
        let of = |kept: &[&str]| {
            let kept = kept.iter().map(|name| folder(name)).collect();
            folder_of(Path::new("/runs"), "001-main-unet", 1, &kept)
        };
        assert_eq!(of(&[]), folder("001-main-unet/run-1"));
        assert_eq!(of(&["001-main-unet/run-2"]), folder("001-main-unet/run-1"));
        assert_eq!(of(&["001-main-unet/run-1"]), folder("001-main-unet.2/run-1"));
        let both = ["001-main-unet/run-1", "001-main-unet.2/run-1"];
        assert_eq!(of(&both), folder("001-main-unet.3/run-1"));
    }

    #[test]
    fn an_earlier_run_is_there_until_another_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run-1");
        let write = |text: &str| {
            fs::create_dir_all(&run).unwrap();
            fs::write(run.join("last.ckpt"), text).unwrap();
        };
        let read = |folder: &Path| fs::read_to_string(folder.join("last.ckpt")).unwrap();
        assert!(!put_aside(&run).unwrap().exists(), "there is none yet");
        put_back(&run).unwrap();
        write("whole");
        let earlier = put_aside(&run).unwrap();
        assert!(!run.exists() && read(&earlier) == "whole");
        // Two runs are cut off, one after the other.
        for _ in 0..2 {
            write("cut off");
            assert_eq!(put_aside(&run).unwrap(), earlier);
            assert!(!run.exists() && read(&earlier) == "whole");
        }
        write("cut off");
        put_back(&run).unwrap();
        assert!(!earlier.exists() && read(&run) == "whole");
    }
}
