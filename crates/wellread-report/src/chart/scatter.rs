//! Panels of points over a second quantity: the cost of one thing in another.
//!
//! Each series is a line through its points in their order. A point's name stands at the first of its four sides
//! where it touches nothing that was drawn before. Where there is none, its tooltip and the figure's description
//! name it. The names of the series stand in a column right of the last panel.

use super::axis::{self, ScaledAxis, axis_title};
use super::color::Paint;
use super::figure::{Axis, Mark, Scale, Section, Series};
use super::marks::{self, slots};
use super::style::{AXIS_TITLE, LABEL, PANEL_GAP, PANEL_TITLE, TICK};
use super::svg::{Anchor, Svg};
use super::titles::Titles;

/// Height of a plot, unless there are more names at its right side than fit.
const PLOT_HEIGHT: f64 = 300.0;
/// Distance of the names at the right.
const NAME_HEIGHT: f64 = 17.0;
/// Widest name at the right.
const MAX_NAME: f64 = 190.0;
/// Space that a point keeps free around it.
const POINT: f64 = 6.0;

/// Name of the Pareto front beside the names of the series.
const PARETO_FRONT: &str = "Pareto front";
/// How its line is drawn.
const DASHED: &str = "stroke-dasharray=\"5 3\"";

/// Draws the panels of a section at `(x, y)`, with or without the Pareto front; returns the height they take.
pub(super) fn draw(
    svg: &mut Svg,
    section: &Section,
    series: &[Series],
    points: &[String],
    xs: &[Option<f64>],
    (x_axis, front): (&Axis, bool),
    (x, y): (f64, f64),
    width: f64,
) -> f64 {
    let count = series.len() * points.len();
    let marks: Vec<Vec<Mark>> = section.panels.iter().map(|p| slots(p, count)).collect();
    let xs: Vec<Option<f64>> =
        (0..count).map(|i| xs.get(i).copied().flatten().filter(|x| x.is_finite())).collect();
    let has_line = front && marks.iter().any(|marks| has_line(marks, &xs));
    let columns = section.columns.clamp(1, section.panels.len().max(1));
    let height = PLOT_HEIGHT.max((series.len() + usize::from(has_line)) as f64 * NAME_HEIGHT + 10.0);
    let names = series.iter().map(|s| s.name.as_str()).chain(has_line.then_some(PARETO_FRONT));
    let names = names.map(|name| LABEL.width(name)).fold(0.0, f64::max).min(MAX_NAME) + 40.0;
    let y_axes: Vec<ScaledAxis> = section
        .panels
        .iter()
        .zip(&marks)
        .map(|(panel, marks)| {
            let values: Vec<_> = marks.iter().flat_map(axis::values).collect();
            let needs: Vec<_> = values.iter().map(|v| (*v, 16.0)).collect();
            ScaledAxis::new(&panel.axis, axis::is_log(&panel.axis, &[panel]), &values, &needs, height)
        })
        .collect();
    let ticks = y_axes.iter().flat_map(|a| a.ticks(|_| TICK.size)).map(|t| TICK.width(&t.label));
    let left_gutter = ticks.fold(0.0, f64::max) + 8.0;
    let gaps = PANEL_GAP * (columns - 1) as f64;
    let plot_width = ((width - left_gutter * columns as f64 - names - gaps) / columns as f64).max(40.0);
    let known: Vec<f64> = xs.iter().copied().flatten().collect();
    let log = x_axis.scale == Scale::Log && known.iter().any(|x| *x > 0.0);
    let widest = points.iter().map(|p| TICK.width(p)).fold(0.0, f64::max);
    let needs: Vec<_> = known.iter().map(|x| (*x, widest + 12.0)).collect();
    let across = ScaledAxis::new(x_axis, log, &known, &needs, plot_width);
    let panel_width = plot_width + left_gutter;
    // Nothing of the others is to be seen here.
    let is_shown = |s: usize| {
        let mut slots = s * points.len()..(s + 1) * points.len();
        slots.any(|i| xs[i].is_some() && marks.iter().any(|m| point(&m[i]).is_some()))
    };
    let shown: Vec<&Series> = (0..series.len()).filter(|&s| is_shown(s)).map(|s| &series[s]).collect();
    let mut top = y;
    for (g, chunk) in section.panels.chunks(columns).enumerate() {
        let first = g * columns;
        let panel_titles = chunk.iter().map(|p| PANEL_TITLE.wrap(&p.title, panel_width));
        let axis_titles = chunk.iter().zip(&y_axes[first..]).map(|(p, a)| {
            AXIS_TITLE.wrap(&axis_title(&p.axis.title, &a.shared_unit().0, a.log), panel_width)
        });
        let titles = Titles { panels: panel_titles.collect(), axes: axis_titles.collect() };
        let plot_top = titles.plot_top(top);
        let x_title = axis_title(&x_axis.title, &across.shared_unit().0, across.log);
        let x_title = AXIS_TITLE.wrap(&x_title, panel_width);
        for (i, panel) in chunk.iter().enumerate() {
            let left = x + i as f64 * (panel_width + PANEL_GAP);
            titles.draw(svg, i, left, top);
            let plot = Plot {
                left: left + left_gutter,
                top: plot_top,
                width: plot_width,
                height,
                x: &across,
                y: &y_axes[first + i],
            };
            plot.frame(svg);
            for (l, line) in x_title.iter().enumerate() {
                let at = plot_top + height + 31.0 + l as f64 * 13.5;
                svg.text(plot.left, at, line, AXIS_TITLE, Anchor::Start, Paint::Soft);
            }
            plot.points(svg, &panel.title, &marks[first + i], &xs, series, points, (x_axis, front));
            if i + 1 == chunk.len() {
                legend(svg, &shown, has_line, (plot.left + plot_width + 16.0, plot_top), names - 40.0);
            }
        }
        top = plot_top + height + 33.0 + x_title.len() as f64 * 13.5;
    }
    top - y
}

