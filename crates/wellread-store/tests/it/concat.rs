//! Several sets as one: lists, patterns, folders of tables, keys in names of folders, columns of all, errors.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMillisecondType};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Float64Array, Int64Array, ListArray, NullArray, RecordBatch, StringArray,
    TimestampSecondArray,
};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::concat::Concat;
use wellread_store::place::WantedRanges;
use wellread_store::{
    CopySink, Error, ImageView, OpenOptions, ReadExtent, Request, Result, RowHints, Scratch, Store,
    WriteOptions, convert, create, delegate_store, open, open_all, read_image,
};

/// Images of one row of pixels: all of its pixels are `first`, `first + 1` …
fn write(path: &Path, format: &str, names: &[&str], first: u8, columns: Option<Vec<(&str, ArrayRef)>>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let features = columns.map(|columns| RecordBatch::try_from_iter(columns).unwrap());
    let mut writer = create(path, format, &WriteOptions { features, ..WriteOptions::default() }).unwrap();
    for (i, name) in names.iter().enumerate() {
        let pixels = [first + i as u8; 6];
        let (metadata, shape) = (ImageMetadata::named(*name), Shape::plane(2, 3));
        writer
            .write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels })
            .unwrap();
    }
    writer.finish().unwrap();
}

fn opened(path: impl AsRef<Path>) -> Box<dyn Store> {
    open(path, &OpenOptions::default()).unwrap()
}

fn values(store: &dyn Store) -> Vec<u8> {
    (0..store.len()).map(|row| read_image(store, row).unwrap().1[0]).collect()
}

fn names(store: &dyn Store) -> Vec<String> {
    (0..store.len()).map(|row| store.name(row).unwrap()).collect()
}

fn column(store: &dyn Store, name: &str) -> ArrayRef {
    let batch = store.hints().features(&[name.to_owned()]).unwrap().unwrap();
    Arc::clone(batch.column(0))
}

fn texts(store: &dyn Store, name: &str) -> Vec<Option<String>> {
    column(store, name).as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
}

#[test]
fn a_list_a_pattern_and_a_folder_of_tables_are_one_set() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("plates");
    let paths: Vec<PathBuf> = ["BR1.parquet", "BR2.parquet"].map(|name| folder.join(name)).to_vec();
    write(&paths[0], "parquet", &["a", "b"], 0, None);
    write(&paths[1], "parquet", &["a", "c", "d"], 2, None);
    std::fs::write(folder.join("notes.txt"), "x").unwrap();
    std::fs::write(folder.join("_metadata.parquet"), "x").unwrap();
    let all = [
        open_all(&paths, &OpenOptions::default()).unwrap(),
        opened(folder.join("BR*.parquet")),
        opened(dir.path().join("**/BR?.parquet")),
        opened(&folder),
        open(&folder, &OpenOptions { format: Some("parquet".into()), ..OpenOptions::default() }).unwrap(),
    ];
    for set in all {
        assert_eq!((set.len(), set.format()), (5, "parquet"));
        assert_eq!(values(&*set), [0, 1, 2, 3, 4]);
        let parts = set.hints().set_parts();
        let rows: Vec<_> = parts.iter().flat_map(|part| part.rows.clone()).collect();
        assert_eq!(rows, [0..2, 2..5]);
        assert!(parts[0].name.ends_with("BR1"), "{}", parts[0].name);
        // Both plates have an image `a`.
        let found = names(&*set);
        assert!(found[0].ends_with("BR1/a") && found[2].ends_with("BR2/a") && found[4].ends_with("BR2/d"));
        assert_eq!(set.metadata(2).unwrap().name, found[2]);
        assert_eq!(set.files().unwrap(), paths);
        assert_eq!(set.files_of(&[3, 4]).unwrap(), paths[1..]);
        let positions: Vec<u64> =
            (0..5).map(|row| set.row_hints(row).map(RowHints::position).unwrap()).collect();
        assert!(positions.is_sorted() && positions[2] > positions[1], "{positions:?}");
        assert!(set.hints().page_cache_bytes() <= 64 << 20, "as one set keeps");
        assert!(set.row_info(5).is_err() && set.name(5).is_err());
    }
}

