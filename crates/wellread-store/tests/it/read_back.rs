//! Reading back what a conversion has written: every kind of difference is an error that names its row.

use arrow_array::{ArrayRef, Date64Array, Int64Array, RecordBatch};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use wellread_image::{Channel, ImageMetadata, PhysicalSize, PixelType, Shape};
use wellread_store::convert::{ConvertOptions, convert};
use wellread_store::read_back::{Digests, check};
use wellread_store::staged::Finished;
use wellread_store::{
    EachImage, ImageView, OpenOptions, Result, Store, StoreWriter, WriteOptions, create, delegate_store, open,
};

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
    converted.check(&*source, "parquet", None, source.len(), 2, &|| {}).unwrap();
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

/// A writer with a defect.
struct Panicking;

impl StoreWriter for Panicking {
    fn write(&mut self, _: &ImageView<'_>) -> Result<()> {
        panic!("a defect")
    }

    fn complete_output(self: Box<Self>) -> Result<Finished> {
        panic!("nothing was written")
    }
}

/// The reader waited for room for its second image, and the process for the reader, without end.
#[test]
fn a_writer_that_panics_does_not_hang() {
    let folder = tempfile::tempdir().unwrap();
    let source = write(&folder.path().join("source.parquet"), &images());
    let converted = || convert(&*source, Box::new(Panicking), ConvertOptions { memory: 0 }, &mut |_| {});
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(converted)).is_err());
}

/// A set whose reader passes over an image without an error.
struct Forgetful(Box<dyn Store>);

impl Store for Forgetful {
    delegate_store!(self => self.0; format, path, remote_path, len, row_info, name, metadata, layout, files, files_of);
    delegate_store!(self => self.0; has_checksums, hints, row_hints, heads, ranges, read, check);

    fn scan(&self, rows: Range<usize>, each: &mut EachImage<'_>) -> Result<()> {
        self.0.scan(rows, &mut |row, info, pixels| if row == 33 { Ok(()) } else { each(row, info, pixels) })
    }
}

#[test]
fn an_image_that_is_not_read_back_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let source = write(&folder.path().join("source.parquet"), &images());
    let target = Forgetful(write(&folder.path().join("target.parquet"), &images()));
    let digests = Digests::default();
    let checked = check(&*source, &digests, &target, source.len(), 1, &|| {});
    let error = checked.unwrap_err();
    assert_eq!((error.row_index(), error.cause()), (Some(33), "was passed over by its reader"));
    // It is not among these.
    check(&*source, &digests, &target, 16, 1, &|| {}).unwrap();
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
            channels: vec![Channel {
                emission_um: Some(0.461),
                color_rgba: Some(0x00ff_00ff),
                ..Channel::default()
            }],
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
        let lost = converted.check(&*source, format, None, source.len(), 2, &|| {}).unwrap();
        // It takes no pixels to know.
        assert_eq!(converted.left_out(&*source, format).unwrap(), lost);
        lost
    };
    assert_eq!(
        lost("image-folder", "pictures"),
        ["wavelengths", "pixel sizes", "times of acquisition", "channel colours"]
    );
    assert_eq!(lost("parquet", "again.parquet"), Vec::<&str>::new());
}

/// OME-XML has other characters and words in place of those that it cannot hold.
#[test]
fn facts_that_a_format_changes_are_told_as_changed() {
    let folder = tempfile::tempdir().unwrap();
    let lost = |name: &str, illumination: &str, format: &str, variant: Option<&str>| {
        let named = format!("{}-{}-{format}", name.len(), illumination.len());
        let path = folder.path().join(format!("{named}{}.parquet", variant.unwrap_or_default()));
        let mut writer = create(&path, "parquet", &WriteOptions::default()).unwrap();
        let channel = Channel {
            id: "Channel:0:0".into(),
            name: name.into(),
            illumination: Some(illumination.into()),
            ..Channel::default()
        };
        let metadata = ImageMetadata { channels: vec![channel], ..ImageMetadata::named("a") };
        let (shape, dtype) = (Shape::plane(2, 3), PixelType::U8);
        writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &[7; 6] }).unwrap();
        writer.finish().unwrap();
        let source = open(&path, &OpenOptions::default()).unwrap();
        let options = WriteOptions {
            types: vec![PixelType::U8],
            variant: variant.map(str::to_owned),
            ..WriteOptions::default()
        };
        let writer = create(path.with_extension("written"), format, &options).unwrap();
        let converted = convert(&*source, writer, ConvertOptions::default(), &mut |_| {}).unwrap();
        converted.left_out(&*source, format).unwrap()
    };
    assert_eq!(lost("DNA\n2", "Epifluorescence", "tiff", None), Vec::<&str>::new());
    let characters = "control characters in channel names (U+FFFD stands in their place)";
    assert_eq!(lost("DNA\u{7}", "Epifluorescence", "tiff", None), [characters]);
    let kinds = "kinds of illumination beside OME's (\"Other\" stands in their place)";
    assert_eq!(lost("DNA", "lamp", "tiff", None), [kinds]);
    assert_eq!(lost("DNA", "Unknown", "tiff", None), Vec::<&str>::new());
    assert_eq!(lost("DNA\u{7}", "lamp", "ome-zarr", None), Vec::<&str>::new());
    let plain = lost("DNA\u{7}", "lamp", "tiff", Some("plain"));
    assert_eq!(plain, ["channel names", "kinds of illumination"]);
}

