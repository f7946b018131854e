//! SQLite databases of CellProfiler as tables of cells.
//!
//! ```text
//!  Per_Object (or Per_Nuclei, …)  ImageNumber, ObjectNumber, Nuclei_Location_Center_X, …   a row per cell, in the order of the file
//!      │ ImageNumber
//!  Per_Image                      Image_FileName_OrigDNA, Image_Metadata_Well, …           columns beside each cell
//!
//!  Nuclei ─ TableNumber, ImageNumber ─ Image       the same, as cytominer-database has it
//! ```
//!
//! The file is opened for reading alone, anew for each read, and a read takes the columns that are asked for. One in a bucket is copied
//! to this machine first ([`crate::spool`]). Views are not looked at: they
//! may be programs of any length.

mod bytes;
mod text;

use super::sqlite_column::Column;
use crate::features::{BYTES, Comparison};
use crate::spool::LocalCopy;
use crate::words::{counted, first_few};
use crate::{Error, LeftOut, Result, place};
use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{Field, Schema};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use text::{address, quoted};

/// The columns that identify the image of a cell: the second, and the first where there are several runs.
const KEYS: [&str; 2] = ["TableNumber", "ImageNumber"];

/// The prefix of the kind of rows in names of CellProfiler's tables, behind the name of the experiment.
const PER: &str = "Per_";

/// Objects of which a table may be, the best first.
const OBJECTS: [&str; 4] = ["Object", "Nuclei", "Cells", "Cytoplasm"];

/// Kinds of CellProfiler's tables that hold no objects.
const OTHERS: [&str; 6] =
    ["Image", "Experiment", "Well", "Relationships", "RelationshipTypes", "RelationshipsView"];

/// How many names of tables a message lists.
const LISTED: usize = 12;

/// Files beside a database in which changes are that are not in it.
const UNFINISHED: [&str; 2] = ["-wal", "-journal"];

/// A database: its table of objects, and that of their images.
#[derive(Debug)]
pub(super) struct Database {
    path: PathBuf,
    /// The file, or a copy of it.
    file: LocalCopy,
    objects: Table,
    images: Option<Table>,
    /// Columns that both have and that tell the image.
    keys: Vec<String>,
}

/// A table of a database.
#[derive(Debug)]
struct Table {
    name: String,
    columns: Vec<String>,
    /// Columns of bytes, which are none of these.
    left_out: Vec<LeftOut>,
    /// Whether rows have numbers by which they can be ordered.
    has_row_id: bool,
}

impl Database {
    /// Opens a database and counts its cells: those of the table of this name. Unless one is named, of several tables of objects those
    /// count that have the columns `wanted`.
    ///
    /// # Errors
    /// A file that is damaged or being written; no such table, no table of objects, or several of which none is the one.
    pub fn open(path: &Path, table: Option<&str>, wanted: &[&str]) -> Result<(Self, usize)> {
        check_complete(path)?;
        let file = LocalCopy::of(path, "SQLite")?;
        let connection = connect(path, &file)?;
        let refuse = |e: rusqlite::Error| refusal(path, &e);
        let names = table_names(&connection).map_err(refuse)?;
        let (objects, images) = if let Some(table) = table {
            named(path, &names, table)?
        } else {
            choose(path, &with_columns(&connection, names, wanted).map_err(refuse)?)?
        };
        let opened = |name| Table::of(&connection, name).map_err(refuse)?.without_bytes(&connection, path);
        let objects = opened(objects)?;
        let images = images.map(opened).transpose()?;
        let keys: Vec<String> = KEYS
            .iter()
            .filter(|key| objects.has(key) && images.as_ref().is_some_and(|images| images.has(key)))
            .map(|&key| key.to_owned())
            .collect();
        // Without the number of its image, nothing tells the row of it.
        let images = images.filter(|_| keys.iter().any(|key| key == KEYS[1]));
        let count = format!("SELECT COUNT(*) FROM {}", quoted(&objects.name));
        let number = connection.query_row(&count, (), |row| row.get::<_, i64>(0));
        let rows = number.map_err(|e| objects.fault(&connection, path, &e))?;
        let database = Self { path: path.to_owned(), file, objects, images, keys };
        Ok((database, usize::try_from(rows).unwrap_or(0)))
    }

