//! A read of columns: which pieces hold the rows of a batch, and how their parts become the arrays of a record batch.
//!
//! ```text
//!  columns ──pick──▶ Plan: series ──look_up──▶ pieces of the next rows ──add──▶ parts of them ──batch──▶ RecordBatch
//! ```

use crate::gather::{BufferPool, Gather, LEVELS, Part, structure, weight};
use crate::rows::Located;
use crate::session::{Cause, Session};
use crate::tree::{Column, Series, Source};
use crate::types::{MASK, Type};
use std::cell::Cell;
use vortex::array::VortexSessionExecute;
use vortex::layout::segments::SegmentId;
use wellread_store::direct::{ALL, Run, WantedFields, append};
use wellread_store::table::arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StructArray};
use wellread_store::table::arrow_buffer::NullBuffer;

/// The plan of a read: the series that a call needs, and the parts of their pieces that hold the rows so far.
#[derive(Default)]
pub(crate) struct Plan<'a> {
    series: Vec<Selected<'a>>,
    /// Rows of the batch so far.
    pub rows: usize,
    /// Rows that were looked up last.
    pub looked_up: usize,
    /// How many of them are in a batch.
    pub taken: usize,
    /// Which series is being read, and the first row of those that are.
    reading: Cell<Option<(usize, usize)>>,
}

struct Selected<'a> {
    /// Name of the field, which a mask does not have.
    name: Option<&'a str>,
    series: &'a Series,
    wanted: &'a WantedFields,
    located: Located,
    /// Which rows are wanted of which of them, by its number among those held.
    parts: Vec<Run<usize>>,
}

/// How columns become arrays: like the wanted part of the tree, with indices into the plan.
pub(crate) enum ColumnPlan<'a> {
    Series { at: usize, of: &'a Type },
    Struct { validity: Option<usize>, of: &'a Type, fields: Vec<ColumnPlan<'a>> },
}

impl<'a> Plan<'a> {
    fn take(&mut self, name: Option<&'a str>, series: &'a Series, wanted: &'a WantedFields) -> usize {
        self.series.push(Selected { name, series, wanted, located: Located::default(), parts: vec![] });
        self.series.len() - 1
    }

    /// Adds what `wanted` needs of a column, of which `of` is the type.
    pub fn pick(
        &mut self,
        column: &'a Column,
        of: &'a Type,
        wanted: &'a WantedFields,
    ) -> Result<ColumnPlan<'a>, Cause> {
        let (validity, fields) = match column {
            Column::Series(series) => {
                return Ok(ColumnPlan::Series {
                    at: self.take(Some(of.field.name().as_str()), series, wanted),
                    of,
                });
            }
            Column::Struct { validity, fields } => (validity, fields),
        };
        let validity = validity.as_ref().map(|v| self.take(None, v, &ALL));
        let mut picked = Vec::with_capacity(of.below.len());
        // Both are in the file's order.
        let mut fields = fields.iter();
        for of in &of.below {
            let name = of.field.name();
            let column = fields.find(|(n, _)| n == name).map(|(_, column)| column);
            let (Some(column), Some(wanted)) = (column, wanted.field(name)) else {
                return Err(format!("the column {name} is not where the file's type says").into());
            };
            picked.push(self.pick(column, of, wanted)?);
        }
        Ok(ColumnPlan::Struct { validity, of, fields: picked })
    }

    /// The name of the column that was being read when a read failed, and a row of it.
    pub fn being_read(&self) -> Option<(&'a str, usize)> {
        let (at, row) = self.reading.get()?;
        Some((self.series.get(at)?.name?, row))
    }

    /// The segments of the pieces of some rows, of all series, without those of pieces that are kept.
    pub fn missing(&self, rows: &[usize], source: &Source) -> Result<Vec<SegmentId>, Cause> {
        let mut missing = vec![];
        for Selected { series, .. } in &self.series {
            missing.extend(series.missing(rows, source)?);
        }
        Ok(missing)
    }

    /// Begins a batch.
    pub fn clear(&mut self) {
        self.rows = 0;
        self.series.iter_mut().for_each(|selected| selected.parts.clear());
    }

    /// Finds the pieces of the next rows, and has the wanted parts fetched from memory, level by level. The place of
    /// a list has to be known before its elements can be asked for.
    pub fn look_up(&mut self, rows: &[usize], source: &Source) -> Result<(), Cause> {
        (self.looked_up, self.taken) = (0, 0);
        for (at, Selected { series, wanted, located, parts, .. }) in self.series.iter_mut().enumerate() {
            self.reading.set(rows.first().map(|&row| (at, row)));
            // Parts of the batch so far refer to them.
            if parts.is_empty() {
                located.release();
            }
            located.look_up(rows, series, wanted, source)?;
        }
        for level in 1..=LEVELS {
            for Selected { wanted, located, .. } in self.series.iter().filter(|s| s.series.is_nested()) {
                located.prefetch(wanted, level);
            }
        }
        self.looked_up = rows.len();
        Ok(())
    }

    /// Adds the next of the rows that were looked up, and tells how many bytes it will have; `None` where there is none.
    pub fn add(&mut self) -> Option<usize> {
        if self.taken == self.looked_up {
            return None;
        }
        let mut bytes = 0;
        for Selected { series, wanted, located: Located { held, found }, parts, .. } in &mut self.series {
            let (number, at) = found[self.taken];
            append(parts, number, at..at + 1);
            bytes += if series.is_nested() { weight(&held[number].piece, &(at..at + 1), wanted) } else { 8 };
        }
        self.taken += 1;
        self.rows += 1;
        Some(bytes)
    }

    /// The rows of the batch as the columns that `pick` says.
    pub fn batch(&self, pick: &ColumnPlan<'_>, pool: &mut BufferPool) -> Result<RecordBatch, Cause> {
        let session = &Session::reading().session;
        let mut gather = Gather { session, ctx: session.create_execution_ctx(), pool };
        let table = self.array(pick, &mut gather)?;
        let table =
            table.as_any().downcast_ref::<StructArray>().ok_or_else(|| "the file is no table".to_owned())?;
        Ok(RecordBatch::from(table))
    }

    fn array(&self, pick: &ColumnPlan<'_>, gather: &mut Gather<'_>) -> Result<ArrayRef, Cause> {
        match pick {
            ColumnPlan::Series { at, of } => self.gathered(*at, of, gather),
            ColumnPlan::Struct { validity, of, fields } => {
                let valid = validity.map(|at| self.gathered(at, &MASK, gather)).transpose()?;
                let nulls = valid.as_ref().and_then(|v| v.as_any().downcast_ref::<BooleanArray>());
                let nulls = nulls.map(|v| NullBuffer::new(v.values().clone()));
                let arrays = fields.iter().map(|pick| self.array(pick, gather));
                let arrays = arrays.collect::<Result<_, Cause>>()?;
                structure(of, arrays, nulls.filter(|n| n.null_count() > 0), self.rows)
            }
        }
    }

    fn gathered(&self, at: usize, of: &Type, gather: &mut Gather<'_>) -> Result<ArrayRef, Cause> {
        let Selected { located: Located { held, .. }, parts, .. } = &self.series[at];
        let first = parts.first().map(|run| held[run.part].first_row() + run.values.start);
        self.reading.set(first.map(|row| (at, row)));
        let part = |run: &Run<usize>| Part { piece: &held[run.part].piece, rows: run.values.clone() };
        let parts: Vec<_> = parts.iter().map(part).collect();
        gather.array(&parts, of)
    }
}
