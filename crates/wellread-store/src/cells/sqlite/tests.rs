//! Databases as CellProfiler and cytominer-database write them, and damaged ones.

use super::*;
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};

fn database(sql: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cells 1%.sqlite");
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    (dir, path)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Bytes of a page of SQLite, unless a database says otherwise.
const PAGE: usize = 4096;

const CELLPROFILER: &str = "
    CREATE TABLE MyExpt_Per_Image (ImageNumber INTEGER PRIMARY KEY, Image_Metadata_Well TEXT, Image_FileName_OrigDNA TEXT);
    CREATE TABLE MyExpt_Per_Object (ImageNumber INTEGER, ObjectNumber INTEGER, Nuclei_Location_Center_X FLOAT,
        Nuclei_Location_Center_Y FLOAT, PRIMARY KEY (ImageNumber, ObjectNumber));
    CREATE TABLE MyExpt_Per_Experiment (k TEXT, v TEXT);
    INSERT INTO MyExpt_Per_Image VALUES (1, 'A01', 'a.tif'), (2, 'A02', 'b.tif');
    INSERT INTO MyExpt_Per_Object VALUES (2, 1, 10, 20.5), (1, 1, 30.25, 40), (2, 2, NULL, 'nan'), (3, 1, 5, 6);";

#[test]
fn objects_have_the_columns_of_their_images() {
    let (_dir, path) = database(CELLPROFILER);
    let (database, rows) = Database::open(&path, None, &[]).unwrap();
    assert_eq!(rows, 4);
    let all = [
        "ImageNumber",
        "ObjectNumber",
        "Nuclei_Location_Center_X",
        "Nuclei_Location_Center_Y",
        "Image_Metadata_Well",
        "Image_FileName_OrigDNA",
    ];
    assert_eq!(database.names(), all);
    let asked = names(&["Image_Metadata_Well", "Nuclei_Location_Center_X", "ObjectNumber"]);
    let batch = database.read(&asked).unwrap();
    let wells: Vec<_> = batch.column(0).as_string::<i32>().iter().collect();
    assert_eq!(wells, [Some("A02"), Some("A01"), Some("A02"), None]);
    let x: Vec<_> = batch.column(1).as_primitive::<Float64Type>().iter().collect();
    assert_eq!(x, [Some(10.0), Some(30.25), None, Some(5.0)]);
    assert_eq!(batch.column(2).as_primitive::<Int64Type>().values(), &[1, 1, 2, 1]);
    let y = database.read(&names(&["Nuclei_Location_Center_Y"])).unwrap();
    assert!(y.column(0).is_null(2));
    let error = database.read(&names(&["none"])).unwrap_err().to_string();
    assert!(error.contains("has no column"), "{error}");
}

#[test]
fn runs_of_cytominer_database_are_told_apart() {
    let (_dir, path) = database(
        "CREATE TABLE Image (TableNumber TEXT, ImageNumber INTEGER, Image_Metadata_Well TEXT);
         CREATE TABLE Nuclei (TableNumber TEXT, ImageNumber INTEGER, ObjectNumber INTEGER, Nuclei_Location_Center_X FLOAT);
         CREATE TABLE Cells (TableNumber TEXT, ImageNumber INTEGER, ObjectNumber INTEGER, Cells_Location_Center_X FLOAT);
         INSERT INTO Image VALUES ('a', 1, 'A01'), ('b', 1, 'B01');
         INSERT INTO Nuclei VALUES ('b', 1, 1, 3), ('a', 1, 1, 4);",
    );
    let (database, rows) = Database::open(&path, None, &[]).unwrap();
    let batch = database.read(&names(&["Image_Metadata_Well", "TableNumber"])).unwrap();
    assert_eq!(rows, 2);
    assert_eq!(batch.column(0).as_string::<i32>().value(0), "B01");
    assert_eq!(batch.column(1).as_string::<i32>().value(1), "a");
}

/// As pandas writes them: floats where a number is missing, texts of a table that was read as such.
#[test]
fn numbers_of_images_may_be_of_another_type_in_each_table() {
    for (images, cells) in
        [("INTEGER", "REAL"), ("REAL", "INTEGER"), ("TEXT", "REAL"), ("INTEGER", "TEXT"), ("TEXT", "TEXT")]
    {
        let (_dir, path) = database(&format!(
            "CREATE TABLE Per_Image (ImageNumber {images}, w TEXT); INSERT INTO Per_Image VALUES (1, 'a'), (2, 'b');
             CREATE TABLE Per_Object (ImageNumber {cells}, x REAL);
             INSERT INTO Per_Object VALUES (2, 0.5), (1, 1.5), (NULL, 2.5), (3, 3.5);"
        ));
        let (database, _) = Database::open(&path, None, &[]).unwrap();
        let batch = database.read(&names(&["w"])).unwrap();
        let wells: Vec<_> = batch.column(0).as_string::<i32>().iter().collect();
        assert_eq!(wells, [Some("b"), Some("a"), None, None], "{images} {cells}");
    }
}

#[test]
fn columns_that_are_asked_for_choose_among_tables_of_objects() {
    let (_dir, path) = database(
        "CREATE TABLE Per_Image (ImageNumber INTEGER, Image_Metadata_Well TEXT);
         CREATE TABLE Per_Nuclei (ImageNumber INTEGER, Nuclei_Location_Center_X FLOAT, Nuclei_Location_Center_Y FLOAT);
         CREATE TABLE Per_Cells (ImageNumber INTEGER, Cells_Location_Center_X FLOAT, Cells_Location_Center_Y FLOAT);
         INSERT INTO Per_Image VALUES (1, 'A01');
         INSERT INTO Per_Nuclei VALUES (1, 2, 3), (1, 4, 5);
         INSERT INTO Per_Cells VALUES (1, 6, 7);",
    );
    let rows = |wanted: &[&str]| Database::open(&path, None, wanted).unwrap().1;
    assert_eq!(rows(&[]), 2);
    assert_eq!(rows(&["Nuclei_Location_Center_X"]), 2);
    assert_eq!(rows(&["Cells_Location_Center_X", "cells_location_center_y"]), 1);
    // That none has them is said where they are read.
    assert_eq!(rows(&["Cells_Location_Center_X", "x"]), 2);
    let (cells, _) = Database::open(&path, None, &["Cells_Location_Center_X"]).unwrap();
    let batch = cells.read(&names(&["Cells_Location_Center_X", "Image_Metadata_Well"])).unwrap();
    assert_eq!(batch.column(0).as_primitive::<Float64Type>().values(), &[6.0]);
    assert_eq!(batch.column(1).as_string::<i32>().value(0), "A01");
}

#[test]
fn a_table_is_taken_by_its_name() {
    let (_dir, path) = database(
        "CREATE TABLE E_Per_Image (ImageNumber INTEGER, Image_Metadata_Well TEXT);
         CREATE TABLE E_Per_Nuclei (ImageNumber INTEGER, Nuclei_Location_Center_X FLOAT);
         CREATE TABLE E_Per_Cytoplasm (ImageNumber INTEGER, Cytoplasm_Location_Center_X FLOAT);
         INSERT INTO E_Per_Image VALUES (1, 'A01');
         INSERT INTO E_Per_Nuclei VALUES (1, 2), (1, 4);
         INSERT INTO E_Per_Cytoplasm VALUES (1, 6);",
    );
    for name in ["E_Per_Cytoplasm", "e_per_cytoplasm", "Cytoplasm"] {
        let (database, rows) = Database::open(&path, Some(name), &["Nuclei_Location_Center_X"]).unwrap();
        assert_eq!(rows, 1);
        let all = ["ImageNumber", "Cytoplasm_Location_Center_X", "Image_Metadata_Well"];
        assert_eq!(database.names(), all);
        let wells = database.read(&names(&["Image_Metadata_Well"])).unwrap();
        assert_eq!(wells.column(0).as_string::<i32>().value(0), "A01");
    }
    // A table of no objects is one, too, if it is asked for.
    let (images, rows) = Database::open(&path, Some("Image"), &[]).unwrap();
    assert_eq!((rows, images.names().len()), (1, 2));
    let error = Database::open(&path, Some("Per_Cells"), &[]).unwrap_err();
    let text = error.to_string();
    assert!(error.is_choice() && text.contains("has no table \"Per_Cells\""), "{text}");
    assert!(text.contains("its tables: E_Per_Cytoplasm, E_Per_Image, E_Per_Nuclei"), "{text}");
}

/// Thumbnails, whatever type their column is declared as: pandas declares bytes as text.
#[test]
fn columns_of_bytes_are_left_out() {
    let (_dir, path) = database(
        "CREATE TABLE Per_Image (ImageNumber INTEGER, Image_Thumbnail_DNA MEDIUMBLOB, Image_Metadata_Well TEXT);
         CREATE TABLE Per_Object (ImageNumber INTEGER, x FLOAT, thumb BLOB, text BLOB, outline TEXT, any, none TEXT);
         INSERT INTO Per_Image VALUES (1, x'ff00', 'A01');
         INSERT INTO Per_Object VALUES (1, 2.5, NULL, NULL, x'01', 3, NULL), (1, 3.5, x'02', 'a', NULL, x'03', NULL);",
    );
    let (database, rows) = Database::open(&path, None, &[]).unwrap();
    assert_eq!(rows, 2);
    assert_eq!(database.names(), ["ImageNumber", "x", "text", "any", "none", "Image_Metadata_Well"]);
    let left_out = ["thumb", "outline", "Image_Thumbnail_DNA"];
    let left_out = left_out.map(|name| LeftOut { name: name.to_owned(), why: "binary values" });
    assert_eq!(database.left_out(), left_out);
    let batch = database.read(&names(&["x", "text", "Image_Metadata_Well", "none"])).unwrap();
    assert_eq!(batch.column(0).as_primitive::<Float64Type>().values(), &[2.5, 3.5]);
    let texts: Vec<_> = batch.column(1).as_string::<i32>().iter().collect();
    assert_eq!(texts, [None, Some("a")]);
    assert_eq!(batch.column(2).as_string::<i32>().value(1), "A01");
    assert!(batch.column(3).is_null(0) && batch.column(3).is_null(1));
    // Bytes behind values of another kind are named with their row, and what to do.
    let mixed = database.read(&names(&["any"])).unwrap_err().to_string();
    assert!(
        mixed.contains("row 1") && mixed.contains("column \"any\" of table Per_Object holds bytes"),
        "{mixed}"
    );
    assert!(mixed.contains("hint: set the value to NULL"), "{mixed}");
}

#[test]
fn tables_without_row_numbers_or_images_are_read() {
    let (_dir, path) = database(
        "CREATE TABLE Per_Nuclei (ImageNumber INTEGER, Nuclei_Number_Object_Number INTEGER, x FLOAT,
            PRIMARY KEY (ImageNumber, Nuclei_Number_Object_Number)) WITHOUT ROWID;
         INSERT INTO Per_Nuclei VALUES (2, 1, 1.5), (1, 1, 2.5);",
    );
    let (database, _) = Database::open(&path, None, &[]).unwrap();
    let batch = database.read(&names(&["x"])).unwrap();
    assert_eq!(batch.column(0).as_primitive::<Float64Type>().values(), &[2.5, 1.5]);
}

