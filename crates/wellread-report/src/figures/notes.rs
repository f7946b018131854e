//! The text below a figure: runs, whiskers, machine, noise, missing values and the reasons.

use super::codec_name::{NOT_COMPRESSED, codec_name};
use crate::chart::{Mark, Section};
use crate::columns;
use crate::input::ReportInput;
use crate::number;
use crate::table::{Cell, IntervalKind, Table};
use crate::words;

/// The lines at the foot: runs, what the whiskers of these sections are, machine and noise, what is not verified.
pub(super) fn notes(table: &Table, sections: &[Section], about: &ReportInput) -> Vec<String> {
    let keys = columns::keys(table);
    let quantities = columns::quantities(table);
    let all = columns::configurations(table, &keys, &quantities);
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
    let marks = sections.iter().flat_map(|section| &section.panels).flat_map(|panel| &panel.marks);
    let interval = |mark: &Mark| if let Mark::Value(e) = mark { Some(e.interval) } else { None };
    if let Some(whiskers) = whiskers(&marks.filter_map(interval).collect::<Vec<_>>()) {
        first += if first.is_empty() { "" } else { " " };
        first += whiskers;
    }
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
        let mut formats: Vec<String> = vec![];
        for format in unverified.iter().filter_map(|c| c.group.key.first()).map(Cell::text) {
            if !formats.contains(&format) {
                formats.push(format);
            }
        }
        let what = match unverified.len() {
            1 => labelled_name(&keys, &some.group.key),
            n => format!("{} ({n} configurations)", formats.join(", ")),
        };
        notes.push(format!("⚠ Pixels not verified: {what}."));
    }
    notes.retain(|n| !n.is_empty());
    notes
}

/// The meaning of a figure's whiskers, by the intervals that it shows; `None` where it has none.
pub(super) fn whiskers(intervals: &[IntervalKind]) -> Option<&'static str> {
    match (intervals.contains(&IntervalKind::Confidence), intervals.contains(&IntervalKind::Range)) {
        (true, false) => {
            Some("Whiskers: 95 % confidence intervals; where none is seen it is narrower than the mark.")
        }
        (true, true) => Some(
            "Whiskers: 95 % confidence intervals, or smallest to largest run where runs are too few for one.",
        ),
        (false, true) => Some("Whiskers: smallest to largest run."),
        (false, false) => None,
    }
}

/// Configurations that a line on what is missing names.
const NAMED: usize = 4;

/// The configurations that were not measured, one line per reason. A framework or a format of which nothing was
/// measured stands by its name alone.
pub fn missing(keys: &[&str], all: &[columns::Configuration]) -> Vec<(String, String)> {
    let places: Vec<usize> =
        ["framework", "format"].iter().filter_map(|name| keys.iter().position(|key| key == name)).collect();
    let is_measured =
        |at: usize, value: &Cell| all.iter().any(|c| c.unavailable.is_none() && c.group.key[at] == *value);
    // The first of these keys of which all is missing.
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
        // `doctor` names the feature that each needs.
        let why = why.split_once("; build with --features").map_or(why, |(why, _)| why);
        let name = whole(c).unwrap_or_else(|| labelled_name(keys, &c.group.key));
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => reasons.push((why.to_owned(), vec![name])),
        }
    }
    let told = |(why, names): (String, Vec<String>)| {
        // A name takes no more place than "and 1 more".
        let most = if names.len() == NAMED + 1 { names.len() } else { NAMED };
        (words::first_and_more(&names, most, ["; ", "; and"]), why)
    };
    reasons.into_iter().map(told).collect()
}

/// The codec of each format, as far as the table knows: they differ by it as much as by anything.
pub(super) fn codecs(table: &Table) -> String {
    let known: Vec<_> = table
        .groups(&["format", "codec"])
        .into_iter()
        .filter(|g| g.key[1] != Cell::Null)
        .map(|g| {
            let codec = g.key[1].text();
            let codec = if codec_name(&codec) == NOT_COMPRESSED { "none" } else { codec.as_str() };
            format!("{} {codec}", g.key[0].text())
        })
        .collect();
    if known.is_empty() { String::new() } else { format!("Compression: {}.", known.join(", ")) }
}

/// A noise floor as text: `2.1 %`.
pub(crate) fn noise_text(noise: f64) -> String {
    format!("{}\u{a0}%", number::tick(noise * 100.0, usize::from(noise < 0.1)))
}

/// The values of a configuration's keys, joined.
pub(super) fn configuration_name(key: &[Cell]) -> String {
    let known = key.iter().filter(|c| **c != Cell::Null).map(columns::key_text);
    known.collect::<Vec<_>>().join(", ")
}

/// The same, with the name of its column before a value that tells nothing by itself: `parquet, workers 2, cache none`.
pub(crate) fn labelled_name(keys: &[&str], key: &[Cell]) -> String {
    let labelled = |(name, cell): (&&str, &Cell)| {
        columns::labelled(name, &columns::key_text(cell), cell.as_f64().is_some())
    };
    let known = keys.iter().zip(key).filter(|(_, cell)| **cell != Cell::Null).map(labelled);
    known.collect::<Vec<_>>().join(", ")
}

/// Whether a reason is want of time.
pub(super) fn is_late(why: &str) -> bool {
    why.contains(columns::LEFT_OUT)
}
