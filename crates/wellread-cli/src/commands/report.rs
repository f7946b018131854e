//! `wellread report DIR`

use crate::output::{Failure, Outcome, Ui};
use std::path::{Path, PathBuf};
use wellread_measure::path_text::text;
use wellread_report::summary::FILE_NAME as SUMMARY;
use wellread_report::{ReportInput, Table};

/// Makes plots and report.html again from the tables and summary.json in a results folder.
#[derive(clap::Args)]
#[command(after_help = "\
Makes plots and report.html again from the tables and summary.json in a results folder.

Example:
  wellread report results")]
pub struct Args {
    /// A results folder.
    dir: PathBuf,
}

pub fn run(args: &Args, ui: Ui) -> Outcome {
    let failed = |e: wellread_report::Error| Failure::Failed(e.to_string());
    let input = ReportInput::from_dir(&args.dir).map_err(|error| {
        let hint = results_within(&args.dir).map(|inner| format!("; {} holds results", inner.display()));
        Failure::Failed(format!("{error}{}", hint.unwrap_or_default()))
    })?;
    wellread_report::write_figures(&args.dir, &input).map_err(failed)?;
    wellread_report::write_report(&args.dir, &input).map_err(failed)?;
    let path = args.dir.join("report.html");
    ui.document(&serde_json::json!({ "report": text(&path), "tables": input.tables.iter().map(Table::name).collect::<Vec<_>>() }))?;
    if !ui.json {
        ui.say(format!("Report: {}", path.display()));
    }
    Ok(())
}

/// The newest folder of results in a folder that holds none itself, such as where `infer` makes one for each run.
fn results_within(dir: &Path) -> Option<PathBuf> {
    let folders = std::fs::read_dir(dir).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let has_results = |folder: &PathBuf| folder.join(SUMMARY).is_file();
    folders.filter(has_results).max_by_key(|folder| folder.metadata().and_then(|of| of.modified()).ok())
}
