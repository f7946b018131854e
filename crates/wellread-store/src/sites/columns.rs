//! Columns beside sites: plate, well, site and what else the names or a table say.

use crate::features::{PLATE, SITE, WELL};
use crate::file_names::decoded;
use crate::text_columns::{self, Kinds};
use arrow_array::{ArrayRef, Int64Array, StringArray};
use std::sync::Arc;

/// The type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Whole,
    /// The narrowest one, as tables of cells have it.
    Narrowest(Kinds),
}

/// A column, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextColumn {
    pub name: String,
    /// A value for each site.
    pub values: Vec<Option<String>>,
    kind: Kind,
}

impl TextColumn {
    /// A column of text.
    pub fn new(name: &str, values: Vec<Option<String>>) -> Self {
        Self { name: name.to_owned(), values, kind: Kind::Text }
    }

    /// As whole numbers, where all values are; else as before. Digits of a plate's barcode are no number. Tables may write whole numbers as
    /// pandas does beside missing values (1.0, NA).
    pub fn into_numbers(mut self) -> Self {
        let is_of_table = matches!(self.kind, Kind::Narrowest(_));
        let known = |value: &&String| !is_of_table || text_columns::value(value).is_some();
        let is_whole =
            |value: &String| if is_of_table { whole(value).is_some() } else { value.parse::<i64>().is_ok() };
        let mut values = self.values.iter().flatten().filter(known).peekable();
        if values.peek().is_some() && values.all(is_whole) {
            self.kind = Kind::Whole;
        }
        self
    }

    /// In the narrowest type that fits all values, as tables of cells have it ([`Kinds`]). A column without a value is one of text:
    /// another plate may have names there.
    pub fn typed(mut self, kinds: Kinds) -> Self {
        if kinds.has_some() {
            self.kind = Kind::Narrowest(kinds);
        } else {
            self.values.fill(None);
        }
        self
    }

    /// The column of these sites only.
    pub fn of(&self, sites: &[usize]) -> Self {
        let values = sites.iter().map(|&site| self.values.get(site).cloned().flatten()).collect();
        Self { name: self.name.clone(), values, kind: self.kind }
    }

    /// As Arrow has it.
    pub fn array(&self) -> ArrayRef {
        let values = self.values.iter().map(Option::as_deref);
        match self.kind {
            Kind::Text => Arc::new(values.collect::<StringArray>()),
            Kind::Whole => Arc::new(values.map(|value| whole(value?)).collect::<Int64Array>()),
            Kind::Narrowest(kinds) => kinds.array(values.map(Option::unwrap_or_default)),
        }
    }
}

/// A whole number, also with zeros behind a point.
fn whole(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = match text.split_once('.') {
        Some((digits, zeros)) if zeros.bytes().all(|zero| zero == b'0') => digits,
        _ => text,
    };
    digits.parse().ok()
}

/// The columns with sites as numbers, as CellProfiler has them.
pub(super) fn numbered(columns: Vec<TextColumn>) -> Vec<TextColumn> {
    let number = |column: TextColumn| if column.name == SITE { column.into_numbers() } else { column };
    columns.into_iter().map(number).collect()
}

/// The plate that a folder's name or path tells: the folder itself, or the value of its key where it is a hive partition. `BR1` is that
/// of `plate=BR1`, and of `plate=BR1/Images`.
pub(super) fn plate_of(folder: String) -> String {
    let is_plate = |key: &str| key.eq_ignore_ascii_case("plate") || key.eq_ignore_ascii_case(PLATE);
    let mut keyed = folder.rsplit('/').filter_map(|name| name.split_once('='));
    let found = keyed.find(|(key, value)| is_plate(key) && !value.is_empty());
    let plate = found.map(|(_, value)| decoded(value));
    plate.unwrap_or(folder)
}

