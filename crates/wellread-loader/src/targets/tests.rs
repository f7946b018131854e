//! Which targets are of which images, and that both fit.

use super::*;
use crate::MemoryStore;
use wellread_image::PixelType;

fn set(names: &[&str], shape: Shape) -> Dataset {
    let mut store = MemoryStore::new("set");
    for name in names {
        store.push(*name, shape, PixelType::U8, vec![0; shape.pixels()]).unwrap();
    }
    Dataset::from_store(Box::new(store))
}

fn find(images: &[&str], targets: &[&str], rows: Option<&[usize]>, is_lenient: bool) -> Result<Pairs> {
    let shape = Shape::plane(2, 2);
    let (images, targets) = (set(images, shape), set(targets, shape));
    let rows = rows.map_or(Rows::All(images.len()), |rows| Rows::Some(rows.into()));
    Pairs::find(&images, &targets, &rows, is_lenient, None)
}

#[test]
fn targets_are_found_by_names_else_by_order() {
    for (images, targets) in [
        (["a", "b"], ["0", "1"]),
        (["image_1", "image_2"], ["mask_1", "mask_2"]),
        (["s1_ch1", "s2_ch1"], ["s1_ch2", "s2_ch2"]),
    ] {
        assert!(matches!(find(&images, &targets, None, false), Ok(Pairs::Order)), "{targets:?}");
    }
    // The very names are names, in whichever order.
    let same = find(&["a", "b"], &["a", "b"], None, false).unwrap();
    assert!(matches!(same, Pairs::SameNames), "{same:?}");
    assert_eq!(same.pairing(), Pairing::Names);
    let by_name = |targets: &[&str]| match find(&["a", "b"], targets, None, false) {
        Ok(Pairs::Names(found)) => found,
        other => panic!("{other:?}"),
    };
    assert_eq!(by_name(&["b", "a"]), [Some(1), Some(0)]);
    assert_eq!(by_name(&["c_mask", "b_mask", "a_mask"]), [Some(2), Some(1)]);
}

