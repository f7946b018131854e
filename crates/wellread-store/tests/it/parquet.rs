//! The Parquet store against files of the reference libraries, its own files, and damaged ones.

use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, Int64Array, LargeListArray, ListArray, PrimitiveArray, RecordBatch,
    StringArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression as Codec, Encoding, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellread_image::{Channel, ImageMetadata, PhysicalSize, PixelType, Region, Shape, clip_runs};
use wellread_store::parquet::ParquetStore;
use wellread_store::{
    Compression, CopySink, ImageView, OpenOptions, Request, Scratch, Store, Tune, WriteOptions, create,
    read_image, read_region,
};

/// The folder of reference data, where there is one.
fn shared() -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let path = std::env::var_os("WELLREAD_SHARED").map_or_else(|| default.into(), PathBuf::from);
    if !path.is_dir() {
        println!("skipped: no reference data at {}", path.display());
        return None;
    }
    Some(path)
}

fn open(path: &Path) -> ParquetStore {
    ParquetStore::open(path, &OpenOptions::default()).unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
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
                        assert_eq!(sha256(&pixels), image["sha256"], "{} row {row}", file.display());
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
                        assert_eq!(sha256(pixels), images[row]["sha256"]);
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

// ---------------------------------------------------------------------------------------------------------
// Files of every kind, made with the parquet crate
// ---------------------------------------------------------------------------------------------------------

/// One image to be stored: `None` for a null row.
type Image = Option<(Shape, Vec<f64>)>;

/// How a column of images is stored.
#[derive(Clone, Debug)]
struct Layout {
    dtype: PixelType,
    /// Type of the pixel lists.
    list: PixelType,
    /// Integers of 64 bits, pixels included, as if inferred.
    inferred: bool,
    large_lists: bool,
    chunks: bool,
    planes: bool,
    tile: [usize; 3],
}

#[derive(Default)]
struct Pieces {
    lengths: Vec<usize>,
    boxes: Vec<Region>,
    pixels: Vec<f64>,
}

impl Pieces {
    fn push(&mut self, image: &Image, tile: [usize; 3]) {
        let before = self.boxes.len();
        if let Some((shape, values)) = image {
            for volume in 0..shape.t() * shape.c() {
                for z in (0..shape.z()).step_by(tile[0]) {
                    for y in (0..shape.y()).step_by(tile[1]) {
                        for x in (0..shape.x()).step_by(tile[2]) {
                            let size = [
                                1,
                                1,
                                tile[0].min(shape.z() - z),
                                tile[1].min(shape.y() - y),
                                tile[2].min(shape.x() - x),
                            ];
                            let start = [volume / shape.c(), volume % shape.c(), z, y, x];
                            let region = Region { start, size };
                            clip_runs(&shape.full(), &region, |from, _, n| {
                                self.pixels.extend(&values[from..from + n]);
                            });
                            self.boxes.push(region);
                        }
                    }
                }
            }
        }
        self.lengths.push(self.boxes.len() - before);
    }
}

fn numbers(values: impl Iterator<Item = usize>, wide: bool) -> ArrayRef {
    if wide {
        Arc::new(values.map(|v| Some(v as i64)).collect::<PrimitiveArray<Int64Type>>())
    } else {
        Arc::new(values.map(|v| Some(v as i32)).collect::<PrimitiveArray<Int32Type>>())
    }
}

fn list(values: ArrayRef, lengths: &[usize], large: bool, name: &str) -> ArrayRef {
    let field = Arc::new(Field::new(name, values.data_type().clone(), true));
    if large {
        let offsets = OffsetBuffer::<i64>::from_lengths(lengths.iter().copied());
        Arc::new(LargeListArray::new(field, offsets, values, None))
    } else {
        let offsets = OffsetBuffer::<i32>::from_lengths(lengths.iter().copied());
        Arc::new(ListArray::new(field, offsets, values, None))
    }
}

fn structure(children: Vec<(&str, ArrayRef)>, nulls: Option<NullBuffer>) -> StructArray {
    let (fields, arrays): (Vec<_>, Vec<_>) = children
        .into_iter()
        .map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array))
        .unzip();
    StructArray::new(fields.into(), arrays, nulls)
}

