//! Rows read here against the same rows read by DuckDB: every compression, type and kind of table, and damaged blocks.

mod comparing;
mod damage;

use crate::DuckTable;
use arrow_schema::DataType;
use comparing::{NULL, compare, compare_all};
use std::path::{Path, PathBuf};
use wellread_store::table::{ImageTable, Rows};
use wellread_store::{FormatContext, OpenOptions};

/// A connection to the database in `path`, for writing.
fn connected(path: &Path) -> duckdb::Connection {
    crate::library::load(path).unwrap();
    duckdb::Connection::open(path).unwrap()
}

/// A database made by SQL in an attached file with small row groups; the table is `db.images`.
fn database(path: &Path, sql: &str) {
    let connection = connected(Path::new(":memory:"));
    let attach = format!("ATTACH '{}' AS db (ROW_GROUP_SIZE 2048); ", path.display());
    connection.execute_batch(&(attach + sql)).unwrap();
}

fn open(path: &Path) -> DuckTable {
    DuckTable::open(path, &OpenOptions::default()).unwrap()
}

fn paths(of: &[&str]) -> Vec<Vec<String>> {
    of.iter().map(|p| p.split('/').map(str::to_owned).collect()).collect()
}

/// The chunks of a table's first image column.
fn chunks(table: &DuckTable) -> Vec<Vec<String>> {
    let schema = table.schema();
    let column = schema.fields().iter().find(|f| matches!(f.data_type(), DataType::Struct(_))).unwrap();
    paths(&[&format!("{}/chunks", column.name())])
}

#[test]
fn golden_sets_are_read_here_as_by_duckdb() {
    let Some(shared) = std::env::var_os("WELLREAD_SHARED").map(PathBuf::from).filter(|p| p.is_dir()) else {
        println!("skipped: WELLREAD_SHARED does not name the folder of shared data");
        return;
    };
    let mut count = 0;
    for source in ["jump", "examplehuman"] {
        for set in std::fs::read_dir(shared.join("golden").join(source)).unwrap() {
            let table = open(&set.unwrap().path().join("images.duckdb"));
            for list in ["chunks", "planes"] {
                compare_all(&table, &paths(&[&format!("ome_image/{list}")]));
                compare_all(
                    &table,
                    &paths(&[&format!("ome_image/{list}/pixels"), "ome_image/pixels_meta/size_x"]),
                );
            }
            assert_eq!(table.rows_per_read(), 1);
            // Text is DuckDB's.
            assert!(table.direct(&paths(&["ome_image/name"])).is_none());
            assert!(table.direct(&paths(&["ome_image"])).is_none());
            count += 1;
        }
    }
    assert!(count >= 4);
}

/// Images of `lengths` pixels `pixel` of type `kind`, by the row `i` and the pixel `j`.
fn images(kind: &str, pixel: &str, lengths: &str) -> String {
    format!(
        "struct_pack(pixels_meta := struct_pack(size_x := {lengths}), chunks := [struct_pack(x := i % 3, pixels := \
         list_transform(range({lengths}), lambda j: ({pixel})::{kind}))])"
    )
}

fn create(kind: &str, pixel: &str, lengths: &str, rows: usize) -> String {
    let image = images(kind, pixel, lengths);
    format!(
        "CREATE TABLE db.images AS SELECT i AS id, {image} AS image FROM range({rows}) t(i); CHECKPOINT db;"
    )
}

