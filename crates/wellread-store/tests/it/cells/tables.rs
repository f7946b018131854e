//! Tables of cells: their errors, the image of a cell.

use super::{Image, sliced, table, write};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::fmt::Write;
use std::sync::Arc;
use wellread_image::{PixelType, Shape};
use wellread_store::cells::{CellOptions, CellsStore, Edge, Mask, Unit, Unmatched};
use wellread_store::{OpenOptions, Renamed, Store, WriteOptions, open, read_image};

/// The error of a table names the file, and the row where it is one.
#[test]
fn bad_tables_say_what_is_wrong() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let dir = tempfile::tempdir().unwrap();
    let images: Vec<Image> = ["a", "b", "c"]
        .map(|name| Image::noise(name, Shape::plane(40, 40), PixelType::U8, &mut random))
        .into();
    let set = dir.path().join("set.parquet");
    drop(write(&set, "parquet", &WriteOptions::default(), &images));
    let cells = |text: &str, options: &CellOptions| {
        let path = dir.path().join("cells.csv");
        std::fs::write(&path, text).unwrap();
        CellsStore::open(open(&set, &OpenOptions::default()).unwrap(), &path, options)
    };
    let small = CellOptions { size: [8, 8], ..CellOptions::default() };
    let refusal = |text: &str, options: &CellOptions| match cells(text, options) {
        Ok(store) => panic!("{} cells were found", store.len()),
        Err(error) => error.to_string(),
    };
    let bad = "image,x,y,ObjectNumber\na,1,2,1\nb,,2,1\nnone,1,2,1\na,40,2,2\nc,nan,3,1\n";
    let error = refusal(bad, &small);
    for part in [
        "cells.csv: 4 of 5 cells cannot be cut out",
        "1 cell of no image of this set: row 2 (image none)",
        "2 cells without a position (null, NaN or infinite): row 1 (image b), row 4 (image c)",
        "1 cell outside of the image: row 3 (image a) at y 2, x 40",
        "unmatched skip",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let far = refusal("image,x,y\na,1e300,2\n", &small);
    assert!(far.contains("at y 2, x 1e300"), "{far}");
    let skipping = CellOptions { unmatched: Unmatched::Skip, ..small.clone() };
    let store = cells(bad, &skipping).unwrap();
    assert_eq!((store.len(), store.name(0).unwrap()), (1, "a/cell-1".to_owned()));
    let report = store.cells().report();
    assert_eq!(report.images_without_cells.first, ["b", "c"]);
    assert_eq!((report.cells, report.images, report.rows), (1, 1, 5));
    assert!(refusal("image,x,y\nnone,1,1\n", &skipping).contains("1 of 1 cell cannot be cut out"));
    let twice = refusal("image,x,y,ObjectNumber\na,1,2,7\nb,1,2,7\na,3,4,7\n", &small);
    assert!(
        twice.contains("row 2: rows 0 and 2 are both cell 7 (column \"ObjectNumber\") of the image a"),
        "{twice}"
    );
    // A column of that name may hold classes, which a note says.
    let classes = cells("image,x,y,label\na,1,2,4\na,3,4,4\n", &small).unwrap();
    assert_eq!(classes.name(1).unwrap(), "a/cell-1");
    let said = "column \"label\" does not number the cells, and their rows in the table do: rows 0 and 1 both have 4 in \
                it, in the image a. ";
    let notes = classes.cells().report().notes();
    assert!(notes.iter().any(|note| note.starts_with(said)), "{notes:?}");
    // Beside the positions of scikit-image it is its number, unless it is text.
    for columns in ["centroid-0,centroid-1", "x,y,bbox-0,bbox-1"] {
        let rest = if columns.contains("bbox") { ",0,0" } else { "" };
        let text = format!("image,label,{columns}\na,7,1,2{rest}\na,7,3,4{rest}\n");
        let error = refusal(&text, &small);
        assert!(error.contains("rows 0 and 1 are both cell 7 (column \"label\") of the image a"), "{error}");
        assert!(error.contains("If the column holds classes, give it another name"), "{error}");
        let texts = text.replace(",7,", ",early,");
        assert_eq!(cells(&texts, &small).unwrap().name(1).unwrap(), "a/cell-1");
    }
    let whole = CellOptions { size: [41, 8], ..small.clone() };
    let large = refusal("image,x,y\na,1,2\n", &whole);
    assert!(large.contains("40 x 40 pixels") && large.contains("edge pad"), "{large}");
    let padded = CellOptions { edge: Edge::Pad, ..whole };
    assert_eq!(cells("image,x,y\na,1,2\n", &padded).unwrap().len(), 1);
    let dropped = CellOptions { edge: Edge::Drop, ..small.clone() };
    assert!(refusal("image,x,y\na,1,2\n", &dropped).contains("no cell is left"));
    assert!(refusal("x,y\n1,2\n", &small).contains("do not tell the image of a cell"));
    assert!(refusal("image,left,top\na,1,2\n", &small).contains("name both, x and y"));
    assert!(refusal("image,x,y\na,one,2\n", &small).contains("\"x\" holds no numbers"));
    assert!(refusal("image,x,y\na,1\n", &small).contains("line 2: 2 fields"));
    let um = CellOptions { unit: Unit::Um, ..small.clone() };
    assert!(refusal("image,x,y\na,1,2\n", &um).contains("how large a pixel is"));
    let by = |names: &[&str]| CellOptions {
        by: names.iter().map(|&name| name.to_owned()).collect(),
        ..small.clone()
    };
    assert!(refusal("Well,x,y\nA01,1,2\n", &by(&["Wells"])).contains("no column \"Wells\""));
    let error = refusal("Plate,Well,x,y\nP,A01,1,2\n", &by(&["Plate", "Well"]));
    assert!(error.contains("\"Plate\" beside the images"), "{error}");
    // Hints name columns that can be taken, whatever was tried before.
    let table = "Image_FileName_IllumGFP,Image_FileName_DAPI,Image_FileName_GFP,Image_Metadata_Well_x,x,y\n\
                 c.tif,a.tif,b.tif,A01,9,9\n";
    let pair = by(&["Image_FileName_DAPI", "Image_FileName_GFP"]);
    for tried in [&small, &pair, &by(&["Image_Metadata_Well_x"])] {
        let error = refusal(table, tried);
        let hint = "each of Image_FileName_DAPI, Image_FileName_GFP has names of images: give one alone, such as by \
                    Image_FileName_DAPI; images of one channel each can be put together first (pattern)";
        assert!(error.contains(hint), "{error}");
    }
    assert_eq!(cells(table, &by(&["Image_FileName_DAPI"])).unwrap().name(0).unwrap(), "a/cell-0");
    let error = refusal("Well,x,y\nA01,1,2\n", &small);
    assert!(
        error.contains("give a column with the names of the images, such as a, or columns that both"),
        "{error}"
    );
    for size in [[0, 8], [8, usize::MAX]] {
        assert!(refusal("image,x,y\na,1,2\n", &CellOptions { size, ..small.clone() }).contains("crops of"));
    }
    let mask = CellOptions { mask: Mask::Zero, ..small };
    assert!(refusal("image,x,y\na,1,2\n", &mask).contains("a mask needs label images"));
    let mask = CellOptions { masks: Some(set.clone()), ..mask };
    let error = refusal("image,x,y,label\na,1,2,4\na,3,4,4\n", &mask);
    assert!(
        error.contains("\"label\" does not tell it, since rows 0 and 1 both have 4 in it, in the image a"),
        "{error}"
    );
}

