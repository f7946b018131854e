//! The figure that a report of `bench` begins with: how fast each format is at what decides, codec by codec, best first.
//!
//! ```text
//!  first of CHOICES that was measured ─▶ a bar for each format ─▶ a part for each codec, all on one scale ─▶ Figure
//!                                        model loop ─▶ demand ─▶ a line across all parts
//! ```
//!
//! The rows are those that the answer's sentence on the fastest format rests on.

use super::codec_name::codec_name;
use super::demand::{self, Demand};
use super::notes::{codecs, whiskers};
use super::panel::{self, mark, rows_section, value_of};
use super::select::{counted, not_drawn, rows, series, sorted, thing};
use crate::chart::{Axis, Figure, Mark, Panel, Scale, Section, Series};
use crate::input::ReportInput;
use crate::table::{Cell, Table};

/// Rows of a table and a quantity that decide.
struct Choice {
    table: &'static str,
    column: &'static str,
    /// The values that the chosen rows share.
    which: &'static [(&'static str, &'static str)],
    title: &'static str,
}

static CHOICES: [Choice; 3] = [
    Choice {
        table: "dataloader",
        column: "samples_per_sec",
        which: &[],
        title: "Images per second by format",
    },
    Choice {
        table: "dataset",
        column: "samples_per_sec",
        which: &[("access", "random"), ("transform", "none"), ("cache", "none")],
        title: "Single images per second by format, in random order",
    },
    Choice {
        table: "storage",
        column: "images_per_s",
        which: &[("operation", "read_all"), ("cache", "warm")],
        title: "Images read per second by format, files in memory",
    },
];

/// Name of the figure that a report begins with.
pub(super) const NAME: &str = "decision";

pub(crate) const HOW_TO_READ: &str = "Each bar is a format, that of the highest median on top. Formats of one codec stand \
                                      together: compare these. The line below the picture explains the whiskers; \
                                      bars whose whiskers overlap may be alike. A bar without one was measured \
                                      too few times. A dashed line is the rate of the model by itself: a format \
                                      that ends left of it makes the model wait.";

/// The note below bars that are the best of some numbers of workers only.
const TOO_FEW_WORKERS: &str =
    "Not every number of workers was measured for every format: others may be faster.";

/// How far beyond the longest bar and whisker the axes of all parts reach, so that its label is no reason for another scale.
const LABEL_ROOM: f64 = 1.2;
/// A demand of the model beyond this many times the longest bar is told in words: drawn, it would leave no room for the bars.
const FAR: f64 = 3.0;

/// The batch size that a verdict rests on: the largest of which an epoch has at least four, else the smallest.
pub fn telling_batch_size(table: &Table) -> Option<f64> {
    let mut sizes: Vec<(f64, f64)> = (0..table.rows())
        .filter_map(|r| Some((table.f64("batch_size", r)?, table.f64("num_samples", r)?)))
        .collect();
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let full = sizes.iter().rev().find(|(size, images)| images / size >= 4.0);
    full.or(sizes.first()).map(|(size, _)| *size)
}