fn pixel_array(values: &[f64], list: PixelType, inferred: bool) -> ArrayRef {
    fn of<T: ArrowPrimitiveType>(values: &[f64], to: impl Fn(f64) -> T::Native) -> ArrayRef {
        Arc::new(PrimitiveArray::<T>::from_iter_values(values.iter().map(|&v| to(v))))
    }
    match list {
        PixelType::F32 if !inferred => of::<Float32Type>(values, |v| v as f32),
        PixelType::F32 | PixelType::F64 => of::<Float64Type>(values, |v| v),
        _ if inferred => of::<Int64Type>(values, |v| v as i64),
        PixelType::U8 => of::<UInt8Type>(values, |v| v as u8),
        PixelType::I8 => of::<Int8Type>(values, |v| v as i8),
        PixelType::U16 => of::<UInt16Type>(values, |v| v as u16),
        PixelType::I16 => of::<Int16Type>(values, |v| v as i16),
        PixelType::U32 => of::<UInt32Type>(values, |v| v as u32),
        PixelType::I32 => of::<Int32Type>(values, |v| v as i32),
    }
}

fn piece_column(images: &[Image], layout: &Layout, planes: bool) -> ArrayRef {
    let mut pieces = Pieces::default();
    for image in images {
        let tile = if planes { [1, usize::MAX >> 1, usize::MAX >> 1] } else { layout.tile };
        pieces.push(image, tile);
    }
    let wide = layout.inferred;
    let origin = |axis: usize| numbers(pieces.boxes.iter().map(|b| b.start[axis]), wide);
    let size = |axis: usize| numbers(pieces.boxes.iter().map(|b| b.size[axis]), wide);
    let lengths: Vec<_> = pieces.boxes.iter().map(Region::pixels).collect();
    let name = if layout.inferred { "element" } else { "item" };
    let pixels = pixel_array(&pieces.pixels, layout.list, layout.inferred);
    let pixels = list(pixels, &lengths, layout.large_lists, name);
    let mut fields = vec![("z", origin(2)), ("t", origin(0)), ("c", origin(1))];
    if !planes {
        fields.extend([("y", origin(3)), ("x", origin(4))]);
        fields.extend([("shape_z", size(2)), ("shape_y", size(3)), ("shape_x", size(4))]);
    }
    fields.push(("pixels", pixels));
    list(Arc::new(structure(fields, None)), &pieces.lengths, layout.large_lists, name)
}

fn image_column(images: &[Image], layout: &Layout) -> StructArray {
    let size = |axis: usize| {
        numbers(images.iter().map(|i| i.as_ref().map_or(0, |(s, _)| s.0[axis])), layout.inferred)
    };
    let meta = structure(
        vec![
            ("type", Arc::new(StringArray::from(vec![layout.dtype.name(); images.len()])) as ArrayRef),
            ("size_x", size(4)),
            ("size_y", size(3)),
            ("size_z", size(2)),
            ("size_c", size(1)),
            ("size_t", size(0)),
        ],
        None,
    );
    let names: Vec<_> = (0..images.len()).map(|i| format!("image-{i}")).collect();
    let mut fields = vec![
        ("name", Arc::new(StringArray::from(names)) as ArrayRef),
        ("pixels_meta", Arc::new(meta) as ArrayRef),
    ];
    if layout.chunks {
        fields.push(("chunks", piece_column(images, layout, false)));
    }
    if layout.planes {
        fields.push(("planes", piece_column(images, layout, true)));
    }
    structure(fields, Some(images.iter().map(Option::is_some).collect()))
}

