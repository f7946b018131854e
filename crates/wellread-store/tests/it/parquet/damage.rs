//! Damaged files: truncated, flipped, absurd.
//!
//! Long because each kind of damage makes its own file.

use super::made::{Image, Settings, image_column, list, simple, structure, write_file};
use super::open;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, Int64Array, ListArray, PrimitiveArray, RecordBatch, StructArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as Codec, Encoding, GzipLevel, ZstdLevel};
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnChunkMetaDataBuilder, ParquetMetaDataReader, ParquetMetaDataWriter,
};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::concat::{Concat, Part};
use wellread_store::parquet::ParquetStore;
use wellread_store::planes::PlaneStore;
use wellread_store::subset::Subset;
use wellread_store::table::{MemoryTable, TableStore};
use wellread_store::{
    Compression, ImageView, OpenOptions, Scratch, Store, Tune, WriteOptions, create, read_image, read_region,
};

/// Opens a damaged file and reads everything that can be read. It must end without a panic, and deliver no
/// more than the file can justify.
fn survive(path: &Path) {
    let Ok(store) = ParquetStore::open(path, &OpenOptions::default()) else { return };
    let _ = store.layout();
    for row in 0..store.len().min(20) {
        let _ = store.metadata(row);
        if let Ok((info, pixels)) = read_image(&store, row) {
            assert_eq!(pixels.len(), info.shape.pixels() * info.dtype.size());
            assert!(pixels.len() < 1 << 20, "an image of {} cannot be in this file", info.shape);
        }
    }
    let _ = store.scan(0..store.len().min(20), &mut |_, _, _| Ok(()));
}

/// Small files of several kinds to be damaged.
fn victims(dir: &Path) -> Vec<PathBuf> {
    let shape = Shape([1, 2, 1, 12, 30]);
    let values = |k: usize| (0..shape.pixels()).map(|i| ((i * i + k) % 190) as f64).collect::<Vec<_>>();
    let images: Vec<Image> = (0..5).map(|k| (k != 3).then(|| (shape, values(k)))).collect();
    let mut layout = simple(PixelType::U8, PixelType::U16);
    layout.tile = [1, 7, 512];
    let mut paths = vec![];
    let codecs = [Codec::UNCOMPRESSED, Codec::ZSTD(ZstdLevel::default()), Codec::SNAPPY, Codec::LZ4_RAW];
    let encodings =
        [None, Some(Encoding::PLAIN), Some(Encoding::BYTE_STREAM_SPLIT), Some(Encoding::DELTA_BINARY_PACKED)];
    for (k, (codec, encoding)) in codecs.into_iter().zip(encodings).enumerate() {
        let path = dir.join(format!("victim-{k}.parquet"));
        let settings = Settings {
            codec,
            encoding,
            dictionary_limit: 1 << 20,
            page_size: 1000,
            page_rows: 2,
            batch: 64,
            group_rows: 3,
            v2: k % 2 == 1,
        };
        layout.planes = k == 0;
        layout.inferred = k == 3;
        write_file(&path, &images, &layout, settings.properties());
        paths.push(path);
    }
    paths
}

#[test]
fn truncated_files_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    for victim in victims(dir.path()) {
        let whole = std::fs::read(&victim).unwrap();
        let path = dir.path().join("cut.parquet");
        for n in (0..whole.len()).step_by(37).chain(whole.len() - 12..whole.len()) {
            std::fs::write(&path, &whole[..n]).unwrap();
            let error =
                wellread_store::open(&path, &OpenOptions::default()).err().expect("a part is no file");
            assert!(n < 12 || error.to_string().contains("truncated"), "{n}: {error}");
        }
        // A footer that is whole, over pages that are not: pages moved out of the file.
        let footer =
            u32::from_le_bytes(whole[whole.len() - 8..whole.len() - 4].try_into().unwrap()) as usize + 8;
        for n in (4..whole.len() - footer).step_by(211) {
            let cut = [&whole[..n], &whole[whole.len() - footer..]].concat();
            std::fs::write(&path, cut).unwrap();
            survive(&path);
        }
    }
}

