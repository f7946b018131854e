//! Names of columns that differ from each other and from those that a table of images has itself.
//!
//! ```text
//!  v, v_y beside a second v                      ──▶ v, v_y, v_y_y
//!  name, name_y where the table has a name itself ──▶ name_y_y, name_y   whatever their order
//!  a.b where the table has no such names          ──▶ a_b
//! ```

use crate::Error;
use crate::hints::Renamed;
use crate::surface::option;
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Field, FieldRef, Schema};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use wellread_image::ome_arrow::{COLUMN, ROW_ID};

/// Refuses names with a NUL byte, for libraries that take names as texts of C: `writer` is one in words.
///
/// # Errors
/// Such a name, and how to leave its column out.
pub fn refuse_nul(target: &Path, writer: &str, columns: Option<&RecordBatch>) -> Result<(), Error> {
    let Some(columns) = columns else { return Ok(()) };
    let schema = columns.schema_ref();
    let Some(field) = schema.fields().iter().find(|field| field.name().contains('\0')) else {
        return Ok(());
    };
    let name = field.name();
    let cause = format!("{writer} cannot be written: the name of the column {name:?} has a NUL byte");
    // No argument of a program can have that byte.
    Err(Error::new(target, cause).column(name).choice().hint(format_args!(
        "rename the column, choose parquet, or leave the column out: {} '{}'",
        option("without_column"),
        without_nul(name)
    )))
}

/// A name as it can be typed: `\0` stands for a NUL byte.
pub fn without_nul(name: &str) -> String {
    name.replace('\0', r"\0")
}

/// How often `_y` is put behind a name before a number is: names of a file that has thousands of one name stay short.
const MOST_SUFFIXES: usize = 8;

/// The name of a column without one, where a table has none such.
const UNNAMED: &str = "unnamed";

/// Whether a table of OME-Arrow images has a column of this name itself: [`crate::Format::own_columns`] of such formats.
pub fn is_own_of_tables(name: &str) -> bool {
    [ROW_ID, COLUMN].contains(&name)
}

/// A name for each of `names`, all different and none of them the table's own. The first of a name keeps it. Another gets `_y`
/// behind it, as often as it takes to be a name that no column had or has. Where a table has no names with dots, or none that are
/// empty, its own are those too: others begin with [`base`].
pub(crate) fn unique_names(names: &[&str], is_own: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut kept = HashSet::new();
    let keeps: Vec<bool> = names.iter().map(|&name| !is_own(name) && kept.insert(name)).collect();
    let mut taken: HashSet<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut tries: HashMap<&str, usize> = HashMap::new();
    let mut out = Vec::with_capacity(names.len());
    for (&name, keeps) in names.iter().zip(keeps) {
        if keeps {
            out.push(name.to_owned());
            continue;
        }
        let tried = tries.entry(name).or_default();
        let base = base(name, is_own);
        out.push(loop {
            let other = candidate(&base, *tried);
            *tried += 1;
            if !is_own(&other) && taken.insert(other.clone()) {
                break other;
            }
        });
    }
    out
}

/// The beginning of another name for a column: its name, without what a table's names may not have.
fn base<'a>(name: &'a str, is_own: &dyn Fn(&str) -> bool) -> Cow<'a, str> {
    if !is_own(name) {
        Cow::Borrowed(name)
    } else if name.is_empty() {
        Cow::Borrowed(UNNAMED)
    } else {
        Cow::Owned(name.replace('.', "_"))
    }
}

fn candidate(name: &str, number: usize) -> String {
    if number <= MOST_SUFFIXES {
        format!("{name}{}", "_y".repeat(number))
    } else {
        format!("{name}_y{number}")
    }
}

/// The schema with such names, and which columns have others than before.
pub(crate) fn unique_schema(schema: &Schema, is_own: &dyn Fn(&str) -> bool) -> (Schema, Vec<Renamed>) {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let unique = unique_names(&names, is_own);
    let renamed = names.iter().zip(&unique).filter(|&(from, to)| *from != to.as_str());
    let renamed = renamed.map(|(from, to)| Renamed { from: (*from).to_owned(), to: to.clone() }).collect();
    let named = |(field, name): (&FieldRef, String)| Field::clone(field).with_name(name);
    let fields: Vec<Field> = schema.fields().iter().zip(unique).map(named).collect();
    (Schema::new_with_metadata(fields, schema.metadata().clone()), renamed)
}