fn write_file(path: &Path, images: &[Image], layout: &Layout, properties: WriterProperties) {
    let column: ArrayRef = Arc::new(image_column(images, layout));
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..images.len() as i64));
    let schema = Schema::new(vec![
        Field::new("id", ids.data_type().clone(), true),
        Field::new("picture", column.data_type().clone(), true),
    ]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![ids, column]).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn to_bytes(values: &[f64], dtype: PixelType) -> Vec<u8> {
    let one = |v: f64| match dtype {
        PixelType::U8 => vec![v as u8],
        PixelType::I8 => (v as i8).to_le_bytes().to_vec(),
        PixelType::U16 => (v as u16).to_le_bytes().to_vec(),
        PixelType::I16 => (v as i16).to_le_bytes().to_vec(),
        PixelType::U32 => (v as u32).to_le_bytes().to_vec(),
        PixelType::I32 => (v as i32).to_le_bytes().to_vec(),
        PixelType::F32 => (v as f32).to_le_bytes().to_vec(),
        PixelType::F64 => v.to_le_bytes().to_vec(),
    };
    values.iter().flat_map(|&v| one(v)).collect()
}

/// Reads all rows in one request list, backwards, and compares with what was stored.
fn compare(store: &ParquetStore, images: &[Image], dtype: PixelType) {
    assert_eq!(store.len(), images.len());
    let mut wanted: Vec<_> =
        images.iter().enumerate().filter_map(|(row, i)| i.as_ref().map(|(s, v)| (row, *s, v))).collect();
    wanted.reverse();
    let mut buffers: Vec<_> = wanted.iter().map(|(_, s, _)| vec![0; s.pixels() * dtype.size()]).collect();
    let mut requests = vec![];
    let mut targets = vec![];
    for ((row, shape, _), buffer) in wanted.iter().zip(&mut buffers) {
        requests.push(Request { row: *row, region: shape.full() });
        targets.push((shape.full(), dtype, buffer.as_mut_slice()));
    }
    store.read(&requests, &mut Scratch::default(), &mut CopySink::new(targets)).unwrap();
    for ((row, shape, values), buffer) in wanted.iter().zip(&buffers) {
        let info = store.row_info(*row).unwrap();
        assert_eq!((info.shape, info.dtype), (*shape, dtype));
        assert!(*buffer == to_bytes(values, dtype), "row {row} differs");
    }
    for (row, image) in images.iter().enumerate() {
        if image.is_none() {
            let error = read_image(store, row).unwrap_err();
            assert_eq!(error.row_index(), Some(row));
            assert!(error.to_string().contains("null"), "{error}");
        }
    }
}

#[derive(Clone, Debug)]
struct Settings {
    codec: Codec,
    encoding: Option<Encoding>,
    dictionary_limit: usize,
    page_size: usize,
    page_rows: usize,
    batch: usize,
    group_rows: usize,
    v2: bool,
}

impl Settings {
    fn properties(&self) -> WriterProperties {
        let mut p = WriterProperties::builder()
            .set_compression(self.codec)
            .set_data_page_size_limit(self.page_size)
            .set_data_page_row_count_limit(self.page_rows)
            .set_write_batch_size(self.batch)
            .set_dictionary_page_size_limit(self.dictionary_limit)
            .set_max_row_group_row_count(Some(self.group_rows))
            .set_dictionary_enabled(self.encoding.is_none());
        if let Some(encoding) = self.encoding {
            // Only pixels: texts do not take number encodings.
            for list in ["item", "element"] {
                for pieces in ["chunks", "planes"] {
                    let path = ["picture", pieces, "list", list, "pixels", "list", list];
                    p = p.set_column_encoding(path.map(str::to_owned).to_vec().into(), encoding);
                }
            }
        }
        let version = if self.v2 { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 };
        p.set_writer_version(version).build()
    }

    fn is_fast(&self) -> bool {
        !matches!(self.codec, Codec::BROTLI(_) | Codec::LZ4)
            && matches!(self.encoding, None | Some(Encoding::PLAIN | Encoding::BYTE_STREAM_SPLIT))
    }
}