#[test]
fn one_read_takes_rows_of_all_parts_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("a.parquet"), "parquet", &["a", "b"], 0, None);
    write(&dir.path().join("b"), "ome-zarr", &["c", "d"], 2, None);
    write(&dir.path().join("c"), "tiff", &["e", "f"], 4, None);
    let paths = ["a.parquet", "b", "c"].map(|name| dir.path().join(name));
    let set = open_all(&paths, &OpenOptions::default()).unwrap();
    assert_eq!((set.format(), set.len()), ("several", 6));
    assert_eq!(names(&*set), ["a/a", "a/b", "b/c", "b/d", "c/e", "c/f"], "a table has its names inside");
    let rows = [5, 0, 3, 3, 1, 4, 2];
    let mut scratch = Scratch::default();
    for _ in 0..2 {
        let region = Shape::plane(2, 3).full();
        let requests: Vec<Request> = rows.iter().map(|&row| Request { row, region }).collect();
        let mut out = vec![[0xa5u8; 6]; rows.len()];
        let targets = out.iter_mut().map(|out| (region, PixelType::U8, out.as_mut_slice())).collect();
        set.read(&requests, &mut scratch, &mut CopySink::new(targets)).unwrap();
        assert_eq!(out.iter().map(|pixels| pixels[5] as usize).collect::<Vec<_>>(), rows);
    }
    let mut seen = vec![];
    set.scan(1..5, &mut |row, _, pixels| {
        seen.push((row, pixels[0]));
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, [(1, 1), (2, 2), (3, 3), (4, 4)]);
    let target = dir.path().join("all.parquet");
    let writer = create(&target, "parquet", &WriteOptions::default()).unwrap();
    let converted = convert::convert(&*set, writer, convert::ConvertOptions::default(), &mut |_| {}).unwrap();
    converted.commit().unwrap();
    assert_eq!(values(&*opened(&target)), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn sets_of_files_are_called_by_their_part_where_a_file_is_there_twice() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("a"), "tiff", &["x", "y"], 0, None);
    write(&dir.path().join("b"), "tiff", &["z"], 2, None);
    write(&dir.path().join("c"), "ome-zarr", &["w"], 3, None);
    write(&dir.path().join("d"), "tiff", &["y"], 4, None);
    let of = |parts: &[&str]| {
        let paths: Vec<PathBuf> = parts.iter().map(|part| dir.path().join(part)).collect();
        names(&*open_all(&paths, &OpenOptions::default()).unwrap())
    };
    assert_eq!(of(&["a", "b", "c"]), ["x", "y", "z", "w"]);
    assert_eq!(of(&["a", "d"]), ["a/x", "a/y", "d/y"]);
}

