//! The fast path and the general reader: the same bytes, whatever the file.

use super::made::{
    Image, Layout, Settings, image_column, piece_column, simple, structure, to_bytes, write_file,
};
use super::open;
use arrow_array::{ArrayRef, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression as Codec, Encoding, GzipLevel, ZstdLevel};
use proptest::prelude::*;
use std::sync::Arc;
use wellread_image::{PixelType, Region, Shape, clip_runs};
use wellread_store::parquet::ParquetStore;
use wellread_store::place::bytes_read;
use wellread_store::{CopySink, Request, Scratch, Store, read_image, read_region};

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
fn settings() -> impl Strategy<Value = Settings> {
    let codecs = vec![
        Codec::UNCOMPRESSED,
        Codec::SNAPPY,
        Codec::GZIP(GzipLevel::default()),
        Codec::BROTLI(BrotliLevel::default()),
        Codec::LZ4_RAW,
        Codec::LZ4,
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

    /// Both paths give the stored values, for any settings of the writer.
    #[test]
    fn both_paths_read_what_was_stored(
        (layout, images) in layouts().prop_flat_map(|l| { let d = l.dtype; (Just(l), images(d)) }),
        mut settings in settings(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet");
        if layout.list.is_float() && settings.encoding == Some(Encoding::DELTA_BINARY_PACKED) {
            settings.encoding = None;
        }
        write_file(&path, &images, &layout, settings.properties());
        let store = open(&path);
        // 8-bit values declared uint16 are taken for what they are: see `ome_arrow::declared_type_is_clamped`.
        let narrow = |v: &f64| *v <= 255.0;
        let clamped = layout.dtype == PixelType::U16
            && !matches!(layout.list, PixelType::F32 | PixelType::F64)
            && images.iter().flatten().all(|(_, values)| values.iter().all(narrow));
        let dtype = if clamped { PixelType::U8 } else { layout.dtype };
        compare(&store, &images, dtype);
        prop_assert!(!store.left_fast_path());
        compare(&open(&path).without_fast_path(), &images, dtype);
        compare(&open(&path).with_cache(1), &images, dtype);
    }
}

/// A row group of null images has no pixels, nor has a list that is empty in all rows: others tell the largest one.
#[test]
fn eight_bits_are_told_by_the_lists_that_have_pixels() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let layout = simple(PixelType::U16, PixelType::U16);
    let settings = Settings { group_rows: 2, ..Settings::default() };
    let image = |pixel: f64| -> Image { Some((Shape::plane(4, 6), vec![pixel; 24])) };
    for (largest, dtype) in [(255.0, PixelType::U8), (256.0, PixelType::U16)] {
        let images = [None, None, image(7.0), None, image(largest)];
        write_file(&path, &images, &layout, settings.properties());
        compare(&open(&path), &images, dtype);
        // Planes hold the pixels, beside chunks that are empty.
        let images = [image(7.0), image(largest)];
        let both = image_column(&images, &Layout { planes: true, ..layout.clone() });
        let children = both.fields().iter().zip(both.columns()).map(|(field, child)| {
            let is_empty = field.name() == "chunks";
            let child =
                if is_empty { piece_column(&[None, None], &layout, false) } else { Arc::clone(child) };
            (field.name().as_str(), child)
        });
        let column: ArrayRef = Arc::new(structure(children.collect(), None));
        let batch = RecordBatch::try_from_iter_with_nullable([("picture", column, true)]).unwrap();
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        compare(&open(&path), &images, dtype);
    }
}

/// One read reads and decodes every page once, however little is kept and in any order of rows. Reads share only the
/// cache's pages (docs/architecture.md, Sharing).
#[test]
fn one_read_takes_each_page_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let shape = Shape::plane(16, 16);
    let values =
        |row: u32| -> Vec<f64> { (0..256u32).map(|i| f64::from((row * 977 + i * 31) % 5003)).collect() };
    let images: Vec<Image> = (0..200u32).map(|row| Some((shape, values(row)))).collect();
    // Pages of about twenty images.
    let settings = Settings {
        codec: Codec::ZSTD(ZstdLevel::default()),
        encoding: Some(Encoding::PLAIN),
        dictionary_limit: 1 << 20,
        page_size: 20_000,
        page_rows: 20_000,
        batch: 256,
        group_rows: 200,
        v2: false,
    };
    write_file(&path, &images, &simple(PixelType::U16, PixelType::U16), settings.properties());
    let read = |cache: usize, rows: &[usize], at_once: usize| {
        let store = open(&path).with_cache(cache);
        let before = bytes_read();
        let mut scratch = Scratch::default();
        for rows in rows.chunks(at_once) {
            let mut buffers = vec![vec![0u8; 2 * shape.pixels()]; rows.len()];
            let requests: Vec<_> = rows.iter().map(|&row| Request { row, region: shape.full() }).collect();
            let targets = buffers.iter_mut().map(|b| (shape.full(), PixelType::U16, b.as_mut_slice()));
            store.read(&requests, &mut scratch, &mut CopySink::new(targets.collect())).unwrap();
            for (row, buffer) in rows.iter().zip(&buffers) {
                assert!(*buffer == to_bytes(&values(*row as u32), PixelType::U16), "row {row} differs");
            }
        }
        assert!(!store.left_fast_path());
        bytes_read() - before
    };
    let in_order: Vec<usize> = (0..200).collect();
    let shuffled: Vec<usize> = (0..200).map(|i| i * 77 % 200).collect();
    let once = read(1, &in_order, 200);
    assert_eq!(read(1, &shuffled, 200), once, "one read, whatever the order");
    assert_eq!(read(1 << 20, &shuffled, 1), once, "single reads, all pages kept");
    assert!(read(1, &shuffled, 1) > 3 * once, "single reads, one page kept");
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
    for (encoding, page_size) in [
        (None, 100_000),
        (Some(Encoding::PLAIN), 70_000),
        (Some(Encoding::DELTA_BINARY_PACKED), 90_000),
        (Some(Encoding::BYTE_STREAM_SPLIT), 1 << 20),
    ] {
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
                    expected[b..b + n].copy_from_slice(&values[a..a + n]);
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
