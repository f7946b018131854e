//! Damaged and malicious files. They give an error that names the file, or plausible pixels; never a panic, a hang, or
//! memory that the file's size does not justify.

use super::builder::{Page, tiff};
use super::{failure, folder, open_bytes};
use std::path::Path;
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::{Compression, ImageView, RowHints, WriteOptions, create, read_image};

/// Opens and reads everything; says whether all went well.
fn survives(dir: &Path, bytes: &[u8]) -> bool {
    let store = match open_bytes(dir, bytes) {
        Ok(store) => store,
        Err(e) => {
            assert!(e.to_string().contains("file.tif"), "{e}");
            return false;
        }
    };
    let mut fine = true;
    for row in 0..store.len() {
        let _ = (
            store.name(row),
            store.metadata(row),
            store.layout(),
            store.files(),
            store.row_hints(row).map(RowHints::position),
        );
        let info = match store.row_info(row) {
            Ok(info) => info,
            Err(e) => {
                assert!(e.to_string().contains(&format!("row {row}")), "{e}");
                fine = false;
                continue;
            }
        };
        // Zstandard has the highest ratio that a header can claim and be believed.
        let most = (bytes.len() as u64) * (1 << 15) * 8 + (128 << 20);
        assert!(info.shape.checked_bytes(info.dtype).unwrap() as u64 <= most, "{info:?}");
        // A size that a flipped bit makes huge would only be slow.
        if info.shape.pixels() < 1 << 20 {
            match read_image(&*store, row) {
                Ok((info, pixels)) => assert_eq!(pixels.len(), info.shape.pixels() * info.dtype.size()),
                Err(e) => {
                    assert!(e.to_string().contains(&format!("row {row}")), "{e}");
                    fine = false;
                }
            }
        }
    }
    fine
}

