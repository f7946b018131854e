//! Names of any kind and number: written names are read, by this crate and from files of the Parquet library.

use super::open;
use proptest::prelude::*;
use std::path::Path;
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::{Compression, ImageView, Store, Tune, WriteOptions, create};

/// A set of tiny images with these names.
fn write(path: &Path, names: &[String], compression: Compression, tune: Tune) {
    let options = WriteOptions { compression, tune, overwrite: true, ..WriteOptions::default() };
    let mut writer = create(path, "parquet", &options).unwrap();
    for (i, name) in names.iter().enumerate() {
        let metadata = ImageMetadata { name: name.clone(), ..ImageMetadata::default() };
        let pixels = [i as u8, (i >> 8) as u8];
        let (shape, dtype) = (Shape::plane(1, 2), PixelType::U8);
        writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &pixels }).unwrap();
    }
    writer.finish().unwrap();
}

/// Names and pixels of all rows are those that were written.
fn assert_read(path: &Path, names: &[String]) {
    let store = open(path);
    assert_eq!(store.len(), names.len());
    let mut rows = 0;
    let scanned = store.scan(0..names.len(), &mut |row, info, pixels| {
        assert_eq!((info.shape, pixels), (Shape::plane(1, 2), &[row as u8, (row >> 8) as u8][..]));
        rows += 1;
        Ok(())
    });
    scanned.unwrap();
    assert_eq!(rows, names.len());
    for (row, name) in names.iter().enumerate() {
        assert_eq!(&store.name(row).unwrap(), name, "row {row}");
    }
}

/// 576 files of an Opera Phenix were converted with code 0 and could not be read. Names of 25 characters exceeded a bound
/// that is meant for numbers, from 456 rows on.
#[test]
fn names_as_an_opera_phenix_gives_them() {
    let dir = tempfile::tempdir().unwrap();
    let name = |i: usize| {
        format!("r{:02}c{:02}f{:02}p01-ch{}sk1fk1fl1", 1 + i / 96, 1 + i / 8 % 12, 1 + i % 8, 1 + i % 5)
    };
    let names: Vec<_> = (0..576).map(name).collect();
    for compression in [Compression::Default, Compression::None, Compression::Snappy, Compression::Lz4] {
        for tune in [Tune::Random, Tune::Scan, Tune::Size, Tune::Reference] {
            let path = dir.path().join("set.parquet");
            write(&path, &names, compression, tune);
            assert_read(&path, &names);
        }
    }
}

/// The largest sets of the property below, which draws small ones more often than large ones.
#[test]
fn a_hundred_thousand_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set.parquet");
    let plate = |i: usize| format!("BR0011{:04}/r{:02}c{:02}f{}", i / 3456, i / 216 % 16, i / 9 % 24, i % 9);
    let equal = |_| "the same name in every row, of which a page of Zstandard is nearly nothing".to_owned();
    for names in [(0..100_000).map(plate).collect::<Vec<_>>(), (0..100_000).map(equal).collect()] {
        write(&path, &names, Compression::Default, Tune::Random);
        assert_read(&path, &names);
    }
    // 80 MB of names, all alike.
    let names = vec!["n".repeat(4096); 20_000];
    write(&path, &names, Compression::Zstd(3), Tune::Size);
    let store = open(&path);
    assert_eq!((store.len(), store.name(0).unwrap()), (20_000, names[0].clone()));
    assert_eq!(store.name(19_999).unwrap(), names[19_999]);
}

/// A name as users, programs and accidents make them.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[A-P][0-9]{2}_s[1-9]_w[1-5]",
        2 => "r[0-9]{2}c[0-9]{2}f[0-9]{2}p01-ch[1-5]sk1fk1fl1\\.tiff",
        1 => Just(String::new()),
        1 => "\\PC{0,64}",
        1 => "[a-z/\\\\.\n\r\t\" ]{1,40}",
        1 => ("[a-zé細]{1,16}", 1usize..512).prop_map(|(part, times)| part.repeat(times).chars().take(4096).collect()),
    ]
}

fn names() -> impl Strategy<Value = Vec<String>> {
    let kinds = prop_oneof![
        // Many different ones, few that are repeated, one alone.
        prop::collection::vec(name(), 1..40),
        prop::collection::vec(name(), 1..5),
        name().prop_map(|name| vec![name]),
    ];
    let rows = prop_oneof![6 => 1usize..50, 3 => 50usize..3000, 1 => 3000usize..20_000];
    (kinds, rows, any::<bool>()).prop_map(rows_of)
}

/// The input from which [`rows_of`] makes sets of 20,000 to 100,000 rows, which are too long to be printed.
fn many_names() -> impl Strategy<Value = (Vec<String>, usize, bool)> {
    (prop::collection::vec(name(), 1..40), 20_000usize..=100_000, any::<bool>())
}

/// So many rows with these names by turns, which are numbered where all are to differ.
fn rows_of((kinds, rows, numbered): (Vec<String>, usize, bool)) -> Vec<String> {
    // At most 64 MB of names, one of each kind in turn.
    let turn: usize = kinds.iter().map(|name| name.len() + 8).sum();
    let rows = rows.min((64 << 20) / turn * kinds.len());
    let nth = |i: usize| {
        let name = &kinds[i % kinds.len()];
        if numbered { format!("{name}{i}") } else { name.clone() }
    };
    (0..rows.max(1)).map(nth).collect()
}

proptest! {
    // Each is a large set.
    #![proptest_config(ProptestConfig {
        cases: 4, failure_persistence: None, max_shrink_iters: 16, ..ProptestConfig::default()
    })]

    #[test]
    fn names_of_large_sets_are_read_as_they_are_written(
        drawn in many_names(),
        compression in prop::sample::select(vec![Compression::Default, Compression::None, Compression::Lz4]),
        tune in prop::sample::select(vec![Tune::Random, Tune::Scan, Tune::Size, Tune::Reference]),
    ) {
        let names = rows_of(drawn);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("set.parquet");
        write(&path, &names, compression, tune);
        assert_read(&path, &names);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn names_are_read_as_they_are_written(
        names in names(),
        compression in prop::sample::select(vec![
            Compression::Default, Compression::None, Compression::Snappy, Compression::Lz4, Compression::Deflate(4),
            Compression::Zstd(9),
        ]),
        tune in prop::sample::select(vec![Tune::Random, Tune::Scan, Tune::Size, Tune::Reference]),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("set.parquet");
        write(&path, &names, compression, tune);
        assert_read(&path, &names);
    }
}
