//! Output in another place than the file system: the files that may be replaced there, and the way it is put
//! in place.
//!
//! ```text
//!  NAME/ ── a list of what may lie there, for the writer that comes after one that was killed
//!      │    ── metadata of the old set, above its other files, go: its files are no images any more
//!  .wellread-partial-…/ or .wellread-resume-NAME/   whole and read back
//!      │ rename: what lies deepest first, metadata of the set last (a list of parts before these), each object whole
//!      ▼
//!  NAME/ ── then what the old set had and the new one has not goes
//! ```
//!
//! No remote place renames a folder at once. A reader that opens the set meanwhile, or after its writer was killed, may find
//! images of both. No image is made of both. One that has it open finds that objects were replaced, which is an error.

use super::cleaning::unfinished;
use super::existing::Existing;
use super::names::overwrite_hint;
use super::replace::folder_may_be_replaced;
use crate::{Error, Result, part_list, place, threads};
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering, fence};

/// Files that are removed at once.
const AT_ONCE: usize = 8;
/// The name of that list. No listing of a set shows it.
const LISTED: &str = ".wellread-partial-replaced";

/// Whether the output may be put at `target`, for all that is there now.
pub(super) fn check_target(target: &Path, existing: Existing) -> Result<()> {
    place::look_anew(target);
    let there = match place::metadata(target) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) if existing == Existing::Kept => return free(target, &e),
        there => there.map_err(|e| Error::io(target, "cannot look at what is to be replaced", &e))?,
    };
    if existing == Existing::Kept {
        return Err(Error::new(target, "already exists").hint(overwrite_hint()));
    }
    if there.is_folder() && !is_half_replaced(target) { folder_may_be_replaced(target) } else { Ok(()) }
}

/// Whether a writer has begun to replace the set at `target` and was killed, and nothing else lies there.
fn is_half_replaced(target: &Path) -> bool {
    let Ok(text) = place::read(&target.join(LISTED)) else { return false };
    let text = String::from_utf8_lossy(&text);
    let listed: HashSet<&Path> = text.lines().map(Path::new).collect();
    let files = place::of(target).files_below(target);
    files.is_ok_and(|files| files.iter().all(|file| listed.contains(file.as_path())))
}

/// Whether nothing is at a target, as the error of looking there has it. A user who may write need not be allowed to
/// look. After any other error nobody knows, and what may be there is not written over.
fn free(target: &Path, error: &io::Error) -> Result<()> {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => Ok(()),
        _ => Err(Error::io(target, "cannot look whether something is there", error)),
    }
}

/// The files of a set that is replaced which go.
#[derive(Debug, Default)]
struct ObsoleteFiles {
    /// Those that tell how files below them make images. They go first.
    heads: Vec<PathBuf>,
    /// The others that the new set has not. They go last.
    rest: Vec<PathBuf>,
    /// Lines with the files of both sets, where some go first or went before.
    listed: Option<String>,
}

impl ObsoleteFiles {
    /// Sorts all the files of a set, which those of another replace.
    fn new(files: Vec<PathBuf>, new: &[PathBuf]) -> Self {
        let above: HashSet<PathBuf> =
            files.iter().flat_map(|file| file.ancestors().skip(2)).map(Path::to_owned).collect();
        // Without a list of parts, those that are there would be the set.
        let is_list =
            |file: &Path| file.file_name().is_some_and(|name| name == part_list::FILE || name == LISTED);
        let is_head =
            |file: &PathBuf| !is_list(file) && file.parent().is_some_and(|folder| above.contains(folder));
        let (heads, mut rest): (Vec<_>, Vec<_>) = files.into_iter().partition(is_head);
        let is_listed = !heads.is_empty() || rest.iter().any(|file| file == Path::new(LISTED));
        let listed = is_listed.then(|| {
            let mut lines = format!("{LISTED}\n");
            for file in heads.iter().chain(&rest).chain(new) {
                lines.push_str(&file.to_string_lossy());
                lines.push('\n');
            }
            lines
        });
        let new: HashSet<&Path> = new.iter().map(PathBuf::as_path).chain([Path::new(LISTED)]).collect();
        rest.retain(|file| !new.contains(file.as_path()));
        Self { heads, rest, listed }
    }
}

