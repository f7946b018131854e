//! The table of tasks: a CSV file as upstream's benchmark scripts have it.
//!
//! ```text
//!  train:      branch,experiment,trainer,max_epochs,batch_size,overrides
//!  inference:  branch,experiment,checkpoint_path,data_path,trainer,batch_size,overrides
//! ```
//!
//! Columns are found by their names, in any order; only `branch` and `experiment` must be there, and an empty field is
//! what the experiment says. Lines that begin with `#` are comments. Overrides are `key=value`, separated by commas:
//! the field is quoted when there are several. Fields beyond the last column count as further overrides too, so that
//! `a=1,b=2` without quotes at the end of a row means the same. Commas within brackets or quotes of a value do not
//! separate.

mod fields;

use crate::nearest::nearest;
use crate::task::{Row, Trainer};
use anyhow::{Context as _, Result, anyhow, bail};
use fields::{Field, Problem, Record, records};
use std::path::Path;

/// The columns that are understood.
const COLUMNS: [&str; 8] = [
    "branch",
    "experiment",
    "trainer",
    "max_epochs",
    "batch_size",
    "checkpoint_path",
    "data_path",
    "overrides",
];
/// Largest file that is read as a table of tasks.
const MAX_TABLE_BYTES: u64 = 16 << 20;
/// Most tasks of a table.
const MAX_TASKS: usize = 10_000;
/// Largest number of epochs or images per batch.
const MAX_COUNT: u32 = 1_000_000;

/// Reads a table. A row of which branch and experiment are known keeps what is wrong with it as its
/// [`problem`](Row::problem).
///
/// # Errors
/// A file that cannot be read; line and column of what is wrong in it otherwise.
pub fn read(path: &Path) -> Result<Vec<Row>> {
    let name = path.display();
    let about = path.metadata().with_context(|| format!("cannot read the table {name}"))?;
    if about.is_dir() {
        bail!("{name} is a folder; --config names a CSV file of tasks");
    }
    if about.len() > MAX_TABLE_BYTES {
        bail!("{name} is no table of tasks: it has {} MiB", about.len() >> 20);
    }
    let bytes = std::fs::read(path).with_context(|| format!("cannot read the table {name}"))?;
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = before.split(|byte| *byte == b'\n').count();
        let begun = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        let column = String::from_utf8_lossy(begun).chars().count() + 1;
        anyhow!("{name}, line {line}, column {column}: not UTF-8 text; save the table as CSV in UTF-8")
    })?;
    rows(text).map_err(|problem| anyhow!("{name}, {problem}"))
}

/// The rows of a table's text, all of them understood; else line, column and what is wrong.
///
/// # Errors
/// As said.
pub fn parse(text: &str) -> Result<Vec<Row>, String> {
    let rows = rows(text).map_err(|problem| problem.to_string())?;
    match rows.iter().find_map(|row| row.problem.clone()) {
        Some(problem) => Err(problem),
        None => Ok(rows),
    }
}

fn rows(text: &str) -> Result<Vec<Row>, Problem> {
    let mut records = records(text)?.into_iter();
    let header = records.next().ok_or_else(|| Problem {
        line: 1,
        column: 1,
        what: format!("the table is empty; its first row names the columns: {}", COLUMNS.join(",")),
    })?;
    let columns = columns(&header)?;
    let rows: Vec<Row> = records
        .map(|record| row(&columns, &record).or_else(|problem| misunderstood(&columns, &record, problem)))
        .collect::<Result<_, _>>()?;
    let problem = |what: String| Problem { line: header.line, column: 1, what };
    if rows.is_empty() {
        return Err(problem("the table has no tasks below its header".into()));
    }
    if rows.len() > MAX_TASKS {
        return Err(problem(format!("{} tasks are too many: {MAX_TASKS} at most", rows.len())));
    }
    Ok(rows)
}

/// The names of the columns.
fn columns(header: &Record) -> Result<Vec<&'static str>, Problem> {
    let mut columns: Vec<&'static str> = Vec::new();
    for field in &header.fields {
        let problem = |what: String| Problem { line: header.line, column: field.column, what };
        let name = field.text.to_lowercase();
        let Some(known) = COLUMNS.into_iter().find(|known| *known == name) else {
            let all = COLUMNS.map(str::to_owned);
            let near = nearest(&name, &all, 1);
            let meant = match near.first() {
                _ if name.contains([';', '\t']) => {
                    "; the fields of a table are separated by commas.".to_owned()
                }
                Some(near) => format!("; did you mean {near}?"),
                None => ".".to_owned(),
            };
            return Err(problem(format!(
                "{:?} is no column{meant} The first row names the columns, of {}",
                field.text,
                COLUMNS.join(", ")
            )));
        };
        if columns.contains(&known) {
            return Err(problem(format!("the column {known} is there twice")));
        }
        columns.push(known);
    }
    for needed in ["branch", "experiment"] {
        if !columns.contains(&needed) {
            let what = format!("the column {needed} is missing from the header");
            return Err(Problem { line: header.line, column: 1, what });
        }
    }
    Ok(columns)
}

