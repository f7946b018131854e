//! The figure of each benchmark, drawn from the columns of its table.
//!
//! A table that has no figure of its own ([`SPECS`]) is drawn by [`generic`]: a new benchmark needs nothing here.
//!
//! A figure is a function of the table and of a few words about it, so the same figure comes from a benchmark
//! that has just run and from a results folder. A format whose rows say `status = unavailable` keeps its place
//! in every panel and says why.

mod conversion;
mod dataloader;
mod dataset;
pub mod decision;
mod generic;
mod inference;
mod loop_;
pub(crate) mod samples;
mod storage;
mod storage_compression;
mod storage_layout;
mod tasks;

use crate::Result;
use crate::chart::{Axis, Figure, Layout, Mark, Panel, Section, Series, color};
use crate::columns::{self, Better};
use crate::input::ReportInput;
use crate::number;
use crate::table::{Cell, IntervalKind, Table};
use crate::words::{self, plural};
use std::path::{Path, PathBuf};

/// How a table is shown: one value per benchmark, in the file that draws it.
struct Spec {
    /// Name of the table.
    table: &'static str,
    /// Heading of its part of the report.
    heading: &'static str,
    /// Title of its figure.
    title: &'static str,
    /// For people who see such a figure for the first time.
    how_to_read: &'static str,
    /// Draws.
    sections: fn(&Table) -> Vec<Section>,
}

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

fn spec(table: &str) -> Option<&'static Spec> {
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

/// The figure of a table; `None` for tables that hold nothing to show. Of `about`, only the words on images,
/// machine and noise floor are used.
pub fn figure(table: &Table, about: &ReportInput) -> Option<Figure> {
    let (title, sections) = match spec(table.name()) {
        Some(spec) => (spec.title.to_owned(), (spec.sections)(table)),
        None => (heading(table.name()), generic::sections(table)),
    };
    let sections = without_late(without_empty(sections));
    if sections.is_empty() {
        return None;
    }
    Some(Figure {
        name: table.name().to_owned(),
        title,
        subtitle: about.images.clone(),
        sections,
        notes: notes(table, about),
        description: String::new(),
    })
}

/// The sections without panels in which nothing was measured: why, the notes say. Where nothing was measured at all, the panels
/// stay and say so.
fn without_empty(mut sections: Vec<Section>) -> Vec<Section> {
    let shows =
        |panel: &Panel| panel.marks.iter().any(|mark| !matches!(mark, Mark::Nothing | Mark::Unavailable(_)));
    let any = sections.iter().flat_map(|section| &section.panels).any(shows);
    for section in &mut sections {
        if any {
            section.panels.retain(shows);
        }
    }
    sections.retain(|section| !section.panels.is_empty());
    sections
}

/// Whether a reason is want of time.
fn is_late(why: &str) -> bool {
    why.contains(columns::LEFT_OUT)
}

/// The sections without rows of which nothing was measured for want of time, which the notes count; where no other row is there,
/// all stay.
fn without_late(mut sections: Vec<Section>) -> Vec<Section> {
    let late = |mark: &Mark| matches!(mark, Mark::Unavailable(why) if is_late(why));
    for section in &mut sections {
        let Layout::Rows { series, variants } = &mut section.layout else { continue };
        let each = variants.len().max(1);
        let stays = |row: usize| {
            let marks = || {
                section.panels.iter().flat_map(move |panel| panel.marks.iter().skip(row * each).take(each))
            };
            !marks().any(late) || marks().any(|mark| !late(mark) && *mark != Mark::Nothing)
        };
        let kept: Vec<usize> = (0..series.len()).filter(|&row| stays(row)).collect();
        if kept.is_empty() {
            continue;
        }
        for panel in &mut section.panels {
            panel.marks.resize(series.len() * each, Mark::Nothing);
            panel.marks =
                kept.iter().flat_map(|&row| panel.marks[row * each..(row + 1) * each].to_vec()).collect();
        }
        *series = kept.iter().map(|&row| series[row].clone()).collect();
    }
    sections
}

