//! ImageXpress, written by MetaXpress.
//!
//! `Plate_A01_s1_w1.tif`, with an identifier behind where files are exported from the database
//! (`Plate_A01_s1_w1A1B2C3D4-….tif`), in folders `TimePoint_1` and `ZStep_1` where there are several. A plate with one site
//! has no `_s1`; thumbnails (`_w1_thumb….tif`) lie beside.

use super::layout::{Layout, nothing_beside};

/// The layout. An identifier begins behind the one digit of a wavelength: MetaXpress takes up to eight.
pub(super) static LAYOUT: Layout = Layout {
    name: "imagexpress",
    about: "ImageXpress: Plate_A01_s1_w1.tif in TimePoint_1/ZStep_1, thumbnails left out",
    patterns: &[
        "TimePoint_{time:d}/ZStep_{z:d}/{plate}_{well:w}_s{site:d}_w{channel:1d}*",
        "TimePoint_{time:d}/ZStep_{z:d}/{plate}_{well:w}_w{channel:1d}*",
        "ZStep_{z:d}/{plate}_{well:w}_s{site:d}_w{channel:1d}*",
        "ZStep_{z:d}/{plate}_{well:w}_w{channel:1d}*",
        "TimePoint_{time:d}/{plate}_{well:w}_s{site:d}_w{channel:1d}*",
        "TimePoint_{time:d}/{plate}_{well:w}_w{channel:1d}*",
        "{plate}_{well:w}_s{site:d}_w{channel:1d}*",
        "{plate}_{well:w}_w{channel:1d}*",
        // Exported without the plate's name.
        "TimePoint_{time:d}/ZStep_{z:d}/{well:w}_s{site:d}_w{channel:1d}*",
        "TimePoint_{time:d}/{well:w}_s{site:d}_w{channel:1d}*",
        "{well:w}_s{site:d}_w{channel:1d}*",
    ],
    passes_over: |name| name.to_ascii_lowercase().contains("_thumb"),
    details: nothing_beside,
};
