//! Where the columns of a table lie in its file, as DuckDB itself tells: `pragma_storage_info`.
//!
//! A column is a tree. Structs have fields, lists have elements, and each has a column of its own that says which of
//! its values are null. DuckDB names each by a path of numbers, `[1, 9, 1, 4]`. A field's number is its position and
//! one more, that of a list's elements is 1, and that of the nulls is 0.

use super::blocks::Blocks;
use super::segment::{Codec, Segment, Width};
use crate::sql::literal;
use arrow_schema::Schema;
use duckdb::Connection;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

/// Most segments of a plan: their description takes memory.
const MOST_SEGMENTS: usize = 1 << 22;

/// Bytes of a text that DuckDB keeps as its column's least and greatest; of longer ones it keeps the beginning.
const WHOLE_TEXT: usize = 8;

/// A column in the tree: its number among the table's columns, then fields and elements.
pub(super) type Path = Vec<usize>;

/// The path of what says which values are null.
pub(super) fn nulls_of(path: &[usize]) -> Path {
    [path, &[0]].concat()
}

fn shown(path: &[usize]) -> String {
    let mut out = String::from("[");
    for (i, number) in path.iter().enumerate() {
        let _ = write!(out, "{}{number}", if i == 0 { "" } else { ", " });
    }
    out + "]"
}

/// A segment as DuckDB describes it.
#[derive(Debug)]
struct Described {
    row_group: usize,
    start: usize,
    count: usize,
    kind: String,
    compression: String,
    least: Option<String>,
    most: Option<String>,
    has_nulls: bool,
    /// Whether it lies in a block, as it is now, of a column that is stored.
    is_settled: bool,
    block: u64,
    offset: usize,
}

/// The segments of all columns.
#[derive(Debug)]
pub(crate) struct Layout {
    columns: HashMap<String, Vec<Described>>,
    row_groups: usize,
}

/// A column whose values can be read here.
#[derive(Debug)]
pub(super) struct Column {
    segments: Box<[Segment]>,
    /// The first segment of each row group, and one past the last.
    firsts: Box<[u32]>,
    pub width: Width,
}

/// The facts of a column that need no reading of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    least: i128,
    most: i128,
}

impl Bounds {
    /// Bytes that hold all values, where they are few.
    pub fn bytes(self) -> Option<usize> {
        match self.most {
            _ if self.least < 0 => None,
            0..=0xff => Some(1),
            0x100..=0xffff => Some(2),
            _ => None,
        }
    }
}

impl Layout {
    /// Asks about a table. `None` where DuckDB does not tell.
    pub fn new(connection: &Connection, table: &str, schema: &Schema) -> Option<Self> {
        let sql = format!(
            "SELECT row_group_id, column_path, CASE WHEN segment_type LIKE '%[]' THEN 'LIST' ELSE segment_type END, \
             start, count, compression, \
             CASE WHEN coalesce(stats.max_string_length::UBIGINT, 0) <= {WHOLE_TEXT} THEN stats.min::VARCHAR END, \
             CASE WHEN coalesce(stats.max_string_length::UBIGINT, 0) <= {WHOLE_TEXT} THEN stats.max::VARCHAR END, \
             coalesce(stats.has_null::BOOLEAN, true), has_updates, persistent, block_id, block_offset, column_id, column_name \
             FROM pragma_storage_info({}) ORDER BY row_group_id, column_path, segment_id",
            literal(table),
        );
        let mut statement = connection.prepare(&sql).ok()?;
        let mut rows = statement.query([]).ok()?;
        let mut columns: HashMap<String, Vec<Described>> = HashMap::new();
        let (mut row_groups, mut segments) = (0, 0);
        // Computed columns are in the schema and have no storage.
        let is_column =
            |number: usize, name: &str| schema.fields().get(number).is_some_and(|f| f.name() == name);
        while let Some(row) = rows.next().ok()? {
            let number = |i: usize| usize::try_from(row.get::<_, i64>(i).ok()?).ok();
            let text = |i: usize| row.get::<_, Option<String>>(i).ok();
            let flag = |i: usize| row.get::<_, bool>(i).ok();
            let block = row.get::<_, Option<i64>>(11).ok()?;
            let described = Described {
                row_group: number(0)?,
                kind: text(2)??,
                start: number(3)?,
                count: number(4)?,
                compression: text(5)??,
                least: text(6)?,
                most: text(7)?,
                has_nulls: flag(8)?,
                is_settled: !flag(9)? && flag(10)? && is_column(number(13)?, &text(14)??),
                // Constants have no block.
                block: block.and_then(|b| u64::try_from(b).ok()).unwrap_or(u64::MAX),
                offset: number(12).unwrap_or(usize::MAX),
            };
            if described.row_group > row_groups || segments == MOST_SEGMENTS {
                return None;
            }
            row_groups = row_groups.max(described.row_group + 1);
            segments += 1;
            columns.entry(text(1)??).or_default().push(described);
        }
        Some(Self { columns, row_groups })
    }

