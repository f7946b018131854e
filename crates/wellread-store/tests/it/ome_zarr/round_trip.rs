//! Written sets are read back: pixels, metadata, order of rows.

use super::{assert_reads, cuts, dtypes, open_at, pattern, region_of};
use proptest::prelude::*;
use wellread_image::{Channel, ImageMetadata, PhysicalSize, PixelType, Shape, TimeIncrement};
use wellread_store::convert::{ConvertOptions, convert};
use wellread_store::{Compression, CopySink, ImageView, Request, Scratch, WriteOptions, create, read_image};

fn compressions() -> impl Strategy<Value = Compression> {
    proptest::sample::select(vec![
        Compression::Default,
        Compression::None,
        Compression::Lz4,
        Compression::Zstd(5),
        Compression::Deflate(1),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Written sets are read back, in both versions, with every compression, chunked and sharded.
    #[test]
    fn written_images_read_back(
        dtype in dtypes(),
        shape in (1usize..3, 1usize..4, 1usize..4, 1usize..40, 1usize..40),
        chunk in proptest::option::of((1usize..3, 1usize..3, 1usize..3, 1usize..20, 1usize..20)),
        shard in proptest::option::of((1usize..3, 1usize..3, 1usize..3, 1usize..4, 1usize..4)),
        compression in compressions(),
        old in any::<bool>(),
        jobs in 1usize..3,
        cut in cuts(),
        seed in any::<u64>(),
    ) {
        let shape = Shape(shape.into());
        let chunk: Option<[usize; 5]> = chunk.map(Into::into);
        let shard = chunk.zip(shard.filter(|_| !old).map(<[usize; 5]>::from));
        let shard = shard.map(|(c, s)| std::array::from_fn(|a| c[a].min(shape.0[a]) * s[a]));
        let pixels = pattern(shape, dtype, seed);
        let dir = tempfile::tempdir().unwrap();
        let options = WriteOptions {
            compression, chunk, shard, jobs,
            variant: Some(if old { "0.4" } else { "0.5" }.to_owned()),
            ..WriteOptions::default()
        };
        let mut writer = create(dir.path().join("set"), "ome-zarr", &options).unwrap();
        let metadata = ImageMetadata::named("a");
        writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &pixels }).unwrap();
        writer.finish().unwrap();
        let store = open_at(&dir.path().join("set"));
        prop_assert_eq!(store.name(0).unwrap(), "a");
        assert_reads(&*store, shape, dtype, &pixels, region_of(shape, cut));
    }
}

/// A target may keep the time of acquisition of one image and have none of the year of another.
#[test]
fn times_of_acquisition_that_a_target_cannot_hold_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let images = |name: &str, times: [Option<&str>; 3]| {
        let set = dir.path().join(name);
        let mut writer = create(&set, "ome-zarr", &WriteOptions::default()).unwrap();
        for (name, time) in ["a", "b", "c"].into_iter().zip(times) {
            let metadata = ImageMetadata { acquired: time.map(str::to_owned), ..ImageMetadata::named(name) };
            let pixels = [1_u8, 2, 3, 4];
            let image = ImageView {
                metadata: &metadata,
                shape: Shape::plane(2, 2),
                dtype: PixelType::U8,
                pixels: &pixels,
            };
            writer.write(&image).unwrap();
        }
        writer.finish().unwrap();
        open_at(&set)
    };
    let (good, far) = (Some("2026-11-21T05:38:56"), Some("+012026-11-21T05:38:56"));
    for (name, times, expected) in [
        ("one-far", [good, far, None], &["some times of acquisition"][..]),
        ("first-far", [far, good, None], &["times of acquisition"]),
        ("none-far", [good, None, good], &[]),
        ("no-first", [None, good, far], &["some times of acquisition"]),
    ] {
        let source = images(name, times);
        assert_eq!(source.metadata(1).unwrap().acquired.as_deref(), times[1], "{name}");
        let path = dir.path().join(format!("{name}.parquet"));
        let writer = create(&path, "parquet", &WriteOptions::default()).unwrap();
        let converted = convert(&*source, writer, ConvertOptions::default(), &mut |_| {}).unwrap();
        assert_eq!(converted.check(&*source, "parquet", None, 3, 2, &|| {}).unwrap(), expected, "{name}");
    }
}

