//! A history as a figure: one panel per series that changed (or the first few where none did), runs from left to
//! right, changes named below.

use crate::history::{Record, Series};
use wellread_report::chart::{Axis, Figure, Layout, Mark, Panel, Section};
use wellread_report::columns::{self, Better};
use wellread_report::words::counted;
use wellread_report::{Estimate, IntervalKind};

/// Most panels.
const MAX_PANELS: usize = 12;
/// Most labels below a panel.
const MAX_LABELS: usize = 8;
/// Most runs that are shown: the last.
const MAX_RUNS: usize = 120;

/// The figure of a history; `None` when there is nothing to draw.
pub fn history(name: &str, records: &[Record], all: &[Series]) -> Option<Figure> {
    let first = records.len().saturating_sub(MAX_RUNS);
    let changed: Vec<&Series> = all.iter().filter(|s| !s.changes.is_empty()).collect();
    let shown: Vec<&Series> = if changed.is_empty() { all.iter().collect() } else { changed };
    let shown = &shown[..shown.len().min(MAX_PANELS)];
    if shown.is_empty() || records.len() < 2 {
        return None;
    }
    let every = (records.len() - first).div_ceil(MAX_LABELS);
    let label = |(i, record): (usize, &Record)| {
        if i % every == 0 { record.label.chars().take(9).collect() } else { String::new() }
    };
    let xs: Vec<String> = records[first..].iter().enumerate().map(label).collect();
    let panel = |s: &&Series| {
        let quantity = columns::quantity(&s.quantity);
        let better = match quantity.better {
            Better::Higher => ", more is better",
            Better::Lower => ", less is better",
            Better::Neither => "",
        };
        let mut marks = vec![Mark::Nothing; xs.len()];
        for (i, &number) in s.records.iter().enumerate().filter(|(_, number)| **number >= first) {
            let (value, low, high) = (s.values[i], s.low[i], s.high[i]);
            let interval = if low < high { IntervalKind::Confidence } else { IntervalKind::None };
            marks[number - first] = Mark::Value(Estimate { value, low, high, interval, n: s.n[i].max(1) });
        }
        Panel {
            title: format!("{} {}", s.table, s.name),
            axis: Axis::new(format!("{}{better}", quantity.label), quantity.unit),
            marks,
        }
    };
    let notes = shown.iter().flat_map(|s| {
        s.changes.iter().map(move |change| {
            let word = if change.ratio > 1.0 { "slower" } else { "faster" };
            format!("{} {}: {word} from {} on, ratio {:.3}.", s.table, s.name, change.label, change.ratio)
        })
    });
    let notes: Vec<String> = notes.take(2 * MAX_PANELS).collect();
    // Summaries without their samples have no number.
    let behind = || shown.iter().flat_map(|s| &s.n).copied().filter(|n| *n > 0);
    let each = match (behind().min(), behind().max()) {
        (Some(low), Some(high)) if low == high => format!("Medians of n = {low} each. "),
        (Some(low), Some(high)) => format!("Medians of n = {low} to {high} each. "),
        _ => String::new(),
    };
    let runs = counted(records.len(), "run");
    let title = match all.iter().filter(|s| !s.changes.is_empty()).count() {
        0 => format!("No change over {runs}"),
        n => format!("{n} of {} series changed over {runs}", all.len()),
    };
    Some(Figure {
        name: name.to_owned(),
        description: format!("{title}. {}", notes.join(" ")),
        title,
        subtitle: records.last().map_or(String::new(), |record| record.machine.clone()),
        sections: vec![Section {
            title: "medians of each run".to_owned(),
            layout: Layout::Lines {
                series: vec!["median".into()],
                xs: xs.clone(),
                x_title: "runs, oldest first".to_owned(),
            },
            panels: shown.iter().map(panel).collect(),
            columns: shown.len().min(2),
            share_axis: false,
        }],
        notes: std::iter::once(format!("{each}Whiskers: 95 % intervals.")).chain(notes).collect(),
    })
}
