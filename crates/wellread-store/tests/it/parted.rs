//! Sets that are written in parts equal those of one writer, and nobody sees less.

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellread_image::{Channel, ImageMetadata, PhysicalSize, PixelType, Shape};
use wellread_store::convert::{ConvertOptions, convert};
use wellread_store::parted::{PartedSet, holds, write_part};
use wellread_store::staged::Existing;
use wellread_store::subset::Subset;
use wellread_store::verify::{Kind, verify_sums};
use wellread_store::{ImageView, OpenOptions, Store, WriteOptions, checksum, create, open, open_all};

/// Twenty-three images, whose names are in no order and of which two are called the same.
fn source(folder: &Path) -> Arc<dyn Store> {
    let path = folder.join("source.parquet");
    let mut writer = create(&path, "parquet", &WriteOptions::default()).unwrap();
    for i in 0..23usize {
        let shape = Shape::plane(5, 7);
        let pixels: Vec<u8> = (0..shape.pixels() * 2).map(|p| (p * 31 + i * 7) as u8).collect();
        let metadata = ImageMetadata::named(format!("well {}", i * 5 % 22));
        writer
            .write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U16, pixels: &pixels })
            .unwrap();
    }
    writer.finish().unwrap();
    open(&path, &OpenOptions::default()).unwrap().into()
}

/// The rows from one to another, as a set.
fn rows(source: &Arc<dyn Store>, from: usize, to: usize) -> Subset {
    Subset::of(Arc::clone(source), (from..to).collect())
}

fn part(set: &PartedSet, source: &dyn Store, format: &str, name: &str) {
    let (options, how) = (WriteOptions::default(), ConvertOptions::default());
    write_part(source, &set.part(name), format, &options, how, true, &mut |_| ()).unwrap();
}

/// All files below a folder, with what is in them.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in std::fs::read_dir(inner).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn sums(store: &dyn Store) -> Vec<(String, String)> {
    let all = checksum::all(store, 2, &|| ()).into_iter().map(Result::unwrap);
    all.map(|sum| (sum.name, sum.sha256)).collect()
}

#[test]
fn images_in_files_of_their_own_lie_where_one_writer_puts_them() {
    let dir = tempfile::tempdir().unwrap();
    let source = source(dir.path());
    for format in ["tiff", "ome-zarr", "image-folder"] {
        let whole = dir.path().join(format!("{format}-whole"));
        let writer = create(&whole, format, &WriteOptions::default()).unwrap();
        convert(&*source, writer, ConvertOptions::default(), &mut |_| ()).unwrap().commit().unwrap();
        let target = dir.path().join(format!("{format}-parts"));
        let set = PartedSet::begin(&target, format, Existing::Kept, None).unwrap();
        // In any order; one of them is written twice.
        for (name, from, to) in [("b", 9, 20), ("c", 20, 23), ("a", 0, 9), ("b", 9, 20)] {
            part(&set, &rows(&source, from, to), format, name);
        }
        part(&set, &rows(&source, 0, 3), format, "of a task that was taken for dead");
        assert!(!target.exists(), "{format}");
        let parts = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(set.commit(&parts, &WriteOptions::default()).unwrap(), 23);
        assert!(files(&target) == files(&whole), "{format}");
        assert_eq!(sums(&*open(&target, &OpenOptions::default()).unwrap()), sums(&*source), "{format}");
        let left = std::fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.file_name());
        assert_eq!(left.filter(|name| name.to_string_lossy().starts_with('.')).count(), 0, "{format}");
    }
}

#[test]
fn tables_of_parts_are_one_set_whose_images_are_called_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let source = source(dir.path());
    let target = dir.path().join("set.parquet");
    let set = PartedSet::begin(&target, "parquet", Existing::Kept, None).unwrap();
    for (name, from, to) in [("second", 10, 23), ("first", 0, 10)] {
        part(&set, &rows(&source, from, to), "parquet", name);
    }
    let parts = ["first", "second"].map(str::to_owned);
    assert_eq!(set.commit(&parts, &WriteOptions::default()).unwrap(), 23);
    let names: Vec<_> = files(&target).into_keys().collect();
    assert_eq!(names, ["part-00000.parquet", "part-00001.parquet", "wellread-parts.json"].map(PathBuf::from));
    for format in [None, Some("parquet".to_owned())] {
        let options = OpenOptions { format, ..OpenOptions::default() };
        assert_eq!(sums(&*open(&target, &options).unwrap()), sums(&*source));
    }
    // It may be replaced as a set that was written at once.
    let again = PartedSet::begin(&target, "parquet", Existing::Replaced, None).unwrap();
    part(&again, &rows(&source, 4, 6), "parquet", "all");
    assert_eq!(again.commit(&["all".to_owned()], &WriteOptions::default()).unwrap(), 2);
    assert_eq!(sums(&*open(&target, &OpenOptions::default()).unwrap()), sums(&*source)[4..6]);
    // A part that is gone is missed.
    std::fs::remove_file(target.join("part-00000.parquet")).unwrap();
    let error = open(&target, &OpenOptions::default()).err().unwrap().to_string();
    assert!(error.contains("part-00000.parquet: is a part of the set, and is not there"), "{error}");
}

