//! Which columns of a table hold the positions and the numbers of cells, and their values.

use super::options::CellOptions;
use super::table::CellTable;
use crate::features::{key_at, text};
use crate::surface::option;
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

/// Columns of x and y, in the order in which they are looked for. They are CellProfiler's, those of CytoTable and pycytominer,
/// those of scikit-image's `regionprops_table`, and names that people write by hand. scikit-image counts axes, slowest first: of
/// stacks its `centroid-0` is z, so that their columns come before those of planes.
const POSITIONS: [[&str; 2]; 13] = [
    ["Nuclei_Location_Center_X", "Nuclei_Location_Center_Y"],
    ["Cells_Location_Center_X", "Cells_Location_Center_Y"],
    ["Location_Center_X", "Location_Center_Y"],
    ["Metadata_Nuclei_Location_Center_X", "Metadata_Nuclei_Location_Center_Y"],
    ["Metadata_Cells_Location_Center_X", "Metadata_Cells_Location_Center_Y"],
    ["Metadata_Location_Center_X", "Metadata_Location_Center_Y"],
    ["Nuclei_AreaShape_Center_X", "Nuclei_AreaShape_Center_Y"],
    ["Cells_AreaShape_Center_X", "Cells_AreaShape_Center_Y"],
    ["AreaShape_Center_X", "AreaShape_Center_Y"],
    ["centroid-2", "centroid-1"],
    ["centroid-1", "centroid-0"],
    ["centroid_x", "centroid_y"],
    ["x", "y"],
];

/// A column of a cell's number, as scikit-image calls it, and of its class, as others do.
pub(super) const CLASS: &str = "label";

/// Columns of a cell's number in its image, in the order in which they are looked for.
const LABELS: [&str; 8] = [
    "ObjectNumber",
    "Metadata_ObjectNumber",
    "Nuclei_Number_Object_Number",
    "Metadata_Nuclei_Number_Object_Number",
    "Cells_Number_Object_Number",
    "Metadata_Cells_Number_Object_Number",
    "Number_Object_Number",
    CLASS,
];

/// Columns of a cytoplasm's number in its image, in the order in which they are looked for.
const CYTOPLASM_LABELS: [&str; 2] =
    ["Cytoplasm_Number_Object_Number", "Metadata_Cytoplasm_Number_Object_Number"];

/// The columns of x and y.
///
/// # Errors
/// A column that was asked for and is not there; none whose name is known.
pub(super) fn position_columns(table: &CellTable, options: &CellOptions) -> Result<[String; 2]> {
    for name in [&options.x, &options.y].into_iter().flatten() {
        if !table.has(name) {
            return Err(table.no_column(name, &["center", "centroid"]));
        }
    }
    if let (Some(x), Some(y)) = (&options.x, &options.y) {
        return Ok([x.clone(), y.clone()]);
    }
    // Where one of them was given, the other is its partner's.
    let fits = |[x, y]: &&[&str; 2]| {
        table.has(x)
            && table.has(y)
            && options.x.as_deref().is_none_or(|given| given == *x)
            && options.y.as_deref().is_none_or(|given| given == *y)
    };
    POSITIONS.iter().find(fits).map(|pair| pair.map(str::to_owned)).ok_or_else(|| {
        table.choice_error(
            format_args!(
                "the names of columns do not tell which of them hold the positions of cells: name both, {} and {}",
                option("cells.x"),
                option("cells.y")
            ),
            &["center", "centroid"],
        )
    })
}

/// The column of a cell's number; `None` where none was asked for and none of a known name is there. Where `x`, the column of
/// positions, is that of whole cells, their numbers come before those of nuclei, which may be others. Cytoplasms have numbers of
/// their own, or else those of their cells.
///
/// # Errors
/// A column that was asked for and is not there.
pub(super) fn label_column(table: &CellTable, options: &CellOptions, x: &str) -> Result<Option<String>> {
    match &options.label {
        Some(name) if !table.has(name) => Err(table.no_column(name, &["number", "label"])),
        Some(name) => Ok(Some(name.clone())),
        None => {
            let of = x.strip_prefix("Metadata_").unwrap_or(x);
            let are_cytoplasm = of.starts_with("Cytoplasm_");
            let are_cells = are_cytoplasm || of.starts_with("Cells_");
            let of_cytoplasm = CYTOPLASM_LABELS.into_iter().find(|name| are_cytoplasm && table.has(name));
            let there = || LABELS.into_iter().filter(|name| table.has(name));
            let of_cells = there().find(|name| are_cells && *name != CLASS && !name.contains("Nuclei_"));
            Ok(of_cytoplasm.or(of_cells).or_else(|| there().next()).map(str::to_owned))
        }
    }
}

