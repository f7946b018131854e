//! Writing SVG: shapes and text with colours by role, so that a page can restyle them for a dark theme.
//!
//! Every colour is given twice. The presentation attribute shows in a file on its own. The class (`k-ink`,
//! `s3` …) lets a style sheet of a page that embeds the figure override it.

use super::color::Paint;
use super::font::Style;
use std::fmt::Write;

/// An SVG document being written. Coordinates are pixels from the top left.
#[derive(Debug, Default)]
pub(crate) struct Svg {
    body: String,
}

/// How a text is anchored at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// A filled rectangle.
    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, fill: Paint, more: &str) {
        let (x, y, w, h) = (n(x), n(y), n(width.max(0.0)), n(height.max(0.0)));
        self.put(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" {}{}/>",
            fill.fill(),
            space(more)
        ));
    }

    /// A rectangle with attributes made by [`super::marks::variant`].
    pub fn bar(&mut self, x: f64, y: f64, width: f64, height: f64, attributes: &str) {
        if width > 0.0 {
            let (x, y, w, h) = (n(x), n(y), n(width), n(height));
            self.put(format_args!("<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" {attributes}/>"));
        }
    }

    /// A disc with attributes made by [`super::marks::variant`], on the ground's colour so that a tint hides
    /// what is below it.
    pub fn disc(&mut self, x: f64, y: f64, radius: f64, attributes: &str) {
        self.circle(x, y, radius, Paint::Paper, "");
        self.put(format_args!("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {attributes}/>", n(x), n(y), n(radius)));
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), paint: Paint, width: f64, more: &str) {
        let (x1, y1, x2, y2) = (n(from.0), n(from.1), n(to.0), n(to.1));
        self.put(format_args!(
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" {} stroke-width=\"{}\"{}/>",
            paint.stroke(),
            n(width),
            space(more)
        ));
    }

    /// Straight lines through points.
    pub fn polyline(&mut self, points: &[(f64, f64)], paint: Paint, width: f64) {
        let points: Vec<_> = points.iter().map(|p| format!("{},{}", n(p.0), n(p.1))).collect();
        self.put(format_args!(
            "<polyline points=\"{}\" {} stroke-width=\"{}\" fill=\"none\" stroke-linejoin=\"round\"/>",
            points.join(" "),
            paint.stroke(),
            n(width)
        ));
    }

    /// A closed shape through points; `more` are further attributes.
    pub fn polygon(&mut self, points: &[(f64, f64)], fill: Paint, more: &str) {
        let points: Vec<_> = points.iter().map(|p| format!("{},{}", n(p.0), n(p.1))).collect();
        self.put(format_args!("<polygon points=\"{}\" {}{}/>", points.join(" "), fill.fill(), space(more)));
    }

    /// A disc.
    pub fn circle(&mut self, x: f64, y: f64, radius: f64, fill: Paint, more: &str) {
        let (x, y, r) = (n(x), n(y), n(radius));
        self.put(format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" {}{}/>", fill.fill(), space(more)));
    }

    /// One line of text; `y` is its baseline.
    pub fn text(&mut self, x: f64, y: f64, text: &str, style: Style, anchor: Anchor, fill: Paint) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let bold = if style.bold { " font-weight=\"bold\"" } else { "" };
        self.put(format_args!(
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\"{bold}{anchor} {}>{}</text>",
            n(x),
            n(y),
            n(style.size),
            fill.fill(),
            escape(text)
        ));
    }

    /// One line of text that starts at a point, on a halo of the ground's colour: it stays readable where lines
    /// cross it.
    pub fn label(&mut self, x: f64, y: f64, text: &str, style: Style, fill: Paint) {
        self.put(format_args!(
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\" paint-order=\"stroke\" stroke-linejoin=\"round\" {}>{}</text>",
            n(x),
            n(y),
            n(style.size),
            fill.outlined(Paint::Paper, 3.0),
            escape(text)
        ));
    }

    /// A closed shape with attributes made by [`super::marks::variant`].
    pub fn shape(&mut self, points: &[(f64, f64)], attributes: &str) {
        let points: Vec<_> = points.iter().map(|p| format!("{},{}", n(p.0), n(p.1))).collect();
        self.put(format_args!(
            "<polygon points=\"{}\" stroke-linejoin=\"round\" {attributes}/>",
            points.join(" ")
        ));
    }

    /// Draws `inside` as one group with a tooltip: a mark of a series, whose value a page can read out.
    pub fn titled(&mut self, series: &str, title: &str, inside: impl FnOnce(&mut Self)) {
        let series = escape(series);
        self.put(format_args!("<g class=\"mark\" data-s=\"{series}\"><title>{}</title>", escape(title)));
        inside(self);
        self.put(format_args!("</g>"));
    }

    /// Draws `inside` as one group that belongs to a series (its line, its name), so that a page can hide it.
    pub fn of_series(&mut self, series: &str, inside: impl FnOnce(&mut Self)) {
        self.put(format_args!("<g data-s=\"{}\">", escape(series)));
        inside(self);
        self.put(format_args!("</g>"));
    }

    /// The document, `id` unique in a page that embeds it.
    pub fn finish(self, id: &str, width: f64, height: f64, title: &str, description: &str) -> String {
        let (w, h, id) = (n(width.ceil()), n(height.ceil()), escape(id));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"img\" \
             aria-labelledby=\"{id}-title {id}-desc\" font-family=\"{}\">\n\
             <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-desc\">{}</desc>\n\
             <rect width=\"{w}\" height=\"{h}\" {}/>\n{}</svg>\n",
            super::font::FAMILY,
            escape(title),
            escape(description),
            Paint::Paper.fill(),
            self.body
        )
    }

    fn put(&mut self, element: std::fmt::Arguments) {
        writeln!(self.body, "{element}").expect("writing to a string");
    }
}

/// `text` for XML or HTML, in content or in quoted attributes: markup escaped, characters that XML forbids
/// replaced.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A coordinate with at most two decimals, within what every viewer can draw.
fn n(value: f64) -> String {
    let value = if value.is_nan() { 0.0 } else { value.clamp(-1e5, 1e5) };
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn space(more: &str) -> String {
    if more.is_empty() { String::new() } else { format!(" {more}") }
}
