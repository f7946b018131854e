//! Reads of sets that wellread writes: every pixel type, compression, layout and kind of target.

use super::{check_regions, folder, open};
use proptest::prelude::*;
use wellread_image::{Channel, ImageMetadata, PhysicalSize, PixelType, Shape};
use wellread_store::{Compression, ImageView, OpenOptions, WriteOptions, create, read_image};

const COMPRESSIONS: [Compression; 6] = [
    Compression::Default,
    Compression::None,
    Compression::Lzw,
    Compression::Deflate(6),
    Compression::PackBits,
    Compression::Zstd(3),
];

/// Pixels with some structure, so that every compression has something to do.
fn pixels(shape: Shape, dtype: PixelType, seed: usize) -> Vec<u8> {
    let n = shape.pixels() * dtype.size();
    (0..n).map(|i| ((i / 7 * (seed + 3)) >> (i % 3)) as u8).collect()
}

fn write_all(
    path: &std::path::Path,
    options: &WriteOptions,
    images: &[(ImageMetadata, Shape, PixelType, Vec<u8>)],
) {
    let mut writer = create(path, "tiff", options).unwrap();
    for (metadata, shape, dtype, pixels) in images {
        writer.write(&ImageView { metadata, shape: *shape, dtype: *dtype, pixels }).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn every_type_and_compression() {
    let dir = folder();
    let shape = Shape([2, 3, 2, 45, 37]);
    let images: Vec<_> = PixelType::ALL
        .iter()
        .map(|&dtype| (ImageMetadata::named(dtype.name()), shape, dtype, pixels(shape, dtype, dtype.size())))
        .collect();
    for (i, compression) in COMPRESSIONS.into_iter().enumerate() {
        for (j, chunk) in [None, Some([1, 1, 1, 16, 32]), Some([1, 1, 1, 7, 0])].into_iter().enumerate() {
            for variant in ["ome", "plain"] {
                for target in ["set", "set.tif"] {
                    let path = dir.path().join(format!("{i}-{j}-{variant}-{target}"));
                    let options = WriteOptions {
                        compression,
                        chunk,
                        variant: Some(variant.into()),
                        jobs: 1 + i % 3,
                        ..WriteOptions::default()
                    };
                    write_all(&path, &options, &images);
                    let store = wellread_store::open(&path, &OpenOptions::default()).unwrap();
                    assert_eq!((store.format(), store.len()), ("tiff", images.len()), "{}", path.display());
                    for row in 0..store.len() {
                        let name = store.name(row).unwrap();
                        // Plain files keep no names of images.
                        let find = |(m, ..): &&(ImageMetadata, Shape, PixelType, Vec<u8>)| m.name == name;
                        let expected = match (variant, target) {
                            ("plain", "set.tif") => &images[row],
                            _ => images.iter().find(find).unwrap(),
                        };
                        let (info, got) = read_image(&*store, row).unwrap();
                        assert_eq!((info.shape, info.dtype), (expected.1, expected.2), "{}", path.display());
                        assert!(got == expected.3, "{} row {row}: other pixels", path.display());
                    }
                    check_regions(&*store);
                    assert!(!store.layout().unwrap().pieces.is_empty());
                }
            }
        }
    }
}

#[test]
fn metadata_and_awkward_names_are_kept() {
    let dir = folder();
    let shape = Shape([1, 2, 1, 3, 4]);
    let metadata = |name: &str| ImageMetadata {
        channels: vec![
            Channel {
                id: "Channel:0:0".into(),
                name: "DAPI".into(),
                emission_um: Some(0.461),
                ..Channel::default()
            },
            Channel {
                id: "Channel:0:1".into(),
                name: "GFP & co".into(),
                color_rgba: Some(0x00FF_00FF),
                ..Channel::default()
            },
        ],
        physical_size_x: Some(PhysicalSize { value: 0.65, unit: "µm".into() }),
        physical_size_z: Some(PhysicalSize { value: 2.0, unit: "µm".into() }),
        acquired: Some("2026-11-21T05:38:56".into()),
        ..ImageMetadata::named(name)
    };
    let names = ["plate 1/well A:01", "twice", "twice", "Twice", ".hidden", "a\u{301}-µ", "twice-1"];
    let data = pixels(shape, PixelType::U16, 1);
    let images: Vec<_> = names.iter().map(|n| (metadata(n), shape, PixelType::U16, data.clone())).collect();
    for target in ["set", "set.ome.tiff"] {
        let path = dir.path().join(target);
        write_all(&path, &WriteOptions::default(), &images);
        let store = open(&path).unwrap();
        let got: Vec<String> = (0..store.len()).map(|row| store.name(row).unwrap()).collect();
        assert_eq!(got, names);
        for row in 0..store.len() {
            let name = store.name(row).unwrap();
            let got = store.metadata(row).unwrap();
            let wanted = metadata(&name);
            assert_eq!(got.name, name);
            // Ids are unique in a document: those of later images in one file had to change.
            let without_ids = |channels: &[Channel]| -> Vec<Channel> {
                channels.iter().map(|c| Channel { id: String::new(), ..c.clone() }).collect()
            };
            assert_eq!(without_ids(&got.channels), without_ids(&wanted.channels));
            assert_eq!(got.physical_size_x, wanted.physical_size_x);
            assert_eq!(got.physical_size_y, None);
            assert_eq!(got.physical_size_z, wanted.physical_size_z);
            assert_eq!(got.acquired, wanted.acquired);
        }
    }
}

#[test]
fn writers_refuse_what_tiff_has_not() {
    let dir = folder();
    let path = dir.path().join("set");
    let fails = |options: WriteOptions| create(&path, "tiff", &options).err().unwrap().to_string();
    assert!(fails(WriteOptions { compression: Compression::Lz4, ..Default::default() }).contains("lzw"));
    assert!(fails(WriteOptions { variant: Some("0.4".into()), ..Default::default() }).contains("plain"));
    assert!(
        fails(WriteOptions { chunk: Some([1, 1, 2, 16, 16]), ..Default::default() }).contains("one plane")
    );
    assert!(fails(WriteOptions { chunk: Some([1, 1, 1, 10, 16]), ..Default::default() }).contains("16"));
    let mut writer = create(&path, "tiff", &WriteOptions::default()).unwrap();
    let metadata = ImageMetadata::named("x");
    let view =
        ImageView { metadata: &metadata, shape: Shape::plane(2, 2), dtype: PixelType::U8, pixels: &[0; 3] };
    assert!(writer.write(&view).unwrap_err().to_string().contains("row 0: 1x1x1x2x2 of uint8 need 4 bytes"));
    drop(writer);
    let empty = create(&path, "tiff", &WriteOptions::default()).unwrap();
    assert!(empty.finish().unwrap_err().to_string().contains("no image"));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing half-written may be left");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn round_trips(
        tcz in prop::array::uniform3(1usize..4), y in 1usize..70, x in 1usize..70, dtype in 0usize..8,
        compression in 0..COMPRESSIONS.len(), strips in prop::option::of(1usize..80), single: bool, seed in 0usize..1000,
    ) {
        let dir = folder();
        let shape = Shape([tcz[0], tcz[1], tcz[2], y, x]);
        let dtype = PixelType::ALL[dtype];
        let image = (ImageMetadata::named("image"), shape, dtype, pixels(shape, dtype, seed));
        let options = WriteOptions {
            compression: COMPRESSIONS[compression],
            chunk: strips.map(|rows| [1, 1, 1, rows, 0]),
            ..WriteOptions::default()
        };
        let path = dir.path().join(if single { "out.tiff" } else { "out" });
        write_all(&path, &options, std::slice::from_ref(&image));
        let store = open(&path).unwrap();
        let (info, got) = read_image(&*store, 0).unwrap();
        prop_assert_eq!((info.shape, info.dtype), (shape, dtype));
        prop_assert!(got == image.3);
        check_regions(&*store);
    }
}