/// The formats of one codec and their marks.
struct Part {
    codec: String,
    formats: Vec<(Series, Vec<(&'static str, Cell)>)>,
    marks: Vec<Mark>,
}

impl Part {
    /// The largest value.
    fn best(&self) -> f64 {
        self.marks.iter().filter_map(value_of).fold(0.0, f64::max)
    }
}

/// The formats by their codec, the part with the fastest format first.
fn parts(table: &Table, formats: Vec<(Series, Vec<(&'static str, Cell)>)>, marks: Vec<Mark>) -> Vec<Part> {
    let mut parts: Vec<Part> = vec![];
    for (format, mark) in formats.into_iter().zip(marks) {
        let codec = rows(table, &format.1).into_iter().find_map(|row| table.str("codec", row));
        let codec = codec.map_or_else(|| "Codec unknown".to_owned(), codec_name);
        match parts.iter_mut().find(|part| part.codec == codec) {
            Some(part) => {
                part.formats.push(format);
                part.marks.push(mark);
            }
            None => parts.push(Part { codec, formats: vec![format], marks: vec![mark] }),
        }
    }
    parts.sort_by(|a, b| b.best().total_cmp(&a.best()));
    parts
}

/// The words about the model's demand; it is drawn where the bars leave room for it.
fn with_demand(axis: &mut Axis, demand: &Demand, most: f64) -> String {
    let Demand { images_per_s, model, mode } = demand;
    let takes = axis.unit.format(*images_per_s);
    let work = if mode == "train" { "training" } else { "inference" };
    if *images_per_s > FAR * most {
        return format!(
            "The model ({model}, {work}) takes {takes} without waiting, far beyond this axis: it waits for every \
             format."
        );
    }
    axis.references.push((*images_per_s, format!("{model} takes {takes}")));
    format!("Dashed line: the rate of the model ({model}, {work}) without waiting, {takes}.")
}

/// The figure; `None` where nothing that decides was measured.
pub(crate) fn figure(input: &ReportInput) -> Option<Figure> {
    let of = |least: usize| {
        CHOICES.iter().find_map(|choice| {
            let table = input.tables.iter().find(|table| table.name() == choice.table)?;
            draw(choice, table, input, least)
        })
    };
    // One that compares formats, where several were measured.
    of(2).or_else(|| of(1))
}

/// The figure of a choice of which `least` formats at least were measured.
fn draw(choice: &Choice, table: &Table, input: &ReportInput, least: usize) -> Option<Figure> {
    let batch = telling_batch_size(table);
    let batch = sorted(table, "batch_size", &[]).into_iter().find(|size| size.as_f64() == batch);
    let mut common: Vec<(&'static str, Cell)> =
        choice.which.iter().map(|(name, value)| (*name, Cell::from(*value))).collect();
    common.extend(batch.clone().map(|size| ("batch_size", size)));
    // The first of several caches of a loader, as in the sentences. Loaders in Python have none.
    let of_first_cache = |(series, mut which): (Series, Vec<(&'static str, Cell)>)| {
        let first = rows(table, &which).first().map(|&row| ("cache", table.cell("cache", row)));
        which.extend(first.filter(|_| choice.table == "dataloader"));
        (series, which)
    };
    let workers = sorted(table, "workers", &[]);
    let workers = if workers.is_empty() { vec![Cell::Null] } else { workers };
    let with = |which: &[(&'static str, Cell)], workers: &Cell| {
        let which: Vec<_> =
            which.iter().chain(&common).cloned().chain([("workers", workers.clone())]).collect();
        if rows(table, &which).is_empty() { Mark::Nothing } else { mark(table, &which, choice.column) }
    };
    let best = |which: &[(&'static str, Cell)]| {
        let value = |mark: &Mark| if let Mark::Value(estimate) = mark { estimate.value } else { f64::MIN };
        let marks = workers.iter().map(|workers| with(which, workers));
        marks.max_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or_default()
    };
    // Rows that were not measured are named below the picture; the benchmark's own figure gives the reason.
    let (measured, left_out): (Vec<_>, Vec<_>) = series(table)
        .into_iter()
        .map(|one| {
            let (series, which) = of_first_cache(one);
            let mark = best(&which);
            ((series, which), mark)
        })
        .partition(|(_, mark)| matches!(mark, Mark::Value(_)));
    let (shown, marks): (Vec<(Series, Vec<_>)>, Vec<Mark>) = measured.into_iter().unzip();
    if shown.len() < least {
        return None;
    }
    let is_tried = |which: &[(&'static str, Cell)]| {
        workers.iter().all(|workers| matches!(with(which, workers), Mark::Value(_)))
    };
    let all_tried = shown.iter().all(|(_, which)| is_tried(which));
    let is_unverified = |(_, which): &&(Series, Vec<(&'static str, Cell)>)| {
        let which: Vec<_> = which.iter().chain(&common).cloned().collect();
        rows(table, &which).into_iter().any(|row| table.cell("verified", row) == Cell::Bool(false))
    };
    let unverified: Vec<&str> = shown.iter().filter(is_unverified).map(|one| one.0.name.as_str()).collect();
    let unverified = (!unverified.is_empty())
        .then(|| format!("⚠ Pixels not verified: {}. Do not use these figures.", unverified.join(", ")));
    let estimate = |mark: &Mark| if let Mark::Value(estimate) = mark { Some(*estimate) } else { None };
    let intervals: Vec<_> = marks.iter().filter_map(estimate).map(|one| one.interval).collect();
    let ends = marks.iter().filter_map(estimate).map(|one| one.high.max(one.value));
    let end = ends.filter(|end| end.is_finite()).fold(0.0, f64::max);
    let parts = parts(table, shown, marks);
    let most = parts.iter().map(Part::best).fold(0.0, f64::max);
    let mut axis = panel::axis_of_loaders(table, choice.column).scale(Scale::Linear);
    axis.at_least = (parts.len() > 1).then_some(end * LABEL_ROOM);
    // A model takes no single images and no whole reads, and the loop counts crops otherwise.
    let model_loop = input.tables.iter().find(|other| other.name() == "loop");
    let asked = model_loop.filter(|_| choice.table == "dataloader" && thing(table) == "image");
    let demand = asked.and_then(demand::of).map(|demand| with_demand(&mut axis, &demand, most));
    let several = parts.len() > 1;
    let section = |part: Part| {
        let title = if several { part.codec } else { String::new() };
        let panel = Panel { title: String::new(), axis: axis.clone(), marks: part.marks };
        rows_section(title, &part.formats, &[String::new()], vec![panel], 1)
    };
    let sections: Vec<Section> = parts.into_iter().map(section).collect();
    let mut title = choice.title.to_owned();
    if thing(table) == "crop" {
        title = title.replacen("Images", "Crops", 1);
    }
    if let Some(size) = batch {
        title += &format!(" in batches of {}", size.text());
    }
    match &workers[..] {
        [Cell::Null] => {}
        [one] => title += &format!(", with {}", counted(one, "worker")),
        _ if all_tried => title += ", with the number of workers that serves it best",
        _ => title += ", with the best number of workers that was measured",
    }
    let mut notes: Vec<String> =
        unverified.into_iter().chain(whiskers(&intervals).map(str::to_owned)).collect();
    notes.extend((!all_tried).then(|| TOO_FEW_WORKERS.to_owned()));
    notes.extend(demand);
    notes.extend(not_drawn(table));
    notes.extend(Some(codecs(table)).filter(|_| several));
    if !left_out.is_empty() {
        let names: Vec<String> = left_out.into_iter().map(|((series, _), _)| series.name).collect();
        notes.push(format!("Not measured: {}. The figures of the benchmark say why.", names.join(", ")));
    }
    notes.extend(Some(input.machine.clone()).filter(|note| !note.is_empty()));
    Some(Figure {
        name: NAME.to_owned(),
        title: title.clone(),
        subtitle: input.images.clone(),
        sections,
        notes,
        description: String::new(),
    })
}

#[cfg(test)]
mod tests;
