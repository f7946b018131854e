//! Lance: golden sets, round trips, LanceDB folders, and files that are not as they should be. Tables as other writers leave
//! them are in `tests/python/test_engines.py`, written by Lance's Python library.

mod damage;
mod parts;

use serde_json::Value;
use std::path::{Path, PathBuf};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::checksum::sha256_hex;
use wellread_store::{
    Compression, ImageView, OpenOptions, Request, Result, Scratch, Store, Tune, WriteOptions, read_image,
};

/// One image: shape, type, pixels.
type Image = (Shape, PixelType, Vec<u8>);

fn open(path: &Path) -> Result<Box<dyn Store>> {
    open_table(path, None)
}

fn open_table(path: &Path, table: Option<&str>) -> Result<Box<dyn Store>> {
    (wellread_lance::FORMAT.open)(
        path,
        &OpenOptions { table: table.map(Into::into), ..OpenOptions::default() },
    )
}

/// Pixels that neighbour each other smoothly, with some noise.
fn image(shape: Shape, dtype: PixelType, seed: usize) -> Image {
    let values = (0..shape.pixels()).map(|i| (i / 7 + (i * 31 + seed * 17) % 23 + seed) % 120);
    let pixels = match dtype.size() {
        1 => values.map(|v| v as u8).collect(),
        2 => values.flat_map(|v| (v as u16 * 11).to_le_bytes()).collect(),
        4 if dtype == PixelType::F32 => values.flat_map(|v| (v as f32 / 3.0).to_le_bytes()).collect(),
        4 => values.flat_map(|v| (v as u32 * 70_001).to_le_bytes()).collect(),
        _ => values.flat_map(|v| (v as f64 / 7.0).to_le_bytes()).collect(),
    };
    (shape, dtype, pixels)
}

fn write(path: &Path, images: &[Image], options: &WriteOptions) -> Result<()> {
    let mut writer = (wellread_lance::FORMAT.create)(path, options)?;
    for (i, (shape, dtype, pixels)) in images.iter().enumerate() {
        let metadata = ImageMetadata { name: format!("image-{i}"), ..ImageMetadata::default() };
        writer.write(&ImageView { metadata: &metadata, shape: *shape, dtype: *dtype, pixels })?;
    }
    writer.finish()
}

/// Checks that the store holds just these images, by single reads, by batches and by a scan.
fn check(store: &dyn Store, images: &[Image]) {
    assert_eq!(store.len(), images.len());
    for (row, (shape, dtype, pixels)) in images.iter().enumerate() {
        let (info, found) = read_image(store, row).unwrap();
        assert_eq!((info.shape, info.dtype), (*shape, *dtype));
        assert!(found == *pixels, "row {row}");
    }
    let mut seen = 0;
    store
        .scan(0..images.len(), &mut |row, _, pixels| {
            assert_eq!(row, seen);
            assert!(pixels == images[row].2, "row {row}");
            seen += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, images.len());
    let rows: Vec<_> = (0..images.len()).step_by(3).rev().collect();
    let requests: Vec<_> = rows.iter().map(|&row| Request { row, region: images[row].0.full() }).collect();
    let mut outs: Vec<_> = rows.iter().map(|&row| vec![0; images[row].2.len()]).collect();
    let targets =
        rows.iter().zip(&mut outs).map(|(&row, out)| (images[row].0.full(), images[row].1, &mut out[..]));
    let mut sink = wellread_store::CopySink::new(targets.collect());
    store.read(&requests, &mut Scratch::default(), &mut sink).unwrap();
    for (row, out) in rows.iter().zip(outs) {
        assert!(out == images[*row].2, "row {row}");
    }
}

/// The folder of reference data, or `None` with a printed line where a clone has none.
fn shared() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("WELLREAD_SHARED").map(PathBuf::from) {
        assert!(path.is_dir(), "WELLREAD_SHARED names {}, which is no folder", path.display());
        return Some(path);
    }
    println!("skipped: no reference data (set WELLREAD_SHARED)");
    None
}

