//! Which label image is of which image by the numbers in their names, where words tell nothing.
//!
//! ```text
//!  exp2_img_1  exp2_img_10  exp2_img_2     numbers of each name ─ those that all names share left out ─▶ 1   10  2
//!  mask_001    mask_002     mask_010                                                                  ─▶ 1   2   10
//!                                                               the same numbers on both sides ─▶ pairs: 0  2  1
//! ```
//!
//! Order tells nothing there: `img_10` comes before `img_2`, and `010` after `002`.

use super::pairs::stem_of;
use crate::each_row;
use crate::{Result, Store};
use std::collections::HashMap;

/// The result of comparing the numbers in names of two sets of equally many images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ByNumbers {
    /// Nothing: one set's names have no numbers that tell its images apart.
    Silent,
    /// They are the same in each two of one place.
    InOrder,
    /// The row of the label image of each image.
    Found(Vec<usize>),
    /// They are other ones, or not so many, or are there twice: the first image whose place has another number.
    Contradict(usize),
}

/// The numbers of a name without zeros in front.
fn numbers_of(stem: &str) -> Vec<&str> {
    let runs = stem.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty());
    runs.map(|run| match run.trim_start_matches('0') {
        "" => "0",
        number => number,
    })
    .collect()
}

/// The numbers that tell the names of one set apart.
enum Numbers<'a> {
    /// There are none.
    None,
    /// Names have several, some more than others.
    Uneven,
    /// The numbers of each name, equally many.
    Each(Vec<Vec<&'a str>>),
}

impl<'a> Numbers<'a> {
    fn of(names: &'a [String]) -> Self {
        let mut all: Vec<Vec<&str>> = names.iter().map(|name| numbers_of(stem_of(name))).collect();
        let Some(first) = all.first().cloned() else { return Self::None };
        if all.iter().any(|numbers| numbers.len() != first.len()) {
            return Self::Uneven;
        }
        let differs = |place: usize| all.iter().any(|numbers| numbers[place] != first[place]);
        let telling: Vec<usize> = (0..first.len()).filter(|&place| differs(place)).collect();
        if telling.is_empty() {
            return Self::None;
        }
        for numbers in &mut all {
            *numbers = telling.iter().map(|&place| numbers[place]).collect();
        }
        Self::Each(all)
    }

    /// Whether the names of a set are nothing but numbers.
    fn are_mere(names: &[String]) -> bool {
        names
            .iter()
            .map(|name| stem_of(name))
            .all(|stem| !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_digit()))
    }
}

/// Finds which names of two sets of equally many images belong together, by the numbers in them.
///
/// # Errors
/// Names that cannot be read.
pub fn by_numbers(images: &dyn Store, labels: &dyn Store) -> Result<ByNumbers> {
    let names = |store: &dyn Store| each_row::names(store).collect::<Result<Vec<_>>>();
    Ok(of_names(&names(images)?, &names(labels)?))
}

fn of_names(images: &[String], labels: &[String]) -> ByNumbers {
    if images.len() != labels.len() {
        return ByNumbers::Silent;
    }
    let (own, theirs) = match (Numbers::of(images), Numbers::of(labels)) {
        (Numbers::None, _) | (_, Numbers::None) => return ByNumbers::Silent,
        (Numbers::Each(own), Numbers::Each(theirs)) => (own, theirs),
        // Words may still tell, but not where there are none.
        _ if Numbers::are_mere(images) || Numbers::are_mere(labels) => return ByNumbers::Contradict(0),
        _ => return ByNumbers::Silent,
    };
    let Some(first) = own.iter().zip(&theirs).position(|(a, b)| a != b) else { return ByNumbers::InOrder };
    let row_of: HashMap<&[&str], usize> =
        theirs.iter().enumerate().map(|(row, numbers)| (numbers.as_slice(), row)).collect();
    let found: Vec<usize> =
        own.iter().filter_map(|numbers| row_of.get(numbers.as_slice()).copied()).collect();
    let mut is_taken = vec![false; labels.len()];
    // Each label image once: then they are all of them, since there are as many.
    let is_whole =
        found.len() == images.len() && found.iter().all(|&row| !std::mem::replace(&mut is_taken[row], true));
    if is_whole { ByNumbers::Found(found) } else { ByNumbers::Contradict(first) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(images: &[&str], labels: &[&str]) -> ByNumbers {
        let [images, labels] =
            [images, labels].map(|names| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        of_names(&images, &labels)
    }

    #[test]
    fn the_same_numbers_are_of_each_other() {
        let images = ["img_1", "img_10", "img_2"];
        for labels in [["001", "002", "010"], ["mask_001", "mask_002", "mask_010"], ["t2_1", "t2_2", "t2_10"]]
        {
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
}