/// Writes `WHAT.svg` and `WHAT.png` of every table that has a figure into a folder, and `WHAT_distribution` and
/// `WHAT_timeline` of its single measurements where they were kept; returns their paths.
///
/// # Errors
/// A file that cannot be written.
pub fn write_figures(dir: impl AsRef<Path>, input: &ReportInput) -> Result<Vec<PathBuf>> {
    let mut paths = vec![];
    let of_samples = input.samples.iter().flat_map(|s| samples::figures(s, input)).map(|(figure, _)| figure);
    for figure in input.tables.iter().filter_map(|t| figure(t, input)).chain(of_samples) {
        paths.extend(figure.write(dir.as_ref())?);
    }
    Ok(paths)
}

/// The lines at the foot: runs, what the whiskers are, machine and noise, what is not verified.
fn notes(table: &Table, about: &ReportInput) -> Vec<String> {
    let keys = columns::keys(table);
    let quantities = columns::quantities(table);
    let all = columns::configurations(table, &keys, &quantities);
    let estimates = || all.iter().flat_map(|c| c.estimates.iter().flatten());
    let mut first = String::new();
    // A percentile that few runs have has fewer than its configuration.
    let of = |c: &columns::Configuration| c.estimates.iter().flatten().map(|e| e.n).max();
    let runs = |pick: fn(usize, usize) -> usize| all.iter().filter_map(of).reduce(pick);
    if let (Some(low), Some(high)) = (runs(usize::min), runs(usize::max)) {
        first = match (low, high) {
            (1, 1) => "One run per configuration.".into(),
            (l, h) if l == h => format!("Medians of n = {h} runs per configuration."),
            (l, h) => format!("Medians of n = {l} to {h} runs per configuration."),
        };
    }
    let any = |kind| estimates().any(|e| e.interval == kind);
    first += match (any(IntervalKind::Confidence), any(IntervalKind::Range)) {
        (true, false) => {
            " Whiskers: 95 % confidence intervals; where none is seen it is narrower than the mark."
        }
        (true, true) => {
            " Whiskers: 95 % confidence intervals, or smallest to largest run where runs are too few for one."
        }
        (false, true) => " Whiskers: smallest to largest run.",
        (false, false) => "",
    };
    let mut second = about.machine.clone();
    if let Some(noise) = about.noise_floor_of(table.name()) {
        let floor = noise_text(noise);
        second += if second.is_empty() { "" } else { ". " };
        second += &format!("Noise floor (A/A): differences below {floor} are noise.");
    }
    let mut notes = vec![first, codecs(table), second];
    let late = all.iter().filter(|c| c.unavailable.as_deref().is_some_and(is_late)).count();
    let (of_time, others): (Vec<_>, Vec<_>) =
        missing(&keys, &all).into_iter().partition(|(_, why)| is_late(why));
    notes.extend(others.into_iter().map(|(who, why)| format!("{who}: {why}")));
    if late > 0 {
        // Each may have a reason of its own; the table has them.
        let why = match of_time.as_slice() {
            [(_, why)] => why.as_str(),
            _ => columns::LEFT_OUT,
        };
        notes.push(format!("{}: {why}", words::counted(late, "configuration")));
    }
    let unverified: Vec<_> = all.iter().filter(|c| c.unverified).collect();
    if let Some(some) = unverified.first() {
        let mut formats: Vec<_> =
            unverified.iter().filter_map(|c| c.group.key.first()).map(Cell::text).collect();
        formats.dedup();
        let what = match unverified.len() {
            1 => configuration_name(&some.group.key),
            n => format!("{} ({n} configurations)", formats.join(", ")),
        };
        notes.push(format!("⚠ Pixels not verified: {what}."));
    }
    notes.retain(|n| !n.is_empty());
    notes
}

/// Configurations that a line on what is missing names.
const NAMED: usize = 4;

