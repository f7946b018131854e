//! OME-Zarr that is truncated, corrupt, incomplete or absurd: an error that names file and row, never a panic.

use super::{open_at, pattern, write_group, write_small};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::{Compression, ImageView, OpenOptions, WriteOptions, create, open, read_image};

fn try_read(path: &Path) -> Result<Vec<u8>, String> {
    let store = open(path, &OpenOptions::default()).map_err(|e| e.to_string())?;
    let (info, pixels) = read_image(&*store, 0).map_err(|e| e.to_string())?;
    assert_eq!(pixels.len(), info.shape.pixels() * info.dtype.size());
    Ok(pixels)
}

/// Every file below `dir`.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

fn variants() -> Vec<WriteOptions> {
    let chunk = Some([1, 1, 1, 10, 15]);
    let base = WriteOptions { chunk, ..WriteOptions::default() };
    let old = Some("0.4".to_owned());
    vec![
        base.clone(),
        WriteOptions { compression: Compression::None, ..base.clone() },
        WriteOptions { compression: Compression::None, checksums: false, ..base.clone() },
        WriteOptions { compression: Compression::Lz4, ..base.clone() },
        WriteOptions { compression: Compression::Deflate(6), variant: old.clone(), ..base.clone() },
        WriteOptions { compression: Compression::Lz4, variant: old, ..base.clone() },
        WriteOptions { shard: Some([1, 1, 1, 20, 30]), ..base },
    ]
}

#[test]
fn truncation_and_bit_flips_never_panic() {
    for options in variants() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.zarr");
        let pixels = write_small(&path, &options);
        assert!(try_read(&path).unwrap() == pixels);
        let plain = options.compression == Compression::None;
        for file in files(&path) {
            let good = std::fs::read(&file).unwrap();
            let is_chunk =
                !file.to_string_lossy().contains("zarr.json") && !file.to_string_lossy().contains("/.z");
            for cut in (0..good.len()).step_by(1 + good.len() / 60) {
                std::fs::write(&file, &good[..cut]).unwrap();
                let result = try_read(&path);
                if is_chunk {
                    let error = result.expect_err("a truncated chunk must not be read");
                    assert!(error.contains(file.file_name().unwrap().to_str().unwrap()), "{error}");
                    assert!(error.contains("row 0") && error.contains("hint"), "{error}");
                } else {
                    result.expect_err("truncated metadata must not be read");
                }
            }
            for at in (0..good.len()).step_by(1 + good.len() / 150) {
                for bit in [0, 3, 7] {
                    let mut bad = good.clone();
                    bad[at] ^= 1 << bit;
                    std::fs::write(&file, &bad).unwrap();
                    let _ = try_read(&path);
                }
            }
            if is_chunk && plain {
                let mut long = good.clone();
                long.push(0);
                std::fs::write(&file, &long).unwrap();
                let error = try_read(&path).unwrap_err();
                let length = "301 bytes of pixels where a chunk has 300";
                assert!(error.contains(if options.checksums { "CRC32C" } else { length }), "{error}");
            }
            std::fs::write(&file, &good).unwrap();
        }
        assert!(try_read(&path).unwrap() == pixels);
    }
}

