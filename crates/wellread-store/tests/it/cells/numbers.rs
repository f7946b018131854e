//! Numbers of cells that are not those of the label images.

use super::labels::square;
use super::{Image, write};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use wellread_image::{PixelType, Region, Shape};
use wellread_store::cells::{CellOptions, CellsStore, Mask, Unmatched};
use wellread_store::{OpenOptions, Scratch, Store, WriteOptions, open, read_image, read_region};

/// A table that counts its cells in another way than the label images would give black crops: the first one that is read says so.
#[test]
fn numbers_that_are_no_labels_are_refused_where_they_are_read() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let dir = tempfile::tempdir().unwrap();
    let (set, masks) = (dir.path().join("set"), dir.path().join("masks"));
    let image = Image::noise("f1", Shape::plane(40, 40), PixelType::U16, &mut random);
    let labels = Image::labels("f1_mask", Shape::plane(40, 40), |y, x| if y < 12 && x < 12 { 3 } else { 0 });
    drop(write(&set, "tiff", &WriteOptions::default(), &[image]));
    drop(write(&masks, "tiff", &WriteOptions::default(), &[labels]));
    let table = dir.path().join("cells.csv");
    std::fs::write(&table, "ImageName,x,y,ObjectNumber,parent\nf1,6,6,3,1\nf1,8,8,4,3\n").unwrap();
    for mask in [Mask::Zero, Mask::Channel] {
        let options =
            CellOptions { mask, masks: Some(masks.clone()), size: [9, 9], ..CellOptions::default() };
        let cells = |options: &CellOptions| {
            CellsStore::open(open(&set, &OpenOptions::default()).unwrap(), &table, options).unwrap()
        };
        let store = cells(&options);
        assert!(read_image(&store, 0).is_ok());
        let error = read_image(&store, 1).unwrap_err().to_string();
        for part in [
            "masks",
            "label image f1_mask has no pixel of label 4",
            "the cell f1/cell-4, row 1 of the cells",
            "(label)",
            "unmatched skip",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
        // A part of a crop need not have one.
        let (mut scratch, mut pixels) = (Scratch::default(), vec![]);
        let corner = Region { start: [0; 5], size: [1, 1, 1, 2, 2] };
        assert!(read_region(&store, 1, &corner, &mut scratch, &mut pixels).is_ok());
        let skipping = CellOptions { unmatched: Unmatched::Skip, ..options.clone() };
        let (_, pixels) = read_image(&cells(&skipping), 1).unwrap();
        assert_eq!(pixels.iter().all(|&byte| byte == 0), mask == Mask::Zero, "{mask}");
        // Where the column is named, it has the numbers of the labels: the second row alone has that one.
        std::fs::write(dir.path().join("own.csv"), "ImageName,x,y,ObjectNumber,parent\nf1,8,8,4,3\n")
            .unwrap();
        let named = CellOptions { label: Some("parent".into()), ..options };
        let images = open(&set, &OpenOptions::default()).unwrap();
        let store = CellsStore::open(images, &dir.path().join("own.csv"), &named).unwrap();
        assert!(read_image(&store, 0).unwrap().1.iter().any(|&byte| byte != 0));
    }
}