#[test]
fn metadata_survives() {
    let size = |value, unit: &str| Some(PhysicalSize { value, unit: unit.into() });
    let metadata = ImageMetadata {
        id: "Image:3".into(),
        name: "field".into(),
        channels: vec![
            Channel {
                id: "c0".into(),
                name: "DAPI".into(),
                emission_um: Some(0.461),
                color_rgba: Some(0x0000_ffff),
                ..Channel::default()
            },
            Channel { id: "c1".into(), name: "GFP".into(), ..Channel::default() },
        ],
        physical_size_x: size(0.65, "µm"),
        physical_size_y: size(650.0, "nm"),
        physical_size_z: size(2.0, ""),
        time_increment: Some(TimeIncrement { value: 7.5, unit: "min".into() }),
        acquired: Some("2026-11-21T05:38:56".into()),
    };
    let shape = Shape([1, 2, 1, 3, 4]);
    let pixels = vec![9; 24];
    for version in ["0.4", "0.5"] {
        let dir = tempfile::tempdir().unwrap();
        let options = WriteOptions { variant: Some(version.into()), ..WriteOptions::default() };
        let mut writer = create(dir.path().join("set"), "ome-zarr", &options).unwrap();
        writer
            .write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels })
            .unwrap();
        writer.finish().unwrap();
        let path = dir.path().join("set/field.zarr");
        let store = open_at(&path);
        assert_eq!(store.metadata(0).unwrap(), metadata);
        assert_eq!(store.metadata(0).unwrap().channels[1].color_rgba, None);
        // Without wellread's own attribute, what omero and the axes say remains.
        let file = path.join(if version == "0.5" { "zarr.json" } else { ".zattrs" });
        let text = std::fs::read_to_string(&file).unwrap().replace("\"wellread\"", "\"other\"");
        std::fs::write(&file, text).unwrap();
        let plain = store.metadata(0).unwrap();
        assert_eq!(plain.channels.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["DAPI", "GFP"]);
        assert_eq!(plain.channels[0].color_rgba, Some(0x0000_ffff));
        // OME-Zarr requires a colour: other readers find white where there is none.
        assert_eq!(plain.channels[1].color_rgba, Some(0xffff_ffff));
        assert_eq!(
            (plain.physical_size_x, &plain.physical_size_z),
            (metadata.physical_size_x.clone(), &metadata.physical_size_z)
        );
        assert_eq!(plain.time_increment, metadata.time_increment);
    }
}

#[test]
fn rows_of_a_folder_stand_as_written_and_are_read_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let shape = Shape([1, 2, 1, 5, 7]);
    for jobs in [1, 3] {
        let set = dir.path().join(format!("set-{jobs}"));
        let mut writer = create(&set, "ome-zarr", &WriteOptions { jobs, ..WriteOptions::default() }).unwrap();
        for (i, name) in ["b", "a", "d/x", "c.ome"].iter().enumerate() {
            let metadata = ImageMetadata::named(*name);
            let pixels = pattern(shape, PixelType::F32, i as u64);
            let image = ImageView { metadata: &metadata, shape, dtype: PixelType::F32, pixels: &pixels };
            writer.write(&image).unwrap();
        }
        writer.finish().unwrap();
        let store = open_at(&set);
        let names: Vec<_> = (0..4).map(|row| store.name(row).unwrap()).collect();
        assert_eq!(names, ["b", "a", "d/x", "c.ome"]);
        let order = [3, 0, 2, 1];
        let requests = order.map(|row| Request { row, region: shape.full() });
        let mut outs = vec![vec![0; shape.pixels() * 4]; 4];
        let targets = outs.iter_mut().map(|o| (shape.full(), PixelType::F32, o.as_mut_slice())).collect();
        store.read(&requests, &mut Scratch::default(), &mut CopySink::new(targets)).unwrap();
        for (out, written) in outs.iter().zip(order) {
            assert!(*out == pattern(shape, PixelType::F32, written as u64));
        }
        // 4 images of a group file, an array file and two chunks each.
        assert_eq!(store.files().unwrap().len(), 16);
        assert_eq!(store.files_of(&[2, 0, 2]).unwrap().len(), 8);
    }
}