#[test]
fn formats_say_what_becomes_of_parts() {
    let dir = tempfile::tempdir().unwrap();
    for (format, keeps_columns) in
        [("parquet", false), ("tiff", false), ("ome-zarr", true), ("image-folder", false)]
    {
        let set = PartedSet::begin(&dir.path().join(format), format, Existing::Kept, None).unwrap();
        assert_eq!((set.joins(), set.keeps_columns()), (false, keeps_columns), "{format}");
    }
}

#[test]
fn what_a_run_has_left_is_gone_on_with_where_it_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let source = source(dir.path());
    let target = dir.path().join("set.parquet");
    let begin = |resume| PartedSet::begin(&target, "parquet", Existing::Kept, resume).unwrap();
    let first = rows(&source, 0, 10);
    let set = begin(Some("rows 0 to 23"));
    let name = set.part_name(0);
    let path = set.part(&name);
    part(&set, &first, "parquet", &name);
    drop(set);
    let set = begin(Some("rows 0 to 23"));
    assert!(holds(&first, &path, "parquet", &WriteOptions::default()).unwrap());
    assert!(
        !holds(&rows(&source, 1, 11), &path, "parquet", &WriteOptions::default()).unwrap(),
        "of other rows"
    );
    drop(set);
    let other =
        PartedSet::begin(&target, "parquet", Existing::Kept, Some("of something else")).err().unwrap();
    assert!(other.to_string().contains("repeat the same command"), "{other}");
    // A run that does not go on removes it.
    let set = begin(None);
    assert!(!holds(&first, &path, "parquet", &WriteOptions::default()).unwrap());
    let error = set.commit(&[name], &WriteOptions::default()).unwrap_err().to_string();
    assert!(error.contains("part-00000.parquet"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "the source alone");
}

#[test]
fn one_file_of_all_images_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (format, name) in [("tiff", "a.tif"), ("ome-zarr", "a.zarr"), ("image-folder", "a.png")] {
        let error = PartedSet::begin(&dir.path().join(name), format, Existing::Kept, None).err().unwrap();
        assert!(error.is_choice() && error.to_string().contains("name a folder"), "{error}");
    }
}

/// The same images with a column beside them, whose values are these in turn.
fn with_wells(folder: &Path, source: &dyn Store, wells: [&str; 2]) -> Arc<dyn Store> {
    let path = folder.join(format!("{}.parquet", wells.join("-")));
    let values = (0..source.len()).map(|row| Some(wells[row % 2]));
    let column: ArrayRef = Arc::new(values.collect::<StringArray>());
    let columns = RecordBatch::try_from_iter([("Metadata_Well", column)]).unwrap();
    let writer =
        create(&path, "parquet", &WriteOptions { features: Some(columns), ..WriteOptions::default() });
    convert(source, writer.unwrap(), ConvertOptions::default(), &mut |_| ()).unwrap().commit().unwrap();
    open(&path, &OpenOptions::default()).unwrap().into()
}

/// Pixels and names may be the same while the columns beside them are others: a part of a table is both.
#[test]
fn a_part_whose_columns_are_others_now_is_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let plain = source(dir.path());
    let wells = with_wells(dir.path(), &*plain, ["A01", "A02"]);
    let others = with_wells(dir.path(), &*plain, ["A01", "B02"]);
    for (format, ending) in [("parquet", ".parquet"), ("tiff", "")] {
        let target = dir.path().join(format!("set{ending}"));
        let set = PartedSet::begin(&target, format, Existing::Kept, Some("rows 0 to 23")).unwrap();
        let name = set.part_name(0);
        let path = set.part(&name);
        part(&set, &rows(&wells, 0, 10), format, &name);
        let options = WriteOptions::default();
        let holds = |source: &Arc<dyn Store>| holds(&rows(source, 0, 10), &path, format, &options).unwrap();
        // A format that has a file for each image writes all columns in the end.
        let is_table = format == "parquet";
        assert!(holds(&wells), "{format}");
        assert_eq!([holds(&others), holds(&plain)], [!is_table; 2], "{format}");
        set.discard();
    }
}

