//! Which table of a database holds the images.

use crate::connection::{Database, failed};
use crate::sql::{literal, quoted};
use std::path::Path;
use wellread_image::ome_arrow::{FILE_WRITER_KEY, ROW_ID, field};
use wellread_store::surface::option;
use wellread_store::{Error, Result};

/// Name of the table that is written.
pub(crate) const TABLE: &str = "images";

/// A table, by the names to ask for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableRef {
    pub schema: String,
    pub table: String,
    is_view: bool,
    /// Whether a struct with `pixels_meta` is among its columns.
    has_images: bool,
    /// Whether wellread wrote it: then its types are trusted, and its primary key `row_id` counts rows from 0 unless somebody
    /// has changed the table since.
    pub is_ours: bool,
    /// Whether it has a column `row_id` of the type that wellread gives it.
    pub has_row_id: bool,
    /// Whether a column of its own is called `rowid`, as DuckDB calls its number of a row, in capital or small letters.
    pub hides_rowid: bool,
}

impl TableRef {
    /// As SQL.
    pub fn sql(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.table))
    }

    /// As users type it: without the default schema.
    fn shown(&self) -> String {
        if self.schema == "main" { self.table.clone() } else { format!("{}.{}", self.schema, self.table) }
    }
}

/// The comment by which a table written here is known.
pub(crate) fn mark() -> String {
    format!("{FILE_WRITER_KEY}={}", env!("CARGO_PKG_VERSION"))
}

/// The table `wanted`, which may be qualified by its schema; without a wish, the one table that holds images.
///
/// # Errors
/// No such table, or several that hold images: the message lists those there are.
pub(crate) fn find(database: &Database, path: &Path, wanted: Option<&str>) -> Result<TableRef> {
    let tables = list(database, path)?;
    let shown = |tables: &[&TableRef]| {
        let names: Vec<_> = tables.iter().take(20).map(|p| p.shown()).collect();
        if names.is_empty() { "it has no tables".to_owned() } else { format!("it has {}", names.join(", ")) }
    };
    let all: Vec<&TableRef> = tables.iter().collect();
    let found: Vec<&TableRef> = if let Some(wanted) = wanted {
        let exact = |p: &&TableRef| p.table == wanted || format!("{}.{}", p.schema, p.table) == wanted;
        let found: Vec<&TableRef> = tables.iter().filter(exact).collect();
        if found.is_empty() {
            return Err(Error::new(path, format_args!("has no table {wanted:?}")).choice().hint(shown(&all)));
        }
        // An unqualified name means the default schema before others.
        match found.iter().find(|p| p.schema == "main" && p.table == wanted) {
            Some(main) => vec![*main],
            None => found,
        }
    } else {
        let found: Vec<&TableRef> = tables.iter().filter(|p| p.has_images && !p.is_view).collect();
        if found.is_empty() {
            return Err(Error::new(path, "has no table with images").hint(shown(&all)));
        }
        found
    };
    match found.as_slice() {
        [one] if one.is_view => {
            Err(Error::new(path, format_args!("{} is a view, which has no row numbers", one.shown()))
                .hint("make a table of it: CREATE TABLE images AS SELECT * FROM …"))
        }
        [one] => Ok((*one).clone()),
        several => Err(Error::new(path, "several tables hold images").choice().hint(format_args!(
            "choose one ({}): {}",
            option("table"),
            shown(several)
        ))),
    }
}

fn list(database: &Database, path: &Path) -> Result<Vec<TableRef>> {
    let connection = database.connection(path)?;
    let any_column = |is: &str| {
        format!(
            "(SELECT bool_or({is}) FROM duckdb_columns() c \
             WHERE c.database_oid = t.database_oid AND c.schema_oid = t.schema_oid AND c.table_oid = t.table_oid)"
        )
    };
    let sql = format!(
        "SELECT schema_name, table_name, false AS is_view, starts_with(coalesce(comment, ''), {mark}) AS ours, \
         {images} AS images, {row_id} AS row_id, {hides} AS hides \
         FROM duckdb_tables() t WHERE NOT internal \
         UNION ALL SELECT schema_name, view_name, true, false, false, false, false FROM duckdb_views() WHERE NOT internal \
         ORDER BY 1, 2",
        // Whichever release it was.
        mark = literal(&format!("{FILE_WRITER_KEY}=")),
        images = any_column(&format!("data_type LIKE 'STRUCT(%{}%'", field::PIXELS_META)),
        row_id = any_column(&format!("column_name = {} AND data_type = 'BIGINT'", literal(ROW_ID))),
        hides = any_column("lower(column_name) = 'rowid'"),
    );
    let ask = || -> duckdb::Result<Vec<TableRef>> {
        let mut statement = connection.prepare(&sql)?;
        let rows = statement.query_map([], |row| {
            Ok(TableRef {
                schema: row.get(0)?,
                table: row.get(1)?,
                is_view: row.get(2)?,
                is_ours: row.get(3)?,
                has_images: row.get::<_, Option<bool>>(4)?.unwrap_or(false),
                has_row_id: row.get::<_, Option<bool>>(5)?.unwrap_or(false),
                hides_rowid: row.get::<_, Option<bool>>(6)?.unwrap_or(false),
            })
        })?;
        rows.collect()
    };
    ask().map_err(|e| failed(path, "cannot list the tables", &e))
}
