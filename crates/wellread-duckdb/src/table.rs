//! Reading: rows from the file's blocks where [`direct`] can, as pieces or record batches; the rest by queries.

mod columns;
mod query;
mod source;

use crate::connection::{Borrowed, Database, failed};
use crate::direct::{self, Blocks, Direct, Layout};
use crate::file::{self, check_file, check_length, has_log, is_tested, log_of};
use crate::sql;
use crate::table_ref;
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};
use source::{Numbered, PARQUET_KEY, Source};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use wellread_image::ome_arrow::{FILE_WRITER_KEY, field};
use wellread_store::direct::{Plans, rest_by_library};
use wellread_store::place::File;
use wellread_store::spool::LocalCopy;
use wellread_store::stamp::{Stamp, unless_written};
use wellread_store::table::{Columns, EachRow, ImageTable, Rows};
use wellread_store::words::counted;
use wellread_store::{Error, FormatContext, LeftOut, OpenOptions, Result, StoreLayout};

/// Name of the format of native tables.
pub(crate) const NAME: &str = "duckdb";
/// Name of the format of Parquet files that DuckDB reads and writes.
pub(crate) const PARQUET_NAME: &str = "parquet-duckdb";

/// Segments whose description is kept for later plans, at most: one takes about 200 bytes.
const KEPT_SEGMENTS: usize = 1 << 16;

/// A table, open for reading.
pub struct DuckTable {
    path: PathBuf,
    database: Database,
    source: Source,
    schema: SchemaRef,
    /// The columns without plain values, of which the schema says otherwise.
    left_out: Vec<LeftOut>,
    rows: usize,
    is_trusted: bool,
    /// Blocks of a native table whose rows are numbered as they lie in the file.
    blocks: Option<Arc<Blocks>>,
    /// Where its columns lie in them, asked for once: that takes longer than all else of opening a large table.
    segments: OnceLock<Arc<Layout>>,
    /// The parts that can be read from them, by the columns asked for.
    plans: Plans<Option<Arc<Direct>>>,
    /// Opened before the database and closed after it. Closing any handle of a file gives up the process's locks on it,
    /// of which DuckDB has one.
    file: Arc<File>,
    stamp: Option<Stamp>,
    /// The file, or a copy of it, which goes last.
    local: LocalCopy,
}

