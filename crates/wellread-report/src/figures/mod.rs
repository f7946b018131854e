//! The figure of each benchmark, drawn from the columns of its table.
//!
//! A figure is a function of the table and of a few words about it, so the same figure comes from a benchmark
//! that has just run and from a results folder. A format whose rows say `status = unavailable` keeps its place
//! in every panel and says why.

mod conversion;
mod dataloader;
mod dataset;
mod loop_;
mod storage;

use crate::Result;
use crate::chart::{Axis, Block, Figure, Layout, Mark, Panel, Series, color};
use crate::columns::{self, Better};
use crate::input::ReportInput;
use crate::number;
use crate::table::{Cell, IntervalKind, Table};
use std::path::{Path, PathBuf};

/// The figure of a table, by the table's name; `None` for tables that have none or hold nothing to show.
/// Of `about`, only the words on images, machine and noise floor are used.
pub fn figure(table: &Table, about: &ReportInput) -> Option<Figure> {
    let (title, blocks) = match table.name() {
        "storage" => {
            ("Storage: how fast formats are written and read, and how small they are", storage::blocks(table))
        }
        "dataset" => ("Dataset: how long one image takes", dataset::blocks(table)),
        "dataloader" => {
            ("Data loader: batches delivered with more workers and larger batches", dataloader::blocks(table))
        }
        "loop" => ("Model loop: where the time of a step goes", loop_::blocks(table)),
        "conversion" => {
            ("Conversion: what turning host arrays into tensors costs", conversion::blocks(table))
        }
        _ => return None,
    };
    let blocks: Vec<_> = blocks.into_iter().filter(|b| !b.panels.is_empty()).collect();
    if blocks.is_empty() {
        return None;
    }
    Some(Figure {
        name: table.name().to_owned(),
        title: title.to_owned(),
        subtitle: about.images.clone(),
        blocks,
        notes: notes(table, about),
        description: String::new(),
    })
}

/// Writes `WHAT.svg` and `WHAT.png` of every table that has a figure into a folder; returns their paths.
///
/// # Errors
/// A file that cannot be written.
pub fn write_figures(dir: impl AsRef<Path>, input: &ReportInput) -> Result<Vec<PathBuf>> {
    let mut paths = vec![];
    for figure in input.tables.iter().filter_map(|t| figure(t, input)) {
        paths.extend(figure.write(dir.as_ref())?);
    }
    Ok(paths)
}

/// How to read the figure of a table, for people who see such a figure for the first time.
pub fn how_to_read(name: &str) -> Option<&'static str> {
    Some(match name {
        "storage" => {
            "Each row is a format. Reading and writing: the further right, the more images per second; full marks \
             are read from the page cache (warm), pale ones from the disk (cold). Opening and size: the further \
             left, the better. On a logarithmic axis every labelled step is a multiple, so a small distance can be \
             a large difference."
        }
        "dataset" => {
            "Each row is a format; the dot is the time that half of the images take at most (p50), the ticks those \
             that 95 and 99 of 100 images take at most. A long line to the right means that some images take much \
             longer. With a memory cache all formats are the same: what was read once is kept as it is delivered."
        }
        "dataloader" => {
            "Each line is a format; from left to right more workers load in parallel. A line that rises gains from \
             more workers; where it is flat, something else is the limit. The time of a batch is from asking for it \
             to having it. Names stand at the right, in the order of the lines."
        }
        "loop" => {
            "Each bar is a training or inference step: coloured while the model waits for data, grey while it \
             computes. Below 30 % waiting, loading is no bottleneck; from 30 to 50 % it is significant; above 50 % \
             it limits, and more workers, larger batches or another format help. The shares hold for this model: a \
             faster model waits more."
        }
        "conversion" => {
            "How long it takes from stored pixels to an array in memory (full), from that array to a tensor (pale), \
             and both together (hollow). Below 10 % of the total, conversion does not matter: look at reading. \
             Above 30 % it is worth work; without copy it nearly vanishes."
        }
        _ => return None,
    })
}