/// Refuses a target at which something is now that was not there when the output was begun.
///
/// # Errors
/// Such a target, or one that cannot be looked at.
pub(super) fn check_free(target: &Path) -> Result<()> {
    // An earlier look does not show files that others have put there since.
    place::look_anew(target);
    match place::metadata(target) {
        Ok(_) => Err(Error::new(target, "was put there by another process meanwhile, and is kept")
            .hint(overwrite_hint())),
        Err(e) => free(target, &e),
    }
}

/// The files of a set at `target` that are of no use once all of `from` is there: those that `from` has not.
///
/// # Errors
/// One of both cannot be looked at.
fn obsolete_files(from: &Path, target: &Path) -> Result<ObsoleteFiles> {
    let files = |path: &Path| {
        let cannot = |e| Error::io(target, "cannot list what is to be replaced", &e);
        place::of(path).files_below(path).map_err(cannot)
    };
    let old = files(target)?;
    if old.is_empty() {
        return Ok(ObsoleteFiles::default());
    }
    Ok(ObsoleteFiles::new(old, &files(from)?))
}

/// Begins to put the output that has `from` in the place of a set. An image whose files are replaced one by one would be of both: so it
/// is none meanwhile.
///
/// # Errors
/// A file of the old set cannot be removed.
fn begin_to_replace(from: &Path, target: &Path, old: &ObsoleteFiles) -> Result<()> {
    keep_on_signals(from);
    if let Some(listed) = &old.listed {
        let list = target.join(LISTED);
        place::write(&list, listed.as_bytes())
            .map_err(|e| Error::io(&list, "cannot write the list of what is replaced", &e))?;
    }
    remove(target, &old.heads, "the old set is still there, and cannot be removed")
}

/// Ends that: all of the new set is there, and nothing of the old one.
///
/// # Errors
/// The list cannot be removed.
fn end_replacing(target: &Path, old: &ObsoleteFiles) -> Result<()> {
    old.listed.as_ref().map_or(Ok(()), |_| remove_old(target, &[LISTED.into()]))
}

/// Removes those files of `target`.
///
/// # Errors
/// One of them cannot be removed: `cannot`.
fn remove(target: &Path, files: &[PathBuf], cannot: &str) -> Result<()> {
    threads::for_each(AT_ONCE, files, |inside| {
        let file = if inside.as_os_str().is_empty() { target.to_owned() } else { target.join(inside) };
        match place::of(target).remove_file(&file) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io(&file, cannot, &e)),
            _ => Ok(()),
        }
    })
}

/// Removes those files of the old set, which the new one has replaced.
///
/// # Errors
/// One of them cannot be removed.
fn remove_old(target: &Path, files: &[PathBuf]) -> Result<()> {
    remove(target, files, "the new set is there, but a file of the old one cannot be removed")
}

/// Leaves the output that has `from` where it is, should the process be interrupted while that takes the place of another set. Objects
/// that are moved by then have replaced those of the old set, so that neither would be whole.
pub(super) fn keep_on_signals(from: &Path) {
    unfinished().retain(|path| !from.starts_with(path));
}

/// The error of a file of the old set that cannot be removed, where all of the new output is at its place.
pub(super) type RemovalError = Option<Error>;

/// Sets that are being replaced.
static REPLACING: AtomicUsize = AtomicUsize::new(0);

/// Whether this process is replacing a set file by file now. Ended meanwhile, it leaves neither the old set nor the new one.
pub fn is_replacing() -> bool {
    // A thread that begins just now sees that nobody waits for it, or is seen here.
    fence(Ordering::SeqCst);
    REPLACING.load(Ordering::SeqCst) > 0
}

/// A set is being replaced.
struct Replacing(());

