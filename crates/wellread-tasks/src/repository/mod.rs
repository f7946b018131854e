//! Branches of the user's repository, each checked out in a git worktree of its own, without touching the repository.
//!
//! ```text
//!  the user's repository (read only) ◀─alternates── CACHE/worktrees/HASH/PID.git   a bare repository of ours
//!                                                     │ remotes, fetched commits, submodules
//!                                                     └─▶ CACHE/worktrees/HASH/COMMIT-PID   one worktree per commit
//! ```
//!
//! The worktrees belong to a bare repository of ours, which borrows the user's objects. So not even the administrative
//! files of the user's repository change (decision 0019). A lock per repository keeps two runs from measuring each
//! other. The kernel releases it when a run ends in any way, and the next run removes the leftovers of a killed one.
//!
//! | module | what it holds |
//! |---|---|
//! | `git` | the git program |
//! | `branch` | [`Branch`]: a commit, its files read from git's objects |
//! | `resolve` | from a name to a commit, fetched when it is not there |
//! | `borrowed` | the bare repository that borrows the user's objects |
//! | `submodules` | submodules of a worktree, from the user's clones of them where they are there |

mod borrowed;
mod branch;
mod git;
mod resolve;
mod submodules;

pub use branch::Branch;
pub use git::forget_redirections;

use crate::stop;
use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};
use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Name of the lock in a repository's folder of the cache.
const LOCK: &str = "lock";

/// The user's repository, and our folder for it in the cache, which goes when this is dropped.
#[derive(Debug)]
pub struct Repository {
    /// The folder that the user named.
    folder: PathBuf,
    /// Our folder in the cache.
    cache: PathBuf,
    /// The bare repository that borrows the user's objects.
    objects: PathBuf,
    /// Where the user has clones of submodules.
    modules: Vec<PathBuf>,
    /// Leftovers of dead runs that were removed.
    pub removed: usize,
    _lock: File,
}

impl Repository {
    /// Opens the repository that holds `folder`; `cache` is where worktrees are put.
    ///
    /// # Errors
    /// No git repository. Another run is at it. A cache cannot be written.
    pub fn open(folder: &Path, cache: &Path) -> Result<Self> {
        if !folder.is_dir() {
            bail!("there is no folder {}; --repo names the repository", folder.display());
        }
        let common = git::git_output(folder, &["rev-parse", "--path-format=absolute", "--git-common-dir"])
            .with_context(|| format!("{} is not in a git repository; --repo names one", folder.display()))?;
        let common = PathBuf::from(common.trim_end_matches('\n'));
        let modules = submodules::folders(folder, &common)?;
        let cache = cache.join("worktrees").join(&hash(&common.to_string_lossy())[..16]);
        std::fs::create_dir_all(&cache).with_context(|| {
            format!("cannot make {} (XDG_CACHE_HOME names another cache)", cache.display())
        })?;
        // Git gives the worktrees' paths to programs, which must find them from anywhere.
        let cache = cache.canonicalize().with_context(|| cache.display().to_string())?;
        let lock = lock(&cache.join(LOCK), || {
            format!("another `wellread tasks` is measuring the repository {}", folder.display())
        })?;
        let removed = clear(&cache);
        let objects = cache.join(format!("{}.git", std::process::id()));
        stop::remove_at_end(&cache, &[LOCK]);
        let repository = Self { folder: folder.to_path_buf(), cache, objects, modules, removed, _lock: lock };
        borrowed::make(folder, &common, &repository.objects)?;
        Ok(repository)
    }

    /// Finds a branch, tag or commit.
    ///
    /// # Errors
    /// There is none, here or at a remote: with the nearest names.
    pub fn branch(&self, name: &str) -> Result<Branch> {
        resolve::branch(&self.folder, &self.objects, name)
    }

    /// Checks a commit out in a worktree, submodules included, unless that was done before; returns its folder.
    ///
    /// # Errors
    /// A disk that is full; submodules that cannot be fetched.
    pub fn worktree(&self, branch: &Branch) -> Result<PathBuf> {
        let short = branch.commit.get(..12).unwrap_or(&branch.commit);
        let path = self.cache.join(format!("{short}-{}", std::process::id()));
        if path.exists() {
            return Ok(path);
        }
        let what = || format!("cannot check out {} ({short}) in {}", branch.name, path.display());
        let to = path.to_string_lossy();
        git::git_output(&self.objects, &["worktree", "add", "--detach", "--force", &to, &branch.commit])
            .with_context(what)?;
        if !branch.submodules()?.is_empty()
            && let Err(error) = submodules::check_out(&path, &self.modules)
        {
            // Or the next row of the branch would find it, and run without them.
            let _ = std::fs::remove_dir_all(&path);
            let _ = git::try_git_output(&self.objects, &["worktree", "prune"]);
            return Err(error).with_context(|| format!("cannot get the submodules of {}", branch.name));
        }
        Ok(path)
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        clear(&self.cache);
        stop::unregister(&self.cache);
    }
}

/// Takes a lock for this process, or says who has it.
///
/// # Errors
/// Another process has it; a file that cannot be made.
pub fn lock(path: &Path, held: impl Fn() -> String) -> Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(path);
    let mut file = file.with_context(|| format!("cannot make {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => {
            // Only for the message to others: a lock without its owner's number is a lock.
            let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let owner = std::fs::read_to_string(path).ok().filter(|owner| !owner.is_empty());
            let owner = owner.map_or_else(String::new, |owner| format!(" (process {owner})"));
            bail!("{}{owner}: wait until it has ended", held())
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

/// Removes everything in a folder but the lock; returns how many things that were.
fn clear(cache: &Path) -> usize {
    stop::remove_all_but(cache, &[LOCK])
}

/// The SHA-256 of a text as hexadecimal digits.
pub fn hash(text: &str) -> String {
    let mut digits = String::new();
    for byte in Sha256::digest(text.as_bytes()) {
        digits += &format!("{byte:02x}");
    }
    digits
}