/// A table of the program is one like those of files.
#[test]
fn tables_in_memory_are_tables_of_cells() {
    use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
    use wellread_store::cells::{CellSource, Cells};
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let dir = tempfile::tempdir().unwrap();
    let image = Image::noise("a", Shape::plane(20, 20), PixelType::U8, &mut random);
    let set = write(&dir.path().join("set.parquet"), "parquet", &WriteOptions::default(), &[image]);
    let batch = |rows: usize| {
        let columns: [(&str, ArrayRef); 3] = [
            ("image", Arc::new(StringArray::from(vec!["a"; rows]))),
            ("x", Arc::new(Float64Array::from(vec![4.0; rows]))),
            ("y", Arc::new(Float64Array::from(vec![5.0; rows]))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let options = CellOptions { size: [8, 8], ..CellOptions::default() };
    let cells = Cells::of(&*set, CellSource::Memory(&[batch(2), batch(1)]), &options, None).unwrap();
    assert_eq!([0, 1, 2, 3].map(|cell| cells.image_of(cell)), [Some(0), Some(0), Some(0), None]);
    let error = Cells::of(&*set, CellSource::Memory(&[batch(0)]), &options, None).unwrap_err();
    assert!(error.is_choice() && error.to_string().contains("no rows"), "{error}");
}

/// A name without folders may be of images in several, also where one of them has a name of its own in the table.
#[test]
fn names_without_folders_are_of_no_image_where_several_have_them() {
    let mut random = ChaCha8Rng::seed_from_u64(10);
    let dir = tempfile::tempdir().unwrap();
    let images = ["P1/a", "P2/a", "P2/b"]
        .map(|name| Image::noise(name, Shape::plane(20, 20), PixelType::U8, &mut random));
    let set = dir.path().join("set.parquet");
    drop(write(&set, "parquet", &WriteOptions::default(), &images));
    let found = |names: &[&str]| {
        let cells: Vec<_> = names.iter().map(|&name| (name.to_owned(), 9.0, 9.0)).collect();
        let path = table(dir.path(), &cells);
        let options = CellOptions { size: [4, 4], ..CellOptions::default() };
        let store = CellsStore::open(open(&set, &OpenOptions::default()).unwrap(), &path, &options);
        store.map(|store| (0..store.len()).map(|cell| store.cells().image_of(cell)).collect::<Vec<_>>())
    };
    for names in [&["P1/a", "a"][..], &["a.tif", "P2/a.tif"], &["a"]] {
        let error = found(names).unwrap_err().to_string();
        assert!(error.contains("in column \"ImageName\" could be either of two images, P1/a"), "{error}");
        assert!(error.contains("and P2/a") && error.contains("write the folders of images"), "{error}");
    }
    assert_eq!(found(&["P1/a", "b", "P2/a"]).unwrap(), [Some(0), Some(2), Some(1)]);
}

/// A table's `row_id` and `ome_image` are data, whatever they hold: cells are numbered without them.
#[test]
fn columns_called_like_a_formats_own_are_columns_of_cells() {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let dir = tempfile::tempdir().unwrap();
    let image = Image::noise("a", Shape::plane(20, 20), PixelType::U8, &mut random);
    let set = dir.path().join("set.parquet");
    drop(write(&set, "parquet", &WriteOptions::default(), &[image]));
    let path = dir.path().join("cells.csv");
    let options = CellOptions { size: [4, 4], ..CellOptions::default() };
    for ids in [[100_i64, 101], [0, 1]] {
        let [first, second] = ids;
        let text = format!("image,x,y,row_id,ome_image\na,5,5,{first},q\na,9,9,{second},r\n");
        std::fs::write(&path, text).unwrap();
        let images = open(&set, &OpenOptions::default()).unwrap();
        let store = CellsStore::open(images, &path, &options).unwrap();
        assert_eq!(store.hints().feature_names(), ["image", "x", "y", "row_id", "ome_image"]);
        let columns = wellread_store::features::all(&store).unwrap().unwrap();
        let found = columns.column_by_name("row_id").unwrap().as_primitive::<Int64Type>();
        assert_eq!(found.values(), &ids);
        let texts = columns.column_by_name("ome_image").unwrap().as_string::<i32>();
        assert_eq!([texts.value(0), texts.value(1)], ["q", "r"]);
    }
}

/// Keys of plate, well and site tell images; columns of both stand beside the cells.
#[test]
fn cells_are_joined_by_columns_and_have_them() {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type};
    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let images: Vec<Image> = ["p", "q", "r"]
        .map(|name| Image::noise(name, Shape::plane(30, 30), PixelType::U8, &mut random))
        .into();
    let dir = tempfile::tempdir().unwrap();
    let wells: ArrayRef = Arc::new(StringArray::from(vec!["A01", "A01", "B02"]));
    let sites: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 1]));
    let features = RecordBatch::try_from_iter([("Metadata_Well", wells), ("Metadata_Site", sites)]).unwrap();
    let options = WriteOptions { features: Some(features), ..WriteOptions::default() };
    let set = dir.path().join("set.parquet");
    drop(write(&set, "parquet", &options, &images));
    let path = dir.path().join("cells.tsv");
    let text = "Well\tSite\tCells_Location_Center_X\tCells_Location_Center_Y\tarea\n\
                B02\t1.0\t10\t11\t5.5\nA01\t2.0\t12\t13\t6.5\nA01\t1.0\t14\t15\t7.5\n";
    std::fs::write(&path, text).unwrap();
    let options = CellOptions { size: [4, 4], ..CellOptions::default() };
    for by in [vec![], vec!["Well".to_owned(), "Site".to_owned()]] {
        let images = open(&set, &OpenOptions::default()).unwrap();
        let store = CellsStore::open(images, &path, &CellOptions { by, ..options.clone() }).unwrap();
        let names: Vec<String> = (0..3).map(|row| store.name(row).unwrap()).collect();
        assert_eq!(names, ["r/cell-0", "q/cell-1", "p/cell-2"]);
        assert_eq!(store.metadata(1).unwrap().name, "q/cell-1");
        let columns = wellread_store::features::all(&store).unwrap().unwrap();
        let names = store.hints().feature_names();
        assert_eq!(names.len(), 7);
        assert_eq!(columns.schema().fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>(), names);
        let areas = columns.column_by_name("area").unwrap().as_primitive::<Float64Type>();
        assert_eq!(areas.values(), &[5.5, 6.5, 7.5]);
        let sites = columns.column_by_name("Metadata_Site").unwrap().as_primitive::<Int64Type>();
        assert_eq!(sites.values(), &[1, 2, 1]);
    }
    // A table that is long enough for several threads, sorted and not.
    let (keys, mut long) = ([("B02", 1, 'r'), ("A01", 2, 'q'), ("A01", 1, 'p')], Vec::new());
    for row in 0..20_000_usize {
        long.push(if row < 10_000 { row / 4000 } else { row * 7 % 3 });
    }
    let mut text = "Well\tSite\tx\ty\n".to_owned();
    for &key in &long {
        writeln!(text, "{}\t{}\t12\t13", keys[key].0, keys[key].1).unwrap();
    }
    let path_of_long = dir.path().join("long.tsv");
    std::fs::write(&path_of_long, text).unwrap();
    let images = open(&set, &OpenOptions::default()).unwrap();
    let store = CellsStore::open(images, &path_of_long, &options).unwrap();
    assert_eq!(store.len(), long.len());
    for (row, &key) in long.iter().enumerate().step_by(97) {
        assert_eq!(store.name(row).unwrap(), format!("{}/cell-{row}", keys[key].2));
    }
    let images = open(&set, &OpenOptions::default()).unwrap();
    let by = vec!["Well".to_owned()];
    let refused = CellsStore::open(images, &path_of_long, &CellOptions { by, ..options.clone() });
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("row 4000: could be of either of two images, p and q"), "{error}");
    // The well alone has two images.
    let images = open(&set, &OpenOptions::default()).unwrap();
    let by = vec!["Well".to_owned()];
    let error = CellsStore::open(images, &path, &CellOptions { by, ..options }).err().unwrap().to_string();
    assert!(error.contains("row 1: could be of either of two images, p and q"), "{error}");
}

