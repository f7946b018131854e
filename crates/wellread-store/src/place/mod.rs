//! Where bytes lie: all that formats ask of a file system, behind one trait.
//!
//! ```text
//!  a format, its helpers ──path──▶ of(path) ──┬─ no scheme ────────▶ Local: the file system
//!                                             └─ `scheme://…` ─────▶ the Place registered for it
//!                                                    │ metadata, list, open, create, rename …
//!                                                    ▼
//!                                        File: ranges of bytes; `local()` for what only a file of this machine can be
//! ```
//!
//! Paths stay paths: of `s3://bucket/plate/a.tif` the first component is `s3:`, and joining, parents and endings are those of any
//! path. A place of another scheme is one file with a [`Place`] and one line, [`register_place!`](crate::register_place); no
//! format is touched (`docs/decisions/0041-places.md`).
//!
//! | module | what it holds |
//! |---|---|
//! | `interface`, `file` | what a place is asked for; files that are read and written |
//! | `local` | the file system |
//! | `address` | addresses that no place reads, and their parts that must not be shown |
//! | `ahead`, `requests` | bytes asked for before they are read; which requests fetch some ranges |
//! | [`shutdown`] | the end of the process, after which nothing is made any more |
//! | `link` | what goes over the link to places behind a network, and its measurement |
//! | `stopping` | waits that end when nobody wants the bytes any more |
//!
//! Things that only a file system of this machine has stay outside. These are locks and links that are made
//! ([`crate::staged`], [`crate::journal`]), and maps ([`crate::mapping`]), for which a reader asks
//! [`File::local`].

mod address;
mod ahead;
mod file;
mod interface;
mod link;
mod local;
mod requests;
pub mod shutdown;
mod stopping;

pub use address::{refused, shown};
pub use ahead::{FetchAhead, FileRanges, HEAD, PrefetchGuard, Prefetched, TAIL, WantedRanges};
pub use file::{Changed, File, LocalFile, Part, ReadRanges, WriteFile, Writer, bytes_read, count_read};
pub use interface::{AbsentPlace, Entry, Identity, Kind, Listing, Metadata, Place, Registration};
pub use link::{
    FileRange, Link, LinkAbout, LinkUse, Recording, count_received, count_request, count_waited, note_ranges,
};
pub use requests::{MAX_GAP, PIECE, STRIDE, is_read_whole, requests, strides, window};
pub use stopping::{stop, to_its_end, until};

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

inventory::collect!(Registration);
inventory::collect!(AbsentPlace);

/// Adds a place to every program that it is linked into: addresses of its scheme then lie there, for every format.
///
/// ```
/// use std::io;
/// use std::path::Path;
/// use wellread_store::place::{self, File, Listing, Metadata, Place};
///
/// /// Holds nothing.
/// #[derive(Debug)]
/// struct Nothing;
///
/// impl Place for Nothing {
///     fn metadata(&self, _: &Path) -> io::Result<Metadata> {
///         Err(io::ErrorKind::NotFound.into())
///     }
///     fn list(&self, _: &Path) -> io::Result<Listing> {
///         Err(io::ErrorKind::NotFound.into())
///     }
///     fn open(&self, _: &Path) -> io::Result<(File, u64)> {
///         Err(io::ErrorKind::NotFound.into())
///     }
/// }
///
/// static NOTHING: Nothing = Nothing;
/// wellread_store::register_place!("nothing", NOTHING);
/// assert!(place::is_remote(Path::new("nothing://a")) && !place::is_remote(Path::new("other://a")));
/// ```
#[macro_export]
macro_rules! register_place {
    ($scheme:literal, $place:path) => {
        $crate::registry::inventory::submit! {
            $crate::place::Registration { scheme: $scheme, place: &$place }
        }
    };
}

/// Names a scheme that this build has no place for, and the feature that has it.
///
/// ```
/// wellread_store::absent_place!("gopher", "gopher");
/// assert!(wellread_store::place::how_to_get("gopher").is_some_and(|how| how.ends_with("--features gopher")));
/// assert_eq!(wellread_store::place::how_to_get("other"), None);
/// ```
#[macro_export]
macro_rules! absent_place {
    ($scheme:literal, $feature:literal) => {
        $crate::registry::inventory::submit! {
            $crate::place::AbsentPlace {
                scheme: $scheme,
                how_to_get: concat!("left out of this build; build with --features ", $feature),
            }
        }
    };
}

