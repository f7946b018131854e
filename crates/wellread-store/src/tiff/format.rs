//! TIFF as a format.

use super::listing::{self, NAMING};
use super::{own, store, writer};
use crate::{Compression, Format, Tune, entries};

/// TIFF and OME-TIFF.
pub static FORMAT: Format = Format {
    name: NAMING.name,
    about: "TIFF, BigTIFF and OME-TIFF: files and folders; none, LZW, Deflate, PackBits, Zstd",
    endings: NAMING.endings,
    set_ending: "",
    is_folder: false,
    holds_images: |_| true,
    parts: &[],
    inner_folders: &[],
    foreign_entry: |folder| entries::foreign_by_look(folder, own::belongs),
    keeps_features: false,
    features_beside: false,
    join_parts: None,
    own_columns: |_| false,
    names_tell: |_, _| false,
    keeps_durations: false,
    keeps_seconds: true,
    keeps_zoned_nanoseconds: true,
    keeps_zones: true,
    holds_bare_pixels: true,
    has_checksums: true,
    has_tables: false,
    has_columns: false,
    has_levels: false,
    has_display_settings: true,
    uses_tune: |options| options.tune == Tune::Size && options.compression == Compression::Default,
    cannot_resume: None,
    engine: || Ok(format!("wellread {}; TIFF 6.0, BigTIFF, OME-TIFF 2016-06", env!("CARGO_PKG_VERSION"))),
    recognise: listing::recognise,
    open: |path, options| Ok(Box::new(store::TiffStore::open(path, options)?)),
    create: |path, options| Ok(Box::new(writer::TiffWriter::create(path, options)?)),
};
