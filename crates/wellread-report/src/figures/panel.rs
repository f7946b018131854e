//! From rows to marks, panels and sections.

use super::select::{reason, rows, thing};
use crate::chart::{Axis, Layout, Mark, Panel, Section, Series};
use crate::columns::{self, Better};
use crate::number::Unit;
use crate::table::{Cell, Table};

/// The mark of a quantity: its value, else why there is none.
pub(super) fn mark(table: &Table, which: &[(&'static str, Cell)], quantity: &str) -> Mark {
    match table.estimate(quantity, &rows(table, which)) {
        Some(estimate) => Mark::Value(estimate),
        None => reason(table, which).map_or(Mark::Nothing, Mark::Unavailable),
    }
}

/// The values of two quantities that make sense only together, else the mark that says why they are missing.
pub(super) fn pair(
    table: &Table,
    which: &[(&'static str, Cell)],
    quantities: [&str; 2],
) -> Result<[f64; 2], Mark> {
    match quantities.map(|q| mark(table, which, q)) {
        [Mark::Value(a), Mark::Value(b)] => Ok([a.value, b.value]),
        [Mark::Value(_), other] | [other, _] => {
            Err(if let Mark::Value(_) = other { Mark::Nothing } else { other })
        }
    }
}

/// An axis for a column, its title saying which way is better.
pub(super) fn axis(column: &str) -> Axis {
    let q = columns::quantity(column);
    let better = match q.better {
        Better::Higher => ", more is better",
        Better::Lower => ", less is better",
        Better::Neither => "",
    };
    Axis { better: q.better, ..Axis::new(format!("{}{better}", q.label), q.unit) }
}

/// The same of a table of loaders, whose rates may be of crops.
pub(super) fn axis_of_loaders(table: &Table, column: &str) -> Axis {
    let axis = axis(column);
    let counts_crops = axis.unit == Unit::PerSecond("images") && thing(table) == "crop";
    if counts_crops { Axis { unit: Unit::PerSecond("crops"), ..axis } } else { axis }
}

/// A panel of one quantity by series and variant.
pub(super) fn bars(
    table: &Table,
    title: String,
    column: &str,
    series: &[(Series, Vec<(&'static str, Cell)>)],
    variants: &[(&'static str, Cell)],
    facets: &[(&'static str, Cell)],
) -> Panel {
    let marks = series.iter().flat_map(|(_, which)| {
        variants.iter().map(move |v| {
            let which: Vec<_> = which.iter().chain([v]).chain(facets).cloned().collect();
            mark(table, &which, column)
        })
    });
    Panel { title, axis: axis(column), marks: marks.collect() }
}

/// A section of rows, the best first; the layout's names are taken from series and variants.
pub(super) fn rows_section(
    title: impl Into<String>,
    series: &[(Series, Vec<(&'static str, Cell)>)],
    variants: &[String],
    mut panels: Vec<Panel>,
    columns: usize,
) -> Section {
    let each = variants.len().max(1);
    let order = by_result(series.len(), each, &panels);
    for panel in &mut panels {
        panel.marks.resize(series.len() * each, Mark::Nothing);
        panel.marks =
            order.iter().flat_map(|&row| panel.marks[row * each..(row + 1) * each].to_vec()).collect();
    }
    let series = order.iter().map(|&row| series[row].0.clone()).collect();
    Section {
        title: title.into(),
        layout: Layout::Rows { series, variants: variants.to_vec() },
        panels,
        columns,
        share_axis: false,
    }
}

/// The order of `rows` by their results in the first panel. A row that has none there comes after those that have one,
/// in the order of the panels after it. Rows that are alike, and those of panels whose quantity is neither good nor
/// bad, stay in order.
fn by_result(rows: usize, each: usize, panels: &[Panel]) -> Vec<usize> {
    let telling: Vec<&Panel> = panels.iter().filter(|panel| panel.axis.better != Better::Neither).collect();
    let compare = |a: usize, b: usize| {
        for panel in &telling {
            for variant in 0..each {
                let value = |row: usize| panel.marks.get(row * each + variant).and_then(value_of);
                let found = match (value(a), value(b)) {
                    (Some(a), Some(b)) if panel.axis.better == Better::Higher => b.total_cmp(&a),
                    (Some(a), Some(b)) => a.total_cmp(&b),
                    (a, b) => b.is_some().cmp(&a.is_some()),
                };
                if found.is_ne() {
                    return found;
                }
            }
        }
        std::cmp::Ordering::Equal
    };
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by(|&a, &b| compare(a, b));
    order
}

/// The value that a mark is sorted by.
pub(super) fn value_of(mark: &Mark) -> Option<f64> {
    match mark {
        Mark::Value(estimate) => Some(estimate.value),
        Mark::Spread(spread) => spread.p50,
        Mark::Stack { parts, .. } => Some(parts.iter().map(|part| part.1).sum()),
        Mark::Sample(sample) => sample.median(),
        Mark::Nothing | Mark::Unavailable(_) => None,
    }
    .filter(|value| value.is_finite())
}