#[test]
fn golden_sets_read_to_their_checksums() {
    let Some(shared) = shared() else { return };
    let mut checked = 0;
    for set in ["jump/uint16-1x1x1", "jump/stack-5d", "jump/noise-uint8", "examplehuman/uint8-1x1x1"] {
        let set = shared.join("golden").join(set);
        let expected: Value =
            serde_json::from_slice(&std::fs::read(set.join("expected.json")).unwrap()).unwrap();
        let expected = expected["images"].as_array().unwrap();
        let path = set.join("images.lancedb");
        // By the folder as it is found, and by the dataset in it.
        let stores = [
            wellread_store::open(&path, &OpenOptions::default()).unwrap(),
            open_table(&path, Some("bench")).unwrap(),
            open(&path.join("bench.lance")).unwrap(),
        ];
        for store in stores {
            assert_eq!((store.format(), store.len()), ("lance", expected.len()));
            for (row, image) in expected.iter().enumerate() {
                let (info, pixels) = read_image(&*store, row).unwrap();
                assert_eq!(serde_json::to_value(info.shape).unwrap(), image["shape_tczyx"]);
                assert_eq!(info.dtype.name(), image["dtype"], "{}", set.display());
                assert_eq!(sha256_hex(&pixels), image["sha256"], "{} row {row}", set.display());
                assert_eq!(store.name(row).unwrap(), image["name"]);
                checked += 1;
            }
            let mut seen = 0;
            store
                .scan(0..store.len(), &mut |row, _, pixels| {
                    assert_eq!(sha256_hex(pixels), expected[row]["sha256"]);
                    seen += 1;
                    Ok(())
                })
                .unwrap();
            assert_eq!(seen, expected.len());
            let layout = store.layout().unwrap();
            assert!(layout.codec.ends_with("bit-packed"), "{layout:?}");
            assert!(
                layout.variant.contains("inferred") && layout.variant.contains("Lance 2.2"),
                "{layout:?}"
            );
        }
    }
    assert_eq!(checked, 3 * (12 + 4 + 16 + 12));
}

#[test]
fn every_type_and_shape_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let shapes = [Shape::plane(40, 50), Shape::plane(1, 1), Shape([2, 3, 2, 20, 30]), Shape::plane(130, 90)];
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
    for (i, dtype) in types.into_iter().enumerate() {
        let images: Vec<_> = (0..13).map(|k| image(shapes[k % shapes.len()], dtype, k)).collect();
        let path = dir.path().join(format!("{}.lance", dtype.name()));
        let chunk = (i % 2 == 1).then_some([1, 1, 2, 16, 32]);
        write(&path, &images, &WriteOptions { chunk, ..WriteOptions::default() }).unwrap();
        let store = wellread_store::open(&path, &OpenOptions::default()).unwrap();
        assert_eq!(store.format(), "lance");
        check(&*store, &images);
        assert_eq!(store.name(7).unwrap(), "image-7");
        assert!(store.bytes_on_disk().unwrap() > 0);
        assert!(store.layout().unwrap().variant.contains("typed"));
    }
}

#[test]
fn compressions_do_what_they_say() {
    let dir = tempfile::tempdir().unwrap();
    let images: Vec<_> = (0..40).map(|k| image(Shape::plane(64, 64), PixelType::U16, k)).collect();
    let sizes = [
        ("none", Compression::None, Tune::Random),
        ("bit-packed", Compression::Default, Tune::Random),
        ("bit-packed", Compression::Default, Tune::Scan),
        ("bit-packed", Compression::Default, Tune::Reference),
        ("bit-packed, lz4", Compression::Lz4, Tune::Random),
        ("bit-packed, zstd", Compression::Zstd(3), Tune::Random),
        ("bit-packed, zstd", Compression::Default, Tune::Size),
    ]
    .map(|(codec, compression, tune)| {
        let path = dir.path().join(format!("{compression}-{tune:?}.lance"));
        write(&path, &images, &WriteOptions { compression, tune, ..WriteOptions::default() }).unwrap();
        let store = open(&path).unwrap();
        println!("{compression} {tune:?}: {:?} {}", store.layout().unwrap(), store.bytes_on_disk().unwrap());
        check(&*store, &images);
        assert_eq!(store.layout().unwrap().codec, codec);
        store.bytes_on_disk().unwrap()
    });
    let [none, packed, scan, reference, lz4, zstd, small] = sizes;
    assert!(none > 40 * 64 * 64 * 2 && packed < none && scan <= none && reference < none);
    assert!(lz4 < none && zstd < packed && small <= zstd, "{sizes:?}");
    for compression in [Compression::Lzw, Compression::Deflate(6), Compression::Snappy] {
        let options = WriteOptions { compression, ..WriteOptions::default() };
        let error = write(&dir.path().join("no.lance"), &images, &options).unwrap_err().to_string();
        assert!(error.contains("lz4, zstd[:LEVEL]"), "{error}");
    }
}

