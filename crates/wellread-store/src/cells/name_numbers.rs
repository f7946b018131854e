//! The numbers of names, and the letters of wells, that tell the images of a set apart.
//!
//! ```text
//!  P_A01_s1    P_A02_s1    P_B01_s1     the whole name, folders included
//!  A 1   1     A 2   1     B 1   1      letters of rows of a plate, and numbers without zeros in front
//!  A 1         A 2         B 1          columns of the set: those that all names share are left out
//!  1 1         1 2         2 1          a letter is the number of its row
//! ```
//!
//! The word of a column says what it counts: `r` and `c` of `r01c02`, `s` of `site_3`. A letter has the word `r`.

use crate::profiles;
use crate::sites::row_number;
use std::collections::HashSet;

/// The numbers of rows of a plate, A to AF.
const ROWS: [&str; 32] = [
    "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19",
    "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31", "32",
];

/// The number of the row of a plate that letters name.
fn row_of(letters: &str) -> Option<&'static str> {
    let is_row = match letters.as_bytes() {
        [letter] => letter.is_ascii_alphabetic(),
        letters => letters.len() == 2 && letters.iter().all(u8::is_ascii_uppercase),
    };
    is_row.then(|| ROWS.get(row_number(letters) as usize - 1).copied()).flatten()
}

/// A kind of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Digits,
    Letters,
    Other,
}

impl Class {
    fn of(c: char) -> Self {
        if c.is_ascii_digit() {
            Self::Digits
        } else if c.is_alphabetic() {
            Self::Letters
        } else {
            Self::Other
        }
    }
}

/// The parts of a name as runs of characters of one kind, with a separator before each part.
fn runs<'a>(parts: &[&'a str]) -> Vec<(Class, &'a str)> {
    let mut found = vec![];
    for &part in parts {
        found.push((Class::Other, "/"));
        let (mut start, mut last) = (0, None);
        for (at, c) in part.char_indices() {
            let class = Class::of(c);
            if let Some(before) = last.replace(class)
                && before != class
            {
                found.push((before, &part[start..at]));
                start = at;
            }
        }
        found.extend(last.map(|class| (class, &part[start..])));
    }
    found
}

/// A number of a name, or the letter of a row.
#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    is_letter: bool,
    /// Without zeros in front; of a letter its row.
    value: &'a str,
    /// The letters before a number: `site` of `site_3`.
    word: &'a str,
    /// Whether a number stands where the column of a well does: after the letter of the row.
    follows_letter: bool,
}

fn tokens<'a>(parts: &[&'a str]) -> Vec<Token<'a>> {
    let runs = runs(parts);
    let is = |at: usize, class: Class| runs.get(at).is_some_and(|run| run.0 == class);
    let mut found = vec![];
    let mut last_letter = None;
    for (at, &(class, text)) in runs.iter().enumerate() {
        let before = |steps: usize| at.checked_sub(steps).and_then(|at| runs.get(at));
        if class == Class::Digits {
            let word = match (before(1), before(2)) {
                (Some((Class::Letters, word)), _)
                | (Some((Class::Other, "_" | "-" | " ")), Some((Class::Letters, word))) => *word,
                _ => "",
            };
            let value = match text.trim_start_matches('0') {
                "" => "0",
                number => number,
            };
            // In `1_A_2` the column may stand before the row.
            let follows_letter = last_letter.is_some_and(|letter: usize| {
                let follows_number = letter.checked_sub(2).is_some_and(|at| is(at, Class::Digits));
                letter + 1 == at || (letter + 2 == at && !follows_number)
            });
            found.push(Token { is_letter: false, value, word, follows_letter });
        } else if class == Class::Letters && is(at - 1, Class::Other) {
            let is_apart = || {
                let separator = runs.get(at + 1).map_or("", |run| run.1);
                is(at + 1, Class::Other) && separator.len() == 1 && is(at + 2, Class::Digits)
            };
            let is_upper = text.bytes().all(|byte| byte.is_ascii_uppercase());
            if (is(at + 1, Class::Digits) || (is_upper && is_apart()))
                && let Some(value) = row_of(text)
            {
                found.push(Token { is_letter: true, value, word: "", follows_letter: false });
                last_letter = Some(at);
            }
        }
    }
    found
}

/// Numbers or letters that tell the names of a set apart: one of each name.
#[derive(Debug)]
pub(super) struct Column<'a> {
    /// Whether letters of rows stand for these numbers.
    pub is_letter: bool,
    /// The thing that it counts, where names tell: `r` for rows, `c` for columns, `s` for sites, or the word before it.
    pub word: Option<String>,
    /// The number in each name.
    pub values: Vec<&'a str>,
}

/// The numbers that tell the names of one set apart.
#[derive(Debug)]
pub(super) enum Numbers<'a> {
    /// There are none.
    None,
    /// Names have several, some more than others.
    Uneven,
    /// Equally many of each name.
    Each(Vec<Column<'a>>),
}

