//! A history as a figure: one panel per series that changed, or the first few where none did. Runs go from left to
//! right, changes named below. Series of other pixels, or of another machine, are a section of their own, over their own runs.

use crate::history::{Record, Series};
use std::collections::BTreeSet;
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
    let changed: Vec<&Series> = all.iter().filter(|s| !s.changes.is_empty()).collect();
    let shown: Vec<&Series> = if changed.is_empty() { all.iter().collect() } else { changed };
    let shown = &shown[..shown.len().min(MAX_PANELS)];
    if shown.is_empty() || records.len() < 2 {
        return None;
    }
    let mut groups: Vec<Vec<&Series>> = Vec::new();
    for &s in shown {
        match groups.iter_mut().find(|group| group[0].is_measured_like(s)) {
            Some(group) => group.push(s),
            None => groups.push(vec![s]),
        }
    }
    let notes = shown.iter().flat_map(|s| {
        s.changes.iter().map(move |change| {
            let word = if change.ratio > 1.0 { "slower" } else { "faster" };
            format!("{} is {word} from {} on, ratio {:.3}.", s.title(), change.label, change.ratio)
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
        subtitle: records.last().map_or(String::new(), |record| in_words(&record.machine)),
        sections: groups.iter().map(|group| section(group, &groups, records)).collect(),
        notes: std::iter::once(format!("{each}Whiskers: 95 % intervals.")).chain(notes).collect(),
    })
}

/// The series of one machine and the same pixels, over the last of the runs that have any of them. Its title says which these are
/// where there are others.
fn section(group: &[&Series], all: &[Vec<&Series>], records: &[Record]) -> Section {
    let numbers: BTreeSet<usize> = group.iter().flat_map(|s| &s.records).copied().collect();
    let runs: Vec<usize> = numbers.iter().copied().skip(numbers.len().saturating_sub(MAX_RUNS)).collect();
    let every = runs.len().div_ceil(MAX_LABELS).max(1);
    let label = |(i, number): (usize, &usize)| {
        if i % every == 0 { records[*number].label.chars().take(9).collect() } else { String::new() }
    };
    let of = group[0];
    let mut title = "medians of each run".to_owned();
    if all.iter().any(|other| other[0].machine != of.machine) {
        title += &format!(", {}", in_words(&of.machine));
    }
    if all.iter().any(|other| other[0].pixels != of.pixels) {
        title += &match &of.pixels {
            Some(checksum) => format!(", pixels {}", checksum.chars().take(7).collect::<String>()),
            None => ", pixels unknown".to_owned(),
        };
    }
    Section {
        title,
        layout: Layout::Lines {
            series: vec!["median".into()],
            xs: runs.iter().enumerate().map(label).collect(),
            x_title: "runs, oldest first".to_owned(),
        },
        panels: group.iter().map(|s| panel(s, &runs)).collect(),
        columns: group.len().min(2),
        share_axis: false,
    }
}

/// A series over these records.
fn panel(s: &Series, runs: &[usize]) -> Panel {
    let quantity = columns::quantity(&s.quantity);
    let better = match quantity.better {
        Better::Higher => ", more is better",
        Better::Lower => ", less is better",
        Better::Neither => "",
    };
    let mark = |number: &usize| {
        let Some(i) = s.records.iter().position(|record| record == number) else { return Mark::Nothing };
        let (value, low, high) = (s.values[i], s.low[i], s.high[i]);
        let interval = if low < high { IntervalKind::Confidence } else { IntervalKind::None };
        Mark::Value(Estimate { value, low, high, interval, n: s.n[i].max(1) })
    };
    Panel {
        title: s.title(),
        axis: Axis::new(format!("{}{better}", quantity.label), quantity.unit),
        marks: runs.iter().map(mark).collect(),
    }
}

/// A machine as a record has it, its number of processors called so: records tell machines apart by their text, which stays.
fn in_words(machine: &str) -> String {
    let part = |part: &str| match part.parse::<usize>() {
        Ok(n) => counted(n, "processor"),
        Err(_) => part.to_owned(),
    };
    machine.split(", ").map(part).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{self, Figure as Row};

    #[test]
    fn other_pixels_are_a_section_of_their_own_with_their_runs_alone() {
        let record = |i: usize, pixels: &str, machine: &str| Record {
            wellread_history: 1,
            label: format!("commit{i}"),
            machine: machine.into(),
            pixel_checksum: Some(pixels.into()),
            rows: vec![Row {
                table: "dataset".into(),
                name: "tiff random".into(),
                quantity: "p50_s".into(),
                value: 1.0 + i as f64,
                n: 7,
                ..Row::default()
            }],
            ..Record::default()
        };
        let machine = "AMD EPYC, 2, ext4";
        let drawn = |records: &[Record]| history("h", records, &history::series(records, 1)).unwrap();
        let runs = |section: &Section| match &section.layout {
            Layout::Lines { xs, .. } => xs.clone(),
            _ => panic!("lines"),
        };
        let one = drawn(&[record(0, "aaaaaaaabb", machine), record(1, "aaaaaaaabb", machine)]);
        assert_eq!(one.subtitle, "AMD EPYC, 2 processors, ext4");
        assert_eq!(one.sections.len(), 1);
        assert_eq!(one.sections[0].title, "medians of each run");
        let records = [
            record(0, "aaaaaaaabb", machine),
            record(1, "cccccccddd", machine),
            record(2, "aaaaaaaabb", machine),
            record(3, "cccccccddd", "other"),
        ];
        let figure = drawn(&records);
        let titles: Vec<&str> = figure.sections.iter().map(|section| section.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "medians of each run, AMD EPYC, 2 processors, ext4, pixels aaaaaaa",
                "medians of each run, AMD EPYC, 2 processors, ext4, pixels ccccccc",
                "medians of each run, other, pixels ccccccc"
            ]
        );
        assert_eq!(runs(&figure.sections[0]), ["commit0", "commit2"]);
        assert_eq!(runs(&figure.sections[1]), ["commit1"]);
        // No run that a series has nothing to do with is called not measured.
        assert!(figure.sections.iter().all(|section| !section.panels[0].marks.contains(&Mark::Nothing)));
        assert!(!figure.svg().contains("not measured"));
    }
}
