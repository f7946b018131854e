//! Label images: as tables of cells, as masks; binary masks.

use super::{Image, part, read, sliced, write};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::path::Path;
use wellread_image::{PixelType, Region, Shape};
use wellread_store::cells::{CellOptions, CellsStore, Edge, Mask, pair};
use wellread_store::planes::PlaneStore;
use wellread_store::{
    OpenOptions, Request, Result, Scratch, Store, WriteOptions, open, read_image, read_region,
};

/// A folder has masks of nuclei beside those of whole cells: a pattern takes the ones.
#[test]
fn a_pattern_names_the_label_images_of_one_kind() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let shape = Shape::plane(40, 40);
    let images = [Image::noise("f1", shape, PixelType::U16, &mut random)];
    let square = |side: usize| move |y: usize, x: usize| u16::from(y < side && x < side);
    let labels = [Image::labels("f1_Cells", shape, square(9)), Image::labels("f1_Nuclei", shape, square(5))];
    let dir = tempfile::tempdir().unwrap();
    let (set, masks) = (dir.path().join("set"), dir.path().join("masks"));
    drop(write(&set, "tiff", &WriteOptions::default(), &images));
    drop(write(&masks, "tiff", &WriteOptions::default(), &labels));
    let options = CellOptions { mask: Mask::Zero, size: [9, 9], ..CellOptions::default() };
    let cells =
        |table: &Path| CellsStore::open(open(&set, &OpenOptions::default()).unwrap(), table, &options);
    let nuclei = cells(&masks.join("*Nuclei*")).unwrap();
    assert_eq!((nuclei.len(), nuclei.name(0).unwrap()), (1, "f1/cell-1".to_owned()));
    let Err(both) = cells(&masks) else { panic!("which mask is meant is not known") };
    assert!(both.to_string().contains("masks/*Nuclei*"), "{both}");
    let Err(none) = cells(&masks.join("*Cytoplasm*")) else { panic!("there is none") };
    assert!(none.to_string().contains("no file or folder fits the pattern"), "{none}");
}

