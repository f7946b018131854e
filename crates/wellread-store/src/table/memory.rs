//! [`MemoryTable`]: record batches that a program already has.

use super::{Columns, ImageTable, Rows};
use crate::features::unique_schema;
use crate::words::counted;
use crate::{FormatContext, Result, StoreLayout};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellread_image::ome_arrow::FILE_WRITER_KEY;

/// Record batches with a column of images, read where they are. Clones share them.
#[derive(Clone, Debug)]
pub struct MemoryTable {
    name: PathBuf,
    schema: SchemaRef,
    batches: Arc<[RecordBatch]>,
    /// The first row of each batch, and one more for the end.
    starts: Arc<[usize]>,
}

impl MemoryTable {
    /// A table of batches that all have this schema; errors call it by `name`. Where columns have one name, all but the first get
    /// `_y` behind it.
    pub fn new(name: impl Into<PathBuf>, schema: SchemaRef, mut batches: Vec<RecordBatch>) -> Self {
        let (unique, renamed) = unique_schema(&schema, &|_| false);
        let schema = if renamed.is_empty() { schema } else { Arc::new(unique) };
        if !renamed.is_empty() {
            for batch in &mut batches {
                if let Ok(named) = RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec()) {
                    *batch = named;
                }
            }
        }
        let batches: Vec<_> = batches.into_iter().filter(|batch| batch.num_rows() > 0).collect();
        let mut starts = vec![0];
        starts.extend(batches.iter().scan(0, |end, batch| {
            *end += batch.num_rows();
            Some(*end)
        }));
        Self { name: name.into(), schema, batches: batches.into(), starts: starts.into() }
    }

    /// Rows `first..last`, batch by batch.
    fn slices(
        &self,
        mut first: usize,
        last: usize,
        columns: &[usize],
        each: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let mut at = self.starts.partition_point(|&start| start <= first).saturating_sub(1);
        while first < last {
            let end = last.min(self.starts[at + 1]);
            let batch = self.batches[at].slice(first - self.starts[at], end - first);
            each(batch.project(columns).map_err(|e| crate::Error::new(&self.name, e))?)?;
            (first, at) = (end, at + 1);
        }
        Ok(())
    }
}

impl ImageTable for MemoryTable {
    fn format(&self) -> &'static str {
        "arrow"
    }

    fn path(&self) -> &Path {
        &self.name
    }

    fn len(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn types_are_trusted(&self) -> bool {
        self.schema.metadata().contains_key(FILE_WRITER_KEY)
    }

    fn layout(&self) -> Result<StoreLayout> {
        let pieces = counted(self.batches.len(), "record batch");
        let (codec, variant) = ("none".into(), "in memory".into());
        Ok(StoreLayout { codec, pieces, variant, ..StoreLayout::default() })
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        Ok(vec![])
    }

    fn batch_of(&self, row: usize) -> Option<(&RecordBatch, Range<usize>)> {
        let at = self.starts.partition_point(|&start| start <= row).checked_sub(1)?;
        Some((self.batches.get(at)?, self.starts[at]..*self.starts.get(at + 1)?))
    }

    fn read(
        &self,
        rows: Rows<'_>,
        columns: &Columns,
        _: &mut FormatContext,
        each: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let wanted = |name: &str| columns.iter().any(|path| path.first().is_some_and(|first| first == name));
        let fields = self.schema.fields().iter().enumerate();
        let columns: Vec<usize> = fields.filter(|(_, field)| wanted(field.name())).map(|(i, _)| i).collect();
        match rows {
            Rows::Range(range) => self.slices(range.start, range.end, &columns, each),
            Rows::Chosen(rows) => {
                let runs = rows.chunk_by(|a, b| a + 1 == *b);
                runs.into_iter()
                    .try_for_each(|run| self.slices(run[0], run[run.len() - 1] + 1, &columns, each))
            }
        }
    }
}
