//! The figure of a table that nobody made one for: a row per configuration, a panel per quantity.

use super::notes::configuration_name;
use super::panel;
use crate::chart::{Layout, Mark, Panel, Section, Series, color};
use crate::columns;
use crate::table::{Cell, Table};
use crate::words::counted;

/// Most rows; the table in the report has them all.
const MAX_ROWS: usize = 40;
/// Most panels.
const MAX_PANELS: usize = 9;

pub(super) const HOW_TO_READ: &str = "Each row is a configuration, each panel a measured quantity whose title says \
    which way is better; the whisker is the uncertainty of the median. On a logarithmic axis every labelled step is \
    a multiple, so a small distance can be a large difference.";

/// Quantities with columns of their interval, which the benchmark chose to judge by, or all where none has them.
pub(super) fn sections(table: &Table) -> Vec<Section> {
    let keys = columns::keys(table);
    let quantities = columns::quantities(table);
    let all = columns::configurations(table, &keys, &quantities);
    let sure = |q: usize| {
        let ends = table.column(&format!("{}_ci_low", quantities[q].column));
        ends.is_some_and(|column| !column.is_empty())
    };
    let mut shown: Vec<usize> = (0..quantities.len()).filter(|&q| sure(q)).collect();
    if shown.is_empty() {
        shown = (0..quantities.len()).collect();
    }
    shown.truncate(MAX_PANELS);
    let rows = &all[..all.len().min(MAX_ROWS)];
    let series = rows.iter().map(|c| Series {
        name: Some(configuration_name(&c.group.key))
            .filter(|n| !n.is_empty())
            .unwrap_or_else(|| "all".into()),
        slot: color::slot(&c.group.key.first().map(Cell::text).unwrap_or_default()),
    });
    let panels = shown.iter().map(|&q| Panel {
        title: quantities[q].label.clone(),
        axis: panel::axis(&quantities[q].column),
        marks: rows
            .iter()
            .map(|c| match (c.estimates[q], &c.unavailable) {
                (Some(estimate), _) => Mark::Value(estimate),
                (None, Some(why)) => Mark::Unavailable(why.clone()),
                (None, None) => Mark::Nothing,
            })
            .collect(),
    });
    // The rows' names are values alone: say here of what.
    let named: Vec<_> = keys.iter().map(|key| key.replace('_', " ")).collect();
    let mut title = if named.is_empty() { "Measured".to_owned() } else { format!("By {}", named.join(", ")) };
    if rows.len() < all.len() {
        let all = counted(all.len(), "configuration");
        title += &format!(": the first {} of {all}; the table has all", rows.len());
    }
    vec![Section {
        title,
        panels: if rows.is_empty() { vec![] } else { panels.collect() },
        layout: Layout::Rows { series: series.collect(), variants: vec![String::new()] },
        columns: 3,
        share_axis: false,
    }]
}