/// A label image gives the cells, and its labels mask them: pixels of others are 0, or one more channel says which are theirs.
#[test]
fn label_images_are_cells_and_masks() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let shape = Shape([1, 2, 1, 40, 40]);
    let images: Vec<Image> =
        ["f1", "f2"].map(|name| Image::noise(name, shape, PixelType::U16, &mut random)).into();
    // Two touching rectangles, and one at the corner.
    let label = |y: usize, x: usize| match (y, x) {
        (10..20, 10..16) => 3,
        (10..20, 16..22) => 9,
        (36.., 36..) => 200,
        _ => 0,
    };
    let labels = [
        Image::labels("f2_MaskCells", Shape::plane(40, 40), |y, x| label(y, x) / 3),
        Image::labels("f1_MaskCells", Shape::plane(40, 40), label),
    ];
    let dir = tempfile::tempdir().unwrap();
    let (set, masks) = (dir.path().join("set"), dir.path().join("masks"));
    drop(write(&set, "tiff", &WriteOptions::default(), &images));
    drop(write(&masks, "tiff", &WriteOptions::default(), &labels));
    let cells = |mask, edge, size| {
        let options = CellOptions { mask, edge, size, ..CellOptions::default() };
        CellsStore::open(open(&set, &OpenOptions::default()).unwrap(), &masks, &options).unwrap()
    };
    let plain = cells(Mask::None, Edge::Pad, [9, 9]);
    let names: Vec<String> = (0..plain.len()).map(|row| plain.name(row).unwrap()).collect();
    assert_eq!(names, ["f1/cell-3", "f1/cell-9", "f1/cell-200", "f2/cell-1", "f2/cell-3", "f2/cell-66"]);
    // The mask is a plane of each crop, and not the last channel of every plane.
    let masked = cells(Mask::Channel, Edge::Pad, [9, 9]);
    assert!(masked.hints().is_last_mask);
    assert!(!PlaneStore::new(Box::new(masked)).unwrap().hints().is_last_mask);
    let columns = plain.hints().feature_names();
    assert_eq!(
        columns,
        ["ImageName", "ObjectNumber", "Location_Center_X", "Location_Center_Y", "AreaShape_Area"]
    );
    // The first cell's centre is row 14.5, column 12.5: the box starts at row 15 - 4, column 13 - 4.
    let starts = [[11, 9], [11, 15], [34, 34], [11, 9], [11, 15], [34, 34]];
    let ids = [3, 9, 200, 1, 3, 66];
    for mask in [Mask::None, Mask::Zero, Mask::Channel] {
        let store = cells(mask, Edge::Pad, [9, 9]);
        let mut scratch = Scratch::default();
        for (row, (start, id)) in starts.into_iter().zip(ids).enumerate() {
            let image = &images[row / 3];
            let of_image = &labels[1 - row / 3];
            let own = |y: i64, x: i64| {
                let inside = (0..40).contains(&y) && (0..40).contains(&x);
                inside && {
                    let at = 2 * (y * 40 + x) as usize;
                    i32::from(u16::from_le_bytes([of_image.pixels[at], of_image.pixels[at + 1]])) == id
                }
            };
            let shape = Shape([1, if mask == Mask::Channel { 3 } else { 2 }, 1, 9, 9]);
            assert_eq!(store.row_info(row).unwrap().shape, shape);
            let mut wanted = sliced(image, start, [9, 9], &Shape([1, 2, 1, 9, 9]).full());
            if mask == Mask::Channel {
                wanted.resize(3 * 81 * 2, 0);
            }
            for i in 0..shape.pixels() {
                let [y, x] = [i / 9 % 9, i % 9].map(|i| i as i64);
                let own = own(start[0] + y, start[1] + x);
                if mask == Mask::Zero && !own {
                    wanted[2 * i..2 * i + 2].fill(0);
                }
                if mask == Mask::Channel && i >= 2 * 81 {
                    wanted[2 * i] = u8::from(own);
                }
            }
            let (_, whole) = read_image(&store, row).unwrap();
            assert!(whole == wanted, "{mask} row {row}");
            // A part of it, with and without the last channel.
            for _ in 0..20 {
                let region = part(&mut random, shape);
                let mut got = vec![];
                read_region(&store, row, &region, &mut scratch, &mut got).unwrap();
                let mut expected = vec![0; region.pixels() * 2];
                wellread_image::clip_runs(&shape.full(), &region, |from, to, n| {
                    expected[2 * to..2 * (to + n)].copy_from_slice(&wanted[2 * from..2 * (from + n)]);
                });
                assert!(got == expected, "{mask} row {row} {region:?}");
            }
        }
    }
    // A table of its own, with the same label images as masks.
    let table = dir.path().join("cells.csv");
    std::fs::write(&table, "ImageName,x,y,ObjectNumber\nf1,12.5,14.5,3\n").unwrap();
    let options =
        CellOptions { mask: Mask::Zero, masks: Some(masks.clone()), size: [9, 9], ..CellOptions::default() };
    let images_again = || open(&set, &OpenOptions::default()).unwrap();
    let store = CellsStore::open(images_again(), &table, &options).unwrap();
    assert_eq!(read_image(&store, 0).unwrap(), read_image(&cells(Mask::Zero, Edge::Pad, [9, 9]), 0).unwrap());
    std::fs::write(&table, "ImageName,x,y\nf1,12.5,14.5\n").unwrap();
    let error = CellsStore::open(images_again(), &table, &options).err().unwrap().to_string();
    assert!(error.contains("needs the number of each cell"), "{error}");
    // Labels of another size.
    let other = [Image::labels("f1", Shape::plane(20, 40), label)];
    let others = dir.path().join("others.parquet");
    drop(write(&others, "parquet", &WriteOptions::default(), &other));
    std::fs::write(&table, "ImageName,x,y,ObjectNumber\nf1,12.5,14.5,3\n").unwrap();
    let options = CellOptions { masks: Some(others), ..options };
    let error = CellsStore::open(images_again(), &table, &options).err().unwrap();
    let hint = error.hint_text().unwrap();
    assert!(error.is_choice() && hint.contains("open both at levels of one size"), "{error}");
    let error = error.to_string();
    assert!(error.contains("1x1x1x20x40") && error.contains("rows and columns of its image"), "{error}");
}