/// How a build gets the place of a scheme that the project knows and this build does not have.
pub fn how_to_get(scheme: &str) -> Option<&'static str> {
    inventory::iter::<AbsentPlace>().find(|absent| absent.scheme == scheme).map(|absent| absent.how_to_get)
}

/// The scheme of an address such as `s3://bucket/plate.parquet`; `None` of a path of the file system.
pub fn scheme(path: &Path) -> Option<&str> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let end = bytes.iter().position(|b| matches!(b, b':' | b'/'))?;
    if !bytes[end..].starts_with(b"://") {
        return None;
    }
    let scheme = std::str::from_utf8(&bytes[..end]).ok()?;
    let is_one = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    (!scheme.is_empty() && scheme.chars().all(is_one)).then_some(scheme)
}

/// The place of an address whose scheme is registered.
fn registered(path: &Path) -> Option<&'static dyn Place> {
    static ALL: OnceLock<Vec<&'static Registration>> = OnceLock::new();
    let all = ALL.get_or_init(|| inventory::iter::<Registration>().collect());
    if all.is_empty() {
        return None;
    }
    let scheme = scheme(path)?;
    all.iter().find(|one| one.scheme == scheme).map(|one| one.place)
}

/// The place that a path is of: that of its scheme where one is registered, or else the file system.
pub fn of(path: &Path) -> &'static dyn Place {
    registered(path).unwrap_or(&local::Local)
}

/// Whether a path is remote: an address whose scheme is registered, and no path of the file system of this machine.
pub fn is_remote(path: &Path) -> bool {
    registered(path).is_some()
}

/// The link to the place of a path; `None` of places on this machine.
pub fn link(path: &Path) -> Option<&'static dyn Link> {
    registered(path)?.link()
}

/// Lets what a place remembers of a path, and of what lies below it, be asked for again ([`Place::look_anew`]).
pub(crate) fn look_anew(path: &Path) {
    if let Some(place) = registered(path) {
        place.look_anew(path);
    }
}

/// The entry at `path`, links followed.
///
/// # Errors
/// Nothing is there, or it cannot be looked at.
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    of(path).metadata(path)
}

/// Whether there is something at `path` that can be looked at.
pub fn exists(path: &Path) -> bool {
    metadata(path).is_ok()
}

/// Whether `path` is a folder.
pub fn is_folder(path: &Path) -> bool {
    metadata(path).is_ok_and(|meta| meta.is_folder())
}

/// Whether `path` is a regular file.
pub fn is_file(path: &Path) -> bool {
    metadata(path).is_ok_and(|meta| meta.is_regular())
}

/// The entries of a folder, in no order.
///
/// # Errors
/// It cannot be listed.
pub fn list(folder: &Path) -> io::Result<Listing> {
    of(folder).list(folder)
}

/// Lists folders of one place that are going to be looked into, many at once, where that saves waiting ([`Place::list_ahead`]).
pub(crate) fn list_ahead(folders: &[PathBuf]) {
    if let Some(place) = folders.first().and_then(|first| registered(first)) {
        place.list_ahead(folders);
    }
}

/// Lists a folder and all below it at once, where that saves waiting ([`Place::list_all_ahead`]).
pub(crate) fn list_all_ahead(folder: &Path) {
    if let Some(place) = registered(folder) {
        place.list_all_ahead(folder);
    }
}

/// Looks at `path`, and lists these folders in it, all at once, where that saves waiting ([`Place::look_ahead`]).
pub(crate) fn look_ahead(path: &Path, folders: &[&str]) {
    if let Some(place) = registered(path) {
        let folders: Vec<PathBuf> = folders.iter().map(|folder| path.join(folder)).collect();
        place.look_ahead(path, &folders);
    }
}

/// The entries of a folder that was listed not long ago, without asking anew ([`Place::listed`]).
pub fn listed(folder: &Path) -> Option<Listing> {
    registered(folder)?.listed(folder)
}

