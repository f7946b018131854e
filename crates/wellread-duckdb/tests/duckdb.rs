//! DuckDB tables and Parquet through DuckDB: golden files, round trips, bad input.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type};
use arrow_array::{ArrayRef, Float32Array, Int64Array, RecordBatch};
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellread_image::synthetic::{self, Kind, Spec};
use wellread_image::{ImageMetadata, PixelType, Region, Shape};
use wellread_store::checksum::sha256_hex;
use wellread_store::convert::{ConvertOptions, convert};
use wellread_store::{
    Compression, ImageView, OpenOptions, Scratch, Store, Tune, WriteOptions, create, open, read_image,
    read_region,
};

// Links the crate, which registers its formats.
use wellread_duckdb as _;

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

fn options(format: &str) -> OpenOptions {
    OpenOptions { format: Some(format.into()), ..OpenOptions::default() }
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

struct Made {
    metadata: ImageMetadata,
    shape: Shape,
    dtype: PixelType,
    pixels: Vec<u8>,
}

fn made(row: u64, shape: Shape, dtype: PixelType) -> Made {
    let spec = Spec { kind: Kind::Cells, shape, dtype, seed: 7 };
    let image = synthetic::image(&spec, row).unwrap();
    Made { metadata: image.metadata, shape, dtype, pixels: image.pixels }
}

fn write(path: &Path, format: &str, options: &WriteOptions, images: &[Made]) -> wellread_store::Result<()> {
    let mut writer = create(path, format, options)?;
    for image in images {
        let Made { metadata, shape, dtype, pixels } = image;
        writer.write(&ImageView { metadata, shape: *shape, dtype: *dtype, pixels })?;
    }
    writer.finish()
}

const FORMATS: [(&str, &str); 2] = [("duckdb", "a.duckdb"), ("parquet-duckdb", "a.parquet")];

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
        let store = open(&path, &self::options(format)).unwrap();
        assert!(read_image(&*store, 39).unwrap().1 == images[39].pixels);
        (std::fs::metadata(&path).unwrap().len(), store.layout().unwrap().codec)
    };
    let plain = size("parquet-duckdb", Compression::None, Tune::Random);
    let zstd = size("parquet-duckdb", Compression::Zstd(6), Tune::Size);
    assert!(zstd.0 < plain.0);
    assert_eq!((plain.1.as_str(), zstd.1.as_str()), ("none", "zstd"));
    let plain = size("duckdb", Compression::None, Tune::Random);
    let packed = size("duckdb", Compression::Default, Tune::Random);
    assert!(packed.0 < plain.0, "{packed:?} {plain:?}");
    assert_eq!(plain.1, "none");
    for (format, compression) in [
        ("duckdb", Compression::Zstd(3)),
        ("duckdb", Compression::Lzw),
        ("parquet-duckdb", Compression::PackBits),
    ] {
        let options = WriteOptions { compression, ..WriteOptions::default() };
        let error = create(dir.path().join("refused"), format, &options).err().unwrap().to_string();
        assert!(error.contains("no compression") && error.contains("none"), "{error}");
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

/// A database made by SQL.
fn database(path: &Path, sql: &str) {
    // The library is loaded by who asks for it first.
    wellread_store::registry::engines();
    duckdb::Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

const IMAGE: &str = "struct_pack(\"name\" := 'i' || i, pixels_meta := struct_pack(\"type\" := 'uint16', size_x := 2, \
     size_y := 1, size_z := 1, size_c := 1, size_t := 1), chunks := [struct_pack(t := 0, c := 0, z := 0, y := 0, x := \
     0, shape_z := 1, shape_y := 1, shape_x := 2, pixels := [i, 1000 + i])])";

#[test]
fn tables_are_found_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plates.duckdb");
    database(
        &path,
        &format!(
            "CREATE SCHEMA b; CREATE TABLE notes AS SELECT 1 AS x;
             CREATE TABLE first AS SELECT i AS row_id, {IMAGE} AS ome_image FROM range(5) t(i);
             CREATE TABLE b.second AS SELECT 10 * i AS well, {IMAGE} AS img FROM range(3) t(i);
             CREATE VIEW seen AS FROM first"
        ),
    );
    let with = |table: Option<&str>| {
        open(&path, &OpenOptions { table: table.map(Into::into), ..OpenOptions::default() })
    };
    let fails = |table: Option<&str>| with(table).err().unwrap().to_string();
    assert_eq!(with(Some("first")).unwrap().len(), 5);
    assert_eq!(with(Some("b.second")).unwrap().len(), 3);
    let second = with(Some("second")).unwrap();
    assert_eq!(second.name(2).unwrap(), "i2");
    let features = wellread_store::features::all(&*second).unwrap().unwrap();
    assert_eq!(features.schema().field(0).name(), "well");
    assert_eq!(read_image(&*second, 2).unwrap().1, [2, 0, 0xea, 3]);
    assert!(
        fails(None).contains("choose one with --table: first, b.second")
            || fails(None).contains("b.second, first")
    );
    let missing = fails(Some("third"));
    assert!(
        missing.contains("no table \"third\"") && missing.contains("notes") && missing.contains("b.second"),
        "{missing}"
    );
    assert!(fails(Some("seen")).contains("view"));
    assert!(fails(Some("notes")).contains("no image column"));
}

#[test]
fn null_images_and_deleted_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.duckdb");
    database(
        &path,
        &format!(
            "CREATE TABLE images AS SELECT i AS row_id, CASE WHEN i % 4 = 1 THEN NULL ELSE {IMAGE} END AS ome_image \
             FROM range(10) t(i); DELETE FROM images WHERE row_id IN (0, 7); CHECKPOINT"
        ),
    );
    let store = open(&path, &OpenOptions::default()).unwrap();
    assert_eq!(store.len(), 8);
    let error = read_image(&*store, 0).unwrap_err();
    assert!(error.is_null_image() && error.to_string().contains("row 0"), "{error}");
    // Rows that are left: 1 to 6, 8, 9.
    assert_eq!(read_image(&*store, 6).unwrap().1, [8, 0, 0xf0, 3]);
    let subset = wellread_store::subset::Subset::without_nulls(store).unwrap();
    assert_eq!((subset.len(), subset.left_out()), (5, 3));
    assert_eq!(subset.name(4).unwrap(), "i8");
    // Scans of views deliver what single reads do.
    let scanned = |store: &dyn Store, rows: std::ops::Range<usize>| {
        let mut seen = vec![];
        store
            .scan(rows, &mut |row, info, pixels| {
                assert_eq!(read_image(store, row).unwrap(), (info, pixels.to_vec()));
                seen.push(row);
                Ok(())
            })
            .unwrap();
        seen
    };
    assert_eq!((scanned(&subset, 0..5), scanned(&subset, 2..4)), (vec![0, 1, 2, 3, 4], vec![2, 3]));
    let stack = dir.path().join("stacks.duckdb");
    let stacks: Vec<_> = (0..3).map(|row| made(row, Shape([2, 1, 3, 8, 9]), PixelType::U16)).collect();
    write(&stack, "duckdb", &WriteOptions::default(), &stacks).unwrap();
    let planes =
        wellread_store::planes::PlaneStore::new(open(&stack, &OpenOptions::default()).unwrap()).unwrap();
    assert_eq!(scanned(&planes, 4..14), (4..14).collect::<Vec<_>>());
}

