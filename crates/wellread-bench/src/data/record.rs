//! The records beside the sets of a folder: their source in `set.json`, and the checksums of their images in
//! `expected.json`.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::path::Path;
use wellread_store::checksum::ImageChecksum;
use wellread_store::{Error, staged};

/// The record in a folder of sets.
pub(super) const RECORD: &str = "set.json";
/// The list of checksums in a folder of sets.
pub const EXPECTED: &str = "expected.json";

/// The source of the sets in a folder.
#[derive(Serialize, Deserialize)]
pub(super) struct SetRecord {
    pub(super) made_from: String,
    pub(super) wellread: String,
    /// Formats whose copy is complete.
    pub(super) formats: Vec<String>,
}

impl SetRecord {
    pub(super) fn of(made_from: &str, formats: Vec<String>) -> Self {
        Self { made_from: made_from.to_owned(), wellread: env!("CARGO_PKG_VERSION").to_owned(), formats }
    }

    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        write_json(&folder.join(RECORD), self)
    }
}

/// Removes the record of a folder whose sets are about to become something else.
pub(super) fn remove_record(folder: &Path) -> Result<()> {
    let record = folder.join(RECORD);
    match std::fs::remove_file(&record) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io(&record, "cannot remove", &e).into())
        }
        _ => Ok(()),
    }
}

pub(super) fn write_expected(path: &Path, sums: &[ImageChecksum]) -> Result<()> {
    write_json(path, &serde_json::json!({ "images": sums }))
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    Ok(staged::write(path, serde_json::to_vec_pretty(value)?)?)
}
