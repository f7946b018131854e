//! Differences between two lists of images.

use super::*;

fn sum(row: usize, name: &str, sha: &str) -> ImageChecksum {
    ImageChecksum {
        row,
        name: name.into(),
        shape_tczyx: [1, 1, 1, 2, 2],
        dtype: "uint8".into(),
        sha256: sha.into(),
    }
}

/// Images by name and pixels; `?` stands for pixels that cannot be read.
fn sums(images: &[(&str, &str)]) -> Vec<ImageChecksum> {
    images.iter().enumerate().map(|(row, (name, sha))| sum(row, name, sha)).collect()
}

/// Kind, row and expected row of each difference.
type Difference = (Kind, Option<usize>, Option<usize>);

fn differences(found: &[(&str, &str)], expected: &[(&str, &str)]) -> Vec<Difference> {
    with(found, expected, false, false)
}

fn with(
    found: &[(&str, &str)],
    expected: &[(&str, &str)],
    any_order: bool,
    any_names: bool,
) -> Vec<Difference> {
    let found: Vec<CheckedRow> = sums(found)
        .into_iter()
        .map(|sum| CheckedRow { name: Some(sum.name.clone()), sum: (sum.sha256 != "?").then_some(sum) })
        .collect();
    let expected = sums(expected);
    let problems = compare(&found, Expected { any_order, any_names, ..Expected::new(&expected) });
    problems.into_iter().map(|p| (p.kind, p.row, p.expected_row)).collect()
}

#[test]
fn order_names_and_pixels_are_told_apart() {
    use Kind::{Name, Order, Pixels};
    let set = [("a", "1"), ("b", "2"), ("c", "3")];
    assert_eq!(differences(&set, &set), []);
    let turned = [("c", "3"), ("b", "2"), ("a", "1")];
    assert_eq!(differences(&turned, &set), [(Order, Some(0), Some(2)), (Order, Some(2), Some(0))]);
    let renamed = [("a", "1"), ("x", "2"), ("c", "3")];
    assert_eq!(differences(&renamed, &set), [(Name, Some(1), Some(1))]);
    let changed = [("a", "1"), ("b", "9"), ("c", "3")];
    assert_eq!(differences(&changed, &set), [(Pixels, Some(1), Some(1))]);
    // Labels by row would point at other images: same names, pixels in another order.
    let same_names = [("x", "1"), ("x", "2")];
    assert_eq!(
        differences(&[("x", "2"), ("x", "1")], &same_names),
        [(Order, Some(0), Some(1)), (Order, Some(1), Some(0))]
    );
    let swapped = [("a", "2"), ("b", "1"), ("c", "3")];
    assert_eq!(differences(&swapped, &set), [(Pixels, Some(0), Some(0)), (Pixels, Some(1), Some(1))]);
    // Renamed and moved: both are said.
    let both = [("b", "2"), ("x", "1"), ("c", "3")];
    assert_eq!(
        differences(&both, &set),
        [(Order, Some(0), Some(1)), (Name, Some(1), Some(0)), (Order, Some(1), Some(0))]
    );
}

#[test]
fn what_may_differ_is_no_problem() {
    use Kind::{Missing, Name, Order, Pixels};
    let set = [("a", "1"), ("b", "2"), ("c", "3")];
    let turned = [("c", "3"), ("b", "2"), ("a", "1")];
    assert_eq!(with(&turned, &set, true, false), []);
    assert_eq!(with(&[("x", "1"), ("x", "2"), ("x", "3")], &set, false, true), []);
    assert_eq!(with(&[("x", "3"), ("y", "2"), ("z", "1")], &set, true, true), []);
    assert_eq!(with(&[("x", "3"), ("b", "2"), ("a", "1")], &set, true, false), [(Name, Some(0), Some(2))]);
    assert_eq!(
        with(&[("x", "2"), ("y", "1"), ("z", "9")], &set, false, true),
        [(Order, Some(0), Some(1)), (Order, Some(1), Some(0)), (Pixels, Some(2), Some(2))]
    );
    assert_eq!(with(&[("x", "2")], &set, true, true), [(Missing, None, Some(0)), (Missing, None, Some(2))]);
}

