//! Queries: names quoted, and the paths of columns as expressions that DuckDB can push down to its scans.

use std::fmt::Write as _;
use std::path::Path;
use wellread_image::ome_arrow::field;

/// A name as SQL.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as SQL.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The file at a path as SQL, for functions that take patterns: a mark of a pattern in its name stands for itself.
pub(crate) fn file(path: &Path) -> String {
    let mut pattern = String::new();
    for letter in path.to_string_lossy().chars() {
        if matches!(letter, '*' | '?' | '[') {
            let _ = write!(pattern, "[{letter}]");
        } else {
            pattern.push(letter);
        }
    }
    literal(&pattern)
}

/// The select list for `columns`: of each top-level column, a struct with the fields asked for.
///
/// Only `struct_extract` on a column is pushed down to the scan, so fields are picked one by one and packed again. A
/// null image stays null, told by its `pixels_meta`, without touching the rest of it. Below a list nothing is picked:
/// the list is taken whole.
pub(crate) fn select(columns: &[Vec<String>]) -> String {
    let mut names: Vec<&str> = columns.iter().filter_map(|path| path.first()).map(String::as_str).collect();
    names.dedup();
    let mut out = String::new();
    for name in names {
        let paths: Vec<&[String]> =
            columns.iter().filter(|p| p.first().is_some_and(|n| n == name)).map(|p| &p[1..]).collect();
        let column = quoted(name);
        let expression = if paths.iter().any(|p| p.is_empty()) {
            column.clone()
        } else {
            let meta = format!("{column}.{}", quoted(field::PIXELS_META));
            format!("CASE WHEN {meta} IS NULL THEN NULL ELSE {} END", packed(&column, &paths))
        };
        let _ = write!(out, "{}{expression} AS {column}", if out.is_empty() { "" } else { ", " });
    }
    out
}

fn packed(of: &str, paths: &[&[String]]) -> String {
    let mut names: Vec<&str> = paths.iter().map(|p| p[0].as_str()).collect();
    names.dedup();
    let fields = names.iter().map(|name| {
        let inner: Vec<&[String]> = paths.iter().filter(|p| p[0] == *name).map(|p| &p[1..]).collect();
        let place = format!("{of}.{}", quoted(name));
        let is_list = [field::CHUNKS, field::PLANES].contains(name);
        let value =
            if is_list || inner.iter().any(|p| p.is_empty()) { place } else { packed(&place, &inner) };
        format!("{} := {value}", quoted(name))
    });
    format!("struct_pack({})", fields.collect::<Vec<_>>().join(", "))
}

/// Rows whose `key` is one of `values`, as the fewest comparisons: ranges where they follow one another.
pub(crate) fn one_of(key: &str, values: &[i64]) -> String {
    let is_range = values.len() > 1
        && values
            .last()
            .zip(values.first())
            .is_some_and(|(last, first)| last - first + 1 == values.len() as i64);
    match values {
        [one] => format!("{key} = {one}"),
        [first, .., last] if is_range => format!("{key} BETWEEN {first} AND {last}"),
        _ => {
            let mut out = format!("{key} IN (");
            for (i, value) in values.iter().enumerate() {
                let _ = write!(out, "{}{value}", if i == 0 { "" } else { "," });
            }
            out.push(')');
            out
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(of: &[&str]) -> Vec<Vec<String>> {
        of.iter().map(|p| p.split('/').map(str::to_owned).collect()).collect()
    }

    #[test]
    fn fields_are_picked_one_by_one() {
        let sql = select(&paths(&["img/pixels_meta/size_x", "img/pixels_meta/size_y", "img/chunks/pixels"]));
        assert_eq!(
            sql,
            "CASE WHEN \"img\".\"pixels_meta\" IS NULL THEN NULL ELSE struct_pack(\"pixels_meta\" := \
             struct_pack(\"size_x\" := \"img\".\"pixels_meta\".\"size_x\", \"size_y\" := \
             \"img\".\"pixels_meta\".\"size_y\"), \"chunks\" := \"img\".\"chunks\") END AS \"img\""
        );
        assert_eq!(select(&paths(&["well", "a\"b"])), "\"well\" AS \"well\", \"a\"\"b\" AS \"a\"\"b\"");
    }

    #[test]
    fn rows_are_compared_briefly() {
        assert_eq!(one_of("rowid", &[7]), "rowid = 7");
        assert_eq!(one_of("rowid", &[7, 8, 9]), "rowid BETWEEN 7 AND 9");
        assert_eq!(one_of("rowid", &[7, 9]), "rowid IN (7,9)");
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(file(Path::new("a?/it's [1]*.parquet")), "'a[?]/it''s [[]1][*].parquet'");
    }
}