/// A table that counts sites from 1 is not joined to the next site of images whose sites begin at 0.
#[test]
fn cells_of_sites_that_begin_at_another_number_are_refused() {
    use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    let mut random = ChaCha8Rng::seed_from_u64(14);
    let images = ["p", "q"].map(|name| Image::noise(name, Shape::plane(30, 30), PixelType::U8, &mut random));
    let dir = tempfile::tempdir().unwrap();
    let sites: ArrayRef = Arc::new(Int64Array::from(vec![0, 1]));
    let features = RecordBatch::try_from_iter([("Metadata_Site", sites)]).unwrap();
    let options = WriteOptions { features: Some(features), ..WriteOptions::default() };
    let set = dir.path().join("set.parquet");
    drop(write(&set, "parquet", &options, &images));
    let cells = |rows: &str, unmatched: Unmatched| {
        let path = dir.path().join("cells.csv");
        std::fs::write(&path, format!("Metadata_Site,x,y\n{rows}\n")).unwrap();
        let options = CellOptions { size: [4, 4], unmatched, ..CellOptions::default() };
        CellsStore::open(open(&set, &OpenOptions::default()).unwrap(), &path, &options)
    };
    for unmatched in [Unmatched::Error, Unmatched::Skip] {
        let error = cells("1,9,9\n1,8,8\n2,9,9", unmatched).err().unwrap();
        assert!(error.is_choice(), "{error}");
        let words = "counts sites from 1 to 2, and the images' column \"Metadata_Site\" from 0 to 1";
        assert!(error.to_string().contains(words), "{error}");
    }
    // Counted from 0, the site that is not in the set is left out alone.
    assert_eq!(cells("0,9,9\n1,9,9\n2,9,9", Unmatched::Skip).unwrap().len(), 2);
}

