//! Integration tests of the storage formats: one binary, one module per format.

mod image_folder;
mod not_files;
mod ome_arrow_dataset;
mod ome_zarr;
mod parquet;
mod shared;
mod tiff;
