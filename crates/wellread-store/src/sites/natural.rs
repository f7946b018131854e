//! The order that people expect of numbered names: `A2` before `A10`, `s9` before `s10`.

use crate::features::row_letters;
use std::cmp::Ordering;

/// Compares texts, runs of digits as numbers of any length. Texts that differ in zeros in front alone are told apart by bytes,
/// so that only equal texts are equal.
pub(super) fn compare(a: &str, b: &str) -> Ordering {
    let (mut x, mut y) = (a.as_bytes(), b.as_bytes());
    loop {
        let (Some(&first), Some(&second)) = (x.first(), y.first()) else {
            return x.len().cmp(&y.len()).then_with(|| a.cmp(b));
        };
        let order = if first.is_ascii_digit() && second.is_ascii_digit() {
            let (n, m) = (number(&mut x), number(&mut y));
            n.len().cmp(&m.len()).then_with(|| n.cmp(m))
        } else {
            (x, y) = (&x[1..], &y[1..]);
            first.cmp(&second)
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Takes the digits that a text begins with, without zeros in front.
fn number<'t>(text: &mut &'t [u8]) -> &'t [u8] {
    let whole = *text;
    let length = whole.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let zeros = whole[..length].iter().take_while(|&&byte| byte == b'0').count();
    *text = &whole[length..];
    &whole[zeros..length]
}

/// A well's row and column, where the text is one (`A01`, `p24`, `AB3`): rows count as in a spreadsheet, from 1.
pub(super) fn well(text: &str) -> Option<(u32, u32)> {
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (row, column) = text.split_at(letters);
    let is_well = (1..=2).contains(&letters)
        && (1..=3).contains(&column.len())
        && column.bytes().all(|byte| byte.is_ascii_digit());
    is_well.then(|| (row_number(row), column.parse().unwrap_or(0)))
}

/// Whether a text is a well with its row behind its column, such as `01A`.
pub(super) fn is_turned_well(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (column, row) = text.split_at(digits);
    (1..=3).contains(&digits)
        && matches!(row.len(), 1 | 2)
        && row.bytes().all(|byte| byte.is_ascii_alphabetic())
        && column.bytes().any(|byte| byte != b'0')
}

/// The number of a row of wells by its letters: A is 1, Z 26, AA 27.
pub(crate) fn row_number(letters: &str) -> u32 {
    letters.bytes().fold(0, |n, letter| n * 26 + u32::from(letter.to_ascii_uppercase() - b'A') + 1)
}

/// The name of a well whose row (letters or a number from 1) and column are given apart: `A01`.
pub(super) fn well_name(row: &str, column: &str) -> Option<String> {
    let column: u32 = column.parse().ok().filter(|&column| column < 1000)?;
    let letters = if row.bytes().all(|byte| byte.is_ascii_digit()) {
        row_letters(row.parse().ok()?)?
    } else if row.len() <= 2 && row.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        row.to_ascii_uppercase()
    } else {
        return None;
    };
    Some(format!("{letters}{column:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count() {
        let mut names = ["s10", "s9", "s09", "A", "s", "a", "s9b"];
        names.sort_by(|a, b| compare(a, b));
        assert_eq!(names, ["A", "a", "s", "s09", "s9", "s9b", "s10"]);
        assert_eq!(compare("1", "1"), Ordering::Equal);
        assert_eq!(compare("99999999999999999999999", "100000000000000000000000"), Ordering::Less);
    }

    #[test]
    fn wells_are_read_and_called() {
        assert_eq!((well("A01"), well("b7"), well("AA48")), (Some((1, 1)), Some((2, 7)), Some((27, 48))));
        assert!(["", "A", "01", "ABC1", "A1x", "A-1"].iter().all(|text| well(text).is_none()));
        assert!(["01A", "7b", "48AA", "012H"].iter().all(|text| is_turned_well(text)));
        assert!(
            ["", "01", "A", "A01", "01ABC", "00A", "1A1", "0001A"].iter().all(|text| !is_turned_well(text))
        );
        let name = well_name;
        assert_eq!(name("01", "03").as_deref(), Some("A03"));
        assert_eq!((name("16", "24").as_deref(), name("27", "1").as_deref()), (Some("P24"), Some("AA01")));
        assert_eq!((name("702", "1").as_deref(), name("h", "12").as_deref()), (Some("ZZ01"), Some("H12")));
        assert!(
            [("0", "1"), ("703", "1"), ("A", "x"), ("A.", "1"), ("", "1")]
                .iter()
                .all(|(r, c)| name(r, c).is_none())
        );
    }
}
