//! Opens paths as one set: `open` takes one path, `open_all` several.
//!
//! ```text
//!  pattern ──of_pattern──▶ paths ─┐
//!  path ──in_folder──▶ FolderContent ─┬─ Set ─────────────────▶ registry::open_known, one store
//!                                     ├─ Parts, Listed ──opened──▶ stores, by threads ──▶ Concat
//!  list of files of one image each ───┴─ images ──────────────▶ one store of files, as of a folder
//! ```

use super::glob::{self, Match};
use super::parts::{self, Found};
use super::store::{Concat, Part};
use super::tables::{self, Tables};
use crate::ahead::Fetching;
use crate::file_names::{PICTURES, TIFF, ends};
use crate::format::{Format, OpenOptions, format_named};
use crate::part_list::PartList;
use crate::place::PrefetchGuard;
use crate::probe::Probe;
use crate::words::{counted, first_and_more};
use crate::{Error, Result, Store, fd_table, place, registry, threads};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Threads that open parts, at most: each waits for its disk more than it computes.
const THREADS: usize = 8;
/// Files of a list whose first bytes are asked for at once.
const FILES_AHEAD: usize = 1024;

/// Opens a set of images for reading: a file or folder in any format, recognised by its content unless `options.format`
/// names it. A folder of tables, or a pattern such as `plates/*.parquet`, opens as one set.
///
/// # Errors
/// A path at which nothing is, content that no format knows or that is damaged, options that do not fit it.
pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Box<dyn Store>> {
    let path = path.as_ref();
    if is_unreadable_address(path) {
        return registry::open(path, options);
    }
    look_anew(path);
    if glob::is_pattern(path) && !place::exists(path) {
        let (mut paths, mut files) = (vec![], HashSet::new());
        of_pattern(path, &mut paths, &mut files)?;
        return open_parts(&glob::root(path), Tables::of(paths), &files, options);
    }
    match in_folder(path, options)? {
        FolderContent::Listed(list) => open_listed(path, &list, options),
        FolderContent::Parts(tables) => open_parts(path, tables, &HashSet::new(), options),
        FolderContent::Set(format) => registry::open_known(path, options, format),
    }
}

/// Opens several paths as one set, each as [`open`] would; of one path that is all. A folder of tables has its tables as parts.
///
/// # Errors
/// No path; as [`open`].
pub fn open_all<P: AsRef<Path>>(paths: &[P], options: &OpenOptions) -> Result<Box<dyn Store>> {
    if let [path] = paths {
        return open(path, options);
    }
    let (mut given, mut files) = (vec![], HashSet::new());
    for path in paths {
        let path = path.as_ref();
        if is_unreadable_address(path) || path.as_os_str().is_empty() {
            // Opening it there gives the error.
            return registry::open(path, options);
        }
        look_anew(path);
        if glob::is_pattern(path) && !place::exists(path) {
            of_pattern(path, &mut given, &mut files)?;
        } else {
            given.push(path.to_owned());
        }
    }
    if given.is_empty() {
        return Err(Error::new("", "no path was given").hint("give at least one file or folder").choice());
    }
    let given = parts::alike(given);
    let root = parts::common_folder(&given);
    open_parts(&root, Tables::of(given), &files, options)
}

/// Lets the entry at a path, or the entries that a pattern may name, be asked for again. They may have been replaced
/// since this process saw them last. The listings of one opening hold for all of it, so parts do not come here.
fn look_anew(path: &Path) {
    if glob::is_pattern(path) {
        place::look_anew(&glob::root(path));
    } else {
        place::look_anew(path);
    }
}

/// Whether a path is an address of a place that nobody has registered, or one that no place reads, or lacks a slash.
fn is_unreadable_address(path: &Path) -> bool {
    registry::with_both_slashes(path).is_some()
        || place::scheme(path).is_some() && (!place::is_remote(path) || place::refused(path).is_some())
}

/// Adds what there is of a pattern, and to `files` what of it is known to be a regular file.
fn of_pattern(path: &Path, paths: &mut Vec<PathBuf>, files: &mut HashSet<PathBuf>) -> Result<()> {
    let found = glob::paths(path)?;
    if found.is_empty() {
        return Err(nothing_fits(path));
    }
    for Match { path, is_file } in found {
        if is_file {
            files.insert(path.clone());
        }
        paths.push(path);
    }
    Ok(())
}

/// The error of a pattern that fits nothing, which says what lies in its folder.
fn nothing_fits(pattern: &Path) -> Error {
    let error = Error::new(pattern, "no file or folder fits the pattern").missing();
    let root = glob::root(pattern);
    let folder: &Path = if root.as_os_str().is_empty() { Path::new(".") } else { &root };
    let there = folder.display();
    match Probe::new(folder) {
        Ok(probe) if !probe.is_dir => error.hint(format_args!("{there} is a file, in which nothing lies")),
        Ok(probe) if probe.entries.is_empty() => {
            error.hint(format_args!("{there} holds nothing, hidden names aside"))
        }
        Ok(probe) => {
            let some = first_and_more(&probe.entries, 4, [", ", " and"]);
            error.hint(format_args!("{there} holds {some}"))
        }
        Err(_) => error.hint(format_args!("{there} cannot be listed: check the path")),
    }
}

