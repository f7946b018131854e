//! Tests of `convert`: refusals, and the state of its target.

use super::super::known_format;
use super::*;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use clap::Parser as _;
use std::sync::Arc;
use wellread_image::{ImageMetadata, Shape};
use wellread_store::read_back::Digests;
use wellread_store::{Error, ImageView, OpenOptions};

#[derive(clap::Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

/// Reads back what was written, of which no interrupted run has left anything.
fn verify(
    against: &dyn Store,
    converted: Converted,
    args: &Args,
    format: &Format,
    options: &WriteOptions,
) -> Outcome<Checked> {
    let target = &args.target;
    let rows = against.len();
    let check = Check { source: against, target, format, columns: None, rows, resumed: 0, jobs: 1 };
    check.run(converted, &|error| failed(error, against, args, format, options), Ui::new(false, true))
}

fn write(path: &Path, pixel: u8) {
    write_as("parquet", path, pixel);
}

fn write_as(format: &str, path: &Path, pixel: u8) {
    let mut writer = registry::create(path, format, &WriteOptions::default()).unwrap();
    let metadata = ImageMetadata { name: "a".into(), ..ImageMetadata::default() };
    let (shape, dtype) = (Shape::plane(1, 1), PixelType::U8);
    writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &[pixel] }).unwrap();
    writer.finish().unwrap();
}

#[test]
fn output_that_differs_from_its_source_never_gets_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let [source, target, other] = ["a", "b", "c"].map(|name| folder.path().join(format!("{name}.parquet")));
    write(&source, 1);
    write(&other, 2);
    // The set before stays until the new one is known to be right.
    std::fs::write(&target, "the set before").unwrap();
    let [store, changed] =
        [&source, &other].map(|path| wellread_store::open(path, &OpenOptions::default()).unwrap());
    let command = Command::parse_from([Path::new("convert"), &source, &target]);
    let check = |against: &dyn Store| {
        let options = WriteOptions { overwrite: true, ..WriteOptions::default() };
        let writer = registry::create(&target, "parquet", &options).unwrap();
        let converted = convert(&*store, writer, ConvertOptions::default(), &mut |_| {}).unwrap();
        let converted = Converted { digests: Digests::default(), ..converted };
        let format = known_format("parquet").unwrap();
        verify(against, converted, &command.args, format, &options)
    };
    let Err(Failure::Failed(error)) = check(&*changed) else { panic!("it differs") };
    assert!(
        error.contains("b.parquet: the written set does not read back")
            && error.contains("row 0: has other pixels"),
        "{error}"
    );
    assert!(!error.contains(".wellread"), "{error}");
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "the set before");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    let Ok(Checked::Same(converted, ..)) = check(&*store) else { panic!("it is the same") };
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "the set before");
    converted.commit().unwrap();
    assert_eq!(wellread_store::open(&target, &OpenOptions::default()).unwrap().len(), 1);
}

/// `*.parquet` in the working folder has the empty path as its root.
#[test]
fn a_fault_of_the_written_set_is_not_the_sources_where_every_path_starts_with_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("b.parquet");
    let set = |pixel: u8| {
        let mut set = wellread_loader::MemoryStore::new("");
        set.push("a".to_owned(), Shape::plane(1, 1), PixelType::U8, vec![pixel]).unwrap();
        set
    };
    let (store, changed) = (set(1), set(2));
    assert_eq!(store.path(), Path::new(""));
    let command = Command::parse_from([Path::new("convert"), Path::new("a"), &target]);
    let options = WriteOptions::default();
    let writer = registry::create(&target, "parquet", &options).unwrap();
    let converted = convert(&store, writer, ConvertOptions::default(), &mut |_| {}).unwrap();
    let converted = Converted { digests: Digests::default(), ..converted };
    let checked = verify(&changed, converted, &command.args, known_format("parquet").unwrap(), &options);
    let Err(Failure::Failed(error)) = checked else { panic!("it differs") };
    assert!(error.contains("the written set does not read back as the source: row 0: has other"), "{error}");
    // A fault of the source still is one.
    let of_source = Error::new("other.parquet", "cannot be read");
    assert!(check::is_of_source(&of_source, &store, &target));
}

/// `convert` does not ask other formats how they keep pixels: a large DuckDB table takes seconds to answer.
#[test]
fn only_tiff_is_asked_for_looks() {
    let asked = registry::formats().iter().filter(|f| f.has_display_settings).map(|f| f.name);
    assert_eq!(asked.collect::<Vec<_>>(), ["tiff"]);
}

/// A set of one TIFF file in `folder`, the arguments that convert it with `--resume`, and the options of its writer.
fn resumable(folder: &Path) -> (Box<dyn Store>, Args, WriteOptions) {
    let [source, target] = ["a", "b"].map(|name| folder.join(name));
    write_as("tiff", &source, 1);
    let store = wellread_store::open(&source, &OpenOptions::default()).unwrap();
    let words = [&source, &target].map(|path| path.to_str().unwrap());
    let command = Command::parse_from(["convert", words[0], words[1], "--format", "tiff", "--resume"]);
    (store, command.args, WriteOptions { resume: Some("a".into()), ..WriteOptions::default() })
}

