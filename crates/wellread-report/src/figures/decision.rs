//! The figure that a report begins with: how fast each format is at what decides, best first.
//!
//! It is drawn from the first of [`CHOICES`] whose table was measured, with the rows that the answer's sentence on the
//! fastest format rests on.

use super::notes::whiskers;
use super::panel::{self, mark, rows_section};
use super::select::{counted, rows, series, sorted};
use crate::chart::{Figure, Mark, Panel, Scale, Series};
use crate::input::ReportInput;
use crate::table::{Cell, Table};

/// Rows of a table and a quantity that decide.
struct Choice {
    table: &'static str,
    column: &'static str,
    /// What the chosen rows have in common.
    which: &'static [(&'static str, &'static str)],
    title: &'static str,
}

static CHOICES: [Choice; 3] = [
    Choice {
        table: "dataloader",
        column: "samples_per_sec",
        which: &[],
        title: "How many images per second each format delivers",
    },
    Choice {
        table: "dataset",
        column: "samples_per_sec",
        which: &[("access", "random"), ("transform", "none"), ("cache", "none")],
        title: "How many single images per second each format gives in random order",
    },
    Choice {
        table: "storage",
        column: "images_per_s",
        which: &[("operation", "read_all"), ("cache", "warm")],
        title: "How many images per second each format reads, files in memory",
    },
];

pub(crate) const HOW_TO_READ: &str = "Each bar is a format, the fastest on top. What its whisker is, the line below the \
    picture says; bars whose whiskers overlap may be alike. A bar without one was measured too few times.";

/// The batch size that a verdict rests on: the largest of which an epoch has at least four, else the smallest.
pub fn telling_batch_size(table: &Table) -> Option<f64> {
    let mut sizes: Vec<(f64, f64)> = (0..table.rows())
        .filter_map(|r| Some((table.f64("batch_size", r)?, table.f64("num_samples", r)?)))
        .collect();
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let full = sizes.iter().rev().find(|(size, images)| images / size >= 4.0);
    full.or(sizes.first()).map(|(size, _)| *size)
}

/// The figure; `None` where nothing was measured that compares several formats.
pub(crate) fn figure(input: &ReportInput) -> Option<Figure> {
    CHOICES.iter().find_map(|choice| {
        let table = input.tables.iter().find(|table| table.name() == choice.table)?;
        draw(choice, table, input)
    })
}

