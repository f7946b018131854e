//! A few rows of long LZW strips, which are entered where a decoder can start: see `tiff::restarts`.

#[path = "../../../src/tiff/lzw/tests/packed_codes.rs"]
mod packed_codes;

use super::builder::{Page, tiff};
use super::{folder, open};
use packed_codes::Codes;
use std::collections::HashMap;
use std::path::Path;
use wellread_image::Region;
use wellread_store::{Scratch, Store, read_image, read_region};

const WIDTH: usize = 500;
const HEIGHT: usize = 500;
const ROW: usize = 2 * WIDTH;
/// Where the builder puts the first strip.
const STRIP_AT: usize = 8;

/// LZW as TIFF has it, with a clear code after so many others, if at all: a table that is full stays as it is.
fn lzw(data: &[u8], clear_after: usize) -> Vec<u8> {
    let mut stored = Codes::default();
    let mut table: HashMap<(usize, u8), usize> = HashMap::new();
    let (mut width, mut codes) = (9, 0);
    stored.push(256, width);
    let mut string = usize::from(data[0]);
    for &byte in &data[1..] {
        if let Some(&longer) = table.get(&(string, byte)) {
            string = longer;
            continue;
        }
        stored.push(string, width);
        if codes + 258 < 4096 {
            table.insert((string, byte), codes + 258);
        }
        if codes + 259 >= 1 << width && width < 12 {
            width += 1;
        }
        codes += 1;
        string = usize::from(byte);
        if codes == clear_after {
            stored.push(256, width);
            table.clear();
            (width, codes) = (9, 0);
        }
    }
    stored.push(string, width);
    // The width of what follows is that after the last code.
    if codes + 259 >= 1 << width && width < 12 {
        width += 1;
    }
    stored.push(257, width);
    stored.push(0, 7);
    stored.packed
}

/// Little-endian pixels like a camera's, with a flat part in which strings are long.
fn image(seed: u32) -> Vec<u8> {
    let pixel = |i: usize| {
        let noise =
            (i as u32).wrapping_mul(2_654_435_761).wrapping_add(seed).rotate_left(13).wrapping_mul(40_503)
                >> 16;
        let flat = (i / WIDTH) % 100 > 80;
        if flat { 300 } else { 200 + (i % WIDTH) as u16 / 8 + noise as u16 % 37 }
    };
    (0..WIDTH * HEIGHT).flat_map(|i| pixel(i).to_le_bytes()).collect()
}

/// A file of one strip, which has these pixels.
fn file(pixels: &[u8], clear_after: usize, little: bool, predictor: bool) -> Vec<u8> {
    let mut stored = vec![];
    for row in pixels.chunks(ROW) {
        let mut left = 0;
        for pixel in row.chunks(2) {
            let value = u16::from_le_bytes([pixel[0], pixel[1]]);
            let kept = if predictor { value.wrapping_sub(left) } else { value };
            stored.extend(if little { kept.to_le_bytes() } else { kept.to_be_bytes() });
            left = value;
        }
    }
    let packed = lzw(&stored, clear_after);
    assert!(packed.len() > 70_000, "{}: it is too short to be entered", packed.len());
    let page = Page::grey(WIDTH as u64, HEIGHT as u64, 16, &[&packed]).with(259, &[5]);
    tiff(little, &[page.with(317, &[if predictor { 2 } else { 1 }])])
}

/// Some rows of the only image, or their error.
fn rows(store: &dyn Store, from: usize, count: usize) -> Result<Vec<u8>, String> {
    let region = Region { start: [0, 0, 0, from, 0], size: [1, 1, 1, count, WIDTH] };
    let mut out = vec![];
    let read = read_region(store, 0, &region, &mut Scratch::default(), &mut out);
    read.map(|_| out).map_err(|e| e.to_string())
}

/// Ranges of rows in no order, the last row among them.
fn ranges() -> impl Iterator<Item = (usize, usize)> {
    (1..80).map(|i: usize| {
        let from = i * 7919 % HEIGHT;
        let count = 1 + i * 104_729 % 60;
        (from, count.min(HEIGHT - from))
    })
}

