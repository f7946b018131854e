//! Rows that Lance reads, once the sizes that compressed pieces of their pages claim were looked at.

use super::LanceTable;
use super::plan::{DataFile, Plan};
use crate::bridge::import;
use crate::fragment::FragmentReader;
use crate::runtime::{catch_panic, wait};
use arrow_array::RecordBatch;
use futures::StreamExt;
use lance_table::format;
use std::sync::Arc;
use wellread_store::direct::Fault::{self, Irregular};
use wellread_store::direct::UNREADABLE;
use wellread_store::{Error, Result};

impl LanceTable {
    /// Lance's reader for a fragment.
    fn engine<'a>(&self, plan: &'a Plan, index: usize) -> Result<&'a FragmentReader> {
        let kept = &plan.fragments[index].engine;
        if let Some(reader) = kept.get() {
            return Ok(reader);
        }
        let fragment = &self.fragments[index];
        // The files whose footers were looked at.
        let files = self.data_files(fragment)?;
        let known = |file: &format::DataFile| {
            let same = |f: &&DataFile| file.base_id.is_none() && f.name == file.path;
            files.iter().find(same).map(|f| Arc::clone(&f.metadata))
        };
        let opening = FragmentReader::open(&self.dataset, &fragment.lance, &plan.projection, known);
        let reader = wait(&self.path, "cannot open a data file", opening)?;
        Ok(kept.get_or_init(|| reader))
    }

    /// Reads rows of a fragment by Lance.
    pub(super) fn read_by_engine(
        &self,
        plan: &Plan,
        index: usize,
        positions: &[u32],
        each: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        self.check_claims(plan, index, positions)?;
        let reader = self.engine(plan, index)?;
        let what = "cannot read";
        let mut batches = wait(&self.path, what, reader.read(positions))?;
        while let Some(batch) = wait(&self.path, what, async { batches.next().await.transpose() })? {
            each(import(batch).map_err(|why| Error::new(&self.path, format_args!("{what}: {why}")))?)?;
        }
        Ok(())
    }

    /// Looks at what compressed pieces of rows claim: Lance asks for as much memory, and the process ends where there is
    /// not so much. Files of releases that were not tested here may be laid out in another way, and are Lance's own.
    fn check_claims(&self, plan: &Plan, index: usize, positions: &[u32]) -> Result<()> {
        if !self.is_followed {
            return Ok(());
        }
        let fragment = &self.fragments[index];
        let rows = fragment.lance.physical_rows.unwrap_or(0);
        let files = self.data_files(fragment)?;
        for id in plan.projection.field_ids() {
            for file in files {
                let (Some(&number), Some(input)) = (file.columns.get(&id), &file.input) else { continue };
                let Some(column) = file.metadata.column_infos.get(number) else { continue };
                // Lance's own parts panic on some bytes that are not as they should be.
                let checked =
                    catch_panic(|| file.checked_pages.check(input, column, number, positions, rows));
                match checked.unwrap_or(Err(Irregular("a panic"))) {
                    // A fault of a network is no damage: Lance, which asks again, gives its error.
                    Err(Irregular(UNREADABLE)) if input.is_remote() => {}
                    Err(Irregular(why)) => return Err(self.damaged(why)),
                    Err(Fault::TooNarrow | Fault::Unknown) | Ok(()) => {}
                }
            }
        }
        Ok(())
    }

    /// The error of a data file whose bytes are not as they should be.
    pub(super) fn damaged(&self, why: &str) -> Error {
        Error::new(&self.path, format_args!("cannot read: the data file is damaged: {why}"))
            .hint("the dataset is probably corrupt or incomplete; copy or write it again")
    }
}
