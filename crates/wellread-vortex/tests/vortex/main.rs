//! Vortex files end to end: the reference library's files, files of our own, and files that are not as they should
//! be.
//!
//! Long because tests of sound files share how images are made, written and compared.

mod damage;
mod times;

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use wellread_image::{ImageMetadata, PhysicalSize, PixelType, Shape};
use wellread_store::place::bytes_read;
use wellread_store::{
    Compression, ImageView, OpenOptions, Request, Result, Scratch, Store, Tune, WriteOptions, read_image,
};

fn open(path: &Path) -> Result<Box<dyn Store>> {
    (wellread_vortex::FORMAT.open)(path, &OpenOptions::default())
}

fn options() -> WriteOptions {
    WriteOptions { jobs: 2, ..WriteOptions::default() }
}

/// An image whose pixels tell its number and their place.
struct Image {
    metadata: ImageMetadata,
    shape: Shape,
    dtype: PixelType,
    pixels: Vec<u8>,
}

fn image(number: usize, shape: Shape, dtype: PixelType) -> Image {
    let mut state = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(number as u64 + 1);
    let pixels = (0..shape.pixels()).flat_map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let v = (state >> 33) as u32;
        match dtype {
            PixelType::U8 | PixelType::I8 => vec![v as u8],
            PixelType::U16 | PixelType::I16 => (v as u16).to_le_bytes().to_vec(),
            PixelType::U32 | PixelType::I32 => v.to_le_bytes().to_vec(),
            PixelType::F32 => (v as f32 / 7.0).to_le_bytes().to_vec(),
            PixelType::F64 => (f64::from(v) / 7.0).to_le_bytes().to_vec(),
        }
    });
    let mut metadata = ImageMetadata { name: format!("image {number}"), ..ImageMetadata::default() };
    metadata.physical_size_x = Some(PhysicalSize { value: 0.5, unit: "µm".into() });
    Image { metadata, shape, dtype, pixels: pixels.collect() }
}

fn write(path: &Path, options: &WriteOptions, images: &[Image]) -> Result<()> {
    let mut writer = (wellread_vortex::FORMAT.create)(path, options)?;
    for i in images {
        writer.write(&ImageView {
            metadata: &i.metadata,
            shape: i.shape,
            dtype: i.dtype,
            pixels: &i.pixels,
        })?;
    }
    writer.finish()
}

