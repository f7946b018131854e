//! Panels of lines over a parameter: points with intervals, named at the end of each line.

use super::axis::{self, ScaledAxis, axis_title};
use super::color::Paint;
use super::figure::{Mark, Panel, Section, Series};
use super::marks::{self, slots};
use super::style::{AXIS_TITLE, LABEL, PANEL_GAP, PANEL_TITLE, TICK};
use super::svg::{Anchor, Svg};
use super::titles::Titles;
use crate::columns::Better;
use crate::words::first_and_more;

/// Height of a plot, unless there are more names at its right side than fit.
const PLOT_HEIGHT: f64 = 210.0;
/// Distance of the names at the ends of the lines.
const NAME_HEIGHT: f64 = 14.0;
/// Most names at the ends of lines: a plot grows with them. Others are told by pointing at a line.
const MAX_NAMES: usize = 24;
/// Most reasons below the panels why something is missing.
const MAX_REASONS: usize = 24;
/// Widest name at the end of a line.
const MAX_NAME: f64 = 130.0;
/// The dots of a line from the last point to its name.
const LEADER: &str = "stroke-dasharray=\"1 3\"";

/// Draws the panels of a section at `(x, y)`; returns the height they take.
pub(super) fn draw(
    svg: &mut Svg,
    section: &Section,
    series: &[Series],
    xs: &[String],
    x_title: &str,
    x: f64,
    y: f64,
    width: f64,
) -> f64 {
    let marks: Vec<Vec<Mark>> = section.panels.iter().map(|p| slots(p, series.len() * xs.len())).collect();
    let columns = section.columns.clamp(1, section.panels.len().max(1));
    let height = PLOT_HEIGHT.max(series.len().min(MAX_NAMES) as f64 * NAME_HEIGHT + 10.0);
    let names = series.iter().map(|s| LABEL.width(&s.name)).fold(0.0, f64::max).min(MAX_NAME) + 16.0;
    let axes = scaled_axes(section, &marks, height);
    let ticks = axes.iter().flat_map(|a| a.ticks(|_| TICK.size)).map(|t| TICK.width(&t.label));
    let left_gutter = ticks.fold(0.0, f64::max) + 8.0;
    // Where all panels share the axis, its labels stand left of the first only; the names of the lines stand
    // right of the last.
    let gutters = if section.share_axis { left_gutter } else { left_gutter * columns as f64 };
    let plot_width =
        ((width - gutters - names - PANEL_GAP * (columns - 1) as f64) / columns as f64).max(40.0);
    let step = plot_width + PANEL_GAP + if section.share_axis { 0.0 } else { left_gutter };
    let panel_width = if section.share_axis { plot_width } else { plot_width + left_gutter };
    let mut top = y;
    for (g, chunk) in section.panels.chunks(columns).enumerate() {
        let first = g * columns;
        let panel_titles = chunk.iter().map(|p| PANEL_TITLE.wrap(&p.title, panel_width));
        let axis_titles = chunk.iter().zip(&axes[first..]).enumerate().map(|(i, (p, a))| {
            let title = if i > 0 && section.share_axis {
                String::new()
            } else {
                axis_title(&p.axis.title, &a.shared_unit().0, a.log)
            };
            AXIS_TITLE.wrap(&title, if section.share_axis { width } else { panel_width })
        });
        let titles = Titles { panels: panel_titles.collect(), axes: axis_titles.collect() };
        let plot_top = titles.plot_top(top);
        for (i, panel) in chunk.iter().enumerate() {
            let labelled = i == 0 || !section.share_axis;
            let left = x + i as f64 * step + if labelled { 0.0 } else { left_gutter };
            titles.draw(svg, i, left, top);
            let plot = Plot {
                left: if labelled { left + left_gutter } else { left },
                top: plot_top,
                width: plot_width,
                height,
                names: if i + 1 == chunk.len() { names } else { 0.0 },
                axis: &axes[first + i],
            };
            plot.frame(svg, panel, xs, x_title, labelled);
            plot.lines(svg, panel, &marks[first + i], series, xs);
        }
        top = plot_top + height + 46.0;
    }
    top += missing(svg, section, &marks, series, xs, x_title, (x, top), width);
    top - y
}

