//! Benchmarks across branches: every phase by branch, and the course of losses and scores.

use super::panel::{axis, bars};
use super::select::{has, rows, sorted};
use super::spec::{Answer, Spec};
use crate::chart::{Axis, Layout, Mark, Panel, Scale, Section, Series, color};
use crate::columns;
use crate::number::Unit;
use crate::table::{Cell, Table};

/// The tasks with their main figures: a table alone.
pub(super) static SUMMARY: Spec = Spec {
    table: "tasks_summary",
    heading: "Summary",
    title: "The tasks and their main figures",
    how_to_read: "Times of the whole task and of the first epoch are those of the median run. Per batch they are medians of the \
        steady state of all runs. A step is a training step, in inference a forward pass. Peak memory is that of the process \
        and all it starts, the median of the runs.",
    sections: |_| vec![],
};

/// Every phase against that of the baseline: a table alone.
pub(super) static COMPARED: Spec = Spec {
    table: "tasks_compared",
    heading: "Compared with the baseline",
    title: "Each phase compared with the baseline",
    how_to_read: "A ratio below 1 is faster than the baseline; in brackets its 95 % interval. A verdict needs three runs of each branch \
        and an interval that leaves 1 out. It also needs a test that stands when all phases of all branches are counted. \"Same\" is within 5 %, \
        interval included; \"unclear\" leaves room for more. Without a verdict the ratio holds within these runs only.",
    sections: |_| vec![],
};

/// The figure of phases.
pub(super) static SPEC: Spec = Spec {
    table: "tasks",
    heading: "Phases by branch",
    title: "Time of each phase, by branch",
    how_to_read: "Each row is a branch, each panel a phase; shorter is faster. The first panels are phases that repeat for \
        every batch: medians of the steady state, without warm-up. A branch whose data loading is longer than the \
        model's step waits for data. The panels below are phases of every epoch, then those that happen once per run. Whiskers are 95 % intervals where there are \
        enough runs or batches, else the smallest and largest run. Where those of two branches overlap, a difference may be chance. \
        Those of a single run are over its batches, and say nothing of the next run.",
    sections,
};

/// The chart of the answer: of each experiment the phases of a step, else of an epoch, else of the run.
pub(super) static ANSWER: Answer = Answer {
    table: "tasks",
    title: "Time of each phase that decides, by branch",
    how_to_read: "Each row is a branch, each panel a phase; shorter is faster. A branch whose data loading is longer than the \
        model's step waits for data. Where whiskers of two branches overlap, a difference may be chance.",
    sections: |table| {
        let all = sections(table);
        let of = |(_, name): &(Cell, String)| {
            [PER_BATCH, PER_EPOCH, ONCE].iter().find_map(|how_often| {
                let title = format!("{name}{how_often}");
                all.iter().find(|one| one.title == title && !one.panels.is_empty()).cloned()
            })
        };
        experiments(table).iter().filter_map(of).collect()
    },
};

/// Ends of the titles of sections: how often their phases come.
const PER_BATCH: &str = "per batch, steady state";
const PER_EPOCH: &str = "per epoch, steady state";
const ONCE: &str = "once per run";

/// The figure of losses.
pub(super) static LOSS: Spec = Spec {
    table: "tasks_loss",
    heading: "Losses and scores",
    title: "Loss and score by epoch",
    how_to_read: "Each line is a branch. A branch that is faster but ends with a higher loss or a lower score trains less well. \
        Lines that lie on each other train alike.",
    sections: losses,
};

/// Phases in the order of panels; all others follow.
const PHASES: [&str; 20] = [
    "batch_loading",
    "batch_to_device",
    "batch_step",
    "batch_forward",
    "batch_postprocess",
    "epoch",
    "validation",
    "total_training",
    "total_inference",
    "full_training",
    "full_prediction",
    "first_epoch",
    "model_initialization",
    "configuration",
    "data_setup",
    "checkpoint_loading",
    "first_batch_loading",
    "first_batch_to_device",
    "first_batch_forward",
    "first_batch_postprocess",
];
/// The first so many of these come with every batch.
const OF_BATCHES: usize = 5;
/// The first so many of these come with every batch or every epoch.
const REPEATED: usize = 7;