/// Positions of label images of another size are those of other pixels, also where no mask is asked for.
#[test]
fn label_images_of_another_size_are_no_cells() {
    let mut random = ChaCha8Rng::seed_from_u64(12);
    let dir = tempfile::tempdir().unwrap();
    let (set, labels) = (dir.path().join("set"), dir.path().join("labels"));
    let image = |name| Image::noise(name, Shape::plane(40, 40), PixelType::U16, &mut random);
    drop(write(&set, "tiff", &WriteOptions::default(), &["f1", "f2"].map(image)));
    let cells = |side: usize| {
        let at = |y: usize, x: usize| u16::from((8..12).contains(&y) && (4..8).contains(&x));
        // The label image of the first image is empty, so that it places no cell.
        let empty = Image::labels("f1_mask", Shape::plane(20, 20), |_, _| 0);
        let of_second = Image::labels("f2_mask", Shape::plane(side, side), at);
        let options = WriteOptions { overwrite: true, ..WriteOptions::default() };
        drop(write(&labels, "tiff", &options, &[empty, of_second]));
        let options = CellOptions { size: [8, 8], ..CellOptions::default() };
        CellsStore::open(open(&set, &OpenOptions::default()).unwrap(), &labels, &options)
    };
    assert_eq!(cells(40).unwrap().name(0).unwrap(), "f2/cell-1");
    for side in [20, 80] {
        let error = cells(side).err().unwrap();
        assert!(error.is_choice() && error.row_index() == Some(1), "{error}");
        let shapes = format!("shape 1x1x1x{side}x{side} (TCZYX), and its image 1x1x1x40x40");
        assert!(error.to_string().contains(&shapes), "{error}");
    }
}

/// Folders tell images apart where both sets have them, also where one of the sets has some of the images alone.
#[test]
fn label_images_of_another_folder_are_of_no_image() {
    let dir = tempfile::tempdir().unwrap();
    let set = |file: &str, names: &[&str]| {
        let image = |name: &&str| Image::labels(name, Shape::plane(8, 8), |_, _| 1);
        let images: Vec<Image> = names.iter().map(image).collect();
        let options = WriteOptions { overwrite: true, ..WriteOptions::default() };
        write(&dir.path().join(file), "parquet", &options, &images)
    };
    let rows = |images: &[&str], labels: &[&str]| {
        let (images, labels) = (set("images.parquet", images), set("labels.parquet", labels));
        pair(&*images, &*labels, &[]).unwrap()
    };
    let labels = ["P1/s1_mask", "P1/s2_mask", "P2/s1_mask", "P2/s2_mask"];
    assert_eq!(rows(&["P1/s1", "P1/s2"], &labels), [Some(0), Some(1)]);
    assert_eq!(rows(&["P2/s2", "P1/s1"], &labels), [Some(3), Some(0)]);
    // That of P1/s1 was not made.
    assert_eq!(rows(&["P1/s1", "P2/s2"], &["P2/s1_mask", "P2/s2_mask"]), [None, Some(1)]);
    // Folders of one name in folders of plates: B is not in the set, and the label image of A/Images/s1 was not made.
    let labels = ["A/Images/s1_mask", "B/Images/s1_mask", "A/Images/s2_mask", "C/Images/s1_mask"];
    assert_eq!(rows(&["A/Images/s2", "A/Images/s1"], &labels), [Some(2), Some(0)]);
    assert_eq!(rows(&["A/Images/s1", "A/Images/s2"], &labels[1..]), [None, Some(1)]);
    assert_eq!(rows(&["C/Images/s1", "A/Images/s1"], &labels), [Some(3), Some(0)]);
    // Folders of other names tell nothing.
    assert_eq!(rows(&["images/s1", "images/s2"], &["masks/s2_mask", "masks/s1_mask"]), [Some(1), Some(0)]);
}