fn scaled_axes(section: &Section, marks: &[Vec<Mark>], height: f64) -> Vec<ScaledAxis> {
    let one = |panels: &[&Panel], marks: &[&Vec<Mark>]| {
        let log = axis::is_log(&panels[0].axis, panels);
        let values: Vec<_> = marks.iter().flat_map(|m| m.iter()).flat_map(axis::values).collect();
        let needs: Vec<_> = values.iter().map(|v| (*v, 8.0)).collect();
        ScaledAxis::new(&panels[0].axis, log, &values, &needs, height)
    };
    if section.share_axis && !section.panels.is_empty() {
        let shared = one(&section.panels.iter().collect::<Vec<_>>(), &marks.iter().collect::<Vec<_>>());
        return vec![shared; section.panels.len()];
    }
    section.panels.iter().zip(marks).map(|(p, m)| one(&[p], &[m])).collect()
}

/// Where a panel's plot lies.
struct Plot<'a> {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    /// Room right of the plot for the names; 0 when they stand elsewhere.
    names: f64,
    axis: &'a ScaledAxis,
}

impl Plot<'_> {
    /// The place of a parameter's value.
    fn x(&self, i: usize, count: usize) -> f64 {
        self.left + (i as f64 + 0.5) / count.max(1) as f64 * self.width
    }

    /// How far the points of a line stand beside it, so that intervals do not hide each other.
    fn aside(&self, line: usize, lines: usize, count: usize) -> f64 {
        let step = (self.width / count.max(1) as f64 / 2.0 / lines.max(1) as f64).min(2.5);
        (line as f64 - (lines.max(1) - 1) as f64 / 2.0) * step
    }

    fn y(&self, value: f64) -> f64 {
        self.top + self.height - self.axis.at(value)
    }

    /// Grid, axes and their labels.
    fn frame(&self, svg: &mut Svg, panel: &Panel, xs: &[String], x_title: &str, labelled: bool) {
        let (right, bottom) = (self.left + self.width, self.top + self.height);
        for tick in self.axis.ticks(|_| TICK.size) {
            let y = bottom - tick.at;
            svg.line((self.left, y), (right, y), Paint::Grid, 1.0, "");
            if labelled {
                svg.text(self.left - 6.0, y + 3.7, &tick.label, TICK, Anchor::End, Paint::Soft);
            }
        }
        let zero = self.y(0.0);
        svg.line((self.left, zero), (right, zero), Paint::Axis, 1.0, "");
        for (value, label) in &panel.axis.references {
            let y = self.y(*value);
            svg.line((self.left, y), (right, y), Paint::Soft, 1.0, marks::DASHES);
            let label = TICK.fit(label, self.width - 4.0);
            svg.text(self.left + 3.0, y - 3.0, &label, TICK, Anchor::Start, Paint::Soft);
        }
        let slot = self.width / xs.len().max(1) as f64;
        for (i, label) in xs.iter().enumerate() {
            let label = TICK.fit(label, slot - 3.0);
            svg.text(self.x(i, xs.len()), bottom + 15.0, &label, TICK, Anchor::Middle, Paint::Soft);
        }
        let title = AXIS_TITLE.fit(x_title, self.width + self.names);
        svg.text(self.left, bottom + 31.0, &title, AXIS_TITLE, Anchor::Start, Paint::Soft);
    }

    /// All lines, then their names, pushed apart where they would touch.
    fn lines(&self, svg: &mut Svg, panel: &Panel, marks: &[Mark], series: &[Series], xs: &[String]) {
        let mut ends: Vec<(usize, f64, f64)> = vec![];
        for (s, one) in series.iter().enumerate() {
            let (name, paint) = (&one.name, Paint::Series(one.slot));
            let aside = self.aside(s, series.len(), xs.len());
            let mut run: Vec<(f64, f64)> = vec![];
            let flush = |svg: &mut Svg, run: &mut Vec<(f64, f64)>| {
                if run.len() > 1 {
                    svg.of_series(name, |svg| svg.polyline(run, paint, 1.8));
                }
                run.clear();
            };
            let points: Vec<_> = (0..xs.len()).map(|i| (i, &marks[s * xs.len() + i])).collect();
            for (i, mark) in &points {
                match mark {
                    Mark::Value(e) => run.push((self.x(*i, xs.len()) + aside, self.y(e.value))),
                    _ => flush(svg, &mut run),
                }
            }
            flush(svg, &mut run);
            for (i, mark) in points {
                let Mark::Value(e) = mark else { continue };
                let (x, y) = (self.x(i, xs.len()) + aside, self.y(e.value));
                let of = if panel.title.is_empty() { String::new() } else { format!("{}: ", panel.title) };
                let title = format!("{of}{name} at {}: {}", xs[i], marks::words(mark, self.axis.unit));
                svg.titled(name, &title, |svg| {
                    let (low, high) = (self.y(e.low), self.y(e.high));
                    if low - high > 1.0 {
                        svg.line((x, low), (x, high), paint, 1.3, "");
                        for end in [low, high] {
                            svg.line((x - 3.0, end), (x + 3.0, end), paint, 1.3, "");
                        }
                    }
                    marks::point(svg, one.slot, (x, y), paint);
                });
                match ends.last_mut().filter(|e| e.0 == s) {
                    Some(end) => *end = (s, x, y),
                    None => ends.push((s, x, y)),
                }
            }
        }
        if self.names == 0.0 {
            return;
        }
        ends.sort_by(|a, b| a.2.total_cmp(&b.2));
        // Where there are too many, the better ones have names, and the place behind them says how many the others are.
        let unnamed = if ends.len() > MAX_NAMES { ends.len() + 1 - MAX_NAMES } else { 0 };
        let low_is_better = panel.axis.better == Better::Lower;
        let named = if low_is_better { unnamed..ends.len() } else { 0..ends.len() - unnamed };
        let ends = &ends[named];
        let mut wanted: Vec<f64> = ends.iter().map(|e| e.2).collect();
        match unnamed {
            0 => {}
            _ if low_is_better => wanted.insert(0, self.top),
            _ => wanted.push(self.top + self.height),
        }
        let heights = spread_out(&wanted, NAME_HEIGHT, self.top + 4.0, self.top + self.height - 4.0);
        let right = self.left + self.width;
        let note = if low_is_better { heights.first() } else { heights.last() };
        if let Some(at) = note.filter(|_| unnamed > 0) {
            let more = format!("and {unnamed} more");
            svg.text(right + 11.0, at + 4.0, &more, LABEL, Anchor::Start, Paint::Soft);
        }
        let behind_note = usize::from(unnamed > 0 && low_is_better);
        for (&(s, x, y), &at) in ends.iter().zip(&heights[behind_note..]) {
            let paint = Paint::Series(series[s].slot);
            svg.of_series(&series[s].name, |svg| {
                // Dotted: after a point with nothing behind it, a whole line would look like a value that stays.
                let (bend, end) = ((right - 4.0, y), (right + 8.0, at));
                svg.line((x + 6.0, y), bend, paint, 0.7, LEADER);
                svg.line(bend, end, paint, 0.7, LEADER);
                let name = LABEL.fit(&series[s].name, self.names - 14.0);
                svg.text(right + 11.0, at + 4.0, &name, LABEL, Anchor::Start, Paint::Ink);
            });
        }
    }
}

