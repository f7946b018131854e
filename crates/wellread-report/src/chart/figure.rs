//! Figures as data: sections of panels, each with an axis and a mark for every slot.

use super::color;
use super::sample::{Sample, Spread};
use crate::columns::Better;
use crate::number::Unit;
use crate::table::Estimate;

/// A figure of one or more sections of panels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Name of its files, and unique in a report.
    pub name: String,
    /// A title in one line.
    pub title: String,
    /// On what: images, machine.
    pub subtitle: String,
    /// Sections from top to bottom, lettered when there are several.
    pub sections: Vec<Section>,
    /// Lines at the foot: n, what the whiskers are, machine, noise floor.
    pub notes: Vec<String>,
    /// The same in words, for those who cannot see it.
    pub description: String,
}

/// Panels that show one thing in the same way.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// A title.
    pub title: String,
    /// How slots are laid out.
    pub layout: Layout,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
    /// Panels side by side.
    pub columns: usize,
    /// Whether all panels have the axis of the largest, for comparison across them.
    pub share_axis: bool,
}

/// A row or a line: its name and its colour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The name beside it.
    pub name: String,
    /// Its colour slot: [`color::slot`] of the format.
    pub slot: usize,
}

impl<S: Into<String>> From<S> for Series {
    /// A series in the colour of its own name.
    fn from(name: S) -> Self {
        let name = name.into();
        Self { slot: color::slot(&name), name }
    }
}

/// How the marks of a panel are laid out.
#[derive(Clone, Debug, PartialEq)]
pub enum Layout {
    /// Horizontal bars, stacks or distributions: one row per series, in it one mark per variant. Slot
    /// `row * variants + variant`.
    Rows {
        /// The rows.
        series: Vec<Series>,
        /// Names of the variants, up to four; a single empty one when there is nothing to tell apart.
        variants: Vec<String>,
    },
    /// Points joined by lines over a parameter, one line per series. Slot `series * xs + x`.
    Lines {
        /// The lines.
        series: Vec<Series>,
        /// Values of the parameter.
        xs: Vec<String>,
        /// Name of the parameter.
        x_title: String,
    },
    /// Points over a second quantity, joined in their order, one line per series; the series' names stand in a
    /// column at the right. Slot `series * points + point`.
    Scatter {
        /// The lines.
        series: Vec<Series>,
        /// The names of the points of a line; they stand beside them where there is room.
        points: Vec<String>,
        /// The second quantity by slot, the same in all panels; slots without one are not shown.
        xs: Vec<Option<f64>>,
        /// Its axis.
        x_axis: Axis,
        /// Whether the Pareto front is drawn: the points than which none has more at less of the second quantity.
        front: bool,
    },
}

/// One panel: an axis and a mark for every slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The panel's name in its section: "random access".
    pub title: String,
    /// The axis of its values.
    pub axis: Axis,
    /// One mark per slot; missing ones at the end are nothing.
    pub marks: Vec<Mark>,
}

/// The axis of the values.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The quantity, without the unit: "throughput, more is better".
    pub title: String,
    /// The unit of the marks' values.
    pub unit: Unit,
    /// Linear, logarithmic, or whichever suits the data.
    pub scale: Scale,
    /// Values worth a line of their own, with a short name: thresholds.
    pub references: Vec<(f64, String)>,
    /// Where a linear axis ends at least, such as 1 for shares.
    pub at_least: Option<f64>,
    /// Whether there is nothing between whole numbers, as with epochs: no tick stands there.
    pub whole: bool,
    /// Which values are better: rows are sorted by it.
    pub better: Better,
}

impl Axis {
    /// An axis that finds its own scale.
    pub fn new(title: impl Into<String>, unit: Unit) -> Self {
        Self {
            title: title.into(),
            unit,
            scale: Scale::Auto,
            references: vec![],
            at_least: None,
            whole: false,
            better: Better::Neither,
        }
    }

    /// A value of it in words: "epoch 3", "2.1 ms".
    pub(super) fn in_words(&self, value: f64) -> String {
        let name = self.title.split(',').next().unwrap_or_default();
        match self.unit {
            Unit::Plain("") if value.fract() == 0.0 => {
                format!("{name} {}", crate::number::count(value as i64))
            }
            Unit::Plain("") => format!("{name} {}", self.unit.format(value)),
            unit => unit.format(value),
        }
    }

    /// The same with a given scale.
    pub fn scale(self, scale: Scale) -> Self {
        Self { scale, ..self }
    }
}

/// How values map to places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Logarithmic when all values are positive and the largest is over 40 times the smallest, else linear.
    #[default]
    Auto,
    /// From zero; bars are as long as their values are large.
    Linear,
    /// By magnitude; bars become dots, because a bar's length means nothing without a zero.
    Log,
}

/// The mark of a slot.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Mark {
    /// Nothing: this slot was not asked for.
    #[default]
    Nothing,
    /// Why there is no value.
    Unavailable(String),
    /// A value with its interval.
    Value(Estimate),
    /// Parts that add up, the first in the series' colour.
    Stack {
        /// Names and values.
        parts: Vec<(String, f64)>,
        /// The text beside it; `None` is the sum.
        label: Option<String>,
    },
    /// A distribution by its quantiles.
    Spread(Spread),
    /// A distribution by its single measurements; of [`Layout::Rows`] only.
    Sample(Sample),
}

impl Figure {
    /// All series, in the order in which they first appear; one per name.
    pub fn series(&self) -> Vec<&Series> {
        let mut all: Vec<&Series> = vec![];
        for section in &self.sections {
            let (Layout::Rows { series, .. } | Layout::Lines { series, .. } | Layout::Scatter { series, .. }) =
                &section.layout;
            for one in series {
                if !all.iter().any(|known| known.name == one.name) {
                    all.push(one);
                }
            }
        }
        all
    }

    /// The same with the values of all panels on this scale, as far as the marks allow it. Marks that add up
    /// have no logarithmic axis.
    pub fn with_scale(&self, scale: Scale) -> Self {
        let mut figure = self.clone();
        for panel in figure.sections.iter_mut().flat_map(|section| &mut section.panels) {
            panel.axis.scale = scale;
        }
        figure
    }
}