fn settings() -> impl Strategy<Value = Settings> {
    let codecs = vec![
        Codec::UNCOMPRESSED,
        Codec::SNAPPY,
        Codec::GZIP(GzipLevel::default()),
        Codec::BROTLI(BrotliLevel::default()),
        Codec::LZ4_RAW,
        Codec::ZSTD(ZstdLevel::default()),
    ];
    let encodings = vec![
        None,
        None,
        Some(Encoding::PLAIN),
        Some(Encoding::BYTE_STREAM_SPLIT),
        Some(Encoding::DELTA_BINARY_PACKED),
    ];
    (
        prop::sample::select(codecs),
        prop::sample::select(encodings),
        prop::sample::select(vec![16usize, 200, 1 << 20]),
        prop::sample::select(vec![64usize, 1000, 1 << 20]),
        prop::sample::select(vec![1usize, 3, 20_000]),
        prop::sample::select(vec![1usize, 50, 1024]),
        prop::sample::select(vec![1usize, 4, 1000]),
        any::<bool>(),
    )
        .prop_map(|(codec, encoding, dictionary_limit, page_size, page_rows, batch, group_rows, v2)| {
            Settings { codec, encoding, dictionary_limit, page_size, page_rows, batch, group_rows, v2 }
        })
}

fn layouts() -> impl Strategy<Value = Layout> {
    let pairs: Vec<(PixelType, PixelType)> = PixelType::ALL
        .into_iter()
        .flat_map(|list| PixelType::ALL.into_iter().map(move |dtype| (list, dtype)))
        .filter(|&(list, dtype)| wellread_image::ome_arrow::list_holds(list, dtype))
        .collect();
    (
        prop::sample::select(pairs),
        any::<bool>(),
        any::<bool>(),
        prop::sample::select(vec![(true, false), (false, true), (true, true)]),
        [1usize..3, 1..9, 1..40],
    )
        .prop_map(|((list, dtype), inferred, large_lists, (chunks, planes), tile)| Layout {
            dtype,
            list,
            inferred,
            large_lists,
            chunks,
            planes,
            tile,
        })
}