/// Encrypted files are not called damaged: neither those whose footer is encrypted, which other marks tell, nor those
/// whose columns are.
#[test]
fn encrypted_files_are_said_to_be_encrypted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("encrypted.parquet");
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let store = wellread_store::open(&path, &OpenOptions::default());
        let error = store.and_then(|store| store.row_info(0)).unwrap_err().to_string();
        assert!(error.contains("is encrypted") && error.contains("decrypt it"), "{error}");
    };
    for victim in victims(dir.path()) {
        let whole = std::fs::read(&victim).unwrap();
        let end = whole.len() - 4;
        for marks in [&[0, end][..], &[0], &[end]] {
            let mut marked = whole.clone();
            for &at in marks {
                marked[at..at + 4].copy_from_slice(b"PARE");
            }
            refused(&marked);
            let images = open(&victim);
            let error = wellread_store::profiles::join(&images, &path, "well", &[]).unwrap_err().to_string();
            assert!(error.contains("is encrypted"), "{error}");
        }
        let size = u32::from_le_bytes(whole[end - 4..end].try_into().unwrap());
        let footer = end - 4 - size as usize;
        // Field 8 of the file's metadata, the algorithm (AES_GCM_V1), before the stop; then the signature.
        let algorithm = [0x0c, 0x10, 0x1c, 0, 0, 0];
        let mut columns = b"PAR1".to_vec();
        columns.resize(footer, 0xa5);
        columns.extend([&whole[footer..end - 5], &algorithm, &[7; 28]].concat());
        columns.extend((size + 5 + 28).to_le_bytes());
        columns.extend(b"PAR1");
        refused(&columns);
        // Without the algorithm it is damage.
        let mut damaged = columns[..footer].to_vec();
        damaged.extend(&whole[footer..]);
        std::fs::write(&path, &damaged).unwrap();
        let error = open(&path).row_info(0).unwrap_err().to_string();
        assert!(error.contains("corrupt"), "{error}");
    }
}

#[test]
fn flipped_bits_are_survived() {
    let dir = tempfile::tempdir().unwrap();
    let step = std::env::var("WELLREAD_FLIP_STEP").ok().and_then(|s| s.parse().ok()).unwrap_or(23);
    for victim in victims(dir.path()) {
        let whole = std::fs::read(&victim).unwrap();
        let path = dir.path().join("flipped.parquet");
        for at in (4..whole.len()).step_by(step) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            std::fs::write(&path, &bytes).unwrap();
            survive(&path);
            bytes[at] = if at % 2 == 0 { 0xff } else { 0 };
            std::fs::write(&path, &bytes).unwrap();
            survive(&path);
        }
    }
}

