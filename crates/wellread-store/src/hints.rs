//! Optional facts of a store: how it is read best, which parts it keeps, and which columns stand beside its images.
//!
//! ```text
//!  Store::hints() ───────▶ Hints     of the whole set: rows per read, decoded pages, columns
//!  Store::row_hints(row) ▶ RowHints  of a row: where it lies, its pieces, the memory that reading it takes
//! ```
//!
//! Nobody has to follow a hint: pixels are the same without. A store that wraps another hands on both of the other's values
//! whole, and changes those fields that differ: `Hints { columns: Some(self), ..self.inner.hints() }`. So fields added here
//! pass through every wrapper.
//!
//! Long because the hints of sets and of rows are here with all that formats implement for them.

mod columns;

pub use columns::{FeatureTable, LeftOut, Renamed};

use crate::Result;
use crate::words::counted;
use std::ops::Range;
use std::path::PathBuf;

/// How a whole set is read best, what is kept of it and what stands beside its images: [`crate::Store::hints`]. Making
/// one costs nothing; facts that need a look are looked up when they are asked for.
///
/// A format with nothing to say has the default: rows are read one by one, nothing is kept, no column is there.
#[derive(Clone, Copy)]
pub struct Hints<'a> {
    /// How many rows are worth asking for in one [`crate::Store::read`]. It is 1 where each read costs what its rows
    /// cost, more where a read has a price of its own (a query). Loaders join the requests of several batches up to that.
    pub rows_per_read: usize,
    /// The decoded pixels that the store keeps for later reads, where it keeps some.
    pub page_cache: Option<&'a dyn PageCache>,
    /// The columns beside the images, where there may be some.
    pub columns: Option<&'a dyn FeatureTable>,
    /// How the images are made of several files each, where they are.
    pub sites: Option<&'a dyn SiteTable>,
    /// The sets that this one is put together from, where it is.
    pub parts: Option<&'a dyn PartTable>,
    /// The things that a set lacks whose metadata name its images, such as fields of a plate: a sentence
    /// each.
    pub missing_parts: &'a [String],
    /// How much opening the set left out, as was asked for.
    pub left_out: LeftOutCounts,
    /// Whether the last channel of each image is no intensity but a mask of 0 and 1. Cells have it that are cut out with
    /// [`crate::cells::Mask::Channel`].
    pub is_last_mask: bool,
    /// Whether images are parts of larger ones, as cells are: [`RowHints::cut`] tells which.
    pub are_crops: bool,
}

impl Default for Hints<'_> {
    fn default() -> Self {
        Self {
            rows_per_read: 1,
            page_cache: None,
            columns: None,
            sites: None,
            parts: None,
            missing_parts: &[],
            left_out: LeftOutCounts::default(),
            is_last_mask: false,
            are_crops: false,
        }
    }
}

/// How much opening a set left out, as was asked for: [`Hints::left_out`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOutCounts {
    /// Images that lack files, and fields that a plate lacks.
    pub images: usize,
    /// Files whose names do not fit the layout.
    pub files: usize,
    /// Cells that cannot be cut out, and cells at the border.
    pub cells: usize,
}

impl LeftOutCounts {
    /// These, and those of another set.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            images: self.images + other.images,
            files: self.files + other.files,
            cells: self.cells + other.cells,
        }
    }

    /// Each under its key in results.
    pub const fn by_key(self) -> [(&'static str, usize); 3] {
        [("images_left_out", self.images), ("files_left_out", self.files), ("cells_left_out", self.cells)]
    }
}

/// A row in a word: a cell where rows are cut out of images, else an image.
pub(crate) const fn thing(are_crops: bool) -> &'static str {
    if are_crops { "cell" } else { "image" }
}

