//! Where the dataset is: a Lance dataset is a folder that holds `_versions`; a LanceDB folder holds datasets called
//! `TABLE.lance`.

use std::path::{Path, PathBuf};
use wellread_store::registry::Probe;
use wellread_store::{Error, Result, place as files};

/// The folder of manifests, which every dataset has.
const VERSIONS: &str = "_versions";
/// Ending of a table's folder in a LanceDB folder.
const TABLE: &str = ".lance";

/// Whether the folder is a dataset.
fn is_dataset(folder: &Path) -> bool {
    files::is_folder(&folder.join(VERSIONS))
}

/// Whether a probe is of a dataset or a LanceDB folder.
pub(crate) fn recognise(probe: &Probe) -> bool {
    probe.is_dir
        && (is_dataset(&probe.path)
            || probe.entries_ending(&[TABLE]).any(|name| is_dataset(&probe.path.join(name))))
}

/// Whether there is a dataset at `path` or below it.
pub(crate) fn holds_tables(path: &Path) -> bool {
    is_dataset(path) || tables(path).is_ok_and(|t| !t.is_empty())
}

/// Names of the tables in a LanceDB folder, sorted.
fn tables(folder: &Path) -> Result<Vec<String>> {
    let listing = files::list(folder).map_err(|e| Error::io(folder, "cannot list the folder", &e))?;
    let mut names = vec![];
    for entry in listing {
        let entry = entry.map_err(|e| Error::io(folder, "cannot list the folder", &e))?;
        let name = entry.name();
        let path = folder.join(&name);
        if let Some(name) = name.to_string_lossy().strip_suffix(TABLE)
            && is_dataset(&path)
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Refuses to replace a LanceDB folder with tables besides the one that a set of images is.
pub(crate) fn refuse_tables(target: &Path) -> Result<()> {
    if !files::is_folder(target) || is_dataset(target) {
        return Ok(());
    }
    match tables(target)?.as_slice() {
        [] | [_] => Ok(()),
        several => Err(Error::new(
            target,
            format_args!("holds {} tables, all of which would be lost", several.len()),
        )
        .hint(format_args!("choose another name, or remove what is not needed: {}", several.join(", ")))),
    }
}

/// The dataset that `path` means: itself, the one table of a LanceDB folder, or the table called `table` in it.
///
/// # Errors
/// No dataset there; several without a name to choose by; no table of that name (the message lists those there are).
pub(crate) fn dataset(path: &Path, table: Option<&str>) -> Result<PathBuf> {
    let meta = files::metadata(path).map_err(|e| Error::io(path, "cannot open", &e))?;
    if !meta.is_folder() {
        return Err(Error::new(path, "is a file; a Lance dataset is a folder")
            .hint("give the folder that holds _versions and data"));
    }
    if is_dataset(path) {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let own = name.strip_suffix(TABLE).unwrap_or(&name);
        return match table {
            Some(table) if table != own && table != name => {
                Err(Error::new(path, format_args!("is one Lance dataset; there is no table {table:?} in it"))
                    .choice()
                    .hint("leave --table out, or give the LanceDB folder that holds the tables"))
            }
            _ => Ok(path.to_owned()),
        };
    }
    let names = tables(path)?;
    let listed = || format!("its tables are: {}", names.join(", "));
    match (table, names.as_slice()) {
        (_, []) => Err(Error::new(
            path,
            "is no Lance dataset: it holds neither _versions nor a table in Lance format",
        )
        .hint("copy or write the whole folder again")),
        (None, [one]) => Ok(path.join(format!("{one}{TABLE}"))),
        (None, [..]) => Err(Error::new(path, format_args!("holds {} tables", names.len()))
            .choice()
            .hint(format_args!("choose one with --table; {}", listed()))),
        (Some(table), _) => {
            let wanted = table.strip_suffix(TABLE).unwrap_or(table);
            if names.iter().any(|n| n == wanted) {
                Ok(path.join(format!("{wanted}{TABLE}")))
            } else {
                Err(Error::new(path, format_args!("has no table {table:?}")).choice().hint(listed()))
            }
        }
    }
}
