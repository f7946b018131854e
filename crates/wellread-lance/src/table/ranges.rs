//! Where the bytes of rows lie, for those who ask for them before they are read.
//!
//! ```text
//!  rows ─▶ fragments ─┬─ not opened ─▶ the ends of their data files
//!                     └─ opened ─────▶ Direct: what tells where chunks lie ─▶ the chunks
//!  no rows yet ─▶ the first fragments ─▶ values of small columns, what tells where chunks lie
//! ```
//!
//! Fragments that Lance has to read by itself say nothing.

use super::LanceTable;
use super::ends::{self, want_end};
use super::plan::{DataFile, Fragment, Plan};
use std::convert::Infallible;
use wellread_store::Result;
use wellread_store::ahead::{Fetching, HeldBytes};
use wellread_store::place::{self, HEAD, PrefetchGuard, WantedRanges};
use wellread_store::table::{Columns, Rows};

/// Bytes that the first look asks for at most, of values and of positions. A larger table has more than the first batch wants.
const FIRST_LOOK: u64 = 1 << 20;

impl LanceTable {
    pub(super) fn heads_of(&self, rows: &[usize], columns: &Columns, wanted: &mut WantedRanges) {
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

    pub(super) fn ranges_of(
        &self,
        rows: &[usize],
        columns: &Columns,
        wanted: &mut WantedRanges,
    ) -> Result<()> {
        let plan = self.plan(columns)?;
        let rows = Rows::Chosen(rows);
        let _ends = self.open_ahead(&rows);
        let _positions = self.positions_ahead(&plan, &rows);
        self.rows.stretches(&rows, &mut vec![], |index, positions| {
            if let Some(direct) = self.direct(&plan, index) {
                direct.ranges(positions, wanted);
            }
            Ok(())
        })
    }

    /// Adds bytes of the first fragments, whose ends were asked for when the dataset was opened. The first reads want values of the columns
    /// `index`, of which short pieces are asked for. They also want to know where the chunks of `pieces` lie, if few bytes tell that.
    pub(super) fn first_look_of(&self, index: &Columns, pieces: &Columns, wanted: &mut WantedRanges) {
        let (Ok(index), Ok(pieces)) = (self.plan(index), self.plan(pieces)) else { return };
        let mut values_left = FIRST_LOOK;
        let (mut positions, mut bytes) = (vec![], 0_u64);
        for (at, fragment) in ends::first(&self.fragments).iter().enumerate() {
            // The reader of its rows gives the error.
            let Ok(files) = self.data_files(fragment) else { return };
            for file in files {
                want_values(file, &index, &mut values_left, wanted);
            }
            if let Some(direct) = self.direct(&pieces, at) {
                direct.each_index(&mut |file, offset, length| {
                    bytes = bytes.saturating_add(length);
                    positions.push((file.to_owned(), offset, length));
                });
            }
        }
        if bytes <= FIRST_LOOK {
            for (file, offset, length) in positions {
                wanted.push(&file, offset, length);
            }
        }
    }

    /// Asks for what tells where rows lie that are in several fragments, at once: one after the other each would be waited for. To be
    /// held until that was read.
    fn positions_ahead(&self, plan: &Plan, rows: &Rows<'_>) -> HeldBytes {
        let (mut wanted, mut fragments) = (WantedRanges::default(), 0);
        let _ = self.rows.stretches(rows, &mut vec![], |index, positions| {
            if let Some(direct) = self.direct(plan, index) {
                direct.heads(positions, &mut wanted);
                fragments += 1;
            }
            Ok::<_, Infallible>(())
        });
        if fragments > 1 { HeldBytes::of(&wanted) } else { HeldBytes::default() }
    }

    /// Asks for the ends of data files that rows are going to be read from and that are not open yet. It asks for those of all
    /// fragments at once where each would be waited for. To be held until they are open.
    pub(super) fn open_ahead(&self, rows: &Rows<'_>) -> Vec<PrefetchGuard> {
        let is_open = |fragment: &Fragment| fragment.files.get().is_some();
        if !place::is_remote(&self.path) || self.fragments.iter().all(is_open) {
            return vec![];
        }
        let (mut wanted, mut fragments) = (WantedRanges::default(), 0);
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
    fn ends(&self, fragment: &Fragment, wanted: &mut WantedRanges) {
        for file in &fragment.lance.files {
            want_end(&self.folder, file, wanted);
        }
    }
}

/// Adds the bytes of a data file that hold values of columns, those that are short, until `left` is used up.
fn want_values(file: &DataFile, plan: &Plan, left: &mut u64, wanted: &mut WantedRanges) {
    let Some(input) = &file.input else { return };
    let columns = plan.projection.field_ids().into_iter().filter_map(|id| file.columns.get(&id).copied());
    for column in columns.filter_map(|number| file.metadata.column_infos.get(number)) {
        for page in column.page_infos.iter() {
            for &(offset, length) in page.buffer_offsets_and_sizes.iter() {
                if length <= HEAD.min(*left) {
                    *left -= length;
                    wanted.push(input.path(), offset, length);
                }
            }
        }
    }
}