fn images(dtype: PixelType) -> impl Strategy<Value = Vec<Image>> {
    let (low, high) = match dtype {
        PixelType::F32 | PixelType::F64 => (-1000.0, 1000.0),
        other => other.range(),
    };
    let shape = [1usize..3, 1..3, 1..4, 1..12, 1..40].prop_map(Shape);
    // Few different values make dictionaries and runs, many make dictionaries fall back.
    let image = (shape, 1usize..400, any::<u32>()).prop_map(move |(shape, distinct, seed)| {
        let mut state = seed | 1;
        let values = (0..shape.pixels())
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                let step = f64::from(state % distinct as u32) / distinct as f64;
                (low + step * (high - low)).round().clamp(low, high)
            })
            .collect();
        (shape, values)
    });
    prop::collection::vec(prop::option::weighted(0.9, image), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whatever the writer's settings: both paths give what was stored.
    #[test]
    fn both_paths_read_what_was_stored(
        (layout, images) in layouts().prop_flat_map(|l| { let d = l.dtype; (Just(l), images(d)) }),
        settings in settings(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet");
        write_file(&path, &images, &layout, settings.properties());
        let store = open(&path);
        // 8-bit values declared uint16 are taken for what they are: see `ome_arrow::declared_type_is_clamped`.
        let narrow = |v: &f64| *v <= 255.0;
        let clamped = layout.dtype == PixelType::U16
            && !matches!(layout.list, PixelType::F32 | PixelType::F64)
            && images.iter().flatten().all(|(_, values)| values.iter().all(narrow))
            && images.chunks(settings.group_rows).all(|g| g.iter().any(Option::is_some));
        let dtype = if clamped { PixelType::U8 } else { layout.dtype };
        compare(&store, &images, dtype);
        prop_assert!(store.left_fast_path() != settings.is_fast() || images.iter().all(Option::is_none));
        compare(&open(&path).without_fast_path(), &images, dtype);
        compare(&open(&path).with_cache(1), &images, dtype);
    }
}

fn simple(dtype: PixelType, list: PixelType) -> Layout {
    Layout {
        dtype,
        list,
        inferred: false,
        large_lists: false,
        chunks: true,
        planes: false,
        tile: [1, 512, 512],
    }
}

/// Tiles of 512 x 512, pages that end anywhere: regions of every kind, from both paths.
#[test]
fn regions_of_tiled_images() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let shape = Shape([1, 1, 1, 700, 1100]);
    let values: Vec<f64> =
        (0..shape.pixels()).map(|i| f64::from((i as u32).wrapping_mul(2_654_435_761) >> 16)).collect();
    let images = [Some((shape, values.clone()))];
    for (encoding, page_size) in
        [(None, 100_000), (Some(Encoding::PLAIN), 70_000), (Some(Encoding::BYTE_STREAM_SPLIT), 1 << 20)]
    {
        let settings = Settings {
            codec: Codec::ZSTD(ZstdLevel::default()),
            encoding,
            dictionary_limit: 1 << 20,
            page_size,
            page_rows: 20_000,
            batch: 1000,
            group_rows: 10,
            v2: false,
        };
        write_file(&path, &images, &simple(PixelType::U16, PixelType::U16), settings.properties());
        for store in [open(&path), open(&path).without_fast_path()] {
            for (start, size) in [
                ([0, 0, 0, 0, 0], [1, 1, 1, 700, 1100]),
                ([0, 0, 0, 511, 511], [1, 1, 1, 2, 2]),
                ([0, 0, 0, 100, 1000], [1, 1, 1, 500, 100]),
                ([0, 0, 0, 699, 1099], [1, 1, 1, 1, 1]),
                ([0, 0, 0, 3, 0], [1, 1, 1, 1, 1100]),
            ] {
                let region = Region { start, size };
                let mut out = vec![];
                read_region(&store, 0, &region, &mut Scratch::default(), &mut out).unwrap();
                let mut expected = vec![0.0; region.pixels()];
                clip_runs(&shape.full(), &region, |a, b, n| {
                    expected[b..b + n].copy_from_slice(&values[a..a + n])
                });
                assert!(out == to_bytes(&expected, PixelType::U16), "{region:?}");
            }
            let outside = Region { start: [0, 0, 0, 700, 0], size: [1, 1, 1, 1, 1] };
            assert!(read_region(&store, 0, &outside, &mut Scratch::default(), &mut vec![]).is_err());
        }
    }
}

/// A value that an image's type cannot hold is an error of that image alone, on both paths.
#[test]
fn values_out_of_range_are_errors_of_their_row() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let shape = Shape::plane(10, 10);
    let mut bad = vec![7.0; 100];
    bad[50] = 300.0;
    let images = [Some((shape, vec![1.0; 100])), Some((shape, bad)), Some((shape, vec![2.0; 100]))];
    for encoding in
        [None, Some(Encoding::PLAIN), Some(Encoding::BYTE_STREAM_SPLIT), Some(Encoding::DELTA_BINARY_PACKED)]
    {
        let settings = Settings {
            codec: Codec::SNAPPY,
            encoding,
            dictionary_limit: 1 << 20,
            page_size: 1 << 20,
            page_rows: 20_000,
            batch: 1024,
            group_rows: 10,
            v2: true,
        };
        write_file(&path, &images, &simple(PixelType::U8, PixelType::U16), settings.properties());
        for store in [open(&path), open(&path).without_fast_path()] {
            assert_eq!(read_image(&store, 0).unwrap().1, [1; 100]);
            let error = read_image(&store, 1).unwrap_err();
            assert_eq!(error.row_index(), Some(1));
            assert!(error.cause().contains("the pixel value 300 does not fit uint8"), "{error}");
            assert_eq!(read_image(&store, 2).unwrap().1, [2; 100]);
        }
    }
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

// ---------------------------------------------------------------------------------------------------------
// The writer
// ---------------------------------------------------------------------------------------------------------

