//! The store whose rows are those of one part after the other.
//!
//! Long because all of it is one type, and each of its answers asks the parts.

use super::names;
use super::parts::{self, Found};
use crate::hints::{PageCache, PartTable, SetPart, SiteTable};
use crate::outer_rows::{self, ConsumerError};
use crate::place::WantedRanges;
use crate::store_layout::count_codec;
use crate::{
    EachImage, Error, FormatContext, Hints, LeftOutCounts, NumberedSink, PixelSink, ReadExtent, Request,
    Result, RowCut, RowFacts, RowHints, RowInfo, Scratch, Store, StoreLayout,
};
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use wellread_image::ImageMetadata;

/// The name that [`Store::format`] gives to parts of several formats.
const SEVERAL: &str = "several";
/// Bytes of decoded pages that each part keeps at least, unless less was asked for: a few pages.
const LEAST_PAGES: usize = 8 << 20;
/// Bytes up to which all parts together may keep so many.
const MOST_LEAST_PAGES: usize = 1 << 30;
/// Bits of a position that are the part's own.
const POSITION_BITS: u32 = 48;

/// A part of a [`Concat`].
#[derive(Clone)]
pub struct Part {
    /// Its name, which no other part of the set has.
    pub name: String,
    /// Columns that are the same for all of its images, as text: their names and values.
    pub keys: Vec<(String, Option<String>)>,
    /// Its images.
    pub store: Arc<dyn Store>,
}

/// Several sets as one: rows of one part after the other. Names of images are those of the parts, with the part's name before them
/// where an image of another part may be called the same. Errors name files of the parts and rows of the whole.
pub struct Concat {
    path: PathBuf,
    parts: Vec<Part>,
    /// The first row of each part, and the number of rows.
    starts: Vec<usize>,
    format: &'static str,
    /// Parts that keep decoded pages.
    pub(super) keeping: usize,
    has_sites: bool,
    missing_parts: Vec<String>,
    columns: OnceLock<Columns>,
    /// Columns that were read, and whose zones differ in the parts.
    pub(super) in_utc: Mutex<BTreeSet<String>>,
    /// Whether images of two parts may be called the same.
    shares_names: OnceLock<bool>,
}

struct Columns {
    names: Vec<String>,
    /// Those of them that no part has itself.
    keys: HashSet<String>,
}

/// The state that a thread keeps from read to read.
#[derive(Debug, Default)]
struct Context {
    /// Part, number and row of each request.
    places: Vec<(usize, usize, usize)>,
    inner: Vec<Request>,
    numbers: Vec<usize>,
    formats: Vec<(&'static str, FormatContext)>,
}

impl Concat {
    /// These parts as one set, called `path` together: the folder that they lie in. Decoded pages are kept of all of them together as
    /// one of them would, or a few of each.
    pub fn new(path: PathBuf, parts: Vec<Part>) -> Self {
        let set = Self::whole(path, parts);
        let keeping = set.keeping.max(1);
        let pages = set.parts.iter().map(|part| part.store.hints().page_cache_bytes()).max().unwrap_or(0);
        set.keep_at_most_each((pages / keeping).max(pages.min(LEAST_PAGES).min(MOST_LEAST_PAGES / keeping)));
        set
    }

    /// These parts, each of which keeps what it keeps.
    fn whole(path: PathBuf, parts: Vec<Part>) -> Self {
        let mut starts = Vec::with_capacity(parts.len() + 1);
        let mut rows = 0usize;
        for part in &parts {
            starts.push(rows);
            rows = rows.saturating_add(part.store.len());
        }
        starts.push(rows);
        let first = parts.first().map_or(SEVERAL, |part| part.store.format());
        let format = if parts.iter().all(|part| part.store.format() == first) { first } else { SEVERAL };
        let keeping = parts.iter().filter(|part| part.store.hints().page_cache_bytes() > 0).count();
        let has_sites = parts.iter().any(|part| part.store.hints().sites.is_some());
        Self {
            path,
            missing_parts: parts::missing_parts(parts.iter().map(|part| (&*part.name, &*part.store))),
            parts,
            starts,
            format,
            keeping,
            has_sites,
            columns: OnceLock::new(),
            in_utc: Mutex::default(),
            shares_names: OnceLock::new(),
        }
    }

