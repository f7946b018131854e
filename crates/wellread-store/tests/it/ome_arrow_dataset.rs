//! The dataset folder of ome-arrow: against the reference library's folders, its own, and damaged ones.

use crate::shared::shared;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use wellread_image::{Channel, ImageMetadata, PhysicalSize, PixelType, Region, Shape};
use wellread_store::checksum::sha256_hex;
use wellread_store::{
    Compression, ImageView, OpenOptions, Scratch, Store, Tune, WriteOptions, create, open, read_image,
    read_region,
};

fn opened(path: &Path) -> Box<dyn Store> {
    open(path, &OpenOptions::default()).unwrap()
}

#[test]
fn golden_sets_read_to_their_checksums() {
    let Some(shared) = shared() else { return };
    for set in ["jump/uint16-1x1x1", "jump/stack-5d", "jump/noise-uint8", "examplehuman/uint8-1x1x1"] {
        let set = shared.join("golden").join(set);
        let expected = wellread_store::checksum::read_expected(&set.join("expected.json")).unwrap();
        let store = opened(&set.join("images.ome-arrow-dataset"));
        assert_eq!((store.format(), store.len()), ("ome-arrow-dataset", expected.len()));
        for (row, image) in expected.iter().enumerate() {
            let (info, pixels) = read_image(&*store, row).unwrap();
            assert_eq!((info.shape.0, info.dtype.name()), (image.shape_tczyx, image.dtype.as_str()));
            assert_eq!(sha256_hex(&pixels), image.sha256, "{} row {row}", set.display());
            let metadata = store.metadata(row).unwrap();
            assert_eq!(
                (metadata.name.as_str(), metadata.channels.len()),
                (image.name.as_str(), info.shape.c())
            );
        }
    }
}

/// Pixels that differ everywhere.
fn pixels(shape: Shape, dtype: PixelType, seed: usize) -> Vec<u8> {
    (0..shape.pixels() * dtype.size()).map(|i| (((i + seed) * 2654435761) >> 13) as u8).collect()
}

fn metadata(row: usize, channels: usize) -> ImageMetadata {
    let size = |value| Some(PhysicalSize { value, unit: "µm".to_owned() });
    ImageMetadata {
        id: format!("id-{row}"),
        name: format!("image {row}"),
        channels: (0..channels)
            .map(|c| Channel {
                id: format!("ch-{c}"),
                name: format!("stain {c}"),
                emission_um: Some(0.5),
                excitation_um: (c == 0).then_some(0.4),
                illumination: Some("Epifluorescence".to_owned()),
                // The last of three has none, which is not white.
                color_rgba: (c < 2).then_some(0xff00_00ff + c as u32),
            })
            .collect(),
        physical_size_x: size(0.65),
        physical_size_y: size(0.65),
        physical_size_z: None,
        time_increment: None,
        acquired: Some("2026-11-21T05:38:56".to_owned()),
    }
}

fn write(path: &Path, images: &[(Shape, PixelType)], options: &WriteOptions) {
    let mut writer = create(path, "ome-arrow-dataset", options).unwrap();
    for (row, &(shape, dtype)) in images.iter().enumerate() {
        let (metadata, pixels) = (metadata(row, shape.c()), pixels(shape, dtype, row));
        writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &pixels }).unwrap();
    }
    writer.finish().unwrap();
}

