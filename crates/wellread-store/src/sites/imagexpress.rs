//! ImageXpress, written by MetaXpress.
//!
//! `Plate_A01_s1_w1.tif`, with an identifier behind where files are exported from the database
//! (`Plate_A01_s1_w1A1B2C3D4-….tif`), in folders `TimePoint_1` and `ZStep_1` where there are several. A plate with one site
//! has no `_s1`; thumbnails (`_w1_thumb….tif`) lie beside.

use super::layout::{Layout, nothing_beside};

/// Patterns of names that begin so, as far as the wavelength. One of two digits ends the name, or has an identifier behind it. An
/// identifier may begin with a digit: where the name is no longer than with one digit, the first is the wavelength.
macro_rules! names {
    ($($begin:literal),* $(,)?) => {
        &[$(
            concat!($begin, "_w{channel:2d}"),
            concat!($begin, "_w{channel:2d}{:8}-{:4}-{:4}-{:4}-{:12}"),
            concat!($begin, "_w{channel:1d}*"),
        )*]
    };
}

/// The layout.
pub(super) static LAYOUT: Layout = Layout {
    name: "imagexpress",
    about: "ImageXpress: Plate_A01_s1_w1.tif in TimePoint_1/ZStep_1, thumbnails left out",
    // In each folder names with a site go before those without one: else `A01_s1` would be well S1 of a plate A01. So would
    // `exp_s1`, of an experiment without wells. Rows of wells are capitals, and the `s` of a site is none.
    patterns: names![
        "TimePoint_{time:d}/ZStep_{z:d}/{plate}_{well:w}_s{site:d}",
        "TimePoint_{time:d}/ZStep_{z:d}/{well:w}_s{site:d}",
        "TimePoint_{time:d}/ZStep_{z:d}/{plate}_s{site:d}",
        "TimePoint_{time:d}/ZStep_{z:d}/{plate}_{well:w}",
        "ZStep_{z:d}/{plate}_{well:w}_s{site:d}",
        "ZStep_{z:d}/{well:w}_s{site:d}",
        "ZStep_{z:d}/{plate}_s{site:d}",
        "ZStep_{z:d}/{plate}_{well:w}",
        "TimePoint_{time:d}/{plate}_{well:w}_s{site:d}",
        "TimePoint_{time:d}/{well:w}_s{site:d}",
        "TimePoint_{time:d}/{plate}_s{site:d}",
        "TimePoint_{time:d}/{plate}_{well:w}",
        "{plate}_{well:w}_s{site:d}",
        "{well:w}_s{site:d}",
        "{plate}_s{site:d}",
        "{plate}_{well:w}",
    ],
    passes_over: |name| name.to_ascii_lowercase().contains("_thumb"),
    details: nothing_beside,
};