    /// Names of the columns: those of the objects, then those of the images that objects do not have.
    pub fn names(&self) -> Vec<String> {
        let mut names = self.objects.columns.clone();
        if let Some(images) = &self.images {
            names.extend(images.columns.iter().filter(|name| !self.objects.has(name)).cloned());
        }
        names
    }

    /// The columns of both that hold bytes, and so are none of [`Self::names`].
    pub fn left_out(&self) -> Vec<LeftOut> {
        let of_images = self.images.iter().flat_map(|images| &images.left_out);
        self.objects.left_out.iter().chain(of_images).cloned().collect()
    }

    /// The columns of these names, in this order: some, all of which are there.
    ///
    /// # Errors
    /// A file that has changed or is damaged, by row where that is known; values that are neither numbers nor text.
    pub fn read(&self, names: &[String]) -> Result<RecordBatch> {
        let is_there = |name: &&String| {
            self.objects.has(name) || self.images.as_ref().is_some_and(|images| images.has(name))
        };
        if let Some(name) = names.iter().find(|name| !is_there(name)) {
            return Err(Error::new(&self.path, format_args!("has no column {name:?}")).choice());
        }
        // Another file was copied when nobody wrote to it.
        if !self.file.is_copy() {
            check_complete(&self.path)?;
        }
        let connection = connect(&self.path, &self.file)?;
        let (own, theirs): (Vec<&String>, Vec<&String>) =
            names.iter().partition(|name| self.objects.has(name));
        let mut found: Vec<(&String, ArrayRef)> = vec![];
        let keys: Vec<&String> = if theirs.is_empty() { vec![] } else { self.keys.iter().collect() };
        let asked = [own.clone(), keys.clone()].concat();
        let mut columns = self.objects.read(&connection, &self.path, &asked)?;
        let key_columns = columns.split_off(own.len());
        found.extend(own.into_iter().zip(columns));
        if let (Some(images), false) = (&self.images, theirs.is_empty()) {
            let asked = [theirs.clone(), keys].concat();
            let mut columns = images.read(&connection, &self.path, &asked)?;
            let rows = self.image_rows(&key_columns, &columns.split_off(theirs.len()))?;
            for (name, column) in theirs.into_iter().zip(columns) {
                let taken = arrow_select::take::take(&column, &rows, None);
                found.push((name, taken.map_err(|e| Error::new(&self.path, e))?));
            }
        }
        let (mut fields, mut arrays) = (vec![], vec![]);
        for (name, column) in names.iter().filter_map(|name| found.iter().find(|(other, _)| *other == name)) {
            fields.push(Field::new(name.as_str(), column.data_type().clone(), true));
            arrays.push(Arc::clone(column));
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(|e| Error::new(&self.path, e))
    }

    /// The row of each cell's image, by the keys of cells and of images; null where there is none. Columns may have other types in the
    /// two tables: pandas writes whole numbers as floats where one is missing.
    fn image_rows(&self, cells: &[ArrayRef], images: &[ArrayRef]) -> Result<UInt64Array> {
        let compared = Comparison::of(&self.path, (&self.keys, cells), (&self.keys, images))?;
        let rows = |keys: &[ArrayRef]| keys.first().map_or(0, |column| column.len());
        let mut of_key: HashMap<String, u64> = HashMap::with_capacity(rows(images));
        for row in 0..rows(images) {
            let Some(text) = compared.key(images, row) else { continue };
            if let Some(other) = of_key.insert(text, row as u64) {
                let table = self.images.as_ref().map_or("", |table| table.name.as_str());
                let keys = self.keys.join(", ");
                let cause = format_args!("rows {other} and {row} of table {table} are alike in {keys}");
                return Err(Error::new(&self.path, cause)
                    .row(row)
                    .hint("runs that were put into one database need a TableNumber that tells them apart"));
            }
        }
        Ok((0..rows(cells)).map(|row| of_key.get(&compared.key(cells, row)?).copied()).collect())
    }
}

impl Table {
    fn of(connection: &Connection, name: String) -> rusqlite::Result<Self> {
        let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
        let columns = statement.query_map([&name], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        let probe = format!("SELECT o.rowid FROM {} AS o LIMIT 0", quoted(&name));
        let has_row_id = connection.prepare(&probe).is_ok();
        Ok(Self { name, columns, left_out: vec![], has_row_id })
    }

    /// The table without its columns of bytes.
    fn without_bytes(mut self, connection: &Connection, path: &Path) -> Result<Self> {
        let found = bytes::columns(connection, &self.name).map_err(|e| self.fault(connection, path, &e))?;
        self.columns.retain(|name| !found.contains(name));
        self.left_out = found.into_iter().map(|name| LeftOut { name, why: BYTES }).collect();
        Ok(self)
    }

    /// The error of a statement that went through this table: with the first row that cannot be read, where there is one.
    fn fault(&self, connection: &Connection, path: &Path, error: &rusqlite::Error) -> Error {
        self.read(connection, path, &[]).err().unwrap_or_else(|| refusal(path, error))
    }

    /// Whether there is a column of this name; SQLite does not tell large letters from small ones.
    fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.eq_ignore_ascii_case(name))
    }