fn draw(choice: &Choice, table: &Table, input: &ReportInput) -> Option<Figure> {
    let batch = telling_batch_size(table);
    let batch = sorted(table, "batch_size", &[]).into_iter().find(|size| size.as_f64() == batch);
    let mut common: Vec<(&'static str, Cell)> =
        choice.which.iter().map(|(name, value)| (*name, Cell::from(*value))).collect();
    common.extend(batch.clone().map(|size| ("batch_size", size)));
    // Of several caches of a loader the first that was asked for, as in the sentences.
    if choice.table == "dataloader" {
        common.push(("cache", table.cell("cache", 0)));
    }
    let workers = sorted(table, "workers", &[]);
    let workers = if workers.is_empty() { vec![Cell::Null] } else { workers };
    let best = |which: &[(&'static str, Cell)]| {
        let with = |workers: &Cell| {
            let which: Vec<_> =
                which.iter().chain(&common).cloned().chain([("workers", workers.clone())]).collect();
            if rows(table, &which).is_empty() { Mark::Nothing } else { mark(table, &which, choice.column) }
        };
        let value = |mark: &Mark| if let Mark::Value(estimate) = mark { estimate.value } else { f64::MIN };
        workers.iter().map(with).max_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or_default()
    };
    // What was not measured is named below the picture; the benchmark's own figure says why.
    let (measured, left_out): (Vec<_>, Vec<_>) = series(table)
        .into_iter()
        .map(|(series, which)| {
            let mark = best(&which);
            ((series, which), mark)
        })
        .partition(|(_, mark)| matches!(mark, Mark::Value(_)));
    let (shown, marks): (Vec<(Series, Vec<_>)>, Vec<Mark>) = measured.into_iter().unzip();
    if shown.len() < 2 {
        return None;
    }
    let intervals: Vec<_> = marks
        .iter()
        .filter_map(|mark| if let Mark::Value(estimate) = mark { Some(estimate.interval) } else { None })
        .collect();
    let panel = Panel { title: String::new(), axis: panel::axis(choice.column).scale(Scale::Linear), marks };
    let mut title = choice.title.to_owned();
    if let Some(size) = batch {
        title += &format!(" in batches of {}", size.text());
    }
    match &workers[..] {
        [Cell::Null] => {}
        [one] => title += &format!(", with {}", counted(one, "worker")),
        _ => title += ", with the number of workers that serves it best",
    }
    let mut notes: Vec<String> = whiskers(&intervals).map(str::to_owned).into_iter().collect();
    if !left_out.is_empty() {
        let names: Vec<String> = left_out.into_iter().map(|((series, _), _)| series.name).collect();
        notes.push(format!("Not measured: {}. The figures of the benchmark say why.", names.join(", ")));
    }
    notes.extend(Some(input.machine.clone()).filter(|note| !note.is_empty()));
    Some(Figure {
        name: "decision".to_owned(),
        title: title.clone(),
        subtitle: input.images.clone(),
        sections: vec![rows_section("", &shown, &[String::new()], vec![panel], 1)],
        notes,
        description: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Layout;
    use crate::row;

    #[test]
    fn the_report_begins_with_the_formats_at_their_best_the_fastest_first() {
        let mut table = Table::new("dataloader");
        for (format, workers, rate) in
            [("parquet", 0, 10.0), ("parquet", 2, 30.0), ("tiff", 0, 40.0), ("tiff", 2, 20.0)]
        {
            for batch in [4, 16] {
                table.push(row![
                    ("format", format),
                    ("batch_size", batch),
                    ("workers", workers),
                    ("num_samples", 20),
                    ("status", "ok"),
                    ("samples_per_sec", if batch == 4 { rate } else { 100.0 - rate })
                ]);
            }
        }
        table.push(row![("format", "lance"), ("status", "unavailable"), ("reason", "not in this build")]);
        let input = ReportInput { tables: vec![table], ..ReportInput::default() };
        let figure = figure(&input).unwrap();
        let Layout::Rows { series, .. } = &figure.sections[0].layout else { panic!("rows") };
        assert_eq!(series.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["tiff", "parquet"]);
        let values: Vec<_> = figure.sections[0].panels[0]
            .marks
            .iter()
            .map(|mark| if let Mark::Value(estimate) = mark { estimate.value } else { 0.0 })
            .collect();
        assert_eq!(values, [40.0, 30.0]);
        assert!(
            figure.title.ends_with(" in batches of 4, with the number of workers that serves it best"),
            "{}",
            figure.title
        );
        assert_eq!(figure.notes, ["Not measured: lance. The figures of the benchmark say why."]);
        assert!(figure.png(1.0).is_ok());
        assert!(super::figure(&ReportInput::default()).is_none());
    }

    #[test]
    fn whiskers_are_called_what_they_are() {
        let notes = |runs: usize, with_interval: bool| {
            let mut table = Table::new("storage");
            for (format, rate) in [("parquet", 10.0), ("tiff", 20.0)] {
                for run in 0..runs {
                    let rate = rate + run as f64;
                    let mut measured = row![
                        ("format", format),
                        ("operation", "read_all"),
                        ("cache", "warm"),
                        ("run", run),
                        ("images_per_s", rate)
                    ];
                    if with_interval {
                        measured.extend(row![
                            ("images_per_s_ci_low", rate - 1.0),
                            ("images_per_s_ci_high", rate + 1.0)
                        ]);
                    }
                    table.push(measured);
                }
            }
            figure(&ReportInput { tables: vec![table], ..ReportInput::default() }).unwrap().notes
        };
        assert!(notes(1, false).is_empty());
        assert_eq!(notes(3, false), ["Whiskers: smallest to largest run."]);
        assert!(notes(7, true)[0].starts_with("Whiskers: 95 % confidence intervals;"));
        assert!(!HOW_TO_READ.contains("95 %"), "the foot says what whiskers are");
    }

    #[test]
    fn one_number_of_workers_is_said_and_is_not_the_best_of_several() {
        for (workers, text) in [(0, ", with 0 workers"), (1, ", with 1 worker"), (4, ", with 4 workers")] {
            let mut table = Table::new("dataloader");
            for format in ["parquet", "tiff"] {
                table.push(row![
                    ("format", format),
                    ("batch_size", 8),
                    ("workers", workers),
                    ("num_samples", 40),
                    ("status", "ok"),
                    ("samples_per_sec", 10.0)
                ]);
            }
            let figure = figure(&ReportInput { tables: vec![table], ..ReportInput::default() }).unwrap();
            assert!(figure.title.ends_with(text), "{}", figure.title);
            assert!(figure.notes.is_empty());
        }
    }
}