    /// Number of segments.
    pub fn segments(&self) -> usize {
        self.columns.values().map(Vec::len).sum()
    }

    /// Whether the columns at `paths`, and their nulls, are as described in the file. None has rows that are not in
    /// blocks, or changes to those that are.
    pub fn is_settled(&self, paths: &[Path]) -> bool {
        let is_settled = |path: &[usize]| self.described(path).iter().all(|s| s.is_settled);
        paths.iter().all(|path| is_settled(path) && is_settled(&nulls_of(path)))
    }

    /// Whether a column outside of lists has one value in all of `rows` rows, and is null in none.
    pub fn is_constant(&self, path: &[usize], rows: usize) -> bool {
        let has_nulls = |depth: usize| {
            let nulls = self.described(&nulls_of(&path[..depth]));
            nulls.is_empty() || nulls.iter().any(|s| s.has_nulls)
        };
        let settled = (1..=path.len()).all(|depth| self.is_settled(&[path[..depth].to_vec()]));
        let segments = self.described(path);
        let value = segments.first().and_then(|s| s.least.as_ref());
        settled
            && !(1..=path.len()).any(has_nulls)
            && value.is_some()
            && segments.iter().all(|s| s.least.as_ref() == value && s.most.as_ref() == value)
            && segments.iter().map(|s| s.count).sum::<usize>() == rows
    }

    fn described(&self, path: &[usize]) -> &[Described] {
        self.columns.get(&shown(path)).map_or(&[], Vec::as_slice)
    }

    /// The segments of each row group at `path`, which must follow one another. There are none where all lists are
    /// empty.
    fn by_row_group(&self, path: &[usize]) -> Option<Vec<&[Described]>> {
        let groups: Vec<_> = self.described(path).chunk_by(|a, b| a.row_group == b.row_group).collect();
        let in_order = groups.iter().all(|group| {
            let mut next = Some(0usize);
            group.iter().all(|s| {
                let fits = next == Some(s.start);
                next = s.start.checked_add(s.count);
                fits && next.is_some()
            })
        });
        in_order.then_some(groups)
    }

    /// How many values each row group has at `path`.
    pub fn counts(&self, path: &[usize]) -> Option<Vec<usize>> {
        let groups = self.by_row_group(path)?;
        let is_whole = groups.iter().map(|g| g[0].row_group).eq(0..self.row_groups);
        is_whole.then(|| groups.iter().filter_map(|g| g.last()).map(|s| s.start + s.count).collect())
    }

    /// Whether any value at `path` may be null.
    pub fn has_nulls(&self, path: &[usize]) -> bool {
        self.described(&nulls_of(path)).iter().any(|s| s.has_nulls)
    }

