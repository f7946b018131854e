//! The columns of a table in Arrow's types, and those that these types would not tell truly.

use crate::connection::failed;
use crate::sql::quoted;
use arrow_schema::SchemaRef;
use duckdb::Connection;
use std::path::Path;
use wellread_store::{LeftOut, Result};

/// The columns of what `from` selects, in its order. Those that are left out have a type that stands for nothing.
///
/// # Errors
/// DuckDB's error.
pub(super) fn of(
    path: &Path,
    connection: &Connection,
    from: &str,
    is_native: bool,
) -> Result<(SchemaRef, Vec<LeftOut>)> {
    let ask = || -> duckdb::Result<(SchemaRef, Vec<LeftOut>)> {
        let mut left_out = vec![];
        for (name, of) in described(connection, from)? {
            let why = match of.as_str() {
                // Their Arrow type has a sign: the largest would be -1.
                "UHUGEINT" => "whole numbers of 128 bits without a sign",
                // Arrow has no type for them. Those of Parquet files are all of UTC.
                "TIME WITH TIME ZONE" if is_native => "times of day with an offset",
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

fn schema(connection: &Connection, selected: &str, from: &str) -> duckdb::Result<SchemaRef> {
    let mut statement = connection.prepare(&format!("SELECT {selected} FROM {from} LIMIT 0"))?;
    Ok(statement.query_arrow([])?.get_schema())
}