/// Checks every image in every way of reading.
fn check(store: &dyn Store, images: &[Image]) {
    assert_eq!(store.len(), images.len());
    for (row, i) in images.iter().enumerate() {
        let (info, pixels) = read_image(store, row).unwrap();
        assert_eq!((info.shape, info.dtype), (i.shape, i.dtype), "row {row}");
        assert!(pixels == i.pixels, "pixels of row {row}");
        let metadata = store.metadata(row).unwrap();
        assert_eq!(metadata.name, i.metadata.name);
        assert_eq!(metadata.physical_size_x, i.metadata.physical_size_x);
    }
    let mut next = 0;
    store
        .scan(0..images.len(), &mut |row, info, pixels| {
            assert_eq!((row, info.shape), (next, images[row].shape));
            assert!(pixels == images[row].pixels, "scanned pixels of row {row}");
            next += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(next, images.len());
}

const SHAPES: [Shape; 4] =
    [Shape([1, 1, 1, 64, 64]), Shape([1, 1, 1, 1, 1]), Shape([2, 3, 2, 33, 17]), Shape([1, 2, 1, 40, 700])];

#[test]
fn what_is_written_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let types = [
        PixelType::U8,
        PixelType::I8,
        PixelType::U16,
        PixelType::I16,
        PixelType::U32,
        PixelType::I32,
        PixelType::F32,
        PixelType::F64,
    ];
    for dtype in types {
        let images: Vec<_> = (0..40).map(|n| image(n, SHAPES[n % 4], dtype)).collect();
        let path = dir.path().join(format!("{dtype}.vortex"));
        write(&path, &WriteOptions { chunk: Some([1, 1, 1, 32, 256]), ..options() }, &images).unwrap();
        let store = open(&path).unwrap();
        check(&*store, &images);
        let layout = store.layout().unwrap();
        assert!(layout.variant.contains("typed"), "{layout:?}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), types.len());
}

#[test]
fn every_layout_and_compression_keeps_the_pixels() {
    let dir = tempfile::tempdir().unwrap();
    let images: Vec<_> = (0..90).map(|n| image(n, SHAPES[[0, 2, 3][n % 3]], PixelType::U16)).collect();
    let codecs = [Compression::Default, Compression::None, Compression::Zstd(3)];
    for tune in [Tune::Random, Tune::Scan, Tune::Size, Tune::Reference] {
        for compression in codecs {
            let path = dir.path().join(format!("{tune:?}-{compression}.vortex").replace(':', "-"));
            write(&path, &WriteOptions { tune, compression, ..options() }, &images).unwrap();
            let store = open(&path).unwrap();
            check(&*store, &images);
            let layout = store.layout().unwrap();
            match compression {
                Compression::None => assert_eq!(layout.codec, "none"),
                Compression::Zstd(_) => assert!(layout.codec.contains("zstd"), "{layout:?}"),
                _ => assert!(!layout.codec.is_empty()),
            }
            let chunks: usize = layout.pieces.split(' ').next().unwrap().parse().unwrap();
            match tune {
                Tune::Random => assert!(chunks >= 3, "{layout:?}"),
                Tune::Reference if compression == Compression::Default => assert_eq!(chunks, 1, "{layout:?}"),
                _ => {}
            }
        }
    }
    for compression in [Compression::Lz4, Compression::Lzw, Compression::Snappy, Compression::Deflate(6)] {
        let path = dir.path().join("refused.vortex");
        let error =
            write(&path, &WriteOptions { compression, ..options() }, &images).unwrap_err().to_string();
        assert!(error.contains("refused.vortex") && error.contains("zstd[:LEVEL]"), "{error}");
        assert!(!path.exists());
    }
}

#[test]
fn feature_columns_stand_beside_the_images() {
    use wellread_store::table::arrow_array::{
        ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("features.vortex");
    let count = 30usize;
    let images: Vec<_> = (0..count).map(|n| image(n, SHAPES[n % 4], PixelType::U16)).collect();
    let some = |n: usize| (n % 5 != 3).then_some(n);
    let columns: [(&str, ArrayRef); 4] = [
        (
            "well",
            std::sync::Arc::new(
                (0..count).map(|n| some(n).map(|n| format!("A{n}"))).collect::<StringArray>(),
            ),
        ),
        ("plate", std::sync::Arc::new((0..count).map(|n| some(n).map(|n| n as i64)).collect::<Int64Array>())),
        (
            "area",
            std::sync::Arc::new(
                (0..count).map(|n| some(n).map(|n| n as f64 / 3.0)).collect::<Float64Array>(),
            ),
        ),
        (
            "control",
            std::sync::Arc::new((0..count).map(|n| some(n).map(|n| n % 2 == 0)).collect::<BooleanArray>()),
        ),
    ];
    let features = RecordBatch::try_from_iter_with_nullable(columns.map(|(n, c)| (n, c, true))).unwrap();
    write(&path, &WriteOptions { features: Some(features.clone()), ..options() }, &images).unwrap();
    let store = open(&path).unwrap();
    check(&*store, &images);
    assert_eq!(wellread_store::features::all(&*store).unwrap().unwrap().columns(), features.columns());
}

#[test]
fn black_images_compress_to_constants_and_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("black.vortex");
    let mut images: Vec<_> = (0..20).map(|n| image(n, SHAPES[0], PixelType::U8)).collect();
    for i in &mut images {
        i.pixels.fill(0);
    }
    write(&path, &options(), &images).unwrap();
    check(&*open(&path).unwrap(), &images);
}

#[test]
fn what_is_looked_at_of_the_mapped_file_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("counted.vortex");
    let images: Vec<_> = (0..40).map(|n| image(n, Shape::plane(200, 150), PixelType::U16)).collect();
    write(&path, &options(), &images).unwrap();
    let store = open(&path).unwrap();
    let counted = |row: usize| {
        let before = bytes_read();
        read_image(&*store, row).unwrap();
        (bytes_read() - before) as usize
    };
    counted(0);
    // Noise of sixteen bits is stored as it is; bytes kept of the first read do not count again.
    let bytes = images[0].pixels.len();
    for row in [1, 17, 39] {
        let found = counted(row);
        assert!((bytes..bytes + bytes / 4).contains(&found), "row {row}: {found} of {bytes}");
    }
}

#[test]
fn no_more_is_kept_decompressed_than_may_be() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("zstd.vortex");
    let images: Vec<_> = (0..12).map(|n| image(n, Shape::plane(300, 300), PixelType::U16)).collect();
    write(&path, &WriteOptions { compression: Compression::Zstd(3), ..options() }, &images).unwrap();
    // Bytes that a second time of reading all images looks at.
    let again = |limit: Option<usize>| {
        let store = open(&path).unwrap();
        assert_eq!(store.hints().page_cache_bytes(), 64 << 20);
        if let Some(bytes) = limit {
            store.hints().limit_page_cache(bytes);
            assert_eq!(store.hints().page_cache_bytes(), bytes);
            store.hints().limit_page_cache(1 << 30);
            assert_eq!(store.hints().page_cache_bytes(), bytes, "a limit is never raised");
        }
        check(&*store, &images);
        let before = bytes_read();
        check(&*store, &images);
        bytes_read() - before
    };
    let compressed = std::fs::metadata(&path).unwrap().len();
    assert!(again(None) < compressed / 2, "they are kept");
    assert!(again(Some(1 << 20)) > compressed / 2, "they are decompressed anew");
    assert!(again(Some(0)) > compressed / 2);
}

#[test]
fn an_empty_set_and_a_large_image() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("empty.vortex");
    write(&path, &options(), &[]).unwrap();
    assert_eq!(open(&path).unwrap().len(), 0);
    let path = dir.path().join("large.vortex");
    let images: Vec<_> = (0..3).map(|n| image(n, Shape([1, 1, 3, 1500, 1400]), PixelType::U16)).collect();
    write(&path, &options(), &images).unwrap();
    check(&*open(&path).unwrap(), &images);
}

