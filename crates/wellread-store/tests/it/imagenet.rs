//! Splits and classes of an image folder.

use crate::image_folder::{open_at, picture};
use arrow_array::{Array as _, Int64Array, StringArray};
use image::{ColorType, ImageFormat};
use wellread_image::Shape;
use wellread_store::convert::{ConvertOptions, convert};
use wellread_store::{OpenOptions, Store, WriteOptions, create, features, open, read_image};

/// ImageNet-100 as it is distributed.
#[test]
fn parts_of_a_split_are_one_and_classes_have_names() {
    let dir = tempfile::tempdir().unwrap();
    let put = |below: &str| {
        let file = dir.path().join(below);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        picture(ColorType::Rgb8, 16, 16).save_with_format(file, ImageFormat::Jpeg).unwrap();
    };
    for below in [
        "train.X1/n01/n01_7.JPEG",
        "train.X1/n01/n01_3.JPEG",
        "train.X2/n00/n00_1.JPEG",
        "train.X4/n05/n05_2.JPEG",
        "val.X/n00/v_2.JPEG",
        "val.X/n05/v_1.JPEG",
    ] {
        put(below);
    }
    let labels = r#"{"n00": "tench, Tinca tinca", "n01": "goldfish", "n03": "not in the set", "n05": "hen"}"#;
    std::fs::write(dir.path().join("Labels.json"), labels).unwrap();
    let names =
        |store: &dyn Store| -> Vec<String> { (0..store.len()).map(|row| store.name(row).unwrap()).collect() };
    let column = |store: &dyn Store, name: &str| -> Vec<String> {
        let features = wellread_store::features::all(store).unwrap().unwrap();
        let column = features.column_by_name(name).unwrap_or_else(|| panic!("{name}"));
        if let Some(texts) = column.as_any().downcast_ref::<StringArray>() {
            return texts.iter().map(|text| text.unwrap().to_owned()).collect();
        }
        let numbers = column.as_any().downcast_ref::<Int64Array>().unwrap();
        numbers.iter().map(|number| number.unwrap().to_string()).collect()
    };
    let store = open_at(dir.path());
    let all = [
        "train/n00/n00_1",
        "train/n01/n01_3",
        "train/n01/n01_7",
        "train/n05/n05_2",
        "val/n00/v_2",
        "val/n05/v_1",
    ];
    assert_eq!(names(&*store), all);
    assert_eq!(store.hints().feature_names(), ["class", "label", "class_name", "split"]);
    assert_eq!(column(&*store, "class"), ["n00", "n01", "n01", "n05", "n00", "n05"]);
    // By name among those of Labels.json, so that numbers do not depend on what is there of the set.
    assert_eq!(column(&*store, "label"), ["0", "1", "1", "3", "0", "3"]);
    assert_eq!(column(&*store, "class_name")[..2], ["tench, Tinca tinca", "goldfish"]);
    assert_eq!(column(&*store, "split")[3..], ["train", "val", "val"]);
    assert!(store.layout().unwrap().variant.contains("3 classes in splits train, val"));
    assert_eq!(read_image(&*store, 5).unwrap().0.shape, Shape([1, 3, 1, 16, 16]));

    let split =
        |name: &str| open(dir.path(), &OpenOptions { table: Some(name.into()), ..OpenOptions::default() });
    assert_eq!(names(&*split("train").unwrap()), all[..4]);
    let val = split("val").unwrap();
    assert_eq!(
        (names(&*val), column(&*val, "label")),
        (vec![all[4].into(), all[5].into()], vec!["0".into(), "3".into()])
    );
    let error = split("test").err().unwrap().to_string();
    assert!(error.contains("no split \"test\"") && error.contains("train, val"), "{error}");
    // A part by itself has its classes and their names.
    let part = open_at(&dir.path().join("val.X"));
    assert_eq!(
        (names(&*part), column(&*part, "class_name")),
        (
            vec!["n00/v_2".to_owned(), "n05/v_1".to_owned()],
            vec!["tench, Tinca tinca".to_owned(), "hen".to_owned()]
        )
    );
    // Labels that are none are told, where they are the set's own.
    std::fs::write(dir.path().join("Labels.json"), "[1]").unwrap();
    let error = open(dir.path(), &OpenOptions::default()).err().unwrap().to_string();
    assert!(error.contains("Labels.json") && error.contains("names of classes"), "{error}");
    assert_eq!(open_at(&dir.path().join("val.X")).hints().feature_names(), ["class", "label"]);
}

/// The folders of a set that is written are called as classes and splits together. The names of its images tell these apart.
#[test]
fn a_written_set_has_the_splits_of_its_source() {
    let dir = tempfile::tempdir().unwrap();
    let [source, target] = ["source", "target"].map(|name| dir.path().join(name));
    for below in ["train.X1/n01/a.png", "train.X2/n02/b.png", "val/n01/c.png"] {
        let file = source.join(below);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        picture(ColorType::Rgb8, 4, 4).save_with_format(file, ImageFormat::Png).unwrap();
    }
    let source = open_at(&source);
    let writer = create(&target, "image-folder", &WriteOptions::default()).unwrap();
    convert(&*source, writer, ConvertOptions::default(), &mut |_| {}).unwrap().commit().unwrap();
    let written = open_at(&target);
    assert_eq!(written.hints().feature_names(), ["class", "label", "split"]);
    let [had, has] = [&source, &written].map(|store| features::all(&**store).unwrap().unwrap());
    assert_eq!(has, had);
    let splits = has.column_by_name("split").unwrap().as_any().downcast_ref::<StringArray>().unwrap();
    assert_eq!(splits, &StringArray::from(vec!["train", "train", "val"]));
    assert!(written.layout().unwrap().variant.contains("2 classes in splits train, val"));
    let split =
        |name: &str| open(&target, &OpenOptions { table: Some(name.into()), ..OpenOptions::default() });
    let val = split("val").unwrap();
    assert_eq!((val.len(), val.name(0).unwrap().as_str()), (1, "val/n01/c"));
    let error = split("test").err().unwrap().to_string();
    assert!(error.contains("its splits are train, val"), "{error}");
}
