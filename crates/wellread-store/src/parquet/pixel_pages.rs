//! Where the pages of a pixel leaf lie, and which values each holds.
//!
//! ```text
//!  offset index ─┐ one read for all pages, of files that have one
//!                ├─▶ PixelPages: 32 bytes a page at most ─▶ FastReader
//!  page headers ─┘ one read each
//! ```
//!
//! A file written for random access has a page for every image, so little is kept of each. Its header is parsed when
//! the page is read. The reader then compares the offset index with that header and the page's levels. The general
//! reader decides where they differ.

use super::file::PositionalFile;
use super::pages::{self, Page};
use super::pages_ahead;
use super::pieces::PieceTable;
use crate::Result;
use parquet::basic::Compression;
use parquet::file::metadata::ColumnChunkMetaData;
use std::ops::Range;

/// The pages of the pixels of a row group.
#[derive(Debug)]
#[cfg_attr(test, derive(PartialEq))]
pub(super) struct PixelPages {
    pub dictionary: Option<Page>,
    pub codec: Compression,
    /// Offset of each page's header, and bytes of the page with it.
    places: Vec<(u64, u32)>,
    /// Index of each page's first entry of levels, and one more for the end.
    levels: Vec<u64>,
    /// The same of values, where they are not the same.
    values: Option<Vec<u64>>,
    /// About the bytes of the largest page as it lies in the file, as plain values, and as pixels.
    largest: usize,
}

impl PixelPages {
    /// Finds the pages of `chunk`, whose `rows` rows are divided as `table` says.
    ///
    /// # Errors
    /// Page headers that are damaged, or encrypted.
    pub fn find(
        file: &PositionalFile,
        chunk: &ColumnChunkMetaData,
        table: &PieceTable,
        rows: usize,
    ) -> Result<Self> {
        match Self::indexed(file, chunk, table, rows) {
            Some(found) => Ok(found),
            None => Self::walked(file, chunk, table),
        }
    }

    /// By the pages' headers.
    fn walked(file: &PositionalFile, chunk: &ColumnChunkMetaData, table: &PieceTable) -> Result<Self> {
        let _held = pages_ahead::headers(file, chunk);
        let found = pages::scan(file, chunk)?;
        let places = found.data.iter().map(|page| {
            let header = page.header.length as u64;
            (page.offset - header, u32::try_from(header + page.header.compressed as u64).unwrap_or(u32::MAX))
        });
        let levels = std::iter::once(0).chain(found.data.iter().map(|page| page.levels.end));
        Ok(Self::new(found.dictionary, found.codec, places.collect(), levels.collect(), table, chunk))
    }

    /// By the offset index; `None` where there is none, or one that cannot be.
    fn indexed(
        file: &PositionalFile,
        chunk: &ColumnChunkMetaData,
        table: &PieceTable,
        rows: usize,
    ) -> Option<Self> {
        let pages = pages_ahead::offset_index(file, chunk)?;
        let first = u64::try_from(chunk.data_page_offset()).ok()?;
        let dictionary = chunk.dictionary_page_offset().filter(|&at| at != 0);
        let start = dictionary.map_or(Some(first), |at| u64::try_from(at).ok())?;
        if start > first {
            return None;
        }
        let end = start.checked_add(u64::try_from(chunk.compressed_size()).ok()?)?;
        let end = Some(end).filter(|&end| end <= file.length() && table.positions_known)?;
        // Pages follow each other within the column, and each begins with a later row.
        let mut places = Vec::with_capacity(pages.len());
        let mut levels = Vec::with_capacity(pages.len() + 1);
        let (mut free, mut next_row) = (first, 0);
        for page in &pages {
            let after = page.offset.checked_add(u64::from(page.size)).filter(|&after| after <= end)?;
            let begins = if places.is_empty() { page.first_row == 0 } else { page.first_row >= next_row };
            if page.offset < free || !begins || page.first_row >= rows as u64 {
                return None;
            }
            places.push((page.offset, page.size));
            levels.push(table.level(page.first_row as usize));
            (free, next_row) = (after, page.first_row + 1);
        }
        if places.first()?.0 != first {
            return None;
        }
        levels.push(table.levels());
        // No header can declare more entries than this.
        if levels.windows(2).any(|ends| ends[1] - ends[0] > i32::MAX as u64) {
            return None;
        }
        let dictionary = match dictionary {
            Some(_) => Some(pages::dictionary(file, start, first, chunk).ok()??),
            None => None,
        };
        Some(Self::new(dictionary, chunk.compression(), places, levels, table, chunk))
    }