impl Hints<'_> {
    /// A row in a word, for counts of them: an image, or a cell.
    pub const fn thing(self) -> &'static str {
        thing(self.are_crops)
    }

    /// Bytes of decoded pixels that the store itself keeps at most for later reads.
    pub fn page_cache_bytes(self) -> usize {
        self.page_cache.map_or(0, PageCache::max_bytes)
    }

    /// Makes the store keep no more than `bytes` of decoded pixels from now on, for all who read it.
    pub fn limit_page_cache(self, bytes: usize) {
        if let Some(pages) = self.page_cache {
            pages.keep_at_most(bytes);
        }
    }

    /// Forgets the decoded pixels that are kept now, as if the store were opened anew; later reads keep them again.
    pub fn forget_pages(self) {
        if let Some(pages) = self.page_cache {
            pages.forget_all();
        }
    }

    /// Whether all files of these images are there, where images are made of several.
    ///
    /// # Errors
    /// The things that the first incomplete one lacks, as in [`SiteTable::complete`].
    pub fn complete(self, rows: impl IntoIterator<Item = usize>) -> Result<()> {
        self.sites.map_or(Ok(()), |sites| rows.into_iter().try_for_each(|row| sites.complete(row)))
    }

    /// Whether the files of an image can be opened and are alike, where it is made of several.
    ///
    /// # Errors
    /// The first that is not, as in [`SiteTable::look_into`].
    pub fn look_into(self, row: usize) -> Result<()> {
        self.sites.map_or(Ok(()), |sites| sites.look_into(row))
    }

    /// The sets that this one is put together from: none where it is one itself.
    pub fn set_parts(self) -> Vec<SetPart> {
        self.parts.map_or(vec![], PartTable::parts)
    }

    /// Whether names of images begin with the name of their part. They are then not the names that the part alone gives its images.
    pub fn names_begin_with_parts(self) -> bool {
        self.parts.is_some_and(PartTable::names_begin_with_parts)
    }
}

/// Decoded pixels that a store keeps for later reads.
pub trait PageCache: Send + Sync {
    /// Bytes that are kept at most: see [`Hints::page_cache_bytes`].
    fn max_bytes(&self) -> usize;

    /// Keeps no more from now on: see [`Hints::limit_page_cache`].
    fn keep_at_most(&self, bytes: usize);

    /// Forgets what is kept now: see [`Hints::forget_pages`].
    fn forget_all(&self);
}

/// The sets that a set is put together from: [`crate::concat`].
pub trait PartTable: Send + Sync {
    /// The parts, in order: together they are all rows.
    fn parts(&self) -> Vec<SetPart>;

    /// See [`Hints::names_begin_with_parts`].
    fn names_begin_with_parts(&self) -> bool;
}

/// A set that is a part of another: [`PartTable::parts`].
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SetPart {
    /// Its name, which no other part has.
    pub name: String,
    /// Its rows in the whole, as ranges in order: one where its rows follow each other, none where the whole has no row of it.
    pub rows: Vec<Range<usize>>,
}

impl SetPart {
    /// How many rows it has.
    pub fn count(&self) -> usize {
        self.rows.iter().map(Range::len).sum()
    }

    /// Whether a row of the whole is one of it.
    pub fn contains(&self, row: usize) -> bool {
        let at = self.rows.partition_point(|rows| rows.end <= row);
        self.rows.get(at).is_some_and(|rows| rows.contains(&row))
    }

    /// The parts of a set whose rows are, or are cut out of, those that `rows` gives of a set with `parts`. Parts without rows stay.
    pub(crate) fn regrouped(parts: Vec<Self>, rows: impl Iterator<Item = usize>) -> Vec<Self> {
        let mut owners: Vec<(Range<usize>, usize)> = vec![];
        for (part, of) in parts.iter().enumerate() {
            owners.extend(of.rows.iter().map(|rows| (rows.clone(), part)));
        }
        owners.sort_unstable_by_key(|(rows, _)| rows.start);
        let empty = |part: Self| Self { rows: vec![], ..part };
        let mut found: Vec<Self> = parts.into_iter().map(empty).collect();
        for (row, of) in rows.enumerate() {
            let at = owners.partition_point(|(rows, _)| rows.end <= of);
            let Some((_, part)) = owners.get(at).filter(|(rows, _)| rows.contains(&of)) else { continue };
            match found[*part].rows.last_mut() {
                Some(last) if last.end == row => last.end += 1,
                _ => found[*part].rows.push(row..row + 1),
            }
        }
        found
    }
}

