//! Datasets that several processes have written become one. Their data files move into its folder, and one version has the
//! fragments of all. No row is read. Only the column that counts rows is written again, to a file of its own.
//!
//! ```text
//!  part-00000.lance/data/A.lance ─┐
//!  part-00001.lance/data/B.lance ─┴─moved─▶ NAME/data/A.lance, B.lance ──┬─commit──▶ NAME/_versions
//!  row_id from the rows before part 1 on ──▶ NAME/data/C.lance ──────────┘
//! ```

use crate::commit::NewDataset;
use crate::dataset::{DATA, Dataset};
use crate::error::CANNOT_WRITE;
use crate::runtime::wait;
use crate::writer::{dataset_in, not_utf8};
use arrow_array_58::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema_58::Schema as ArrowSchema;
use lance_core::datatypes::Schema;
use lance_table::format::overlay::TOMBSTONE_FIELD_ID;
use lance_table::format::{DataFile, Fragment};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellread_image::ome_arrow::ROW_ID;
use wellread_store::{Error, JoinParts, Result, place};

/// How parts become one dataset.
pub(crate) const JOIN: JoinParts = JoinParts { join, undo };

/// Makes a dataset at `target` of the parts, unless their columns are unlike.
fn join(parts: &[PathBuf], target: &Path) -> Result<bool> {
    let datasets = parts.iter().map(|part| opened(part)).collect::<Result<Vec<_>>>()?;
    let Some(schema) = datasets.first().map(|first| first.schema().clone()) else { return Ok(false) };
    let Some(row_id) = schema.fields.iter().find(|field| field.name == ROW_ID).map(|field| field.id) else {
        return Ok(false);
    };
    if !datasets.iter().all(|dataset| is_alike(&schema, dataset.schema()) && is_as_written(dataset)) {
        return Ok(false);
    }
    let folder = dataset_in(target, target);
    let Some(address) = folder.to_str() else { return Err(not_utf8(target)) };
    let data = folder.join(DATA);
    place::create_folder(&data).map_err(|e| Error::io(target, "cannot make the folder", &e))?;
    let new = wait(target, CANNOT_WRITE, NewDataset::at(address))?;
    let numbers = schema.project_by_ids(&[row_id], true);
    let (mut fragments, mut first) = (vec![], 0);
    for (part, dataset) in parts.iter().zip(&datasets) {
        for name in data_files(dataset) {
            move_file(&part.join(DATA).join(name), &data.join(name), target)?;
        }
        for of_part in dataset.manifest().fragments.as_slice() {
            let end = first + of_part.physical_rows.unwrap_or(0) as i64;
            // The version gives it a number of its own.
            let mut fragment = Fragment::new(0);
            fragment.physical_rows = of_part.physical_rows;
            fragment.files.clone_from(&of_part.files);
            if first > 0 {
                fragment.files.iter_mut().for_each(|file| leave_out(row_id, file));
                let written = write_numbers(&new, &numbers, first..end);
                fragment.files.extend(wait(target, CANNOT_WRITE, written)?);
            }
            fragments.push(fragment);
            first = end;
        }
    }
    wait(target, CANNOT_WRITE, new.commit(&schema, &fragments))?;
    Ok(true)
}

/// Has a data file no longer give a column, which another one has.
fn leave_out(column: i32, file: &mut DataFile) {
    let left = file.fields.iter().map(|&id| if id == column { TOMBSTONE_FIELD_ID } else { id });
    file.fields = left.collect();
}

/// Writes a data file of the one column of `schema`, which counts rows.
async fn write_numbers(
    dataset: &NewDataset,
    schema: &Schema,
    rows: Range<i64>,
) -> lance_core::Result<Vec<DataFile>> {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(rows));
    let batch = RecordBatch::try_new(Arc::new(ArrowSchema::from(schema)), vec![numbers])?;
    let mut file = dataset.data_file(schema).await?;
    file.write(&batch).await?;
    Ok(file.finish().await?.files)
}

/// Moves the data files of an interrupted [`join`] back to the parts, and removes what else it has made.
fn undo(parts: &[PathBuf], target: &Path) -> Result<()> {
    let data = dataset_in(target, target).join(DATA);
    for part in parts {
        // One that cannot be opened is written anew.
        let Ok(dataset) = opened(part) else { continue };
        for name in data_files(&dataset) {
            let moved = data.join(name);
            if place::is_file(&moved) {
                move_file(&moved, &part.join(DATA).join(name), target)?;
            }
        }
    }
    let removed = place::of(target).remove_folder(target);
    removed.map_err(|e| Error::io(target, "cannot remove what an interrupted run left", &e))
}

/// The only version of a part.
fn opened(part: &Path) -> Result<Dataset> {
    let folder = place::canonical(part).map_err(|e| Error::io(part, "cannot open", &e))?;
    let Some(address) = folder.to_str() else { return Err(not_utf8(part)) };
    wait(part, "cannot open the dataset", Dataset::open(address))
}

/// Whether two datasets have the same columns, under the same numbers.
fn is_alike(one: &Schema, other: &Schema) -> bool {
    one.field_ids() == other.field_ids() && ArrowSchema::from(one) == ArrowSchema::from(other)
}

/// Whether nobody has changed a dataset since a writer of this crate made it.
fn is_as_written(dataset: &Dataset) -> bool {
    dataset.manifest().fragments.iter().all(|fragment| {
        fragment.physical_rows.is_some() && fragment.deletion_file.is_none() && fragment.overlays.is_empty()
    })
}

/// Names of the data files of a dataset.
fn data_files(dataset: &Dataset) -> impl Iterator<Item = &str> {
    dataset.manifest().fragments.iter().flat_map(|fragment| &fragment.files).map(|file| file.path.as_str())
}

fn move_file(from: &Path, to: &Path, target: &Path) -> Result<()> {
    place::rename(from, to).map_err(|e| Error::io(target, "cannot move a data file of a part", &e))
}
