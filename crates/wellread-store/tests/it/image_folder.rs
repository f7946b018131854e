//! Image folders: colours and bits of PNG and JPEG, class folders, round trips, corrupt files.
//!
//! Long because pictures that no encoder writes are made here, chunk by chunk.

use image::{ColorType, DynamicImage, ImageBuffer, ImageFormat};
use proptest::prelude::*;
use std::path::Path;
use wellread_image::{ImageMetadata, PixelType, Region, Shape};
use wellread_store::image_folder::class_of;
use wellread_store::{
    Compression, ImageView, OpenOptions, Scratch, Store, WriteOptions, create, open, read_image, read_region,
};

pub fn open_at(path: &Path) -> Box<dyn Store> {
    open(path, &OpenOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// A picture whose every sample differs from its neighbours.
pub fn picture(color: ColorType, width: u32, height: u32) -> DynamicImage {
    let mut image = DynamicImage::new(width, height, color);
    let value = |x: u32, y: u32, c: usize| (x * 7 + y * 13 + c as u32 * 50) as u16;
    match &mut image {
        DynamicImage::ImageLuma8(b) => {
            b.enumerate_pixels_mut().for_each(|(x, y, p)| p.0 = [value(x, y, 0) as u8]);
        }
        DynamicImage::ImageLumaA8(b) => {
            b.enumerate_pixels_mut().for_each(|(x, y, p)| p.0 = [0, 1].map(|c| value(x, y, c) as u8));
        }
        DynamicImage::ImageRgb8(b) => {
            b.enumerate_pixels_mut().for_each(|(x, y, p)| p.0 = [0, 1, 2].map(|c| value(x, y, c) as u8));
        }
        DynamicImage::ImageRgba8(b) => {
            b.enumerate_pixels_mut().for_each(|(x, y, p)| p.0 = [0, 1, 2, 3].map(|c| value(x, y, c) as u8));
        }
        DynamicImage::ImageLuma16(b) => {
            b.enumerate_pixels_mut().for_each(|(x, y, p)| p.0 = [value(x, y, 0) * 257]);
        }
        DynamicImage::ImageLumaA16(b) => {
            b.enumerate_pixels_mut().for_each(|(x, y, p)| p.0 = [0, 1].map(|c| value(x, y, c) * 11));
        }
        DynamicImage::ImageRgb16(b) => {
            b.enumerate_pixels_mut().for_each(|(x, y, p)| p.0 = [0, 1, 2].map(|c| value(x, y, c) * 11));
        }
        DynamicImage::ImageRgba16(b) => {
            b.enumerate_pixels_mut().for_each(|(x, y, p)| p.0 = [0, 1, 2, 3].map(|c| value(x, y, c) * 11));
        }
        other => panic!("unexpected {other:?}"),
    }
    image
}

/// Sample of the decoded image `pixels` (native, planes) as a number.
fn sample(pixels: &[u8], shape: Shape, dtype: PixelType, c: usize, y: usize, x: usize) -> u16 {
    let i = (c * shape.y() + y) * shape.x() + x;
    match dtype {
        PixelType::U8 => pixels[i].into(),
        _ => u16::from_le_bytes([pixels[2 * i], pixels[2 * i + 1]]),
    }
}

#[test]
fn every_kind_of_png() {
    let dir = tempfile::tempdir().unwrap();
    let kinds = [
        (ColorType::L8, 1, PixelType::U8),
        (ColorType::La8, 2, PixelType::U8),
        (ColorType::Rgb8, 3, PixelType::U8),
        (ColorType::Rgba8, 4, PixelType::U8),
        (ColorType::L16, 1, PixelType::U16),
        (ColorType::La16, 2, PixelType::U16),
        (ColorType::Rgb16, 3, PixelType::U16),
        (ColorType::Rgba16, 4, PixelType::U16),
    ];
    for (i, (color, channels, dtype)) in kinds.into_iter().enumerate() {
        let file = dir.path().join(format!("{i}.png"));
        picture(color, 9, 5).save(&file).unwrap();
        let store = open_at(&file);
        let (info, pixels) = read_image(&*store, 0).unwrap();
        assert_eq!((info.shape, info.dtype), (Shape([1, channels, 1, 5, 9]), dtype));
        for (c, y, x) in [(0, 0, 0), (channels - 1, 4, 8), (0, 3, 2), (channels / 2, 1, 7)] {
            let value = (x * 7 + y * 13 + c * 50) as u16;
            let factor = match color {
                ColorType::L16 => 257,
                ColorType::La16 | ColorType::Rgb16 | ColorType::Rgba16 => 11,
                _ => 1,
            };
            let mut expected = value * factor;
            if dtype == PixelType::U8 {
                expected &= 0xff;
            }
            assert_eq!(sample(&pixels, info.shape, dtype, c, y, x), expected, "{color:?} {c} {y} {x}");
        }
        let names: Vec<_> = store.metadata(0).unwrap().channels.into_iter().map(|c| c.name).collect();
        let expected: &[&str] = match channels {
            1 => &[],
            2 => &["Grey", "Alpha"],
            3 => &["Red", "Green", "Blue"],
            _ => &["Red", "Green", "Blue", "Alpha"],
        };
        assert_eq!(names, expected);
        let region = Region { start: [0, channels - 1, 0, 2, 3], size: [1, 1, 1, 2, 4] };
        let mut part = vec![];
        read_region(&*store, 0, &region, &mut Scratch::default(), &mut part).unwrap();
        let first = sample(&pixels, info.shape, dtype, channels - 1, 2, 3);
        assert_eq!(sample(&part, Shape::plane(2, 4), dtype, 0, 0, 0), first);
    }
    let store = open_at(dir.path());
    assert_eq!((store.format(), store.len()), ("image-folder", 8));
    assert_eq!(store.name(3).unwrap(), "3");
    assert_eq!(store.files().unwrap().len(), 8);
    assert_eq!(store.files_of(&[5, 3, 5]).unwrap().len(), 2);
    assert!(store.files_of(&[8]).is_err());
}

/// A PNG of the given chunks.
fn png(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in chunks {
        png.extend((data.len() as u32).to_be_bytes());
        let body = [kind.as_slice(), data].concat();
        png.extend(&body);
        png.extend(libdeflater::crc32(&body).to_be_bytes());
    }
    png
}

fn zlib(level: i32, data: &[u8]) -> Vec<u8> {
    let mut packed = vec![0; data.len() + 64];
    let level = libdeflater::CompressionLvl::new(level).unwrap();
    let n = libdeflater::Compressor::new(level).zlib_compress(data, &mut packed).unwrap();
    packed[..n].to_vec()
}

/// The message of a failing read of a file with these bytes.
fn failure(name: &str, bytes: &[u8]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(name);
    std::fs::write(&file, bytes).unwrap();
    match open(&file, &OpenOptions::default()).and_then(|store| read_image(&*store, 0)) {
        Ok((info, _)) => panic!("reading succeeded: {info:?}"),
        Err(e) => e.to_string(),
    }
}

/// Damage that nothing but a checksum tells.
#[test]
fn checksums_of_png_are_checked() {
    let header = (b"IHDR", &[0, 0, 0, 4, 0, 0, 0, 2, 8, 0, 0, 0, 0][..]);
    // Stored, so that any change of a pixel still decompresses.
    let good = zlib(0, &[0, 1, 2, 3, 4, 0, 5, 6, 7, 8]);
    let file = |data: &[u8]| png(&[header, (b"tRNS", &[0, 200]), (b"IDAT", data), (b"IEND", &[])]);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.png");
    std::fs::write(&path, file(&good)).unwrap();
    assert_eq!(read_image(&*open_at(&path), 0).unwrap().1[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
    for at in [8, 11, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(failure("a.png", &file(&bad)).contains("corrupt"), "byte {at}");
    }
    // Which grey is transparent, of a chunk that is not critical.
    let mut bad = file(&good);
    let at = bad.windows(4).position(|w| w == b"tRNS").unwrap();
    bad[at + 5] ^= 1;
    assert!(failure("a.png", &bad).contains("corrupt"));
}

/// JPEG has no checksums: it can only be told that the data of a scan are none. A scan that is cut short and
/// closed again by an end-of-image marker cannot be told from a good one by any decoder.
#[test]
fn damaged_scans_of_jpeg_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jpg");
    picture(ColorType::Rgb8, 64, 64).save(&path).unwrap();
    let good = std::fs::read(&path).unwrap();
    let scan = good.windows(2).position(|w| w == [0xff, 0xda]).unwrap() + 14;
    let middle = usize::midpoint(scan, good.len());
    for marker in [0xc0, 0xc4, 0xda, 0x3f] {
        let mut bad = good.clone();
        bad.splice(middle..middle, [0xff, marker]);
        assert!(failure("a.jpg", &bad).contains("corrupt"), "marker {marker:x}");
    }
}

/// Phones keep a film behind a photograph, whose bytes may look like the start of a scan.
#[test]
fn what_lies_behind_a_jpeg_is_no_part_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jpg");
    picture(ColorType::Rgb8, 64, 64).save(&path).unwrap();
    let good = std::fs::read(&path).unwrap();
    let expected = read_image(&*open_at(&path), 0).unwrap();
    let film = [0, 0, 0, 8, 0xff, 0xda, 1, 2, 3];
    std::fs::write(&path, [&good[..], &film].concat()).unwrap();
    assert_eq!(read_image(&*open_at(&path), 0).unwrap(), expected);
    // Without its end it is cut off all the same.
    assert!(failure("a.jpg", &[&good[..good.len() - 2], &film].concat()).contains("corrupt"));
}

/// A JPEG of one block of 8 x 8 pixels in four colours, each of one value; with Adobe's marker where `transform` says how.
fn jpeg_of_inks(inks: [u8; 4], transform: Option<u8>) -> Vec<u8> {
    let segment = |marker: u8, body: &[u8]| {
        let length = (body.len() as u16 + 2).to_be_bytes();
        [&[0xff, marker][..], &length, body].concat()
    };
    // Quotient 8: the difference of a block is that of its pixels from 128.
    let quotients = [&[0][..], &[8; 64]].concat();
    // Nine codes of 4 bits for the lengths 0 to 8, and one of 1 bit that ends a block.
    let dc = [&[0, 0, 0, 0, 9][..], &[0; 12], &[0, 1, 2, 3, 4, 5, 6, 7, 8]].concat();
    let ac = [&[0x10, 1][..], &[0; 15], &[0]].concat();
    let mut bits = String::new();
    for ink in inks {
        let difference = i32::from(ink) - 128;
        let length = (32 - difference.unsigned_abs().leading_zeros()) as usize;
        let value = if difference < 0 { difference + (1 << length) - 1 } else { difference };
        bits += &format!("{length:04b}");
        if length > 0 {
            bits += &format!("{value:0length$b}");
        }
        bits += "0";
    }
    while !bits.len().is_multiple_of(8) {
        bits += "1";
    }
    let scan = (0..bits.len()).step_by(8).map(|at| u8::from_str_radix(&bits[at..at + 8], 2).unwrap());
    // A byte of ones is no marker when a zero follows.
    let scan: Vec<u8> = scan.flat_map(|byte| if byte == 0xff { vec![byte, 0] } else { vec![byte] }).collect();
    let adobe = transform.map(|t| segment(0xee, &[&b"Adobe"[..], &[0, 100, 0, 0, 0, 0, t]].concat()));
    [
        vec![0xff, 0xd8],
        adobe.unwrap_or_default(),
        segment(0xdb, &quotients),
        segment(0xc0, &[8, 0, 8, 0, 8, 4, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0, 4, 0x11, 0]),
        segment(0xc4, &dc),
        segment(0xc4, &ac),
        segment(0xda, &[4, 1, 0, 2, 0, 3, 0, 4, 0, 0, 63, 0]),
        scan,
        vec![0xff, 0xd9],
    ]
    .concat()
}

/// Values of Pillow 13.0: `Image.open(file).convert("RGB").getpixel((0, 0))`; `tests/python/test_image_folders.py` has it
/// make whole pictures.
#[test]
fn four_inks_become_colours_as_in_pillow() {
    let dir = tempfile::tempdir().unwrap();
    let cases = [
        ([10, 200, 90, 128], None, [5, 100, 45]),
        ([10, 200, 90, 128], Some(0), [5, 100, 45]),
        ([255, 255, 255, 255], Some(0), [255, 255, 255]),
        ([200, 128, 128, 100], Some(2), [22, 22, 22]),
        ([60, 90, 200, 255], Some(2), [94, 233, 255]),
    ];
    for (at, (inks, transform, expected)) in cases.into_iter().enumerate() {
        let file = dir.path().join(format!("{at}.jpg"));
        std::fs::write(&file, jpeg_of_inks(inks, transform)).unwrap();
        let (info, pixels) = read_image(&*open_at(&file), 0).unwrap();
        assert_eq!((info.shape, info.dtype), (Shape([1, 3, 1, 8, 8]), PixelType::U8));
        for (plane, value) in pixels.chunks(64).zip(expected) {
            assert_eq!(plane, [value; 64], "{inks:?} {transform:?}");
        }
    }
    let mut cut = jpeg_of_inks([10, 200, 90, 128], None);
    cut.truncate(cut.len() - 2);
    assert!(failure("a.jpg", &cut).contains("corrupt"));
}

/// A PNG with a palette and few bits, which the `image` crate cannot write.
#[test]
fn palette_becomes_rgb() {
    // Two rows of four 2-bit pixels: 0 1 2 3 and 3 2 1 0.
    let png = png(&[
        (b"IHDR", &[0, 0, 0, 4, 0, 0, 0, 2, 2, 3, 0, 0, 0]),
        (b"PLTE", &[0, 0, 0, 10, 20, 30, 40, 50, 60, 70, 80, 90]),
        (b"IDAT", &zlib(6, &[0, 0b0001_1011, 0, 0b1110_0100])),
        (b"IEND", &[]),
    ]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("p.png");
    std::fs::write(&file, png).unwrap();
    let (info, pixels) = read_image(&*open_at(&file), 0).unwrap();
    assert_eq!(info.shape, Shape([1, 3, 1, 2, 4]));
    assert_eq!(pixels[..8], [0, 10, 40, 70, 70, 40, 10, 0]);
    assert_eq!(pixels[16..], [0, 30, 60, 90, 90, 60, 30, 0]);
}

#[test]
fn jpeg_in_class_folders() {
    let dir = tempfile::tempdir().unwrap();
    for (class, stem) in [("n02", "b"), ("n01", "z"), ("n02", "a")] {
        std::fs::create_dir_all(dir.path().join(class)).unwrap();
        let file = dir.path().join(class).join(format!("{stem}.JPEG"));
        picture(ColorType::Rgb8, 16, 16).save_with_format(file, ImageFormat::Jpeg).unwrap();
    }
    let store = open_at(dir.path());
    let names: Vec<_> = (0..3).map(|row| store.name(row).unwrap()).collect();
    assert_eq!(names, ["n01/z", "n02/a", "n02/b"]);
    assert_eq!(names.iter().map(|n| class_of(n).unwrap()).collect::<Vec<_>>(), ["n01", "n02", "n02"]);
    assert_eq!(store.metadata(0).unwrap().id, "n01/z");
    assert!(store.layout().unwrap().variant.contains("2 class folders"));
    let (info, pixels) = read_image(&*store, 1).unwrap();
    assert_eq!(info.shape, Shape([1, 3, 1, 16, 16]));
    // Lossy, but near what was drawn.
    assert!(pixels[0] < 40 && (20..90).contains(&pixels[256]), "{} {}", pixels[0], pixels[256]);
    let grey = dir.path().join("grey.jpg");
    picture(ColorType::L8, 20, 10).save(&grey).unwrap();
    assert_eq!(open_at(&grey).row_info(0).unwrap().shape, Shape::plane(10, 20));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Written pictures are read back.
    #[test]
    fn written_pictures_read_back(
        (height, width) in (1usize..40, 1usize..40),
        (colour, wide) in any::<(bool, bool)>(),
        compression in proptest::sample::select(vec![
            Compression::Default, Compression::None, Compression::Deflate(3)]),
        seed in any::<u64>(),
    ) {
        let shape = Shape([1, if colour { 3 } else { 1 }, 1, height, width]);
        let dtype = if wide { PixelType::U16 } else { PixelType::U8 };
        let pixels = crate::ome_zarr::pattern(shape, dtype, seed);
        let dir = tempfile::tempdir().unwrap();
        let options = WriteOptions { compression, ..WriteOptions::default() };
        let mut writer = create(dir.path().join("set"), "image-folder", &options).unwrap();
        for name in ["cat/1", "dog/1", "plain"] {
            let metadata = ImageMetadata::named(name);
            writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &pixels }).unwrap();
        }
        writer.finish().unwrap();
        let store = open_at(&dir.path().join("set"));
        prop_assert_eq!(store.len(), 3);
        for (row, name) in ["cat/1", "dog/1", "plain"].iter().enumerate() {
            prop_assert_eq!(store.name(row).unwrap(), *name);
            let (info, read) = read_image(&*store, row).unwrap();
            prop_assert_eq!((info.shape, info.dtype), (shape, dtype));
            prop_assert!(read == pixels);
        }
    }
}

#[test]
fn writer_refuses_what_png_cannot_hold() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("set");
    let metadata = ImageMetadata::named("a");
    let pixels = vec![0; 64];
    for (shape, dtype, says) in [
        (Shape([2, 1, 1, 4, 4]), PixelType::U8, "T or Z"),
        (Shape([1, 1, 2, 4, 4]), PixelType::U8, "T or Z"),
        (Shape([1, 2, 1, 4, 4]), PixelType::U8, "1 channel"),
        (Shape::plane(4, 4), PixelType::F32, "not float32"),
    ] {
        let mut writer = create(&target, "image-folder", &WriteOptions::default()).unwrap();
        let pixels = &pixels[..shape.pixels() * dtype.size()];
        let image = ImageView { metadata: &metadata, shape, dtype, pixels };
        let error = writer.write(&image).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("ome-zarr"), "{error}");
    }
    let lz4 = WriteOptions { compression: Compression::Lz4, ..WriteOptions::default() };
    assert!(create(&target, "image-folder", &lz4).err().unwrap().to_string().contains("deflate"));
    let empty = create(&target, "image-folder", &WriteOptions::default()).unwrap();
    assert!(empty.finish().unwrap_err().to_string().contains("no image"));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing half-written is left");
    let one = dir.path().join("one.png");
    let mut writer = create(&one, "image-folder", &WriteOptions::default()).unwrap();
    let image =
        ImageView { metadata: &metadata, shape: Shape::plane(8, 8), dtype: PixelType::U8, pixels: &pixels };
    writer.write(&image).unwrap();
    assert!(writer.write(&image).unwrap_err().to_string().contains("one image"));
    writer.finish().unwrap();
    assert_eq!(open_at(&one).name(0).unwrap(), "a");
}

