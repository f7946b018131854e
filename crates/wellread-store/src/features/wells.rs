//! Names of wells by the numbers of their row and column: `A01`.

/// The letters of a row of wells: 1 is A, 27 AA. `None` for 0, and for more rows than plates have.
pub(crate) fn row_letters(number: u32) -> Option<String> {
    match number {
        1..=26 => Some(char::from(b'A' + (number - 1) as u8).to_string()),
        27..=702 => {
            let (first, second) = ((number - 27) / 26, (number - 27) % 26);
            Some([first, second].iter().map(|&n| char::from(b'A' + n as u8)).collect())
        }
        _ => None,
    }
}

/// The name of the well in this row and column, both from 0. `None` for rows and columns that no plate has.
#[cfg(feature = "tiff")]
pub(crate) fn well_at(row: u32, column: u32) -> Option<String> {
    let letters = row_letters(row.checked_add(1)?)?;
    (column < 999).then(|| format!("{letters}{:02}", column + 1))
}

#[cfg(all(test, feature = "tiff"))]
mod tests {
    use super::*;

    #[test]
    fn wells_are_called_by_their_row_and_column() {
        assert_eq!((well_at(0, 0).as_deref(), well_at(15, 23).as_deref()), (Some("A01"), Some("P24")));
        assert_eq!((well_at(31, 47).as_deref(), well_at(701, 998).as_deref()), (Some("AF48"), Some("ZZ999")));
        assert_eq!((well_at(702, 0), well_at(0, 999)), (None, None));
        assert_eq!((well_at(u32::MAX, 0), well_at(0, u32::MAX)), (None, None));
    }
}