/// The plates in a folder of OME-Zarr plates.
#[cfg(feature = "ome-zarr")]
fn plates(path: &Path, format: &Format) -> Option<Vec<PathBuf>> {
    if format.name == crate::ome_zarr::FORMAT.name { crate::ome_zarr::plates_in(path) } else { None }
}

#[cfg(not(feature = "ome-zarr"))]
fn plates(_: &Path, _: &Format) -> Option<Vec<PathBuf>> {
    None
}

/// The content of a path, which says how it is opened.
enum FolderContent {
    /// These, each a set: the tables in a folder that is no set itself, or its OME-Zarr plates.
    Parts(Tables),
    /// The parts of one set, which was written in parts.
    Listed(PartList),
    /// One set, of this format where it was recognised.
    Set(Option<&'static Format>),
}

impl FolderContent {
    /// Parts, where there are such.
    fn parts_of(found: Option<Tables>) -> Self {
        found.map_or(Self::Set(None), Self::Parts)
    }
}

/// The way to open a path: by its content, where it is a folder.
fn in_folder(path: &Path, options: &OpenOptions) -> Result<FolderContent> {
    registry::look_ahead(path, options);
    if path.as_os_str().is_empty() || !place::is_folder(path) {
        return Ok(FolderContent::Set(None));
    }
    match &options.format {
        // By its list before its content: an image that somebody has put beside the parts is none of the set. The first look tells what
        // lies in the folder, so that a list that is not there takes no request of its own.
        None => match (registry::recognise(path), PartList::read(path)?) {
            (_, Some(list)) => Ok(FolderContent::Listed(list)),
            (Ok(format), None) => Ok(plates(path, format)
                .map_or(FolderContent::Set(Some(format)), |found| FolderContent::Parts(Tables::of(found)))),
            (Err(_), None) => tables::below(path, None).map(FolderContent::parts_of),
        },
        Some(name) => {
            let format = format_named(name)?;
            if let Some(plates) = plates(path, format) {
                return Ok(FolderContent::Parts(Tables::of(plates)));
            }
            if format.keeps_features
                && let Some(list) = PartList::read(path)?
            {
                return Ok(FolderContent::Listed(list));
            }
            if !tables::has_tables(format) || (format.recognise)(&Probe::new(path)?) {
                return Ok(FolderContent::Set(None));
            }
            tables::below(path, Some(format)).map(FolderContent::parts_of)
        }
    }
}

/// The advice about a part that is another than was written.
const OTHER_PART: &str = "copy the folder again from where it came from, or write the set anew";

/// A part of a set that was written in parts is not there.
fn is_gone(part: &Path) -> Error {
    Error::new(part, "is a part of the set, and is not there").hint(OTHER_PART)
}

/// Checks that a part at `path` of a set that was written in parts has as many images as were written.
fn has_images(path: &Path, part: &dyn Store, images: usize) -> Result<()> {
    if part.len() == images {
        return Ok(());
    }
    let found = counted(part.len(), "image");
    Err(Error::new(path, format_args!("has {found}, {images} were written")).hint(OTHER_PART))
}

/// Opens the parts of a set that was written in parts. Tables that somebody has put beside them are not its own.
///
/// # Errors
/// A part that is not there, or has more or fewer images than were written.
pub(crate) fn open_listed(root: &Path, list: &PartList, options: &OpenOptions) -> Result<Box<dyn Store>> {
    let listed = list.parts(root);
    if let Some((gone, _)) = listed.iter().find(|(part, _)| !place::exists(part)) {
        return Err(is_gone(gone));
    }
    let parts = opened(&parts::found(root, listed.iter().map(|(part, _)| part.clone()).collect()), options)?;
    for (part, (path, images)) in parts.iter().zip(&listed) {
        has_images(path, &*part.store, *images)?;
    }
    Ok(Box::new(Concat::new(root.to_owned(), parts).with_own_names()))
}

/// Opens parts, those that are folders of tables as these, below `root`. `files` are known to be regular files.
fn open_parts(
    root: &Path,
    Tables { paths, mut written }: Tables,
    files: &HashSet<PathBuf>,
    options: &OpenOptions,
) -> Result<Box<dyn Store>> {
    let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
    if let Some(store) = images(root, &paths, files, options)? {
        return Ok(store);
    }
    let mut all = Vec::with_capacity(paths.len());
    for path in paths {
        match in_folder(&path, options)? {
            FolderContent::Parts(tables) => {
                all.extend(tables.paths);
                written.extend(tables.written);
            }
            FolderContent::Listed(list) => {
                let listed = list.parts(&path);
                all.extend(listed.iter().map(|(part, _)| part.clone()));
                written.extend(listed);
            }
            FolderContent::Set(_) => all.push(path),
        }
    }
    let prefix = if root == Path::new(".") { Path::new("") } else { root };
    let found = parts::found(prefix, all);
    let mut listed = found.iter().map(|part| &part.path).filter(|path| written.contains_key(*path));
    if let Some(gone) = listed.find(|path| !place::exists(path)) {
        return Err(is_gone(gone));
    }
    if let [Found { path, keys, .. }] = &found[..]
        && keys.is_empty()
    {
        let store = registry::open(path, options)?;
        written.get(path).map_or(Ok(()), |&images| has_images(path, &*store, images))?;
        return Ok(store);
    }
    let parts = opened(&found, options)?;
    for (part, Found { path, .. }) in parts.iter().zip(&found) {
        written.get(path).map_or(Ok(()), |&images| has_images(path, &*part.store, images))?;
    }
    Ok(Box::new(Concat::new(root.to_owned(), parts)))
}

/// The store of files of one image each, where the paths are such: they are one set of files, as in a folder.
///
/// # Errors
/// TIFF files beside PNG or JPEG files, as in a folder.
fn images(
    root: &Path,
    paths: &[PathBuf],
    files: &HashSet<PathBuf>,
    options: &OpenOptions,
) -> Result<Option<Box<dyn Store>>> {
    let first = |endings: &'static [&'static str]| paths.iter().find(|path| ends(path, endings));
    let [tiff, picture] = [first(TIFF), first(PICTURES)];
    let is_image = |path: &PathBuf| ends(path, TIFF) || ends(path, PICTURES);
    if paths.len() < 2 || !paths.iter().all(is_image) {
        return Ok(None);
    }
    let _held = ask_for(paths.iter().filter(|path| !files.contains(*path)));
    // Opening one that was asked for waits for that answer.
    let is_there = |path: &PathBuf| !place::is_remote(path) || place::open(path).is_ok();
    let is_file = |path: &PathBuf| files.contains(path) || is_there(path) && place::is_file(path);
    if !paths.iter().all(is_file) {
        return Ok(None);
    }
    let is_named = |format: &str| options.format.as_deref().is_none_or(|named| named == format);
    let store = match (tiff, picture) {
        (Some(tiff), Some(picture)) if options.format.is_none() => {
            let cause = format!(
                "the list mixes image formats: {} is tiff, {} is image-folder",
                tiff.display(),
                picture.display()
            );
            let hint = "give files of one format, or put the two sets together: one list of each, then Dataset.concat";
            return Err(Error::new(root, cause).hint(hint).choice());
        }
        (Some(_), None) if is_named("tiff") => of_tiff(root, paths, options)?,
        (None, Some(_)) if is_named("image-folder") => of_pictures(root, paths, options)?,
        _ => None,
    };
    store.map(|store| crate::sites::assemble(store, options)).transpose()
}