/// An image of one array with `change` made to good v3 metadata, and no chunk files but `chunk` (if any).
fn with_metadata(dir: &Path, change: impl Fn(&mut Value), chunk: Option<&[u8]>) -> PathBuf {
    let path = dir.join("x.zarr");
    let _ = std::fs::remove_dir_all(&path);
    write_group(&path, 3, "yx", "0");
    let mut metadata = json!({
        "zarr_format": 3, "node_type": "array", "shape": [20, 30], "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [20, 30]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 3, "codecs": ["bytes"]});
    change(&mut metadata);
    std::fs::create_dir_all(path.join("0/c/0")).unwrap();
    std::fs::write(path.join("0/zarr.json"), metadata.to_string()).unwrap();
    if let Some(chunk) = chunk {
        std::fs::write(path.join("0/c/0/0"), chunk).unwrap();
    }
    path
}

#[test]
fn missing_chunks_are_the_fill_value_and_huge_ones_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = with_metadata(dir.path(), |_| {}, None);
    assert!(try_read(&path).unwrap().chunks(2).all(|p| p == [3, 0]));
    let huge: [(&str, Value); 4] = [
        ("/shape", json!([1 << 18, 1 << 18])),
        ("/shape", json!([1u64 << 40, 1u64 << 40])),
        ("/chunk_grid/configuration/chunk_shape", json!([1u64 << 62, 30])),
        ("/chunk_grid/configuration/chunk_shape", json!([0, 30])),
    ];
    for (pointer, value) in huge {
        let path = with_metadata(dir.path(), |m| *m.pointer_mut(pointer).unwrap() = value.clone(), None);
        let store = open_at(&path);
        let error = store.row_info(0).unwrap_err();
        assert_eq!(error.row_index(), Some(0), "{pointer} {error}");
    }
    // A billion chunks of one pixel, none of them there.
    let path = with_metadata(
        dir.path(),
        |m| {
            m["shape"] = json!([30000, 30000]);
            m["chunk_grid"]["configuration"]["chunk_shape"] = json!([1, 1]);
        },
        None,
    );
    assert!(try_read(&path).unwrap_err().contains("0 chunk files"), "counts chunk files");
}

#[test]
fn decompression_is_bounded_by_the_chunk() {
    let dir = tempfile::tempdir().unwrap();
    let zeros = vec![0u8; 50 << 20];
    let zstd_bomb = zstd::bulk::compress(&zeros, 3).unwrap();
    let mut gzip_bomb = vec![0; 1 << 20];
    let level = libdeflater::CompressionLvl::new(6).unwrap();
    let n = libdeflater::Compressor::new(level).gzip_compress(&zeros, &mut gzip_bomb).unwrap();
    gzip_bomb.truncate(n);
    let zstd = json!(["bytes", {"name": "zstd", "configuration": {"level": 1}}]);
    let gzip = json!(["bytes", {"name": "gzip", "configuration": {"level": 1}}]);
    let double = json!(["bytes", {"name": "gzip", "configuration": {"level": 1}},
        {"name": "zstd", "configuration": {"level": 1, "checksum": false}}]);
    for (codecs, chunk) in [(zstd, &zstd_bomb), (gzip, &gzip_bomb), (double, &zstd_bomb)] {
        let path = with_metadata(dir.path(), |m| m["codecs"] = codecs.clone(), Some(chunk));
        try_read(&path).unwrap_err();
        // A chunk declared far larger than a few bytes can hold is refused before anything is allocated.
        let path = with_metadata(
            dir.path(),
            |m| {
                m["codecs"] = codecs.clone();
                m["chunk_grid"]["configuration"]["chunk_shape"] = json!([1 << 19, 1 << 19]);
            },
            Some(&chunk[..20]),
        );
        let error = try_read(&path).unwrap_err();
        assert!(error.contains("cannot hold"), "{error}");
    }
}

#[test]
fn shard_indices_that_lie() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.zarr");
    let options = WriteOptions {
        chunk: Some([1, 1, 1, 10, 15]),
        shard: Some([1, 1, 1, 20, 30]),
        ..WriteOptions::default()
    };
    write_small(&path, &options);
    // Without the checksum, so that the lies are believed.
    let metadata = path.join("0/zarr.json");
    let text = std::fs::read_to_string(&metadata).unwrap().replace(r#",{"name":"crc32c"}"#, "");
    std::fs::write(&metadata, text).unwrap();
    let file = path.join("0/c/0/0/0/0/0");
    let mut good = std::fs::read(&file).unwrap();
    good.truncate(good.len() - 4);
    std::fs::write(&file, &good).unwrap();
    try_read(&path).unwrap();
    let index = good.len() - 64;
    for (entry, offset, length) in
        [(0, u64::MAX, 1), (1, 0, u64::MAX), (2, good.len() as u64, 1), (3, 0, 0), (0, u64::MAX - 4, 8)]
    {
        let mut bad = good.clone();
        bad[index + entry * 16..][..8].copy_from_slice(&offset.to_le_bytes());
        bad[index + entry * 16 + 8..][..8].copy_from_slice(&length.to_le_bytes());
        std::fs::write(&file, &bad).unwrap();
        try_read(&path).unwrap_err();
    }
    let missing = {
        let mut bytes = good.clone();
        bytes[index..index + 16].fill(0xff);
        bytes
    };
    std::fs::write(&file, &missing).unwrap();
    // Its writer left no chunk out; of others it is the fill value.
    assert!(try_read(&path).unwrap_err().contains("a chunk is missing"));
    let group = path.join("zarr.json");
    let text = std::fs::read_to_string(&group).unwrap().replace("\"complete\"", "\"other\"");
    std::fs::write(&group, text).unwrap();
    let pixels = try_read(&path).unwrap();
    assert!(pixels[..30].iter().all(|&b| b == 0) && pixels[30..60].iter().any(|&b| b != 0));
}

#[test]
fn metadata_of_wrong_types_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.zarr");
    write_small(&path, &WriteOptions::default());
    for name in ["zarr.json", "0/zarr.json"] {
        let file = path.join(name);
        let good: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let mut pointers = vec![];
        collect(&good, "", &mut pointers);
        for pointer in pointers {
            for bad in [json!(null), json!([]), json!({}), json!("x"), json!(-1), json!(1e300), json!(0)] {
                let mut changed = good.clone();
                *changed.pointer_mut(&pointer).unwrap() = bad;
                std::fs::write(&file, changed.to_string()).unwrap();
                // Many changes are harmless (labels, versions); none may panic.
                let _ = try_read(&path);
                if let Ok(store) = open(&path, &OpenOptions::default()) {
                    let _ = (store.metadata(0), store.layout(), store.files());
                }
            }
        }
        std::fs::write(&file, good.to_string()).unwrap();
    }
}