#[test]
fn every_type_and_compression_is_read_here() {
    let dir = tempfile::tempdir().unwrap();
    let mut made = 0;
    let mut check = |sql: &str, kind: &str, pixel: &str, compression: &str| {
        made += 1;
        let path = dir.path().join(format!("{made}.duckdb"));
        database(&path, &format!("{sql}; {}", create(kind, pixel, "400 + i * 137", 14)));
        let table = open(&path);
        let connection = connected(&path);
        let found: String = connection
            .query_row(
                "SELECT string_agg(DISTINCT compression, '+' ORDER BY compression) FROM pragma_storage_info('images') \
                 WHERE column_path = '[1, 2, 1, 2, 1]'",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert!(found.contains(compression), "{kind} {pixel}: {found}, not {compression}");
        compare_all(&table, &chunks(&table));
    };
    let integers = [
        ("TINYINT", "j % 100 - 50"),
        ("SMALLINT", "(hash(j) % 3000)::INT - 1500"),
        ("INTEGER", "(hash(j) % 900000)::INT - 70"),
        ("BIGINT", "hash(i + j) % 200"),
        ("BIGINT", "hash(i + j) % 60000"),
        ("BIGINT", "(hash(i + j) % 60000)::INT - 3"),
        ("BIGINT", "hash(j) >> 2"),
        ("UTINYINT", "hash(j * i) % 256"),
        ("USMALLINT", "hash(j) % 4096 + 90"),
        ("UINTEGER", "hash(j) % 4294967296"),
        ("UBIGINT", "hash(j)"),
        ("UBIGINT", "hash(j) % 251"),
    ];
    let force = |compression: &str| format!("PRAGMA force_compression = '{compression}'");
    for (kind, pixel) in integers {
        check("", kind, pixel, "");
        check(&force("bitpacking"), kind, pixel, "BitPacking");
        check(&force("rle"), kind, pixel, "RLE");
        check(&force("uncompressed"), kind, pixel, "Uncompressed");
    }
    for (kind, pixel, mode) in [
        ("BIGINT", "j % 256", "for"),
        ("BIGINT", "j", "constant_delta"),
        ("USMALLINT", "60000 - j * 3", "constant_delta"),
        ("BIGINT", "1000 + j * 2 + hash(j) % 2", "delta_for"),
        ("BIGINT", "10 + hash(j) % 200", "delta_for"),
        ("USMALLINT", "j * 3 + hash(j) % 9", "delta_for"),
        ("TINYINT", "(hash(j) % 50)::INT - 25", "delta_for"),
        ("UBIGINT", "j // 300", "constant"),
    ] {
        let sql = format!("{}; PRAGMA force_bitpacking_mode = '{mode}'", force("bitpacking"));
        check(&sql, kind, pixel, "BitPacking");
    }
    // Runs of many lengths, and one value everywhere.
    for kind in ["UTINYINT", "BIGINT", "DOUBLE", "FLOAT", "INTEGER"] {
        check(&force("rle"), kind, "j // 23", "RLE");
        check("", kind, "7", "Constant");
    }
    for kind in ["FLOAT", "DOUBLE"] {
        check(&force("uncompressed"), kind, "j / 7", "Uncompressed");
        check(&force("alp"), kind, "(hash(j) % 10000) / 100", "ALP");
        check(&force("alp"), kind, "CASE WHEN j % 100 = 3 THEN pi() * j ELSE j / 4 END", "ALP");
        check(&force("alp"), kind, "hash(j) / 3.1e7", "ALP");
        check(&force("alprd"), kind, "sin(j) * pi()", "ALPRD");
        check(&force("alprd"), kind, "CASE WHEN j % 90 = 3 THEN pow(10, j % 30) ELSE sin(j) END", "ALPRD");
        check(&force("alprd"), kind, "hash(j) / 3.1e7", "ALPRD");
        check("", kind, "-0.5", "Constant");
    }
}

/// Compressions that this crate does not know are left to DuckDB.
#[test]
fn other_compressions_are_left_to_duckdb() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.duckdb");
    database(&path, &create("HUGEINT", "j", "50", 20));
    assert!(open(&path).direct(&paths(&["image/chunks/pixels"])).is_none());
    assert!(open(&path).direct(&paths(&["image/chunks/x"])).is_some());
    let path = dir.path().join("b.duckdb");
    database(&path, &create("BOOLEAN", "j % 2 = 0", "50", 20));
    assert!(open(&path).direct(&paths(&["image/chunks/pixels"])).is_none());
}

