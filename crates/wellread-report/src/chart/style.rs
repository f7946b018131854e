//! Styles of texts and distances that all kinds of panels share.

use super::font::Style;

/// Titles of panels.
pub(super) const PANEL_TITLE: Style = Style::bold(11.5);
/// Names of series and values of marks.
pub(super) const LABEL: Style = Style::regular(11.0);
/// Labels of ticks, legends and what is unavailable.
pub(super) const TICK: Style = Style::regular(10.5);
/// Titles of axes.
pub(super) const AXIS_TITLE: Style = Style::regular(10.5);
/// Space between panels.
pub(super) const PANEL_GAP: f64 = 36.0;
