//! Reading back what a conversion has written: every kind of difference is an error that names its row.

use std::path::Path;
use wellread_image::{Channel, ImageMetadata, PhysicalSize, PixelType, Shape};
use wellread_store::convert::{ConvertOptions, convert};
use wellread_store::read_back::check;
use wellread_store::{ImageView, OpenOptions, Store, WriteOptions, create, open};

type Image = (String, Shape, PixelType, Vec<u8>);

fn images() -> Vec<Image> {
    let image = |i: usize| {
        let shape = Shape::plane(5 + i % 3, 7);
        let dtype = [PixelType::U8, PixelType::U16][i % 2];
        let pixels = (0..shape.pixels() * dtype.size()).map(|p| (p * 31 + i * 7) as u8).collect();
        (format!("image {i}"), shape, dtype, pixels)
    };
    (0..40).map(image).collect()
}

fn write(path: &Path, images: &[Image]) -> Box<dyn Store> {
    let types = vec![PixelType::U8, PixelType::U16];
    let mut writer = create(path, "parquet", &WriteOptions { types, ..WriteOptions::default() }).unwrap();
    for (name, shape, dtype, pixels) in images {
        let metadata = ImageMetadata { name: name.clone(), ..ImageMetadata::default() };
        writer.write(&ImageView { metadata: &metadata, shape: *shape, dtype: *dtype, pixels }).unwrap();
    }
    writer.finish().unwrap();
    open(path, &OpenOptions::default()).unwrap()
}

#[test]
fn every_difference_is_an_error_that_names_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let source = write(&folder.path().join("source.parquet"), &images());
    let options = WriteOptions { types: vec![PixelType::U8, PixelType::U16], ..WriteOptions::default() };
    let writer = create(folder.path().join("target.parquet").as_path(), "parquet", &options).unwrap();
    let converted = convert(&*source, writer, ConvertOptions::default(), &mut |_| {}).unwrap();
    let digests = converted.digests.clone();
    assert!(!folder.path().join("target.parquet").exists());
    converted.check(&*source, "parquet", source.len(), 2, &|| {}).unwrap();
    converted.commit().unwrap();
    let target = open(folder.path().join("target.parquet").as_path(), &OpenOptions::default()).unwrap();
    for jobs in [1, 3] {
        check(&*source, &digests, &*target, source.len(), jobs, &|| {}).unwrap();
    }
    type Change = fn(&mut Vec<Image>);
    let changes: [(&str, Change, &str); 6] = [
        ("a pixel", |all| all[33].3[9] ^= 1, "row 33: has other pixels than the source's image \"image 33\""),
        (
            "a name",
            |all| all[7].0 = "other".into(),
            "row 7: is named \"other\", the source's image is \"image 7\"",
        ),
        ("two rows", |all| all.swap(3, 6), "row 3: is named \"image 6\""),
        ("a shape", |all| (all[12].1) = Shape::plane(7, 5), "row 12: has shape"),
        ("a row less", |all| drop(all.pop()), "has 39 images, 40 were written"),
        ("a row more", |all| all.push(all[0].clone()), "has 41 images, 40 were written"),
    ];
    for (i, (what, change, expected)) in changes.into_iter().enumerate() {
        let mut other = images();
        change(&mut other);
        let other = write(&folder.path().join(format!("other-{i}.parquet")), &other);
        for jobs in [1, 3] {
            let error =
                check(&*source, &digests, &*other, source.len(), jobs, &|| {}).unwrap_err().to_string();
            assert!(error.contains(expected), "{what}: {error}");
        }
    }
    // A pixel type that was widened keeps the values; one that does not is told.
    let wide = |image: &Image| match image {
        (name, shape, PixelType::U8, pixels) => {
            let pixels = pixels.iter().flat_map(|&p| u16::from(p).to_le_bytes()).collect();
            (name.clone(), *shape, PixelType::U16, pixels)
        }
        other => other.clone(),
    };
    let mut widened: Vec<_> = images().iter().map(wide).collect();
    let same = write(&folder.path().join("wide.parquet"), &widened);
    check(&*source, &digests, &*same, source.len(), 2, &|| {}).unwrap();
    widened[20].3[0] ^= 1;
    let other = write(&folder.path().join("wide-other.parquet"), &widened);
    let error = check(&*source, &digests, &*other, source.len(), 2, &|| {}).unwrap_err().to_string();
    assert!(error.contains("row 20: has other pixels"), "{error}");
}

/// The first image of a set may be the one of which nothing is known.
#[test]
fn facts_that_a_later_image_has_are_told_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.parquet");
    let mut writer = create(&path, "parquet", &WriteOptions::default()).unwrap();
    let unit = "µm".to_owned();
    let all = [
        ImageMetadata::named("a"),
        ImageMetadata { acquired: Some("2026-11-21T05:38:56".into()), ..ImageMetadata::named("b") },
        ImageMetadata {
            physical_size_x: Some(PhysicalSize { value: 0.5, unit }),
            channels: vec![Channel { emission_um: Some(0.461), ..Channel::default() }],
            ..ImageMetadata::named("c")
        },
    ];
    for metadata in &all {
        let (shape, dtype) = (Shape::plane(2, 3), PixelType::U8);
        writer.write(&ImageView { metadata, shape, dtype, pixels: &[7; 6] }).unwrap();
    }
    writer.finish().unwrap();
    let source = open(&path, &OpenOptions::default()).unwrap();
    let options = WriteOptions { types: vec![PixelType::U8], ..WriteOptions::default() };
    let lost = |format: &str, target: &str| {
        let writer = create(folder.path().join(target), format, &options).unwrap();
        let converted = convert(&*source, writer, ConvertOptions::default(), &mut |_| {}).unwrap();
        converted.check(&*source, format, source.len(), 2, &|| {}).unwrap()
    };
    assert_eq!(lost("image-folder", "pictures"), ["wavelengths", "pixel sizes", "times of acquisition"]);
    assert_eq!(lost("parquet", "again.parquet"), Vec::<&str>::new());
}