#[test]
fn an_empty_set_and_a_large_image() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("empty.lance");
    write(&path, &[], &WriteOptions::default()).unwrap();
    let store = open(&path).unwrap();
    assert!(store.is_empty());
    assert!(read_image(&*store, 0).is_err());
    store.layout().unwrap();
    // More values than a page, and than a batch of this crate's reader.
    let images: Vec<_> = (0..3).map(|k| image(Shape([1, 3, 1, 1500, 1400]), PixelType::U16, k)).collect();
    let path = dir.path().join("large.lance");
    write(&path, &images, &WriteOptions::default()).unwrap();
    check(&*open(&path).unwrap(), &images);
}

#[test]
fn a_lancedb_folder_has_tables() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("set.lancedb");
    let some = |k| vec![image(Shape::plane(8, 9), PixelType::U8, k)];
    // A target with that ending becomes a folder with one table.
    write(&folder, &some(0), &WriteOptions::default()).unwrap();
    assert_eq!(wellread_store::registry::recognise(&folder).unwrap().name, "lance");
    check(&*open(&folder).unwrap(), &some(0));
    write(&folder.join("other.lance"), &some(1), &WriteOptions::default()).unwrap();
    std::fs::create_dir(folder.join("none.lance")).unwrap();
    let error = open(&folder).err().unwrap().to_string();
    assert!(
        error.contains("2 tables") && error.contains("choose one (table)") && error.contains("images, other"),
        "{error}"
    );
    for (name, k) in [("images", 0), ("other", 1), ("other.lance", 1)] {
        check(&*open_table(&folder, Some(name)).unwrap(), &some(k));
    }
    let error = open_table(&folder, Some("absent")).err().unwrap().to_string();
    assert!(error.contains("no table \"absent\"") && error.contains("images, other"), "{error}");
    let table = folder.join("other.lance");
    check(&*open_table(&table, Some("other")).unwrap(), &some(1));
    let error = open_table(&table, Some("images")).err().unwrap().to_string();
    assert!(error.contains("no table \"images\" in it"), "{error}");
}

#[test]
fn what_is_no_dataset_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (name, wanted) in
        [("absent.lance", "cannot open"), ("file.lance", "is a file"), ("empty.lance", "neither")]
    {
        let path = dir.path().join(name);
        match name {
            "file.lance" => std::fs::write(&path, b"LANC").unwrap(),
            "empty.lance" => std::fs::create_dir(&path).unwrap(),
            _ => {}
        }
        let error = open(&path).err().unwrap().to_string();
        assert!(error.contains(wanted) && error.contains(name), "{error}");
        assert!(!(wellread_lance::FORMAT.holds_images)(&path));
    }
}

#[test]
fn a_target_appears_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ünd %20 #?.lance");
    let images = [image(Shape::plane(20, 30), PixelType::U16, 1)];
    let entries = || std::fs::read_dir(dir.path()).unwrap().count();
    {
        let mut writer = (wellread_lance::FORMAT.create)(&path, &WriteOptions::default()).unwrap();
        let metadata = ImageMetadata::default();
        // Enough for several batches, so that Lance has begun to write.
        let (shape, dtype, pixels) = image(Shape::plane(1024, 1024), PixelType::U16, 2);
        for _ in 0..12 {
            writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &pixels }).unwrap();
        }
    }
    assert_eq!(entries(), 0);
    write(&path, &images, &WriteOptions::default()).unwrap();
    assert_eq!(entries(), 1);
    check(&*open(&path).unwrap(), &images);
    let error = write(&path, &images, &WriteOptions::default()).unwrap_err().to_string();
    assert!(error.contains("already exists") && error.contains("overwrite true"), "{error}");
    let others = [image(Shape::plane(20, 30), PixelType::U8, 5)];
    write(&path, &others, &WriteOptions { overwrite: true, ..WriteOptions::default() }).unwrap();
    check(&*open(&path).unwrap(), &others);
    assert_eq!(entries(), 1);
}

/// Many threads over one store: each gets its own pixels.
#[test]
fn threads_share_a_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.lance");
    let images: Vec<_> = (0..60).map(|k| image(Shape::plane(70, 50), PixelType::U16, k)).collect();
    write(&path, &images, &WriteOptions::default()).unwrap();
    let store = open(&path).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (store, images) = (&store, &images);
            scope.spawn(move || {
                for i in 0..100 {
                    let row = (i * 17 + thread * 5) % images.len();
                    assert!(read_image(&**store, row).unwrap().1 == images[row].2, "row {row}");
                }
            });
        }
    });
}
