//! The tables that have figures of their own, in the order of a report.

use super::spec::Spec;
use super::{
    conversion, dataloader, dataset, generic, inference, loop_, storage, storage_compression, storage_layout,
    tasks,
};

/// The figures made for one table each, in the order of a report. One line each; all other tables get
/// [`generic::sections`] and come after these.
static SPECS: [&Spec; 12] = [
    &storage::SPEC,
    &storage_compression::SPEC,
    &storage_layout::SPEC,
    &dataset::SPEC,
    &dataloader::SPEC,
    &loop_::SPEC,
    &conversion::SPEC,
    &inference::SPEC,
    &tasks::SUMMARY,
    &tasks::COMPARED,
    &tasks::SPEC,
    &tasks::LOSS,
];

pub(super) fn spec(table: &str) -> Option<&'static Spec> {
    SPECS.iter().copied().find(|s| s.table == table)
}

/// The place of a table in a report: those with a figure of their own first, in the order of [`SPECS`].
pub(crate) fn rank(table: &str) -> usize {
    SPECS.iter().position(|s| s.table == table).unwrap_or(SPECS.len())
}

/// The heading of a table's part of a report; a table without a figure of its own is called by its name.
pub(crate) fn heading(table: &str) -> String {
    spec(table).map_or_else(|| table.to_owned(), |s| s.heading.to_owned())
}

/// How to read the figure of a table, for people who see such a figure for the first time.
pub fn how_to_read(table: &str) -> &'static str {
    spec(table).map_or(generic::HOW_TO_READ, |s| s.how_to_read)
}