#[test]
fn what_cannot_be_read_says_why() {
    let refusal = |sql: &str| {
        let (_dir, path) = database(sql);
        Database::open(&path, None, &[]).map(|_| ()).unwrap_err().to_string()
    };
    let none = refusal("CREATE TABLE notes (text TEXT); CREATE VIEW Per_Object AS SELECT 1 AS x;");
    assert!(none.contains("without a table of objects (notes)"), "{none}");
    let two = refusal("CREATE TABLE a_Per_Object (x); CREATE TABLE b_Per_Object (x);");
    assert!(two.contains("has 2 tables of objects: a_Per_Object, b_Per_Object"), "{two}");
    let (_dir, path) = database(
        "CREATE TABLE Per_Object (ImageNumber, x); INSERT INTO Per_Object VALUES (1, 2), (1, x'00');
         CREATE TABLE Per_Image (ImageNumber, w); INSERT INTO Per_Image VALUES (1, 'a'), (1, 'b');",
    );
    let (database, _) = Database::open(&path, None, &[]).unwrap();
    let bytes = database.read(&names(&["x"])).unwrap_err().to_string();
    assert!(bytes.contains("row 1") && bytes.contains("holds bytes"), "{bytes}");
    let alike = database.read(&names(&["w"])).unwrap_err().to_string();
    assert!(alike.contains("rows 0 and 1 of table Per_Image are alike in ImageNumber"), "{alike}");
    let wal = path.with_file_name("cells 1%.sqlite-wal");
    std::fs::write(&wal, "changes").unwrap();
    assert!(Database::open(&path, None, &[]).unwrap_err().to_string().contains("is being written"));
}