#[test]
fn lists_span_segments_and_tables_row_groups() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.duckdb");
    database(&path, &create("BIGINT", "hash(i * j) % 5000", "CASE WHEN i = 3 THEN 0 ELSE 300000 + i END", 7));
    let table = open(&path);
    compare_all(&table, &chunks(&table));
    let batches = |table: &DuckTable, rows| {
        let mut sizes = vec![];
        let read = table.direct(&chunks(table)).unwrap().read(
            &Rows::Range(0..rows),
            &mut FormatContext::default(),
            &mut |batch| {
                sizes.push(batch.num_rows());
                Ok(())
            },
        );
        read.unwrap();
        sizes
    };
    // In batches of some bytes, so that there is no end to what can be streamed …
    assert_eq!(batches(&table, 7), [1; 7]);
    let path = dir.path().join("many.duckdb");
    database(&path, &create("USMALLINT", "hash(i * j) % 5000", "i % 9", 9000));
    let table = open(&path);
    compare_all(&table, &chunks(&table));
    compare_all(&table, &paths(&["image/pixels_meta/size_x", "image/chunks/pixels", "image/chunks/x"]));
    let across: Vec<usize> = (2040..2060).chain([4095, 4096, 8999]).collect();
    compare(&table, &chunks(&table), &Rows::Chosen(&across));
    // … which do not end with a row group.
    assert_eq!(batches(&table, 9000), [9000]);
    // Several chunks, several of them empty; appended after a checkpoint.
    let path = dir.path().join("appended.duckdb");
    let image = "struct_pack(pixels_meta := struct_pack(size_x := 1), chunks := list_transform(range(i % 4), lambda k: \
                 struct_pack(x := k, pixels := list_transform(range(k * 5), lambda j: (i + j) % 256))))";
    let some = |rows: &str| format!("SELECT {image} AS image FROM range({rows}) t(i); CHECKPOINT db;");
    let (first, second) = (some("3000"), some("3000, 5500"));
    database(&path, &format!("CREATE TABLE db.images AS {first} INSERT INTO db.images {second}"));
    let table = open(&path);
    assert_eq!(table.len(), 5500);
    compare_all(&table, &chunks(&table));
    // Lists that are all empty have no segments.
    let path = dir.path().join("empty.duckdb");
    database(&path, &create("USMALLINT", "j", "0", 3000));
    let table = open(&path);
    compare_all(&table, &chunks(&table));
}

#[test]
fn nulls_of_images_are_read_here_and_those_in_lists_by_duckdb() {
    let dir = tempfile::tempdir().unwrap();
    let image = images("BIGINT", "hash(j) % 300", "20");
    let table = |name: &str, select: &str| {
        let path = dir.path().join(name);
        let sql = format!("CREATE TABLE db.images AS {select} FROM range(5000) t(i); CHECKPOINT db");
        database(&path, &sql);
        open(&path)
    };
    let some = table("images", &format!("SELECT CASE WHEN i % 7 = 2 THEN NULL ELSE {image} END AS image"));
    let all = compare_all(&some, &chunks(&some));
    assert_eq!(all.iter().filter(|n| **n == NULL).count(), 714);
    compare_all(&some, &paths(&["image/pixels_meta/size_x", "image/chunks/x"]));
    // No chunks, or no size: null by themselves.
    let part = "struct_pack(pixels_meta := struct_pack(size_x := CASE WHEN i % 5 > 0 THEN i END), chunks := CASE WHEN i \
                % 3 > 0 THEN [struct_pack(x := 1, pixels := [i % 256, 2])] END)";
    let some = table("parts", &format!("SELECT {part} AS image"));
    compare_all(&some, &paths(&["image/pixels_meta/size_x", "image/chunks/pixels"]));
    for pixels in ["[i, NULL]", "CASE WHEN i > 10 THEN [i] END"] {
        let image = format!(
            "struct_pack(pixels_meta := struct_pack(size_x := 2), chunks := [struct_pack(x := 1, pixels := {pixels})])"
        );
        let some = table(&pixels.len().to_string(), &format!("SELECT {image} AS image"));
        assert!(some.direct(&chunks(&some)).is_none());
    }
}