#[test]
fn writer_refuses_what_it_cannot_do() {
    let dir = tempfile::tempdir().unwrap();
    let refuse = |options: WriteOptions, says: &str| {
        let error = create(dir.path().join("x"), "ome-zarr", &options).err().unwrap().to_string();
        assert!(error.contains(says), "{error}");
        assert!(!dir.path().join("x").exists());
    };
    refuse(WriteOptions { compression: Compression::Lzw, ..WriteOptions::default() }, "zstd");
    refuse(WriteOptions { variant: Some("0.3".into()), ..WriteOptions::default() }, "0.4 and 0.5");
    refuse(WriteOptions { chunk: Some([1, 1, 1, 0, 1]), ..WriteOptions::default() }, "empty");
    let shard = Some([1, 1, 1, 64, 64]);
    refuse(WriteOptions { shard, variant: Some("0.4".into()), ..WriteOptions::default() }, "no shards");
    let one = dir.path().join("one.zarr");
    let mut writer = create(&one, "ome-zarr", &WriteOptions::default()).unwrap();
    let metadata = ImageMetadata::named("a");
    let shape = Shape::plane(2, 2);
    let image = ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &[1, 2, 3, 4] };
    writer.write(&ImageView { pixels: &[1], ..image }).unwrap_err();
    // It was counted, and a set without an image put to its place.
    assert!(writer.finish().unwrap_err().to_string().contains("no image"));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing half-written is left");
    let mut writer = create(&one, "ome-zarr", &WriteOptions::default()).unwrap();
    writer.write(&image).unwrap();
    assert!(writer.write(&image).unwrap_err().to_string().contains("holds one image"));
    writer.finish().unwrap();
    assert_eq!(open_at(&one).name(0).unwrap(), "a");
}

/// Every chunk of an image is written, so that one that is missing was lost. In images of others it is the fill value.
#[test]
fn a_chunk_that_was_lost_is_an_error() {
    let (shape, dtype) = (Shape::plane(20, 30), PixelType::U8);
    for (variant, shard) in [("0.4", None), ("0.5", None), ("0.5", Some([1, 1, 1, 20, 20]))] {
        let dir = tempfile::tempdir().unwrap();
        let set = dir.path().join("set");
        let options = WriteOptions {
            chunk: Some([1, 1, 1, 10, 10]),
            shard,
            variant: Some(variant.to_owned()),
            ..WriteOptions::default()
        };
        let mut writer = create(&set, "ome-zarr", &options).unwrap();
        let metadata = ImageMetadata::named("a");
        // An image of zeros too: it has no chunks.
        writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &[0; 600] }).unwrap();
        writer.finish().unwrap();
        let image = std::fs::read_dir(&set).unwrap().next().unwrap().unwrap().path();
        let chunk = image.join(if variant == "0.4" { "0/0/0/0/1/1" } else { "0/c/0/0/0/0/1" });
        assert_eq!(read_image(&*open_at(&set), 0).unwrap().1, [0; 600]);
        std::fs::remove_file(&chunk).unwrap();
        let error = read_image(&*open_at(&set), 0).unwrap_err().to_string();
        let name = chunk.strip_prefix(&set).unwrap().display().to_string();
        assert!(error.contains("a chunk is missing") && error.contains(&name), "{variant}: {error}");
        let metadata = image.join(if variant == "0.4" { ".zattrs" } else { "zarr.json" });
        let text = std::fs::read_to_string(&metadata).unwrap();
        assert!(text.contains("\"complete\""), "{text}");
        std::fs::write(&metadata, text.replace("\"complete\"", "\"other\"")).unwrap();
        assert_eq!(read_image(&*open_at(&set), 0).unwrap().1, [0; 600], "{variant}");
    }
}

/// New pixels would stand among those that were read before.
#[test]
fn a_chunk_that_is_written_to_is_an_error() {
    let (shape, dtype) = (Shape::plane(20, 30), PixelType::U8);
    let pixels = pattern(shape, dtype, 7);
    for (variant, shard) in [("0.4", None), ("0.5", Some([1, 1, 1, 20, 20]))] {
        let dir = tempfile::tempdir().unwrap();
        let set = dir.path().join("set");
        let options = WriteOptions {
            chunk: Some([1, 1, 1, 10, 10]),
            shard,
            variant: Some(variant.to_owned()),
            ..WriteOptions::default()
        };
        let mut writer = create(&set, "ome-zarr", &options).unwrap();
        let metadata = ImageMetadata::named("a");
        writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &pixels }).unwrap();
        writer.finish().unwrap();
        let image = std::fs::read_dir(&set).unwrap().next().unwrap().unwrap().path();
        let chunk = image.join(if variant == "0.4" { "0/0/0/0/1/1" } else { "0/c/0/0/0/0/1" });
        let store = open_at(&set);
        for _ in 0..2 {
            assert_eq!(read_image(&*store, 0).unwrap().1, pixels, "{variant}");
        }
        // Bytes that can be decoded, at another time.
        let file = std::fs::File::options().write(true).open(&chunk).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        let error = read_image(&*store, 0).unwrap_err().to_string();
        let name = chunk.strip_prefix(&set).unwrap().display().to_string();
        assert!(error.contains("was written to after it was opened"), "{variant}: {error}");
        assert!(error.contains(&name) && error.contains("open the set again"), "{variant}: {error}");
        assert_eq!(read_image(&*open_at(&set), 0).unwrap().1, pixels, "{variant}");
    }
}
