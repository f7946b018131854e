//! Column chunks checked before the `parquet` crate reads them.
//!
//! That crate trusts levels. Where a stream of them ends early, or starts in the middle of a row, some of its
//! loops make no progress and never end. So every page that it is going to read is walked here first. Levels
//! must be as many as declared and in range, rows as many as the row group has. Fixed-size values and
//! dictionary indices must all be there.

use super::delta;
use super::file::PositionalFile;
use super::levels::{Run, Runs, level_width, packed_at};
use super::load::{Codecs, column_limit, load_within};
use super::pages::{ColumnPages, FastPathError, Page};
use super::thrift::{Encoding, PageKind};
use crate::{Error, Result};
use parquet::basic::Type as Physical;
use parquet::file::metadata::ColumnChunkMetaData;

/// Checks all pages of a column chunk of `rows` rows.
pub(super) fn column(
    file: &PositionalFile,
    chunk: &ColumnChunkMetaData,
    pages: &ColumnPages,
    rows: usize,
) -> Result<()> {
    let descriptor = chunk.column_descr();
    let max = (descriptor.max_rep_level(), descriptor.max_def_level());
    let corrupt = |why: &str| {
        Error::new(file.path(), format_args!("column {}: {why}", chunk.column_path().string()))
            .hint("the file is corrupt; copy or write it again")
    };
    let (mut raw, mut decoded, mut codecs) = (vec![], vec![], Codecs::default());
    let physical = chunk.column_type();
    let limit = |page: &Page| column_limit(physical, &page.header);
    let mut seen = 0usize;
    if let Some(page) = &pages.dictionary {
        // That it decompresses is all that is needed.
        let loaded =
            load_within(file, page, pages.codec, (0, 0), limit(page), &mut raw, &mut decoded, &mut codecs);
        match loaded {
            Ok(_) => {}
            Err(FastPathError::Error(error)) => return Err(error),
            Err(FastPathError::General) => return Err(corrupt("its dictionary cannot be read")),
        }
    }
    for (i, page) in pages.data.iter().enumerate() {
        let loaded =
            load_within(file, page, pages.codec, max, limit(page), &mut raw, &mut decoded, &mut codecs);
        let body = match loaded {
            Ok(body) => body,
            Err(FastPathError::Error(error)) => return Err(error),
            Err(FastPathError::General) => return Err(corrupt("its pages have a form that cannot be read")),
        };
        let count = page.header.values;
        let starts = if max.0 == 0 {
            count
        } else {
            let first = Runs::new(body.repetition, level_width(max.0), count.min(1)).next();
            let in_row = !matches!(first, Some(Some(run)) if value_at(run, level_width(max.0), 0) == 0);
            // A page may start within a row, but not the first, nor one of version 2.
            if count > 0 && in_row && (i == 0 || matches!(page.header.kind, PageKind::V2 { .. })) {
                return Err(corrupt("a page starts in the middle of a row"));
            }
            count_equal(body.repetition, max.0, count, 0).ok_or_else(|| corrupt("its levels are damaged"))?
        };
        let values = if max.1 == 0 {
            count
        } else {
            count_equal(body.definition, max.1, count, max.1 as u32)
                .ok_or_else(|| corrupt("its levels are damaged"))?
        };
        seen += starts;
        let size = match physical {
            Physical::INT32 | Physical::FLOAT => 4,
            Physical::INT64 | Physical::DOUBLE => 8,
            _ => 0,
        };
        let complete = match page.header.encoding {
            Encoding::Plain | Encoding::ByteStreamSplit => {
                values.checked_mul(size).is_some_and(|n| n <= body.values.len())
            }
            Encoding::Dictionary if pages.dictionary.is_none() => {
                return Err(corrupt("a page refers to a dictionary that is not there"));
            }
            Encoding::Dictionary => indices_are_complete(body.values, values),
            Encoding::Delta => delta::is_complete(body.values, values),
            Encoding::Rle | Encoding::Other(_) => true,
        };
        if !complete {
            return Err(corrupt("a page holds fewer values than it declares"));
        }
    }
    if seen == rows { Ok(()) } else { Err(corrupt(&format!("it has {seen} rows, its row group {rows}"))) }
}

fn value_at(run: Run<'_>, width: u32, index: usize) -> u32 {
    match run {
        Run::Repeat { value, .. } => value,
        Run::Packed { bytes, .. } => packed_at(bytes, width, index),
    }
}

/// How many of `count` levels equal `wanted`; `None` if the stream ends early or exceeds `max`.
fn count_equal(bytes: &[u8], max: i16, count: usize, wanted: u32) -> Option<usize> {
    let width = level_width(max);
    let mut found = 0;
    for run in Runs::new(bytes, width, count) {
        let run = run?;
        let different = if matches!(run, Run::Repeat { .. }) { 1 } else { run.count() };
        let weight = run.count() / different;
        for i in 0..different {
            let value = value_at(run, width, i);
            if value > max as u32 {
                return None;
            }
            found += usize::from(value == wanted) * weight;
        }
    }
    Some(found)
}

fn indices_are_complete(bytes: &[u8], count: usize) -> bool {
    let Some((&width, bytes)) = bytes.split_first() else { return count == 0 };
    width <= 32 && Runs::new(bytes, u32::from(width), count).all(|run| run.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_counted_or_refused() {
        // Three times level 2, then eight packed: 0 1 2 2 2 2 2 2.
        let levels = [3 << 1, 2, 0b11, 0b1010_0100, 0b1010_1010];
        assert_eq!(count_equal(&levels, 2, 11, 2), Some(9));
        assert_eq!(count_equal(&levels, 2, 11, 0), Some(1));
        assert_eq!(count_equal(&levels, 2, 12, 2), None, "one level more than there are");
        assert_eq!(count_equal(&[3 << 1, 3], 2, 3, 2), None, "a level above the largest");
        assert!(indices_are_complete(&[1, 8 << 1, 1], 8));
        assert!(!indices_are_complete(&[1, 8 << 1, 1], 9));
        assert!(!indices_are_complete(&[33, 8 << 1, 1], 8));
    }
}
