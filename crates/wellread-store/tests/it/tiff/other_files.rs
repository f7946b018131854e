//! OME-TIFF of several images whose planes lie in other files: each image has its own.

use super::builder::{Page, tiff};
use super::{folder, open};
use std::path::Path;
use wellread_image::Region;
use wellread_store::{Missing, OpenOptions, Scratch, read_image, read_region};

/// OME-XML of an image for each list of files, whose channels lie in the first page of a file each.
fn described(images: &[&[&str]]) -> String {
    let image = |(i, files): (usize, &&[&str])| {
        let blocks = (files.iter().enumerate())
            .map(|(c, file)| {
                format!(
                    "<TiffData FirstC=\"{c}\" IFD=\"0\" PlaneCount=\"1\"><UUID FileName=\"{file}\">urn:uuid:{file}</UUID></TiffData>"
                )
            })
            .collect::<Vec<_>>()
            .concat();
        format!(
            "<Image ID=\"Image:{i}\" Name=\"image {i}\"><Pixels ID=\"Pixels:{i}\" DimensionOrder=\"XYZCT\" Type=\"uint8\" \
             SizeX=\"2\" SizeY=\"1\" SizeZ=\"1\" SizeC=\"{}\" SizeT=\"1\">{blocks}</Pixels></Image>",
            files.len()
        )
    };
    let images = images.iter().enumerate().map(image).collect::<Vec<_>>().concat();
    format!(
        "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\" UUID=\"urn:uuid:set\">{images}</OME>"
    )
}

/// Writes a file of one page, whose two pixels are `value` and 100 more.
fn write(folder: &Path, name: &str, value: u8, description: &str) {
    let page = Page::grey(2, 1, 8, &[&[value, value + 100]]).describe(description);
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, tiff(true, &[page])).unwrap();
}

/// The pixels of all images, which are read in this order of rows, twice.
fn read(path: &Path, order: &[usize]) -> Vec<Vec<u8>> {
    let store = open(path).unwrap();
    assert_eq!(store.len(), order.len());
    let mut found = vec![vec![]; order.len()];
    for &row in order.iter().chain(order) {
        found[row] = read_image(&*store, row).unwrap().1;
    }
    // The second channel's second pixel alone, by one thread's open file after the other.
    let (mut scratch, mut out) = (Scratch::default(), vec![]);
    for &row in order {
        let region = Region { start: [0, 1, 0, 0, 1], size: [1; 5] };
        read_region(&*store, row, &region, &mut scratch, &mut out).unwrap();
        assert_eq!(out, [found[row][3]], "row {row}");
    }
    found
}

#[test]
fn each_image_of_a_companion_is_of_its_own_files() {
    let dir = folder();
    let images: [&[&str]; 3] = [&["a.tif", "b.tif"], &["c.tif", "d.tif"], &["e.tif", "f.tif"]];
    std::fs::write(dir.path().join("set.companion.ome"), described(&images)).unwrap();
    let pointer = "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\"><BinaryOnly \
                   MetadataFile=\"set.companion.ome\" UUID=\"urn:uuid:set\"/></OME>";
    for (value, name) in (1..).zip(images.into_iter().flatten()) {
        write(dir.path(), name, value, pointer);
    }
    let expected: [[u8; 4]; 3] = [[1, 101, 2, 102], [3, 103, 4, 104], [5, 105, 6, 106]];
    for path in [dir.path().to_owned(), dir.path().join("a.tif"), dir.path().join("f.tif")] {
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            assert_eq!(read(&path, &order), expected, "{}, {order:?}", path.display());
        }
    }
}

#[test]
fn images_may_share_a_file_and_differ_in_another() {
    let dir = folder();
    let images: [&[&str]; 2] = [&["a.tif", "b.tif"], &["c.tif", "b.tif"]];
    for (value, name) in (1..).zip(["a.tif", "b.tif", "c.tif"]) {
        write(dir.path(), name, value, &described(&images));
    }
    let expected: [[u8; 4]; 2] = [[1, 101, 2, 102], [3, 103, 2, 102]];
    for order in [[0, 1], [1, 0]] {
        assert_eq!(read(dir.path(), &order), expected, "{order:?}");
    }
}

