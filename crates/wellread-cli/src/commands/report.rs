//! `wellread report DIR`

use crate::output::{Failure, Outcome, Ui};
use std::path::{Path, PathBuf};
use wellread_measure::path_text::text;
use wellread_report::summary::FILE_NAME as SUMMARY;
use wellread_report::{ReportInput, Table};
use wellread_tasks::config::beside;

/// Makes plots and report.html again from the tables and summary.json in a results folder.
#[derive(clap::Args)]
#[command(after_help = "\
Reads the tables and summary.json in the folder, and measures nothing.

Example:
  wellread report results")]
pub struct Args {
    /// A results folder, or a file in it such as summary.json, or the results of tasks or infer.
    dir: PathBuf,
}

pub fn run(args: &Args, ui: Ui) -> Outcome {
    let failed = |e: wellread_report::Error| Failure::Failed(e.to_string());
    let dir = &folder_of(&args.dir);
    let input = ReportInput::from_dir(dir).map_err(|error| {
        // A set of images among others: the error of the folder is that of the first of them.
        let is_table = args.dir.is_file() && args.dir.extension().is_some_and(|ending| ending == "parquet");
        let error = is_table.then(|| Table::read_parquet(&args.dir).err()).flatten().unwrap_or(error);
        let hint = results_within(dir).map(|inner| format!("; {} holds results", inner.display()));
        Failure::Failed(format!("{error}{}", hint.unwrap_or_default()))
    })?;
    wellread_report::write_figures(dir, &input).map_err(failed)?;
    wellread_report::write_report(dir, &input).map_err(failed)?;
    let path = dir.join("report.html");
    ui.document(&serde_json::json!({ "report": text(&path), "tables": input.tables.iter().map(Table::name).collect::<Vec<_>>() }))?;
    if !ui.json {
        ui.say(format!("Report: {}", path.display()));
    }
    Ok(())
}

/// The folder itself, or that of a file in it. Beside the results of `tasks` and `infer` lies a folder of their name.
fn folder_of(given: &Path) -> PathBuf {
    if !given.is_file() {
        return given.to_owned();
    }
    // An earlier version put endings away that are not `.json`, too.
    let named = [beside(given, "report"), given.with_extension("report"), given.with_extension("")];
    let above = || given.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    named.into_iter().find(|folder| folder.join(SUMMARY).is_file()).unwrap_or_else(|| above().to_owned())
}

/// The newest folder of results in a folder that holds none itself, such as where `infer` makes one for each run.
fn results_within(dir: &Path) -> Option<PathBuf> {
    let folders = std::fs::read_dir(dir).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let has_results = |folder: &PathBuf| folder.join(SUMMARY).is_file();
    folders.filter(has_results).max_by_key(|folder| folder.metadata().and_then(|of| of.modified()).ok())
}
