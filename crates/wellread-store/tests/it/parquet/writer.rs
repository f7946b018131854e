//! Written sets: read back, bounded, and gone when they fail.

use super::made::to_bytes;
use super::open;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use std::path::PathBuf;
use std::sync::Arc;
use wellread_image::{Channel, ImageMetadata, PhysicalSize, PixelType, Shape};
use wellread_store::{Compression, ImageView, Store, Tune, WriteOptions, create, read_image};

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
        time_increment: None,
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
            let position = |row| store.row_hints(row).unwrap().position();
            assert!(position(1) > position(0));
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
    for i in 0..5000u16 {
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
    assert_eq!(store.len(), 5000);
    for row in [0, 4095, 4096, 4999] {
        let (info, pixels) = read_image(&store, row).unwrap();
        assert_eq!(info.dtype, PixelType::U16);
        assert_eq!(u16::from_le_bytes([pixels[2], pixels[3]]), (1 + row as u16) % 200);
        assert_eq!(store.name(row).unwrap(), format!("dark-{row}"));
    }
    assert!(
        store.layout().unwrap().pieces.contains("2 row groups of up to 4096 images"),
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

/// Those of another set at the same places would stand beside the images of this one.
#[test]
fn names_and_columns_of_a_file_that_is_written_to_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let paths = ["a.parquet", "b.parquet"].map(|name| dir.path().join(name));
    for (path, dose) in paths.iter().zip([1i64, 2]) {
        let doses: ArrayRef = Arc::new(Int64Array::from(vec![dose]));
        let features = Some(RecordBatch::try_from_iter([("dose", doses)]).unwrap());
        let options = WriteOptions { features, ..WriteOptions::default() };
        let (shape, metadata) = (Shape::plane(2, 2), ImageMetadata::named(format!("image {dose}")));
        let mut writer = create(path, "parquet", &options).unwrap();
        let image = ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &[1, 2, 3, 4] };
        writer.write(&image).unwrap();
        writer.finish().unwrap();
    }
    let store = open(&paths[0]);
    std::fs::copy(&paths[1], &paths[0]).unwrap();
    // Clocks of file systems may be coarse.
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(1);
    std::fs::File::options().write(true).open(&paths[0]).unwrap().set_modified(later).unwrap();
    let columns = wellread_store::features::all(&store).map(drop);
    for error in [store.metadata(0).map(drop), columns].map(Result::unwrap_err) {
        assert!(error.to_string().contains("was written to after it was opened"), "{error}");
    }
}

/// The library told it when all of the image was encoded, and not which one it is.
#[test]
fn an_image_that_no_page_holds_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let metadata = ImageMetadata::named("x");
    let shape = Shape::plane(1 << 15, 1 << 14);
    // Memory that nobody touches.
    let pixels = vec![0; shape.pixels()];
    let mut writer = create(dir.path().join("a.parquet"), "parquet", &WriteOptions::default()).unwrap();
    let image = ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels };
    let error = writer.write(&image).unwrap_err();
    assert!(error.row_index() == Some(0) && error.to_string().contains("2 GiB at most"), "{error}");
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
            .args(["parquet::writer::a_full_disk_is_an_error", "--exact", "--nocapture"])
            .env(CHILD, dir.path())
            .output()
            .unwrap();
        let said = [child.stdout, child.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        // A path that no test has runs none, which is no failure.
        assert!(child.status.success() && said.contains("1 passed"), "{said}");
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
