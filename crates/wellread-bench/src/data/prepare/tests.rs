//! The sets that are made again, and the files that are left alone.

use super::*;
use wellread_image::{PixelType, Shape};
use wellread_store::registry::format_named;
use wellread_store::sites::SiteOptions;

#[test]
fn a_crop_leaves_of_each_image_what_it_has() {
    let image = |row, y, x| ImageChecksum {
        row,
        name: String::new(),
        shape_tczyx: [1, 2, 1, y, x],
        dtype: "uint16".to_owned(),
        sha256: String::new(),
    };
    let prepared = Prepared {
        folder: PathBuf::new(),
        sets: vec![],
        expected: vec![image(0, 10, 20), image(1, 4, 30)],
        about: String::new(),
        planes: false,
        of_images: None,
    };
    assert_eq!(prepared.delivered_bytes(None), 4.0 * (400.0 + 240.0) / 2.0);
    assert_eq!(prepared.delivered_bytes(Some((2, 5))), 4.0 * 20.0);
    assert_eq!(prepared.delivered_bytes(Some((8, 25))), 4.0 * (320.0 + 200.0) / 2.0, "clipped to each");
}

fn source() -> Source {
    Source::Synthetic(SetSpec { images: 4, shape: Shape::plane(16, 16), ..SetSpec::default() })
}

fn prepare_in(folder: &Path, source: &Source, formats: &[&'static Format]) -> Result<Prepared> {
    prepare(folder, source, formats, &WriteOptions::default(), &|_, _| ())
}

/// A format of this name whose writer fails as on a full disk.
fn on_a_full_disk(name: &str) -> &'static Format {
    let whole = format_named(name).unwrap();
    Box::leak(Box::new(Format {
        create: |path, _| {
            let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
            Err(Error::io(path, "cannot write", &full))
        },
        ..*whole
    }))
}

#[test]
fn a_failure_that_has_passed_is_forgotten_and_the_other_sets_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("data");
    let tiff = format_named("tiff").unwrap();
    let first = prepare_in(&folder, &source(), &[tiff, on_a_full_disk("parquet")]).unwrap();
    assert!(first.sets[0].error.is_none());
    assert!(first.sets[1].error.as_deref().is_some_and(|e| e.contains("space")), "{:?}", first.sets);
    let modified = |set: &FormatSet| std::fs::metadata(&set.path).unwrap().modified().unwrap();
    let before = modified(&first.sets[0]);
    let second = prepare_in(&folder, &source(), &[tiff, format_named("parquet").unwrap()]).unwrap();
    assert!(second.sets.iter().all(|set| set.error.is_none()), "{:?}", second.sets);
    assert_eq!(second.expected, first.expected);
    assert_eq!(modified(&second.sets[0]), before, "a good set was written again");
}

#[test]
fn a_new_folder_that_no_set_comes_into_does_not_stay() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("data");
    let full = prepare_in(&folder, &source(), &[on_a_full_disk("parquet")]).unwrap();
    assert!(full.sets[0].error.is_some() && !folder.exists());
    // An empty one that was there stays, and stays empty.
    std::fs::create_dir(&folder).unwrap();
    prepare_in(&folder, &source(), &[on_a_full_disk("parquet")]).unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    // Sets that an earlier run has made are known to be a benchmark's.
    let tiff = format_named("tiff").unwrap();
    prepare_in(&folder, &source(), &[tiff]).unwrap();
    prepare_in(&folder, &source(), &[tiff, on_a_full_disk("parquet")]).unwrap();
    assert!(folder.join(RECORD).exists() && folder.join(EXPECTED).exists());
}

#[test]
fn images_that_a_format_cannot_hold_stay_unavailable_and_cost_one_image() {
    let dir = tempfile::tempdir().unwrap();
    let spec = SetSpec { images: 5, dtype: PixelType::F32, ..SetSpec::default() };
    let formats = [format_named("tiff").unwrap(), format_named("image-folder").unwrap()];
    for _ in 0..2 {
        let prepared = prepare_in(dir.path(), &Source::Synthetic(spec), &formats).unwrap();
        assert!(prepared.sets[0].error.is_none() && prepared.sets[1].error.is_some());
        assert_eq!(prepared.expected.len(), 5);
    }
    let done = std::sync::Mutex::new(0);
    prepare(dir.path(), &Source::Synthetic(spec), &formats, &WriteOptions::default(), &|n, _| {
        *done.lock().unwrap() = n;
    })
    .unwrap();
    assert_eq!(*done.lock().unwrap(), 0, "the images were written once more for nobody");
}

