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
    // What is missing takes a line per reason below the table.
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
    let heads = |texts: Vec<String>, values: Vec<usize>| -> Vec<TextColumn> {
        let wrap = |(text, width): (String, usize)| {
            let head = wrap_head(&text, width);
            let width = head.iter().map(|line| chars(line)).max().unwrap_or(0).max(width);
            (head, width)
        };
        texts.into_iter().zip(values).map(wrap).collect()
    };
    let widest = |texts: &mut dyn Iterator<Item = &String>| texts.map(|text| chars(text)).max().unwrap_or(0);
    let key_columns = heads(
        keys.iter().map(|key| (*key).to_owned()).collect(),
        (0..keys.len()).map(|key| widest(&mut lines.iter().map(|line| &line.keys[key]))).collect(),
    );
    let figures = |q: usize| lines.iter().filter_map(move |line| line.figures.get(q));
    let figure_columns = heads(
        quantities.iter().map(|quantity| quantity.label.clone()).collect(),
        (0..quantities.len()).map(|q| widest(&mut figures(q))).collect(),
    );
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
    let parts = parts(&columns, left, width.saturating_sub(beside));
    for part in parts.into_iter().filter(|_| !lines.is_empty()) {
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
        for Line { keys, figures, unverified } in &lines {
            let names: Vec<String> =
                telling.iter().zip(&columns).map(|(&key, (_, width))| cut(&keys[key], *width)).collect();
            let mut cells: Vec<&str> = names.iter().map(String::as_str).collect();
            cells.extend(figures[part.clone()].iter().map(String::as_str));
            push(&cells, unverified.then_some(UNVERIFIED));
        }
    }
    for (who, why) in missing {
        let head = format!("{UNAVAILABLE}{who}: ");
        let line = head.clone() + &why.replace('\n', " ");
        // In one line where there is room: the report, and the sentence on what was not measured, have all of it.
        let one = chars(&head) + MIN_REASON_WIDTH <= width;
        out += &if one { cut(&line, width) } else { wrapped(&line, Some(width)) };
        out.push('\n');
    }
    out
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
mod tests {
    use super::*;
    use crate::output::MAX_LINE_WIDTH as WIDTH;
    use wellread_report::row;

    #[test]
    fn a_wide_table_fits() {
        let mut table = Table::new("loop");
        for (format, workers) in [("parquet", 0), ("ome-arrow-dataset", 2)] {
            table.push(row![
                ("format", format),
                ("model", "small-cnn"),
                ("mode", "train"),
                ("workers", workers),
                ("step_p50_s", 0.01),
                ("data_wait_fraction", 0.123),
                ("accelerator_utilisation", 0.877),
                ("images_per_sec", 12_345.0),
                ("wait_by_difference_fraction", 0.1),
                ("wait_by_difference_cold_fraction", 0.1),
                ("synthetic_step_s", 0.1),
                ("cached_step_s", 0.1),
                ("first_batch_s", 0.1),
                ("verified", workers == 0)
            ]);
        }
        table.push(row![
            ("format", "lance"),
            ("model", "small-cnn"),
            ("mode", "train"),
            ("status", "unavailable"),
            ("reason", "x".repeat(300))
        ]);
        for width in [80, 100] {
            let text = text_table(&table, "", &[], width);
            assert!(text.lines().all(|line| chars(line) <= width), "{text}");
            assert!(text.contains("all: model small-cnn, mode train"), "{text}");
            // Every figure of both configurations, however narrow.
            assert_eq!(text.matches("12,300/s").count(), 2, "{text}");
            assert_eq!(text.matches("12.3\u{a0}%").count(), 2, "{text}");
            assert_eq!(text.matches("87.7\u{a0}%").count(), 2, "{text}");
            assert_eq!(text.matches("100\u{a0}ms").count(), 6, "{text}");
            // A line of each part says whose figures they are, and that they are no good.
            assert_eq!(
                text.matches("ome-arrow-dataset").count(),
                text.matches("PIXELS DIFFER").count(),
                "{text}"
            );
            let missing: Vec<&str> = text.lines().filter(|line| line.contains("xxx")).collect();
            assert!(missing.len() == 1 && missing[0].starts_with("  unavailable: lance: xxx"), "{text}");
            assert!(missing[0].ends_with("xx…"), "{text}");
        }
        let few = text_table(&table, "about", &["images_per_sec"], WIDTH);
        assert!(few.contains("PIXELS DIFFER") && few.contains("/s"), "{few}");
    }

