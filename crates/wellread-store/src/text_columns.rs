//! CSV and TSV as columns: whole numbers, other numbers, truth values or text, whichever all values of a column are. Whole numbers
//! that no type of 64 bits holds are text, not rounded: they are identifiers. Beside numbers with points, those are text that a float
//! does not hold, such as 9007199254740993. So are numbers that would be infinite, such as 1E400.
//!
//! Where semicolons separate fields, `0,5` is a number, as a European Excel writes it. This holds in columns whose other values are numbers
//! too, and if no column has numbers with points.

use crate::delimited::{self, Delimited};
use crate::{Error, Result};
use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, UInt64Builder};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};
use csv::StringRecord;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a file that is read at most: all of it is in memory before it is columns.
const MAX_BYTES: u64 = 2 << 30;

/// Words for no value, beside nothing: those of pandas, R, SQL, and of formulas of Excel.
const MISSING: [&str; 10] = ["NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None"];

/// Whole numbers of so many digits are all floats of 64 bits.
const EXACT_DIGITS: usize = 15;

/// Endings of tables of text.
const ENDINGS: [&str; 4] = [".csv", ".tsv", ".txt", ".tab"];

/// Whether a file is a table of text, by its name.
pub(crate) fn is_text(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// The columns of a file of lines, the first of which has their names.
///
/// # Errors
/// A file that cannot be read, is too large, has no lines, or has text that is no UTF-8. A line with fewer or more
/// fields than the first, or with a quote that is not closed; these errors name the line.
pub(crate) fn read(path: &Path) -> Result<RecordBatch> {
    let bytes = delimited::read(path, MAX_BYTES)
        .map_err(|e| e.hint("write it as Parquet, with the columns that are needed"))?;
    parse(path, &bytes)
}

/// The first pass finds names and types, the second the values: text is never held twice.
fn parse(path: &Path, bytes: &[u8]) -> Result<RecordBatch> {
    let hinted = |e: Error| e.hint("a table is CSV or TSV with names in its first line, or Parquet");
    let lines = Delimited::of(path, bytes).map_err(hinted)?;
    let names = names(path, &lines.header().map_err(hinted)?)?;
    if let [name] = &names[..]
        && name.contains('|')
    {
        let cause = format_args!(
            "its first line is one field, {name:?}, separated by neither commas, semicolons nor tabs"
        );
        return Err(
            Error::new(path, cause).hint("write commas, semicolons or tabs between fields in place of |")
        );
    }
    let mut types = vec![Kinds::new(lines.has_semicolons()); names.len()];
    let mut rows = 0usize;
    let first = lines.each(|record| {
        rows += 1;
        for (kinds, text) in types.iter_mut().zip(record) {
            kinds.observe(text);
        }
    });
    first.map_err(hinted)?;
    if rows == 0 {
        return Err(Error::new(path, "the table has no rows"));
    }
    settle(&mut types);
    let mut columns: Vec<Column> = types.into_iter().map(Kinds::column).collect();
    let second = lines.each(|record| {
        for (column, text) in columns.iter_mut().zip(record) {
            column.push(value(text));
        }
    });
    second.map_err(hinted)?;
    let arrays: Vec<ArrayRef> = columns.into_iter().map(Column::finish).collect();
    let fields =
        names.into_iter().zip(&arrays).map(|(name, a)| Field::new(name, a.data_type().clone(), true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), arrays).map_err(|e| Error::new(path, e))
}

/// The names of the columns, each of which is another one.
fn names(path: &Path, first: &StringRecord) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::with_capacity(first.len());
    let mut taken = HashSet::with_capacity(first.len());
    for (i, name) in first.iter().enumerate() {
        // The index that pandas writes has no name.
        let name = if name.trim().is_empty() { format!("column {i}") } else { name.trim().to_owned() };
        if !taken.insert(name.clone()) {
            return Err(Error::new(path, format_args!("two columns are called {name:?}")));
        }
        names.push(name);
    }
    Ok(names)
}

