//! `wellread report DIR`

use crate::output::{Failure, Outcome, Ui, WIDEST, broken};
use std::fmt::Write as _;
use std::path::PathBuf;
use wellread_report::{Cell, ReportInput, Table, columns};

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

/// Widest headings of columns, the first with which a table fits; a word is never broken.
const HEADINGS: [usize; 4] = [24, 16, 12, 8];

/// A table for a terminal, at most [`WIDEST`] columns wide: of the columns named, or all quantities when none is, those
/// that fit, per configuration. Only why something is unavailable may be longer.
pub fn text_table(table: &Table, about: &str, headline: &[&str]) -> String {
    let quantities: Vec<_> = if headline.is_empty() {
        columns::quantities(table)
    } else {
        headline.iter().map(|column| columns::quantity(column)).collect()
    };
    let keys = columns::keys(table);
    let configurations = columns::configurations(table, &keys, &quantities);
    let same = |k: usize| {
        let known = |c: &&columns::Configuration| c.unavailable.is_none() || c.group.key[k] != Cell::Null;
        let mut values = configurations.iter().filter(known).map(|c| &c.group.key[k]);
        let first = values.next();
        values.all(|value| Some(value) == first)
    };
    // What is the same everywhere is told once.
    let (shown, told): (Vec<usize>, Vec<usize>) = (0..keys.len()).partition(|&k| k == 0 || !same(k));
    let rows: Vec<(Vec<String>, Option<String>)> = configurations
        .iter()
        .map(|configuration| {
            let key = |&k: &usize| columns::key_text(&configuration.group.key[k]);
            let mut cells: Vec<String> = shown.iter().map(key).collect();
            if let Some(reason) = &configuration.unavailable {
                let reason = reason.strip_prefix("unavailable: ").unwrap_or(reason);
                return (cells, Some(format!("unavailable: {reason}")));
            }
            let estimates = configuration.estimates.iter().zip(&quantities);
            cells.extend(
                estimates.map(|(e, q)| e.as_ref().map_or_else(|| "–".to_owned(), |e| q.unit.format(e.value))),
            );
            (cells, configuration.unverified.then(|| "PIXELS DIFFER".to_owned()))
        })
        .collect();
    let keys_shown = shown.len();
    let names: Vec<String> = shown
        .iter()
        .map(|&k| keys[k].to_owned())
        .chain(quantities.iter().map(|quantity| quantity.label.clone()))
        .collect();
    // Width and heading of each column, whose heading is broken where it is wider than this and than the values.
    let headed = |limit: usize| -> Vec<(usize, Vec<String>)> {
        let column = |(c, name): (usize, &String)| {
            let cells = rows.iter().filter_map(|(cells, _)| cells.get(c));
            let values = cells.map(|text| text.chars().count()).max().unwrap_or(0);
            let lines = broken(name, Some(limit.max(values)));
            let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
            let heading = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
            (heading.max(values), lines)
        };
        names.iter().enumerate().map(column).collect()
    };
    let gap = |c: usize| if c < keys_shown { 1_usize } else { 2 };
    let total = |headed: &[(usize, Vec<String>)]| {
        headed.iter().enumerate().map(|(c, (width, _))| gap(c) + *width).sum::<usize>() + 1
    };
    let fitting = HEADINGS.into_iter().map(&headed).find(|headed| total(headed) <= WIDEST);
    let mut fitting = fitting.unwrap_or_else(|| headed(0));
    while fitting.len() > keys_shown + 1 && total(&fitting) > WIDEST {
        fitting.pop();
    }
    let mut out = format!("{}{}{about}\n", table.name(), if about.is_empty() { "" } else { ": " });
    let told: Vec<String> = told
        .into_iter()
        .filter_map(|k| {
            let value = configurations.iter().map(|c| &c.group.key[k]).find(|value| **value != Cell::Null)?;
            Some(format!("{} {}", keys[k], columns::key_text(value)))
        })
        .collect();
    if !told.is_empty() {
        let _ = writeln!(out, "  all with {}", told.join(", "));
    }
    let mut line = |cells: &[String], end: Option<&str>| {
        let mut text = " ".to_owned();
        for (c, (cell, column)) in cells.iter().zip(&fitting).enumerate() {
            let width = column.0;
            let _ = if c < keys_shown {
                write!(text, " {cell:<width$}")
            } else {
                write!(text, "  {cell:>width$}")
            };
        }
        if let Some(end) = end {
            let _ = write!(text, "  {end}");
        }
        let _ = writeln!(out, "{}", text.trim_end());
    };
    let height = fitting.iter().map(|(_, heading)| heading.len()).max().unwrap_or(0);
    for at in 0..height {
        // Headings end at the same line.
        let part = |heading: &Vec<String>| {
            (at + heading.len()).checked_sub(height).map_or_else(String::new, |i| heading[i].clone())
        };
        let parts: Vec<String> = fitting.iter().map(|(_, heading)| part(heading)).collect();
        line(&parts, None);
    }
    for (cells, end) in &rows {
        line(cells, end.as_deref());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_report::row;

    #[test]
    fn a_table_fits_a_terminal() {
        let mut table = Table::new("dataset");
        for (format, seconds) in [("parquet", 0.001), ("tiff", 0.002)] {
            table.push(row![
                ("format", format),
                ("framework", "rust"),
                ("access", "random"),
                ("p50_s", seconds),
                ("mixing", 0.5),
                ("jump", 0.25)
            ]);
        }
        table.push(row![("format", "lance"), ("status", "unavailable"), ("reason", "no engine")]);
        let text = text_table(&table, "about it", &["p50_s", "mixing", "jump"]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= WIDEST), "{text}");
        assert_eq!(lines[..2], ["dataset: about it", "  all with framework rust, access random"], "{text}");
        assert!(lines.iter().any(|line| line.ends_with("share of the set")), "{text}");
        assert!(
            lines.iter().any(|line| line.starts_with("  tiff") && line.contains("2.00\u{a0}ms")),
            "{text}"
        );
        assert_eq!(lines.last().unwrap().split_whitespace().next(), Some("lance"), "{text}");
        // Of more columns than fit, the first.
        let all = ["p50_s"; 30];
        let text = text_table(&table, "", &all);
        assert!(text.lines().all(|line| line.chars().count() <= WIDEST), "{text}");
        assert!(text.matches("p50").count() >= 5, "{text}");
    }
}
