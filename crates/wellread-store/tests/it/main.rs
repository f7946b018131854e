//! Integration tests of the storage formats: one binary, one module per format.

mod image_folder;
mod ome_arrow_dataset;
mod ome_zarr;
mod ome_zarr_hostile;
mod parquet;
mod tiff;