    /// These sets as one, in the folder that they have in common, each called by its path there. Names of folders such as `plate=BR1`
    /// are a column. Each keeps as many decoded pages as before: others may read it as well.
    pub fn of(stores: Vec<Arc<dyn Store>>) -> Self {
        let paths = parts::alike(stores.iter().map(|store| store.path().to_owned()).collect());
        let folder = parts::common_folder(&paths);
        let root = if folder == Path::new(".") { Path::new("") } else { folder.as_path() };
        let found = parts::found(root, paths);
        let part = |(store, Found { label, keys, .. })| Part { name: label, keys, store };
        let parts = stores.into_iter().zip(found).map(part).collect();
        Self::whole(folder, parts)
    }

    /// The same with images called as in their part. Parts of a set that was written in parts share no names but those that the whole had
    /// twice.
    pub(super) fn with_own_names(self) -> Self {
        let _ = self.shares_names.set(false);
        self
    }

    /// The parts.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Those that have rows.
    pub(super) fn filled(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| !part.store.is_empty())
    }

    pub(super) fn keep_at_most_each(&self, bytes: usize) {
        for part in &self.parts {
            part.store.hints().limit_page_cache(bytes);
        }
    }

    /// The part of a row, and its row there.
    ///
    /// # Errors
    /// No such row.
    pub(super) fn locate(&self, row: usize) -> Result<(usize, usize)> {
        let rows = self.len();
        if row >= rows {
            return Err(Error::no_such_row(&self.path, row, rows));
        }
        let part = self.starts[..self.parts.len()].partition_point(|&start| start <= row) - 1;
        Ok((part, row - self.starts[part]))
    }

    fn columns(&self) -> &Columns {
        if let Some(known) = self.columns.get() {
            return known;
        }
        // Parts may read for it, so nobody waits: another thread meanwhile finds the same.
        let (mut names, mut seen) = (vec![], HashSet::new());
        for name in self.parts.iter().flat_map(|part| part.store.hints().feature_names()) {
            if seen.insert(name.clone()) {
                names.push(name);
            }
        }
        let mut keys = HashSet::new();
        for (name, _) in self.parts.iter().flat_map(|part| &part.keys) {
            if seen.insert(name.clone()) {
                names.push(name.clone());
                keys.insert(name.clone());
            }
        }
        self.columns.get_or_init(|| Columns { names, keys })
    }

    /// Names of all columns.
    pub(super) fn names(&self) -> &[String] {
        &self.columns().names
    }

    /// Whether a column is one of folders' names alone.
    pub(super) fn is_key(&self, name: &str) -> bool {
        self.columns().keys.contains(name)
    }

    /// Whether images of two parts may be called the same.
    fn shares_names(&self) -> bool {
        if let Some(known) = self.shares_names.get() {
            return *known;
        }
        // Nobody waits for it: another thread meanwhile finds the same.
        let found = names::may_repeat(self.parts.iter().map(|part| &*part.store));
        *self.shares_names.get_or_init(|| found)
    }

    /// The name of a part's image in the whole.
    fn named(&self, part: usize, name: String) -> String {
        if self.shares_names() { format!("{}/{name}", self.parts[part].name) } else { name }
    }

    /// Rows by their parts: each part that has some, with its rows.
    fn by_part(&self, rows: &[usize]) -> Result<Vec<Vec<usize>>> {
        let mut parts = vec![vec![]; self.parts.len()];
        for &row in rows {
            let (part, row) = self.locate(row)?;
            parts[part].push(row);
        }
        Ok(parts)
    }

    fn read_parts(
        &self,
        requests: &[Request],
        context: &mut Context,
        scratch: &mut Scratch,
        sink: &mut dyn PixelSink,
    ) -> Result<()> {
        let Context { places, inner, numbers, formats } = context;
        places.clear();
        for (number, request) in requests.iter().enumerate() {
            let (part, row) = self.locate(request.row)?;
            places.push((part, number, row));
        }
        places.sort_unstable();
        for of_part in places.chunk_by(|a, b| a.0 == b.0) {
            inner.clear();
            numbers.clear();
            for &(_, number, row) in of_part {
                inner.push(Request { row, region: requests[number].region });
                numbers.push(number);
            }
            let (store, start) = (&self.parts[of_part[0].0].store, self.starts[of_part[0].0]);
            // Decoders and buffers of a format serve all of its parts.
            let at = formats.iter().position(|(format, _)| *format == store.format()).unwrap_or_else(|| {
                formats.push((store.format(), FormatContext::default()));
                formats.len() - 1
            });
            std::mem::swap(&mut scratch.context, &mut formats[at].1);
            let read = outer_rows::renumbered(
                sink,
                |sink| store.read(inner, scratch, &mut NumberedSink { numbers, sink }),
                |row| Some(start + row),
            );
            std::mem::swap(&mut scratch.context, &mut formats[at].1);
            read?;
        }
        Ok(())
    }
}

