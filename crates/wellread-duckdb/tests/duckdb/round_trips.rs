//! Sets of earlier and present releases are read as they were.

use crate::{FORMATS, Made, made, options, write};
use arrow_array::cast::AsArray as _;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use std::path::PathBuf;
use std::sync::Arc;
use wellread_image::{PixelType, Region, Shape};
use wellread_store::checksum::sha256_hex;
use wellread_store::{
    Compression, ImageView, Scratch, Tune, WriteOptions, create, features, open, read_image, read_region,
};

fn golden() -> Vec<PathBuf> {
    let Some(shared) = std::env::var_os("WELLREAD_SHARED").map(PathBuf::from).filter(|p| p.is_dir()) else {
        println!("skipped: WELLREAD_SHARED does not name the folder of shared data");
        return vec![];
    };
    let mut sets = vec![];
    for source in ["jump", "examplehuman"] {
        let folder = std::fs::read_dir(shared.join("golden").join(source)).unwrap();
        sets.extend(folder.map(|entry| entry.unwrap().path()));
    }
    assert!(sets.len() >= 4);
    sets
}

#[test]
fn golden_sets_are_identical() {
    for set in golden() {
        let text = std::fs::read_to_string(set.join("expected.json")).unwrap();
        let expected: serde_json::Value = serde_json::from_str(&text).unwrap();
        let images = expected["images"].as_array().unwrap();
        for (file, format) in [
            ("images.duckdb", "duckdb"),
            ("images-duckdb.parquet", "parquet-duckdb"),
            ("images.parquet", "parquet-duckdb"),
            ("images-typed.parquet", "parquet-duckdb"),
        ] {
            let store = open(set.join(file), &options(format)).unwrap();
            assert_eq!((store.format(), store.len()), (format, images.len()));
            // Backwards, so that nothing depends on the order of asking.
            for (row, image) in images.iter().enumerate().rev() {
                let (info, pixels) = read_image(&*store, row).unwrap();
                let at = format!("{}/{file} row {row}", set.display());
                assert_eq!(info.dtype.name(), image["dtype"], "{at}");
                assert_eq!(serde_json::json!(info.shape.0), image["shape_tczyx"], "{at}");
                assert_eq!(sha256_hex(&pixels), image["sha256"].as_str().unwrap(), "{at}");
                assert_eq!(store.name(row).unwrap(), image["name"].as_str().unwrap(), "{at}");
            }
            let mut rows = vec![];
            store
                .scan(0..store.len(), &mut |row, _, pixels| {
                    assert_eq!(sha256_hex(pixels), images[row]["sha256"].as_str().unwrap());
                    rows.push(row);
                    Ok(())
                })
                .unwrap();
            assert_eq!(rows, (0..images.len()).collect::<Vec<_>>());
            assert!(!store.layout().unwrap().variant.is_empty());
        }
    }
}

#[test]
fn what_is_written_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    for (format, name) in FORMATS {
        for dtype in PixelType::ALL {
            let path = dir.path().join(dtype.name()).join(name);
            // Stacks, several channels, and more than one chunk.
            let shapes = [Shape([2, 2, 3, 20, 31]), Shape::plane(600, 530), Shape::plane(7, 9)];
            let images: Vec<_> = (0..6).map(|row| made(row, shapes[row as usize % 3], dtype)).collect();
            write(&path, format, &WriteOptions::default(), &images).unwrap();
            let store = open(&path, &options(format)).unwrap();
            for (row, image) in images.iter().enumerate() {
                let (info, pixels) = read_image(&*store, row).unwrap();
                assert_eq!((info.shape, info.dtype), (image.shape, dtype), "{format}");
                assert!(pixels == image.pixels, "{format} {dtype} row {row}");
                let found = store.metadata(row).unwrap();
                assert_eq!((&found.name, &found.channels), (&image.metadata.name, &image.metadata.channels));
            }
            // A region across chunks.
            let region = Region { start: [0, 0, 0, 500, 505], size: [1, 1, 1, 50, 20] };
            let mut part = vec![];
            read_region(&*store, 1, &region, &mut Scratch::default(), &mut part).unwrap();
            let size = dtype.size();
            let expected: Vec<u8> = (500..550)
                .flat_map(|y| images[1].pixels[(y * 530 + 505) * size..(y * 530 + 525) * size].to_vec())
                .collect();
            assert!(part == expected);
            let left: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().flatten().collect();
            assert_eq!(left.len(), if format == "duckdb" { 1 } else { left.len() }, "{left:?}");
        }
    }
}