/// Cells of several plates are not all of the images of one, which have no column of plates.
#[test]
fn cells_of_other_plates_are_of_no_image_without_a_plate() {
    use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
    use wellread_store::cells::{CellSource, Cells};
    let mut random = ChaCha8Rng::seed_from_u64(13);
    let images = ["p", "q"].map(|name| Image::noise(name, Shape::plane(30, 30), PixelType::U8, &mut random));
    let dir = tempfile::tempdir().unwrap();
    let wells: ArrayRef = Arc::new(StringArray::from(vec!["A01", "B02"]));
    let features = RecordBatch::try_from_iter([("Metadata_Well", wells)]).unwrap();
    let options = WriteOptions { features: Some(features), ..WriteOptions::default() };
    let set = dir.path().join("set.parquet");
    drop(write(&set, "parquet", &options, &images));
    let cells = |rows: &[&str], options: &CellOptions| {
        let path = dir.path().join("cells.csv");
        let text = format!("Metadata_Plate,Metadata_Well,Metadata_Site,x,y\n{}\n", rows.join("\n"));
        std::fs::write(&path, text).unwrap();
        CellsStore::open(open(&set, &OpenOptions::default()).unwrap(), &path, options)
    };
    let found = CellOptions { size: [4, 4], ..CellOptions::default() };
    let skipping = CellOptions { unmatched: Unmatched::Skip, ..found.clone() };
    let named = CellOptions { by: vec!["Well".to_owned()], ..found.clone() };
    let plates = ["P1,A01,1,9,9", "P1,B02,1,9,9", "P2,A01,1,9,9"];
    for options in [&found, &skipping] {
        let error = cells(&plates, options).err().unwrap();
        assert!(error.is_choice() && error.row_index() == Some(2), "{error}");
        let cause =
            "rows 0 and 2 would both be of the image p, and have P1 and P2 in column \"Metadata_Plate\"";
        assert!(error.to_string().contains(cause), "{error}");
    }
    let error = cells(&["P1,A01,1,9,9", "P1,A01,2,9,9"], &found).err().unwrap().to_string();
    assert!(error.contains("have 1 and 2 in column \"Metadata_Site\", which the images lack"), "{error}");
    // A column that is named is taken at its word. Another site of each image, and a plate that is not there, are no matter.
    assert_eq!(cells(&plates, &named).unwrap().len(), 3);
    assert_eq!(cells(&["P1,A01,1,9,9", ",A01,1,3,3", "P1,B02,2,9,9"], &found).unwrap().len(), 3);
    assert_eq!(cells(&["P1,A01,1,9,9", "P2,C03,4,9,9"], &skipping).unwrap().len(), 1);
    // NaN is a site that is not known, as in pandas, and no other one.
    let columns: [(&str, ArrayRef); 4] = [
        ("Metadata_Well", Arc::new(StringArray::from(vec!["A01", "A01"]))),
        ("Metadata_Site", Arc::new(Float64Array::from(vec![1.0, f64::NAN]))),
        ("x", Arc::new(Float64Array::from(vec![9.0, 3.0]))),
        ("y", Arc::new(Float64Array::from(vec![9.0, 3.0]))),
    ];
    let table = RecordBatch::try_from_iter(columns).unwrap();
    let set = open(&set, &OpenOptions::default()).unwrap();
    assert_eq!(Cells::of(&*set, CellSource::Memory(&[table]), &found, None).unwrap().len(), 2);
}

