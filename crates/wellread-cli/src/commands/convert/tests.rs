//! What `convert` refuses and keeps.

use super::*;
use clap::Parser as _;
use wellread_image::{ImageMetadata, Shape};
use wellread_store::ImageView;
use wellread_store::read_back::Digests;

#[derive(clap::Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

fn write(path: &Path, pixel: u8) {
    let mut writer = registry::create(path, "parquet", &WriteOptions::default()).unwrap();
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
    // What is replaced stays until the new set is known to be right.
    std::fs::write(&target, "the set before").unwrap();
    let [store, changed] =
        [&source, &other].map(|path| wellread_store::open(path, &OpenOptions::default()).unwrap());
    let command = Command::parse_from([Path::new("convert"), &source, &target]);
    let check = |against: &dyn Store| {
        let options = WriteOptions { overwrite: true, ..WriteOptions::default() };
        let writer = registry::create(&target, "parquet", &options).unwrap();
        let converted = convert(&*store, writer, ConvertOptions::default(), &mut |_| {}).unwrap();
        let converted = Converted { digests: Digests::default(), ..converted };
        verify(against, converted, 0, &command.args, known_format("parquet").unwrap(), Ui::new(false, true))
    };
    let Err(Failure::Failed(error)) = check(&*changed) else { panic!("it differs") };
    assert!(
        error.contains("b.parquet: what was written") && error.contains("row 0: has other pixels"),
        "{error}"
    );
    assert!(!error.contains(".wellread"), "{error}");
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "the set before");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    let Ok((converted, _)) = check(&*store) else { panic!("it is the same") };
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "the set before");
    converted.commit().unwrap();
    assert_eq!(wellread_store::open(&target, &OpenOptions::default()).unwrap().len(), 1);
}

/// Of all others it would be asked in vain how they keep pixels: of a large DuckDB table that takes seconds.
#[test]
fn only_tiff_is_asked_for_looks() {
    let asked = registry::formats().iter().filter(|f| f.has_looks).map(|f| f.name);
    assert_eq!(asked.collect::<Vec<_>>(), ["tiff"]);
}
