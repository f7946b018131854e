//! ArrayScan and CellInsight of Cellomics; CellProfiler's ExampleHuman.
//!
//! `AS_09125_050116030001_D03f00d0.tif`: plate, well, field, channel.

use super::layout::{Layout, none, nothing_beside};

/// The layout.
pub(super) static LAYOUT: Layout = Layout {
    name: "cellomics",
    about: "ArrayScan, CellInsight: Plate_D03f00d0.tif",
    patterns: &["{plate}_{well:w}f{site:2d}d{channel:1d}"],
    passes_over: none,
    details: nothing_beside,
};
