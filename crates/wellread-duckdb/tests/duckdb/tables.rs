//! Tables of any kind, their rows after edits, and columns beside images.

use crate::{FORMATS, IMAGE, Made, columns_back, database, made, write};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type};
use arrow_array::{ArrayRef, Float32Array, Int64Array, RecordBatch};
use std::path::Path;
use std::sync::Arc;
use wellread_image::{PixelType, Shape};
use wellread_store::convert::{ConvertOptions, convert};
use wellread_store::{LeftOut, OpenOptions, Store, WriteOptions, create, open, read_image};

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
        fails(None).contains("choose one (table): first, b.second")
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
        let copy = open(&path, &crate::options(format)).unwrap();
        assert_eq!(
            wellread_store::features::all(&*copy).unwrap(),
            wellread_store::features::all(&*store).unwrap(),
            "{format}"
        );
        assert_eq!(read_image(&*copy, 3).unwrap().1, read_image(&*store, 3).unwrap().1);
    }
}

/// Row n is the n-th of a scan, whatever `row_id` says: SQL that changes an image moves its row to the end. Pixels, names and
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

#[test]
fn types_of_another_release_of_wellread_are_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dark.duckdb");
    let (shape, dtype) = (Shape::plane(4, 5), PixelType::U16);
    // Pixels that 8 bits would hold too.
    let mut image = made(0, shape, dtype);
    image.pixels = [7, 0].repeat(shape.pixels());
    write(&path, "duckdb", &WriteOptions::default(), std::slice::from_ref(&image)).unwrap();
    let seen = || {
        let (info, pixels) = read_image(&*open(&path, &OpenOptions::default()).unwrap(), 0).unwrap();
        (info.dtype, pixels)
    };
    assert_eq!(seen(), (dtype, image.pixels.clone()));
    database(&path, "COMMENT ON TABLE images IS 'wellread.version=99.0.1'");
    assert_eq!(seen(), (dtype, image.pixels.clone()));
    // Without the mark the images count as 8-bit ones that ome-arrow widened.
    database(&path, "COMMENT ON TABLE images IS NULL");
    assert_eq!(seen().0, PixelType::U8);
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

/// Where it counts the rows as DuckDB would, whatever integers it has.
#[test]
fn a_column_called_rowid_that_counts_rows_is_their_number() {
    let dir = tempfile::tempdir().unwrap();
    for of in ["INTEGER", "UTINYINT"] {
        let path = dir.path().join(format!("{of}.duckdb"));
        database(
            &path,
            &format!(
                "CREATE TABLE images AS SELECT i::{of} AS rowid, {IMAGE} AS ome_image FROM range(3) t(i)"
            ),
        );
        let store = open(&path, &OpenOptions::default()).unwrap();
        for row in [2u8, 0] {
            let pixels = [row, 0, 0xe8 + row, 3];
            assert_eq!(read_image(&*store, row.into()).unwrap().1, pixels, "{of} row {row}");
        }
    }
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
        ] {
            let columns = names.map(|name| (name, numbers.clone()));
            let options = WriteOptions {
                features: Some(RecordBatch::try_from_iter(columns).unwrap()),
                ..WriteOptions::default()
            };
            let error = create(dir.path().join(name), format, &options).err().unwrap();
            let text = error.to_string();
            assert!(named.iter().all(|part| text.contains(part)), "{text}");
            assert!(
                text.contains("leave it out: columns names")
                    && !text.contains("corrupt")
                    && error.is_choice(),
                "{text}"
            );
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }
}

#[test]
fn categories_are_texts_and_intervals_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.duckdb");
    database(
        &path,
        &format!(
            "CREATE TABLE images AS SELECT i AS row_id, (CASE i WHEN 1 THEN 'y' WHEN 2 THEN NULL ELSE 'x' END)::ENUM ('x', 'y') \
             AS drug, INTERVAL 3 HOUR AS wait, {IMAGE} AS ome_image FROM range(4) t(i)"
        ),
    );
    let store = open(&path, &OpenOptions::default()).unwrap();
    assert_eq!(store.hints().feature_names(), ["drug"]);
    let wait = LeftOut { name: "wait".to_owned(), why: "calendar intervals" };
    assert_eq!(store.hints().columns_left_out(), [wait]);
    let columns = wellread_store::features::all(&*store).unwrap().unwrap();
    let drugs: Vec<_> = columns.column(0).as_string::<i32>().iter().collect();
    assert_eq!(drugs, [Some("x"), Some("y"), None, Some("x")]);
}

#[test]
fn a_table_without_rows_has_no_columns_to_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.duckdb");
    database(
        &path,
        &format!("CREATE TABLE images AS SELECT i AS n, {IMAGE} AS ome_image FROM range(4) t(i) WHERE i > 4"),
    );
    let store = open(&path, &OpenOptions::default()).unwrap();
    assert_eq!((store.len(), store.hints().feature_names()), (0, vec!["n".to_owned()]));
    assert!(wellread_store::features::all(&*store).unwrap().is_none());
}

#[test]
fn numbers_of_16_bits_with_a_point_are_widened() {
    let wide = Float32Array::from(vec![Some(0.5), None]);
    let halves: ArrayRef =
        Arc::new(wide.unary::<_, Float16Type>(<Float16Type as ArrowPrimitiveType>::Native::from_f32));
    for (format, back) in columns_back(&halves) {
        assert_eq!(back.as_primitive::<Float32Type>(), &wide, "{format}");
    }
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
    assert!(join("Image_Metadata_Well_x").unwrap_err().to_string().contains("no image has a row by"));
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