#[test]
fn feature_columns_stand_beside_images() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source.duckdb");
    database(
        &source,
        &format!(
            "CREATE TABLE images AS SELECT i AS row_id, 'well ' || i AS well, i / 2 AS dose, {IMAGE} AS ome_image \
             FROM range(4) t(i)"
        ),
    );
    let store = open(&source, &OpenOptions::default()).unwrap();
    for (format, name) in [&FORMATS[..], &[("parquet", "b.parquet"), ("ome-arrow-dataset", "b")]].concat() {
        let path = dir.path().join(name);
        assert_eq!(store.hints().feature_names(), ["well", "dose"]);
        let options = WriteOptions {
            features: wellread_store::features::all(&*store).unwrap(),
            ..WriteOptions::default()
        };
        let writer = create(&path, format, &options).unwrap();
        convert(&*store, writer, ConvertOptions::default(), &mut |_| {}).unwrap().commit().unwrap();
        let copy = open(&path, &self::options(format)).unwrap();
        assert_eq!(
            wellread_store::features::all(&*copy).unwrap(),
            wellread_store::features::all(&*store).unwrap(),
            "{format}"
        );
        assert_eq!(read_image(&*copy, 3).unwrap().1, read_image(&*store, 3).unwrap().1);
    }
}

/// Row n is the n-th of a scan, whatever `row_id` says: SQL that changes an image moves its row to the end, and pixels, names and
/// columns go with it.
#[test]
fn pixels_names_and_columns_go_together_after_edits() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..50).map(|row| format!("i{row}")).collect();
    let images: Vec<Made> = (0..50u64)
        .map(|row| {
            let mut image = made(row, Shape::plane(9, 11), PixelType::U16);
            image.metadata.name.clone_from(&names[row as usize]);
            image
        })
        .collect();
    let doses: ArrayRef = Arc::new(Int64Array::from_iter_values(0..50));
    let features = RecordBatch::try_from_iter([("dose", doses)]).unwrap();
    let options = WriteOptions { features: Some(features), ..WriteOptions::default() };
    for (i, edit) in [
        "SELECT 1",
        "UPDATE images SET ome_image = struct_update(ome_image, name := 'i3') WHERE row_id = 3",
        "CREATE TABLE k AS FROM images WHERE row_id = 3; DELETE FROM images WHERE row_id = 3;
         INSERT INTO images FROM k; DROP TABLE k",
        "DELETE FROM images WHERE row_id = 7",
        "DELETE FROM images WHERE row_id IN (0, 49)",
        "UPDATE images SET row_id = row_id + 1000",
        "ALTER TABLE images ADD COLUMN rowid INTEGER",
    ]
    .into_iter()
    .enumerate()
    {
        let path = dir.path().join(format!("{i}.duckdb"));
        write(&path, "duckdb", &options, &images).unwrap();
        database(&path, edit);
        let in_order: Vec<String> = {
            let connection = duckdb::Connection::open(&path).unwrap();
            let mut statement = connection.prepare("SELECT ome_image.name FROM images").unwrap();
            let rows = statement.query_map([], |row| row.get(0)).unwrap();
            rows.collect::<duckdb::Result<_>>().unwrap()
        };
        let originals: Vec<usize> =
            in_order.iter().map(|name| names.iter().position(|other| other == name).unwrap()).collect();
        let store = open(&path, &OpenOptions::default()).unwrap();
        assert_eq!(store.len(), originals.len(), "{edit}");
        let dose = store.hints().features(&["dose".to_owned()]).unwrap().unwrap();
        let dose: Vec<usize> = dose
            .column(0)
            .as_primitive::<arrow_array::types::Int64Type>()
            .values()
            .iter()
            .map(|&dose| dose as usize)
            .collect();
        assert_eq!(dose, originals, "{edit}");
        for (row, &original) in originals.iter().enumerate() {
            assert_eq!(store.name(row).unwrap(), names[original], "{edit}");
            assert!(read_image(&*store, row).unwrap().1 == images[original].pixels, "{edit}: row {row}");
        }
        for rows in [0..store.len(), 5..12] {
            let mut seen = vec![];
            store
                .scan(rows.clone(), &mut |row, _, pixels| {
                    assert!(pixels == images[originals[row]].pixels, "{edit}: row {row}");
                    seen.push(row);
                    Ok(())
                })
                .unwrap();
            assert_eq!(seen, rows.collect::<Vec<_>>(), "{edit}");
        }
    }
}

