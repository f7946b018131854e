//! Which label image is of which image by the numbers in their names, where words tell nothing.
//!
//! ```text
//!  exp2_img_1  exp2_img_10  exp2_img_2     numbers of each name ─ those that all names share left out ─▶ 1   10  2
//!  mask_001    mask_002     mask_010                                                                  ─▶ 1   2   10
//!                                                               the same numbers on both sides ─▶ pairs: 0  2  1
//! ```
//!
//! Order tells nothing there: `img_10` comes before `img_2`, and `010` after `002`. Folders count as the last part of
//! a name does: `A2/1` and `A02_1_mask` are of one well. Two sets whose columns have the same words
//! (`r01c02`, `c02r01`) are compared column by column, others in the order of their columns.

use super::folders::Folders;
use super::name_numbers::{Column, Numbers, numbers_of, words_of};
use super::pairs::stem_of;
use crate::each_row;
use crate::profiles::parts;
use crate::{Result, Store};
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// The result of comparing the numbers in names of two sets of equally many images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ByNumbers {
    /// Nothing: one set's names have no numbers that tell its images apart, or both have the same ones more than once.
    Silent,
    /// They are the same in each two of one place, and in no others.
    InOrder,
    /// The row of the label image of each image.
    Found(Vec<usize>),
    /// They are other ones, or not so many, or are there twice: the first image whose place has another number.
    Contradict(usize),
    /// The label image that would be of this image has a word of another image's name, or lies in another folder.
    OtherWords(usize),
}

/// Columns of which some are left out at most, where the other set has fewer.
const MAX_CHOSEN: usize = 6;

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
    let found = match (Numbers::of(images), Numbers::of(labels)) {
        (Numbers::None, _) | (_, Numbers::None) => ByNumbers::Silent,
        (Numbers::Each(own), Numbers::Each(theirs)) => of_columns(&own, &theirs),
        // Words may still tell, but not where there are none.
        _ if are_all_numbers(images) || are_all_numbers(labels) => ByNumbers::Contradict(0),
        _ => first_apart(images, labels).map_or(ByNumbers::Silent, ByNumbers::Contradict),
    };
    let other = match &found {
        ByNumbers::Contradict(_) | ByNumbers::OtherWords(_) => None,
        ByNumbers::Found(rows) => first_of_other_words(images, labels, |image| rows[image]),
        ByNumbers::Silent | ByNumbers::InOrder => first_of_other_words(images, labels, |image| image),
    };
    other.map_or(found, ByNumbers::OtherWords)
}

/// Whether the names of a set are nothing but numbers.
fn are_all_numbers(names: &[String]) -> bool {
    names
        .iter()
        .map(|name| stem_of(name))
        .all(|stem| !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_digit()))
}