#[test]
fn truncation_and_bit_flips_never_panic() {
    let dir = tempfile::tempdir().unwrap();
    for (name, color) in [("a.png", ColorType::Rgb16), ("b.png", ColorType::L8), ("c.jpg", ColorType::Rgb8)] {
        let file = dir.path().join(name);
        picture(color, 33, 21).save(&file).unwrap();
        let good = std::fs::read(&file).unwrap();
        let read = || -> Result<usize, String> {
            let store = open(&file, &OpenOptions::default()).map_err(|e| e.to_string())?;
            let (info, pixels) = read_image(&*store, 0).map_err(|e| e.to_string())?;
            assert_eq!(pixels.len(), info.shape.pixels() * info.dtype.size());
            Ok(pixels.len())
        };
        // The last bytes of a PNG are its IEND chunk, which nobody needs.
        let needed = if name.ends_with("png") { good.len() - 13 } else { good.len() - 1 };
        for cut in (0..needed).step_by(1 + needed / 200) {
            std::fs::write(&file, &good[..cut]).unwrap();
            let error = read().expect_err("a truncated picture must not be read");
            assert!(error.contains(name), "{error}");
            if cut >= 8 {
                assert!(error.contains("row 0") && error.contains("hint"), "{error}");
            }
        }
        for at in (0..good.len()).step_by(1 + good.len() / 300) {
            for bit in [0, 4, 7] {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                std::fs::write(&file, &bad).unwrap();
                let _ = read();
            }
        }
    }
}

