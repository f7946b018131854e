//! The Parquet store against files of the reference libraries, its own files, and damaged ones.

mod damage;
mod made;
mod names;
mod paths;
mod writer;

use crate::shared::shared;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use parquet::arrow::ArrowWriter;
use std::path::Path;
use std::sync::Arc;
use wellread_image::{PixelType, Shape};
use wellread_store::checksum::sha256_hex;
use wellread_store::parquet::ParquetStore;
use wellread_store::{OpenOptions, Store, read_image};

fn open(path: &Path) -> ParquetStore {
    ParquetStore::open(path, &OpenOptions::default()).unwrap()
}

/// Every golden set, every variant, both paths: the expected checksums.
#[test]
fn golden_sets_read_to_their_checksums() {
    let Some(shared) = shared() else { return };
    let mut files = 0;
    for source in std::fs::read_dir(shared.join("golden")).unwrap() {
        for set in std::fs::read_dir(source.unwrap().path()).unwrap() {
            let set = set.unwrap().path();
            let expected: serde_json::Value =
                serde_json::from_slice(&std::fs::read(set.join("expected.json")).unwrap()).unwrap();
            let images = expected["images"].as_array().unwrap();
            for file in std::fs::read_dir(&set).unwrap().map(|f| f.unwrap().path()) {
                if file.extension().is_none_or(|e| e != "parquet") {
                    continue;
                }
                files += 1;
                for store in [open(&file), open(&file).without_fast_path()] {
                    assert_eq!(store.len(), images.len());
                    for (row, image) in images.iter().enumerate() {
                        let (info, pixels) = read_image(&store, row).unwrap();
                        assert_eq!(serde_json::to_value(info.shape).unwrap(), image["shape_tczyx"]);
                        assert_eq!(info.dtype.name(), image["dtype"], "{}", file.display());
                        assert_eq!(sha256_hex(&pixels), image["sha256"], "{} row {row}", file.display());
                        assert_eq!(store.name(row).unwrap(), image["name"]);
                        let metadata = store.metadata(row).unwrap();
                        assert_eq!(metadata.channels.len(), info.shape.c());
                        assert!(metadata.acquired.unwrap().starts_with("20"));
                    }
                }
                let store = open(&file);
                let mut seen = 0;
                store
                    .scan(0..store.len(), &mut |row, _, pixels| {
                        assert_eq!(sha256_hex(pixels), images[row]["sha256"]);
                        seen += 1;
                        Ok(())
                    })
                    .unwrap();
                assert_eq!(seen, images.len());
                assert!(!store.left_fast_path(), "{}", file.display());
            }
        }
    }
    assert!(files >= 16);
}
#[test]
fn files_without_images_say_what_they_have() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3));
    let batch =
        RecordBatch::try_from_iter([("Metadata_Well", Arc::clone(&ids)), ("Cells_Area", ids)]).unwrap();
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(&path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let error = wellread_store::open(&path, &OpenOptions::default()).err().unwrap().to_string();
    assert!(error.contains("its columns are: Metadata_Well, Cells_Area"), "{error}");
    let options = OpenOptions { column: Some("Cells_Area".into()), ..OpenOptions::default() };
    let error = wellread_store::open(&path, &options).err().unwrap().to_string();
    assert!(error.contains("\"Cells_Area\" holds no images"), "{error}");
    std::fs::write(&path, b"PAR1").unwrap();
    let error = wellread_store::open(&path, &OpenOptions::default()).err().unwrap().to_string();
    assert!(error.contains("truncated"), "{error}");
}
/// Many threads over one store with a cache that holds next to nothing: each gets its own pixels.
#[test]
fn threads_share_a_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let shape = Shape::plane(30, 40);
    let values = |k: usize| (0..shape.pixels()).map(|i| ((i * 31 + k * 7) % 256) as f64).collect::<Vec<_>>();
    let images: Vec<_> = (0..40).map(|k| Some((shape, values(k)))).collect();
    let layout = made::simple(PixelType::U8, PixelType::U16);
    let settings = made::Settings { page_size: 5000, group_rows: 7, ..made::Settings::default() };
    made::write_file(&path, &images, &layout, settings.properties());
    for cache in [0, 20_000, 64 << 20] {
        let store = open(&path).with_cache(cache);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (store, values) = (&store, &values);
                scope.spawn(move || {
                    for i in 0..200 {
                        let row = (i * 17 + thread * 5) % 40;
                        let (_, pixels) = read_image(store, row).unwrap();
                        assert!(pixels == made::to_bytes(&values(row), PixelType::U8), "row {row}");
                    }
                });
            }
        });
        assert!(!store.left_fast_path());
    }
}