/// Whether the column [`CLASS`] holds the numbers of cells for certain: beside the columns of positions that scikit-image writes, it
/// is scikit-image's own. Texts are classes.
pub(super) fn is_number_of_cell(table: &CellTable, column: &ArrayRef) -> bool {
    let of_scikit_image = [["centroid-0", "centroid-1"], ["bbox-0", "bbox-1"]];
    of_scikit_image.iter().any(|both| both.iter().all(|name| table.has(name)))
        && texts(column).next().is_none()
}

/// Whether a text is a number but for a comma in place of its point.
fn is_with_comma(text: &str) -> bool {
    text.matches(',').count() == 1 && text.trim().replace(',', ".").parse::<f64>().is_ok()
}

fn is_number(text: &str) -> bool {
    text.trim().parse::<f64>().is_ok()
}

/// The texts of a column of text with their rows.
fn texts(column: &ArrayRef) -> impl Iterator<Item = (usize, &str)> {
    (0..column.len()).filter_map(move |row| Some((row, text(column, row)?)))
}

/// The first text of a column of text in which all values are numbers.
fn number_as_text(column: &ArrayRef) -> Option<&str> {
    let (_, first) = texts(column).next()?;
    texts(column).all(|(_, value)| is_number(value)).then_some(first)
}

/// The row and value of the first text that is no number, in a column of text that has numbers too. `None` where it is a
/// number but for a comma.
fn first_text(column: &ArrayRef) -> Option<(usize, &str)> {
    let first = texts(column).find(|(_, value)| !is_number(value))?;
    (!is_with_comma(first.1) && texts(column).any(|(_, value)| is_number(value))).then_some(first)
}

/// The values of a column of numbers; NaN where there is none.
///
/// # Errors
/// A column of another type.
pub(super) fn numbers(table: &CellTable, name: &str, column: &ArrayRef) -> Result<Vec<f64>> {
    macro_rules! all {
        ($t:ty) => {
            Ok(column.as_primitive::<$t>().iter().map(|v| v.map_or(f64::NAN, |v| v as f64)).collect())
        };
    }
    match column.data_type() {
        DataType::Int8 => all!(Int8Type),
        DataType::Int16 => all!(Int16Type),
        DataType::Int32 => all!(Int32Type),
        DataType::Int64 => all!(Int64Type),
        DataType::UInt8 => all!(UInt8Type),
        DataType::UInt16 => all!(UInt16Type),
        DataType::UInt32 => all!(UInt32Type),
        DataType::UInt64 => all!(UInt64Type),
        DataType::Float32 => all!(Float32Type),
        DataType::Float64 => {
            Ok(column.as_primitive::<Float64Type>().iter().map(|v| v.unwrap_or(f64::NAN)).collect())
        }
        other if other.is_decimal() || *other == DataType::Float16 => {
            let number = |row: usize| key_at(column, row)?.parse::<f64>().ok();
            Ok((0..column.len()).map(|row| number(row).unwrap_or(f64::NAN)).collect())
        }
        other => {
            if let Some((row, text)) = first_text(column) {
                let cause = format_args!("column {name:?} holds numbers, and here the text {text:?}");
                let hint = "write a number there, or nothing";
                return Err(Error::new(&table.path, cause).row(row).choice().hint(hint));
            }
            if let Some(text) = number_as_text(column) {
                let cause = format_args!("column {name:?} holds numbers as text, such as {text:?}");
                let hint = format_args!(
                    "make it a column of numbers, in pandas table[{name:?}] = pd.to_numeric(table[{name:?}]), in SQL CAST({name:?} AS DOUBLE)"
                );
                return Err(Error::new(&table.path, cause).choice().hint(hint));
            }
            let cause = format_args!("column {name:?} holds no numbers, but values of Arrow's type {other}");
            let first = (0..column.len()).find_map(|row| key_at(column, row));
            let hint = match first.filter(|text| is_with_comma(text)) {
                Some(text) => format!(
                    "{text} has a decimal comma: separate fields by semicolons, or write numbers with points, in pandas read_csv(…, sep=\";\", decimal=\",\").to_csv(…)"
                ),
                None => format!(
                    "name a column of numbers in its place: of positions {} and {}, of the numbers of cells {}",
                    option("cells.x"),
                    option("cells.y"),
                    option("cells.label")
                ),
            };
            Err(Error::new(&table.path, cause).choice().hint(hint))
        }
    }
}

