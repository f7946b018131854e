//! Panels of horizontal rows: bars (dots on a logarithmic axis), stacks and distributions.

use super::axis::{self, ScaledAxis, axis_title};
use super::color::Paint;
use super::figure::{Layout, Mark, Panel, Section, Series};
use super::marks::{self, Room, slots};
use super::sample::{Sample, Spread};
use super::style::{AXIS_TITLE, LABEL, PANEL_GAP, PANEL_TITLE, TICK};
use super::svg::{Anchor, Svg};

/// Height of a bar when a row holds one, and when it holds several.
const BAR: (f64, f64) = (15.0, 11.0);
/// The same of a distribution that is drawn with its shape.
const SHAPE: (f64, f64) = (30.0, 22.0);
/// Space between the bars of a row, and between rows.
const GAP: (f64, f64) = (3.0, 9.0);
/// Widest column of row labels.
const MAX_GUTTER: f64 = 190.0;
/// Space between a mark and its label.
const LABEL_GAP: f64 = 6.0;
/// How far labels of ticks reach beyond their panel, at most: those of two panels do not meet between them.
const OVERHANG: f64 = PANEL_GAP / 2.0 - 2.0;
/// How far a label may stand beside its tick for that.
const SHIFT: f64 = 10.0;
/// Radius of the dot that stands for a value on a logarithmic axis.
const DOT: f64 = 4.6;
/// Lines of a row's label at most.
const MAX_LINES: usize = 2;

/// One row of a section: its label and its place below the top of the plot.
struct Row {
    lines: Vec<String>,
    center: f64,
}

/// Width of the column of row labels: the same in all sections of a figure, so that their plots stand below each other.
pub(super) fn gutter(sections: &[Section]) -> f64 {
    let series = |section: &Section| match &section.layout {
        Layout::Rows { series, .. } => series.iter().map(|one| LABEL.width(&one.name)).fold(0.0, f64::max),
        Layout::Lines { .. } | Layout::Scatter { .. } => 0.0,
    };
    sections.iter().map(series).fold(0.0, f64::max).min(MAX_GUTTER) + 10.0
}

/// Draws the panels of a section at `(x, y)`, with labels in a column of `gutter`; returns the height they take.
pub(super) fn draw(
    svg: &mut Svg,
    section: &Section,
    series: &[Series],
    variants: &[String],
    gutter: f64,
    (x, y): (f64, f64),
    width: f64,
) -> f64 {
    let per_row = variants.len().max(1);
    let marks: Vec<Vec<Mark>> = section.panels.iter().map(|p| slots(p, series.len() * per_row)).collect();
    let shapes = marks.iter().flatten().any(|mark| matches!(mark, Mark::Sample(_)));
    let (one, several) = if shapes { SHAPE } else { BAR };
    let bar = if per_row == 1 { one } else { several };

    let thickness = bar * per_row as f64 + GAP.0 * (per_row - 1) as f64;
    let mut plot_height = GAP.1 / 2.0;
    let mut rows = vec![];
    for one in series {
        let mut lines = LABEL.wrap(&one.name, gutter - 9.0);
        if lines.len() > MAX_LINES {
            let rest = lines.split_off(MAX_LINES - 1).join(" ");
            lines.push(LABEL.fit(&rest, gutter - 9.0));
        }
        let height = thickness.max(lines.len() as f64 * 13.5) + GAP.1;
        rows.push(Row { lines, center: plot_height + height / 2.0 - GAP.1 / 2.0 });
        plot_height += height;
    }

    let columns = section.columns.clamp(1, section.panels.len().max(1));
    let panel_width = ((width - gutter - PANEL_GAP * (columns - 1) as f64) / columns as f64).max(60.0);
    let axes = scaled_axes(section, &marks, panel_width);
    let mut top = y;
    for (g, chunk) in section.panels.chunks(columns).enumerate() {
        let first = g * columns;
        let last_row = first + columns >= section.panels.len();
        let titles: Vec<_> = chunk.iter().map(|p| PANEL_TITLE.wrap(&p.title, panel_width)).collect();
        let references: Vec<_> =
            chunk.iter().enumerate().map(|(i, p)| reference_lines(p, &axes[first + i])).collect();
        let title_height = titles.iter().map(Vec::len).max().unwrap_or(0) as f64 * 15.0;
        let levels = references.iter().flatten().map(|r| r.level + 1).max().unwrap_or(0) as f64;
        let plot_top = top + title_height + levels * 12.0 + 4.0;
        for (row, one) in rows.iter().zip(series) {
            let middle = plot_top + row.center;
            let start = middle - row.lines.len().saturating_sub(1) as f64 * 6.75 + 4.0;
            svg.of_series(&one.name, |svg| {
                for (i, line) in row.lines.iter().enumerate() {
                    svg.text(x + gutter - 9.0, start + i as f64 * 13.5, line, LABEL, Anchor::End, Paint::Ink);
                }
            });
        }
        let mut bottom: f64 = 0.0;
        for (i, panel) in chunk.iter().enumerate() {
            let left = x + gutter + i as f64 * (panel_width + PANEL_GAP);
            let axis = &axes[first + i];
            for (l, line) in titles[i].iter().enumerate() {
                svg.text(left, top + 11.0 + l as f64 * 15.0, line, PANEL_TITLE, Anchor::Start, Paint::Ink);
            }
            // With a shared axis its labels stand under the lowest panel of a column.
            let below = first + i + columns < section.panels.len();
            let labelled = !section.share_axis || !below;
            bottom = bottom.max(frame(svg, panel, axis, (left, plot_top), plot_height, labelled));
            for r in &references[i] {
                let at = left + axis.at(r.value);
                let end = plot_top - 2.0 - r.level as f64 * 12.0;
                svg.line((at, end), (at, plot_top + plot_height), Paint::Soft, 1.0, marks::DASHES);
                svg.text(left + r.text_at, end - 2.0, &r.label, TICK, Anchor::Middle, Paint::Soft);
            }
            for (r, row) in rows.iter().enumerate() {
                let all = &marks[first + i][r * per_row..(r + 1) * per_row];
                let middle = plot_top + row.center;
                draw_row(svg, panel, axis, all, &series[r], variants, (left, middle), (bar, thickness));
            }
        }
        top = bottom + if last_row { 0.0 } else { 16.0 };
    }
    top - y
}