impl DuckTable {
    /// Opens a table of a database file: the one named, or the only one with images.
    ///
    /// # Errors
    /// A file that is corrupt, newer or locked; no such table, or several (the message lists them).
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        let local = file::local(path)?;
        let file = Arc::new(check_file(path, &local)?);
        let database = Database::open(path, &local)?;
        let table_ref = table_ref::find(&database, path, options.table.as_deref())?;
        let connection = database.connection(path)?;
        let blocks = check_length(path, &file, &connection)?;
        let is_trusted = table_ref.is_ours;
        let Numbered { source, rows, are_places } = Numbered::of(path, &connection, table_ref)?;
        drop(connection);
        // Changes that are not in the file's blocks yet stand in a log beside it.
        let in_blocks = are_places && !has_log(path) && is_tested(path, &file);
        let mut table = Self::of(path, local, file, database, source, rows, is_trusted)?;
        if in_blocks {
            table.blocks = blocks.map(Arc::new);
        }
        Ok(table)
    }

    /// Opens a Parquet file with DuckDB's reader.
    ///
    /// # Errors
    /// A file that is missing or that DuckDB cannot read.
    pub fn open_parquet(path: &Path) -> Result<Self> {
        let local = LocalCopy::of(path, "DuckDB")?;
        let file = Arc::new(check_file(path, &local)?);
        let database = Database::in_memory(path)?;
        let connection = database.connection(path)?;
        let name = sql::file(local.path());
        let ask = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        let rows = ask(&format!("SELECT num_rows FROM parquet_file_metadata({name})"))
            .map_err(|e| failed(path, "cannot read the Parquet file", &e))?;
        let marks = ask(&format!(
            "SELECT count(*) FROM parquet_kv_metadata({name}) WHERE decode(key) = {}",
            sql::literal(FILE_WRITER_KEY)
        ))
        .map_err(|e| failed(path, "cannot read the Parquet file's marks", &e))?;
        drop(connection);
        Self::of(path, local, file, database, Source::Parquet, rows, marks > 0)
    }

    fn of(
        path: &Path,
        local: LocalCopy,
        file: Arc<File>,
        database: Database,
        source: Source,
        rows: i64,
        is_trusted: bool,
    ) -> Result<Self> {
        let rows =
            usize::try_from(rows).map_err(|_| Error::new(path, format_args!("declares {rows} rows")))?;
        let mut table = Self {
            path: path.to_owned(),
            database,
            source,
            schema: Arc::new(Schema::empty()),
            left_out: vec![],
            rows,
            is_trusted,
            blocks: None,
            segments: OnceLock::new(),
            plans: Plans::new(usize::MAX),
            stamp: Stamp::when_opened(&file),
            file,
            local,
        };
        let is_parquet = matches!(table.source, Source::Parquet);
        let connection = table.database.connection(path)?;
        let from = table.source.from(table.local.path());
        let file = is_parquet.then(|| sql::file(table.local.path()));
        let (schema, left_out) = columns::of(path, &connection, &from, file.as_deref())?;
        drop(connection);
        // DuckDB's own number is no column of the file.
        let columns = schema.fields().iter().filter(|f| !is_parquet || f.name() != PARQUET_KEY);
        table.schema = Arc::new(Schema::new(columns.cloned().collect::<Vec<_>>()));
        table.left_out = left_out;
        Ok(table)
    }

    /// The outcome of reading the file, or the error that somebody wrote to it since it was opened.
    fn unless_written<T>(&self, outcome: Result<T>) -> Result<T> {
        unless_written(self.stamp, &self.file, &self.path, outcome)
    }

    /// The reader of this crate for some columns; `None` where DuckDB has to read them.
    pub(crate) fn direct(&self, columns: &Columns) -> Option<Arc<Direct>> {
        let blocks = self.blocks.as_ref()?;
        let (Source::Keyed(table_ref) | Source::Native(table_ref, _)) = &self.source else { return None };
        let make = || {
            let connection = self.database.connection(&self.path).map_err(drop)?;
            let table = &table_ref.sql();
            let layout = &self.segments(&connection, table).ok_or(())?;
            let (schema, rows) = (&self.schema, self.rows);
            let source = direct::Source { blocks, connection: &connection, table, rows, schema, layout };
            Ok::<_, ()>(Direct::new(&source, columns).map(Arc::new))
        };
        self.plans.get(columns, make).ok().flatten()
    }

    /// Where the columns lie in the file.
    fn segments(&self, connection: &Borrowed<'_>, table: &str) -> Option<Arc<Layout>> {
        if let Some(known) = self.segments.get() {
            return Some(Arc::clone(known));
        }
        let layout = Arc::new(Layout::new(connection, table, &self.schema)?);
        if layout.segments() <= KEPT_SEGMENTS {
            // Another thread may have been first, and found the same.
            let _ = self.segments.set(Arc::clone(&layout));
        }
        Some(layout)
    }

    /// The columns that a store asks for to read pixels, of each column of images: those of the list that it reads first.
    pub(crate) fn pieces(&self) -> Vec<Vec<Vec<String>>> {
        let columns = self.schema.fields().iter().filter_map(|column| {
            let DataType::Struct(fields) = column.data_type() else { return None };
            let list = [field::CHUNKS, field::PLANES].into_iter().find_map(|n| fields.find(n))?.1;
            let DataType::List(element) = list.data_type() else { return None };
            let DataType::Struct(inner) = element.data_type() else { return None };
            let names = field::ORIGIN.iter().chain(&field::CHUNK_SHAPE).chain([&field::PIXELS]);
            let names = names.filter(|name| inner.find(name).is_some());
            let path = |name: &&str| vec![column.name().clone(), list.name().clone(), (*name).to_owned()];
            fields.find(field::PIXELS_META).map(|_| names.map(path).collect())
        });
        columns.collect()
    }

    /// Whether the pixels of all images are read from blocks.
    fn pixels_are_direct(&self) -> bool {
        let pieces = self.pieces();
        !pieces.is_empty() && pieces.iter().all(|columns| self.direct(columns).is_some())
    }

    /// One text that DuckDB knows about the storage; empty where it knows none.
    fn text(&self, connection: &Borrowed<'_>, sql: &str) -> Result<String> {
        let found = connection.query_row(sql, [], |row| row.get::<_, Option<String>>(0));
        let found = found.map_err(|e| failed(&self.path, "cannot look at the storage", &e))?;
        Ok(found.unwrap_or_default())
    }
}