#[test]
fn columns_are_those_of_all_parts() {
    let dir = tempfile::tempdir().unwrap();
    let text = |values: &[&str]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let whole = |values: &[i64]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
    let real = |values: &[f64]| Arc::new(Float64Array::from(values.to_vec())) as ArrayRef;
    let [first, second] = ["plate=BR%201", "plate=BR2"].map(|name| dir.path().join(name).join("0.parquet"));
    write(
        &first,
        "parquet",
        &["a", "b"],
        0,
        Some(vec![("well", text(&["A01", "A02"])), ("n", whole(&[1, 2]))]),
    );
    write(&second, "parquet", &["c"], 2, Some(vec![("n", real(&[0.5])), ("dose", real(&[3.0]))]));
    let set = opened(dir.path());
    assert_eq!(set.hints().feature_names(), ["well", "n", "dose", "plate"]);
    assert_eq!(texts(&*set, "plate"), ["BR 1", "BR 1", "BR2"].map(|plate| Some(plate.to_owned())));
    assert_eq!(texts(&*set, "well"), [Some("A01".to_owned()), Some("A02".to_owned()), None]);
    assert_eq!(column(&*set, "n").as_primitive::<Float64Type>().values(), &[1.0, 2.0, 0.5]);
    let dose = column(&*set, "dose");
    assert!(dose.is_null(0) && dose.is_null(1) && dose.as_primitive::<Float64Type>().value(2) == 3.0);
    let error = set.hints().features(&["none".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("no column \"none\""), "{error}");
    // A whole number that a float would round is no number of both.
    let fourth = dir.path().join("plate=BR4/0.parquet");
    write(&fourth, "parquet", &["e"], 4, Some(vec![("n", whole(&[(1 << 62) + 1]))]));
    let error = opened(dir.path()).hints().features(&["n".to_owned()]).unwrap_err();
    let said = error.to_string();
    for words in ["Int64 in plate=BR4/0", "Float64 in plate=BR2/0", "does not hold 4611686018427387905"] {
        assert!(error.is_choice() && said.contains(words), "{words}: {said}");
    }
    std::fs::remove_dir_all(fourth.parent().unwrap()).unwrap();
    // A column of one table must not contradict the key of its folder. The others have theirs.
    let third = dir.path().join("plate=BR3/0.parquet");
    let columns = |plate: &str| Some(vec![("plate", text(&[plate])), ("n", text(&["x"]))]);
    write(&third, "parquet", &["d"], 3, columns("own"));
    let error = opened(dir.path()).hints().features(&["plate".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("\"plate\" has \"own\"") && error.contains("called plate=BR3"), "{error}");
    std::fs::remove_file(&third).unwrap();
    write(&third, "parquet", &["d"], 3, columns("BR3"));
    let set = opened(dir.path());
    assert_eq!(texts(&*set, "plate"), ["BR 1", "BR 1", "BR2", "BR3"].map(|plate| Some(plate.to_owned())));
    let error = set.hints().features(&["n".to_owned()]).unwrap_err();
    let said = error.to_string();
    assert!(error.is_choice() && said.contains("\"n\" is") && said.contains("plate=BR3/0"), "{said}");
}

/// Puts other values into a column of a Parquet file, with Arrow's schema beside them, as other programs do.
fn put(path: &Path, name: &str, values: ArrayRef) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let batch = reader.build().unwrap().next().unwrap().unwrap();
    let others = batch.schema_ref().fields().iter().map(|field| field.name().as_str());
    let others = others.zip(batch.columns().iter().cloned()).filter(|(other, _)| *other != name);
    let columns = others.chain([(name, values)]).map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// Shards of a table have a `row_id` that goes on from one to the next. The first one's counts its rows, as a table's own does.
#[test]
fn row_numbers_that_go_on_from_part_to_part_are_a_column_of_all() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second] = ["a.parquet", "b.parquet"].map(|name| dir.path().join(name));
    write(&first, "parquet", &["a", "b"], 0, None);
    write(&second, "parquet", &["c", "d"], 2, None);
    let numbers = |store: &dyn Store| -> Vec<Option<i64>> {
        column(store, "row_id").as_primitive::<Int64Type>().iter().collect()
    };
    // Each part's own.
    assert!(opened(dir.path()).hints().feature_names().is_empty());
    put(&second, "row_id", Arc::new(Int64Array::from(vec![Some(2), None])));
    let set = opened(dir.path());
    assert_eq!(set.hints().feature_names(), ["row_id"]);
    assert_eq!(numbers(&*set), [Some(0), Some(1), Some(2), None]);
    put(&second, "row_id", Arc::new(StringArray::from(vec!["c", "d"])));
    let set = opened(dir.path());
    let error = set.hints().features(&["row_id".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("\"row_id\" is Int64 in a, and Utf8 in b"), "{error}");
}

/// Values that are left out of one part alone would be nulls beside the values of another. Nulls are nulls.
#[test]
fn a_column_that_is_left_out_of_one_part_alone_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second] = ["a.parquet", "b.parquet"].map(|name| dir.path().join(name));
    let whole: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    let columns = || Some(vec![("c", Arc::clone(&whole)), ("n", Arc::clone(&whole))]);
    write(&second, "parquet", &["b"], 1, columns());
    let with_first = |values: ArrayRef| {
        let _ = std::fs::remove_file(&first);
        write(&first, "parquet", &["a"], 0, columns());
        put(&first, "c", values);
        opened(dir.path())
    };
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1), Some(2)])]);
    let bytes = BinaryArray::from_iter_values([b"x"]);
    let cases: [(ArrayRef, &str); 2] =
        [(Arc::new(lists), "nested values"), (Arc::new(bytes), "binary values")];
    for (values, why) in cases {
        let set = with_first(values);
        assert_eq!(set.hints().feature_names(), ["n", "c"]);
        let error = set.hints().features(&["n".to_owned(), "c".to_owned()]).unwrap_err();
        let said = error.to_string();
        let cause = format!("the column \"c\" has {why} in a, and is Int64 in b");
        assert!(error.is_choice() && said.contains(&cause), "{said}");
        assert!(said.contains("give it one type in all parts"), "{said}");
        // The other columns are none of its business.
        assert_eq!(column(&*set, "n").as_primitive::<Int64Type>().values(), &[7, 7]);
    }
    let set = with_first(Arc::new(NullArray::new(1)));
    let found = column(&*set, "c");
    assert!(found.is_null(0) && found.as_primitive::<Int64Type>().value(1) == 7);
}