#[test]
fn many_threads_read_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set.vortex");
    let images: Vec<_> = (0..300).map(|n| image(n, SHAPES[n % 4], PixelType::U16)).collect();
    write(&path, &options(), &images).unwrap();
    let store = open(&path).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (store, images) = (&store, &images);
            scope.spawn(move || {
                let mut scratch = Scratch::default();
                for call in 0..50 {
                    let rows: Vec<_> =
                        (0..16).map(|k| (thread * 71 + call * 37 + k * 19) % images.len()).collect();
                    let requests: Vec<_> =
                        rows.iter().map(|&row| Request { row, region: images[row].shape.full() }).collect();
                    let mut out: Vec<Vec<u8>> =
                        rows.iter().map(|&r| vec![0; images[r].pixels.len()]).collect();
                    let targets = out.iter_mut().zip(&requests);
                    let targets =
                        targets.map(|(o, r)| (r.region, PixelType::U16, o.as_mut_slice())).collect();
                    let mut sink = wellread_store::CopySink::new(targets);
                    store.read(&requests, &mut scratch, &mut sink).unwrap();
                    drop(sink);
                    for (row, pixels) in rows.iter().zip(&out) {
                        assert!(*pixels == images[*row].pixels, "row {row}");
                    }
                }
            });
        }
    });
}