/// What was not measured, one line per reason: the name of a framework or a format where nothing of it was, else its
/// configurations.
pub fn missing(keys: &[&str], all: &[columns::Configuration]) -> Vec<(String, String)> {
    let places: Vec<usize> =
        ["framework", "format"].iter().filter_map(|name| keys.iter().position(|key| key == name)).collect();
    let is_measured =
        |at: usize, value: &Cell| all.iter().any(|c| c.unavailable.is_none() && c.group.key[at] == *value);
    // What of it is missing altogether, the first of these keys that tells.
    let whole = |c: &columns::Configuration| {
        let key = &c.group.key;
        places
            .iter()
            .find(|&&at| key[at] != Cell::Null && !is_measured(at, &key[at]))
            .map(|&at| key[at].text())
    };
    let mut reasons: Vec<(String, Vec<String>)> = vec![];
    for c in all {
        let Some(why) = &c.unavailable else { continue };
        let why = why.strip_prefix("unavailable: ").unwrap_or(why);
        // Which feature each needs, `doctor` says.
        let why = why.split_once("; build with --features").map_or(why, |(why, _)| why);
        let name = whole(c).unwrap_or_else(|| labelled_name(keys, &c.group.key));
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => reasons.push((why.to_owned(), vec![name])),
        }
    }
    let told = |(why, names): (String, Vec<String>)| {
        let more = names.len().saturating_sub(NAMED);
        let more = if more > 1 { format!("; and {more} more") } else { String::new() };
        let shown = if more.is_empty() { names.len() } else { NAMED };
        (format!("{}{more}", names[..shown].join("; ")), why)
    };
    reasons.into_iter().map(told).collect()
}

/// The codec of each format, as far as the table knows: they differ by it as much as by anything.
fn codecs(table: &Table) -> String {
    let known: Vec<_> = table
        .groups(&["format", "codec"])
        .into_iter()
        .filter(|g| g.key[1] != Cell::Null)
        .map(|g| format!("{} {}", g.key[0].text(), g.key[1].text()))
        .collect();
    if known.is_empty() { String::new() } else { format!("Compression: {}.", known.join(", ")) }
}

/// A noise floor as text: `2.1 %`.
pub(crate) fn noise_text(noise: f64) -> String {
    format!("{}\u{a0}%", number::tick(noise * 100.0, usize::from(noise < 0.1)))
}

/// The values of a configuration's keys, joined.
pub(crate) fn configuration_name(key: &[Cell]) -> String {
    let known = key.iter().filter(|c| **c != Cell::Null).map(columns::key_text);
    known.collect::<Vec<_>>().join(", ")
}

/// The same, with the name of its column before a value that tells nothing by itself: `parquet, workers 2, cache none`.
fn labelled_name(keys: &[&str], key: &[Cell]) -> String {
    let labelled = |(name, cell): (&&str, &Cell)| {
        let text = columns::key_text(cell);
        let tells = cell.as_f64().is_none() && text != "none";
        if tells { text } else { format!("{} {text}", name.replace('_', " ")) }
    };
    let known = keys.iter().zip(key).filter(|(_, cell)| **cell != Cell::Null).map(labelled);
    known.collect::<Vec<_>>().join(", ")
}

/// The formats of a table in the order of every figure.
fn formats(table: &Table) -> Vec<(Series, Cell)> {
    let formats = sorted(table, "format", &color::known_formats().collect::<Vec<_>>());
    formats.into_iter().map(|format| (Series::from(format.text()), format)).collect()
}