/// Opens cells of two images of 40 x 40 pixels by label images that `label` draws, for each of them alike.
fn cells_of(
    folder: &Path,
    name: &str,
    options: &CellOptions,
    label: impl Fn(usize, usize) -> u16,
) -> Result<CellsStore> {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let set = folder.join("set");
    if !set.exists() {
        let images: Vec<Image> = ["f1", "f2"]
            .map(|name| Image::noise(name, Shape::plane(40, 40), PixelType::U16, &mut random))
            .into();
        drop(write(&set, "tiff", &WriteOptions::default(), &images));
    }
    let masks = folder.join(name);
    let labels = ["f1_mask", "f2_mask"].map(|name| Image::labels(name, Shape::plane(40, 40), &label));
    drop(write(&masks, "tiff", &WriteOptions::default(), &labels));
    CellsStore::open(open(&set, &OpenOptions::default())?, &masks, options)
}

/// One value for all cells of an image would make them one. A binary mask is refused, a set of one cell an image is not.
#[test]
fn binary_masks_are_no_label_images() {
    let dir = tempfile::tempdir().unwrap();
    let cells = |name: &str, label: fn(usize, usize) -> u16| {
        let options = CellOptions { size: [9, 9], ..CellOptions::default() };
        cells_of(dir.path(), name, &options, label)
    };
    // Two rectangles, both 255.
    let error =
        cells("binary", |y, x| if y < 12 && !(12..=20).contains(&x) { 255 } else { 0 }).err().unwrap();
    let said = error.to_string();
    assert!(error.is_choice() && error.row_index() == Some(0), "{said}");
    assert!(
        said.contains("all pixels but 0 are 255, here in 2 pieces") && said.contains("skimage"),
        "{said}"
    );
    assert!(said.contains("label_masks true numbers the pieces that touch"), "{said}");
    // Each with a number of its own, and one cell in each image.
    let numbered = |y: usize, x: usize| if y < 12 { u16::from(x < 12) + 2 * u16::from(x > 20) } else { 0 };
    assert_eq!(cells("numbered", numbered).unwrap().len(), 4);
    assert_eq!(cells("alone", |y, x| u16::from(y < 12 && x < 12)).unwrap().len(), 2);
}

/// Sixteen squares of 5 x 5 pixels, ten apart: the number of the square from 1 on, by row and column; 0 between them.
pub fn square(y: usize, x: usize) -> usize {
    if y % 10 < 5 && x % 10 < 5 { 1 + y / 10 * 4 + x / 10 } else { 0 }
}

/// A stray value beside that of the mask makes no label images of it.
#[test]
fn a_mask_with_a_stray_value_is_a_mask() {
    let dir = tempfile::tempdir().unwrap();
    let options = CellOptions { size: [9, 9], ..CellOptions::default() };
    let stray = |y, x| match square(y, x) {
        0 => 0,
        7 => 254,
        _ => 255,
    };
    let error = cells_of(dir.path(), "stray", &options, stray).err().unwrap();
    assert!(error.is_choice() && error.row_index() == Some(0), "{error}");
    assert!(
        error.to_string().contains("all pixels but 0 are 254 or 255, here in 16 pieces apart"),
        "{error}"
    );
    // Two cells, one of them in two pieces, are label images.
    let cut_up = |y, x| u16::from(square(y, x) == 1 || square(y, x) == 3) + 2 * u16::from(square(y, x) == 8);
    assert_eq!(cells_of(dir.path(), "cut", &options, cut_up).unwrap().len(), 4);
}

