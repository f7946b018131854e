//! `wellread report DIR`

use crate::output::{Failure, Outcome, Ui};
use std::path::PathBuf;
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
    let input = ReportInput::from_dir(&args.dir).map_err(failed)?;
    wellread_report::write_figures(&args.dir, &input).map_err(failed)?;
    wellread_report::write_report(&args.dir, &input).map_err(failed)?;
    let path = args.dir.join("report.html");
    ui.document(&serde_json::json!({ "report": path, "tables": input.tables.iter().map(Table::name).collect::<Vec<_>>() }))?;
    if !ui.json {
        ui.say(format!("Report: {}", path.display()));
    }
    Ok(())
}