/// An image that cannot be read is not looked at unless a cell lies on it.
#[test]
fn images_without_cells_need_not_be_readable() {
    let mut random = ChaCha8Rng::seed_from_u64(10);
    let dir = tempfile::tempdir().unwrap();
    let images: Vec<Image> = ["a", "b", "c"]
        .map(|name| Image::noise(name, Shape::plane(40, 40), PixelType::U8, &mut random))
        .into();
    let path = dir.path().join("set");
    drop(write(&path, "tiff", &WriteOptions::default(), &images));
    std::fs::write(path.join("b.ome.tiff"), "").unwrap();
    let set = || open(&path, &OpenOptions::default()).unwrap();
    let cell = |name: &str| (name.to_owned(), 20.0, 20.0);
    for unmatched in [Unmatched::Error, Unmatched::Skip] {
        let options = CellOptions { size: [8, 8], unmatched, ..CellOptions::default() };
        let store = CellsStore::open(set(), &table(dir.path(), &[cell("c"), cell("a")]), &options).unwrap();
        let names: Vec<String> = (0..store.len()).map(|row| store.name(row).unwrap()).collect();
        assert_eq!(names, ["c/cell-0", "a/cell-1"]);
        assert_eq!(store.cells().report().images_without_cells.count, 1);
        let (info, pixels) = read_image(&store, 0).unwrap();
        assert_eq!(pixels, sliced(&images[2], [16, 16], [8, 8], &info.shape.full()));
        for unit in [Unit::Pixel, Unit::Um] {
            let options = CellOptions { unit, ..options.clone() };
            let error = CellsStore::open(set(), &table(dir.path(), &[cell("b")]), &options).err().unwrap();
            assert!(error.is_unreadable() && error.row_index() == Some(1), "{error}");
            assert_eq!(error.cause(), "the file is empty");
            let hint = "leave the image out of the set (select), and its cells by unmatched skip";
            assert!(error.hint_text().unwrap().ends_with(hint), "{error}");
        }
    }
}

