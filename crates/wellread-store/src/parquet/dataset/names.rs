//! The names of the format, its files and their columns.

/// The name of the format.
pub(super) const NAME: &str = "ome-arrow-dataset";

pub(super) const IMAGES: &str = "images.parquet";
pub(super) const CHUNKS: &str = "chunks.parquet";
pub(super) const INDEX: &str = "index.parquet";
pub(super) const DESCRIPTION: &str = "_ome_arrow_dataset.json";
/// The layout's name in the files' metadata.
pub(super) const LAYOUT: &str = "typed-chunk-dataset";
/// Names of the axes in column names, in TCZYX order.
pub(super) const AXES: [&str; 5] = ["t", "c", "z", "y", "x"];
