//! A folder for what this process needs on this machine for a while, under a name that tells whose it is.
//!
//! ```text
//!  FOLDER/wellread-copy-PROCESS.PLACE-N/     nobody else may look into it
//!    goes when it is dropped, when the program is interrupted, or, of a process that was killed, when the next one is made
//! ```

use super::cleaning::{COPY, remove_one, unfinished};
use super::remove::remove_any;
use crate::process;
use std::fs::DirBuilder;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use wellread_trace::process::{ProcessState, process_mark, state_of_mark};

/// Names that are tried at most.
const ATTEMPTS: usize = 100;

/// A folder of this process, in one of temporary files or in that of a cache.
#[derive(Debug)]
pub struct ScratchFolder {
    path: PathBuf,
    /// Its process: a forked process leaves it to its parent.
    process: u32,
}

impl ScratchFolder {
    /// Makes the folder in another one.
    ///
    /// # Errors
    /// As the system says.
    pub fn within(parent: &Path) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        remove_left(parent);
        let process = process::id();
        let mark = process_mark(process);
        for _ in 0..ATTEMPTS {
            let path = parent.join(format!("{COPY}{mark}-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
            match private().create(&path) {
                // It is from a killed process of this number, as far as can be told.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    made?;
                    unfinished().push(path.clone());
                    return Ok(Self { path, process });
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        if self.process == process::id() {
            remove_one(&self.path);
        }
    }
}

/// The builder of folders into which nobody else may look.
fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    // Where there are no modes, nothing is set.
    builder.recursive(false);
    builder
}

/// Removes the folders of processes that are known to have ended.
fn remove_left(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let mark = name.to_str().and_then(|name| name.strip_prefix(COPY)?.rsplit_once('-'));
        if mark.is_some_and(|(mark, _)| state_of_mark(mark) == ProcessState::Ended) {
            remove_any(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_all_that_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = ScratchFolder::within(dir.path()).unwrap();
        let path = folder.path().to_owned();
        std::fs::write(path.join("a"), [0; 3]).unwrap();
        assert_eq!(path.parent(), Some(dir.path()));
        assert!(ScratchFolder::within(dir.path()).unwrap().path() != path);
        drop(folder);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(ScratchFolder::within(&dir.path().join("none")).is_err());
    }

    #[test]
    #[cfg(all(target_os = "linux", not(feature = "portable")))]
    fn what_a_killed_process_left_goes_and_what_others_have_stays() {
        let dir = tempfile::tempdir().unwrap();
        let of = |mark: &str| dir.path().join(format!("{COPY}{mark}-0"));
        // No process has this number.
        let gone = of(&process_mark(4_294_967_294));
        let elsewhere = of("4294967294.none");
        for path in [&gone, &elsewhere] {
            std::fs::create_dir(path).unwrap();
            std::fs::write(path.join("a"), b"").unwrap();
        }
        let folder = ScratchFolder::within(dir.path()).unwrap();
        assert!(!gone.exists() && elsewhere.exists() && folder.path().exists());
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(folder.path().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}
