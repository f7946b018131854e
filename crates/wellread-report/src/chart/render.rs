//! The layout of a figure: title, sections from top to bottom, notes.

use super::color::Paint;
use super::figure::{Figure, Layout, Mark};
use super::font::Style;
use super::svg::{Anchor, Svg};
use super::{legend, lines, marks, rows, scatter};

/// Width of every figure, in pixels.
const WIDTH: f64 = 1040.0;
const MARGIN: f64 = 24.0;
const TITLE: Style = Style::bold(17.0);
const SUBTITLE: Style = Style::regular(12.0);
const SECTION_TITLE: Style = Style::bold(13.0);
const NOTE: Style = Style::regular(10.5);

/// Draws a figure.
pub(super) fn svg(figure: &Figure) -> String {
    let inner = WIDTH - 2.0 * MARGIN;
    let mut svg = Svg::default();
    let mut y = MARGIN - 6.0;
    let paragraph = |svg: &mut Svg, y: &mut f64, text: &str, style: Style, paint: Paint| {
        for line in style.wrap(text, inner) {
            *y += (style.size * 1.35).ceil();
            svg.text(MARGIN, *y, &line, style, Anchor::Start, paint);
        }
    };
    paragraph(&mut svg, &mut y, &figure.title, TITLE, Paint::Ink);
    paragraph(&mut svg, &mut y, &figure.subtitle, SUBTITLE, Paint::Soft);
    let gutter = rows::gutter(&figure.sections);
    for (i, section) in figure.sections.iter().enumerate() {
        y += if i == 0 { 14.0 } else { 26.0 };
        let letter = match u32::try_from(i).ok().and_then(|i| char::from_u32(u32::from('a') + i)) {
            Some(letter) if figure.sections.len() > 1 && i < 26 => format!("{letter}\u{2003}"),
            _ => String::new(),
        };
        let indent = SECTION_TITLE.width(&letter);
        for (l, line) in SECTION_TITLE.wrap(&section.title, inner - indent).iter().enumerate() {
            y += 17.0;
            if l == 0 {
                svg.text(MARGIN, y, letter.trim_end(), SECTION_TITLE, Anchor::Start, Paint::Ink);
            }
            svg.text(MARGIN + indent, y, line, SECTION_TITLE, Anchor::Start, Paint::Ink);
        }
        y += 10.0;
        y += match &section.layout {
            Layout::Rows { series, variants } => {
                let one = [String::new()];
                let variants = if variants.is_empty() { &one[..] } else { variants };
                let legend = legend::draw(&mut svg, section, variants, MARGIN, y, inner);
                let gap = if legend > 0.0 { legend + 4.0 } else { 0.0 };
                gap + rows::draw(&mut svg, section, series, variants, gutter, (MARGIN, y + gap), inner)
            }
            Layout::Lines { series, xs, x_title } => {
                lines::draw(&mut svg, section, series, xs, x_title, MARGIN, y, inner)
            }
            Layout::Scatter { series, points, xs, x_axis, front } => {
                scatter::draw(&mut svg, section, series, points, xs, (x_axis, *front), (MARGIN, y), inner)
            }
        };
    }
    y += 14.0;
    for note in figure.notes.iter().filter(|n| !n.trim().is_empty()) {
        paragraph(&mut svg, &mut y, note, NOTE, Paint::Soft);
        y += 2.0;
    }
    let words = if figure.description.is_empty() { describe(figure) } else { figure.description.clone() };
    svg.finish(&format!("fig-{}", figure.name), WIDTH, y + MARGIN - 4.0, &figure.title, &words)
}

/// The figure in words: every panel with its marks.
fn describe(figure: &Figure) -> String {
    let mut text = String::new();
    for section in &figure.sections {
        text += &format!("{}. ", section.title);
        let (series, per, names): (_, _, &[String]) = match &section.layout {
            Layout::Rows { series, variants } => (series, variants.len().max(1), variants),
            Layout::Lines { series, xs, .. } => (series, xs.len(), xs),
            Layout::Scatter { series, points, .. } => (series, points.len(), points),
        };
        // The second value of a point.
        let over = |i: usize| match &section.layout {
            Layout::Scatter { xs, x_axis, .. } => {
                let x = xs.get(i).copied().flatten().filter(|x| x.is_finite());
                x.map_or(String::new(), |x| format!("at {}: ", x_axis.in_words(x)))
            }
            _ => String::new(),
        };
        for panel in &section.panels {
            text += &format!("{}: ", panel.title);
            for (i, mark) in panel.marks.iter().enumerate().filter(|(_, m)| **m != Mark::Nothing) {
                let name = series.get(i / per.max(1)).map_or("", |s| s.name.as_str());
                let variant = names.get(i % per.max(1)).map_or("", String::as_str);
                let drawable = marks::drawable(mark);
                let words = marks::words(&drawable, panel.axis.unit);
                text += &format!("{name} {variant} {}{words}; ", over(i));
            }
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