/// The lines at the foot: runs, what the whiskers are, machine and noise, what is not verified.
fn notes(table: &Table, about: &ReportInput) -> Vec<String> {
    let keys = columns::keys(table);
    let quantities = columns::quantities(table);
    let all = columns::configurations(table, &keys, &quantities);
    let estimates = || all.iter().flat_map(|c| c.estimates.iter().flatten());
    let mut first = String::new();
    let runs = |pick: fn(usize, usize) -> usize| estimates().map(|e| e.n).reduce(pick);
    if let (Some(low), Some(high)) = (runs(usize::min), runs(usize::max)) {
        first = match (low, high) {
            (1, 1) => "One run per configuration.".into(),
            (l, h) if l == h => format!("Medians of n = {h} runs per configuration."),
            (l, h) => format!("Medians of n = {l} to {h} runs per configuration."),
        };
    }
    if estimates().any(|e| e.interval == IntervalKind::Confidence) {
        first += " Whiskers: 95 % confidence intervals; where none is seen it is narrower than the mark.";
    } else if estimates().any(|e| e.interval == IntervalKind::Range) {
        first += " Whiskers: smallest to largest run.";
    }
    let mut second = about.machine.clone();
    if let Some(noise) = about.noise_floor_of(table.name()) {
        let floor = noise_text(noise);
        second += if second.is_empty() { "" } else { ". " };
        second += &format!("Noise floor (A/A): differences below {floor} are noise.");
    }
    let mut notes = vec![first, second];
    let mut missing: Vec<(String, String)> = vec![];
    for c in &all {
        let Some(why) = &c.unavailable else { continue };
        match missing.iter_mut().find(|m| m.1 == *why) {
            Some(m) => m.0 += &format!("; {}", configuration_name(&c.group.key)),
            None => missing.push((configuration_name(&c.group.key), why.clone())),
        }
    }
    notes.extend(missing.into_iter().map(|(who, why)| format!("{who}: {why}")));
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

/// A noise floor as text: `2.1 %`.
pub(crate) fn noise_text(noise: f64) -> String {
    format!("{}\u{a0}%", number::tick(noise * 100.0, usize::from(noise < 0.1)))
}

/// The values of a configuration's keys, joined.
pub(crate) fn configuration_name(key: &[Cell]) -> String {
    let known = key.iter().filter(|c| **c != Cell::Null).map(columns::key_text);
    known.collect::<Vec<_>>().join(", ")
}

/// The series of a table: its formats in the order of every figure, split by compression where a format comes
/// with several; each with the values that choose its rows.
fn series(table: &Table) -> Vec<(Series, Vec<(&'static str, Cell)>)> {
    let formats = sorted(table, "format", &color::known_formats().collect::<Vec<_>>());
    let mut all = vec![];
    for format in formats {
        let name = format.text();
        let slot = color::slot(&name);
        let of: Vec<_> =
            table.groups(&["format", "compression"]).into_iter().filter(|g| g.key[0] == format).collect();
        let compressions: Vec<_> = of.iter().map(|g| g.key[1].clone()).filter(|c| *c != Cell::Null).collect();
        if compressions.len() < 2 {
            all.push((Series { name, slot }, vec![("format", format)]));
            continue;
        }
        for compression in compressions {
            let name = format!("{name} ({})", compression.text());
            all.push((Series { name, slot }, vec![("format", format.clone()), ("compression", compression)]));
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
    Axis::new(format!("{}{better}", q.label), q.unit)
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

/// A block of rows; the layout's names are taken from series and variants.
fn rows_block(
    title: impl Into<String>,
    series: &[(Series, Vec<(&'static str, Cell)>)],
    variants: &[String],
    panels: Vec<Panel>,
    columns: usize,
) -> Block {
    let series = series.iter().map(|s| s.0.clone()).collect();
    Block {
        title: title.into(),
        layout: Layout::Rows { series, variants: variants.to_vec() },
        panels,
        columns,
        share_axis: false,
    }
}

/// `1 worker`, `4 workers`.
fn counted(cell: &Cell, thing: &str) -> String {
    match cell {
        Cell::I64(1) => format!("1 {thing}"),
        Cell::I64(n) => format!("{} {thing}s", number::count(*n)),
        other => format!("{} {thing}s", other.text()),
    }
}
