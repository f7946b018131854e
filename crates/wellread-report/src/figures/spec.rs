//! The registration of a figure of one table, and of the chart that a report about it begins with.

use crate::chart::Section;
use crate::table::Table;

/// How a table is shown: one value per benchmark, in the file that draws it.
pub(super) struct Spec {
    /// Name of the table.
    pub(super) table: &'static str,
    /// Heading of its part of the report.
    pub(super) heading: &'static str,
    /// Title of its figure.
    pub(super) title: &'static str,
    /// For people who see such a figure for the first time.
    pub(super) how_to_read: &'static str,
    /// Draws.
    pub(super) sections: fn(&Table) -> Vec<Section>,
}

/// The part of a table's figure that answers a report's question.
pub(super) struct Answer {
    /// Name of the table.
    pub(super) table: &'static str,
    /// Title of the chart.
    pub(super) title: &'static str,
    /// For people who see such a chart for the first time.
    pub(super) how_to_read: &'static str,
    /// Draws.
    pub(super) sections: fn(&Table) -> Vec<Section>,
}
