//! Where commands write their results: files and folders of this machine.
//!
//! ```text
//!  --out PATH ─▶ a path of the file system: taken as it is
//!             ├─▶ an address, such as s3://…: wrong usage, before anything is read
//!             └─▶ where a folder is meant, the name of a file, such as run.json: wrong usage, too
//! ```

use clap::builder::{PathBufValueParser, TypedValueParser};
use std::ffi::OsStr;
use std::path::PathBuf;
use wellread_store::place;

/// Endings of files that commands write as results: no folder of results is meant by a name with one of them.
const FILE_ENDINGS: [&str; 10] = ["csv", "html", "json", "md", "parquet", "pdf", "png", "svg", "tsv", "txt"];

/// The parser of an option that names a file or folder of results. It refuses an address, such as one of a bucket.
pub fn local_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(checked)
}

/// As [`local_path`], of an option that names a folder. It also refuses the name of a file, unless there is such a folder.
pub fn local_folder() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| checked(path).and_then(checked_folder))
}

fn checked_folder(path: PathBuf) -> Result<PathBuf, String> {
    let is_of_file = |ending: &str| FILE_ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known));
    let ending = path.extension().and_then(OsStr::to_str).filter(|ending| is_of_file(ending));
    let Some(ending) = ending.filter(|_| !path.is_dir()) else { return Ok(path) };
    let folder = path.with_extension("");
    Err(format!(
        "this is the name of a .{ending} file, and the option takes a folder, into which all files are written (hint: write \
         {})",
        folder.display()
    ))
}

fn checked(path: PathBuf) -> Result<PathBuf, String> {
    if place::scheme(&path).is_none() {
        return Ok(path);
    }
    let hint = "give a local path, and copy the result to the address";
    Err(format!("it is an address, and results are written to this machine (hint: {hint})"))
}

#[cfg(test)]
mod tests {
    use super::{checked, checked_folder};
    use std::path::PathBuf;

    #[test]
    fn addresses_are_refused_and_paths_are_taken_as_they_are() {
        for address in ["s3://bucket/a.json", "gs://b/results", "https://host/a"] {
            let said = checked(address.into()).unwrap_err();
            assert!(said.starts_with("it is an address"), "{address}: {said}");
        }
        for path in ["results", "a/b.json", "-", "/tmp/s3:/b", r"C:\results"] {
            assert_eq!(checked(path.into()), Ok(PathBuf::from(path)));
        }
    }

    #[test]
    fn names_of_files_are_no_folders_unless_there_is_one() {
        for (file, folder) in [
            ("run.json", "run"),
            ("a/table.CSV", "a/table"),
            ("./report.html", "./report"),
            ("v1.2.png", "v1.2"),
        ] {
            let said = checked_folder(file.into()).unwrap_err();
            assert!(
                said.contains("takes a folder") && said.ends_with(&format!("(hint: write {folder})")),
                "{said}"
            );
        }
        for path in ["results", "v1.2", "a.json/results", ".json", "2026-01-02.run"] {
            assert_eq!(checked_folder(path.into()), Ok(PathBuf::from(path)));
        }
        let dir = tempfile::tempdir().unwrap();
        let there = dir.path().join("run.json");
        std::fs::create_dir(&there).unwrap();
        assert_eq!(checked_folder(there.clone()), Ok(there));
    }
}
