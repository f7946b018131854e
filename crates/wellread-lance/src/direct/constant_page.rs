//! Pages of one value: how many of it each row has is told by repetition levels in one piece. It is also told by definition levels where
//! rows may be null.
//!
//! ```text
//!  levels in pieces of their own ─▶ runs ─▶ ConstantIndex: all levels, and the first of each row ─▶ that value, so often
//! ```

use super::ahead::{Ahead, Extent};
use super::buffers::{DecodeBuffers, LeafWidths, fetched};
use super::input::Input;
use super::levels::{ABSENT, LevelCodec, Run, Starts, Wanted, add, mark_absent, null_level};
use arrow_buffer::MutableBuffer;
use lance_encoding::format::metadata::{CompressiveEncoding, ConstantLayout};
use std::ops::Range;
use std::sync::OnceLock;
use wellread_store::direct::Fault::{self, Irregular};

/// A page of one value.
#[derive(Debug)]
pub(super) struct ConstantPage {
    /// Number of rows.
    rows: usize,
    /// Number of values.
    pub values: usize,
    /// Definition level of rows that are null, where there are such.
    pub null: u16,
    value: Box<[u8]>,
    lists: ConstantLists,
}

/// How many of its one value the rows of a constant page have.
#[derive(Debug)]
enum ConstantLists {
    /// One; the page is below no list.
    None,
    /// One in each list: there are as many levels as rows, and none is null. They need not be read.
    OneEach,
    /// As many as levels say.
    Stored(StoredLists),
}

/// Repetition levels, and definition levels where rows may be null.
#[derive(Debug)]
struct StoredLists {
    repeated: Stored,
    defined: Option<Stored>,
    index: OnceLock<ConstantIndex>,
}

/// Levels in a piece of their own.
#[derive(Debug)]
struct Stored {
    extent: Extent,
    /// `None` for levels as they are.
    codec: Option<LevelCodec>,
    count: usize,
}

impl Stored {
    /// `None` for a codec that is not known.
    fn new(extent: Extent, encoding: Option<&CompressiveEncoding>, count: u64) -> Option<Self> {
        let count = if encoding.is_some() { count } else { extent.1 / 2 };
        let codec = match encoding {
            Some(encoding) => Some(LevelCodec::new(encoding)?),
            None => None,
        };
        Some(Self { extent, codec, count: u32::try_from(count).ok()? as usize })
    }

    /// Replaces `out` by their runs.
    fn runs(
        &self,
        input: &Input,
        ahead: &Ahead,
        raw: &mut Vec<u64>,
        out: &mut Vec<Run>,
    ) -> Result<(), Fault> {
        let raw = fetched(input, self.extent, ahead, raw)?;
        out.clear();
        match &self.codec {
            None => raw.as_chunks::<2>().0.iter().try_for_each(|l| add(out, 0, u16::from_le_bytes(*l), 1)),
            Some(codec) => codec.decode(raw, Some(self.count), out),
        }
    }
}

/// All levels of a constant page, as runs, and the value that each row starts at.
#[derive(Debug)]
struct ConstantIndex {
    levels: Vec<u16>,
    rows: Vec<u32>,
}

impl ConstantPage {
    /// A page of values of `size` bytes below `depth` lists; `None` for one of another kind.
    pub fn new(
        layout: &ConstantLayout,
        extents: &[Extent],
        rows: usize,
        size: usize,
        depth: usize,
    ) -> Option<Self> {
        let value = layout.inline_value.as_ref().filter(|v| v.len() == size)?;
        let null = null_level(&layout.layers, depth)?;
        let defined = match extents.get(1).filter(|e| e.1 > 0) {
            Some(&extent) => {
                Some(Stored::new(extent, layout.def_compression.as_ref(), layout.num_def_values)?)
            }
            None => None,
        };
        if defined.is_some() != (null > 0) {
            return None;
        }
        let mut values = rows;
        let lists = if depth == 0 {
            ConstantLists::None
        } else {
            let extent = *extents.first()?;
            let repeated = Stored::new(extent, layout.rep_compression.as_ref(), layout.num_rep_values)?;
            values = repeated.count;
            match defined {
                None if values == rows => ConstantLists::OneEach,
                defined => ConstantLists::Stored(StoredLists { repeated, defined, index: OnceLock::new() }),
            }
        };
        Some(Self { rows, values, null, value: value.as_ref().into(), lists })
    }

