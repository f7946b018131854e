//! The kind of a table whose file is not called after it: `base.csv` may be a copy of `dataloader.csv`.
//!
//! ```text
//!  a file's name ─▶ of a known table? as it is : the columns that tell one ─▶ its name, else the file's
//! ```

use wellread_report::Table;

/// The tables that commands write, in the order in which they are asked, and the columns that tell each. Those without columns here are
/// told by their names alone, or before ([`super::latency`]).
const KINDS: [(&str, &[&str]); 9] = [
    ("storage_compression", &["compressed_by", "operation"]),
    ("storage_layout", &["layout", "operation"]),
    ("storage", &["operation", "seconds"]),
    ("dataset", &["access", "p50_s"]),
    ("loop", &["mode", "step_p50_s"]),
    ("dataloader", &["workers", "batch_size", "samples_per_sec"]),
    ("conversion", &["path", "torch_p50_s"]),
    (super::latency::NAME, &[]),
    (super::json::TASKS, &[]),
];

/// Whether a command writes a table of this name.
pub(crate) fn is_known(name: &str) -> bool {
    KINDS.iter().any(|(kind, _)| *kind == name)
}

/// The names of the files of known tables.
pub(crate) fn file_names() -> String {
    let names: Vec<String> = KINDS
        .iter()
        .filter(|(_, columns)| !columns.is_empty())
        .map(|(kind, _)| format!("{kind}.csv"))
        .collect();
    names.join(", ")
}

/// The table under the name of the kind that its columns tell, unless it has the name of one.
pub(super) fn named_by_columns(table: Table) -> Table {
    if is_known(table.name()) {
        return table;
    }
    let is_of =
        |columns: &[&str]| !columns.is_empty() && columns.iter().all(|column| table.column(column).is_some());
    match KINDS.iter().find(|(_, columns)| is_of(columns)) {
        Some((kind, _)) => table.named(*kind),
        None => table,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_report::{Cell, row};

    fn named(name: &str, columns: &[&str]) -> String {
        let mut table = Table::new(name);
        table.push(columns.iter().map(|column| (*column, Cell::from(1.0))));
        named_by_columns(table).name().to_owned()
    }

    #[test]
    fn the_kind_of_a_copy_is_told_by_its_columns() {
        for (kind, columns) in KINDS.iter().filter(|(_, columns)| !columns.is_empty()) {
            assert_eq!(named("base", columns), *kind);
        }
        // A name that is known counts, and what no columns tell keeps its own.
        assert_eq!(named("tasks", &["operation", "seconds"]), "tasks");
        assert_eq!(named("base", &["seconds"]), "base");
        let mut table = Table::new("base");
        table.push(row![("format", "tiff"), ("access", "random"), ("p50_s", 1.0)]);
        assert_eq!(named_by_columns(table.clone()), table.named("dataset"));
    }
}
