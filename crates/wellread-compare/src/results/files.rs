//! Files and folders of results, recognised by what is in them.
//!
//! ```text
//!  path ─▶ folder: its tables, or the one file in it ─▶ file: Parquet, CSV ─┐
//!                                                          JSON ──json──────┴─▶ Results, named after the path
//! ```

use super::types::Results;
use super::{json, kinds, latency};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use wellread_report::{ReportInput, Table, columns, summary};

/// Files longer than this are no results: nothing of the kind that is read here reaches a hundredth of it.
const MAX_RESULT_BYTES: u64 = 1 << 30;

impl Results {
    /// Reads results from a file or folder.
    ///
    /// # Errors
    /// Nothing there, nothing that is a result, a damaged file; the message names it and says what can be given.
    pub fn open(path: &Path) -> Result<Self> {
        let mut results = if path.is_dir() { folder(path)? } else { file(path)? };
        results.label = path.display().to_string();
        if results.tables.iter().all(|table| table.rows() == 0) {
            bail!(
                "{}: holds no row of results; was the run interrupted before anything was measured?",
                path.display()
            );
        }
        Ok(results)
    }

    /// From the parts of a results folder.
    fn from_input(input: ReportInput) -> Self {
        let floors =
            input.tables.iter().filter_map(|t| Some((t.name().to_owned(), input.noise_floor_of(t.name())?)));
        Self {
            label: String::new(),
            processes: 0,
            noise_floors: floors.collect(),
            details: input.details,
            // Tables that are computed from others would be compared twice.
            tables: input
                .tables
                .into_iter()
                .filter(|table| !columns::is_derived(table.name()))
                .map(latency::in_seconds)
                .collect(),
        }
    }
}

fn folder(path: &Path) -> Result<Results> {
    let mut names: Vec<PathBuf> = std::fs::read_dir(path)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .with_context(|| format!("cannot list {}", path.display()))?;
    names.sort();
    let ends =
        |path: &&PathBuf, ending: &str| path.extension().is_some_and(|e| e == ending) && path.is_file();
    if names.iter().any(|name| ends(&name, "parquet")) {
        return Ok(Results::from_input(ReportInput::from_dir(path)?));
    }
    let tables: Vec<&PathBuf> = names.iter().filter(|name| ends(name, "csv")).collect();
    let of_infer = |path: &&&PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"benchmark_results_"))
    };
    match tables.iter().filter(of_infer).collect::<Vec<_>>()[..] {
        [] => (),
        [run] => return file(run),
        [first, .., last] => bail!(
            "{}: holds several runs of `wellread infer`; name one, from {} to {}",
            path.display(),
            first.display(),
            last.display()
        ),
    }
    if tables.is_empty() {
        bail!(
            "{}: holds no results (no .parquet, no .csv); give a folder that `wellread bench --out` or `wellread infer \
             --output-dir` wrote, or a results file",
            path.display()
        );
    }
    let tables = tables.into_iter().map(|table| Ok(latency::in_seconds(Table::read_csv(table)?)));
    Ok(Results { tables: tables.collect::<Result<_>>()?, ..summary_details(path)? })
}

fn file(path: &Path) -> Result<Results> {
    let size = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.len();
    if size > MAX_RESULT_BYTES {
        bail!("{}: {size} bytes are too many for results", path.display());
    }
    let parent = path.parent().unwrap_or(Path::new(""));
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("parquet") => of_table(Table::read_parquet(path)?, parent),
        Some("csv") => {
            let samples = path.with_extension("json");
            if samples.is_file() {
                return json::read(&samples);
            }
            of_table(Table::read_csv(path)?, parent)
        }
        Some("json") if path.file_name().is_some_and(|name| name == summary::FILE_NAME) => {
            // The tables beside it hold every run, the summary their medians only.
            match ReportInput::from_dir(if parent.as_os_str().is_empty() { Path::new(".") } else { parent }) {
                Ok(input) => Ok(Results::from_input(input)),
                Err(_) => json::read(path),
            }
        }
        Some("json") => json::read(path),
        _ => bail!(
            "{}: is no results file; results are .parquet, .csv and .json files, or folders of them",
            path.display()
        ),
    }
}

/// One table of a folder: in seconds, and under the name of its kind.
fn of_table(table: Table, folder: &Path) -> Result<Results> {
    let table = kinds::named_by_columns(latency::in_seconds(table));
    Ok(Results { tables: vec![table], ..summary_details(folder)? })
}

/// The details in the `summary.json` of a folder, without its tables.
fn summary_details(folder: &Path) -> Result<Results> {
    let path = folder.join(summary::FILE_NAME);
    if !path.is_file() {
        return Ok(Results::default());
    }
    Ok(Results { tables: vec![], ..json::read(&path)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_report::row;

    #[test]
    fn tables_that_are_computed_from_others_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let tables = ["tasks", "tasks_compared", "tasks_summary"].map(|name| {
            let mut table = Table::new(name);
            table.push(row![("branch", "main"), ("seconds", 1.0)]);
            table
        });
        ReportInput { tables: tables.to_vec(), ..ReportInput::default() }.save(folder.path()).unwrap();
        let results = Results::open(folder.path()).unwrap();
        let names: Vec<&str> = results.tables.iter().map(Table::name).collect();
        assert_eq!(names, ["tasks"]);
    }
}
