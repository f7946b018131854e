//! Ways of writing: their names, those that a format lacks, those without room.

use super::*;

#[test]
fn tiles_and_volumes_are_tried_where_there_is_something_to_cut() {
    let format = registry::formats()[..1].to_vec();
    let chunks =
        |shape| write_variants(&format, Shape(shape)).into_iter().filter_map(|way| way.2).collect::<Vec<_>>();
    assert_eq!(write_variants(&format, Shape::plane(100, 100)).len(), CODECS.len());
    assert_eq!(chunks([1, 1, 1, 1000, 200]), [[1, 1, 1, 256, 200]]);
    assert_eq!(chunks([1, 2, 16, 64, 64]), [[1, 1, 16, 64, 64]]);
}

#[test]
fn no_two_ways_have_one_name() {
    let formats = registry::formats()[..2].to_vec();
    let write_variants = write_variants(&formats, Shape([1, 1, 4, 1080, 1080]));
    let names: Vec<String> = write_variants.iter().map(write_variant_name).collect();
    let distinct: std::collections::HashSet<&String> = names.iter().collect();
    assert_eq!((names.len(), distinct.len()), (2 * (CODECS.len() + 2), names.len()), "{names:?}");
    let chunks = format!("{} (default, chunks 1x256x256)", formats[0].name);
    assert!(names.contains(&chunks), "{names:?}");
}

#[test]
fn ways_that_a_format_does_not_have_are_not_tried() {
    let dir = tempfile::tempdir().unwrap();
    let formats = ["tiff", "image-folder"].map(|name| registry::format_named(name).unwrap());
    let all = write_variants(&formats, Shape([1, 1, 4, 1080, 1080]));
    let possible = possible(&all, dir.path(), &[]).unwrap();
    let names: Vec<String> = possible.iter().map(write_variant_name).collect();
    let tiff = ["tiff (default)", "tiff (none)", "tiff (zstd, level 3)", "tiff (default, chunks 1x256x256)"];
    assert_eq!(names[..4], tiff);
    assert_eq!(names[4..6], ["image-folder (default)", "image-folder (none)"]);
    assert!(
        !names.iter().any(|name| name == "image-folder (lz4)" || name == "image-folder (zstd, level 3)"),
        "{names:?}"
    );
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "writers that began are gone");
}

#[test]
fn no_room_is_noted_only_for_ways_that_there_are() {
    let note = |left| note_on_room(left, 5_000_000, Path::new("scratch"));
    assert_eq!(note(0), None);
    assert!(
        note(1)
            .unwrap()
            .starts_with("1 way of writing was not tried: 5.0 MB are free on the disk of scratch")
    );
    assert!(note(2).unwrap().starts_with("2 ways of writing were not tried: "));
}

#[test]
fn two_levels_of_a_codec_have_two_names() {
    let name = |compression, codec: &str| {
        Candidate { codec: codec.to_owned(), ..Candidate::sample("ome-zarr", compression) }.name()
    };
    assert_eq!(name(Some(Compression::Default), "zstd"), "ome-zarr (zstd)");
    assert_eq!(name(Some(Compression::Zstd(3)), "zstd"), "ome-zarr (zstd, level 3)");
    assert_eq!(name(Some(Compression::None), "png (deflate)"), "ome-zarr (png (deflate), level 0)");
    assert_eq!(name(None, "zstd"), "as it is (ome-zarr, zstd)");
}

/// Vortex keeps small crops as they are by its own choice, too.
#[test]
fn two_ways_that_come_out_with_one_codec_have_two_names() {
    let of = |compression, codec: &str| Candidate {
        codec: codec.to_owned(),
        ..Candidate::sample("vortex", Some(compression))
    };
    let mut all =
        [of(Compression::Default, "none"), of(Compression::None, "none"), of(Compression::Lz4, "lz4")];
    tell_apart(&mut all);
    assert_eq!(
        all.map(|one| one.name()),
        ["vortex (none, --compression default)", "vortex (none, --compression none)", "vortex (lz4)"]
    );
}

#[test]
fn second_readers_are_no_target() {
    let all = formats(&["all".to_owned()]).unwrap();
    assert!(all.iter().all(|format| !format.endings.is_empty()));
    assert!(formats(&["no-such".to_owned()]).is_err());
}