/// Axes of all panels, one for each or the same for all.
fn scaled_axes(section: &Section, marks: &[Vec<Mark>], width: f64) -> Vec<ScaledAxis> {
    let one = |panels: &[&Panel], marks: &[&Vec<Mark>]| {
        let log = axis::is_log(&panels[0].axis, panels);
        let mut values = vec![];
        let mut needs = vec![];
        for (panel, marks) in panels.iter().zip(marks) {
            for mark in *marks {
                let all = axis::values(mark);
                let Some(end) = all.iter().copied().reduce(f64::max) else { continue };
                needs.push((end.max(0.0), DOT + LABEL_GAP + 2.0 + LABEL.width(&full_label(mark, panel))));
                values.extend(all);
            }
        }
        ScaledAxis::new(&panels[0].axis, log, &values, &needs, width)
    };
    if section.share_axis && !section.panels.is_empty() {
        let shared = one(&section.panels.iter().collect::<Vec<_>>(), &marks.iter().collect::<Vec<_>>());
        return vec![shared; section.panels.len()];
    }
    section.panels.iter().zip(marks).map(|(p, m)| one(&[p], &[m])).collect()
}

/// The longest label a mark may get.
fn full_label(mark: &Mark, panel: &Panel) -> String {
    let label = marks::label(mark, panel.axis.unit);
    match mark {
        Mark::Stack { parts, .. } => {
            marks::first_share(parts).map_or(label.clone(), |s| format!("{label} · {s}"))
        }
        _ => label,
    }
}

/// A reference line with its label on a level of its own where labels would touch.
struct ReferenceLine {
    value: f64,
    label: String,
    text_at: f64,
    level: usize,
}

fn reference_lines(panel: &Panel, axis: &ScaledAxis) -> Vec<ReferenceLine> {
    let mut placed: Vec<ReferenceLine> = vec![];
    for (value, label) in &panel.axis.references {
        let label = TICK.fit(label, axis.length);
        let half = TICK.width(&label) / 2.0;
        let text_at = axis.at(*value).clamp(half, (axis.length - half).max(half));
        let touches = |other: &ReferenceLine| {
            (other.text_at - text_at).abs() < TICK.width(&other.label) / 2.0 + half + 6.0
        };
        let level =
            (0..=placed.len()).find(|l| !placed.iter().any(|p| p.level == *l && touches(p))).unwrap_or(0);
        placed.push(ReferenceLine { value: *value, label, text_at, level });
    }
    placed
}