/// In a map of four classes and more, each class would become one cell.
#[test]
fn a_map_of_classes_is_no_label_image() {
    let dir = tempfile::tempdir().unwrap();
    let options = CellOptions { size: [9, 9], ..CellOptions::default() };
    // Each class has four of the sixteen squares, one in each row and column.
    let class = |y: usize, x: usize| if square(y, x) > 0 { (1 + (y / 10 + x / 10) % 4) as u16 } else { 0 };
    let error = cells_of(dir.path(), "classes", &options, class).err().unwrap();
    let said = error.to_string();
    assert!(error.is_choice() && error.row_index() == Some(0), "{said}");
    assert!(said.contains("its 4 values lie in 16 pieces, each value all over the image"), "{said}");
    assert!(said.contains("skimage.measure.label(classes)") && said.contains("label_masks true"), "{said}");
    // Their pieces, where that is asked for; and four cells that are cut into four pieces each.
    let of_masks = CellOptions { label_masks: true, ..options.clone() };
    assert_eq!(cells_of(dir.path(), "pieces", &of_masks, class).unwrap().len(), 32);
    let cut_up = |y: usize, x: usize| if square(y, x) > 0 { (1 + y / 20 * 2 + x / 20) as u16 } else { 0 };
    assert_eq!(cells_of(dir.path(), "cut-up", &options, cut_up).unwrap().len(), 8);
}

/// The pieces of a binary mask are cells in the order of their first pixels. They are cut out and masked as those of a label image are.
#[test]
fn pieces_of_binary_masks_are_cells_where_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    for mask in [Mask::None, Mask::Zero, Mask::Channel] {
        let options = CellOptions { size: [9, 11], mask, edge: Edge::Pad, ..CellOptions::default() };
        let of_masks = CellOptions { label_masks: true, ..options.clone() };
        let numbered =
            cells_of(dir.path(), &format!("numbered-{mask}"), &options, |y, x| square(y, x) as u16);
        let name = format!("binary-{mask}");
        let binary = cells_of(dir.path(), &name, &of_masks, |y, x| if square(y, x) > 0 { 255 } else { 0 });
        let (numbered, binary) = (numbered.unwrap(), binary.unwrap());
        assert_eq!((binary.len(), numbered.len()), (32, 32));
        for row in 0..32 {
            assert_eq!(binary.name(row).unwrap(), numbered.name(row).unwrap());
            assert_eq!(
                read_image(&binary, row).unwrap(),
                read_image(&numbered, row).unwrap(),
                "{mask} {row}"
            );
        }
        assert_eq!(binary.name(17).unwrap(), "f2/cell-2");
        let columns = |store: &CellsStore| wellread_store::features::all(store).unwrap().unwrap();
        assert_eq!(columns(&binary), columns(&numbered));
        // Several cells in one read, in parts.
        if mask == Mask::Zero {
            let region = Region { start: [0, 0, 0, 2, 3], size: [1, 1, 1, 4, 6] };
            let requests = [20, 3, 3, 21].map(|row| Request { row, region });
            let mut scratch = Scratch::default();
            let found = read(&binary, &requests, &mut scratch).unwrap();
            assert_eq!(found, read(&numbered, &requests, &mut scratch).unwrap());
            assert!(found[0].iter().any(|&byte| byte != 0));
        }
    }
    // Masks beside a table of cells are numbered; without masks there is nothing to number.
    let table = dir.path().join("cells.csv");
    std::fs::write(&table, "ImageName,x,y,ObjectNumber\nf1,12,2,2\nf2,32,32,16\n").unwrap();
    let images = || open(dir.path().join("set"), &OpenOptions::default()).unwrap();
    let masks = dir.path().join("binary-zero");
    let options = CellOptions { size: [9, 9], mask: Mask::Zero, label_masks: true, ..CellOptions::default() };
    let with = CellOptions { masks: Some(masks), ..options.clone() };
    let store = CellsStore::open(images(), &table, &with).unwrap();
    for row in 0..2 {
        let (info, pixels) = read_image(&store, row).unwrap();
        let own = pixels.chunks_exact(2).filter(|pixel| **pixel != [0, 0]).count();
        assert!((23..=25).contains(&own) && info.shape == Shape::plane(9, 9), "{row}: {own}");
    }
    let error = CellsStore::open(images(), &table, &options).err().unwrap();
    assert!(error.is_choice() && error.to_string().contains("give the masks (masks)"), "{error}");
}