impl Store for Concat {
    fn format(&self) -> &'static str {
        self.format
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn remote_path(&self) -> Option<&Path> {
        self.parts.iter().find_map(|part| part.store.remote_path())
    }

    fn len(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    fn row_info(&self, row: usize) -> Result<RowInfo> {
        let (part, own) = self.locate(row)?;
        self.parts[part].store.row_info(own).map_err(|e| e.of_row(row))
    }

    fn check(&self, request: &Request) -> Result<RowInfo> {
        let (part, row) = self.locate(request.row)?;
        let own = Request { row, region: request.region };
        self.parts[part].store.check(&own).map_err(|e| e.of_row(request.row))
    }

    fn name(&self, row: usize) -> Result<String> {
        let (part, own) = self.locate(row)?;
        let name = self.parts[part].store.name(own).map_err(|e| e.of_row(row))?;
        Ok(self.named(part, name))
    }

    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        let (part, own) = self.locate(row)?;
        let mut metadata = self.parts[part].store.metadata(own).map_err(|e| e.of_row(row))?;
        metadata.name = self.named(part, metadata.name);
        metadata.id = self.named(part, metadata.id);
        Ok(metadata)
    }

    fn layout(&self) -> Result<StoreLayout> {
        let layouts = self.parts.iter().map(|part| part.store.layout()).collect::<Result<Vec<_>>>()?;
        let of =
            |text: fn(&StoreLayout) -> &String| parts::in_words(layouts.iter().map(|one| text(one).clone()));
        let chunk = layouts.first().and_then(|layout| layout.chunk);
        let sum = |count: fn(&StoreLayout) -> usize| layouts.iter().map(count).sum();
        let mut codecs: Vec<(String, usize)> = vec![];
        // Where a part does not tell, the others do not tell of all.
        let all_tell = layouts.iter().all(|layout| !layout.codecs.is_empty());
        for (codec, files) in layouts.iter().filter(|_| all_tell).flat_map(|layout| &layout.codecs) {
            count_codec(&mut codecs, codec.clone(), *files);
        }
        Ok(StoreLayout {
            codec: of(|layout| &layout.codec),
            codecs,
            pixel_share: layouts.iter().filter_map(|layout| layout.pixel_share).reduce(f64::min),
            pieces: of(|layout| &layout.pieces),
            variant: of(|layout| &layout.variant),
            chunk: chunk.filter(|_| layouts.iter().all(|layout| layout.chunk == chunk)),
            white_is_zero_images: sum(|layout| layout.white_is_zero_images),
            palette_images: sum(|layout| layout.palette_images),
        })
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let (mut files, mut seen) = (vec![], HashSet::new());
        for part in &self.parts {
            files.extend(part.store.files()?.into_iter().filter(|file| seen.insert(file.clone())));
        }
        Ok(files)
    }

    fn files_of(&self, rows: &[usize]) -> Result<Vec<PathBuf>> {
        let (mut files, mut seen) = (vec![], HashSet::new());
        for (part, rows) in self.parts.iter().zip(self.by_part(rows)?).filter(|(_, rows)| !rows.is_empty()) {
            files.extend(part.store.files_of(&rows)?.into_iter().filter(|file| seen.insert(file.clone())));
        }
        Ok(files)
    }

    fn has_checksums(&self) -> bool {
        self.parts.iter().all(|part| part.store.has_checksums())
    }