/// The number of each cell in its label image, of a column of whole numbers.
///
/// Rows that are no cells, as those of images without one in a joined table, need none: theirs is 0.
///
/// # Errors
/// A cell without one, or with another value.
pub(super) fn labels(
    table: &CellTable,
    name: &str,
    column: &ArrayRef,
    is_cell: impl Fn(usize) -> bool,
) -> Result<Vec<i64>> {
    let values = numbers(table, name, column)?;
    let whole = |(row, value): (usize, f64)| {
        // Beyond that a float holds not every whole number.
        if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0 {
            return Ok(value as i64);
        }
        if value.is_nan() && !is_cell(row) {
            return Ok(0);
        }
        Err(Error::new(&table.path, format_args!("column {name:?} is {value:?}, no whole number"))
            .row(row)
            .hint(format_args!(
                "the number of a cell in its label image is a whole one: name its column ({})",
                option("cells.label")
            )))
    };
    values.into_iter().enumerate().map(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::{ArrowPrimitiveType, Float16Type};
    use arrow_array::{Decimal128Array, Float16Array, Float32Array, RecordBatch, StringArray, UInt8Array};
    use std::path::Path;
    use std::sync::Arc;

    fn table(names: &[&str]) -> CellTable {
        let column = || Arc::new(UInt8Array::from(vec![1, 2])) as ArrayRef;
        let columns = names.iter().map(|name| (*name, column()));
        CellTable::in_memory(Path::new("cells.csv"), RecordBatch::try_from_iter(columns).unwrap())
    }

    #[test]
    fn positions_are_found_by_the_names_of_cellprofiler() {
        let of = |names: &[&str], x: Option<&str>, y: Option<&str>| {
            let (x, y) = (x.map(str::to_owned), y.map(str::to_owned));
            position_columns(&table(names), &CellOptions { x, y, ..CellOptions::default() })
        };
        let both = ["Cells_Location_Center_X", "Cells_Location_Center_Y"];
        assert_eq!(of(&both, None, None).unwrap(), both.map(str::to_owned));
        assert_eq!(of(&["centroid-0", "centroid-1"], None, None).unwrap(), ["centroid-1", "centroid-0"]);
        // Those of a stack are z, y and x.
        let of_stack = ["label", "centroid-0", "centroid-1", "centroid-2"];
        assert_eq!(of(&of_stack, None, None).unwrap(), ["centroid-2", "centroid-1"]);
        assert_eq!(of(&["a", "b"], Some("b"), Some("a")).unwrap(), ["b", "a"]);
        assert_eq!(of(&["x", "y", "centroid_x"], Some("x"), None).unwrap(), ["x", "y"]);
        let error = of(&["My_Center_X", "other"], None, None).unwrap_err();
        assert!(error.is_choice() && error.to_string().contains("My_Center_X …"), "{error}");
        assert!(of(&["x", "y"], Some("z"), None).unwrap_err().to_string().contains("no column \"z\""));
    }

    #[test]
    fn decimal_commas_are_told() {
        let hint = |values: Vec<&str>| {
            let column = Arc::new(StringArray::from(values)) as ArrayRef;
            numbers(&table(&["x"]), "x", &column).unwrap_err().hint_text().unwrap().to_owned()
        };
        assert!(hint(vec!["1,5", "2,5"]).starts_with("1,5 has a decimal comma"));
        let other =
            "name a column of numbers in its place: of positions x and y, of the numbers of cells label";
        assert_eq!(hint(vec!["A01"]), other);
        // Points and commas in one column: nobody knows which is meant.
        assert_eq!(hint(vec!["0.5", "1,5"]), other);
        assert!(is_with_comma("-1,5e3") && !is_with_comma("1,000,000") && !is_with_comma("a,b"));
    }

    #[test]
    fn numbers_that_are_text_are_told_with_what_makes_numbers_of_them() {
        let column = Arc::new(StringArray::from(vec![None, Some("12.5"), Some(" 3 ")])) as ArrayRef;
        let error = numbers(&table(&["x"]), "x", &column).unwrap_err();
        assert_eq!(error.cause(), "column \"x\" holds numbers as text, such as \"12.5\"");
        let hint = error.hint_text().unwrap();
        assert!(error.is_choice() && hint.contains("table[\"x\"] = pd.to_numeric(table[\"x\"])"), "{hint}");
        // Without a value there is nothing to tell.
        let none = Arc::new(StringArray::new_null(2)) as ArrayRef;
        assert!(numbers(&table(&["x"]), "x", &none).unwrap_err().cause().contains("holds no numbers"));
    }

    #[test]
    fn a_text_among_numbers_is_named() {
        let values = [Some("1"), None, Some("2.5"), Some("abc"), Some("def")];
        let column = Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
        let error = numbers(&table(&["x"]), "x", &column).unwrap_err();
        assert!(error.is_choice() && error.row_index() == Some(3), "{error}");
        assert_eq!(error.cause(), "column \"x\" holds numbers, and here the text \"abc\"");
    }

    #[test]
    fn numbers_of_all_types_are_read_and_labels_are_whole() {
        let table = table(&["a"]);
        let floats = Arc::new(Float32Array::from(vec![Some(1.5), None])) as ArrayRef;
        let read = numbers(&table, "a", &floats).unwrap();
        assert!(read[0] == 1.5 && read[1].is_nan());
        let halves = vec![<<Float16Type as ArrowPrimitiveType>::Native>::from_f32(1.5)];
        let halves = Arc::new(Float16Array::from(halves)) as ArrayRef;
        assert_eq!(numbers(&table, "a", &halves).unwrap(), [1.5]);
        let decimals = Decimal128Array::from(vec![Some(-1525), None]).with_precision_and_scale(9, 2).unwrap();
        let read = numbers(&table, "a", &(Arc::new(decimals) as ArrayRef)).unwrap();
        assert!(read[0] == -15.25 && read[1].is_nan());
        let error = labels(&table, "a", &floats, |_| true).unwrap_err();
        assert_eq!(error.row_index(), Some(0));
        let text = Arc::new(StringArray::from(vec!["x", "y"])) as ArrayRef;
        assert!(numbers(&table, "a", &text).unwrap_err().to_string().contains("no numbers"));
        let whole = Arc::new(UInt8Array::from(vec![3, 7])) as ArrayRef;
        assert_eq!(labels(&table, "a", &whole, |_| true).unwrap(), [3, 7]);
        assert_eq!(
            label_column(&self::table(&["label", "x"]), &CellOptions::default(), "x").unwrap().unwrap(),
            "label"
        );
        assert_eq!(label_column(&table, &CellOptions::default(), "x").unwrap(), None);
    }

    #[test]
    fn numbers_are_of_the_objects_whose_positions_are_taken() {
        let both = table(&["Nuclei_Number_Object_Number", "Cells_Number_Object_Number"]);
        let nuclei = table(&["label", "Metadata_Nuclei_Number_Object_Number"]);
        let of =
            |table: &CellTable, x: &str| label_column(table, &CellOptions::default(), x).unwrap().unwrap();
        for x in ["Nuclei_Location_Center_X", "Metadata_Nuclei_Location_Center_X", "x"] {
            assert_eq!(of(&both, x), "Nuclei_Number_Object_Number");
        }
        for x in ["Cells_Location_Center_X", "Metadata_Cells_AreaShape_Center_X"] {
            assert_eq!(of(&both, x), "Cells_Number_Object_Number");
            assert_eq!(of(&nuclei, x), "Metadata_Nuclei_Number_Object_Number");
        }
        let cytoplasm = table(&["Nuclei_Number_Object_Number", "Cytoplasm_Number_Object_Number"]);
        for x in ["Cytoplasm_Location_Center_X", "Metadata_Cytoplasm_Location_Center_X"] {
            assert_eq!(of(&cytoplasm, x), "Cytoplasm_Number_Object_Number");
            assert_eq!(of(&both, x), "Cells_Number_Object_Number");
            assert_eq!(of(&nuclei, x), "Metadata_Nuclei_Number_Object_Number");
        }
        assert_eq!(of(&cytoplasm, "x"), "Nuclei_Number_Object_Number");
        let own = table(&["Cells_Number_Object_Number", "ObjectNumber"]);
        assert_eq!(of(&own, "Cells_Location_Center_X"), "ObjectNumber");
    }
}
