//! Result tables for a terminal, as wide as it is.
//!
//! ```text
//!  configurations ─▶ keys that are the same everywhere: one line above, those of a single configuration where they are wide
//!                 ─▶ keys that leave no room for a figure: cut
//!                 ─▶ heads, broken at spaces ─▶ figures that do not fit beside the keys: a part of their own below
//! ```
//!
//! No figure is left out. The ends of long texts are; the report has them.

use crate::output::wrapped;
use std::ops::Range;
use wellread_report::{Table, columns, figures};

/// Lines of the heads at most.
const MAX_HEAD_LINES: usize = 3;
/// Between columns.
const COLUMN_GAP: usize = 2;
/// Columns of a key at least, where keys are cut to make room for a figure.
const MIN_KEY_WIDTH: usize = 8;
/// Columns of a reason why something is missing at least; where fewer are left, it goes on in the next line.
const MIN_REASON_WIDTH: usize = 20;
/// How a line on what is missing begins.
pub const UNAVAILABLE: &str = "  unavailable: ";
/// The mark beside a line whose pixels are wrong.
const UNVERIFIED: &str = "PIXELS DIFFER";

/// A configuration's line.
struct Line {
    keys: Vec<String>,
    figures: Vec<String>,
    unverified: bool,
}

/// A column of text: the lines of its head, and how wide it is.
type TextColumn = (Vec<String>, usize);

/// A table for a terminal of so many columns: the columns named, or all quantities when none is, per configuration.
pub fn text_table(table: &Table, about: &str, headline: &[&str], width: usize) -> String {
    let quantities: Vec<_> = if headline.is_empty() {
        columns::quantities(table)
    } else {
        headline.iter().map(|column| columns::quantity(column)).collect()
    };
    let keys = columns::keys(table);
    let all = columns::configurations(table, &keys, &quantities);
    // Missing values take a line per reason below the table.
    let missing = figures::missing(&keys, &all);
    let lines: Vec<Line> = all
        .into_iter()
        .filter(|configuration| configuration.unavailable.is_none())
        .map(|configuration| Line {
            keys: configuration.group.key.iter().map(columns::key_text).collect(),
            figures: (configuration.estimates.iter().zip(&quantities))
                .map(|(e, q)| e.as_ref().map_or_else(|| "–".to_owned(), |e| q.unit.format(e.value)))
                .collect(),
            unverified: configuration.unverified,
        })
        .collect();
    let head = format!("{}{}{about}", table.name(), if about.is_empty() { "" } else { ": " });
    let mut out = wrapped(&head, Some(width));
    out.push('\n');
    let key_columns: Vec<TextColumn> = (0..keys.len())
        .map(|key| text_column(keys[key], lines.iter().map(|line| line.keys[key].as_str())))
        .collect();
    let figure_columns: Vec<TextColumn> = (quantities.iter().enumerate())
        .map(|(q, quantity)| {
            let figures = lines.iter().filter_map(|line| line.figures.get(q));
            text_column(&quantity.label, figures.map(String::as_str))
        })
        .collect();
    let any_wrong = lines.iter().any(|line| line.unverified);
    let beside = if any_wrong { COLUMN_GAP + UNVERIFIED.len() } else { 0 };
    let widest_figure = figure_columns.iter().map(|(_, width)| COLUMN_GAP + width).max().unwrap_or(0);
    let room = width.saturating_sub(beside + widest_figure);
    let crowded = total_width(&key_columns) > room;
    let same = |key: usize| match lines.len() {
        0 => false,
        // The one that was measured, where others were not: its first key stays.
        1 => crowded && key > 0,
        _ => lines.iter().all(|line| line.keys[key] == lines[0].keys[key]),
    };
    let (constant, telling): (Vec<usize>, Vec<usize>) = (0..keys.len()).partition(|&key| same(key));
    if !constant.is_empty() {
        let told: Vec<_> = constant
            .iter()
            .map(|&key| format!("{} {}", keys[key].replace('_', " "), lines[0].keys[key]))
            .collect();
        out += &wrapped(&format!("  all: {}", told.join(", ")), Some(width));
        out.push('\n');
    }
    let mut columns: Vec<TextColumn> = telling.iter().map(|&key| key_columns[key].clone()).collect();
    narrow(&mut columns, room);
    let left = columns.len();
    columns.extend(figure_columns);
    // A line without figures tells which configurations there are.
    let lines: Vec<Line> = lines
        .into_iter()
        .map(|line| Line { keys: telling.iter().map(|&key| line.keys[key].clone()).collect(), ..line })
        .collect();
    out += &in_parts(&columns, left, &lines, [width.saturating_sub(beside), width]);
    for (who, why) in missing {
        let head = format!("{UNAVAILABLE}{who}: ");
        let line = head.clone() + &why.replace('\n', " ");
        // In one line where there is room: the report, and the sentence on what was not measured, have all of it.
        let one = chars(&head) + MIN_REASON_WIDTH <= width;
        out += &if one { cut_between_words(&line, &head, width) } else { wrapped(&line, Some(width)) };
        out.push('\n');
    }
    out
}

/// A table of texts for a terminal of so many columns. The first cell of a row says whose it is; the others are its figures.
pub fn plain_table(heads: &[&str], rows: &[Vec<String>], width: usize) -> String {
    let mut columns: Vec<TextColumn> = (heads.iter().enumerate())
        .map(|(at, head)| text_column(head, rows.iter().map(|row| row[at].as_str())))
        .collect();
    let figures = columns.split_off(1);
    let widest = figures.iter().map(|(_, width)| COLUMN_GAP + width).max().unwrap_or(0);
    narrow(&mut columns, width.saturating_sub(widest));
    columns.extend(figures);
    let lines: Vec<Line> = rows
        .iter()
        .map(|row| Line { keys: vec![row[0].clone()], figures: row[1..].to_vec(), unverified: false })
        .collect();
    in_parts(&columns, 1, &lines, [width; 2])
}