/// A column that takes the name of DuckDB's number of a row is no number of a row, and is not used as one.
#[test]
fn a_column_called_rowid_is_refused_where_rows_need_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.duckdb");
    database(
        &path,
        &format!("CREATE TABLE images AS SELECT 2 - i AS RowID, {IMAGE} AS ome_image FROM range(3) t(i)"),
    );
    let error = open(&path, &OpenOptions::default()).err().unwrap().to_string();
    assert!(error.contains("is called rowid") && error.contains("RENAME COLUMN"), "{error}");
    database(&path, "ALTER TABLE images RENAME COLUMN RowID TO id");
    let store = open(&path, &OpenOptions::default()).unwrap();
    assert_eq!(store.name(2).unwrap(), "i2");
    assert_eq!(store.hints().feature_names(), ["id"]);
}

#[test]
fn columns_that_duckdb_does_not_take_are_refused_before_any_work() {
    let dir = tempfile::tempdir().unwrap();
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    for (format, name) in FORMATS {
        for (names, named) in [
            (["Well", "well"], &["\"Well\"", "\"well\""][..]),
            (["dose", "Row_ID"], &["\"row_id\"", "\"Row_ID\""]),
            (["dose", "OME_Image"], &["\"ome_image\"", "\"OME_Image\""]),
            (["dose", ""], &["without a name"]),
        ] {
            let columns = names.map(|name| (name, numbers.clone()));
            let options = WriteOptions {
                features: Some(RecordBatch::try_from_iter(columns).unwrap()),
                ..WriteOptions::default()
            };
            let error = create(dir.path().join(name), format, &options).err().unwrap();
            let text = error.to_string();
            assert!(named.iter().all(|part| text.contains(part)), "{text}");
            assert!(text.contains("--columns") && !text.contains("corrupt") && error.is_choice(), "{text}");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }
}

#[test]
fn numbers_of_16_bits_with_a_point_are_widened() {
    let dir = tempfile::tempdir().unwrap();
    let wide = Float32Array::from(vec![Some(0.5), None]);
    let halves: ArrayRef =
        Arc::new(wide.unary::<_, Float16Type>(<Float16Type as ArrowPrimitiveType>::Native::from_f32));
    for (format, name) in FORMATS {
        let path = dir.path().join(name);
        let options = WriteOptions {
            features: Some(RecordBatch::try_from_iter([("dose", halves.clone())]).unwrap()),
            ..WriteOptions::default()
        };
        let images = [0, 1].map(|row| made(row, Shape::plane(8, 8), PixelType::U8));
        write(&path, format, &options, &images).unwrap();
        let store = open(&path, &self::options(format)).unwrap();
        let columns = wellread_store::features::all(&*store).unwrap().unwrap();
        assert_eq!(columns.column(0).as_primitive::<Float32Type>(), &wide, "{format}");
    }
}

#[test]
fn damaged_files_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let images: Vec<_> = (0..8).map(|row| made(row, Shape::plane(60, 60), PixelType::U16)).collect();
    for (format, name) in FORMATS {
        let path = dir.path().join(name);
        write(&path, format, &WriteOptions::default(), &images).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let damaged = dir.path().join(format!("damaged-{name}"));
        let all = |bytes: &[u8]| {
            std::fs::write(&damaged, bytes).unwrap();
            let store = open(&damaged, &options(format))?;
            (0..store.len()).try_fold(store.len(), |n, row| {
                let pixels = read_image(&*store, row)?.1;
                assert!(pixels == images[row].pixels, "{format}: wrong pixels");
                Ok::<_, wellread_store::Error>(n)
            })
        };
        assert_eq!(all(&whole).unwrap(), 8);
        for part in 1..16 {
            let error = all(&whole[..whole.len() * part / 16]).unwrap_err();
            assert!(error.to_string().contains("damaged"), "{error}");
        }
        if format == "duckdb" {
            // Blocks carry checksums: a flipped bit is an error or lies in what nobody reads.
            for i in 0..48 {
                let mut bytes = whole.clone();
                let at = (i * 2_654_435_761usize) % bytes.len();
                bytes[at] ^= 1 << (i % 8);
                if let Ok(rows) = all(&bytes) {
                    assert_eq!(rows, 8);
                }
            }
        }
    }
    std::fs::write(dir.path().join("empty.duckdb"), "").unwrap();
    for name in ["empty.duckdb", "missing.duckdb"] {
        let error = open(dir.path().join(name), &options("duckdb")).err().unwrap().to_string();
        assert!(error.contains(name), "{error}");
    }
}