/// The columns with names that differ from each other and from those that a format's tables have themselves
/// ([`crate::Format::own_columns`]), and which have others than before.
///
/// # Errors
/// Arrow's error.
pub fn renamed(
    columns: &RecordBatch,
    is_own: &dyn Fn(&str) -> bool,
) -> Result<(RecordBatch, Vec<Renamed>), ArrowError> {
    let (schema, renamed) = unique_schema(columns.schema_ref(), is_own);
    if renamed.is_empty() {
        return Ok((columns.clone(), renamed));
    }
    Ok((RecordBatch::try_new(Arc::new(schema), columns.columns().to_vec())?, renamed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, Int64Array};
    use arrow_schema::DataType;

    fn never(_: &str) -> bool {
        false
    }

    #[test]
    fn names_differ_whatever_their_order() {
        assert_eq!(unique_names(&["v", "v_y", "v"], &never), ["v", "v_y", "v_y_y"]);
        assert_eq!(unique_names(&["v", "v", "v_y"], &never), ["v", "v_y_y", "v_y"]);
        assert_eq!(unique_names(&["v", "v", "v"], &never), ["v", "v_y", "v_y_y"]);
        let is_own = |name: &str| ["name", "name_y_y"].contains(&name);
        assert_eq!(unique_names(&["name", "name_y"], &is_own), ["name_y_y_y", "name_y"]);
        assert_eq!(unique_names(&["name_y", "name"], &is_own), ["name_y", "name_y_y_y"]);
        assert_eq!(unique_names(&["row_id", "dose"], &is_own_of_tables), ["row_id_y", "dose"]);
    }

    #[test]
    fn names_that_a_table_cannot_have_are_made_into_others() {
        let is_own = |name: &str| name.is_empty() || name.contains('.') || name == "_rowid";
        assert_eq!(unique_names(&["a.b", "", "_rowid"], &is_own), ["a_b", "unnamed", "_rowid_y"]);
        assert_eq!(unique_names(&["a.b", "a_b", "a.b"], &is_own), ["a_b_y", "a_b", "a_b_y_y"]);
        assert_eq!(unique_names(&["a.b", ""], &never), ["a.b", ""]);
    }

    #[test]
    fn names_with_a_nul_byte_are_refused() {
        let named = |names: [&str; 2]| {
            let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1]));
            RecordBatch::try_from_iter(names.map(|name| (name, Arc::clone(&numbers)))).unwrap()
        };
        let check = |columns: Option<&RecordBatch>| refuse_nul(Path::new("a.lance"), "Lance", columns);
        let error = check(Some(&named(["v", "a\0b"]))).unwrap_err();
        assert!(error.is_choice() && error.column_name() == Some("a\0b"), "{error}");
        let error = error.to_string();
        assert!(error.contains(r#"the name of the column "a\0b" has a NUL byte"#), "{error}");
        assert!(error.contains(r"leave the column out: without_column 'a\0b'"), "{error}");
        assert!(check(Some(&named(["v", r"a\0b"]))).is_ok() && check(None).is_ok());
    }

    #[test]
    fn thousands_of_one_name_have_short_names() {
        let names = unique_names(&vec!["v"; 5000], &never);
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), 5000);
        assert!(names.iter().all(|name| name.len() < 20));
    }

    #[test]
    fn columns_keep_their_values() {
        let numbers = |value: i64| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
        let fields = ["v", "v", "row_id"].map(|name| Field::new(name, DataType::Int64, true));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let batch = RecordBatch::try_new(schema, vec![numbers(1), numbers(2), numbers(3)]).unwrap();
        let (unique, others) = renamed(&batch, &is_own_of_tables).unwrap();
        for (name, value) in [("v", 1), ("v_y", 2), ("row_id_y", 3)] {
            assert_eq!(unique.column_by_name(name).unwrap(), &numbers(value), "{name}");
        }
        let others: Vec<_> = others.iter().map(|one| (one.from.as_str(), one.to.as_str())).collect();
        assert_eq!(others, [("v", "v_y"), ("row_id", "row_id_y")]);
        assert!(renamed(&unique, &is_own_of_tables).unwrap().1.is_empty());
    }
}