fn collect(value: &Value, at: &str, pointers: &mut Vec<String>) {
    pointers.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(k, v)| collect(v, &format!("{at}/{k}"), pointers));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, v)| collect(v, &format!("{at}/{i}"), pointers));
        }
        _ => {}
    }
}

fn error_of(path: &Path) -> String {
    open(path, &OpenOptions::default()).err().unwrap().to_string()
}

#[test]
fn what_is_no_set_of_images() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    write_small(&root.join("set/x.zarr"), &WriteOptions::default());
    write_small(
        &root.join("set/a.zarr"),
        &WriteOptions { variant: Some("0.4".into()), ..WriteOptions::default() },
    );
    assert_eq!(open_at(&root.join("set")).len(), 2);
    assert!(error_of(&root.join("set/x.zarr/0")).contains("bare Zarr array"));
    assert!(error_of(&root.join("set/a.zarr/0")).contains("bare Zarr array"));
    std::fs::write(root.join("set/y.tif"), b"").unwrap();
    let error = error_of(&root.join("set"));
    assert!(
        error.contains("a.zarr") && error.contains("y.tif") && error.contains("only these: format "),
        "{error}"
    );
    let forced = OpenOptions { format: Some("ome-zarr".into()), ..OpenOptions::default() };
    assert_eq!(open(root.join("set"), &forced).unwrap().len(), 2);
    std::fs::create_dir(root.join("empty")).unwrap();
    assert!(error_of(&root.join("empty")).contains("empty"));
    assert!(open(root.join("empty"), &forced).err().unwrap().to_string().contains("no OME-Zarr image"));
    // A group without OME metadata, and a folder called .zarr with nothing in it.
    std::fs::create_dir(root.join("plain.zarr")).unwrap();
    std::fs::write(root.join("plain.zarr/.zgroup"), r#"{"zarr_format": 2}"#).unwrap();
    assert!(error_of(&root.join("plain.zarr")).contains("no OME"));
    std::fs::remove_file(root.join("set/y.tif")).unwrap();
    std::fs::create_dir(root.join("set/b.zarr")).unwrap();
    let store = open_at(&root.join("set"));
    let error = store.row_info(1).unwrap_err();
    assert_eq!(error.row_index(), Some(1));
    assert!(error.to_string().contains("b.zarr"), "{error}");
    assert!(store.row_info(0).is_ok() && store.row_info(2).is_ok());
    let error = read_image(&*store, 7).unwrap_err().to_string();
    assert!(error.contains("row 7") && error.contains("3 images"), "{error}");
}

#[test]
fn a_dataset_path_cannot_leave_its_group() {
    let dir = tempfile::tempdir().unwrap();
    for path in ["../y", "/etc", ""] {
        write_group(&dir.path().join("x.zarr"), 3, "yx", path);
        assert!(try_read(&dir.path().join("x.zarr")).unwrap_err().contains("leaves its group"));
    }
    write_group(&dir.path().join("x.zarr"), 3, "yx", "not-there");
    assert!(try_read(&dir.path().join("x.zarr")).unwrap_err().contains("not there"));
    write_group(&dir.path().join("x.zarr"), 3, "zx", "0");
    assert!(try_read(&dir.path().join("x.zarr")).unwrap_err().contains("lack y or x"));
}

