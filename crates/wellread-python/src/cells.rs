//! Cells cut out of the images of a set, by whatever Python gives.

use crate::arrow::some_batches;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use std::path::PathBuf;
use wellread::loader::dataset::CellsFrom;
use wellread::store::cells::CellOptions;
use wellread::{Dataset, Result};

/// The source of cells.
pub(crate) enum Table {
    /// A table in memory.
    Stream(FFI_ArrowArrayStream),
    /// Label images that are open.
    Labels(Dataset),
    /// A table or label images in a file or folder.
    File(PathBuf),
}

/// The cells of a table, or of label images, in these images; `masks` are label images that are open.
pub(crate) fn cut(
    images: &Dataset,
    table: Table,
    masks: Option<&Dataset>,
    options: &CellOptions,
) -> Result<Dataset> {
    match table {
        Table::Stream(stream) => images.cells_from(CellsFrom::Memory(&some_batches(stream)?), masks, options),
        Table::Labels(labels) => images.cells_from(CellsFrom::Labels(&labels), masks, options),
        Table::File(path) => images.cells_from(CellsFrom::Path(&path), masks, options),
    }
}