    /// These columns, each as an array, in the order of the file.
    fn read(&self, connection: &Connection, path: &Path, columns: &[&String]) -> Result<Vec<ArrayRef>> {
        // A name in quotes alone would be text where there is no such column.
        let list: Vec<String> = columns.iter().map(|name| format!("o.{}", quoted(name))).collect();
        let order = if self.has_row_id { " ORDER BY o.rowid" } else { "" };
        let list = if list.is_empty() { "1".to_owned() } else { list.join(", ") };
        let sql = format!("SELECT {list} FROM {} AS o{order}", quoted(&self.name));
        let refuse = |e: rusqlite::Error| refusal(path, &e).also(format_args!("in table {}", self.name));
        let mut statement = connection.prepare(&sql).map_err(refuse)?;
        let mut rows = statement.query(()).map_err(refuse)?;
        let mut found: Vec<Column> = columns.iter().map(|_| Column::Nulls(0)).collect();
        let mut row = 0;
        while let Some(values) = rows.next().map_err(|e| refuse(e).row(row))? {
            for (i, (column, name)) in found.iter_mut().zip(columns).enumerate() {
                let value = values.get_ref(i).map_err(|e| refuse(e).row(row))?;
                column.push(value).map_err(|why| {
                    Error::new(path, format_args!("column {name:?} of table {} {why}", self.name))
                        .row(row)
                        .hint("set the value to NULL, or leave the column out of the table")
                })?;
            }
            row += 1;
        }
        Ok(found.into_iter().map(Column::finish).collect())
    }
}

/// Refuses a database beside which changes lie that are not in it.
fn check_complete(path: &Path) -> Result<()> {
    for ending in UNFINISHED {
        let mut beside = path.as_os_str().to_owned();
        beside.push(ending);
        let beside = PathBuf::from(beside);
        if place::open(&beside).is_ok_and(|(_, length)| length > 0) {
            let cause = format_args!("is being written, or was when a program ended: {}", beside.display());
            return Err(Error::new(path, cause)
                .hint("end the program that writes it, or open it with sqlite3 once, which completes it"));
        }
    }
    Ok(())
}

/// Opens a file for reading alone, as one that nobody changes: nothing is locked, and no file is made beside it.
fn connect(path: &Path, file: &LocalCopy) -> Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let refuse = |e: rusqlite::Error| refusal(path, &e);
    let connection = Connection::open_with_flags(address(file.path()), flags).map_err(refuse)?;
    // SQL in the file itself is not trusted.
    connection.execute_batch("PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;").map_err(refuse)?;
    Ok(connection)
}

/// Names of the tables, in order; neither views nor tables that a module computes.
fn table_names(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name";
    let mut statement = connection.prepare(sql)?;
    statement.query_map((), |row| row.get(0))?.collect()
}