/// The branches of all experiments, each with the value that chooses its rows: the same colour in every experiment.
pub(super) fn all_branches(table: &Table) -> Vec<(Series, Vec<(&'static str, Cell)>)> {
    let of = |(at, branch): (usize, Cell)| {
        (Series { name: branch.text(), slot: at % color::SLOTS }, vec![("branch", branch)])
    };
    table.distinct("branch").into_iter().enumerate().map(of).collect()
}

/// The branches of an experiment.
fn branches(table: &Table, experiment: &Cell) -> Vec<(Series, Vec<(&'static str, Cell)>)> {
    let here = |which: &[(&'static str, Cell)]| {
        let which: Vec<_> = which.iter().cloned().chain([("experiment", experiment.clone())]).collect();
        !rows(table, &which).is_empty()
    };
    all_branches(table).into_iter().filter(|(_, which)| here(which)).collect()
}

/// The experiments of a table, and how a section's title names one where there are several.
fn experiments(table: &Table) -> Vec<(Cell, String)> {
    let all = sorted(table, "experiment", &[]);
    let several = all.len() > 1;
    let named = |one: Cell| {
        let name = if several { format!("{}: ", one.text()) } else { String::new() };
        (one, name)
    };
    all.into_iter().map(named).collect()
}

fn sections(table: &Table) -> Vec<Section> {
    let phases = sorted(table, "phase", &PHASES);
    let within = |phase: &Cell, names: &[&str]| names.contains(&phase.text().as_str());
    let mut sections = Vec::new();
    for (experiment, name) in experiments(table) {
        let series = branches(table, &experiment);
        let section = |title: String, of: &[&Cell], share: bool| {
            let panel = |phase: &&Cell| {
                let facets = [("experiment", experiment.clone()), ("phase", (*phase).clone())];
                let mut panel = bars(
                    table,
                    phase.text().replace('_', " "),
                    "seconds",
                    &series,
                    &[("phase", Cell::Null)],
                    &facets,
                );
                panel.axis.scale = Scale::Linear;
                panel
            };
            let shown = |panel: &Panel| panel.marks.iter().any(|mark| matches!(mark, Mark::Value(_)));
            Section {
                title,
                panels: of.iter().map(panel).filter(shown).collect(),
                layout: Layout::Rows {
                    series: series.iter().map(|one| one.0.clone()).collect(),
                    variants: vec![String::new()],
                },
                columns: 3,
                share_axis: share,
            }
        };
        let (repeated, once): (Vec<&Cell>, Vec<&Cell>) =
            phases.iter().partition(|phase| within(phase, &PHASES[..REPEATED]));
        let (often, epochs): (Vec<&Cell>, Vec<&Cell>) =
            repeated.into_iter().partition(|phase| within(phase, &PHASES[..OF_BATCHES]));
        sections.push(section(format!("{name}{PER_BATCH}"), &often, false));
        if !epochs.is_empty() {
            sections.push(section(format!("{name}{PER_EPOCH}"), &epochs, false));
        }
        sections.push(section(format!("{name}{ONCE}"), &once, false));
        if has(table, "peak_memory_mb") {
            let mut memory = section(format!("{name}peak memory"), &[], false);
            let facets = [("experiment", experiment.clone())];
            let none = [("phase", Cell::Null)];
            memory.panels = vec![bars(table, String::new(), "peak_memory_mb", &series, &none, &facets)];
            sections.push(memory);
        }
    }
    sections
}

/// The columns that are drawn by epoch.
const CURVES: [&str; 4] = ["train_loss", "val_loss", "val_dice", "val_pearson"];

fn losses(table: &Table) -> Vec<Section> {
    let mut sections = Vec::new();
    for (experiment, name) in experiments(table) {
        let series = branches(table, &experiment);
        for column in CURVES.into_iter().filter(|column| has(table, column)) {
            // The points of each branch, as many as the longest has.
            let of: Vec<Vec<usize>> = series
                .iter()
                .map(|(_, which)| {
                    let which: Vec<_> =
                        which.iter().cloned().chain([("experiment", experiment.clone())]).collect();
                    rows(table, &which).into_iter().filter(|&r| table.f64(column, r).is_some()).collect()
                })
                .collect();
            let most = of.iter().map(Vec::len).max().unwrap_or(0);
            if most == 0 {
                continue;
            }
            let slot = |points: &Vec<usize>, at: usize| points.get(at).copied();
            let all = || of.iter().flat_map(|points| (0..most).map(move |at| slot(points, at)));
            let mark = |row: Option<usize>| {
                let estimate = row.and_then(|row| table.estimate(column, &[row]));
                estimate.map_or(Mark::Nothing, Mark::Value)
            };
            let xs: Vec<Option<f64>> = all().map(|row| row.and_then(|row| table.f64("epoch", row))).collect();
            let whole = xs.iter().flatten().all(|epoch| epoch.fract() == 0.0);
            sections.push(Section {
                title: format!("{name}{}", columns::quantity(column).label),
                panels: vec![Panel {
                    title: String::new(),
                    axis: axis(column),
                    marks: all().map(mark).collect(),
                }],
                layout: Layout::Scatter {
                    series: series.iter().map(|one| one.0.clone()).collect(),
                    points: vec![String::new(); most],
                    xs,
                    x_axis: Axis { whole, ..Axis::new("epoch", Unit::Plain("")).scale(Scale::Linear) },
                    front: false,
                },
                columns: 1,
                share_axis: false,
            });
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row;

    fn phases() -> Table {
        let mut table = Table::new("tasks");
        for (branch, factor) in [("main", 1.0), ("slow", 2.1)] {
            for run in 0..3 {
                for phase in ["batch_step", "batch_loading", "total_training", "own"] {
                    let seconds = 0.01 * factor * (1.0 + 0.01 * f64::from(run));
                    table.push(row![
                        ("experiment", "e"),
                        ("branch", branch),
                        ("phase", phase),
                        ("run", run),
                        ("seconds", seconds)
                    ]);
                }
            }
        }
        table.push(row![
            ("experiment", "e"),
            ("branch", "broken"),
            ("status", "failed"),
            ("reason", "exit code 3")
        ]);
        table
    }

    #[test]
    fn a_panel_per_phase_and_a_row_per_branch() {
        let table = phases();
        let sections = sections(&table);
        assert_eq!(sections.len(), 2);
        let titles: Vec<&str> = sections[0].panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["batch loading", "batch step"]);
        assert_eq!(sections[1].panels.len(), 2);
        let Layout::Rows { series, .. } = &sections[0].layout else { panic!("rows") };
        assert_eq!(series.len(), 3);
        assert!(
            matches!(&sections[0].panels[0].marks[2], Mark::Unavailable(why) if why.contains("exit code 3"))
        );
        let figure = super::super::figure(&table, &crate::ReportInput::default()).unwrap();
        let svg = figure.svg();
        assert!(svg.contains("batch loading") && svg.contains("slow") && svg.contains("exit code 3"));
    }

    #[test]
    fn what_happens_once_an_epoch_is_not_called_per_batch_nor_once_per_run() {
        let mut table = phases();
        for phase in ["validation", "epoch"] {
            table.push(row![
                ("experiment", "e"),
                ("branch", "main"),
                ("phase", phase),
                ("run", 0),
                ("seconds", 1.5)
            ]);
        }
        let sections = sections(&table);
        let of: Vec<(&str, Vec<&str>)> = sections
            .iter()
            .map(|one| (one.title.as_str(), one.panels.iter().map(|panel| panel.title.as_str()).collect()))
            .collect();
        assert_eq!(
            of,
            [
                ("per batch, steady state", vec!["batch loading", "batch step"]),
                ("per epoch, steady state", vec!["epoch", "validation"]),
                ("once per run", vec!["total training", "own"])
            ]
        );
    }

    #[test]
    fn losses_are_lines_over_epochs() {
        let mut table = Table::new("tasks_loss");
        for (branch, epochs) in [("main", 5), ("short", 2)] {
            for epoch in 0..epochs {
                let loss = 1.0 / f64::from(epoch + 1);
                table.push(row![
                    ("experiment", "e"),
                    ("branch", branch),
                    ("epoch", epoch),
                    ("train_loss", loss),
                    ("val_dice", (epoch % 2 == 1).then_some(0.5))
                ]);
            }
        }
        let sections = losses(&table);
        let titles = |s: &Section| (s.title.clone(), s.panels[0].axis.title.clone());
        let titles: Vec<_> = sections.iter().map(titles).collect();
        let expected = [
            ("training loss", "training loss, less is better"),
            ("validation Dice", "validation Dice, more is better"),
        ];
        assert_eq!(titles, expected.map(|(title, axis)| (title.to_owned(), axis.to_owned())));
        assert_eq!(sections[0].panels[0].marks.iter().filter(|m| matches!(m, Mark::Value(_))).count(), 7);
        let Layout::Scatter { xs, .. } = &sections[1].layout else { panic!("scatter") };
        assert_eq!(xs.iter().flatten().copied().collect::<Vec<_>>(), [1.0, 3.0, 1.0]);
        super::super::figure(&table, &crate::ReportInput::default()).unwrap().png(1.0).unwrap();
        let is_whole = |sections: &[Section]| {
            let Layout::Scatter { x_axis, .. } = &sections[0].layout else { panic!("scatter") };
            x_axis.whole
        };
        assert!(is_whole(&sections));
        table.push(row![("experiment", "e"), ("branch", "main"), ("epoch", 5.5), ("train_loss", 0.1)]);
        assert!(!is_whole(&losses(&table)));
    }
}
