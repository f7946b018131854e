//! Where the dataset is: a Lance dataset is a folder that holds `_versions`; a LanceDB folder holds datasets called
//! `TABLE.lance`.

use std::path::{Path, PathBuf};
use wellread_store::entries::{self, Entry};
use wellread_store::registry::Probe;
use wellread_store::surface::option;
use wellread_store::{Error, Result, place};

/// The folder of manifests, which every dataset has.
pub(crate) const VERSIONS: &str = "_versions";
/// Ending of a table's folder in a LanceDB folder.
const TABLE: &str = ".lance";

/// Whether a file of this name is Lance's.
type NameFilter = fn(&str) -> bool;

/// Names of files in the folders of a dataset, by their endings. Folders of other names that begin with `_` are Lance's as well
/// (indices, tags): their files have many names.
const FILES: [(&str, NameFilter); 4] = [
    ("data", |name| ends_in(name, &["lance", "blob"])),
    (VERSIONS, |name| ends_in(name, &["manifest"]) || name == "latest_version_hint.json"),
    ("_transactions", |name| ends_in(name, &["txn"])),
    ("_deletions", |name| ends_in(name, &["arrow", "bin"])),
];
/// The folder of branches, which are datasets.
const BRANCHES: &str = "tree";

fn ends_in(name: &str, endings: &[&str]) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| endings.contains(&ending))
}

fn any(_: &str) -> bool {
    true
}

/// Whether the folder is a dataset.
fn is_dataset(folder: &Path) -> bool {
    place::is_folder(&folder.join(VERSIONS))
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
    let listing = place::list(folder).map_err(|e| Error::io(folder, "cannot list the folder", &e))?;
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

/// The first entry in a dataset, or in a LanceDB folder, that is not Lance's.
///
/// # Errors
/// A folder that cannot be listed.
pub(crate) fn foreign(folder: &Path) -> Result<Option<String>> {
    if is_dataset(folder) {
        return foreign_in_dataset(folder);
    }
    for Entry { name, path, is_folder, .. } in entries::list(folder)? {
        if !name.ends_with(TABLE) || !is_dataset(&path) {
            return Ok(Some(name));
        }
        // Removal of a link removes only the link.
        if is_folder && let Some(foreign) = foreign_in_dataset(&path)? {
            return Ok(Some(format!("{name}/{foreign}")));
        }
    }
    Ok(None)
}

fn foreign_in_dataset(folder: &Path) -> Result<Option<String>> {
    for Entry { name, path, is_folder, .. } in entries::list(folder)? {
        let of_folder = FILES.iter().find(|(folder, _)| *folder == name).map(|(_, belongs)| *belongs);
        let other = (name.starts_with('_') || name == BRANCHES).then_some(any as NameFilter);
        let Some(belongs) = of_folder.or(other).filter(|_| place::is_folder(&path)) else {
            return Ok(Some(name));
        };
        if is_folder && let Some(foreign) = entries::foreign(&path, belongs)? {
            return Ok(Some(format!("{name}/{foreign}")));
        }
    }
    Ok(None)
}

/// Refuses to replace a LanceDB folder with tables besides the one that a set of images is.
pub(crate) fn refuse_tables(target: &Path) -> Result<()> {
    if !place::is_folder(target) || is_dataset(target) {
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
/// No dataset is there. There are several without a name to choose by. There is no table of that name (the message
/// lists those there are).
pub(crate) fn dataset(path: &Path, table: Option<&str>) -> Result<PathBuf> {
    let meta = place::metadata(path).map_err(|e| Error::io(path, "cannot open", &e))?;
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
                    .hint(format_args!(
                        "leave {} out, or give the LanceDB folder that holds the tables",
                        option("table")
                    )))
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
            .hint(format_args!("choose one ({}); {}", option("table"), listed()))),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_not_lances_is_found_at_any_depth() {
        let dir = tempfile::tempdir().unwrap();
        let table = dir.path().join("images.lance");
        let put = |name: &str| {
            let file = table.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, b"").unwrap();
        };
        let parts = [
            "data/0b17.lance",
            "data/0b17/1.blob",
            "_versions/1.manifest",
            "_versions/latest_version_hint.json",
            "_transactions/0-a.txn",
            "_deletions/0-1-7.arrow",
            "_indices/7a/index.idx",
            "_refs/tags/a.json",
            "tree/b/_versions/1.manifest",
        ];
        for name in parts {
            put(name);
        }
        let both = || [foreign(&table).unwrap(), foreign(dir.path()).unwrap()];
        assert_eq!(both(), [None, None]);
        for name in
            ["notes.json", "data/.hidden", "data/0b17/notes.txt", "_versions/notes.json", "_refs/.keep"]
        {
            put(name);
            assert_eq!(both(), [Some(name.to_owned()), Some(format!("images.lance/{name}"))]);
            fs::remove_file(table.join(name)).unwrap();
        }
        put("notes/a.txt");
        assert_eq!(both()[0].as_deref(), Some("notes"));
        fs::remove_dir_all(table.join("notes")).unwrap();
        fs::create_dir(dir.path().join("notes")).unwrap();
        assert_eq!(both(), [None, Some("notes".to_owned())]);
    }
}