/// The table has micrometres: lengths become that, and other units are left out.
#[test]
fn sizes_of_pixels_are_converted_to_micrometres() {
    let dir = tempfile::tempdir().unwrap();
    for (i, (unit, expected)) in [
        ("Å", Some(5e-4)),
        ("pm", Some(5e-6)),
        ("cm", Some(5e4)),
        ("m", Some(5e6)),
        ("in", Some(127_000.0)),
        ("nm", Some(5e-3)),
        ("pixel", None),
        ("reference frame", None),
        ("", None),
    ]
    .into_iter()
    .enumerate()
    {
        let mut metadata = ImageMetadata::named("a");
        metadata.physical_size_x = Some(PhysicalSize { value: 5.0, unit: unit.to_owned() });
        let path = dir.path().join(format!("{i}"));
        let mut writer = create(&path, "ome-arrow-dataset", &WriteOptions::default()).unwrap();
        let (shape, dtype) = (Shape::plane(2, 2), PixelType::U8);
        writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &[1, 2, 3, 4] }).unwrap();
        writer.finish().unwrap();
        let options = OpenOptions { format: Some("ome-arrow-dataset".to_owned()), ..OpenOptions::default() };
        let found = wellread_store::open(&path, &options).unwrap().metadata(0).unwrap().physical_size_x;
        match (found, expected) {
            (Some(found), Some(expected)) => {
                assert_eq!(found.unit, "µm");
                assert!((found.value - expected).abs() <= 1e-12 * expected, "{unit}: {}", found.value);
            }
            (found, expected) => assert_eq!(found.map(|size| size.value), expected, "{unit}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn what_is_written_is_read(
        sizes in prop::collection::vec((1usize..3, 1usize..4, 1usize..5, 1usize..20, 1usize..30), 1..7),
        dtype in prop::sample::select(PixelType::ALL.to_vec()),
        layout in prop::sample::select(vec!["image", "tile", "volume", "z-plane", "block"]),
        chunk in prop::option::of((1usize..3, 1usize..3, 1usize..3, 1usize..9, 1usize..9)),
        codec in prop::sample::select(vec![Compression::None, Compression::Lz4, Compression::Zstd(1), Compression::Snappy]),
        tune in prop::sample::select(vec![Tune::Random, Tune::Scan, Tune::Reference]),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("set.ome-arrow-dataset");
        let images: Vec<_> = sizes.iter().map(|&(t, c, z, y, x)| (Shape([t, c, z, y, x]), dtype)).collect();
        let chunk = chunk.map(|(t, c, z, y, x)| [t, c, z, y, x]);
        let options = WriteOptions {
            compression: codec, tune, chunk, variant: Some(layout.to_owned()), ..WriteOptions::default()
        };
        write(&path, &images, &options);
        let store = opened(&path);
        prop_assert_eq!(store.len(), images.len());
        for (row, &(shape, dtype)) in images.iter().enumerate() {
            let (info, got) = read_image(&*store, row).unwrap();
            prop_assert_eq!((info.shape, info.dtype), (shape, dtype));
            prop_assert_eq!(&got, &pixels(shape, dtype, row));
            prop_assert_eq!(store.metadata(row).unwrap(), metadata(row, shape.c()));
            let middle = Region { start: shape.0.map(|n| n / 2), size: shape.0.map(|n| n - n / 2) };
            let mut part = vec![];
            read_region(&*store, row, &middle, &mut Scratch::default(), &mut part).unwrap();
            let mut expected = vec![0; middle.pixels() * dtype.size()];
            wellread_image::clip_runs(&shape.full(), &middle, |from, to, n| {
                let size = dtype.size();
                expected[to * size..(to + n) * size].copy_from_slice(&got[from * size..(from + n) * size]);
            });
            prop_assert_eq!(part, expected);
        }
    }
}

#[test]
fn images_of_one_name_are_told_apart_from_one_called_like_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set.ome-arrow-dataset");
    let names = ["a-2", "a", "a", "a-3", "a"];
    let (shape, dtype) = (Shape::plane(2, 3), PixelType::U8);
    let mut writer = create(&path, "ome-arrow-dataset", &WriteOptions::default()).unwrap();
    for (row, name) in names.into_iter().enumerate() {
        let metadata = ImageMetadata::named(name);
        let pixels = pixels(shape, dtype, row);
        writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &pixels }).unwrap();
    }
    writer.finish().unwrap();
    let store = opened(&path);
    for (row, name) in names.into_iter().enumerate() {
        assert_eq!(store.name(row).unwrap(), name);
        assert_eq!(read_image(&*store, row).unwrap().1, pixels(shape, dtype, row));
    }
    let ids: Vec<String> = (0..names.len()).map(|row| store.metadata(row).unwrap().id).collect();
    assert_eq!(ids, ["a-2", "a", "a-3", "a-3-3", "a-4"]);
}

/// One image of four planes, each a chunk and a row group of its own, uncompressed.
fn four_planes(path: &Path) -> Shape {
    let shape = Shape([1, 1, 4, 64, 80]);
    let options =
        WriteOptions { compression: Compression::None, tune: Tune::Reference, ..WriteOptions::default() };
    write(path, &[(shape, PixelType::U16)], &options);
    shape
}