fn row(columns: &[&'static str], record: &Record) -> Result<Row, Problem> {
    let end = record.fields.last().map_or(1, |last| last.column);
    let field = |name: &str| -> Option<&Field> {
        let at = columns.iter().position(|column| *column == name)?;
        record.fields.get(at).filter(|field| !field.text.is_empty())
    };
    let problem = |name: &str, column: usize, what: String| Problem {
        line: record.line,
        column,
        what: format!("{name}: {what}"),
    };
    let text = |name: &str| {
        field(name).map(|field| field.text.clone()).ok_or_else(|| {
            let at = columns.iter().position(|column| *column == name).unwrap_or(0);
            problem(name, record.fields.get(at).map_or(end, |f| f.column), "the field is empty".into())
        })
    };
    let number = |name: &str| -> Result<Option<u32>, Problem> {
        let Some(field) = field(name) else { return Ok(None) };
        let number = field.text.parse().ok().filter(|n| (1..=MAX_COUNT).contains(n));
        let what = || format!("{:?} is no whole number from 1 to {MAX_COUNT}", field.text);
        number.map(Some).ok_or_else(|| problem(name, field.column, what()))
    };
    let trainer = match field("trainer") {
        None => None,
        Some(field) => {
            let name = field.text.to_lowercase();
            let known = Trainer::ALL.into_iter().find(|trainer| trainer.name() == name);
            let what = || format!("{:?} is no trainer; there are gpu, cpu, ddp", field.text);
            Some(known.ok_or_else(|| problem("trainer", field.column, what()))?)
        }
    };
    Ok(Row {
        line: record.line,
        branch: text("branch")?,
        experiment: text("experiment")?,
        trainer,
        max_epochs: number("max_epochs")?,
        batch_size: number("batch_size")?,
        checkpoint_path: field("checkpoint_path").map(|field| field.text.clone()),
        data_path: field("data_path").map(|field| field.text.clone()),
        overrides: overrides(columns.len(), field("overrides"), record)?,
        problem: None,
    })
}

/// A row with a mistake, of which branch and experiment are known; else the mistake.
fn misunderstood(columns: &[&'static str], record: &Record, problem: Problem) -> Result<Row, Problem> {
    let text = |name: &str| {
        let at = columns.iter().position(|column| *column == name)?;
        record.fields.get(at).map(|field| field.text.clone()).filter(|text| !text.is_empty())
    };
    let (Some(branch), Some(experiment)) = (text("branch"), text("experiment")) else { return Err(problem) };
    Ok(Row {
        line: record.line,
        branch,
        experiment,
        trainer: None,
        max_epochs: None,
        batch_size: None,
        checkpoint_path: text("checkpoint_path"),
        data_path: text("data_path"),
        overrides: Vec::new(),
        problem: Some(problem.to_string()),
    })
}

/// The overrides of a row: those of its field, and of all fields beyond the last column.
fn overrides(columns: usize, own: Option<&Field>, record: &Record) -> Result<Vec<String>, Problem> {
    let beyond = record.fields.get(columns..).unwrap_or_default();
    let pieces: Vec<&Field> = own.into_iter().chain(beyond).filter(|field| !field.text.is_empty()).collect();
    let Some(first) = pieces.first() else { return Ok(Vec::new()) };
    let joined: Vec<&str> = pieces.iter().map(|field| field.text.as_str()).collect();
    let problem = |column: usize, what: String| Problem {
        line: record.line,
        column,
        what: format!("overrides: {what}"),
    };
    let parts = split(&joined.join(",")).map_err(|what| problem(first.column, what))?;
    for part in &parts {
        // "~key" is Hydra's way to take a setting away.
        let named = part.split_once('=').is_some_and(|(key, _)| !key.trim().is_empty())
            || part.strip_prefix('~').is_some_and(|key| !key.is_empty());
        if !named {
            let at = pieces.iter().find(|field| field.text.contains(part.as_str())).unwrap_or(first);
            let more = if beyond.is_empty() {
                String::new()
            } else {
                format!(" (the row has {} fields and the table {columns} columns)", record.fields.len())
            };
            return Err(problem(at.column, format!("{part:?} is not key=value{more}")));
        }
    }
    Ok(parts)
}

/// Splits at commas that are not within brackets or quotes.
fn split(text: &str) -> Result<Vec<String>, String> {
    let mut parts = vec![String::new()];
    let mut open: Vec<char> = Vec::new();
    let mut quote: Option<char> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(_), '\\') => {
                let escaped = chars.next();
                parts.last_mut().into_iter().for_each(|part| {
                    part.push(c);
                    part.extend(escaped);
                });
                continue;
            }
            (Some(q), _) if q == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '(') => open.push(')'),
            (None, '[') => open.push(']'),
            (None, '{') => open.push('}'),
            (None, ')' | ']' | '}') if open.pop() != Some(c) => {
                return Err(format!("{c:?} closes nothing in {text:?}"));
            }
            (None, ',') if open.is_empty() => {
                parts.push(String::new());
                continue;
            }
            (Some(_) | None, _) => {}
        }
        parts.last_mut().into_iter().for_each(|part| part.push(c));
    }
    if let Some(missing) = quote.or(open.last().copied()) {
        return Err(format!("{missing:?} is missing in {text:?}"));
    }
    Ok(parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect())
}

#[cfg(test)]
mod tests;
