//! A figure in the page: the drawing itself, and the data that the script needs to answer questions about it.
//!
//! ```text
//!  Figure ─svg─▶ <figure> drawing as printed          whole without the script
//!         ├─with_scale─▶ <template> the other scales   shown when asked for
//!         └─series─▶ switches, hidden until the script runs
//! ```
//!
//! All drawings are made by the same code as the figures' files, so that the screen shows the printed figures.

use crate::chart::color::Paint;
use crate::chart::svg::escape;
use crate::chart::{Figure, Scale};
use std::fmt::Write;

/// The title of the words on how a figure is read.
const HOW: &str = "How to read this";

/// Names of the scales that a reader may choose.
const SCALES: [(Scale, &str); 2] = [(Scale::Linear, "linear"), (Scale::Log, "logarithmic")];

/// The figure with its switches, and below it the words on how it is read.
pub(super) fn html(figure: &Figure, how_to_read: &str) -> String {
    format!("{}<p class=\"how\"><strong>{HOW}.</strong> {}</p>\n", plot(figure), escape(how_to_read))
}

/// The same words, folded.
pub(super) fn folded(how_to_read: &str) -> String {
    format!("<details class=\"how\"><summary>{HOW}</summary>\n<p>{}</p></details>\n", escape(how_to_read))
}

/// The figure, and below it its switches.
pub(super) fn plot(figure: &Figure) -> String {
    let id = escape(&figure.name);
    let drawn = figure.svg();
    // A figure may have panels of both kinds: then neither scale is the one that is printed.
    let others = SCALES.map(|(scale, name)| {
        let other = Figure { name: format!("{}-{name}", figure.name), ..figure.with_scale(scale) };
        (name, other.svg())
    });
    let same = |other: &str, name: &str| {
        drawn == other.replace(&format!("fig-{}-{name}", figure.name), &format!("fig-{}", figure.name))
    };
    let printed = others.iter().find(|(name, svg)| same(svg, name)).map(|(name, _)| *name);
    let mut choices = vec![(String::new(), printed.unwrap_or("as printed"))];
    let mut templates = String::new();
    for (name, svg) in &others {
        if !same(svg, name) {
            choices.push(((*name).to_owned(), name));
            let _ = writeln!(templates, "<template data-scale=\"{name}\">\n{svg}</template>");
        }
    }
    let mut tools = series(figure);
    if choices.len() > 1 {
        tools += "<fieldset class=\"scale\"><legend>Scale</legend>\n";
        for (i, (value, name)) in choices.iter().enumerate() {
            let checked = if i == 0 { " checked" } else { "" };
            let _ = writeln!(
                tools,
                "<label><input type=\"radio\" name=\"scale-{id}\" value=\"{value}\"{checked}> {name}</label>"
            );
        }
        tools += "</fieldset>\n";
    }
    format!(
        "<div class=\"plot\" id=\"plot-{id}\">\n\
         <p class=\"narrow\"><strong>{0}.</strong> Scroll the figure sideways to see all of it.</p>\n\
         <figure class=\"chart\" tabindex=\"0\" aria-label=\"Figure: {0}\" aria-describedby=\"read-{id}\">\n{drawn}</figure>\n\
         {templates}<p class=\"readout\" hidden><output id=\"read-{id}\">Point at a mark to read its value; with the keyboard, \
         choose the figure and press the arrow keys.</output></p>\n\
         <div class=\"tools\" hidden>\n{tools}</div>\n</div>\n",
        escape(&figure.title),
    )
}

/// A switch per series with its colour; nothing when there is only one.
fn series(figure: &Figure) -> String {
    let all = figure.series();
    if all.len() < 2 {
        return String::new();
    }
    let mut out = String::from("<fieldset class=\"series\"><legend>Show</legend>\n");
    for one in &all {
        let name = escape(&one.name);
        let _ = writeln!(
            out,
            "<label><input type=\"checkbox\" value=\"{name}\" checked> <svg class=\"swatch\" viewBox=\"0 0 12 12\" aria-hidden=\"true\">\
             <rect width=\"12\" height=\"12\" rx=\"2\" {}/></svg> {name}</label>",
            Paint::Series(one.slot).fill()
        );
    }
    if all.len() > 3 {
        out += "<button type=\"button\" data-all=\"yes\">all</button> <button type=\"button\" data-all=\"\">none</button>\n";
    }
    out + "</fieldset>\n"
}