/// Numbers of other objects are labels of the same image: their masks would be those of neighbours.
#[test]
fn numbers_of_other_cells_are_refused_at_once() {
    let mut random = ChaCha8Rng::seed_from_u64(8);
    let dir = tempfile::tempdir().unwrap();
    let (set, table) = (dir.path().join("set"), dir.path().join("cells.csv"));
    let image = Image::noise("f1", Shape::plane(40, 40), PixelType::U16, &mut random);
    drop(write(&set, "tiff", &WriteOptions::default(), &[image]));
    // The column `wrong` has the number of the next cell.
    let rows =
        (1..=6).map(|n| format!("f1,{},{},{n},{}\n", 2 + (n - 1) % 4 * 10, 2 + (n - 1) / 4 * 10, n + 1));
    std::fs::write(&table, format!("ImageName,x,y,ObjectNumber,wrong\n{}", rows.collect::<String>()))
        .unwrap();
    for are_binary in [false, true] {
        let masks = dir.path().join(format!("masks-{are_binary}"));
        let label = |y, x| if are_binary { 255 * u16::from(square(y, x) > 0) } else { square(y, x) as u16 };
        drop(write(
            &masks,
            "tiff",
            &WriteOptions::default(),
            &[Image::labels("f1_mask", Shape::plane(40, 40), label)],
        ));
        let options = CellOptions {
            mask: Mask::Zero,
            masks: Some(masks),
            label_masks: are_binary,
            size: [31, 31],
            ..CellOptions::default()
        };
        let cells = |options: &CellOptions| {
            CellsStore::open(open(&set, &OpenOptions::default()).unwrap(), &table, options)
        };
        assert_eq!(cells(&options).unwrap().len(), 6);
        let wrong = CellOptions { label: Some("wrong".into()), ..options };
        let error = cells(&wrong).err().unwrap();
        let said = "6 of 6 cells lie on labels of other cells. Row 0 of the table is cell 2 (column \"wrong\"), \
                    and at its position is label 1";
        assert_eq!((error.cause(), error.is_choice()), (said, true));
        let skipping = CellOptions { unmatched: Unmatched::Skip, ..wrong };
        assert_eq!(cells(&skipping).unwrap().len(), 6);
    }
}

/// The centroid of a ring lies on what it surrounds: on no label, as of a cytoplasm, or on another cell. Its number is right all
/// the same, and that of another ring is not.
#[test]
fn positions_in_the_holes_of_labels_are_theirs() {
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let dir = tempfile::tempdir().unwrap();
    let (set, table) = (dir.path().join("set"), dir.path().join("cells.csv"));
    let image = Image::noise("f1", Shape::plane(40, 40), PixelType::U16, &mut random);
    drop(write(&set, "tiff", &WriteOptions::default(), &[image]));
    // Four rings; the column `wrong` has the number of the next one.
    let rows = (1..=4)
        .map(|n| format!("f1,{},{},{n},{}\n", 10 + (n - 1) % 2 * 20, 10 + (n - 1) / 2 * 20, n % 4 + 1));
    std::fs::write(&table, format!("ImageName,x,y,ObjectNumber,wrong\n{}", rows.collect::<String>()))
        .unwrap();
    let ring = |y: usize, x: usize, inside: usize| {
        let number = y / 20 * 2 + x / 20 + 1;
        match (y % 20).abs_diff(10).max((x % 20).abs_diff(10)) {
            4..=8 => number as u16,
            0..=2 if inside > 0 => (inside + number) as u16,
            _ => 0,
        }
    };
    let cells = |masks: &str, label: Option<&str>| {
        let options = CellOptions {
            mask: Mask::Zero,
            masks: Some(dir.path().join(masks)),
            label: label.map(str::to_owned),
            size: [39, 39],
            ..CellOptions::default()
        };
        CellsStore::open(open(&set, &OpenOptions::default()).unwrap(), &table, &options)
    };
    for (masks, inside, found) in [("holes", 0, 1), ("filled", 10, 11)] {
        let labels = Image::labels("f1_mask", Shape::plane(40, 40), |y, x| ring(y, x, inside));
        drop(write(&dir.path().join(masks), "tiff", &WriteOptions::default(), &[labels]));
        assert_eq!(cells(masks, None).unwrap().len(), 4, "{masks}");
        let error = cells(masks, Some("wrong")).err().unwrap();
        let said = format!(
            "4 of 4 cells lie on labels of other cells. Row 0 of the table is cell 2 (column \"wrong\"), and at its \
             position is label {found}"
        );
        assert_eq!(error.cause(), said);
        assert!(!error.to_string().contains("label_masks"), "{error}");
    }
    // A binary mask has one value for all.
    let binary = Image::labels("f1_mask", Shape::plane(40, 40), |y, x| 255 * ring(y, x, 0).min(1));
    drop(write(&dir.path().join("binary"), "tiff", &WriteOptions::default(), &[binary]));
    let error = cells("binary", None).err().unwrap().to_string();
    assert!(
        error.contains("at its position is label 255") && error.contains("(label_masks true)"),
        "{error}"
    );
}