/// Lines in parts of as many figures as there is room for, each below its heads. The first `left` columns are keys, which each part
/// has. `room` has the columns for keys and figures, and those of the terminal.
fn in_parts(columns: &[TextColumn], left: usize, lines: &[Line], [room, width]: [usize; 2]) -> String {
    let mut out = String::new();
    for part in parts(columns, left, room).into_iter().filter(|_| !lines.is_empty()) {
        let shown: Vec<&TextColumn> = columns[..left].iter().chain(&columns[left..][part.clone()]).collect();
        let rows = shown.iter().map(|(head, _)| head.len()).max().unwrap_or(1);
        let mut push = |cells: &[&str], more: Option<&str>| {
            out += &cut(&joined(&shown, left, cells, more), width);
            out.push('\n');
        };
        for row in 0..rows {
            // Heads stand at the bottom, above their figures.
            let cells: Vec<&str> = shown
                .iter()
                .map(|(head, _)| (row + head.len()).checked_sub(rows).map_or("", |at| head[at].as_str()))
                .collect();
            push(&cells, None);
        }
        for Line { keys, figures, unverified } in lines {
            let names: Vec<String> =
                keys.iter().zip(columns).map(|(key, (_, width))| cut(key, *width)).collect();
            let mut cells: Vec<&str> = names.iter().map(String::as_str).collect();
            cells.extend(figures[part.clone()].iter().map(String::as_str));
            push(&cells, unverified.then_some(UNVERIFIED));
        }
    }
    out
}

/// A column with this head and these values.
fn text_column<'t>(head: &str, values: impl Iterator<Item = &'t str>) -> TextColumn {
    let widest = values.map(chars).max().unwrap_or(0);
    let head = wrap_head(head, widest);
    let width = head.iter().map(|line| chars(line)).max().unwrap_or(0).max(widest);
    (head, width)
}

/// The width of columns side by side, with the gap before each.
fn total_width(columns: &[TextColumn]) -> usize {
    columns.iter().map(|(_, width)| COLUMN_GAP + width).sum()
}

/// Makes the widest of the columns narrower until all have room, or none is wider than [`MIN_KEY_WIDTH`].
fn narrow(columns: &mut [TextColumn], room: usize) {
    while total_width(columns) > room {
        let wide = columns.iter_mut().filter(|(_, width)| *width > MIN_KEY_WIDTH);
        let Some((head, width)) = wide.max_by_key(|(_, width)| *width) else { return };
        *width -= 1;
        *head = head.iter().map(|line| cut(line, *width)).collect();
    }
}

/// Which figures stand side by side: as many as fit beside the keys, which are the first `left` columns, and one at least.
fn parts(columns: &[TextColumn], left: usize, width: usize) -> Vec<Range<usize>> {
    let (keys, figures) = columns.split_at(left);
    let room = width.saturating_sub(total_width(keys));
    let mut parts = vec![];
    let mut begin = 0;
    while begin < figures.len() || parts.is_empty() {
        let fits = |end: &usize| total_width(&figures[begin..*end]) <= room;
        let end =
            (begin + 1..=figures.len()).take_while(fits).last().unwrap_or((begin + 1).min(figures.len()));
        parts.push(begin..end);
        begin = end;
    }
    parts
}

/// The cells of a line in their columns: keys, which are the first `left`, at the left of theirs, figures at the right.
fn joined(columns: &[&TextColumn], left: usize, cells: &[&str], more: Option<&str>) -> String {
    let mut text = String::new();
    for (at, ((_, width), cell)) in columns.iter().zip(cells).enumerate() {
        text += "  ";
        text += &if at < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
    }
    text.truncate(text.trim_end().len());
    if let Some(more) = more {
        text += "  ";
        text += more;
    }
    text
}

/// A head in up to [`MAX_HEAD_LINES`] lines, as narrow as its column's values where that can be.
fn wrap_head(head: &str, width: usize) -> Vec<String> {
    let words: Vec<&str> = head.split(' ').collect();
    let longest = words.iter().map(|word| chars(word)).max().unwrap_or(0);
    for width in longest.max(width).. {
        let mut lines = vec![String::new()];
        for word in &words {
            let last = lines.last_mut().expect("there is a line");
            if last.is_empty() {
                last.push_str(word);
            } else if chars(last) + 1 + chars(word) <= width {
                last.push(' ');
                last.push_str(word);
            } else {
                lines.push((*word).to_owned());
            }
        }
        if lines.len() <= MAX_HEAD_LINES {
            return lines;
        }
    }
    vec![head.to_owned()]
}

/// As [`cut`], behind a whole word where one follows the line's `head`.
fn cut_between_words(line: &str, head: &str, width: usize) -> String {
    if chars(line) <= width {
        return line.to_owned();
    }
    let words = wrapped(line, Some(width - 2));
    let first = words.lines().next().unwrap_or_default();
    if first.len() > head.len() { format!("{first} …") } else { cut(line, width) }
}

/// A line's beginning where it is too long.
fn cut(line: &str, width: usize) -> String {
    if chars(line) <= width {
        return line.to_owned();
    }
    line.chars().take(width - 1).chain(['…']).collect()
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests;