/// How the images of a set are made of several files each: [`crate::sites`].
pub trait SiteTable: Send + Sync {
    /// The layout and what is missing, for people.
    fn summary(&self) -> SiteSummary;

    /// Whether all files of an image are there, or somebody has said what to do without. Only names are looked at.
    ///
    /// # Errors
    /// The files that it lacks.
    fn complete(&self, row: usize) -> Result<()>;

    /// Whether the files of an image that are there can be opened and are alike. No pixel is read.
    ///
    /// # Errors
    /// The first that is not.
    fn look_into(&self, row: usize) -> Result<()>;

    /// The files of each row, by their paths.
    fn files_of_rows(&self) -> Vec<Vec<PathBuf>>;
}

/// The result of [`SiteTable::summary`].
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct SiteSummary {
    /// Name of the layout, or the pattern that was given.
    pub layout: String,
    /// Files of an image that has all of them.
    pub files_per_site: usize,
    /// The names of channels, in the order of the axis C.
    pub channels: Vec<String>,
    /// Images without all of their files: a sentence each for the first few, and how many there are.
    pub missing: Vec<String>,
    /// How many images are not all there: they are rows, unless [`Self::left_out`] says otherwise.
    pub incomplete: usize,
    /// How many planes they lack together.
    pub planes_missing: usize,
    /// Images that were left out since they are not all there.
    pub left_out: usize,
    /// The names of the first few of them.
    pub left_out_first: Vec<String>,
    /// Files that were left out since no pattern fits their names.
    pub unmatched: usize,
    /// The first few of them, by their paths in the folder.
    pub unmatched_first: Vec<String>,
    /// Images of a folder that is opened by the table in it, `load_data.csv`, which does not name them.
    pub unnamed: usize,
    /// The first few of them, by their paths in the folder.
    pub unnamed_first: Vec<String>,
}

impl SiteSummary {
    /// Most images or files of [`Self::left_out_first`], [`Self::unmatched_first`] and [`Self::unnamed_first`].
    pub const NAMED: usize = 3;

    /// In a sentence, which images of the folder its table does not name; `None` where it names all.
    pub fn unnamed_in_words(&self) -> Option<String> {
        let (images, are) = (counted(self.unnamed, "image"), if self.unnamed == 1 { "is" } else { "are" });
        let more = if self.unnamed > self.unnamed_first.len() { " …" } else { "" };
        let first = self.unnamed_first.join(", ");
        let sentence = || format!("{images} of the folder {are} not in its load_data.csv: {first}{more}");
        (self.unnamed > 0).then(sentence)
    }
}

/// The part of a larger image that a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowCut {
    /// First row and column in the whole image, which may lie outside of it.
    pub start: [i64; 2],
    /// Rows and columns of the whole image.
    pub whole: [usize; 2],
}

/// The facts that a store knows of its rows. Formats implement it, and stores whose rows are made of those of others. A store that
/// only wraps another hands on its [`RowHints`]. No method has a default, so that no store forgets a fact in silence:
/// [`unknown_facts!`](crate::unknown_facts) writes those that a store does not know.
pub trait RowFacts: Send + Sync {
    /// See [`RowHints::position`].
    fn position(&self, row: usize) -> u64;

    /// See [`RowHints::grid`].
    fn grid(&self, row: usize) -> Option<[usize; 2]>;

    /// See [`RowHints::file`].
    fn file(&self, row: usize) -> Option<PathBuf>;

    /// See [`RowHints::cut`].
    fn cut(&self, row: usize) -> Option<RowCut>;

    /// See [`RowHints::metadata_rows`].
    fn metadata_rows(&self, row: usize) -> usize;