/// Moves sorted positions as little as it takes to be `distance` apart and within `[low, high]`.
fn spread_out(wanted: &[f64], distance: f64, low: f64, high: f64) -> Vec<f64> {
    let mut at: Vec<f64> = wanted.iter().map(|w| w.clamp(low, high)).collect();
    for i in 1..at.len() {
        at[i] = at[i].max(at[i - 1] + distance);
    }
    let mut limit = high;
    for y in at.iter_mut().rev() {
        *y = y.min(limit);
        limit = *y - distance;
    }
    at
}

/// Lines that say what could not be measured and why; returns the height they take.
fn missing(
    svg: &mut Svg,
    section: &Section,
    marks: &[Vec<Mark>],
    series: &[Series],
    xs: &[String],
    x_title: &str,
    (x, y): (f64, f64),
    width: f64,
) -> f64 {
    let panels: Vec<&str> = section.panels.iter().map(|panel| panel.title.as_str()).collect();
    // Missing places and their reason, with the lines that miss them: all of these lines share a text.
    let mut told: Vec<(String, Vec<&str>)> = vec![];
    for (s, Series { name, .. }) in series.iter().enumerate() {
        // Each with the panels and values that it is for.
        let mut reasons: Vec<(String, Vec<(usize, usize)>)> = vec![];
        for (number, (panel, marks)) in section.panels.iter().zip(marks).enumerate() {
            for i in 0..xs.len() {
                let mark = &marks[s * xs.len() + i];
                if !matches!(mark, Mark::Nothing | Mark::Unavailable(_)) {
                    continue;
                }
                let reason = marks::words(mark, panel.axis.unit);
                match reasons.iter_mut().find(|r| r.0 == reason) {
                    Some(r) => r.1.push((number, i)),
                    None => reasons.push((reason, vec![(number, i)])),
                }
            }
        }
        for (reason, places) in reasons {
            let what = format!("{}: {reason}", missing_in_words(&places, &panels, xs, x_title));
            match told.iter_mut().find(|known| known.0 == what) {
                Some((_, names)) => names.push(name.as_str()),
                None => told.push((what, vec![name.as_str()])),
            }
        }
    }
    let named = |(what, names): &(String, Vec<&str>)| first_and_more(names, MAX_NAMES, [", ", " and"]) + what;
    let mut texts: Vec<String> = told.iter().map(named).collect();
    let more = texts.len().saturating_sub(MAX_REASONS);
    if more > 0 {
        texts.truncate(MAX_REASONS);
        texts.push(format!("and {more} more that are missing: the table has the reasons"));
    }
    let mut at = y;
    for text in texts {
        for line in TICK.wrap(&text, width) {
            svg.text(x, at + 8.0, &line, TICK, Anchor::Start, Paint::Soft);
            at += 14.0;
        }
    }
    at - y
}

/// The places where a line has no value, by panel and place on the axis, as text behind the line's name. It is empty
/// where the line has none at all, ` with codec lz4` where no panel has one there, else with the panel too.
fn missing_in_words(places: &[(usize, usize)], panels: &[&str], xs: &[String], x_title: &str) -> String {
    if places.len() == panels.len() * xs.len() {
        return String::new();
    }
    let is_whole = |i: usize| places.iter().filter(|place| place.1 == i).count() == panels.len();
    let (first_panel, first) = places[0];
    if places.iter().all(|place| is_whole(place.1)) {
        let names: Vec<&str> = (0..xs.len()).filter(|&i| is_whole(i)).map(|i| xs[i].as_str()).collect();
        return format!(" with {x_title} {}", names.join(", "));
    }
    let panel = match panels[first_panel] {
        "" => String::new(),
        title => format!(" (panel \u{201c}{title}\u{201d})"),
    };
    let more = match places.len() - 1 {
        0 => String::new(),
        1 => " and 1 more combination".to_owned(),
        n => format!(" and {n} more combinations"),
    };
    format!(" with {x_title} {}{panel}{more}", xs[first])
}

#[cfg(test)]
mod tests;
