//! A set of images to be measured on, and what of it cannot be read.

use anyhow::{Result, anyhow, ensure};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use wellread_loader::{Dataset, Skipped};
use wellread_store::{Error, RowInfo};

/// A set of images.
pub struct Stored {
    pub(super) dataset: Dataset,
    /// The first image that can be read: the others are expected to be like it.
    pub(super) first: RowInfo,
    /// Images that could not be read so far, and why.
    pub(super) skipped: RefCell<BTreeMap<usize, String>>,
}

impl Stored {
    /// A set of images, at least one of which can be read.
    ///
    /// # Errors
    /// There are none; the first cannot be read, or none of the first thousand with `skip`.
    pub(super) fn new(dataset: Dataset, skip: bool) -> Result<Self> {
        ensure!(
            !dataset.is_empty(),
            "--data-source {}: there are no images",
            dataset.store().path().display()
        );
        let tried = if skip { dataset.len().min(Skipped::LISTED) } else { 1 };
        let mut first = dataset.row_info(0);
        for row in 1..tried {
            if first.is_ok() {
                break;
            }
            first = dataset.row_info(row);
        }
        let first = first.map_err(|error| {
            let hint = if skip { "" } else { "; --on-error skip leaves out images that cannot be read" };
            anyhow!("{error}{hint}")
        })?;
        Ok(Self { dataset, first, skipped: RefCell::default() })
    }
}

/// The reason why an image of the set at `set` is left out: its file, where that is not the set itself, and the cause. Its row
/// and name stand elsewhere.
pub fn reason(set: &Path, error: &Error) -> String {
    format!("{}{}", error.file_below(set), error.cause())
}
