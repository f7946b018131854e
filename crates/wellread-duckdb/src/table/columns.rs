//! The columns of a table in Arrow's types, and those that these types would not tell truly.

use crate::connection::failed;
use crate::sql::quoted;
use arrow_schema::SchemaRef;
use duckdb::Connection;
use std::collections::HashSet;
use std::path::Path;
use wellread_store::{LeftOut, Result};

/// Most digits of DuckDB's decimals.
const MOST_DIGITS: i64 = 38;

/// The columns of what `from` selects, in its order. Those that are left out have a type that stands for nothing. `parquet` is the name of
/// the Parquet file, as a literal, where it is one.
///
/// # Errors
/// DuckDB's error.
pub(super) fn of(
    path: &Path,
    connection: &Connection,
    from: &str,
    parquet: Option<&str>,
) -> Result<(SchemaRef, Vec<LeftOut>)> {
    let ask = || -> duckdb::Result<(SchemaRef, Vec<LeftOut>)> {
        let mut left_out = vec![];
        let long = parquet.map_or(Ok(HashSet::new()), |file| long_decimals(connection, file))?;
        for (at, (name, of)) in described(connection, from)?.into_iter().enumerate() {
            let why = match of.as_str() {
                // Their Arrow type has a sign: the largest would be -1.
                "UHUGEINT" => "whole numbers of 128 bits without a sign",
                // Arrow has no type for them. Those of Parquet files are all of UTC.
                "TIME WITH TIME ZONE" if parquet.is_none() => "times of day with an offset",
                // DuckDB would round them.
                "DOUBLE" if long.contains(&at) => "decimals of more than 38 digits",
                // Also in other types, of which some can be told.
                of if of.contains("VARIANT") && schema(connection, &quoted(&name), from).is_err() => {
                    "values of several types"
                }
                _ => continue,
            };
            left_out.push(LeftOut { name, why });
        }
        let stand_ins: Vec<String> =
            left_out.iter().map(|column| format!("NULL AS {}", quoted(&column.name))).collect();
        let selected = if stand_ins.is_empty() {
            "*".to_owned()
        } else {
            format!("* REPLACE ({})", stand_ins.join(", "))
        };
        Ok((schema(connection, &selected, from)?, left_out))
    };
    ask().map_err(|e| failed(path, "cannot read the columns", &e))
}

/// Names of columns and DuckDB's types of them.
fn described(connection: &Connection, from: &str) -> duckdb::Result<Vec<(String, String)>> {
    let sql = format!("SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {from})");
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    rows.collect()
}

/// The columns of a Parquet file, by their place in it, that are decimals of more digits than DuckDB has: it makes floats of them.
fn long_decimals(connection: &Connection, file: &str) -> duckdb::Result<HashSet<usize>> {
    let sql = format!("SELECT coalesce(num_children, 0), coalesce(precision, 0) FROM parquet_schema({file})");
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    let mut long = HashSet::new();
    let (mut column, mut inner) = (0, 0i64);
    // The root is first, and what lies in a column follows it.
    for row in rows.skip(1) {
        let (children, digits) = row?;
        if inner > 0 {
            inner = (inner - 1).saturating_add(children);
            continue;
        }
        if digits > MOST_DIGITS {
            long.insert(column);
        }
        column += 1;
        inner = children;
    }
    Ok(long)
}

fn schema(connection: &Connection, selected: &str, from: &str) -> duckdb::Result<SchemaRef> {
    let mut statement = connection.prepare(&format!("SELECT {selected} FROM {from} LIMIT 0"))?;
    Ok(statement.query_arrow([])?.get_schema())
}