fn described() -> ImageMetadata {
    ImageMetadata {
        id: "Image:7".into(),
        name: "plate_A01".into(),
        channels: vec![
            Channel {
                id: "Channel:0".into(),
                name: "DAPI".into(),
                emission_um: Some(0.461),
                excitation_um: Some(0.358),
                illumination: Some("Epifluorescence".into()),
                color_rgba: Some(0x0000_ffff),
            },
            Channel { id: "Channel:1".into(), name: "GFP".into(), ..Channel::default() },
        ],
        physical_size_x: Some(PhysicalSize { value: 0.65, unit: "µm".into() }),
        physical_size_y: Some(PhysicalSize { value: 0.65, unit: "µm".into() }),
        physical_size_z: None,
        acquired: Some("2026-11-21T05:38:56.401079".into()),
    }
}

/// Every type, tune and compression: pixels and metadata come back.
#[test]
fn what_is_written_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let metadata = described();
    let compressions = [
        Compression::Default,
        Compression::None,
        Compression::Lz4,
        Compression::Snappy,
        Compression::Zstd(1),
        Compression::Deflate(4),
    ];
    for (i, dtype) in PixelType::ALL.into_iter().enumerate() {
        for tune in [Tune::Random, Tune::Scan, Tune::Size, Tune::Reference] {
            let path = dir.path().join(format!("{dtype}-{tune:?}.parquet"));
            let options = WriteOptions {
                compression: compressions[i % compressions.len()],
                tune,
                chunk: (i % 3 == 1).then_some([1, 1, 2, 33, 70]),
                ..WriteOptions::default()
            };
            let shapes: Vec<_> =
                (1..9).map(|n| Shape([1 + n % 2, 2, 1 + n % 3, 20 * n, 90 - 7 * n])).collect();
            let pixels: Vec<Vec<u8>> = shapes
                .iter()
                .map(|s| {
                    let values: Vec<f64> = (0..s.pixels()).map(|p| (p * 7 % 120) as f64).collect();
                    to_bytes(&values, dtype)
                })
                .collect();
            let mut writer = create(&path, "parquet", &options).unwrap();
            for (shape, pixels) in shapes.iter().zip(&pixels) {
                writer.write(&ImageView { metadata: &metadata, shape: *shape, dtype, pixels }).unwrap();
            }
            assert!(!path.exists(), "nothing is visible before it is finished");
            writer.finish().unwrap();
            let store = open(&path);
            for (row, (shape, pixels)) in shapes.iter().zip(&pixels).enumerate() {
                let (info, read) = read_image(&store, row).unwrap();
                assert_eq!((info.shape, info.dtype), (*shape, dtype));
                assert!(read == *pixels, "{dtype} {tune:?} row {row}");
                assert_eq!(store.metadata(row).unwrap(), metadata);
            }
            assert!(!store.left_fast_path());
            assert!(store.position(1) > store.position(0));
            let layout = store.layout().unwrap();
            assert!(layout.variant.starts_with("typed chunks"), "{layout:?}");
        }
    }
}

#[test]
fn many_images_make_row_groups_and_dark_ones_keep_their_type() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let mut writer = create(&path, "parquet", &WriteOptions::default()).unwrap();
    for i in 0..600u16 {
        let pixels: Vec<u8> = (0..64).flat_map(|p| ((p + i) % 200).to_le_bytes()).collect();
        let metadata = ImageMetadata::named(format!("dark-{i}"));
        let view = ImageView {
            metadata: &metadata,
            shape: Shape::plane(8, 8),
            dtype: PixelType::U16,
            pixels: &pixels,
        };
        writer.write(&view).unwrap();
    }
    writer.finish().unwrap();
    let store = open(&path);
    assert_eq!(store.len(), 600);
    for row in [0, 255, 256, 599] {
        let (info, pixels) = read_image(&store, row).unwrap();
        assert_eq!(info.dtype, PixelType::U16);
        assert_eq!(u16::from_le_bytes([pixels[2], pixels[3]]), (1 + row as u16) % 200);
        assert_eq!(store.name(row).unwrap(), format!("dark-{row}"));
    }
    assert!(
        store.layout().unwrap().pieces.contains("3 row groups of up to 256 images"),
        "{:?}",
        store.layout()
    );
}