impl<'a> Numbers<'a> {
    /// Those of whole names; where some have more of them than others, those of the last parts.
    pub fn of(names: &'a [String]) -> Self {
        if names.is_empty() {
            return Self::None;
        }
        let parts: Vec<Vec<&'a str>> = names.iter().map(|name| profiles::parts(name)).collect();
        let whole: Vec<Vec<Token<'a>>> = parts.iter().map(|parts| tokens(parts)).collect();
        let even = columns(&whole).or_else(|| columns(&without_letters(&whole)));
        if let Some(columns) = even {
            return if columns.is_empty() { Self::None } else { Self::Each(columns) };
        }
        let last: Vec<Vec<Token<'a>>> =
            parts.iter().map(|parts| tokens(&parts[parts.len().saturating_sub(1)..])).collect();
        match columns(&without_letters(&last)) {
            Some(columns) if !columns.is_empty() => Self::Each(columns),
            _ => Self::Uneven,
        }
    }
}

fn without_letters<'a>(names: &[Vec<Token<'a>>]) -> Vec<Vec<Token<'a>>> {
    let numbers = |name: &Vec<Token<'a>>| -> Vec<Token<'a>> {
        name.iter().filter(|token| !token.is_letter).copied().collect()
    };
    names.iter().map(numbers).collect()
}

/// The columns that differ among names; `None` where some names have more tokens than others.
fn columns<'a>(names: &[Vec<Token<'a>>]) -> Option<Vec<Column<'a>>> {
    let first = names.first()?;
    for name in names {
        let is_other = name.iter().zip(first).any(|(a, b)| a.is_letter != b.is_letter);
        if is_other || name.len() != first.len() {
            return None;
        }
    }
    let differs: Vec<bool> = (0..first.len())
        .map(|place| names.iter().any(|name| name[place].value != first[place].value))
        .collect();
    let of_place = |place: usize| {
        let Token { is_letter, word, .. } = first[place];
        let is_of_well = place > 0 && first[place - 1].is_letter && differs[place - 1];
        let has_word = || names.iter().all(|name| name[place].word.eq_ignore_ascii_case(word));
        let word = if is_letter {
            Some("r".to_owned())
        } else if is_of_well && names.iter().all(|name| name[place].follows_letter) {
            Some("c".to_owned())
        } else if !word.is_empty() && has_word() {
            Some(usual(word))
        } else {
            None
        };
        Column { is_letter, word, values: names.iter().map(|name| name[place].value).collect() }
    };
    Some((0..first.len()).filter(|&place| differs[place]).map(of_place).collect())
}

/// One word for those that mean the same.
fn usual(word: &str) -> String {
    let lower = word.to_lowercase();
    let usual = match lower.as_str() {
        "row" => "r",
        "col" | "column" => "c",
        "site" | "field" | "fov" | "f" => "s",
        other => other,
    };
    usual.to_owned()
}

/// All numbers of a name, without zeros in front.
pub(super) fn numbers_of(name: &str) -> HashSet<&str> {
    let tokens = tokens(&profiles::parts(name));
    tokens.into_iter().filter(|token| !token.is_letter).map(|token| token.value).collect()
}

/// All words of a name, of two letters or more, in small letters.
pub(super) fn words_of(name: &str) -> HashSet<String> {
    let runs = runs(&profiles::parts(name)).into_iter();
    let words = runs.filter(|(class, text)| *class == Class::Letters && text.chars().nth(1).is_some());
    words.map(|(_, text)| text.to_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each column: its word, and its values.
    fn of(names: &[&str]) -> Vec<(Option<String>, Vec<String>)> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        match Numbers::of(&names) {
            Numbers::Each(columns) => {
                let owned = |values: Vec<&str>| values.into_iter().map(str::to_owned).collect();
                columns.into_iter().map(|column| (column.word, owned(column.values))).collect()
            }
            Numbers::None => vec![],
            Numbers::Uneven => panic!("uneven"),
        }
    }

    fn column(word: &str, values: [&str; 2]) -> (Option<String>, Vec<String>) {
        ((!word.is_empty()).then(|| word.to_owned()), values.map(str::to_owned).to_vec())
    }

    #[test]
    fn columns_know_rows_columns_and_sites() {
        for names in
            [["r01c02f03", "r02c01f04"], ["row1_col2_site3", "row2_col1_site4"], ["P1/A02_s3", "P1/B1_s4"]]
        {
            let wells = [column("r", ["1", "2"]), column("c", ["2", "1"]), column("s", ["3", "4"])];
            assert_eq!(of(&names), wells, "{names:?}");
        }
        assert_eq!(of(&["A/2/0", "AB/10/0"]), [column("r", ["1", "28"]), column("c", ["2", "10"])]);
        // The number before the letter may be the column.
        assert_eq!(
            of(&["01_A_1", "02_B_2"]),
            [column("", ["1", "2"]), column("r", ["1", "2"]), column("", ["1", "2"])]
        );
        assert_eq!(of(&["A/1/0", "A/10/0"]), [column("", ["1", "10"])]);
        assert_eq!(of(&["img_007", "img_8"]), [column("img", ["7", "8"])]);
        assert!(of(&["a_2", "b_2"]).is_empty());
    }

    #[test]
    fn names_with_more_numbers_than_others_have_those_of_their_last_parts() {
        assert_eq!(of(&["x/m1", "y2/m3"]), [column("m", ["1", "3"])]);
        let names = ["A1/1", "A2_x3/1"].map(str::to_owned);
        assert!(matches!(Numbers::of(&names), Numbers::Uneven));
    }
}
