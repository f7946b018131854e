//! Which rows of a table a figure shows: its series, the values of its columns, and the rows that have them.

use crate::chart::{Series, color};
use crate::number;
use crate::table::{Cell, Table};
use crate::words::plural;

/// Formats of a figure at most.
pub(super) const MAX_FORMATS: usize = 100;

/// The formats of a table in the order of every figure, as many as one draws.
pub(super) fn formats(table: &Table) -> Vec<(Series, Cell)> {
    let formats = sorted(table, "format", &color::known_formats().collect::<Vec<_>>());
    formats.into_iter().take(MAX_FORMATS).map(|format| (Series::from(format.text()), format)).collect()
}

/// How many formats of a table its figure does not draw, if there are such.
pub(super) fn not_drawn(table: &Table) -> Option<String> {
    let all = table.distinct("format").len();
    (all > MAX_FORMATS).then(|| {
        format!(
            "The first {MAX_FORMATS} of {} formats are drawn; the table has all.",
            number::count(all as i64)
        )
    })
}

/// The series of a table: its formats in the order of every figure, split by compression where a format comes
/// with several. Each has the values that choose its rows.
pub(super) fn series(table: &Table) -> Vec<(Series, Vec<(&'static str, Cell)>)> {
    if has(table, "loader") { loaders(table) } else { series_by(table, "compression") }
}

/// The series of a table that holds several frameworks: each format once per framework and loader.
pub(super) fn loaders(table: &Table) -> Vec<(Series, Vec<(&'static str, Cell)>)> {
    let mut all = vec![];
    let groups = table.groups(&["format", "framework", "loader"]);
    for (Series { name, slot }, format) in formats(table) {
        for group in groups.iter().filter(|group| group.key[0] == format) {
            let [_, framework, loader] = &group.key[..] else { continue };
            let own = framework.text() == "rust";
            let parts = [name.clone(), framework.text(), if own { String::new() } else { loader.text() }];
            let name = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ");
            let which = ["format", "framework", "loader"].into_iter().zip(group.key.iter().cloned());
            all.push((Series { name, slot }, which.collect()));
        }
    }
    all
}

/// The series of a table: formats, each once per value of `column` where it has several.
pub(super) fn series_by(table: &Table, column: &'static str) -> Vec<(Series, Vec<(&'static str, Cell)>)> {
    let mut all = vec![];
    let groups = table.groups(&["format", column]);
    for (Series { name, slot }, format) in formats(table) {
        let of: Vec<_> = groups.iter().filter(|g| g.key[0] == format).collect();
        let values: Vec<_> = of.iter().map(|g| g.key[1].clone()).filter(|c| *c != Cell::Null).collect();
        if values.len() < 2 {
            all.push((Series { name, slot }, vec![("format", format)]));
            continue;
        }
        for value in values {
            let name = format!("{name} ({})", value.text());
            all.push((Series { name, slot }, vec![("format", format.clone()), (column, value)]));
        }
    }
    all
}

/// The values of a column: numbers ascending, texts in the given order and then as they come.
pub(super) fn sorted(table: &Table, column: &str, order: &[&str]) -> Vec<Cell> {
    let mut values = table.distinct(column);
    let rank = |c: &Cell| order.iter().position(|o| *o == c.text()).unwrap_or(order.len());
    values.sort_by(|a, b| match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => rank(a).cmp(&rank(b)),
    });
    values
}

/// The same, with a null in place of nothing, for columns that a table may lack.
pub(super) fn facet(table: &Table, column: &'static str, order: &[&str]) -> Vec<(&'static str, Cell)> {
    let values = sorted(table, column, order);
    if values.is_empty() {
        return vec![(column, Cell::Null)];
    }
    values.into_iter().map(|v| (column, v)).collect()
}

/// Every combination of the values of two facets.
pub(super) fn cross(
    a: &[(&'static str, Cell)],
    b: &[(&'static str, Cell)],
) -> Vec<[(&'static str, Cell); 2]> {
    a.iter().flat_map(|a| b.iter().map(|b| [a.clone(), b.clone()])).collect()
}

/// The subject of a panel, for its title: the values that are not null.
pub(super) fn facet_title(facets: &[(&'static str, Cell)], write: impl Fn(&str, &Cell) -> String) -> String {
    let known = facets.iter().filter(|f| f.1 != Cell::Null).map(|(name, value)| write(name, value));
    known.filter(|t| !t.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The rows with all these values. A null in `which` asks for nothing.
pub(super) fn rows(table: &Table, which: &[(&'static str, Cell)]) -> Vec<usize> {
    let matches =
        |r: &usize| which.iter().all(|(name, value)| *value == Cell::Null || table.cell(name, *r) == *value);
    (0..table.rows()).filter(matches).collect()
}

/// Why what `which` asks for could not be measured, if a row says so. A row whose value is null speaks for all
/// values.
pub(super) fn reason(table: &Table, which: &[(&'static str, Cell)]) -> Option<String> {
    let speaks = |r: &usize| {
        which.iter().all(|(name, value)| {
            let cell = table.cell(name, *r);
            *value == Cell::Null || cell == Cell::Null || cell == *value
        })
    };
    (0..table.rows()).filter(speaks).find_map(|r| table.unavailable(r))
}

/// Whether any row has a value of this column.
pub(super) fn has(table: &Table, column: &str) -> bool {
    table.column(column).is_some_and(|c| !c.is_empty())
}

/// The things that the rates and batches of a table count: crops, where it has several of each image.
pub(super) fn thing(table: &Table) -> &'static str {
    if has(table, "crops") { "crop" } else { "image" }
}

/// `1 worker`, `4 workers`.
pub(super) fn counted(cell: &Cell, thing: &str) -> String {
    match cell {
        Cell::I64(1) => format!("1 {thing}"),
        Cell::I64(n) => format!("{} {}", number::count(*n), plural(thing)),
        other => format!("{} {}", other.text(), plural(thing)),
    }
}