/// Changes in compressed data that still decompress are told by the checksum behind them.
#[test]
fn checksums_of_gzip_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let shape = Shape::plane(12, 30);
    let values: Vec<_> = (0..shape.pixels()).map(|i| ((i * i / 7) % 190) as f64).collect();
    let settings = Settings {
        codec: Codec::GZIP(GzipLevel::default()),
        encoding: Some(Encoding::PLAIN),
        ..Settings::default()
    };
    let layout = simple(PixelType::U8, PixelType::U16);
    write_file(&path, &[Some((shape, values))], &layout, settings.properties());
    let (_, good) = read_image(&open(&path), 0).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let mut refused = 0;
    let starts = whole.windows(3).enumerate().filter(|(_, w)| *w == [0x1f, 0x8b, 8]).map(|(at, _)| at + 10);
    for at in starts.flat_map(|start| start..start + 60) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(&path, &bytes).unwrap();
        let Ok(store) = ParquetStore::open(&path, &OpenOptions::default()) else { continue };
        for store in [open(&path).without_fast_path(), store] {
            match read_image(&store, 0) {
                Ok((_, pixels)) => assert!(pixels == good, "byte {at}"),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

/// No flipped bit in a file written here gives other pixels or features, by whichever path they are read.
#[test]
fn flipped_bits_are_found_by_every_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let shape = Shape::plane(24, 30);
    let dose: ArrayRef = Arc::new(Int64Array::from(vec![5, 7, 11]));
    let features = RecordBatch::try_from_iter([("dose", dose)]).unwrap();
    for (tune, compression) in [
        (Tune::Random, Compression::None),
        (Tune::Reference, Compression::None),
        (Tune::Random, Compression::Zstd(1)),
        (Tune::Reference, Compression::Lz4),
    ] {
        let options = WriteOptions {
            tune,
            compression,
            overwrite: true,
            features: Some(features.clone()),
            ..WriteOptions::default()
        };
        let mut writer = create(&path, "parquet", &options).unwrap();
        for k in 0..3 {
            let pixels: Vec<u8> = (0..shape.pixels()).map(|i| ((i * i / 7 + k) % 190) as u8).collect();
            let metadata = ImageMetadata::named(format!("image {k}"));
            writer
                .write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels })
                .unwrap();
        }
        writer.finish().unwrap();
        let read = |store: &ParquetStore| -> wellread_store::Result<_> {
            let images: Vec<_> =
                (0..store.len()).map(|row| read_image(store, row)).collect::<Result<_, _>>()?;
            Ok((images, wellread_store::features::all(store)?))
        };
        let good = read(&open(&path)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let (mut by_checksum, mut tried) = (0, 0);
        let mut unseen = vec![];
        for at in (4..whole.len()).step_by(7) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at / 7 % 8);
            std::fs::write(&path, &bytes).unwrap();
            for fast in [true, false] {
                let store = ParquetStore::open(&path, &OpenOptions::default());
                let store = store.map(|store| if fast { store } else { store.without_fast_path() });
                match store.and_then(|store| read(&store)) {
                    Ok(found) if found == good => {}
                    Ok(_) => unseen.push((at, fast)),
                    Err(error) => by_checksum += usize::from(error.to_string().contains("checksum")),
                }
                tried += 1;
            }
        }
        assert!(by_checksum * 3 > tried, "{tune:?} {compression:?}: {by_checksum} of {tried} by checksums");
        assert!(unseen.is_empty(), "{tune:?} {compression:?}: {unseen:?} of {tried}");
    }
}

/// An encoding in the header of a page, of which no checksum is, must be one of the column's.
#[test]
fn a_flipped_encoding_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let dose: ArrayRef = Arc::new(Int64Array::from(vec![5, 7, 11]));
    let well: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let features = Some(RecordBatch::try_from_iter([("dose", dose), ("well", well)]).unwrap());
    let options = WriteOptions { features, compression: Compression::None, ..WriteOptions::default() };
    let mut writer = create(&path, "parquet", &options).unwrap();
    for k in 0..3 {
        let (metadata, shape) = (ImageMetadata::named(format!("image {k}")), Shape::plane(2, 4));
        writer
            .write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &[k; 8] })
            .unwrap();
    }
    writer.finish().unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).unwrap();
    let columns = metadata.row_group(0).columns();
    let column = columns.iter().find(|c| c.column_path().string() == "dose").unwrap();
    let at = usize::try_from(column.data_page_offset()).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // Three values, by dictionary (8, twice that in Thrift's zigzag), levels by runs (3).
    let header = bytes[at..].windows(8).position(|w| w == [0x15, 6, 0x15, 0x10, 0x15, 6, 0x15, 6]).unwrap();
    bytes[at + header + 3] ^= 2;
    std::fs::write(&path, &bytes).unwrap();
    for fast in [true, false] {
        let store = ParquetStore::open(&path, &OpenOptions::default()).unwrap();
        let store = if fast { store } else { store.without_fast_path() };
        let error = wellread_store::features::all(&store).unwrap_err().to_string();
        assert!(error.contains("column dose: a page has an encoding that its column has not"), "{error}");
        // A read of one column reads no other.
        let well = store.hints().features(&["well".to_owned()]).unwrap().unwrap();
        assert_eq!((well.num_columns(), well.column(0).len()), (1, 3));
    }
}

