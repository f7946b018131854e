//! Images in [Lance](https://lance.org) datasets and LanceDB folders.
//!
//! ```text
//!  folder ──dataset_folder──▶ dataset ──LanceTable (table)──▶ TableStore
//!                              │  pixels, sizes: page bytes ──direct──┬▶ pieces of rows, one by one, without arrays
//!                              │                                      └▶ batches of this Arrow release: scans, and what pieces cannot say
//!                              └─ text and all else: Lance's decoders (fragment) ──bridge──▶ batches
//!  TableWriter ──batches──▶ writer ──▶ data files, a version (commit) under a temporary name ──▶ its place
//!  datasets that several processes wrote ──join──▶ their data files, one version
//! ```
//!
//! In a bucket or on a web server Lance reads and writes through an object store that is our own (`place_store`). So requests are
//! made as for every other format.
//!
//! Random reads of pixels are what this crate is for. Lance's own reader spends most of such a read on repetition
//! levels, one for every pixel, which it writes out, copies and counts. [`mod@direct`] reads the same pages with the
//! levels left as the runs that they are stored as. Lance reads pages that it does not know or that are irregular.

mod bridge;
mod commit;
mod dataset;
mod dataset_folder;
mod direct;
mod error;
mod footer;
mod fragment;
mod join;
mod new_file;
mod parts;
mod place_store;
mod rows;
mod runtime;
mod table;
mod waiting;
mod writer;

use wellread_store::Format;
use wellread_store::features::is_own_of_tables;
use wellread_store::table::TableStore;

/// Release of the engine, as in `Cargo.toml`.
const LANCE: &str = "14.0.2";

/// Lance datasets, and LanceDB folders of them.
pub static FORMAT: Format = Format {
    name: table::NAME,
    about: "OME-Arrow columns in Lance datasets and LanceDB folders (--table NAME where there are several)",
    endings: &[".lance", ".lancedb"],
    set_ending: ".lance",
    is_folder: true,
    holds_images: dataset_folder::holds_tables,
    parts: &[],
    inner_folders: &[dataset_folder::VERSIONS, dataset::DATA],
    foreign_entry: dataset_folder::foreign,
    keeps_features: true,
    features_beside: false,
    join_parts: Some(join::JOIN),
    own_columns: is_own,
    names_tell: |_, _| false,
    keeps_durations: true,
    keeps_seconds: true,
    keeps_zoned_nanoseconds: true,
    keeps_zones: true,
    holds_bare_pixels: false,
    has_checksums: false,
    has_tables: true,
    has_columns: true,
    has_levels: false,
    has_display_settings: false,
    uses_tune: |_| true,
    cannot_resume: None,
    engine: || Ok(format!("lance {LANCE} (own page reader); Lance file format 2.2")),
    recognise: dataset_folder::recognise,
    open: |path, options| {
        Ok(Box::new(TableStore::open(Box::new(table::LanceTable::open(path, options)?), options)?))
    },
    create: writer::create,
};

wellread_store::register_format!(FORMAT);

/// Whether no column beside the images can have this name. Lance adds columns of its own to what it reads. It takes a dot for the
/// way to a nested field, and selects no column without a name.
fn is_own(name: &str) -> bool {
    is_own_of_tables(name) || lance_core::is_system_column(name) || name.contains('.') || name.is_empty()
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_that_lance_could_not_read_back_are_its_own() {
        for name in ["row_id", "ome_image", "_rowid", "_rowaddr", "_rowoffset", "", "a.b", "."] {
            assert!(super::is_own(name), "{name:?}");
        }
        for name in ["_row_created_at_version", "_row_last_updated_at_version"] {
            assert!(super::is_own(name), "{name}");
        }
        for name in ["rowid", "_rowid_y", "a_b", "unnamed", " "] {
            assert!(!super::is_own(name), "{name:?}");
        }
    }

    #[test]
    fn the_release_is_told_right() {
        let wanted = format!("lance-file = \"={}\"", super::LANCE);
        assert!(include_str!("../Cargo.toml").contains(&wanted));
    }
}
