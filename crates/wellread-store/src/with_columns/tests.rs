//! Tables joined to images that are but names and columns.

mod order;
mod times;

use super::*;
use crate::subset::Subset;
use crate::{PixelSink, Request, RowHints, RowInfo, Scratch, default_answers, default_columns};
use arrow_array::{Float32Array, Int64Array, StringArray};
use wellread_image::ImageMetadata;

/// No images, with columns and names: enough to be joined to.
struct Named(RecordBatch);

impl Store for Named {
    default_answers!(remote_path, layout, files, files_of, has_checksums, heads, ranges, scan, check);

    fn format(&self) -> &'static str {
        "named"
    }
    fn path(&self) -> &Path {
        Path::new("set")
    }
    fn len(&self) -> usize {
        self.0.num_rows()
    }
    fn row_info(&self, row: usize) -> Result<RowInfo> {
        Err(Error::no_such_row("set", row, 0))
    }
    fn name(&self, row: usize) -> Result<String> {
        let own = self.0.column_by_name("called").and_then(|names| features::key_at(names, row));
        Ok(own.unwrap_or_else(|| format!("image-{row}")))
    }
    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        Err(Error::no_such_row("set", row, 0))
    }
    fn hints(&self) -> Hints<'_> {
        Hints { columns: Some(self), ..Hints::default() }
    }
    fn row_hints(&self, row: usize) -> Result<RowHints<'_>> {
        Err(Error::no_such_row("set", row, 0))
    }
    fn read(&self, _: &[Request], _: &mut Scratch, _: &mut dyn PixelSink) -> Result<()> {
        Ok(())
    }
}

impl FeatureTable for Named {
    default_columns!(columns_left_out, columns_renamed, columns_in_utc, has_row_numbers);

    fn feature_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }
    fn features(&self, names: &[String]) -> Result<Option<RecordBatch>> {
        if names.is_empty() {
            return Ok(None);
        }
        features::chosen(Path::new("set"), std::slice::from_ref(&self.0), names).map(Some)
    }
}