#[test]
fn absurd_headers_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.png");
    picture(ColorType::L8, 9, 9).save(&file).unwrap();
    let mut png = std::fs::read(&file).unwrap();
    for (width, height) in [(60_000u32, 60_000u32), (0x7fff_ffff, 0x7fff_ffff), (0, 9)] {
        png[16..20].copy_from_slice(&width.to_be_bytes());
        png[20..24].copy_from_slice(&height.to_be_bytes());
        let crc = libdeflater::crc32(&png[12..29]);
        png[29..33].copy_from_slice(&crc.to_be_bytes());
        std::fs::write(&file, &png).unwrap();
        let error = open_at(&file).row_info(0).unwrap_err();
        assert_eq!(error.row_index(), Some(0), "{error}");
    }
    let jpeg = dir.path().join("a.jpg");
    picture(ColorType::L8, 9, 9).save(&jpeg).unwrap();
    let mut bytes = std::fs::read(&jpeg).unwrap();
    let frame = bytes.windows(2).position(|w| w == [0xff, 0xc0]).unwrap();
    bytes[frame + 5..frame + 9].fill(0xff);
    std::fs::write(&jpeg, &bytes).unwrap();
    let error = open_at(&jpeg).row_info(0).unwrap_err().to_string();
    assert!(error.contains("65535 x 65535"), "{error}");
}