/// An image of one channel of this name, with pixels of this size.
fn described(folder: &Path, channel: &str, micrometres: f64) -> Arc<dyn Store> {
    let path = folder.join(format!("{channel}-{micrometres}.parquet"));
    let size = Some(PhysicalSize { value: micrometres, unit: "µm".to_owned() });
    let metadata = ImageMetadata {
        channels: vec![Channel { id: "ch-0".to_owned(), name: channel.to_owned(), ..Channel::default() }],
        physical_size_x: size.clone(),
        physical_size_y: size,
        ..ImageMetadata::named("a")
    };
    let mut writer = create(&path, "parquet", &WriteOptions::default()).unwrap();
    let (shape, dtype) = (Shape::plane(5, 7), PixelType::U8);
    writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &[7; 35] }).unwrap();
    writer.finish().unwrap();
    open(&path, &OpenOptions::default()).unwrap().into()
}

/// A format that keeps neither names of channels nor sizes has nothing that could differ.
#[test]
fn a_part_with_other_names_of_channels_or_sizes_of_pixels_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let [first, renamed, resized] = [("DNA", 0.5), ("RNA", 0.5), ("DNA", 0.25)]
        .map(|(channel, micrometres)| described(dir.path(), channel, micrometres));
    for (format, ending, keeps) in [
        ("parquet", ".parquet", true),
        ("tiff", "", true),
        ("ome-zarr", "", true),
        ("image-folder", "", false),
    ] {
        let target = dir.path().join(format!("{format}-set{ending}"));
        let set = PartedSet::begin(&target, format, Existing::Kept, Some("row 0")).unwrap();
        let name = set.part_name(0);
        let path = set.part(&name);
        part(&set, &*first, format, &name);
        let options = WriteOptions::default();
        let holds = |source: &Arc<dyn Store>| holds(&**source, &path, format, &options);
        assert!(holds(&first).unwrap(), "{format}");
        for (other, wanted) in [(&renamed, "\"RNA\""), (&resized, "0.25 µm")] {
            match holds(other) {
                Ok(is_held) => assert!(is_held && !keeps, "{format}"),
                Err(error) => {
                    let error = error.to_string();
                    assert!(keeps && error.contains(wanted) && error.contains("resume"), "{format}: {error}");
                }
            }
        }
        set.discard();
    }
}

/// Folders within that of the set being written have names of their own, which a target may have as well.
#[test]
fn a_target_may_be_called_as_any_folder_of_the_parts() {
    let dir = tempfile::tempdir().unwrap();
    let source = source(dir.path());
    for (format, name) in [("tiff", "parts"), ("ome-zarr", "parts"), ("parquet", "parts"), ("parquet", "set")]
    {
        let target = dir.path().join(format).join(name);
        let set = PartedSet::begin(&target, format, Existing::Kept, None).unwrap();
        part(&set, &rows(&source, 0, 9), format, "a");
        part(&set, &rows(&source, 9, 23), format, "b");
        part(&set, &rows(&source, 0, 3), format, "of a task that was taken for dead");
        let parts = ["a", "b"].map(str::to_owned);
        let images = set.commit(&parts, &WriteOptions::default());
        assert_eq!(images.unwrap_or_else(|e| panic!("{format} {name}: {e}")), 23);
        assert_eq!(
            sums(&*open(&target, &OpenOptions::default()).unwrap()),
            sums(&*source),
            "{format} {name}"
        );
        let dead = files(&target).into_keys().find(|file| file.to_string_lossy().contains("taken for dead"));
        assert_eq!(dead, None, "{format} {name}");
        // So that it may be replaced.
        PartedSet::begin(&target, format, Existing::Replaced, None)
            .unwrap_or_else(|e| panic!("{format} {name}: {e}"))
            .discard();
        assert_eq!(
            std::fs::read_dir(target.parent().unwrap()).unwrap().count(),
            if name == "set" { 2 } else { 1 }
        );
    }
}