#[test]
fn names_in_a_companion_are_relative_to_it() {
    let pointer = "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\"><BinaryOnly \
                   MetadataFile=\"../set.companion.ome\" UUID=\"urn:uuid:set\"/></OME>";
    for description in ["", pointer] {
        let dir = folder();
        let images: [&[&str]; 2] = [&["A/c0.tif", "B/c0.tif"], &["A/c1.tif", "B/c2.tif"]];
        std::fs::write(dir.path().join("set.companion.ome"), described(&images)).unwrap();
        for (value, name) in (1..).zip(images.into_iter().flatten()) {
            write(dir.path(), name, value, description);
        }
        let expected: [[u8; 4]; 2] = [[1, 101, 2, 102], [3, 103, 4, 104]];
        for order in [[0, 1], [1, 0]] {
            assert_eq!(read(dir.path(), &order), expected, "{description}, {order:?}");
        }
        let store =
            wellread_store::open(dir.path().join("set.companion.ome"), &OpenOptions::default()).unwrap();
        assert_eq!(store.len(), 2);
        assert_eq!(read_image(&*store, 1).unwrap().1, expected[1]);
    }
}

/// The names of all images, by these options.
fn names(path: &Path, missing: Missing) -> Vec<String> {
    let options = OpenOptions { missing, ..OpenOptions::default() };
    let store = wellread_store::open(path, &options).unwrap();
    (0..store.len()).map(|row| store.name(row).unwrap()).collect()
}

#[test]
fn names_by_a_companion_do_not_depend_on_which_files_are_there() {
    for below in ["", "A/"] {
        let dir = folder();
        let files: Vec<String> =
            ["a", "b", "c", "d", "e", "f"].map(|name| format!("{below}{name}.tif")).into();
        let images: Vec<Vec<&str>> =
            files.chunks(2).map(|pair| pair.iter().map(String::as_str).collect()).collect();
        let images: Vec<&[&str]> = images.iter().map(Vec::as_slice).collect();
        let companion = dir.path().join("set.companion.ome");
        // The last image has no name, and is called by its number.
        std::fs::write(&companion, described(&images).replace("Name=\"image 2\"", "")).unwrap();
        for (value, name) in (1..).zip(&files) {
            write(dir.path(), name, value, "");
        }
        let all = ["image 0", "image 1", "2"].map(|name| format!("{below}a:{name}"));
        for path in [companion.as_path(), dir.path()] {
            assert_eq!(names(path, Missing::Error), all, "{}", path.display());
        }
        // The first file goes, then one of the second image: one image is left, and is called as before.
        for (gone, left) in [(0, &all[1..]), (3, &all[2..])] {
            std::fs::remove_file(dir.path().join(&files[gone])).unwrap();
            assert_eq!(names(&companion, Missing::Skip), left, "{} is gone", files[gone]);
            assert_eq!(names(dir.path(), Missing::Error), all, "{} is gone", files[gone]);
        }
    }
}

/// The first plane of an image may be the one whose file is missing, and its page one that this file has not.
#[test]
fn a_missing_file_of_the_first_plane_is_named() {
    let dir = folder();
    let images: [&[&str]; 1] = [&["a.tif", "b.tif"]];
    for ifd in [0, 1, 7] {
        let xml = described(&images).replacen("IFD=\"0\"", &format!("IFD=\"{ifd}\""), 1);
        write(dir.path(), "b.tif", 2, &xml);
        let error = open(dir.path().join("b.tif")).and_then(|store| read_image(&*store, 0)).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("a.tif") && !error.contains("tells of page"), "page {ifd}: {error}");
    }
}