/// A program that writes a table anew may take its metadata along: the footer's checksum is then of another
/// file.
#[test]
fn checksums_of_footers_are_ours_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = (dir.path().join("ours.parquet"), dir.path().join("theirs.parquet"));
    let shape = Shape::plane(8, 9);
    let mut writer = create(&ours, "parquet", &WriteOptions::default()).unwrap();
    let metadata = ImageMetadata::named("image");
    let pixels: Vec<u8> = (0..72).collect();
    writer.write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels }).unwrap();
    writer.finish().unwrap();
    let file = std::fs::File::open(&ours).unwrap();
    let builder = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let pairs = builder.metadata().file_metadata().key_value_metadata().unwrap().clone();
    let sum = pairs.iter().find(|pair| pair.key == "wellread:footer_crc32").expect("a checksum");
    let digits = sum.value.as_deref().unwrap();
    assert!(digits.len() == 8 && digits != "00000000", "{digits}");
    let batches: Vec<_> = builder.build().unwrap().map(Result::unwrap).collect();
    let properties = parquet::file::properties::WriterProperties::builder()
        .set_key_value_metadata(Some(pairs.into_iter().filter(|pair| pair.key != "ARROW:schema").collect()))
        .build();
    let out = std::fs::File::create(&theirs).unwrap();
    let mut writer = ArrowWriter::try_new(out, batches[0].schema(), Some(properties)).unwrap();
    for batch in &batches {
        writer.write(batch).unwrap();
    }
    writer.close().unwrap();
    assert_eq!(read_image(&open(&theirs), 0).unwrap().1, pixels);
}

/// The file with its footer changed: every column's metadata go through `change`.
fn with_columns(
    bytes: &[u8],
    change: impl Fn(ColumnChunkMetaDataBuilder, &ColumnChunkMetaData) -> ColumnChunkMetaDataBuilder,
) -> Vec<u8> {
    let footer = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap()) as usize + 8;
    let source = bytes::Bytes::copy_from_slice(bytes);
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&source).unwrap();
    let groups = metadata.row_groups().iter().map(|group| {
        let columns = group.columns().iter();
        let columns =
            columns.map(|c| change(c.clone().into_builder(), c).build().unwrap()).collect::<Vec<_>>();
        group.clone().into_builder().set_column_metadata(columns).build().unwrap()
    });
    let groups = groups.collect();
    let metadata = metadata.into_builder().set_row_groups(groups).build();
    let mut out = bytes[..bytes.len() - footer].to_vec();
    ParquetMetaDataWriter::new(&mut out, &metadata).finish().unwrap();
    out
}