/// The series with their points' shapes.
fn legend(svg: &mut Svg, series: &[&Series], has_line: bool, (left, top): (f64, f64), width: f64) {
    for (i, one) in series.iter().enumerate() {
        let at = top + 12.0 + i as f64 * NAME_HEIGHT;
        let paint = Paint::Series(one.slot);
        svg.of_series(&one.name, |svg| {
            svg.line((left, at), (left + 16.0, at), paint, 1.2, "");
            marks::point(svg, one.slot, (left + 8.0, at), paint);
            svg.text(left + 22.0, at + 4.0, &LABEL.fit(&one.name, width), LABEL, Anchor::Start, Paint::Ink);
        });
    }
    if has_line && !series.is_empty() {
        let at = top + 12.0 + series.len() as f64 * NAME_HEIGHT;
        svg.line((left, at), (left + 16.0, at), Paint::Soft, 1.6, DASHED);
        svg.text(left + 22.0, at + 4.0, PARETO_FRONT, LABEL, Anchor::Start, Paint::Ink);
    }
}

/// Where a mark stands, between the ends of its interval: of a distribution the median between the quartiles.
fn point(mark: &Mark) -> Option<[f64; 3]> {
    match mark {
        Mark::Value(e) => Some([e.low, e.value, e.high]),
        Mark::Spread(s) => s.p50.map(|p50| [s.p25.unwrap_or(p50), p50, s.p75.unwrap_or(p50)]),
        _ => None,
    }
}

/// The places of the points that no other beats, from left to right. Each has the most of those that are not further to
/// the right.
fn front(points: &[(f64, f64)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (points[a], points[b]);
        a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1))
    });
    let mut most = f64::NEG_INFINITY;
    order.retain(|&i| {
        let better = points[i].1 > most;
        most = most.max(points[i].1);
        better
    });
    order
}

/// Whether the front of a panel is a line: of a single point it is none.
fn has_line(marks: &[Mark], xs: &[Option<f64>]) -> bool {
    let place = |(mark, x): (&Mark, &Option<f64>)| Some(((*x)?, point(mark)?[1]));
    front(&marks.iter().zip(xs).filter_map(place).collect::<Vec<_>>()).len() > 1
}

/// Left, top, right, bottom.
type Rect = [f64; 4];

fn touch(a: &Rect, b: &Rect) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

/// Where a panel's plot lies.
struct Plot<'a> {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    x: &'a ScaledAxis,
    y: &'a ScaledAxis,
}