/// Whether a column of a table has names of plates or wells, or barcodes. Those of another plate may have letters, or zeros in front.
pub(super) fn is_identifier(name: &str) -> bool {
    [PLATE, WELL].contains(&name) || name.to_ascii_lowercase().contains("barcode")
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type, UInt64Type};

    #[test]
    fn columns_of_tables_have_the_narrowest_type() {
        let of = |values: [&str; 2]| {
            let mut kinds = Kinds::new(false);
            for value in values {
                kinds.observe(value);
            }
            let values = values.iter().map(|&value| Some(value.to_owned()).filter(|value| !value.is_empty()));
            TextColumn::new("Metadata_Dose", values.collect()).typed(kinds)
        };
        assert_eq!(of(["0", "-3"]).array().as_primitive::<Int64Type>().values(), &[0, -3]);
        let doses = of(["0.5", "NA"]).array();
        assert_eq!((doses.as_primitive::<Float64Type>().value(0), doses.is_null(1)), (0.5, true));
        assert!(of(["", "2"]).array().is_null(0));
        // Identifiers of 20 digits: a float has the same for both.
        let whole = [12_345_678_901_234_567_890, 12_345_678_901_234_567_891];
        let texts = whole.map(|value: u64| value.to_string());
        let identifiers = of([texts[0].as_str(), texts[1].as_str()]);
        assert_eq!(identifiers.array().as_primitive::<UInt64Type>().values(), &whole);
        assert_eq!(identifiers.of(&[1]).array().as_primitive::<UInt64Type>().values(), &whole[1..]);
        for text in [
            ["01", "2"],
            ["0012", "1234"],
            ["+012", "1"],
            ["0012E4", "1E5"],
            ["A01", "2"],
            ["123456789012345678901", "2"],
            ["A01", "NA"],
        ] {
            assert_eq!(of(text).array().as_string::<i32>().value(0), text[0]);
        }
        assert!(of(["True", "false"]).array().as_boolean().value(0));
        assert!(of(["A01", "NA"]).array().is_null(1));
        assert_eq!(of(["NA", "nan"]).array().as_string::<i32>().null_count(), 2);
    }

    #[test]
    fn plates_are_values_of_partitions() {
        for (folder, plate) in [
            ("BR1", "BR1"),
            ("plate=BR1", "BR1"),
            ("screen/Metadata_Plate=BR%201/Images", "BR 1"),
            ("plate=BR1/Plate=BR2", "BR2"),
            ("dose=3", "dose=3"),
            ("plate=", "plate="),
            ("screen/BR1", "screen/BR1"),
        ] {
            assert_eq!(plate_of(folder.to_owned()), plate);
        }
    }

    #[test]
    fn plates_wells_and_barcodes_are_identifiers() {
        for name in [PLATE, WELL, "Metadata_Barcode", "Metadata_Assay_Plate_Barcode", "Metadata_barcode_2"] {
            assert!(is_identifier(name), "{name}");
        }
        assert!(!is_identifier(SITE) && !is_identifier("Metadata_Dose"));
    }

    #[test]
    fn sites_are_numbers_where_all_are() {
        let column = |name: &str, values: [&str; 2]| {
            TextColumn::new(name, values.iter().map(|&value| Some(value.to_owned())).collect())
        };
        let columns = numbered(vec![column(SITE, ["01", "10"]), column("Metadata_Plate", ["01", "10"])]);
        assert_eq!(columns[0].array().as_primitive::<Int64Type>().values(), &[1, 10]);
        assert_eq!(columns[1].array().as_string::<i32>().value(0), "01");
        let mixed = numbered(vec![column(SITE, ["1", "a"])]);
        assert_eq!(mixed[0].of(&[1]).array().as_string::<i32>().value(0), "a");
        assert!(mixed[0].of(&[7]).array().is_null(0));
        // Names of files are no numbers of pandas.
        let versions = numbered(vec![column(SITE, ["1.0", "2.0"])]);
        assert_eq!(versions[0].array().as_string::<i32>().value(0), "1.0");
    }

    #[test]
    fn sites_of_tables_are_numbers_however_they_are_written() {
        let site = |values: [&str; 2]| {
            let mut kinds = Kinds::new(false);
            for value in values {
                kinds.observe(value);
            }
            let texts = values.iter().map(|&value| Some(value.to_owned())).collect();
            numbered(vec![TextColumn::new(SITE, texts).typed(kinds)])[0].array()
        };
        assert_eq!(site(["1.0", "2.0"]).as_primitive::<Int64Type>().values(), &[1, 2]);
        assert_eq!(site(["01", "10"]).as_primitive::<Int64Type>().values(), &[1, 10]);
        let lacking = site(["3.0", "NA"]);
        assert_eq!((lacking.as_primitive::<Int64Type>().value(0), lacking.is_null(1)), (3, true));
        // As any other column of a table.
        assert_eq!(site(["1.5", "2.0"]).as_primitive::<Float64Type>().values(), &[1.5, 2.0]);
        assert_eq!(site(["1", "a"]).as_string::<i32>().value(1), "a");
    }
}
