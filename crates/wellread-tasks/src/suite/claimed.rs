//! The output of a run: locked against other runs, tried before anything runs, cleared away when nothing did.

use crate::config::Config;
use crate::{repository, results};
use anyhow::{Context as _, Result, bail};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The output for this run alone, and proof that it can be written. Files made for that are removed again when nothing
/// is run.
#[derive(Default)]
pub(super) struct OutputClaim {
    lock: Option<File>,
    file: Option<PathBuf>,
    folders: Vec<PathBuf>,
}

impl OutputClaim {
    /// Takes the output of `config`.
    ///
    /// # Errors
    /// It is another run's, is no file of results, or cannot be written.
    pub fn claim(&mut self, config: &Config) -> Result<()> {
        let output = std::path::absolute(&config.output).context("--output has no absolute path")?;
        if output.is_dir() {
            bail!("{} is a folder; --output names a JSON file", output.display());
        }
        let locks = config.cache.join("locks");
        std::fs::create_dir_all(&locks).with_context(|| format!("cannot make {}", locks.display()))?;
        let name = format!("{}.lock", &repository::hash(&output.to_string_lossy())[..16]);
        self.lock = Some(repository::lock(&locks.join(name), || {
            format!("another `wellread tasks` writes to {}", output.display())
        })?);
        let hint = || "nothing was run; --output names another file (--report another folder)".to_owned();
        let earlier = results::read(&output).with_context(hint)?;
        for folder in [config.runs(), config.report_folder()] {
            self.make(&folder).with_context(hint)?;
        }
        match earlier {
            // Looking changes nothing.
            Some(_) if config.dry_run => probe(output.parent().unwrap_or(Path::new("/"))).with_context(hint),
            earlier => {
                if earlier.is_none() {
                    self.file = Some(output.clone());
                }
                // Kept until the first run of this call has ended.
                results::write(&output, &earlier.unwrap_or_default()).with_context(hint)
            }
        }
    }

    /// Makes a folder, and remembers which of it were not there.
    fn make(&mut self, folder: &Path) -> Result<()> {
        let folder = std::path::absolute(folder).with_context(|| folder.display().to_string())?;
        let new = folder.ancestors().take_while(|above| !above.exists()).map(Path::to_path_buf);
        self.folders.extend(new);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        probe(&folder)
    }

    /// Removes what was made for the proof and is not kept; returns the lock.
    pub fn end(mut self) -> Option<File> {
        self.lock.take()
    }

    /// Something is run: all of it stays.
    pub fn keep(&mut self) {
        self.file = None;
        self.folders.clear();
    }
}

/// Proof that files can be made in a folder that is there; nothing of it stays.
fn probe(folder: &Path) -> Result<()> {
    tempfile::tempfile_in(folder)
        .map(drop)
        .with_context(|| format!("cannot write in the folder {}", folder.display()))
}

impl Drop for OutputClaim {
    fn drop(&mut self) {
        // A folder that is not empty is not ours alone; a folder that cannot be removed is empty.
        if let Some(file) = &self.file {
            let _ = std::fs::remove_file(file);
        }
        self.folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
        for folder in &self.folders {
            let _ = std::fs::remove_dir(folder);
        }
    }
}
