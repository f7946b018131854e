//! Tables of profiles joined to sites of several files, by the names of these files.

use super::{pattern, write};
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use std::path::Path;
use std::sync::Arc;
use wellread_store::with_columns::joined;
use wellread_store::{Result, open};

/// Two sites of a well in two channels.
const FILES: [&str; 4] = ["A01_1_DNA.tif", "A01_1_ER.tif", "A01_2_DNA.tif", "A01_2_ER.tif"];

/// The doses that images of `folder` get from rows with these names of files in two columns.
fn doses(folder: &Path, names: &str, rows: &[[&str; 2]]) -> Result<Vec<Option<String>>> {
    let images = open(folder, &pattern(names)).unwrap();
    let texts = |texts: Vec<String>| Arc::new(StringArray::from(texts)) as ArrayRef;
    let column = |at: usize| texts(rows.iter().map(|names| names[at].to_owned()).collect());
    let dose = texts((0..rows.len()).map(|row| format!("dose {row}")).collect());
    let table = RecordBatch::try_from_iter([("DNA", column(0)), ("ER", column(1)), ("dose", dose)]).unwrap();
    let found = joined(&*images, &[table], &["DNA", "ER"].map(str::to_owned), true)?.columns;
    let found = found.column_by_name("dose").unwrap().as_string::<i32>();
    Ok(found.iter().map(|dose| dose.map(str::to_owned)).collect())
}

#[test]
fn a_row_that_names_files_of_two_sites_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &FILES);
    let some = |doses: [&str; 2]| doses.map(|dose| Some(dose.to_owned())).to_vec();
    // The place is told by the column of sites, and without one by the names of sites.
    for names in ["{well}_{site}_{channel}.tif", "{dish}_{position}_{channel}.tif"] {
        let right = doses(dir.path(), names, &[[FILES[2], FILES[3]], [FILES[0], FILES[1]]]);
        assert_eq!(right.unwrap(), some(["dose 1", "dose 0"]), "{names}");
        let one = doses(dir.path(), names, &[[FILES[2], "other.tif"], ["other.tif", FILES[1]]]);
        assert_eq!(one.unwrap(), some(["dose 1", "dose 0"]), "{names}");
        let error =
            doses(dir.path(), names, &[["other.tif", "other.tif"], [FILES[0], FILES[3]]]).unwrap_err();
        let said = "row 1 has names of two sites in DNA, ER: those of the images A01_1 and A01_2";
        assert!(error.is_choice() && error.to_string().contains(said), "{error}");
    }
}

/// Images of a site, each of one channel, share the row that names them all.
#[test]
fn images_of_one_site_share_a_row() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &FILES);
    let names = "{well}_{site}_{stain}.tif";
    let rows = [[FILES[0], FILES[1]], [FILES[2], FILES[3]]];
    let found = doses(dir.path(), names, &rows).unwrap();
    assert_eq!(found, ["dose 0", "dose 0", "dose 1", "dose 1"].map(|dose| Some(dose.to_owned())));
    let error = doses(dir.path(), names, &[[FILES[0], FILES[3]]]).unwrap_err().to_string();
    assert!(error.contains("row 0 has names of two sites in DNA, ER"), "{error}");
}
