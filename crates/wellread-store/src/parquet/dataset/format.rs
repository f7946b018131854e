//! The dataset folder as a format.

use super::super::format::{FORMAT as PARQUET, NO_APPENDING};
use super::names::{CHUNKS, DESCRIPTION, IMAGES, INDEX, NAME};
use super::{store, tables, writer};
use crate::Format;
use crate::entries::{self, Entry};

/// All files of a dataset.
const PARTS: [&str; 4] = [IMAGES, CHUNKS, INDEX, DESCRIPTION];

/// The OME-Arrow dataset folder.
pub static FORMAT: Format = Format {
    name: NAME,
    about: "ome-arrow's dataset folder: images, chunks and index as Parquet; layouts image, tile, volume, z-plane, block",
    endings: &[".ome-arrow-dataset"],
    set_ending: ".ome-arrow-dataset",
    is_folder: true,
    holds_images: |_| true,
    parts: &PARTS,
    inner_folders: &[],
    foreign_entry: |folder| {
        // No folder of it is a part of it.
        let is_foreign = |entry: &Entry| entry.is_folder || !PARTS.contains(&entry.name.as_str());
        Ok(entries::list(folder)?.into_iter().find(is_foreign).map(|entry| entry.name))
    },
    keeps_features: true,
    features_beside: false,
    join_parts: None,
    own_columns: tables::is_own,
    names_tell: |_, _| false,
    keeps_durations: true,
    keeps_seconds: false,
    keeps_zoned_nanoseconds: true,
    keeps_zones: true,
    holds_bare_pixels: false,
    has_checksums: true,
    has_tables: false,
    has_columns: false,
    has_levels: false,
    has_display_settings: false,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_table_of_a_dataset_is_foreign() {
        let dir = tempfile::tempdir().unwrap();
        for name in PARTS {
            std::fs::write(dir.path().join(name), b"").unwrap();
        }
        let found = || (FORMAT.foreign_entry)(dir.path()).unwrap();
        assert_eq!(found(), None);
        for name in ["notes.json", ".hidden", "more.ome-arrow-dataset", "profiles.parquet"] {
            std::fs::write(dir.path().join(name), b"").unwrap();
            assert_eq!(found().as_deref(), Some(name));
            std::fs::remove_file(dir.path().join(name)).unwrap();
        }
        std::fs::create_dir(dir.path().join("notes")).unwrap();
        assert_eq!(found().as_deref(), Some("notes"));
    }
}