/// Small files of every kind.
fn specimens(dir: &Path) -> Vec<Vec<u8>> {
    let shape = Shape([1, 2, 2, 20, 18]);
    let metadata = ImageMetadata::named("specimen");
    let mut all = vec![];
    for (i, compression) in [
        Compression::None,
        Compression::Lzw,
        Compression::Deflate(6),
        Compression::PackBits,
        Compression::Zstd(3),
    ]
    .into_iter()
    .enumerate()
    {
        for (variant, chunk) in
            [("ome", None), ("plain", Some([1, 1, 1, 16, 16])), ("plain", Some([1, 1, 1, 3, 0]))]
        {
            let path = dir.join("specimen.tif");
            let options = WriteOptions {
                compression,
                chunk,
                variant: Some(variant.into()),
                overwrite: true,
                ..WriteOptions::default()
            };
            let pixels: Vec<u8> = (0..shape.pixels() * 2).map(|p| (p * (i + 1) / 5) as u8).collect();
            let mut writer = create(&path, "tiff", &options).unwrap();
            writer
                .write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U16, pixels: &pixels })
                .unwrap();
            writer.finish().unwrap();
            all.push(std::fs::read(path).unwrap());
        }
    }
    let rgb = Page::grey(2, 2, 8, &[&[3; 12]]).with(258, &[8, 8, 8]).with(277, &[3]);
    let j = rgb.clone().describe("ImageJ=1.5\nimages=2\nslices=2\n");
    all.push(tiff(false, &[j, rgb.clone()]));
    all.push(tiff(true, &[rgb.clone().describe(r#"{"shape": [1, 2, 2, 3]}"#), rgb.clone().with(254, &[1])]));
    let bits = Page::grey(9, 3, 1, &[&[255; 6]]);
    all.push(tiff(true, &[bits.clone(), rgb, bits.with(266, &[2])]));
    all
}

#[test]
fn truncated_anywhere() {
    let dir = folder();
    for whole in specimens(dir.path()) {
        assert!(survives(dir.path(), &whole));
        let step = (whole.len() / 150).max(1);
        for cut in (0..whole.len() - 1).step_by(step).chain(whole.len() - 30..whole.len() - 1) {
            survives(dir.path(), &whole[..cut]);
        }
        assert!(!survives(dir.path(), &whole[..whole.len() / 2]));
    }
}

#[test]
fn flipped_anywhere() {
    let dir = folder();
    for (n, whole) in specimens(dir.path()).into_iter().enumerate() {
        // Most bytes near the end, where the directories are; a sample elsewhere.
        let directories = whole.len().saturating_sub(700);
        let chosen = |i: &usize| *i < 16 || i % if *i >= directories { 3 } else { 67 } == n % 3;
        let places = (0..whole.len()).filter(chosen);
        for at in places {
            let mut broken = whole.clone();
            broken[at] ^= 1 << ((at + n) % 8);
            survives(dir.path(), &broken);
            broken[at] = if at % 2 == 0 { 0xFF } else { 0 };
            survives(dir.path(), &broken);
        }
    }
}

#[test]
fn chains_that_loop() {
    let dir = folder();
    let page = Page::grey(1, 1, 8, &[&[1]]);
    let mut bytes = tiff(true, &[page.clone(), page]);
    let first: [u8; 4] = bytes[4..8].try_into().unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&first);
    assert!(failure(dir.path(), &bytes).contains("returns to offset"));
    // A directory that is its own successor.
    let mut bytes = tiff(true, &[Page::grey(1, 1, 8, &[&[1]])]);
    let end = bytes.len();
    bytes.copy_within(4..8, end - 4);
    assert!(failure(dir.path(), &bytes).contains("returns to offset"));
}

#[test]
fn overlapping_directories_end() {
    // Every second byte begins a directory of thousands of entries that links to the next.
    let dir = folder();
    let mut bytes = b"II*\0\x08\0\0\0".to_vec();
    bytes.resize(1 << 20, 0x10);
    let error = failure(dir.path(), &bytes);
    assert!(error.contains("file.tif"), "{error}");
}

#[test]
fn absurd_declarations() {
    let dir = folder();
    let page = Page::grey(2, 2, 8, &[&[0; 4]]);
    let says = |page: Page, what: &str| {
        let error = failure(dir.path(), &tiff(true, &[page]));
        assert!(error.contains(what), "{error}");
    };
    let size = |w: u64, h: u64| {
        let mut page = page.clone();
        page.tags[0].2 = vec![w];
        page.tags[1].2 = vec![h];
        page
    };
    says(size(0, 2), "0 x 2");
    says(size(2, 0), "2 x 0");
    says(size(u32::MAX.into(), u32::MAX.into()), "too large");
    says(size(60_000, 60_000), "file");
    says(size(60_000, 60_000).with(259, &[5]), "cannot hold");
    says(size(60_000, 60_000).with(259, &[32773]), "cannot hold");
    says(size(60_000, 60_000).with(259, &[8]), "cannot hold");
    says(page.clone().with(277, &[65_535]), "more planes than");
    says(page.clone().with(278, &[1]), "needs 2 strips, but lists 1");
    says(page.clone().with(277, &[0]), "0 samples");
    says(page.clone().with(258, &[0]), "differ");
    says(page.clone().with(273, &[u32::MAX.into()]), "beyond the end");
    says(page.clone().with(279, &[3]), "fewer bytes");
    says(page.clone().with(322, &[16]), "tiles of 16 x 0");
    says(page.clone().with(322, &[65_535]).with(323, &[65_535]), "it has 4 of");
    // A tag that claims more values than the file has bytes.
    let mut bytes = tiff(true, std::slice::from_ref(&page));
    let ifd = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    bytes[ifd + 2 + 2 * 12 + 4..][..4].copy_from_slice(&[0xFF; 4]);
    assert!(failure(dir.path(), &bytes).contains("more than the file can hold"));
    // Sizes that only the description declares.
    let many = r#"{"shape": [4000000000, 4000000000, 2, 2, 2]}"#;
    assert_eq!(
        super::only_image(dir.path(), &tiff(true, &[page.clone().describe(many)])).0,
        Shape::plane(2, 2)
    );
    says(page.clone().describe("ImageJ=1\nimages=4000000000\nslices=4000000000\n"), "the file ends");
    let xml = "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\"><Image ID=\"Image:0\"><Pixels \
        ID=\"Pixels:0\" DimensionOrder=\"XYZCT\" Type=\"uint8\" SizeX=\"2\" SizeY=\"2\" SizeZ=\"30000\" \
        SizeC=\"1\" SizeT=\"30000\"><TiffData/></Pixels></Image></OME>";
    says(page.describe(xml), "more planes than");
}

#[test]
fn bombs_are_refused() {
    let dir = folder();
    // A strip whose data stand for far more than its rows: only the rows are made.
    let zeros = vec![0u8; 1 << 20];
    let packed = zstd::bulk::compress(&zeros, 3).unwrap();
    let page = Page::grey(4, 4, 8, &[&packed]).with(259, &[50000]);
    assert!(failure(dir.path(), &tiff(true, &[page])).contains("Zstandard"));
    // A header that claims more than its data can stand for.
    let page = Page::grey(1 << 15, 1 << 15, 8, &[&packed]).with(259, &[8]);
    let error = failure(dir.path(), &tiff(true, &[page]));
    assert!(error.contains("cannot hold"), "{error}");
    // All strips in one place.
    let mut page = Page::grey(1000, 1000, 8, &[&[0; 1000]]).with(278, &[1]).with(273, &[8; 1000]);
    page.tags.push((279, 4, vec![1000; 1000]));
    let error = failure(dir.path(), &tiff(true, &[page]));
    assert!(error.contains("cannot hold"), "{error}");
}

/// The page with a tag whose value takes 32 bits.
fn with_long(page: &Page, tag: u16, value: u64) -> Page {
    let mut page = page.clone();
    page.tags.retain(|t| t.0 != tag);
    page.tags.push((tag, 4, vec![value]));
    page
}

#[test]
fn numbers_that_mean_nothing() {
    let dir = folder();
    let page = Page::grey(2, 2, 8, &[&[1, 2, 3, 4]]);
    let unsupported = |page: Page, what: &str| {
        let error = failure(dir.path(), &tiff(true, &[page]));
        assert!(error.contains(what) && error.contains("convert") && !error.contains("corrupt"), "{error}");
    };
    unsupported(page.clone().with(339, &[65_535]), "sample format 65535");
    unsupported(page.clone().with(259, &[7]), "JPEG (7)");
    // Not to be cut to 16 bits: then these would be no compression and no predictor.
    unsupported(with_long(&page, 259, 65_537), "compression number 65537");
    unsupported(with_long(&page, 317, 65_537), "predictor");
    let rgb = Page::grey(2, 2, 8, &[&[3; 12]]).with(258, &[8, 8, 8]).with(277, &[3]);
    unsupported(rgb.with(284, &[5]), "planar configuration 5");
    let damaged = |page: Page, what: &str| {
        let error = failure(dir.path(), &tiff(true, &[page]));
        assert!(error.contains(what) && error.contains("corrupt"), "{error}");
    };
    for offset in [0, 1, 7] {
        damaged(page.clone().with(273, &[offset]), "inside the file's header");
    }
    assert_eq!(super::only_image(dir.path(), &tiff(true, &[page.with(273, &[8])])).2, [1, 2, 3, 4]);
    // Rows of 32 GiB, 4 billion of them: more bytes than a number of 64 bits can count.
    let mut huge = Page::grey(u32::MAX.into(), u32::MAX.into(), 64, &[&[0; 8]]).with(278, &[1]);
    huge.tags.push((339, 3, vec![3]));
    damaged(huge, "too many to be true");
}

/// A strip that holds more than its rows contradicts them, unless it is the last and has as many as the others.
#[test]
fn strips_that_hold_more_than_their_rows() {
    let dir = folder();
    let rows = |n: usize| (0..n * 64).map(|i| ((i * i) >> 5) as u8).collect::<Vec<_>>();
    let pack = |tag: u64, data: &[u8]| -> Vec<u8> {
        match tag {
            5 => weezl::encode::Encoder::with_tiff_size_switch(weezl::BitOrder::Msb, 8).encode(data).unwrap(),
            8 => {
                let level = libdeflater::CompressionLvl::new(6).unwrap();
                let mut out = vec![0; data.len() + 100];
                let n = libdeflater::Compressor::new(level).zlib_compress(data, &mut out).unwrap();
                out[..n].to_vec()
            }
            32773 => data.chunks(64).flat_map(|row| [&[63], row].concat()).collect(),
            _ => zstd::bulk::compress(data, 3).unwrap(),
        }
    };
    for tag in [5, 8, 32773, 50000] {
        // Ten rows in strips of four, of which the last has two rows, or four, or others.
        let file = |height: u64, per_strip: u64, strips: &[usize]| {
            let packed: Vec<_> = strips.iter().map(|&n| pack(tag, &rows(n))).collect();
            let packed: Vec<_> = packed.iter().map(Vec::as_slice).collect();
            tiff(true, &[Page::grey(64, height, 8, &packed).with(259, &[tag]).with(278, &[per_strip])])
        };
        let whole = [rows(4), rows(4), rows(2)].concat();
        for good in [[4, 4, 2], [4, 4, 4]] {
            assert!(super::only_image(dir.path(), &file(10, 4, &good)).2 == whole, "{tag} {good:?}");
        }
        assert!(super::only_image(dir.path(), &file(2, 4, &[4])).2 == rows(2), "{tag}");
        for bad in [&[4, 4, 3][..], &[4, 4, 5], &[5, 4, 2], &[4, 8, 2], &[4, 4, 4, 4]] {
            let error = failure(dir.path(), &file(10, 4, bad));
            assert!(error.contains("more than") || error.contains("Zstandard"), "{tag} {bad:?} {error}");
        }
        assert!(failure(dir.path(), &file(2, 3, &[4])).contains("row 0"));
        // A region within the first rows of a strip is read without looking at the rest of it.
        let store = open_bytes(dir.path(), &file(10, 4, &[4, 4, 4])).unwrap();
        super::check_regions(&*store);
    }
}

/// One tiled image, whose last tile has 4 visible rows of 16 and is the last thing in front of the directory.
fn jutting_tile(dir: &Path, compression: Compression, checksums: bool) -> (Vec<u8>, usize) {
    let path = dir.join("tile.tif");
    let options = WriteOptions {
        compression,
        checksums,
        chunk: Some([1, 1, 1, 16, 16]),
        overwrite: true,
        ..WriteOptions::default()
    };
    let shape = Shape::plane(20, 16);
    let pixels: Vec<u8> = (0..shape.pixels()).map(|i| (i * i / 3 + i) as u8).collect();
    let mut writer = create(&path, "tiff", &options).unwrap();
    let metadata = ImageMetadata::named("tile");
    writer.write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels }).unwrap();
    writer.finish().unwrap();
    let bytes = std::fs::read(path).unwrap();
    let directory = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    (bytes, directory)
}