#[test]
fn options_are_followed_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let images: Vec<_> = (0..40).map(|row| made(row, Shape::plane(256, 256), PixelType::U16)).collect();
    let size = |format: &str, compression, tune| {
        let path = dir.path().join(format!("{format}-{compression}-{tune:?}"));
        let options = WriteOptions { compression, tune, overwrite: true, ..WriteOptions::default() };
        write(&path, format, &options, &images).unwrap();
        let store = open(&path, &crate::options(format)).unwrap();
        assert!(read_image(&*store, 39).unwrap().1 == images[39].pixels);
        (std::fs::metadata(&path).unwrap().len(), store.layout().unwrap().codec)
    };
    let plain = size("parquet-duckdb", Compression::None, Tune::Random);
    let zstd = size("parquet-duckdb", Compression::Zstd(6), Tune::Size);
    assert!(zstd.0 < plain.0);
    assert_eq!((plain.1.as_str(), zstd.1.as_str()), ("none", "zstd"));
    // Levels below zero are quicker, and their files larger.
    let [quick, one] = [-50, 1].map(|level| size("parquet-duckdb", Compression::Zstd(level), Tune::Size));
    assert!(quick.0 > one.0, "{quick:?} {one:?}");
    let deflate = size("parquet-duckdb", Compression::Deflate(6), Tune::Random);
    assert_eq!(deflate.1, "gzip");
    let plain = size("duckdb", Compression::None, Tune::Random);
    let packed = size("duckdb", Compression::Default, Tune::Random);
    assert!(packed.0 < plain.0, "{packed:?} {plain:?}");
    assert_eq!(plain.1, "none");
    for (format, compression) in [
        ("duckdb", Compression::Zstd(3)),
        ("duckdb", Compression::Lzw),
        ("parquet-duckdb", Compression::PackBits),
        ("parquet-duckdb", Compression::Deflate(9)),
    ] {
        let options = WriteOptions { compression, ..WriteOptions::default() };
        let error = create(dir.path().join("refused"), format, &options).err().unwrap();
        let hint = error.hint_text().unwrap_or_default();
        assert!(error.is_choice() && hint.contains("none"), "{error}");
        assert!(error.to_string().contains(&format!("no compression {compression}")), "{error}");
    }
}

#[test]
fn paths_that_duckdb_takes_apart_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let images = [made(0, Shape::plane(8, 8), PixelType::U8)];
    let path = dir.path().join("a?access_mode=read_only.duckdb");
    let error = write(&path, "duckdb", &WriteOptions::default(), &images).unwrap_err();
    assert!(error.to_string().contains("'?'") && error.hint_text().is_some(), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    // Parquet is copied from a database beside it.
    let folder = dir.path().join("we%20 #?é");
    std::fs::create_dir(&folder).unwrap();
    for (format, name) in FORMATS {
        let error = write(&folder.join(name), format, &WriteOptions::default(), &images).unwrap_err();
        let said = "DuckDB cannot write to a path that contains '?'";
        assert!(error.to_string().contains(said), "{format}: {error}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "{format}");
    }
    let folder = dir.path().join("we%20 #é");
    std::fs::create_dir(&folder).unwrap();
    for (format, name) in FORMATS {
        write(&folder.join(name), format, &WriteOptions::default(), &images).unwrap();
        assert_eq!(open(folder.join(name), &options(format)).unwrap().len(), 1, "{format}");
    }
}

/// DuckDB takes marks in a name for a pattern, and folders called `name=value` for columns.
#[test]
fn a_parquet_file_is_read_by_its_own_name() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("well=B02");
    std::fs::create_dir(&folder).unwrap();
    let names = ["a1.parquet", "a[1].parquet", "aXb.parquet", "a*b.parquet"];
    let image = |row: usize| made(row as u64, Shape::plane(8, 8), PixelType::U8);
    for (row, name) in names.into_iter().enumerate() {
        let well: ArrayRef = Arc::new(StringArray::from(vec![format!("own {row}")]));
        let features = Some(RecordBatch::try_from_iter([("well", well)]).unwrap());
        let written = WriteOptions { features, ..WriteOptions::default() };
        write(&folder.join(name), "parquet-duckdb", &written, &[image(row)]).unwrap();
    }
    for (row, name) in names.into_iter().enumerate() {
        let store = open(folder.join(name), &options("parquet-duckdb")).unwrap();
        assert_eq!(store.len(), 1, "{name}");
        assert_eq!(read_image(&*store, 0).unwrap().1, image(row).pixels, "{name}");
        let columns = features::all(&*store).unwrap().unwrap();
        assert_eq!(columns.schema().field(0).name(), "well");
        assert_eq!(columns.column(0).as_string::<i32>().value(0), format!("own {row}"), "{name}");
        assert_eq!(store.layout().unwrap().pieces, "1 row group", "{name}");
    }
}

#[test]
fn nothing_is_left_of_what_is_not_finished() {
    let dir = tempfile::tempdir().unwrap();
    for (format, name) in FORMATS {
        let image = made(0, Shape::plane(30, 30), PixelType::U8);
        for written in 0..3 {
            let mut writer = create(dir.path().join(name), format, &WriteOptions::default()).unwrap();
            for _ in 0..written {
                let Made { metadata, shape, dtype, pixels } = &image;
                writer.write(&ImageView { metadata, shape: *shape, dtype: *dtype, pixels }).unwrap();
            }
            drop(writer);
            let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().collect();
            assert!(left.is_empty(), "{format}: {left:?}");
        }
        std::fs::write(dir.path().join(name), "something").unwrap();
        let error = create(dir.path().join(name), format, &WriteOptions::default()).err().unwrap();
        assert!(error.to_string().contains("already exists"));
        std::fs::remove_file(dir.path().join(name)).unwrap();
    }
}
