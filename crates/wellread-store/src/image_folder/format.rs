//! PNG and JPEG as a format.

use super::layout::{self, NAMING};
use super::{store, writer};
use crate::{Format, entries, name_index};

/// PNG and JPEG files, folders and class folders.
pub static FORMAT: Format = Format {
    name: NAMING.name,
    about: "PNG and JPEG: files, folders, and class folders as ImageNet is laid out",
    endings: NAMING.endings,
    set_ending: "",
    holds_images: |_| true,
    parts: &[],
    foreign_entry: |folder| {
        entries::foreign(folder, |name| NAMING.has_ending(name) || name == name_index::FILE)
    },
    keeps_features: false,
    own_columns: |_| false,
    keeps_durations: false,
    holds_bare_pixels: false,
    has_checksums: true,
    has_tables: true,
    has_columns: false,
    has_levels: false,
    has_looks: false,
    uses_tune: |_| false,
    cannot_resume: None,
    engine: || Ok("png 0.18, zune-jpeg 0.5".to_owned()),
    recognise: layout::recognise,
    open: |path, options| Ok(Box::new(store::ImageFolder::open(path, options)?)),
    create: |path, options| Ok(Box::new(writer::PngWriter::create(path, options)?)),
};
