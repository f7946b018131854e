//! A comparison in words: for a terminal, and as Markdown for a pull request.

use crate::judge::percent;
use crate::provenance::Weight;
use crate::verdict::{Comparison, Row, RowVerdict, Scope, UnmatchedRow, first_of};
use std::fmt::Write as _;
use wellread_measure::compare::MAX_DETECTABLE;
use wellread_measure::nested::MIN_PROCESSES;
use wellread_report::columns::{self, Quantity};
use wellread_report::number::significant;
use wellread_report::words::counted;

/// Rows of the same that Markdown shows; the others are counted.
const MAX_SAME_ROWS: usize = 10;
/// Rows of a table in Markdown: hosts of pull requests still show so many.
const MAX_ROWS: usize = 200;

/// The result in one sentence.
pub fn verdict(c: &Comparison) -> String {
    if !c.comparable {
        return "The two cannot be compared: their pixels differ".to_owned();
    }
    let counts: Vec<String> = [RowVerdict::Slower, RowVerdict::Faster, RowVerdict::Same, RowVerdict::Unclear]
        .into_iter()
        .filter(|word| c.count(*word) > 0)
        .map(|word| format!("{} {word}", c.count(word)))
        .collect();
    let limit = percent(c.threshold);
    let measured: Vec<&Row> = c.rows.iter().filter(|row| row.a.is_finite() && row.b.is_finite()).collect();
    if !measured.is_empty() && measured.iter().all(|row| row.scope == Scope::Within) {
        let rows = match measured.len() {
            1 => "1 row: its ratio holds".to_owned(),
            n => format!("{n} rows: their ratios hold"),
        };
        return format!(
            "No verdict on {rows} within these runs only, of fewer than {MIN_PROCESSES} processes a side"
        );
    }
    if is_unclear(c) {
        return match c.rows.len() {
            1 => "Nothing can be told: the only row is unclear".to_owned(),
            n => format!("Nothing can be told: of {n} rows all are unclear"),
        };
    }
    let rows = counted(c.rows.len(), "row");
    match c.regressions {
        0 => format!(
            "No regression: of {rows} {}; no slower one has an interval that reaches {limit}",
            counts.join(", ")
        ),
        n => format!(
            "{} (slower; the interval reaches {limit}): of {rows} {}",
            counted(n, "regression"),
            counts.join(", ")
        ),
    }
}

/// The table for a terminal, and the notes beside it.
pub fn plain(c: &Comparison) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "A: {}\nB: {}", c.a, c.b);
    for difference in &c.differences {
        let mark = match difference.weight {
            Weight::Fatal => "!!",
            Weight::Caution => "!",
            Weight::Info => "·",
        };
        let _ = writeln!(out, "{mark} {} differs: {} / {}", difference.what, difference.a, difference.b);
    }
    for table in tables(c) {
        let rows: Vec<&Row> = c.rows.iter().filter(|row| row.table == table).collect();
        let _ = writeln!(out, "\n{table}: B against A; above 1 is slower");
        let head = ["", "quantity", "A", "B", "ratio (95 %)", "detects", "verdict"].map(str::to_owned);
        let lines: Vec<[String; 7]> =
            std::iter::once(head).chain(rows.iter().map(|row| cells(row))).collect();
        let width = |i: usize| lines.iter().map(|line| line[i].chars().count()).max().unwrap_or(0);
        let widths: [usize; 7] = std::array::from_fn(width);
        for line in &lines {
            out.push(' ');
            for (i, text) in line.iter().enumerate() {
                let pad = widths[i];
                if i < 2 || i == 6 {
                    let _ = write!(out, " {text:<pad$}");
                } else {
                    let _ = write!(out, " {text:>pad$}");
                }
            }
            out.truncate(out.trim_end().len());
            out.push('\n');
        }
        for (reason, n) in reasons(&rows) {
            let _ = writeln!(out, "  unclear ({n}): {reason}");
        }
    }
    for (side, unmatched) in [("A", &c.only_in_a), ("B", &c.only_in_b)] {
        for (table, list) in grouped(unmatched) {
            let _ = writeln!(out, "only in {side}: {table}{list}");
        }
    }
    let _ = write!(out, "\n{}.", verdict(c));
    if is_within(c) {
        let _ = write!(out, "\n{MORE_PROCESSES}");
    }
    out
}

/// How there are processes enough for a verdict.
const MORE_PROCESSES: &str = "Processes differ by more than their rounds tell. Measure several of each: `wellread bench … --processes 5`, or \
    several folders a side, `wellread compare A1 A2 A3 -- B1 B2 B3`. `--assume-same-conditions` judges these runs alone.";

/// Whether there are rows without a verdict for want of processes.
fn is_within(c: &Comparison) -> bool {
    c.comparable && c.rows.iter().any(|row| row.scope == Scope::Within)
}

/// Whether nothing can be told of any row.
fn is_unclear(c: &Comparison) -> bool {
    c.count(RowVerdict::Unclear) == c.rows.len()
}