/// A field's text; `None` where it stands for no value.
pub(crate) fn value(text: &str) -> Option<&str> {
    let text = text.trim();
    (!text.is_empty() && !MISSING.contains(&text)).then_some(text)
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "True" | "true" | "TRUE" => Some(true),
        "False" | "false" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Whether digits are a code rather than a number: 01 is another site than 1 where both are there. 0012E4 is one, too.
fn is_code(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+']).as_bytes();
    matches!(digits, [b'0', second, ..] if second.is_ascii_digit()) && !text.contains(['.', ','])
}

/// Whether a text is a whole number of any size.
fn is_digits(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Whether a number has the value of its text: all but whole numbers that a float rounds, and numbers that are infinite in a float.
fn is_held(number: f64, text: &str) -> bool {
    if number.is_infinite() {
        return !text.contains(|c: char| c.is_ascii_digit());
    }
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, ""));
    if whole.len() <= EXACT_DIGITS || !is_digits(whole) || fraction.bytes().any(|b| b != b'0') {
        return true;
    }
    // Or as floats are written: the shortest digits, and zeros.
    whole.parse::<i128>().is_ok_and(|whole| number as i128 == whole)
        || number.to_string() == whole.trim_start_matches('+')
}

/// A number with a comma in place of its point.
fn number_with_comma(text: &str) -> Option<f64> {
    let is_one = !text.contains('.') && text.matches(',').count() <= 1;
    if is_one { text.replace(',', ".").parse().ok() } else { None }
}

/// Types that fit every value of a column seen so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kinds {
    whole: bool,
    /// Whole numbers from 0 to 2⁶⁴.
    unsigned: bool,
    /// Whole numbers of any size.
    digits: bool,
    number: bool,
    /// Numbers, some of which may have a comma in place of their point.
    with_comma: bool,
    /// Whether a value has a point.
    has_point: bool,
    truth: bool,
    /// Whether a number is another one as a float.
    rounded: bool,
    some: bool,
}

/// Settles the types of a table's columns once all values were seen. A table that has points in numbers has commas for something else
/// than decimal marks.
pub(crate) fn settle(types: &mut [Kinds]) {
    if types.iter().any(|kinds| kinds.number && kinds.has_point) {
        for kinds in types {
            kinds.with_comma = false;
        }
    }
}

impl Kinds {
    /// The types of a column before its first value; `with_comma` in a table where commas may be decimal marks.
    pub const fn new(with_comma: bool) -> Self {
        Self {
            whole: true,
            unsigned: true,
            digits: true,
            number: true,
            with_comma,
            has_point: false,
            truth: true,
            rounded: false,
            some: false,
        }
    }

    /// Whether a value was seen.
    pub const fn has_some(self) -> bool {
        self.some
    }

    /// The values that were seen, or some of them, in the narrowest type.
    pub fn array<'t>(self, values: impl Iterator<Item = &'t str>) -> ArrayRef {
        let mut column = self.column();
        for text in values {
            column.push(value(text));
        }
        column.finish()
    }

    /// Takes another value into account.
    pub fn observe(&mut self, text: &str) {
        let Some(text) = value(text) else { return };
        self.some = true;
        let number = if self.number && !is_code(text) { text.parse::<f64>().ok() } else { None };
        let with_comma = if self.with_comma && !is_code(text) { number_with_comma(text) } else { None };
        self.number = number.is_some();
        self.with_comma = with_comma.is_some();
        self.rounded = self.rounded || number.or(with_comma).is_some_and(|number| !is_held(number, text));
        self.has_point = self.has_point || text.contains('.');
        self.digits = self.digits && self.number && is_digits(text);
        self.whole = self.whole && self.digits && text.parse::<i64>().is_ok();
        self.unsigned = self.unsigned && self.digits && text.parse::<u64>().is_ok();
        self.truth = self.truth && truth(text).is_some();
    }

    /// An empty column of the narrowest type.
    fn column(self) -> Column {
        match self {
            // A column without a value holds numbers, as in pandas.
            Self { some: false, .. } => Column::Number(Float64Builder::new()),
            Self { whole: true, .. } => Column::Whole(Int64Builder::new()),
            Self { unsigned: true, .. } => Column::Unsigned(UInt64Builder::new()),
            Self { digits: true, .. } | Self { rounded: true, .. } => Column::Text(StringBuilder::new()),
            Self { number: true, .. } => Column::Number(Float64Builder::new()),
            Self { with_comma: true, .. } => Column::NumberWithComma(Float64Builder::new()),
            Self { truth: true, .. } => Column::Truth(BooleanBuilder::new()),
            _ => Column::Text(StringBuilder::new()),
        }
    }
}

