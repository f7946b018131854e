//! Runs that were measured in turns: whole processes as single runs, pairs by round, noise floors by row.

use crate::Results;
use crate::judge::{Options, row_id};
use crate::series;
use anyhow::Result;
use std::collections::BTreeMap;
use wellread_measure::IntervalEstimator;
use wellread_measure::compare::NoiseFloor;
use wellread_measure::intervals::Pairing;
use wellread_measure::samples::median;
use wellread_report::{Cell, Column, Table, Values, columns};

/// Noise floors of single rows from an A/A pair: the same baseline measured twice in turns.
pub fn row_floors(a: &Results, twin: &Results, options: &Options) -> Result<BTreeMap<String, NoiseFloor>> {
    let estimator = IntervalEstimator::seeded(options.seed);
    let mut floors = BTreeMap::new();
    for table in &a.tables {
        let Some(other) = twin.tables.iter().find(|other| other.name() == table.name()) else { continue };
        let keys = series::keys(table, other);
        for quantity in series::quantities(table, other, &options.quantities)? {
            for pair in series::pairs(table, other, &keys, &quantity) {
                let (Some(a), Some(b)) = (&pair.a, &pair.b) else { continue };
                let (x, y) = series::by_run(a, b);
                if let Some(ratio) = estimator.ratio(&x, &y, Pairing::Paired) {
                    let floor = NoiseFloor::from_interval(&ratio);
                    floors.insert(row_id(table.name(), &quantity.column, &pair.key), floor);
                }
            }
        }
    }
    Ok(floors)
}

/// Remarks that are numbers: findings rest on batch sizes of which an epoch has several, and on steps that outnumber what was
/// read ahead.
const NUMBERS: [&str; 4] = ["num_samples", "seed", "steps", "batches_ahead"];

/// Adds the rows of `table` to the table of its name.
pub fn append(tables: &mut Vec<Table>, table: &Table) {
    let at = tables.iter().position(|known| known.name() == table.name()).unwrap_or_else(|| {
        tables.push(Table::new(table.name()));
        tables.len() - 1
    });
    for row in 0..table.rows() {
        tables[at].push(table.columns().iter().map(|c| (c.name(), table.cell(c.name(), row))));
    }
}

/// One row per configuration with the medians of its runs: a whole process as one run of many.
pub fn condensed(table: &Table, run: usize) -> Table {
    let keys: Vec<&str> = columns::keys(table);
    let quantities = columns::quantities(table);
    let mut out = Table::new(table.name());
    for group in table.groups(&keys) {
        let mut cells: Vec<(String, Cell)> =
            keys.iter().zip(group.key).map(|(key, value)| ((*key).to_owned(), value)).collect();
        cells.push(("run".to_owned(), Cell::from(run)));
        for quantity in &quantities {
            let values: Vec<f64> =
                group.rows.iter().filter_map(|&row| table.f64(&quantity.column, row)).collect();
            cells.push((quantity.column.clone(), Cell::from(median(&values))));
        }
        // Remarks such as the codec, which say the same in every run.
        let is_note =
            |column: &&Column| matches!(column.values(), Values::Str(_)) || NUMBERS.contains(&column.name());
        let texts = table.columns().iter().filter(is_note);
        for note in texts.map(Column::name).filter(|name| !keys.contains(name)) {
            let said = group.rows.iter().map(|&row| table.cell(note, row)).find(|cell| *cell != Cell::Null);
            cells.push((note.to_owned(), said.unwrap_or(Cell::Null)));
        }
        let some =
            |verified| group.rows.iter().any(|&row| table.cell("verified", row) == Cell::Bool(verified));
        let verified = [false, true].into_iter().find(|verified| some(*verified));
        cells.push(("verified".to_owned(), verified.map_or(Cell::Null, Cell::from)));
        out.push(cells);
    }
    out
}
