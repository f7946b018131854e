//! Where files lie here that a table names by a path of another machine.
//!
//! ```text
//!  PathName, FileName ─▶ mapped (FROM=TO) ─▶ as it is, if it is there ─▶ beside the table, if it is there ─▶ as it is
//! ```

use crate::file_names::decoded;
use crate::place::{self, Entry, Kind, Listing};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The entries of the folders that were asked about. Each is listed once, since a look at each file of a table costs
/// much on a disk far away.
#[derive(Default)]
pub(super) struct Folders(HashMap<PathBuf, Listed>);

/// The known state of a folder.
enum Listed {
    /// The entries in it.
    Names(HashMap<OsString, Kind>),
    /// It is not there.
    Absent,
    /// It cannot be listed.
    Unknown,
}

impl Folders {
    /// Whether there is something at a path.
    pub fn has(&mut self, path: &Path) -> bool {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return place::exists(path);
        };
        match &*self.0.entry(folder.to_owned()).or_insert_with(|| listed(folder)) {
            Listed::Absent => false,
            Listed::Names(names) if names.get(name).is_some_and(|kind| *kind != Kind::Symlink) => true,
            // A link may lead nowhere, and some file systems find a name in capitals, too.
            _ => place::exists(path),
        }
    }

    /// The entries of a folder; those of the first listing, where it was asked about before.
    ///
    /// # Errors
    /// A folder that cannot be listed.
    pub fn list(&self, folder: &Path) -> io::Result<Listing> {
        let Some(Listed::Names(names)) = self.0.get(folder) else { return place::list(folder) };
        let entry = |(name, kind): (&OsString, &Kind)| Ok(Entry::new(name.clone(), *kind));
        let entries: Vec<io::Result<Entry>> = names.iter().map(entry).collect();
        Ok(Box::new(entries.into_iter()))
    }
}

fn listed(folder: &Path) -> Listed {
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let names = || -> io::Result<HashMap<OsString, Kind>> {
        let mut names = HashMap::new();
        for entry in place::list(here)? {
            let entry = entry?;
            names.insert(entry.name(), entry.kind()?);
        }
        Ok(names)
    };
    match names() {
        Ok(names) => Listed::Names(names),
        Err(error) if error.kind() == ErrorKind::NotFound => Listed::Absent,
        Err(_) => Listed::Unknown,
    }
}

/// The path of a file that a table names.
///
/// `folder` and `name` are as the table has them: with `/` or `\`, or an address `file:///…`. The first of `map` whose
/// beginning fits is used. A path that is not absolute begins at the folder of the table. Listings are kept in
/// `folders`.
pub(super) fn resolve(
    table: &Path,
    folder: &str,
    name: &str,
    map: &[(String, String)],
    folders: &mut Folders,
) -> PathBuf {
    let joined = match folder.trim_end_matches(['/', '\\']) {
        "" if folder.is_empty() => name.to_owned(),
        folder => format!("{folder}/{name}"),
    };
    let whole = cleaned(&joined);
    let mapped = of_map(&whole, map);
    let is_mapped = mapped.is_some();
    let beside = table.parent().unwrap_or(Path::new(""));
    let named = Path::new(mapped.as_deref().unwrap_or(&whole));
    // An address is whole, and lies beside nothing.
    let given = if place::is_remote(named) { named.to_owned() } else { beside.join(named) };
    // A mapped path is the mapped one, there or not.
    if is_mapped || folders.has(&given) {
        return given;
    }
    let file = whole.rsplit('/').next().unwrap_or(&whole);
    let here = beside.join(file);
    if folders.has(&here) { here } else { given }
}

/// A path of the table as the first of `map` whose beginning fits has it; `None` where none fits.
pub(super) fn mapped(path: &str, map: &[(String, String)]) -> Option<String> {
    if map.is_empty() { None } else { of_map(&cleaned(path), map) }
}

/// Whether what a path is mapped to begins at the folder of the table.
pub(super) fn is_relative(to: &str) -> bool {
    let to = Path::new(to);
    !to.is_absolute() && !place::is_remote(to)
}

/// A path as it is compared: Windows tells no capital letter of a drive from a small one.
fn cleaned(path: &str) -> String {
    let mut path = with_slashes(path);
    if matches!(path.as_bytes(), [drive, b':', ..] if drive.is_ascii_lowercase()) {
        path[..1].make_ascii_uppercase();
    }
    path
}

