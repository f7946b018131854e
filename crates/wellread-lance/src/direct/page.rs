//! Pages of a leaf column: which part of the file holds which rows, and the values and lists of some of them.
//!
//! The two layouts of Lance's file format 2.1 and 2.2 that numbers are stored in, of rows that may be null as a whole
//! ([specification](https://lance.org/format/file/encoding/)):
//!
//! * *constant*: one value, and all repetition levels in one piece ([`super::constant_page`]);
//! * *mini-blocks*: chunks of a few KiB, each with its levels and values, or indices of values in a dictionary of the
//!   page. Beside them, a word for each chunk gives its size and number of values. The repetition index gives the
//!   number of rows that end in it, and whether one goes on in the next ([`super::mini_blocks`]).

use super::ahead::Extent;
use super::buffers::{DecodeBuffers, LeafWidths};
use super::constant_page::ConstantPage;
use super::input::Input;
use super::levels::Starts;
use super::mini_blocks::Chunks;
use arrow_buffer::MutableBuffer;
use lance_encoding::decoder::{PageEncoding, PageInfo};
use lance_encoding::format::metadata::page_layout::Layout;
use std::ops::Range;
use wellread_store::direct::Fault::{self, Irregular};

/// A page whose values can be read here.
#[derive(Debug)]
pub(super) struct Page {
    /// Number of rows.
    pub rows: usize,
    /// Number of values.
    pub values: usize,
    layout: PageLayout,
}

#[derive(Debug)]
enum PageLayout {
    Constant(ConstantPage),
    Chunks(Chunks),
}

impl Page {
    /// A page of values of `size` bytes below `depth` lists; `None` for one of another kind: with nulls that are no whole
    /// rows, text.
    pub fn new(info: &PageInfo, size: usize, depth: usize) -> Option<Self> {
        let PageEncoding::Structural(layout) = &info.encoding else { return None };
        let rows = u32::try_from(info.num_rows).ok()? as usize;
        let extents = &info.buffer_offsets_and_sizes;
        let (values, layout) = match layout.layout.as_ref()? {
            Layout::ConstantLayout(constant) => {
                let page = ConstantPage::new(constant, extents, rows, size, depth)?;
                (page.values, PageLayout::Constant(page))
            }
            Layout::MiniBlockLayout(chunks) => {
                let chunks = Chunks::new(chunks, extents, rows, size, depth)?;
                (chunks.count, PageLayout::Chunks(chunks))
            }
            _ => return None,
        };
        Some(Self { rows, values, layout })
    }

    /// Whether values are compressed into pieces that say how much memory they take.
    pub fn has_prefixes(&self) -> bool {
        matches!(&self.layout, PageLayout::Chunks(chunks) if chunks.has_prefixes())
    }

    /// Whether rows may be null.
    pub fn has_nulls(&self) -> bool {
        let null = match &self.layout {
            PageLayout::Constant(page) => page.null,
            PageLayout::Chunks(chunks) => chunks.null,
        };
        null > 0
    }

    /// Where the pieces lie that tell where its rows do, if they were not read yet.
    pub fn index_extents(&self) -> impl Iterator<Item = Extent> {
        let extents = match &self.layout {
            PageLayout::Constant(page) => page.index_extents(),
            PageLayout::Chunks(chunks) => chunks.index_extents(),
        };
        extents.into_iter().flatten()
    }

    /// Reads the pieces that tell where its rows lie, if they were not read yet.
    pub fn load_index(
        &self,
        input: &Input,
        size: usize,
        depth: usize,
        reused: &mut DecodeBuffers,
    ) -> Result<(), Fault> {
        match &self.layout {
            PageLayout::Constant(page) => page.load_index(input, depth, reused),
            PageLayout::Chunks(chunks) => chunks.index(input, size, reused).map(|_| ()),
        }
    }

    /// The place of the chunks of some rows, once the page was read from: [`Self::read`] reads them then.
    pub fn extent(&self, rows: &Range<usize>) -> Option<Extent> {
        let PageLayout::Chunks(chunks) = &self.layout else { return None };
        if rows.start < rows.end && rows.end <= self.rows { chunks.extent_of(rows) } else { None }
    }

    /// Appends the values of some rows of the page, and where lists start.
    pub fn read(
        &self,
        input: &Input,
        rows: &Range<usize>,
        widths: LeafWidths,
        reused: &mut DecodeBuffers,
        out: &mut MutableBuffer,
        starts: &mut Starts,
    ) -> Result<(), Fault> {
        if rows.end > self.rows || rows.start >= rows.end {
            return Err(Irregular("rows outside of a page"));
        }
        match &self.layout {
            PageLayout::Constant(page) => page.read(input, rows, widths, reused, out, starts),
            PageLayout::Chunks(chunks) => chunks.read(input, rows, widths, reused, out, starts),
        }
    }
}
