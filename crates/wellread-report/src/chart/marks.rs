//! Single marks: how a value looks, what its label and its tooltip say.

use super::color::Paint;
use super::figure::{Mark, Panel};
use super::sample::Spread;
use super::style::LABEL;
use super::svg::{Anchor, Svg};
use crate::number::{self, Unit};
use crate::table::{Estimate, IntervalKind};
use crate::words::{counted, plural};

/// Half the height of a whisker's end.
const CAP: f64 = 3.5;
/// The dashes of a reference line.
pub(super) const DASHES: &str = "stroke-dasharray=\"3 3\"";

/// A mark without values that cannot be drawn: a value that is not finite is named, not shown.
pub(super) fn drawable(mark: &Mark) -> Mark {
    const NOT_FINITE: &str = "unavailable: the result is not a finite number";
    match mark {
        Mark::Value(e) if !e.value.is_finite() => Mark::Unavailable(NOT_FINITE.into()),
        Mark::Value(e) if !(e.low.is_finite() && e.high.is_finite()) => {
            Mark::Value(Estimate { low: e.value, high: e.value, interval: IntervalKind::None, ..*e })
        }
        Mark::Stack { parts, .. }
            if parts.is_empty() || parts.iter().any(|p| !p.1.is_finite() || p.1 < 0.0) =>
        {
            Mark::Unavailable(NOT_FINITE.into())
        }
        Mark::Spread(s) => {
            let f = |v: Option<f64>| v.filter(|v| v.is_finite());
            match f(s.p50) {
                None => Mark::Unavailable(NOT_FINITE.into()),
                p50 => Mark::Spread(Spread {
                    min: f(s.min),
                    p25: f(s.p25),
                    p50,
                    p75: f(s.p75),
                    p95: f(s.p95),
                    p99: f(s.p99),
                    max: f(s.max),
                }),
            }
        }
        Mark::Sample(sample) if sample.sorted.is_empty() => Mark::Unavailable(NOT_FINITE.into()),
        other => other.clone(),
    }
}

/// The marks of a panel, exactly `count`, all of them drawable.
pub(super) fn slots(panel: &Panel, count: usize) -> Vec<Mark> {
    (0..count).map(|i| panel.marks.get(i).map_or(Mark::Nothing, drawable)).collect()
}

/// The text beside a mark.
pub(super) fn label(mark: &Mark, unit: Unit) -> String {
    match mark {
        Mark::Nothing | Mark::Unavailable(_) => String::new(),
        Mark::Value(e) => unit.format(e.value),
        Mark::Stack { parts, label } => {
            label.clone().unwrap_or_else(|| unit.format(parts.iter().map(|p| p.1).sum()))
        }
        // It stands at the end of the line and is of its middle: so it says which.
        Mark::Spread(s) => middle(s, unit),
        Mark::Sample(sample) => middle(&sample.spread, unit),
    }
}

/// The share of the first part of a stack in words: `41 % waiting`.
pub(super) fn first_share(parts: &[(String, f64)]) -> Option<String> {
    let total: f64 = parts.iter().map(|p| p.1).sum();
    let (name, value) = parts.first()?;
    (total > 0.0).then(|| format!("{}\u{a0}% {name}", percent(value / total)))
}

/// A share in whole percent, with a decimal near 0 and 1, where whole percents hide what matters.
pub(super) fn percent(share: f64) -> String {
    match share {
        s if s > 0.0 && s < 0.000_5 => "<0.1".to_owned(),
        s if (0.999_5..1.0).contains(&s) => ">99.9".to_owned(),
        s => number::tick(s * 100.0, usize::from((s > 0.0 && s < 0.0995) || (s > 0.9905 && s < 1.0))),
    }
}