/// The series of a table: its formats in the order of every figure, split by compression where a format comes
/// with several; each with the values that choose its rows.
fn series(table: &Table) -> Vec<(Series, Vec<(&'static str, Cell)>)> {
    if has(table, "loader") { loaders(table) } else { series_by(table, "compression") }
}

/// The series of a table that holds several frameworks: each format once per framework and loader.
fn loaders(table: &Table) -> Vec<(Series, Vec<(&'static str, Cell)>)> {
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
fn series_by(table: &Table, column: &'static str) -> Vec<(Series, Vec<(&'static str, Cell)>)> {
    let mut all = vec![];
    for (Series { name, slot }, format) in formats(table) {
        let of: Vec<_> =
            table.groups(&["format", column]).into_iter().filter(|g| g.key[0] == format).collect();
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
fn sorted(table: &Table, column: &str, order: &[&str]) -> Vec<Cell> {
    let mut values = table.distinct(column);
    let rank = |c: &Cell| order.iter().position(|o| *o == c.text()).unwrap_or(order.len());
    values.sort_by(|a, b| match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => rank(a).cmp(&rank(b)),
    });
    values
}

/// The same, with a null in place of nothing, for columns that a table may lack.
fn facet(table: &Table, column: &'static str, order: &[&str]) -> Vec<(&'static str, Cell)> {
    let values = sorted(table, column, order);
    if values.is_empty() {
        return vec![(column, Cell::Null)];
    }
    values.into_iter().map(|v| (column, v)).collect()
}

/// Every combination of the values of two facets.
fn cross(a: &[(&'static str, Cell)], b: &[(&'static str, Cell)]) -> Vec<[(&'static str, Cell); 2]> {
    a.iter().flat_map(|a| b.iter().map(|b| [a.clone(), b.clone()])).collect()
}

/// What a panel is of, for its title: the values that are not null.
fn facet_title(facets: &[(&'static str, Cell)], write: impl Fn(&str, &Cell) -> String) -> String {
    let known = facets.iter().filter(|f| f.1 != Cell::Null).map(|(name, value)| write(name, value));
    known.filter(|t| !t.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The rows with all these values. A null in `which` asks for nothing.
fn rows(table: &Table, which: &[(&'static str, Cell)]) -> Vec<usize> {
    let matches =
        |r: &usize| which.iter().all(|(name, value)| *value == Cell::Null || table.cell(name, *r) == *value);
    (0..table.rows()).filter(matches).collect()
}

/// Why what `which` asks for could not be measured, if a row says so. A row whose value is null speaks for all
/// values.
fn reason(table: &Table, which: &[(&'static str, Cell)]) -> Option<String> {
    let speaks = |r: &usize| {
        which.iter().all(|(name, value)| {
            let cell = table.cell(name, *r);
            *value == Cell::Null || cell == Cell::Null || cell == *value
        })
    };
    (0..table.rows()).filter(speaks).find_map(|r| table.unavailable(r))
}

/// The mark of a quantity: its value, else why there is none.
fn mark(table: &Table, which: &[(&'static str, Cell)], quantity: &str) -> Mark {
    match table.estimate(quantity, &rows(table, which)) {
        Some(estimate) => Mark::Value(estimate),
        None => reason(table, which).map_or(Mark::Nothing, Mark::Unavailable),
    }
}

/// The values of two quantities that make sense only together, else the mark that says why they are missing.
fn pair(table: &Table, which: &[(&'static str, Cell)], quantities: [&str; 2]) -> Result<[f64; 2], Mark> {
    match quantities.map(|q| mark(table, which, q)) {
        [Mark::Value(a), Mark::Value(b)] => Ok([a.value, b.value]),
        [Mark::Value(_), other] | [other, _] => {
            Err(if let Mark::Value(_) = other { Mark::Nothing } else { other })
        }
    }
}

/// Whether any row has a value of this column.
fn has(table: &Table, column: &str) -> bool {
    table.column(column).is_some_and(|c| !c.is_empty())
}

/// An axis for a column, its title saying which way is better.
fn axis(column: &str) -> Axis {
    let q = columns::quantity(column);
    let better = match q.better {
        Better::Higher => ", more is better",
        Better::Lower => ", less is better",
        Better::Neither => "",
    };
    Axis { better: q.better, ..Axis::new(format!("{}{better}", q.label), q.unit) }
}

/// A panel of one quantity by series and variant.
fn bars(
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
fn rows_section(
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

/// The order of `rows` by their results: by those of the first panel, in which a row that has none comes after those that have
/// one, in the order of the panels after it. Rows that are alike, and those of panels whose quantity is neither good nor bad,
/// stay in order.
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
fn value_of(mark: &Mark) -> Option<f64> {
    match mark {
        Mark::Value(estimate) => Some(estimate.value),
        Mark::Spread(spread) => spread.p50,
        Mark::Stack { parts, .. } => Some(parts.iter().map(|part| part.1).sum()),
        Mark::Sample(sample) => sample.median(),
        Mark::Nothing | Mark::Unavailable(_) => None,
    }
    .filter(|value| value.is_finite())
}

/// `1 worker`, `4 workers`.
fn counted(cell: &Cell, thing: &str) -> String {
    match cell {
        Cell::I64(1) => format!("1 {thing}"),
        Cell::I64(n) => format!("{} {}", number::count(*n), plural(thing)),
        other => format!("{} {}", other.text(), plural(thing)),
    }
}

#[cfg(test)]
mod tests;
