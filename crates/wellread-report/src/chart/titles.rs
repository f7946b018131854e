//! The titles above panels that stand side by side: what each shows, and its axis with the unit.
//!
//! ```text
//!  titles, as many lines as the longest needs ─▶ titles of axes, likewise ─▶ the plots, which begin at one height
//! ```

use super::color::Paint;
use super::style::{AXIS_TITLE, PANEL_TITLE};
use super::svg::{Anchor, Svg};

/// Height of a line of a panel's title, and of its axis.
const TITLE_LINE: f64 = 15.0;
const AXIS_LINE: f64 = 13.5;

/// The lines above some panels, panel by panel.
pub(super) struct Titles {
    pub panels: Vec<Vec<String>>,
    pub axes: Vec<Vec<String>>,
}

/// Height of the longest of some titles.
fn height(titles: &[Vec<String>], line: f64) -> f64 {
    titles.iter().map(Vec::len).max().unwrap_or(0) as f64 * line
}

impl Titles {
    /// Where the plots begin, below titles that begin at `top`.
    pub fn plot_top(&self, top: f64) -> f64 {
        top + height(&self.panels, TITLE_LINE) + height(&self.axes, AXIS_LINE) + 10.0
    }

    /// Draws those of panel `i`.
    pub fn draw(&self, svg: &mut Svg, i: usize, left: f64, top: f64) {
        for (l, line) in self.panels[i].iter().enumerate() {
            let at = top + 11.0 + l as f64 * TITLE_LINE;
            svg.text(left, at, line, PANEL_TITLE, Anchor::Start, Paint::Ink);
        }
        for (l, line) in self.axes[i].iter().enumerate() {
            let at = top + height(&self.panels, TITLE_LINE) + 11.0 + l as f64 * AXIS_LINE;
            svg.text(left, at, line, AXIS_TITLE, Anchor::Start, Paint::Soft);
        }
    }
}