impl Plot<'_> {
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.left + self.x.at(x), self.top + self.height - self.y.at(y))
    }

    /// Grid, axes and their labels.
    fn frame(&self, svg: &mut Svg) {
        let (right, bottom) = (self.left + self.width, self.top + self.height);
        for tick in self.y.ticks(|_| TICK.size) {
            let y = bottom - tick.at;
            svg.line((self.left, y), (right, y), Paint::Grid, 1.0, "");
            svg.text(self.left - 6.0, y + 3.7, &tick.label, TICK, Anchor::End, Paint::Soft);
        }
        for tick in self.x.ticks(|label| TICK.width(label)) {
            let x = self.left + tick.at;
            svg.line((x, self.top), (x, bottom), Paint::Grid, 1.0, "");
            svg.text(x, bottom + 15.0, &tick.label, TICK, Anchor::Middle, Paint::Soft);
        }
        svg.line((self.left, bottom), (right, bottom), Paint::Axis, 1.0, "");
        svg.line((self.left, self.top), (self.left, bottom), Paint::Axis, 1.0, "");
    }

    /// All lines, then the points, then the names for which there is room.
    fn points(
        &self,
        svg: &mut Svg,
        panel: &str,
        marks: &[Mark],
        xs: &[Option<f64>],
        series: &[Series],
        points: &[String],
        (x_axis, with_front): (&Axis, bool),
    ) {
        let mut shown = vec![];
        for (s, one) in series.iter().enumerate() {
            let mut line = vec![];
            for (p, name) in points.iter().enumerate() {
                let slot = s * points.len() + p;
                let (Some(e), Some(x)) = (point(&marks[slot]), xs[slot]) else { continue };
                let at = self.at(x, e[1]);
                line.push(at);
                shown.push((one, name, at, slot, e, x));
            }
            if line.len() > 1 {
                svg.of_series(&one.name, |svg| svg.polyline(&line, Paint::Series(one.slot), 1.2));
            }
        }
        let values: Vec<_> = shown.iter().map(|(.., estimate, x)| (*x, estimate[1])).collect();
        let best = if with_front { front(&values) } else { vec![] };
        for pair in best.windows(2) {
            svg.line(shown[pair[0]].2, shown[pair[1]].2, Paint::Soft, 1.6, DASHED);
        }
        let mut taken: Vec<Rect> = vec![];
        for (i, (one, name, (x, y), slot, estimate, size)) in shown.iter().enumerate() {
            let paint = Paint::Series(one.slot);
            let of = if panel.is_empty() { String::new() } else { format!("{panel}: ") };
            let words = marks::words(&marks[*slot], self.y.unit);
            let on_front = if best.contains(&i) { "; on the Pareto front" } else { "" };
            let at = x_axis.in_words(*size);
            let point = if name.is_empty() { String::new() } else { format!(", {name}") };
            let title = format!("{of}{}{point}: {words}, at {at}{on_front}", one.name);
            svg.titled(&one.name, &title, |svg| {
                let (low, high) = (self.at(*size, estimate[0]).1, self.at(*size, estimate[2]).1);
                if low - high > 1.0 {
                    svg.line((*x, low), (*x, high), paint, 1.3, "");
                }
                marks::point(svg, one.slot, (*x, *y), paint);
            });
            taken.push([x - POINT, y - POINT, x + POINT, y + POINT]);
        }
        for (one, name, (x, y), ..) in &shown {
            let width = TICK.width(name);
            let sides = [(x + 8.0, y + 3.7), (x - 8.0 - width, y + 3.7)];
            let ends = [(x - width / 2.0, y - 8.5), (x - width / 2.0, y + 16.0)];
            for (left, base) in sides.into_iter().chain(ends) {
                let place = [left - 1.0, base - 10.0, left + width + 1.0, base + 3.5];
                let inside = place[0] > self.left
                    && place[2] < self.left + self.width
                    && place[1] > self.top
                    && place[3] < self.top + self.height;
                if inside && !name.is_empty() && !taken.iter().any(|t| touch(t, &place)) {
                    svg.of_series(&one.name, |svg| svg.label(left, base, name, TICK, Paint::Soft));
                    taken.push(place);
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Mark, Spread};
    use super::{front, has_line};

    #[test]
    fn the_front_is_what_no_other_point_beats() {
        // Time and rate: the second is slower and gives less than the first; of two at one time the better one counts.
        let points = [(1.0, 10.0), (2.0, 9.0), (4.0, 30.0), (4.0, 20.0), (3.0, 10.0), (8.0, 31.0)];
        assert_eq!(front(&points), [0, 2, 5]);
        assert!(front(&[]).is_empty());
    }

    #[test]
    fn a_front_of_one_point_is_no_line() {
        let at = |rate: f64| Mark::Spread(Spread { p50: Some(rate), ..Spread::default() });
        // The first is the quickest and gives the most.
        assert!(!has_line(&[at(10.0), at(9.0)], &[Some(1.0), Some(2.0)]));
        assert!(has_line(&[at(10.0), at(11.0)], &[Some(1.0), Some(2.0)]));
        assert!(!has_line(&[at(10.0), at(11.0)], &[Some(1.0), None]));
        assert!(!has_line(&[Mark::Nothing, at(11.0)], &[Some(1.0), Some(2.0)]));
    }
}