/// DuckDB cuts free blocks off the end of the file when rows are deleted, and still counts them.
#[test]
fn what_sql_leaves_after_deleting_is_not_called_truncated() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.duckdb");
    let images: Vec<_> = (0..120).map(|row| made(row, Shape::plane(100, 100), PixelType::U16)).collect();
    write(&path, "duckdb", &WriteOptions::default(), &images).unwrap();
    for left in [100, 50, 20, 0] {
        database(&path, &format!("DELETE FROM images WHERE row_id >= {left}"));
        let store = open(&path, &OpenOptions { table: Some("images".into()), ..options("duckdb") }).unwrap();
        assert_eq!(store.len(), left);
        for (row, image) in images[..left].iter().enumerate() {
            assert!(read_image(&*store, row).unwrap().1 == image.pixels, "row {row} of {left}");
        }
    }
}

#[test]
fn newer_storage_versions_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.duckdb");
    write(&path, "duckdb", &WriteOptions::default(), &[made(0, Shape::plane(4, 4), PixelType::U8)]).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // The main header: checksum, mark, version number.
    bytes[12] = 0xff;
    std::fs::write(&path, bytes).unwrap();
    let error = open(&path, &OpenOptions::default()).err().unwrap().to_string();
    assert!(error.contains("a.duckdb") && error.contains("cannot open"), "{error}");
}

