//! Pixels of types that images do not have: `int64`, `uint64` and `float16`.

use super::builder::{Page, tiff};
use super::{check_regions, failure, folder, only_image, open_bytes};
use flate2::{Compression, write::ZlibEncoder};
use std::io::Write as _;
use std::slice::from_ref;
use wellread_image::{PixelType, Region, Shape};
use wellread_store::{Scratch, read_region};

const WIDTH: usize = 5;
const HEIGHT: usize = 4;

/// Labels of some planes, of either sign.
fn labels(planes: usize) -> Vec<i64> {
    (0..(planes * WIDTH * HEIGHT) as i64).map(|i| i * i * 100_003 - 7).collect()
}

fn bytes(little: bool, values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|v| if little { v.to_le_bytes() } else { v.to_be_bytes() }).collect()
}

/// The same numbers as `int32`.
fn narrow(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|&v| i32::try_from(v).unwrap().to_le_bytes()).collect()
}

/// A page of 5 x 4 signed pixels of 64 bits.
fn page(strips: &[&[u8]]) -> Page {
    Page::grey(WIDTH as u64, HEIGHT as u64, 64, strips).with(339, &[2])
}

/// The page with its strips or tiles compressed by Deflate.
fn deflated(page: &Page) -> Page {
    let mut page = page.clone().with(259, &[8]);
    for segment in &mut page.segments {
        let mut encoder = ZlibEncoder::new(vec![], Compression::fast());
        encoder.write_all(segment).unwrap();
        *segment = encoder.finish().unwrap();
    }
    page
}

/// The values in one tile of 16 x 16, filled up with `rest`.
fn tile(little: bool, values: &[i64], rest: i64) -> Page {
    let mut all = vec![rest; 256];
    for (y, row) in values.chunks(WIDTH).enumerate() {
        all[y * 16..][..WIDTH].copy_from_slice(row);
    }
    Page { tiled: true, ..page(&[&bytes(little, &all)]).with(322, &[16]).with(323, &[16]) }
}

#[test]
fn labels_of_64_bits_are_read_as_32() {
    let dir = folder();
    let values = labels(1);
    let expected = (Shape::plane(HEIGHT, WIDTH), PixelType::I32, narrow(&values));
    for little in [true, false] {
        let stored = bytes(little, &values);
        let plain = page(&[&stored]);
        let strips = page(&[&stored[..80], &stored[80..]]).with(278, &[2]);
        let jutting = tile(little, &values, i64::MAX);
        let differences: Vec<i64> = values
            .chunks(WIDTH)
            .flat_map(|row| (0..WIDTH).map(|x| row[x] - if x > 0 { row[x - 1] } else { 0 }))
            .collect();
        let predicted = page(&[&bytes(little, &differences)]).with(317, &[2]);
        for (what, page) in [
            ("deflate", deflated(&plain)),
            ("deflate in strips", deflated(&strips)),
            ("deflate in a tile", deflated(&jutting)),
            ("predictor", deflated(&predicted)),
            ("one strip", plain),
            ("strips", strips),
            ("a tile", jutting),
        ] {
            let file = tiff(little, &[page]);
            assert_eq!(only_image(dir.path(), &file), expected, "{what}, little: {little}");
            let store = open_bytes(dir.path(), &file).unwrap();
            check_regions(&*store);
            assert!(store.layout().unwrap().variant.ends_with("pixels stored as int64"));
        }
    }
}

#[test]
fn unsigned_labels_keep_the_sign_bit() {
    let dir = folder();
    let values = [0, 1, u64::from(u32::MAX), 1 << 31];
    let file = tiff(true, &[Page::grey(2, 2, 64, &[&values.map(u64::to_le_bytes).concat()])]);
    let pixels = values.map(|v| (v as u32).to_le_bytes()).concat();
    assert_eq!(only_image(dir.path(), &file), (Shape::plane(2, 2), PixelType::U32, pixels));
    let file = tiff(true, &[Page::grey(1, 1, 64, &[&(1_u64 << 32).to_le_bytes()])]);
    let error = failure(dir.path(), &file);
    assert!(error.contains("the pixel value 4294967296 does not fit uint32"), "{error}");
}

