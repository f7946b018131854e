//! DuckDB tables and Parquet through DuckDB: golden files, round trips, bad input.

mod columns;
mod files;
mod round_trips;
mod tables;

use arrow_array::{Array as _, ArrayRef, RecordBatch};
use std::path::Path;
use std::sync::Arc;
use wellread_image::synthetic::{self, Kind, Spec};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::{ImageView, OpenOptions, WriteOptions, create, features, open};

// Links the crate, which registers its formats.
use wellread_duckdb as _;

fn options(format: &str) -> OpenOptions {
    OpenOptions { format: Some(format.into()), ..OpenOptions::default() }
}

struct Made {
    metadata: ImageMetadata,
    shape: Shape,
    dtype: PixelType,
    pixels: Vec<u8>,
}

fn made(row: u64, shape: Shape, dtype: PixelType) -> Made {
    let spec = Spec { kind: Kind::Cells, shape, dtype, seed: 7 };
    let image = synthetic::image(&spec, row).unwrap();
    Made { metadata: image.metadata, shape, dtype, pixels: image.pixels }
}

fn write(path: &Path, format: &str, options: &WriteOptions, images: &[Made]) -> wellread_store::Result<()> {
    let mut writer = create(path, format, options)?;
    for image in images {
        let Made { metadata, shape, dtype, pixels } = image;
        writer.write(&ImageView { metadata, shape: *shape, dtype: *dtype, pixels })?;
    }
    writer.finish()
}

/// Formats of this crate, each with what a set of it may be called.
const FORMATS: [(&str, &str); 2] = [("duckdb", "a.duckdb"), ("parquet-duckdb", "a.parquet")];

/// A column beside images, as each of the formats gives it back, with the format's name.
fn columns_back(column: &ArrayRef) -> Vec<(&'static str, ArrayRef)> {
    let dir = tempfile::tempdir().unwrap();
    let back = |(format, name): (&'static str, &str)| {
        let path = dir.path().join(name);
        let beside = Some(RecordBatch::try_from_iter([("column", Arc::clone(column))]).unwrap());
        let written = WriteOptions { features: beside, ..WriteOptions::default() };
        let image = |row| made(row, Shape::plane(8, 8), PixelType::U8);
        let images: Vec<Made> = (0..column.len() as u64).map(image).collect();
        write(&path, format, &written, &images).unwrap();
        let columns = features::all(&*open(&path, &options(format)).unwrap()).unwrap().unwrap();
        (format, Arc::clone(columns.column(0)))
    };
    FORMATS.into_iter().map(back).collect()
}

/// A database made by SQL.
fn database(path: &Path, sql: &str) {
    // The library is loaded by who asks for it first.
    wellread_store::registry::engines();
    duckdb::Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

const IMAGE: &str = "struct_pack(\"name\" := 'i' || i, pixels_meta := struct_pack(\"type\" := 'uint16', size_x := 2, \
     size_y := 1, size_z := 1, size_c := 1, size_t := 1), chunks := [struct_pack(t := 0, c := 0, z := 0, y := 0, x := \
     0, shape_z := 1, shape_y := 1, shape_x := 2, pixels := [i, 1000 + i])])";