impl ImageTable for DuckTable {
    fn format(&self) -> &'static str {
        if matches!(self.source, Source::Parquet) { PARQUET_NAME } else { NAME }
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> usize {
        self.rows
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn columns_left_out(&self) -> Vec<LeftOut> {
        self.left_out.clone()
    }

    fn has_infinity(&self) -> bool {
        !matches!(self.source, Source::Parquet)
    }

    fn types_are_trusted(&self) -> bool {
        self.is_trusted
    }

    fn rows_per_read(&self) -> usize {
        // Index look-ups cost the same one by one; scans of whole vectors are worth sharing.
        match self.source {
            _ if self.pixels_are_direct() => 1,
            Source::Keyed(_) => 128,
            _ => 512,
        }
    }

    fn is_constant(&self, columns: &Columns) -> bool {
        let (Some(_), Source::Keyed(table_ref) | Source::Native(table_ref, _)) = (&self.blocks, &self.source)
        else {
            return false;
        };
        let Ok(connection) = self.database.connection(&self.path) else { return false };
        self.segments(&connection, &table_ref.sql()).is_some_and(|layout| {
            let is_constant = |path: &Vec<String>| {
                numbered(self.schema.fields(), path).is_some_and(|p| layout.is_constant(&p, self.rows))
            };
            columns.iter().all(is_constant)
        })
    }

    fn layout(&self) -> Result<StoreLayout> {
        let connection = self.database.connection(&self.path)?;
        let (codec, row_groups, variant);
        if let Source::Keyed(table_ref) | Source::Native(table_ref, _) = &self.source {
            let name = sql::literal(&table_ref.sql());
            codec = self.text(
                &connection,
                &format!(
                    "SELECT lower(string_agg(DISTINCT compression, '+' ORDER BY compression)) FROM \
                     pragma_storage_info({name}) WHERE segment_type NOT IN ('VALIDITY', 'VARCHAR') AND count > 0 AND column_path \
                     LIKE '[%, %, %, %' AND compression NOT IN ('Constant', 'Empty Validity')"
                ),
            )?;
            row_groups = self.text(
                &connection,
                &format!("SELECT count(DISTINCT row_group_id)::TEXT FROM pragma_storage_info({name})"),
            )?;
            let key = if matches!(self.source, Source::Keyed(_)) { ", primary key" } else { "" };
            variant = format!("table {}{key}", table_ref.sql().replace('"', ""));
        } else {
            let name = sql::file(self.local.path());
            codec = self.text(
                &connection,
                &format!(
                    "SELECT lower(string_agg(DISTINCT compression, '+')) FROM parquet_metadata({name}) WHERE \
                     path_in_schema LIKE '%pixels%'"
                ),
            )?;
            row_groups = self.text(
                &connection,
                &format!("SELECT num_row_groups::TEXT FROM parquet_file_metadata({name})"),
            )?;
            variant = "read by DuckDB".to_owned();
        }
        let codec = if codec == "uncompressed" { "none".to_owned() } else { codec };
        let pieces =
            row_groups.parse::<usize>().map_or_else(|_| String::new(), |groups| counted(groups, "row group"));
        Ok(StoreLayout { codec, pieces, variant, ..StoreLayout::default() })
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let mut files = vec![self.path.clone()];
        // Rows may have changed in the log alone. One in a bucket is refused.
        let may_have_log = !matches!(self.source, Source::Parquet) && !self.local.is_copy();
        if may_have_log && has_log(&self.path) {
            files.push(log_of(&self.path));
        }
        Ok(files)
    }

    fn read(
        &self,
        rows: Rows<'_>,
        columns: &Columns,
        context: &mut FormatContext,
        each: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let outcome = if let Some(direct) = self.direct(columns) {
            let read = direct.read(&rows, context, each);
            rest_by_library(read, each, |done, each| self.read_by_query(rows.after(done), columns, each))
        } else {
            self.read_by_query(rows, columns, each)
        };
        self.unless_written(outcome)
    }

    fn read_pieces(
        &self,
        rows: &[usize],
        columns: &Columns,
        context: &mut FormatContext,
        each: &mut EachRow<'_>,
    ) -> Result<usize> {
        let outcome = self.direct(columns).map_or(Ok(0), |direct| direct.read_pieces(rows, context, each));
        self.unless_written(outcome)
    }
}

/// A column's place in the tree: its number in the table, then the numbers of fields from 1. `None` where the path does
/// not lead through structs alone.
fn numbered(fields: &arrow_schema::Fields, path: &[String]) -> Option<Vec<usize>> {
    let (first, rest) = path.split_first()?;
    let (number, mut field) = fields.find(first)?;
    let mut numbers = vec![number];
    for name in rest {
        let DataType::Struct(fields) = field.data_type() else { return None };
        let (number, inner) = fields.find(name)?;
        numbers.push(number + 1);
        field = inner;
    }
    Some(numbers)
}
