//! Some rows of a set, as a set: for tables with null images, and for sets that are brought into another's order.

use crate::each_row;
use crate::place::WantedRanges;
use crate::store::{ROWS_AHEAD, scan_ahead};
use crate::{
    EachImage, FeatureTable, Hints, PartTable, PixelSink, ReadExtent, Request, Result, RowHints, RowInfo,
    Scratch, SetPart, SiteSummary, SiteTable, Store, delegate_columns, delegate_store,
};
use arrow_array::RecordBatch;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use wellread_image::ImageMetadata;

/// A store whose rows are some of another store's rows. Errors name rows of the inner store, which are those of
/// the file.
pub struct Subset {
    inner: Arc<dyn Store>,
    rows: Vec<usize>,
}

impl Subset {
    /// These rows, in this order. A row that does not exist is an error when it is read.
    pub fn of(inner: impl Into<Arc<dyn Store>>, rows: Vec<usize>) -> Self {
        Self { inner: inner.into(), rows }
    }

    /// The rows that are no null. Looks at every row's shape.
    ///
    /// # Errors
    /// The error of a row beside that it is null.
    pub fn without_nulls(inner: Box<dyn Store>) -> Result<Self> {
        let rows = Self::not_null(&*inner)?;
        Ok(Self { inner: inner.into(), rows })
    }

    /// The rows of a store that are no null. Looks at every row's shape.
    ///
    /// # Errors
    /// As [`Self::without_nulls`].
    pub fn not_null(store: &dyn Store) -> Result<Vec<usize>> {
        let mut rows = Vec::with_capacity(store.len());
        for (row, info) in each_row::infos(store, store.len()).enumerate() {
            match info {
                Ok(_) => rows.push(row),
                Err(error) if error.is_null_image() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(rows)
    }

    /// How many rows of the inner store are left out.
    pub fn left_out(&self) -> usize {
        self.inner.len() - self.rows.len()
    }

    fn row(&self, row: usize) -> Result<usize> {
        let found = self.rows.get(row).copied();
        found.ok_or_else(|| crate::Error::no_such_row(self.path(), row, self.rows.len()))
    }

    fn inner_request(&self, request: &Request) -> Result<Request> {
        Ok(Request { row: self.row(request.row)?, region: request.region })
    }
}

impl Store for Subset {
    delegate_store!(self => self.inner; format, path, remote_path, layout, files, has_checksums);

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn row_info(&self, row: usize) -> Result<RowInfo> {
        self.inner.row_info(self.row(row)?)
    }

    fn check(&self, request: &Request) -> Result<RowInfo> {
        self.inner.check(&self.inner_request(request)?)
    }

    fn name(&self, row: usize) -> Result<String> {
        self.inner.name(self.row(row)?)
    }

    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        self.inner.metadata(self.row(row)?)
    }

    fn files_of(&self, rows: &[usize]) -> Result<Vec<PathBuf>> {
        let rows = rows.iter().map(|&row| self.row(row)).collect::<Result<Vec<_>>>()?;
        self.inner.files_of(&rows)
    }

    fn hints(&self) -> Hints<'_> {
        let inner = self.inner.hints();
        let sites = inner.sites.map(|_| self as &dyn SiteTable);
        let parts = inner.parts.map(|_| self as &dyn PartTable);
        Hints { columns: Some(self), sites, parts, ..inner }
    }

    fn row_hints(&self, row: usize) -> Result<RowHints<'_>> {
        self.inner.row_hints(self.row(row)?)
    }

    fn scan(&self, rows: Range<usize>, each: &mut EachImage<'_>) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.row(rows.end - 1)?;
        let chosen = self.rows.get(rows.clone()).unwrap_or_default();
        // Rows that follow one another in the inner store are one scan there.
        let runs: Vec<&[usize]> = chosen.chunk_by(|a, b| a + 1 == *b).collect();
        // A scan of few rows ends before it has looked ahead.
        if self.remote_path().is_some() && runs.len() > 1 && chosen.len() < ROWS_AHEAD * runs.len() {
            return scan_ahead(self, rows, each);
        }
        let mut at = rows.start;
        for run in runs {
            self.inner.scan(run[0]..run[0] + run.len(), &mut |_, info, pixels| {
                at += 1;
                each(at - 1, info, pixels)
            })?;
        }
        Ok(())
    }

    fn heads(&self, rows: &[usize], extent: ReadExtent, wanted: &mut WantedRanges) {
        let inner: Vec<usize> = rows.iter().filter_map(|&row| self.row(row).ok()).collect();
        self.inner.heads(&inner, extent, wanted);
    }

    fn ranges(&self, requests: &[Request], wanted: &mut WantedRanges) -> Result<()> {
        let inner = requests.iter().map(|request| self.inner_request(request));
        self.inner.ranges(&inner.collect::<Result<Vec<_>>>()?, wanted)
    }

    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        let inner = requests.iter().map(|request| self.inner_request(request));
        self.inner.read(&inner.collect::<Result<Vec<_>>>()?, scratch, sink)
    }
}

impl PartTable for Subset {
    fn parts(&self) -> Vec<SetPart> {
        SetPart::regrouped(self.inner.hints().set_parts(), self.rows.iter().copied())
    }

    fn names_begin_with_parts(&self) -> bool {
        self.inner.hints().names_begin_with_parts()
    }
}

impl SiteTable for Subset {
    /// That of the whole set.
    fn summary(&self) -> SiteSummary {
        self.inner.hints().sites.map(SiteTable::summary).unwrap_or_default()
    }

    fn complete(&self, row: usize) -> Result<()> {
        let row = self.row(row)?;
        self.inner.hints().sites.map_or(Ok(()), |sites| sites.complete(row))
    }

    fn look_into(&self, row: usize) -> Result<()> {
        let inner = self.row(row)?;
        self.inner.hints().look_into(inner).map_err(|e| e.of_row(row))
    }

    fn files_of_rows(&self) -> Vec<Vec<PathBuf>> {
        let all = self.inner.hints().sites.map(SiteTable::files_of_rows).unwrap_or_default();
        self.rows.iter().map(|&row| all.get(row).cloned().unwrap_or_default()).collect()
    }
}

impl FeatureTable for Subset {
    delegate_columns!(self => self.inner; feature_names, columns_left_out, columns_renamed, columns_in_utc);
    delegate_columns!(self => self.inner; has_row_numbers);

    fn features(&self, names: &[String]) -> Result<Option<RecordBatch>> {
        crate::features::of_rows(&*self.inner, names, self.rows.iter().map(|&row| Some(row as u64)))
    }
}