impl Replacing {
    fn begin() -> Self {
        REPLACING.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Replacing {
    fn drop(&mut self) {
        REPLACING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs `work`, all the steps that replace a set. After the first the old one is no set, and before the last the new one is none. So
/// the end of the process waits for them, and Ctrl-C in Python, after which nobody wants their result, does not give them up.
///
/// # Errors
/// The process is ending already, or nobody wants the output any more, and nothing is run; the error of `work`.
fn finish_before_end(target: &Path, work: impl FnOnce() -> Result<RemovalError>) -> Result<RemovalError> {
    let _replacing = Replacing::begin();
    if place::stop().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
        return Err(Error::new(target, "is not replaced, since nobody wants the output any more"));
    }
    let (mut work, mut done) = (Some(work), Ok(None));
    let mut run = || {
        if let Some(work) = work.take() {
            done = place::to_its_end(work);
        }
    };
    let begun = place::of(target).finish_before_end(&mut run);
    begun.map_err(|e| Error::io(target, "cannot replace what is there", &e))?;
    done
}

/// Puts the output that has `from` in the place of a set, by `move_new`. Files of the old set go after that: first those in `last`, which
/// tell what else is of the set.
///
/// # Errors
/// A step up to the move fails, or the process is ending already.
fn replace(
    from: &Path,
    target: &Path,
    old: &ObsoleteFiles,
    last: Option<&Path>,
    move_new: impl FnOnce() -> Result<()>,
) -> Result<RemovalError> {
    finish_before_end(target, || {
        begin_to_replace(from, target, old)?;
        move_new()?;
        // A version of the old set that is the newest would be without its data.
        let is_first = |file: &PathBuf| last.is_some_and(|last| file.starts_with(last));
        let (first, then): (Vec<_>, Vec<_>) = old.rest.iter().cloned().partition(is_first);
        let gone = remove_old(target, &first).and_then(|()| remove_old(target, &then));
        Ok(gone.and_then(|()| end_replacing(target, old)).err())
    })
}

/// Moves `from` to `target` by `move_new`. A set that is replaced goes after all of the new output is there, first its files in
/// `last`.
///
/// # Errors
/// Not all of the output is at its place.
pub(super) fn put_in_place(
    from: &Path,
    target: &Path,
    existing: Existing,
    last: Option<&Path>,
    move_new: impl FnOnce() -> Result<()>,
) -> Result<RemovalError> {
    match existing {
        Existing::Replaced => replace(from, target, &obsolete_files(from, target)?, last, move_new),
        Existing::Kept => move_new().map(|()| None),
    }
}

/// Removes all files of a folder but the one called `kept`.
pub(super) fn clear(folder: &Path, kept: &str) -> Result<()> {
    let at = place::of(folder);
    let files = at.files_below(folder);
    let mut files = files.map_err(|e| Error::io(folder, "cannot list what an earlier run left", &e))?;
    files.retain(|file| file != Path::new(kept));
    threads::for_each(AT_ONCE, &files, |file| {
        let file = folder.join(file);
        match at.remove_file(&file) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(&file, "cannot remove what an earlier run left", &e))
            }
            _ => Ok(()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn what_replaces_a_set_is_not_given_up_meanwhile() {
        let stop = Arc::new(AtomicBool::new(false));
        let steps = || {
            stop.store(true, Ordering::Relaxed);
            assert!(place::stop().is_none(), "each wait would be given up");
            assert!(is_replacing());
            Ok(None)
        };
        let done = place::until(&stop, || finish_before_end(Path::new("set"), steps));
        assert!(done.unwrap().is_none() && stop.load(Ordering::Relaxed) && !is_replacing());
        // It does not begin once nobody wants it.
        let late = place::until(&stop, || finish_before_end(Path::new("set"), || panic!("it has begun")));
        assert!(late.unwrap_err().to_string().contains("is not replaced"));
    }

    #[test]
    fn what_lies_above_other_files_tells_what_they_are() {
        let old = |files: &[&str]| ObsoleteFiles::new(files.iter().map(PathBuf::from).collect(), &[]);
        let zarr = old(&["a/.zgroup", "a/0/.zarray", "a/0/0/0", "b/.zgroup", "b/0/.zarray", "b/0/0/0"]);
        assert_eq!(zarr.heads, ["a/.zgroup", "a/0/.zarray", "b/.zgroup", "b/0/.zarray"].map(PathBuf::from));
        assert_eq!(zarr.rest, ["a/0/0/0", "b/0/0/0"].map(PathBuf::from));
        assert!(zarr.listed.unwrap().lines().any(|line| line == "a/.zgroup"));
        // A writer was killed after these went.
        let left = old(&["a/0/0/0", LISTED]);
        assert_eq!((left.heads.len(), left.rest), (0, vec![PathBuf::from("a/0/0/0")]));
        assert!(left.listed.is_some());
        // Each file is an image, or all lie as deep.
        for files in
            [&[""][..], &["a.tif", "b.tif"], &["_versions/1", "data/a"], &[part_list::FILE, "part/images/a"]]
        {
            let old = old(files);
            assert!(old.heads.is_empty() && old.listed.is_none(), "{files:?}");
        }
    }
}