/// Opens a regular file for reading; also its length in bytes.
///
/// # Errors
/// A file that cannot be opened, or that is none: a folder, pipe, socket or device.
pub fn open(path: &Path) -> io::Result<(File, u64)> {
    let _open = wellread_trace::span(wellread_trace::Kind::Open);
    of(path).open(path)
}

/// All bytes of a regular file.
///
/// # Errors
/// As [`open`], and the error of the read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    read_after(path, &mut bytes)?;
    Ok(bytes)
}

/// All bytes of a regular file, put behind those of `bytes`. Small files cost one call each of open, stat, read and close.
///
/// # Errors
/// As [`open`], and the error of the read.
pub fn read_after(path: &Path, bytes: &mut Vec<u8>) -> io::Result<()> {
    let (file, length) = open(path)?;
    file.read_to_end(length, bytes)
}

/// The whole path without links.
///
/// # Errors
/// Nothing is there.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    of(path).canonical(path)
}

/// The whole path, links in it as they are; an address is whole.
///
/// # Errors
/// The current folder cannot be had.
pub fn absolute(path: &Path) -> io::Result<PathBuf> {
    if is_remote(path) { Ok(path.to_owned()) } else { std::path::absolute(path) }
}

/// The identity of a folder, the same for every way to it.
///
/// # Errors
/// It cannot be looked at.
pub fn identity(folder: &Path) -> io::Result<Identity> {
    of(folder).identity(folder)
}

/// Creates a file, or empties one, for writing.
///
/// # Errors
/// The place's error.
pub fn create(path: &Path) -> io::Result<Writer> {
    of(path).create(path)
}

/// Creates a file of these bytes.
///
/// # Errors
/// The place's error.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = create(path)?;
    file.write_all(bytes)?;
    file.flush()
}

/// Creates a folder and those above it that are missing.
///
/// # Errors
/// The place's error.
pub fn create_folder(path: &Path) -> io::Result<()> {
    of(path).create_folder(path)
}

/// Gives a file or folder another name in the same place.
///
/// # Errors
/// The place's error.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    of(from).rename(from, to)
}

/// Throws away what this process has begun to write in places and not completed ([`Place::abandon`]). Nothing comes into being
/// afterwards.
pub(crate) fn abandon() {
    shutdown::begin();
    local::Local.abandon();
    for one in inventory::iter::<Registration>() {
        one.place.abandon();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_are_told_from_paths() {
        let of = |path: &str| scheme(Path::new(path)).map(str::to_owned);
        assert_eq!(of("s3://bucket/a.tif").as_deref(), Some("s3"));
        assert_eq!(of("git+ssh://a").as_deref(), Some("git+ssh"));
        for path in ["", "a", "/a://b", "a/b://c", "://a", "a:b://c", "a b://c", "c:/a", "s3:/a", "s3:"] {
            assert_eq!(of(path), None, "{path}");
        }
        assert!(!is_remote(Path::new("s3://bucket/a.tif")), "no place but the file system is built in");
    }

    #[test]
    fn parts_of_addresses_are_addresses() {
        let path = Path::new("s3://bucket/a").join("b.tif");
        assert_eq!(path, Path::new("s3://bucket/a/b.tif"));
        assert_eq!(path.parent().and_then(scheme), Some("s3"));
        assert_eq!(scheme(&path.with_file_name("c")), Some("s3"));
        assert_eq!(path.file_name(), Some("b.tif".as_ref()));
    }

    #[test]
    fn listings_name_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("a"), b"12").unwrap();
        create_folder(&dir.path().join("b/c")).unwrap();
        let listed = list(dir.path()).unwrap().map(|entry| {
            let entry = entry.unwrap();
            (entry.name(), entry.kind().unwrap())
        });
        let mut listed: Vec<_> = listed.collect();
        listed.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(listed, [("a".into(), Kind::File), ("b".into(), Kind::Folder)]);
        assert_eq!(metadata(&dir.path().join("a")).unwrap(), Metadata { kind: Kind::File, length: 2 });
        assert!(is_folder(&dir.path().join("b/c")) && !is_file(dir.path()) && !exists(&dir.path().join("d")));
        rename(&dir.path().join("a"), &dir.path().join("d")).unwrap();
        assert_eq!(read(&dir.path().join("d")).unwrap(), b"12");
        assert!(list(&dir.path().join("d")).is_err());
    }
}
