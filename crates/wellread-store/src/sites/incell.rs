//! IN Cell Analyzer 1000 to 6500.
//!
//! `A - 01(fld 1 wv DAPI - DAPI).tif`: row, column, field, wavelengths of excitation and emission; `z 2` and `time 1 - 0 ms`
//! stand behind them where there are several.

use super::layout::{Layout, nothing_beside};

/// The layout: the patterns that say more go first.
pub(super) static LAYOUT: Layout = Layout {
    name: "incell",
    about: "IN Cell Analyzer: A - 01(fld 1 wv DAPI - DAPI).tif",
    patterns: &[
        "{row:a} - {col:d}(fld {site:d} wv {channel} z {z:d} time {time:d}*)",
        "{row:a} - {col:d}(fld {site:d} wv {channel} time {time:d} * z {z:d})",
        "{row:a} - {col:d}(fld {site:d} z {z:d} wv {channel} time {time:d}*)",
        "{row:a} - {col:d}(fld {site:d} z {z:d} time {time:d} wv {channel})",
        "{row:a} - {col:d}(fld {site:d} time {time:d} wv {channel})",
        "{row:a} - {col:d}(fld {site:d} wv {channel} z {z:d})",
        "{row:a} - {col:d}(fld {site:d} wv {channel} time {time:d}*)",
        "{row:a} - {col:d}(fld {site:d} z {z:d} wv {channel})",
        "{row:a} - {col:d}(fld {site:d} wv {channel})",
    ],
    passes_over: |name| name.to_ascii_lowercase().ends_with("_thumb"),
    details: nothing_beside,
};