/// A mark in words, for tooltips and descriptions.
pub(super) fn words(mark: &Mark, unit: Unit) -> String {
    match mark {
        Mark::Nothing => "not measured".to_owned(),
        Mark::Unavailable(why) => why.clone(),
        Mark::Value(e) => {
            let runs = counted(e.n, "run");
            let interval = match e.interval {
                IntervalKind::None => return format!("{}, {runs}", unit.format(e.value)),
                IntervalKind::Range => "range",
                IntervalKind::Confidence => "95 % interval",
            };
            format!(
                "{}, {interval} {} to {}, {runs}",
                unit.format(e.value),
                unit.format(e.low),
                unit.format(e.high)
            )
        }
        Mark::Stack { parts, label } => {
            let total: f64 = parts.iter().map(|p| p.1).sum();
            let part = |(name, value): &(String, f64)| {
                let share =
                    if total > 0.0 { format!(" ({} %)", percent(value / total)) } else { String::new() };
                format!("{name} {}{share}", unit.format(*value))
            };
            label.iter().cloned().chain(parts.iter().map(part)).collect::<Vec<_>>().join(", ")
        }
        Mark::Spread(s) => quantiles(s, unit),
        Mark::Sample(sample) => {
            let measurements = if sample.n == 1 { "measurement".to_owned() } else { plural("measurement") };
            let n = number::count(sample.n as i64);
            format!("{}, {n} {measurements}", quantiles(&sample.spread, unit))
        }
    }
}

/// The median, where it is known.
fn middle(s: &Spread, unit: Unit) -> String {
    s.p50.map_or(String::new(), |v| format!("p50 {}", unit.format(v)))
}

/// The known quantiles in words.
fn quantiles(s: &Spread, unit: Unit) -> String {
    let all = [
        ("min", s.min),
        ("p25", s.p25),
        ("p50", s.p50),
        ("p75", s.p75),
        ("p95", s.p95),
        ("p99", s.p99),
        ("max", s.max),
    ];
    let known = all.iter().filter_map(|(name, v)| v.map(|v| format!("{name} {}", unit.format(v))));
    known.collect::<Vec<_>>().join(", ")
}

/// Attributes that set the variants of a series apart: full, tinted, hollow, dashed.
pub(super) fn variant(paint: Paint, variant: usize) -> String {
    match variant % 4 {
        0 => paint.outlined(paint, 1.0),
        1 => format!("{} fill-opacity=\"0.35\"", paint.outlined(paint, 1.0)),
        2 => Paint::Paper.outlined(paint, 1.6),
        _ => format!("{} stroke-dasharray=\"3 2\"", Paint::Paper.outlined(paint, 1.6)),
    }
}

/// A horizontal interval, outlined in the ground's colour so that it is seen on any bar.
pub(super) fn whisker(svg: &mut Svg, x: (f64, f64), y: f64) {
    if x.1 - x.0 < 1.0 {
        return;
    }
    for (paint, width) in [(Paint::Paper, 3.4), (Paint::Ink, 1.3)] {
        svg.line((x.0, y), (x.1, y), paint, width, "");
        for end in [x.0, x.1] {
            svg.line((end, y - CAP), (end, y + CAP), paint, width, "");
        }
    }
}

/// The parts of upright reference lines at `lines` that lie on a bar, which covers the lines behind it.
pub(super) fn references(
    svg: &mut Svg,
    lines: impl Iterator<Item = f64>,
    (from, to): (f64, f64),
    y: f64,
    bar: f64,
    paint: Paint,
) {
    for at in lines.filter(|at| from < *at && *at < to) {
        svg.line((at, y - bar / 2.0), (at, y + bar / 2.0), paint, 1.0, DASHES);
    }
}

/// The part of a bar before its interval: where it begins and ends, and the paint of a text on it.
pub(super) struct Room {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) paint: Paint,
}

/// The value beside a mark, from a point on. An upright reference line at one of `lines` would run through some of these: they
/// stand left of the line, on the bar. Where the bar is too short for that, the line stops around the value: its dashes between
/// the letters would look like parts of these.
pub(super) fn value_label(
    svg: &mut Svg,
    (x, y): (f64, f64),
    text: &str,
    lines: &(impl Iterator<Item = f64> + Clone),
    on_bar: Option<Room>,
) {
    let width = LABEL.width(text);
    let is_free = |from: f64| !lines.clone().any(|at| from < at && at < from + width);
    if !is_free(x) {
        let has_room = |room: &Room| room.from <= room.to - width && is_free(room.to - width);
        if let Some(room) = on_bar.filter(has_room) {
            svg.text(room.to, y, text, LABEL, Anchor::End, room.paint);
            return;
        }
        svg.rect(x - 2.0, y - 9.5, width + 4.0, 12.0, Paint::Paper, "");
    }
    svg.label(x, y, text, LABEL, Paint::Ink);
}