#[test]
fn a_region_touches_only_the_chunks_it_needs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    let shape = four_planes(&path);
    let chunks = path.join("chunks.parquet");
    let mut bytes = std::fs::read(&chunks).unwrap();
    // The pixels of plane 0 start in the first row group; a length that cannot be makes it unreadable.
    let first = &pixels(shape, PixelType::U16, 0)[..64];
    let at = bytes.windows(64).position(|w| w == first).unwrap();
    bytes[at - 4..at].copy_from_slice(&u32::MAX.to_le_bytes());
    std::fs::write(&chunks, bytes).unwrap();
    let store = opened(&path);
    let plane = |z| {
        let region = Region { start: [0, 0, z, 0, 0], size: [1, 1, 1, 64, 80] };
        let mut out = vec![];
        read_region(&*store, 0, &region, &mut Scratch::default(), &mut out).map(|_| out)
    };
    for z in 1..4 {
        assert_eq!(plane(z).unwrap(), pixels(shape, PixelType::U16, 0)[z * 64 * 80 * 2..][..64 * 80 * 2]);
    }
    let error = plane(0).unwrap_err();
    assert_eq!(error.row_index(), Some(0));
    assert!(error.to_string().contains("chunks.parquet"), "{error}");
}

#[test]
fn the_index_may_be_absent_but_not_of_another_set() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
    four_planes(&a);
    write(&b, &[(Shape([1, 1, 1, 5, 5]), PixelType::U8); 3], &WriteOptions::default());
    let expected = read_image(&*opened(&a), 0).unwrap();
    std::fs::copy(b.join("index.parquet"), a.join("index.parquet")).unwrap();
    let error = open(&a, &OpenOptions::default()).err().unwrap().to_string();
    assert!(error.contains("index.parquet") && error.contains("id-1"), "{error}");
    std::fs::remove_file(a.join("index.parquet")).unwrap();
    assert_eq!(read_image(&*opened(&a), 0).unwrap(), expected);
}

/// Another writer may count the chunks of each image anew, in one row group.
#[test]
fn chunks_that_cannot_be_told_apart_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    let image = (Shape([1, 1, 1, 5, 6]), PixelType::U8);
    write(&path, &[image; 3], &WriteOptions { tune: Tune::Scan, ..WriteOptions::default() });
    number_chunks(&path, vec![Some(0), Some(1), Some(1)]);
    std::fs::remove_file(path.join("index.parquet")).unwrap();
    let store = opened(&path);
    assert_eq!(read_image(&*store, 0).unwrap().1, pixels(image.0, image.1, 0));
    for row in 1..3 {
        let error = read_image(&*store, row).unwrap_err();
        assert_eq!(error.row_index(), Some(row));
        assert!(error.to_string().contains("several chunks of chunk_id 1"), "{error}");
    }
}

/// Gives the chunks of a set, which are one row group, other ids.
fn number_chunks(set: &Path, ids: Vec<Option<i64>>) {
    let chunks = set.join("chunks.parquet");
    let file = std::fs::File::open(&chunks).unwrap();
    let mut reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let batch = reader.next().unwrap().unwrap();
    let at = batch.schema().index_of("chunk_id").unwrap();
    let mut fields: Vec<Field> = batch.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    fields[at] = fields[at].clone().with_nullable(true);
    let mut columns = batch.columns().to_vec();
    columns[at] = Arc::new(Int64Array::from(ids));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    let file = std::fs::File::create(&chunks).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// The number behind a null was taken for an id: 0, which is that of another image.
#[test]
fn a_chunk_without_an_id_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    let image = (Shape([1, 1, 1, 5, 6]), PixelType::U8);
    write(&path, &[image; 3], &WriteOptions { tune: Tune::Scan, ..WriteOptions::default() });
    number_chunks(&path, vec![Some(1), None, Some(2)]);
    let error = read_image(&*opened(&path), 0).unwrap_err();
    assert_eq!(error.row_index(), Some(0));
    assert!(error.to_string().contains("chunk 1 of row group 0 has no chunk_id"), "{error}");
    // Without an index the ids are read at once.
    std::fs::remove_file(path.join("index.parquet")).unwrap();
    let error = open(&path, &OpenOptions::default()).err().unwrap().to_string();
    assert!(
        error.contains("chunk 1 has no chunk_id") && error.contains("write the dataset again"),
        "{error}"
    );
}