#[test]
fn files_of_a_pattern_are_a_set_of_files() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("set"), "tiff", &["a1", "a2", "b1"], 0, None);
    let set = opened(dir.path().join("set/a*"));
    assert_eq!((set.len(), set.format()), (2, "tiff"));
    assert_eq!(names(&*set), ["a1", "a2"]);
    assert!(set.hints().set_parts().is_empty(), "as a folder of them");
    // One path of a pattern is that set.
    write(&dir.path().join("one.parquet"), "parquet", &["x"], 7, None);
    let set = opened(dir.path().join("*.parquet"));
    assert_eq!((set.path(), values(&*set)), (dir.path().join("one.parquet").as_path(), vec![7]));
}

#[test]
fn what_is_wrong_names_the_part() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("a.parquet"), "parquet", &["a"], 0, None);
    write(&dir.path().join("b.parquet"), "parquet", &["b"], 1, None);
    let whole = std::fs::read(dir.path().join("b.parquet")).unwrap();
    std::fs::write(dir.path().join("b.parquet"), &whole[..whole.len() - 9]).unwrap();
    let refused = |path: &Path| open(path, &OpenOptions::default()).err().unwrap();
    let error = refused(&dir.path().join("*.parquet")).to_string();
    assert!(error.contains("b.parquet"), "{error}");
    let error = refused(dir.path()).to_string();
    assert!(error.contains("b.parquet"), "none is passed over: {error}");
    let error = refused(&dir.path().join("*.lance"));
    assert!(error.is_missing() && error.to_string().ends_with(" holds a.parquet, b.parquet)"), "{error}");
    let missing = [dir.path().join("a.parquet"), dir.path().join("none.parquet")];
    let error = open_all(&missing, &OpenOptions::default()).err().unwrap();
    assert!(error.is_missing() && error.to_string().contains("none.parquet"), "{error}");
    assert!(open_all::<&Path>(&[], &OpenOptions::default()).is_err());
    let empty = dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    std::fs::write(empty.join("x.json"), "{}").unwrap();
    let said = refused(&empty).to_string();
    assert!(said.contains("no image format recognised; the folder holds x.json"), "{said}");
    for name in ["a.json", "b.json", "c.json", "d.json"] {
        std::fs::write(empty.join(name), "{}").unwrap();
    }
    let said = refused(&empty).to_string();
    assert!(said.contains("holds a.json, b.json, c.json, d.json and 1 more"), "{said}");
    let pictures = ["1.tif", "2.png", "3.TIFF"].map(|name| dir.path().join("pictures").join(name));
    std::fs::create_dir(dir.path().join("pictures")).unwrap();
    for path in &pictures {
        std::fs::write(path, "").unwrap();
    }
    for error in
        [open_all(&pictures, &OpenOptions::default()).err().unwrap(), refused(&dir.path().join("pictures/*"))]
    {
        let said = error.to_string();
        assert!(
            error.is_choice() && said.contains("1.tif is tiff") && said.contains("2.png is image-folder"),
            "{said}"
        );
    }
    // Two formats: a user who opens the folder has to name one.
    let mixed = dir.path().join("mixed");
    write(&mixed.join("a.parquet"), "parquet", &["a"], 0, None);
    write(&mixed.join("b.ome-arrow-dataset"), "ome-arrow-dataset", &["b"], 1, None);
    let error = refused(&mixed).to_string();
    assert!(error.contains("mixes image formats") && error.contains("only these: format parquet"), "{error}");
    let one =
        open(&mixed, &OpenOptions { format: Some("parquet".into()), ..OpenOptions::default() }).unwrap();
    assert_eq!(values(&*one), [0]);
}