/// Asks for the first bytes of those that are remote: what tells whether they are there, and what their images are.
fn ask_for<'p>(paths: impl Iterator<Item = &'p PathBuf>) -> Vec<PrefetchGuard> {
    let remote: Vec<&Path> =
        paths.map(PathBuf::as_path).filter(|path| place::is_remote(path)).take(FILES_AHEAD).collect();
    let fetching = remote.first().and_then(|first| Fetching::of(first, None));
    fetching.map_or_else(Vec::new, |mut fetching| fetching.first_bytes(remote))
}

#[cfg(feature = "tiff")]
fn of_tiff(root: &Path, paths: &[PathBuf], options: &OpenOptions) -> Result<Option<Box<dyn Store>>> {
    crate::tiff::FORMAT.check(root, options)?;
    crate::tiff::open_files(root, paths.to_vec()).map(Some)
}

#[cfg(not(feature = "tiff"))]
#[allow(clippy::unnecessary_wraps)]
fn of_tiff(_: &Path, _: &[PathBuf], _: &OpenOptions) -> Result<Option<Box<dyn Store>>> {
    Ok(None)
}

#[cfg(feature = "image-folder")]
fn of_pictures(root: &Path, paths: &[PathBuf], options: &OpenOptions) -> Result<Option<Box<dyn Store>>> {
    crate::image_folder::FORMAT.check(root, options)?;
    Ok(Some(crate::image_folder::open_files(root, paths.to_vec())))
}

#[cfg(not(feature = "image-folder"))]
#[allow(clippy::unnecessary_wraps)]
fn of_pictures(_: &Path, _: &[PathBuf], _: &OpenOptions) -> Result<Option<Box<dyn Store>>> {
    Ok(None)
}

/// All parts, opened by a few threads. The first part that cannot be opened is the error.
fn opened(found: &[Found], options: &OpenOptions) -> Result<Vec<Part>> {
    // A table stays open as long as its store is there.
    fd_table::reserve_descriptors();
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Vec::with_capacity(found.len()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS).min(found.len());
    threads::share(threads, || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = found.get(at) else { break };
            let store = registry::open(&part.path, options);
            let failed = store.is_err();
            made.lock().unwrap_or_else(PoisonError::into_inner).push((at, store));
            if failed {
                // Those before it are in work; those after it are of no use.
                next.store(found.len(), Ordering::Relaxed);
            }
        }
    });
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_unstable_by_key(|(at, _)| *at);
    made.into_iter()
        .map(|(at, store)| {
            let Found { label, keys, .. } = found[at].clone();
            Ok(Part { name: label, keys, store: store?.into() })
        })
        .collect()
}
