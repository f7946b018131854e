//! OME-Zarr as a format.

use super::layout::{self, NAMING};
use super::{foreign, series, store, writer};
use crate::Format;

/// OME-Zarr 0.4 and 0.5: one image group (`x.zarr`), a folder of them, a plate, or a Bio-Formats series.
pub static FORMAT: Format = Format {
    name: NAMING.name,
    about: "OME-Zarr 0.4 and 0.5: image groups (x.zarr), folders of them, HCS plates, bioformats2raw series",
    endings: NAMING.endings,
    set_ending: "",
    is_folder: true,
    holds_images: |_| true,
    parts: &[".zgroup", ".zattrs", ".zarray", ".zmetadata"],
    inner_folders: &[],
    foreign_entry: foreign::entry,
    keeps_features: false,
    features_beside: true,
    join_parts: None,
    own_columns: |name| name == series::IMAGE,
    names_tell: |_, _| false,
    keeps_durations: false,
    keeps_seconds: false,
    keeps_zoned_nanoseconds: true,
    keeps_zones: true,
    holds_bare_pixels: true,
    has_checksums: true,
    has_tables: false,
    has_columns: false,
    has_levels: true,
    has_display_settings: false,
    uses_tune: |_| false,
    cannot_resume: None,
    engine: || Ok("own chunk reader, zarrs 0.23 for rare codecs; OME-Zarr 0.4 and 0.5".to_owned()),
    recognise: layout::recognise,
    open: |path, options| Ok(Box::new(store::OmeZarrStore::open(path, options)?)),
    create: |path, options| Ok(Box::new(writer::OmeZarrWriter::create(path, options)?)),
};
