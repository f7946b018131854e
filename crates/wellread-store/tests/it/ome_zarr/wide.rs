//! Pixels of types that images do not have: `int64`, `uint64` and `float16`.

use super::{assert_reads, open_at, write_group};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use wellread_image::{PixelType, Region, Shape};
use wellread_store::{Scratch, read_image, read_region};

/// An image of 4 x 5 pixels in two chunks of 4 x 3, the second of which juts out.
struct Image {
    /// Zarr version.
    zarr: u8,
    /// The types of version 2, with its byte order, and of version 3.
    types: [&'static str; 2],
    codecs: Value,
    fill: Value,
}

impl Image {
    /// Writes it with these chunks; one without bytes is not there.
    fn write(&self, dir: &Path, chunks: &[Vec<u8>; 2]) -> PathBuf {
        let path = dir.join("labels.zarr");
        let _ = std::fs::remove_dir_all(&path);
        write_group(&path, self.zarr, "yx", "0");
        let array = path.join("0");
        std::fs::create_dir_all(array.join("c/0")).unwrap();
        let [old, new] = self.types;
        if self.zarr == 3 {
            let text = json!({"zarr_format": 3, "node_type": "array", "shape": [4, 5], "data_type": new,
                "fill_value": self.fill, "codecs": self.codecs, "chunk_key_encoding": {"name": "default"},
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 3]}}});
            std::fs::write(array.join("zarr.json"), text.to_string()).unwrap();
        } else {
            let text = json!({"zarr_format": 2, "shape": [4, 5], "chunks": [4, 3], "dtype": old, "order": "C",
                "fill_value": self.fill, "filters": null, "compressor": null});
            std::fs::write(array.join(".zarray"), text.to_string()).unwrap();
        }
        for (x, chunk) in chunks.iter().enumerate().filter(|(_, chunk)| !chunk.is_empty()) {
            let key = if self.zarr == 3 { format!("c/0/{x}") } else { format!("0.{x}") };
            std::fs::write(array.join(key), chunk).unwrap();
        }
        path
    }

    fn new(zarr: u8, big: bool, [old, new]: [&'static str; 2]) -> Self {
        let endian = if big { "big" } else { "little" };
        let codecs = json!([{"name": "bytes", "configuration": {"endian": endian}}]);
        Self { zarr, types: [old, new], codecs, fill: json!(0) }
    }
}

/// The values of both chunks, with `rest` beside the image.
fn in_chunks<T: Copy>(values: &[T], rest: T) -> [Vec<T>; 2] {
    let part = |from: usize, to: usize| {
        values
            .chunks(5)
            .flat_map(|row| {
                let mut part = row[from..to].to_vec();
                part.resize(3, rest);
                part
            })
            .collect()
    };
    [part(0, 3), part(3, 5)]
}

fn region() -> Region {
    Region { start: [0, 0, 0, 1, 2], size: [1, 1, 1, 2, 3] }
}

#[test]
fn labels_of_64_bits_are_read_as_32() {
    let dir = tempfile::tempdir().unwrap();
    let values: Vec<i64> = (0..20).map(|i| i * i * 1_000_003 - 7).collect();
    let expected: Vec<u8> = values.iter().flat_map(|&v| i32::try_from(v).unwrap().to_le_bytes()).collect();
    let shape = Shape::plane(4, 5);
    for (zarr, big) in [(2, false), (2, true), (3, false), (3, true)] {
        let image = Image::new(zarr, big, [if big { ">i8" } else { "<i8" }, "int64"]);
        let order = |v: &i64| if big { v.to_be_bytes() } else { v.to_le_bytes() };
        let chunks = in_chunks(&values, i64::MAX).map(|chunk| chunk.iter().flat_map(order).collect());
        let store = open_at(&image.write(dir.path(), &chunks));
        assert_reads(&*store, shape, PixelType::I32, &expected, region());
        assert!(store.layout().unwrap().variant.ends_with("pixels stored as int64"));
    }
}