fn write_and_open(path: &Path, bytes: &[u8]) -> Box<dyn Store> {
    std::fs::write(path, bytes).unwrap();
    open(path).unwrap()
}

#[test]
fn some_rows_are_those_of_the_whole() {
    let dir = folder();
    let pixels = image(1);
    let path = dir.path().join("file.tif");
    // One in every case: clear codes close together, as far apart as they are allowed, and none.
    for clear_after in [600, 3500, 3836, usize::MAX] {
        for (little, predictor) in [(true, false), (false, true), (true, true)] {
            let store = write_and_open(&path, &file(&pixels, clear_after, little, predictor));
            for (from, count) in ranges() {
                let context = format!("{clear_after} {little} {predictor}: {count} rows from {from} on");
                let wanted = &pixels[from * ROW..(from + count) * ROW];
                assert!(rows(&*store, from, count).unwrap() == wanted, "{context}");
            }
            assert!(read_image(&*store, 0).unwrap().1 == pixels);
        }
    }
}

/// Only the bytes that its rows need are read: those before may be lost.
/// Writes over a file so that the time of its last change does not tell.
fn overwrite(path: &Path, bytes: &[u8]) {
    let time = std::fs::metadata(path).unwrap().modified().unwrap();
    std::fs::write(path, bytes).unwrap();
    std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn a_strip_is_entered_where_it_was_before() {
    let dir = folder();
    let pixels = image(2);
    let path = dir.path().join("file.tif");
    let mut bytes = file(&pixels, 3500, true, false);
    let store = write_and_open(&path, &bytes);
    let wanted = &pixels[(HEIGHT - 30) * ROW..];
    assert!(rows(&*store, HEIGHT - 30, 30).unwrap() == wanted);
    bytes[STRIP_AT + 2..STRIP_AT + 5000].fill(0xFF);
    overwrite(&path, &bytes);
    assert!(rows(&*store, HEIGHT - 30, 30).unwrap() == wanted);
    let error = rows(&*store, 0, HEIGHT).unwrap_err();
    assert!(error.contains("is not in the table"), "{error}");
    // Nothing is known of a file that is opened anew.
    assert_eq!(
        rows(&*open(&path).unwrap(), HEIGHT - 30, 30).unwrap_err(),
        rows(&*store, 0, HEIGHT).unwrap_err()
    );
}

#[test]
fn damage_is_told_as_by_a_read_of_the_whole() {
    let dir = folder();
    let pixels = image(3);
    let path = dir.path().join("file.tif");
    let mut bytes = file(&pixels, 3500, true, false);
    let middle = STRIP_AT + 60_000;
    bytes[middle..middle + 64].fill(0xFF);
    let store = write_and_open(&path, &bytes);
    let (mut good, mut bad) = (0, 0);
    for (from, count) in ranges() {
        let fresh = rows(&*open(&path).unwrap(), from, count);
        let got = rows(&*store, from, count);
        assert!(got == fresh, "{count} rows from {from} on: {:?}", got.err());
        match got {
            Ok(got) => {
                assert!(got == pixels[from * ROW..(from + count) * ROW]);
                good += 1;
            }
            Err(error) => {
                assert!(
                    error.contains("file.tif") && error.contains("the strip or tile at row 0"),
                    "{error}"
                );
                bad += 1;
            }
        }
    }
    assert!(good > 5 && bad > 5, "{good} {bad}");
}

/// Another program writes over a file that is open.
#[test]
fn a_strip_that_has_changed_is_read_anew() {
    let dir = folder();
    let path = dir.path().join("file.tif");
    let (old, new) = (image(4), image(5));
    let mut bytes = file(&old, 600, true, false);
    let store = write_and_open(&path, &bytes);
    assert!(rows(&*store, 200, 20).unwrap() == old[200 * ROW..220 * ROW]);
    // Fewer clear codes make it shorter.
    let other = file(&new, 3500, true, false);
    let length = other.len() - 400;
    assert!(length < bytes.len() - 400);
    bytes[STRIP_AT..length].copy_from_slice(&other[STRIP_AT..length]);
    overwrite(&path, &bytes);
    assert!(rows(&*store, 200, 20).unwrap() == new[200 * ROW..220 * ROW]);
}