#[test]
fn numbers_pair_and_are_never_overruled_by_order() {
    let images = ["img_1", "img_10", "img_2"];
    for targets in
        [["001", "002", "010"], ["mask_1", "mask_2", "mask_10"], ["img_mask_1", "img_mask_2", "img_mask_10"]]
    {
        match find(&images, &targets, None, false) {
            Ok(Pairs::Names(found)) => assert_eq!(found, [Some(0), Some(2), Some(1)], "{targets:?}"),
            other => panic!("{targets:?}: {other:?}"),
        }
    }
    assert!(matches!(find(&images, &["1", "10", "2"], None, false), Ok(Pairs::Order)));
    let error = find(&images, &["0", "1", "2"], None, false).unwrap_err();
    assert!(error.is_choice(), "{error}");
    for part in ["row 0 is img_1", "would be 0", "pairing order"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn names_with_nothing_in_common_are_taken_in_order_where_that_is_asked_for() {
    let error = find(&["a", "b"], &["x", "y"], None, false).unwrap_err();
    assert!(error.is_choice() && error.to_string().contains("pairing order"), "{error}");
    let shape = Shape::plane(2, 2);
    let by = |images: &[&str], targets: &[&str], pairing| {
        let (images, targets) = (set(images, shape), set(targets, shape));
        Pairs::find(&images, &targets, &Rows::All(images.len()), false, Some(pairing))
    };
    assert!(matches!(by(&["a", "b"], &["x", "y"], Pairing::Order), Ok(Pairs::Order)));
    assert!(matches!(by(&["a", "b"], &["b", "a"], Pairing::Order), Ok(Pairs::Order)));
    let other = by(&["a", "b"], &["x"], Pairing::Order).unwrap_err();
    assert!(other.is_choice() && other.to_string().contains("1 target for 2 images"), "{other}");
    assert!(matches!(by(&["a", "b"], &["a", "b"], Pairing::Names), Ok(Pairs::Names(_))));
    assert!(by(&["a", "b"], &["0", "1"], Pairing::Names).is_err());
}

#[test]
fn cells_whose_images_have_other_names_may_be_taken_in_order() {
    let (images, targets) = (["a/cell-1", "b/cell-1"], ["a_mask/cell-1", "b_mask/cell-1"]);
    let error = find(&images, &targets, None, false).unwrap_err().to_string();
    assert!(error.contains("could be of either of two images, a/cell-1 and b/cell-1"), "{error}");
    assert!(error.contains("folders of the same names") && error.contains("pairing order"), "{error}");
    // There is no order of other numbers of both.
    let error = find(&images, &targets[..1], None, false).unwrap_err().to_string();
    assert!(error.contains("either of two") && !error.contains("pairing"), "{error}");
}

#[test]
fn images_without_targets_are_counted_and_named() {
    let error = find(&["a", "b", "c", "d", "e"], &["a_mask"], None, false).unwrap_err().to_string();
    assert!(error.contains("4 of 5 images have no target among the 1 image of set: b, c, d …"), "{error}");
    // Those that are not loaded need none, and may lack one where rows may be skipped.
    assert!(find(&["a", "b"], &["a_mask"], Some(&[0]), false).is_ok());
    let lenient = find(&["a", "b"], &["a_mask"], None, true).unwrap();
    let images = set(&["a", "b"], Shape::plane(2, 2));
    assert_eq!(lenient.row(&images, 0).unwrap(), 0);
    assert!(lenient.row(&images, 1).unwrap_err().to_string().contains("row 1: the image has no target"));
    assert!(find(&["a", "b"], &["x"], None, true).is_err(), "nothing fits");
}

#[test]
fn targets_are_as_large_as_their_images() {
    let check = |image: [usize; 5], target: [usize; 5]| {
        Pairs::check([&set(&["a"], Shape(image)), &set(&["a"], Shape(target))], [0, 0])
    };
    assert!(check([1, 3, 4, 8, 9], [1, 1, 1, 8, 9]).is_ok());
    assert!(check([2, 3, 4, 8, 9], [2, 1, 4, 8, 9]).is_ok());
    for target in [[1, 1, 1, 9, 8], [1, 1, 2, 8, 9], [2, 1, 1, 8, 9]] {
        let error = check([1, 3, 4, 8, 9], target).unwrap_err().to_string();
        assert!(error.contains("row 0") && error.contains("(TCZYX)"), "{error}");
    }
}

/// The label image of each image by names alone.
fn paired(images: &[&str], labels: &[&str]) -> Result<Vec<Option<usize>>> {
    let [images, labels] = [images, labels].map(|names| set(names, Shape::plane(2, 2)));
    cells::pair(images.store(), labels.store(), &[])
}

#[test]
fn labels_lie_in_their_images() {
    let wells = ["A/1/0", "A/2/0", "A/10/0"];
    let labels = ["1/0/labels/nuclei/nuclei", "10/0/labels/nuclei/nuclei", "2/0/labels/nuclei/nuclei"];
    assert_eq!(paired(&wells, &labels).unwrap(), [Some(0), Some(2), Some(1)]);
    let of_plate = labels.map(|label| format!("A/{label}"));
    let of_plate: Vec<&str> = of_plate.iter().map(String::as_str).collect();
    assert_eq!(paired(&wells, &of_plate).unwrap(), [Some(0), Some(2), Some(1)]);
    // Images of a list, files, one image of several, folders of other words.
    let listed = ["A/1/0/0", "A/2/0/0", "A/10/0/0"];
    assert_eq!(paired(&listed, &labels).unwrap(), [Some(0), Some(2), Some(1)]);
    assert_eq!(
        paired(&wells, &["A/2/0/labels/nuclei", "A/2/1/labels/nuclei"]).unwrap(),
        [None, Some(0), None]
    );
    assert_eq!(
        paired(&["a", "b"], &["b.zarr/labels/cells", "a.zarr/labels/cells"]).unwrap(),
        [Some(1), Some(0)]
    );
    assert_eq!(paired(&["s1", "s2"], &["s2/nuclei", "s1/nuclei"]).unwrap(), [Some(1), Some(0)]);
    assert_eq!(paired(&["s1", "s2"], &["s1", "s1/old", "s2"]).unwrap(), [Some(0), Some(2)]);
    // Wells that are not among the images, whose files have the names of others.
    let fields = ["A/1/0", "A/2/1"];
    let of_all = ["A/1/0/labels/n", "A/1/1/labels/n", "A/2/0/labels/n", "A/2/1/labels/n", "A/9/0/labels/n"];
    assert_eq!(paired(&fields, &of_all).unwrap(), [Some(0), Some(3)]);
    assert_eq!(paired(&wells, &of_all).unwrap(), [Some(0), Some(2), None]);
    assert_eq!(paired(&["A/1/0/0", "A/1/1/1"], &of_all).unwrap(), [Some(0), Some(1)]);
    // Two rows of wells, of which the labels do not say which.
    let error = paired(&["A/1/0", "B/1/0"], &labels).unwrap_err().to_string();
    assert!(error.contains("either of two images, A/1/0 and B/1/0"), "{error}");
    let error = paired(&["s1", "s2"], &["s1/cells", "s1/nuclei"]).unwrap_err().to_string();
    assert!(error.contains("s1/cells and s1/nuclei are both of the image s1"), "{error}");
}

#[test]
fn numbers_in_folders_count() {
    // The order of text is not that of numbers: A10 comes before A2, A02 before A10.
    let wells = ["A1/1", "A10/1", "A2/1"];
    let by_number = |targets: &[&str]| match find(&wells, targets, None, false) {
        Ok(Pairs::Names(found)) => found,
        other => panic!("{targets:?}: {other:?}"),
    };
    let expected = [Some(0), Some(2), Some(1)];
    for targets in [
        ["A01_1_mask", "A02_1_mask", "A10_1_mask"],
        ["A01/mask", "A02/mask", "A10/mask"],
        // The name of one image begins one of these.
        ["A1/1_mask", "A02/mask_1", "A10/mask_1"],
    ] {
        assert_eq!(by_number(&targets), expected, "{targets:?}");
    }
    assert!(matches!(find(&wells, &["A1_mask", "A10_mask", "A2_mask"], None, false), Ok(Pairs::Order)));
    let set_of = |names: &[&str]| set(names, Shape::plane(2, 2));
    let [images, targets] = [set_of(&wells), set_of(&["A1_mask", "A10_mask", "A2_mask"])];
    let chosen = Pairs::find(&images, &targets, &Rows::All(3), false, Some(Pairing::Names));
    assert!(matches!(chosen, Ok(Pairs::Names(found)) if found == [Some(0), Some(1), Some(2)]));
    let error = find(&wells, &["0", "2", "3"], None, false).unwrap_err().to_string();
    assert!(error.contains("row 0 is A1/1 and its target would be 0"), "{error}");
}

#[test]
fn masks_of_plates_lie_in_other_folders_than_their_images() {
    let images = ["A/Images/s1", "A/Images/s2", "B/Images/s1"];
    let masks = ["A/masks/s2", "B/masks/s1_mask", "A/masks/s1"];
    assert_eq!(paired(&images, &masks).unwrap(), [Some(2), Some(0), Some(1)]);
    assert!(matches!(find(&images, &["A/m/s1", "A/m/s2", "B/m/s1"], None, false), Ok(Pairs::Names(found))
        if found == [Some(0), Some(1), Some(2)]));
    // One plate of two: the other's masks are of no image, whatever the order.
    assert_eq!(paired(&images[..2], &["B/masks/s1", "A/masks/s2"]).unwrap(), [None, Some(1)]);
    assert_eq!(paired(&images[2..], &["A/masks/s1", "B/masks/s1"]).unwrap(), [Some(1)]);
    assert_eq!(paired(&images, &["C/masks/s1", "A/masks/s2"]).unwrap(), [None, Some(1), None]);
    let error = find(&images[..2], &["B/masks/s1", "A/masks/s2"], None, false).unwrap_err().to_string();
    assert!(error.contains("1 of 2 images have no target") && error.contains("A/Images/s1"), "{error}");
    // Folders that only one set has say nothing, nor do names without folders.
    assert_eq!(paired(&["raw/s1", "raw/s2"], &["done/s2", "done/s1"]).unwrap(), [Some(1), Some(0)]);
    assert_eq!(paired(&["A/s1", "A/s2"], &["A/s2_mask", "s1_mask"]).unwrap(), [Some(1), Some(0)]);
    // A folder that is of neither plate is of either.
    let error = paired(&images, &["masks/s1", "masks/s2"]).unwrap_err().to_string();
    assert!(error.contains("either of two images, A/Images/s1 and B/Images/s1"), "{error}");
}

#[test]
fn words_of_other_images_are_never_overruled_by_order() {
    let images = ["ctrl/1", "drug/1"];
    let error = find(&images, &["a_drug/mask", "ctrl/mask"], None, false).unwrap_err();
    assert!(error.is_choice(), "{error}");
    for part in ["words in names do not match", "row 0 is ctrl/1", "would be a_drug/mask", "pairing order"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(matches!(find(&images, &["ctrl/mask", "drug/mask"], None, false), Ok(Pairs::Order)));
}