/// Grid, axis and their labels; returns where they end.
fn frame(
    svg: &mut Svg,
    panel: &Panel,
    axis: &ScaledAxis,
    (left, top): (f64, f64),
    height: f64,
    labelled: bool,
) -> f64 {
    let bottom = top + height;
    for tick in axis.ticks(|l| TICK.width(l) + SHIFT) {
        let x = left + tick.at;
        svg.line((x, top), (x, bottom), Paint::Grid, 1.0, "");
        // A wide label at an end would touch that of the next panel, or leave the page.
        let half = TICK.width(&tick.label) / 2.0;
        let inside = x.min(left + axis.length + OVERHANG - half).max(left - OVERHANG + half);
        if labelled && (inside - x).abs() <= SHIFT {
            svg.text(inside, bottom + 14.0, &tick.label, TICK, Anchor::Middle, Paint::Soft);
        }
    }
    let zero = left + axis.at(0.0);
    svg.line((zero, top), (zero, bottom), Paint::Axis, 1.0, "");
    if !labelled {
        return bottom;
    }
    let (unit, _) = axis.shared_unit();
    let mut y = bottom + 14.0;
    for line in AXIS_TITLE.wrap(&axis_title(&panel.axis.title, &unit, axis.log), axis.length) {
        y += 14.0;
        svg.text(left, y, &line, AXIS_TITLE, Anchor::Start, Paint::Soft);
    }
    y + 4.0
}

/// All marks of one row of one panel, centred at a height.
fn draw_row(
    svg: &mut Svg,
    panel: &Panel,
    axis: &ScaledAxis,
    row: &[Mark],
    series: &Series,
    variants: &[String],
    (left, middle): (f64, f64),
    (bar, thickness): (f64, f64),
) {
    // One text when nothing of the row could be measured for the same reason.
    let panel_name = if panel.title.is_empty() { String::new() } else { format!("{}: ", panel.title) };
    if matches!(row[0], Mark::Nothing | Mark::Unavailable(_)) && row.iter().all(|m| *m == row[0]) {
        let title = format!("{panel_name}{}: {}", series.name, marks::words(&row[0], axis.unit));
        unavailable(svg, &series.name, &title, &marks::words(&row[0], axis.unit), axis, left, middle);
        return;
    }
    for (v, mark) in row.iter().enumerate() {
        let y = middle - thickness / 2.0 + bar / 2.0 + v as f64 * (bar + GAP.0);
        let variant = variants.get(v).filter(|v| !v.is_empty()).map_or(String::new(), |v| format!(", {v}"));
        let title = format!("{panel_name}{}{variant}: {}", series.name, marks::words(mark, axis.unit));
        if matches!(mark, Mark::Nothing | Mark::Unavailable(_)) {
            unavailable(svg, &series.name, &title, &marks::words(mark, axis.unit), axis, left, y);
            continue;
        }
        let lines = panel.axis.references.iter().map(|r| left + axis.at(r.0));
        svg.titled(&series.name, &title, |svg| {
            let (series, slot) = (Paint::Series(series.slot), series.slot);
            let mut on_bar = None;
            let (end, label) = match mark {
                Mark::Value(e) => {
                    let (x, zero) = (left + axis.at(e.value), left + axis.at(0.0));
                    let style = marks::variant(series, v);
                    let interval = (left + axis.at(e.low), left + axis.at(e.high));
                    let mut end = axis.at(e.value.max(e.high).max(0.0));
                    if axis.log {
                        svg.line((left, y), (x, y), series, 1.0, "stroke-opacity=\"0.35\"");
                        marks::whisker(svg, interval, y);
                        svg.disc(x, y, DOT, &style);
                        end = end.max(x - left + DOT);
                    } else {
                        svg.bar(x.min(zero), y - bar / 2.0, (x - zero).abs(), bar, &style);
                        let on = if v == 0 { Paint::OnSeries(slot) } else { Paint::Ink };
                        marks::references(svg, lines.clone(), (x.min(zero), x.max(zero)), y, bar, on);
                        marks::whisker(svg, interval, y);
                        let to = interval.0.min(x) - LABEL_GAP;
                        on_bar = Some(Room { from: zero + LABEL_GAP, to, paint: on });
                    }
                    (end, marks::label(mark, axis.unit))
                }
                Mark::Stack { parts, .. } => {
                    let label = marks::label(mark, axis.unit);
                    stack(svg, axis, parts, label, series, (left, y), bar)
                }
                Mark::Spread(s) => {
                    spread(svg, axis, s, series, v, (left, y));
                    let end = axis::values(mark).into_iter().fold(f64::MIN, f64::max);
                    (axis.at(end), marks::label(mark, axis.unit))
                }
                Mark::Sample(sample) => {
                    shape(svg, axis, sample, &marks::variant(series, v % 2), (left, y), bar);
                    let end = axis::values(mark).into_iter().fold(f64::MIN, f64::max);
                    // The shape ends a little beyond the last value.
                    (axis.at(end) + 4.0, marks::label(mark, axis.unit))
                }
                Mark::Nothing | Mark::Unavailable(_) => (0.0, String::new()),
            };
            let label = LABEL.fit(&label, axis.length - end - LABEL_GAP);
            marks::value_label(svg, (left + end + LABEL_GAP, y + 4.0), &label, &lines, on_bar);
        });
    }
}