#[test]
fn files_of_others_are_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let precious = dir.path().join("images.parquet");
    std::fs::write(&precious, b"precious").unwrap();
    let error = prepare_in(dir.path(), &source(), &[format_named("parquet").unwrap()]).unwrap_err();
    assert!(error.to_string().contains("--data-dir"), "{error}");
    assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn names_and_their_order_are_those_of_the_source_in_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let source_path = dir.path().join("plate.parquet");
    let parquet = format_named("parquet").unwrap();
    let mut writer = (parquet.create)(&source_path, &WriteOptions::default()).unwrap();
    let names = ["r02c01f01", "r01c01f01", "r01c01f01", "b/a"];
    for (i, name) in names.iter().enumerate() {
        let metadata = wellread_image::ImageMetadata::named((*name).to_owned());
        let pixels = vec![i as u8; 64];
        let image = ImageView {
            metadata: &metadata,
            shape: Shape::plane(8, 8),
            dtype: PixelType::U8,
            pixels: &pixels,
        };
        writer.write(&image).unwrap();
    }
    writer.finish().unwrap();
    let source = Source::Path { path: source_path, planes: None, cells: None, sites: SiteOptions::default() };
    let formats: Vec<_> =
        ["tiff", "parquet", "image-folder", "ome-zarr"].map(|name| format_named(name).unwrap()).to_vec();
    let prepared = prepare_in(&dir.path().join("data"), &source, &formats).unwrap();
    let expected: Vec<&str> = prepared.expected.iter().map(|image| image.name.as_str()).collect();
    assert_eq!(expected, names);
    for set in &prepared.sets {
        assert_eq!(set.error, None, "{}", set.format);
        let options = OpenOptions { format: Some(set.format.to_owned()), ..OpenOptions::default() };
        let store = wellread_store::open(&set.path, &options).unwrap();
        for (row, name) in names.iter().enumerate() {
            assert_eq!(store.metadata(row).unwrap().name, *name, "{}", set.format);
        }
    }
}

#[test]
fn another_source_makes_the_folder_stale() {
    let dir = tempfile::tempdir().unwrap();
    let formats = [format_named("parquet").unwrap()];
    let first = prepare_in(dir.path(), &source(), &formats).unwrap();
    let other = SetSpec { images: 3, shape: Shape::plane(16, 16), seed: 7, ..SetSpec::default() };
    let second = prepare_in(dir.path(), &Source::Synthetic(other), &formats).unwrap();
    assert_eq!((first.expected.len(), second.expected.len()), (4, 3));
    let store = (formats[0].open)(&second.sets[0].path, &OpenOptions::default()).unwrap();
    assert_eq!(store.len(), 3);
}

#[test]
fn an_edited_table_or_index_beside_the_images_makes_the_folder_stale() {
    let dir = tempfile::tempdir().unwrap();
    let made = prepare_in(&dir.path().join("made"), &source(), &[format_named("tiff").unwrap()]).unwrap();
    let entries = std::fs::read_dir(&made.sets[0].path).unwrap();
    let is_tiff = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "tif" || ending == "tiff");
    let mut pictures: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(is_tiff).collect();
    pictures.sort();
    let identity = |path: &Path| {
        let path = path.to_owned();
        let source = Source::Path { path, planes: None, cells: None, sites: SiteOptions::default() };
        Opened::open(&source).unwrap().identity().unwrap().0
    };
    let plate = dir.path().join("plate");
    std::fs::create_dir(&plate).unwrap();
    for (channel, picture) in (1..=2).zip(&pictures) {
        let name = format!("r01c01f01p01-ch{channel}sk1fk1fl1.tiff");
        std::fs::copy(picture, plate.join(name)).unwrap();
    }
    let before = identity(&plate);
    let index =
        |name: &str| format!("<Image><ChannelID>1</ChannelID><ChannelName>{name}</ChannelName></Image>");
    std::fs::write(plate.join("Index.xml"), index("DNA")).unwrap();
    let with_index = identity(&plate);
    std::fs::write(plate.join("Index.xml"), index("Mito")).unwrap();
    assert!(before != with_index && with_index != identity(&plate));
    assert_eq!(identity(&plate), identity(&plate));
    // Which file is which channel.
    let table = plate.join("load_data.csv");
    let text = |well: &str| {
        let folder = plate.display();
        format!("FileName_DNA,PathName_DNA,Metadata_Well\nr01c01f01p01-ch1sk1fk1fl1.tiff,{folder},{well}\n")
    };
    std::fs::write(&table, text("A01")).unwrap();
    let of_table = identity(&table);
    std::fs::write(&table, text("A0001")).unwrap();
    assert_ne!(of_table, identity(&table));
}
