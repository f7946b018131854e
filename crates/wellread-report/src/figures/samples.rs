//! Every single measurement of a benchmark: how often which time was taken, and when.
//!
//! ```text
//!  Samples (a list of times per run) ─┬─▶ WHAT_distribution: the shape of all times, by series and configuration
//!                                     └─▶ WHAT_timeline: the times in the order measured, run after run
//! ```

use super::select::{self, loaders};
use super::{inference, panel, registry, tasks};
use crate::chart::{Axis, Figure, Layout, Mark, Panel, Sample, Scale, Section, Series, Spread};
use crate::columns::{self, Better, key_text};
use crate::input::ReportInput;
use crate::number::{self, Unit};
use crate::table::samples::{BATCHES, medians_tell};
use crate::table::{Cell, Samples, Table};
use crate::words;

/// How the figure of distributions is read.
pub(crate) const DISTRIBUTION: &str = "All single measurements of all runs. The shape is thick where many lie and thin where \
    few do; the dot is the median. Two bumps mean two kinds of items, such as images that lay in memory and images that \
    did not. A long thin tail to the right means rare slow ones, for which a training loop waits.";
/// How the figure over time is read.
pub(crate) const TIMELINE: &str = "The same measurements in the order in which they were made, one run after the other. A point is the median of some items that follow each other, its line their middle half. A run that starts \
    high and falls was not warm yet. Runs that rise or fall from one to the next mean that the machine drifted: \
    differences of that size are none of the formats.";

/// Most configurations that have their distributions shown, and their course.
const MAX_DISTRIBUTIONS: (usize, usize) = (12, 6);
/// About so many points has a line over all runs.
const LINE_POINTS: usize = 48;