/// The kind of a table's rows: the part of its name before that, and that.
fn kind(name: &str) -> Option<(&str, &str)> {
    match name.rfind(PER) {
        Some(at) => Some((&name[..at + PER.len()], &name[at + PER.len()..])),
        // cytominer-database's.
        None => OBJECTS[1..].contains(&name).then_some(("", name)),
    }
}

/// How good a table of objects it is, 0 the best; `None` for what is none.
fn rank(name: &str) -> Option<usize> {
    let (_, kind) = kind(name)?;
    let known = OBJECTS.iter().position(|object| *object == kind);
    known.or_else(|| (!OTHERS.contains(&kind)).then_some(OBJECTS.len()))
}

/// The names without tables of objects that lack a column of `wanted`, where another one has them all.
fn with_columns(
    connection: &Connection,
    mut names: Vec<String>,
    wanted: &[&str],
) -> rusqlite::Result<Vec<String>> {
    if wanted.is_empty() {
        return Ok(names);
    }
    let (mut lacking, mut is_in_one) = (vec![], false);
    for name in names.iter().filter(|name| rank(name).is_some()) {
        let table = Table::of(connection, name.clone())?;
        if wanted.iter().all(|column| table.has(column)) {
            is_in_one = true;
        } else {
            lacking.push(table.name);
        }
    }
    if is_in_one {
        names.retain(|name| !lacking.contains(name));
    }
    Ok(names)
}

/// The table of this name, or the one whose rows are such objects (`Nuclei` of `MyExpt_Per_Nuclei`), and that of their images.
fn named(path: &Path, names: &[String], table: &str) -> Result<(String, Option<String>)> {
    let is_kind = |name: &&String| kind(name).is_some_and(|(_, kind)| kind.eq_ignore_ascii_case(table));
    let mut of_kind = names.iter().filter(is_kind);
    let only = of_kind.next().filter(|_| of_kind.next().is_none());
    let exact = names.iter().find(|name| name.eq_ignore_ascii_case(table));
    let Some(name) = exact.or(only) else {
        let there = if names.is_empty() { "none".to_owned() } else { first_few(names, LISTED) };
        let error = Error::new(path, format_args!("has no table {table:?}"));
        return Err(error.choice().hint(format_args!("its tables: {there}")));
    };
    Ok((name.clone(), images_of(names, name)))
}

/// The table of the images of these objects.
fn images_of(names: &[String], objects: &str) -> Option<String> {
    let prefix = kind(objects).map_or("", |(prefix, _)| prefix);
    let images = format!("{prefix}Image");
    (names.contains(&images) && images != objects).then_some(images)
}

/// The table of objects, and that of their images where there is one.
fn choose(path: &Path, names: &[String]) -> Result<(String, Option<String>)> {
    let best = names.iter().filter_map(|name| rank(name)).min();
    let found: Vec<&String> =
        names.iter().filter(|&name| rank(name).is_some() && rank(name) == best).collect();
    match found[..] {
        [name] => Ok((name.clone(), images_of(names, name))),
        [] => {
            let there = first_few(names, LISTED);
            let cause = format_args!("is a SQLite database without a table of objects ({there})");
            Err(Error::new(path, cause).unsupported().hint(
                "CellProfiler calls it Per_Object or Per_Nuclei, cytominer-database Nuclei; another one is named FILE:TABLE",
            ))
        }
        _ => {
            let tables = counted(found.len(), "table");
            let all: Vec<&str> = found.iter().map(|name| name.as_str()).take(LISTED).collect();
            let cause = format_args!("has {tables} of objects: {}", all.join(", "));
            Err(Error::new(path, cause).hint(format_args!(
                "name the one behind the file: {}:{}",
                path.display(),
                found[0]
            )))
        }
    }
}

/// The error of a database.
fn refusal(path: &Path, error: &rusqlite::Error) -> Error {
    let found = Error::new(path, format_args!("cannot be read as a SQLite database: {error}"));
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::SystemIoFailure) => {
            found.hint("the file is damaged: copy or export it again")
        }
        _ => found,
    }
}

#[cfg(test)]
mod tests;