/// Its pages were called corrupt where the first look at a row group came after.
#[test]
fn a_set_that_is_written_to_while_it_is_open_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    four_planes(&path);
    let store = opened(&path);
    let chunks = path.join("chunks.parquet");
    let length = std::fs::metadata(&chunks).unwrap().len();
    std::fs::write(&chunks, vec![0xff; length as usize]).unwrap();
    // Clocks of file systems may be coarse.
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(1);
    std::fs::File::options().write(true).open(&chunks).unwrap().set_modified(later).unwrap();
    let error = read_image(&*store, 0).unwrap_err().to_string();
    assert!(error.contains("chunks.parquet") && error.contains("was written to after"), "{error}");
}

/// Those of the set that took its place stood beside its images.
#[test]
fn columns_are_of_the_set_that_was_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set.ome-arrow-dataset");
    let written = |dose: i64| {
        let doses: ArrayRef = Arc::new(Int64Array::from(vec![dose]));
        let features = RecordBatch::try_from_iter([("dose", doses)]).unwrap();
        let options =
            WriteOptions { features: Some(features.clone()), overwrite: true, ..WriteOptions::default() };
        write(&path, &[(Shape([1, 1, 1, 5, 6]), PixelType::U8)], &options);
        features
    };
    let first = written(1);
    let store = opened(&path);
    written(2);
    let found = wellread_store::features::all(&*store).unwrap().unwrap();
    assert_eq!(found.columns(), first.columns());
}

#[test]
fn a_set_without_images_has_no_values_in_its_columns() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    let doses: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    let features = RecordBatch::try_from_iter([("dose", doses)]).unwrap();
    let options = WriteOptions { features: Some(features), ..WriteOptions::default() };
    write(&path, &[(Shape([1, 1, 1, 5, 6]), PixelType::U8)], &options);
    for name in ["images.parquet", "index.parquet", "chunks.parquet"] {
        let table = path.join(name);
        let file = std::fs::File::open(&table).unwrap();
        let mut reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        let batch = reader.next().unwrap().unwrap();
        let schema = Arc::new(Schema::new(batch.schema().fields().clone()));
        let file = std::fs::File::create(&table).unwrap();
        ArrowWriter::try_new(file, schema, None).unwrap().close().unwrap();
    }
    let store = opened(&path);
    assert_eq!((store.len(), store.hints().feature_names()), (0, vec!["dose".to_owned()]));
    assert!(wellread_store::features::all(&*store).unwrap().is_none());
}

#[test]
fn damaged_files_end_in_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    let options = WriteOptions { tune: Tune::Scan, ..WriteOptions::default() };
    write(&path, &[(Shape([1, 2, 1, 12, 30]), PixelType::U16); 3], &options);
    for name in ["images.parquet", "index.parquet", "chunks.parquet"] {
        let file = path.join(name);
        let whole = std::fs::read(&file).unwrap();
        let survive = |bytes: &[u8]| {
            std::fs::write(&file, bytes).unwrap();
            let Ok(store) = open(&path, &OpenOptions::default()) else { return };
            for row in 0..store.len().min(10) {
                if let Ok((info, pixels)) = read_image(&*store, row) {
                    assert_eq!(pixels.len(), info.shape.pixels() * info.dtype.size());
                    assert!(pixels.len() < 1 << 20);
                }
            }
        };
        for length in (0..whole.len()).step_by(whole.len() / 60 + 1) {
            survive(&whole[..length]);
        }
        for at in (0..whole.len()).step_by(whole.len() / 250 + 1) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            survive(&bytes);
        }
        std::fs::write(&file, &whole).unwrap();
    }
    std::fs::remove_file(path.join("chunks.parquet")).unwrap();
    assert!(
        open(&path, &OpenOptions { format: Some("ome-arrow-dataset".into()), ..OpenOptions::default() })
            .is_err()
    );
}
