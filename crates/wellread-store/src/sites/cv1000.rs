//! CellVoyager CV1000 and CQ1 of Yokogawa.
//!
//! `W1F001T0001Z01C1.tif`: well, field, time point, plane of the stack, channel, in a folder `Image` beside `MeasurementResult.xml`,
//! as Bio-Formats has it (`CellVoyagerReader.java`). The well is a number, which names alone do not make a row and a column of.

use super::layout::{Layout, none, nothing_beside};

/// The layout.
pub(super) static LAYOUT: Layout = Layout {
    name: "cv1000",
    about: "CellVoyager CV1000, CQ1: W1F001T0001Z01C1.tif",
    patterns: &[
        "{plate}/Image/W{well:d}F{site:d}T{time:d}Z{z:d}C{channel:d}",
        "W{well:d}F{site:d}T{time:d}Z{z:d}C{channel:d}",
    ],
    passes_over: none,
    details: nothing_beside,
};
