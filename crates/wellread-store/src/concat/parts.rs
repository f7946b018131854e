//! Names of the parts of a set, and the keys in the names of their folders: `plate=BR1/part-0.parquet`.

use crate::file_names::{decoded, path_text};
use crate::words::first_and_more;
use crate::{Store, features, place};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The mark of no value, as Hive writes it.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// A part that was found and is not opened yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub path: PathBuf,
    pub label: String,
    /// Names and values in the names of its folders.
    pub keys: Vec<(String, Option<String>)>,
}

/// The things that parts lack, each sentence with the name of its part before it.
pub(super) fn missing_parts<'p>(
    parts: impl Iterator<Item = (&'p str, &'p (dyn Store + 'static))>,
) -> Vec<String> {
    parts
        .flat_map(|(name, store)| {
            store.hints().missing_parts.iter().map(move |what| format!("{name}: {what}"))
        })
        .collect()
}

/// Parts below `root`, each with a name of its own: its path there, without the ending.
pub(super) fn found(root: &Path, paths: Vec<PathBuf>) -> Vec<Found> {
    let mut times: HashMap<String, usize> = HashMap::new();
    let mut taken: HashSet<String> = HashSet::new();
    let part = |path: PathBuf| {
        let below = path.strip_prefix(root).unwrap_or(&path);
        // The root of an absolute path is a slash itself.
        let own = without_ending(&path_text(below).replacen("//", "/", 1));
        let mut label = own.clone();
        // A part may be called as another one is then.
        while !taken.insert(label.clone()) {
            let n = times.entry(own.clone()).or_insert(1);
            *n += 1;
            label = format!("{own}-{n}");
        }
        let keys = keys(below, place::is_folder(&path));
        Found { path, label, keys }
    };
    paths.into_iter().map(part).collect()
}

/// Paths in one form, so that names of parts do not depend on how each was typed: absolute where one of them is. Addresses stay as
/// they are, and so do paths at which nothing lies.
pub(super) fn alike(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    if !paths.iter().any(|path| path.is_absolute()) {
        return paths;
    }
    let whole = |path: PathBuf| {
        let is_there = !path.is_absolute() && place::scheme(&path).is_none() && place::exists(&path);
        if is_there { std::path::absolute(&path).unwrap_or(path) } else { path }
    };
    paths.into_iter().map(whole).collect()
}

/// The folder that paths have in common.
pub(super) fn common_folder(paths: &[PathBuf]) -> PathBuf {
    let Some((first, others)) = paths.split_first() else { return PathBuf::new() };
    let holds_all = |folder: &&Path| others.iter().all(|path| path.starts_with(folder));
    let folder = first.ancestors().skip(1).find(holds_all).unwrap_or(Path::new(""));
    if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() }
}

/// The text that is the same in all, or all texts, in words.
pub(super) fn in_words(texts: impl IntoIterator<Item = String>) -> String {
    let mut found: Vec<String> = vec![];
    for text in texts {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    first_and_more(&found, 3, ["; ", ";"])
}

/// A name without the ending of a table or of an image.
fn without_ending(name: &str) -> String {
    let (folders, last) = name.rsplit_once('/').unwrap_or(("", name));
    let of_image = features::stem(last);
    let stem = match of_image.rsplit_once('.') {
        Some((stem, _)) if of_image.len() == last.len() && !stem.is_empty() => stem,
        _ => of_image,
    };
    if folders.is_empty() { stem.to_owned() } else { format!("{folders}/{stem}") }
}

/// The keys in the names of the folders of a path; in its own name too, where it is a folder.
fn keys(below: &Path, is_folder: bool) -> Vec<(String, Option<String>)> {
    let folders = if is_folder { Some(below) } else { below.parent() };
    let mut found: Vec<(String, Option<String>)> = vec![];
    for folder in folders.into_iter().flat_map(Path::components) {
        let name = folder.as_os_str().to_string_lossy();
        let Some((key, value)) = name.split_once('=').filter(|(key, _)| !key.is_empty()) else { continue };
        let value = Some(decoded(value)).filter(|value| value != NO_VALUE);
        let key = decoded(key);
        // The inner one of two with one name counts.
        found.retain(|(known, _)| *known != key);
        found.push((key, value));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stand_in_names_of_folders() {
        let of = |path: &str, is_folder| keys(Path::new(path), is_folder);
        let key = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        assert_eq!(of("plate=BR1/well=A01/x=1.parquet", false), [key("plate", "BR1"), key("well", "A01")]);
        assert_eq!(of("plate=a%2Fb%20c/x.parquet", false), [key("plate", "a/b c")]);
        assert_eq!(of("plate=__HIVE_DEFAULT_PARTITION__/x", false), [("plate".to_owned(), None)]);
        assert_eq!(of("plate=BR1", true), [key("plate", "BR1")]);
        assert_eq!(of("a=1/a=2/x", false), [key("a", "2")]);
        assert_eq!(of("=1/b/c=/x", false), [key("c", "")]);
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%ff"), "%ff", "no text");
    }

    #[test]
    fn parts_are_called_by_what_tells_them_apart() {
        let labels = |root: &str, paths: &[&str]| {
            let paths = paths.iter().map(PathBuf::from).collect();
            found(Path::new(root), paths).into_iter().map(|part| part.label).collect::<Vec<_>>()
        };
        assert_eq!(labels("d", &["d/BR1.parquet", "d/BR2.parquet"]), ["BR1", "BR2"]);
        assert_eq!(labels("d", &["d/a/x.parquet", "d/b/x.parquet"]), ["a/x", "b/x"]);
        assert_eq!(labels("d", &["d/x.parquet", "d/x.lance", "d/x.ome.tiff"]), ["x", "x-2", "x-3"]);
        assert_eq!(labels("d", &["d/x-2.parquet", "d/x.parquet", "d/x.lance"]), ["x-2", "x", "x-3"]);
        assert_eq!(labels("d", &["d/v1.2"]), ["v1"]);
        let common = |paths: &[&str]| common_folder(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(common(&["a/b/x", "a/c/y"]), Path::new("a"));
        assert_eq!(common(&["x", "y"]), Path::new("."));
        assert_eq!(common(&["a/x", "a/x"]), Path::new("a"));
        assert_eq!(common(&["/x", "/y"]), Path::new("/"));
        assert_eq!(common(&["a", "a/b"]), Path::new("."));
        // Beside an address, which has no folder in common with it.
        assert_eq!(labels("", &["/d/x.parquet"]), ["/d/x"]);
    }

    #[test]
    fn paths_are_absolute_where_one_of_them_is() {
        // The folder that tests run in has both.
        let whole = std::path::absolute("src").unwrap();
        let of = |paths: &[&Path]| alike(paths.iter().map(|path| path.to_path_buf()).collect());
        let cargo = Path::new("Cargo.toml");
        assert_eq!(of(&[&whole, cargo]), [whole.clone(), std::path::absolute(cargo).unwrap()]);
        assert_eq!(of(&[Path::new("src"), cargo]), [Path::new("src"), cargo]);
        let others = [Path::new("s3://b/y.parquet"), Path::new("none")];
        assert_eq!(of(&[&whole, others[0], others[1]])[1..], others);
    }
}