    /// The column at `path`, of DuckDB's type `kind`, with values of `size` bytes.
    pub(super) fn column(&self, path: &[usize], kind: &str, size: usize, blocks: &Blocks) -> Option<Column> {
        let groups = self.by_row_group(path)?;
        // For each value it is told whether it is null.
        let counts = |groups: &[&[Described]]| -> Vec<(usize, usize)> {
            groups.iter().filter_map(|g| g.last()).map(|s| (s.row_group, s.start + s.count)).collect()
        };
        if counts(&groups) != counts(&self.by_row_group(&nulls_of(path))?) {
            return None;
        }
        let mut firsts = vec![0u32];
        let mut segments = vec![];
        let mut groups = groups.into_iter().peekable();
        for row_group in 0..self.row_groups {
            for described in groups.next_if(|g| g[0].row_group == row_group).unwrap_or_default() {
                segments.push(described.segment(kind, size, blocks)?);
            }
            firsts.push(segments.len() as u32);
        }
        let width = Width { stored: size, delivered: size };
        Some(Column { segments: segments.into(), firsts: firsts.into(), width })
    }

    /// The smallest and largest value at `path`, of integers.
    pub(super) fn bounds(&self, path: &[usize]) -> Option<Bounds> {
        let mut bounds = Bounds { least: 0, most: 0 };
        for described in self.described(path).iter().filter(|s| s.count > 0) {
            bounds.least = bounds.least.min(described.least.as_ref()?.parse().ok()?);
            bounds.most = bounds.most.max(described.most.as_ref()?.parse().ok()?);
        }
        Some(bounds)
    }
}

impl Described {
    fn segment(&self, kind: &str, size: usize, blocks: &Blocks) -> Option<Segment> {
        let codec = match self.compression.as_str() {
            "Constant" => Codec::Constant(self.constant(size)?),
            "Uncompressed" => Codec::Plain,
            "RLE" => Codec::Rle,
            "BitPacking" => Codec::Bitpacking,
            "ALP" => Codec::Alp,
            "ALPRD" => Codec::AlpRd,
            _ => return None,
        };
        let is_float = matches!(kind, "FLOAT" | "DOUBLE");
        let suits = match codec {
            Codec::Bitpacking => !is_float,
            Codec::Alp | Codec::AlpRd => is_float,
            _ => true,
        };
        let lies = matches!(codec, Codec::Constant(_))
            || (blocks.has(self.block) && self.offset < blocks.room() && self.offset.is_multiple_of(8));
        if self.kind != kind || !suits || !lies {
            return None;
        }
        Some(Segment::new(self.start, self.count, codec, self.block, self.offset))
    }

    /// The bits of the one value that all are.
    fn constant(&self, size: usize) -> Option<u64> {
        let (least, most) = (self.least.as_ref()?, self.most.as_ref()?);
        if least != most {
            return None;
        }
        let bits = match self.kind.as_str() {
            "FLOAT" => u64::from(least.parse::<f32>().ok()?.to_bits()),
            "DOUBLE" => least.parse::<f64>().ok()?.to_bits(),
            "LIST" => return None,
            _ => least.parse::<i128>().ok()? as u64,
        };
        Some(if size < 8 { bits & ((1 << (size * 8)) - 1) } else { bits })
    }
}

impl Column {
    /// Number of values in all row groups.
    pub fn total(&self) -> usize {
        self.segments.iter().fold(0, |n, s| n.saturating_add(s.count))
    }

    /// Number of values in a row group.
    pub fn count(&self, row_group: usize) -> usize {
        let last = self.of(row_group).last();
        last.map_or(0, |s| s.start + s.count)
    }

    fn of(&self, row_group: usize) -> &[Segment] {
        &self.segments[self.firsts[row_group] as usize..self.firsts[row_group + 1] as usize]
    }

    /// The segments of a row group that hold `wanted`, each with what is wanted of it.
    pub fn pieces(
        &self,
        row_group: usize,
        wanted: Range<usize>,
    ) -> impl Iterator<Item = (&Segment, Range<usize>)> {
        let segments = self.of(row_group);
        let first = segments.partition_point(|s| s.start + s.count <= wanted.start);
        segments[first..].iter().take_while(move |s| s.start < wanted.end).map(move |s| {
            let inside = wanted.start.max(s.start) - s.start..(wanted.end.min(s.start + s.count)) - s.start;
            (s, inside)
        })
    }
}