/// Damage behind the rows of a tile that the image shows is damage of the tile, as for other readers.
#[test]
fn damage_behind_the_visible_part_of_a_tile() {
    let dir = folder();
    for compression in [Compression::Lzw, Compression::PackBits] {
        let (good, directory) = jutting_tile(dir.path(), compression, false);
        let mut bytes = good.clone();
        // No LZW code is all ones; of PackBits, runs of two bytes instead of those that were there.
        bytes[directory - 12..directory - 4].fill(0xff);
        let error = failure(dir.path(), &bytes);
        let what = if compression == Compression::Lzw { "LZW" } else { "decodes to" };
        assert!(error.contains(what) && error.contains("row 16"), "{compression:?}: {error}");
        // The rows above it do not need it.
        let store = open_bytes(dir.path(), &bytes).unwrap();
        let mut region = store.row_info(0).unwrap().shape.full();
        region.size[3] = 17;
        let (mut scratch, mut above) = (wellread_store::Scratch::default(), vec![]);
        wellread_store::read_region(&*store, 0, &region, &mut scratch, &mut above).unwrap();
        let store = open_bytes(dir.path(), &good).unwrap();
        assert_eq!(above, read_image(&*store, 0).unwrap().1[..17 * 16]);
    }
}

/// A tile may be stored without the rows that jut out of the image: some writers do so.
#[test]
fn tiles_without_what_juts_out() {
    let dir = folder();
    let lzw = |rows: usize| {
        weezl::encode::Encoder::with_tiff_size_switch(weezl::BitOrder::Msb, 8)
            .encode(&(0..rows * 16).map(|i| (i * 7) as u8).collect::<Vec<_>>())
            .unwrap()
    };
    let page = |rows: usize| {
        let tile = lzw(rows);
        let mut page = Page::grey(16, 5, 8, &[&tile]).with(259, &[5]).with(322, &[16]).with(323, &[16]);
        page.tiled = true;
        page
    };
    let expected: Vec<u8> = (0..5 * 16).map(|i| (i * 7) as u8).collect();
    for rows in [5, 16] {
        assert_eq!(super::only_image(dir.path(), &tiff(true, &[page(rows)])).2, expected, "{rows}");
    }
    let error = failure(dir.path(), &tiff(true, &[page(9)]));
    assert!(error.contains("LZW"), "{error}");
}

