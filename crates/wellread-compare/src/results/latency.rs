//! The table of `wellread infer` (and of the runner that it follows) in the terms of all other tables. They are seconds, and
//! intervals in columns `…_ci_low` and `…_ci_high`.

use wellread_report::{Cell, Table};

/// Columns that tell configurations of inference apart; other texts of it are versions and remarks.
const KEYS: [&str; 7] = ["framework", "model", "batch_size", "device", "dtype", "input_shape", "data_source"];

/// Name of the table of inference, whatever its file is called.
pub(super) const NAME: &str = "inference";

/// Framework and the way it is run: as `wellread infer` names it in its own report.
pub(super) fn framework(name: &str, variant: &str) -> String {
    match variant {
        "" | "eager" | "jit" => name.to_owned(),
        variant => format!("{name} ({variant})"),
    }
}

/// The table with times in seconds. Tables of anything but inference stay as they are.
pub(super) fn in_seconds(table: Table) -> Table {
    if table.column("framework").is_none() || table.column("latency_p50_ms").is_none() {
        return table;
    }
    let mut out = Table::new(NAME);
    for row in 0..table.rows() {
        let mut cells: Vec<(String, Cell)> = Vec::new();
        for key in KEYS {
            cells.push((key.to_owned(), table.cell(key, row)));
        }
        let variant = table.str("variant", row).unwrap_or_default();
        let name = framework(&table.cell("framework", row).text(), variant);
        cells[0].1 = Cell::from(name);
        for column in table.columns() {
            if let Some((name, value)) =
                table.f64(column.name(), row).and_then(|v| quantity(column.name(), v))
            {
                cells.push((name, Cell::F64(value)));
            }
        }
        // Rows of the runner that it follows have no status.
        let failed = table.str("status", row).is_some_and(|status| status != "ok");
        cells.push(("status".to_owned(), Cell::from(if failed { "failed" } else { "ok" })));
        cells.push(("reason".to_owned(), table.cell("reason", row)));
        out.push(cells);
    }
    out
}

/// A column of measurements by its name elsewhere.
fn quantity(column: &str, value: f64) -> Option<(String, f64)> {
    let name = match column {
        "latency_p50_low_ms" => "latency_p50_s_ci_low".to_owned(),
        "latency_p50_high_ms" => "latency_p50_s_ci_high".to_owned(),
        "throughput_ips" | "end_to_end_ips" | "memory_mb" => return Some((column.to_owned(), value)),
        "compilation_time_ms" => "compilation_s".to_owned(),
        other => format!("{}_s", other.strip_suffix("_ms")?),
    };
    Some((name, value * 1e-3))
}