#[test]
fn planes_and_channels_of_64_bits() {
    let dir = folder();
    // Planes that follow each other without directories are read together.
    let values = labels(3);
    let stack = page(&[&bytes(true, &values)]).describe("ImageJ=1.53t\nimages=3\nslices=3\n");
    let file = tiff(true, &[stack]);
    let shape = Shape([1, 1, 3, HEIGHT, WIDTH]);
    assert_eq!(only_image(dir.path(), &file), (shape, PixelType::I32, narrow(&values)));
    check_regions(&*open_bytes(dir.path(), &file).unwrap());
    // Channels side by side.
    let plane = WIDTH * HEIGHT;
    let mixed: Vec<i64> = (0..plane).flat_map(|i| [values[i], values[plane + i]]).collect();
    let chunky = page(&[&bytes(false, &mixed)]).with(258, &[64, 64]).with(277, &[2]).with(339, &[2, 2]);
    let file = tiff(false, from_ref(&chunky));
    let shape = Shape([1, 2, 1, HEIGHT, WIDTH]);
    assert_eq!(only_image(dir.path(), &file), (shape, PixelType::I32, narrow(&values[..2 * plane])));
    check_regions(&*open_bytes(dir.path(), &file).unwrap());
}

#[test]
fn a_label_beyond_32_bits_is_an_error_where_it_is_read() {
    let dir = folder();
    let mut values = labels(1);
    values[WIDTH + 3] = 1 << 40;
    let plain = page(&[&bytes(true, &values)]);
    for page in [deflated(&plain), plain, tile(true, &values, 0)] {
        let file = tiff(true, &[page]);
        let error = failure(dir.path(), &file);
        for part in
            ["file.tif", "row 0", "the pixel value 1099511627776 does not fit int32", "relabel_sequential"]
        {
            assert!(error.contains(part), "{error}");
        }
        let store = open_bytes(dir.path(), &file).unwrap();
        let (mut scratch, mut pixels) = (Scratch::default(), vec![]);
        let mut read = |region: &Region| {
            read_region(&*store, 0, region, &mut scratch, &mut pixels).map(|_| pixels.clone())
        };
        let mut region = Region { start: [0; 5], size: [1, 1, 1, HEIGHT, 3] };
        let left: Vec<i64> = values.chunks(WIDTH).flat_map(|row| row[..3].to_vec()).collect();
        assert_eq!(read(&region).unwrap(), narrow(&left));
        region.size[4] = 4;
        assert!(read(&region).unwrap_err().is_unsupported());
    }
}

#[test]
fn halves_are_read_as_singles() {
    let dir = folder();
    // 1.0, -2.0, 65504 and the smallest number above 0.
    let halves = [0x3c00_u16, 0xc000, 0x7bff, 1];
    let singles = [1.0, -2.0, 65504.0, 2_f32.powi(-24)].map(f32::to_le_bytes).concat();
    let expected = (Shape::plane(1, 4), PixelType::F32, singles);
    let page = |stored: &[u8]| Page::grey(4, 1, 16, &[stored]).with(339, &[3]);
    for little in [true, false] {
        let order = |v: u16| if little { v.to_le_bytes() } else { v.to_be_bytes() };
        let plain = page(&halves.map(order).concat());
        let differences = [0x3c00, 0xc000_u16.wrapping_sub(0x3c00), 0x7bff_u16.wrapping_sub(0xc000), 0x8402];
        let horizontal = page(&differences.map(order).concat()).with(317, &[2]);
        // High bytes 3c c0 7b 00, then low bytes 00 00 ff 01, each less the one before.
        let float = page(&[0x3c, 0x84, 0xbb, 0x85, 0x00, 0x00, 0xff, 0x02]).with(317, &[3]);
        for page in [plain.clone(), deflated(&plain), deflated(&horizontal), deflated(&float)] {
            assert_eq!(only_image(dir.path(), &tiff(little, &[page])), expected, "little: {little}");
        }
    }
}

#[test]
fn strips_that_were_never_written_are_of_the_stored_type() {
    let dir = folder();
    let first = [5_i64, -6].map(i64::to_le_bytes).concat();
    let page = Page::grey(2, 2, 64, &[&first, &[]]).with(339, &[2]).with(278, &[1]);
    let mut nodata = page.clone();
    nodata.tags.push((42113, 2, b"-9999\0".iter().map(|&b| u64::from(b)).collect()));
    for (page, rest) in [(page, 0), (nodata, -9999)] {
        let (_, dtype, pixels) = only_image(dir.path(), &tiff(true, &[page]));
        assert_eq!((dtype, pixels), (PixelType::I32, [5, -6, rest, rest].map(i32::to_le_bytes).concat()));
    }
}