    /// See [`RowHints::unkept`].
    fn unkept(&self, row: usize) -> Vec<&'static str>;

    /// See [`RowHints::working_bytes`].
    ///
    /// # Errors
    /// As [`crate::Store::row_info`].
    fn working_bytes(&self, row: usize) -> Result<usize>;
}

/// How one row is read best: [`crate::Store::row_hints`]. Each hint is looked up when it is asked for, by the format that has
/// the row. One may cost nothing where the next has to look into a file.
#[derive(Clone, Copy)]
pub struct RowHints<'a> {
    facts: &'a dyn RowFacts,
    row: usize,
}

impl<'a> RowHints<'a> {
    /// The facts that a format knows of its row `row`.
    pub fn new(facts: &'a dyn RowFacts, row: usize) -> Self {
        Self { facts, row }
    }

    /// Where the row's pixels start, as a number that grows with position on disk. Readers of several rows ask in this order.
    pub fn position(self) -> u64 {
        self.facts.position(self.row)
    }

    /// Rows and columns of the pieces that the row's planes are decoded in, where these tile each plane from its first
    /// pixel on. Pieces are chunks, tiles or strips, or single rows where each is read without others. A caller that
    /// wants several parts of an image asks for them so that no piece is in two requests. `None` where pieces are not
    /// of that kind, or not known without reading.
    pub fn grid(self) -> Option<[usize; 2]> {
        self.facts.grid(self.row)
    }

    /// The file or folder that the row is, or begins in, where rows have one. It is known from listings, and need not be readable.
    pub fn file(self) -> Option<PathBuf> {
        self.facts.file(self.row)
    }

    /// The part of a larger image that the row is, where it is one.
    pub fn cut(self) -> Option<RowCut> {
        self.facts.cut(self.row)
    }

    /// About how many rows' metadata is read to have that of this one, from where only the latest are kept. A reader of
    /// that of many rows asks in order of their positions. 1 where each row has its own.
    pub fn metadata_rows(self) -> usize {
        self.facts.metadata_rows(self.row)
    }

    /// Facts of the row for which [`wellread_image::ImageMetadata`] has no place, in words such as `masks`.
    pub fn unkept(self) -> Vec<&'static str> {
        self.facts.unkept(self.row)
    }

    /// Bytes of memory that a thread needs at a time to read pixels of the row, from above. They hold bytes that are
    /// read, decompressed and decoded, but not those that are kept for later.
    ///
    /// # Errors
    /// As [`crate::Store::row_info`].
    pub fn working_bytes(self) -> Result<usize> {
        self.facts.working_bytes(self.row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_stays_of_its_part() {
        let part = |name: &str, rows: &[(usize, usize)]| {
            let rows = rows.iter().map(|&(start, end)| start..end).collect();
            SetPart { name: name.to_owned(), rows }
        };
        let parts = vec![part("a", &[(0, 2)]), part("b", &[(2, 2)]), part("c", &[(2, 5)])];
        let some = SetPart::regrouped(parts.clone(), [4, 3, 0, 1, 1, 2].into_iter());
        assert_eq!(some, [part("a", &[(2, 5)]), part("b", &[]), part("c", &[(0, 2), (5, 6)])]);
        assert_eq!(some.iter().map(SetPart::count).collect::<Vec<_>>(), [3, 0, 3]);
        let of_c: Vec<bool> = (0..7).map(|row| some[2].contains(row)).collect();
        assert_eq!(of_c, [true, true, false, false, false, true, false]);
        let again = SetPart::regrouped(some, [5, 0, 2].into_iter());
        assert_eq!(again, [part("a", &[(2, 3)]), part("b", &[]), part("c", &[(0, 2)])]);
        let beyond = SetPart::regrouped(parts, [9, 4].into_iter());
        assert_eq!(beyond, [part("a", &[]), part("b", &[]), part("c", &[(1, 2)])]);
    }
}