/// Tables have times without a zone: hours of another one are those of UTC there.
#[test]
fn zones_of_times_that_become_utc_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let zones = "zones of times of acquisition (the times are in UTC)";
    for (i, (zone, expected)) in [("+02:00", &[zones][..]), ("Z", &[]), ("", &[])].into_iter().enumerate() {
        let path = folder.path().join(format!("{i}-zarr"));
        let time = Some(format!("2026-11-21T05:38:56{zone}"));
        let metadata = ImageMetadata { acquired: time.clone(), ..ImageMetadata::named("a") };
        let mut writer = create(&path, "ome-zarr", &WriteOptions::default()).unwrap();
        let (shape, dtype) = (Shape::plane(2, 3), PixelType::U8);
        writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &[7; 6] }).unwrap();
        writer.finish().unwrap();
        let source = open(&path, &OpenOptions::default()).unwrap();
        assert_eq!(source.metadata(0).unwrap().acquired, time);
        for (format, told) in [("parquet", expected), ("ome-zarr", &[])] {
            let target = folder.path().join(format!("{i}-{format}"));
            let writer = create(target, format, &WriteOptions::default()).unwrap();
            let converted = convert(&*source, writer, ConvertOptions::default(), &mut |_| {}).unwrap();
            assert_eq!(converted.left_out(&*source, format).unwrap(), told, "{zone} {format}");
        }
    }
}

/// OME-Zarr has a scale for each axis, and none that says "zero".
#[test]
fn sizes_of_nothing_are_told_and_come_back_as_unknown() {
    let folder = tempfile::tempdir().unwrap();
    for (i, value) in [0.0, -1.0].into_iter().enumerate() {
        let path = folder.path().join(format!("{i}.parquet"));
        let mut writer = create(&path, "parquet", &WriteOptions::default()).unwrap();
        let size = |value: f64| Some(PhysicalSize { value, unit: "µm".into() });
        let named = ImageMetadata::named("a");
        let metadata = ImageMetadata { physical_size_x: size(value), physical_size_y: size(0.5), ..named };
        let (shape, dtype) = (Shape::plane(2, 3), PixelType::U8);
        writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &[7; 6] }).unwrap();
        writer.finish().unwrap();
        let source = open(&path, &OpenOptions::default()).unwrap();
        let options = WriteOptions { types: vec![PixelType::U8], ..WriteOptions::default() };
        let target = folder.path().join(format!("{i}-zarr"));
        let writer = create(&target, "ome-zarr", &options).unwrap();
        let converted = convert(&*source, writer, ConvertOptions::default(), &mut |_| {}).unwrap();
        let lost = converted.left_out(&*source, "ome-zarr").unwrap();
        assert_eq!(lost, ["pixel sizes along X"], "{value}");
        converted.commit().unwrap();
        let back = open(&target, &OpenOptions::default()).unwrap().metadata(0).unwrap();
        assert_eq!((back.physical_size_x, back.physical_size_y), (None, size(0.5)), "{value}");
    }
}

/// The values of columns are read back, too: one that an engine has changed, or lost, is told by its name and row.
#[test]
fn columns_that_read_back_otherwise_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let source = write(&folder.path().join("source.parquet"), &images());
    let count = |changed: usize| -> ArrayRef {
        Arc::new((0..40).map(|row| if row == changed { -1 } else { row as i64 }).collect::<Int64Array>())
    };
    let day: ArrayRef = Arc::new((0..40).map(|day| Some(day * 86_400_000)).collect::<Date64Array>());
    let empty: ArrayRef = Arc::new(Int64Array::from(vec![None; 40]));
    let batch = |columns: Vec<(&str, ArrayRef)>| {
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .unwrap()
    };
    // The first is renamed where it is a column of the table itself.
    let written = batch(vec![("ome_image", count(40)), ("day", day.clone()), ("count", count(40))]);
    let types = vec![PixelType::U8, PixelType::U16];
    let options = WriteOptions { types, features: Some(written.clone()), ..WriteOptions::default() };
    for (format, name) in [("parquet", "a.parquet"), ("ome-zarr", "a.zarr"), ("ome-arrow-dataset", "dataset")]
    {
        let writer = create(folder.path().join(name), format, &options).unwrap();
        let converted = convert(&*source, writer, ConvertOptions::default(), &mut |_| {}).unwrap();
        let said = |columns: &RecordBatch| {
            let checked = converted.check(&*source, format, Some(columns), source.len(), 2, &|| {});
            checked.err().map(|error| (error.row_index(), error.cause().to_owned()))
        };
        assert_eq!(said(&written), None, "{format}");
        let other = batch(vec![("day", day.clone()), ("count", count(33))]);
        let changed = "has another value in the column \"count\" than was written".to_owned();
        assert_eq!(said(&other), Some((Some(33), changed)), "{format}");
        let more = batch(vec![("day", day.clone()), ("empty", empty.clone()), ("lost", count(40))]);
        let lost = "has no column \"lost\", which was written".to_owned();
        assert_eq!(said(&more), Some((None, lost)), "{format}");
    }
}
