//! Where the bytes of rows lie, for those who ask for them before they are read.
//!
//! ```text
//!  rows ─▶ fragments ─┬─ not opened ─▶ the ends of their data files
//!                     └─ opened ─────▶ Direct: what tells where chunks lie ─▶ the chunks
//! ```
//!
//! Fragments that Lance has to read by itself say nothing.

use super::LanceTable;
use super::ends::want_end;
use super::plan::Fragment;
use std::convert::Infallible;
use wellread_store::Result;
use wellread_store::ahead::Fetching;
use wellread_store::place::{self, Ticket, Wanted};
use wellread_store::table::{Columns, Rows};

impl LanceTable {
    pub(super) fn heads_of(&self, rows: &[usize], columns: &Columns, wanted: &mut Wanted) {
        let Ok(plan) = self.plan(columns) else { return };
        let _ = self.rows.stretches(&Rows::Chosen(rows), &mut vec![], |index, positions| {
            let fragment = &self.fragments[index];
            if fragment.files.get().is_none() {
                self.ends(fragment, wanted);
            } else if let Some(direct) = self.direct(&plan, index) {
                direct.heads(positions, wanted);
            }
            Ok::<_, Infallible>(())
        });
    }

    pub(super) fn ranges_of(&self, rows: &[usize], columns: &Columns, wanted: &mut Wanted) -> Result<()> {
        let plan = self.plan(columns)?;
        self.rows.stretches(&Rows::Chosen(rows), &mut vec![], |index, positions| {
            if let Some(direct) = self.direct(&plan, index) {
                direct.ranges(positions, wanted);
            }
            Ok(())
        })
    }

    /// Asks for the ends of data files that rows are going to be read from and that are not open yet. It asks for those of all
    /// fragments at once where each would be waited for. To be held until they are open.
    pub(super) fn open_ahead(&self, rows: &Rows<'_>) -> Vec<Ticket> {
        let is_open = |fragment: &Fragment| fragment.files.get().is_some();
        if !place::is_remote(&self.path) || self.fragments.iter().all(is_open) {
            return vec![];
        }
        let (mut wanted, mut fragments) = (Wanted::default(), 0);
        let _ = self.rows.stretches(rows, &mut vec![], |index, _| {
            if !is_open(&self.fragments[index]) {
                self.ends(&self.fragments[index], &mut wanted);
                fragments += 1;
            }
            Ok::<_, Infallible>(())
        });
        let fetching = if fragments > 1 { Fetching::of(&self.path, None) } else { None };
        fetching.map(|mut fetching| fetching.fetch(&wanted)).unwrap_or_default()
    }

    /// Adds the ends of a fragment's data files, which tell where their columns and pages are.
    fn ends(&self, fragment: &Fragment, wanted: &mut Wanted) {
        for file in &fragment.lance.files {
            want_end(&self.folder, file, wanted);
        }
    }
}
