//! The figure of a table, by its own spec or the generic one, and the files of all.

use super::notes::{is_late, notes};
use super::registry::{heading, spec};
use super::{generic, samples};
use crate::Result;
use crate::chart::{Figure, Layout, Mark, Panel, Section};
use crate::input::ReportInput;
use crate::table::Table;
use std::path::{Path, PathBuf};

/// The figure of a table; `None` for tables that hold nothing to show. It uses only the words of `about` on
/// images, machine and noise floor.
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

/// The sections without panels in which nothing was measured: the notes give the reason. Where nothing was measured at
/// all, the panels stay and say so.
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

/// Writes `WHAT.svg` and `WHAT.png` of every table that has a figure into a folder. Also writes `WHAT_distribution` and
/// `WHAT_timeline` of its single measurements where they were kept. Returns their paths.
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