/// Offsets that make the parquet crate panic are found before it sees them.
#[test]
fn offsets_of_dictionaries_that_lie() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let shape = Shape::plane(12, 30);
    let images = [Some((shape, vec![5.0; shape.pixels()]))];
    let layout = simple(PixelType::U8, PixelType::U16);
    write_file(&path, &images, &layout, Settings::default().properties());
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, with_columns(&whole, |builder, _| builder)).unwrap();
    read_image(&open(&path), 0).unwrap();
    for (offset, says) in [
        (Some(-5), "the offset of its dictionary is -5"),
        (Some(i64::MIN), "the offset of its dictionary"),
        (Some(i64::MAX), "lies behind its pages"),
        (None, "a dictionary that is not there"),
    ] {
        let changed = with_columns(&whole, |builder, _| builder.set_dictionary_page_offset(offset));
        std::fs::write(&path, changed).unwrap();
        for store in [open(&path), open(&path).without_fast_path()] {
            let error = read_image(&store, 0).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("corrupt"), "{offset:?} {error}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Chunks that do not fit together are errors that say so.
    #[test]
    fn wrong_chunks_are_errors(at in 0usize..8, axis in 0usize..8, change in -3i64..4) {
        prop_assume!(change != 0);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet");
        let shape = Shape([1, 1, 2, 8, 8]);
        let images = [Some((shape, vec![5.0; shape.pixels()]))];
        let mut layout = simple(PixelType::U8, PixelType::U16);
        layout.tile = [1, 4, 4];
        let column = image_column(&images, &layout);
        let column = with_changed_chunk(&column, at, axis, change);
        let batch = RecordBatch::try_from_iter([("picture", Arc::new(column) as ArrayRef)]).unwrap();
        let mut writer = ArrowWriter::try_new(std::fs::File::create(&path).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let error = open(&path).row_info(0).unwrap_err();
        prop_assert_eq!(error.row_index(), Some(0));
        prop_assert!(error.cause().contains("chunk"), "{}", error);
    }
}

/// The column with one number of one chunk changed.
fn with_changed_chunk(column: &StructArray, at: usize, axis: usize, change: i64) -> StructArray {
    let names = ["t", "c", "z", "y", "x", "shape_z", "shape_y", "shape_x"];
    let replace = |s: &StructArray, name: &str, array: ArrayRef| {
        let children = s
            .fields()
            .iter()
            .zip(s.columns())
            .map(|(f, c)| {
                (f.name().as_str(), if f.name() == name { Arc::clone(&array) } else { Arc::clone(c) })
            })
            .collect();
        structure(children, s.nulls().cloned())
    };
    let chunks = column.column_by_name("chunks").unwrap().as_any().downcast_ref::<ListArray>().unwrap();
    let elements = chunks.values().as_any().downcast_ref::<StructArray>().unwrap();
    let old = elements.column_by_name(names[axis]).unwrap();
    let old = old.as_any().downcast_ref::<PrimitiveArray<Int32Type>>().unwrap();
    let new: PrimitiveArray<Int32Type> =
        old.iter().enumerate().map(|(i, v)| v.map(|v| if i == at { v + change as i32 } else { v })).collect();
    let elements = replace(elements, names[axis], Arc::new(new));
    let chunks = list(Arc::new(elements), &[chunks.value_length(0) as usize], false, "item");
    replace(column, "chunks", chunks)
}

/// Sizes that no file of this length can hold are refused before memory is taken for them.
#[test]
fn absurd_shapes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    for (size, wide) in [
        (-5i64, false),
        (0, false),
        (2_000_000_000, false),
        (1 << 40, true),
        (i64::MIN, true),
        (i64::MAX, true),
    ] {
        let images = [Some((Shape::plane(4, 4), vec![1.0; 16]))];
        let mut layout = simple(PixelType::U8, PixelType::U16);
        layout.inferred = wide;
        let column = image_column(&images, &layout);
        let meta =
            column.column_by_name("pixels_meta").unwrap().as_any().downcast_ref::<StructArray>().unwrap();
        let children = meta
            .fields()
            .iter()
            .zip(meta.columns())
            .map(|(f, c)| {
                let array: ArrayRef = match f.name().as_str() {
                    "size_x" | "size_t" if wide => Arc::new(Int64Array::from(vec![size])),
                    "size_x" | "size_t" => Arc::new(PrimitiveArray::<Int32Type>::from(vec![size as i32])),
                    _ => Arc::clone(c),
                };
                (f.name().as_str(), array)
            })
            .collect();
        let meta: ArrayRef = Arc::new(structure(children, None));
        let children =
            vec![("pixels_meta", meta), ("chunks", Arc::clone(column.column_by_name("chunks").unwrap()))];
        let column: ArrayRef = Arc::new(structure(children, None));
        let batch = RecordBatch::try_from_iter([("picture", column)]).unwrap();
        let mut writer =
            ArrowWriter::try_new(std::fs::File::create(&path).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let store = open(&path);
        assert_eq!(store.row_info(0).unwrap_err().row_index(), Some(0), "{size}");
        assert!(read_image(&store, 0).is_err());
    }
}

/// The array with every field `name` of its structs set to `value`.
fn with_field(array: &ArrayRef, name: &str, value: i32) -> ArrayRef {
    let Some(all) = array.as_any().downcast_ref::<StructArray>() else { return array.clone() };
    let columns = all.fields().iter().zip(all.columns()).map(|(field, column)| {
        if field.name() == name {
            Arc::new(PrimitiveArray::<Int32Type>::from_value(value, column.len())) as ArrayRef
        } else {
            with_field(column, name, value)
        }
    });
    Arc::new(StructArray::new(all.fields().clone(), columns.collect(), all.nulls().cloned()))
}

/// A flipped bit in an image's size costs no memory: its chunks are looked at before there is any for its pixels. That holds for
/// some rows of the table, its planes, and sets that it is a part of, too.
#[test]
fn a_size_that_is_damaged_costs_no_memory() {
    let shape = Shape::plane(4, 6);
    let image: Image = Some((shape, vec![1.0; 24]));
    let column: ArrayRef = Arc::new(image_column(&[image], &simple(PixelType::U8, PixelType::U8)));
    for (size, damaged) in [(4, false), (1 << 28, true)] {
        let column = with_field(&column, "size_y", size);
        let batch = RecordBatch::try_from_iter([("picture", column)]).unwrap();
        let table = MemoryTable::new("memory", batch.schema(), vec![batch]);
        let opened = || TableStore::open(Box::new(table.clone()), &OpenOptions::default()).unwrap();
        let part = Part { name: "part".to_owned(), keys: vec![], store: Arc::new(opened()) };
        let subset = Subset::of(Box::new(opened()) as Box<dyn Store>, vec![0]);
        let stores: [Box<dyn Store>; 4] = [
            Box::new(opened()),
            Box::new(subset),
            Box::new(PlaneStore::new(Box::new(opened())).unwrap()),
            Box::new(Concat::new(PathBuf::from("set"), vec![part])),
        ];
        for store in stores {
            let mut out = vec![];
            let full = store.row_info(0).unwrap().shape.full();
            let read = read_region(&*store, 0, &full, &mut Scratch::default(), &mut out);
            let scanned = store.scan(0..1, &mut |_, _, _| Ok(()));
            assert_eq!((read.is_err(), scanned.is_err()), (damaged, damaged));
            if let (Err(read), Err(scanned)) = (read, scanned) {
                assert!(read.to_string().contains("chunks must cover the image"), "{read}");
                assert!(scanned.to_string().contains("chunks must cover the image"), "{scanned}");
                assert_eq!(out.capacity(), 0);
            }
        }
    }
}

/// A row without an image says how it is left out, also where the other list of the column cannot be read.
#[test]
fn a_null_image_beside_planes_of_another_kind_says_how_it_is_left_out() {
    let images: [Image; 2] = [Some((Shape::plane(4, 6), vec![1.0; 24])), None];
    let chunks_alone = image_column(&images, &simple(PixelType::U8, PixelType::U16));
    let numbers: ArrayRef = Arc::new(PrimitiveArray::<Int32Type>::from(vec![1, 2]));
    let own = chunks_alone.fields().iter().map(|field| field.name().as_str()).zip(chunks_alone.columns());
    let mut children: Vec<(&str, ArrayRef)> = own.map(|(name, child)| (name, Arc::clone(child))).collect();
    children.push(("planes", list(numbers, &[1, 1], false, "element")));
    let column: ArrayRef = Arc::new(structure(children, chunks_alone.nulls().cloned()));
    let batch = RecordBatch::try_from_iter_with_nullable([("picture", column, true)]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let store = open(&path);
    assert_eq!(read_image(&store, 0).unwrap().1, [1; 24]);
    let error = store.row_info(1).unwrap_err();
    assert!(error.is_null_image(), "{error}");
    assert!(error.hint_text().unwrap().starts_with("leave out rows without an image ("), "{error}");
}