/// A point of a line: the shape, too, tells series apart.
pub(super) fn point(svg: &mut Svg, shape: usize, (x, y): (f64, f64), paint: Paint) {
    let r = 4.2;
    let more = "stroke-width=\"1\"";
    match shape % 6 {
        0 => svg.circle(x, y, r, paint, more),
        1 => svg.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8, paint, more),
        2 => svg.polygon(
            &[(x, y - r * 1.2), (x + r * 1.1, y + r * 0.8), (x - r * 1.1, y + r * 0.8)],
            paint,
            more,
        ),
        3 => svg.polygon(
            &[(x, y - r * 1.25), (x + r * 1.25, y), (x, y + r * 1.25), (x - r * 1.25, y)],
            paint,
            more,
        ),
        4 => svg.polygon(
            &[(x, y + r * 1.2), (x + r * 1.1, y - r * 0.8), (x - r * 1.1, y - r * 0.8)],
            paint,
            more,
        ),
        _ => svg.rect(x - r * 1.3, y - r * 0.55, r * 2.6, r * 1.1, paint, more),
    }
}

#[cfg(test)]
mod tests {
    use super::super::color;
    use super::super::figure::{Axis, Figure, Layout, Scale, Section, Series};
    use super::*;

    /// Two bars and a reference line.
    fn drawn(bars: [f64; 2], reference: f64) -> String {
        let mut axis = Axis::new("rate", Unit::PerSecond("images")).scale(Scale::Linear);
        axis.references = vec![(reference, "the model".to_owned())];
        let series = ["tiff", "lance"].map(|name| Series::from(name.to_owned())).to_vec();
        let section = Section {
            title: String::new(),
            layout: Layout::Rows { series, variants: vec![] },
            panels: vec![Panel {
                title: String::new(),
                axis,
                marks: bars.map(|of| Mark::Value(Estimate::exact(of))).to_vec(),
            }],
            columns: 1,
            share_axis: false,
        };
        Figure { name: "f".to_owned(), sections: vec![section], ..Figure::default() }.svg()
    }

    /// The rectangles behind labels.
    fn grounds(svg: &str) -> Vec<&str> {
        let is_ground = |line: &&str| line.starts_with("<rect x=") && line.contains("\"f-paper\"");
        svg.lines().filter(is_ground).collect()
    }

    /// The first line that contains these words.
    fn line<'a>(svg: &'a str, words: &str) -> &'a str {
        svg.lines().find(|line| line.contains(words)).unwrap()
    }

    /// The attribute at this place of a line, as a number.
    fn number(line: &str, at: usize) -> f64 {
        line.split('"').nth(at).unwrap().parse().unwrap()
    }

    #[test]
    fn a_label_that_a_reference_line_would_run_through_stands_left_of_the_line_on_its_bar() {
        let svg = drawn([100.0, 48.0], 50.0);
        let (label, dashed) = (line(&svg, ">48.0/s</text>"), line(&svg, DASHES));
        let of_lance = format!("f-os{}\"", color::slot("lance"));
        assert!(label.contains("text-anchor=\"end\"") && label.contains(&of_lance), "{label}");
        assert!(number(label, 1) < number(dashed, 1), "{label} {dashed}");
        assert!(grounds(&svg).is_empty());
        // A label beside the line stays where it was.
        let svg = drawn([100.0, 20.0], 50.0);
        assert!(!line(&svg, ">20.0/s</text>").contains("text-anchor") && grounds(&svg).is_empty());
    }

    #[test]
    fn a_reference_line_stops_around_a_label_that_lies_across_it_where_the_bar_is_short() {
        let svg = drawn([100.0, 1.0], 2.5);
        let [ground]: [&str; 1] = grounds(&svg).try_into().unwrap();
        let dashed = line(&svg, DASHES);
        let (at, from, width) = (number(dashed, 1), number(ground, 1), number(ground, 5));
        assert!(from < at && at < from + width, "{dashed} {ground}");
    }

    #[test]
    fn a_reference_line_goes_on_across_the_bars_that_reach_it() {
        let svg = drawn([100.0, 20.0], 50.0);
        let dashed: Vec<&str> = svg.lines().filter(|line| line.contains(DASHES)).collect();
        // One is behind all bars, and one is on the bar of tiff, which hides the first.
        let [behind, on] = dashed.as_slice() else { panic!("{dashed:?}") };
        let of_tiff = format!("k-os{}\"", color::slot("tiff"));
        assert!(behind.contains("k-soft") && on.contains(&of_tiff), "{dashed:?}");
        let x = |line: &str| line.split('"').nth(1).map(str::to_owned);
        assert_eq!(x(behind), x(on));
    }
}
