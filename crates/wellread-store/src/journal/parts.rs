//! Parts that several processes write in the folder of an interrupted run.

use crate::place;
use std::path::Path;

/// Name of the folder of parts that several processes write: no journal notes which of them are complete.
pub(crate) const PARTS: &str = "parts";

/// Whether several processes write parts in the `folder` of an interrupted run.
pub(crate) fn has_parts(folder: &Path) -> bool {
    place::exists(&folder.join(PARTS))
}
