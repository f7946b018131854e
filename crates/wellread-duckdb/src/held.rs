//! The content of a database that is going to be replaced: one table of images that wellread wrote, or data that nobody
//! asked to lose.

use crate::connection::{config, failed, is_lock};
use crate::table_ref::TABLE;
use duckdb::{AccessMode, Connection};
use std::path::Path;
use wellread_image::ome_arrow::{FILE_WRITER_KEY, field};
use wellread_store::place::{is_file, metadata};
use wellread_store::{Error, Result};

/// Things in a database that a refusal names, at most.
const MOST_NAMED: usize = 20;

/// All that a database holds, as kind, name as users type it, and whether it is a table of images as wellread writes it.
const HELD: &str = "
    SELECT 'table' AS kind, schema_name AS of, table_name AS name,
        schema_name = 'main' AND (starts_with(coalesce(comment, ''), ?) OR table_name = ? AND EXISTS (
            FROM duckdb_columns() c WHERE c.table_oid = t.table_oid AND c.database_oid = t.database_oid
                AND c.schema_oid = t.schema_oid AND data_type LIKE ?)) AS ours
        FROM duckdb_tables() t WHERE NOT internal
    UNION ALL SELECT 'view', schema_name, view_name, false FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT 'macro', schema_name, function_name, false FROM duckdb_functions() WHERE NOT internal
    UNION ALL SELECT 'sequence', schema_name, sequence_name, false FROM duckdb_sequences()
    UNION ALL SELECT 'type', schema_name, type_name, false FROM duckdb_types() WHERE NOT internal
    UNION ALL SELECT 'schema', 'main', schema_name, false FROM duckdb_schemas()
        WHERE NOT internal AND schema_name <> 'main'
    ORDER BY ALL";

/// Refuses to replace three kinds of files. One is a database that another process writes to, whose log would end up
/// beside the new one. Another holds anything but one table of images as wellread writes it, and the last is no
/// database that can be looked into.
pub(crate) fn refuse_held(database: &Path) -> Result<()> {
    if !is_file(database) || metadata(database).is_ok_and(|there| there.length == 0) {
        return Ok(());
    }
    let options = config(true).and_then(|c| c.access_mode(AccessMode::ReadOnly));
    let held = options.and_then(|c| Connection::open_with_flags(database, c)).and_then(|connection| {
        let mut statement = connection.prepare(HELD)?;
        let ours =
            [format!("{FILE_WRITER_KEY}="), TABLE.to_owned(), format!("STRUCT(%{}%", field::PIXELS_META)];
        let rows = statement.query_map(ours, |row| {
            let (kind, schema, name): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let shown = if schema == "main" { name } else { format!("{schema}.{name}") };
            Ok((format!("{kind} {shown}"), row.get::<_, bool>(3)?))
        })?;
        rows.collect::<duckdb::Result<Vec<(String, bool)>>>()
    });
    let advice = "choose another name, or remove the file yourself";
    let held = match held {
        Err(e) if is_lock(&e) => return Err(failed(database, "cannot replace the database", &e)),
        Err(e) => {
            let said = e.to_string();
            let first = said.lines().next().unwrap_or_default();
            let cause = format_args!("is no database that can be looked into, and is not replaced: {first}");
            return Err(Error::new(database, cause).hint(advice));
        }
        Ok(held) => held,
    };
    if held.is_empty() || matches!(held.as_slice(), [(_, true)]) {
        return Ok(());
    }
    let names: Vec<&str> = held.iter().take(MOST_NAMED).map(|(name, _)| name.as_str()).collect();
    let names = names.join(", ");
    let more = if held.len() > MOST_NAMED { ", …" } else { "" };
    let cause = format_args!(
        "holds something else than one table of images that wellread wrote, which would be lost: {names}{more}"
    );
    Err(Error::new(database, cause).hint(format_args!("{advice}, or drop what is not needed")))
}