#[test]
fn a_failing_thread_fails_the_set() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    let options = WriteOptions {
        jobs: 2,
        chunk: Some([1, 1, 1, 3, 3]),
        shard: Some([1, 1, 1, 4, 4]),
        ..WriteOptions::default()
    };
    let mut writer = create(&set, "ome-zarr", &options).unwrap();
    let metadata = ImageMetadata::named("a");
    let shape = Shape::plane(9, 9);
    let pixels = pattern(shape, PixelType::U8, 1);
    let image = ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels };
    let written = writer.write(&image);
    let error = written.and_then(|()| writer.finish()).unwrap_err().to_string();
    assert!(error.contains("whole chunks") && error.contains("row 0"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing half-written is left");
}

/// A file of one Zarr version that says it is of another, or does not say.
#[test]
fn zarr_formats_that_lie() {
    let bad = [json!(4), json!(1), json!("zstd"), json!(true), Value::Null];
    let dir = tempfile::tempdir().unwrap();
    for (version, names) in [("0.5", ["zarr.json", "0/zarr.json"]), ("0.4", [".zgroup", "0/.zarray"])] {
        let path = dir.path().join(format!("{version}.zarr"));
        write_small(&path, &WriteOptions { variant: Some(version.into()), ..WriteOptions::default() });
        for file in names.map(|name| path.join(name)) {
            let good: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            for bad in &bad {
                let mut changed = good.clone();
                let fields = changed.as_object_mut().unwrap();
                if bad.is_null() {
                    fields.remove("zarr_format").unwrap();
                } else {
                    fields["zarr_format"] = bad.clone();
                }
                std::fs::write(&file, changed.to_string()).unwrap();
                let error = try_read(&path).unwrap_err();
                assert!(error.contains("zarr_format") && error.contains("corrupt"), "{bad}: {error}");
            }
            std::fs::write(&file, good.to_string()).unwrap();
        }
        try_read(&path).unwrap();
    }
}

/// A Zarr v2 image of 4 x 6 bytes in one chunk with the given compressor.
fn version_2(dir: &Path, compressor: &Value, chunk: &[u8]) -> PathBuf {
    let path = dir.join("old.zarr");
    write_group(&path, 2, "yx", "0");
    std::fs::create_dir_all(path.join("0")).unwrap();
    let array = json!({"zarr_format": 2, "shape": [4, 6], "chunks": [4, 6], "dtype": "|u1", "fill_value": 0,
        "order": "C", "filters": null, "compressor": compressor});
    std::fs::write(path.join("0/.zarray"), array.to_string()).unwrap();
    std::fs::write(path.join("0/0.0"), chunk).unwrap();
    path
}

#[test]
fn lz4_of_numcodecs() {
    let dir = tempfile::tempdir().unwrap();
    let pixels: Vec<u8> = (0..24).map(|i| i / 3).collect();
    let compressor = json!({"id": "lz4", "acceleration": 1});
    let good = lz4_flex::block::compress_prepend_size(&pixels);
    assert_eq!(try_read(&version_2(dir.path(), &compressor, &good)).unwrap(), pixels);
    let mut long = good.clone();
    long[0] = 25;
    for bad in [&good[..3], &good[..good.len() - 1], &long, &[24, 0, 0, 0, 0xf0, 0xff, 0xff]] {
        try_read(&version_2(dir.path(), &compressor, bad)).unwrap_err();
    }
}

/// A file that is not supported is not called corrupt.
#[test]
fn unsupported_codecs_say_how_to_convert() {
    let dir = tempfile::tempdir().unwrap();
    let error = try_read(&version_2(dir.path(), &json!({"id": "lzma", "preset": 1}), &[0; 24])).unwrap_err();
    assert!(error.contains("lzma") && error.contains("convert") && !error.contains("corrupt"), "{error}");
    assert!(error.contains("\"preset\":1") && !error.contains("Number("), "as JSON: {error}");
    for (pointer, value) in [("/data_type", json!("complex64")), ("/codecs", json!(["bytes", "lzma"]))] {
        let path = with_metadata(dir.path(), |m| *m.pointer_mut(pointer).unwrap() = value.clone(), None);
        let error = try_read(&path).unwrap_err();
        assert!(error.contains("convert") && !error.contains("corrupt"), "{error}");
    }
}