/// A column that is read.
enum Column {
    Whole(Int64Builder),
    Unsigned(UInt64Builder),
    Number(Float64Builder),
    NumberWithComma(Float64Builder),
    Truth(BooleanBuilder),
    Text(StringBuilder),
}

impl Column {
    fn push(&mut self, text: Option<&str>) {
        match self {
            Self::Whole(values) => values.append_option(text.and_then(|text| text.parse().ok())),
            Self::Unsigned(values) => values.append_option(text.and_then(|text| text.parse().ok())),
            Self::Number(values) => values.append_option(text.and_then(|text| text.parse().ok())),
            Self::NumberWithComma(values) => values.append_option(text.and_then(number_with_comma)),
            Self::Truth(values) => values.append_option(text.and_then(truth)),
            Self::Text(values) => values.append_option(text),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Whole(mut values) => Arc::new(values.finish()),
            Self::Unsigned(mut values) => Arc::new(values.finish()),
            Self::Number(mut values) | Self::NumberWithComma(mut values) => Arc::new(values.finish()),
            Self::Truth(mut values) => Arc::new(values.finish()),
            Self::Text(mut values) => Arc::new(values.finish()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Float64Array, Int64Array, StringArray, UInt64Array};
    use arrow_schema::DataType;

    fn parsed(text: &str) -> Result<RecordBatch> {
        parse(Path::new("cells.csv"), text.as_bytes())
    }

    #[test]
    fn columns_have_the_narrowest_type() {
        let batch = parsed(
            "\u{feff},Well,Site,x,code,ok,none\n0,A01,1,1.5,01,True,\n1,\"A\"\"0\n2\",2,nan,02,false,NA\n2,,,inf,3,true,#N/A\n3,,<NA>,NULL,n/a,,\n",
        )
        .unwrap();
        let types: Vec<_> =
            batch.schema().fields().iter().map(|f| (f.name().clone(), f.data_type().clone())).collect();
        let expected = [
            ("column 0", DataType::Int64),
            ("Well", DataType::Utf8),
            ("Site", DataType::Int64),
            ("x", DataType::Float64),
            ("code", DataType::Utf8),
            ("ok", DataType::Boolean),
            ("none", DataType::Float64),
        ];
        assert_eq!(types, expected.map(|(name, t)| (name.to_owned(), t)));
        let wells = batch.column(1).as_any().downcast_ref::<StringArray>().unwrap();
        assert_eq!(wells.iter().collect::<Vec<_>>(), [Some("A01"), Some("A\"0\n2"), None, None]);
        assert_eq!(batch.column(3).null_count(), 2);
        assert_eq!(batch.column(6).null_count(), 4);
        assert_eq!(parsed("a\tb\n1\t2\n").unwrap().num_columns(), 2);
        assert_eq!(parsed("a;b,c\n1;2,3\n").unwrap().schema().field(0).name(), "a;b");
    }

    #[test]
    fn commas_are_decimal_marks_between_semicolons() {
        let numbers = |batch: &RecordBatch, column: usize| {
            let values = batch.column(column).as_any().downcast_ref::<Float64Array>().expect("numbers");
            values.iter().collect::<Vec<_>>()
        };
        let batch = parsed("x;y;Well;n;code;list\n0,5;-1,25e3;A01;1;01,5;1,2,3\n2;NA;A02;2;x;4\n").unwrap();
        assert_eq!(numbers(&batch, 0), [Some(0.5), Some(2.0)]);
        assert_eq!(numbers(&batch, 1), [Some(-1250.0), None]);
        let types: Vec<_> = batch.schema().fields().iter().map(|f| f.data_type().clone()).collect();
        assert_eq!(types[2..], [DataType::Utf8, DataType::Int64, DataType::Utf8, DataType::Utf8]);
        // Thousands, and numbers of both kinds in a column: nobody knows which is meant.
        for text in ["x;y\n1.234,5;1\n", "x;y\n0,5;1\n1.5;1\n"] {
            assert_eq!(parsed(text).unwrap().schema().field(0).data_type(), &DataType::Utf8, "{text}");
        }
        // Another column has points; tabs, where commas may stand between thousands.
        for text in ["x;y\n1,2;0.5\n", "x\ty\n1,234\t1\n"] {
            assert_eq!(parsed(text).unwrap().schema().field(0).data_type(), &DataType::Utf8, "{text}");
        }
        let error = parsed("x|y\n1|2\n").unwrap_err().to_string();
        assert!(
            error.contains("\"x|y\"") && error.contains("neither commas, semicolons nor tabs"),
            "{error}"
        );
    }

    #[test]
    fn whole_numbers_are_never_rounded() {
        let batch = parsed(
            "a,b,c,d,e\n9223372036854775807,9223372036854775809,18446744073709551616,-1,1.5\n\
             -1,,1,9223372036854775809,18446744073709551616\n",
        )
        .unwrap();
        let types: Vec<_> = batch.schema().fields().iter().map(|f| f.data_type().clone()).collect();
        assert_eq!(
            types,
            [DataType::Int64, DataType::UInt64, DataType::Utf8, DataType::Utf8, DataType::Float64]
        );
        let whole = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
        assert_eq!(whole.values(), &[i64::MAX, -1]);
        let unsigned = batch.column(1).as_any().downcast_ref::<UInt64Array>().unwrap();
        assert_eq!(unsigned.iter().collect::<Vec<_>>(), [Some((1 << 63) + 1), None]);
        let text = batch.column(2).as_any().downcast_ref::<StringArray>().unwrap();
        assert_eq!(text.value(0), "18446744073709551616");
    }

    #[test]
    fn numbers_that_a_float_does_not_hold_are_text() {
        for text in [
            "id\n9007199254740993\n1.5\n",
            "id\n1.5\n-9007199254740993\n",
            "id\n9007199254740993.0\n0.5\n",
            "id\n1E400\n1\n",
            "id;x\n9007199254740993;1\n1,5;2\n",
        ] {
            let batch = parsed(text).unwrap();
            let values = batch.column(0).as_any().downcast_ref::<StringArray>().expect(text);
            let lines = text.lines().skip(1).map(|line| line.split(';').next());
            assert_eq!(values.iter().collect::<Vec<_>>(), lines.collect::<Vec<_>>());
        }
        let batch = parsed("a\n9007199254740992\n-inf\n1e300\n").unwrap();
        let expected = Float64Array::from(vec![9_007_199_254_740_992.0, f64::NEG_INFINITY, 1e300]);
        assert_eq!(batch.column(0).as_any().downcast_ref::<Float64Array>(), Some(&expected));
        // As another program writes 1e23 without an exponent.
        assert!(is_held(1e23, "100000000000000000000000") && !is_held(1e23, "100000000000000000000001"));
        assert!(is_held(123_456_789_012_345.0, "123456789012345") && is_held(0.1, "0.1"));
    }

    #[test]
    fn zeros_in_front_make_a_code() {
        for code in ["01", "0012", "-01", "+012", "0012E4"] {
            assert!(is_code(code), "{code}");
        }
        for number in ["0", "0.5", "-0.5", "10", "0e5", "1E5", "00.5", "01,5", "A01"] {
            assert!(!is_code(number), "{number}");
        }
    }

    #[test]
    fn damage_names_the_line() {
        let error = |text: &str| parsed(text).unwrap_err().to_string();
        assert!(error("a,b\n1,2\n3\n").contains("line 3: 1 field, where the first line has 2"));
        assert!(error("a,a\n1,2\n").contains("two columns are called \"a\""));
        assert!(error("a,b\n").contains("no rows") && error("").contains("no rows"));
        // All cells behind it would be a part of it.
        assert!(error("a,b\n1,2\n\"3,4\n5,6\n").contains("a quote of line 3 is not closed"));
        let bytes = parse(Path::new("f.csv"), b"a,b\n1,\xff\n").unwrap_err().to_string();
        assert!(bytes.contains("line 2") && bytes.contains("no UTF-8"), "{bytes}");
        assert!(bytes.ends_with("(hint: save it as UTF-8: in Excel as \"CSV UTF-8\")"), "{bytes}");
    }
}
