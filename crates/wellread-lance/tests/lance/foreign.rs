//! Tables as other writers leave them: rows without an image, deleted rows, several fragments, older file versions.

use super::{Image, check, image, open, write};
use arrow_array_58::cast::AsArray;
use arrow_array_58::{Array, RecordBatch, RecordBatchIterator, StructArray};
use futures::TryStreamExt;
use lance::Dataset;
use lance::dataset::WriteParams;
use lance_file::version::LanceFileVersion;
use std::path::Path;
use std::sync::Arc;
use wellread_image::{PixelType, Shape};
use wellread_store::{WriteOptions, read_image};

fn wait<T>(call: impl Future<Output = lance::Result<T>>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(call).unwrap()
}

/// Writes a set with this crate and then, its batches changed, with Lance alone.
fn rewritten(
    dir: &Path,
    images: &[Image],
    params: WriteParams,
    change: impl Fn(RecordBatch) -> RecordBatch,
) -> (std::path::PathBuf, Dataset) {
    let from = dir.join("from.lance");
    write(&from, images, &WriteOptions { overwrite: true, ..WriteOptions::default() }).unwrap();
    let to = dir.join("to.lance");
    let _ = std::fs::remove_dir_all(&to);
    let address = to.to_str().unwrap().to_owned();
    let dataset = wait(async {
        let from = Dataset::open(from.to_str().unwrap()).await?;
        let batches: Vec<_> = from.scan().try_into_stream().await?.try_collect().await?;
        let batches: Vec<_> = batches.into_iter().map(change).collect();
        let schema = batches[0].schema();
        let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
        Dataset::write(reader, &address, Some(params)).await
    });
    (to, dataset)
}

fn images() -> Vec<Image> {
    let shapes = [Shape::plane(40, 33), Shape([1, 2, 1, 30, 41])];
    (0..24).map(|k| image(shapes[k % 2], PixelType::U16, k)).collect()
}

#[test]
fn rows_without_an_image() {
    let dir = tempfile::tempdir().unwrap();
    let images = images();
    let (path, _) = rewritten(dir.path(), &images, WriteParams::default(), |batch| {
        let column = batch.schema().index_of("ome_image").unwrap();
        let images = batch.column(column).as_struct();
        let nulls = (0..images.len()).map(|i| i % 5 != 2).collect::<Vec<_>>().into();
        let (fields, children, _) = images.clone().into_parts();
        let images = StructArray::new(fields, children, Some(nulls));
        let mut columns = batch.columns().to_vec();
        columns[column] = Arc::new(images);
        RecordBatch::try_new(batch.schema(), columns).unwrap()
    });
    let store = open(&path).unwrap();
    assert_eq!(store.len(), images.len());
    for (row, (shape, _, pixels)) in images.iter().enumerate() {
        match read_image(&*store, row) {
            Err(error) => {
                assert_eq!(row % 5, 2, "{error}");
                assert!(error.is_null_image() && error.row_index() == Some(row), "{error}");
            }
            Ok((info, found)) => {
                assert_ne!(row % 5, 2);
                assert_eq!(info.shape, *shape);
                assert!(found == *pixels, "row {row}");
            }
        }
    }
}

#[test]
fn deleted_rows_and_several_fragments() {
    let dir = tempfile::tempdir().unwrap();
    let images = images();
    let params = WriteParams { max_rows_per_file: 7, max_rows_per_group: 7, ..WriteParams::default() };
    let (path, mut dataset) = rewritten(dir.path(), &images, params, |batch| batch);
    check(&*open(&path).unwrap(), &images);
    assert_eq!(open(&path).unwrap().layout().unwrap().pieces, "4 fragments");
    let gone = [0, 3, 6, 7, 8, 20];
    let predicate = gone.map(|row| format!("row_id = {row}")).join(" OR ");
    let deleting = async move { dataset.delete(&predicate).await };
    wait(deleting);
    let left: Vec<_> = images
        .iter()
        .enumerate()
        .filter(|(i, _)| !gone.contains(i))
        .map(|(_, image)| image.clone())
        .collect();
    let store = open(&path).unwrap();
    check(&*store, &left);
    let files = store.files().unwrap();
    assert!(files.iter().all(|f| f.exists()));
    assert_eq!(files.iter().filter(|f| f.to_string_lossy().contains("_deletions")).count(), 3);
    assert!(files.iter().any(|f| f.to_string_lossy().contains("_versions")));
}

#[test]
fn other_file_versions() {
    let dir = tempfile::tempdir().unwrap();
    let images = images();
    for version in
        [LanceFileVersion::V2_0, LanceFileVersion::V2_1, LanceFileVersion::V2_2, LanceFileVersion::V2_3]
    {
        let params = WriteParams { data_storage_version: Some(version), ..WriteParams::default() };
        let (path, _) = rewritten(dir.path(), &images, params, |batch| batch);
        let store = open(&path).unwrap();
        check(&*store, &images);
        assert!(store.layout().unwrap().variant.contains(&format!("Lance {version}")));
    }
}