    #[test]
    fn formats_that_a_build_lacks_take_one_line() {
        let mut table = Table::new("storage");
        for operation in ["open", "read_all", "read_random"] {
            table.push(row![
                ("format", "tiff"),
                ("operation", operation),
                ("status", "ok"),
                ("seconds", 1.0)
            ]);
            for format in ["duckdb", "lance", "vortex"] {
                let reason = format!("left out of this build; build with --features {format}");
                table.push(row![
                    ("format", format),
                    ("operation", operation),
                    ("status", "unavailable"),
                    ("reason", reason)
                ]);
            }
        }
        table.push(row![
            ("format", "tiff"),
            ("operation", "write"),
            ("status", "unavailable"),
            ("reason", "the disk is full")
        ]);
        let text = text_table(&table, "", &["seconds"], WIDTH);
        let said: Vec<&str> = text.lines().filter(|line| line.contains("unavailable")).collect();
        assert_eq!(
            said,
            [
                "  unavailable: duckdb; lance; vortex: left out of this build",
                "  unavailable: tiff, write: the disk is full"
            ]
        );
        assert!(text.contains("all: format tiff") && text.matches("1.00").count() == 3, "{text}");
    }

    #[test]
    fn a_framework_that_is_missing_takes_one_line() {
        let mut table = Table::new("dataset");
        for format in ["tiff", "parquet"] {
            table.push(row![("format", format), ("framework", "rust"), ("status", "ok"), ("p50_s", 1.0)]);
            for framework in ["pytorch", "jax"] {
                table.push(row![
                    ("format", format),
                    ("framework", framework),
                    ("status", "unavailable"),
                    ("reason", "No module\nnamed torch")
                ]);
            }
        }
        let text = text_table(&table, "", &["p50_s"], WIDTH);
        let said: Vec<&str> = text.lines().filter(|line| line.contains("unavailable")).collect();
        assert_eq!(said, ["  unavailable: pytorch; jax: No module named torch"]);
    }

    #[test]
    fn the_one_configuration_that_was_measured_shows_every_figure() {
        let row = |format: &str| {
            row![
                ("format", format),
                ("framework", "pytorch"),
                ("loader", "wellread.torch.DataLoader"),
                ("model", "python:mymodels:ANetworkOfALongName"),
                ("mode", "train"),
                ("batch_size", 2),
                ("device", "cpu"),
                ("backend", "torch 2.9.1, oneDNN, 16 threads")
            ]
        };
        let mut table = Table::new("loop");
        let mut measured = row("parquet");
        measured.extend(row![
            ("status", "ok"),
            ("images_per_sec", 12_345.0),
            ("data_wait_fraction", 0.123),
            ("step_p50_s", 0.1)
        ]);
        table.push(measured);
        let mut late = row("tiff");
        late.extend(row![("status", "unavailable"), ("reason", "left out for want of time: loop had 2 s")]);
        table.push(late);
        for width in [80, WIDTH] {
            let text = text_table(&table, "", &[], width);
            assert!(text.lines().all(|line| chars(line) <= width), "{text}");
            for figure in ["12,300/s", "12.3\u{a0}%", "100\u{a0}ms"] {
                assert_eq!(text.matches(figure).count(), 1, "{figure}: {text}");
            }
            assert!(text.contains("  all: framework pytorch, loader wellread.torch.DataLoader"), "{text}");
            assert!(text.lines().any(|line| line.starts_with("  parquet ")), "{text}");
        }
        // Keys that differ stay beside the figures, cut.
        let mut other = row("tiff");
        for (name, cell) in &mut other {
            if matches!(name.as_str(), "loader" | "model" | "backend") {
                *cell = wellread_report::Cell::from(format!("{}, changed", cell.text()));
            }
        }
        other.extend(row![
            ("status", "ok"),
            ("images_per_sec", 45.0),
            ("data_wait_fraction", 0.456),
            ("step_p50_s", 0.2)
        ]);
        table.push(other);
        let text = text_table(&table, "", &[], WIDTH);
        for figure in ["12,300/s", "45.0/s", "12.3\u{a0}%", "45.6\u{a0}%", "100\u{a0}ms", "200\u{a0}ms"] {
            assert_eq!(text.matches(figure).count(), 1, "{figure}: {text}");
        }
        assert!(text.lines().all(|line| chars(line) <= WIDTH) && text.contains("python:"), "{text}");
    }

    #[test]
    fn heads_are_broken_at_spaces() {
        let head = wrap_head("share of a step waiting for data", 6);
        assert_eq!(head, ["share of a", "step waiting", "for data"]);
    }
}
