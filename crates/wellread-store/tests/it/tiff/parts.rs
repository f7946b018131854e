//! Parts of images: which bytes are read for them, what stores say of their pieces, maps of files that stay open.

use super::{cut, folder, open};
use std::path::{Path, PathBuf};
use wellread_image::{ImageMetadata, PixelType, Region, Shape};
use wellread_store::place::bytes_read;
use wellread_store::{Compression, ImageView, Scratch, WriteOptions, create, read_image, read_region};

/// Rows and columns of the image, and bytes of a row.
const HEIGHT: usize = 300;
const WIDTH: usize = 400;
const ROW: usize = WIDTH * 2;

/// Pixels that differ from their neighbours.
fn pixels() -> Vec<u8> {
    (0..HEIGHT * WIDTH).flat_map(|i| ((i * 7919 % 65_521) as u16).to_le_bytes()).collect()
}

/// One image in a folder of its own.
fn written(dir: &Path, name: &str, options: &WriteOptions) -> PathBuf {
    let path = dir.join(name);
    let mut writer = create(&path, "tiff", options).unwrap();
    let (metadata, pixels) = (ImageMetadata::named("a"), pixels());
    let shape = Shape::plane(HEIGHT, WIDTH);
    writer.write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U16, pixels: &pixels }).unwrap();
    writer.finish().unwrap();
    path
}

/// As a microscope writes it.
fn bare() -> WriteOptions {
    WriteOptions { variant: Some("bare".into()), checksums: false, ..WriteOptions::default() }
}

fn part(y: usize, x: usize, height: usize, width: usize) -> Region {
    Region { start: [0, 0, 0, y, x], size: [1, 1, 1, height, width] }
}

#[test]
fn pieces_are_rows_where_rows_are_read_alone() {
    let dir = folder();
    let grid = |name: &str, options: &WriteOptions| {
        let store = open(written(dir.path(), name, options)).unwrap();
        store.row_hints(0).unwrap().grid()
    };
    assert_eq!(grid("bare", &bare()), Some([1, WIDTH]));
    // Strips that are checked, unpacked, or tiles are read whole.
    let strips = WriteOptions { chunk: Some([1, 1, 1, 50, 0]), ..WriteOptions::default() };
    assert_eq!(grid("checked", &strips), Some([50, WIDTH]));
    let packed = WriteOptions { compression: Compression::Zstd(1), checksums: false, ..strips };
    assert_eq!(grid("packed", &packed), Some([50, WIDTH]));
    let tiles = WriteOptions { chunk: Some([1, 1, 1, 32, 64]), ..bare() };
    assert_eq!(grid("tiles", &tiles), Some([32, 64]));
}

#[test]
fn bare_files_are_planes_and_nothing_else() {
    let dir = folder();
    let path = written(dir.path(), "a.tif", &bare());
    let store = open(&path).unwrap();
    assert_eq!((store.name(0).unwrap(), store.has_checksums()), ("a".to_owned(), false));
    assert_eq!(store.layout().unwrap().variant, "TIFF");
    let (info, got) = read_image(&*store, 0).unwrap();
    assert_eq!((info.shape, info.dtype), (Shape::plane(HEIGHT, WIDTH), PixelType::U16));
    assert!(got == pixels());
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(8).any(|part| part == b"{\"shape\"" || part == b"<OME xml"));
    // Facts that they cannot tell are not written.
    let metadata = ImageMetadata::named("b");
    let stack = Shape([1, 1, 2, 3, 4]);
    let view = ImageView { metadata: &metadata, shape: stack, dtype: PixelType::U8, pixels: &[5; 24] };
    let mut writer = create(dir.path().join("stack"), "tiff", &bare()).unwrap();
    assert!(writer.write(&view).unwrap_err().to_string().contains("holds one plane"));
    let view = ImageView { shape: Shape::plane(4, 6), ..view };
    let mut writer = create(dir.path().join("two.tif"), "tiff", &bare()).unwrap();
    writer.write(&view).unwrap();
    assert!(writer.write(&view).unwrap_err().to_string().contains("holds one plane"));
}

/// Crops are the same before and after the file is mapped, and so is what counts as read: the rows that they are in.
#[test]
fn crops_of_rows_that_are_read_again_and_again() {
    let dir = folder();
    let whole = pixels();
    let path = written(dir.path(), "set", &bare());
    let store = open(&path).unwrap();
    let (mut scratch, mut out) = (Scratch::default(), vec![]);
    let mut crop = |region: &Region| {
        let before = bytes_read();
        read_region(&*store, 0, region, &mut scratch, &mut out).unwrap();
        assert!(out == cut(&whole, Shape::plane(HEIGHT, WIDTH), 2, region), "{region:?}");
        (bytes_read() - before) as usize
    };
    // The file's directory is read with the first.
    crop(&part(0, 0, 1, 1));
    for i in 0..40 {
        let region = part(i * 37 % (HEIGHT - 64), i * 61 % (WIDTH - 64), 64, 64);
        assert_eq!(crop(&region), 64 * ROW, "{i}");
    }
    // Parts of other shapes, then all of it.
    for region in [part(7, 3, 2, 5), part(10, 0, 100, WIDTH), part(0, 1, HEIGHT, 399), part(299, 399, 1, 1)] {
        assert_eq!(crop(&region), region.size[3] * ROW);
    }
    assert_eq!(crop(&part(0, 0, HEIGHT, WIDTH)), HEIGHT * ROW);
}

/// A file that is shortened while it is open is an error, and never a signal or zeros, mapped or not.
#[test]
fn files_that_are_shortened() {
    for times in [1, 40] {
        let dir = folder();
        let path = written(dir.path(), "set", &bare());
        let whole = pixels();
        let file = path.join("a.tiff");
        let store = open(&path).unwrap();
        let (mut scratch, mut out) = (Scratch::default(), vec![]);
        let mut crop = |region: &Region| {
            read_region(&*store, 0, region, &mut scratch, &mut out)
                .map(|_| out == cut(&whole, Shape::plane(HEIGHT, WIDTH), 2, region))
        };
        let [top, bottom] = [part(4, 8, 64, 64), part(230, 8, 64, 64)];
        for _ in 0..times {
            assert!(crop(&bottom).unwrap());
        }
        // Within the page of the crop's last rows; then pages before it.
        let shortened = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
        for rows in [292, 100] {
            shortened.set_len((rows * ROW) as u64).unwrap();
            for _ in 0..2 {
                let error = crop(&bottom).unwrap_err().to_string();
                assert!(error.contains(&*file.to_string_lossy()), "{error}");
            }
            let error = crop(&top).unwrap_err().to_string();
            assert!(error.contains("was written to after it was opened"), "{error}");
        }
    }
}