fn joined(images: &dyn Store, batches: &[RecordBatch], on: &[String], nulls: bool) -> Result<FeatureColumns> {
    super::joined(images, batches, on, nulls).map(|found| found.columns)
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn numbers(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn images() -> Named {
    Named(batch(vec![("well", texts(&["A01", "A01", "B02"])), ("site", numbers(&[1, 2, 1]))]))
}

fn on(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn values(columns: &RecordBatch, name: &str) -> Vec<Option<String>> {
    let column = columns.column_by_name(name).unwrap();
    (0..column.len()).map(|row| features::key_at(column, row)).collect()
}

fn some(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|&value| Some(value.to_owned())).collect()
}

#[test]
fn sites_that_are_counted_from_other_numbers_are_refused() {
    let plan = batch(vec![
        ("well", texts(&["A01", "A01", "B02"])),
        ("site", numbers(&[0, 1, 0])),
        ("dose", numbers(&[7, 3, 5])),
    ]);
    for nulls in [false, true] {
        let error =
            joined(&images(), std::slice::from_ref(&plan), &on(&["well", "site"]), nulls).unwrap_err();
        assert!(error.is_choice(), "{error}");
        let words = "column \"site\" counts sites from 0 to 1, and the images' column \"site\" from 1 to 2";
        assert!(error.to_string().contains(words), "{error}");
    }
    assert!(joined(&images(), &[plan], &on(&["well"]), false).is_err(), "two rows of A01");
}

#[test]
fn many_images_share_a_row() {
    let plan = batch(vec![("well", texts(&["B02", "A01"])), ("dose", numbers(&[7, 3]))]);
    let found = joined(&images(), &[plan], &on(&["well"]), false).unwrap();
    assert_eq!(found.num_columns(), 1, "the images have the key");
    assert_eq!(values(&found, "dose"), some(&["3", "3", "7"]));
}

#[test]
fn several_columns_and_batches_tell_the_image() {
    let part = |wells: &[&str], sites: &[&str], doses: &[i64]| {
        batch(vec![("well", texts(wells)), ("site", texts(sites)), ("dose", numbers(doses))])
    };
    let parts = [part(&["A01"], &["02"], &[2]), part(&["B02", "A01"], &["1", "1"], &[3, 1])];
    let found = joined(&images(), &parts, &on(&["well", "site"]), false).unwrap();
    assert_eq!(values(&found, "dose"), some(&["1", "2", "3"]));
}

#[test]
fn a_column_that_images_lack_holds_their_names() {
    let names = texts(&["image-2", "image-0", "image-1"]);
    let table = batch(vec![("index", names), ("dose", numbers(&[2, 0, 1]))]);
    let found = joined(&images(), &[table], &on(&["index"]), false).unwrap();
    assert_eq!(values(&found, "dose"), some(&["0", "1", "2"]));
    assert_eq!(values(&found, "index"), some(&["image-0", "image-1", "image-2"]));
}

#[test]
fn names_that_are_one_number_are_refused() {
    let table = batch(vec![("index", texts(&["12"])), ("dose", numbers(&[2]))]);
    let called = |names: &[&str]| Named(batch(vec![("called", texts(names))]));
    let error = joined(&called(&["012", "12"]), std::slice::from_ref(&table), &on(&["index"]), false);
    let error = error.unwrap_err();
    assert!(error.is_choice() && error.to_string().contains("\"012\" and \"12\" have one name"), "{error}");
    let found = joined(&called(&["012", "012"]), &[table], &on(&["index"]), false).unwrap();
    assert_eq!(values(&found, "dose"), some(&["2", "2"]), "images of one name share a row");
}

#[test]
fn what_cannot_be_told_is_refused() {
    let plan = batch(vec![("well", texts(&["A01", "A01"])), ("dose", numbers(&[7, 3]))]);
    let why =
        |on: &[String]| joined(&images(), std::slice::from_ref(&plan), on, false).unwrap_err().to_string();
    let alike = why(&on(&["well"]));
    assert!(alike.contains("rows 0 and 1 are alike in well, and both are of image-0"), "{alike}");
    assert!(alike.contains("A table with a row for each cell goes to Dataset.cells"), "{alike}");
    assert!(why(&on(&["dose"])).contains("no image has a row by dose"));
    assert!(why(&on(&["site", "well"])).contains("has no column \"site\""));
    assert!(why(&on(&["a", "b"])).contains("has no column \"a\""));
    let near = why(&on(&["wel"]));
    assert!(near.contains("of plain values (hint: is it \"well\"? it has 2 columns: well, dose)"), "{near}");
    assert!(why(&[]).contains("has 2 rows for 3 images"));
    let keys = batch(vec![("well", texts(&["A01", "B02"]))]);
    let error = joined(&images(), &[keys], &on(&["well"]), false).unwrap_err();
    assert!(error.to_string().contains("has no column but well"));
    assert!(joined(&images(), &[], &[], false).is_err());
}

#[test]
fn a_column_that_the_images_have_in_other_letters_is_named() {
    let images = Named(batch(vec![("Metadata_Well", texts(&["A01", "B02"]))]));
    for name in ["well", "Well", "metadata_well"] {
        let plan = batch(vec![(name, texts(&["A01", "B02"])), ("dose", numbers(&[7, 3]))]);
        let said = joined(&images, &[plan], &on(&[name]), false).unwrap_err().to_string();
        assert!(said.contains("The images have a column \"Metadata_Well\""), "{said}");
    }
}

#[test]
fn images_without_a_row_get_nulls_where_that_is_asked_for() {
    let plan = batch(vec![("well", texts(&["A01"])), ("dose", numbers(&[7]))]);
    let error = joined(&images(), std::slice::from_ref(&plan), &on(&["well"]), false).unwrap_err();
    assert_eq!((error.row_index(), error.is_choice()), (Some(2), true));
    let found = joined(&images(), &[plan], &on(&["well"]), true).unwrap();
    assert_eq!(values(&found, "dose"), [Some("7".to_owned()), Some("7".to_owned()), None]);
}

#[test]
fn columns_that_images_lack_or_call_otherwise_are_named() {
    let table = batch(vec![
        ("well", texts(&["A01", "B02"])),
        ("plate", texts(&["P", "P"])),
        ("Image_well_x", texts(&["A01", "B02"])),
        ("dose", numbers(&[7, 3])),
    ]);
    let why = |names: &[&str]| {
        joined(&images(), std::slice::from_ref(&table), &on(names), true).unwrap_err().to_string()
    };
    let lacking = why(&["well", "plate"]);
    assert!(lacking.contains("The images have \"well\" and no \"plate\": name columns"), "{lacking}");
    let shorter = why(&["Image_well_x"]);
    assert!(shorter.contains("have a column \"well\": give that of the table this name"), "{shorter}");
    assert!(!why(&["dose"]).contains("The images have"));
}

#[test]
fn names_of_files_are_names_of_images() {
    let called = Named(batch(vec![("called", texts(&["a_DAPI", "b_DAPI", "b_GFP"]))]));
    let table = |names: &[&str]| batch(vec![("file", texts(names)), ("dose", numbers(&[1, 2, 3]))]);
    let found = joined(&called, &[table(&["b_GFP.tiff", "x/a_DAPI.tif", "b_DAPI"])], &on(&["file"]), false);
    assert_eq!(values(&found.unwrap(), "dose"), some(&["2", "3", "1"]));
    // Some of them, and of none no nulls.
    let part = joined(&called, &[table(&["b_GFP.tiff", "c", "d"])], &on(&["file"]), true).unwrap();
    assert_eq!(values(&part, "dose"), [None, None, Some("1".to_owned())]);
    let two = joined(&called, &[table(&["P1/b_GFP.tif", "P2/b_GFP.tif", "d"])], &on(&["file"]), true);
    assert!(two.unwrap_err().is_choice());
    let none = joined(&called, &[table(&["c.tif", "d.tif", "e.tif"])], &on(&["file"]), true).unwrap_err();
    let said = none.to_string();
    assert!(none.is_choice() && said.contains("no image has a row by file"), "{said}");
    assert!(said.contains("called a_DAPI, b_DAPI, b_GFP …, rows have c.tif, d.tif, e.tif"), "{said}");
    let error = joined(&called, &[table(&["b_GFP.tiff", "c", "d"])], &on(&["file"]), false).unwrap_err();
    assert!(
        error.to_string().contains("have a_DAPI, b_DAPI, the column file has b_GFP.tiff, c, d; unmatched")
    );
}

/// Cells have the files of their images in columns, with the channel in their names.
#[test]
fn a_column_without_its_channel_is_said_to_have_one() {
    let table = [batch(vec![("FileName", texts(&["a.tif"])), ("dose", numbers(&[1]))])];
    let said = |columns: &[&'static str]| {
        let cells = Named(batch(columns.iter().map(|&name| (name, texts(&["a.tif"]))).collect()));
        joined(&cells, &table, &on(&["FileName"]), true).unwrap_err().to_string()
    };
    let one = said(&["FileName_DNA", "FileNames"]);
    assert!(one.contains("a column \"FileName_DNA\": give that of the table this name"), "{one}");
    let two = said(&["FileName_DNA", "FileName_ER"]);
    assert!(
        two.contains("columns FileName_DNA, FileName_ER: give that of the table the name of one"),
        "{two}"
    );
}

/// The values of `dose`, or the error, of a table from both surfaces: in memory, and as the file of a join.
fn by_both(images: &[&str], rows: &[&str]) -> [std::result::Result<Vec<Option<String>>, String>; 2] {
    let called = Named(batch(vec![("called", texts(images))]));
    let lines: Vec<String> = (0..rows.len()).map(|row| format!("{},{row}\n", rows[row])).collect();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("profiles.csv");
    std::fs::write(&path, format!("file,dose\n{}", lines.concat())).unwrap();
    let doses: Vec<i64> = (0..).take(rows.len()).collect();
    let table = batch(vec![("file", texts(rows)), ("dose", numbers(&doses))]);
    let said = |error: &Error| {
        assert!(error.is_choice(), "{error}");
        error.to_string().replace(&path.display().to_string(), TABLE)
    };
    let memory = joined(&called, &[table], &on(&["file"]), true);
    let file = crate::profiles::join(&called, &path, "file", &[]);
    [memory, file.map(|(columns, _)| columns)]
        .map(|found| found.map(|columns| values(&columns, "dose")).map_err(|error| said(&error)))
}

#[test]
fn a_table_in_memory_and_a_file_give_images_the_same_rows() {
    let doses = |rows: &[i64]| -> Vec<Option<String>> {
        rows.iter().map(|&row| (row >= 0).then(|| row.to_string())).collect()
    };
    let cases: [(&[&str], &[&str], &[i64]); 9] = [
        // A row with the whole name of an image is of no other one.
        (&["w1", "dir/w1.tif"], &["w1", "dir/w1.tif"], &[0, 1]),
        (&["w1", "dir/w1.tif"], &["w1"], &[0, -1]),
        (&["w1", "dir/w1.tif"], &["dir/w1.tif"], &[-1, 0]),
        (&["w1", "dir/w1.tif"], &["w1.png", "dir/w1"], &[0, 1]),
        // Numbers, however they are written.
        (&["012", "7"], &["7", "12"], &[1, 0]),
        (&["a", "b"], &["b.tif", "x/a.tif"], &[1, 0]),
        (&["a"], &["a.tif", "a"], &[1]),
        // A row of no image, as each has one that names its folder; and folders that tell images apart.
        (&["P1/a", "P2/a"], &["P1/a", "a", "P2/a"], &[0, 2]),
        (&["P1/x/a", "P2/y/a"], &["P1/x/a", "y/a"], &[0, 1]),
    ];
    for (images, rows, wanted) in cases {
        let [memory, file] = by_both(images, rows);
        assert_eq!(memory, Ok(doses(wanted)), "{images:?} {rows:?}");
        assert_eq!(memory, file, "{images:?} {rows:?}");
    }
    let refused: [(&[&str], &[&str], &str); 7] = [
        (&["P1/a", "P2/a"], &["a.tif"], "could be either of two images, P1/a and P2/a"),
        // Also where one of them has a row of its own.
        (&["P1/a", "P2/a"], &["P1/a", "a"], "could be either of two images, P1/a and P2/a"),
        (&["P1/x/a", "P2/x/a"], &["P2/x/a.tif", "x/a.tif"], "two images, P1/x/a and P2/x/a"),
        (&["a"], &["a.png", "a.jpg"], "rows 0 and 1 are both of the image \"a\""),
        (&["a.tif", "a.tiff"], &["a"], "row 0 fits two images, a.tif and a.tiff"),
        (&["012", "12"], &["12", "3"], "\"012\" and \"12\" have one name where numbers are compared"),
        (&["a"], &["A.tif"], "a and A.tif differ in capital letters"),
    ];
    for (images, rows, part) in refused {
        let [memory, file] = by_both(images, rows);
        assert_eq!(memory, file, "{images:?} {rows:?}");
        let error = memory.unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn rows_of_one_plate_are_not_put_beside_others() {
    let called = Named(batch(vec![("called", texts(&["P1/10", "P1/11", "P2/10", "P2/11"]))]));
    let table = |names: &[&str]| {
        let doses: Vec<i64> = (1..).take(names.len()).collect();
        batch(vec![("file", texts(names)), ("dose", numbers(&doses))])
    };
    for nulls in [false, true] {
        let error = joined(&called, &[table(&["10.tif", "11.tif"])], &on(&["file"]), nulls).unwrap_err();
        let said = error.to_string();
        assert!(error.is_choice(), "{said}");
        assert!(said.contains("column \"file\" could be either of two images, P1/10 and P2/10"), "{said}");
        assert!(said.contains("write the folders of images in front of their names"), "{said}");
    }
    let one_plate = joined(&called, &[table(&["P1/10.tif", "P1/11.tif"])], &on(&["file"]), true).unwrap();
    assert_eq!(values(&one_plate, "dose"), [Some("1".to_owned()), Some("2".to_owned()), None, None]);
    let all = ["P1/10.tif", "P1/11.tif", "P2/10.tif", "P2/11.tif"];
    let all = joined(&called, &[table(&all)], &on(&["file"]), false).unwrap();
    assert_eq!(values(&all, "dose"), some(&["1", "2", "3", "4"]));
}

#[test]
fn columns_that_cannot_stand_beside_images_are_named() {
    let bytes: Vec<&[u8]> = vec![b"x", b"y"];
    let binary: ArrayRef = Arc::new(arrow_array::BinaryArray::from_vec(bytes));
    let nulls: ArrayRef = Arc::new(arrow_array::NullArray::new(2));
    let table = batch(vec![("raw", binary), ("dose", numbers(&[1, 2])), ("none", nulls)]);
    let [raw, none] = [("raw", "binary values"), ("none", "nothing but nulls")]
        .map(|(name, why)| LeftOut { name: name.to_owned(), why });
    assert_eq!(left_out(&[table]), [raw, none]);
    assert!(left_out(&[]).is_empty());
}

#[test]
fn columns_stand_beside_those_that_were_there() {
    let dose: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 1.5, 2.5]));
    let columns = batch(vec![("dose", dose), ("site", numbers(&[7, 8, 9]))]);
    let store = WithColumns::new(Arc::new(images()), Arc::new(columns)).unwrap();
    assert_eq!(store.hints().feature_names(), ["well", "dose", "site"]);
    let wanted = on(&["site", "well", "dose"]);
    let found = store.hints().features(&wanted).unwrap().unwrap();
    assert_eq!(values(&found, "site"), some(&["7", "8", "9"]), "the new one counts");
    assert_eq!(values(&found, "well"), some(&["A01", "A01", "B02"]));
    let view = Subset::of(std::sync::Arc::new(store) as std::sync::Arc<dyn Store>, vec![2, 0]);
    let found = view.hints().features(&on(&["dose"])).unwrap().unwrap();
    assert_eq!(values(&found, "dose"), some(&["2.5", "0.5"]));
    let beyond = view.scan(1..3, &mut |_, _, _| Ok(())).unwrap_err().to_string();
    assert!(beyond.contains("row 2 was asked for, but there are 2 images"), "{beyond}");
}

#[test]
fn label_images_are_told_by_keys_as_tables_are() {
    let labels = Named(batch(vec![("well", texts(&["B02", "A01"])), ("site", texts(&["01", "2.0"]))]));
    let found = crate::cells::pair(&images(), &labels, &on(&["well", "site"])).unwrap();
    assert_eq!(found, [None, Some(1), Some(0)]);
    let error = crate::cells::pair(&images(), &labels, &on(&["well"])).unwrap_err().to_string();
    assert!(error.contains("image-0 and image-1 are alike in well"), "{error}");
    // As tables are, label images of wells or sites that are written in another way are refused.
    for (wells, sites, said) in [
        (
            ["B2", "A01"],
            [1, 2],
            "column \"well\" has the well \"B2\", which the images' column \"well\" calls \"B02\"",
        ),
        (["A01", "A01"], [0, 1], "counts sites from 0 to 1, and the images' column \"site\" from 1 to 2"),
    ] {
        let labels = Named(batch(vec![("well", texts(&wells)), ("site", numbers(&sites))]));
        let error = crate::cells::pair(&images(), &labels, &on(&["well", "site"])).unwrap_err();
        assert!(error.is_choice() && error.to_string().contains(said), "{error}");
    }
}

#[test]
fn columns_of_other_numbers_of_rows_are_refused() {
    let columns = batch(vec![("dose", numbers(&[1, 2]))]);
    let error = WithColumns::new(Arc::new(images()), Arc::new(columns)).err().unwrap();
    assert!(error.is_choice() && error.to_string().contains("has 2 rows for 3 images"));
}
