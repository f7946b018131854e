//! The table of a benchmark's aggregates: one row per configuration, numbers of a column in one unit.

use crate::chart::svg::escape;
use crate::columns::{self, Better, Configuration, Quantity};
use crate::number::{self, Unit};
use crate::table::{Cell, Estimate, IntervalKind, Table};
use std::fmt::Write;

/// Most different values of a column that is offered as a choice above the table.
const MAX_CHOICES: usize = 16;

/// The table with its filters, in a region that scrolls.
pub(super) fn html(table: &Table, id: &str, name: &str) -> String {
    let keys = columns::keys(table);
    let quantities = columns::quantities(table);
    let rows = columns::configurations(table, &keys, &quantities);
    if rows.is_empty() {
        return "<p>This table has no rows.</p>\n".to_owned();
    }
    let units: Vec<_> = quantities.iter().enumerate().map(|(i, q)| column_unit(q.unit, &rows, i)).collect();
    let caption = format!("{name}: medians over the runs{}", brackets(&rows));
    let mut out = filters(table, &keys, id);
    let _ = writeln!(
        out,
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\">\n\
         <table class=\"results\" id=\"{id}-table\">\n<caption>{caption}</caption>\n<thead><tr>",
        caption = escape(&caption),
        id = escape(id)
    );
    for key in &keys {
        head(&mut out, &key.replace('_', " "), "", key, "text");
    }
    for (q, (symbol, _)) in quantities.iter().zip(&units) {
        let first = if q.better == Better::Higher { "down" } else { "up" };
        head(&mut out, &q.label, symbol, &q.column, first);
    }
    head(&mut out, "runs", "", "run", "up");
    out += "</tr></thead>\n<tbody>\n";
    for row in &rows {
        // A table of aggregates says itself how many runs are behind a row.
        let told = row.group.rows.iter().find_map(|&at| table.f64("runs", at)).map(|runs| runs as usize);
        write_row(&mut out, row, &quantities, &units, told);
    }
    out += "</tbody>\n</table>\n</div>\n";
    out
}

/// The meaning of brackets, in words.
fn brackets(rows: &[Configuration]) -> &'static str {
    let is_there =
        |kind| rows.iter().flat_map(|row| row.estimates.iter().flatten()).any(|e| e.interval == kind);
    match (is_there(IntervalKind::Confidence), is_there(IntervalKind::Range)) {
        (true, false) => ", in brackets their 95 % intervals",
        (false, true) => ", in brackets the smallest and the largest",
        (true, true) => {
            ", in brackets their 95 % intervals, or the smallest and the largest of runs that are too few for one"
        }
        (false, false) => "",
    }
}

/// The unit a column's numbers are shown in, and its size in base units.
fn column_unit(unit: Unit, rows: &[Configuration], at: usize) -> (String, f64) {
    let mut values: Vec<f64> = rows.iter().filter_map(|r| r.estimates[at]).map(|e| e.value.abs()).collect();
    values.sort_by(f64::total_cmp);
    let middle = values.get(values.len() / 2).copied().unwrap_or(1.0);
    (unit.axis_name(middle), unit.scaled_for(middle).factor)
}

/// A heading that sorts; `first` is the order of the first click.
fn head(out: &mut String, label: &str, unit: &str, column: &str, first: &str) {
    let unit = if unit.is_empty() {
        String::new()
    } else {
        format!(" <span class=\"unit\">({})</span>", escape(unit))
    };
    let class = if first == "text" { "" } else { " class=\"n\"" };
    let _ = writeln!(
        out,
        "<th scope=\"col\"{class} data-first=\"{first}\" title=\"column {}\"><button type=\"button\">{}{unit}</button></th>",
        escape(column),
        escape(label)
    );
}

fn write_row(
    out: &mut String,
    row: &Configuration,
    quantities: &[Quantity],
    units: &[(String, f64)],
    told: Option<usize>,
) {
    let nothing = row.estimates.iter().all(Option::is_none);
    out.push_str(if nothing { "<tr class=\"missing\">" } else { "<tr>" });
    for (i, key) in row.group.key.iter().enumerate() {
        let tag = if i == 0 { "th scope=\"row\"" } else { "td" };
        let close = if i == 0 { "th" } else { "td" };
        let mark =
            if i == 0 && row.unverified { " <span class=\"unverified\">not verified</span>" } else { "" };
        let _ = write!(
            out,
            "<{tag} data-v=\"{}\">{}{mark}</{close}>",
            escape(&key.text()),
            escape(&if *key == Cell::Null { "–".to_owned() } else { columns::key_text(key) })
        );
    }
    if nothing {
        let why = row.unavailable.as_deref().unwrap_or("not measured");
        let _ = writeln!(out, "<td colspan=\"{}\">{}</td></tr>", quantities.len() + 1, escape(why));
        return;
    }
    for ((estimate, (_, factor)), _) in row.estimates.iter().zip(units).zip(quantities) {
        match estimate {
            Some(e) => number_cell(out, e, *factor),
            None => out.push_str("<td class=\"n\" data-v=\"\">–</td>"),
        }
    }
    let runs = told.unwrap_or_else(|| row.estimates.iter().flatten().map(|e| e.n).max().unwrap_or(0));
    let _ = writeln!(out, "<td class=\"n\" data-v=\"{runs}\">{runs}</td></tr>");
}

fn number_cell(out: &mut String, e: &Estimate, factor: f64) {
    let number = |v: f64| number::significant(v / factor);
    let interval = if e.interval == IntervalKind::None || e.low == e.high {
        String::new()
    } else {
        let kind =
            if e.interval == IntervalKind::Confidence { "95 % interval" } else { "smallest and largest run" };
        format!(" <span class=\"ci\" title=\"{kind}\">[{}, {}]</span>", number(e.low), number(e.high))
    };
    let _ = write!(out, "<td class=\"n\" data-v=\"{}\">{}{interval}</td>", e.value, number(e.value));
}

/// A search field, and a choice for every key with a few values. They work with the script only, which shows
/// them.
fn filters(table: &Table, keys: &[&str], id: &str) -> String {
    let id = escape(id);
    let mut out = format!(
        "<div class=\"filters\" data-for=\"{id}-table\" hidden>\n\
         <label>Filter <input type=\"search\" placeholder=\"words, such as: parquet random\"></label>\n"
    );
    for (at, key) in keys.iter().enumerate() {
        let mut values = table.distinct(key);
        if !(2..=MAX_CHOICES).contains(&values.len()) {
            continue;
        }
        values.sort_by(|a, b| match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            _ => std::cmp::Ordering::Equal,
        });
        let _ = write!(
            out,
            "<label>{} <select data-column=\"{at}\"><option value=\"\">all</option>",
            escape(&key.replace('_', " "))
        );
        for value in values {
            let _ = write!(
                out,
                "<option value=\"{}\">{}</option>",
                escape(&value.text()),
                escape(&columns::key_text(&value))
            );
        }
        out += "</select></label>\n";
    }
    out += "<output aria-live=\"polite\"></output>\n</div>\n";
    out
}