    fn new(
        dictionary: Option<Page>,
        codec: Compression,
        places: Vec<(u64, u32)>,
        levels: Vec<u64>,
        table: &PieceTable,
        chunk: &ColumnChunkMetaData,
    ) -> Self {
        let values =
            table.has_empties().then(|| levels.iter().map(|&level| table.values_before(level)).collect());
        let wide = match chunk.column_type() {
            parquet::basic::Type::INT64 | parquet::basic::Type::DOUBLE => 8,
            _ => 4,
        };
        let sizes = places.iter().zip(levels.windows(2)).map(|(place, ends)| {
            let entries = usize::try_from(ends[1].saturating_sub(ends[0])).unwrap_or(usize::MAX);
            (place.1 as usize).saturating_add(entries.saturating_mul(wide + 8))
        });
        let largest = sizes.max().unwrap_or(0);
        Self { dictionary, codec, places, levels, values, largest }
    }

    /// Number of pages.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Offset of a page's header, and bytes of the page with it.
    pub fn location(&self, page: usize) -> (u64, u32) {
        self.places[page]
    }

    /// Entries of levels of a page, counted from the start of the column chunk.
    pub fn levels(&self, page: usize) -> Range<u64> {
        self.levels[page]..self.levels[page + 1]
    }

    /// Values of a page, as indices into the pixel leaf of the row group.
    pub fn values(&self, page: usize) -> Range<u64> {
        let values = self.values.as_ref().unwrap_or(&self.levels);
        values[page]..values[page + 1]
    }

    /// The page that holds the value `position`.
    pub fn holding(&self, position: u64) -> Option<usize> {
        let values = self.values.as_ref().unwrap_or(&self.levels);
        // Pages of one image each have as many values each. Searching a table that no cache holds takes several looks
        // into memory: a fifth of what reading a small image of a million takes.
        let (first, last) = (*values.first()?, *values.last()?);
        let even = u128::from(position.saturating_sub(first)) * self.len() as u128;
        let guess = even.checked_div(u128::from(last.saturating_sub(first)))? as usize;
        if guess < self.len() && self.values(guess).contains(&position) {
            return Some(guess);
        }
        let page = values[1..].partition_point(|&end| end <= position);
        (page < self.len()).then_some(page)
    }

    /// About the bytes that the largest page takes as it is read, decompressed and decoded.
    pub fn largest(&self) -> usize {
        self.largest
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::ParquetStore;
    use super::*;
    use crate::ome_arrow::CHUNKS;
    use crate::{ImageView, OpenOptions, Tune, WriteOptions, registry};
    use wellread_image::{ImageMetadata, PixelType, Shape};

    #[test]
    fn the_offset_index_says_what_the_headers_say() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet");
        // A page for each image; several images a page, with a dictionary and without.
        for (tune, value) in
            [(Tune::Random, 7u8), (Tune::Scan, 7), (Tune::Reference, 7), (Tune::Reference, 97)]
        {
            for shapes in
                [vec![Shape::plane(40, 30); 50], vec![Shape([1, 2, 1, 8, 9]), Shape::plane(200, 300)]]
            {
                let options = WriteOptions { overwrite: true, tune, ..WriteOptions::default() };
                let mut writer = registry::create(&path, "parquet", &options).unwrap();
                for shape in shapes {
                    let pixels: Vec<u8> =
                        (0..shape.pixels()).map(|i| (i % usize::from(value)) as u8).collect();
                    let metadata = ImageMetadata::named("a");
                    let view =
                        ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels };
                    writer.write(&view).unwrap();
                }
                writer.finish().unwrap();
                let store = ParquetStore::open(&path, &OpenOptions::default()).unwrap();
                let pieces = store.column.pieces[CHUNKS].as_ref().unwrap();
                let group = store.metadata.metadata().row_group(0);
                let chunk = group.column(pieces.pixels.leaf);
                let table = store.layout_of(0).unwrap().tables[CHUNKS].as_ref().unwrap();
                let rows = group.num_rows() as usize;
                let indexed = PixelPages::indexed(&store.file, chunk, table, rows).expect("an index");
                assert_eq!(indexed, PixelPages::walked(&store.file, chunk, table).unwrap(), "{tune:?}");
                assert_eq!(indexed.holding(0), Some(0));
                let all = indexed.values(indexed.len() - 1).end;
                assert_eq!(all, table.levels());
                assert_eq!((indexed.holding(all - 1), indexed.holding(all)), (Some(indexed.len() - 1), None));
                for page in 0..indexed.len() {
                    let inside = indexed.values(page);
                    assert_eq!(indexed.holding(inside.start), Some(page));
                    assert_eq!(indexed.holding(inside.end - 1), Some(page));
                }
                // An index of more rows than there are is none.
                let fewer = PixelPages::indexed(&store.file, chunk, table, 1);
                assert_eq!(fewer.is_none(), indexed.len() > 1);
            }
        }
    }
}