/// Where several columns of a table of cells have one name, each has a name of its own here, and the set says which.
#[test]
fn columns_of_one_name_have_names_of_their_own_and_are_told() {
    use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    let mut random = ChaCha8Rng::seed_from_u64(15);
    let image = Image::noise("a", Shape::plane(20, 20), PixelType::U8, &mut random);
    let dir = tempfile::tempdir().unwrap();
    let set = write(&dir.path().join("set.parquet"), "parquet", &WriteOptions::default(), &[image]);
    let image: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let number = |value: f64| -> ArrayRef { Arc::new(Float64Array::from(vec![value])) };
    let columns =
        [("image", image), ("x", number(9.0)), ("y", number(8.0)), ("d", number(1.0)), ("d", number(2.0))];
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let path = dir.path().join("cells.parquet");
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(&path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let options = CellOptions { size: [4, 4], ..CellOptions::default() };
    let store = CellsStore::open(set, &path, &options).unwrap();
    let renamed = Renamed { from: "d".to_owned(), to: "d_y".to_owned() };
    assert_eq!(store.hints().columns_renamed(), [renamed]);
    let doses = store.hints().features(&["d".to_owned(), "d_y".to_owned()]).unwrap().unwrap();
    let [first, second] =
        [0, 1].map(|at| doses.column(at).as_any().downcast_ref::<Float64Array>().unwrap().value(0));
    assert_eq!([first, second].map(f64::to_bits), [1.0, 2.0].map(f64::to_bits));
}
