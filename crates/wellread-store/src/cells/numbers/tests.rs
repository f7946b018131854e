//! Recipes of names: which images and label images belong together, and where nothing tells.

use super::*;

fn of(images: &[&str], labels: &[&str]) -> ByNumbers {
    let [images, labels] =
        [images, labels].map(|names| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
    of_names(&images, &labels)
}

#[test]
fn the_same_numbers_are_of_each_other() {
    let images = ["img_1", "img_10", "img_2"];
    for labels in [["001", "002", "010"], ["mask_001", "mask_002", "mask_010"], ["t2_1", "t2_2", "t2_10"]] {
        assert_eq!(of(&images, &labels), ByNumbers::Found(vec![0, 2, 1]), "{labels:?}");
    }
    assert_eq!(of(&images, &["1", "10", "2"]), ByNumbers::InOrder);
    // Several numbers tell them, all of which agree.
    let fields = ["B2_f1", "B2_f10", "B3_f2"];
    assert_eq!(of(&fields, &["2_01", "3_02", "2_10"]), ByNumbers::Found(vec![0, 2, 1]));
    assert_eq!(of(&["s1_ch1", "s2_ch1"], &["s1_ch2", "s2_ch2"]), ByNumbers::InOrder);
    assert_eq!(of(&["0", "00x1"], &["a0", "b0_01"]), ByNumbers::Silent);
}

#[test]
fn other_numbers_contradict() {
    assert_eq!(of(&["img_1", "img_2"], &["0", "1"]), ByNumbers::Contradict(0));
    assert_eq!(of(&["img_1", "img_2", "img_3"], &["1", "3", "4"]), ByNumbers::Contradict(1));
    // Twice the same number, of two rows of wells.
    assert_eq!(of(&["A1", "A2", "B1", "B2"], &["0", "1", "2", "3"]), ByNumbers::Contradict(0));
    assert_eq!(of(&["A1_1", "A2", "B1"], &["0", "1", "2"]), ByNumbers::Contradict(0));
    assert_eq!(of(&["A1_1", "A2_1", "B1_2"], &["0", "1", "2"]), ByNumbers::Contradict(0));
}

#[test]
fn names_without_numbers_say_nothing() {
    assert_eq!(of(&["a", "b"], &["0", "1"]), ByNumbers::Silent);
    assert_eq!(of(&["a_2", "b_2"], &["0", "1"]), ByNumbers::Silent);
    assert_eq!(of(&["A1_1", "A2"], &["A1_x", "A2_3_y"]), ByNumbers::Silent);
    assert_eq!(of(&[], &[]), ByNumbers::Silent);
}

/// How a set calls its images.
type Name = fn(usize) -> String;

/// Pairs each image with a label image by numbers, whatever the order of the label images.
fn check(of_image: Name, of_label: Name, numbers: &[usize]) {
    let images: Vec<String> = numbers.iter().map(|&i| of_image(i)).collect();
    let expected: Vec<String> = numbers.iter().map(|&i| of_label(i)).collect();
    let mut sorted = expected.clone();
    sorted.sort();
    let reversed = expected.iter().rev().cloned().collect();
    for labels in [expected.clone(), sorted, reversed] {
        let rows = match of_names(&images, &labels) {
            ByNumbers::Found(rows) => rows,
            ByNumbers::InOrder => (0..images.len()).collect(),
            other => panic!("{images:?} {labels:?}: {other:?}"),
        };
        let found: Vec<&String> = rows.iter().map(|&row| &labels[row]).collect();
        assert_eq!(found, expected.iter().collect::<Vec<_>>(), "{images:?}");
    }
}

#[test]
fn numbers_of_folders_pair_images() {
    let masks_of_wells: [Name; 15] = [
        |i| format!("A{i:02}_1_mask"),
        |i| format!("A_{i}_0"),
        |i| format!("A{i}_0_mask"),
        |i| format!("A{i}_mask"),
        |i| format!("A{i}"),
        |i| format!("A{i}/mask"),
        |i| format!("mask_{i}"),
        |i| format!("A-{i}-0_masks"),
        |i| format!("A_{i}_f0_cp_masks"),
        |i| format!("A/{i}/0/labels/nuclei"),
        |i| format!("{i}/0/labels/nuclei/nuclei"),
        |i| format!("A{i}/s1"),
        |i| format!("A{i}/1"),
        |i| format!("A{i}/mask_1"),
        |i| format!("p{i}_1_mask"),
    ];
    let images: [Name; 5] = [
        // Folders of wells, a plate of OME-Zarr, ImageXpress, Harmony, folders of any kind.
        |i| format!("A{i}/1"),
        |i| format!("A/{i}/0"),
        |i| format!("P_A{i:02}_s1"),
        |i| format!("r01c{i:02}f01"),
        |i| format!("p{i}/1"),
    ];
    let all: Vec<usize> = (1..12).collect();
    for image in images {
        for label in masks_of_wells {
            check(image, label, &all);
            check(image, label, &[1, 10, 2]);
        }
    }
    check(|i| format!("p{i}/im_01"), |i| format!("p{i:02}/lab_01"), &all);
    check(|i| format!("p{i}/1"), |i| format!("mask{i:02}"), &all);
    check(|i| format!("x{}/img_{i}", i / 4), |i| format!("mask_{i:03}"), &all);
    check(|i| format!("img_{i}_dapi"), |i| format!("mask_{i}"), &all);
}

#[test]
fn rows_of_wells_are_compared_as_columns_are() {
    fn row(i: usize) -> char {
        ['A', 'B', 'C'][i / 3]
    }
    // Nine wells of three rows and three columns: rows and columns may not be taken for each other.
    let all: Vec<usize> = (0..9).collect();
    let images: [Name; 5] = [
        |i| format!("r{:02}c{:02}f01", i / 3 + 1, i % 3 + 1),
        |i| format!("{}/{}/0", row(i), i % 3 + 1),
        |i| format!("P_{}{:02}_s1", row(i), i % 3 + 1),
        |i| format!("{}{}/1", row(i), i % 3 + 1),
        |i| format!("c{:02}r{:02}f01", i % 3 + 1, i / 3 + 1),
    ];
    let labels: [Name; 7] = [
        |i| format!("{}{}_1", row(i), i % 3 + 1),
        |i| format!("{}{:02}/mask_1", row(i), i % 3 + 1),
        |i| format!("{}_{}_f0_cp_masks", row(i), i % 3 + 1),
        |i| format!("r{}c{}f1_mask", i / 3 + 1, i % 3 + 1),
        |i| format!("c{:02}r{:02}f01", i % 3 + 1, i / 3 + 1),
        |i| format!("{:02}_{}_1", i % 3 + 1, row(i)),
        |i| format!("P1/{}{}/mask", row(i), i % 3 + 1),
    ];
    for image in images {
        for label in labels {
            check(image, label, &all);
        }
    }
    // Columns alone do not tell nine wells apart, nor does a running number.
    let wells: Vec<String> = all.iter().map(|&i| images[0](i)).collect();
    let others: [Name; 2] = [|i| format!("mask_{}", i % 3), |i| format!("mask_{i}")];
    for label in others {
        let labels: Vec<String> = all.iter().map(|&i| label(i)).collect();
        assert_eq!(of_names(&wells, &labels), ByNumbers::Contradict(0), "{labels:?}");
    }
}

#[test]
fn folders_contradict_as_names_do() {
    assert_eq!(of(&["w1/img", "w2/img"], &["0", "1"]), ByNumbers::Contradict(0));
    // As many numbers, of which none is the image's.
    assert_eq!(of(&["a1/x", "a2_7/x"], &["b2/y", "b1_8/y"]), ByNumbers::Contradict(0));
    // The same number more than once: words have to tell.
    assert_eq!(of(&["w1/a", "w1/b", "w2/c"], &["01/p", "01/q", "02/r"]), ByNumbers::Silent);
    // Two ways, of which none is the one.
    assert_eq!(of(&["1_2", "2_1"], &["1", "2"]), ByNumbers::Contradict(0));
    // Letters of wells are no numbers of classes.
    assert_eq!(of(&["A1", "B1"], &["0", "1"]), ByNumbers::Silent);
}

#[test]
fn words_of_other_images_contradict() {
    assert_eq!(of(&["ctrl/1", "drug/1"], &["a_drug/mask", "ctrl/mask"]), ByNumbers::OtherWords(0));
    assert_eq!(of(&["ctrl/1", "drug/1"], &["drug/mask_1", "zctrl/mask_1"]), ByNumbers::OtherWords(0));
    assert_eq!(of(&["ctrl_1", "drug_2"], &["drug_1", "ctrl_2"]), ByNumbers::OtherWords(0));
    assert_eq!(of(&["ctrl/1", "drug/1"], &["ctrl/mask", "drug/mask"]), ByNumbers::Silent);
    // A word that all label images have tells nothing.
    assert_eq!(of(&["cell_1", "nucleus_2"], &["nucleus_1", "nucleus_2"]), ByNumbers::InOrder);
}