/// Sets that the reference Python libraries wrote, by the folder that `WELLREAD_SHARED` names.
fn golden() -> Vec<PathBuf> {
    let Some(shared) = std::env::var_os("WELLREAD_SHARED") else {
        println!("WELLREAD_SHARED is not set: golden sets are skipped");
        return vec![];
    };
    let folders = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|e| e.path()).filter(|p| p.is_dir()).collect()
    };
    let sets: Vec<_> = folders(&Path::new(&shared).join("golden")).iter().flat_map(|p| folders(p)).collect();
    let sets: Vec<_> = sets.into_iter().filter(|p| p.join("images.vortex").exists()).collect();
    if sets.is_empty() {
        println!("no golden sets in {}: skipped", Path::new(&shared).display());
    }
    sets
}

#[test]
fn files_of_the_reference_library() {
    for set in golden() {
        let expected: serde_json::Value =
            serde_json::from_slice(&std::fs::read(set.join("expected.json")).unwrap()).unwrap();
        let store = open(&set.join("images.vortex")).unwrap();
        let rows = expected["images"].as_array().unwrap();
        assert_eq!(store.len(), rows.len(), "{}", set.display());
        for (row, wanted) in rows.iter().enumerate() {
            let (info, pixels) = read_image(&*store, row).unwrap();
            let shape: Vec<_> = info.shape.0.to_vec();
            let wanted_shape: Vec<_> = wanted["shape_tczyx"]
                .as_array()
                .unwrap()
                .iter()
                .map(|n| n.as_u64().unwrap() as usize)
                .collect();
            assert_eq!(shape, wanted_shape);
            assert_eq!(info.dtype.name(), wanted["dtype"], "{} row {row}", set.display());
            let hex = |b: &[u8]| b.iter().flat_map(|b| [b >> 4, b & 15]).collect::<Vec<_>>();
            let sum: String = hex(&Sha256::digest(&pixels))
                .iter()
                .map(|&n| char::from_digit(n.into(), 16).unwrap())
                .collect();
            assert_eq!(sum, wanted["sha256"], "{} row {row}", set.display());
            assert_eq!(store.metadata(row).unwrap().name, wanted["name"]);
        }
    }
}

/// A small file of several chunks, as bytes.
fn small_file(dir: &Path) -> Vec<u8> {
    let path = dir.join("whole.vortex");
    let images: Vec<_> = (0..24).map(|n| image(n, Shape([1, 1, 1, 150, 150]), PixelType::U16)).collect();
    write(&path, &options(), &images).unwrap();
    std::fs::read(&path).unwrap()
}

/// Writes a file as `wellread` does not: some rows are null.
fn with_null_rows(from: &Path, to: &Path, is_null: impl Fn(usize) -> bool) {
    use vortex::VortexSessionDefault;
    use vortex::array::arrays::struct_::StructArrayExt;
    use vortex::array::arrays::{BoolArray, StructArray};
    use vortex::array::builtins::ArrayBuiltins;
    use vortex::array::{IntoArray, VortexSessionExecute};
    use vortex::file::{OpenOptionsSessionExt, WriteOptionsSessionExt};
    use vortex::io::runtime::BlockingRuntime;
    use vortex::io::session::RuntimeSessionExt;
    let runtime = vortex::io::runtime::current::CurrentThreadRuntime::new();
    let session =
        <vortex::session::VortexSession as VortexSessionDefault>::default().with_handle(runtime.handle());
    let bytes = vortex::buffer::ByteBuffer::from(std::fs::read(from).unwrap());
    let file = session.open_options().open_buffer(bytes).unwrap();
    let stream = file.scan().unwrap().into_array_stream().unwrap();
    let table = runtime.block_on(vortex::array::stream::ArrayStreamExt::read_all(stream)).unwrap();
    let table = table.execute::<StructArray>(&mut session.create_execution_ctx()).unwrap();
    let len = table.as_ref().len();
    let images = table.unmasked_field_by_name("ome_image").unwrap().clone();
    let there = (0..len).map(|row| !is_null(row)).collect::<BoolArray>().into_array();
    let ids = table.unmasked_field_by_name("row_id").unwrap().clone();
    let fields = [("row_id", ids), ("ome_image", images.mask(there).unwrap())];
    let table = StructArray::from_fields(&fields).unwrap().into_array();
    let out = std::fs::File::create(to).unwrap();
    let writer = session.write_options().blocking(&runtime);
    writer.write(out, table.to_array_iterator()).unwrap();
}

