//! The gain of more workers: the throughput of each run beside that of the same round without any.

use crate::roofline;
use wellread_report::{Cell, Table};

/// Adds `scaling_efficiency`, which needs the run of the same round without workers.
pub(super) fn with_scaling(table: &Table, cores: usize) -> Table {
    let find = |row: usize| {
        (0..table.rows()).find(|&other| {
            ["format", "framework", "loader", "batch_size", "cache", "run"]
                .iter()
                .all(|k| table.cell(k, other) == table.cell(k, row))
                && table.f64("workers", other) == Some(0.0)
        })
    };
    let mut out = Table::new(table.name());
    for row in 0..table.rows() {
        let mut cells: Vec<(String, Cell)> =
            table.columns().iter().map(|c| (c.name().to_owned(), table.cell(c.name(), row))).collect();
        let efficiency = (|| {
            let threads = roofline::readers(table, row)?.min(cores as f64);
            let base = table.f64("samples_per_sec", find(row)?)?;
            Some(table.f64("samples_per_sec", row)? / base / threads)
        })();
        cells.push(("scaling_efficiency".to_owned(), efficiency.map_or(Cell::Null, Cell::from)));
        out.push(cells);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_report::row;

    #[test]
    fn scaling_is_relative_to_no_workers_of_the_same_run() {
        let mut table = Table::new("dataloader");
        for (workers, threads, rate) in [(0, 1, 100.0), (1, 2, 150.0), (8, 9, 200.0)] {
            table.push(row![
                ("format", "tiff"),
                ("batch_size", 16),
                ("workers", workers),
                ("readers", threads),
                ("run", 0),
                ("samples_per_sec", rate)
            ]);
        }
        let scaled = with_scaling(&table, 4);
        assert_eq!(scaled.f64("scaling_efficiency", 0), Some(1.0));
        assert_eq!(scaled.f64("scaling_efficiency", 1), Some(0.75));
        assert_eq!(scaled.f64("scaling_efficiency", 2), Some(0.5), "of the four cores");
    }
}