/// Strips, tiles and directories have checksums, which are compared in whole reads and in those of parts.
#[test]
fn strips_and_directories_have_checksums() {
    let dir = folder();
    for compression in [Compression::None, Compression::PackBits, Compression::Lzw, Compression::Zstd(3)] {
        let (good, directory) = jutting_tile(dir.path(), compression, true);
        let expected = super::only_image(dir.path(), &good);
        let mut found = 0;
        for at in 16..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << (at % 8);
            match open_bytes(dir.path(), &bytes).and_then(|store| read_image(&*store, 0)) {
                Ok((info, pixels)) => {
                    // A directory begins at an even offset: a byte before it may be filling.
                    assert!(at + 1 >= directory, "{compression:?}: byte {at} is of pixels");
                    assert_eq!(
                        (info.shape, info.dtype, pixels),
                        expected.clone(),
                        "{compression:?}: byte {at}"
                    );
                }
                Err(error) => found += usize::from(error.to_string().contains("checksum")),
            }
        }
        assert!(found > (good.len() - directory) / 2, "{compression:?}: {found} of {}", good.len());
    }
    let (plain, directory) = jutting_tile(dir.path(), Compression::None, false);
    let mut bytes = plain.clone();
    bytes[20] ^= 1;
    assert_ne!(super::only_image(dir.path(), &bytes).2, super::only_image(dir.path(), &plain).2);
    assert!(!plain[directory..].windows(2).any(|tag| tag == 65301u16.to_le_bytes()));
}
