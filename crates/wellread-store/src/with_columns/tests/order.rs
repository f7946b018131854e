//! Tables that have the images in another order than the set.

use super::*;

const NAMES: [&str; 3] = ["image-2.tif", "image-0.tif", "image-1.tif"];

fn column(name: &str) -> OtherOrder {
    OtherOrder::Column(name.to_owned())
}

#[test]
fn a_column_that_has_the_images_in_another_order_is_told() {
    let other_order = |column: &str, values: &[&str]| {
        let table = batch(vec![("dose", numbers(&[2, 0, 1])), (column, texts(values))]);
        super::super::joined(&images(), &[table], &[], false).unwrap().other_order
    };
    assert_eq!(other_order("FileName", &NAMES), Some(column("FileName")));
    assert_eq!(other_order("FileName", &["image-0", "image-1", "image-2"]), None, "their order");
    assert_eq!(other_order("FileName", &["image-1", "image-0", "image-1"]), None, "not a row for each");
    assert_eq!(other_order("well", &["A01", "B02", "A01"]), None, "two images of one well");
    // Each image once, in another order: those that are nearest to it.
    let own = texts(&["image-0", "image-1", "image-2"]);
    let table = batch(vec![("nearest_file", texts(&NAMES)), ("FileName", own)]);
    assert_eq!(super::super::joined(&images(), &[table], &[], false).unwrap().other_order, None);
}

#[test]
fn the_name_of_the_column_does_not_matter() {
    for name in ["img", "id", "path", "sample", "site", "key", "tile", "index"] {
        let table = |values: &[&str]| batch(vec![("dose", numbers(&[2, 0, 1])), (name, texts(values))]);
        let images = Named(batch(vec![("dose", numbers(&[1, 2, 3]))]));
        let order = |values: &[&str]| {
            super::super::joined(&images, &[table(values)], &[], false).unwrap().other_order
        };
        assert_eq!(order(&NAMES), Some(column(name)));
        assert_eq!(order(&["x/image-2", "x/image-0", "x/image-1"]), Some(column(name)), "stems");
        assert_eq!(order(&["image-0", "image-1", "image-2"]), None, "{name}: their order");
        assert_eq!(order(&["image-2", "image-0", "image-7"]), None, "{name}: no image");
        assert_eq!(order(&["image-2", "image-0", "image-0"]), None, "{name}: not a row for each");
    }
    // Values of a column of the images.
    let images = Named(batch(vec![("plant", texts(&["p", "q", "r"]))]));
    let table = batch(vec![("plant", texts(&["r", "p", "q"])), ("dose", numbers(&[2, 0, 1]))]);
    let found = super::super::joined(&images, &[table], &[], false).unwrap();
    assert_eq!(found.other_order, Some(column("plant")));
}

#[test]
fn an_index_that_is_no_column_is_compared_too() {
    let table = batch(vec![("dose", numbers(&[2, 0, 1])), ("drug", texts(&["x", "y", "x"]))]);
    let order = |table: &RecordBatch, index: &[&str]| {
        let index = texts(index);
        let table = std::slice::from_ref(table);
        joined_beside(&images(), table, Some(&index), &[], false).unwrap().other_order
    };
    assert_eq!(order(&table, &NAMES), Some(OtherOrder::Index));
    assert_eq!(order(&table, &["image-0", "image-1", "image-2"]), None);
    assert_eq!(order(&table, &["a", "b", "c"]), None);
    // An index or a column in the order of the images comes first.
    let nearest = batch(vec![("nearest", texts(&NAMES)), ("dose", numbers(&[2, 0, 1]))]);
    assert_eq!(order(&nearest, &["image-0", "image-1", "image-2"]), None);
    assert_eq!(order(&nearest, &NAMES), Some(column("nearest")));
    for (names, is_other) in [(NAMES, true), (["image-0", "image-1", "image-2"], false)] {
        assert_eq!(are_in_other_order(&images(), &texts(&names)), is_other);
    }
    assert!(!are_in_other_order(&images(), &texts(&NAMES[..2])));
}