/// Why there is no mark, where it would be.
fn unavailable(svg: &mut Svg, series: &str, title: &str, why: &str, axis: &ScaledAxis, left: f64, y: f64) {
    let short = TICK.fit(why, axis.length - 8.0);
    svg.titled(series, title, |svg| svg.label(left + 6.0, y + 3.5, &short, TICK, Paint::Soft));
}

/// Parts end to end; returns where they end and the label that goes there.
fn stack(
    svg: &mut Svg,
    axis: &ScaledAxis,
    parts: &[(String, f64)],
    mut label: String,
    series: Paint,
    (left, y): (f64, f64),
    bar: f64,
) -> (f64, String) {
    let total: f64 = parts.iter().map(|p| p.1).sum();
    let mut from = 0.0;
    for (i, (_, value)) in parts.iter().enumerate() {
        let (start, end) = (axis.at(from), axis.at(from + value));
        let (paint, on) = match (i, series) {
            (0, Paint::Series(slot)) => (series, Paint::OnSeries(slot)),
            _ => (Paint::Part(i.saturating_sub(1)), Paint::OnPart(i.saturating_sub(1))),
        };
        svg.rect(left + start, y - bar / 2.0, end - start, bar, paint, "");
        if total > 0.0 {
            let text = format!("{}\u{a0}%", marks::percent(value / total));
            if TICK.width(&text) + 6.0 <= end - start {
                svg.text(left + f64::midpoint(start, end), y + 3.7, &text, TICK, Anchor::Middle, on);
            } else if i == 0 {
                label = format!("{label} · {}", marks::first_share(parts).unwrap_or_default());
            }
        }
        from += value;
    }
    (axis.at(from), label)
}

/// A distribution: line from its smallest to its 99th percentile, box of its quartiles, dot at the median.
/// It has ticks at p95 and p99, and a small dot at the largest.
fn spread(
    svg: &mut Svg,
    axis: &ScaledAxis,
    s: &Spread,
    series: Paint,
    variant: usize,
    (left, y): (f64, f64),
) {
    let Some(p50) = s.p50 else { return };
    let at = |v: f64| left + axis.at(v);
    let from = s.min.or(s.p25).unwrap_or(p50);
    let to = s.p99.or(s.p95).or(s.p75).unwrap_or(p50);
    svg.line((at(from), y), (at(to), y), series, 1.6, "");
    if let (Some(p25), Some(p75)) = (s.p25, s.p75) {
        let style = marks::variant(series, 1);
        svg.bar(at(p25), y - 4.5, (at(p75) - at(p25)).max(0.0), 9.0, &style);
    }
    for (quantile, half) in [(s.p95, 3.2), (s.p99, 5.2)] {
        if let Some(q) = quantile {
            svg.line((at(q), y - half), (at(q), y + half), series, 1.8, "");
        }
    }
    if let Some(max) = s.max.filter(|m| at(*m) > at(to) + 2.0) {
        svg.circle(at(max), y, 1.4, series, "");
    }
    let style = marks::variant(series, variant);
    svg.disc(at(p50), y, 4.4, &style);
}

/// A distribution's shape: how high it stands over a value is how many measurements lie there, of those on this axis. In
/// it a dot at the median and ticks at p95 and p99.
fn shape(svg: &mut Svg, axis: &ScaledAxis, sample: &Sample, style: &str, (left, y): (f64, f64), bar: f64) {
    let outline = sample.outline(|value| axis.at(value), axis.length);
    let half = bar / 2.0 - 1.0;
    let upper = outline.iter().map(|(x, h)| (left + x, y - h * half));
    let lower = outline.iter().rev().map(|(x, h)| (left + x, y + h * half));
    svg.shape(&upper.chain(lower).collect::<Vec<_>>(), style);
    let s = &sample.spread;
    for (quantile, half) in [(s.p95, 5.0), (s.p99, 7.5)] {
        if let Some(q) = quantile {
            let x = left + axis.at(q);
            svg.line((x, y - half), (x, y + half), Paint::Paper, 3.6, "");
            svg.line((x, y - half), (x, y + half), Paint::Ink, 1.6, "");
        }
    }
    if let Some(p50) = s.p50 {
        svg.circle(left + axis.at(p50), y, 4.4, Paint::Paper, "");
        svg.circle(left + axis.at(p50), y, 3.2, Paint::Ink, "");
    }
}
