//! Parquet as formats: the tuned one, and the same with the library's own defaults.

use super::recognise;
use super::store::ParquetStore;
use super::writer::ParquetWriter;
use crate::features::is_own_of_tables;
use crate::{Format, Tune, WriteOptions};

/// Why writing Parquet cannot be resumed.
pub(super) const NO_APPENDING: &str = "a Parquet file is readable only by the index at its end, which is written \
                                       last, so a part of it cannot be continued";

/// OME-Arrow columns in Parquet files.
pub static FORMAT: Format = Format {
    name: recognise::NAME,
    about: "OME-Arrow columns in Parquet files, typed or inferred",
    endings: &[".parquet"],
    set_ending: ".parquet",
    is_folder: false,
    holds_images: recognise::holds_images,
    parts: &[],
    inner_folders: &[],
    foreign_entry: |_| Ok(None),
    keeps_features: true,
    features_beside: false,
    join_parts: None,
    own_columns: is_own_of_tables,
    names_tell: |_, _| false,
    keeps_durations: true,
    keeps_seconds: false,
    keeps_zoned_nanoseconds: true,
    keeps_zones: true,
    holds_bare_pixels: false,
    has_checksums: true,
    has_tables: false,
    has_columns: true,
    has_levels: false,
    has_display_settings: false,
    uses_tune: |_| true,
    cannot_resume: Some(NO_APPENDING),
    engine: || {
        let library = parquet::file::properties::DEFAULT_CREATED_BY;
        Ok(format!("parquet {} (own page reader)", library.rsplit(' ').next().unwrap_or(library)))
    },
    recognise: recognise::recognise,
    open: |path, options| Ok(Box::new(ParquetStore::open(path, options)?)),
    create: |path, options| Ok(Box::new(ParquetWriter::create(path, options)?)),
};

/// The same with the Parquet library's own defaults (dictionaries, pages of 1 MiB, large row groups), whatever
/// options are given. Much of what newer formats claim over Parquet is configuration, so comparisons show both.
pub static DEFAULT_FORMAT: Format = Format {
    name: "parquet-default",
    about: "OME-Arrow Parquet with the Parquet library's defaults, to be compared with the tuned one",
    endings: &[],
    set_ending: "-default.parquet",
    is_folder: false,
    uses_tune: |_| false,
    recognise: |_| false,
    create: |path, options| {
        let options = WriteOptions { tune: Tune::Reference, ..options.clone() };
        Ok(Box::new(ParquetWriter::create(path, &options)?))
    },
    ..FORMAT
};
