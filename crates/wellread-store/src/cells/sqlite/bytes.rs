//! The columns of a table that hold bytes, such as thumbnails: no column of cells.

use super::text::quoted;
use rusqlite::Connection;

/// Parts of the names of types that SQLite stores numbers for.
const NUMBERS: [&str; 6] = ["INT", "REAL", "FLOA", "DOUB", "NUM", "DEC"];

/// Rows that are looked at. Bytes behind them are an error with their row when the column is read.
const MAX_SAMPLED_ROWS: usize = 10_000;

/// The columns of a table whose first value is bytes. A declared type does not tell: any column may hold any value. Columns that are
/// declared as numbers are not looked at: there may be thousands.
pub(super) fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let likes: Vec<String> = NUMBERS.iter().map(|word| format!("type LIKE '%{word}%'")).collect();
    let sql = format!("SELECT name FROM pragma_table_info(?1) WHERE NOT ({})", likes.join(" OR "));
    let mut statement = connection.prepare(&sql)?;
    let names = statement.query_map([table], |row| row.get::<_, String>(0))?;
    let mut names: Vec<String> = names.collect::<rusqlite::Result<_>>()?;
    if names.is_empty() {
        return Ok(names);
    }
    let types: Vec<String> = names.iter().map(|name| format!("typeof(o.{})", quoted(name))).collect();
    let sql = format!("SELECT {} FROM {} AS o LIMIT {MAX_SAMPLED_ROWS}", types.join(", "), quoted(table));
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query(())?;
    let mut is_bytes = vec![false; names.len()];
    let mut unseen: Vec<usize> = (0..names.len()).collect();
    while !unseen.is_empty() {
        let Some(row) = rows.next()? else { break };
        for at in std::mem::take(&mut unseen) {
            let of: String = row.get(at)?;
            if of == "null" {
                unseen.push(at);
            } else {
                is_bytes[at] = of == "blob";
            }
        }
    }
    let mut is_bytes = is_bytes.into_iter();
    names.retain(|_| is_bytes.next() == Some(true));
    Ok(names)
}
