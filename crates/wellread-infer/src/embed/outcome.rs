//! Reports while a table is made, and the result.

use crate::source::Unreadable;
use std::path::{Path, PathBuf};
use wellread_store::Renamed;

/// The events meanwhile.
#[derive(Debug)]
pub enum Event<'a> {
    /// The model was opened, by what is told in words, with what a reader must know.
    Opened(&'a str, &'a [String]),
    /// An interrupted run's parts were removed, since this one does not go on with them.
    Discarded(&'a Path),
    /// So many images are there already.
    Resumed(usize),
    /// Columns have other names in the table than their own with `Metadata_` before it.
    Renamed(&'a [Renamed]),
    /// So many more images are done.
    Images(usize),
}

/// The result.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Images in the table.
    pub images: usize,
    /// Features of each.
    pub features: usize,
    /// Images that were left out.
    pub left_out: Vec<Unreadable>,
    /// Images that were there already.
    pub resumed: usize,
    /// Whether the table was there already, so that nothing was done.
    pub complete: bool,
    /// Seconds from the first image to the table, without opening the model.
    pub seconds: f64,
    /// The backend that ran the model, in words.
    pub backend: String,
    /// SHA-256 of the model's file, where it has one.
    pub sha256: Option<String>,
    /// The table.
    pub out: PathBuf,
}