#[test]
fn what_was_written_is_kept_where_the_source_cannot_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let (store, args, options) = resumable(folder.path());
    let writer = registry::create(&args.target, "tiff", &options).unwrap();
    let converted = convert(&*store, writer, ConvertOptions::default(), &mut |_| {}).unwrap();
    // No image has a known digest, like those that an interrupted run has left.
    let converted = Converted { digests: Digests::default(), ..converted };
    let image = std::fs::read_dir(&args.source).unwrap().next().unwrap().unwrap().path();
    std::fs::File::create(&image).unwrap();
    let format = known_format("tiff").unwrap();
    let checked = verify(&*store, converted, &args, format, &options);
    let Err(Failure::Failed(error)) = checked else { panic!("it cannot be read") };
    assert!(error.contains("the complete part is kept in") && error.contains("continues from it"), "{error}");
    assert!(!error.contains("does not read back"), "{error}");
    assert!(staged::part(&args.target).is_some());
}

#[test]
fn nothing_is_said_to_be_kept_where_no_image_was_complete() {
    let folder = tempfile::tempdir().unwrap();
    let (store, args, options) = resumable(folder.path());
    drop(registry::create(&args.target, "tiff", &options).unwrap());
    let error = Error::new(&args.source, "cannot be read");
    let said = failed(error, &*store, &args, known_format("tiff").unwrap(), &options);
    let Failure::Failed(said) = said else { panic!("it failed") };
    let words = "\nno image was complete yet, and nothing was left behind: the same command begins anew";
    assert!(said.ends_with(words), "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Rows that an interrupted run has left keep its columns, which are never those of two runs.
#[test]
fn a_table_is_not_gone_on_with_where_columns_have_other_values() {
    let folder = tempfile::tempdir().unwrap();
    let [source, target] = ["a", "b"].map(|name| folder.path().join(name));
    write_as("tiff", &source, 1);
    let store = wellread_store::open(&source, &OpenOptions::default()).unwrap();
    let words = [&source, &target].map(|path| path.to_str().unwrap());
    let command = Command::parse_from(["convert", words[0], words[1], "--resume"]);
    let note = |format: &Format, well: &str| {
        let wells: ArrayRef = Arc::new(StringArray::from(vec![well]));
        let features = RecordBatch::try_from_iter([("well", wells)]).ok();
        let options = WriteOptions { features, ..WriteOptions::default() };
        let Ok(note) = resume_note(&*store, &command.args, format, &options, &[]) else {
            panic!("{} can be resumed", format.name)
        };
        note
    };
    for format in registry::formats().iter().copied().filter(|format| format.cannot_resume.is_none()) {
        assert_eq!(note(format, "A01"), note(format, "A01"), "{}", format.name);
        let is_other = note(format, "A01") != note(format, "B01");
        assert_eq!(is_other, format.keeps_features, "{}", format.name);
    }
}

#[test]
#[cfg(unix)]
fn what_is_read_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let [originals, links, profiles] =
        ["originals", "links", "profiles.parquet"].map(|n| folder.path().join(n));
    write_as("tiff", &originals, 1);
    write(&profiles, 1);
    std::fs::create_dir(&links).unwrap();
    let original = std::fs::read_dir(&originals).unwrap().next().unwrap().unwrap().path();
    std::os::unix::fs::symlink(&original, links.join("a.tif")).unwrap();
    let store = wellread_store::open(&links, &OpenOptions::default()).unwrap();
    let check = |others: &[&Path], target: &Path| check_files(&*store, others, target);
    // A folder of label images holds what is read: one of its files is no target either.
    let masks = folder.path().join("masks");
    std::fs::create_dir(&masks).unwrap();
    let mask = masks.join("a.tif");
    std::fs::write(&mask, "a").unwrap();
    let nothing: &[&Path] = &[];
    let read: &[&Path] = &[&profiles, &masks];
    let targets: [(&[&Path], &Path); 5] =
        [(nothing, &originals), (read, &profiles), (read, &masks), (read, &mask), (read, folder.path())];
    for (others, target) in targets {
        let Err(Failure::Usage(error)) = check(others, target) else { panic!("it is read") };
        assert!(error.contains("would be replaced with the target"), "{error}");
    }
    assert!(check(nothing, &profiles).is_ok());
    assert!(check(read, &folder.path().join("new")).is_ok());
    // A pattern is of the files that it names, and of no other file beside them.
    let labels = folder.path().join("labels");
    write_as("tiff", &labels, 1);
    let label = std::fs::read_dir(&labels).unwrap().next().unwrap().unwrap().path();
    let pattern = labels.join("*.tiff");
    let read: &[&Path] = &[&pattern];
    assert!(check(read, &label).is_err());
    assert!(check(read, &mask).is_ok());
}