#[test]
fn missing_and_additional_images_move_no_others() {
    use Kind::{Additional, Missing, Order};
    let set = [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")];
    assert_eq!(differences(&[("a", "1"), ("c", "3"), ("d", "4")], &set), [(Missing, None, Some(1))]);
    let more = [("a", "1"), ("x", "9"), ("b", "2"), ("c", "3"), ("d", "4")];
    assert_eq!(differences(&more, &set), [(Additional, Some(1), None)]);
    assert_eq!(
        differences(&[("d", "4"), ("b", "2")], &set),
        [
            (Order, Some(0), Some(3)),
            (Order, Some(1), Some(1)),
            (Missing, None, Some(0)),
            (Missing, None, Some(2)),
        ]
    );
    assert_eq!(differences(&set[..1], &[]), [(Additional, Some(0), None)]);
    assert_eq!(differences(&[], &set[..1]), [(Missing, None, Some(0))]);
}

#[test]
fn what_cannot_be_read_is_not_missing() {
    let set = [("a", "1"), ("b", "2")];
    assert_eq!(differences(&[("a", "?"), ("b", "2")], &set), []);
    assert_eq!(differences(&[("b", "?"), ("a", "1")], &set).len(), 2, "both are in another row");
}

#[test]
fn names_that_differ_by_a_folder_are_recognised() {
    let found = [CheckedRow { name: Some("images/a".into()), sum: Some(sum(0, "images/a", "1")) }];
    let problems = compare(&found, Expected::new(&sums(&[("a", "1")])));
    assert_eq!(problems.len(), 1);
    assert!(problems[0].problem.contains("differ by a folder"), "{}", problems[0].problem);
}

#[test]
fn the_summary_counts_each_kind() {
    let problem = |kind, row, name: &str| Problem {
        row: Some(row),
        name: Some(name.into()),
        kind,
        expected_row: None,
        first_difference: None,
        problem: String::new(),
    };
    let problems = vec![problem(Kind::Order, 1, "b"), problem(Kind::Order, 2, "a")];
    let outcome = Verification { images: 3, problems, ..Verification::default() };
    assert_eq!(
        outcome.summary(),
        ["the same images in another order: 2 of 3 images in another row (first row 1, \"b\")"]
    );
    assert_eq!(outcome.counts().collect::<Vec<_>>(), [(Kind::Order, 2)]);
    let mut outcome = outcome;
    outcome.problems.push(problem(Kind::Pixels, 0, "c"));
    assert_eq!(
        outcome.summary(),
        [
            "1 of 3 images with other pixels (first row 0, \"c\")",
            "2 of 3 images in another row (first row 1, \"b\")"
        ]
    );
}

#[test]
fn what_is_missing_is_counted_of_the_expected_images() {
    let missing = |row| Problem {
        row: None,
        name: Some(format!("image{row}")),
        kind: Kind::Missing,
        expected_row: Some(row),
        first_difference: None,
        problem: String::new(),
    };
    let problems: Vec<Problem> = (3..67).map(missing).collect();
    let outcome = Verification { images: 3, expected: Some(67), problems, ..Verification::default() };
    assert_eq!(
        outcome.summary(),
        ["64 of 67 images expected but not in the set (first expected row 3, \"image3\")"]
    );
    let additional = Problem { row: Some(0), expected_row: None, kind: Kind::Additional, ..missing(0) };
    let outcome =
        Verification { images: 1, expected: Some(0), problems: vec![additional], ..Verification::default() };
    assert_eq!(outcome.summary(), ["1 of 1 image in the set but not expected (first row 0, \"image0\")"]);
}
