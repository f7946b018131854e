//! How a report's input lies in a results folder.
//!
//! ```text
//!  ReportInput ──save──▶ results/WHAT.parquet, WHAT.csv   one row per configuration and run
//!       │                results/samples/WHAT.parquet     one row per configuration and run, a list of its items' times
//!       ▲                results/summary.json             details, aggregates, and under "report" the rest
//!       └───from_dir────────────────────┘
//! ```

use crate::table::samples;
use crate::{Error, ReportInput, Result, Samples, Table, columns, figures, summary};
use serde_json::{Map, Value, json};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Whether a name can be a file's on any system and stands for itself in HTML.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Refuses tables whose figures would lie outside the folder, or would replace those of another.
fn check_names(dir: &Path, files: &[PathBuf], tables: &[Table]) -> Result<()> {
    for (i, (file, table)) in files.iter().zip(tables).enumerate() {
        let name = table.name();
        if Path::new(name).file_name() != Some(OsStr::new(name)) {
            return Err(Error::new(
                file,
                format_args!("calls its table {name:?}, which is no name of a file"),
            )
            .hint("give a folder that `wellread bench --out` wrote"));
        }
        if let Some(same) = tables[..i].iter().position(|other| other.name() == name) {
            let [first, second] = [&files[same], file]
                .map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned());
            return Err(Error::new(dir, format_args!("{first} and {second} hold the same table {name:?}"))
                .hint("keep one of them in the folder, and move the other to a folder of its own"));
        }
    }
    Ok(())
}

/// The samples of these tables, of those that have some.
fn read_samples(folder: &Path, tables: &[Table]) -> Result<Vec<Samples>> {
    let files = tables.iter().map(|table| folder.join(format!("{}.parquet", table.name())));
    files.filter(|file| file.is_file()).map(Samples::read_parquet).collect()
}

/// Keys of `summary.json` that this crate writes.
const REPORT_KEY: &str = "report";
const AGGREGATES_KEY: &str = "aggregates";

impl ReportInput {
    /// Writes `WHAT.parquet` and `WHAT.csv` of every table, `samples/WHAT.parquet`, and `summary.json` with the details, the
    /// aggregates of all tables and what else a report needs. Each file appears whole or not at all.
    ///
    /// Tables and single measurements of an earlier run that this one has not are removed, and all figures of that run. The
    /// next reader of the folder, such as `compare`, would take them for this run's.
    ///
    /// # Errors
    /// A table's name is no plain file name, two have the same, or a file cannot be written.
    pub fn save(&self, dir: impl AsRef<Path>) -> Result<()> {
        let dir = dir.as_ref();
        self.remove_others(dir);
        for (i, table) in self.tables.iter().enumerate() {
            let name = table.name();
            if !is_plain_name(name) {
                return Err(Error::new(dir, format_args!("{name:?} is no name for a result table")));
            }
            if self.tables[..i].iter().any(|t| t.name() == name) {
                return Err(Error::new(dir, format_args!("two result tables are named {name:?}")));
            }
            table.write_parquet(dir.join(format!("{name}.parquet")))?;
            table.write_csv(dir.join(format!("{name}.csv")))?;
        }
        for samples in self.samples.iter().filter(|samples| !samples.seconds().is_empty()) {
            let name = format!("{}.parquet", samples.runs().name());
            samples.write_parquet(dir.join(samples::FOLDER).join(name))?;
        }
        summary::write(dir.join(summary::FILE_NAME), &self.to_summary())
    }