fn of_columns(own: &[Column<'_>], theirs: &[Column<'_>]) -> ByNumbers {
    let arity = own.len().min(theirs.len());
    let mut found: Vec<Vec<usize>> = vec![];
    for ours in choices(own, arity) {
        for others in choices(theirs, arity) {
            if let Some(rows) = aligned(&ours, &others).and_then(|others| matching(&ours, &others))
                && !found.contains(&rows)
            {
                found.push(rows);
            }
        }
    }
    let is_order = |rows: &[usize]| rows.iter().enumerate().all(|(image, &row)| image == row);
    match <[Vec<usize>; 1]>::try_from(found) {
        Ok([rows]) if is_order(&rows) => ByNumbers::InOrder,
        Ok([rows]) => ByNumbers::Found(rows),
        // One of several ways would be a guess.
        Err(ways) => {
            let apart = first_other(own, theirs);
            let both = |is: fn(&Column<'_>) -> bool| own.iter().any(is) && theirs.iter().any(is);
            // The letters of one set and the numbers of another may be of different things.
            let may_be_compared = both(|column| column.is_letter) || both(|column| !column.is_letter);
            match apart {
                _ if !ways.is_empty() => ByNumbers::Contradict(apart.unwrap_or(0)),
                Some(row) if may_be_compared => ByNumbers::Contradict(row),
                _ => ByNumbers::Silent,
            }
        }
    }
}

/// The first image whose numbers are not those of the label image in its place; 0 where these cannot be compared.
fn first_other(own: &[Column<'_>], theirs: &[Column<'_>]) -> Option<usize> {
    if own.len() != theirs.len() {
        return Some(0);
    }
    let own: Vec<&Column<'_>> = own.iter().collect();
    let theirs: Vec<&Column<'_>> = theirs.iter().collect();
    let Some(theirs) = aligned(&own, &theirs) else { return Some(0) };
    let rows = own.first().map_or(0, |column| column.values.len());
    (0..rows).find(|&row| own.iter().zip(&theirs).any(|(a, b)| a.values[row] != b.values[row]))
}

/// The columns of a set, or each choice of so many of them, in their order.
fn choices<'c>(columns: &'c [Column<'c>], arity: usize) -> Vec<Vec<&'c Column<'c>>> {
    if columns.len() == arity {
        return vec![columns.iter().collect()];
    }
    if columns.len() > MAX_CHOSEN {
        return vec![];
    }
    let chosen = (0_u32..1 << columns.len()).filter(|bits| bits.count_ones() as usize == arity);
    let of_bits = |bits: u32| -> Vec<&'c Column<'c>> {
        let each = columns.iter().enumerate();
        each.filter(|(place, _)| (bits >> place) & 1 == 1).map(|(_, column)| column).collect()
    };
    chosen.map(of_bits).collect()
}

/// The columns of label images in the order of those of images: those of the same word first, the rest in their order.
/// `None` where a letter would stand beside a number that is no row's.
fn aligned<'c>(own: &[&Column<'_>], theirs: &[&'c Column<'c>]) -> Option<Vec<&'c Column<'c>>> {
    fn only(columns: &[&Column<'_>], word: &str) -> Option<usize> {
        let mut places = (0..columns.len()).filter(|&at| columns[at].word.as_deref() == Some(word));
        places.next().filter(|_| places.next().is_none())
    }
    let by_word = |column: &&Column<'_>| {
        let word = column.word.as_deref()?;
        only(own, word)?;
        only(theirs, word)
    };
    let of_word: Vec<Option<usize>> = own.iter().map(by_word).collect();
    let mut rest = (0..theirs.len()).filter(|at| !of_word.contains(&Some(*at)));
    let places = of_word.iter().map(|at| at.or_else(|| rest.next())).collect::<Option<Vec<usize>>>()?;
    let found: Vec<&'c Column<'c>> = places.iter().map(|&at| theirs[at]).collect();
    let has_letters = |columns: &[&Column<'_>]| columns.iter().any(|column| column.is_letter);
    let both_have_letters = has_letters(own) && has_letters(&found);
    // The column of a well comes next to the letter of its row; numbers without words are then in the same order.
    let begins_well = |columns: &[&Column<'_>], at: usize| {
        columns.len() == 1 || columns.get(at + 1).is_some_and(|next| next.word.as_deref() == Some("c"))
    };
    for (at, (a, b)) in own.iter().zip(&found).enumerate() {
        if a.is_letter == b.is_letter {
            continue;
        }
        let is_row = a.word == b.word
            || if a.is_letter { begins_well(own, at) } else { begins_well(theirs, places[at]) };
        if both_have_letters || !is_row {
            return None;
        }
    }
    Some(found)
}

/// The row of the label image with the numbers of each image; `None` unless each has one of its own.
fn matching(own: &[&Column<'_>], theirs: &[&Column<'_>]) -> Option<Vec<usize>> {
    fn key<'a>(columns: &[&Column<'a>], row: usize) -> Vec<&'a str> {
        columns.iter().map(|column| column.values[row]).collect()
    }
    let rows = own.first()?.values.len();
    let mut row_of = HashMap::new();
    for row in 0..rows {
        if row_of.insert(key(theirs, row), row).is_some() {
            return None;
        }
    }
    // Each label image goes once: then they are all of them, since there are as many.
    (0..rows).map(|row| row_of.remove(&key(own, row))).collect()
}

/// The items of each name that not all names have.
fn distinguishing<T: Clone + Eq + Hash>(mut names: Vec<HashSet<T>>) -> Vec<HashSet<T>> {
    let mut common = names.first().cloned().unwrap_or_default();
    for name in &names {
        common.retain(|item| name.contains(item));
    }
    for name in &mut names {
        name.retain(|item| !common.contains(item));
    }
    names
}

/// The first image of which no number is in the label image in its place, where both have some.
fn first_apart(images: &[String], labels: &[String]) -> Option<usize> {
    let [own, theirs] =
        [images, labels].map(|names| distinguishing(names.iter().map(|name| numbers_of(name)).collect()));
    own.iter().zip(&theirs).position(|(a, b)| !a.is_empty() && !b.is_empty() && a.is_disjoint(b))
}

/// The first image whose label image has a word of another image's name, and not of its own: `drug_mask` is not of `ctrl`.
/// Or it lies in another folder of both sets.
fn first_of_other_words(
    images: &[String],
    labels: &[String],
    row_of: impl Fn(usize) -> usize,
) -> Option<usize> {
    let [own, theirs] =
        [images, labels].map(|names| distinguishing(names.iter().map(|name| words_of(name)).collect()));
    let known: HashSet<&String> = own.iter().flatten().collect();
    let [images_in, labels_in] =
        [images, labels].map(|names| names.iter().map(|name| parts(name)).collect::<Vec<_>>());
    let folders = Folders::of(&images_in, &labels_in);
    let is_other = |image: &usize| {
        let label = row_of(*image);
        let mut words = theirs[label].iter();
        words.any(|word| known.contains(word) && !own[*image].contains(word))
            || folders.have_other_words(&images_in[*image], &labels_in[label])
    };
    (0..images.len()).find(is_other)
}

#[cfg(test)]
mod tests;