/// Rows are counted when a database is opened, and a page that is not one is named by the row that it begins with.
#[test]
fn a_damaged_page_is_named_by_its_first_row() {
    let (_dir, path) = database(
        "CREATE TABLE Per_Object (ImageNumber INTEGER, x FLOAT, name TEXT);
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1999)
         INSERT INTO Per_Object SELECT 1, i, printf('cell-%06d', i) FROM n;",
    );
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.len() / PAGE / 2 * PAGE;
    let page = String::from_utf8_lossy(&bytes[at..at + PAGE]).into_owned();
    let rows = page.match_indices("cell-").map(|(at, _)| page[at + 5..at + 11].parse::<usize>().unwrap());
    let first = rows.min().unwrap();
    bytes[at..at + PAGE].fill(0);
    std::fs::write(&path, &bytes).unwrap();
    let error = Database::open(&path, None, &[]).unwrap_err();
    assert_eq!((error.path(), error.row_index()), (path.as_path(), Some(first)));
    assert!(first > 0 && error.cause().ends_with("; in table Per_Object"), "{error}");
    assert_eq!(error.hint_text(), Some("the file is damaged: copy or export it again"));
}

#[test]
fn damaged_files_are_errors() {
    let (_dir, path) = database(CELLPROFILER);
    let whole = std::fs::read(&path).unwrap();
    let asked = names(&["Image_Metadata_Well", "Nuclei_Location_Center_X"]);
    for at in (16..whole.len()).step_by(97) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        std::fs::write(&path, &bytes).unwrap();
        if let Ok((database, _)) = Database::open(&path, None, &[]) {
            // Numbers that are other numbers now are nobody's fault; anything else is an error.
            drop(database.read(&asked));
        }
        std::fs::write(&path, &whole[..at]).unwrap();
        let read = Database::open(&path, None, &[]).and_then(|(database, _)| database.read(&asked));
        // The bytes cut from the last page may be room that holds nothing.
        assert!(read.is_err() || at > whole.len() - PAGE, "cut at {at}");
    }
}