    /// Where the pieces lie that tell where its rows do, if they were not read yet.
    pub fn index_extents(&self) -> [Option<Extent>; 3] {
        match &self.lists {
            ConstantLists::Stored(StoredLists { repeated, defined, index }) if index.get().is_none() => {
                [Some(repeated.extent), defined.as_ref().map(|defined| defined.extent), None]
            }
            _ => [None; 3],
        }
    }

    /// Reads the pieces that tell where its rows lie, if they were not read yet.
    pub fn load_index(&self, input: &Input, depth: usize, reused: &mut DecodeBuffers) -> Result<(), Fault> {
        match &self.lists {
            ConstantLists::Stored(lists) => self.index(lists, input, depth, reused).map(|_| ()),
            ConstantLists::None | ConstantLists::OneEach => Ok(()),
        }
    }

    fn index<'a>(
        &self,
        lists: &'a StoredLists,
        input: &Input,
        depth: usize,
        reused: &mut DecodeBuffers,
    ) -> Result<&'a ConstantIndex, Fault> {
        if let Some(index) = lists.index.get() {
            return Ok(index);
        }
        let made = ConstantIndex::new(self, input, lists, depth, reused)?;
        Ok(lists.index.get_or_init(|| made))
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
        let (value, cut) = self.value.split_at(widths.width);
        if cut.iter().any(|&byte| byte > 0) {
            return Err(Fault::TooNarrow);
        }
        let there = match &self.lists {
            ConstantLists::None => rows.len(),
            ConstantLists::OneEach => {
                reused.runs.clear();
                reused.runs.push((widths.depth as u16, rows.len()));
                rows.len()
            }
            ConstantLists::Stored(lists) => {
                let index = self.index(lists, input, widths.depth, reused)?;
                let items = index.rows[rows.start] as usize..index.rows[rows.end] as usize;
                reused.runs.clear();
                reused.runs.extend(index.levels[items.clone()].iter().map(|&level| (level, 1)));
                index.levels[items].iter().filter(|&level| level & ABSENT == 0).count()
            }
        };
        if !matches!(self.lists, ConstantLists::None) {
            let mut wanted = Wanted { skip: 0, rows: rows.len(), seen: 0 };
            wanted.take(&reused.runs, widths.depth, out.len() / widths.width, starts)?;
        }
        value.len().checked_mul(there).ok_or(Irregular("more values than memory"))?;
        out.repeat_slice_n_times(value, there);
        Ok(())
    }
}

impl ConstantIndex {
    fn new(
        page: &ConstantPage,
        input: &Input,
        StoredLists { repeated, defined, .. }: &StoredLists,
        depth: usize,
        reused: &mut DecodeBuffers,
    ) -> Result<Self, Fault> {
        repeated.runs(input, &reused.ahead, &mut reused.raw, &mut reused.runs)?;
        if let Some(defined) = defined {
            defined.runs(input, &reused.ahead, &mut reused.raw, &mut reused.defined)?;
            mark_absent(&mut reused.runs, &reused.defined, page.null, &mut reused.marked)?;
        }
        let levels = reused.runs.iter().flat_map(|&(level, n)| std::iter::repeat_n(level, n));
        let levels: Vec<u16> = levels.collect();
        let starts = levels.iter().enumerate().filter(|(_, l)| usize::from(**l & !ABSENT) == depth);
        let mut rows: Vec<u32> = starts.map(|(i, _)| i as u32).collect();
        if rows.len() != page.rows || rows.first() != Some(&0) || levels.len() != page.values {
            return Err(Irregular("levels do not fit the rows"));
        }
        rows.push(levels.len() as u32);
        Ok(Self { levels, rows })
    }
}