    /// Removes what an earlier summary in the folder names and this input does not write. These are whole tables, and single
    /// measurements of tables that have none now. Figures go too, since they are drawn anew.
    fn remove_others(&self, dir: &Path) {
        let Ok(summary) = summary::read(dir.join(summary::FILE_NAME)) else { return };
        let Some(earlier) = summary[AGGREGATES_KEY].as_object() else { return };
        for name in earlier.keys().filter(|name| is_plain_name(name)) {
            let mut files: Vec<String> = ["", "_distribution", "_timeline"]
                .iter()
                .flat_map(|kind| [format!("{name}{kind}.svg"), format!("{name}{kind}.png")])
                .collect();
            if !self.tables.iter().any(|table| table.name() == name) {
                files.extend([format!("{name}.parquet"), format!("{name}.csv")]);
            }
            let is_of_it = |of: &Samples| of.runs().name() == name && !of.seconds().is_empty();
            if !self.samples.iter().any(is_of_it) {
                files.push(format!("{}/{name}.parquet", samples::FOLDER));
            }
            for file in files {
                // A file that cannot be removed is not this run's, as its summary says.
                let _ = std::fs::remove_file(dir.join(file));
            }
        }
    }

    /// The whole content of `summary.json`.
    pub fn to_summary(&self) -> Value {
        let mut all = self.details.clone();
        let aggregates: Map<_, _> =
            self.tables.iter().map(|t| (t.name().to_owned(), columns::aggregates(t))).collect();
        all.insert(AGGREGATES_KEY.to_owned(), aggregates.into());
        all.insert(REPORT_KEY.to_owned(), json!(self));
        all.into()
    }

    /// Rebuilds the input from a results folder: every `*.parquet`, the samples of each, and `summary.json` if there is
    /// one. A table that the summary does not list is of another run: it is left out, and a warning names it.
    ///
    /// # Errors
    /// No such folder, no result table in it, or a file that is damaged. Two files of one table. A table whose name leads out
    /// of the folder.
    pub fn from_dir(dir: impl AsRef<Path>) -> Result<Self> {
        let dir = dir.as_ref();
        let cannot = |e: std::io::Error| Error::io(dir, "cannot list the folder", &e);
        let mut files = vec![];
        for entry in std::fs::read_dir(dir).map_err(cannot)? {
            let path = entry.map_err(cannot)?.path();
            let hidden = path.file_name().is_none_or(|n| n.as_encoded_bytes().starts_with(b"."));
            if !hidden && path.extension().is_some_and(|e| e == "parquet") && path.is_file() {
                files.push(path);
            }
        }
        files.sort();
        let mut tables: Vec<Table> = files.iter().map(Table::read_parquet).collect::<Result<_>>()?;
        check_names(dir, &files, &tables)?;
        if tables.is_empty() {
            return Err(Error::new(dir, "holds no result table (*.parquet)")
                .hint("give a folder with results, or run the benchmark again if it stopped before its first result"));
        }
        tables.sort_by_key(|t| (figures::rank(t.name()), t.name().to_owned()));
        let path = dir.join(summary::FILE_NAME);
        if !path.exists() {
            let samples = read_samples(&dir.join(samples::FOLDER), &tables)?;
            let warnings = vec!["summary.json is missing: configuration and environment are unknown".into()];
            return Ok(Self {
                title: "wellread results".into(),
                warnings,
                tables,
                samples,
                ..Self::default()
            });
        }
        let Value::Object(mut details) = summary::read(&path)? else {
            unreachable!("read gives objects only")
        };
        let listed = details.remove(AGGREGATES_KEY);
        let report = details.remove(REPORT_KEY).unwrap_or_else(|| json!({}));
        let mut input: Self = serde_json::from_value(report)
            .map_err(|e| Error::new(&path, format_args!("its \"{REPORT_KEY}\" part is damaged: {e}")))?;
        let is_listed = |name: &str| {
            listed.as_ref().and_then(Value::as_object).is_none_or(|listed| listed.contains_key(name))
        };
        for other in tables.iter().map(Table::name).filter(|name| !is_listed(name)) {
            input
                .warnings
                .push(format!("{other} is left out: it is of another run, which summary.json does not list"));
        }
        tables.retain(|table| is_listed(table.name()));
        if tables.is_empty() {
            return Err(Error::new(dir, "holds no result table that summary.json lists")
                .hint("run the benchmark again; without summary.json the tables are read as they are"));
        }
        let samples = read_samples(&dir.join(samples::FOLDER), &tables)?;
        Ok(Self { tables, samples, details, ..input })
    }
}
