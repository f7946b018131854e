//! One side of a comparison: results of one process or of many, read as one.
//!
//! ```text
//!  A1, A2, A3 ──results──▶ Results each ──▶ each run once? ──▶ same pixels? ──▶ rows numbered by process ──▶ one Results
//! ```
//!
//! A folder of `bench --processes N` has a row of each process for a configuration, a folder without is one process, whose rows
//! are its rounds. Each repeat of `tasks` is a process.

use crate::Results;
use crate::provenance::{self, Weight};
use crate::results::{PROCESS, TASKS, UsageError};
use crate::rounds::append;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use wellread_report::{Cell, Table, columns};

/// Reads a side: a file or folder, or several that were measured alike, whose processes are counted together.
///
/// # Errors
/// As [`Results::open`], and results of other pixels than the first. A [`UsageError`] where a run is given twice, or a copy of it.
pub fn open(paths: &[&Path]) -> Result<Results> {
    let read = paths.iter().map(|path| Results::open(path)).collect::<Result<Vec<_>>>()?;
    each_once(paths, &read)?;
    let mut side: Option<Results> = None;
    for (path, other) in paths.iter().zip(read) {
        match &mut side {
            None => side = Some(numbered(other, 0)),
            Some(first) => {
                let differences = provenance::differences(first, &other);
                if let Some(fatal) = differences.iter().find(|d| d.weight == Weight::Fatal) {
                    bail!(
                        "{}: {} differs from that of {} ({} / {}); one side is measured on the same images",
                        path.display(),
                        fatal.what,
                        paths[0].display(),
                        fatal.b,
                        fatal.a
                    );
                }
                add(first, other);
            }
        }
    }
    side.context("no results are named")
}

/// Checks that each run is given once: a run that is given twice counts as two processes, and is one.
fn each_once(paths: &[&Path], read: &[Results]) -> Result<()> {
    for (second, results) in read.iter().enumerate() {
        if let Some(first) = read[..second].iter().position(|other| other.is_same_run(results)) {
            bail!(UsageError(format!(
                "{} and {} are the same run, and stand on one side of the comparison. A run given twice is no further process; name \
                 each result once",
                paths[first].display(),
                paths[second].display()
            )));
        }
    }
    Ok(())
}

/// Adds the processes of `other`.
fn add(side: &mut Results, other: Results) {
    let other = numbered(other, side.processes);
    side.label = format!("{}, {}", side.label, other.label);
    side.processes += other.processes;
    let nodes = provenance::node_kinds(side, &other);
    if !nodes.is_empty() {
        side.details.insert("nodes".to_owned(), nodes.into_iter().collect());
    }
    for (name, floor) in other.noise_floors {
        let largest = side.noise_floors.entry(name).or_insert(floor);
        *largest = largest.max(floor);
    }
    other.tables.iter().for_each(|table| append(&mut side.tables, table));
}

/// The same with [`PROCESS`] in every row, from `first` on, and their number.
fn numbered(mut results: Results, first: usize) -> Results {
    let of_folder = results.detail("/configuration/processes").and_then(Value::as_u64).unwrap_or(1);
    let mut processes = 1;
    for table in &mut results.tables {
        let is_each = of_folder > 1 || table.name() == TASKS;
        let mut out = Table::new(table.name());
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let keys = columns::keys(table);
        for row in 0..table.rows() {
            let key: Vec<String> = keys.iter().map(|key| table.cell(key, row).text()).collect();
            let next = seen.entry(key.join("\0")).or_insert(0);
            let process = if is_each { *next } else { 0 };
            *next += 1;
            processes = processes.max(process + 1);
            let columns = table.columns().iter().filter(|column| column.name() != PROCESS);
            let cells = columns.map(|column| (column.name(), table.cell(column.name(), row)));
            out.push(cells.chain([(PROCESS, Cell::from(first + process))]));
        }
        *table = out;
    }
    results.processes = processes;
    results
}
