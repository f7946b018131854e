//! The table of cells: its plain columns, from whatever file it is in.
//!
//! ```text
//!  file ── first bytes, ending ──▶ Parquet without images: columns are read when they are asked for
//!                                  SQLite of CellProfiler: likewise; FILE:TABLE names one of its tables
//!                                  CSV, TSV: all columns, in memory
//!                                  images: label images; so is a pattern, such as masks/*Nuclei*
//! ```
//!
//! A table of single cells has thousands of columns and may have gigabytes, of which positions and keys are a small part.

use crate::probe::SQLITE;
use crate::words::counted;
use crate::{
    Error, LeftOut, OpenOptions, Renamed, Result, Store, concat, parquet, place, suggested, text_columns,
};
use arrow_array::RecordBatch;
use std::path::{Path, PathBuf};

/// The kind of the file of cells.
pub(super) enum TableFile {
    /// Columns of plain values, a row per cell.
    Columns(CellTable),
    /// Label images: their labels are the cells.
    Labels(Box<dyn Store>),
}

/// The plain columns of a table, a row per cell.
#[derive(Debug)]
pub(super) struct CellTable {
    /// The file.
    pub path: PathBuf,
    /// Names of the columns.
    pub names: Vec<String>,
    /// The columns of the file that are not plain.
    pub left_out: Vec<LeftOut>,
    /// The columns whose names here are not those of the file, where several have one name.
    pub renamed: Vec<Renamed>,
    /// How many rows there are.
    pub rows: usize,
    columns: Columns,
}

/// Where the columns are.
#[derive(Debug)]
enum Columns {
    /// All in memory.
    Memory(RecordBatch),
    /// In the file, Parquet.
    Parquet,
    /// In the file, SQLite.
    #[cfg(feature = "sqlite")]
    Sqlite(Box<super::sqlite::Database>),
}

/// A path of cells as the file, and the table of it that `FILE:TABLE` names. A file of that whole name is a file.
pub fn file_and_table(path: &Path) -> (&Path, Option<&str>) {
    let named = path.to_str().and_then(|text| text.rsplit_once(':'));
    let Some((file, table)) = named.filter(|(file, table)| !file.is_empty() && !table.is_empty()) else {
        return (path, None);
    };
    let file = Path::new(file);
    if place::exists(path) || !place::is_file(file) { (path, None) } else { (file, Some(table)) }
}

/// Opens a table of cells, by its content. In a database of several tables, it takes the one that the path names behind
/// a colon. Else it takes the one that has the columns `wanted`.
///
/// # Errors
/// A file that is missing, damaged or of a kind that is not read; no such table, or one without rows.
pub(super) fn open(path: &Path, wanted: &[&str]) -> Result<TableFile> {
    // A pattern names files of a folder that has others too: the masks of nuclei beside those of cells.
    let is_pattern = concat::is_pattern(path) && !place::exists(path) && file_and_table(path).1.is_none();
    if is_pattern || place::is_folder(path) {
        return labels(path);
    }
    let (path, table) = file_and_table(path);
    let mut head = vec![];
    let (file, length) = place::open(path).map_err(|e| Error::io(path, "cannot open", &e))?;
    let looked_at = length.min(SQLITE.len() as u64);
    file.peek_after(0, looked_at, &mut head).map_err(|e| Error::io(path, "cannot read", &e))?;
    if head.is_empty() {
        return Err(Error::new(path, "the file is empty"));
    }
    if head == SQLITE {
        return sqlite(path, table, wanted).map(TableFile::Columns);
    }
    if let Some(table) = table {
        return Err(Error::new(path, format_args!("has no table {table:?}: it is no SQLite database"))
            .choice()
            .hint("give the path of the file alone"));
    }
    if head.starts_with(b"PAR1") && !(parquet::FORMAT.holds_images)(path) {
        let parquet::PlainNames { names, left_out, renamed, rows } = parquet::plain_names(path)?;
        if rows == 0 {
            return Err(Error::new(path, "the table has no rows"));
        }
        let (path, columns) = (path.to_owned(), Columns::Parquet);
        return Ok(TableFile::Columns(CellTable { path, names, left_out, renamed, rows, columns }));
    }
    if text_columns::is_text(path) {
        return Ok(TableFile::Columns(CellTable::in_memory(path, text_columns::read(path)?)));
    }
    labels(path)
}

