//! `wellread report DIR`

use crate::output::{Failure, Outcome, Ui};
use std::fmt::Write as _;
use std::path::PathBuf;
use wellread_report::{ReportInput, Table, columns};

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

/// A table for a terminal: the columns named, or all quantities when none is, per configuration.
pub fn text_table(table: &Table, about: &str, headline: &[&str]) -> String {
    let quantities: Vec<_> = if headline.is_empty() {
        columns::quantities(table)
    } else {
        headline.iter().map(|column| columns::quantity(column)).collect()
    };
    let keys = columns::keys(table);
    let mut lines: Vec<Vec<String>> = vec![
        keys.iter().map(|k| (*k).to_owned()).chain(quantities.iter().map(|q| q.label.clone())).collect(),
    ];
    for configuration in columns::configurations(table, &keys, &quantities) {
        let mut line: Vec<String> = configuration.group.key.iter().map(columns::key_text).collect();
        if let Some(reason) = &configuration.unavailable {
            let reason = reason.strip_prefix("unavailable: ").unwrap_or(reason);
            line.push(format!("unavailable: {reason}"));
        } else {
            line.extend(
                configuration
                    .estimates
                    .iter()
                    .zip(&quantities)
                    .map(|(e, q)| e.as_ref().map_or_else(|| "–".to_owned(), |e| q.unit.format(e.value))),
            );
        }
        if configuration.unverified {
            line.push("PIXELS DIFFER".to_owned());
        }
        lines.push(line);
    }
    let width = |c: usize| {
        lines
            .iter()
            .filter(|l| l.len() > keys.len() + 1 || c < keys.len())
            .filter_map(|l| l.get(c))
            .map(|t| t.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    let mut out = format!("{}{}{about}\n", table.name(), if about.is_empty() { "" } else { ": " });
    for line in &lines {
        out.push(' ');
        for (c, text) in line.iter().enumerate() {
            let pad = widths.get(c).copied().unwrap_or(0);
            if c < keys.len() {
                let _ = write!(out, " {text:<pad$}");
            } else {
                let _ = write!(out, "  {text:>pad$}");
            }
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}