/// A path with `/`; of an address the path that it stands for: `file:///data/my%20plate`, or `file:/data` as CellProfiler writes it.
fn with_slashes(path: &str) -> String {
    let whole = path.replace('\\', "/");
    let Some(rest) = whole.strip_prefix("file:").filter(|rest| rest.starts_with('/')) else { return whole };
    let named = rest.strip_prefix("//").unwrap_or(rest);
    let path = decoded(named.strip_prefix("localhost").unwrap_or(named));
    // The drive of file:///C:/data.
    let is_drive = matches!(path.as_bytes(), [b'/', drive, b':', ..] if drive.is_ascii_alphabetic());
    if is_drive { path[1..].to_owned() } else { path }
}

fn of_map(whole: &str, map: &[(String, String)]) -> Option<String> {
    map.iter().find_map(|(from, to)| {
        let from = cleaned(from);
        let rest = whole.strip_prefix(from.trim_end_matches('/'))?;
        (rest.is_empty() || rest.starts_with('/'))
            .then(|| format!("{}{rest}", to.trim_end_matches(['/', '\\'])))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_machines_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let table = dir.path().join("load_data.csv");
        std::fs::create_dir(dir.path().join("images")).unwrap();
        for file in ["a.tif", "images/b.tif"] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        let at = |folder: &str, name: &str, map: &[(&str, &str)]| {
            let map: Vec<_> = map.iter().map(|&(from, to)| (from.to_owned(), to.to_owned())).collect();
            resolve(&table, folder, name, &map, &mut Folders::default())
        };
        let images = dir.path().join("images");
        assert_eq!(at("/home/x/plate", "a.tif", &[]), dir.path().join("a.tif"), "beside the table");
        assert_eq!(at("images", "b.tif", &[]), images.join("b.tif"));
        assert_eq!(at("images/", "b.tif", &[]), images.join("b.tif"));
        assert_eq!(at(r"C:\data\plate", "b.tif", &[(r"C:\data\plate", "images")]), images.join("b.tif"));
        assert_eq!(at(r"d:\data", "b.tif", &[("D:/data", "/z")]), Path::new("/z/b.tif"), "a drive");
        assert_eq!(at(r"D:\data", "b.tif", &[(r"d:\Data", "/z")]), dir.path().join("D:/data/b.tif"));
        assert_eq!(at("/a/b", "c.tif", &[("/a/bc", "/x"), ("/a", "/y/")]), Path::new("/y/b/c.tif"));
        assert_eq!(at("", "file:///nowhere/c.tif", &[]), Path::new("/nowhere/c.tif"));
        assert_eq!(at("/", "c.tif", &[]), Path::new("/c.tif"));
        // CellProfiler writes addresses with one slash, and a space as %20.
        for address in [
            "file:/n/my%20plate/%C3%A4.tif",
            "file:///n/my%20plate/%C3%A4.tif",
            "file://localhost/n/my plate/ä.tif",
        ] {
            assert_eq!(at("", address, &[]), Path::new("/n/my plate/ä.tif"), "{address}");
        }
        assert_eq!(at("", "file:///n/50%.tif", &[]), Path::new("/n/50%.tif"));
        assert_eq!(at("", "/n/a%20b.tif", &[]), Path::new("/n/a%20b.tif"), "no address");
        for from in [r"C:\data", "file:///C:/data", "file:/C:/data"] {
            assert_eq!(
                at("", "file:///C:/data/x%20y/b.tif", &[(from, "/z")]),
                Path::new("/z/x y/b.tif"),
                "{from}"
            );
        }
    }

    #[test]
    fn a_folder_is_listed_once() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.tif"), "").unwrap();
        let mut folders = Folders::default();
        assert!(folders.has(&dir.path().join("a.tif")) && !folders.has(&dir.path().join("b.tif")));
        assert!(!folders.has(&dir.path().join("none/a.tif")));
        // As it was listed.
        std::fs::remove_file(dir.path().join("a.tif")).unwrap();
        std::fs::create_dir(dir.path().join("none")).unwrap();
        std::fs::write(dir.path().join("none/a.tif"), "").unwrap();
        assert!(folders.has(&dir.path().join("a.tif")) && !folders.has(&dir.path().join("none/a.tif")));
        assert!(folders.has(Path::new("/")));
        let names = |folder: &Path| -> Vec<_> {
            folders.list(folder).unwrap().map(|entry| entry.unwrap().name()).collect()
        };
        assert_eq!(names(dir.path()), ["a.tif"]);
        // These are unknown.
        std::fs::create_dir(dir.path().join("b")).unwrap();
        assert!(names(&dir.path().join("b")).is_empty() && folders.list(&dir.path().join("c")).is_err());
    }
}
