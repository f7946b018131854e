//! Names of rows, whether or not the indices of their files are kept.

use super::super::codec::Packing;
use super::super::encode::{Encoder, Layout};
use super::*;
use crate::Compression;
use wellread_image::ome_xml::{self, OmeImage};
use wellread_image::{PixelType, Shape};

/// Writes an OME-TIFF with an image of each of these names.
fn write(path: &Path, names: &[&str]) {
    let packing = Packing::new(path, Compression::None, false).unwrap();
    let (endian, big) = (Endian::Little, false);
    let layout = Layout { packing, tile: None, strip_rows: None, endian, big, checksums: false, jobs: 1 };
    let mut encoder = Encoder::create(path, path, layout).unwrap();
    let mut images = vec![];
    for (i, name) in names.iter().enumerate() {
        encoder.page(&[1, 2, 3, 4], [2, 2], PixelType::U8).unwrap();
        let mut image = OmeImage::new(ImageMetadata::named(*name), Shape::plane(2, 2), PixelType::U8);
        image.planes[0].ifd = Some(i);
        images.push(image);
    }
    encoder.describe(0, ome_xml::write(&images));
    encoder.finish().unwrap();
}

#[test]
fn names_are_the_same_whether_or_not_an_index_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("a_b.tif"), &["a:b"]);
    write(&dir.path().join("c_d.ome.tif"), &["c:d"]);
    let mut store = TiffStore::open(dir.path(), &OpenOptions::default()).unwrap();
    let names = |store: &TiffStore| (0..2).map(|row| store.name(row).unwrap()).collect::<Vec<_>>();
    assert!(store.files.iter().all(|file| file.index.get().is_some()));
    assert_eq!(names(&store), ["a_b", "c:d"]);
    for file in &mut store.files {
        file.index = OnceLock::new();
    }
    *store.kept.get_mut() = CACHE;
    assert_eq!(names(&store), ["a_b", "c:d"]);
    assert!(store.files.iter().all(|file| file.index.get().is_none()));
    // A file by itself is called as its image.
    let alone = TiffStore::open(&dir.path().join("a_b.tif"), &OpenOptions::default()).unwrap();
    assert_eq!(alone.name(0).unwrap(), "a:b");
}

#[test]
fn a_name_of_the_folder_is_not_for_a_file_of_several_images() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tif");
    write(&path, &["x", "y"]);
    let files = vec![(path, Some("given".into()))];
    let mut store = TiffStore::of_files(dir.path(), NamedBy::Caller, files, Companions::default()).unwrap();
    let names = |store: &TiffStore| (0..2).map(|row| store.name(row).unwrap()).collect::<Vec<_>>();
    assert_eq!(names(&store), ["a:x", "a:y"]);
    store.files[0].index = OnceLock::new();
    assert_eq!(names(&store), ["a:x", "a:y"]);
}