    fn hints(&self) -> Hints<'_> {
        Hints {
            // A read that has a price of its own has it in each part.
            rows_per_read: self.parts.iter().map(|part| part.store.hints().rows_per_read).max().unwrap_or(1),
            page_cache: (self.keeping > 0).then_some(self as &dyn PageCache),
            columns: Some(self),
            sites: self.has_sites.then_some(self as &dyn SiteTable),
            parts: Some(self),
            missing_parts: &self.missing_parts,
            left_out: self
                .parts
                .iter()
                .map(|part| part.store.hints().left_out)
                .fold(LeftOutCounts::default(), LeftOutCounts::and),
            is_last_mask: !self.parts.is_empty()
                && self.parts.iter().all(|part| part.store.hints().is_last_mask),
            are_crops: self.parts.iter().any(|part| part.store.hints().are_crops),
        }
    }

    fn row_hints(&self, row: usize) -> Result<RowHints<'_>> {
        self.locate(row)?;
        Ok(RowHints::new(self, row))
    }

    fn heads(&self, rows: &[usize], extent: ReadExtent, wanted: &mut WantedRanges) {
        let mut places: Vec<_> = rows.iter().filter_map(|&row| self.locate(row).ok()).collect();
        places.sort_unstable();
        for of_part in places.chunk_by(|a, b| a.0 == b.0) {
            let rows: Vec<usize> = of_part.iter().map(|&(_, row)| row).collect();
            self.parts[of_part[0].0].store.heads(&rows, extent, wanted);
        }
    }

    fn ranges(&self, requests: &[Request], wanted: &mut WantedRanges) -> Result<()> {
        let place = |request: &Request| {
            let (part, row) = self.locate(request.row)?;
            Ok((part, Request { row, region: request.region }))
        };
        let mut places = requests.iter().map(place).collect::<Result<Vec<_>>>()?;
        // All of a part at once: the index of its rows' ranges is fetched together.
        places.sort_by_key(|(part, _)| *part);
        for of_part in places.chunk_by(|a, b| a.0 == b.0) {
            let inner: Vec<Request> = of_part.iter().map(|(_, request)| *request).collect();
            let (store, start) = (&self.parts[of_part[0].0].store, self.starts[of_part[0].0]);
            ConsumerError::default().outer(store.ranges(&inner, wanted), |row| Some(start + row))?;
        }
        Ok(())
    }

    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        // Taken out while it is used, since parts use the rest of the scratch memory.
        let mut context = std::mem::take(scratch.context.get::<Context>());
        let read = self.read_parts(requests, &mut context, scratch, sink);
        *scratch.context.get::<Context>() = context;
        read
    }

    fn scan(&self, rows: Range<usize>, each: &mut EachImage<'_>) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.locate(rows.end - 1)?;
        for (part, start) in self.parts.iter().zip(&self.starts) {
            let end = start + part.store.len();
            let own = rows.start.max(*start)..rows.end.min(end);
            if own.is_empty() {
                continue;
            }
            let mut of_consumer = ConsumerError::default();
            let scanned = part.store.scan(own.start - start..own.end - start, &mut |row, info, pixels| {
                of_consumer.keep(each(start + row, info, pixels))
            });
            of_consumer.outer(scanned, |row| Some(start + row))?;
        }
        Ok(())
    }
}

impl PartTable for Concat {
    fn parts(&self) -> Vec<SetPart> {
        let rows = self.starts.windows(2).map(|ends| ends[0]..ends[1]);
        let parts = self.parts.iter().zip(rows);
        parts.map(|(part, rows)| SetPart { name: part.name.clone(), rows: vec![rows] }).collect()
    }

    /// Also where a part is put together itself, and its names begin with those of its own parts.
    fn names_begin_with_parts(&self) -> bool {
        self.shares_names() || self.parts.iter().any(|part| part.store.hints().names_begin_with_parts())
    }
}

impl RowFacts for Concat {
    /// Parts apart, the first one first.
    fn position(&self, row: usize) -> u64 {
        let Ok((part, row)) = self.locate(row) else { return u64::MAX };
        let own = self.parts[part].store.row_hints(row).map_or(row as u64, RowHints::position);
        (part as u64) << POSITION_BITS | own.min((1 << POSITION_BITS) - 1)
    }

    fn grid(&self, row: usize) -> Option<[usize; 2]> {
        let (part, row) = self.locate(row).ok()?;
        self.parts[part].store.row_hints(row).ok()?.grid()
    }

    fn file(&self, row: usize) -> Option<PathBuf> {
        let (part, row) = self.locate(row).ok()?;
        self.parts[part].store.row_hints(row).ok()?.file()
    }

    fn cut(&self, row: usize) -> Option<RowCut> {
        let (part, row) = self.locate(row).ok()?;
        self.parts[part].store.row_hints(row).ok()?.cut()
    }

    fn metadata_rows(&self, row: usize) -> usize {
        let Ok((part, row)) = self.locate(row) else { return 1 };
        self.parts[part].store.row_hints(row).map_or(1, RowHints::metadata_rows)
    }

    fn unkept(&self, row: usize) -> Vec<&'static str> {
        let Ok((part, row)) = self.locate(row) else { return vec![] };
        self.parts[part].store.row_hints(row).map_or_else(|_| vec![], RowHints::unkept)
    }

    fn working_bytes(&self, row: usize) -> Result<usize> {
        let (part, own) = self.locate(row)?;
        let hints = self.parts[part].store.row_hints(own);
        hints.and_then(RowHints::working_bytes).map_err(|e| e.of_row(row))
    }
}
