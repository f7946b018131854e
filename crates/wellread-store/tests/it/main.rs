//! Integration tests of the storage formats: one binary, one module per format.

mod cells;
mod concat;
mod image_folder;
mod imagenet;
mod memory_place;
mod names;
mod not_files;
mod ome_arrow_dataset;
mod ome_zarr;
mod parquet;
mod parted;
mod place_sets;
mod places;
mod read_back;
mod shared;
mod sites;
mod tiff;