#[test]
fn a_database_that_is_being_written_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("busy.duckdb");
    write(&path, "duckdb", &WriteOptions::default(), &[made(0, Shape::plane(4, 4), PixelType::U8)]).unwrap();
    let held = duckdb::Connection::open(&path).unwrap();
    let error = open(&path, &OpenOptions::default()).err().map(|e| e.to_string());
    // The same process may share its own database; then it must be readable.
    if let Some(error) = error {
        assert!(error.contains("another process") || error.contains("busy"), "{error}");
    } else {
        assert_eq!(open(&path, &OpenOptions::default()).unwrap().len(), 1);
    }
    drop(held);
}

/// Holds the database that the environment names until standard input ends: what the next test runs as a process.
#[test]
#[ignore = "run by another test"]
fn holds_a_database() {
    let Some(path) = std::env::var_os("WELLREAD_TEST_HOLD") else { return };
    // What loads the library.
    (wellread_duckdb::FORMAT.engine)().unwrap();
    let held = duckdb::Connection::open(path).unwrap();
    held.execute_batch("CREATE TABLE IF NOT EXISTS other (a INTEGER); DROP TABLE other").unwrap();
    println!("held");
    std::io::stdin().read_to_end(&mut vec![]).unwrap();
}

#[test]
fn a_database_that_another_process_writes_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("busy.duckdb");
    let images: Vec<_> = (0..3).map(|row| made(row, Shape::plane(9, 8), PixelType::U16)).collect();
    write(&path, "duckdb", &WriteOptions::default(), &images).unwrap();
    let mut process = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holds_a_database", "--ignored", "--nocapture"])
        .env("WELLREAD_TEST_HOLD", &path)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("held")));
    for format in [Some("duckdb"), None] {
        let options = OpenOptions { format: format.map(Into::into), ..OpenOptions::default() };
        let error = open(&path, &options).err().unwrap().to_string();
        assert!(error.contains("busy.duckdb") && error.contains("another process"), "{error}");
    }
    // Replaced, it would be found beside the log of the old one.
    let overwrite = WriteOptions { overwrite: true, ..WriteOptions::default() };
    let error = write(&path, "duckdb", &overwrite, &images[..2]).unwrap_err().to_string();
    assert!(error.contains("cannot replace") && error.contains("another process"), "{error}");
    // Killed, it leaves its log, which goes with the database.
    process.kill().unwrap();
    process.wait().unwrap();
    let log = dir.path().join("busy.duckdb.wal");
    assert!(log.exists());
    assert_eq!(open(&path, &OpenOptions::default()).unwrap().len(), 3);
    write(&path, "duckdb", &overwrite, &images[..2]).unwrap();
    let store = open(&path, &OpenOptions::default()).unwrap();
    assert!(store.len() == 2 && read_image(&*store, 1).unwrap().1 == images[1].pixels);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    drop(store);
    // Another table would go with it.
    duckdb::Connection::open(&path).unwrap().execute_batch("CREATE TABLE profiles (a INTEGER)").unwrap();
    let error = write(&path, "duckdb", &overwrite, &images).unwrap_err().to_string();
    assert!(error.contains("would be lost: table images, table profiles"), "{error}");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&log, "a log").unwrap();
    let error = write(&path, "duckdb", &WriteOptions::default(), &images).unwrap_err().to_string();
    assert!(error.contains("busy.duckdb.wal") && error.contains("remove it"), "{error}");
}

#[test]
fn databases_of_others_are_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.duckdb");
    let images: Vec<_> = (0..2).map(|row| made(row, Shape::plane(9, 8), PixelType::U16)).collect();
    let overwrite = WriteOptions { overwrite: true, ..WriteOptions::default() };
    let refused = |said: &str| {
        let before = std::fs::read(&path).unwrap();
        let error = write(&path, "duckdb", &overwrite, &images).unwrap_err().to_string();
        assert!(error.contains(said) && error.contains("remove the file yourself"), "{said}: {error}");
        assert!(std::fs::read(&path).unwrap() == before, "{said}");
    };
    database(&path, "CREATE TABLE annotations AS SELECT 1 AS a");
    refused("would be lost: table annotations");
    database(&path, "DROP TABLE annotations; CREATE TABLE images AS SELECT 1 AS a");
    refused("would be lost: table images");
    // What holds nothing, and what wellread wrote, is replaced.
    database(&path, "DROP TABLE images");
    write(&path, "duckdb", &overwrite, &images).unwrap();
    for (make, drop, said) in [
        ("CREATE VIEW v AS FROM images", "DROP VIEW v", "table images, view v"),
        ("CREATE MACRO m(x) AS x + 1", "DROP MACRO m", "macro m, table images"),
        ("CREATE SEQUENCE s", "DROP SEQUENCE s", "sequence s, table images"),
        ("CREATE TYPE e AS ENUM ('a')", "DROP TYPE e", "table images, type e"),
        ("CREATE SCHEMA b", "DROP SCHEMA b", "schema b, table images"),
    ] {
        database(&path, make);
        refused(said);
        database(&path, drop);
    }
    write(&path, "duckdb", &overwrite, &images).unwrap();
    assert_eq!(open(&path, &options("duckdb")).unwrap().len(), 2);
    std::fs::write(&path, "notes of somebody").unwrap();
    refused("no database that can be looked into");
    std::fs::write(&path, "").unwrap();
    write(&path, "duckdb", &overwrite, &images).unwrap();
    assert_eq!(open(&path, &options("duckdb")).unwrap().len(), 2);
}