/// The configurations of the samples: how they are called, and the values that choose their runs.
struct SampleConfigurations {
    series: Vec<(Series, Vec<(&'static str, Cell)>)>,
    panels: Vec<(String, Vec<(String, Cell)>)>,
}

/// For each run, whether its times are telling. With workers a batch is read while others are waited for: most waits
/// are nothing then, whatever the throughput, and say nothing of a format. Nor do they where a reader fetches many
/// batches at once ([`medians_tell`], of all runs of the configuration).
fn are_telling(samples: &Samples) -> Vec<bool> {
    let table = samples.runs();
    let mut telling = vec![true; table.rows()];
    if table.name() != BATCHES {
        return telling;
    }
    let keys: Vec<&str> =
        columns::keys(table).into_iter().filter(|key| !matches!(*key, "run" | "position")).collect();
    for group in table.groups(&keys) {
        let tells = medians_tell(group.rows.iter().map(|&row| samples.seconds()[row].as_slice()));
        for &row in &group.rows {
            telling[row] = tells && table.f64("workers", row).is_none_or(|workers| workers == 0.0);
        }
    }
    telling
}

/// The runs whose times are drawn.
fn telling(samples: &Samples) -> Samples {
    let table = samples.runs();
    let mut out = Samples::new(table.name());
    let is_telling = are_telling(samples);
    for row in (0..table.rows()).filter(|&row| is_telling[row]) {
        let run: crate::table::Row =
            table.columns().iter().map(|c| (c.name().to_owned(), table.cell(c.name(), row))).collect();
        out.push(run, samples.seconds()[row].clone());
    }
    out
}

fn chosen(table: &Table) -> SampleConfigurations {
    let has = |column: &str| select::has(table, column);
    let (series, named): (Vec<_>, &[&str]) = if has("format") {
        (loaders(table), &["format", "framework", "loader"])
    } else if has("framework") {
        let named = inference::series(table).into_iter().map(|(s, cell)| (s, vec![("framework", cell)]));
        (named.collect(), &["framework"])
    } else if has("branch") {
        (tasks::all_branches(table), &["branch"])
    } else {
        (vec![(Series::from("all"), vec![])], &[])
    };
    // A value that is the same everywhere is left out.
    let others: Vec<&str> = columns::keys(table)
        .into_iter()
        .filter(|key| {
            !named.contains(key) && !matches!(*key, "run" | "position") && table.distinct(key).len() > 1
        })
        .collect();
    let panel = |values: Vec<Cell>| {
        let words = others.iter().zip(&values).filter(|(_, value)| **value != Cell::Null);
        let words = words.map(|(key, value)| match value {
            Cell::Str(text) if matches!(*key, "phase" | "experiment" | "model" | "mode") => {
                text.replace('_', " ")
            }
            _ => format!("{} {}", key.replace('_', " "), key_text(value)),
        });
        let title = words.collect::<Vec<_>>().join(", ");
        (title, others.iter().map(|key| (*key).to_owned()).zip(values).collect())
    };
    let panels = table.groups(&others).into_iter().map(|group| panel(group.key)).collect();
    SampleConfigurations { series, panels }
}

/// The runs of a series in a panel, in their order.
fn runs(table: &Table, series: &[(&'static str, Cell)], panel: &[(String, Cell)]) -> Vec<usize> {
    let is = |r: &usize| {
        series.iter().all(|(name, value)| *value == Cell::Null || table.cell(name, *r) == *value)
            && panel.iter().all(|(name, value)| table.cell(name, *r) == *value)
    };
    let mut rows: Vec<usize> = (0..table.rows()).filter(is).collect();
    rows.sort_by_key(|&r| table.f64("run", r).map_or(0, |run| run as i64));
    rows
}

/// How many measurements of how many runs are behind each shape and each line.
fn counted(samples: &Samples, chosen: &SampleConfigurations) -> Option<String> {
    let finite = |run: usize| samples.seconds()[run].iter().filter(|s| s.is_finite()).count();
    let counts: Vec<(usize, usize)> = chosen
        .panels
        .iter()
        .flat_map(|(_, which)| {
            chosen.series.iter().map(move |(_, series)| runs(samples.runs(), series, which))
        })
        .map(|runs| (runs.iter().map(|&run| finite(run)).sum::<usize>(), runs.len()))
        .filter(|(measurements, _)| *measurements > 0)
        .collect();
    let range = |of: fn(&(usize, usize)) -> usize| {
        let (low, high) = (counts.iter().map(of).min()?, counts.iter().map(of).max()?);
        let text = |n: usize| number::count(n as i64);
        Some(if low == high { text(low) } else { format!("{} to {}", text(low), text(high)) })
    };
    let (measurements, runs) = (range(|c| c.0)?, range(|c| c.1)?);
    let things = |number: &str, thing: &str| match number {
        "1" => thing.to_owned(),
        _ => words::plural(thing),
    };
    let (of, behind) = (things(&measurements, "measurement"), things(&runs, "run"));
    Some(format!("n = {measurements} {of} of {runs} {behind} each."))
}

/// The figures of the single measurements of a table, with how they are read; none where there are none.
pub(crate) fn figures(samples: &Samples, about: &ReportInput) -> Vec<(Figure, &'static str)> {
    let all = samples.seconds().len();
    let samples = &telling(samples);
    let left_out = (samples.seconds().len() < all).then(|| {
        "Runs without workers only, and none of formats that fetch many batches at once. Most of their batches are ready when they are asked for, so a wait says nothing of the throughput."
            .to_owned()
    });
    let chosen = chosen(samples.runs());
    let name = samples.runs().name();
    let heading = registry::heading(name);
    let machine = Some(&about.machine).filter(|machine| !machine.is_empty()).cloned();
    let notes: Vec<String> = counted(samples, &chosen).into_iter().chain(left_out).chain(machine).collect();
    let figure = |kind: &str, title: String, section: Section| Figure {
        name: format!("{name}_{kind}"),
        title,
        subtitle: about.images.clone(),
        sections: vec![section],
        notes: notes.clone(),
        description: String::new(),
    };
    let mut figures = vec![];
    if let Some(section) = distribution(samples, &chosen) {
        figures.push((
            figure("distribution", format!("{heading}: distribution of the single times"), section),
            DISTRIBUTION,
        ));
    }
    if let Some(section) = timeline(samples, &chosen) {
        figures.push((
            figure("timeline", format!("{heading}: the single times in the order measured"), section),
            TIMELINE,
        ));
    }
    figures
}

/// The figures of the single measurements behind a table.
pub(crate) fn of(input: &ReportInput, table: &Table) -> Vec<(Figure, &'static str)> {
    let of = input.samples.iter().filter(|samples| samples.runs().name() == table.name());
    of.flat_map(|samples| figures(samples, input)).collect()
}

/// A section's title, which says what is left out.
fn title(what: &str, shown: usize, all: usize) -> String {
    if shown < all {
        let all = words::counted(all, "configuration");
        format!("{what}: the first {shown} of {all}; samples/*.parquet has all")
    } else {
        what.to_owned()
    }
}

fn time() -> Axis {
    Axis { better: Better::Lower, ..Axis::new("time of one, less is better", Unit::Seconds) }
}

fn distribution(samples: &Samples, chosen: &SampleConfigurations) -> Option<Section> {
    let table = samples.runs();
    let panel = |(title, which): &(String, Vec<(String, Cell)>)| {
        let marks = chosen.series.iter().map(|(_, series)| {
            let runs = runs(table, series, which);
            let sample = Sample::new(runs.iter().flat_map(|&r| samples.seconds()[r].iter().copied()));
            if sample.is_empty() { Mark::Nothing } else { Mark::Sample(sample) }
        });
        Panel { title: title.clone(), axis: time(), marks: marks.collect() }
    };
    let panels: Vec<Panel> = chosen.panels.iter().map(panel).filter(is_shown).collect();
    let (all, shown) = (panels.len(), panels.len().min(MAX_DISTRIBUTIONS.0));
    let panels = panels.into_iter().take(shown).collect();
    let title = title("Every single time", shown, all);
    let columns = if shown == 1 { 1 } else { 2 };
    (all > 0).then(|| panel::rows_section(title, &chosen.series, &[String::new()], panels, columns))
}

fn is_shown(panel: &Panel) -> bool {
    panel.marks.iter().any(|mark| *mark != Mark::Nothing)
}

fn timeline(samples: &Samples, chosen: &SampleConfigurations) -> Option<Section> {
    let table = samples.runs();
    let of = |which: &[(String, Cell)]| -> Vec<Vec<usize>> {
        chosen.series.iter().map(|(_, series)| runs(table, series, which)).collect()
    };
    let most = chosen.panels.iter().flat_map(|(_, which)| of(which)).map(|runs| runs.len()).max()?;
    if most == 0 {
        return None;
    }
    let longest = samples.seconds().iter().map(Vec::len).max().unwrap_or(0);
    let parts = (LINE_POINTS / most).clamp(2, 24).min(longest.max(1));
    let panel = |(title, which): &(String, Vec<(String, Cell)>)| {
        let marks = of(which).into_iter().flat_map(|runs| {
            let parts_of = |run: usize| {
                let seconds = runs.get(run).map_or(&[][..], |&r| &samples.seconds()[r]);
                (0..parts).map(move |part| median_of_part(seconds, part, parts)).collect::<Vec<_>>()
            };
            (0..most).flat_map(parts_of).collect::<Vec<_>>()
        });
        Panel { title: title.clone(), axis: time(), marks: marks.collect() }
    };
    let panels: Vec<Panel> = chosen.panels.iter().map(panel).filter(is_shown).collect();
    let (all, shown) = (panels.len(), panels.len().min(MAX_DISTRIBUTIONS.1));
    let place = |i: usize| (i / parts) as f64 + ((i % parts) as f64 + 0.5) / parts as f64;
    let xs: Vec<Option<f64>> = (0..most * parts).map(|i| Some(place(i))).collect();
    (all > 0).then(|| Section {
        title: title("Over the runs", shown, all),
        layout: Layout::Scatter {
            series: chosen.series.iter().map(|(series, _)| series.clone()).collect(),
            points: vec![String::new(); most * parts],
            xs: xs.iter().copied().cycle().take(chosen.series.len() * most * parts).collect(),
            x_axis: Axis {
                whole: true,
                // To the end of the last run: of a single one there would be one tick, at its beginning.
                at_least: Some(most as f64),
                ..Axis::new("measured so far", Unit::Plain("runs")).scale(Scale::Linear)
            },
            front: false,
        },
        columns: if shown == 1 { 1 } else { 2 },
        panels: panels.into_iter().take(shown).collect(),
        share_axis: false,
    })
}

/// The quantiles of one of `parts` equal parts of a run; nothing where the run has none.
fn median_of_part(seconds: &[f64], part: usize, parts: usize) -> Mark {
    let ends = [part, part + 1].map(|at| at * seconds.len() / parts);
    let mut items: Vec<f64> = seconds[ends[0]..ends[1]].iter().copied().filter(|s| s.is_finite()).collect();
    items.sort_by(f64::total_cmp);
    if items.is_empty() { Mark::Nothing } else { Mark::Spread(Spread::of_sorted(&items)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row;

    fn samples() -> Samples {
        let mut samples = Samples::new("dataset");
        for (format, base) in [("parquet", 1e-3), ("tiff", 2e-3)] {
            for access in ["random", "sequential"] {
                for run in 0..3 {
                    // The first quarter of each run is slow.
                    let times = (0..100).map(|i| base * if i < 25 { 5.0 } else { 1.0 }).collect();
                    samples.push(
                        row![("format", format), ("access", access), ("cache", "none"), ("run", run)],
                        times,
                    );
                }
            }
        }
        samples
    }

    #[test]
    fn a_panel_per_configuration_and_a_shape_per_format() {
        let figures = figures(&samples(), &ReportInput::default());
        assert_eq!(figures.len(), 2);
        let distribution = &figures[0].0;
        assert_eq!(distribution.name, "dataset_distribution");
        let titles: Vec<_> = distribution.sections[0].panels.iter().map(|p| p.title.as_str()).collect();
        assert_eq!(titles, ["access random", "access sequential"]);
        let Mark::Sample(sample) = &distribution.sections[0].panels[0].marks[1] else { panic!("a sample") };
        assert_eq!(*sample, Sample::new((0..300).map(|i| if i < 75 { 0.01 } else { 0.002 })));
        for (figure, _) in &figures {
            assert_eq!(figure.notes, ["n = 300 measurements of 3 runs each."]);
            assert!(figure.png(1.0).is_ok());
        }
    }

    #[test]
    fn the_time_of_a_single_run_goes_from_its_beginning_to_its_end() {
        let mut samples = Samples::new("dataset");
        samples.push(row![("format", "tiff"), ("run", 0)], vec![1e-3; 9]);
        let figures = figures(&samples, &ReportInput::default());
        let Layout::Scatter { x_axis, xs, .. } = &figures[1].0.sections[0].layout else { panic!("points") };
        assert!(xs.iter().flatten().all(|x| *x < 1.0), "{xs:?}");
        assert_eq!((x_axis.at_least, x_axis.whole), (Some(1.0), true));
    }

    #[test]
    fn shapes_are_sorted_by_the_medians_of_the_first_panel() {
        let mut samples = Samples::new("dataset");
        for (format, random, sequential) in
            [("tiff", 3e-3, 1e-3), ("ome-zarr", 1e-3, 9e-3), ("parquet", 2e-3, 2e-3)]
        {
            for (access, seconds) in [("random", random), ("sequential", sequential)] {
                samples.push(row![("format", format), ("access", access), ("run", 0)], vec![seconds; 9]);
            }
        }
        let figures = figures(&samples, &ReportInput::default());
        let section = &figures[0].0.sections[0];
        let Layout::Rows { series, .. } = &section.layout else { panic!("rows") };
        assert_eq!(section.panels[0].title, "access random");
        let names: Vec<_> = series.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["ome-zarr", "parquet", "tiff"]);
        let Mark::Sample(best) = &section.panels[0].marks[0] else { panic!("a sample") };
        assert_eq!(*best, Sample::new([1e-3; 9]));
    }

    #[test]
    fn waits_for_batches_that_were_read_ahead_are_not_drawn() {
        let mut samples = Samples::new("dataloader");
        for (workers, seconds) in [(0, 2e-3), (2, 1e-7)] {
            samples.push(row![("format", "tiff"), ("workers", workers), ("run", 0)], vec![seconds; 8]);
        }
        let figures = figures(&samples, &ReportInput::default());
        assert_eq!(figures.len(), 2);
        for (figure, _) in &figures {
            assert!(figure.notes[0].starts_with("n = 8 measurements of 1 run each"), "{:?}", figure.notes);
            assert!(figure.notes[1].starts_with("Runs without workers only"), "{:?}", figure.notes);
        }
        // One that fetches all batches at once waits for the first alone.
        for run in 0..2 {
            samples.push(
                row![("format", "parquet-duckdb"), ("workers", 0), ("run", run)],
                vec![0.24, 1e-6, 2e-7],
            );
        }
        let with_one = super::figures(&samples, &ReportInput::default());
        for (figure, _) in &with_one {
            assert!(figure.notes[0].starts_with("n = 8 measurements of 1 run each"), "{:?}", figure.notes);
            assert!(figure.notes[1].contains("fetch many batches at once"), "{:?}", figure.notes);
        }
        let mut ahead = Samples::new("dataloader");
        ahead.push(row![("format", "tiff"), ("workers", 2), ("run", 0)], vec![1e-7; 8]);
        assert!(super::figures(&ahead, &ReportInput::default()).is_empty());
    }

    #[test]
    fn a_slow_start_is_seen_in_every_run() {
        let figures = figures(&samples(), &ReportInput::default());
        let section = &figures[1].0.sections[0];
        let Layout::Scatter { xs, points, .. } = &section.layout else { panic!("points over runs") };
        let middle = |at: usize| match &section.panels[0].marks[at] {
            Mark::Spread(spread) => spread.p50.unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!((points.len(), xs.len()), (48, 96));
        for run in 0..3 {
            assert_eq!((middle(run * 16), middle(run * 16 + 15)), (5e-3, 1e-3));
            assert!((xs[run * 16].unwrap() - run as f64).abs() < 0.1);
        }
    }

    #[test]
    fn runs_of_one_item_none_and_no_number_are_drawn_or_left_out() {
        let mut samples = Samples::new("own");
        samples.push(row![("run", 0)], vec![]);
        assert!(figures(&samples, &ReportInput::default()).is_empty());
        samples.push(row![("run", 1)], vec![f64::NAN, 0.5]);
        for (figure, _) in figures(&samples, &ReportInput::default()) {
            figure.png(1.0).unwrap();
        }
    }
}
