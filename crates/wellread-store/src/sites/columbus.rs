//! Columbus, and Operetta as older Harmony wrote it.
//!
//! `003005-1-001002003.tif` has row and column of the well, three digits each, then the field. Time point, plane of
//! the stack and channel follow, three digits each. So the `ImageIndex.ColumbusIDX.xml` beside the images names them,
//! which CellProfiler Analyst reads (`cpa/parseperkinelmer.py`), and which says what channels are called.

use super::layout::{Layout, none};

/// The layout.
pub(super) static LAYOUT: Layout = Layout {
    name: "columbus",
    about: "Columbus, older Operetta: 001001-1-001001001.tif",
    patterns: &[
        "{plate}__*/Images/{row:3d}{col:3d}-{site:d}-{time:3d}{z:3d}{channel:3d}",
        "{plate}/Images/{row:3d}{col:3d}-{site:d}-{time:3d}{z:3d}{channel:3d}",
        "{row:3d}{col:3d}-{site:d}-{time:3d}{z:3d}{channel:3d}",
    ],
    passes_over: none,
    details: super::index_xml::details,
};
