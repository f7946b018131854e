//! The figure of a table, by its own spec or the generic one, and the files of all.

use super::notes::{is_late, notes};
use super::registry::{heading, spec};
use super::select::not_drawn;
use super::{generic, samples};
use crate::Result;
use crate::chart::{Figure, Layout, Mark, Panel, Section};
use crate::input::ReportInput;
use crate::number;
use crate::table::Table;
use std::path::{Path, PathBuf};

/// Rows of a section at most: coordinates end at 100,000 pixels.
const MAX_ROWS: usize = 200;

/// The figure of a table; `None` for tables that hold nothing to show. It uses only the words of `about` on
/// images, machine and noise floor.
pub fn figure(table: &Table, about: &ReportInput) -> Option<Figure> {
    let (title, sections, not_drawn) = match spec(table.name()) {
        Some(spec) => (spec.title.to_owned(), (spec.sections)(table), not_drawn(table)),
        None => (heading(table.name()), generic::sections(table), None),
    };
    let mut figure = of_sections(table, &title, sections, about)?;
    figure.notes.extend(not_drawn);
    Some(figure)
}

/// The figure of these sections of a table; `None` where they hold nothing to show.
pub(super) fn of_sections(
    table: &Table,
    title: &str,
    sections: Vec<Section>,
    about: &ReportInput,
) -> Option<Figure> {
    let sections = limited(without_late(without_empty(sections)));
    if sections.is_empty() {
        return None;
    }
    let notes = notes(table, &sections, about);
    Some(Figure {
        name: table.name().to_owned(),
        title: title.to_owned(),
        subtitle: about.images.clone(),
        sections,
        notes,
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
        let Layout::Rows { series, variants } = &section.layout else { continue };
        let each = variants.len().max(1);
        let stays = |row: usize| {
            let marks = || {
                section.panels.iter().flat_map(move |panel| panel.marks.iter().skip(row * each).take(each))
            };
            !marks().any(late) || marks().any(|mark| !late(mark) && *mark != Mark::Nothing)
        };
        let kept: Vec<usize> = (0..series.len()).filter(|&row| stays(row)).collect();
        if !kept.is_empty() {
            keep(section, &kept);
        }
    }
    sections
}

/// The first rows of sections that have more than a figure has room for. The title says how many there are.
fn limited(mut sections: Vec<Section>) -> Vec<Section> {
    for section in &mut sections {
        let Layout::Rows { series, .. } = &section.layout else { continue };
        let all = series.len();
        if all > MAX_ROWS {
            keep(section, &(0..MAX_ROWS).collect::<Vec<_>>());
            let all = number::count(all as i64);
            section.title += &format!(": the first {MAX_ROWS} of {all} rows; the table has all");
        }
    }
    sections
}

/// Keeps these rows of a section.
fn keep(section: &mut Section, kept: &[usize]) {
    let Layout::Rows { series, variants } = &mut section.layout else { return };
    let each = variants.len().max(1);
    for panel in &mut section.panels {
        panel.marks.resize(series.len() * each, Mark::Nothing);
        panel.marks =
            kept.iter().flat_map(|&row| panel.marks[row * each..(row + 1) * each].to_vec()).collect();
    }
    *series = kept.iter().map(|&row| series[row].clone()).collect();
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