/// Also where the set is opened beside others, as one set.
#[test]
fn a_part_that_is_another_than_was_written_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let source = source(dir.path());
    let targets = ["one.parquet", "two.parquet"].map(|name| dir.path().join(name));
    for target in &targets {
        two_parts(target, &source);
    }
    assert_eq!(open_all(&targets, &OpenOptions::default()).unwrap().len(), 46);
    std::fs::copy(targets[0].join("part-00000.parquet"), targets[1].join("part-00001.parquet")).unwrap();
    for found in [open(&targets[1], &OpenOptions::default()), open_all(&targets, &OpenOptions::default())] {
        let error = found.err().unwrap().to_string();
        assert!(error.contains("part-00001.parquet: has 10 images, 13 were written"), "{error}");
    }
}

/// A set of two parts, of the rows up to ten and those from there on.
fn two_parts(target: &Path, source: &Arc<dyn Store>) {
    let set = PartedSet::begin(target, "parquet", Existing::Kept, None).unwrap();
    let parts = [(0, 10), (10, 23)].map(|(from, to)| {
        let name = set.part_name(from);
        part(&set, &rows(source, from, to), "parquet", &name);
        name
    });
    set.commit(&parts, &WriteOptions::default()).unwrap();
}

/// Somebody may put a picture, or another table, into the folder.
#[test]
fn what_lies_beside_the_parts_is_none_of_the_set() {
    let dir = tempfile::tempdir().unwrap();
    let source = source(dir.path());
    let target = dir.path().join("one.parquet");
    two_parts(&target, &source);
    let one = dir.path().join("one");
    convert(
        &rows(&source, 0, 1),
        create(&one, "tiff", &WriteOptions::default()).unwrap(),
        ConvertOptions::default(),
        &mut |_| (),
    )
    .unwrap()
    .commit()
    .unwrap();
    let image = files(&one).into_keys().find(|file| file.to_string_lossy().ends_with(".tiff")).unwrap();
    std::fs::copy(one.join(image), target.join("overview.tiff")).unwrap();
    let found = open(&target, &OpenOptions::default()).unwrap();
    assert_eq!((found.format(), sums(&*found)), ("parquet", sums(&*source)));
}

/// A folder of sets in parts is one set, in which no part goes missing unnoticed.
#[test]
fn sets_in_parts_are_opened_from_the_folder_above() {
    let dir = tempfile::tempdir().unwrap();
    let source = source(dir.path());
    let screen = dir.path().join("screen");
    let targets = ["BR1/one.parquet", "BR2/two.parquet"].map(|name| screen.join(name));
    for target in &targets {
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        two_parts(target, &source);
    }
    std::fs::copy(targets[0].join("part-00000.parquet"), targets[0].join("a copy.parquet")).unwrap();
    let format = Some("parquet".to_owned());
    for options in [OpenOptions::default(), OpenOptions { format, ..OpenOptions::default() }] {
        assert_eq!(open(&screen, &options).unwrap().len(), 46);
        let both = open_all(&[&screen, &targets[1]], &options).unwrap();
        assert_eq!(both.len(), 69);
    }
    std::fs::remove_file(targets[1].join("part-00001.parquet")).unwrap();
    let error = open(&screen, &OpenOptions::default()).err().unwrap().to_string();
    assert!(error.contains("part-00001.parquet: is a part of the set, and is not there"), "{error}");
    std::fs::copy(targets[0].join("part-00000.parquet"), targets[1].join("part-00001.parquet")).unwrap();
    let error = open(&screen, &OpenOptions::default()).err().unwrap().to_string();
    assert!(error.contains("part-00001.parquet: has 10 images, 13 were written"), "{error}");
}

/// A reader of a set in parts may have had other images before them.
#[test]
fn rows_that_nobody_has_read_are_no_success() {
    let dir = tempfile::tempdir().unwrap();
    let source = source(dir.path());
    let read = |count| checksum::of_rows(&*source, (0, count), 1, &|| ());
    assert!(verify_sums(&*source, read(23), None).passed());
    let fewer = verify_sums(&*source, read(20), None);
    let more = verify_sums(&rows(&source, 0, 20), read(23), None);
    for (outcome, said) in [(fewer, "had 20 images where it was read, and has 23"), (more, "had 23 images")] {
        let found: Vec<Option<usize>> = outcome.problems.iter().map(|problem| problem.row).collect();
        assert_eq!((found, outcome.count(Kind::Unreadable)), (vec![Some(20), Some(21), Some(22)], 3));
        assert!(outcome.problems[0].problem.contains(said), "{}", outcome.problems[0].problem);
    }
}