#[test]
fn errors_name_rows_of_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        let names = [format!("{name}1"), format!("{name}2")];
        let names = [names[0].as_str(), names[1].as_str()];
        write(&dir.path().join(format!("{name}.parquet")), "parquet", &names, 0, None);
    }
    let set = opened(dir.path());
    let region = Shape::plane(2, 4).full();
    let mut pixels = [0; 8];
    let mut sink = CopySink::new(vec![(region, PixelType::U8, pixels.as_mut_slice())]);
    let error = set.read(&[Request { row: 3, region }], &mut Scratch::default(), &mut sink).unwrap_err();
    assert_eq!(error.row_index(), Some(3), "{error}");
}

/// Rows of each question.
type Asked = Arc<Mutex<Vec<Vec<usize>>>>;

/// Notes which rows it is asked for ahead, all at once; the last one's ranges cannot be told.
struct Noting(Box<dyn Store>, Asked);

impl Store for Noting {
    delegate_store!(self => self.0; format, path, remote_path, len, name, metadata, layout, files, files_of);
    delegate_store!(self => self.0; has_checksums, hints, row_hints, row_info, check, read, scan);

    fn heads(&self, rows: &[usize], _: ReadExtent, _: &mut WantedRanges) {
        self.1.lock().unwrap().push(rows.to_vec());
    }

    fn ranges(&self, requests: &[Request], _: &mut WantedRanges) -> Result<()> {
        let rows: Vec<usize> = requests.iter().map(|request| request.row).collect();
        let last = rows.iter().find(|&&row| row + 1 == self.len()).copied();
        self.1.lock().unwrap().push(rows);
        last.map_or(Ok(()), |row| Err(Error::new(self.path(), "the last one").row(row)))
    }
}

#[test]
fn parts_are_asked_ahead_for_all_of_their_rows_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let asked = Asked::default();
    let part = |name: &str| -> Arc<dyn Store> {
        let path = dir.path().join(name);
        write(&path, "parquet", &["a", "b", "c"], 0, None);
        Arc::new(Noting(opened(path), Arc::clone(&asked)))
    };
    let set = Concat::of(vec![part("a.parquet"), part("b.parquet")]);
    let mut wanted = WantedRanges::default();
    set.heads(&[4, 1, 3, 0, 9], ReadExtent::Whole, &mut wanted);
    assert_eq!(std::mem::take(&mut *asked.lock().unwrap()), [[0, 1], [0, 1]]);
    let region = Shape::plane(2, 3).full();
    let requests = |rows: &[usize]| rows.iter().map(|&row| Request { row, region }).collect::<Vec<_>>();
    set.ranges(&requests(&[4, 1, 3, 0]), &mut wanted).unwrap();
    assert_eq!(std::mem::take(&mut *asked.lock().unwrap()), [[1, 0], [1, 0]]);
    let error = set.ranges(&requests(&[0, 5]), &mut wanted).unwrap_err();
    assert_eq!(error.row_index(), Some(5), "{error}");
    assert!(set.ranges(&requests(&[9]), &mut wanted).is_err());
}

/// Sets of an earlier wellread, Lance and DuckDB have times in seconds; new Parquet has them in milliseconds.
#[test]
fn times_in_seconds_and_in_milliseconds_are_one_column() {
    let dir = tempfile::tempdir().unwrap();
    let seconds = |at: i64| -> ArrayRef { Arc::new(TimestampSecondArray::from(vec![at])) };
    for (name, at) in [("a", 7), ("b", 8)] {
        let path = dir.path().join(format!("{name}.parquet"));
        write(&path, "parquet", &[name], 0, Some(vec![("seen", seconds(at))]));
    }
    put(&dir.path().join("a.parquet"), "seen", seconds(7));
    let found = column(&*opened(dir.path()), "seen");
    assert_eq!(found.as_primitive::<TimestampMillisecondType>().values(), &[7_000, 8_000]);
}