/// The query of `docs/features-and-pixels.md`, over both files that it names.
#[test]
fn one_query_returns_features_and_pixels() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/features-and-pixels.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let sql = docs.split("```sql\n").nth(1).unwrap().split("```").next().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let profiles = dir.path().join("profiles.parquet");
    let memory = duckdb::Connection::open_in_memory().unwrap();
    let source = dir.path().join("images");
    let images: Vec<_> = (0..6).map(|row| made(row, Shape::plane(40, 30), PixelType::U16)).collect();
    write(&source, "tiff", &WriteOptions::default(), &images).unwrap();
    let store = open(&source, &OpenOptions::default()).unwrap();
    // Channels in pairs: image 2k and 2k+1 belong to profile k; the last pair has none.
    let name = |row: usize| store.name(row).unwrap();
    let rows: Vec<_> = (0..2)
        .map(|k| format!("('/data/{}.tif', '{}.tiff', 'W{k}', {})", name(2 * k), name(2 * k + 1), 10 + k))
        .collect();
    memory
        .execute_batch(&format!(
            "COPY (SELECT * FROM (VALUES {}) t(Image_FileName_DAPI, Image_FileName_GFP, Image_Metadata_Well_x, \
             Image_Count_Nuclei)) TO '{}' (FORMAT parquet)",
            rows.join(", "),
            profiles.display()
        ))
        .unwrap();
    let join = |keys: &str| wellread_store::profiles::join(&*store, &profiles, keys, &[]);
    let (features, joined) = join("Image_FileName_DAPI, Image_FileName_GFP").unwrap();
    assert_eq!((joined.matched, joined.images, joined.columns), (4, 6, 4));
    assert_eq!(join("Image_FileName_DAPI").unwrap().1.matched, 2);
    assert!(join("nothing").unwrap_err().to_string().contains("Image_FileName_DAPI"));
    assert!(join("Image_Metadata_Well_x").unwrap_err().to_string().contains("no image has a profile"));
    let options = WriteOptions { features: Some(features), ..WriteOptions::default() };
    let (table, file) = (dir.path().join("plate.duckdb"), dir.path().join("plate.parquet"));
    write(&table, "duckdb", &options, &images).unwrap();
    write(&file, "parquet", &options, &images).unwrap();
    let in_table = duckdb::Connection::open(&table).unwrap();
    let over_file = sql.replace("FROM images", &format!("FROM '{}'", file.display()));
    for (connection, sql) in [(&in_table, sql), (&memory, over_file.as_str())] {
        let mut statement = connection.prepare(sql).unwrap();
        let rows: Vec<(String, String, f64)> = statement
            .query_map([], |row| Ok((row.get("image")?, row.get("well")?, row.get("mean_of_pixels")?)))
            .unwrap()
            .collect::<duckdb::Result<_>>()
            .unwrap();
        assert_eq!(rows.len(), 4);
        assert!(rows.is_sorted_by(|a, b| a.2 >= b.2));
        for (image, well, mean) in rows {
            let row = images.iter().position(|i| i.metadata.name == image).unwrap();
            assert_eq!(well, format!("W{}", row / 2));
            let pixels: Vec<f64> =
                images[row].pixels.chunks(2).map(|p| f64::from(u16::from_le_bytes([p[0], p[1]]))).collect();
            let expected = pixels.iter().sum::<f64>() / pixels.len() as f64;
            assert!((mean - expected).abs() < 1e-9 * expected.max(1.0), "{mean} {expected}");
        }
    }
}