#[test]
fn changed_tables_are_left_to_duckdb() {
    let dir = tempfile::tempdir().unwrap();
    let made = create("BIGINT", "hash(j) % 300", "20", 5000);
    let path = |name: &str| dir.path().join(name);
    for (name, change) in [
        ("middle", "DELETE FROM db.images WHERE id = 77"),
        ("first", "DELETE FROM db.images WHERE id < 5"),
        ("last", "DELETE FROM db.images WHERE id > 4990"),
    ] {
        database(&path(name), &format!("{made} {change}; CHECKPOINT db"));
        let table = open(&path(name));
        assert!(table.direct(&chunks(&table)).is_none(), "{name}");
        assert_eq!(table.rows_per_read(), 512);
    }
    // In the log only: the process ends without a checkpoint.
    for change in [
        "INSERT INTO images SELECT 5000, image FROM images LIMIT 1",
        "DELETE FROM images WHERE id = 9",
        "UPDATE images SET id = 3",
    ] {
        let path = path(&change.len().to_string());
        database(&path, &made);
        let connection = connected(&path);
        let sql = format!("PRAGMA disable_checkpoint_on_shutdown; {change}");
        connection.execute_batch(&sql).unwrap();
        drop(connection);
        assert!(std::fs::metadata(path.with_extension("wal")).is_ok_and(|m| m.len() > 0));
        let table = open(&path);
        assert!(table.direct(&chunks(&table)).is_none(), "{change}");
    }
    // Rewritten as a whole: as good as new.
    database(&path("rewritten"), &format!("{made} UPDATE db.images SET id = id + 1; CHECKPOINT db"));
    let table = open(&path("rewritten"));
    compare_all(&table, &chunks(&table));
}

/// Rows of tables of this crate's own are asked for by key, which must be their place in the file.
#[test]
fn own_tables_are_read_here_while_keys_are_places() {
    use wellread_image::{ImageMetadata, PixelType, Shape};
    use wellread_store::{ImageView, WriteOptions, create};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.duckdb");
    let mut writer = create(&path, "duckdb", &WriteOptions::default()).unwrap();
    let metadata = ImageMetadata { name: "a".into(), ..ImageMetadata::default() };
    let shape = Shape::plane(50, 60);
    for row in 0..5u8 {
        let pixels: Vec<u8> = (0..shape.pixels() * 2).map(|i| (i % 97) as u8 + row).collect();
        writer
            .write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U16, pixels: &pixels })
            .unwrap();
    }
    writer.finish().unwrap();
    let columns = paths(&["ome_image/chunks"]);
    {
        let table = open(&path);
        compare_all(&table, &columns);
        assert_eq!(table.rows_per_read(), 1);
    }
    let connection = connected(&path);
    connection.execute_batch("UPDATE images SET row_id = 5 - row_id; CHECKPOINT").unwrap();
    drop(connection);
    let table = open(&path);
    assert!(table.direct(&columns).is_none());
}

#[test]
fn constant_columns_are_told_by_the_segments() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("constant.duckdb");
    let other = |column: &str| format!("CASE WHEN i = 4999 THEN {column} ELSE");
    database(
        &path,
        &format!(
            "CREATE TABLE db.images AS SELECT {{'pixels_meta': {{
               'size': 16, 'type': 'uint8', 'text': 'more than eight',
               'last_size': {} 16 END, 'last_type': {} 'uint8' END, 'last_text': {} 'more than eight' END,
               'with_null': {} 16 END}}, 'chunks': [{{'x': 0, 'pixels': [1, 2]}}]}} AS image,
             {} image END AS with_null
             FROM range(5000) t(i)",
            other("17"),
            other("'uint16'"),
            other("'more than nine'"),
            other("NULL"),
            other("NULL"),
        ),
    );
    let table = open(&path);
    let is_constant = |path: &str| table.is_constant(&paths(&[path]));
    assert!(is_constant("image/pixels_meta/size"));
    assert!(is_constant("image/pixels_meta/type"));
    assert!(
        table.is_constant(&paths(&["image/pixels_meta/size", "image/pixels_meta/type"])),
        "several together"
    );
    // Only the beginning of long texts is known; values in lists are not told row by row.
    for differs in [
        "image/pixels_meta/text",
        "image/pixels_meta/last_size",
        "image/pixels_meta/last_type",
        "image/pixels_meta/last_text",
        "image/pixels_meta/with_null",
        "image/chunks/x",
        "image/nowhere",
        "with_null/pixels_meta/size",
    ] {
        assert!(!is_constant(differs), "{differs}");
        assert!(!table.is_constant(&paths(&["image/pixels_meta/size", differs])), "{differs}");
    }
    drop(table);
    database(&path, "UPDATE db.images SET image = {'pixels_meta': {'size': 17}} WHERE rowid = 7");
    assert!(!open(&path).is_constant(&paths(&["image/pixels_meta/size"])), "changed");
}
