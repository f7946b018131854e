//! CellVoyager CV7000 and CV8000 of Yokogawa.
//!
//! `Plate_A01_T0001F001L01A01Z01C01.tif`: well, time point, field, timeline, action, plane of the stack, channel. An action is
//! one step of the protocol, often one for each channel: it tells no images apart.

use super::layout::{Layout, nothing_beside};

/// The layout.
pub(super) static LAYOUT: Layout = Layout {
    name: "cellvoyager",
    about: "CellVoyager CV7000, CV8000: Plate_A01_T0001F001L01A01Z01C01.tif",
    patterns: &["{plate}_{well:w}_T{time:4d}F{site:3d}L{timeline:2d}A{:2d}Z{z:2d}C{channel:2d}"],
    // Images of its corrections lie beside: one dark image of each camera, one shading image of each channel.
    passes_over: |name| name.starts_with("DC_") || name.starts_with("SC_"),
    details: nothing_beside,
};
