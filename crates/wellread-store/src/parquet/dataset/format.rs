//! The dataset folder as a format.

use super::super::format::{FORMAT as PARQUET, NO_APPENDING};
use super::names::{CHUNKS, DESCRIPTION, IMAGES, INDEX, NAME};
use super::{store, writer};
use crate::Format;

/// The OME-Arrow dataset folder.
pub static FORMAT: Format = Format {
    name: NAME,
    about: "ome-arrow's dataset folder: images, chunks and index as Parquet; layouts image, tile, volume, z-plane, block",
    endings: &[".ome-arrow-dataset"],
    set_ending: ".ome-arrow-dataset",
    holds_images: |_| true,
    parts: &[IMAGES, CHUNKS, INDEX, DESCRIPTION],
    foreign_entry: |_| Ok(None),
    keeps_features: true,
    keeps_durations: true,
    holds_bare_pixels: false,
    has_checksums: true,
    has_tables: false,
    has_columns: false,
    has_levels: false,
    uses_tune: |_| true,
    cannot_resume: Some(NO_APPENDING),
    engine: || {
        let parquet = (PARQUET.engine)()?;
        Ok(format!("{parquet}; typed-chunk-dataset {}", wellread_image::ome_arrow::VERSION))
    },
    recognise: |probe| {
        let has = |name: &str| probe.entries.iter().any(|e| e == name);
        probe.is_dir && has(IMAGES) && has(CHUNKS)
    },
    open: |path, options| Ok(Box::new(store::DatasetStore::open(path, options)?)),
    create: |path, options| Ok(Box::new(writer::DatasetWriter::create(path, options)?)),
};