#[test]
fn halves_are_read_as_singles() {
    let dir = tempfile::tempdir().unwrap();
    // 1, 1.5, -2, 65504 and the smallest number above 0, over and over.
    let halves: Vec<u16> = [0x3c00, 0x3e00, 0xc000, 0x7bff, 1].repeat(4);
    let singles = [1.0, 1.5, -2.0, 65504.0, 2_f32.powi(-24)].map(f32::to_le_bytes).concat().repeat(4);
    for (zarr, big) in [(2, true), (3, false)] {
        let image = Image::new(zarr, big, [">f2", "float16"]);
        let order = |v: &u16| if big { v.to_be_bytes() } else { v.to_le_bytes() };
        let chunks = in_chunks(&halves, 0).map(|chunk| chunk.iter().flat_map(order).collect());
        let store = open_at(&image.write(dir.path(), &chunks));
        assert_reads(&*store, Shape::plane(4, 5), PixelType::F32, &singles, region());
    }
}

#[test]
fn chunks_that_are_not_there_have_the_fill_value_of_the_stored_type() {
    let dir = tempfile::tempdir().unwrap();
    let values = [7_i64; 12].map(i64::to_le_bytes).concat();
    for zarr in [2, 3] {
        let mut image = Image { fill: json!(-3), ..Image::new(zarr, false, ["<i8", "int64"]) };
        let store = open_at(&image.write(dir.path(), &[values.clone(), vec![]]));
        let expected = [7, 7, 7, -3, -3].map(i32::to_le_bytes).concat().repeat(4);
        assert_reads(&*store, Shape::plane(4, 5), PixelType::I32, &expected, region());
        // A value that no pixel has does no harm.
        image.fill = json!(i64::MIN);
        let store = open_at(&image.write(dir.path(), &[values.clone(), values.clone()]));
        assert_eq!(read_image(&*store, 0).unwrap().1, [7_i32; 20].map(i32::to_le_bytes).concat());
        let store = open_at(&image.write(dir.path(), &[values.clone(), vec![]]));
        let error = read_image(&*store, 0).unwrap_err().to_string();
        assert!(error.contains("the pixel value -9223372036854775808 does not fit int32"), "{error}");
        let image = Image { fill: json!("NaN"), ..Image::new(zarr, false, ["<f2", "float16"]) };
        let store = open_at(&image.write(dir.path(), &[vec![], vec![]]));
        let (info, pixels) = read_image(&*store, 0).unwrap();
        assert_eq!(info.dtype, PixelType::F32);
        assert!((0..20).all(|i| PixelType::F32.value_at(&pixels, i).is_nan()));
    }
}

#[test]
fn a_label_beyond_32_bits_is_an_error_where_it_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut values = vec![1_u64; 20];
    values[9] = 1 << 32;
    for zarr in [2, 3] {
        let image = Image::new(zarr, false, ["<u8", "uint64"]);
        let chunks = in_chunks(&values, 0).map(|chunk| chunk.iter().flat_map(|v| v.to_le_bytes()).collect());
        let store = open_at(&image.write(dir.path(), &chunks));
        let error = read_image(&*store, 0).unwrap_err();
        assert!(error.is_unsupported());
        let key = if zarr == 3 { "c/0/1" } else { "0.1" };
        let said = error.to_string();
        for part in ["labels.zarr", key, "row 0", "4294967296 does not fit uint32", "relabel_sequential"] {
            assert!(said.contains(part), "{said}");
        }
        let (mut scratch, mut pixels) = (Scratch::default(), vec![]);
        let region = Region { start: [0; 5], size: [1, 1, 1, 4, 4] };
        read_region(&*store, 0, &region, &mut scratch, &mut pixels).unwrap();
        assert_eq!(pixels, [1_u32; 16].map(u32::to_le_bytes).concat());
    }
}
