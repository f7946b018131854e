//! The legend of a section of rows.

use super::color::Paint;
use super::figure::{Mark, Section};
use super::marks;
use super::sample::Spread;
use super::style::TICK;
use super::svg::{Anchor, Svg};

/// The meaning of the marks of these panels: glyph and name.
pub(super) fn draw(svg: &mut Svg, section: &Section, variants: &[String], x: f64, y: f64, width: f64) -> f64 {
    let neutral = Paint::Soft;
    let has = |f: fn(&Mark) -> bool| section.panels.iter().flat_map(|p| &p.marks).any(f);
    let mut items: Vec<(Glyph, String)> = vec![];
    let named: Vec<_> = variants.iter().enumerate().filter(|(_, v)| !v.is_empty()).collect();
    if named.len() > 1 {
        items.extend(named.iter().map(|(i, v)| (Glyph::Variant(*i), (*v).clone())));
    }
    let stack = section.panels.iter().flat_map(|p| &p.marks).find_map(|m| match m {
        Mark::Stack { parts, .. } => Some(parts),
        _ => None,
    });
    for (i, (name, _)) in stack.into_iter().flatten().enumerate() {
        items.push(if i == 0 {
            (Glyph::Series, format!("{name} (in the colour of the format)"))
        } else {
            (Glyph::Part(i - 1), name.clone())
        });
    }
    if has(|m| matches!(m, Mark::Spread(_))) {
        let known = |f: fn(&Spread) -> Option<f64>| {
            section
                .panels
                .iter()
                .flat_map(|p| &p.marks)
                .any(|m| matches!(m, Mark::Spread(s) if f(s).is_some()))
        };
        items.push((Glyph::Dot, "p50 (median)".into()));
        if known(|s| s.p25) {
            items.push((Glyph::Box, "quartiles".into()));
        }
        if known(|s| s.p95) {
            items.push((Glyph::Tick(3.2), "p95".into()));
        }
        if known(|s| s.p99) {
            items.push((Glyph::Tick(5.2), "p99".into()));
        }
        if known(|s| s.max) {
            items.push((Glyph::Point, "largest".into()));
        }
    }
    if has(|m| matches!(m, Mark::Sample(_))) {
        items.push((Glyph::Box, "number of measurements there".into()));
        items.push((Glyph::Dot, "p50 (median)".into()));
        items.push((Glyph::Tick(5.0), "p95".into()));
        items.push((Glyph::Tick(7.5), "p99, both where there are enough measurements".into()));
    }
    if items.is_empty() {
        return 0.0;
    }
    let (mut at, mut line) = (x, y);
    for (glyph, name) in items {
        let name = TICK.fit(&name, width - 24.0);
        let taken = 24.0 + TICK.width(&name) + 16.0;
        if at > x && at + taken > x + width {
            (at, line) = (x, line + 15.0);
        }
        let middle = line + 6.0;
        match glyph {
            Glyph::Variant(v) => svg.bar(at, middle - 5.0, 16.0, 10.0, &marks::variant(neutral, v)),
            Glyph::Series => svg.rect(at, middle - 5.0, 16.0, 10.0, neutral, ""),
            Glyph::Part(i) => svg.rect(at, middle - 5.0, 16.0, 10.0, Paint::Part(i), ""),
            Glyph::Dot => svg.circle(at + 8.0, middle, 4.4, neutral, ""),
            Glyph::Box => svg.bar(at + 1.0, middle - 4.5, 14.0, 9.0, &marks::variant(neutral, 1)),
            Glyph::Tick(half) => {
                svg.line((at, middle), (at + 8.0, middle), neutral, 1.6, "");
                svg.line((at + 8.0, middle - half), (at + 8.0, middle + half), neutral, 1.8, "");
            }
            Glyph::Point => svg.circle(at + 8.0, middle, 1.4, neutral, ""),
        }
        svg.text(at + 22.0, middle + 3.8, &name, TICK, Anchor::Start, Paint::Soft);
        at += taken;
    }
    line + 18.0 - y
}

/// A sign of the legend.
enum Glyph {
    Variant(usize),
    Series,
    Part(usize),
    Dot,
    Box,
    Tick(f64),
    Point,
}