#[test]
fn null_rows_are_said_to_be_null() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole.vortex");
    let path = dir.path().join("nulls.vortex");
    let images: Vec<_> = (0..50).map(|n| image(n, SHAPES[n % 4], PixelType::U16)).collect();
    write(&whole, &options(), &images).unwrap();
    with_null_rows(&whole, &path, |row| row % 3 == 1);
    let store = open(&path).unwrap();
    assert_eq!(store.len(), images.len());
    for (row, i) in images.iter().enumerate() {
        match read_image(&*store, row) {
            Ok((_, pixels)) => assert!(row % 3 != 1 && pixels == i.pixels, "row {row}"),
            Err(error) => assert!(row % 3 == 1 && error.is_null_image(), "row {row}: {error}"),
        }
    }
}

#[test]
fn a_target_that_exists_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set.vortex");
    let images = [image(0, SHAPES[0], PixelType::U8)];
    std::fs::write(&path, b"precious").unwrap();
    let error = write(&path, &options(), &images).unwrap_err().to_string();
    assert!(error.contains("already exists"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    write(&path, &WriteOptions { overwrite: true, ..options() }, &images).unwrap();
    check(&*open(&path).unwrap(), &images);
}

#[test]
fn two_writers_of_one_target_do_not_mix() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set.vortex");
    let sets = [0, 100].map(|n| (n..n + 60).map(|n| image(n, SHAPES[2], PixelType::U16)).collect::<Vec<_>>());
    std::thread::scope(|scope| {
        for set in &sets {
            scope.spawn(|| write(&path, &WriteOptions { overwrite: true, ..options() }, set).unwrap());
        }
    });
    let store = open(&path).unwrap();
    let whose = usize::from(store.metadata(0).unwrap().name == sets[1][0].metadata.name);
    check(&*store, &sets[whose]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn half_written_sets_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set.vortex");
    for count in [0, 1, 30] {
        let mut writer = (wellread_vortex::FORMAT.create)(&path, &options()).unwrap();
        for n in 0..count {
            let i = image(n, Shape([1, 1, 1, 700, 700]), PixelType::U16);
            let view = ImageView { metadata: &i.metadata, shape: i.shape, dtype: i.dtype, pixels: &i.pixels };
            writer.write(&view).unwrap();
        }
        drop(writer);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "after {count} images");
    }
}

#[test]
fn rows_that_are_not_there_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    small_file(dir.path());
    let store = open(&dir.path().join("whole.vortex")).unwrap();
    assert!(read_image(&*store, 24).unwrap_err().to_string().contains("there are 24 images"));
}

#[test]
fn the_format_is_registered_and_tells_its_versions() {
    let format = wellread_store::registry::format_named("vortex").unwrap();
    let engine = (format.engine)().unwrap();
    assert!(engine.contains("vortex 0.") && engine.contains("file format 1"), "{engine}");
    let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock")).unwrap();
    let pinned = format!("name = \"vortex\"\nversion = \"{}\"", wellread_vortex::LIBRARY);
    assert!(lock.contains(&pinned), "LIBRARY is not the release in the lock file");
    let dir = tempfile::tempdir().unwrap();
    small_file(dir.path());
    let path = dir.path().join("whole.vortex");
    assert_eq!(wellread_store::registry::recognise(&path).unwrap().name, "vortex");
    assert!((format.holds_images)(&path));
    std::fs::write(&path, b"VTXF, but no more").unwrap();
    assert!(!(format.holds_images)(&path));
}
