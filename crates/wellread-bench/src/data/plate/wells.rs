//! Sizes of plates, names of wells, and which well gets what.
//!
//! ```text
//!        1      2      3      4
//!  A   DMSO   3 µM   DMSO   10 µM      wells with and without the compound alternate, so that neither
//!  B   3 µM   DMSO   10 µM  DMSO       row, column nor border tells what a cell was given
//! ```

use std::fmt;
use std::str::FromStr;

/// Rows and columns of the largest plate there is, 1536 wells.
const LARGEST_PLATE: [usize; 2] = [32, 48];

/// Rows and columns of wells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlateSize {
    rows: usize,
    columns: usize,
}

impl PlateSize {
    /// Rows of wells.
    pub const fn rows(self) -> usize {
        self.rows
    }

    /// Columns of wells.
    pub const fn columns(self) -> usize {
        self.columns
    }

    /// Number of wells.
    pub const fn wells(self) -> usize {
        self.rows * self.columns
    }

    /// The well of a number, row by row.
    pub(super) const fn well(self, number: usize) -> Well {
        Well { row: number / self.columns, column: number % self.columns }
    }

    /// All wells, row by row.
    pub(super) fn all(self) -> impl Iterator<Item = Well> {
        (0..self.wells()).map(move |number| self.well(number))
    }
}

impl fmt::Display for PlateSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rows, self.columns)
    }
}

impl FromStr for PlateSize {
    type Err = String;

    /// The number of wells of a plate that is sold, or `ROWSxCOLUMNS`.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<usize>().ok().filter(|&n| n > 0);
        let [rows, columns] = match text.trim() {
            "6" => [2, 3],
            "24" => [4, 6],
            "96" => [8, 12],
            "384" => [16, 24],
            "1536" => LARGEST_PLATE,
            other => other
                .split_once(['x', 'X'])
                .and_then(|(rows, columns)| Some([number(rows)?, number(columns)?]))
                .filter(|[rows, columns]| *rows <= LARGEST_PLATE[0] && *columns <= LARGEST_PLATE[1])
                .ok_or_else(|| {
                    format!(
                        "{text:?} is no plate: give 6, 24, 96, 384 or 1536 wells, or ROWSxCOLUMNS up to {}x{}",
                        LARGEST_PLATE[0], LARGEST_PLATE[1]
                    )
                })?,
        };
        Ok(Self { rows, columns })
    }
}

/// A well, by its row and column from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Well {
    pub row: usize,
    pub column: usize,
}

/// The compound that the cells of a well were given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Treatment {
    pub compound: &'static str,
    /// In micromoles per litre.
    pub dose: f64,
    /// How much it changes the cells, from 0 to 1.
    pub effect: f32,
}

const CONTROL: Treatment = Treatment { compound: "DMSO", dose: 0.0, effect: 0.0 };
const DOSES: [Treatment; 2] = [
    Treatment { compound: "compound", dose: 3.0, effect: 0.75 },
    Treatment { compound: "compound", dose: 10.0, effect: 1.0 },
];

impl Well {
    /// Letters of the row: A, …, Z, AA, ….
    pub fn letters(self) -> String {
        let letter = |n: usize| char::from(b'A' + (n % 26) as u8);
        match self.row {
            row @ 0..26 => letter(row).to_string(),
            row => format!("{}{}", letter(row / 26 - 1), letter(row)),
        }
    }

    /// Its name, such as `A01`.
    pub fn name(self) -> String {
        format!("{}{:02}", self.letters(), self.column + 1)
    }

    /// The compound that its cells were given.
    pub fn treatment(self) -> Treatment {
        let diagonal = self.row + self.column;
        if diagonal.is_multiple_of(2) { CONTROL } else { DOSES[diagonal / 2 % DOSES.len()] }
    }
}

/// A field of view of a well, by its number from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Site {
    pub well: Well,
    pub field: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plates_are_told_by_wells_or_by_rows_and_columns() {
        let size = |text: &str| text.parse::<PlateSize>().map(|size| (size.to_string(), size.wells()));
        assert_eq!(size("384"), Ok(("16x24".to_owned(), 384)));
        assert_eq!(size("2x3"), Ok(("2x3".to_owned(), 6)));
        assert_eq!(size("6"), size("2X3"));
        for wrong in ["", "0x3", "33x2", "2x49", "100", "x", "-1x2"] {
            let error = size(wrong).unwrap_err();
            assert!(error.ends_with("or ROWSxCOLUMNS up to 32x48"), "{error}");
        }
    }

    #[test]
    fn wells_have_their_names() {
        let plate: PlateSize = "1536".parse().unwrap();
        let names: Vec<String> = [0, 1, 48, 25 * 48, 26 * 48, 1535].map(|n| plate.well(n).name()).to_vec();
        assert_eq!(names, ["A01", "A02", "B01", "Z01", "AA01", "AF48"]);
    }

    #[test]
    fn half_of_the_wells_are_controls() {
        let plate: PlateSize = "96".parse().unwrap();
        let doses: Vec<f64> = plate.all().map(|well| well.treatment().dose).collect();
        assert_eq!(doses[..5], [0.0, 3.0, 0.0, 10.0, 0.0]);
        let count = |dose: f64| doses.iter().filter(|&&other| other == dose).count();
        assert_eq!((count(0.0), count(3.0), count(10.0)), (48, 24, 24));
    }
}