#[test]
fn what_cannot_be_written_is_refused_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let refused = |options: &WriteOptions| create(&path, "parquet", options).err().unwrap().to_string();
    let lzw = WriteOptions { compression: Compression::Lzw, ..WriteOptions::default() };
    assert!(refused(&lzw).contains("zstd"), "{}", refused(&lzw));
    let chunk = WriteOptions { chunk: Some([2, 1, 1, 64, 64]), ..WriteOptions::default() };
    assert!(refused(&chunk).contains("one time point"));
    let metadata = ImageMetadata::named("x");
    let view = |dtype, pixels| ImageView { metadata: &metadata, shape: Shape::plane(2, 2), dtype, pixels };
    let mut writer = create(&path, "parquet", &WriteOptions::default()).unwrap();
    writer.write(&view(PixelType::U8, &[1, 2, 3, 4])).unwrap();
    writer.write(&view(PixelType::U16, &[1; 8])).unwrap();
    let error = writer.write(&view(PixelType::F32, &[0; 16])).unwrap_err();
    assert_eq!(error.row_index(), Some(2));
    assert!(writer.write(&view(PixelType::U8, &[1, 2, 3])).is_err());
    drop(writer);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "a dropped writer leaves nothing");
    let empty = create(&path, "parquet", &WriteOptions::default()).unwrap();
    empty.finish().unwrap();
    assert_eq!(open(&path).len(), 0);
    assert!(refused(&WriteOptions::default()).contains("already exists"));
}

/// A file that cannot grow, as on a full disk, is an error, and leaves nothing behind. The limit on file sizes
/// stands for the disk; it holds for a whole process, so this test runs itself again as a child.
#[cfg(unix)]
#[test]
fn a_full_disk_is_an_error() {
    const CHILD: &str = "WELLREAD_TEST_FULL_DISK";
    let Some(dir) = std::env::var_os(CHILD) else {
        let dir = tempfile::tempdir().unwrap();
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["parquet::a_full_disk_is_an_error", "--exact", "--nocapture"])
            .env(CHILD, dir.path())
            .output()
            .unwrap();
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
        return;
    };
    // SAFETY: both calls only set attributes of this process, which runs nothing but this test.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        let limit = libc::rlimit { rlim_cur: 100_000, rlim_max: 100_000 };
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit), 0);
    }
    let metadata = ImageMetadata::named("x");
    let pixels: Vec<u8> = (0..250_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let path = PathBuf::from(dir).join("a.parquet");
    let options = WriteOptions { compression: Compression::None, ..WriteOptions::default() };
    let mut writer = create(&path, "parquet", &options).unwrap();
    let mut result = Ok(());
    for _ in 0..100 {
        let view = ImageView {
            metadata: &metadata,
            shape: Shape::plane(500, 500),
            dtype: PixelType::U8,
            pixels: &pixels,
        };
        result = result.and_then(|()| writer.write(&view));
    }
    let error = result.and_then(|()| writer.finish()).unwrap_err().to_string();
    assert!(error.contains("a.parquet: cannot write"), "{error}");
}

// ---------------------------------------------------------------------------------------------------------
// Damaged files
// ---------------------------------------------------------------------------------------------------------

/// Opens a damaged file and reads everything that can be read; what matters is that it ends without a panic
/// and that no more is delivered than the file can justify.
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

#[test]
fn flipped_bits_are_survived() {
    let dir = tempfile::tempdir().unwrap();
    // Errors of the library that panic are caught by the store; their messages would drown the test's.
    std::panic::set_hook(Box::new(|_| {}));
    let result = std::panic::catch_unwind(|| {
        for victim in victims(dir.path()) {
            let whole = std::fs::read(&victim).unwrap();
            let path = dir.path().join("flipped.parquet");
            let step = std::env::var("WELLREAD_FLIP_STEP").ok().and_then(|s| s.parse().ok()).unwrap_or(5);
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
    });
    let _ = std::panic::take_hook();
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
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