#[test]
fn folders_that_are_none() {
    let dir = tempfile::tempdir().unwrap();
    let forced = OpenOptions { format: Some("image-folder".into()), ..OpenOptions::default() };
    let error = open(dir.path(), &forced).err().unwrap().to_string();
    assert!(error.contains("no PNG or JPEG"), "{error}");
    ImageBuffer::<image::Luma<u8>, _>::new(3, 3).save(dir.path().join("a.png")).unwrap();
    assert_eq!(open_at(dir.path()).len(), 1);
    std::fs::write(dir.path().join("b.tif"), b"").unwrap();
    assert!(open(dir.path(), &OpenOptions::default()).is_err(), "a mixed folder is refused");
    let format = wellread_store::registry::format_named("image-folder").unwrap();
    let error = (format.open)(dir.path(), &OpenOptions::default()).err().unwrap().to_string();
    assert!(error.contains("a.png") && error.contains("b.tif"), "{error}");
    assert_eq!(open(dir.path(), &forced).unwrap().len(), 1);
    std::fs::remove_file(dir.path().join("b.tif")).unwrap();
    std::fs::write(dir.path().join("c.png"), b"no picture").unwrap();
    let error = open_at(dir.path()).row_info(1).unwrap_err().to_string();
    assert!(error.contains("c.png") && error.contains("row 1") && error.contains("neither PNG"), "{error}");
}