/// The comparison as Markdown.
pub fn markdown(c: &Comparison) -> String {
    let mut out = String::new();
    let mark = match c.regressions {
        0 if c.comparable && (is_within(c) || is_unclear(c)) => "❔",
        0 if c.comparable => "✅",
        _ => "❌",
    };
    let _ = writeln!(out, "### {mark} {}\n", escaped(&verdict(c)));
    let _ = writeln!(out, "A: `{}`  \nB: `{}`\n", c.a.replace('`', "'"), c.b.replace('`', "'"));
    if !c.differences.is_empty() {
        let _ = writeln!(out, "| differs | A | B |\n|---|---|---|");
        for d in &c.differences {
            let what = escaped(&d.what);
            let what = if d.weight == Weight::Info { what } else { format!("**{what}**") };
            let _ = writeln!(out, "| {what} | {} | {} |", escaped(&d.a), escaped(&d.b));
        }
        out.push('\n');
    }
    if !c.comparable {
        return out;
    }
    for table in tables(c) {
        let of =
            |word: RowVerdict| c.rows.iter().filter(move |row| row.table == table && row.verdict == word);
        let mut rows: Vec<&Row> =
            of(RowVerdict::Slower).chain(of(RowVerdict::Faster)).chain(of(RowVerdict::Unclear)).collect();
        let shown = rows.len().min(MAX_ROWS);
        let mut left_out = rows.len() - shown;
        rows.truncate(shown);
        let same: Vec<&Row> = of(RowVerdict::Same).collect();
        let room = MAX_SAME_ROWS.min(MAX_ROWS - shown);
        left_out += same.len().saturating_sub(room);
        rows.extend(same.into_iter().take(room));
        let _ = writeln!(out, "#### {}\n", escaped(table));
        let _ = writeln!(
            out,
            "| configuration | quantity | A | B | ratio (95 %) | detects | verdict |\n|---|---|--:|--:|--:|--:|---|"
        );
        for row in rows {
            let [name, quantity, a, b, ratio, detects, verdict] = cells(row);
            let verdict = if row.regression { format!("**{verdict}**") } else { verdict };
            let reason = row.reason.as_ref().map_or(String::new(), |reason| format!(": {}", escaped(reason)));
            let _ = writeln!(
                out,
                "| {} | {} | {a} | {b} | {ratio} | {detects} | {verdict}{reason} |",
                escaped(&name),
                escaped(&quantity)
            );
        }
        if left_out > 0 {
            let _ = writeln!(out, "\nand {left_out} more.");
        }
        out.push('\n');
    }
    for (side, unmatched) in [("A", &c.only_in_a), ("B", &c.only_in_b)] {
        for (table, list) in grouped(unmatched) {
            let _ = writeln!(out, "Only in {side}: {}{}\n", escaped(table), escaped(&list));
        }
    }
    let limit = percent(c.threshold);
    let _ = writeln!(
        out,
        "Ratio: the time of B over that of A (for rates the inverse), with its 95 % interval: over processes, or over \
         rounds in turns. Slower or faster: beyond chance (Holm over each table, 5 %), and for rounds beyond the \
         noise floor. Same: neither, and the whole interval within a factor of 1 + {limit}. A `!` marks a regression: \
         slower, and the interval reaches {limit}; the slow-down may be smaller. Detects: the smallest \
         slow-down of a row that nine of ten repetitions would find, corrected for all rows of the table. It \
         detects nothing where that is above {}.",
        percent(MAX_DETECTABLE)
    );
    if is_within(c) {
        let _ = writeln!(out, "\n{MORE_PROCESSES}");
    }
    out
}

/// The tables, in order.
fn tables(c: &Comparison) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for row in &c.rows {
        if !names.contains(&row.table.as_str()) {
            names.push(&row.table);
        }
    }
    names
}

/// A row as texts: configuration, quantity, A, B, ratio, smallest detectable, verdict.
fn cells(row: &Row) -> [String; 7] {
    let quantity = columns::quantity(&row.quantity);
    let ratio = match (row.ratio, row.low, row.high) {
        (Some(ratio), Some(low), Some(high)) => format!("{} ({}–{})", short(ratio), short(low), short(high)),
        (Some(ratio), ..) => short(ratio),
        _ => "–".to_owned(),
    };
    let detects = match row.smallest_detectable {
        Some(share) if share > MAX_DETECTABLE => "nothing".to_owned(),
        Some(share) => format!("≥{}", percent(share)),
        None => "–".to_owned(),
    };
    let verdict = if row.regression { "slower !".to_owned() } else { row.verdict.to_string() };
    [
        row.name(),
        quantity.label.clone(),
        value(&quantity, row.a),
        value(&quantity, row.b),
        ratio,
        detects,
        verdict,
    ]
}

fn value(quantity: &Quantity, value: f64) -> String {
    if value.is_finite() { quantity.unit.format(value) } else { "–".to_owned() }
}

/// A ratio with three decimals near 1, with three digits elsewhere.
fn short(ratio: f64) -> String {
    if (0.1..10.0).contains(&ratio) { format!("{ratio:.3}") } else { significant(ratio) }
}

/// Reasons with the number of rows that have them.
fn reasons(rows: &[&Row]) -> Vec<(String, usize)> {
    let mut found: Vec<(String, usize)> = Vec::new();
    for reason in rows.iter().filter_map(|row| row.reason.as_ref()) {
        match found.iter_mut().find(|(known, _)| known == reason) {
            Some((_, n)) => *n += 1,
            None => found.push((reason.clone(), 1)),
        }
    }
    found
}

/// Lone configurations by table, a few named.
fn grouped(unmatched: &[UnmatchedRow]) -> Vec<(&str, String)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in unmatched {
        match found.iter_mut().find(|(table, _)| *table == one.table) {
            Some((_, names)) => names.push(&one.name),
            None => found.push((&one.table, vec![&one.name])),
        }
    }
    let listed = |names: Vec<&str>| match names.as_slice() {
        [""] => String::new(),
        names => format!(": {}", first_of(names)),
    };
    found.into_iter().map(|(table, names)| (table, listed(names))).collect()
}

/// Text that stands for itself in a cell of a Markdown table.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '\\' | '#' => {
                out.push('\\');
                out.push(c);
            }
            '\n' | '\r' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