#[cfg(feature = "sqlite")]
fn sqlite(path: &Path, table: Option<&str>, wanted: &[&str]) -> Result<CellTable> {
    let (database, rows) = super::sqlite::Database::open(path, table, wanted)?;
    if rows == 0 {
        return Err(Error::new(path, "the table has no rows"));
    }
    let (names, left_out) = (database.names(), database.left_out());
    let columns = Columns::Sqlite(Box::new(database));
    Ok(CellTable { path: path.to_owned(), names, left_out, renamed: vec![], rows, columns })
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(path: &Path, _: Option<&str>, _: &[&str]) -> Result<CellTable> {
    let cause = "is a SQLite database, which this build does not read";
    Err(Error::new(path, cause).unsupported().hint(
        "build with --features sqlite, or write its table of objects as Parquet, by CytoTable or by pandas: \
         read_sql(\"SELECT * FROM Per_Object\", sqlite3.connect(FILE)).to_parquet(\"cells.parquet\")",
    ))
}

fn labels(path: &Path) -> Result<TableFile> {
    let store = concat::open(path, &OpenOptions::default()).map_err(|error| {
        error.hint("a table of cells is Parquet, CSV, TSV or a SQLite database, or a set of label images in any format")
    })?;
    if store.is_empty() {
        return Err(Error::new(path, "there is no label image in it"));
    }
    Ok(TableFile::Labels(store))
}

impl CellTable {
    /// A table whose columns are here; errors name `path`.
    pub fn in_memory(path: &Path, columns: RecordBatch) -> Self {
        let names = columns.schema().fields().iter().map(|field| field.name().clone()).collect();
        let rows = columns.num_rows();
        let (path, columns) = (path.to_owned(), Columns::Memory(columns));
        Self { path, names, left_out: vec![], renamed: vec![], rows, columns }
    }

    /// The table, beside whose plain columns were others.
    pub fn beside(self, left_out: Vec<LeftOut>) -> Self {
        Self { left_out, ..self }
    }

    /// The columns of these names, in this order. There must be some, and all must be there.
    ///
    /// # Errors
    /// Columns that cannot be read; a file that has changed.
    pub fn read(&self, names: &[String]) -> Result<RecordBatch> {
        let columns = match &self.columns {
            Columns::Parquet => parquet::read_plain(&self.path, names)?,
            #[cfg(feature = "sqlite")]
            Columns::Sqlite(database) => database.read(names)?,
            Columns::Memory(all) => {
                let schema = all.schema();
                let places = names.iter().map(|name| schema.index_of(name)).collect::<Result<Vec<_>, _>>();
                let chosen = places.and_then(|places| all.project(&places));
                chosen.map_err(|e| Error::new(&self.path, e))?
            }
        };
        if columns.num_rows() != self.rows {
            let cause = format_args!("has {} now, and had {}", counted(columns.num_rows(), "row"), self.rows);
            return Err(Error::new(&self.path, cause).hint("the file has changed: open the set anew"));
        }
        Ok(columns)
    }

    /// Whether there is a column of this name.
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|other| other == name)
    }

    /// The error of a choice among columns, which lists what is there: those that have one of `words` in their names first.
    pub fn choice_error(&self, cause: impl std::fmt::Display, words: &[&str]) -> Error {
        Error::new(&self.path, cause).choice().hint(self.there(words))
    }

    /// The error of a column that is not there: names those that may have been meant, and some as [`Self::choice_error`] does.
    pub fn no_column(&self, name: &str, words: &[&str]) -> Error {
        let hint = format!("{}{}", suggested::question(name, &self.names), self.there(words));
        Error::new(&self.path, format_args!("has no column {name:?}")).choice().hint(hint)
    }

    /// How many columns there are, and the names of some. Those that have the first of the words come first.
    pub(super) fn there(&self, words: &[&str]) -> String {
        const LISTED: usize = 16;
        let ranked = self.names.iter().filter_map(|name| {
            let lower = name.to_ascii_lowercase();
            let rank = words.iter().position(|word| lower.contains(word))?;
            Some((rank, name.as_str()))
        });
        let mut near: Vec<(usize, &str)> = ranked.collect();
        near.sort_by_key(|(rank, _)| *rank);
        let mut names: Vec<&str> = near.into_iter().map(|(_, name)| name).collect();
        if names.is_empty() {
            names = self.names.iter().map(String::as_str).collect();
        }
        let some = names[..names.len().min(LISTED)].join(", ");
        let more = if names.len() < self.names.len() || names.len() > LISTED { " …" } else { "" };
        format!("it has {}: {some}{more}", counted(self.names.len(), "column"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str, bytes: &[u8]) -> Error {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        refusal_of(&path)
    }

    fn refusal_of(path: &Path) -> Error {
        match open(path, &[]) {
            Err(error) => error,
            Ok(_) => panic!("{} was opened", path.display()),
        }
    }

    #[test]
    fn files_that_are_no_table_say_what_they_are() {
        let sqlite = refusal("cells.sqlite", b"SQLite format 3\0and more").to_string();
        let why = if cfg!(feature = "sqlite") { "cannot be read as a SQLite database" } else { "Per_Object" };
        assert!(sqlite.contains("cells.sqlite") && sqlite.contains(why), "{sqlite}");
        assert!(refusal("cells.csv", b"").to_string().contains("the file is empty"));
        let other = refusal("cells.xlsx", b"PK\x03\x04 and more than that").to_string();
        assert!(other.contains("no image format recognised"), "{other}");
        let damaged = refusal("cells.parquet", b"PAR1 and nothing else").to_string();
        assert!(damaged.contains("cells.parquet"), "{damaged}");
        let dir = tempfile::tempdir().unwrap();
        assert!(open(&dir.path().join("none.csv"), &[]).is_err_and(|error| error.is_missing()));
    }

    /// For a set of images.
    #[test]
    fn tables_in_the_place_of_images_are_told_where_they_belong() {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in [("cells.csv", &b"Metadata_Well,x,y\nA01,1,2\n"[..]), ("cells.sqlite", SQLITE)] {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let Err(error) = concat::open(&path, &OpenOptions::default()) else { panic!("{name}") };
            let hint = "open the images. A table with a row for each cell goes to Dataset.cells";
            assert_eq!(error.hint_text(), Some(hint), "{error}");
        }
    }

    #[test]
    fn a_table_of_a_file_is_named_behind_a_colon() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cells.csv");
        std::fs::write(&path, "x,y\n1,2\n").unwrap();
        let with = |table: &str| dir.path().join(format!("cells.csv{table}"));
        assert_eq!(file_and_table(&path), (path.as_path(), None));
        assert_eq!(file_and_table(&with(":Per_Nuclei")), (path.as_path(), Some("Per_Nuclei")));
        for other in [":", "x:Per_Nuclei"] {
            assert_eq!(file_and_table(&with(other)), (with(other).as_path(), None));
        }
        let error = refusal_of(&with(":Per_Nuclei"));
        assert!(error.is_choice() && error.to_string().contains("no table \"Per_Nuclei\""), "{error}");
        // A file that is called so.
        std::fs::write(with(":b"), "x,y\n1,2\n").unwrap();
        assert_eq!(file_and_table(&with(":b")), (with(":b").as_path(), None));
    }

    #[test]
    fn chosen_columns_come_in_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cells.CSV");
        std::fs::write(&path, "x,y,Well\n1,2,A01\n3,4,A02\n").unwrap();
        let Ok(TableFile::Columns(table)) = open(&path, &[]) else { panic!("is a table") };
        assert_eq!((table.rows, table.names.join(" ")), (2, "x y Well".to_owned()));
        let chosen = table.read(&["Well".to_owned(), "x".to_owned()]).unwrap();
        assert_eq!(chosen.schema().field(0).name(), "Well");
        assert_eq!(chosen.num_columns(), 2);
        let error = table.choice_error("which?", &["well"]).to_string();
        assert!(error.ends_with("which? (hint: it has 3 columns: Well …)"), "{error}");
        // The words come in their order, whatever that of the columns is.
        let error = table.choice_error("which?", &["well", "y"]).to_string();
        assert!(error.ends_with("which? (hint: it has 3 columns: Well, y …)"), "{error}");
        let error = table.no_column("Metadata_Well", &["y"]).to_string();
        let expected = "has no column \"Metadata_Well\" (hint: is it \"Well\"? it has 3 columns: y …)";
        assert!(error.ends_with(expected), "{error}");
    }
}
